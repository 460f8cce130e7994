package bot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	p := pastOf(entries)
	if p.concluded {
		return h.adopt(ctx, copied) // nothing runs any more
	}
	if p.last.Choice == ChooseFresh || p.last.Choice == ChooseAbort {
		return h.giveUp(ctx, p.last.By)
	}
	if _, err := h.d.o.DB.Get(ctx, proposal.StopKey(h.sid)); err == nil {
		return nil // it ends in any case
	}
	s, err := h.suspicions(ctx, entries, copied)
	if err != nil {
		return err
	}
	if len(s.why) == 1 && copied && p.last.Choice == ChooseContinue && p.last.Place == s.place && s.place != "" {
		s.why = nil // answered here; a crash came before this place was made the case's own
	}
	if len(s.why) == 0 && strings.HasSuffix(p.open.ID, "-"+s.state()) {
		s.why = []string{clauses(p.open.Text)} // the entries since, a take-over among them, settle nothing
	}
	if len(s.why) == 0 {
		if err := h.retire(ctx, entries, ""); err != nil {
			return err
		}
		return h.adopt(ctx, copied)
	}
	return h.choose(ctx, entries, s, p.choices+1, copied)
}

// past is what the journal holds about earlier choices.
type past struct {
	concluded bool
	choices   int
	last      show.Integrity
	open      agent.Question // asked since the last choice
}

func pastOf(entries []agent.Entry) (p past) {
	for _, e := range entries {
		p.concluded = p.concluded || e.Kind == agent.KindConcluded
		var i show.Integrity
		if e.Kind == show.KindOfIntegrity && json.Unmarshal(e.Body, &i) == nil {
			p.last, p.choices, p.open = i, p.choices+1, agent.Question{}
		}
		var q agent.Question
		if e.Kind == agent.KindQuestion && json.Unmarshal(e.Body, &q) == nil && q.Kind == AskTampered {
			p.open = q
		}
	}
	return p
}

// What stands around the clauses in the question.
const (
	askBefore = "The stored files of this case are not as they were left: "
	askAfter  = ". The journals verify, and nothing runs until somebody chooses."
)

// clauses are what a question says is wrong.
func clauses(text string) string {
	return strings.TrimSuffix(strings.TrimPrefix(text, askBefore), askAfter)
}

// choose asks, and does what people chose; n makes a second choice another one.
func (h *holder) choose(ctx context.Context, entries []agent.Entry, s suspicion, n int, copied bool) error {
	text := askBefore + strings.Join(s.why, "; ") + askAfter
	q := agent.Question{ID: fmt.Sprintf("tampered-%d-%s", n, s.state()), Kind: AskTampered, Text: text, Options: choices, Who: h.deciders()}
	if err := h.retire(ctx, entries, q.ID); err != nil {
		return err
	}
	a, err := h.people().Ask(ctx, q)
	if err != nil {
		return err
	}
	note := show.Integrity{Why: s.why, Choice: a.Key, By: a.By}
	switch a.Key {
	case ChooseContinue:
		if copied {
			note.Place = s.place
		}
		if err := h.renew(ctx, note); err != nil {
			return err
		}
		return h.adopt(ctx, copied)
	case ChooseFresh:
		if note.Next, err = h.fresh(ctx, n); err != nil {
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
	f := agent.NewFold(h.sid)
	for _, e := range entries {
		f.Apply(e)
	}
	data, err := h.d.o.Session(f.Case())
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
	err := h.d.Stop(ctx, h.sid, by)
	if err == nil {
		h.lookForStop(ctx)
	}
	return err
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
	if len(h.d.o.Access.Approvers) == 0 {
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

// suspicion is what is wrong with the files of a case, and what they are.
type suspicion struct {
	why     []string // a clause each
	session string   // what the session file holds, hashed, or that it cannot be read
	place   string   // of a copied case: where it came from and where it is
}

// state names the files as they are. What is wrong with them is no part of it: how
// many entries the journals hold changes with every process that looks.
func (s suspicion) state() string {
	return hashed([]byte(s.session + "\x00" + s.place))
}

func hashed(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

func (h *holder) suspicions(ctx context.Context, entries []agent.Entry, copied bool) (s suspicion, err error) {
	if copied {
		s.why = append(s.why, "the directory was copied here from another place, and answers that were given before do not count any more")
		if h.d.o.Here != nil {
			here, err := h.d.o.Here(ctx, h.sid)
			if err != nil {
				return s, err
			}
			s.place = hashed([]byte(here))
		}
	}
	turns := false
	for _, e := range entries {
		turns = turns || e.Kind == agent.KindTurn
	}
	v, err := h.d.o.DB.Get(ctx, sessionFile(h.sid))
	switch {
	case errors.Is(err, store.ErrNotFound) && turns:
		s.why, s.session = append(s.why, "the session file is gone"), "gone"
		return s, nil
	case errors.Is(err, store.ErrNotFound):
		return s, nil // the case ended before its first turn
	case errors.Is(err, store.ErrInvalid):
		s.why, s.session = append(s.why, "the session file is damaged"), "damaged"
		return s, nil
	case err != nil:
		return s, err
	}
	s.session = hashed(v.Data)
	if bad := badSession(v.Data, h.sid, h.found); bad != "" {
		s.why = append(s.why, bad)
	}
	return s, nil
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
	q, err := h.brokenQuestion(ctx, "The journals of this case do not verify, so it cannot go on and nothing runs: "+h.d.o.Redact(why.Error()))
	if err != nil {
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

// brokenQuestion returns the stored question about damaged journals. One that was
// asked about other damage is replaced, with its answer.
func (h *holder) brokenQuestion(ctx context.Context, text string) (storedQuestion, error) {
	q, err := loadQuestion(ctx, h.d.o.DB, h.sid, brokenID)
	if err == nil && q.Question.Text == text {
		return q, nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return q, err
	}
	was := q.version
	q = storedQuestion{Question: agent.Question{ID: brokenID, Kind: AskTampered, Text: text, Options: choices[1:], Who: h.deciders()}}
	data, err := json.Marshal(q)
	if err != nil {
		return q, err
	}
	q.version, err = h.d.o.DB.Put(ctx, questionKey(h.sid, brokenID), data, was)
	return q, err
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
