package view_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/triage/act"
	"ghostbot/triage/model"
	"ghostbot/triage/plan"
	"ghostbot/triage/session"
	"ghostbot/triage/view"
)

var at = time.Date(2026, 3, 1, 9, 15, 0, 0, time.UTC)

func evaluated(pid int, a model.Action, gone float64, cmd string) plan.Evaluated {
	e := plan.Evaluated{LogE: 6.89, Terms: []plan.Term{{Feature: "backing", Level: "deleted", Log: [4]float64{-4.6, -3.5, -1.9, -4.6}}, {Feature: "cpu", Level: "0/10", Log: [4]float64{-1, -2, -0.5, -0.1}}}}
	e.Candidate = plan.Candidate{
		PID: pid, StartID: fmt.Sprintf("boot:%d:%d", pid*10, pid), UID: 1000, PPID: 1, CmdShort: cmd, CmdFull: cmd + " --all", Classification: "abandoned", Confidence: "high",
		Posterior: plan.Posterior{Useful: 1 - gone, Abandoned: gone}, Action: a, Rationale: "Its <b>parent</b> is gone",
		Blast: plan.Blast{MemoryMB: 41.5, CPUPct: 3, Risk: "none", Summary: "Frees 41.5 MB", Dependents: []plan.Dependent{}},
	}
	return e
}

func made(sid string, list ...plan.Evaluated) *plan.Plan {
	p := &plan.Plan{Envelope: plan.Envelope{SchemaVersion: "1.0.0", SessionID: sid, GeneratedAt: at, HostID: "edge-7"}, Evaluated: list, PolicyHash: strings.Repeat("a", 64)}
	for _, e := range list {
		switch e.Action {
		case model.Spare:
			p.Summary.Spare++
			continue
		case model.Kill:
			p.Summary.Kill++
		case model.Review:
			p.Summary.Review++
		}
		p.Summary.Found++
	}
	p.Summary.Scanned = len(list)
	p.FDR.M = len(list)
	p.System.MemoryMB = map[string]int64{"memavailable": 4200}
	return p
}

const sid1, sid2 = "sess-20260301-091500-k3m9qa", "sess-20260301-101500-k3m9qb"

func TestSelect(t *testing.T) {
	p := made(sid1, evaluated(1, model.Kill, 0.98, "a"), evaluated(2, model.Review, 0.79, "b"), evaluated(3, model.Throttle, 0.2, "c"), evaluated(4, model.Spare, 0.01, "d"))
	p.Evaluated[2].Posterior.UsefulBad = 0.75
	tests := []struct {
		only  []string
		min   float64
		limit int
		want  []int
	}{
		{nil, 0, 0, []int{1, 2, 3}}, {[]string{"all"}, 0, 0, []int{1, 2, 3, 4}}, {[]string{"kill"}, 0, 0, []int{1}}, {[]string{"kill", "review"}, 0, 0, []int{1, 2}},
		{[]string{"spare"}, 0, 0, []int{4}}, {nil, 0.9, 0, []int{1, 3}}, {nil, 0.5, 0, []int{1, 2, 3}}, {[]string{"all"}, 0, 2, []int{1, 2}}, {nil, 1, 0, nil},
	}
	for _, tt := range tests {
		var got []int
		for _, e := range view.Select(p, tt.only, tt.min, tt.limit) {
			got = append(got, e.PID)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v %v %d (-want +got):\n%s", tt.only, tt.min, tt.limit, diff)
		}
	}
}

