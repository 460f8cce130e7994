package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"
)

// start runs a server with a script and returns a real client for it.
func start(t *testing.T, script string) (*Server, *genai.Client) {
	t.Helper()
	s, err := New(Options{Script: script})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c, err := genai.NewClient(t.Context(), &genai.ClientConfig{APIKey: "sim-key", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: s.URL}})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func user(parts ...*genai.Part) *genai.Content { return &genai.Content{Role: "user", Parts: parts} }

func tools() *genai.GenerateContentConfig {
	return &genai.GenerateContentConfig{
		SystemInstruction: &genai.Content{Parts: []*genai.Part{{Text: "You look for faults."}}},
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "look", Description: "looks", Parameters: &genai.Schema{
			Type: "OBJECT", Required: []string{"at"}, Properties: map[string]*genai.Schema{"at": {Type: "STRING"}, "n": {Type: "ARRAY", Items: &genai.Schema{Type: "STRING", Enum: []string{"a"}}}},
		}}}}},
	}
}

const twoSteps = `
ids on
-- 1 expect --
model gemini-3-flash
system look for faults
tool look
contents 1
last web is slow
!any audit
-- 1 answer --
text Looking.
call look {"at":"here"}
call look {"at":"there"}
usage 100 20 5 50
-- 2 expect --
contents 3
response look audit_id=x_002
any x_001
-- 2 answer --
text Done at ${match:web is (\w+)}, as ${audit:there} and ${audit:-2} and ${audit:1} show, not ${audit:9} ${match:nothing} ${match:(}.
finish STOP
`

// TestConversation plays two steps with the real client, which must return what
// it was given unchanged.
func TestConversation(t *testing.T) {
	s, c := start(t, twoSteps)
	history := []*genai.Content{user(&genai.Part{Text: "web is slow"})}
	r, err := c.Models.GenerateContent(t.Context(), "gemini-3-flash", history, tools())
	if err != nil {
		t.Fatal(err)
	}
	said := r.Candidates[0].Content
	if len(said.Parts) != 3 || said.Parts[1].FunctionCall.ID != "call-1-1" || len(said.Parts[1].ThoughtSignature) == 0 || len(said.Parts[2].ThoughtSignature) != 0 {
		t.Fatalf("first answer: %+v", said)
	}
	if u := r.UsageMetadata; u.PromptTokenCount != 100 || u.ThoughtsTokenCount != 5 || u.CachedContentTokenCount != 50 || u.TotalTokenCount != 125 {
		t.Errorf("usage %+v", u)
	}
	answer := user()
	for i, id := range []string{"x_001", "x_002"} {
		call := said.Parts[i+1].FunctionCall
		answer.Parts = append(answer.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: call.ID, Name: call.Name,
			Response: map[string]any{"audit_id": id, "command": call.Args["at"]}}})
	}
	answer.Parts = append(answer.Parts, &genai.Part{Text: "Go on."})
	r, err = c.Models.GenerateContent(t.Context(), "gemini-3-flash", append(history, said, answer), tools())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Text(), "Done at slow, as x_002 and x_001 and x_001 show, not ${audit:9} ${match:nothing} ${match:(}."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if p := s.Problems(); len(p) > 0 || s.Left() != 0 {
		t.Errorf("problems %q, %d steps left", p, s.Left())
	}
	if q := s.Requests(); len(q) != 2 || q[0].Header.Get("x-goog-api-key") != "" || q[0].Status != 200 || q[1].Step != 2 {
		t.Errorf("requests %+v", q)
	}
}

