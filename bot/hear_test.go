package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/bot/inbox"
	"ghostbot/bot/neighbours"
	"ghostbot/bot/show"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// kinds of the case's entries, in order.
func (of *office) kinds(sid string) []string {
	of.t.Helper()
	var out []string
	for _, s := range of.board.texts() {
		k, _, _ := strings.Cut(s, "=")
		out = append(out, k)
	}
	return out
}

func TestWordsAreHeardWhileACaseWaits(t *testing.T) {
	of, pr, _ := pending(t)
	ctx := context.Background()
	if err := of.desk.Instruct(ctx, Words{Delivery: "w1", SessionID: pr.SessionID, By: "U9", Text: "it began at 10:40"}); err != nil {
		t.Fatal(err)
	}
	of.until("the words are heard", func() bool { return of.shows("heard it began at 10:40 (read once") })
	if r, err := of.desk.Resolve(ctx, clickOn(pr, "U2", safeexec.Approve)); err != nil || !r.OK {
		t.Errorf("the card: %+v, %v", r, err)
	}
}

// Words that were heard before their question was looked at answer it all the same.
func TestFreeQuestionIsAnsweredByWordsHeard(t *testing.T) {
	answered := make(chan agent.Answer, 1)
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		a, err := p.People.Ask(ctx, agent.Question{ID: "continue-1", Kind: agent.AskContinue, Free: true, Who: "anyone", Text: "Which host?"})
		if err == nil {
			answered <- a
		}
		return err
	})
	of.run()
	sid := of.open("d1")
	of.until("the question is shown", func() bool { return of.shows("Which host?") })
	if err := of.desk.Instruct(context.Background(), Words{Delivery: "w1", SessionID: sid, By: "U9", Text: "192.0.2.9"}); err != nil {
		t.Fatal(err)
	}
	select {
	case a := <-answered:
		if a.Key != "instruction" {
			t.Errorf("answer %+v", a)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("the question waits; shown: %q", of.board.texts())
	}
	of.until("the words are shown", func() bool { return of.shows("192.0.2.9") })
}

func TestClosedCaseTakesNoAnswer(t *testing.T) {
	q := agent.Question{ID: "q1", Kind: agent.AskExtend, Who: "anyone", Text: "More?", Options: []agent.Option{{Key: "report", Label: "Report"}}}
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		_, err := p.People.Ask(ctx, q)
		if errors.Is(err, agent.ErrStopped) {
			return nil
		}
		return err
	})
	of.run()
	sid := of.open("d1")
	of.until("the question is shown", func() bool { return of.shows("More?") })
	ctx := context.Background()
	if err := of.desk.Stop(ctx, sid, "U1"); err != nil {
		t.Fatal(err)
	}
	if r, err := of.desk.Answer(ctx, sid, "q1", "report", "U9", ""); err != nil || r.OK || !strings.Contains(r.Text, "stopped") && !strings.Contains(r.Text, "closed") {
		t.Errorf("an answer to a case that is stopped: %+v, %v", r, err)
	}
	of.until("the case is closed", func() bool { c, err := of.desk.Case(ctx, sid); return err == nil && c.Closed })
	if r, err := of.desk.Answer(ctx, sid, "q1", "report", "U9", ""); err != nil || r.OK || !strings.Contains(r.Text, "closed") {
		t.Errorf("an answer to a closed case: %+v, %v", r, err)
	}
	if _, why, err := of.desk.over(ctx, "ghost_20000101_000000"); err != nil || why == "" {
		t.Errorf("an unknown case goes on: %q, %v", why, err)
	}
}

// A second case on the same symptom is opened; each names the other.
func TestSimilarCasesNameEachOther(t *testing.T) {
	of := newOffice(t, nil, func(o *Options) { o.Alike = strings.EqualFold })
	of.run()
	first := of.open("d1")
	of.until("the first is shown", func() bool { return slices.Contains(of.kinds(first), "root") })
	second := of.open("d2")
	if first == second {
		t.Fatal("two deliveries are one case")
	}
	of.until("the new case names the old one", func() bool { return of.shows("looks at the same: " + first) })
	of.until("the old case names the new one", func() bool { return of.shows("looks at the same: " + second) })
	if again := of.open("d2"); again != second {
		t.Errorf("the same delivery again opened %s", again)
	}
	if _, err := of.desk.Open(context.Background(), Opening{Delivery: "d3", Symptom: "checkout gets 502", Requester: "U1", Place: Place{Transport: "slack", Channel: "C2"}}); err != nil {
		t.Fatal(err)
	}
	of.until("a case of another channel is shown", func() bool { return strings.Count(strings.Join(of.board.texts(), "\n"), "root=") == 3 })
	time.Sleep(50 * time.Millisecond)
	if n := strings.Count(strings.Join(of.board.texts(), "\n"), "looks at the same"); n != 2 {
		t.Errorf("%d lines about similar cases, want one in each of the two: %q", n, of.board.texts())
	}
	for _, want := range []string{"opened another case", "Another open case"} {
		of.board.set(func() {
			for _, m := range of.board.shown {
				if m.Log != nil && strings.Contains(m.Log.Body, want) && (len(m.Log.Links) != 1 || m.Log.Links[0].Link == "" || (m.Log.By == "U1") != (want == "opened another case")) {
					t.Errorf("line %+v", m.Log)
				}
			}
		})
	}
}

