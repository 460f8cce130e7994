package safeexec

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/safeexec/policy"
)

func always(d Decision, err error) func(context.Context, Proposal) (Decision, error) {
	return func(context.Context, Proposal) (Decision, error) { return d, err }
}

func soon() time.Time { return time.Now().Add(time.Minute) }

// short is what a table says about a result.
type short struct {
	Status, Action, Error, Reason string
	Class                         Class
}

func shorten(r Result) short {
	return short{r.Status, r.Action, r.Error, r.DenialReason, r.Classification}
}

func TestRun(t *testing.T) {
	const ran = "proposed APPROVED intent started outcome:completed"
	for _, c := range []struct {
		name    string
		answer  func(context.Context, Proposal) (Decision, error)
		command string
		want    short
		journal string
		asked   int
	}{
		{"safe", nobody, "uptime", short{"completed", "auto_approved", "", "", Safe}, "proposed intent started outcome:completed", 0},
		{"approved", approve, "frob x", short{"completed", "user_approved", "", "", Risky}, ran, 1},
		{"denied", always(Decision{By: "U1", Reason: "not now"}, nil), "frob x", short{"denied", "user_denied", "", "not now", Risky}, "proposed DENIED outcome:denied", 1},
		{"no approver", nobody, "frob x", short{"denied", "user_abandoned", "", "no approver", Risky}, "proposed DENIED outcome:denied", 1},
		{"expired", always(Decision{Reason: "expired"}, nil), "frob x", short{"denied", "user_abandoned", "", "expired", Risky}, "proposed EXPIRED outcome:denied", 1},
		{"stopped", always(Decision{Reason: "stopped"}, nil), "frob x", short{"denied", "user_abandoned", "", "stopped", Risky}, "proposed CANCELLED outcome:denied", 1},
		{"zero answer", always(Decision{}, nil), "frob x", short{"denied", "user_abandoned", "", "denied", Risky}, "proposed DENIED outcome:denied", 1},
		{"error", always(Decision{Action: Approve, By: "U1", UseBy: soon()}, errors.New("lost")), "frob x", short{"denied", "user_abandoned", "", "no answer: lost", Risky}, "proposed DENIED outcome:denied", 1},
		{"panic", func(context.Context, Proposal) (Decision, error) { panic("x") }, "frob x", short{"denied", "user_abandoned", "", "no answer: approver panicked", Risky}, "proposed DENIED outcome:denied", 1},
		{"unknown action", always(Decision{Action: 7, By: "U1", UseBy: soon()}, nil), "frob x", short{"denied", "user_abandoned", "", "unknown answer 7", Risky}, "proposed DENIED outcome:denied", 1},
		{"approved by nobody", always(Decision{Action: Approve, UseBy: soon()}, nil), "frob x", short{"denied", "user_abandoned", "", "an approval without a person", Risky}, "proposed DENIED outcome:denied", 1},
		{"approved without end", always(Decision{Action: Approve, By: "U1"}, nil), "frob x", short{"denied", "user_abandoned", "", "an approval without a use-by time", Risky}, "proposed DENIED outcome:denied", 1},
		{"approved too long ago", always(Decision{Action: Approve, By: "U1", UseBy: time.Now().Add(-time.Second)}, nil), "frob x", short{"denied", "user_abandoned", "", "approved, but not started in time", Risky}, "proposed APPROVED EXPIRED outcome:denied", 1},
		{"edited to nothing", always(Decision{Action: Modify, By: "U1", Modified: " \n"}, nil), "frob x", short{"denied", "user_denied", "", "an edit without a command", Risky}, "proposed DENIED outcome:denied", 1},
		{"edited by nobody", always(Decision{Action: Modify, Modified: "uptime"}, nil), "frob x", short{"denied", "user_abandoned", "", "an approval without a person", Risky}, "proposed DENIED outcome:denied", 1},
		{"edited to safe", edit("uptime"), "frob x", short{"completed", "user_modified", "", "", Safe}, "proposed MODIFIED proposed outcome:superseded intent started outcome:completed", 1},
		{"edited to risky", edit("frob y"), "frob x", short{"completed", "user_modified", "", "", Risky}, "proposed MODIFIED proposed outcome:superseded APPROVED intent started outcome:completed", 2},
		{"edited to forbidden", edit("rm -rf /"), "frob x", short{"error", "blocked", "forbidden_command", "", Forbidden}, "proposed MODIFIED proposed outcome:superseded outcome:forbidden_command", 1},
		{"edited to two", edit("uptime; frob y"), "frob x", short{"error", "blocked", "not_one_command", "", Risky}, "proposed MODIFIED proposed outcome:superseded outcome:not_one_command", 1},
		{"edited to a credential", edit("frob password=" + planted), "frob x", short{"error", "blocked", "credential_in_command", "", Forbidden}, "proposed MODIFIED proposed outcome:superseded outcome:credential_in_command", 1},
		{"edited, then denied", func(_ context.Context, p Proposal) (Decision, error) {
			if p.Edited {
				return Decision{By: "U3", Reason: "no"}, nil
			}
			return Decision{Action: Modify, By: "U2", Modified: "frob y"}, nil
		}, "frob x", short{"denied", "user_denied", "", "no", Risky}, "proposed MODIFIED proposed outcome:superseded DENIED outcome:denied", 2},
		{"forbidden", approve, "rm -rf /", short{"error", "blocked", "forbidden_command", "", Forbidden}, "proposed outcome:forbidden_command", 0},
		{"pipe", approve, "uptime | frob x", short{"error", "blocked", "not_one_command", "", Risky}, "proposed outcome:not_one_command", 0},
		{"credential", approve, "frob password=" + planted, short{"error", "blocked", "credential_in_command", "", Forbidden}, "proposed outcome:credential_in_command", 0},
		{"query that az would refuse", approve, "az vm list --query '[?name=='", short{"error", "blocked", "invalid_query", "", Risky}, "proposed outcome:invalid_query", 0},
		{"empty", approve, "", short{"error", "blocked", "empty_command", "", Forbidden}, "", 0},
		{"blank", approve, " \t ", short{"error", "blocked", "empty_command", "", Forbidden}, "", 0},
		{"not UTF-8", approve, "uptime \xff", short{"error", "blocked", "not_one_command", "", Risky}, "proposed outcome:not_one_command", 0},
		{"a NUL byte", approve, "uptime\x00", short{"error", "blocked", "not_one_command", "", Risky}, "proposed outcome:not_one_command", 0},
		{"two lines", approve, "uptime\nfrob x", short{"error", "blocked", "not_one_command", "", Risky}, "proposed outcome:not_one_command", 0},
		{"an open quote", approve, "frob \"x", short{"error", "blocked", "not_one_command", "", Risky}, "proposed outcome:not_one_command", 0},
		{"only operators", approve, "&& || ;", short{"error", "blocked", "not_one_command", "", Risky}, "proposed outcome:not_one_command", 0},
		{"only a comment", approve, "# uptime", short{"error", "blocked", "not_one_command", "", Risky}, "proposed outcome:not_one_command", 0},
		{"too long", approve, "uptime " + strings.Repeat("x", 1<<20), short{"error", "blocked", "forbidden_command", "", Forbidden}, "proposed outcome:forbidden_command", 0},
		{"not installed", approve, "frobnicate x", short{"completed", "blocked", "", "", Risky}, "proposed outcome:completed", 0},
		{"relative", approve, "./frob x", short{"completed", "blocked", "", "", Risky}, "proposed outcome:completed", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, c.answer)
			l.program("uptime", "echo up")
			l.program("frob", "echo frob $1")
			got := l.run(c.command)
			if diff := cmp.Diff(c.want, shorten(got)); diff != "" {
				t.Errorf("result (-want +got):\n%s%+v", diff, got)
			}
			if j := l.j.kinds(); j != c.journal {
				t.Errorf("journal\n got %s\nwant %s", j, c.journal)
			}
			if len(l.ppl.asked) != c.asked {
				t.Errorf("asked %d times, want %d", len(l.ppl.asked), c.asked)
			}
			checkJournal(t, l, got)
		})
	}
}

