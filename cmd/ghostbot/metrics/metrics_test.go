package metrics

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"ghostbot/agent"
	"ghostbot/cmd/ghostbot/observe"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
	"ghostbot/store"
)

const sid = "ghost_20260314_104512"

var start = time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC)

func newMetrics() *Metrics {
	return New(Build{"1", "abc", "go1.26"}, func() bool { return true }, func() bool { return false })
}

// play shows entries one second apart.
func play(m *Metrics, past bool, bodies ...any) {
	for i := 0; i+1 < len(bodies); i += 2 {
		kind := bodies[i].(string)
		journal := map[string]string{"proposed": "shell", "decided": "shell", "outcome": "shell", "task": "tasks"}[kind]
		if journal == "" {
			journal = "case"
		}
		e := observe.Entry{SessionID: sid, ID: fmt.Sprintf("%s_%03d", sid, i/2+1), Journal: journal, Kind: kind, Time: start.Add(time.Duration(i) * time.Second), Took: time.Millisecond, Past: past}
		m.Entry(observe.NewEntry(e, bodies[i+1]))
	}
}

// story is one case: a probe, an approval after 40 s, a denial, a model's turn.
func story() []any {
	zero, one := 0, 1
	return []any{
		"opened", agent.Opened{},
		"turn", agent.TurnEntry{Usage: &agent.Usage{Calls: 2, Prompt: 100, Cached: 30, Output: 7, CostUUSD: 1500}},
		"proposed", safeexec.Proposal{Class: safeexec.Safe},
		"outcome", safeexec.Result{AuditID: sid + "_003", Classification: safeexec.Safe, Status: "completed", ExitCode: &zero, Duration: .2},
		"proposed", safeexec.Proposal{Class: safeexec.Risky},
		"decided", safeexec.Decided{AuditID: sid + "_005", Decision: "APPROVED", At: start.Add(48 * time.Second)},
		"outcome", safeexec.Result{AuditID: sid + "_005", Classification: safeexec.Risky, Status: "completed", ExitCode: &one, Duration: 2},
		"proposed", safeexec.Proposal{Class: safeexec.Risky},
		"decided", safeexec.Decided{AuditID: sid + "_008", Decision: "DENIED", At: start.Add(20 * time.Second)},
		"outcome", safeexec.Result{AuditID: sid + "_008", Classification: safeexec.Risky, Status: "denied", Action: "user_denied"},
		"outcome", safeexec.Result{Classification: safeexec.Forbidden, Status: "error", Error: "forbidden_command"},
		"question", agent.Question{},
		"answer", agent.AnswerEntry{},
		"task", orchestrator.Task{TaskID: "t", State: orchestrator.Waiting},
		"task", orchestrator.Task{TaskID: "t", State: orchestrator.Waiting},
		"task", orchestrator.Task{TaskID: "t", State: orchestrator.Done},
		"concluded", agent.Conclusion{EndedBy: "brain"},
	}
}

