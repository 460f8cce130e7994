package term

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/bot/show"
	"ghostbot/safeexec"
)

// seen are the entries of a case, as kind: what matters of the body.
func decisions(s *seat) (out []string) {
	s.t.Helper()
	for _, e := range s.entries() {
		switch e.Kind {
		case "decided":
			d, _ := into[safeexec.Decided](e)
			out = append(out, d.Decision+" by "+d.By+": "+d.Reason)
		case agent.KindAnswer:
			a, _ := into[agent.AnswerEntry](e)
			out = append(out, "answer "+a.Key+" by "+a.By+": "+a.Text)
		}
	}
	return out
}

var (
	rest    = agent.Question{ID: "continue-1", Kind: agent.AskContinue, Free: true, Who: "anyone", Text: "Which host?", Options: []agent.Option{{Key: "report", Label: "Write the report"}, {Key: "continue", Label: "Continue"}}}
	unknown = agent.Question{ID: "unknown-x_003", Kind: agent.AskUnknown, Who: "approvers", Text: "It is not known.", Options: []agent.Option{{Key: "skip", Label: "Leave it"}, {Key: "again", Label: "Run again"}}}
	changed = agent.Question{ID: "tampered-1-ab", Kind: bot.AskTampered, Who: "approvers", Text: "The files are not as they were left.", Options: []agent.Option{{Key: "continue", Label: "Continue anyway"}, {Key: "fresh", Label: "Fresh case"}, {Key: "abort", Label: "Abort"}}}
)

// Every question, at every end of the people: what nobody decided names nobody, and
// whoever leaves decides nothing.
func TestNobodyAnswers(t *testing.T) {
	const ended = "no approver: the input ended"
	tests := []struct {
		name string
		what script
		sees string
		end  string // what is journaled when the input ends
		only string // and when nobody is asked at all
	}{
		{"approval", proposes, "ALERT", "DENIED by : " + ended, "DENIED by : no approver"},
		{"turn limit", asks(extend), "The limit of 5 turns", "answer expired by : " + ended, "answer expired by : no approver"},
		{"at rest", asks(rest), "Which host?", "answer expired by : " + ended, "answer expired by : no approver"},
		{"outcome unknown", asks(unknown), "It is not known.", "answer expired by : " + ended, "answer expired by : no approver"},
		{"changed files", asks(changed), "The files are not", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name+"/the pipe ends", func(t *testing.T) {
			s := sit(t, tt.what, piped)
			s.sees(tt.sees, "")
			close(s.keys.typed)
			s.endsWith(tt.end)
		})
		t.Run(tt.name+"/the pipe had ended", func(t *testing.T) {
			s := sit(t, tt.what, piped, func(o *Options, _ *bot.Options) { close(o.Console.(*keys).typed) })
			s.endsWith(tt.end)
		})
		t.Run(tt.name+"/nobody is asked", func(t *testing.T) {
			s := sit(t, tt.what, func(o *Options, b *bot.Options) { o.Silent, b.Access.Refuse = true, "no approver" })
			s.endsWith(tt.only)
		})
		t.Run(tt.name+"/left", func(t *testing.T) {
			s := sit(t, tt.what)
			s.sees(tt.sees, "Your choice: ")
			s.keys.typed <- "\x03"
			s.endsWith("")
		})
		t.Run(tt.name+"/nothing can be printed", func(t *testing.T) {
			full := errors.New("no space")
			s := sit(t, tt.what, func(o *Options, _ *bot.Options) { o.Console.(*keys).broken = full })
			<-s.left
			s.endsWith("")
			if left, why := s.front.Left(); !left || !errors.Is(why, full) {
				t.Errorf("Left = %v, %v", left, why)
			}
		})
	}
}

func piped(o *Options, _ *bot.Options) { o.Piped = true }