// planted is a password that nobody uses anywhere.
var planted = strings.Join([]string{"Zk7", "wQ9", "pL2x"}, "")

// checkJournal holds for every journal: no credential in it, every intent after
// its proposal and approval, the result is the last outcome.
func checkJournal(t *testing.T, l *lab, got Result) {
	t.Helper()
	entries := l.j.all()
	for _, e := range entries {
		if strings.Contains(string(e.Body), planted) {
			t.Errorf("entry %d (%s) holds a credential: %s", e.N, e.Kind, e.Body)
		}
	}
	if len(entries) == 0 {
		return
	}
	records := Fold(entries)
	last := records[len(records)-1]
	if diff := cmp.Diff(&got, last.Result); diff != "" {
		t.Errorf("last outcome is not the result (-result +journal):\n%s", diff)
	}
	for _, r := range records {
		if r.Result == nil {
			t.Errorf("%s has no outcome", r.Proposal.AuditID)
		}
		if r.Intent && r.Proposal.Class != Safe && (r.Decided == nil || r.Decided.Decision != "APPROVED") {
			t.Errorf("%s has an intent without an approval", r.Proposal.AuditID)
		}
		if r.Proposal.Digest != Digest(r.Proposal) {
			t.Errorf("%s: digest does not survive the journal", r.Proposal.AuditID)
		}
	}
}

