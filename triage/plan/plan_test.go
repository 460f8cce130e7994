package plan_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/triage/model"
	"ghostbot/triage/plan"
	"ghostbot/triage/policy"
	"ghostbot/triage/proc"
	"ghostbot/triage/scan"
)

var at = time.Date(2026, 3, 1, 9, 15, 0, 0, time.UTC)

func k(n int) *int { return &n }

var (
	orphan  = model.Evidence{CPUK: k(0), Lineage: "orphan", IO: "none", TTY: "no", Net: "none", Queue: "ok", State: "S", Age: "far", Backing: "deleted", Sig: "likely_abandoned"}
	idle    = model.Evidence{CPUK: k(0), Lineage: "orphan", IO: "none", TTY: "no", Net: "none", Queue: "ok", State: "S", Backing: "ok", Sig: "none"}
	shell   = model.Evidence{CPUK: k(0), Lineage: "attached", IO: "none", TTY: "yes", Net: "none", Queue: "ok", State: "S", Age: "young", Backing: "ok", Sig: "none"}
	dead    = model.Evidence{CPUK: k(0), Lineage: "attached", TTY: "no", State: "Z"}
	sleepsD = model.Evidence{CPUK: k(0), Lineage: "orphan", IO: "none", TTY: "no", Net: "none", Queue: "ok", State: "D", Backing: "deleted", Sig: "likely_abandoned"}
)

