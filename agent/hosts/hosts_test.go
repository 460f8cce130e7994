package hosts

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"ghostbot/safeexec/policy"
)

const (
	session = "sess-20260301-091500-k3m9qa"
	start   = "1f0c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b:163522:4711"
	self    = "/opt/ghostbot/ghostbot"
)

// Each request is one command of the product's own, of the class that the policy
// gives it: what looks runs by itself, what acts never does.
func TestArgv(t *testing.T) {
	p := policy.New(policy.Options{Self: self})
	for _, c := range []struct {
		q           Request
		want, class string
	}{
		{Request{Do: Look}, "plan --here --format case --exit-code always0 --limit 5", "SAFE listed"},
		{Request{Do: Look, Port: 8080, PIDs: []int{7, 8}, Since: "2h", Rows: 10}, "plan --here --format case --exit-code always0 --limit 10 --port 8080 --pid 7,8 --since 2h", "SAFE listed"},
		{Request{Do: Look, Session: session, Rows: 10, Skip: 10}, "plan --here --format case --exit-code always0 --limit 10 --session " + session + " --skip 10", "SAFE listed"},
		{Request{Do: Explain, Session: session, PID: 7}, "explain --here --session " + session + " --pid 7 --include-ledger --what-if", "SAFE listed"},
		{Request{Do: Verify, Session: session}, "verify --here --session " + session + " --check-respawn --exit-code always0", "SAFE listed"},
		{Request{Do: End, Session: session, PID: 4711, StartID: start}, "apply --here --attended --exit-code done --session " + session + " --targets 4711:" + start + " --action kill --max-risk medium", "RISKY agent-apply"},
		{Request{Do: End, Session: session, PID: 4711, StartID: start, AcceptLoss: true}, "apply --here --attended --exit-code done --session " + session + " --targets 4711:" + start + " --action kill --max-risk medium --accept-data-loss", "RISKY agent-apply-data-loss"},
		{Request{Do: Pause, Session: session, PID: 4711, StartID: start, High: true}, "apply --here --attended --exit-code done --session " + session + " --targets 4711:" + start + " --action pause --max-risk high", "RISKY agent-apply-high"},
	} {
		argv, err := c.q.Argv(self)
		if err != nil {
			t.Errorf("%+v: %v", c.q, err)
			continue
		}
		if got := strings.Join(argv, " "); got != self+" agent "+c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.q, got, c.want)
		}
		if v := p.ClassifyArgv(argv); v.Class.String()+" "+v.Rule != c.class {
			t.Errorf("%s is %s %s, want %s", strings.Join(argv, " "), v.Class, v.Rule, c.class)
		}
		if back, ok := Parse(argv); !ok || back.Do != c.q.Do || c.q.Acts() && (back.PID != c.q.PID || back.StartID != c.q.StartID || back.Session != c.q.Session) {
			t.Errorf("%s reads back as %+v, %v", strings.Join(argv, " "), back, ok)
		}
	}
}

// What cannot be a process of a look is refused before there is a command.
func TestCheck(t *testing.T) {
	for _, q := range []Request{
		{}, {Do: "kill"}, {Do: End}, {Do: End, Session: session}, {Do: End, Session: session, PID: 4711}, {Do: End, Session: session, PID: 4711, StartID: "x"}, {Do: End, Session: session, PID: 4712, StartID: start},
		{Do: End, Session: session, PID: -1, StartID: start}, {Do: End, Session: session, PID: 1 << 31, StartID: start}, {Do: End, Session: session, PID: 0, StartID: start}, {Do: End, Session: "../x", PID: 4711, StartID: start},
		{Do: End, Session: session, PID: 4711, StartID: "; reboot:1:4711"}, {Do: Explain, Session: session}, {Do: Verify}, {Do: Verify, Session: "--state-dir"}, {Do: Look, Port: -1}, {Do: Look, Port: 65536},
		{Do: Look, PIDs: []int{-1}}, {Do: Look, PIDs: []int{1 << 31}}, {Do: Look, PIDs: make([]int, 21)}, {Do: Look, Since: "$(x)"}, {Do: Look, Since: "-2h"}, {Do: Look, Rows: 11}, {Do: Look, Skip: 10}, {Do: Look, Rows: -1},
	} {
		if argv, err := q.Argv(self); err == nil {
			t.Errorf("%+v became %q", q, argv)
		}
	}
	if _, err := (Request{Do: Look}).Argv(""); err == nil {
		t.Error("without a program there is no command")
	}
}

