package lobby

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ghostbot/bot"
	"ghostbot/bot/inbox"
	"ghostbot/bot/record"
	"ghostbot/bot/show"
	"ghostbot/store"
)

// ErrGone means that a question is not open any more: it was answered, or a day old.
var ErrGone = errors.New("the question is not open any more")

// askFor is how long somebody may think about joining a case.
const askFor = 24 * time.Hour

// Parked is an opening whose requester is asked whether to join a case that is open.
type Parked struct {
	Opening bot.Opening `json:"opening"`
	Case    string      `json:"case"`
	At      time.Time   `json:"at"`
	Chosen  string      `json:"chosen,omitempty"` // join or another; "": nothing yet
	version store.Version
}

// What somebody may choose.
const (
	chosenJoin    = "join"
	chosenAnother = "another"
)

// Taken is a question that was answered otherwise before: one press counts.
type Taken struct {
	Case   string // that the first press led to
	Joined bool   // and not opened
}

func (t *Taken) Error() string { return "the question was answered otherwise before" }

func parkedKey(id string) store.Key { return store.Key{Scope: store.Deployment, Name: "ask/" + id} }

// openTries is how often it is looked again whether a case that looks at the same was opened meanwhile; then
// the case is opened all the same: a channel in which everybody opens cases keeps nobody from theirs.
const openTries = 8

// Open opens a case, unless an open one of the channel looks at the same: then sid is that one, and
// question is what its requester is to be asked. Of two who ask for the same at the same moment one is
// asked.
func (l *Lobby) Open(ctx context.Context, o bot.Opening) (sid, question string, err error) {
	for range openTries {
		door, err := l.o.DB.Get(ctx, record.DoorKey(o.Place))
		if err == nil || errors.Is(err, store.ErrNotFound) {
			sid, err = l.Alike(ctx, o)
		}
		if err != nil {
			l.o.Log.Warn("cases that look at the same are not known", "err", err)
			break
		}
		if sid != "" {
			question, err = l.Park(ctx, o, sid)
			return sid, question, err
		}
		o.Seen = &door.Version
		if sid, err = l.desk.Open(ctx, o); !errors.Is(err, bot.ErrMoved) {
			return sid, "", err
		}
	}
	o.Seen = nil
	sid, err = l.desk.Open(ctx, o)
	return sid, "", err
}

// Alike returns the newest open case of the channel that looks at the same as an
// opening; "" when there is none. A delivery that opened a case before gets none.
func (l *Lobby) Alike(ctx context.Context, o bot.Opening) (sid string, err error) {
	if l.o.Alike == nil {
		return "", nil
	}
	if _, err := l.o.DB.Get(ctx, store.Key{Scope: store.Deployment, Name: "open/" + store.KeyPart(o.Delivery)}); err == nil {
		return "", nil
	}
	open, err := l.desk.Active(ctx, o.Place.Channel)
	if err != nil {
		return "", err
	}
	var newest bot.CaseInfo
	for _, c := range open {
		at := c.Opening.Place
		if c.Opening.Kind != "" || at.Transport != o.Place.Transport || at.Channel != o.Place.Channel {
			continue
		}
		if c.CreatedAt.After(newest.CreatedAt) && l.o.Alike(c.Opening.Symptom, o.Symptom) && !l.stopped(ctx, c.SessionID) {
			newest = c
		}
	}
	return newest.SessionID, nil
}

func (l *Lobby) stopped(ctx context.Context, sid string) bool {
	_, err := l.o.DB.Get(ctx, store.Key{Scope: sid, Name: "stop"})
	return err == nil
}

// parkedEach is how many questions are open to one person; a further one closes the oldest, so that
// whoever asks on and on fills no store.
const parkedEach = 20

// Park keeps an opening until its requester says whether to join the case sid. The
// same delivery again is the same question.
func (l *Lobby) Park(ctx context.Context, o bot.Opening, sid string) (id string, err error) {
	o.Symptom = clip(l.o.Redact(strings.TrimSpace(o.Symptom)), parkedMax)
	data, err := json.Marshal(Parked{Opening: o, Case: sid, At: time.Now().UTC()})
	if err != nil {
		return "", err
	}
	id = store.KeyPart(o.Delivery)
	for {
		if _, err := l.o.DB.Get(ctx, parkedKey(id)); !errors.Is(err, store.ErrNotFound) {
			return id, err
		}
		c, err := l.parking(ctx, o.Requester, id)
		if err != nil {
			return "", err
		}
		c.Writes = append(c.Writes, store.Write{Key: parkedKey(id), Data: data})
		if err := l.o.DB.Commit(ctx, c); !errors.Is(err, store.ErrConflict) {
			return id, err
		}
	}
}