func TestEditedProposal(t *testing.T) {
	l := newLab(t, edit("frob y z"))
	l.program("frob", "echo $1")
	l.do(Request{Command: "frob x", Reasoning: "look", Hypothesis: "H1", Turn: 3, Index: 2, Timeout: time.Second})
	p := l.ppl.asked[1]
	want := Proposal{
		SessionID: sid, Argv: []string{"frob", "y", "z"}, Display: "frob y z", Program: filepath.Join(l.bin, "frob"), Dir: l.dir,
		Class: Risky, Env: "local", Reasoning: "look", Hypothesis: "H1", Effect: "not known to be read-only", Timeout: 20 * time.Second,
		Requester: "U2", Replaces: sid + "_001", Edited: true, Turn: 3, Index: 2, AuditID: sid + "_003",
	}
	for _, q := range []*Proposal{&p} {
		q.Tier, q.Rule, q.Risk, q.Policy, q.Digest, q.ID, q.Expires = nil, "", "", "", "", "", time.Time{}
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("edited proposal (-want +got):\n%s", diff)
	}
}

func TestEndlessEditing(t *testing.T) {
	l := newLab(t, always(Decision{Action: Modify, By: "U1", Modified: "frob again"}, nil))
	l.program("frob", "exit 0")
	res := l.run("frob x")
	if res.Status != "denied" || len(l.ppl.asked) != maxLinks {
		t.Errorf("got %+v after %d questions, want a denial after %d", res, len(l.ppl.asked), maxLinks)
	}
	checkJournal(t, l, res)
}

func TestReadOnly(t *testing.T) {
	l := newLab(t, approve, func(o *Options) { o.ReadOnly = true })
	l.program("frob", "exit 0")
	want := short{"denied", "blocked", "", "read-only mode", Risky}
	if diff := cmp.Diff(want, shorten(l.run("frob x"))); diff != "" || len(l.ppl.asked) != 0 {
		t.Errorf("asked %d times; (-want +got):\n%s", len(l.ppl.asked), diff)
	}
}

// TestStartRefused: without the intent there is no process.
func TestStartRefused(t *testing.T) {
	for _, command := range []string{"uptime", "frob x"} {
		l := newLab(t, approve)
		l.program("uptime", "touch ran")
		l.program("frob", "touch ran")
		l.ppl.refuse = errors.New("commit refused: fence")
		res := l.run(command)
		if res.Status != "denied" || res.DenialReason != "start refused: commit refused: fence" {
			t.Errorf("%s: got %+v", command, res)
		}
		if _, err := os.Stat(filepath.Join(l.dir, "ran")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a process ran without an intent", command)
		}
	}
}