// TestRules sends what the API refuses.
func TestRules(t *testing.T) {
	call := func(name, id string) *genai.Part {
		return &genai.Part{FunctionCall: &genai.FunctionCall{Name: name, ID: id}}
	}
	resp := func(name, id string) *genai.Part {
		return &genai.Part{FunctionResponse: &genai.FunctionResponse{Name: name, ID: id, Response: map[string]any{"ok": true}}}
	}
	model := func(parts ...*genai.Part) *genai.Content { return &genai.Content{Role: "model", Parts: parts} }
	hello := user(&genai.Part{Text: "hello"})
	schemaOf := func(s *genai.Schema) func(*genai.GenerateContentConfig) {
		return func(c *genai.GenerateContentConfig) { c.Tools[0].FunctionDeclarations[0].Parameters = s }
	}
	for _, tc := range []struct {
		name     string
		model    string
		contents []*genai.Content
		change   func(*genai.GenerateContentConfig)
		want     string
	}{
		{"empty parts", "gemini-x", []*genai.Content{user()}, nil, "must not be empty"},
		{"no role", "gemini-x", []*genai.Content{{Role: "system", Parts: hello.Parts}}, nil, "valid role"},
		{"empty part", "gemini-x", []*genai.Content{user(&genai.Part{})}, nil, "one initialized field"},
		{"a call without an answer", "gemini-x", []*genai.Content{hello, model(call("look", ""))}, nil, "followed by a function response"},
		{"a call of the user", "gemini-x", []*genai.Content{user(call("look", ""))}, nil, "may not send"},
		{"a call after a model", "gemini-x", []*genai.Content{hello, model(&genai.Part{Text: "x"}), model(call("look", "")), user(resp("look", ""))}, nil, "comes immediately after a user turn"},
		{"one answer too few", "gemini-x", []*genai.Content{hello, model(call("look", ""), call("look", "")), user(resp("look", ""))}, nil, "equal to the number of function call parts"},
		{"no answer", "gemini-x", []*genai.Content{hello, model(call("look", "")), hello}, nil, "equal to the number of function call parts"},
		{"an answer to nothing", "gemini-x", []*genai.Content{hello, user(resp("look", ""))}, nil, "immediately after a function call turn"},
		{"answers in another order", "gemini-x", []*genai.Content{hello, model(call("look", "1"), call("look", "2")), user(resp("look", "2"), resp("look", "1"))}, nil, "the call was"},
		{"another name", "gemini-x", []*genai.Content{hello, model(call("look", "")), user(resp("see", ""))}, nil, "the call was"},
		{"no signature", "gemini-3-flash", []*genai.Content{hello, model(call("look", "")), user(resp("look", ""))}, nil, "missing a thought_signature"},
		{"a made-up signature", "gemini-x", []*genai.Content{hello, model(&genai.Part{Text: "x", ThoughtSignature: []byte("y")}), hello}, nil, "Corrupted thought signature"},
		{"a function without a name", "gemini-x", []*genai.Content{hello}, func(c *genai.GenerateContentConfig) { c.Tools[0].FunctionDeclarations[0].Name = "a b" }, "Invalid function name"},
		{"no description", "gemini-x", []*genai.Content{hello}, func(c *genai.GenerateContentConfig) { c.Tools[0].FunctionDeclarations[0].Description = "" }, "has none"},
		{"parameters that are no object", "gemini-x", []*genai.Content{hello}, schemaOf(&genai.Schema{Type: "STRING"}), "only OBJECT"},
		{"an unknown type", "gemini-x", []*genai.Content{hello}, schemaOf(&genai.Schema{Type: "OBJECT", Properties: map[string]*genai.Schema{"a": {Type: "string"}}}), "must be specified as one of"},
		{"an array of nothing", "gemini-x", []*genai.Content{hello}, schemaOf(&genai.Schema{Type: "OBJECT", Properties: map[string]*genai.Schema{"a": {Type: "ARRAY"}}}), "items: missing"},
		{"an object of nothing", "gemini-x", []*genai.Content{hello}, schemaOf(&genai.Schema{Type: "OBJECT"}), "non-empty for OBJECT"},
		{"a number of a list", "gemini-x", []*genai.Content{hello}, schemaOf(&genai.Schema{Type: "OBJECT", Properties: map[string]*genai.Schema{"a": {Type: "INTEGER", Enum: []string{"1"}}}}), "only allowed for STRING"},
		{"a required property that is not there", "gemini-x", []*genai.Content{hello}, schemaOf(&genai.Schema{Type: "OBJECT", Required: []string{"b"}, Properties: map[string]*genai.Schema{"a": {Type: "STRING"}}}), "is not defined"},
	} {
		s, c := start(t, "-- 1 answer --\ntext hi\n")
		cfg := tools()
		if tc.change != nil {
			tc.change(cfg)
		}
		_, err := c.Models.GenerateContent(t.Context(), tc.model, tc.contents, cfg)
		var e genai.APIError
		if !errors.As(err, &e) || e.Code != 400 || e.Status != "INVALID_ARGUMENT" || !strings.Contains(e.Message, tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
		if len(s.Problems()) != 1 || s.Left() != 1 {
			t.Errorf("%s: problems %q, left %d", tc.name, s.Problems(), s.Left())
		}
	}
}

// TestOutsideOfTheScript covers keys, models, methods and paths.
func TestOutsideOfTheScript(t *testing.T) {
	s, c := start(t, "key good\nmodel gemini-a\n-- 1 answer --\ntext hi\n")
	ask := func(method, path, key, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("x-goog-api-key", key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	for _, tc := range []struct {
		method, path, key, body string
		code                    int
		want                    string
	}{
		{"POST", "/v1beta/models/gemini-a:generateContent", "", "{}", 403, "unregistered callers"},
		{"POST", "/v1beta/models/gemini-a:generateContent", "bad", "{}", 400, "API_KEY_INVALID"},
		{"POST", "/v1beta/models/gemini-b:generateContent", "good", "{}", 404, "is not found for API version v1beta"},
		{"POST", "/v1beta/models/gemini-a:generateContent", "good", `{"content":[]}`, 400, "Invalid JSON payload"},
		{"POST", "/v1beta/models/gemini-a:generateContent", "good", `{}`, 400, "contents is not specified"},
		{"POST", "/v1beta/models/gemini-a:countTokens", "good", `{"contents":[{"parts":[{"text":"hi"}]}]}`, 200, `"totalTokens": 10`},
		{"GET", "/v1beta/models/gemini-a", "good", "", 200, "inputTokenLimit"},
		{"GET", "/v1beta/models/gemini-a:generateContent", "good", "", 404, "Not found"},
		{"POST", "/v1/else", "good", "", 404, "Not found"},
		{"POST", "/v1beta/models/gemini-a:generateContent?key=good", "", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, 200, "STOP"},
		{"POST", "/v1beta/models/gemini-a:generateContent", "good", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, 500, "the script is over"},
	} {
		if code, body := ask(tc.method, tc.path, tc.key, tc.body); code != tc.code || !strings.Contains(body, tc.want) {
			t.Errorf("%s %s: %d %s, want %d %q", tc.method, tc.path, code, body, tc.code, tc.want)
		}
	}
	if _, err := c.Models.CountTokens(t.Context(), "gemini-a", []*genai.Content{user(&genai.Part{Text: "hi"})}, nil); err == nil {
		t.Error("a wrong key counts tokens")
	}
}

// TestFaults plays each fault against the real client.
func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		fault string
		code  int
		want  string
	}{
		{"status 429\nretry 1500ms\nmessage Slow down.", 429, "1.5s"},
		{"status 429\nquota-day", 429, "PerDay"},
		{"status 503\nretry-after 7", 503, "UNAVAILABLE"},
		{"html\nstatus 502", 502, "Sign in"},
		{"html\nstatus 200", 0, "unmarshalling"},
		{"reset", 0, "EOF"},
		{"cut\nstatus 200", 0, "EOF"},
	} {
		s, c := start(t, "-- 1 fault --\n"+tc.fault+"\n-- 2 answer --\ntext hi\n")
		_, err := c.Models.GenerateContent(t.Context(), "gemini-x", []*genai.Content{user(&genai.Part{Text: "hi"})}, nil)
		var e genai.APIError
		if errors.As(err, &e); e.Code != tc.code || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %d %v, want %d %q", tc.fault, e.Code, err, tc.code, tc.want)
		}
		if len(s.Problems()) != 0 || s.Left() != 1 {
			t.Errorf("%q: problems %q, left %d", tc.fault, s.Problems(), s.Left())
		}
	}
	_, c := start(t, "-- 1 fault --\nhang\n")
	ctx, done := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer done()
	if _, err := c.Models.GenerateContent(ctx, "gemini-x", []*genai.Content{user(&genai.Part{Text: "hi"})}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hang: %v", err)
	}
	s, c := start(t, "-- 1 fault --\ntimes 2\n-- 2 answer --\ntext hi\n")
	for i := range 3 {
		_, err := c.Models.GenerateContent(t.Context(), "gemini-x", []*genai.Content{user(&genai.Part{Text: "hi"})}, nil)
		if (err == nil) != (i == 2) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if s.Left() != 0 {
		t.Errorf("left %d", s.Left())
	}
}

// TestAnswers covers what a model may say that is no plain answer.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		answer string
		want   string // part of the response as JSON
	}{
		{"none", `"usageMetadata"`},
		{"block SAFETY", `"promptFeedback":{"blockReason":"SAFETY"}`},
		{"finish MAX_TOKENS", `"finishReason":"MAX_TOKENS"`},
		{"finish MALFORMED_FUNCTION_CALL", `"content":{"role":"model"}`},
		{"version gemini-x-001\nthought hm\ntext a\nnosig", `"modelVersion":"gemini-x-001"`},
		{`{"candidates":[{"content":{"role":"model","parts":[{"text":"raw"}]}}]}`, `"text":"raw"`},
	} {
		s, c := start(t, "-- 1 answer --\n"+tc.answer+"\n")
		r, err := c.Models.GenerateContent(t.Context(), "gemini-x", []*genai.Content{user(&genai.Part{Text: "hi"})}, nil)
		if err != nil {
			t.Errorf("%q: %v", tc.answer, err)
			continue
		}
		if b, _ := json.Marshal(r); !strings.Contains(string(b), tc.want) {
			t.Errorf("%q: %s, want %s", tc.answer, b, tc.want)
		}
		if p := s.Problems(); len(p) > 0 {
			t.Errorf("%q: %q", tc.answer, p)
		}
	}
}