func TestProject(t *testing.T) {
	e := evaluated(4711, model.Kill, 0.98, "node jest")
	got, err := view.Project(&view.Candidate{Candidate: e.Candidate}, []string{"classification", "pid", "galaxy_brain"})
	if err != nil || string(got) != `{"classification":"abandoned","pid":4711}` {
		t.Errorf("%s, %v", got, err)
	}
	all, err := view.Project(&view.Candidate{Candidate: e.Candidate}, nil)
	if err != nil || !json.Valid(all) || !strings.Contains(string(all), "<b>parent</b>") || strings.Contains(string(all), "\n") {
		t.Errorf("%s, %v", all, err)
	}
	for _, list := range []string{"bogus", "pid,", "PID", "pid;uid"} {
		if _, err := view.Fields(list); err == nil {
			t.Errorf("%q is accepted", list)
		}
	}
	for list, n := range map[string]int{"pid": 1, "pid, uid": 2, "minimal": 4, "standard": 11} {
		if got, err := view.Fields(list); err != nil || len(got) != n {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	for _, preset := range view.Presets {
		if _, err := view.Fields(strings.Join(preset, ",")); err != nil {
			t.Error(err)
		}
	}
}

func TestLedger(t *testing.T) {
	e := evaluated(4711, model.Kill, 0.98, "node jest")
	rows := view.Ledger(&e)
	if len(rows) != 2 || rows[0].Strength != "decisive" || rows[1].Strength != "weak" || rows[0].Note != "backing=deleted" || rows[0].Log["abandoned"] != -1.9 {
		t.Errorf("%+v", rows)
	}
	k := 0
	e.Evidence.CPUK = &k
	if got := view.Levels(&e); got["backing"] != "deleted" || got["cpu_k"] != 0 || got["cpu"] != nil {
		t.Errorf("%v", got)
	}
}

func TestProseIsOfTheSession(t *testing.T) {
	empty := made(sid1, evaluated(9, model.Spare, 0.01, "bash"))
	full := made(sid1, evaluated(4711, model.Kill, 0.98, "node jest"), evaluated(4712, model.Review, 0.79, "sleeper"))
	full.Recommended.Total = 1
	seen := map[string]bool{}
	for _, style := range view.Styles {
		a, b := view.Write(empty, style), view.Write(full, style)
		for name, pair := range map[string][2]string{"executive": {a.Executive, b.Executive}, "actions": {a.Actions, b.Actions}, "rationale": {a.Rationale, b.Rationale}, "next steps": {a.NextSteps, b.NextSteps}} {
			if pair[0] == "" || pair[1] == "" || pair[0] == pair[1] {
				t.Errorf("%s %s: %q and %q", style, name, pair[0], pair[1])
			}
		}
		if !strings.Contains(b.Actions, "4711") || !strings.Contains(b.NextSteps, sid1) || seen[b.Actions] {
			t.Errorf("%s: %+v", style, b)
		}
		seen[b.Actions] = true
	}
	many := make([]plan.Evaluated, 20)
	for i := range many {
		many[i] = evaluated(5000+i, model.Review, 0.7, "x")
	}
	if got := view.Write(made(sid1, many...), "conversational").Actions; !strings.HasSuffix(got, "MB. 12 more are not listed.") {
		t.Error(got)
	}
	if got := view.Write(made(sid1, many...), "terse"); !strings.Contains(got.Actions, "and 12 more") || strings.Contains(got.Actions, "5019") {
		t.Errorf("%s", got.Actions)
	}
	if got := view.Write(made(sid1, many...), "terse"); !strings.Contains(got.NextSteps, "explain") {
		t.Errorf("%s", got.NextSteps)
	}
}

func TestMetrics(t *testing.T) {
	got := view.Metrics(made(sid1, evaluated(1, model.Kill, 0.98, "a b\nc=d")))
	line := regexp.MustCompile(`^[a-z0-9_.]+=[^ ]+$`)
	for l := range strings.Lines(got) {
		if !line.MatchString(strings.TrimSuffix(l, "\n")) {
			t.Errorf("%q", l)
		}
	}
	if !strings.Contains(got, "kill_recommended=1\n") {
		t.Error(got)
	}
}

// Command lines are written by strangers: in no format are they anything but
// text.
func TestHostileCommandsStayText(t *testing.T) {
	hostile := "<!channel> <@U0000> `rm` *b* _i_ | x <script> [a](http://x) & @here"
	p := made(sid1, evaluated(4711, model.Kill, 0.98, hostile))
	p.Evaluated[0].Rationale = hostile
	slack := view.Slack(p, []*plan.Evaluated{&p.Evaluated[0]})
	for _, bad := range []string{"<!", "<@", "*b*", "_i_", "@here", "``"} {
		if strings.Contains(slack, bad) {
			t.Errorf("Slack has %q: %s", bad, slack)
		}
	}
	md := view.Markdown(p, []*plan.Evaluated{&p.Evaluated[0]})
	row := ""
	for l := range strings.Lines(md) {
		if strings.Contains(l, "4711") {
			row = l
		}
	}
	unescaped := strings.Count(row, "|") - strings.Count(row, `\|`)
	if unescaped != 7 || strings.Contains(row[strings.LastIndex(row, "| kill"):], "[a](") || strings.Count(row, "`")-strings.Count(row, "\\`") != 2 {
		t.Errorf("%d cells: %s", unescaped, row)
	}
	r := view.NewReport(session.Manifest{SessionID: sid1}, p, nil, nil, true, "formal", at)
	html, err := r.HTML()
	if err != nil || strings.Contains(html, "<script>") || strings.Contains(html, "<!channel>") || !strings.Contains(html, "&lt;script&gt;") {
		t.Errorf("%v %s", err, html)
	}
}

func TestSlackIsShort(t *testing.T) {
	var list []plan.Evaluated
	for i := range 30 {
		list = append(list, evaluated(i+10, model.Kill, 0.9, "x"))
	}
	p := made(sid1, list...)
	if got := view.Slack(p, view.Select(p, nil, 0, 0)); strings.Count(got, "•") != 10 || !strings.Contains(got, "20 more") {
		t.Error(got)
	}
}

func TestCompare(t *testing.T) {
	a := made(sid1, evaluated(1, model.Review, 0.7, "same"), evaluated(2, model.Review, 0.7, "same"), evaluated(3, model.Kill, 0.95, "x"), evaluated(4, model.Review, 0.7, "y"), evaluated(5, model.Spare, 0.1, "z"), evaluated(6, model.Review, 0.7, "w"))
	b := made(sid2, evaluated(1, model.Review, 0.72, "same"), evaluated(3, model.Review, 0.7, "x"), evaluated(4, model.Kill, 0.95, "y"), evaluated(5, model.Spare, 0.1, "z"), evaluated(6, model.Spare, 0.2, "w"), evaluated(7, model.Kill, 0.99, "new"))
	reused := evaluated(2, model.Review, 0.7, "same")
	reused.StartID = "boot:999:2"
	b.Evaluated = append(b.Evaluated, reused)
	d := view.Compare(a, b)
	pids := func(list []view.Change) (out []int) {
		for _, c := range list {
			out = append(out, c.PID)
		}
		return out
	}
	for name, tt := range map[string]struct{ got, want []int }{
		"new": {pids(d.Delta.New), []int{7, 2}}, "worsened": {pids(d.Delta.Worsened), []int{4}}, "improved": {pids(d.Delta.Improved), []int{3}},
		"resolved": {pids(d.Delta.Resolved), []int{2, 6}}, "persistent": {pids(d.Delta.Persistent), []int{1}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if d.Summary["new"] != 2 || d.Comparison.Base != sid1 || d.Comparison.Compare != sid2 {
		t.Errorf("%+v", d)
	}
}

const wantReport = `# Triage report sess-20260301-091500-k3m9qa

I looked at 1 processes on edge\-7: 1 need a decision, the rest is fine. 4200 MB of memory are available.

- host: edge\-7
- state: verified
- policy: ` + "`aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`" + `
- audit log: intact

## Candidates

| pid | start id | command | class | P(useful) | P(gone) | risk | action | why |
|---|---|---|---|---|---|---|---|---|
| 4711 | ` + "`boot:47110:4711`" + ` | ` + "`node jest --all`" + ` | abandoned | 0.0200 | 0.9800 | none | kill | Its \<b\>parent\</b\> is gone |

## Actions

| pid | start id | action | outcome | signals | audit id | reason |
|---|---|---|---|---|---|---|
| 4711 | ` + "`boot:47110:4711`" + ` | kill | success | TERM | ghost_20260301_091609_003 |  |

## Verification: success

| pid | outcome | note |
|---|---|---|
| 4711 | confirmed_dead | unreaped, parent 1 |

## Audit log

| n | time | audit id | kind |
|---|---|---|---|
| 3 | 2026-03-01T09:15:00Z | ghost_20260301_091609_003 | intent |
`

func TestReport(t *testing.T) {
	p := made(sid1, evaluated(4711, model.Kill, 0.98, "node jest"))
	o := &act.Outcomes{
		Steps:        []act.Step{{Target: plan.Target{PID: 4711, StartID: "boot:47110:4711"}, Action: model.Kill, Status: "done", Signals: []string{"TERM"}, Result: &act.Result{Outcome: "success", AuditID: "ghost_20260301_091609_003"}}},
		Verification: &act.Verification{Status: "success", Outcomes: []act.Outcome{{Target: plan.Target{PID: 4711}, Outcome: "confirmed_dead", Note: "unreaped, parent 1"}}},
	}
	m := session.Manifest{SessionID: sid1, HostID: "edge-7", State: session.Verified}
	r := view.NewReport(m, p, o, []session.Entry{{N: 3, Time: at, AuditID: "ghost_20260301_091609_003", Kind: "intent", Body: json.RawMessage(`{"effect":"TERM"}`)}}, true, "conversational", at)
	if diff := cmp.Diff(wantReport, r.Markdown()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	html, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"4711", "boot:47110:4711", "confirmed_dead", "backing", "deleted", "ghost_20260301_091609_003", "intact"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if regexp.MustCompile(`(src|href)=|url\(|@import|https?://`).MatchString(html) {
		t.Error("the page needs something from elsewhere")
	}
	empty := view.NewReport(m, made(sid1), nil, nil, false, "terse", at)
	if text := empty.Markdown(); !strings.Contains(text, "BROKEN") || !strings.Contains(text, "Nothing was done") || !strings.Contains(text, "no process explains") {
		t.Error(text)
	}
}
