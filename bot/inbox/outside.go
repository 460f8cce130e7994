package inbox

import (
	"context"
	"encoding/json"
	"errors"

	"ghostbot/agent"
	"ghostbot/bot/proposal"
	"ghostbot/store"
)

// Outside stores a question that has no entry, because there is no journal to write one to. The
// answer of a person stands, also when q is about something else by now: whoever pressed was told that
// it counts. A question that nobody answered, or that was withdrawn, is replaced by q.
//
// Only the holder with this fence asks: a process that wakes up late asks nothing. anew reports whether
// it was stored just now, so that what people see of it is of an earlier one.
func Outside(ctx context.Context, db store.DB, sid string, fence uint64, q agent.Question) (asked Question, anew bool, err error) {
	got, err := Load(ctx, db, sid, q.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return got, false, err
	}
	if got.Decided() || err == nil && got.Answer == nil && got.Question.Text == q.Text {
		return got, false, nil
	}
	asked = Question{Question: q}
	err = asked.put(ctx, db, sid, fence, got.version)
	return asked, err == nil, err
}

// Decided reports whether a person answered the question.
func (q Question) Decided() bool { return q.Answer != nil && q.Answer.By != "" }

// Withdraw takes back a question that was asked outside of the journals, unless a person answered
// it: then that answer is returned, and it is for the caller to obey it. was reports whether the question was open until
// now. From then on every answer is refused with why.
func Withdraw(ctx context.Context, db store.DB, sid, id string, fence uint64, why string) (q Question, was bool, err error) {
	for {
		q, err = Load(ctx, db, sid, id)
		if errors.Is(err, store.ErrNotFound) {
			return q, false, nil
		}
		if err != nil || q.Answer != nil {
			return q, false, err
		}
		now, err := db.Now(ctx)
		if err != nil {
			return q, false, err
		}
		q.Answer = &agent.Answer{Key: agent.AnswerExpired, Text: why, At: now}
		if err = q.put(ctx, db, sid, fence, q.version); err == nil || !conflict(err) {
			return q, err == nil, err
		}
	}
}

// put stores q under the fence in the place of the version was; [store.Absent]: there is none.
func (q Question) put(ctx context.Context, db store.DB, sid string, fence uint64, was store.Version) error {
	data, err := json.Marshal(q)
	if err != nil {
		return err
	}
	k := proposal.QuestionKey(sid, q.Question.ID)
	return db.Commit(ctx, store.Commit{Scope: sid, Fence: fence, Guards: []store.Guard{{Key: k, Version: was}}, Writes: []store.Write{{Key: k, Data: data}}})
}
