package gemini

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genai"

	"ghostbot/agent"
	"ghostbot/safeexec"
)

// kept is what the journal keeps of an answer, so that the model gets its own
// parts back unchanged. Another model cannot read them.
type kept struct {
	Model   string         `json:"model"`
	Content *genai.Content `json:"content"`
}

// own returns the parts of a turn that may be returned to this model.
func (b *Brain) own(t agent.PastTurn) *genai.Content {
	var k kept
	if len(t.Model) == 0 || json.Unmarshal(t.Model, &k) != nil || k.Model != b.o.Model || k.Content == nil || len(k.Content.Parts) == 0 {
		return nil
	}
	return k.Content
}

// chapter is one turn as it is told to the model: its own parts and the answers
// to them, or a record in words.
type chapter struct {
	turn  agent.PastTurn
	said  *genai.Content // nil: told in words
	seen  map[int]agent.Observation
	after []agent.Instruction
	whole history // the turn as it is told when there is room
}

// history is a conversation in the making.
type history struct {
	f    fence
	out  []*genai.Content
	size int // bytes of text so far, as [Brain.tokens] counts them
}

func (h *history) user(parts ...*genai.Part) {
	if n := len(h.out); n == 0 || h.out[n-1].Role != genai.RoleUser {
		h.out = append(h.out, &genai.Content{Role: genai.RoleUser})
	}
	c := h.out[len(h.out)-1]
	for _, p := range parts {
		c.Parts = append(c.Parts, p)
		h.size += sizeOf(p)
	}
}

// add appends a conversation that begins with a user or follows one.
func (h *history) add(more history) {
	for _, c := range more.out {
		if n := len(h.out); n > 0 && c.Role == genai.RoleUser && h.out[n-1].Role == genai.RoleUser {
			h.out[n-1].Parts = append(h.out[n-1].Parts, c.Parts...)
		} else {
			h.out = append(h.out, c)
		}
	}
	h.size += more.size
}

func (h *history) text(format string, args ...any) {
	h.user(&genai.Part{Text: fmt.Sprintf(format, args...)})
}

// sizeOf is roughly what a part weighs, in bytes.
func sizeOf(p *genai.Part) int {
	n := len(p.Text) + len(p.ThoughtSignature)*4/3 + 20
	if p.FunctionCall != nil {
		n += weight(p.FunctionCall.Args) + len(p.FunctionCall.Name) + 30
	}
	if p.FunctionResponse != nil {
		n += weight(p.FunctionResponse.Response) + len(p.FunctionResponse.Name) + 30
	}
	return n
}

func weight(v any) int {
	n := 6
	switch v := v.(type) {
	case string:
		return len(v) + 3
	case []any:
		for _, x := range v {
			n += weight(x)
		}
	case map[string]any:
		for k, x := range v {
			n += len(k) + 4 + weight(x)
		}
	}
	return n
}

// chapters cuts a view into turns.
func (b *Brain) chapters(v agent.View) []chapter {
	out := make([]chapter, len(v.Turns))
	at := map[int]int{}
	for i, t := range v.Turns {
		out[i] = chapter{turn: t, said: b.own(t), seen: map[int]agent.Observation{}}
		at[t.Turn] = i
	}
	for _, o := range v.Observations {
		if i, ok := at[o.Turn]; ok {
			out[i].seen[o.Index] = o
		}
	}
	for _, s := range v.Instructions {
		if i, ok := at[s.Turn]; ok {
			out[i].after = append(out[i].after, s)
		}
	}
	return out
}

// tell adds a turn as the model remembers it, but not what people wrote after it. Where its own parts cannot be
// returned it is told in words, without a call: models check calls for their
// signatures.
func (h *history) tell(c chapter, clip int) {
	if c.said == nil {
		h.record(c, clip)
	} else {
		h.out = append(h.out, c.said)
		calls := 0
		for _, p := range c.said.Parts {
			h.size += sizeOf(p)
			if p.FunctionCall != nil {
				h.user(&genai.Part{FunctionResponse: &genai.FunctionResponse{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Response: h.response(c, calls, clip)}})
				calls++
			}
		}
		if calls == 0 && c.turn.Problem == "" && len(c.after) == 0 {
			h.text("The people in the thread want you to go on.")
		}
	}
	h.heard(c.turn.Problem, nil, 0)
}

// heard adds what stands between two turns: what was wrong with the last answer,
// and what people wrote, each to at most clip bytes (0: all of it).
func (h *history) heard(problem string, after []agent.Instruction, clip int) {
	if problem != "" {
		h.text("Note: your answer could not be used (%s). %s", problem, advice[problem])
	}
	for _, i := range after {
		h.text("A person in the thread (%s) wrote, entry %s:\n%s", h.f.clean(i.By), i.ID, h.f.data(clipped(i.Text, clip)))
	}
}

// recall adds the closed cases that look like this one.
func (h *history) recall(cases []agent.Recalled) {
	if len(cases) == 0 {
		return
	}
	var b strings.Builder
	for _, c := range cases {
		fmt.Fprintf(&b, "%s, closed %s, %s with %s confidence; in common: %s\n  symptom: %s\n", short(c.SessionID, 60), c.ClosedAt.UTC().Format(time.DateOnly), short(c.Verdict, 20), short(c.Confidence, 10), short(c.Why, 300), short(c.Symptom, 300))
		for _, cause := range c.Causes[:min(len(c.Causes), 3)] {
			fmt.Fprintf(&b, "  cause: %s\n", short(cause, 400))
		}
		if len(c.Causes) == 0 && c.Summary != "" {
			fmt.Fprintf(&b, "  summary: %s\n", short(c.Summary, 400))
		}
		if c.Note != "" {
			fmt.Fprintf(&b, "  note: %s\n", short(c.Note, 200))
		}
	}
	h.text("Earlier cases that look like this one, as their reports told it then. They may say where to look first. They show nothing about today, and their ids are no evidence here:\n%s", h.f.data(strings.TrimRight(b.String(), "\n")))
}