func TestParseForeign(t *testing.T) {
	for _, line := range []string{"", "ss -ltn", "ghostbot agent plan", "ghostbot agent apply --session x", "ghostbot pcap a.pcap --here x", "ghostbot agent status --here", "ghostbot agent --here plan"} {
		if q, ok := Parse(strings.Fields(line)); ok {
			t.Errorf("%q is read as %+v", line, q)
		}
	}
}

// A request about a row says what the row is, and risks no more than it has to.
func TestRequestOfARow(t *testing.T) {
	s := Seen{Session: session}
	row := Row{PID: 4711, StartID: start, Command: "python3 worker.py", Class: "useful_bad", Useful: 0.33, Impact: "Frees 41 MB.", AgeS: 7300, RiskBeside: "low"}
	for _, c := range []struct {
		change func(*Row)
		do     string
		want   Request
	}{
		{func(*Row) {}, End, Request{Do: End}},
		{func(r *Row) { r.DataAtRisk = true }, End, Request{Do: End, AcceptLoss: true}},
		{func(r *Row) { r.RiskBeside = "high" }, End, Request{Do: End, High: true}},
		{func(r *Row) { r.RiskBeside = "critical" }, End, Request{Do: End, High: true}},
		{func(r *Row) { r.RiskBeside = "" }, End, Request{Do: End, High: true}}, // not known is not low
		{func(r *Row) { r.DataAtRisk = true; r.RiskBeside = "high" }, Pause, Request{Do: Pause}},
	} {
		r := row
		c.change(&r)
		c.want.Session, c.want.PID, c.want.StartID = session, 4711, start
		if diff := cmp.Diff(c.want, s.Request(r, c.do)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.do, diff)
		}
	}
	row.DataAtRisk, row.Supervisor = true, "systemd: systemctl stop x.service"
	got := s.Request(row, End).Effect(row)
	for _, want := range []string{"ends process 4711 (python3 worker.py), running for 2 h", "Frees 41 MB", "WHAT IT HAS NOT FINISHED WRITING MAY BE LOST", "judged useful but bad (useful with 0.33)", "it may come back"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if s.Rows = []Row{row}; true {
		if _, ok := s.Find(4711, "other"); ok {
			t.Error("a process is found by its number alone")
		}
		if r, ok := s.Find(4711, start); !ok || r.PID != 4711 {
			t.Error("the process is not found")
		}
	}
}

func TestAge(t *testing.T) {
	for s, want := range map[float64]string{5: "5 s", 119: "119 s", 121: "2 min", 7199: "119 min", 7200: "2 h", 172800: "2 days"} {
		if got := (Row{AgeS: s}).Age(); got != want {
			t.Errorf("%v s is %s, want %s", s, got, want)
		}
	}
}

