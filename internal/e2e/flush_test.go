package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ghostbot/internal/sim/redis"
)

// runs says, for each command of a case that begins with a word, how often a process was started for it.
func (l *lab) runs(sid, word string) (n int, unknown bool) {
	l.t.Helper()
	var ids []string
	for _, e := range l.journal(sid) {
		var b struct {
			AuditID string `json:"audit_id"`
			Command string `json:"command"`
			Error   string `json:"error"`
		}
		if json.Unmarshal(e.Body, &b) != nil {
			continue
		}
		if e.Kind == "proposed" && strings.HasPrefix(b.Command, word) {
			ids = append(ids, fmt.Sprintf("%s_%03d", sid, e.N))
		}
		for _, id := range ids {
			if b.AuditID == id && e.Kind == "started" {
				n++
			}
			unknown = unknown || b.AuditID == id && b.Error == "outcome_unknown"
		}
	}
	return n, unknown
}

// TestFlush deletes everything that Redis has under two bots, while one case waits for an approval and a command of
// another one runs. Both cases are put back by who held them: the command is ended and not started again, what waited is
// asked anew, people and operators are told, and both cases go on.
func TestFlush(t *testing.T) {
	s := redis.Start(t)
	f := newFleet(t, 2, s.URL())
	ready := deadPort(t)
	f.bots[0].run("GHOST_HEALTH_ADDR=" + ready)
	waits := f.trap("incidents")
	busy := f.trap("network")
	long := fmt.Sprintf("sleep 4%d", os.Getpid())
	o := busy.click(busy.channel, f.approver(2), busy.card.TS, "Modify")
	if o := f.submit(o.ViewID, f.approver(2), map[string]any{"command": long}); !o.OK {
		t.Fatalf("edit: %+v", o)
	}
	busy.card = f.find(caseLimit, busy.channel, "checkout", "Approval needed: sleep")
	if o, taken := busy.press(f.approver(0), "Approve"); !taken {
		t.Fatalf("approve: %+v", o)
	}
	busy.until(20*time.Second, "the command runs", func() bool { n, _ := busy.runs(busy.sid, "sleep"); return n == 1 })
	f.bots[1].run()
	record := s.Do("GET", "gb1:ghostbot:{deployment}:id")

	s.Do("FLUSHALL")
	for _, tr := range []trap{waits, busy} {
		tr.until(20*time.Second, "people are told", func() bool { return tr.told("store has lost what it had") })
	}
	f.until(10*time.Second, "the record of the deployment is put back as it was", func() bool { return s.Do("GET", "gb1:ghostbot:{deployment}:id") == record })
	for _, tr := range []trap{waits, busy} {
		if log := f.bots[0].log(); strings.Count(log, "the store has lost an open case") != 2 || !strings.Contains(log, tr.sid) {
			t.Errorf("the log says of %s:\n%s", tr.sid, log)
		}
	}
	old := waits.card
	waits.renewed()
	if o := f.click(waits.channel, f.approver(0), old.TS, "Approve"); o.private() == "" && waits.starts() > 0 {
		t.Errorf("the old card counts: %+v", o)
	}
	if o, taken := waits.press(f.approver(0), "Approve"); !taken {
		t.Errorf("the click on the new card is not taken: %+v", o)
	}
	waits.until(20*time.Second, "the command runs", func() bool { return waits.starts() > 0 })
	busy.until(20*time.Second, "the outcome is known to be unknown", func() bool { _, unknown := busy.runs(busy.sid, "sleep"); return unknown })
	for _, tr := range []trap{waits, busy} {
		tr.end()
		f.verified(tr.sid)
	}
	if n := waits.starts(); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	if n, _ := busy.runs(busy.sid, "sleep"); n != 1 {
		t.Errorf("the command that ran was started %d times", n)
	}
	threads := 0
	for _, m := range f.messages("incidents") {
		if m.Thread == "" || m.Thread == m.TS {
			threads++
		}
	}
	if threads != 1 {
		t.Errorf("%d messages stand in the channel, want the one of the case", threads)
	}
}

// TestPartsLost deletes the list of open cases, the cases' values, and then everything, under one bot whose case waits; at
// last the case is dormant. Each time what is gone is put back, and the case can be approved in the end.
func TestPartsLost(t *testing.T) {
	s := redis.Start(t)
	f := newFleet(t, 1, s.URL())
	ready := deadPort(t)
	f.run("GHOST_HEALTH_ADDR=" + ready)
	tr := f.trap("incidents")
	for _, part := range []struct{ key, name, says string }{
		{"active", "active/" + tr.sid, "the store's list of open cases had lost one"},
		{"case", "case/" + tr.sid, "its value is put back"},
	} {
		s.Do("DEL", "gb1:ghostbot:{deployment}:v:"+part.key)
		f.until(15*time.Second, part.key+" is put back", func() bool {
			return strings.TrimSpace(s.Do("HEXISTS", "gb1:ghostbot:{deployment}:v:"+part.key, part.name)) == "1"
		})
		if !strings.Contains(f.log(), part.says) || tr.told("store has lost") {
			t.Errorf("after %s was deleted, want %q and nothing in the thread: %s", part.key, part.says, f.log())
		}
	}
	f.dormant(ready, 1)
	s.Do("FLUSHALL")
	tr.renewed()
	if !tr.told("store has lost what it had") {
		t.Error("people are not told")
	}
	if o, taken := tr.press(f.approver(0), "Approve"); !taken {
		t.Errorf("the click on the new card is not taken: %+v", o)
	}
	tr.until(20*time.Second, "the command runs", func() bool { return tr.starts() > 0 })
	tr.end()
	if n := tr.starts(); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	f.verified(tr.sid)

	left := f.trap("network")
	f.kill()
	s.Do("FLUSHALL")
	f.run("GHOST_HEALTH_ADDR=" + ready)
	f.until(10*time.Second, "the log names the case that nobody holds", func() bool {
		return strings.Contains(f.log(), "the store does not know 1 open cases") && strings.Contains(f.log(), left.sid)
	})
	if out, code := f.ghostbot("doctor"); code == 0 || !strings.Contains(out, "the store does not know 1 open cases") || !strings.Contains(out, left.sid) || strings.Contains(out, tr.sid) {
		t.Errorf("doctor: %d, %s", code, out)
	}
}

