// Package kittest holds what the Slack front builds against the reference table of Slack's
// limits, and against what no untrusted text may become. It is imported by tests only. No code of the
// local workspace is in it: the two judge independently of each other.
package kittest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot/slack/kit"
)

// Texts are untrusted texts that are too long, loud, or not what they seem.
var Texts = map[string]string{
	"nothing": "", "blanks": " \t\n\u00a0", "short": "checkout gets 502",
	"long":     strings.Repeat("the gateway answers 502 and names its upstream ", 260),
	"pictures": strings.Repeat("\U0001f525\U0001f468\u200d\U0001f469\u200d\U0001f467", 2400),
	"turned":   strings.Repeat("\u202egnp.exe \u2066\u2067\u200fשלום\u061c ", 600),
	"ticks":    strings.Repeat("`x` ```y``` ", 1000),
	"pages":    strings.Repeat("<!channel> <!here> <@U0ONCALL01> <!subteam^S0NETOPS01|@all> @channel ", 180),
	"links":    strings.Repeat("<https://evil.example.com|https://good.example.com> [good](https://evil.example.com) https://example.com/a ", 120),
	"signs":    strings.Repeat("& < > &amp;lt; \x00\x02U1\x03\x1b[31m\r\n\u2028\ufeff\xff * _ ~ ", 400),
	"one word": strings.Repeat("x", 12000), "lines": strings.Repeat("a\n", 6000), "accents": strings.Repeat("e\u0301\u0301\u0301\u0301", 2500),
	"dates": strings.Repeat("<!date^0^{date}^https://evil.example.com|x>", 280),
}

// Limits are the reference table.
type Limits struct {
	Objects, Elements, Blocks map[string]shape
	Views                     struct {
		Modal shape
	}
	Surfaces map[string]struct {
		Min       int `json:"min_blocks"`
		Max       int `json:"max_blocks"`
		Aggregate struct {
			Safe int `json:"total_text_safe_max"`
		}
	}
	Rich struct {
		Containers, Inline []string
	} `json:"rich_text_elements"`
	Safe struct {
		Blocks, Elements []string
	} `json:"safe_profile"`
	Socket struct {
		Ack int `json:"ack_max_bytes"`
	} `json:"socket_mode"`
}

type shape struct {
	Fields   map[string]limit
	Rules    []rule
	Surfaces []string
	Most     int `json:"max_bytes"`
}

type rule struct {
	Rule, Field, Other string
	Fields             []string
	Max                int
}

type limit struct {
	Kind     string
	Required bool
	Min, Max int
	Values   []any
	Items    *limit
	OneOf    []string `json:"one_of"`
	Ref      string
	Types    []string `json:"text_types"`
}

// Read reads the table beside the module, whose root is up from the test's directory. Where it is
// missing the test skips, and fails with CI=true.
func Read(t testing.TB, up string) *Limits {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(up, "..", "shared", "blockkit_limits.json"))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("the reference table is not here: %v", err)
	}
	var l Limits
	if err := json.Unmarshal(raw, &l); err != nil {
		t.Fatal(err)
	}
	return &l
}

// plain is v as JSON has it.
func plain(v any) (any, []byte) {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error(), nil
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		return err.Error(), nil
	}
	return out, raw
}

// Message returns what is wrong with a message, first with what it is sent as.
func (l *Limits) Message(text string, blocks []slackgo.Block) (bad []string) {
	if n := utf8.RuneCountInString(text); n == 0 || n > 4000 {
		bad = append(bad, fmt.Sprintf("the text has %d characters", n))
	}
	bad = append(bad, l.surface("message", blocks)...)
	return append(bad, markup(text, true)...)
}

// Home returns what is wrong with a Home tab.
func (l *Limits) Home(blocks []slackgo.Block) []string { return l.surface("home", blocks) }