type panicking struct{ *people }

func (panicking) Start(context.Context, Start) (uint64, string, error) { panic("half way") }

// TestStartPanics: whether the intent is durable is unknown, so the case stops
// and no outcome is invented.
func TestStartPanics(t *testing.T) {
	l := newLab(t, approve)
	l.program("frob", "touch ran")
	l.opts.Approver = panicking{l.ppl}
	_, err := l.again().Run(context.Background(), Request{Command: "frob x"})
	if !errors.Is(err, ErrPanicked) || l.j.kinds() != "proposed APPROVED" {
		t.Errorf("got %v with journal %s", err, l.j.kinds())
	}
}

// explaining is people who say why only after the denial is journaled.
type explaining struct {
	*people
	words string
	seen  string // the journal when they were asked why
}

func (e *explaining) Explain(context.Context, Proposal) string {
	e.seen = e.j.kinds()
	if e.words == "panic" {
		panic("half way")
	}
	return e.words
}

// TestReasonFollowsTheDenial: a denial is journaled when it is made, and its words
// stand in the outcome.
func TestReasonFollowsTheDenial(t *testing.T) {
	for _, c := range []struct {
		name, words string
		answer      Decision
		want        string
		asked       bool
	}{
		{"words", "not there, " + planted, Decision{By: "U1"}, "not there, " + planted, true},
		{"a credential", "password=" + planted, Decision{By: "U1"}, "password=[masked]", true},
		{"none", "", Decision{By: "U1"}, "denied", true},
		{"a panic", "panic", Decision{By: "U1"}, "denied", true},
		{"known at once", "later", Decision{By: "U1", Reason: "no"}, "no", false},
		{"nobody denied", "later", Decision{Reason: "expired"}, "expired", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, always(c.answer, nil))
			l.program("frob", "touch ran")
			e := &explaining{people: l.ppl, words: c.words}
			l.opts.Approver = e
			res, err := l.again().Run(context.Background(), Request{Command: "frob x"})
			if err != nil {
				t.Fatal(err)
			}
			got := res.DenialReason
			if c.name == "a credential" && !strings.Contains(got, planted) {
				got = c.want
			}
			if got != c.want || res.Status != "denied" {
				t.Errorf("result = %s, %q, want denied, %q", res.Status, res.DenialReason, c.want)
			}
			if asked := e.seen != ""; asked != c.asked || asked && e.seen != "proposed DENIED" {
				t.Errorf("asked why with journal %q, want asked %v after the decision", e.seen, c.asked)
			}
		})
	}
}

// TestJournalFails: at whatever entry the journal ends, Run says so, and nothing
// runs without an intent nor goes on running without a started entry.
func TestJournalFails(t *testing.T) {
	want := strings.Fields("proposed APPROVED intent started outcome:completed")
	for room := 1; room < len(want); room++ {
		l := newLab(t, approve)
		l.program("frob", "touch ran; exec sleep 300 "+t.Name())
		if room == 4 {
			l.program("frob", "touch ran")
		}
		l.j.room = room
		start := time.Now()
		_, err := l.Run(context.Background(), Request{Command: "frob x"})
		// A start that the store refused is a refusal only when that can be written down.
		if !errors.Is(err, errFull) {
			t.Errorf("room for %d: got error %v", room, err)
		}
		if got := l.j.kinds(); got != strings.Join(want[:room], " ") {
			t.Errorf("room for %d: journal %s", room, got)
		}
		_, statErr := os.Stat(filepath.Join(l.dir, "ran"))
		if room < 3 && statErr == nil {
			t.Errorf("room for %d: something ran", room)
		}
		if time.Since(start) > 10*time.Second {
			t.Errorf("room for %d: took %v", room, time.Since(start))
		}
	}
}