// However many cases look at the same, each writes one line, names the nearest and is
// named in the nearest; nothing of that is waited for, and a case that ends leaves no
// place for more lines in the others.
func TestManySimilarCases(t *testing.T) {
	of := newOffice(t, nil, func(o *Options) { o.Alike = strings.EqualFold; o.Lease = 10 * time.Second })
	slow := make(chan struct{})
	of.board.linkWait = slow
	of.run()
	var sids []string
	for i := range 12 {
		sids = append(sids, of.open(fmt.Sprint("d", i)))
		of.until("the case is investigated although links are slow", func() bool {
			of.board.mu.Lock()
			defer of.board.mu.Unlock()
			for _, m := range of.board.shown {
				if m.SessionID == sids[i] && m.Kind == show.KindProgress {
					return true
				}
			}
			return false
		})
	}
	close(slow)
	lines := func(sid string, named bool) (n int) {
		es, err := audit.Read(filepath.Join(of.dir, "audit"), sid)
		if err != nil {
			return 0
		}
		for _, e := range es {
			var note show.Notice
			if e.Kind == show.KindOfNotice && json.Unmarshal(e.Body, &note) == nil && (note.By == "") == named {
				n++
			}
		}
		return n
	}
	of.until("every case but the first names others", func() bool {
		for _, sid := range sids[1:] {
			if lines(sid, true) != 1 {
				return false
			}
		}
		return true
	})
	of.until("every case is done with its neighbours", func() bool {
		for _, sid := range sids {
			if ok, err := inbox.Seen(context.Background(), of.db, sid, "neighbours"); err != nil || !ok {
				return false
			}
		}
		return true
	})
	for i, sid := range sids {
		if got := lines(sid, false); got > neighbours.Max {
			t.Errorf("case %d is told of %d others, want %d at most", i, got, neighbours.Max)
		}
	}
	es, err := audit.Read(filepath.Join(of.dir, "audit"), sids[11])
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range es {
		got = append(got, neighbours.Named([]agent.Entry{{Kind: e.Kind, Body: e.Body}})...)
	}
	if diff := cmp.Diff([]string{sids[10], sids[9], sids[8]}, got); diff != "" {
		t.Errorf("the last case names (-want +got):\n%s", diff)
	}
}

// Words that come after the report, while the thread still lags behind, are not
// swallowed: whoever wrote them is told that nobody read them.
func TestWordsAfterTheReport(t *testing.T) {
	t.Parallel()
	of := newOffice(t, func(context.Context, Parts) error { return nil })
	held := make(chan struct{})
	of.board.fail = func(m show.Message) error {
		select {
		case <-held:
			return nil
		default:
		}
		if m.Kind == show.KindFile {
			return errors.New("uploads are slow")
		}
		return nil
	}
	of.run()
	sid := of.open("d1")
	of.until("the report is shown", func() bool { return of.shows("report=") })
	if err := of.desk.Instruct(context.Background(), Words{Delivery: "w1", SessionID: sid, By: "U9", Text: "it was the load balancer"}); err != nil {
		t.Fatal(err)
	}
	close(held)
	of.until("it is told", func() bool { return of.shows("not read: it was the load balancer") })
	if err := of.desk.Instruct(context.Background(), Words{Delivery: "w2", SessionID: sid, By: "U9", Text: "hello?"}); !errors.Is(err, ErrClosed) {
		t.Errorf("words to a closed case: %v", err)
	}
}

