package lobby

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/bot/inbox"
	"ghostbot/bot/show"
	"ghostbot/store"
)

// goesOn are the questions whose last answer lets a case go on.
var goesOn = []string{agent.AskContinue, agent.AskExtend}

// askedFor is what is needed of such a question.
type askedFor struct {
	ID      string
	Options []agent.Option
}

// Opinion is what somebody thinks of the report of a case.
type Opinion struct {
	SessionID string        `json:"session_id"`
	Feedback  show.Feedback `json:"feedback"`
}

// opinionMax is the longest text that is kept of an opinion, in bytes.
const opinionMax = 2000

// Feedback makes what somebody thinks of a report durable; [Lobby.File] journals it.
// The same opinion of the same person again is one.
func (l *Lobby) Feedback(ctx context.Context, o Opinion) error {
	if _, err := l.desk.Case(ctx, o.SessionID); err != nil {
		return err
	}
	o.Feedback.Text = clip(l.o.Redact(o.Feedback.Text), opinionMax)
	o.Feedback.At = time.Now().UTC()
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if _, err := l.o.DB.Get(ctx, seenKey(o)); err == nil {
		return nil // it is in the journal
	}
	_, _, err = l.o.DB.Once(ctx, store.Key{Scope: store.Deployment, Name: "feedback/" + store.KeyPart(delivery(o))}, data)
	return err
}

// delivery names an opinion; the time is no part of it.
func delivery(o Opinion) string {
	return fmt.Sprintf("feedback %s %s %v %s", o.SessionID, o.Feedback.By, o.Feedback.Useful, o.Feedback.Text)
}

func seenKey(o Opinion) store.Key {
	return store.Key{Scope: o.SessionID, Name: "seen/" + store.KeyPart(delivery(o))}
}

// File journals every opinion that stands in no journal yet and how many refusals were only counted, and
// drops questions that are too old. What fails is tried again at the next call.
func (l *Lobby) File(ctx context.Context) error {
	l.forget(ctx)
	bad := l.registerCounts(ctx, time.Now())
	vs, err := l.o.DB.List(ctx, store.Deployment, "feedback/")
	if err != nil {
		return errors.Join(bad, fmt.Errorf("file feedback: %w", err))
	}
	for _, v := range vs {
		var o Opinion
		if err := json.Unmarshal(v.Data, &o); err != nil {
			bad = errors.Join(bad, fmt.Errorf("feedback %s: %w", v.Key.Name, err))
			continue
		}
		if err := l.file(ctx, o); errors.Is(err, bot.ErrNoCase) {
			l.o.Log.Warn("an opinion about a case that is deleted is dropped", "session_id", o.SessionID)
		} else if err != nil {
			bad = errors.Join(bad, fmt.Errorf("feedback about %s: %w", o.SessionID, err))
			continue
		}
		l.drop(ctx, v.Key)
	}
	return bad
}

func (l *Lobby) file(ctx context.Context, o Opinion) error {
	c, err := l.desk.Case(ctx, o.SessionID)
	if err != nil {
		return err
	}
	if c.Closed {
		return l.append(ctx, o)
	}
	body, err := json.Marshal(inbox.Item{Kind: show.KindOfFeedback, At: o.Feedback.At, Feedback: &o.Feedback})
	if err == nil {
		err = inbox.Deliver(ctx, l.o.DB, o.SessionID, delivery(o), body)
	}
	if err != nil {
		return err
	}
	if c, err = l.desk.Case(ctx, o.SessionID); err == nil && c.Closed {
		return errors.New("the case was closed just now") // its holder may have left the words in the inbox
	}
	return err
}

// append writes one entry into the journal of a closed case, as its holder for so long.
func (l *Lobby) append(ctx context.Context, o Opinion) (err error) {
	lease, err := l.o.DB.Acquire(ctx, o.SessionID, l.o.Owner, l.o.Lease)
	if err != nil {
		return err
	}
	defer func() {
		rctx, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		if rerr := l.o.DB.Release(rctx, lease); rerr != nil && err == nil && !errors.Is(rerr, store.ErrFenced) {
			err = rerr
		}
	}()
	if _, err := l.desk.Case(ctx, o.SessionID); err != nil {
		return err // deleted before the lease was taken: an entry would bring it back
	}
	log, err := l.o.OpenLog(ctx, o.SessionID, lease.Fence)
	if err != nil {
		return fmt.Errorf("open journals: %w", err)
	}
	defer log.Close()
	drained, err := l.left(ctx, o, log, lease.Fence)
	if drained || err != nil {
		return err
	}
	seen := seenKey(o)
	_, _, err = log.Journal("case").AppendVia(ctx, show.KindOfFeedback, o.Feedback, func(ctx context.Context, line store.Line) error {
		return l.o.DB.Commit(ctx, store.Commit{Scope: o.SessionID, Fence: lease.Fence,
			Guards: []store.Guard{{Key: seen, Version: store.Absent}}, Writes: []store.Write{{Key: seen, Data: []byte(`{"feedback":true}`)}}, Lines: []store.Line{line}})
	})
	if errors.Is(err, store.ErrConflict) {
		return nil // it is there
	}
	return err
}

// left journals an opinion that the holder of the case left in its inbox when it closed
// the case: its once-key is written already.
func (l *Lobby) left(ctx context.Context, o Opinion, log bot.Log, fence uint64) (bool, error) {
	items, err := l.o.DB.List(ctx, o.SessionID, "inbox/")
	if err != nil {
		return false, err
	}
	found := false
	for _, v := range items {
		var it inbox.Item
		if json.Unmarshal(v.Data, &it) != nil || it.Feedback == nil {
			continue
		}
		_, _, err := log.Journal("case").AppendVia(ctx, it.Kind, it.Body(), func(ctx context.Context, line store.Line) error {
			return l.o.DB.Commit(ctx, store.Commit{Scope: o.SessionID, Fence: fence,
				Guards: []store.Guard{{Key: v.Key, Version: v.Version}}, Writes: []store.Write{{Key: v.Key}}, Lines: []store.Line{line}})
		})
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return found, err
		}
		found = found || it.Feedback.By == o.Feedback.By && it.Feedback.Useful == o.Feedback.Useful && it.Feedback.Text == o.Feedback.Text
	}
	return found, nil
}
