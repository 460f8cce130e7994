package gemini

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genai"
)

// TestRecorder records a conversation with a scripted model, and plays the record:
// the client must get the same answers, signatures included.
func TestRecorder(t *testing.T) {
	key := "sim-" + strings.Repeat("k", 20)
	talk := func(url string, rt http.RoundTripper) []string {
		c, err := genai.NewClient(t.Context(), &genai.ClientConfig{APIKey: key, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}, HTTPClient: &http.Client{Transport: rt}})
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		history := []*genai.Content{user(&genai.Part{Text: "web is slow"})}
		for range 3 {
			r, err := c.Models.GenerateContent(t.Context(), "gemini-3-flash", history, tools())
			var e genai.APIError
			if errors.As(err, &e) {
				said = append(said, e.Message)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			content := r.Candidates[0].Content
			said = append(said, content.Parts[0].Text+string(content.Parts[0].ThoughtSignature))
			history = append(history, content, user())
			for _, p := range content.Parts {
				if f := p.FunctionCall; f != nil {
					said = append(said, f.Name+string(p.ThoughtSignature))
					last := history[len(history)-1]
					last.Parts = append(last.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: f.ID, Name: f.Name, Response: map[string]any{"status": "ok", "audit_id": "x_001"}}})
				}
			}
		}
		return said
	}
	first, _ := start(t, "ids on\n-- 1 answer --\ntext Looking with "+key+".\ncall look {\"at\":\"here\"}\n-- 2 fault --\nstatus 429\nmessage Slow down, "+key+".\n-- 3 expect --\nresponse look audit_id=x_001\n-- 3 answer --\ntext Done.\n")
	rec := &Recorder{Next: http.DefaultTransport, Keys: []string{key, ""}}
	want := talk(first.URL, rec)
	script := rec.Script()
	if bytes.Contains(script, []byte(key)) {
		t.Fatalf("the key is in the record:\n%s", script)
	}
	for _, part := range []string{"model gemini-3-flash\n", "tool look\n", "contents 3\n", "response look audit_id=x_001\n", "status 429\nmessage Slow down, [key].\n"} {
		if !strings.Contains(string(script), part) {
			t.Errorf("the record lacks %q", part)
		}
	}
	second, _ := start(t, string(script))
	got := talk(second.URL, http.DefaultTransport)
	if strings.ReplaceAll(strings.Join(want, "|"), key, "[key]") != strings.Join(got, "|") {
		t.Errorf("played %q, want %q", got, want)
	}
	if p := second.Problems(); len(p) > 0 || second.Left() > 0 {
		t.Errorf("problems %q, left %d", p, second.Left())
	}
}
