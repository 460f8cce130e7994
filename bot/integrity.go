package bot

import (
	"context"
	"fmt"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/access"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/show"
	"ghostbot/bot/tampered"
	"ghostbot/bot/thread"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// The question what becomes of a case whose files were changed or copied, and its
// answers, are the room tampered's; these are their names here.
const (
	AskTampered    = tampered.Kind
	ChooseContinue = tampered.Continue
	ChooseFresh    = tampered.Fresh
	ChooseAbort    = tampered.Abort
)

// brokenID is the question about journals that cannot be continued. It is stored
// without an entry: there is no journal to write it to.
const brokenID = "tampered-journals"

// vet asks people before a case goes on whose files are not as this installation
// left them: the session file was changed or removed, or the directory was copied
// here. The question has no end: nothing runs until somebody chooses, and nobody
// chooses for them.
//
// The question is about exactly what is found, and its id says so: whoever resumes
// the case finds the answer again while that is what the files are, and asks anew
// when they have changed since. "Continue" becomes an entry in the step that saves
// the session file anew; "fresh" and "abort" become an entry before the case is
// stopped, and a process that finds the entry stops it again.
func (h *holder) vet(ctx context.Context, resume, copied bool) error {
	if !resume {
		return h.adopt(ctx, copied) // new here
	}
	entries, err := h.log.Since(0)
	if err != nil {
		return err
	}
	if chosen, err := h.mended(ctx); chosen || err != nil {
		return err
	}
	p := tampered.PastOf(entries)
	if p.Concluded {
		return h.adopt(ctx, copied) // nothing runs any more
	}
	if p.Last.Choice == ChooseFresh || p.Last.Choice == ChooseAbort {
		return h.giveUp(ctx, p.Last.By)
	}
	if _, err := h.d.o.DB.Get(ctx, proposal.StopKey(h.sid)); err == nil {
		return nil // it ends in any case
	}
	s, err := h.suspicions(ctx, entries, copied)
	if err != nil {
		return err
	}
	s.Settled(p, copied)
	if len(s.Why) == 0 {
		if err := h.people().Retire(ctx, entries, AskTampered, ""); err != nil {
			return err
		}
		return h.adopt(ctx, copied)
	}
	return h.choose(ctx, entries, s, p, copied)
}

// choose asks, and does what people chose.
func (h *holder) choose(ctx context.Context, entries []agent.Entry, s tampered.Found, p tampered.Past, copied bool) error {
	q := p.Question(s, h.deciders())
	if err := h.people().Retire(ctx, entries, AskTampered, q.ID); err != nil {
		return err
	}
	a, err := h.people().Ask(ctx, q)
	if err != nil {
		return err
	}
	if a.By == "" { // a process that closed it died before the entry
		p.Closed = append(p.Closed, q.ID)
		return h.choose(ctx, entries, s, p, copied)
	}
	note := show.Integrity{Why: s.Why, Choice: a.Key, By: a.By}
	switch a.Key {
	case ChooseContinue:
		if copied {
			note.Place = s.Place
		}
		if err := h.renew(ctx, note); err != nil {
			return err
		}
		return h.adopt(ctx, copied)
	case ChooseFresh:
		if note.Next, err = h.fresh(ctx, p.Choices+1); err != nil {
			return err
		}
	}
	if _, _, err := h.log.Journal("case").Append(ctx, show.KindOfIntegrity, note); err != nil {
		return err
	}
	return h.giveUp(ctx, a.By)
}

// renew writes the entry about a case that goes on together with a session file
// that is as the journals say: a crash leaves both or none, and then the answer is
// still stored.
func (h *holder) renew(ctx context.Context, note show.Integrity) error {
	entries, err := h.log.Since(0)
	if err != nil {
		return err
	}
	data, err := h.d.o.Session(agent.FoldAll(h.sid, entries).Case())
	if err != nil {
		return err
	}
	_, _, err = h.log.Journal("case").AppendVia(ctx, show.KindOfIntegrity, note, func(ctx context.Context, l store.Line) error {
		return h.d.o.DB.Commit(ctx, store.Commit{Scope: h.sid, Fence: h.fence(),
			Writes: []store.Write{{Key: sessionFile(h.sid), Data: data}}, Lines: []store.Line{l}})
	})
	return err
}

// giveUp stops the case before anything else of it happens.
func (h *holder) giveUp(ctx context.Context, by string) error {
	defer func() { h.lookForStop(ctx) }()
	return h.d.Stop(ctx, h.sid, by)
}

func sessionFile(sid string) store.Key { return store.Key{Scope: sid, Name: "ghost_session"} }

// adopt makes this the place where a copied case belongs.
func (h *holder) adopt(ctx context.Context, copied bool) error {
	if !copied || h.d.o.Adopt == nil {
		return nil
	}
	return h.d.o.Adopt(ctx, h.sid)
}

// deciders are who may choose: approvers, where there are any.
func (h *holder) deciders() string {
	about := access.About{Channel: h.info.Opening.Place.Channel, Class: safeexec.Risky.String()}
	if who, _ := h.d.o.Access.Who(about); len(who) == 0 {
		return "anyone"
	}
	return "approvers"
}

// fresh opens a new case with the same symptom in the same place, once.
func (h *holder) fresh(ctx context.Context, n int) (sid string, err error) {
	o := h.info.Opening
	o.Delivery = fmt.Sprintf("fresh %s %d", h.sid, n)
	o.From, o.Place.Thread = h.sid, ""
	return h.d.Open(ctx, o)
}

func (h *holder) suspicions(ctx context.Context, entries []agent.Entry, copied bool) (s tampered.Found, err error) {
	if copied {
		s.Why = append(s.Why, "the directory was copied here from another place, and answers that were given before do not count any more")
		if h.d.o.Here != nil {
			here, err := h.d.o.Here(ctx, h.sid)
			if err != nil {
				return s, err
			}
			s.Place = tampered.Hash([]byte(here))
		}
	}
	v, err := h.d.o.DB.Get(ctx, sessionFile(h.sid))
	return s, s.Look(h.sid, entries, h.found, v.Data, err)
}

// broken asks, outside of the journals, what becomes of a case whose journals do
// not verify: nothing may be appended to them, so that the case cannot go on. It
// reports whether the case was closed by an answer.
func (h *holder) broken(ctx context.Context, why error) (closed bool, err error) {
	q, anew, err := inbox.Outside(ctx, h.d.o.DB, h.sid, h.fence(), agent.Question{ID: brokenID, Kind: AskTampered, Options: tampered.Options()[1:], Who: h.deciders(),
		Text: "The journals of this case do not verify, so it cannot go on and nothing runs: " + h.d.o.Redact(why.Error())})
	if err != nil {
		return false, err
	}
	if q.Answer == nil {
		if anew {
			h.d.rests.Forget(h.sid + asked)
		}
		if h.mine(ctx) {
			h.d.rests.Once(h.sid+asked, func() bool {
				shown, err := h.retell(ctx, q)
				return shown || err == nil && h.post(ctx, h.brokenMessage(q))
			})
		}
		return false, nil
	}
	text := "Aborted. The damaged journals stay where they are."
	if q.Answer.Key == ChooseFresh {
		next, err := h.fresh(ctx, 0)
		if err != nil {
			return false, err
		}
		h.info.Next = next
		text = "A fresh case was opened: " + next + ". The damaged journals of this one stay where they are."
	}
	if err := h.abandon(ctx); err != nil {
		return false, err
	}
	h.retell(ctx, q)
	h.post(ctx, show.Message{Key: "rest", Kind: show.KindLog, Text: text, Log: &show.LogView{What: "ended", Body: text}})
	return true, nil
}

// mended is about the question of another holder, or of an earlier process, whose files did not
// verify, while these do: what people chose is obeyed; what nobody answered is withdrawn before anything runs. So no answer is
// acknowledged that nobody reads.
func (h *holder) mended(ctx context.Context) (chosen bool, err error) {
	q, was, err := inbox.Withdraw(ctx, h.d.o.DB, h.sid, brokenID, h.fence(), "the journals verify where the case is carried on now, and it goes on there")
	if was {
		h.retell(ctx, q)
	}
	if err != nil || !q.Decided() {
		return false, err
	}
	note := show.Integrity{Why: []string{"the journals of another copy did not verify"}, Choice: q.Answer.Key, By: q.Answer.By}
	if note.Choice == ChooseFresh {
		if note.Next, err = h.fresh(ctx, 0); err != nil {
			return false, err
		}
	}
	if _, _, err := h.log.Journal("case").Append(ctx, show.KindOfIntegrity, note); err != nil {
		return false, err
	}
	h.retell(ctx, q)
	return true, h.giveUp(ctx, note.By)
}

// brokenMessage shows the question about journals that do not verify.
func (h *holder) brokenMessage(q inbox.Question) show.Message {
	return show.Message{Key: "question/" + brokenID, Kind: show.KindQuestion, Text: q.Question.Text, SessionID: h.sid,
		Question: &show.QuestionView{Question: q.Question, Answer: q.Answer, SessionID: h.sid}}
}

// retell shows how that question stands, where it is shown already. A click on a message that was not reached is told the same.
func (h *holder) retell(ctx context.Context, q inbox.Question) (shown bool, err error) {
	if _, ok := h.d.o.Front.(Follower); ok {
		return false, nil
	}
	at := thread.Where(ctx, h.d.o.DB, h.sid, h.info.Opening.Place, h.at)
	shown, err = thread.Edit(ctx, h.d.o.Front, at, h.brokenMessage(q))
	if err != nil {
		h.d.o.Log.Warn("how a question stands is not shown", "session_id", h.sid, "question", brokenID, "err", err)
	}
	return shown, err
}

// abandon closes a case without another entry in its journals.
func (h *holder) abandon(ctx context.Context) error {
	h.info.Closed, h.info.ClosedAt = true, time.Now().UTC()
	h.info.Verdict, h.info.Summary = "unverified", "The journals were changed outside of ghostbot."
	return h.d.record(ctx, h.info, map[string]any{"session_id": h.sid, "verdict": h.info.Verdict, "why": h.info.Summary})
}

// post says something outside of the journal, in the case's thread, or in the
// channel when there is no thread yet.
func (h *holder) post(ctx context.Context, m show.Message) (told bool) {
	at := thread.Where(ctx, h.d.o.DB, h.sid, h.info.Opening.Place, h.at)
	if at == (Place{}) {
		return true
	}
	m.SessionID = h.sid
	tctx, done := context.WithTimeout(ctx, 5*time.Second)
	defer done()
	_, err := h.d.o.Front.Post(tctx, at, m)
	if err != nil {
		h.d.o.Log.Warn("people are not told", "session_id", h.sid, "text", m.Text, "err", err)
	}
	return err == nil
}
