package workspace

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// model is a second, simple-minded account of what a workspace holds: a list of messages.
type model struct{ list []entry }

type entry struct {
	ts, thread, user, text, to string
	gone                       bool // a tombstone
}

func (m *model) find(ts string) int {
	return slices.IndexFunc(m.list, func(e entry) bool { return e.ts == ts })
}

func (m *model) replies(ts string) int {
	n := 0
	for _, e := range m.list {
		if e.thread == ts && e.to == "" {
			n++
		}
	}
	return n
}

// apply makes one random step in both and compares the outcome.
func (m *model) apply(t *testing.T, w *Workspace, r *rand.Rand) {
	t.Helper()
	users := []string{bot, oncall, commander}
	user := users[r.IntN(len(users))]
	pick := func() string {
		if len(m.list) == 0 || r.IntN(8) == 0 {
			return "1.000000"
		}
		return m.list[r.IntN(len(m.list))].ts
	}
	switch r.IntN(10) {
	case 0, 1, 2:
		m.post(t, w, entry{user: user, text: fmt.Sprint(r.IntN(1000))})
	case 3, 4:
		m.post(t, w, entry{user: user, text: "reply", thread: pick()})
	case 5:
		m.post(t, w, entry{user: bot, text: "only you", to: user, thread: pick()})
	case 6, 7:
		m.update(t, w, pick(), user)
	default:
		m.delete(t, w, pick(), user)
	}
}

func (m *model) post(t *testing.T, w *Workspace, e entry) {
	got, err := w.Post(Message{Channel: incidents, User: e.user, Text: e.text, ThreadTS: e.thread, Ephemeral: e.to != "", To: e.to}, "")
	i := m.find(e.thread)
	switch {
	case e.thread != "" && i >= 0 && m.list[i].to == "" && m.list[i].thread != "":
		if err == nil {
			t.Fatalf("a reply to the reply %s was accepted", e.thread)
		}
		return
	case e.thread != "" && (i < 0 || m.list[i].to != ""):
		e.thread = ""
	}
	if err != nil {
		t.Fatalf("posting %+v: %v", e, err)
	}
	e.ts = got.TS
	m.list = append(m.list, e)
}

func (m *model) update(t *testing.T, w *Workspace, ts, by string) {
	_, err := w.Update(incidents, ts, by, "", func(msg *Message) { msg.Text = "updated" })
	i := m.find(ts)
	allowed := i >= 0 && !m.list[i].gone && m.list[i].to == "" && m.list[i].user == by
	if (err == nil) != allowed {
		t.Fatalf("updating %s by %s: %v", ts, by, err)
	}
	if allowed {
		m.list[i].text = "updated"
	}
}

func (m *model) delete(t *testing.T, w *Workspace, ts, by string) {
	i := m.find(ts)
	err := w.Delete(incidents, ts, by, "")
	allowed := i >= 0 && !m.list[i].gone && m.list[i].user == by
	if (err == nil) != allowed {
		t.Fatalf("deleting %s by %s: %v", ts, by, err)
	}
	switch {
	case !allowed:
	case m.replies(ts) > 0:
		m.list[i] = entry{ts: ts, user: "USLACKBOT", text: "This message was deleted.", gone: true}
	default:
		m.list = slices.Delete(m.list, i, i+1)
	}
}

// same compares what each viewer sees.
func (m *model) same(t *testing.T, w *Workspace) {
	t.Helper()
	for _, viewer := range []string{"", oncall, commander, "*"} {
		var want, got []string
		for _, e := range m.list {
			if e.to == "" || e.to == viewer || viewer == "*" {
				want = append(want, fmt.Sprint(e.ts, e.thread, e.user, e.text, e.to))
			}
		}
		for _, x := range w.Messages(incidents, viewer) {
			got = append(got, fmt.Sprint(x.TS, x.ThreadTS, x.User, x.Text, x.To))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("viewer %q: %s", viewer, diff)
		}
	}
	for _, e := range m.list {
		if n, _, _ := w.Replies(incidents, e.ts); n != m.replies(e.ts) {
			t.Fatalf("%s has %d replies, want %d", e.ts, n, m.replies(e.ts))
		}
	}
}

// invariants hold whatever happened.
func invariants(t *testing.T, w *Workspace) {
	t.Helper()
	all := w.Messages(incidents, "*")
	if !sort.SliceIsSorted(all, func(i, j int) bool { return all[i].TS < all[j].TS }) {
		t.Fatal("messages are out of order")
	}
	seen := map[string]Message{}
	for _, m := range all {
		if _, twice := seen[m.TS]; twice {
			t.Fatalf("%s twice", m.TS)
		}
		seen[m.TS] = m
		if string(m.Blocks) == "" {
			t.Fatalf("%s has blocks that are no JSON", m.TS)
		}
		if m.Ephemeral != (m.To != "") {
			t.Fatalf("%s: ephemeral %t, to %q", m.TS, m.Ephemeral, m.To)
		}
	}
}

// Thousands of random steps, several seeds, with restarts in between: the workspace and the model
// never disagree.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			w, c := newWorkspace()
			m := &model{}
			path := filepath.Join(t.TempDir(), "state")
			for step := range 400 {
				c.at = c.at.Add(time.Duration(r.IntN(1500)) * time.Microsecond)
				m.apply(t, w, r)
				if step%50 == 49 {
					m.same(t, w)
					invariants(t, w)
				}
				if step%130 == 129 {
					if err := w.Save(path); err != nil {
						t.Fatal(err)
					}
					w = New(DefaultSeed(), c.now)
					if err := w.Load(path); err != nil {
						t.Fatal(err)
					}
					m.same(t, w)
				}
			}
		})
	}
}

// Everything at once from many goroutines: for the race detector, and for the order of events.
func TestConcurrentUse(t *testing.T) {
	w, _ := newWorkspace()
	events, cancel := w.Subscribe(1024)
	done := make(chan int)
	for g := range 8 {
		go func() {
			for i := range 40 {
				m, err := w.Post(Message{Channel: incidents, User: bot, Text: fmt.Sprint(g, i)}, "")
				if err != nil {
					t.Error(err)
				}
				if _, err := w.Update(incidents, m.TS, bot, "", func(m *Message) { m.Text += "!" }); err != nil {
					t.Error(err)
				}
				w.Messages(incidents, "*")
				w.OpenView(oncall, modal("x"), "")
				_, _ = w.UseHook(w.NewHook(Hook{}, 1, time.Minute)) // only for the race detector
			}
			done <- g
		}()
	}
	for range 8 {
		<-done
	}
	cancel()
	last := ""
	n := 0
	for e := range events {
		if e.Kind != "message" {
			continue
		}
		n++
		if e.Message.TS <= last {
			t.Errorf("event of %s after that of %s", e.Message.TS, last)
		}
		last = e.Message.TS
	}
	if got := len(w.Messages(incidents, "")); got != 320 || n == 0 || n > 320 {
		t.Errorf("%d messages, %d events", got, n)
	}
}