// TestUnmet checks that each expectation can fail.
func TestUnmet(t *testing.T) {
	s, c := start(t, "-- 1 expect --\nmodel gemini-y\nsystem none\ntool none\ncontents 7\nlast none\n!last hi\nany none\n!any hi\nresponse look a.b=c\n-- 1 answer --\ntext ok\n")
	if _, err := c.Models.GenerateContent(t.Context(), "gemini-x", []*genai.Content{user(&genai.Part{Text: "hi"})}, nil); err != nil {
		t.Fatal(err)
	}
	if p := s.Problems(); len(p) != 9 || !strings.HasPrefix(p[0], "request 1: step 1: expected model gemini-y") {
		t.Errorf("%d problems: %q", len(p), p)
	}
}

// TestChoose plays steps out of order, and again.
func TestChoose(t *testing.T) {
	s, c := start(t, "choose expectation\n-- 1 expect --\nlast one\n-- 1 answer --\ntext first\n-- 2 expect --\nlast two\n-- 2 answer --\ntext second\n")
	for _, tc := range [][2]string{{"two", "second"}, {"one", "first"}, {"two", "second"}} {
		r, err := c.Models.GenerateContent(t.Context(), "gemini-x", []*genai.Content{user(&genai.Part{Text: tc[0]})}, nil)
		if err != nil || r.Text() != tc[1] {
			t.Errorf("%s: %v, %v", tc[0], r, err)
		}
	}
	if _, err := c.Models.GenerateContent(t.Context(), "gemini-x", []*genai.Content{user(&genai.Part{Text: "three"})}, nil); err == nil || len(s.Problems()) != 1 || s.Left() != 0 {
		t.Errorf("%v, %q, %d", err, s.Problems(), s.Left())
	}
}

