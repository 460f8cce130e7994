package gemini

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// script is a parsed script.
type script struct {
	models       []string
	key          string
	ids          bool
	anySignature bool
	choose       bool // the first step whose expectations hold, however often
	steps        []step
}

// step is one answer with what its request must look like.
type step struct {
	expect []directive
	answer answer
	fault  *fault
}

// directive is one line: a word and the rest.
type directive struct{ verb, rest string }

// fault is an answer that is none.
type fault struct {
	kind    string // status, html, reset, hang, cut
	status  int
	message string
	retry   string
	after   int
	daily   bool
	times   int
}

type answer struct {
	raw   json.RawMessage
	lines []directive
}

func parseScript(text []byte) (script, error) {
	var s script
	if namelessFile.Match(text) { // the archive's parser does not survive one
		return s, errors.New("a file has no name")
	}
	a := txtar.Parse(text)
	for _, d := range directives(string(a.Comment)) {
		if err := s.set(d); err != nil {
			return s, err
		}
	}
	byN := map[int]*step{}
	for _, f := range a.Files {
		num, what, _ := strings.Cut(f.Name, " ")
		n, err := strconv.Atoi(num)
		if err != nil || n < 1 {
			return s, fmt.Errorf("file %q: want N expect, N answer or N fault", f.Name)
		}
		if byN[n] == nil {
			byN[n] = &step{}
		}
		if err := byN[n].add(what, f.Data); err != nil {
			return s, fmt.Errorf("file %q: %w", f.Name, err)
		}
	}
	for n := 1; n <= len(byN); n++ {
		st := byN[n]
		if st == nil || st.fault == nil && st.answer.raw == nil && st.answer.lines == nil {
			return s, fmt.Errorf("step %d has no answer", n)
		}
		s.steps = append(s.steps, *st)
	}
	return s, nil
}

// namelessFile is a line that names nothing.
var namelessFile = regexp.MustCompile(`(?m)^-- +--`)

func directives(text string) []directive {
	var out []directive
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			verb, rest, _ := strings.Cut(line, " ")
			out = append(out, directive{verb, strings.TrimSpace(rest)})
		}
	}
	return out
}

func (s *script) set(d directive) error {
	switch d.verb {
	case "model":
		s.models = append(s.models, d.rest)
	case "key":
		s.key = d.rest
	case "ids":
		s.ids = d.rest == "on"
	case "choose":
		s.choose = d.rest == "expectation"
	case "signatures":
		s.anySignature = d.rest == "any"
	default:
		return fmt.Errorf("setting %q: have model, key, ids, choose, signatures", d.verb)
	}
	return nil
}

func (st *step) add(what string, data []byte) error {
	lines := directives(string(data))
	switch what {
	case "expect":
		for _, d := range lines {
			if !slices.Contains([]string{"model", "system", "tool", "contents", "last", "!last", "any", "!any", "response"}, d.verb) {
				return fmt.Errorf("%q expects nothing", d.verb)
			}
		}
		st.expect = lines
	case "answer":
		if text := strings.TrimSpace(string(data)); strings.HasPrefix(text, "{") {
			if !json.Valid([]byte(text)) {
				return errors.New("no valid JSON")
			}
			st.answer.raw = json.RawMessage(text)
			return nil
		}
		st.answer.lines = lines
	case "fault":
		f, err := parseFault(lines)
		st.fault = &f
		return err
	default:
		return fmt.Errorf("%q: have expect, answer, fault", what)
	}
	return nil
}

func parseFault(lines []directive) (f fault, err error) {
	f = fault{kind: "status", status: 500, message: "An internal error has occurred.", times: 1}
	for _, d := range lines {
		switch d.verb {
		case "status":
			f.status, err = strconv.Atoi(d.rest)
		case "message":
			f.message = d.rest
		case "retry":
			var pause time.Duration
			pause, err = time.ParseDuration(d.rest)
			f.retry = strconv.FormatFloat(pause.Seconds(), 'f', -1, 64) + "s"
		case "retry-after":
			f.after, err = strconv.Atoi(d.rest)
		case "quota-day":
			f.daily = true
		case "times":
			f.times, err = strconv.Atoi(d.rest)
		case "html", "reset", "hang", "cut":
			f.kind = d.verb
		default:
			err = fmt.Errorf("fault %q", d.verb)
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// unmet lists the expectations that a request does not meet.
func (st step) unmet(model string, r request) []string {
	var out []string
	last, all, system := wire(r.Contents[len(r.Contents)-1]), wire(r), wire(r.SystemInstruction)
	for _, d := range st.expect {
		ok := true
		switch d.verb {
		case "model":
			ok = model == d.rest
		case "system":
			ok = strings.Contains(system, d.rest)
		case "tool":
			ok = slices.ContainsFunc(r.Tools, func(t tool) bool {
				return slices.ContainsFunc(t.FunctionDeclarations, func(f declaration) bool { return f.Name == d.rest })
			})
		case "contents":
			ok = strconv.Itoa(len(r.Contents)) == d.rest
		case "last", "!last":
			ok = strings.Contains(last, d.rest) == (d.verb == "last")
		case "any", "!any":
			ok = strings.Contains(all, d.rest) == (d.verb == "any")
		case "response":
			ok = r.responds(d.rest)
		}
		if !ok {
			out = append(out, "expected "+d.verb+" "+d.rest)
		}
	}
	return out
}

// wire is a value as text in which expectations are looked for: its strings, not
// their JSON encoding.
func wire(v any) string {
	var b strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v + "\n")
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				b.WriteString(k + ": ")
				walk(v[k])
			}
		default:
			fmt.Fprintln(&b, v)
		}
	}
	raw, _ := json.Marshal(v)
	var tree any
	json.Unmarshal(raw, &tree)
	walk(tree)
	return b.String()
}

