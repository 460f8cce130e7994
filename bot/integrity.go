package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"ghostbot/bot/proposal"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/show"
	"ghostbot/bot/thread"
	"ghostbot/store"
)

// Answers to the question what becomes of a case whose files were changed or
// copied.
const (
	ChooseContinue = "continue"
	ChooseFresh    = "fresh"
	ChooseAbort    = "abort"
)

// AskTampered is the kind of that question.
const AskTampered = "tampered"

var choices = []agent.Option{
	{Key: ChooseContinue, Label: "Continue anyway"},
	{Key: ChooseFresh, Label: "Fresh case"},
	{Key: ChooseAbort, Label: "Abort"},
}

// brokenID is the question about journals that cannot be continued. It is stored
// without an entry: there is no journal to write it to.
const brokenID = "tampered-journals"

// vet asks people before a case goes on whose files are not as this installation
// left them: the session file was changed or removed, or the directory was copied
// here. The question has no end: nothing runs until somebody chooses. What was
// chosen is done before its entry is written, so that a crash between the two asks
// nobody twice.
func (h *holder) vet(ctx context.Context, resume, copied bool) error {
	if !resume {
		return h.adopt(ctx, copied) // new here
	}
	if _, err := h.d.o.DB.Get(ctx, proposal.StopKey(h.sid)); err == nil {
		return nil // it ends in any case
	}
	entries, err := h.log.Since(0)
	if err != nil {
		return err
	}
	kinds := map[string]int{}
	for _, e := range entries {
		kinds[e.Kind]++
	}
	if kinds[agent.KindConcluded] > 0 {
		return h.adopt(ctx, copied) // nothing runs any more
	}
	why, err := h.suspicions(ctx, entries, copied)
	if err != nil || len(why) == 0 {
		return err
	}
	past := kinds[show.KindOfIntegrity]
	text := "The stored files of this case are not as they were left: " + strings.Join(why, "; ") + ". The journals verify, and nothing runs until somebody chooses."
	a, err := h.people().Ask(ctx, agent.Question{ID: fmt.Sprintf("tampered-%d", past+1), Kind: AskTampered, Text: text, Options: choices, Who: h.deciders()})
	if err != nil {
		return err
	}
	note := show.Integrity{Why: why, Choice: a.Key, By: a.By}
	if note.Next, err = h.choose(ctx, a, past+1); err != nil {
		return err
	}
	if _, _, err := h.log.Journal("case").Append(ctx, show.KindOfIntegrity, note); err != nil {
		return err
	}
	return h.adopt(ctx, copied)
}

// adopt makes this the place where a copied case belongs.
func (h *holder) adopt(ctx context.Context, copied bool) error {
	if !copied || h.d.o.Adopt == nil {
		return nil
	}
	return h.d.o.Adopt(ctx, h.sid)
}

// deciders are who may choose: approvers, where there are any.
func (h *holder) deciders() string {
	if len(h.d.o.Access.Approvers) == 0 {
		return "anyone"
	}
	return "approvers"
}

// choose does what people chose; n makes a second choice another one.
func (h *holder) choose(ctx context.Context, a agent.Answer, n int) (next string, err error) {
	switch a.Key {
	case ChooseContinue:
		return "", nil
	case ChooseFresh:
		if next, err = h.fresh(ctx, n); err != nil {
			return "", err
		}
	}
	return next, h.d.Stop(ctx, h.sid, a.By)
}

// fresh opens a new case with the same symptom in the same place, once.
func (h *holder) fresh(ctx context.Context, n int) (sid string, err error) {
	o := h.info.Opening
	o.Delivery = fmt.Sprintf("fresh %s %d", h.sid, n)
	o.From, o.Place.Thread = h.sid, ""
	return h.d.Open(ctx, o)
}

