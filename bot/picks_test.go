package bot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ghostbot/agent"
)

// What is picked counts only when it is one of the things to pick, is something, and
// is picked by somebody who may approve it; the other answers are for everybody.
func TestPicks(t *testing.T) {
	q := agent.Question{ID: "q1", Kind: "triage", Who: "anyone", Text: "Which of them?", Expires: time.Now().Add(time.Hour),
		Options: []agent.Option{{Key: "leave", Label: "Dismiss"}, {Key: "explain", Label: "Explain"}, {Key: agent.KeyApply, Label: "Apply selected"}},
		Picks:   []agent.Pick{{Key: "1", Label: "end 7 worker"}, {Key: "2", Label: "end 8 worker"}}}
	answered := make(chan agent.Answer, 1)
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		a, err := p.People.Ask(ctx, q)
		if err == nil {
			answered <- a
			<-ctx.Done()
		}
		if errors.Is(err, agent.ErrStopped) {
			return nil
		}
		return err
	})
	of.run()
	sid := of.open("d1")
	of.until("the question is shown", func() bool { return of.shows("Which of them?") })
	for _, c := range []struct {
		key, by string
		picked  []string
		want    string
	}{
		{agent.KeyApply, "U9", []string{"1"}, "may not decide"},
		{agent.KeyApply, "UGUEST", []string{"1"}, "may not decide"},
		{agent.KeyApply, "U1", nil, "Nothing is selected"},
		{agent.KeyApply, "U1", []string{"3"}, "not one of the things"},
		{agent.KeyApply, "U1", []string{"1", "4711"}, "not one of the things"},
		{"kill", "U1", []string{"1"}, "not one of the answers"},
	} {
		r, err := of.desk.Answer(context.Background(), sid, "q1", c.key, c.by, "", c.picked...)
		if err != nil || r.OK || !strings.Contains(r.Text, c.want) {
			t.Errorf("%s %q by %s: %+v, %v, want %q", c.key, c.picked, c.by, r, err, c.want)
		}
	}
	if r, err := of.desk.Answer(context.Background(), sid, "q1", agent.KeyApply, "U1", "", "2"); err != nil || !r.OK {
		t.Fatalf("%+v, %v", r, err)
	}
	select {
	case a := <-answered:
		if a.Key != agent.KeyApply || a.By != "U1" || !slices.Equal(a.Picked, []string{"2"}) {
			t.Errorf("answer %+v", a)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the question waits")
	}
}

// A triage is a case of its own kind, with what it looks at first.
func TestTriageIsACase(t *testing.T) {
	opened := make(chan agent.Opened, 1)
	of := newOffice(t, func(_ context.Context, p Parts) error { opened <- p.Opened; return nil }, func(o *Options) { o.Triage = true })
	of.run()
	if !of.desk.Triages() {
		t.Error("triages cannot be opened")
	}
	sid, err := of.desk.Triage(context.Background(), Opening{Delivery: "d1", Requester: "U1", Place: Place{Transport: "test", Channel: "C1"}}, agent.Focus{Port: 8080, Case: "ghost_20260314_104512"}, "port 8080")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case o := <-opened:
		if o.Kind != agent.KindTriage || o.Focus == nil || o.Focus.Port != 8080 || o.Symptom != "Processes of this machine: port 8080 (for case ghost_20260314_104512)" {
			t.Errorf("opened %+v", o)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nobody carries it")
	}
	again, err := of.desk.Triage(context.Background(), Opening{Delivery: "d1", Requester: "U1", Place: Place{Transport: "test", Channel: "C1"}}, agent.Focus{}, "")
	if err != nil || again != sid {
		t.Errorf("the same delivery again: %s, %v", again, err)
	}
}