// parking is the step that adds a question to those of one person, and closes the oldest when there are too many.
func (l *Lobby) parking(ctx context.Context, by, id string) (c store.Commit, err error) {
	key := store.Key{Scope: store.Deployment, Name: "asked/" + store.KeyPart(by)}
	v, err := l.o.DB.Get(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return c, err
	}
	var ids []string
	_ = json.Unmarshal(v.Data, &ids) // what cannot be read counts none
	ids = append(ids, id)
	c = store.Commit{Scope: store.Deployment, Guards: []store.Guard{{Key: key, Version: v.Version}, {Key: parkedKey(id), Version: store.Absent}}}
	for ; len(ids) > parkedEach; ids = ids[1:] {
		c.Writes = append(c.Writes, store.Write{Key: parkedKey(ids[0])})
	}
	data, err := json.Marshal(ids)
	c.Writes = append(c.Writes, store.Write{Key: key, Data: data})
	return c, err
}

// parkedMax is the longest symptom that waits, in bytes; the desk cuts it anyway.
const parkedMax = 8000

// forgetEvery is how often all questions are read to drop the old ones: who asks waits for none of that.
const forgetEvery = time.Hour

// forget drops questions that nobody answered in time. What it cannot drop is dropped
// the next time.
func (l *Lobby) forget(ctx context.Context) {
	last, now := l.forgot.Load(), time.Now().UnixNano()
	if last != 0 && time.Duration(now-last) < forgetEvery || !l.forgot.CompareAndSwap(last, now) {
		return
	}
	vs, err := l.o.DB.List(ctx, store.Deployment, "ask/")
	if err != nil {
		return
	}
	for _, v := range vs {
		var p Parked
		if json.Unmarshal(v.Data, &p) != nil || time.Since(p.At) > askFor {
			l.drop(ctx, v.Key)
		}
	}
}

func (l *Lobby) drop(ctx context.Context, k store.Key) {
	if err := l.o.DB.Commit(ctx, store.Commit{Scope: k.Scope, Writes: []store.Write{{Key: k}}}); err != nil {
		l.o.Log.Warn("a value is not removed, it is the next time", "key", k.String(), "err", err)
	}
}

func (l *Lobby) parked(ctx context.Context, id, by string) (p Parked, err error) {
	if strings.ContainsAny(id, "/ ") || id == "" {
		return p, ErrGone
	}
	v, err := l.o.DB.Get(ctx, parkedKey(id))
	if errors.Is(err, store.ErrNotFound) {
		return p, ErrGone
	}
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(v.Data, &p); err != nil {
		return p, fmt.Errorf("question %s: %w", id, err)
	}
	p.version = v.Version
	if p.Opening.Requester != by || time.Since(p.At) > askFor {
		return p, ErrGone // only its requester is shown the question
	}
	return p, nil
}

// choose makes want what a parked opening comes to, unless something else was chosen
// before, which is what it returns then. "" takes the choice back.
func (l *Lobby) choose(ctx context.Context, id, by, want string) (p Parked, err error) {
	for {
		if p, err = l.parked(ctx, id, by); err != nil {
			return p, err
		}
		if p.Chosen == want || p.Chosen != "" && want != "" {
			return p, nil
		}
		p.Chosen = want
		data, err := json.Marshal(p)
		if err != nil {
			return p, err
		}
		if _, err = l.o.DB.Put(ctx, parkedKey(id), data, p.version); !errors.Is(err, store.ErrConflict) {
			return p, err
		}
	}
}

// joining is the delivery of a parked symptom to the case that it joins.
func joining(id string) string { return "join " + id }

// Join passes a parked symptom on to the case that looks at the same. why is a refusal
// for the person; the question then stays open. The first press counts: of two
// different ones the other gets [Taken], and the same again is the same.
func (l *Lobby) Join(ctx context.Context, id, by, team string) (sid, why string, err error) {
	p, err := l.choose(ctx, id, by, chosenJoin)
	if err != nil {
		return "", "", err
	}
	if p.Chosen != chosenJoin {
		if sid, err = l.desk.Open(ctx, p.Opening); err == nil {
			err = &Taken{Case: sid}
		}
		return sid, "", err
	}
	why, err = l.Instruct(ctx, bot.Words{Delivery: joining(id), SessionID: p.Case, By: by, Team: team, Text: p.Opening.Symptom})
	if why != "" || errors.Is(err, bot.ErrClosed) {
		_, back := l.choose(ctx, id, by, "") // so that another case can still be opened
		err = errors.Join(err, back)
	}
	return p.Case, why, err
}

// Another opens the case of its own that a parked opening asked for. It is opened by
// its delivery: a second press finds the same case. After [Lobby.Join] it is [Taken]; a
// Join of which nobody knows whether the words came is brought to its end first.
func (l *Lobby) Another(ctx context.Context, id, by string) (sid string, err error) {
	p, err := l.choose(ctx, id, by, chosenAnother)
	if err != nil {
		return "", err
	}
	if p.Chosen != chosenJoin {
		return l.desk.Open(ctx, p.Opening)
	}
	came, err := inbox.Seen(ctx, l.o.DB, p.Case, joining(id))
	if err != nil {
		return "", err
	}
	if !came {
		_, why, err := l.Join(ctx, id, by, "")
		if why != "" && err == nil || errors.Is(err, bot.ErrClosed) { // the choice was taken back
			if p, err = l.choose(ctx, id, by, chosenAnother); err == nil && p.Chosen == chosenAnother {
				return l.desk.Open(ctx, p.Opening)
			}
		}
		if err != nil {
			return "", err
		}
	}
	return p.Case, &Taken{Case: p.Case, Joined: true}
}