// emptied lets Redis come back without anything after a time.
func emptied(t *testing.T, s *redis.Server, after time.Duration) {
	t.Helper()
	s.Kill()
	if err := os.RemoveAll(filepath.Join(s.Dir, "appendonlydir")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	s.Up()
}

// TestEmptyRestart lets Redis come back empty within a lease, after the outcome of a command could not be written: the case
// that it ended is put back all the same. Then it is away for longer than a lease: nobody knows whether
// another process had the case meanwhile, and its people are told that nobody carries it on.
func TestEmptyRestart(t *testing.T) {
	s := redis.Start(t)
	f := newFleet(t, 2, s.URL(), "GHOST_LEASE=6s")
	for _, l := range f.bots {
		l.run()
	}
	tr := f.trap("incidents")
	o := tr.click(tr.channel, f.approver(2), tr.card.TS, "Modify")
	if o := f.submit(o.ViewID, f.approver(2), map[string]any{"command": "sleep 1"}); !o.OK {
		t.Fatalf("edit: %+v", o)
	}
	tr.card = f.find(caseLimit, tr.channel, "checkout", "Approval needed: sleep")
	if o, taken := tr.press(f.approver(0), "Approve"); !taken {
		t.Fatalf("approve: %+v", o)
	}
	tr.until(20*time.Second, "the command runs", func() bool { n, _ := tr.runs(tr.sid, "sleep"); return n == 1 })
	emptied(t, s, 1500*time.Millisecond)
	tr.until(30*time.Second, "the case is put back", func() bool { return tr.told("store has lost what it had") })
	if !tr.told("Resting: ") {
		t.Error("the outcome could be written: the test tests nothing")
	}
	tr.until(20*time.Second, "it goes on", func() bool { n, unknown := tr.runs(tr.sid, "sleep"); return n == 1 && unknown })

	emptied(t, s, 8*time.Second)
	tr.until(60*time.Second, "people are told that it is lost", func() bool { return tr.told("Nobody carries it on") })
}

// TestScopeGone deletes all that Redis has of one case and nothing else, as the restart of one node of a cluster may.
// Whoever holds the case puts it back, and nobody else takes it for a new one. When its holder is dead another
// one begins it anew, in its thread, where people are told; an answer from before does not count.
func TestScopeGone(t *testing.T) {
	t.Parallel()
	s := redis.Start(t)
	f := newFleet(t, 2, s.URL())
	f.bots[0].run()
	tr := f.trap("incidents")
	f.bots[1].run()
	gone := func() {
		s.Do(append([]string{"DEL"}, strings.Fields(s.Do("KEYS", "gb1:ghostbot:{"+tr.sid+"}:*"))...)...)
	}
	owner := func() string { return strings.TrimSpace(s.Do("HGET", "gb1:ghostbot:{"+tr.sid+"}:lease", "owner")) }
	first := owner()
	for range 3 {
		gone()
		f.until(10*time.Second, "somebody has the case", func() bool { return owner() != "" })
		if now := owner(); now != first {
			t.Fatalf("%s took the case of %s", now, first)
		}
		tr.renewed()
	}
	f.bots[0].kill()
	gone()
	f.until(30*time.Second, "another one has the case", func() bool { return owner() != "" && owner() != first })
	tr.lab = f.bots[1]
	f.until(30*time.Second, "the command is asked for again", func() bool {
		n := 0
		for _, e := range f.bots[1].journal(tr.sid) {
			if e.Kind == "history_lost" || e.Kind == "proposed" && strings.Contains(string(e.Body), `"RISKY"`) {
				n++
			}
		}
		return n == 2
	})
	second := owner()
	s.Do("DEL", "gb1:ghostbot:{"+tr.sid+"}:v:messages") // only what was shown
	f.bots[1].kill()
	f.bots[0].run()
	f.until(30*time.Second, "the first one has the case again", func() bool { return owner() != "" && owner() != second })
	tr.lab = f.bots[0]
	tr.until(30*time.Second, "people see it", func() bool { return tr.told("Take-over") })
	roots := 0
	for _, m := range f.messages("incidents") {
		if strings.HasPrefix(m.Text, "Investigating") {
			roots++
		}
	}
	if roots != 1 || tr.starts() != 0 {
		t.Errorf("%d threads, %d starts of the command; want one thread and no start", roots, tr.starts())
	}
	f.verified(tr.sid)
}
