package bot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/access"
	"ghostbot/bot/factor"
	"ghostbot/bot/proposal"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// A first vote is seen by everybody, survives the process that took it, and does not
// stand in the way of the second.
func TestFirstVoteIsSeen(t *testing.T) {
	of, pr, _ := pending(t, func(o *Options) { o.Access.TwoPerson = []string{"RISKY"} })
	if r := of.resolve(clickOn(pr, "U1", safeexec.Approve)); !r.OK || r.State != StatePending {
		t.Fatalf("first vote = %+v", r)
	}
	of.until("the card says 1 of 2", func() bool { return of.shows("Approved 1 of 2: tcpdump") })
	of.until("the log says so", func() bool { return of.shows("vote tcpdump -i lo -c 5 (1 of 2") })
	of.stop()
	of.run()
	of.until("another process asks on", func() bool { return of.shows("Another process continues") })
	of.until("the vote is seen after a take-over", func() bool { return of.shows("Approved 1 of 2: tcpdump") })
	if r := of.resolve(clickOn(pr, "U1", safeexec.Approve)); r.OK || !strings.Contains(r.Text, "1 of 2") {
		t.Errorf("the same person after a take-over = %+v", r)
	}
	if r := of.resolve(clickOn(pr, "U2", safeexec.Approve)); !r.OK || r.State != StateApproved {
		t.Errorf("second vote = %+v", r)
	}
	p, err := proposal.Load(context.Background(), of.db, pr.SessionID, pr.ID)
	if err != nil || len(p.Votes) != 2 || p.Votes[0].By != "U1" || p.Votes[1].By != "U2" {
		t.Errorf("votes = %+v, %v", p.Votes, err)
	}
	of.until("one journal entry for the vote", func() bool {
		entries := of.entries(pr.SessionID)
		n := 0
		for _, e := range entries {
			if e == "vote" {
				n++
			}
		}
		return n == 1
	})
}

// entries are the kinds of the case's entries, in order.
func (of *office) entries(sid string) []string {
	of.t.Helper()
	raw, err := os.ReadFile(filepath.Join(of.dir, "audit", "case_"+sid+".jsonl"))
	if err != nil {
		of.t.Fatal(err)
	}
	var out []string
	for _, l := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		_, rest, _ := strings.Cut(l, `"kind":"`)
		kind, _, _ := strings.Cut(rest, `"`)
		out = append(out, kind)
	}
	return out
}

// Who may decide depends on the channel and on the rule.
func TestLinesNarrow(t *testing.T) {
	line := func(channel, what string, who ...string) access.Line {
		return access.Line{Channel: channel, What: what, Who: who}
	}
	for _, tt := range []struct {
		name  string
		lines []access.Line
		may   string // who of U1, U2
	}{
		{"another channel", []access.Line{line("C2", "*", "U9")}, "U1 U2"},
		{"this channel", []access.Line{line("C1", "*", "U9")}, ""},
		{"this rule", []access.Line{line("*", "default-deny", "U2")}, "U2"},
		{"another rule", []access.Line{line("*", "az-mutate", "U9")}, "U1 U2"},
		{"the first that fits", []access.Line{line("C1", "default-deny", "U1"), line("C1", "*", "U2")}, "U1"},
		{"nobody", []access.Line{line("C1", "*")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			of, pr, _ := pending(t, func(o *Options) { o.Access.Lines = tt.lines })
			for _, by := range []string{"U1", "U2"} {
				c := clickOn(pr, by, safeexec.Modify)
				c.Text = "rm" // refused in any case, after the question who asks
				r := of.resolve(c)
				if may := strings.Contains(r.Text, "FORBIDDEN"); may != strings.Contains(tt.may, by) {
					t.Errorf("%s: %+v", by, r)
				}
			}
		})
	}
}

