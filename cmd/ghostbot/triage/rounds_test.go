package triage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ghostbot/triage/act"
	"ghostbot/triage/model"
	"ghostbot/triage/pidfd"
	"ghostbot/triage/plan"
	"ghostbot/triage/policy"
	"ghostbot/triage/proc"
	"ghostbot/triage/scan"
	"ghostbot/triage/session"
)

// TestRounds plans, applies and verifies against processes whose numbers are
// given to others in between: TRIAGE_ROUNDS times, 100 unless it is set. No
// other process may ever be signalled.
func TestRounds(t *testing.T) {
	if os.Getenv(inner) != "" || testing.Short() {
		t.Skip("runs inside")
	}
	dir := t.TempDir()
	build(t, "gcc", "-O1", "-o", filepath.Join(dir, "stage"), "testdata/stage.c")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("unshare", "-pf", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("no private pid namespace: %s", out)
	}
	cmd := exec.Command("unshare", "-pf", "--mount-proc", filepath.Join(dir, "stage"), "init", self, "-test.run=^TestRoundsInside$", "-test.v", "-test.timeout=100m")
	cmd.Env = append(os.Environ(), inner+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "rounds:") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// bystander is a process that notes every signal, by dying of it.
func bystander(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "60")
	cmd.Args[0] = name
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func end(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}

// recycle gives the number of a process that ended to a new one.
func recycle(t *testing.T, pid int, name string) *exec.Cmd {
	t.Helper()
	for range 50 {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			t.Skip(err)
		}
		cmd := bystander(t, name)
		if cmd.Process.Pid == pid {
			return cmd
		}
		end(cmd)
	}
	return nil
}

func TestRoundsInside(t *testing.T) {
	if os.Getenv(inner) == "" {
		t.Skip("runs inside of TestRounds")
	}
	rounds, _ := strconv.Atoi(os.Getenv("TRIAGE_ROUNDS"))
	if rounds == 0 {
		rounds = 100
	}
	f := proc.Default()
	h, err := f.Machine()
	if err != nil {
		t.Fatal(err)
	}
	store, err := session.OpenStore(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	pol := policy.Default()
	g := &pol.Guardrails
	pol.Robot.Enabled, g.KillsPerMinute, g.KillsPerHour, g.KillsPerDay = true, 1<<30, 1<<30, 1<<30
	killed, blocked, gone := 0, 0, 0
	for i := range rounds {
		victim := bystander(t, "victim")
		pid := victim.Process.Pid
		for cmdline := ""; cmdline != "victim\x0060\x00"; { // until it is what it executes
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			cmdline = string(b)
		}
		id, _, err := f.Identity(h, pid)
		if err != nil {
			t.Fatal(err)
		}
		var other *exec.Cmd
		if i%2 == 0 {
			end(victim)
			name := "bystander"
			if i%4 == 0 {
				name = "victim" // even the same command line
			}
			if other = recycle(t, pid, name); other == nil {
				continue
			}
		}
		outcome, reason := round(t, store, pol, f, h, id)
		switch {
		case other != nil && outcome == "blocked":
			blocked++
		case other == nil && outcome == "success":
			killed++
		case other != nil && outcome == "skipped":
			gone++
		default:
			t.Fatalf("round %d: %s %s", i, outcome, reason)
		}
		if other != nil {
			if st, err := f.Stat(pid); err != nil || st.State == 'Z' || st.State == 'T' {
				t.Fatalf("round %d: another process was signalled: %+v, %v", i, st, err)
			}
			end(other)
		} else {
			end(victim)
		}
	}
	t.Logf("rounds: %d, ended %d, refused %d, gone %d, wrong processes signalled 0", rounds, killed, blocked, gone)
}

// round is one plan, apply and verify of one process.
func round(t *testing.T, store *session.Store, pol *policy.Policy, f proc.FS, h proc.Host, id proc.Identity) (outcome, reason string) {
	t.Helper()
	x, err := store.Create(session.Manifest{HostID: h.Name, BootID: h.BootID, PIDNS: h.PIDNS, Mode: "local"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { x.Close(); store.Remove(x.Manifest.SessionID) }()
	p := &plan.Plan{Evaluated: []plan.Evaluated{{Identity: id, Names: []string{"sleep"}, AgeS: 3600, LogE: 12, Member: true, Evidence: model.Evidence{State: "S"}}}}
	p.Evaluated[0].Candidate = plan.Candidate{PID: id.PID, StartID: id.StartID, Action: model.Kill, Posterior: plan.Posterior{Abandoned: 0.999}, Blast: plan.Blast{Risk: "none"}}
	if err := errors.Join(x.Put("plan.json", p), x.Move(session.Planned)); err != nil {
		t.Fatal(err)
	}
	r := &act.Runner{
		FS: f, Host: h, Policy: pol, Priors: model.DefaultPriors(), Rules: model.Wealth{Initial: 1, Spend: 0.02, Earn: 0.02, Floor: 0, Regain: 1, Per: time.Second}, Store: store, Session: x, Plan: p,
		Redact: func(s string) string { return s }, Hold: pidfd.Open, Uptime: scan.Uptime(f),
		Look: func(context.Context) (map[int]*scan.Record, error) {
			return map[int]*scan.Record{id.PID: {Identity: id, Names: []string{"sleep"}, AgeS: 3600}}, nil
		},
	}
	results, err := r.Run(t.Context(), act.Options{PIDs: []int{id.PID}, Grace: 2 * time.Second, MaxKills: -1})
	if err != nil || len(results) != 1 {
		t.Fatalf("%+v, %v", results, err)
	}
	if results[0].Outcome == "success" {
		if v, _, _, err := r.Verify(t.Context(), 0); err != nil || v.Status != "success" {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	if results[0].Outcome == "blocked" && results[0].Error.Code != act.IdentityMismatch {
		t.Fatalf("%+v", results[0])
	}
	return results[0].Outcome, results[0].Reason
}
