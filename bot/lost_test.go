package bot

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"ghostbot/agent"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/show"
	"ghostbot/safeexec"
	"ghostbot/safeexec/policy"
	"ghostbot/safeexec/redact"
	"ghostbot/store"
)

// gated is an investigation that has the gate run one RISKY command, and a second holder carry on what is unfinished.
func gated(t *testing.T) investigation {
	bin := t.TempDir()
	if err := os.WriteFile(bin+"/tcpdump", []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, p Parts) error {
		sh, err := safeexec.New(safeexec.Options{SessionID: p.SessionID, Policy: policy.New(policy.Options{}), Journal: p.Shell, Approver: p.Approver,
			Redactor: redact.New(redact.Options{}), Dir: t.TempDir(), Path: bin, Requester: "U1"})
		if err != nil {
			return err
		}
		entries, err := p.Feed(ctx, 0)
		if err != nil {
			return err
		}
		var shell []safeexec.Entry
		for _, e := range entries {
			if e.Journal == "shell" {
				shell = append(shell, safeexec.Entry{N: e.N, ID: e.ID, Kind: e.Kind, Time: e.Time, Hash: e.Hash, Body: e.Body})
			}
		}
		unfinished := safeexec.Fold(shell)
		for _, r := range unfinished {
			if _, err := sh.Continue(ctx, r); err != nil {
				return err
			}
		}
		if len(unfinished) == 0 {
			if _, err := sh.Run(ctx, safeexec.Request{Command: "tcpdump -i eth0", Requester: "U1"}); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
}

// stored are the proposals of a case.
func (of *office) stored(sid string) (out []proposal.Stored) {
	of.t.Helper()
	if err := proposal.Each(context.Background(), of.db, sid, func(p proposal.Stored) error { out = append(out, p); return nil }); err != nil {
		of.t.Fatal(err)
	}
	return out
}

// TestLostProposalIsAskedOnAnotherCard: a store that has lost a whole proposal may have lost a denial of it. Its card does not count
// any more, whoever pressed it; people are told which command it was, and asked on another card.
func TestLostProposalIsAskedOnAnotherCard(t *testing.T) {
	for name, denied := range map[string]bool{"waiting": false, "denied": true} {
		t.Run(name, func(t *testing.T) {
			var lost atomic.Bool
			var of *office
			of = newOffice(t, gated(t), func(o *Options) {
				o.Lost = func(ctx context.Context, sid string) (string, error) {
					if !lost.Load() {
						return "", nil
					}
					var open []string
					err := proposal.Each(ctx, of.db, sid, func(p proposal.Stored) error {
						if p.State == StatePending {
							open = append(open, p.Proposal.Display)
						}
						return nil
					})
					return "The store was restarted, asked again: " + strings.Join(open, ", "), err
				}
				o.Adopt = func(context.Context, string) error { lost.Store(false); return nil }
			})
			stop := of.run()
			sid := of.open("d1")
			of.until("the card is shown", func() bool { return of.shows("card/") })
			stop()
			old := of.stored(sid)[0].Proposal
			if denied {
				of.press(clickOn(old, "U2", safeexec.Deny))
			}
			if err := of.db.Commit(t.Context(), store.Commit{Scope: sid, Writes: []store.Write{{Key: proposal.Key(sid, old.ID)}}}); err != nil {
				t.Fatal(err)
			}
			lost.Store(true)
			of.again()
			of.until("people are told", func() bool { return of.shows("asked again: tcpdump -i eth0") })
			of.until("people are asked again", func() bool { return len(of.stored(sid)) == 2 })
			for _, p := range of.stored(sid) {
				if want := map[bool]string{true: StateSuperseded, false: StatePending}[p.Proposal.ID == old.ID]; p.State != want {
					t.Errorf("%s is %s, want %s", p.Proposal.AuditID, p.State, want)
				}
			}
			if r, err := of.desk.Resolve(t.Context(), clickOn(old, "U1", safeexec.Approve)); err != nil || r.OK || !strings.Contains(r.Text, StateSuperseded) {
				t.Errorf("a click on the old card = %+v, %v", r, err)
			}
		})
	}
}

// deleted deletes the questions of a case.
func (of *office) deleted(sid string) {
	of.t.Helper()
	for _, q := range of.questions(sid) {
		if err := of.db.Commit(of.t.Context(), store.Commit{Scope: sid, Writes: []store.Write{{Key: proposal.QuestionKey(sid, q.Question.ID)}}}); err != nil {
			of.t.Fatal(err)
		}
	}
}

// disputed is a case whose files were changed while nobody carried it, and that people are asked about.
func disputed(t *testing.T) (of *office, sid string, asked chan safeexec.Proposal, stop func()) {
	t.Helper()
	of, sid, _, asked = resting(t)
	of.tamper(sid, changed("503"))
	stop = of.again()
	of.until("people are asked", func() bool { return of.shows("question/tampered-1-") })
	return of, sid, asked, stop
}

// TestLostQuestionAboutFiles: a case that was asked about, because its files were changed, goes on when the question is gone: what
// people chose is an entry. Without an answer it is asked again, and nothing runs.
func TestLostQuestionAboutFiles(t *testing.T) {
	t.Run("answered", func(t *testing.T) {
		of, sid, asked, stop := disputed(t)
		of.choose(sid, of.question(sid), ChooseContinue)
		<-asked
		stop()
		of.deleted(sid)
		of.again()
		<-asked
		if of.shows("rests") || len(of.written(sid, agent.KindQuestion)) != 1 || len(of.written(sid, show.KindOfIntegrity)) != 1 {
			t.Errorf("shown: %q", of.board.texts())
		}
	})
	t.Run("open", func(t *testing.T) {
		of, sid, asked, stop := disputed(t)
		stop()
		of.deleted(sid)
		of.again()
		of.until("people can answer", func() bool { return len(of.questions(sid)) == 1 })
		select {
		case <-asked:
			t.Fatal("the case went on before anybody chose")
		default:
		}
		of.choose(sid, of.question(sid), ChooseContinue)
		<-asked
	})
	t.Run("about other files", func(t *testing.T) {
		of, sid, asked, stop := disputed(t)
		stop()
		of.deleted(sid)
		of.tamper(sid, changed("504"))
		of.again()
		of.until("people are asked again", func() bool { return len(of.questions(sid)) == 2 })
		of.choose(sid, of.question(sid), ChooseContinue) // the first one is closed
		<-asked
	})
}

// TestLostHistoryEndsGrants: where the store may have lost the last of a case, or its files were copied, an answer that lets commands run
// without a card lets none run any more: they may have run.
func TestLostHistoryEndsGrants(t *testing.T) {
	for _, name := range []string{"lost", "copied"} {
		t.Run(name, func(t *testing.T) {
			var bad atomic.Bool
			q := agent.Question{ID: "sweep", Kind: "sweep", Who: "approvers", Grants: "clean", Commands: [][]string{{"true"}}, Options: []agent.Option{{Key: "skip", Label: "Skip"}, {Key: "clean", Label: "Clean all"}}}
			of := newOffice(t, func(ctx context.Context, p Parts) error {
				if _, err := p.People.Ask(ctx, q); err != nil {
					return err
				}
				<-ctx.Done()
				return context.Cause(ctx)
			}, func(o *Options) {
				o.Lost = func(context.Context, string) (string, error) {
					if name == "lost" && bad.Load() {
						return "The store was restarted.", nil
					}
					return "", nil
				}
				o.Native = func(context.Context, string) (bool, error) { return name != "copied" || !bad.Load(), nil }
				o.Adopt = func(context.Context, string) error { bad.Store(false); return nil }
			})
			stop := of.run()
			sid := of.open("d1")
			of.until("people are asked", func() bool { return of.shows("question/sweep=") })
			of.choose(sid, q.ID, "clean")
			of.until("the answer is an entry", func() bool { return len(of.written(sid, agent.KindAnswer)) == 1 })
			stop()
			bad.Store(true)
			of.again()
			of.until("it grants nothing", func() bool {
				got, err := inbox.Load(t.Context(), of.db, sid, q.ID)
				return err == nil && got.Void && got.Decided()
			})
		})
	}
}