func TestAccepted(t *testing.T) {
	for script, want := range map[string][2]string{
		"-- 1 answer --\nnone\n":                            {"any-key", "gemini-scripted"},
		"key k\nmodel m1\nmodel m2\n-- 1 answer --\nnone\n": {"k", "m1"},
	} {
		s, err := New(Options{Script: script})
		if err != nil {
			t.Fatal(err)
		}
		if key, model := s.Accepted(); key != want[0] || model != want[1] || !s.script.exists(model) {
			t.Errorf("%q: %s, %s", script, key, model)
		}
	}
}

func TestScriptsThatDoNotRead(t *testing.T) {
	for _, script := range []string{
		"weather fine\n", "-- --", "-- x --\n", "-- 0 answer --\ntext a\n", "-- 1 verdict --\n", "-- 1 expect --\nlast a\n", "-- 2 answer --\ntext a\n",
		"-- 1 expect --\nrain soon\n", "-- 1 fault --\nrain\n", "-- 1 fault --\nstatus x\n", "-- 1 fault --\nretry x\n", "-- 1 answer --\n{\"a\"\n",
	} {
		if _, err := New(Options{Script: script}); err == nil {
			t.Errorf("%q reads", script)
		}
	}
	for _, answer := range []string{"sing", "call look {", "usage x"} {
		s, c := start(t, "-- 1 answer --\n"+answer+"\n")
		if _, err := c.Models.GenerateContent(t.Context(), "gemini-x", []*genai.Content{user(&genai.Part{Text: "hi"})}, nil); err == nil || len(s.Problems()) != 1 {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

// FuzzScript checks that no script stops the parser, and that one that reads has
// an answer in every step.
func FuzzScript(f *testing.F) {
	f.Add(twoSteps)
	f.Add("-- 1 fault --\nhtml\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseScript([]byte(text))
		if err != nil {
			return
		}
		for i, st := range s.steps {
			if st.fault == nil && st.answer.raw == nil && st.answer.lines == nil {
				t.Errorf("step %d has no answer", i+1)
			}
		}
	})
}