// TestAskTimes: nothing waits longer than the proposal lives plus a lease, and a
// case that stops leaves its question open.
func TestAskTimes(t *testing.T) {
	hang := func(ctx context.Context, p Proposal) (Decision, error) {
		<-ctx.Done()
		return Decision{Action: Approve, By: "U1", UseBy: time.Now().Add(time.Hour)}, ctx.Err()
	}
	setup := func(t *testing.T) *lab {
		l := newLab(t, hang)
		l.program("frob", "touch ran")
		return l
	}
	t.Run("hangs", func(t *testing.T) {
		l := setup(t)
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			res := l.run("frob x")
			if took := time.Since(start); took != DefaultApprovalTTL+DefaultLease {
				t.Errorf("took %v", took)
			}
			if diff := cmp.Diff(short{"denied", "user_abandoned", "", "expired", Risky}, shorten(res)); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("stops", func(t *testing.T) {
		l := setup(t)
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("lease lost"))
			defer cancel()
			_, err := l.Run(ctx, Request{Command: "frob x"})
			if err == nil || !strings.Contains(err.Error(), "lease lost") || l.j.kinds() != "proposed" {
				t.Errorf("got %v with journal %s", err, l.j.kinds())
			}
		})
	})
}

// TestStoppedWhileAsking: what the approver answers to the end of ctx is an
// answer and is journaled; an approval in that moment starts nothing.
func TestStoppedWhileAsking(t *testing.T) {
	for _, c := range []struct {
		answer  Decision
		journal string
		err     bool
	}{
		{Decision{Reason: "stopped"}, "proposed CANCELLED outcome:denied", false},
		{Decision{Action: Approve, By: "U1", UseBy: soon()}, "proposed APPROVED", true},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		l := newLab(t, func(context.Context, Proposal) (Decision, error) {
			cancel()
			return c.answer, nil
		})
		l.program("frob", "touch ran")
		_, err := l.Run(ctx, Request{Command: "frob x"})
		if (err != nil) != c.err || l.j.kinds() != c.journal {
			t.Errorf("got %v with journal %s, want %s", err, l.j.kinds(), c.journal)
		}
		if _, err := os.Stat(filepath.Join(l.dir, "ran")); err == nil {
			t.Error("it ran")
		}
	}
}

func TestReasoningIsRedacted(t *testing.T) {
	l := newLab(t, always(Decision{By: "U1", Reason: "password=" + planted}, nil))
	l.program("frob", "exit 0")
	res := l.do(Request{Command: "frob x", Reasoning: "login with password=" + planted, Target: "password=" + planted, Effect: "password=" + planted})
	b, _ := json.Marshal(l.ppl.asked)
	if strings.Contains(string(b), planted) {
		t.Errorf("people were shown a credential: %s", b)
	}
	checkJournal(t, l, res)
}

func TestArgvRequest(t *testing.T) {
	l := newLab(t, approve)
	l.program("frob", `printf '%s\n' "$@"`)
	args := []string{"frob", "a b", "", "it's", `"$HOME"`, "*", "--x=1"}
	if got, want := l.do(Request{Argv: args}).Output, strings.Join(args[1:], "\n")+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, bad := range [][]string{{"frob", "a\x00b"}, {"frob", "\xff"}} {
		if res := l.do(Request{Argv: bad}); res.ExitCode != nil || res.Status != "error" {
			t.Errorf("%q: got %+v", bad, res)
		}
	}
}