// advice says how to do better.
var advice = map[string]string{
	agent.ProblemEmpty:     "It was empty. Make a call: the next probe, a decision about a hypothesis, or complete_investigation with confidence low.",
	agent.ProblemCut:       "It was too long and was cut; nothing of it was done. Answer briefly, with few calls.",
	agent.ProblemBlocked:   "A filter of the provider stopped it; nothing of it was done. Say it in other words and quote no output.",
	agent.ProblemMalformed: "The call did not parse; nothing of it was done. Call a declared tool with arguments that are one JSON object.",
	agent.ProblemNoCall:    "It called nothing, and words alone do nothing: nothing runs, no approval is pending, nobody was asked. Call a tool now. Only if you need an answer of the people, say once more what you need.",
}

// response is the answer to call number i of a turn.
func (h *history) response(c chapter, i, clip int) map[string]any {
	o, ok := c.seen[i]
	if !ok {
		if i >= agent.MaxMoves {
			return map[string]any{"status": "error", "error": agent.ErrorTooManyMoves, "detail": fmt.Sprintf("not done: one answer may make %d calls", agent.MaxMoves)}
		}
		return map[string]any{"status": "error", "error": "not_done", "detail": "nothing came of this call"}
	}
	var out map[string]any
	switch {
	case o.Shell != nil:
		out = h.shell(*o.Shell, clip)
	case fromOutside(o.Move):
		out = map[string]any{"audit_id": o.AuditID, "result": h.f.data(clipped(string(o.Data), clip))}
	default:
		if json.Unmarshal(o.Data, &out) != nil || out == nil {
			out = map[string]any{"status": "error"}
		}
		h.f.tree(out)
		out["audit_id"] = o.AuditID
	}
	if len(o.Meta) > 0 {
		out["_meta"] = h.meta(o.Meta)
	}
	return out
}

// fromOutside reports moves whose results hold text of the cloud.
func fromOutside(m agent.Move) bool {
	switch m.(type) {
	case agent.CaptureTraffic, agent.CheckTask, agent.CancelTask, agent.CleanupTask:
		return true
	}
	return false
}

func (h *history) meta(m map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		if s, ok := v.(string); ok && k == "denial_reason" {
			v = h.f.data(s)
		}
		out[k] = v
	}
	return out
}

// shell is a command's result under the names of the design.
func (h *history) shell(r safeexec.Result, clip int) map[string]any {
	out := map[string]any{
		"audit_id": r.AuditID, "status": r.Status, "classification": r.Classification.String(), "action": r.Action, "command": h.f.clean(r.Command),
		"environment": r.Environment, "duration_seconds": r.Duration, "exit_code": nil,
		"output": h.f.optional(clipped(r.Output, clip)), "stderr": h.f.optional(clipped(r.Stderr, clip)),
	}
	if r.ExitCode != nil {
		out["exit_code"] = *r.ExitCode
	}
	for k, v := range map[string]string{"error": r.Error, "signal": r.Signal, "detail": h.f.optional(r.Detail), "denial_reason": h.f.optional(r.DenialReason), "decided_by": r.DecidedBy} {
		if v != "" {
			out[k] = v
		}
	}
	if len(r.Metadata) > 0 {
		var m any
		if json.Unmarshal(r.Metadata, &m) == nil {
			out["output_metadata"] = h.f.tree(m)
		}
	}
	if len(r.Artefacts) > 0 {
		var names []string
		for _, a := range r.Artefacts {
			names = append(names, fmt.Sprintf("%s (%d bytes, sha256 %s)", a.Path, a.Size, a.SHA256))
		}
		out["artefacts"] = h.f.data(strings.Join(names, "\n"))
	}
	return out
}

// clipped keeps head and tail of a long text; n <= 0 keeps all of it.
func clipped(s string, n int) string {
	if n <= 0 || len(s) <= n {
		return s
	}
	return valid(s[:n*2/3]) + fmt.Sprintf("\n[%d bytes left out here to keep the conversation short; ask a narrower question]\n", len(s)-n) + valid(s[len(s)-n/3:])
}

// valid drops what cutting left of a character.
func valid(s string) string { return strings.ToValidUTF8(s, "") }

// record adds a turn in words.
func (h *history) record(c chapter, clip int) {
	var b strings.Builder
	for i, m := range c.turn.Moves {
		o, ok := c.seen[i]
		fmt.Fprintf(&b, "- %s\n", line(m, o, ok))
		if ok && o.Shell != nil {
			b.WriteString(clipped(o.Shell.Output, clip))
			if o.Shell.Stderr != "" {
				b.WriteString("\nstderr: " + clipped(o.Shell.Stderr, clip))
			}
			b.WriteByte('\n')
		}
	}
	if c.turn.Text != "" {
		b.WriteString("words: " + c.turn.Text + "\n")
	}
	if b.Len() > 0 {
		h.text("Record of turn %d%s:\n%s", c.turn.Turn, by(c.turn), h.f.data(strings.TrimRight(b.String(), "\n")))
	}
}

func by(t agent.PastTurn) string {
	if t.Brain != "" {
		return ", made by " + t.Brain
	}
	return ""
}