// record is a process of uid 1000 that is an hour old.
func record(pid int, e model.Evidence, change ...func(*scan.Record)) scan.Record {
	r := scan.Record{
		Identity: proc.Identity{PID: pid, StartID: fmt.Sprintf("1f0c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b:%d:%d", pid*10, pid), UID: 1000, CmdHash: fmt.Sprint("h", pid), PIDNS: "n"},
		PPID:     1, Names: []string{"worker"}, CmdShort: "worker x", CmdFull: "worker x --queue a", AgeS: 3600, State: e.State, Evidence: e, MemoryMB: 10,
		CPUHalves: []float64{float64(pid % 3), 1}, RSSHalves: []float64{10, 10},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func snapshot(records ...scan.Record) *scan.Snapshot {
	return &scan.Snapshot{RecordedAt: at, HostID: "edge-7", UID: 1000, WindowS: 1, Records: records}
}

func input(records ...scan.Record) plan.Input {
	p := policy.Default()
	return plan.Input{Snapshot: snapshot(records...), Policy: p, Priors: model.DefaultPriors(), Respawns: map[string]int{}}
}

func TestActionsAndTheirReasons(t *testing.T) {
	tests := []struct {
		name   string
		r      scan.Record
		in     func(*plan.Input)
		action model.Action
		says   []string
		pre    bool
	}{
		{"clear", record(4711, orphan), nil, model.Kill, []string{"deleted", "no I/O"}, true},
		{"not clear", record(4711, idle), nil, model.Review, []string{"session are gone"}, false},
		{"useful", record(4711, shell), nil, model.Spare, []string{"terminal"}, false},
		{"zombie", record(4711, dead, func(r *scan.Record) { r.PPID, r.ParentCmd = 4700, "parent x" }), nil, model.Review, []string{"Zombie", "parent 4700", "parent x"}, false},
		{"uninterruptible", record(4711, sleepsD), nil, model.Review, []string{"uninterruptible"}, false},
		{"too young", record(4711, orphan, func(r *scan.Record) { r.AgeS = 299 }), nil, model.Spare, nil, false},
		{"younger than asked for", record(4711, orphan), func(in *plan.Input) { in.MinAge = 3601 }, model.Spare, nil, false},
		{"a zombie that process 1 is about to reap", record(4711, dead, func(r *scan.Record) { r.Fresh = true }), nil, model.Spare, nil, false},
		{"somebody else's", record(4711, orphan, func(r *scan.Record) { r.UID = 1001 }), nil, model.Review, []string{"privilege_blocked"}, false},
		{"somebody else's, allowed", record(4711, orphan, func(r *scan.Record) { r.UID = 1001 }), func(in *plan.Input) { in.Policy.Guardrails.AllowCrossUID = true }, model.Kill, nil, true},
		{"writes a file", record(4711, orphan, func(r *scan.Record) { r.Files.Writes = []scan.WriteFile{{FD: 3, Path: "/home/user/out"}} }), nil, model.Review, []string{"data_at_risk"}, false},
		{"holds a lock", record(4711, orphan, func(r *scan.Record) { r.Files.Locks = 1 }), nil, model.Review, []string{"data_at_risk"}, false},
		{"policy wants a person", record(4711, orphan, func(r *scan.Record) { r.Names = []string{"kube-thing"} }), nil, model.Review, []string{"a person to decide"}, false},
		{"an agent looks after it", record(4711, orphan, func(r *scan.Record) { r.Supervisor = scan.Supervisor{Detected: true, Type: "agent", Review: true} }), nil, model.Review, []string{"agent looks after it"}, false},
		{"it keeps coming back", record(4711, orphan), func(in *plan.Input) { in.Respawns["h4711"] = 2 }, model.Review, []string{"came back 2 times"}, false},
		{"supervised", record(4711, orphan, func(r *scan.Record) {
			r.Supervisor = scan.Supervisor{Detected: true, Type: "systemd", Unit: "a.service", Stop: []string{"systemctl", "stop", "a.service"}, Restart: []string{"systemctl", "restart", "a.service"}}
		}), nil, model.Kill, nil, false},
		{"descriptors unreadable", record(4711, orphan, func(r *scan.Record) { r.Files.Unknown = true }), nil, model.Kill, nil, false},
		{"serves clients", record(4711, orphan, func(r *scan.Record) { r.Net.Inbound, r.Net.Conns = 1, 1 }), nil, model.Kill, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(tt.r)
			if tt.in != nil {
				tt.in(&in)
			}
			p := plan.Make(in)
			e := p.Find(4711)
			if e.Action != tt.action {
				t.Errorf("%s, want %s: %s", e.Action, tt.action, e.Rationale)
			}
			for _, w := range tt.says {
				if !strings.Contains(e.Rationale, w) {
					t.Errorf("%q, want %q in it", e.Rationale, w)
				}
			}
			if got := len(p.Recommended.PIDs) == 1; got != tt.pre || e.Preselected() != tt.pre {
				t.Errorf("preselected %v, want %v (risk %s)", p.Recommended.PIDs, tt.pre, e.Blast.Risk)
			}
		})
	}
}

func TestRisk(t *testing.T) {
	child := func(n int) []scan.Dependent {
		return make([]scan.Dependent, n)
	}
	peer := func(n int) (out []scan.Dependent) {
		for range n {
			out = append(out, scan.Dependent{Relationship: "peer"})
		}
		return out
	}
	tests := []struct {
		want   string
		change func(*scan.Record)
	}{
		{"none", func(*scan.Record) {}},
		{"none", func(r *scan.Record) { r.Evidence.State, r.Files.Unknown = "Z", true }},
		{"low", func(r *scan.Record) { r.MemoryMB = 50 }},
		{"low", func(r *scan.Record) { r.Dependents = child(1) }},
		{"low", func(r *scan.Record) { r.Net.Sockets = 1 }},
		{"medium", func(r *scan.Record) { r.Dependents = child(4) }},
		{"medium", func(r *scan.Record) { r.Net.Listens = make([]scan.Listener, 1) }},
		{"medium", func(r *scan.Record) { r.MemoryMB = 1025 }},
		{"high", func(r *scan.Record) { r.Net.Inbound = 1 }},
		{"high", func(r *scan.Record) { r.Dependents = peer(3) }},
		{"low", func(r *scan.Record) { r.Dependents, r.MemoryMB = peer(2), 60 }},
		{"high", func(r *scan.Record) { r.Files.Locks = 1 }},
		{"high", func(r *scan.Record) { r.Files.Unknown = true }},
		{"high", func(r *scan.Record) { r.Missing = map[string]string{"net": "unreadable"} }},
		{"critical", func(r *scan.Record) { r.Net.Inbound, r.Net.Remote = 1, 1 }},
		{"critical", func(r *scan.Record) { r.MemoryMB = 4097 }},
		{"critical", func(r *scan.Record) { r.Files.Writes = []scan.WriteFile{{Hard: true}} }},
	}
	for i, tt := range tests {
		r := record(1, idle, tt.change)
		if got := plan.Risk(&r); got != tt.want {
			t.Errorf("%d: %s, want %s", i, got, tt.want)
		}
	}
}

// The list is in the order of how surely nobody misses a process, whatever the
// numbers are, and children come before their parents.
func TestOrder(t *testing.T) {
	p := plan.Make(input(record(10, shell), record(20, idle), record(30, orphan), record(40, dead)))
	var got []int
	for _, e := range p.Evaluated {
		got = append(got, e.PID)
	}
	if diff := cmp.Diff([]int{30, 40, 20, 10}, got); diff != "" {
		t.Error(diff)
	}
	parent := record(50, orphan, func(r *scan.Record) {
		r.MemoryMB = 500
		r.Dependents = []scan.Dependent{{PID: 60, Relationship: "child"}, {PID: 70, Relationship: "descendant"}, {PID: 80, Relationship: "peer"}}
	})
	middle := record(60, orphan, func(r *scan.Record) {
		r.MemoryMB, r.Dependents = 400, []scan.Dependent{{PID: 70, Relationship: "child"}}
	})
	q := plan.Make(input(parent, middle, record(70, orphan), record(80, orphan, func(r *scan.Record) { r.MemoryMB = 450 })))
	pos := map[int]int{}
	for i, pid := range q.Recommended.PIDs {
		pos[pid] = i
	}
	if len(pos) != 4 || pos[70] > pos[60] || pos[60] > pos[50] {
		t.Errorf("%v", q.Recommended.PIDs)
	}
	if q.Recommended.Actions[0].Stage != 3 || q.Recommended.Total != 4 || q.Recommended.RecoveryMB != 1360 {
		t.Errorf("%+v", q.Recommended)
	}
}

// How many were looked at decides what is a discovery: the same process is one
// among few and none among many.
func TestLookingAtManyNeedsStrongerEvidence(t *testing.T) {
	weak := orphan
	weak.Age, weak.Sig = "", "none"
	few := plan.Make(input(record(1000, weak)))
	if !few.Find(1000).Member || few.FDR.M != 1 {
		t.Errorf("%+v", few.FDR)
	}
	records := []scan.Record{record(1000, weak)}
	for i := range 57 {
		records = append(records, record(2000+i, shell))
	}
	many := plan.Make(input(records...))
	e := many.Find(1000)
	if e.Member || e.Preselected() || e.Action != model.Kill || many.FDR.M != 58 || math.Abs(math.Exp(e.LogE)-986) > 1 {
		t.Errorf("%+v, e = %v", many.FDR, math.Exp(e.LogE))
	}
	records = append(records, record(1, shell), record(3000, orphan, func(r *scan.Record) { r.Own = "this program" }))
	guarded := plan.Make(input(records...))
	if guarded.FDR.M != 58 || guarded.Guarded(3000) == "" || guarded.Guarded(1) == "" || guarded.Find(3000) != nil || guarded.Summary.Protected != 2 {
		t.Errorf("%+v %+v", guarded.FDR, guarded.Summary)
	}
}

func TestFocusWeighsAndOrders(t *testing.T) {
	records := []scan.Record{record(1000, orphan), record(2000, shell, func(r *scan.Record) { r.Net.Ports = []int{8080} })}
	in := input(records...)
	in.Focus = plan.Focus{Port: 8080}
	p, q := plan.Make(in), plan.Make(input(records...))
	if p.Evaluated[0].PID != 2000 || q.Evaluated[0].PID != 1000 {
		t.Errorf("%d and %d first", p.Evaluated[0].PID, q.Evaluated[0].PID)
	}
	sum := 0.0
	for _, e := range p.Evaluated {
		sum += e.Weight
		if other := q.Find(e.PID); other.Posterior != e.Posterior || other.Weight != 1 {
			t.Errorf("%d: focus changes more than the order", e.PID)
		}
	}
	if math.Abs(sum/2-1) > 1e-9 || p.Find(2000).Weight <= p.Find(1000).Weight {
		t.Errorf("weights sum to %v", sum)
	}
}

// A plan is one type for everybody who reads it.
func TestPlansSurviveTheDisk(t *testing.T) {
	p := plan.Make(input(record(1000, orphan), record(2000, shell), record(1, idle)))
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var q plan.Plan
	if err := json.Unmarshal(b, &q); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, &q); diff != "" {
		t.Error(diff)
	}
}

