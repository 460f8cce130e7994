package gemini

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"google.golang.org/genai"

	"ghostbot/agent"
	"ghostbot/safeexec"
)

// resumeRow is one line of area resume: records of a journal, and the conversation
// that a resumed process sends.
type resumeRow struct {
	ID      string
	Area    string
	Session string `json:"session_id"`
	Records []struct {
		Sequence                                        int
		Command, Reasoning, Status, Action, Environment string
		Output                                          string `json:"output_summary"`
		ExitCode                                        *int   `json:"exit_code"`
	} `json:"shell_records"`
	Reasons map[string]string `json:"denial_reasons"`
	History []struct {
		Role string
		Call *struct {
			Name string
			Args map[string]any
		}
		Response *struct {
			Name     string
			Response map[string]any
		}
	} `json:"expect_history"`
}

// TestResumeVectors: the conversation of a resumed case has each call as the model made
// it, and each answer under the names of the design. Where the model's own parts were
// not kept the turn is told in words, without a call: a deviation, because models check
// calls for their signatures.
func TestResumeVectors(t *testing.T) {
	f, err := os.Open("../../../shared/vectors/agent.jsonl")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	defer f.Close()
	rows := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		var r resumeRow
		var area struct{ Area string }
		if json.Unmarshal(s.Bytes(), &area) != nil || area.Area != "resume" {
			continue
		}
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows++
		t.Run(r.ID, func(t *testing.T) { r.check(t) })
	}
	if rows == 0 {
		t.Error("no rows")
	}
}

func (r resumeRow) check(t *testing.T) {
	b, _ := scripted(t, "-- 1 "+hello)
	v := view("s")
	v.Case.SessionID = r.Session
	for i, rec := range r.Records {
		id := r.Session + "_00" + string(rune('0'+rec.Sequence))
		m := agent.RunShell{Command: rec.Command, Reasoning: rec.Reasoning}
		own, err := json.Marshal(kept{Model: b.o.Model, Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{
			{ThoughtSignature: []byte("sig"), FunctionCall: &genai.FunctionCall{Name: agent.ToolShell, Args: map[string]any{"command": rec.Command, "reasoning": rec.Reasoning}}}}}})
		if err != nil {
			t.Fatal(err)
		}
		v.Turns = append(v.Turns, agent.PastTurn{Turn: i + 1, Moves: []agent.Move{m}, Model: own})
		v.Observations = append(v.Observations, agent.Observation{Turn: i + 1, Move: m, AuditID: id, Shell: &safeexec.Result{AuditID: id, Status: rec.Status, Action: rec.Action,
			Command: rec.Command, Environment: rec.Environment, Output: rec.Output, ExitCode: rec.ExitCode, DenialReason: r.Reasons[id]}})
	}
	contents, _ := b.contents(v, 1<<20, false)
	i := 1 // behind the opening
	for _, want := range r.History {
		if want.Call != nil {
			got := contents[i].Parts[0].FunctionCall
			if contents[i].Role != genai.RoleModel || got == nil || got.Name != want.Call.Name || got.Args["command"] != want.Call.Args["command"] || string(contents[i].Parts[0].ThoughtSignature) != "sig" {
				t.Errorf("content %d: %+v", i, contents[i].Parts[0])
			}
			continue
		}
		i++
		got := contents[i].Parts[0].FunctionResponse
		if contents[i].Role != genai.RoleUser || got == nil || got.Name != want.Response.Name {
			t.Fatalf("content %d: %+v", i, contents[i].Parts[0])
		}
		for k, x := range want.Response.Response {
			have := got.Response[k]
			if n, ok := have.(int); ok {
				have = float64(n)
			}
			if s, ok := have.(string); ok && k == "denial_reason" { // a person's words are fenced
				if text, _ := x.(string); strings.Contains(s, "\n"+text+"\n") {
					continue
				}
			}
			if have != x {
				t.Errorf("%s is %v, want %v", k, have, x)
			}
		}
		i++
	}
	v.Turns[0].Model = nil
	told, _ := b.contents(v, 1<<20, false)
	if text := flat(told); !strings.Contains(text, "Record of turn 1") || !strings.Contains(text, r.Records[0].Command) {
		t.Errorf("without its parts: %s", text)
	}
}