// A line that comes into force between the answer and the start counts.
func TestLinesCountAtTheStart(t *testing.T) {
	of, pr, _ := pending(t)
	if r := of.resolve(clickOn(pr, "U1", safeexec.Approve)); !r.OK {
		t.Fatalf("%+v", r)
	}
	a := &proposal.Approvals{DB: of.db, SessionID: pr.SessionID, Access: of.o.Access, People: of.board, Channel: "C1"}
	if why, err := a.Valid(t.Context(), pr); why != "" || err != nil {
		t.Errorf("as it was: %q, %v", why, err)
	}
	a.Access.Lines = []access.Line{{Channel: "C1", What: "*", Who: []string{"U2"}}}
	if why, err := a.Valid(t.Context(), pr); why == "" || err != nil {
		t.Errorf("an approver of another line: %q, %v", why, err)
	}
	a.Access.Lines, a.Access.Factor = nil, []string{"RISKY"}
	if why, err := a.Valid(t.Context(), pr); why == "" || err != nil {
		t.Errorf("a vote without a code: %q, %v", why, err)
	}
}

// coded is a case whose command needs a code of U1; right tells the code of now.
func coded(t *testing.T, edit ...func(*Options)) (of *office, pr safeexec.Proposal, got <-chan safeexec.Decision, right func() string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "totp")
	if _, err := factor.Enrol(name, "U1X", false); err != nil {
		t.Fatal(err)
	}
	full := Person{ID: "U1X", Active: true, Human: true, Member: true}
	of, pr, got = pending(t, append(edit, func(o *Options) {
		o.Access.Factor, o.Access.Approvers = []string{"RISKY"}, []string{"U1X", "U2"}
		o.Codes = factor.Codes{DB: o.DB, File: name}
		o.Front.(*board).people["U1X"] = full
	})...)
	secrets, err := factor.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return of, pr, got, func() string { return factor.Code(secrets["U1X"], factor.Counter(time.Now())) }
}

func TestCodeIsNeeded(t *testing.T) {
	of, pr, got, right := coded(t)
	if r := of.resolve(clickOn(pr, "U1X", safeexec.Approve)); r.OK || !r.Code || r.Command != pr.Display || r.State != StatePending {
		t.Errorf("without a code: %+v", r)
	}
	if r := of.resolve(clickOn(pr, "U2", safeexec.Approve)); r.OK || r.Code || !strings.Contains(r.Text, "none is enrolled for you") {
		t.Errorf("not enrolled: %+v", r)
	}
	wrong := clickOn(pr, "U1X", safeexec.Approve)
	wrong.Code = "418273"
	if right() == wrong.Code {
		wrong.Code = "418274"
	}
	for i := range 2 { // each is an entry
		wrong.Delivery += "x"
		if r := of.resolve(wrong); r.OK || r.Code || !strings.Contains(r.Text, "Wrong code ("+string(rune('1'+i))+" of 5") {
			t.Errorf("a wrong code: %+v", r)
		}
	}
	c := clickOn(pr, "U1X", safeexec.Approve)
	c.Code = right()
	if r := of.resolve(c); !r.OK || r.State != StateApproved {
		t.Fatalf("the right code: %+v", r)
	}
	if d := <-got; d.By != "U1X" {
		t.Errorf("%+v", d)
	}
	if r := of.resolve(c); r.OK && r.State != StateApproved {
		t.Errorf("the same delivery again: %+v", r)
	}
	p, err := proposal.Load(context.Background(), of.db, pr.SessionID, pr.ID)
	if err != nil || len(p.Votes) != 1 || !p.Votes[0].Code {
		t.Errorf("stored: %+v, %v", p.Votes, err)
	}
	of.until("three refusals are journaled", func() bool {
		return strings.Count(strings.Join(of.entries(pr.SessionID), " "), "refusal") >= 3
	})
	raw, err := os.ReadFile(filepath.Join(of.dir, "audit", "case_"+pr.SessionID+".jsonl"))
	if err != nil || strings.Contains(string(raw), `"`+c.Code) || strings.Contains(string(raw), `"`+wrong.Code) || strings.Contains(string(raw), " "+wrong.Code) {
		t.Errorf("a code is journaled (%v)", err)
	}
}