// After a crash between the two, the older case is told all the same, once.
func TestOlderCaseIsToldAfterACrash(t *testing.T) {
	of := newOffice(t, nil, func(o *Options) { o.Alike = strings.EqualFold })
	stop := of.run()
	first := of.open("d1")
	of.until("the first is shown", func() bool { return of.shows("root=") })
	of.board.set(func() { of.board.fail = func(m show.Message) error { return errors.New("away") } })
	second := of.open("d2")
	of.until("the second names the first", func() bool {
		es, err := audit.Read(filepath.Join(of.dir, "audit"), second)
		return err == nil && len(es) >= 2
	})
	stop()
	of.board.set(func() { of.board.fail = nil })
	of.again()
	of.until("the older case names the new one", func() bool { return of.shows("opened another case that looks at the same: " + second) })
	of.until("the new case names the older one", func() bool { return of.shows("Another open case of this channel looks at the same: " + first) })
	time.Sleep(50 * time.Millisecond)
	if n := strings.Count(strings.Join(of.board.texts(), "\n"), "opened another case"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// A process that died right after the first entry of a case had not looked for
// similar ones: the next one does.
func TestSimilarCaseAfterAnEarlyCrash(t *testing.T) {
	of := newOffice(t, nil, func(o *Options) { o.Alike = strings.EqualFold })
	stop := of.run()
	first := of.open("d1")
	of.until("the first is shown", func() bool { return of.shows("root=") })
	stop()
	second := of.open("d2") // its holder does what the dead process did, and no more
	ctx := context.Background()
	l, err := of.db.Acquire(ctx, second, "dead", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	log, err := of.o.OpenLog(ctx, second, l.Fence)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := log.Journal("case").Append(ctx, agent.KindOpened, agent.Opened{Symptom: "checkout gets 502", Requester: "U1"}); err != nil {
		t.Fatal(err)
	}
	log.Close()
	if err := of.db.Release(ctx, l); err != nil {
		t.Fatal(err)
	}
	of.again()
	of.until("the new case names the older one", func() bool { return of.shows("Another open case of this channel looks at the same: " + first) })
	of.until("the older case names the new one", func() bool { return of.shows("opened another case that looks at the same: " + second) })
}

// Two that are opened at the same moment do not miss each other.
func TestSimilarCasesOpenedAtOnce(t *testing.T) {
	of := newOffice(t, nil, func(o *Options) { o.Alike = strings.EqualFold })
	of.run()
	sids := make([]string, 2)
	var wg sync.WaitGroup
	for i := range sids {
		wg.Go(func() { sids[i] = of.open(fmt.Sprint("d", i)) })
	}
	wg.Wait()
	for _, sid := range sids {
		of.until("a thread names "+sid, func() bool { return of.shows("looks at the same: " + sid) })
	}
}

// gone is what a front says of a channel that the bot was removed from.
type gone struct{ error }

func (gone) Gone() bool { return true }

// register takes the entries of the deployment's journal.
type register chan map[string]any

func (r register) Append(_ context.Context, _ string, body any) (uint64, string, error) {
	r <- body.(map[string]any)
	return 1, "", nil
}

func (r register) AppendVia(context.Context, string, any, func(context.Context, store.Line) error) (uint64, string, error) {
	return 0, "", errors.New("nothing is committed with an entry of the register")
}

// A case whose channel is gone is closed, a while after its end; one whose channel
// only does not answer stays open, and is carried on until it does.
func TestEndOfACaseWithoutAChannel(t *testing.T) {
	for _, tt := range []struct {
		name  string
		down  error
		close bool
	}{{"removed", gone{errors.New("not_in_channel")}, true}, {"away", errors.New("timeout"), false}} {
		t.Run(tt.name, func(t *testing.T) {
			closed := make(register, 1)
			of := newOffice(t, func(context.Context, Parts) error { return nil }, func(o *Options) { o.Register = closed })
			of.desk.endWait = 300 * time.Millisecond
			of.board.down = tt.down
			of.run()
			sid := of.open("d1")
			if tt.close {
				of.until("the case is closed", func() bool { c, err := of.desk.Case(context.Background(), sid); return err == nil && c.Closed })
				if got := <-closed; got["session_id"] != sid || got["shown"] != false {
					t.Errorf("register: %v", got)
				}
				return
			}
			time.Sleep(time.Second)
			if c, err := of.desk.Case(context.Background(), sid); err != nil || c.Closed {
				t.Errorf("case %+v, %v", c, err)
			}
			of.board.set(func() { of.board.down = nil })
			<-closed // by the process that waited
			if of.shows("rests") {
				t.Error("people are told that a case rests that only waited")
			}
		})
	}
}

func TestLaterOnlyWhileACardWaits(t *testing.T) {
	f := show.New("s", show.Rules{})
	f.Apply(agent.Entry{N: 1, Journal: "case", Kind: agent.KindOpened, Body: []byte(`{"symptom":"x"}`)})
	f.Apply(agent.Entry{N: 2, Journal: "case", Kind: agent.KindInstruction, Body: []byte(`{"by":"U1","text":"hint"}`)})
	ms := f.Messages()
	if got := ms[len(ms)-1].Text; strings.Contains(got, "stays open") {
		t.Errorf("shown: %q", got)
	}
}

// TestReportIsWrittenOnce: whoever takes a case over between its report and its end only closes it.
func TestReportIsWrittenOnce(t *testing.T) {
	t.Parallel()
	var ran atomic.Int32
	of := newOffice(t, func(context.Context, Parts) error { ran.Add(1); return nil })
	var free atomic.Bool
	of.board.fail = func(m show.Message) error {
		if m.Kind == show.KindFile && !free.Load() {
			return errors.New("uploads are slow")
		}
		return nil
	}
	stop := of.run()
	sid := of.open("d1")
	of.until("the report is shown", func() bool { return of.shows("report=") })
	stop()
	free.Store(true)
	of.again()
	of.until("the case is closed", func() bool {
		c, err := of.desk.Case(context.Background(), sid)
		return err == nil && c.Closed
	})
	if n := len(of.written(sid, show.KindOfReport)); n != 1 || ran.Load() != 1 {
		t.Errorf("%d reports, investigated %d times", n, ran.Load())
	}
}