// Resumption is what came of taking a case up again.
type Resumption string

// What may come of it.
const (
	ResumeRuns      Resumption = "runs"      // it was not at rest
	ResumeTaken     Resumption = "taken"     // it rested, and is tried again now
	ResumeContinued Resumption = "continued" // it waited for a word, and goes on
	ResumeAsks      Resumption = "asks"      // it waits for an answer that only its thread can give
	ResumeApproval  Resumption = "approval"  // it waits for a decision about a command
	ResumeStopping  Resumption = "stopping"
	ResumeBroken    Resumption = "broken" // this process may not act on it any more
	ResumeClosed    Resumption = "closed"
	ResumeRefused   Resumption = "refused"
)

// Resume lets a case go on that rests or waits for a word to continue. A closed case is
// not opened again: its journals end with its report. why is set when the person
// may not.
func (l *Lobby) Resume(ctx context.Context, sid, by, team string) (r Resumption, why string, err error) {
	c, err := l.Describe(ctx, sid)
	if err != nil {
		return "", "", err
	}
	switch c.State {
	case "finished":
		return ResumeClosed, "", nil
	case "stopping":
		return ResumeStopping, "", nil
	}
	q, open, err := l.continuable(ctx, sid)
	switch {
	case err != nil:
		return "", "", err
	case open && q.ID != "":
		reply, err := l.desk.Answer(ctx, sid, q.ID, q.Options[len(q.Options)-1].Key, by, team)
		if err == nil && !reply.OK {
			return ResumeRefused, reply.Text, nil
		}
		return ResumeContinued, "", err
	case open:
		return ResumeAsks, "", nil
	}
	carried, rests := l.desk.Holding(sid)
	switch {
	case carried && c.Pending > 0:
		return ResumeApproval, "", nil
	case carried:
		return ResumeRuns, "", nil
	case rests > 365*24*time.Hour:
		return ResumeBroken, "", nil
	}
	l.desk.Nudge(sid)
	return ResumeTaken, "", nil
}

// continuable finds the question whose last answer lets a case go on; open reports that
// some question is open.
func (l *Lobby) continuable(ctx context.Context, sid string) (q askedFor, open bool, err error) {
	vs, err := l.o.DB.List(ctx, sid, "question/")
	if err != nil {
		return q, false, err
	}
	for _, v := range vs {
		var s inbox.Question
		if json.Unmarshal(v.Data, &s) != nil || s.Answer != nil {
			continue
		}
		open = true
		if slices.Contains(goesOn, s.Question.Kind) && len(s.Question.Options) > 1 {
			q = askedFor{ID: s.Question.ID, Options: s.Question.Options}
		}
	}
	return q, open, nil
}

// going is the delivery that opens the next case that goes on from sid: the same for
// whoever asks while that one is open, and another one once it has ended.
func (l *Lobby) going(ctx context.Context, sid string) (delivery string, err error) {
	for n := 1; ; n++ {
		delivery = "linked " + sid
		if n > 1 {
			delivery += " " + strconv.Itoa(n)
		}
		v, err := l.o.DB.Get(ctx, store.Key{Scope: store.Deployment, Name: "open/" + store.KeyPart(delivery)})
		if errors.Is(err, store.ErrNotFound) {
			return delivery, nil
		}
		if err != nil {
			return "", err
		}
		c, err := l.desk.Case(ctx, strings.Trim(string(v.Data), `"`))
		switch {
		case err == nil && !c.Closed:
			return delivery, nil
		case err != nil && !errors.Is(err, bot.ErrNoCase):
			return "", err
		}
	}
}

// Linked opens a case that goes on from a closed one, in the channel of that one, or
// returns the one that is open already. Its thread says where it comes from.
func (l *Lobby) Linked(ctx context.Context, sid, by, link string) (next string, err error) {
	c, err := l.desk.Case(ctx, sid)
	if err != nil {
		return "", err
	}
	if !c.Closed || c.Opening.Kind != "" {
		return "", ErrGone
	}
	place := c.Opening.Place
	place.Thread = ""
	delivery, err := l.going(ctx, sid)
	if err != nil {
		return "", err
	}
	next, err = l.desk.Open(ctx, bot.Opening{Delivery: delivery, Symptom: c.Opening.Symptom, Requester: by, Place: place, From: sid, Source: c.Opening.Source})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(inbox.Item{Kind: show.KindOfNotice, At: time.Now().UTC(), Notice: &show.Notice{By: by,
		Text: "goes on from the closed case " + sid + ". Nothing that was decided or found there counts here.", Cases: []show.Other{{Case: sid, Link: link}}}})
	if err == nil {
		err = inbox.Deliver(ctx, l.o.DB, next, "linked "+sid, body)
	}
	if err != nil {
		l.o.Log.Warn("a case does not say where it comes from", "session_id", next, "err", err)
	}
	return next, nil
}
