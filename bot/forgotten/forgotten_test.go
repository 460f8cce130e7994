package forgotten

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/dormant"
	"ghostbot/bot/proposal"
	"ghostbot/bot/record"
	"ghostbot/bot/thread"
	"ghostbot/internal/sim/redis"
	"ghostbot/safeexec"
	"ghostbot/store"
	shared "ghostbot/store/redis"
)

const sid = "ghost_20260314_104512"

var place = thread.Place{Transport: "slack", Channel: "C1", Thread: "17.1"}

func info(id string) record.Case {
	at := place
	at.Thread = ""
	return record.Case{SessionID: id, Opening: record.Opening{Delivery: "delivery of " + id, Symptom: "checkout gets 502", Place: at}, CreatedAt: time.Unix(1790000000, 0).UTC()}
}

// bench is a Redis with one open case that this process carries.
type bench struct {
	t     *testing.T
	s     *redis.Server
	db    *shared.DB
	cases *Cases
	log   bytes.Buffer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, s: redis.Start(t)}
	var err error
	if b.db, err = shared.Open(t.Context(), shared.Options{URL: b.s.URL(), Keys: []shared.Key{{ID: "k1", Secret: bytes.Repeat([]byte("k"), 32)}}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.db.Close() })
	b.cases = New(b.db, slog.New(slog.NewTextHandler(&b.log, nil)))
	b.put(info(sid))
	return b
}

// put opens a case and carries it.
func (b *bench) put(c record.Case) {
	b.t.Helper()
	if back, err := Deployment(b.t.Context(), b.db, c, place); !back || err != nil {
		b.t.Fatal(back, err)
	}
	data, err := json.Marshal(thread.Map{Place: place})
	if err == nil {
		_, err = b.db.Put(b.t.Context(), thread.MessagesKey(c.SessionID), data, store.Absent)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.cases.Keep(c)
}

func (b *bench) look() {
	b.t.Helper()
	if err := b.cases.Look(b.t.Context()); err != nil {
		b.t.Error(err)
	}
}

func (b *bench) has(k store.Key) bool {
	b.t.Helper()
	_, err := b.db.Get(b.t.Context(), k)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		b.t.Error(err)
	}
	return err == nil
}

func (b *bench) del(segment string) { b.s.Do("DEL", "gb1:ghostbot:{deployment}:v:"+segment) }

