package triage_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ghostbot/triage"
	"ghostbot/triage/act"
	"ghostbot/triage/plan"
	"ghostbot/triage/scan"
	"ghostbot/triage/session"
)

func open(t *testing.T, change ...func(*triage.Options)) *triage.Engine {
	t.Helper()
	o := triage.Options{Dir: filepath.Join(t.TempDir(), "triage"), Redact: func(s string) string { return s }, Window: 200 * time.Millisecond}
	for _, c := range change {
		c(&o)
	}
	e, err := triage.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func config(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestConfiguration(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"policy": {"policy.json": "{"}, "priors": {"priors.json": "{}"}, "signatures": {"signatures.json": "{}"}, "UTF-16": {"policy.json": "\xff\xfe{\x00}\x00"}, "unknown user": {"policy.json": `{"guardrails":{"protected_users":["nobody-we-know"]}}`},
	} {
		if _, err := triage.Open(triage.Options{Dir: t.TempDir(), Config: config(t, files)}); !errors.Is(err, triage.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := triage.Open(triage.Options{Dir: t.TempDir(), Config: "/nowhere"}); !errors.Is(err, triage.ErrConfig) {
		t.Errorf("no directory: %v", err)
	}
	dir := config(t, map[string]string{"config.json": "\ufeff" + `{"policy":{"robot_mode":{"enabled":true}}}`, "signatures.json": `[{"name":"x","program":"x","class":"none"}]`})
	e := open(t, func(o *triage.Options) { o.Config = dir })
	if !e.Policy.Robot.Enabled {
		t.Error("config.json is not read")
	}
	one := open(t, func(o *triage.Options) { o.Config = filepath.Join(dir, "config.json") })
	if !one.Policy.Robot.Enabled {
		t.Error("a single file is not read")
	}
}

func TestShippedReplays(t *testing.T) {
	want := []string{"containers", "daemon_30_days", "no_evidence_but_cpu", "session_scope", "systemd_unit", "systemd_user_unit"}
	if got := triage.Shipped(); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%v", got)
	}
	e := open(t)
	for _, name := range want {
		x, snap, p, err := e.Plan(t.Context(), triage.PlanOptions{Replay: name})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		x.Close()
		if !p.Replay || len(p.Evaluated) != len(snap.Records) || len(snap.Records) == 0 || p.HostID != "edge-7" {
			t.Errorf("%s: %+v", name, p.Envelope)
		}
		if _, _, err := e.Apply(t.Context(), p.SessionID, act.Options{Recommended: true}); !errors.Is(err, triage.ErrReplay) {
			t.Errorf("%s: apply: %v", name, err)
		}
	}
	x, _, p, err := e.Plan(t.Context(), triage.PlanOptions{Replay: "no_evidence_but_cpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	u := p.Evaluated[0]
	if u.Posterior.Useful < 0.906644 || u.Posterior.Useful > 0.906646 || u.Action != "spare" || len(u.Uncertainty.Drivers) < 9 {
		t.Errorf("%+v", u.Candidate)
	}
}

func TestBrokenReplays(t *testing.T) {
	e := open(t)
	for name, content := range map[string]string{"no json": "{", "a list": "[]", "nothing": "{}", "nothing known": `{"x":1}`, "a word": `"x"`, "records of another kind": `{"records":7}`} {
		file := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if x, _, _, err := e.Plan(t.Context(), triage.PlanOptions{Replay: file}); !errors.Is(err, triage.ErrConfig) {
			t.Errorf("%s: %v", name, err)
			if x != nil {
				x.Close()
			}
		}
	}
}

func TestASessionFromSnapshotToStored(t *testing.T) {
	e := open(t)
	x, snap, err := e.Snapshot(t.Context(), "label", "ghost_20260301_091500")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if x.Manifest.IncidentID != "ghost_20260301_091500" || x.Manifest.Label != "label" || len(snap.Records) == 0 {
		t.Errorf("%+v", x.Manifest)
	}
	if _, _, _, err := e.Stored(x.Manifest.SessionID); !errors.Is(err, triage.ErrNoPlan) {
		t.Errorf("without a plan: %v", err)
	}
	if _, _, err := e.Apply(t.Context(), x.Manifest.SessionID, act.Options{Recommended: true}); !errors.Is(err, triage.ErrNoPlan) {
		t.Errorf("apply without a plan: %v", err)
	}
	y, _, p, err := e.Plan(t.Context(), triage.PlanOptions{Session: x.Manifest.SessionID, Focus: plan.Focus{PIDs: []int{1}}})
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	if y.Manifest.State != session.Planned || p.Guarded(os.Getpid()) == "" || p.Guarded(1) == "" || p.Find(os.Getpid()) != nil {
		t.Errorf("%s: we are judged ourselves", y.Manifest.State)
	}
	z, again, q, err := e.Stored(x.Manifest.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	a, _ := json.Marshal(p)
	b, _ := json.Marshal(q)
	if string(a) != string(b) || len(again.Records) != len(snap.Records) {
		t.Error("the stored plan is another one")
	}
	c, err := e.Context(q, again, "")
	if err != nil || c.Budget.Wealth != 0.05 || len(c.Run().Cards) != 2 {
		t.Errorf("%+v, %v", c.Budget, err)
	}
	if _, err := e.Approve(x.Manifest.SessionID, 1, act.Approval{}); err == nil {
		t.Error("process 1 can be approved")
	}
	if _, _, _, err := e.Verify(t.Context(), x.Manifest.SessionID, 0); !errors.Is(err, act.ErrNothing) {
		t.Errorf("verify: %v", err)
	}
	for _, id := range []string{"nonsense", "../x"} {
		if _, _, _, err := e.Stored(id); !errors.Is(err, session.ErrMalformed) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestScansEnd(t *testing.T) {
	e := open(t, func(o *triage.Options) { o.Window, o.Timeout = 5*time.Second, 50*time.Millisecond })
	if _, _, err := e.Snapshot(t.Context(), "", ""); !errors.Is(err, scan.ErrTimeout) {
		t.Error(err)
	}
}