// endsWith waits for the end and compares what was decided; "" is a case that is
// left as it is.
func (s *seat) endsWith(want string) {
	s.t.Helper()
	err := s.ends()
	var wanted []string
	if want != "" {
		wanted = []string{want}
	}
	if got := decisions(s); strings.Join(got, "\n") != strings.Join(wanted, "\n") {
		s.t.Errorf("decided: %q, want %q", got, wanted)
	}
	c, cerr := s.desk.Case(context.Background(), s.sid)
	if cerr != nil || c.Closed != (want != "") || (err == nil) != (want != "") {
		s.t.Errorf("Carry = %v; the case: %+v, %v", err, c, cerr)
	}
	if text, _ := s.keys.screen(); !strings.Contains(want, "APPROVED") && strings.Contains(text, "[You]") {
		s.t.Errorf("somebody is said to have answered:\n%s", text)
	}
}

// Changed files keep waiting for somebody, and whoever started this is told so.
func TestChangedFilesWait(t *testing.T) {
	for name, edit := range map[string]func(*Options, *bot.Options){
		"ended":  func(o *Options, _ *bot.Options) { o.Piped = true; close(o.Console.(*keys).typed) },
		"silent": func(o *Options, _ *bot.Options) { o.Silent = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := sit(t, asks(changed), edit)
			s.ends()
			if !s.front.Waits() {
				t.Error("Waits = false")
			}
			if text, _ := s.keys.screen(); strings.Count(text, "The files are not as they were left.") != 1 {
				t.Errorf("the question is not shown once:\n%s", text)
			}
		})
	}
}

// A denial whose reason never comes is the person's, and is not waited for.
func TestEndOfInputAtAReason(t *testing.T) {
	s := sit(t, proposes, piped)
	s.sees("ALERT", "Your choice: ")
	start := time.Now()
	s.keys.typed <- "d"
	close(s.keys.typed)
	s.endsWith("DENIED by local:me: ")
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("it waited %s for a reason", d)
	}
}

func TestEndOfInputAtAnEdit(t *testing.T) {
	s := sit(t, proposes, piped)
	s.sees("ALERT", "Your choice: ")
	s.keys.typed <- "m"
	s.sees("Edit the command", "Command: ")
	close(s.keys.typed)
	s.endsWith("DENIED by : no approver: the input ended")
}

// The lines of a pipe that come before there is a case are for it, in their order:
// words at once, answers when something is asked.
func TestPipedLinesAreHeld(t *testing.T) {
	s := sit(t, proposes, piped, func(o *Options, b *bot.Options) {
		for _, l := range []string{"look at 192.0.2.9 as well", "", "d", "not now", "and then this"} {
			o.Console.(*keys).typed <- l
		}
		open := b.OpenLog
		b.OpenLog = func(ctx context.Context, sid string, fence uint64) (bot.Log, error) {
			time.Sleep(100 * time.Millisecond) // the case is not open yet
			return open(ctx, sid, fence)
		}
	})
	if err := s.ends(); err != nil {
		t.Fatal(err)
	}
	text, _ := s.keys.screen()
	if strings.Contains(text, "[ERROR]") {
		t.Errorf("a line was lost:\n%s", text)
	}
	if got := decisions(s); len(got) != 1 || !strings.HasPrefix(got[0], "DENIED by local:me: ") || !strings.Contains(text, ": not now") { // with the decision or right after it
		t.Errorf("decided: %q\n%s", got, text)
	}
	heard := false
	for _, e := range s.entries() {
		i, ok := into[agent.Instruction](e)
		heard = heard || e.Kind == agent.KindInstruction && ok && i.Text == "look at 192.0.2.9 as well"
	}
	if !heard {
		t.Error("the words did not reach the case")
	}
}

func TestAnAnswerToNothingIsNamed(t *testing.T) {
	s := sit(t, func(context.Context, bot.Parts) error { return nil }, piped, func(o *Options, _ *bot.Options) { o.Console.(*keys).typed <- "approve" })
	s.ends()
	if got := s.front.Unread(); got != "approve" {
		t.Errorf("Unread = %q", got)
	}
}

