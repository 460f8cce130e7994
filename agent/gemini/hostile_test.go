package gemini

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ghostbot/agent"
	sim "ghostbot/internal/sim/gemini"
)

// shapes are responses that no API sends.
var shapes = []string{
	`{}`, `{"candidates":"x"}`, `{"candidates":["x"]}`, `{"candidates":[null]}`, `{"candidates":[{"content":"x"}]}`, `{"candidates":[{"content":{"parts":"x"}}]}`,
	`{"candidates":[{"content":{"parts":[null]}}]}`, `{"candidates":[{"content":{"parts":["x"]}}]}`, `{"candidates":[{"content":{"parts":[{}]}}]}`,
	`{"candidates":[{"content":{"parts":[{"functionCall":"x"}]}}]}`, `{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}`,
	`{"candidates":[{"content":{"parts":[{"functionCall":{"name":5}}]}}]}`, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"run_shell_cmd","args":"x"}}]}}]}`,
	`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"run_shell_cmd","args":{"command":{"a":1},"reasoning":[]}}}]}}]}`,
	`{"candidates":[{"content":{"parts":[{"text":5}]}}]}`, `{"candidates":[{"content":{"parts":[{"thoughtSignature":"%%%"}]}}]}`, `{"candidates":[{"finishReason":5}]}`,
	`{"candidates":[{"content":{"role":"user","parts":[{"functionResponse":{"name":"x","response":{}}}]}}]}`,
	`{"candidates":[{"content":{"parts":[{"executableCode":{"code":"rm","language":"BASH"}}]}}]}`,
	`{"candidates":[{"content":{"parts":[{"inlineData":{"data":"AAAA","mimeType":"image/png"}},{"text":"a"}]}}]}`,
	`{"usageMetadata":"x"}`, `{"usageMetadata":{"promptTokenCount":"x"}}`, `{"usageMetadata":{"promptTokenCount":-5,"candidatesTokenCount":1e300}}`, `{"promptFeedback":5}`, `{"modelVersion":{}}`,
	`{"error":{"code":429}}`, `{"sdkHttpResponse":5}`, `[]`, `null`, `"x"`, `{"candidates":[{"content":{"parts":[` + strings.Repeat(`{"text":"a"},`, 5000) + `{"text":"b"}]}}]}`,
	strings.Repeat(`{"candidates":[`, 5000),
}

// answered asks a model that answers body, and checks what must hold whatever it
// is: no crash, an error of one line or a turn, and a next request that the API
// takes.
func answered(t *testing.T, body string) {
	t.Helper()
	b, err := New(Options{Key: "sim-key", Model: "gemini-3-flash", Transport: respond(200, "application/json", body), Patience: 1})
	if err != nil {
		t.Fatal(err)
	}
	v := view("web is slow")
	turn, err := b.Next(t.Context(), v)
	var e *Error
	if err != nil {
		if !errors.As(err, &e) || strings.Contains(e.Error(), "\n") || len(e.Error()) > 500 {
			t.Errorf("%.200s: %v", body, err)
		}
		return
	}
	if turn.Problem != "" && len(turn.Moves) > 0 || turn.Usage == nil || turn.Usage.Tokens() < 0 || turn.Usage.CostUUSD < 0 {
		t.Errorf("%.200s: %+v, usage %+v", body, turn, turn.Usage)
	}
	past := agent.PastTurn{Turn: 1, Text: turn.Text, Moves: turn.Moves, Problem: turn.Problem, Model: turn.Model, Usage: turn.Usage}
	if raw, err := json.Marshal(past); err != nil {
		t.Errorf("%.200s: %v", body, err)
	} else if len(turn.Model) > 0 && !json.Valid(raw) {
		t.Errorf("%.200s: the entry is no JSON", body)
	}
	v.Turns = []agent.PastTurn{past}
	for i, m := range turn.Moves[:min(len(turn.Moves), agent.MaxMoves)] {
		v.Observations = append(v.Observations, agent.Observation{Turn: 1, Index: i, Move: m, AuditID: "a", Data: json.RawMessage(`{"status":"ok"}`)})
	}
	s, err := sim.New(sim.Options{Script: "signatures any\n-- 1 " + hello})
	if err != nil {
		t.Fatal(err)
	}
	b.o.Model = "gemini-2.5-flash" // signatures are not the question here
	var k kept
	if json.Unmarshal(turn.Model, &k) == nil {
		k.Model = b.o.Model
		v.Turns[0].Model, _ = json.Marshal(k)
	}
	if b, err = New(Options{Key: "sim-key", Model: b.o.Model, Transport: direct{s}, Patience: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Next(t.Context(), v); err != nil {
		t.Errorf("%.200s: the next request: %v, %q", body, err, s.Problems())
	}
}

func TestHostileAnswers(t *testing.T) {
	for _, body := range shapes {
		answered(t, body)
	}
}

// FuzzAnswer looks for responses that crash the client or make the next request
// one that the API refuses.
func FuzzAnswer(f *testing.F) {
	for _, body := range shapes {
		if len(body) < 1000 {
			f.Add(body)
		}
	}
	f.Fuzz(answered)
}
