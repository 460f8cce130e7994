package gemini_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/agent/gemini"
	"ghostbot/safeexec"

	"github.com/google/go-cmp/cmp"
)

// tools skips where a tool is not installed; where CI runs, everything is.
func tools(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
}

// dead is a loopback address where nothing listens.
func dead(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// gateway is a service whose upstream refuses.
func gateway(t *testing.T, upstream string, change ...func(http.ResponseWriter)) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, f := range change {
			f(w)
		}
		w.WriteHeader(http.StatusBadGateway)
		io.WriteString(w, `{"error":"bad gateway","upstream":"`+upstream+`","detail":"connect: connection refused"}`)
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

const refusedUpstream = `
model gemini-3-flash
key sim-key
-- 1 expect --
system You propose.
tool run_shell_cmd
tool capture_traffic
tool check_task
tool cancel_task
tool cleanup_task
tool complete_investigation
tool manage_hypotheses
contents 1
last checkout gets 502
last No hypothesis is registered yet
-- 1 answer --
text H1: the upstream of the gateway refuses. H2: the gateway itself fails.
call manage_hypotheses {"add":[{"id":"H1","description":"The upstream of FRONT refuses connections."},{"id":"H2","description":"FRONT fails by itself."}]}
call run_shell_cmd {"command":"curl -sv --max-time 5 http://FRONT/","reasoning":"Shows what the gateway answers and what it blames; separates H1 from H2.","hypothesis_id":"H1","target":"FRONT"}
usage 2100 90 30 0
-- 2 expect --
contents 3
response manage_hypotheses status=ok
response run_shell_cmd exit_code=0
last BACK
last Active: H1, H2.
-- 2 answer --
text The gateway blames BACK. Does anything listen there?
call run_shell_cmd {"command":"nc -zv -w 3 HOST PORT","reasoning":"Refutes H1 if the upstream accepts.","hypothesis_id":"H1","target":"BACK"}
call run_shell_cmd {"command":"ss -ltn sport = :PORT","reasoning":"Shows whether the upstream listens.","hypothesis_id":"H1"}
call run_shell_cmd {"command":"tcpdump -c 5 -i lo port PORT","reasoning":"Shows the refusal on the wire.","hypothesis_id":"H1"}
usage 3300 120 0 1800
-- 3 expect --
contents 5
response run_shell_cmd status=denied
last not on my watch
last denial_count
last H1 DENIED_ONCE
any H1: the upstream of the gateway refuses.
-- 3 answer --
text ${audit:nc -zv} shows that BACK refuses, and ${audit:curl} that the gateway blames it.
call manage_hypotheses {"update":[{"id":"H1","state":"CONFIRMED","evidence":["${audit:curl}","${audit:nc -zv}","${audit:ss -ltn}"],"why":"Nothing listens on BACK."},{"id":"H2","state":"REFUTED","evidence":["${audit:curl}"],"why":"The gateway answers and names its upstream."}]}
call complete_investigation {"confidence":"high","root_cause_summary":"Nothing listens on BACK, so FRONT answers 502.","verdict":"root_cause","causes":[{"statement":"Nothing listens on BACK: connections are refused, so FRONT answers 502.","evidence":["${audit:curl}","${audit:nc -zv}"]}],"confirmed_hypotheses":["H1"],"refuted_hypotheses":["H2"],"recommended_actions":["Start the service that listens on BACK; check with nc -zv."],"gaps":["The wire was not seen: the capture was denied."]}
`

// TestRefusedUpstream plays the first incident of the demo through the real loop
// and the real gate.
func TestRefusedUpstream(t *testing.T) {
	tools(t, "curl", "nc", "ss")
	back := dead(t)
	front := gateway(t, back)
	host, port, _ := net.SplitHostPort(back)
	r := strings.NewReplacer("FRONT", front, "BACK", back, "HOST", host, "PORT", port)
	w := play(t, r.Replace("checkout gets 502 from FRONT"), r.Replace(refusedUpstream))
	end := w.finish()
	if end.EndedBy != "brain" || end.Confidence != "high" || len(end.Causes) != 1 || !strings.Contains(end.Causes[0].Statement, back) {
		t.Errorf("conclusion %+v", end)
	}
	f := w.fold()
	for _, id := range end.Causes[0].Evidence {
		if !f.Shows(id) {
			t.Errorf("%s shows nothing", id)
		}
	}
	states := map[string]agent.State{}
	for _, h := range f.Case().Hypotheses {
		states[h.ID] = h.State
	}
	if diff := cmp.Diff(map[string]agent.State{"H1": agent.Confirmed, "H2": agent.Refuted}, states); diff != "" {
		t.Error(diff)
	}
	for _, s := range w.begun() {
		if !strings.HasPrefix(s, "SAFE ") {
			t.Errorf("started: %s", s)
		}
	}
	if len(w.cards) != 1 || !strings.Contains(w.cards[0], "tcpdump") {
		t.Errorf("cards %q", w.cards)
	}
	u := f.Case().Usage
	if u.Calls != 3 || u.Cached != 1800 || u.CostUUSD <= 0 || u.Model != "gemini-3-flash" {
		t.Errorf("usage %+v", u)
	}
}

// TestOwnPartsComeBack checks, beyond what the server does on every request, that
// the journal holds the parts and that a process that knows only the journals
// sends the same conversation.
func TestOwnPartsComeBack(t *testing.T) {
	script := `
ids on
-- 1 answer --
thought I had better look around.
text Looking.
call manage_hypotheses {"add":[{"id":"H1","description":"the listener is gone"}]}
call run_shell_cmd {"command":"ss -ltn","reasoning":"r","hypothesis_id":"H1"}
-- 2 answer --
text Just words.
-- 3 expect --
any Just words.
last words alone do nothing
-- 3 answer --
text What is the port?
-- 4 expect --
last port 443 of the front
-- 4 answer --
call run_shell_cmd {"command":"ss -ltn sport = :443","reasoning":"r"}
-- 5 answer --
call complete_investigation {"confidence":"low","root_cause_summary":"Not found.","unverifiable_hypotheses":["H1"]}
`
	w := play(t, "web is slow", script)
	w.gate = canned{w, func(c string) safeexec.Result { return ran(0, "LISTEN 0 128 *:443 of "+c) }}
	w.answer = func(agent.Question) agent.Answer {
		w.inbox = append(w.inbox, agent.Instruction{By: "U1", Text: "port 443 of the front", At: opened})
		return agent.Answer{Key: "instruction", By: "U1", Text: "port 443 of the front"}
	}
	w.finish()
	want := w.srv.Requests()
	if len(w.asked) != 1 || w.asked[0] != agent.AskContinue {
		t.Errorf("people were asked %q", w.asked)
	}
	turn := 0
	for i, e := range w.entries {
		if e.Kind != agent.KindTurn {
			continue
		}
		srv := serveScript(t, "signatures any\n-- 1 answer --\nnone\n-- 2 expect --\nlast This case was resumed\n-- 2 answer --\nnone\n")
		f := agent.FoldAll(sid, wire(t, w.entries[:i]))
		if _, err := ask(t, srv.URL).Next(t.Context(), f.View(time.Now())); err != nil {
			t.Fatal(err)
		}
		got := srv.Requests()
		if string(got[0].Body) != string(want[turn].Body) {
			t.Errorf("turn %d: another process sends something else:\n%s", turn+1, cmp.Diff(string(want[turn].Body), string(got[0].Body)))
		}
		f.Apply(agent.Entry{N: uint64(i + 1), Journal: "case", Kind: agent.KindTakeover, Body: json.RawMessage("{}")})
		if _, err := ask(t, srv.URL).Next(t.Context(), f.View(time.Now())); err != nil {
			t.Fatal(err)
		}
		for _, p := range srv.Problems() {
			t.Error(p)
		}
		turn++
	}
	if turn != len(want) {
		t.Errorf("%d turns, %d requests", turn, len(want))
	}
}

// wire sends entries through JSON, as a journal does.
func wire(t *testing.T, entries []agent.Entry) []agent.Entry {
	t.Helper()
	raw, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	var out []agent.Entry
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRedactedPartsAreTold checks that parts with a credential in them are not
// kept, and that the turn is then told in words without a call.
func TestRedactedPartsAreTold(t *testing.T) {
	secret := "ghp" + "_" + strings.Repeat("aB3dE5fG7h", 4)[:36]
	w := play(t, "web is slow", strings.ReplaceAll(`
-- 1 answer --
text The token is SECRET.
call run_shell_cmd {"command":"ss -ltn","reasoning":"r"}
-- 2 expect --
contents 1
!any SECRET
last Record of turn 1
last run_shell_cmd
last LISTEN
-- 2 answer --
call complete_investigation {"confidence":"low","root_cause_summary":"Nothing."}
`, "SECRET", secret))
	w.gate = canned{w, func(string) safeexec.Result { return ran(0, "LISTEN") }}
	w.finish()
	for _, e := range w.entries {
		if strings.Contains(string(e.Body), secret) {
			t.Errorf("entry %d holds the secret", e.N)
		}
	}
}

// TestAnotherModel checks that parts of one model are not sent to another one.
func TestAnotherModel(t *testing.T) {
	w := play(t, "web is slow", `
-- 1 answer --
call run_shell_cmd {"command":"ss -ltn","reasoning":"r"}
-- 2 fault --
html
status 407
`)
	w.gate = canned{w, func(string) safeexec.Result { return ran(0, "LISTEN") }}
	w.finish()
	w.entries = w.entries[:len(w.entries)-1] // the end by the brain's error
	w.srv = serveScript(t, "-- 1 expect --\ncontents 1\nmodel gemini-4-flash\nlast Record of turn 1\n-- 1 answer --\ncall complete_investigation {\"confidence\":\"low\",\"root_cause_summary\":\"Nothing.\"}\n")
	w.brain = ask(t, w.srv.URL, func(o *gemini.Options) { o.Model = "gemini-4-flash" })
	if end := w.finish(); end.EndedBy != "brain" {
		t.Errorf("%+v", end)
	}
}

// TestSignatureTrouble checks that a conversation that is refused for its
// signatures is sent once more in words.
func TestSignatureTrouble(t *testing.T) {
	w := play(t, "web is slow", `
-- 1 answer --
call run_shell_cmd {"command":"ss -ltn","reasoning":"r"}
-- 2 fault --
status 400
message Corrupted thought signature.
-- 3 expect --
contents 1
last Record of turn 1
-- 3 answer --
call complete_investigation {"confidence":"low","root_cause_summary":"Nothing."}
`)
	w.gate = canned{w, func(string) safeexec.Result { return ran(0, "LISTEN") }}
	if end := w.finish(); end.EndedBy != "brain" {
		t.Errorf("%+v", end)
	}
}

// TestBadAnswers holds each kind of answer against what becomes of it.
func TestBadAnswers(t *testing.T) {
	done := "\n-- %d answer --\ncall complete_investigation {\"confidence\":\"low\",\"root_cause_summary\":\"Nothing.\",\"unverifiable_hypotheses\":[\"H1\"]}\n"
	for _, tc := range []struct {
		name, answer string
		told         string // the next request's newest content has this
		problem      string // of the journaled turn
	}{
		{"no candidate", "none", "could not be used (empty)", agent.ProblemEmpty},
		{"no parts", "finish STOP", "could not be used (empty)", agent.ProblemEmpty},
		{"only thoughts", "thought hm", "could not be used (empty)", agent.ProblemEmpty},
		{"other", "finish OTHER", "could not be used (empty)", agent.ProblemEmpty},
		{"cut", "text I will now\nfinish MAX_TOKENS", "could not be used (max_tokens)", agent.ProblemCut},
		{"cut behind a call", "call run_shell_cmd {\"command\":\"ss -ltn\",\"reasoning\":\"r\"}\nfinish MAX_TOKENS", "nothing of it was done", agent.ProblemCut},
		{"safety", "finish SAFETY", "could not be used (blocked)", agent.ProblemBlocked},
		{"recitation", "text abc\nfinish RECITATION", "could not be used (blocked)", agent.ProblemBlocked},
		{"prompt blocked", "block PROHIBITED_CONTENT", "could not be used (blocked)", agent.ProblemBlocked},
		{"malformed call", "finish MALFORMED_FUNCTION_CALL", "could not be used (malformed)", agent.ProblemMalformed},
		{"unexpected call", "finish UNEXPECTED_TOOL_CALL", "could not be used (malformed)", agent.ProblemMalformed},
		{"says that an approval is pending", "text I requested approval for reboot; approval is pending. Approved by U9.", "no approval is pending", agent.ProblemNoCall},
		{"unknown tool", `call page_channel {"text":"help"}`, "unknown_tool", ""},
		{"no arguments", `call run_shell_cmd`, "command is missing", ""},
		{"missing argument", `call run_shell_cmd {"command":"ss -ltn"}`, "reasoning is missing", ""},
		{"empty argument", `call run_shell_cmd {"command":"","reasoning":"r"}`, "command is missing", ""},
		{"wrong type", `call run_shell_cmd {"command":["ss"],"reasoning":"r"}`, "invalid_arguments", ""},
		{"undeclared argument", `call run_shell_cmd {"command":"ss","reasoning":"r","approved_by":"U9"}`, "invalid_arguments", ""},
		{"an argument of the loop's own brain", `call run_shell_cmd {"command":"ss","reasoning":"r","patience_seconds":1}`, "patience_seconds", ""},
		{"a fraction of a second", `call capture_traffic {"target":"vm1","resource_group":"rg","storage_account":"sa","duration_seconds":1.5}`, "invalid_arguments", ""},
		{"invented task", `call check_task {"task_id":"ghost_vm_1"}`, "captures are not configured", ""},
		{"invented hypothesis", `call manage_hypotheses {"update":[{"id":"H7","state":"CONFIRMED","evidence":["x"]}]}`, "unknown_hypothesis", ""},
		{"invented evidence", `call manage_hypotheses {"update":[{"id":"H1","state":"CONFIRMED","evidence":["` + sid + `_099"]}]}`, "unknown_evidence", ""},
		{"no evidence", `call manage_hypotheses {"update":[{"id":"H1","state":"CONFIRMED"}]}`, "no_evidence", ""},
		{"ends while a hypothesis is active", `call complete_investigation {"confidence":"high","root_cause_summary":"It is DNS.","confirmed_hypotheses":["H1"]}`, "hypotheses_open", ""},
		{"ends without a summary", `call complete_investigation {"confidence":"high"}`, "root_cause_summary is missing", ""},
		{"ends with a confidence of its own", `call complete_investigation {"confidence":"absolute","root_cause_summary":"x"}`, "is not high, medium or low", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := play(t, "web is slow", "-- 1 answer --\ncall manage_hypotheses {\"add\":[{\"id\":\"H1\",\"description\":\"the listener is gone\"}]}\n-- 2 answer --\n"+tc.answer+
				"\n-- 3 expect --\nlast "+tc.told+"\n"+fmt.Sprintf(done, 3))
			w.gate = canned{w, func(c string) safeexec.Result { t.Errorf("%s was run", c); return ran(0, "") }}
			if end := w.finish(); end.EndedBy != "brain" {
				t.Errorf("%+v", end)
			}
			turns := w.fold().Turns()
			if len(turns) != 3 || turns[1].Problem != tc.problem || turns[1].Usage == nil || tc.problem != "" && len(turns[1].Moves) > 0 {
				t.Errorf("turns %+v", turns)
			}
			if len(w.asked) > 0 || len(w.cards) > 0 {
				t.Errorf("people were asked %q, %q", w.asked, w.cards)
			}
		})
	}
}

// TestBadAnswersEnd checks the limit: two bridges, then the end.
func TestBadAnswersEnd(t *testing.T) {
	for _, tc := range []struct{ name, answers, by, says string }{
		{"empty", "-- 1 answer --\nnone\n-- 2 answer --\nnone\n-- 3 answer --\nnone\n", "brain_error", "answered 3 times with nothing"},
		{"blocked", "-- 1 answer --\nblock SAFETY\n-- 2 answer --\nblock SAFETY\n-- 3 answer --\nblock SAFETY\n", "brain_error", "the last time: blocked"},
		{"words, words", "-- 1 answer --\ntext Approval is pending.\n-- 2 answer --\ntext Still pending.\n", "brain", "rested"},
		{"the same call", "-- 1 answer --\ncall run_shell_cmd {\"command\":\"ss -ltn\",\"reasoning\":\"r\"}\n-- 2 answer --\ncall run_shell_cmd {\"command\":\"ss  -ltn\",\"reasoning\":\"again\"}\n" +
			"-- 3 answer --\ncall run_shell_cmd {\"command\":\"ss -ltn\",\"reasoning\":\"and again\"}\n-- 4 expect --\nlast repeated_call\n-- 4 answer --\ncall complete_investigation {\"confidence\":\"low\",\"root_cause_summary\":\"x\"}\n", "brain", "x"},
		{"ends twice with open hypotheses", "-- 1 answer --\ncall manage_hypotheses {\"add\":[{\"id\":\"H1\",\"description\":\"d\"}]}\ncall complete_investigation {\"confidence\":\"high\",\"root_cause_summary\":\"x\"}\n" +
			"-- 2 expect --\nlast hypotheses_open\n-- 2 answer --\ncall complete_investigation {\"confidence\":\"high\",\"root_cause_summary\":\"x\"}\n", "brain", "x"},
	} {
		w := play(t, "web is slow", tc.answers)
		runs := 0
		w.gate = canned{w, func(string) safeexec.Result { runs++; return ran(0, "LISTEN") }}
		if end := w.finish(); end.EndedBy != tc.by || !strings.Contains(end.Summary, tc.says) || runs > 2 {
			t.Errorf("%s: %+v, %d runs", tc.name, end, runs)
		}
	}
}

// TestManyCalls makes more calls in one answer than a turn may have; each gets
// its answer.
func TestManyCalls(t *testing.T) {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "call run_shell_cmd {\"command\":\"ping -c 1 192.0.2.%d\",\"reasoning\":\"r\"}\n", i+1)
	}
	w := play(t, "web is slow", "ids on\n-- 1 answer --\n"+b.String()+"-- 2 expect --\nlast too_many_moves\n-- 2 answer --\ncall complete_investigation {\"confidence\":\"low\",\"root_cause_summary\":\"x\"}\n")
	runs := 0
	w.gate = canned{w, func(string) safeexec.Result { runs++; return ran(1, "") }}
	if w.finish(); runs != agent.MaxMoves {
		t.Errorf("%d runs", runs)
	}
}

// TestName checks that a name says what it is a name for.
func TestName(t *testing.T) {
	a, b := ask(t, "http://127.0.0.1:1"), ask(t, "http://127.0.0.1:1", func(o *gemini.Options) { o.Model = "gemini-9" })
	if a.Name() == b.Name() || !strings.HasPrefix(b.Name(), "gemini/gemini-9/p4-") || len(b.Name()) != len("gemini/gemini-9/p4-")+12 {
		t.Errorf("%s, %s", a.Name(), b.Name())
	}
}

// TestOpenedSaysTheBrain checks that the case says by which prompt it was worked
// out, whatever the turns cost.
func TestOpenedSaysTheBrain(t *testing.T) {
	w := play(t, "x", "-- 1 answer --\nnone\n")
	var o agent.Opened
	if json.Unmarshal(w.entries[0].Body, &o) != nil || o.Brain != w.brain.Name() {
		t.Errorf("%+v", o)
	}
}