func TestAnswers(t *testing.T) {
	if s, ok := ReadLook(`{"session_id":"` + session + `","scanned":58,"processes":[{"pid":4711,"start_id":"x"}]}`); !ok || s.Scanned != 58 || len(s.Rows) != 1 {
		t.Errorf("look = %+v, %v", s, ok)
	}
	for _, bad := range []string{"", "[truncated: x]", `{"session_id":"x","scanned":5}`, `{"session_id":"` + session + `"}`, `{"error":{"code":"INTERNAL_ERROR"}}`} {
		if s, ok := ReadLook(bad); ok {
			t.Errorf("%q is a look: %+v", bad, s)
		}
	}
	for text, want := range map[string]Done{
		`{"results":[{"outcome":"success"}]}`: {Outcome: "success"},
		`{"results":[{"outcome":"blocked","reason":"identity_valid: exe differs","error":{"code":"IDENTITY_MISMATCH"}}]}`: {"blocked", "identity_valid: exe differs", "IDENTITY_MISMATCH"},
		`{"error":{"code":"GATE_FAILED","message":"no"}}`:                                                                 {"blocked", "no", "GATE_FAILED"},
		`nonsense`: {},
	} {
		if got := ReadApply(text); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	for outcome, want := range map[string]string{"confirmed_dead": "it is gone", "still_running": "it still runs", "respawned": "it came back as process 9", "pid_reused": "it is gone, and its number belongs to another process", "confirmed_stopped": "it is stopped", "timeout": "timeout"} {
		v := ReadVerify(`{"verification":{"overall_status":"success"},"action_outcomes":[{"target":{"pid":7},"outcome":"` + outcome + `","respawn_detected":{"new_pid":9}}]}`)
		if v.Text() != want || v.PID != 7 {
			t.Errorf("%s is told as %q", outcome, v.Text())
		}
	}
	if v := ReadVerify(`{"error":{"code":"GATE_FAILED","message":"nothing applied in this session"}}`); v.Text() != "nothing was done, so there is nothing to verify" {
		t.Errorf("nothing is told as %q", v.Text())
	}
	for _, bad := range []string{"", "x", `{"error":{}}`, `{"error":{"message":"lock"}}`} {
		if v := ReadVerify(bad); v.Text() != "what became of it is not known" {
			t.Errorf("%q is told as %q", bad, v.Text())
		}
	}
}

func TestReasons(t *testing.T) {
	r := Row{PID: 7, Command: "x", Class: "abandoned", Gone: 0.9}
	got := Reasons(r, `{"ledger":[{"feature":"io","level":"none","bits":0.9},{"feature":"lineage","level":"orphan","bits":5.1},{"feature":"tty","level":"no","bits":-0.2}],"what_if":{"terms_that_flip_the_action":["lineage"]}}`)
	if !strings.Contains(got, "lineage is orphan (5.1 bits towards abandoned), io is none (0.9 bits towards abandoned), tty is no (0.2 bits towards useful)") || !strings.Contains(got, "would be another: lineage") {
		t.Error(got)
	}
	if got := Reasons(r, "x"); !strings.Contains(got, "could not be read") {
		t.Error(got)
	}
}

func TestParseFocus(t *testing.T) {
	for text, want := range map[string]Focus{
		"": {}, "--port 8080": {Port: 8080}, "—port 8080": {Port: 8080}, "--port=8080 --pid 7": {Port: 8080, PIDs: []int{7}}, "port :53": {Port: 53}, "--pid 7,8,7 --since 2h": {PIDs: []int{7, 8}, Since: "2h"}, "-PORT 1": {Port: 1},
		"--pid 2147483647": {PIDs: []int{2147483647}},
	} {
		got, err := ParseFocus(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for _, bad := range []string{"--port", "--port x", "--port 0", "--port 65536", "--port -1", "--pid 0", "--pid -1", "--pid 1,-1", "--pid 2147483648", "--pid 99999999999999999999", "--since yesterday", "--host x", "8080", "`rm`", "--pid 1 2", "--pid 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21"} {
		if f, err := ParseFocus(bad); err == nil {
			t.Errorf("%q is taken as %+v", bad, f)
		}
	}
	if got := (Focus{Port: 80, PIDs: []int{1, 2}, Since: "2h"}).Text(); got != "port 80, pid 1,2, new since 2h" {
		t.Error(got)
	}
}

// FuzzParseFocus: whatever people write, what comes out is a request that the gate
// runs by itself, or a refusal.
func FuzzParseFocus(f *testing.F) {
	for _, s := range []string{"--port 80", "--pid 1,2", "--since 2h", "—port 80", "--port `x`", "--pid \u202e1"} {
		f.Add(s)
	}
	p := policy.New(policy.Options{Self: self})
	f.Fuzz(func(t *testing.T, text string) {
		focus, err := ParseFocus(text)
		if err != nil {
			return
		}
		argv, err := Request{Do: Look, Port: focus.Port, PIDs: focus.PIDs, Since: focus.Since}.Argv(self)
		if err != nil {
			t.Fatalf("%q is taken and then refused: %v", text, err)
		}
		if v := p.ClassifyArgv(argv); v.Class != policy.Safe {
			t.Fatalf("%q becomes %q, which is %s: %s", text, argv, v.Class, v.Reason)
		}
		for _, r := range focus.Text() {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q shows %q", text, focus.Text())
			}
		}
	})
}