// Modal returns what is wrong with a window.
func (l *Limits) Modal(v slackgo.ModalViewRequest) (bad []string) {
	p, raw := plain(v)
	m, _ := p.(map[string]any)
	s := l.Views.Modal
	bad = l.fields(m, s.Fields, "modal")
	if s.Most > 0 && len(raw) > s.Most {
		bad = append(bad, fmt.Sprintf("the window has %d bytes", len(raw)))
	}
	return append(bad, l.surface("modal", v.Blocks.BlockSet)...)
}

// Ack returns what is wrong with an answer that is part of an acknowledgement.
func (l *Limits) Ack(text string, blocks []slackgo.Block) (bad []string) {
	_, raw := plain(map[string]any{"envelope_id": strings.Repeat("x", 36), "payload": map[string]any{"response_type": "ephemeral", "text": text, "blocks": blocks}})
	if l.Socket.Ack > 0 && len(raw) > l.Socket.Ack {
		bad = append(bad, fmt.Sprintf("the acknowledgement has %d bytes", len(raw)))
	}
	return bad
}

func (l *Limits) surface(name string, blocks []slackgo.Block) (bad []string) {
	s := l.Surfaces[name]
	p, raw := plain(blocks)
	list, _ := p.([]any)
	if len(list) < s.Min || len(list) > s.Max {
		bad = append(bad, fmt.Sprintf("%d blocks", len(list)))
	}
	var ids []string
	for i, b := range list {
		m, _ := b.(map[string]any)
		kind, _ := m["type"].(string)
		at := fmt.Sprintf("%d %s", i, kind)
		shape, ok := l.Blocks[kind]
		if !ok || !slices.Contains(shape.Surfaces, name) || !slices.Contains(l.Safe.Blocks, kind) {
			bad = append(bad, at+" is not for a "+name)
		}
		if id, _ := m["block_id"].(string); id != "" {
			if slices.Contains(ids, id) {
				bad = append(bad, at+": block_id twice: "+id)
			}
			ids = append(ids, id)
		}
		bad = append(bad, l.typed(m, at)...)
	}
	n := 0
	walk(p, func(m map[string]any) {
		s, ok := m["text"].(string)
		if n += utf8.RuneCountInString(s); ok {
			bad = append(bad, markup(s, m["type"] == "mrkdwn")...)
		}
	})
	if most := s.Aggregate.Safe; most > 0 && n > most {
		bad = append(bad, fmt.Sprintf("%d characters in all", n))
	}
	var back slackgo.Blocks
	if err := json.Unmarshal(raw, &back); err != nil || len(back.BlockSet) != len(blocks) {
		bad = append(bad, fmt.Sprintf("the library does not read it: %v", err))
	}
	return bad
}

func walk(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			walk(e, f)
		}
	case map[string]any:
		f(v)
		for _, e := range v {
			walk(e, f)
		}
	}
}

// ours is the markup that the front writes itself: who may decide, a channel, a time, a link to a
// message of the workspace.
var ours = regexp.MustCompile(`<@U[12]>|<!subteam\^S1>|<#C1>|<!date\^-?[0-9]+\^\{[a-z_]+\}[^<>^|]*\|[^<>|]*>|<https://x\.example\.com/[^<>|]*\|[A-Za-z ]+>`)

var turning = regexp.MustCompile("[\u202a-\u202e\u2066\u2067\u200e\u200f\u061c\x00-\x08\x0b-\x1f\x7f]")

// markup returns what in a text is none of ours.
func markup(s string, parsed bool) (bad []string) {
	if rest := ours.ReplaceAllString(s, ""); parsed && strings.ContainsAny(rest, "<>") {
		bad = append(bad, fmt.Sprintf("markup: %.80q", rest[strings.IndexAny(rest, "<>"):]))
	}
	if at := turning.FindString(s); at != "" {
		bad = append(bad, fmt.Sprintf("a sign that turns or hides text: %q", at))
	}
	if !utf8.ValidString(s) {
		bad = append(bad, "a text that is none")
	}
	return bad
}

