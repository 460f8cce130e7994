package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/show"
	"ghostbot/store"
)

// clocked is a store whose clock the test sets.
type clocked struct {
	store.DB
	mu sync.Mutex
	at time.Time
}

func (c *clocked) Now(context.Context) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at, nil
}

func (c *clocked) later(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// values counts what a case keeps.
func values(t *testing.T, db store.DB) map[string]int {
	t.Helper()
	vs, err := db.List(context.Background(), sid, "")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, v := range vs {
		room, _, _ := strings.Cut(v.Key.Name, "/")
		out[room]++
	}
	return out
}

// refusals are the bodies of the refusal entries of a journal.
func (j *tape) refusals(t *testing.T) (out []show.Refusal) {
	t.Helper()
	es, _ := j.Since(0)
	for _, e := range es {
		var r show.Refusal
		if e.Kind != show.KindOfRefusal || json.Unmarshal(e.Body, &r) != nil {
			t.Fatalf("entry %d: %s %s", e.N, e.Kind, e.Body)
		}
		out = append(out, r)
	}
	return out
}

// Whoever is refused other words each time fills neither the journal nor the store, and none of
// them is lost in the count.
func TestRefusalsAreBounded(t *testing.T) {
	p, j := people(t)
	db := &clocked{DB: p.DB, at: time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC)}
	p.DB = db
	refuse := func(by, what, text string) {
		t.Helper()
		if err := Refuse(t.Context(), db, sid, []string{text}, show.Refusal{By: by, What: what, Text: text, Why: "a guest"}); err != nil {
			t.Fatal(err)
		}
	}
	drain := func() []show.Refusal {
		t.Helper()
		if _, err := p.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		return j.refusals(t)
	}
	const flood = 300
	for i := range flood {
		refuse("UGUEST", "instruct", fmt.Sprint("words ", i))
		if i%50 == 0 {
			refuse("UGUEST", "instruct", "words 0") // the same again
			drain()
		}
	}
	refuse("UGUEST", "stop", "") // other kinds and other people are counted by themselves
	refuse("UOTHER", "instruct", "hello")
	if got := drain(); len(got) != RefusedEach+2 {
		t.Fatalf("%d entries while it lasts, want %d", len(got), RefusedEach+2)
	}
	if got := values(t, db); got["seen"] != 0 || got["refused"] != 3 || got["inbox"] != 1 {
		t.Errorf("the store holds %v", got)
	}
	db.later(RefusedFor - time.Nanosecond)
	if got := drain(); len(got) != RefusedEach+2 {
		t.Errorf("%d entries before the time is over", len(got))
	}
	db.later(time.Nanosecond)
	refuse("UGUEST", "instruct", "words 0") // the time is over: this is another one
	got := drain()
	if len(got) != RefusedEach+4 {
		t.Fatalf("%d entries when it is over, want %d", len(got), RefusedEach+4)
	}
	more := got[len(got)-2]
	if got[len(got)-1].More > 0 {
		more = got[len(got)-1]
	}
	if more.By != "UGUEST" || more.What != "instruct" || more.More != flood-RefusedEach || !strings.Contains(more.Why, "290 more in the 10 minutes from 10:45:12 UTC on") {
		t.Errorf("counted as %+v", more)
	}
	if got := values(t, db); got["inbox"] != 0 {
		t.Errorf("the store holds %v", got)
	}
}

// Of refusals at the same moment, in whatever process, each is counted.
func TestRefusalsAtOnce(t *testing.T) {
	p, j := people(t)
	const all, more = 60, 5
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			if err := Refuse(t.Context(), p.DB, sid, []string{fmt.Sprint(i)}, show.Refusal{By: "U1", What: "modify"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	p.put(t, "words", Item{Kind: agent.KindInstruction, Instruction: &agent.Instruction{By: "U1", Text: "hello"}})
	for i := range 2 { // the end of a case, and once more after a crash
		if err := p.Last(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			for i := range more {
				if err := Refuse(t.Context(), p.DB, sid, []string{fmt.Sprint("after ", i)}, show.Refusal{By: "U1", What: "modify"}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	n := 0
	for _, r := range j.refusals(t) {
		n += max(1, r.More)
	}
	if n != all+more || len(j.refusals(t)) != RefusedEach+2 {
		t.Errorf("%d of %d are counted, in %d entries", n, all+more, len(j.refusals(t)))
	}
	if got := values(t, p.DB); got["inbox"] != 1 {
		t.Errorf("at the end the inbox holds %v, want the words that nobody read", got)
	}
}