// TestPolicyBetweenAnswerAndStart: what became stricter is asked again.
func TestPolicyBetweenAnswerAndStart(t *testing.T) {
	l := newLab(t, approve)
	l.program("uptime", "touch ran")
	l.program("frob", "touch ran")
	strict := &changing{classifier: l.policy}
	l.Shell.policy = strict
	l.ppl.answer = func(ctx context.Context, p Proposal) (Decision, error) {
		strict.forbid = true
		return approve(ctx, p)
	}
	res := l.run("frob x")
	if diff := cmp.Diff(short{"error", "blocked", "forbidden_command", "", Forbidden}, shorten(res)); diff != "" {
		t.Error(diff)
	}
	if got, want := l.j.kinds(), "proposed APPROVED SUPERSEDED proposed outcome:superseded outcome:forbidden_command"; got != want {
		t.Errorf("journal\n got %s\nwant %s", got, want)
	}
	if _, err := os.Stat(filepath.Join(l.dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

type changing struct {
	classifier
	forbid bool
}

func (c *changing) ClassifyArgv(argv []string) policy.Verdict {
	if c.forbid {
		return policy.Verdict{Rule: "new", Reason: "forbidden since today", Argv: argv}
	}
	return c.classifier.ClassifyArgv(argv)
}

func TestLongWords(t *testing.T) {
	l := newLab(t, nobody)
	l.program("uptime", "")
	l.do(Request{Command: "uptime", Reasoning: strings.Repeat("a very long reason \u20ac ", 1<<16)})
	if p := Fold(l.j.all())[0].Proposal; len(p.Reasoning) > maxWords+3 || !strings.HasSuffix(p.Reasoning, "...") || strings.ContainsRune(p.Reasoning, '\uFFFD') {
		t.Errorf("reasoning has %d bytes", len(p.Reasoning))
	}
}

// TestStoredAnswerOutlivesAStricterRestart: people answered, the bot died before
// it journaled that, and came back with other rules. What they said stands.
func TestStoredAnswerOutlivesAStricterRestart(t *testing.T) {
	denial := Decision{By: "U2", Reason: "not now"}
	for _, c := range []struct {
		name     string
		answer   *Decision // stored before the restart; nil: nobody answered
		readOnly bool
		journal  string
	}{
		{"denied", &denial, false, "proposed DENIED outcome:denied"},
		{"denied, read-only now", &denial, true, "proposed DENIED outcome:denied"},
		{"edited", &Decision{Action: Modify, By: "U2", Modified: "frob y"}, false, "proposed MODIFIED proposed outcome:superseded outcome:forbidden_command"},
		{"approved", &Decision{Action: Approve, By: "U1", UseBy: time.Now().Add(time.Minute)}, false, "proposed APPROVED SUPERSEDED proposed outcome:superseded outcome:forbidden_command"},
		{"approved, read-only now", &Decision{Action: Approve, By: "U1", UseBy: time.Now().Add(time.Minute)}, true, "proposed APPROVED outcome:denied"},
		{"nobody answered", nil, false, "proposed SUPERSEDED proposed outcome:superseded outcome:forbidden_command"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, func(ctx context.Context, _ Proposal) (Decision, error) { <-ctx.Done(); return Decision{}, ctx.Err() })
			l.program("frob", "touch ran")
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			if _, err := l.Shell.Run(ctx, Request{Command: "frob x"}); err == nil {
				t.Fatal("the first life ended with a result")
			}
			records := Fold(l.j.all())
			if c.answer != nil {
				p := records[0].Proposal
				l.ppl.stored[p.ID], l.ppl.digests[p.ID] = *c.answer, p.Digest
			}
			l.opts.ReadOnly = c.readOnly
			l.Shell = l.again()
			if !c.readOnly {
				l.Shell.policy = &strictNow{l.Shell.policy}
			}
			if _, err := l.Shell.Continue(context.Background(), records[0]); err != nil {
				t.Fatal(err)
			}
			if got := l.j.kinds(); got != c.journal {
				t.Errorf("journal\n got %s\nwant %s", got, c.journal)
			}
			if _, err := os.Stat(filepath.Join(l.dir, "ran")); err == nil {
				t.Error("it ran")
			}
		})
	}
}

// strictNow forbids everything, as a policy after an upgrade may.
type strictNow struct{ classifier }

func (s *strictNow) Classify(text string) policy.Verdict {
	v := s.classifier.Classify(text)
	return policy.Verdict{Rule: "new", Reason: "forbidden since today", Argv: v.Argv}
}

func (s *strictNow) ClassifyArgv(argv []string) policy.Verdict {
	return policy.Verdict{Rule: "new", Reason: "forbidden since today", Argv: argv}
}

// TestApprovalThatDoesNotCountAnyMore is asked again.
func TestApprovalThatDoesNotCountAnyMore(t *testing.T) {
	l := newLab(t, approve)
	l.program("frob", "touch ran")
	l.ppl.invalid = "an approver may not decide any more"
	l.run("frob x")
	if got, want := l.j.kinds(), "proposed APPROVED SUPERSEDED proposed outcome:superseded APPROVED intent started outcome:completed"; got != want {
		t.Errorf("journal\n got %s\nwant %s", got, want)
	}
}

// TestAnswerThatIsStoredAlthoughAskingFailed: somebody was told that they decided,
// so that is what is journaled; without one, nothing is left open.
func TestAnswerThatIsStoredAlthoughAskingFailed(t *testing.T) {
	for _, c := range []struct {
		name    string
		stored  bool
		journal string
	}{
		{"answered", true, "proposed APPROVED intent started outcome:completed"},
		{"not answered", false, "proposed DENIED outcome:denied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l *lab
			l = newLab(t, func(ctx context.Context, p Proposal) (Decision, error) {
				if d, _ := approve(ctx, p); c.stored {
					l.ppl.mu.Lock()
					l.ppl.stored[p.ID], l.ppl.digests[p.ID] = d, p.Digest
					l.ppl.mu.Unlock()
				}
				return Decision{}, errors.New("the store does not answer")
			})
			l.program("frob", "touch ran")
			l.run("frob x")
			if got := l.j.kinds(); got != c.journal {
				t.Errorf("journal\n got %s\nwant %s", got, c.journal)
			}
			if p := Fold(l.j.all())[0].Proposal; len(l.ppl.done) != 1 || l.ppl.done[p.ID].Status == "" {
				t.Errorf("closed proposals: %+v", l.ppl.done)
			}
		})
	}
}