// What was typed before the box came up decides nothing, and neither does a letter
// when nothing is asked; what is typed behind it counts.
func TestTypedTooEarly(t *testing.T) {
	s := sit(t, proposes, func(o *Options, _ *bot.Options) { o.Console.(*keys).begun = time.Now().Add(-time.Minute) })
	s.sees("ALERT", "Your choice: ")
	for _, early := range []string{"a", "DENY"} {
		s.keys.typed <- early
		s.sees(early+"\" was typed before this was on the screen; nothing was decided.", "Your choice: ")
	}
	s.keys.typed <- "also look at 192.0.2.9"
	s.sees("[You] also look at 192.0.2.9", "Your choice: ")
	if got := decisions(s); len(got) != 0 {
		t.Errorf("decided: %q", got)
	}
	s.keys.set(func() { s.keys.begun = time.Now() })
	s.keys.typed <- "a"
	s.endsWith("APPROVED by local:me: ")
}

func TestALetterIsNoInstruction(t *testing.T) {
	goOn := make(chan bool)
	s := sit(t, func(ctx context.Context, p bot.Parts) error { <-goOn; _, err := p.People.Drain(ctx); return err })
	s.keys.typed <- "a"
	s.sees(`Nothing waits for a decision now, so "a" decides nothing.`, idle)
	close(goOn)
	s.ends()
	for _, e := range s.entries() {
		if e.Kind == agent.KindInstruction {
			t.Errorf("an entry: %s", e.Body)
		}
	}
}

// An edit of a command that was withdrawn meanwhile is neither a command nor words.
func TestAnEditThatIsOver(t *testing.T) {
	goOn := make(chan bool)
	s := sit(t, func(ctx context.Context, p bot.Parts) error {
		short := func(pr *safeexec.Proposal) { pr.Expires = time.Now().Add(500 * time.Millisecond) }
		err := proposing(ctx, p, short)
		<-goOn
		if err == nil {
			_, err = p.People.Drain(ctx)
		}
		return err
	})
	s.sees("ALERT", "Your choice: ")
	s.keys.set(func() { s.keys.begun = time.Now() })
	s.keys.typed <- "m"
	s.sees("does not wait any more", "")
	s.keys.typed <- "systemctl stop x"
	s.sees("That was an edit of a command that does not wait any more", "")
	close(goOn)
	s.ends()
	s.keys.set(func() {
		if s.keys.clears != 1 {
			t.Errorf("the line was cleared %d times", s.keys.clears)
		}
	})
	for _, e := range s.entries() {
		if e.Kind == agent.KindInstruction {
			t.Errorf("an entry: %s", e.Body)
		}
	}
}

func TestALongTextIsCutAloud(t *testing.T) {
	s := sit(t, proposes)
	s.sees("ALERT", "Your choice: ")
	s.keys.typed <- strings.Repeat("word ", 2000)
	s.sees("Only the first 4000 bytes of that are kept.", "")
}

// The box and everything else fits whatever terminal there is.
func TestWidths(t *testing.T) {
	c := &show.CardView{AuditID: "x_001", Command: "curl -sS --resolve " + strings.Repeat("日本🙂", 40), Risk: "r", Why: strings.Repeat("why ", 60), Expires: time.Now(), Digest: strings.Repeat("1a", 32)}
	for _, width := range []int{20, 32, 40, 80, 200} {
		k := &keys{width: width}
		f := New(Options{Console: k})
		f.write(cardBox(c, f.width()))
		f.print("[Ghost Agent] ", strings.Repeat("some words ", 30))
		f.rule()
		want := min(max(width, minWidth), maxWidth)
		for _, l := range strings.Split(k.out.String(), "\n") {
			if got := columns().StringWidth(l); got > want {
				t.Errorf("%d columns: %d wide: %q", width, got, l)
			}
		}
	}
}