// The same person with the same code on two cards, or from two windows, at the same
// moment: it counts once.
func TestOneCodeOneVote(t *testing.T) {
	of, pr, _, right := coded(t, func(o *Options) { o.Access.TwoPerson = []string{"RISKY"} })
	code := right()
	var wg sync.WaitGroup
	var mu sync.Mutex
	ok := 0
	for i := range 8 {
		wg.Go(func() {
			c := clickOn(pr, "U1X", safeexec.Approve)
			c.Delivery, c.Code = c.Delivery+string(rune('a'+i)), code
			r, err := of.desk.Resolve(context.Background(), c)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && r.OK {
				ok++
			}
		})
	}
	wg.Wait()
	p, err := proposal.Load(context.Background(), of.db, pr.SessionID, pr.ID)
	if err != nil || ok != 1 || len(p.Votes) != 1 || p.State != StatePending {
		t.Errorf("%d were taken, %+v, %v", ok, p.Votes, err)
	}
	c := clickOn(pr, "U1X", safeexec.Approve)
	if r := of.resolve(c); r.Code || !strings.Contains(r.Text, "You already approved") {
		t.Errorf("a second vote asks for a code: %+v", r)
	}
}

// A denial and an edit need no code, and where codes cannot be given nothing that
// needs one is approved.
func TestCodesAndTheRest(t *testing.T) {
	of, pr, got, _ := coded(t)
	if r := of.resolve(clickOn(pr, "U2", safeexec.Deny)); !r.OK || r.State != StateDenied {
		t.Errorf("deny = %+v", r)
	}
	<-got
	of, pr, _ = pending(t, func(o *Options) { o.Access.Factor = []string{"RISKY"} })
	if r := of.resolve(clickOn(pr, "U1", safeexec.Approve)); r.OK || r.Code || !strings.Contains(r.Text, "in Slack only") {
		t.Errorf("no codes here: %+v", r)
	}
	of.o.Codes = lost{}
	of.desk.o.Codes = lost{}
	c := clickOn(pr, "U1", safeexec.Approve)
	c.Code = "123456"
	if r, err := of.desk.Resolve(t.Context(), c); err == nil || r.OK {
		t.Errorf("the store is away: %+v, %v", r, err)
	}
}

// lost cannot say anything.
type lost struct{}

func (lost) Enrolled(string) string { return "" }
func (lost) Check(context.Context, string, string) (string, error) {
	return "", errors.New("store is away")
}

// Two cards of one thread are independent: a vote, a denial and a code on one say
// nothing about the other.
func TestTwoCardsOfOneThread(t *testing.T) {
	two := make(chan safeexec.Proposal, 2)
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		for _, argv := range [][]string{{"tcpdump", "-i", "lo"}, {"tcpdump", "-i", "eth0"}} {
			pr, err := propose(ctx, p, argv...)
			if err != nil {
				return err
			}
			two <- pr
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}, func(o *Options) { o.Access.TwoPerson = []string{"RISKY"} })
	of.run()
	of.open("d1")
	a, b := <-two, <-two
	of.until("both cards are shown", func() bool {
		return of.shows("Approval needed: tcpdump -i lo") && of.shows("Approval needed: tcpdump -i eth0")
	})
	of.resolve(clickOn(a, "U1", safeexec.Approve))
	of.until("the first says 1 of 2", func() bool { return of.shows("Approved 1 of 2: tcpdump -i lo") })
	of.resolve(clickOn(b, "U2", safeexec.Deny))
	mixed := clickOn(a, "U2", safeexec.Approve)
	mixed.ProposalID = b.ID
	if r := of.resolve(mixed); r.OK {
		t.Errorf("a button with the id of the other card: %+v", r)
	}
	if r := of.resolve(clickOn(a, "U2", safeexec.Approve)); !r.OK || r.State != StateApproved {
		t.Errorf("the second vote on the first card: %+v", r)
	}
	for pr, want := range map[*safeexec.Proposal]string{&a: StateApproved, &b: StateDenied} {
		if p, err := proposal.Load(t.Context(), of.db, pr.SessionID, pr.ID); err != nil || p.State != want {
			t.Errorf("%s: %s, %v", pr.Display, p.State, err)
		}
	}
}