// responds looks for "TOOL KEY=VALUE" in the newest content.
func (r request) responds(want string) bool {
	name, rest, _ := strings.Cut(want, " ")
	key, value, _ := strings.Cut(rest, "=")
	for _, f := range slices.Backward(r.Contents[len(r.Contents)-1].responses()) {
		if f.Name != name {
			continue
		}
		var at any = f.Response
		for _, k := range strings.Split(key, ".") {
			m, _ := at.(map[string]any)
			at = m[k]
		}
		return fmt.Sprint(at) == value
	}
	return false
}

// build makes the response of step n. content is the canonical form of what the
// model said, "" when it said nothing.
func (a answer) build(n int, model string, ids bool, r request) (resp any, said string, err error) {
	if a.raw != nil {
		var whole struct {
			Candidates []struct{ Content content }
		}
		json.Unmarshal(a.raw, &whole)
		if len(whole.Candidates) > 0 {
			said = canonical(whole.Candidates[0].Content)
		}
		return a.raw, said, nil
	}
	m := message{n: n, ids: ids, finish: "STOP", version: model, sign: true}
	for _, d := range a.lines {
		if err := m.add(d, r); err != nil {
			return nil, "", err
		}
	}
	return m.response(len(wire(r)) / 4), canonical(m.content()), nil
}

// message is an answer in the making.
type message struct {
	n, calls        int
	ids, sign, none bool
	parts           []part
	finish, block   string
	version         string
	usage           []int
}

func (m *message) add(d directive, r request) error {
	switch d.verb {
	case "text", "thought":
		text := r.fill(d.rest)
		m.parts = append(m.parts, part{Text: &text, Thought: d.verb == "thought"})
	case "call":
		name, args, _ := strings.Cut(d.rest, " ")
		c := &functionCall{Name: name}
		if err := json.Unmarshal([]byte(r.fill(args)), &c.Args); err != nil && args != "" {
			return fmt.Errorf("call %s: %w", name, err)
		}
		if m.calls++; m.ids {
			c.ID = fmt.Sprintf("call-%d-%d", m.n, m.calls)
		}
		m.parts = append(m.parts, part{FunctionCall: c})
	case "nosig":
		m.sign = false
	case "finish":
		m.finish = d.rest
	case "block":
		m.block = d.rest
	case "none":
		m.none = true
	case "version":
		m.version = d.rest
	case "usage":
		for _, f := range strings.Fields(d.rest) {
			v, err := strconv.Atoi(f)
			if err != nil {
				return fmt.Errorf("usage: %w", err)
			}
			m.usage = append(m.usage, v)
		}
	default:
		return fmt.Errorf("answer %q", d.verb)
	}
	return nil
}

// content is what the model says; the first call carries the signature, as with
// the API, or the last text when there is no call.
func (m *message) content() content {
	if m.sign && len(m.parts) > 0 {
		at := slices.IndexFunc(m.parts, func(p part) bool { return p.FunctionCall != nil })
		if at < 0 {
			at = len(m.parts) - 1
		}
		m.parts[at].ThoughtSignature = base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "signature of step %d \xff\xfe", m.n))
	}
	return content{Role: "model", Parts: m.parts}
}

func (m *message) response(prompt int) map[string]any {
	use := append(m.usage, []int{prompt, 40, 0, 0}[min(len(m.usage), 4):]...)
	out := map[string]any{"modelVersion": m.version, "responseId": fmt.Sprintf("step-%d", m.n), "usageMetadata": map[string]any{
		"promptTokenCount": use[0], "candidatesTokenCount": use[1], "thoughtsTokenCount": use[2], "cachedContentTokenCount": use[3], "totalTokenCount": use[0] + use[1] + use[2],
	}}
	if m.block != "" {
		out["promptFeedback"] = map[string]any{"blockReason": m.block}
		return out
	}
	if !m.none {
		c := map[string]any{"finishReason": m.finish, "index": 0}
		if said := m.content(); len(said.Parts) > 0 {
			c["content"] = said
		} else {
			c["content"] = map[string]any{"role": "model"}
		}
		out["candidates"] = []any{c}
	}
	return out
}

// find is the first group of a pattern's first match in the request, or the whole
// match; what does not match stays.
func (r request) find(pattern, otherwise string) string {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return otherwise
	}
	m := re.FindStringSubmatch(wire(r.Contents))
	if m == nil {
		return otherwise
	}
	return m[len(m)-1]
}

var reference = regexp.MustCompile(`\$\{(audit|match):([^}]+)\}`)

// fill puts audit ids in the place of references to them. A reference to nothing
// stays, and is then an id that does not exist.
func (r request) fill(text string) string {
	var ids, commands []string
	for _, c := range r.Contents {
		for _, f := range c.responses() {
			id, _ := f.Response["audit_id"].(string)
			cmd, _ := f.Response["command"].(string)
			if id != "" {
				ids, commands = append(ids, id), append(commands, cmd)
			}
		}
	}
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		parts := reference.FindStringSubmatch(ref)
		want := parts[2]
		if parts[1] == "match" {
			return r.find(want, ref)
		}
		if n, err := strconv.Atoi(want); err == nil {
			if n < 0 {
				n += len(ids) + 1
			}
			if n >= 1 && n <= len(ids) {
				return ids[n-1]
			}
			return ref
		}
		for i := len(ids) - 1; i >= 0; i-- {
			if strings.Contains(commands[i], want) {
				return ids[i]
			}
		}
		return ref
	})
}
