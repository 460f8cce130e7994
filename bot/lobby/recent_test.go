package lobby

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ghostbot/bot"
	"ghostbot/bot/record"
	"ghostbot/store"
)

// reader counts what is read of the deployment.
type reader struct {
	store.DB
	mu    sync.Mutex
	names []string // of the values that lists gave
	lists []string // prefixes
}

func (r *reader) List(ctx context.Context, scope, prefix string) ([]store.Value, error) {
	vs, err := r.DB.List(ctx, scope, prefix)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lists = append(r.lists, prefix)
	for _, v := range vs {
		r.names = append(r.names, v.Key.Name)
	}
	return vs, err
}

// past stores a case as it was opened so long ago.
func (h *hall) past(ago time.Duration, closed bool) string {
	h.t.Helper()
	at := h.l.o.Now().UTC().Add(-ago)
	c := bot.CaseInfo{SessionID: "ghost_" + at.Format("20060102_150405"), CreatedAt: at, Closed: closed,
		Opening: bot.Opening{Symptom: "long ago", Place: bot.Place{Transport: "slack", Channel: "C1"}}}
	if closed {
		c.ClosedAt = at.Add(time.Hour)
	}
	data, err := json.Marshal(c)
	h.must(err)
	writes := []store.Write{{Key: store.Key{Scope: store.Deployment, Name: "case/" + c.SessionID}, Data: data}}
	if !closed {
		writes = append(writes, record.Active(c)...)
	}
	h.must(h.db.Commit(h.t.Context(), store.Commit{Scope: store.Deployment, Writes: writes}))
	return c.SessionID
}

// A list has every open case, and of those that have ended the ones of the last 30 days; of thousands that
// are older nothing is read.
func TestListIsBounded(t *testing.T) {
	const day = 24 * time.Hour
	var db *reader
	h := newHall(t, func(o *bot.Options) { db = &reader{DB: o.DB}; o.DB = db })
	open := []string{h.open("d1", "same thing", "C1"), h.past(400*day, false)}
	recent := []string{h.past(time.Hour, true), h.past(29*day, true)}
	old := []string{h.past(31*day, true)}
	for i := range 300 {
		old = append(old, h.past(time.Duration(80+i)*day, true))
	}
	db.names = nil
	p, err := h.l.List(t.Context(), func(bot.CaseInfo) bool { return true }, 1, 100)
	h.must(err)
	var got []string
	for _, c := range p.Cases {
		got = append(got, c.SessionID)
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(append(open, recent...)))
	if !slices.Equal(got, want) || p.Open != 2 || p.Closed != 2 {
		t.Errorf("listed %q (%d, %d), want %q", got, p.Open, p.Closed, want)
	}
	for _, name := range db.names {
		if slices.Contains(old[1:], strings.TrimPrefix(name, "case/")) {
			t.Errorf("%s was read", name)
		}
	}
	sids, last, err := h.l.Only(t.Context(), "C1")
	if err != nil || len(sids) != 2 || last == "" || slices.Contains(old, last) {
		t.Errorf("Only = %q, %q, %v", sids, last, err)
	}
}

// The last hours of a year, and a month that is shorter than the time that a list goes back.
func TestListOverTheEndsOfMonths(t *testing.T) {
	for _, now := range []time.Time{time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2027, 3, 1, 0, 0, 1, 0, time.UTC), time.Date(2028, 3, 31, 12, 0, 0, 0, time.UTC)} {
		h := newHall(t, func(o *bot.Options) { o.Now = func() time.Time { return now } })
		n := 0
		for d := range 30 {
			h.past(time.Duration(d)*24*time.Hour+time.Minute, true)
			n++
		}
		h.past(30*24*time.Hour+time.Minute, true)
		if got, err := h.l.recent(t.Context()); err != nil || len(got) != n {
			t.Errorf("%s: %d cases, %v, want %d", now, len(got), err, n)
		}
	}
}

// parked is an opening of one of many people.
func parked(i int) bot.Opening {
	o := opening(fmt.Sprint("p", i), "same again", "C1")
	o.Requester = fmt.Sprint("U", i)
	return o
}

// To ask somebody reads none of what others are asked; what is too old is dropped aside, and not all the time.
func TestParkReadsNoOtherQuestion(t *testing.T) {
	var db *reader
	h := newHall(t, func(o *bot.Options) { db = &reader{DB: o.DB}; o.DB = db })
	sid := h.open("d1", "same thing", "C1")
	db.names = nil
	for i := range 1000 {
		if _, err := h.l.Park(t.Context(), parked(i), sid); err != nil {
			t.Fatal(err)
		}
	}
	if len(db.names) > 0 {
		t.Errorf("1000 questions read %d", len(db.names))
	}
	for range 3 {
		h.must(h.l.File(t.Context()))
	}
	n := 0
	for _, prefix := range db.lists {
		if prefix == "ask/" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("all questions were read %d times within the hour", n)
	}
}

// Whoever asks on and on is asked about the last twenty; an older question is not open any more, and those of
// others are.
func TestQuestionsOfOnePersonAreBounded(t *testing.T) {
	h := newHall(t, nil)
	sid := h.open("d1", "same thing", "C1")
	other, err := h.l.Park(t.Context(), parked(1), sid)
	h.must(err)
	var ids []string
	for i := range 3 * parkedEach {
		id, err := h.l.Park(t.Context(), opening(fmt.Sprint("q", i), "same again", "C1"), sid)
		h.must(err)
		ids = append(ids, id)
	}
	vs, err := h.db.List(t.Context(), store.Deployment, "ask/")
	h.must(err)
	if len(vs) != parkedEach+1 {
		t.Errorf("%d questions are kept, want %d", len(vs), parkedEach+1)
	}
	for id, who := range map[string]string{ids[len(ids)-1]: "U9", ids[len(ids)-parkedEach]: "U9", other: "U1"} {
		if _, _, err := h.l.Join(t.Context(), id, who, ""); err != nil {
			t.Errorf("an open question: %v", err)
		}
	}
	if _, _, err := h.l.Join(t.Context(), ids[0], "U9", ""); !errors.Is(err, ErrGone) {
		t.Errorf("the oldest: %v", err)
	}
}

func BenchmarkParkBesideAThousand(b *testing.B) {
	h := newHall(b, nil)
	sid := h.open("d1", "same thing", "C1")
	for i := range 1000 {
		if _, err := h.l.Park(b.Context(), parked(i), sid); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; b.Loop(); i++ {
		if _, err := h.l.Park(b.Context(), parked(1000+i), sid); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkListWithThousandsEnded(b *testing.B) {
	for _, n := range []int{0, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := newHall(b, nil)
			for i := range n {
				h.past(time.Duration(100*24+i)*time.Hour, true)
			}
			for b.Loop() {
				if _, err := h.l.recent(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