// typed checks an object by the fields and rules of its type.
func (l *Limits) typed(m map[string]any, at string) (bad []string) {
	kind, _ := m["type"].(string)
	s, ok := l.Blocks[kind]
	if !ok {
		if s, ok = l.Elements[kind]; ok && !slices.Contains(l.Safe.Elements, kind) {
			bad = append(bad, at+": an element that not every client shows: "+kind)
		}
	}
	if kind == "rich_text" {
		return append(bad, l.rich(m, at)...)
	}
	if !ok {
		return append(bad, at+": a type that is not known: "+kind)
	}
	for _, r := range s.Rules {
		bad = append(bad, r.check(m, at)...)
	}
	return append(bad, l.fields(m, s.Fields, at)...)
}

// rich checks the parts of a rich text, which the table lists by name alone.
func (l *Limits) rich(m map[string]any, at string) (bad []string) {
	list, _ := m["elements"].([]any)
	if len(list) == 0 {
		bad = append(bad, at+" is empty")
	}
	for _, e := range list {
		part, _ := e.(map[string]any)
		if kind, _ := part["type"].(string); !slices.Contains(l.Rich.Containers, kind) {
			bad = append(bad, at+": "+kind+" is no part of a rich text")
		}
		walk(part["elements"], func(in map[string]any) {
			kind, typed := in["type"].(string)
			if typed && !slices.Contains(l.Rich.Inline, kind) && kind != "rich_text_section" {
				bad = append(bad, at+": "+kind+" is no part of a rich text")
			}
			if s, _ := in["text"].(string); kind == "text" && s == "" {
				bad = append(bad, at+": an empty text")
			}
			if kind == "broadcast" {
				bad = append(bad, at+": everybody is paged")
			}
		})
	}
	return bad
}

func (r rule) check(m map[string]any, at string) []string {
	there := 0
	for _, f := range r.Fields {
		if m[f] != nil {
			there++
		}
	}
	switch {
	case r.Rule == "one_of_required" && there == 0, r.Rule == "exactly_one" && there != 1, r.Rule == "mutually_exclusive" && there > 1:
		return []string{fmt.Sprintf("%s: %s of %v", at, r.Rule, r.Fields)}
	case r.Rule == "requires" && m[r.Field] != nil && m[r.Field] != false && m[r.Other] == nil:
		return []string{at + ": " + r.Field + " without " + r.Other}
	case r.Rule == "unique_action_id":
		var ids []string
		list, _ := m["elements"].([]any)
		for _, e := range list {
			el, _ := e.(map[string]any)
			if id, _ := el["action_id"].(string); id != "" && slices.Contains(ids, id) {
				return []string{at + ": action_id twice: " + id}
			} else if id != "" {
				ids = append(ids, id)
			}
		}
	}
	return nil
}

func (l *Limits) fields(m map[string]any, fields map[string]limit, at string) (bad []string) {
	for k, f := range fields {
		v, there := m[k]
		if !there || v == nil {
			if f.Required {
				bad = append(bad, at+"."+k+" is missing")
			}
			continue
		}
		bad = append(bad, l.field(v, f, at+"."+k)...)
	}
	return bad
}

func (l *Limits) field(v any, f limit, at string) (bad []string) {
	long := func(n int, what string) {
		if f.Max > 0 && n > f.Max || n < f.Min {
			bad = append(bad, fmt.Sprintf("%s has %d %s, at least %d and at most %d are allowed", at, n, what, f.Min, f.Max))
		}
	}
	switch v := v.(type) {
	case string:
		long(utf8.RuneCountInString(v), "characters")
		if f.Kind == "enum" && !slices.Contains(f.Values, any(v)) {
			bad = append(bad, at+" is "+v)
		}
	case []any:
		long(len(v), "items")
		for _, e := range v {
			if m, ok := e.(map[string]any); ok && f.Items != nil {
				bad = append(bad, l.item(m, *f.Items, at)...)
			}
		}
	case map[string]any:
		bad = append(bad, l.object(v, f, at)...)
	}
	return bad
}