// Who may answer a question that is for approvers depends on the channel, too, and a
// refusal is journaled once.
func TestRefusedAnswerIsJournaled(t *testing.T) {
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		_, err := p.People.Ask(ctx, agent.Question{ID: "q1", Text: "Run again?", Options: []agent.Option{{Key: "leave", Label: "Leave it"}, {Key: "again", Label: "Run again"}}})
		return err
	}, func(o *Options) { o.Access.Lines = []access.Line{{Channel: "C1", What: "*", Who: []string{"U2"}}} })
	of.run()
	sid := of.open("d1")
	of.until("the question is asked", func() bool { return of.shows("Run again?") })
	for range 3 {
		if r, err := of.desk.Answer(t.Context(), sid, "q1", "again", "U1", ""); err != nil || r.OK || !strings.Contains(access.Plain(r.Text), "in this channel") {
			t.Errorf("an approver of elsewhere: %+v, %v", r, err)
		}
	}
	of.until("it is journaled", func() bool { return strings.Count(strings.Join(of.entries(sid), " "), "refusal") == 1 })
	if r, err := of.desk.Answer(t.Context(), sid, "q1", "again", "U2", ""); err != nil || !r.OK {
		t.Errorf("whom the line names: %+v, %v", r, err)
	}
}

// A lock after wrong codes is said to whoever typed, with its length, and journaled in the same words;
// after it the next five wrong ones cost more.
func TestLockIsJournaled(t *testing.T) {
	of, pr, _, right := coded(t)
	c := clickOn(pr, "U1X", safeexec.Approve)
	c.Code = "418273"
	if right() == c.Code {
		c.Code = "418274"
	}
	told := ""
	for range factor.Tries {
		c.Delivery += "x"
		told = of.resolve(c).Text
	}
	const want = "none of yours counts for 5 minutes, until "
	if !strings.Contains(told, want) || !strings.Contains(told, "5 more wrong ones cost 15 minutes") {
		t.Errorf("told %q", told)
	}
	of.until("the lock is journaled", func() bool {
		raw, err := os.ReadFile(filepath.Join(of.dir, "audit", "case_"+pr.SessionID+".jsonl"))
		return err == nil && strings.Contains(string(raw), want)
	})
}

// lossy is a store that takes no decision while it is away, or takes it and does not say so.
type lossy struct {
	store.DB
	away, mute atomic.Bool
}

func (l *lossy) Commit(ctx context.Context, c store.Commit) error {
	decides := c.Fence == 0 && c.Scope != store.Deployment
	if decides && l.away.Load() {
		return store.ErrUnavailable
	}
	if err := l.DB.Commit(ctx, c); err != nil || !decides || !l.mute.Load() {
		return err
	}
	return store.ErrUnavailable
}

// A code is used up although the store did not take the decision, so that nobody can use it again; the same
// window takes the next one, and the approval counts once.
func TestCodeWhoseDecisionWasLost(t *testing.T) {
	for _, lost := range []bool{true, false} {
		db := &lossy{}
		of, pr, _, _ := coded(t, func(o *Options) { db.DB = o.DB; o.DB = db })
		secrets, err := factor.Read(of.o.Codes.(factor.Codes).File)
		if err != nil {
			t.Fatal(err)
		}
		begun := factor.Counter(time.Now())
		c := clickOn(pr, "U1X", safeexec.Approve)
		c.Code = factor.Code(secrets["U1X"], begun)
		db.away.Store(lost)
		db.mute.Store(!lost)
		if r, err := of.desk.Resolve(t.Context(), c); err == nil || r.OK {
			t.Fatalf("while the store is away: %+v, %v", r, err)
		}
		db.away.Store(false)
		db.mute.Store(false)
		if lost {
			if r := of.resolve(c); r.OK || !strings.Contains(r.Text, "was used already") || !strings.Contains(r.Text, "wait for the next code") {
				t.Errorf("the same code: %+v", r)
			}
		}
		c.Code = factor.Code(secrets["U1X"], begun+1)
		if r := of.resolve(c); !r.OK || r.State != StateApproved {
			t.Errorf("the next code: %+v", r)
		}
		if p, err := proposal.Load(t.Context(), of.db, pr.SessionID, pr.ID); err != nil || p.State != StateApproved && p.State != StateStarted || len(p.Votes) != 1 {
			t.Errorf("stored: %+v, %v", p, err)
		}
	}
}