// suspicions are what is wrong with the files, a clause each.
func (h *holder) suspicions(ctx context.Context, entries []agent.Entry, copied bool) (why []string, err error) {
	if copied {
		why = append(why, "the directory was copied here from another place, and answers that were given before do not count any more")
	}
	turns := false
	for _, e := range entries {
		turns = turns || e.Kind == agent.KindTurn
	}
	v, err := h.d.o.DB.Get(ctx, store.Key{Scope: h.sid, Name: "ghost_session"})
	switch {
	case errors.Is(err, store.ErrNotFound) && turns:
		return append(why, "the session file is gone"), nil
	case errors.Is(err, store.ErrNotFound):
		return why, nil // the case ended before its first turn
	case errors.Is(err, store.ErrInvalid):
		return append(why, "the session file is damaged"), nil
	case err != nil:
		return nil, err
	}
	if bad := badSession(v.Data, h.sid, uint64(len(entries))); bad != "" {
		why = append(why, bad)
	}
	return why, nil
}

// badSession says what is wrong with a session file; "" when it is one of this
// case that is not ahead of its journals.
func badSession(data []byte, sid string, entries uint64) string {
	c, ok, err := agent.CheckSession(data)
	switch {
	case err != nil:
		return "the session file is damaged"
	case !ok:
		return "the checksum of the session file does not match: it was modified outside of ghostbot"
	case c.SessionID != sid:
		return "the session file belongs to another case"
	case c.LastN > entries:
		return fmt.Sprintf("the session file knows %d entries and the journals hold %d: their end was cut off", c.LastN, entries)
	}
	return ""
}

// broken asks, outside of the journals, what becomes of a case whose journals do
// not verify: nothing may be appended to them, so that the case cannot go on. It
// reports whether the case was closed by an answer.
func (h *holder) broken(ctx context.Context, why error) (closed bool, err error) {
	q, err := loadQuestion(ctx, h.d.o.DB, h.sid, brokenID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		text := "The journals of this case do not verify, so it cannot go on and nothing runs: " + h.d.o.Redact(why.Error())
		q = storedQuestion{Question: agent.Question{ID: brokenID, Kind: AskTampered, Text: text, Options: choices[1:], Who: h.deciders()}}
		data, err := json.Marshal(q)
		if err != nil {
			return false, err
		}
		if _, _, err := h.d.o.DB.Once(ctx, questionKey(h.sid, brokenID), data); err != nil {
			return false, err
		}
	case err != nil:
		return false, err
	}
	if q.Answer == nil && !h.d.firstRest(h.sid) {
		return false, nil
	}
	if q.Answer == nil {
		h.post(ctx, show.Message{Key: "question/" + brokenID, Kind: show.KindQuestion, Text: q.Question.Text,
			Question: &show.QuestionView{Question: q.Question, SessionID: h.sid}})
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
	h.post(ctx, show.Message{Key: "rest", Kind: show.KindLog, Text: text, Log: &show.LogView{What: "ended", Body: text}})
	return true, nil
}

// abandon closes a case without another entry in its journals.
func (h *holder) abandon(ctx context.Context) error {
	h.info.Closed, h.info.ClosedAt = true, time.Now().UTC()
	h.info.Verdict, h.info.Summary = "unverified", "The journals were changed outside of ghostbot."
	return h.d.record(ctx, h.info, map[string]any{"session_id": h.sid, "verdict": h.info.Verdict, "why": h.info.Summary})
}

// post says something outside of the journal, in the case's thread, or in the
// channel when there is no thread yet.
func (h *holder) post(ctx context.Context, m show.Message) {
	all, err := thread.Load(ctx, h.d.o.DB, h.sid)
	if err != nil {
		return
	}
	if all.Place == (Place{}) {
		all.Place = h.info.Opening.Place
	}
	m.SessionID = h.sid
	tctx, done := context.WithTimeout(ctx, 5*time.Second)
	defer done()
	if _, err := h.d.o.Front.Post(tctx, all.Place, m); err != nil {
		h.d.o.Log.Warn("people are not told", "session_id", h.sid, "text", m.Text, "err", err)
	}
}