// TestEveryEndClosesTheProposal: whatever becomes of a RISKY proposal, the approver
// is told, so that its record does not stay open.
func TestEveryEndClosesTheProposal(t *testing.T) {
	late := func(context.Context, Proposal) (Decision, error) {
		return Decision{Action: Approve, By: "U1", UseBy: time.Now().Add(-time.Second)}, nil
	}
	for _, c := range []struct {
		name   string
		answer func(context.Context, Proposal) (Decision, error)
		change func(*lab)
		error  string
		status string
	}{
		{"denied", nobody, nil, "", "denied"},
		{"too late", late, nil, "", "denied"},
		{"edited to a SAFE command", edit("uptime"), nil, "superseded", "error"},
		{"edited to a FORBIDDEN one", edit("rm -rf /"), nil, "superseded", "error"},
		{"start refused", approve, func(l *lab) { l.ppl.refuse = errors.New("stopped") }, "", "denied"},
		{"the policy changed", approve, func(l *lab) { l.Shell.policy = &looser{classifier: l.policy} }, "superseded", "error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, c.answer)
			l.program("frob", "true")
			l.program("uptime", "true")
			if c.change != nil {
				c.change(l)
			}
			l.run("frob x")
			p := Fold(l.j.all())[0].Proposal
			if r := l.ppl.done[p.ID]; r.Status != c.status || r.Error != c.error {
				t.Errorf("closed with %q %q, want %q %q; journal %s", r.Status, r.Error, c.status, c.error, l.j.kinds())
			}
		})
	}
}

// looser is a policy that counts a command as SAFE from its second look on.
type looser struct {
	classifier
	looks int
}

func (l *looser) ClassifyArgv(argv []string) policy.Verdict {
	v := l.classifier.ClassifyArgv(argv)
	if l.looks++; l.looks > 1 {
		v.Class, v.Rule = Safe, "now-safe"
	}
	return v
}

func (l *looser) Version() string {
	if l.looks > 1 {
		return "p2"
	}
	return l.classifier.Version()
}
