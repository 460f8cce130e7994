package act

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/triage/model"
	"ghostbot/triage/pidfd"
	"ghostbot/triage/plan"
	"ghostbot/triage/policy"
	"ghostbot/triage/proc"
	"ghostbot/triage/scan"
	"ghostbot/triage/session"
)

// stand is a session with a plan about one real process, which the test started.
type stand struct {
	*testing.T
	r   *Runner
	cmd *exec.Cmd
	e   *plan.Evaluated
	now map[int]*scan.Record
}

func newStand(t *testing.T, argv ...string) *stand {
	t.Helper()
	if len(argv) == 0 {
		argv = []string{"sleep", "60"}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() { cmd.Wait(); close(reaped) }()
	t.Cleanup(func() { cmd.Process.Kill(); <-reaped })
	time.Sleep(30 * time.Millisecond) // until it is what it executes
	f := proc.Default()
	h, err := f.Machine()
	if err != nil {
		t.Skip(err)
	}
	id, _, err := f.Identity(h, cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	store, err := session.OpenStore(filepath.Join(t.TempDir(), "triage"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	x, err := store.Create(session.Manifest{HostID: h.Name, BootID: h.BootID, PIDNS: h.PIDNS, Mode: "local"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	p := &plan.Plan{Evaluated: []plan.Evaluated{{Identity: id, Names: []string{"sleep"}, AgeS: 3600, LogE: 12, Member: true, Evidence: model.Evidence{State: "S"}, Cgroup: []string{"/x"}}}}
	e := &p.Evaluated[0]
	e.Candidate = plan.Candidate{PID: id.PID, StartID: id.StartID, UID: id.UID, PPID: os.Getpid(), CmdShort: "sleep 60", Action: model.Kill, Posterior: plan.Posterior{Abandoned: 0.999, Useful: 0.001}, Blast: plan.Blast{MemoryMB: 10, Risk: "none"}}
	p.Recommended.Actions = []plan.Action{{Target: plan.Target{PID: id.PID, StartID: id.StartID}, Action: model.Kill, Stage: 3}}
	pol := policy.Default()
	pol.Robot.Enabled, pol.Robot.MinPosterior = true, 0.9
	s := &stand{T: t, cmd: cmd, e: e, now: map[int]*scan.Record{id.PID: {Identity: id, Names: []string{"sleep"}, AgeS: 3600}}}
	s.r = &Runner{
		FS: f, Host: h, UID: os.Geteuid(), Policy: pol, Priors: model.DefaultPriors(), Rules: model.DefaultWealth(), Store: store, Session: x, Plan: p,
		Redact: func(s string) string { return s }, Look: func(context.Context) (map[int]*scan.Record, error) { return s.now, nil }, Hold: pidfd.Open, Uptime: scan.Uptime(f),
	}
	if err := x.Put("plan.json", p); err != nil {
		t.Fatal(err)
	}
	if err := x.Move(session.Planned); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stand) run(o Options) *Result {
	s.Helper()
	if o.Grace == 0 {
		o.Grace = time.Second
	}
	if !o.Recommended && o.Targets == nil && !o.Resume {
		o.PIDs = []int{s.e.PID}
	}
	o.MaxKills = -1
	results, err := s.r.Run(s.Context(), o)
	if err != nil {
		s.Fatal(err)
	}
	if len(results) != 1 {
		s.Fatalf("%+v", results)
	}
	return &results[0]
}

func (s *stand) alive(want bool) {
	s.Helper()
	st, err := s.r.FS.Stat(s.e.PID)
	if got := err == nil && st.State != 'Z'; got != want {
		s.Errorf("alive: %v, want %v", got, want)
	}
}

func (s *stand) approve(a Approval) Options {
	s.Helper()
	a.Target = plan.Target{PID: s.e.PID, StartID: s.e.StartID}
	if a.Action == "" {
		a.Action = model.Kill
	}
	if a.Expires.IsZero() {
		a.Expires = time.Now().Add(time.Hour)
	}
	id, err := Approve(s.r.Session, a)
	if err != nil {
		s.Fatal(err)
	}
	return Options{Approval: id}
}

var one, two = []string{"U1"}, []string{"U1", "U2"}

// Every gate stops what it is for, the gates are evaluated in their order, and
// what was stopped is alive.
func TestGates(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*stand)
		options func(*stand) Options
		outcome string
		reason  string
		code    string
		last    string // the last gate
	}{
		{"nothing stops it", nil, nil, "success", "", "", "fdr_budget"},
		{"start time", func(s *stand) { s.e.Identity.StartID += "0" }, nil, "blocked", "identity_valid", IdentityMismatch, "identity_valid"},
		{"user", func(s *stand) { s.e.Identity.UID++ }, nil, "blocked", "uid", IdentityMismatch, "identity_valid"},
		{"executable", func(s *stand) { s.e.Identity.ExeIno++ }, nil, "blocked", "exe or cmdline", IdentityMismatch, "identity_valid"},
		{"command line", func(s *stand) { s.e.Identity.CmdHash = "x" }, nil, "blocked", "exe or cmdline", IdentityMismatch, "identity_valid"},
		{"namespace", func(s *stand) { s.e.Identity.PIDNS = "x" }, nil, "blocked", "pid namespace", IdentityMismatch, "identity_valid"},
		{"protected by now", func(s *stand) { s.now[s.e.PID].Own = "this program" }, nil, "blocked", "not_protected", ProtectedProcess, "not_protected"},
		{"login by now", func(s *stand) { s.now[s.e.PID].LoginChain = true }, nil, "blocked", "not_protected", ProtectedProcess, "not_protected"},
		{"not seen any more", func(s *stand) { delete(s.now, s.e.PID) }, nil, "blocked", "not_protected", ProtectedProcess, "not_protected"},
		{"name is protected", func(s *stand) { s.e.Names = []string{"nginx"} }, nil, "blocked", "not_protected", ProtectedProcess, "not_protected"},
		{"recommended but protected", func(s *stand) { s.e.Names = []string{"nginx"} }, func(*stand) Options { return Options{Recommended: true} }, "skipped", "not_protected", ProtectedProcess, "not_protected"},
		{"young", func(s *stand) { s.e.AgeS = 10 }, nil, "blocked", "minimum age", GateFailed, "not_protected"},
		{"another user's", func(s *stand) { s.r.UID, s.e.Identity.UID = 4242, s.e.UID }, nil, "blocked", "privilege_blocked", GateFailed, "not_protected"},
		{"supervised", func(s *stand) { s.e.Supervisor.Detected = true }, nil, "blocked", "supervisor_check", GateFailed, "supervisor_check"},
		{"not likely enough", func(s *stand) { s.e.Posterior = plan.Posterior{Useful: 0.2, Abandoned: 0.8} }, nil, "skipped", "posterior_threshold 0.9", GateFailed, "posterior_threshold"},
		{"useful for certain", func(s *stand) { s.e.Posterior = plan.Posterior{Useful: 0.999, Abandoned: 0.001} }, nil, "skipped", "posterior_threshold", GateFailed, "posterior_threshold"},
		{"the flag is stricter", nil, func(*stand) Options { return Options{MinPosterior: 0.9999} }, "skipped", "posterior_threshold 0.9999", GateFailed, "posterior_threshold"},
		{"the flag cannot be laxer", func(s *stand) { s.e.Posterior = plan.Posterior{Useful: 0.2, Abandoned: 0.8} }, func(*stand) Options { return Options{MinPosterior: 0.1} }, "skipped", "posterior_threshold 0.9", GateFailed, "posterior_threshold"},
		{"signature wanted", nil, func(*stand) Options { return Options{KnownSignature: true} }, "skipped", "require_known_signature", GateFailed, "posterior_threshold"},
		{"risk was high", func(s *stand) { s.e.Blast.Risk = "high" }, nil, "blocked", "risk is high", GateFailed, "blast_radius_limit"},
		{"risk is high by now", func(s *stand) { s.now[s.e.PID].Net.Inbound = 1 }, nil, "blocked", "risk is high", GateFailed, "blast_radius_limit"},
		{"writes by now", func(s *stand) { s.now[s.e.PID].Files.Writes = []scan.WriteFile{{FD: 3}} }, nil, "blocked", "files open for writing", GateFailed, "blast_radius_limit"},
		{"holds a lock by now", func(s *stand) { s.now[s.e.PID].Files.Locks = 1 }, nil, "blocked", "lock", GateFailed, "blast_radius_limit"},
		{"too large", nil, func(*stand) Options { return Options{MaxBlastMB: 9} }, "skipped", "max_blast_radius", GateFailed, "blast_radius_limit"},
		{"no kill allowed", func(s *stand) { s.r.Policy.Guardrails.KillsPerRun = 0 }, nil, "skipped", "max_kills 0", GateFailed, "blast_radius_limit"},
		{"no kill allowed in an hour", func(s *stand) { s.r.Policy.Guardrails.KillsPerHour = 0 }, nil, "skipped", "max_kills_per_hour", GateFailed, "blast_radius_limit"},
		{"no discovery", func(s *stand) { s.e.Member = false }, nil, "skipped", "fdr_budget", GateFailed, "fdr_budget"},
		{"the budget is too small for it", func(s *stand) { s.e.LogE = math.Log(10) }, nil, "skipped", "fdr_budget", BudgetExhausted, "fdr_budget"},
		{"zombie", func(s *stand) { s.e.Evidence.State = "D" }, nil, "blocked", "uninterruptible", GateFailed, "not_protected"},
		{"paused though it serves", func(s *stand) { s.now[s.e.PID].Evidence.Net = "listen_idle" }, func(*stand) Options { return Options{Action: model.Pause} }, "blocked", "serves", GateFailed, "not_protected"},
		{"continued though others stopped it", nil, func(*stand) Options { return Options{Action: model.Resume} }, "blocked", "not stopped by this program", GateFailed, "not_protected"},
		{"throttle without a cgroup", nil, func(*stand) Options { return Options{Action: model.Throttle} }, "failed", "cgroup", GateFailed, "not_protected"},
		{"restart without a supervisor", nil, func(*stand) Options { return Options{Action: model.Restart} }, "failed", "supervisor", GateFailed, "not_protected"},
		{"restart without a person", func(s *stand) { s.e.Restart = []string{"systemctl", "restart", "x"} }, func(*stand) Options { return Options{Action: model.Restart} }, "blocked", "approval", GateFailed, "supervisor_check"},

		{"approved is another action, and robot mode is off", func(s *stand) { s.r.Policy.Robot.Enabled = false }, func(s *stand) Options { return s.approve(Approval{Approvers: two, Action: model.Pause}) }, "blocked", "robot mode is off", GateFailed, "posterior_threshold"},
		{"approved, and robot mode is off", func(s *stand) { s.r.Policy.Robot.Enabled = false }, func(s *stand) Options { return s.approve(Approval{Approvers: one}) }, "success", "", "", "fdr_budget"},
		{"approved: supervised", func(s *stand) { s.e.Supervisor.Detected = true }, func(s *stand) Options { return s.approve(Approval{Approvers: one}) }, "success", "", "", "fdr_budget"},
		{"approved: less likely", func(s *stand) { s.e.Posterior = plan.Posterior{Useful: 0.4, Abandoned: 0.6} }, func(s *stand) Options { return s.approve(Approval{Approvers: one}) }, "success", "", "", "fdr_budget"},
		{"approved: rather useful", func(s *stand) { s.e.Posterior = plan.Posterior{Useful: 0.6, Abandoned: 0.4} }, func(s *stand) Options { return s.approve(Approval{Approvers: one}) }, "skipped", "posterior_threshold 0.5", GateFailed, "posterior_threshold"},
		{"approved: rather useful, and they saw it", func(s *stand) { s.e.Posterior = plan.Posterior{Useful: 0.6, Abandoned: 0.4} }, func(s *stand) Options { return s.approve(Approval{Approvers: one, Unlikely: true}) }, "success", "", "", "fdr_budget"},
		{"approved by one: high risk", func(s *stand) { s.e.Blast.Risk = "critical" }, func(s *stand) Options { return s.approve(Approval{Approvers: one}) }, "blocked", "second approver", GateFailed, "blast_radius_limit"},
		{"approved by two: high risk", func(s *stand) { s.e.Blast.Risk = "critical" }, func(s *stand) Options { return s.approve(Approval{Approvers: two}) }, "success", "", "", "fdr_budget"},
		{"approved: data", func(s *stand) { s.e.Reversibility.AtRisk = true }, func(s *stand) Options { return s.approve(Approval{Approvers: two}) }, "blocked", "data at risk", GateFailed, "blast_radius_limit"},
		{"approved with the loss: data", func(s *stand) { s.e.Reversibility.AtRisk = true }, func(s *stand) Options { return s.approve(Approval{Approvers: two, AcceptLoss: true}) }, "success", "", "", "fdr_budget"},
		{"approved: no discovery", func(s *stand) { s.e.Member = false }, func(s *stand) Options { return s.approve(Approval{Approvers: one}) }, "success", "", "", "fdr_budget"},
		{"approved: protected all the same", func(s *stand) { s.e.Names = []string{"sshd"} }, func(s *stand) Options { return s.approve(Approval{Approvers: two}) }, "blocked", "not_protected", ProtectedProcess, "not_protected"},
		{"approved: another process all the same", func(s *stand) { s.e.Identity.CmdHash = "x" }, func(s *stand) Options { return s.approve(Approval{Approvers: two}) }, "blocked", "cmdline", IdentityMismatch, "identity_valid"},
		{"approved: another action", func(s *stand) { s.e.Supervisor.Detected = true }, func(s *stand) Options { return s.approve(Approval{Approvers: two, Action: model.Pause}) }, "blocked", "supervisor_check", GateFailed, "supervisor_check"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStand(t)
			if tt.change != nil {
				tt.change(s)
			}
			var o Options
			if tt.options != nil {
				o = tt.options(s)
			}
			res := s.run(o)
			if res.Outcome != tt.outcome || !strings.Contains(res.Reason, tt.reason) {
				t.Errorf("%s, %q; want %s, %q", res.Outcome, res.Reason, tt.outcome, tt.reason)
			}
			if tt.code != "" && (res.Error == nil || res.Error.Code != tt.code) {
				t.Errorf("error %+v, want %s", res.Error, tt.code)
			}
			for i, g := range res.Gates {
				if g.Gate != plan.Gates[i] {
					t.Errorf("gate %d is %s, want %s", i, g.Gate, plan.Gates[i])
				}
			}
			if n := len(res.Gates); n == 0 || res.Gates[n-1].Gate != tt.last {
				t.Errorf("gates %+v, want %s last", res.Gates, tt.last)
			}
			if res.AuditID == "" {
				t.Error("no audit id")
			}
			s.alive(tt.outcome != "success")
			if state := s.r.Session.Manifest.State; tt.outcome != "success" && state != session.Planned {
				t.Errorf("nothing happened, and the session is %s", state)
			}
		})
	}
}

// Without process descriptors nothing is signalled.
func TestNoDescriptorsNoSignals(t *testing.T) {
	for _, err := range []error{pidfd.ErrUnsupported, pidfd.ErrRefused, errors.New("too many open files")} {
		s := newStand(t)
		s.r.Hold = func(int) (*pidfd.Handle, error) { return nil, err }
		if res := s.run(Options{}); res.Outcome != "blocked" || res.Error == nil {
			t.Errorf("%v: %+v", err, res)
		}
		s.alive(true)
	}
	s := newStand(t)
	s.r.Hold = func(int) (*pidfd.Handle, error) { return nil, fmt.Errorf("x: %w", pidfd.ErrGone) }
	if res := s.run(Options{}); res.Outcome != "skipped" || res.Reason != "process_gone" {
		t.Errorf("%+v", res)
	}
	s.alive(true)
}

// Nothing is signalled that was not announced: a session that takes no line has
// no effect.
func TestNoAuditLineNoEffect(t *testing.T) {
	s := newStand(t)
	if err := os.WriteFile(filepath.Join(s.r.Session.Path(), "audit.jsonl"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.r.Run(t.Context(), Options{PIDs: []int{s.e.PID}, MaxKills: -1}); !errors.Is(err, session.ErrBroken) {
		t.Errorf("%v", err)
	}
	s.alive(true)
}

// What was stopped here can be continued here.
func TestPauseAndResume(t *testing.T) {
	s := newStand(t)
	if res := s.run(Options{Action: model.Pause}); res.Outcome != "success" {
		t.Fatalf("%+v", res)
	}
	if st, err := s.r.FS.Stat(s.e.PID); err != nil || st.State != 'T' {
		t.Fatalf("%c, %v", st.State, err)
	}
	x, err := s.r.Store.Create(session.Manifest{HostID: s.r.Host.Name, BootID: s.r.Host.BootID, PIDNS: s.r.Host.PIDNS, Mode: "local"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := errors.Join(x.Put("plan.json", s.r.Plan), x.Move(session.Planned)); err != nil {
		t.Fatal(err)
	}
	s.r.Session, s.r.out = x, Outcomes{}
	if res := s.run(Options{Action: model.Resume}); res.Outcome != "success" {
		t.Fatalf("%+v", res)
	}
	if st, err := s.r.FS.Stat(s.e.PID); err != nil || st.State == 'T' {
		t.Errorf("%c, %v", st.State, err)
	}
	v, list, _, err := s.r.Verify(t.Context(), 0)
	if err != nil || v.Status != "success" || list[0].Outcome != "still_running" {
		t.Errorf("%+v %+v, %v", v, list, err)
	}
	s.alive(true)
}

// A resumed run is held to the policy of now.
func TestRobotModeOffStopsResumedRuns(t *testing.T) {
	s := newStand(t)
	s.r.Policy.Robot.Enabled = false
	for range 2 {
		if _, err := s.r.Run(t.Context(), Options{PIDs: []int{s.e.PID}, MaxKills: -1}); !errors.Is(err, ErrRobot) {
			t.Errorf("%v", err)
		}
		if err := s.r.Session.Checkpoint(Outcomes{SchemaVersion: session.SchemaVersion, Steps: []Step{step(s.e, model.Kill, true)}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.r.Run(t.Context(), Options{Resume: true}); !errors.Is(err, ErrRobot) {
			t.Errorf("resumed: %v", err)
		}
	}
	s.alive(true)
}

func TestDryRunHasNoTrace(t *testing.T) {
	s := newStand(t)
	if res := s.run(Options{DryRun: true}); res.Outcome != "skipped" || res.Reason != "dry_run" || len(res.Gates) != 6 {
		t.Errorf("%+v", res)
	}
	s.alive(true)
	if entries, _, _, err := s.r.Session.Audit(); err != nil || len(entries) != 0 || s.r.Session.Manifest.State != session.Planned {
		t.Errorf("%v %v %s", entries, err, s.r.Session.Manifest.State)
	}
}

func TestApprovalsAreChecked(t *testing.T) {
	s := newStand(t)
	for name, a := range map[string]Approval{"nobody": {Expires: time.Now().Add(time.Hour), Target: plan.Target{StartID: "x"}}, "for ever": {Approvers: one, Target: plan.Target{StartID: "x"}}, "about nothing": {Approvers: one, Expires: time.Now()}} {
		if _, err := Approve(s.r.Session, a); err == nil {
			t.Errorf("%s is recorded", name)
		}
	}
	old := s.approve(Approval{Approvers: two, Expires: time.Now().Add(-time.Second)})
	line, err := s.r.Session.Append("intent", map[string]any{"approvers": two})
	if err != nil {
		t.Fatal(err)
	}
	good := s.approve(Approval{Approvers: two})
	s.r.Plan.PolicyHash = "another"
	if err := s.r.Session.Put("plan.json", s.r.Plan); err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{"expired": old.Approval, "no approval": line, "unknown": "ghost_x", "about another plan": good.Approval} {
		if _, err := s.r.Run(t.Context(), Options{PIDs: []int{s.e.PID}, Approval: id, MaxKills: -1}); !errors.Is(err, ErrApproval) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.alive(true)
}

// A command of a supervisor runs once, with the words of the approval.
func TestRestartGoesThroughTheGate(t *testing.T) {
	s := newStand(t)
	s.e.Restart = []string{"systemctl", "restart", "my-app.service"}
	var ran [][]string
	s.r.Command = func(_ context.Context, argv []string, by, why string) (string, int, error) {
		ran = append(ran, append(argv, by))
		return "done", 0, nil
	}
	o := s.approve(Approval{Approvers: two, Action: model.Restart})
	o.Action = model.Restart
	s.e.Posterior.UsefulBad = 0.9
	if res := s.run(o); res.Outcome != "success" {
		t.Errorf("%+v", res)
	}
	if diff := cmp.Diff([][]string{{"systemctl", "restart", "my-app.service", "U1, U2"}}, ran); diff != "" {
		t.Error(diff)
	}
	s.alive(true)
	for name, f := range map[string]func(context.Context, []string, string, string) (string, int, error){
		"exit 5": func(context.Context, []string, string, string) (string, int, error) { return "no such unit", 5, nil },
		"gate: denied": func(context.Context, []string, string, string) (string, int, error) {
			return "", 0, errors.New("gate: denied")
		},
	} {
		s := newStand(t)
		s.e.Restart, s.r.Command = []string{"systemctl", "restart", "x"}, f
		o := s.approve(Approval{Approvers: two, Action: model.Restart})
		o.Action = model.Restart
		if res := s.run(o); res.Outcome != "failed" || !strings.Contains(res.Reason, name) {
			t.Errorf("%s: %+v", name, res)
		}
	}
}

// A deadline within the grace is an interruption; what is resumed does not send
// TERM again.
func TestInterruptionAndResume(t *testing.T) {
	s := newStand(t, "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if _, err := s.r.Run(ctx, Options{PIDs: []int{s.e.PID}, Grace: 300 * time.Millisecond, MaxKills: -1}); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	if s.r.Session.Manifest.State != session.Interrupted {
		t.Fatal(s.r.Session.Manifest.State)
	}
	s.alive(true)
	again := *s.r
	again.out, again.kills, again.spentMB = Outcomes{}, 0, 0
	results, err := again.Run(t.Context(), Options{Resume: true})
	if err != nil || len(results) != 1 || results[0].Outcome != "success" {
		t.Fatalf("%+v, %v", results, err)
	}
	entries, _, _, _ := s.r.Session.Audit()
	var effects []string
	for _, e := range entries {
		var in intent
		if e.Kind == "intent" && unmarshal(e.Body, &in) == nil {
			effects = append(effects, in.Effect)
		}
	}
	if diff := cmp.Diff([]string{"TERM", "KILL"}, effects); diff != "" {
		t.Error(diff)
	}
	s.alive(false)
}

// retitler is a process that answers TERM with a new title, and then does what
// is said.
func retitler(t *testing.T, then string) *stand {
	t.Helper()
	if _, err := exec.LookPath("perl"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("perl rewrites its title: ", err)
	}
	return newStand(t, "perl", "-e", `$SIG{TERM} = sub { $0 = "shutting down"; `+then+` }; select(undef, undef, undef, 1) while 1`)
}

// cut runs until the deadline within the grace of TERM, and leaves a runner that
// knows only what is on disk.
func (s *stand) cut(o Options) {
	s.Helper()
	ctx, stop := context.WithTimeout(s.Context(), 150*time.Millisecond)
	defer stop()
	o.PIDs, o.MaxKills, o.Grace = []int{s.e.PID}, -1, 300*time.Millisecond
	if _, err := s.r.Run(ctx, o); !errors.Is(err, ErrInterrupted) {
		s.Fatal(err)
	}
	s.r.out, s.r.kills, s.r.spentMB = Outcomes{}, 0, 0
}

// A process that only rewrites its title is the same process: it still runs, and
// the run that is resumed goes on with it.
func TestATitleIsNoIdentityAfterTerm(t *testing.T) {
	s := retitler(t, "")
	s.cut(Options{})
	if now, _, err := s.r.FS.Identity(s.r.Host, s.e.PID); err != nil || s.e.Identity.Differs(now) != "cmdline" {
		t.Fatalf("%+v, %v: the title is the old one", now, err)
	}
	for _, unique := range []uint64{s.e.Identity.Unique, 0} { // with and without inodes of descriptors
		s.r.out = Outcomes{}
		if _, err := s.r.Session.Outcomes(&s.r.out); err != nil {
			t.Fatal(err)
		}
		s.r.out.Steps[0].Identity.Unique = unique
		if list := s.r.judge(s.r.executed()); len(list) != 1 || list[0].Outcome != "still_running" || overall(list) != "failure" {
			t.Errorf("unique %d: %+v", unique, list)
		}
	}
	v, list, _, err := s.r.Verify(t.Context(), 0)
	if err != nil || v.Status != "failure" || list[0].Outcome != "still_running" {
		t.Errorf("%+v %+v, %v", v, list, err)
	}
	s.r.out = Outcomes{}
	if res := s.run(Options{Resume: true}); res.Outcome != "success" {
		t.Errorf("%+v", res)
	}
	s.alive(false)
}

// Before the first signal a new title is a mismatch, and so is after it whatever
// else differs.
func TestOtherIdentitiesStayStrict(t *testing.T) {
	tests := []struct {
		name    string
		signals []string
		change  func(*proc.Identity)
		want    string
	}{
		{"title, nothing sent", nil, func(i *proc.Identity) { i.CmdHash = "x" }, "cmdline"},
		{"title, a limit set", []string{"cpu.max 1 2"}, func(i *proc.Identity) { i.CmdHash = "x" }, "cmdline"},
		{"title after TERM", []string{"TERM"}, func(i *proc.Identity) { i.CmdHash = "x" }, ""},
		{"start after TERM", []string{"TERM"}, func(i *proc.Identity) { i.StartID += "0" }, "start_id"},
		{"executable after TERM", []string{"TERM"}, func(i *proc.Identity) { i.ExeIno, i.CmdHash = 1, "x" }, "exe"},
		{"user after TERM", []string{"TERM"}, func(i *proc.Identity) { i.UID++ }, "uid"},
		{"namespace after TERM", []string{"TERM"}, func(i *proc.Identity) { i.PIDNS = "pid:[1]" }, "pid namespace"},
		{"descriptor after TERM", []string{"TERM"}, func(i *proc.Identity) { i.Unique, i.CmdHash = 1, "x" }, "cmdline"},
	}
	s := newStand(t)
	for _, tt := range tests {
		x := step(s.e, model.Kill, true)
		x.Signals = tt.signals
		tt.change(&x.Identity)
		res := &Result{}
		_, ok := s.r.identify(&x, res)
		if ok != (tt.want == "") || !ok && res.Error.Details["differs"] != tt.want {
			t.Errorf("%s: %v %+v, want %q", tt.name, ok, res, tt.want)
		}
	}
}

// What obeys TERM while nobody looks is done, not skipped, and is verified, with
// or without a resumed run.
func TestGoneAfterTheInterruption(t *testing.T) {
	for _, resume := range []bool{true, false} {
		s := retitler(t, "select(undef, undef, undef, 0.4); exit 0")
		s.cut(Options{})
		for range 300 {
			if _, err := s.r.FS.Stat(s.e.PID); err != nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if resume {
			if res := s.run(Options{Resume: true, DryRun: true}); res.Outcome != "skipped" {
				t.Errorf("dry run: %+v", res)
			}
			s.r.out = Outcomes{}
			if res := s.run(Options{Resume: true}); res.Outcome != "success" || res.AuditID == "" || !strings.Contains(res.Reason, "after TERM") {
				t.Errorf("%+v", res)
			}
			if s.r.Session.Manifest.State != session.Completed {
				t.Error(s.r.Session.Manifest.State)
			}
		}
		s.r.out = Outcomes{}
		v, list, _, err := s.r.Verify(t.Context(), 0)
		if err != nil || v.Status != "success" || len(list) != 1 || list[0].Outcome != "confirmed_dead" || list[0].DeathMS != nil {
			t.Errorf("resumed %v: %+v %+v, %v", resume, v, list, err)
		}
	}
}

// Flags beside --resume never vanish: the same words go on, others are refused
// before anything happens.
func TestAResumedRunTakesNoOtherWords(t *testing.T) {
	s := newStand(t, "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
	s.cut(Options{MinPosterior: 0.95})
	for name, o := range map[string]Options{
		"grace": {Grace: time.Hour}, "min-posterior": {MinPosterior: 0.99}, "max-kills": {MaxKills: 0}, "max-blast-radius": {MaxBlastMB: 1}, "action": {Action: model.Pause},
		"pids": {PIDs: []int{1}}, "targets": {Targets: []plan.Target{{PID: 1}}}, "recommended": {Recommended: true}, "require-known-signature": {KnownSignature: true},
	} {
		o.Resume, o.Given = true, []string{"session", "resume", name}
		if _, err := s.r.Run(t.Context(), o); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "--"+name+":") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.alive(true)
	s.r.out = Outcomes{}
	if res := s.run(Options{Resume: true, MinPosterior: 0.95, Grace: 300 * time.Millisecond, Given: []string{"min-posterior", "grace", "max-kills"}}); res.Outcome != "success" {
		t.Errorf("%+v", res)
	}
	s.alive(false)
}

// What was said explicitly holds for a run that people approved too.
func TestAnApprovalLoosensNoFlag(t *testing.T) {
	for name, o := range map[string]Options{"posterior_threshold 0.9999": {MinPosterior: 0.9999}, "require_known_signature": {KnownSignature: true}, "max_blast_radius 9 MB": {MaxBlastMB: 9}} {
		s := newStand(t)
		o.Approval = s.approve(Approval{Approvers: two, Unlikely: true, AcceptLoss: true}).Approval
		if res := s.run(o); res.Outcome != "skipped" || !strings.Contains(res.Reason, name) {
			t.Errorf("%s: %+v", name, res)
		}
		s.alive(true)
	}
}

// Every signal has its line before it, also the one that wakes a stopped process.
func TestContHasItsLine(t *testing.T) {
	s := newStand(t)
	s.cmd.Process.Signal(syscall.SIGSTOP)
	if res := s.run(Options{}); res.Outcome != "success" {
		t.Fatalf("%+v", res)
	}
	if diff := cmp.Diff([]string{"TERM", "CONT"}, s.r.out.Steps[0].Signals); diff != "" {
		t.Error(diff)
	}
}

// Resuming what is complete does nothing, and so does resuming what was not
// begun.
func TestResumeOfNothing(t *testing.T) {
	s := newStand(t)
	if _, err := s.r.Run(t.Context(), Options{Resume: true}); !errors.Is(err, session.ErrTransition) {
		t.Errorf("not begun: %v", err)
	}
	s.alive(true)
	if res := s.run(Options{}); res.Outcome != "success" {
		t.Fatalf("%+v", res)
	}
	again := *s.r
	again.out = Outcomes{}
	results, err := again.Run(t.Context(), Options{Resume: true})
	if err != nil || len(results) != 1 || results[0].Reason != "already_completed" {
		t.Errorf("%+v, %v", results, err)
	}
}

// Whenever the tool ends, what it had begun can be resumed: the checkpoint is
// there before the first line that announces an effect.
func TestTheCheckpointComesBeforeTheFirstAnnouncement(t *testing.T) {
	s := newStand(t)
	log := filepath.Join(s.r.Session.Path(), "audit.jsonl")
	s.r.out = Outcomes{Steps: []Step{{Target: plan.Target{PID: s.e.PID, StartID: s.e.StartID}}}}
	if err := os.Mkdir(log, 0o700); err != nil { // so that no line can be written
		t.Fatal(err)
	}
	if err := s.r.announce(&s.r.out.Steps[0], s.e, "TERM", nil, &Result{}); err == nil {
		t.Fatal("the line was written into a directory")
	}
	var out Outcomes
	if found, err := s.r.Session.Outcomes(&out); !found || err != nil || len(out.Steps) != 1 || s.r.Session.Manifest.State != session.Executing {
		t.Errorf("found %v, %v, %+v, %s", found, err, out, s.r.Session.Manifest.State)
	}
}

func TestOverall(t *testing.T) {
	o := func(a model.Action, s string) Outcome { return Outcome{Action: a, Outcome: s} }
	tests := []struct {
		list []Outcome
		want string
	}{
		{[]Outcome{o(model.Kill, "confirmed_dead")}, "success"},
		{[]Outcome{o(model.Kill, "confirmed_dead"), o(model.Kill, "still_running")}, "partial_success"},
		{[]Outcome{o(model.Kill, "respawned")}, "failure"},
		{[]Outcome{o(model.Pause, "confirmed_stopped"), o(model.Resume, "still_running")}, "success"},
		{[]Outcome{o(model.Pause, "still_running")}, "failure"},
		{[]Outcome{o(model.Kill, "timeout")}, "failure"},
		{[]Outcome{o(model.Kill, "confirmed_dead"), {Outcome: "cascaded", cascading: true}}, "success"},
	}
	for _, tt := range tests {
		if got := overall(tt.list); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.list, got, tt.want)
		}
	}
}

// Everything that was said of a process has to hold, in whatever order and beside
// whatever else it was said; and no process is listed twice.
func TestOneWrongStartIDStops(t *testing.T) {
	s := newStand(t)
	right, wrong := plan.Target{PID: s.e.PID, StartID: s.e.StartID}, plan.Target{PID: s.e.PID, StartID: "bogus"}
	pids := []int{s.e.PID}
	for _, o := range []Options{
		{Targets: []plan.Target{wrong}}, {Targets: []plan.Target{wrong}, PIDs: pids}, {Targets: []plan.Target{wrong, right}}, {Targets: []plan.Target{right, wrong}},
		{Targets: []plan.Target{wrong}, Recommended: true}, {Targets: []plan.Target{right, wrong}, PIDs: pids, Recommended: true},
	} {
		s.r.out = Outcomes{}
		if res := s.run(o); res.Outcome != "blocked" || res.Error.Code != IdentityMismatch || res.Target != wrong {
			t.Errorf("%+v: %+v", o, res)
		}
	}
	s.alive(true)
	for _, o := range []Options{{Targets: []plan.Target{right, right}, PIDs: pids}, {Recommended: true, PIDs: pids}, {Recommended: true, Targets: []plan.Target{right}}} {
		if list := s.r.steps(o); len(list) != 1 || list[0].Target != right || !list[0].Named {
			t.Errorf("%+v: %+v", o, list)
		}
	}
}

// A session that cannot be brought to its end, or that is not about here and now,
// is refused before any signal.
func TestNoRunBeginsThere(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*session.Manifest)
		want   error
	}{
		"created":           {func(m *session.Manifest) { m.State = session.Created }, session.ErrTransition},
		"failed":            {func(m *session.Manifest) { m.State = session.Failed }, session.ErrTransition},
		"completed":         {func(m *session.Manifest) { m.State = session.Completed }, session.ErrTransition},
		"interrupted":       {func(m *session.Manifest) { m.State = session.Interrupted }, session.ErrTransition},
		"nonsense":          {func(m *session.Manifest) { m.State = "nonsense" }, session.ErrTransition},
		"another host":      {func(m *session.Manifest) { m.HostID = "elsewhere" }, ErrForeign},
		"another boot":      {func(m *session.Manifest) { m.BootID = "x" }, ErrForeign},
		"another namespace": {func(m *session.Manifest) { m.PIDNS = "x" }, ErrForeign},
		"no namespace":      {func(m *session.Manifest) { m.PIDNS = "" }, ErrForeign},
	} {
		s := newStand(t)
		tt.change(&s.r.Session.Manifest)
		for _, dry := range []bool{false, true} {
			if _, err := s.r.Run(t.Context(), Options{Recommended: true, MaxKills: -1, DryRun: dry}); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, _, _, err := s.r.Verify(t.Context(), 0); err == nil {
			t.Errorf("%s: it is verified", name)
		}
		s.alive(true)
	}
	s := newStand(t)
	if err := s.r.Session.Checkpoint(Outcomes{SchemaVersion: "2.0.0"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.r.Run(t.Context(), Options{Recommended: true, MaxKills: -1}); !errors.Is(err, session.ErrVersion) {
		t.Errorf("%v", err)
	}
	s.alive(true)
}

// Only what was done, or needs no doing any more, is called completed.
func TestARepeatTellsWhatWasRefused(t *testing.T) {
	s := newStand(t)
	refused := step(s.e, model.Kill, false)
	refused.Status, refused.Result = "done", &Result{Target: refused.Target, Action: model.Kill, Outcome: "skipped", Reason: "blast_radius_limit: max_kills 1", Gates: []Gate{}}
	if done, not := refused.Ended(); done || !not {
		t.Error("it counts as completed")
	}
	if err := s.r.Session.Checkpoint(Outcomes{SchemaVersion: session.SchemaVersion, Steps: []Step{refused}}); err != nil {
		t.Fatal(err)
	}
	s.r.Session.Manifest.State = session.Completed
	if res := s.run(Options{Recommended: true}); res.Outcome != "skipped" || !strings.Contains(res.Reason, "max_kills 1") {
		t.Errorf("%+v", res)
	}
	if _, err := s.r.Run(t.Context(), Options{PIDs: []int{s.e.PID}, Action: model.Pause, MaxKills: -1}); !errors.Is(err, session.ErrTransition) {
		t.Errorf("another action: %v", err)
	}
	s.alive(true)
	s.cmd.Process.Kill()
	for range 100 {
		if _, err := s.r.FS.Stat(s.e.PID); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if res := s.run(Options{Recommended: true}); res.Reason != "process_gone" {
		t.Errorf("%+v", res)
	}
}