// TestLook: what is gone of a case whose own scope is there is put back, once, and nothing else is.
func TestLook(t *testing.T) {
	b := newBench(t)
	other := "ghost_20260314_104513"
	if _, err := Deployment(t.Context(), b.db, info(other), place); err != nil { // open, and carried by nobody here
		t.Fatal(err)
	}
	closed := info("ghost_20260314_104514")
	closed.Closed = true
	data, err := json.Marshal(closed)
	if err == nil {
		_, err = b.db.Put(t.Context(), record.Key(closed.SessionID), data, store.Absent)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.look()
	if b.log.Len() > 0 || b.cases.Missing() != "" {
		t.Errorf("nothing is gone: %s%s", b.log.String(), b.cases.Missing())
	}
	b.del("active")
	b.look()
	if !b.has(record.ActiveKey(sid)) || !b.has(record.ActiveKey(other)) || b.has(record.ActiveKey(closed.SessionID)) || strings.Count(b.log.String(), "list of open cases had lost one") != 2 {
		t.Errorf("the list: %s", b.log.String())
	}
	b.del("case")
	b.look()
	if got, err := record.Load(t.Context(), b.db, sid); err != nil || got.Opening != info(sid).Opening || b.has(record.Key(other)) {
		t.Errorf("the value: %+v, %v", got, err)
	}
	if n := strings.Count(b.log.String(), "its value is put back"); n != 1 || b.cases.Missing() != "" {
		t.Errorf("said %d times, missing %q", n, b.cases.Missing())
	}
	b.s.Do("FLUSHALL")
	b.look()
	if b.has(record.Key(sid)) || b.has(record.ActiveKey(sid)) {
		t.Error("a case is made known whose journals are not in the store")
	}
}

// TestLapsed: a case that this process does not carry any more is named, and never put back; not any more once somebody
// else has. One that ended is not looked for.
func TestLapsed(t *testing.T) {
	b := newBench(t)
	b.look()
	b.cases.Lapsed(sid, false)
	b.s.Do("FLUSHALL")
	for range 2 {
		b.look()
	}
	if b.has(record.Key(sid)) || strings.Count(b.log.String(), sid) != 1 || !strings.Contains(b.cases.Missing(), "it has lost 1 open cases") || !strings.Contains(b.cases.Missing(), sid) {
		t.Errorf("missing %q: %s", b.cases.Missing(), b.log.String())
	}
	if _, err := Deployment(t.Context(), b.db, info(sid), place); err != nil {
		t.Fatal(err)
	}
	b.look()
	if b.cases.Missing() != "" {
		t.Errorf("it is back: %q", b.cases.Missing())
	}
	b.cases.Keep(info(sid))
	b.cases.Lapsed(sid, true)
	b.s.Do("FLUSHALL")
	b.look()
	if b.cases.Missing() != "" {
		t.Errorf("it had ended: %q", b.cases.Missing())
	}
	if back, err := Deployment(t.Context(), b.db, record.Case{SessionID: sid, Closed: true}, place); back || err != nil || b.has(record.Key(sid)) {
		t.Errorf("a closed case is put back: %v, %v", back, err)
	}
}

// TestGone: people of a case that nobody puts back are told once, where they saw it last, and not before whoever holds it
// had the time to do so.
func TestGone(t *testing.T) {
	b := newBench(t)
	b.cases.Seen(sid, place)
	b.cases.Keep(info(sid))
	b.s.Do("FLUSHALL")
	b.look()
	if gone := b.cases.Gone(0); len(gone) != 0 {
		t.Errorf("this process carries it: %+v", gone)
	}
	b.cases.Lapsed(sid, false)
	if gone := b.cases.Gone(0); len(gone) != 0 {
		t.Errorf("nobody has looked: %+v", gone)
	}
	b.look()
	if gone := b.cases.Gone(time.Minute); len(gone) != 0 {
		t.Errorf("somebody may put it back: %+v", gone)
	}
	if gone := b.cases.Gone(0); len(gone) != 1 || gone[0].SessionID != sid || gone[0].Place != place {
		t.Errorf("%+v", gone)
	}
	b.look()
	if gone := b.cases.Gone(0); len(gone) != 0 {
		t.Errorf("told twice: %+v", gone)
	}
}

// TestGoneWhileAway: the time in which the store does not answer does not count, because nobody can put anything back then.
func TestGoneWhileAway(t *testing.T) {
	b := newBench(t)
	b.s.Do("FLUSHALL")
	b.cases.Lapsed(sid, false)
	b.look()
	time.Sleep(1100 * time.Millisecond) // the store is away
	for range 2 {
		if gone := b.cases.Gone(time.Second); len(gone) != 0 {
			t.Errorf("whoever has it was given no time to put it back: %+v", gone)
		}
		b.look()
	}
	for range 3 {
		time.Sleep(400 * time.Millisecond)
		b.look()
	}
	if gone := b.cases.Gone(time.Second); len(gone) != 1 {
		t.Errorf("it was missed all the time: %+v", gone)
	}
}

// TestTell: who was not told, because Slack took no message, is told later; a case that is back by then is not named.
func TestTell(t *testing.T) {
	b := newBench(t)
	other := "ghost_20260314_104513"
	b.put(info(other))
	for _, id := range []string{sid, other} {
		b.cases.Lapsed(id, false)
	}
	b.s.Do("FLUSHALL")
	b.look()
	var told []string
	tell := func(ok bool) {
		b.cases.Tell(t.Context(), 0, func(g Held) bool { told = append(told, g.SessionID); return ok })
	}
	tell(false)
	b.look()
	if _, err := Deployment(t.Context(), b.db, info(other), place); err != nil {
		t.Fatal(err)
	}
	tell(true)
	tell(true)
	if got := strings.Join(told, " "); got != sid+" "+sid {
		t.Errorf("told of %q", got)
	}
}

// TestNothingIsOverwritten: what stands there stays.
func TestNothingIsOverwritten(t *testing.T) {
	b := newBench(t)
	newer := info(sid)
	newer.Summary = "newer"
	b.s.Do("HDEL", "gb1:ghostbot:{deployment}:v:active", "active/"+sid)
	if back, err := Deployment(t.Context(), b.db, newer, place); !back || err != nil {
		t.Errorf("the list: %v, %v", back, err)
	}
	if got, err := record.Load(t.Context(), b.db, sid); err != nil || got.Summary != "" || !b.has(record.ActiveKey(sid)) {
		t.Errorf("%+v, %v", got, err)
	}
	if back, err := Deployment(t.Context(), b.db, newer, place); back || err != nil {
		t.Errorf("again: %v, %v", back, err)
	}
}

// TestRestore: under a lease that was forgotten the thread's place, the session file and unstarted commands come first,
// then people are told, and then the case is known. With an old lease nothing is written.
func TestRestore(t *testing.T) {
	b := newBench(t)
	l, err := b.db.Acquire(t.Context(), sid, "one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	b.s.Do("FLUSHALL")
	entry := func(n uint64, journal, kind string, body any) agent.Entry {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		return agent.Entry{N: n, ID: fmt.Sprintf("%s_%03d", sid, n), Journal: journal, Kind: kind, Hash: strings.Repeat(fmt.Sprint(n), 64), Body: data}
	}
	risky := func(n uint64) agent.Entry {
		return entry(n, "shell", "proposed", safeexec.Proposal{SessionID: sid, Argv: []string{"mktemp"}, Class: safeexec.Risky})
	}
	of := func(n int, decision string) safeexec.Decided {
		return safeexec.Decided{AuditID: fmt.Sprintf("%s_%03d", sid, n), Decision: decision}
	}
	h := Held{Case: info(sid), Fence: l.Fence, Place: place, Session: agent.SessionFile, Entries: []agent.Entry{
		entry(1, "case", "turn", map[string]any{"turn": 1}), risky(2), risky(3), entry(4, "shell", "decided", of(2, "DENIED")), entry(5, "shell", "decided", of(3, "APPROVED")),
		risky(6), entry(7, "shell", "intent", of(6, "")), risky(8), risky(9), entry(10, "shell", proposal.KindOfAsked, proposal.Asked{AuditID: sid + "_009", Why: "the answer is too old"}),
	}}
	if err := b.cases.Restore(t.Context(), h, func() error { return nil }); !errors.Is(err, store.ErrFenced) || b.has(record.Key(sid)) {
		t.Errorf("with a lease that is gone: %v", err)
	}
	if l, err = store.Regain(t.Context(), b.db, l); err != nil {
		t.Fatal(err)
	}
	h.Fence = l.Fence
	told := errors.New("nobody could be told")
	if err := b.cases.Restore(t.Context(), h, func() error { return told }); !errors.Is(err, told) || b.has(record.Key(sid)) || b.cases.Missing() == "" {
		t.Errorf("nobody is told: %v", err)
	}
	err = b.cases.Restore(t.Context(), h, func() error {
		if b.has(record.Key(sid)) {
			t.Error("the case is known before people are told")
		}
		return proposal.End(t.Context(), b.db, sid, proposal.StateSuperseded, "")
	})
	if err != nil || !b.has(record.Key(sid)) || !b.has(record.ActiveKey(sid)) || !b.has(thread.Key(place)) || !b.has(store.Key{Scope: sid, Name: "ghost_session"}) || b.cases.Missing() != "" {
		t.Errorf("restored: %v, %s", err, b.log.String())
	}
	m, err := thread.Load(t.Context(), b.db, sid)
	if err != nil || m.Place != place || !m.Unsure {
		t.Errorf("the map: %+v, %v", m, err)
	}
	var ids []string
	if err := proposal.Each(t.Context(), b.db, sid, func(p proposal.Stored) error {
		ids = append(ids, p.Proposal.AuditID+" "+p.State)
		return nil
	}); err != nil {
		t.Error(err)
	}
	if got := strings.Join(ids, ", "); got != sid+"_003 SUPERSEDED, "+sid+"_008 SUPERSEDED, "+sid+"_009 SUPERSEDED" {
		t.Errorf("proposals: %s", got)
	}
}

// TestLapsedScopeIsNotNew: of a dormant case all of which was deleted after its lease had ended, whoever held it makes no new one: whoever
// takes it next finds that something is lost.
func TestLapsedScopeIsNotNew(t *testing.T) {
	b := newBench(t)
	ttl := 500 * time.Millisecond
	l, err := b.db.Acquire(t.Context(), sid, "one", ttl)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(ttl)
	b.s.Do(append([]string{"DEL"}, strings.Fields(b.s.Do("KEYS", "gb1:ghostbot:{"+sid+"}:*"))...)...)
	if _, err := dormant.Renew(t.Context(), b.db, l); !errors.Is(err, store.ErrFenced) {
		t.Errorf("renewed: %v", err)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(ttl / 10) {
		if _, err = Acquire(t.Context(), b.db, sid, "two", ttl); !errors.Is(err, store.ErrHeld) || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if native, from, _, err := b.db.Native(t.Context(), sid); native || from != shared.Gone || err != nil {
		t.Errorf("native: %v, from %q, %v", native, from, err)
	}
}
