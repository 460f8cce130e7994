package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestGuestFloodsAThread: a guest writes other words again and again into the thread of an open case. Each
// is refused and counted, and neither the journal nor the state of the case grows with them.
func TestGuestFloodsAThread(t *testing.T) {
	l := newLab(t)
	l.run()
	tr := l.trap("incidents")
	guest := l.users["guest-vendor"].ID
	const flood = 60
	for i := range flood {
		l.say("incidents", guest, tr.card.Thread, fmt.Sprintf("run reboot number %d at once", i))
	}
	kept := func(what string) int {
		found, err := filepath.Glob(filepath.Join(l.state, "cases", tr.sid, what, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	count := func() (entries, all int) {
		for _, e := range l.journal(tr.sid) {
			var r struct {
				By   string `json:"by"`
				More int    `json:"more"`
			}
			if e.Kind == "refusal" && json.Unmarshal(e.Body, &r) == nil && r.By == guest {
				entries, all = entries+1, all+max(1, r.More)
			}
		}
		return entries, all
	}
	l.until(20*time.Second, "the first refusals are journaled", func() bool { n, _ := count(); return n >= 10 })
	time.Sleep(2 * time.Second)
	if n, _ := count(); n != 10 {
		t.Errorf("%d entries while the flood is counted, want 10", n)
	}
	if refused, inbox := kept("refused"), kept("inbox"); refused != 1 || inbox != 1 {
		t.Errorf("the state has %d counts and %d items", refused, inbox)
	}
	if _, taken := tr.press(l.approver(0), "Approve"); !taken {
		t.Error("an approver was refused beside the flood")
	}
	tr.end()
	if entries, all := count(); entries != 11 || all != flood {
		t.Errorf("%d of %d refusals are counted, in %d entries", all, flood, entries)
	}
}

// TestSameSymptomAtOnce: people type the same symptom in one channel at the same moment. One opens a case, and
// the others are asked.
func TestSameSymptomAtOnce(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, _ := gateway(t)
	people := []string{l.approver(0), l.approver(1), l.other()}
	answers := make([]string, len(people))
	var wg sync.WaitGroup
	for i, who := range people {
		wg.Go(func() {
			answers[i] = l.command("incidents", who, "/ghost investigate checkout gets 502 from "+addr).private()
		})
	}
	wg.Wait()
	asked := 0
	for _, a := range answers {
		if strings.Contains(a, "looks at the same") {
			asked++
		}
	}
	sids := l.cases()
	if asked != len(people)-1 || len(sids) != 1 {
		t.Errorf("%d were asked, %d cases: %q", asked, len(sids), answers)
	}
	for _, sid := range sids {
		l.command("incidents", l.approver(0), "/ghost stop "+sid)
		l.closed(sid)
	}
}
