package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ghostbot/audit"
	"ghostbot/orchestrator"
)

// sweepAz is an az with one watcher, and captures in it until they are deleted.
const sweepAz = `#!/bin/sh
HOME=${0%/*}
echo "$*" >> "$HOME/az.log"
case "$*" in
"network watcher list"*) echo '["westeurope"]';;
"network watcher packet-capture list"*)
	[ -e "$HOME/gone-stray" ] && echo '[]' || echo '["ghost_stray_20260101T000000"]';;
"network watcher packet-capture show "*)
	echo '{"state": "Succeeded", "path": "https://sa01.blob.core.windows.net/captures/stray.cap"}';;
"network watcher packet-capture delete"*) case "$*" in *ghost_stray*) : > "$HOME/gone-stray";; esac;;
"account show"*) echo '{"name": "lab", "id": "00000000-0000-4000-8000-000000000001"}';;
esac
exit 0
`

// leftBehind is a deployment in which a closed case left a capture, and az knows
// another that no journal names.
func leftBehind(t *testing.T, more ...string) *lab {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "az"), []byte(sweepAz), 0o755); err != nil {
		t.Fatal(err)
	}
	az := filepath.Join(bin, "az.log")
	l := newLab(t, append([]string{
		"GHOST_PATH=" + bin + ":/usr/bin:/bin", "GHOST_AZ_SUBSCRIPTION=00000000-0000-4000-8000-000000000001", "GHOST_AZ_RESOURCE_GROUP=rg-01",
		"GHOST_AZ_LOCATION=westeurope", "GHOST_AZ_STORAGE_ACCOUNT=sa01",
	}, more...)...)
	dir := filepath.Join(l.state, "audit")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(az, filepath.Join(l.state, "az.log")); err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(t.Context(), audit.Options{Dir: dir, SID: "ghost_20260101_080000", Fence: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	pending := orchestrator.CleanupPending
	_, _, err = log.Journal(audit.Tasks).Append(t.Context(), orchestrator.KindTask, orchestrator.Task{
		TaskID: "ghost_vm-01_20260101T080000", SessionID: "ghost_20260101_080000", State: orchestrator.Broken, CleanupStatus: &pending, Location: "westeurope",
		StorageAccount: "sa01", StorageContainer: "captures", BlobName: "vm-01.cap", AuthMode: "login",
		Timestamps: orchestrator.Timestamps{Created: time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC), Provisioned: time.Date(2026, 1, 1, 8, 1, 0, 0, time.UTC)},
		CleanupPlan: []orchestrator.CleanupStep{
			{What: "capture", Argv: []string{"az", "network", "watcher", "packet-capture", "delete", "--location", "westeurope", "--name", "ghost_vm-01_20260101T080000"}},
			{What: "blob", Argv: []string{"az", "storage", "blob", "delete", "--account-name", "sa01", "--container-name", "captures", "--name", "vm-01.cap", "--auth-mode", "login"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// deletes are the commands that removed something, in order.
func (l *lab) deletes() (list []string) {
	b, _ := os.ReadFile(filepath.Join(l.state, "az.log"))
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, " delete ") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// said waits for a message of the channel that contains what.
func (l *lab) said(channel, what string) message {
	l.t.Helper()
	var got message
	l.until(30*time.Second, "a message with "+what, func() bool {
		for _, m := range l.messages(channel) {
			if strings.Contains(m.all(), what) {
				got = m
				return true
			}
		}
		return l.dead()
	})
	return got
}

const sweepRoot = "Clean up what other cases left"

// One answer to one question removes exactly what the question showed, once, and
// only when somebody gives it who may decide.
func TestSweep(t *testing.T) {
	l := leftBehind(t)
	l.run()
	asker := l.users["oncall-checkout"].ID
	l.command("incidents", asker, "/ghost cleanup")
	sid := sidOf(l.said("incidents", sweepRoot).all())
	q := l.said("incidents", "4 things were left over")
	for _, want := range []string{"--name ghost_vm-01_20260101T080000", "--name vm-01.cap", "--name ghost_stray_20260101T000000", "--name stray.cap", "by another case"} {
		if !strings.Contains(q.all(), want) {
			t.Errorf("the question does not show %s: %s", want, q.all())
		}
	}
	if o := l.command("incidents", asker, "/ghost cleanup"); !strings.Contains(o.private(), sid) {
		t.Errorf("a second sweep: %+v", o)
	}
	if o := l.click("incidents", asker, q.TS, "Clean all"); !strings.Contains(o.private(), "may not decide") {
		t.Errorf("somebody who may not decide answered: %+v", o)
	}
	if got := l.deletes(); len(got) != 0 {
		t.Fatalf("before anybody answered: %q", got)
	}
	l.click("incidents", l.approver(0), q.TS, "Clean all")
	l.closed(sid)
	want := []string{
		"network watcher packet-capture delete --location westeurope --name ghost_vm-01_20260101T080000",
		"storage blob delete --account-name sa01 --container-name captures --name vm-01.cap --auth-mode login",
		"network watcher packet-capture delete --location westeurope --name ghost_stray_20260101T000000 --subscription 00000000-0000-4000-8000-000000000001",
		"storage blob delete --account-name sa01 --container-name captures --name stray.cap --auth-mode login --subscription 00000000-0000-4000-8000-000000000001",
	}
	if got := l.deletes(); !slices.Equal(got, want) {
		t.Errorf("removed %q", got)
	}
	for _, m := range l.messages("incidents") {
		if strings.HasPrefix(m.Text, "Approval needed") {
			t.Errorf("a card for what the question showed: %s", m.Text)
		}
	}
	l.said("incidents", "Removed: 4. Still there: 0.")
	out, code := l.ghostbot("audit", "verify", sid)
	if code != 0 {
		t.Errorf("audit verify: %s", out)
	}
	for _, e := range l.journal(sid) {
		var d struct{ Decision, By string }
		if e.Kind == "decided" && json.Unmarshal(e.Body, &d) == nil && (d.Decision != "APPROVED" || d.By != l.approver(0)) {
			t.Errorf("decided %+v", d)
		}
	}
	// What is gone is no orphan any more.
	l.command("incidents", asker, "/ghost cleanup")
	l.said("incidents", "Nothing was left that may be removed.")
}

// Killed between the answer and the end, a sweep runs nothing twice: what it does
// not know the outcome of it leaves to the next sweep.
func TestSweepKilledInBetween(t *testing.T) {
	l := leftBehind(t)
	l.run()
	asker := l.users["oncall-checkout"].ID
	l.command("incidents", asker, "/ghost cleanup")
	sid := sidOf(l.said("incidents", sweepRoot).all())
	q := l.said("incidents", "4 things were left over")
	l.kill()
	l.run()
	l.click("incidents", l.approver(1), q.TS, "Clean all")
	for n := 1; n < 4; n++ {
		l.until(30*time.Second, "a removal", func() bool { return len(l.deletes()) >= n || l.isClosed(sid) })
		l.kill()
		l.run()
	}
	l.closed(sid)
	first := l.deletes()
	if unique := slices.Compact(slices.Sorted(slices.Values(first))); len(unique) != len(first) {
		t.Errorf("removed twice: %q", first)
	}
	for range 3 { // what is still there may be one that was removed and not told of
		report := l.said("incidents", "Removed: ")
		if !strings.Contains(report.all(), "Still there: 0") {
			l.command("incidents", asker, "/ghost cleanup")
			next := ""
			l.until(30*time.Second, "the next sweep", func() bool {
				for _, m := range l.messages("incidents") {
					if got := sidOf(m.all()); strings.Contains(m.Text, sweepRoot) && got > sid {
						next = got
					}
				}
				return next != ""
			})
			sid = next
			l.until(30*time.Second, "its question, or its end", func() bool {
				for _, m := range l.messages("incidents") {
					if strings.Contains(m.all(), sid+" sweep clean") {
						l.click("incidents", l.approver(1), m.TS, "Clean all")
					}
				}
				return l.isClosed(sid)
			})
		}
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(l.deletes()))); len(unique) != 4 {
		t.Errorf("removed %q", unique)
	}
	if out, code := l.ghostbot("audit", "verify", sid); code != 0 {
		t.Errorf("audit verify: %s", out)
	}
}

// "Review each" asks about each on a card; two people who are needed get cards, too.
func TestSweepReviewed(t *testing.T) {
	for name, c := range map[string]struct {
		env, answer string
	}{"review": {"GHOST_SELF_APPROVAL=true", "Review each"}, "two people": {"GHOST_TWO_PERSON=RISKY", "Clean all"}} {
		t.Run(name, func(t *testing.T) {
			l := leftBehind(t, c.env)
			l.run()
			l.command("incidents", l.users["oncall-checkout"].ID, "/ghost cleanup")
			sid := sidOf(l.said("incidents", sweepRoot).all())
			q := l.said("incidents", "4 things were left over")
			l.click("incidents", l.approver(0), q.TS, c.answer)
			card := l.said("incidents", "Approval needed: az network watcher packet-capture delete")
			if got := l.deletes(); len(got) != 0 {
				t.Errorf("removed before the card: %q", got)
			}
			l.deny("incidents", l.approver(0), card.TS)
			l.command("incidents", l.approver(0), "/ghost stop "+sid)
			l.closed(sid)
			if got := l.deletes(); len(got) != 0 {
				t.Errorf("removed %q", got)
			}
			l.said("incidents", "Still there: 4.")
		})
	}
}

// A bot that starts looks once a day, in the channel for operators.
func TestSweepAtStart(t *testing.T) {
	l := leftBehind(t)
	ops := l.chans["network"]
	l.run("GHOST_OPS_CHANNEL=" + ops)
	q := l.said("network", "4 things were left over")
	l.click("network", l.approver(0), q.TS, "Skip")
	l.closed(sidOf(l.said("network", sweepRoot).all()))
	l.kill()
	l.run("GHOST_OPS_CHANNEL=" + ops)
	time.Sleep(time.Second)
	roots := 0
	for _, m := range l.messages("network") {
		if m.Thread == "" && strings.Contains(m.Text, sweepRoot) {
			roots++
		}
	}
	if roots != 1 || len(l.deletes()) != 0 {
		t.Errorf("%d sweeps of one day, removed %v", roots, l.deletes())
	}
}

// Without an account there is nothing to look for.
func TestSweepNotConfigured(t *testing.T) {
	l := newLab(t)
	l.run()
	if o := l.command("incidents", l.users["oncall-checkout"].ID, "/ghost cleanup"); !strings.Contains(o.private(), "not configured") {
		t.Errorf("%+v", o)
	}
}

// In a terminal the same question takes a letter; with nobody there nothing goes.
func TestSweepInATerminal(t *testing.T) {
	for name, c := range map[string]struct {
		in      string
		args    []string
		removed int
		want    string
	}{
		"clean":   {"c\n", nil, 4, "Removed: 4. Still there: 0."},
		"skip":    {"s\n", nil, 0, "Removed: 0. Still there: 4."},
		"silence": {"", nil, 0, "nobody answered"},
		"safe":    {"", []string{"--yes-safe-only"}, 0, "Removed: 0. Still there: 4."},
	} {
		t.Run(name, func(t *testing.T) {
			l := leftBehind(t)
			ctx, done := context.WithTimeout(t.Context(), time.Minute)
			defer done()
			cmd := exec.CommandContext(ctx, filepath.Join(binDir, "ghostbot"), append([]string{"investigate", "--cleanup"}, c.args...)...)
			cmd.Env, cmd.Stdin = l.environ(), strings.NewReader(c.in)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(strings.Join(strings.Fields(string(out)), " "), c.want) || len(l.deletes()) != c.removed {
				t.Errorf("%v, removed %q\n%s", err, l.deletes(), out)
			}
			if c.in != "" && !strings.Contains(strings.Join(strings.Fields(string(out)), " "), "packet-capture delete --location westeurope --name ghost_stray_20260101T000000") {
				t.Errorf("the commands are not shown:\n%s", out)
			}
		})
	}
}