func TestTheSameInputGivesTheSamePlan(t *testing.T) {
	make := func() string {
		b, err := json.Marshal(plan.Make(input(record(1000, orphan), record(1001, orphan), record(2000, shell), record(3000, idle), record(4000, dead))))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if first := make(); first != make() {
		t.Error("two plans differ")
	}
}

func TestQuote(t *testing.T) {
	tests := []struct {
		argv []string
		want string
	}{{[]string{"systemctl", "stop", "my-app.service"}, "systemctl stop my-app.service"}, {[]string{"pm2", "stop", "web; rm -rf x"}, "pm2 stop 'web; rm -rf x'"}, {[]string{"a", "it's", ""}, `a 'it'\''s' ''`}}
	for _, tt := range tests {
		if got := plan.Quote(tt.argv); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func context(p *plan.Plan, s *scan.Snapshot) plan.Context {
	return plan.Context{Plan: p, Snapshot: s, Priors: model.DefaultPriors(), Losses: policy.Default().Losses, Rules: model.DefaultWealth(), Budget: plan.Budget{Wealth: 0.04, UpdatedAt: at, TestsRun: 1, Rejections: 1}}
}

func card(t *testing.T, g *plan.Galaxy, id string) plan.Card {
	t.Helper()
	for _, c := range g.Cards {
		if c.ID == id {
			if c.Title == "" || len(c.Equations) == 0 || c.Intuition == "" {
				t.Errorf("%+v", c)
			}
			return c
		}
	}
	t.Fatalf("no card %s", id)
	return plan.Card{}
}

func TestCardsAreComputed(t *testing.T) {
	records := []scan.Record{record(1000, orphan), record(1500, idle), record(2000, dead)}
	for i := range 20 {
		records = append(records, record(3000+i, shell))
	}
	in := input(records...)
	p := plan.Make(in)
	c := context(p, in.Snapshot)
	c.FirstSeen = at.Add(-6 * time.Hour)
	g := c.Cards(p.Find(1000))
	if len(g.Cards) != 7 {
		t.Fatalf("%d cards", len(g.Cards))
	}
	core := card(t, g, "posterior_core").Values
	odds := math.Log(p.Find(1000).Posterior.Abandoned) - math.Log(p.Find(1000).Posterior.Useful)
	if got := core["log_odds"].(float64); math.Abs(got-odds) > 1e-9 {
		t.Errorf("log odds %v, want %v", got, odds)
	}
	h := card(t, g, "hazard_time_varying").Values
	if h["exposure_s"] != 21600.0 || h["survival_prob"].(float64) >= 0.3 || fmt.Sprint(h["regimes"]) != "[normal tty_lost orphaned io_flatline]" {
		t.Errorf("%v", h)
	}
	iv := card(t, g, "conformal_interval").Values
	if iv["valid"] != true || iv["calibration_n"] != 22 || iv["cpu_interval"] == nil {
		t.Errorf("%v", iv)
	}
	fdr := card(t, g, "e_fdr").Values
	if fdr["m_tested"] != 23 || fdr["rejected"] != true || math.Abs(fdr["e_value"].(float64)-math.Exp(fdr["log_e"].(float64))) > 1e-6 {
		t.Errorf("%v", fdr)
	}
	inv := card(t, g, "alpha_investing").Values
	if inv["current_wealth"] != 0.04 || inv["alpha_t"] != 0.02 || inv["regen_at"] != nil || inv["would_reject"] != true {
		t.Errorf("%v", inv)
	}
	voi := card(t, c.Cards(p.Find(1500)), "voi").Values
	if voi["current_loss"].(float64) <= 0 || voi["best_probe"] == nil || voi["would_change"] != true {
		t.Errorf("%v", voi)
	}
	if v := card(t, c.Cards(p.Find(2000)), "voi").Values; v["best_probe"] != nil || len(v["evsi"].(map[string]float64)) != 0 {
		t.Errorf("a zombie can be probed: %v", v)
	}
}

// With too little data the cards say so and claim nothing.
func TestCardsSayWhatIsMissing(t *testing.T) {
	in := input(record(1000, orphan), record(2000, shell))
	p := plan.Make(in)
	c := context(p, in.Snapshot)
	c.Budget.Wealth = 0.0005
	g := c.Cards(p.Find(1000))
	if v := card(t, g, "conformal_interval"); v.Values["valid"] != false || v.Values["cpu_interval"] != nil || !strings.Contains(v.Intuition, "too few") {
		t.Errorf("%+v", v)
	}
	if v := card(t, g, "conformal_class"); v.Values["valid"] != false || len(v.Values["prediction_set"].([]string)) != 4 || !strings.Contains(v.Intuition, "calibration") {
		t.Errorf("%+v", v)
	}
	if v := card(t, g, "hazard_time_varying"); v.Values["exposure_s"] != 0.0 || v.Values["survival_prob"] != 1.0 {
		t.Errorf("%+v", v)
	}
	if v := card(t, g, "alpha_investing"); v.Values["exhausted"] != true || v.Values["regen_at"] == nil {
		t.Errorf("%+v", v)
	}
	c.Scores[model.Useful] = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6}
	if v := card(t, c.Cards(p.Find(1000)), "conformal_class"); v.Values["valid"] != true || fmt.Sprint(v.Values["prediction_set"]) != "[useful_bad abandoned zombie]" {
		t.Errorf("%+v", v)
	}
	if run := c.Run(); len(run.Cards) != 2 {
		t.Errorf("%+v", run)
	}
}

func TestUncertainty(t *testing.T) {
	blind := idle
	blind.IO, blind.Queue, blind.CPUK = "", "full", nil
	r := record(1000, blind, func(r *scan.Record) {
		r.Missing = map[string]string{"io": "unreadable", "age": "younger than 60 s, not used", model.CPU: "counter went backwards"}
		r.Net.Listens = []scan.Listener{{Proto: "tcp", Port: 8080, RecvQ: 3, SendQ: 2}}
		r.Nohup = 0.7
	})
	e := plan.Make(input(r)).Find(1000)
	got := map[string]string{}
	for _, d := range e.Uncertainty.Drivers {
		got[d.Factor] = d.Note
	}
	for factor, want := range map[string]string{"io_activity": "unreadable", "age": "younger than 60 s", "queue": "queue=full: port 8080 has 3 waiting and room for 2", "cpu": "backwards", "nohup": "outlive"} {
		if !strings.Contains(got[factor], want) {
			t.Errorf("%s: %q, want %q", factor, got[factor], want)
		}
	}
	if len(e.Uncertainty.Probes) == 0 || e.Uncertainty.Probes[0].Gain < e.Uncertainty.Probes[len(e.Uncertainty.Probes)-1].Gain || e.Queues[0] != (plan.AcceptQueue{Port: 8080, RecvQ: 3, SendQ: 2, Longer: true}) {
		t.Errorf("%+v %+v", e.Uncertainty.Probes, e.Queues)
	}
}

// The zombie class is for zombies: no idle process falls into it.
func TestStatement04TheZombieClassAbsorbsNobodyIdle(t *testing.T) {
	for _, e := range []model.Evidence{orphan, idle, shell, sleepsD, {CPUK: k(0)}, {CPUK: k(0), State: "S"}, {CPUK: k(0), State: "S", Lineage: "attached", IO: "none", TTY: "no", Net: "none"}} {
		if p := plan.Make(input(record(1000, e))).Find(1000); p.Posterior.Zombie > 0.05 || p.Classification == "zombie" {
			t.Errorf("%+v: %+v", e, p.Posterior)
		}
	}
}