func compare(t *testing.T, m *Metrics, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestCase(t *testing.T) {
	m := newMetrics()
	m.Opened(sid)
	play(m, false, story()...)
	compare(t, m, `
# HELP ghostbot_approvals_total Decisions about risky commands.
# TYPE ghostbot_approvals_total counter
ghostbot_approvals_total{outcome="approved"} 1
ghostbot_approvals_total{outcome="denied"} 1
# HELP ghostbot_capture_tasks_total Packet captures by the states that they reached.
# TYPE ghostbot_capture_tasks_total counter
ghostbot_capture_tasks_total{state="done"} 1
ghostbot_capture_tasks_total{state="waiting"} 1
# HELP ghostbot_cases Cases that this process holds the lease of, by what they wait for.
# TYPE ghostbot_cases gauge
ghostbot_cases{state="awaiting_answer"} 0
ghostbot_cases{state="awaiting_approval"} 0
ghostbot_cases{state="ending"} 1
ghostbot_cases{state="investigating"} 0
# HELP ghostbot_cases_concluded_total Cases that ended, by who or what ended them.
# TYPE ghostbot_cases_concluded_total counter
ghostbot_cases_concluded_total{ended_by="brain"} 1
# HELP ghostbot_commands_total Commands that came to an end, by the gate's class.
# TYPE ghostbot_commands_total counter
ghostbot_commands_total{class="forbidden",outcome="forbidden_command"} 1
ghostbot_commands_total{class="risky",outcome="denied"} 1
ghostbot_commands_total{class="risky",outcome="failed"} 1
ghostbot_commands_total{class="safe",outcome="completed"} 1
# HELP ghostbot_denials_total Commands that were denied, by reason.
# TYPE ghostbot_denials_total counter
ghostbot_denials_total{reason="person"} 1
# HELP ghostbot_model_cost_usd_total Dollars that a model cost, estimated from list prices.
# TYPE ghostbot_model_cost_usd_total counter
ghostbot_model_cost_usd_total 0.0015
# HELP ghostbot_model_requests_total Requests that a model answered.
# TYPE ghostbot_model_requests_total counter
ghostbot_model_requests_total 2
# HELP ghostbot_model_tokens_total Tokens of a model.
# TYPE ghostbot_model_tokens_total counter
ghostbot_model_tokens_total{kind="cached"} 30
ghostbot_model_tokens_total{kind="output"} 7
ghostbot_model_tokens_total{kind="prompt"} 100
`, "ghostbot_approvals_total", "ghostbot_capture_tasks_total", "ghostbot_cases", "ghostbot_cases_concluded_total", "ghostbot_commands_total",
		"ghostbot_denials_total", "ghostbot_model_cost_usd_total", "ghostbot_model_requests_total", "ghostbot_model_tokens_total")
	// The proposal is of second 8, the approval of second 48.
	text := page(t, m)
	if !strings.Contains(text, `ghostbot_approval_duration_seconds_sum{outcome="approved"} 40`) {
		t.Errorf("no approval after 40 s:\n%s", text)
	}
	m.Closed(sid)
	if got := testutil.ToFloat64(m.held.WithLabelValues(ending)); got != 0 {
		t.Errorf("%v cases after the only one was given up", got)
	}
}

// TestPaused: a case of which only the lease is kept counts as held, by what it waits for.
func TestPaused(t *testing.T) {
	m := New(Build{}, func() bool { return true }, func() bool { return true })
	waiting := func() float64 { return testutil.ToFloat64(m.held.WithLabelValues(forApproval)) }
	open := func() {
		m.Opened(sid)
		m.Entry(observe.NewEntry(observe.Entry{SessionID: sid, N: 1, ID: sid + "_001", Journal: "shell", Kind: "proposed", Past: true}, safeexec.Proposal{Class: safeexec.Risky}))
	}
	open()
	m.Paused(sid)
	if got := waiting(); got != 1 || m.dormant() != 1 {
		t.Errorf("%v cases wait, %v are dormant, want the paused one", got, m.dormant())
	}
	open()
	if got := waiting(); got != 1 {
		t.Errorf("%v cases wait after it woke", got)
	}
	m.Paused(sid)
	m.Lapsed(sid)
	m.Lapsed(sid)
	if got := waiting(); got != 0 || m.dormant() != 0 {
		t.Errorf("%v cases wait after the lease was lost", got)
	}
	if got := testutil.ToFloat64(m.held.WithLabelValues(investigating)); got != 0 {
		t.Errorf("%v cases are investigated", got)
	}
}

func page(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	b, err := io.ReadAll(w.Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("%d, %v", w.Code, err)
	}
	return string(b)
}

// A case that is taken over counts once as that, nothing of its past counts again, and
// what was open is known: the answer to an old card has its whole time.
func TestTakeOver(t *testing.T) {
	m := newMetrics()
	m.Opened(sid)
	past := story()[:10]
	play(m, true, past...)
	if got := testutil.ToFloat64(m.held.WithLabelValues(forApproval)); got != 1 {
		t.Errorf("%v cases wait for an approval, want 1", got)
	}
	play(m, false, "takeover", struct{}{})
	m.Entry(observe.NewEntry(observe.Entry{SessionID: sid, Journal: "shell", Kind: "decided", Time: start}, safeexec.Decided{AuditID: sid + "_005", Decision: "EXPIRED", At: start.Add(68 * time.Second)}))
	text := page(t, m)
	for _, want := range []string{
		`ghostbot_cases_taken_total{kind="taken_over"} 1`, `ghostbot_approvals_total{outcome="expired"} 1`,
		`ghostbot_approval_duration_seconds_sum{outcome="expired"} 60`, `ghostbot_journal_entries_total{journal="case"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	for _, not := range []string{"ghostbot_commands_total{", `kind="new"`, "ghostbot_model_tokens_total{"} {
		if strings.Contains(text, not) {
			t.Errorf("%s: the past was counted again", not)
		}
	}
}

// Whatever stands in a journal, labels keep to their lists: nothing of a body, and no
// more series than the lists allow.
func TestNoLabelComesFromOutside(t *testing.T) {
	m := newMetrics()
	r := rand.New(rand.NewPCG(1, 2))
	odd := func() string { return fmt.Sprintf("ODD%d\"\n{x=\"y\"}", r.IntN(1e9)) }
	m.Opened(sid)
	for range 2000 {
		exit := r.IntN(256)
		play(m, false,
			odd(), odd(), "proposed", safeexec.Proposal{Class: safeexec.Risky, Display: odd()},
			"decided", safeexec.Decided{Decision: odd(), Reason: odd(), By: odd()},
			"outcome", safeexec.Result{Status: "error", Error: odd(), Classification: safeexec.Class(r.IntN(5))},
			"outcome", safeexec.Result{Status: "denied", DenialReason: odd(), Action: odd()},
			"outcome", safeexec.Result{Status: odd(), ExitCode: &exit},
			"task", orchestrator.Task{TaskID: odd(), State: orchestrator.State(odd())},
			"concluded", agent.Conclusion{EndedBy: odd()},
			"turn", agent.TurnEntry{Usage: &agent.Usage{Model: odd(), Prompt: -1, CostUUSD: -5, Calls: -1}},
			"outcome", odd(), "turn", 7)
		m.Entry(observe.NewEntry(observe.Entry{SessionID: sid, Journal: odd(), Kind: odd()}, nil))
		m.Entry(observe.NewEntry(observe.Entry{SessionID: odd(), Journal: "case", Kind: "opened"}, nil))
		m.Slack(observe.Call{Method: odd(), Status: r.IntN(600)})
		m.Brain(odd())(agent.Turn{Brain: odd(), Problem: odd()}, time.Second, nil)
	}
	text := page(t, m)
	if strings.Contains(text, "ODD") || strings.Contains(strings.ToLower(text), "odd") {
		t.Error("a value of a journal became a label")
	}
	if n := strings.Count(text, "\nghostbot_"); n > 400 {
		t.Errorf("%d series", n)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, prefix) {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestStore(t *testing.T) {
	m := newMetrics()
	for _, tc := range []struct {
		err  error
		want string
	}{
		{nil, "ok"}, {store.ErrNotFound, "ok"}, {fmt.Errorf("x: %w", store.ErrHeld), "held"}, {&store.GuardError{Why: "fence"}, "fenced"},
		{&store.GuardError{Why: "changed"}, "conflict"}, {errors.New("no route"), "error"},
	} {
		before := testutil.ToFloat64(m.leases.WithLabelValues("acquire", tc.want))
		m.Store("acquire", time.Millisecond, tc.err)
		if got := testutil.ToFloat64(m.leases.WithLabelValues("acquire", tc.want)); got != before+1 {
			t.Errorf("%v is not told as %s", tc.err, tc.want)
		}
	}
	m.Store("get", time.Millisecond, nil)
	if n := testutil.CollectAndCount(m.leases); n != 5 {
		t.Errorf("%d kinds of leases, want 5", n)
	}
}

func TestSlackCalls(t *testing.T) {
	m := newMetrics()
	for _, tc := range []struct {
		call            observe.Call
		method, outcome string
	}{
		{observe.Call{Method: "chat.postMessage", Status: 200}, "chat.postMessage", "ok"},
		{observe.Call{Method: "chat.update", Status: 200, Refused: true}, "chat.update", "refused"},
		{observe.Call{Method: "chat.update", Status: 429}, "chat.update", "rate_limited"},
		{observe.Call{Method: "views.open", Status: 503}, "views.open", "error"},
		{observe.Call{Method: "auth.test"}, "auth.test", "no_answer"},
		{observe.Call{Method: "T0AAA"}, "other", "no_answer"},
	} {
		m.Slack(tc.call)
		if got := testutil.ToFloat64(m.slackCalls.WithLabelValues(tc.method, tc.outcome)); got != 1 {
			t.Errorf("%+v: %v, want 1", tc.call, got)
		}
	}
	if got := testutil.ToFloat64(m.limited.WithLabelValues("chat.update")); got != 1 {
		t.Errorf("%v limited calls, want 1", got)
	}
}

func TestBrains(t *testing.T) {
	m := newMetrics()
	m.Brain("gemini/flash/p3-ab else playbook/0a1b")(agent.Turn{}, time.Second, nil)
	m.Brain("gemini/flash/p3-ab else playbook/0a1b")(agent.Turn{Brain: "playbook/0a1b"}, time.Second, nil)
	m.Brain("playbook/0a1b")(agent.Turn{}, time.Second, errors.New("ended"))
	m.Brain("gemini/flash")(agent.Turn{Problem: "empty"}, time.Second, nil)
	text := page(t, m)
	for _, want := range []string{`{brain="gemini",outcome="ok"} 1`, `{brain="playbook",outcome="ok"} 1`, `{brain="playbook",outcome="error"} 1`, `{brain="gemini",outcome="unusable"} 1`} {
		if !strings.Contains(text, "ghostbot_brain_turn_duration_seconds_count"+want) {
			t.Errorf("%s is missing", want)
		}
	}
}

// A write that hangs shows as lag, and as nothing when it is over.
func TestLag(t *testing.T) {
	m := newMetrics()
	if m.age() != 0 {
		t.Error("lag without a write")
	}
	done, other := m.Writing("case"), m.Writing("shell")
	for since := range m.writing {
		*since = since.Add(-time.Minute)
		break
	}
	if lag := m.age(); lag < 60 || lag > 70 {
		t.Errorf("lag %v, want 60", lag)
	}
	done()
	other()
	if m.age() != 0 {
		t.Error("lag after all writes")
	}
}

// What the store has and the files have not is the lag, of the cases held here.
func TestEntriesBehind(t *testing.T) {
	m := newMetrics()
	m.Stored(sid, 5) // nobody holds it
	m.Opened(sid)
	m.Opened(sid + "-2")
	for _, tc := range []struct {
		stored, filed uint64
		want          float64
	}{{0, 0, 0}, {0, 7, 0}, {8, 0, 1}, {8, 0, 1}, {9, 0, 2}, {0, 9, 0}, {4, 0, 0}} {
		if tc.stored > 0 {
			m.Stored(sid, tc.stored)
		}
		if tc.filed > 0 {
			m.Entry(observe.NewEntry(observe.Entry{SessionID: sid, N: tc.filed, Journal: "case", Kind: "turn"}, agent.TurnEntry{}))
		}
		if got := m.lag(); got != tc.want {
			t.Errorf("stored %d, filed %d: lag %v, want %v", tc.stored, tc.filed, got, tc.want)
		}
	}
	m.Stored(sid+"-2", 3)
	if got := m.lag(); got != 3 {
		t.Errorf("lag %v, want 3", got)
	}
	m.Closed(sid + "-2")
	if got := m.lag(); got != 0 {
		t.Errorf("lag %v after the case was given up", got)
	}
}