// item checks a member of a list, whose type is among those that it may have.
func (l *Limits) item(m map[string]any, f limit, at string) (bad []string) {
	kind, _ := m["type"].(string)
	if len(f.OneOf) > 0 && kind != "" && !slices.Contains(f.OneOf, kind) && !slices.Contains(f.OneOf, "*") && !slices.Contains(f.OneOf, "text") {
		return []string{at + ": " + kind + " has no place here"}
	}
	if f.Kind == "block" {
		return nil // blocks are checked as such
	}
	if kind == "" && len(f.OneOf) > 0 { // an object without a type
		return l.fields(m, l.Objects[f.OneOf[0]].Fields, at)
	}
	return l.object(m, f, at)
}

func (l *Limits) object(m map[string]any, f limit, at string) []string {
	kind, _ := m["type"].(string)
	switch {
	case kind == "plain_text", kind == "mrkdwn":
		s, _ := m["text"].(string)
		bad := l.field(s, limit{Min: max(f.Min, 1), Max: f.Max}, at)
		if len(f.Types) > 0 && !slices.Contains(f.Types, kind) {
			bad = append(bad, at+" is "+kind)
		}
		return append(bad, l.fields(m, l.Objects["text"].Fields, at)...)
	case f.Ref != "":
		return l.fields(m, l.Objects[f.Ref].Fields, at)
	case kind == "":
		return nil
	}
	return l.typed(m, at)
}

// Withheld checks that a credential which was put into a message does not leave it: not
// whole, and not in two parts that stand side by side.
func Withheld(secret, text string, blocks []slackgo.Block) (bad []string) {
	mask := func(s string) string { return strings.ReplaceAll(s, secret, "[REDACTED]") }
	text, blocks = kit.Whole(text, blocks, mask)
	p, _ := plain(blocks)
	walk(p, func(m map[string]any) {
		if s, _ := m["text"].(string); strings.Contains(s, secret) {
			bad = append(bad, fmt.Sprintf("a credential is left: %.60q", s))
		}
	})
	if strings.Contains(text, secret) {
		bad = append(bad, "a credential is left in the text")
	}
	return bad
}

// Builders checks that a test's table names every function of a package that makes blocks,
// elements or windows, and no other. known says how each is held against the limits: by what builds on it, or by
// itself.
func Builders(t testing.TB, dir string, known map[string]string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no source in %s: %v", dir, err)
	}
	found := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && builds(f) {
				found[f.Name.Name] = true
			}
		}
	}
	for name := range found {
		if known[name] == "" {
			t.Errorf("%s makes something that people see, and nothing holds it against Slack's limits: name it in the table, with what does", name)
		}
	}
	for name := range known {
		if !found[name] {
			t.Errorf("%s is in the table and makes nothing", name)
		}
	}
}

// builds reports whether a function returns parts of a message or a window, or puts some together.
func builds(f *ast.FuncDecl) (yes bool) {
	look := func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, _ := sel.X.(*ast.Ident)
		name := sel.Sel.Name
		if x != nil && x.Name == "slackgo" && (strings.HasPrefix(name, "New") && (strings.Contains(name, "Block") || strings.Contains(name, "RichText")) ||
			strings.HasSuffix(name, "ViewRequest") || strings.HasSuffix(name, "Block") || name == "RichTextElement" || name == "RichTextSectionElement" || name == "BlockElement") {
			yes = true
		}
		if x != nil && x.Name == "kit" && slices.Contains([]string{"Section", "ContextLine", "RichText", "Modal", "Pre"}, name) {
			yes = true
		}
		return true
	}
	ast.Inspect(f, look)
	return yes
}
