// Package lobby is what people do around cases rather than in one: they list them,
// take one up again, join the one that looks at the same, say who may steer it, ask
// for its report, and say what they think of it. It knows no transport; what it
// returns are facts, and a front puts them into words.
//
// # What is stored
//
// In the deployment's scope, beside what the desk keeps there:
//
//	ask/{id}        an opening whose requester is asked whether to join another case
//	asked/{person}  the last of the questions that somebody was asked
//	feedback/{id}   words about a report that stand in no journal yet
//
// # Words about a report
//
// They come when the case is closed, whose journals nobody holds any more. [Lobby.Feedback]
// makes them durable, and [Lobby.File] journals them: through the inbox of a case that
// is still open, and otherwise by taking the case's lease for one entry. The once-key
// of the words is written in the step that makes the entry durable, so a crash
// anywhere leaves them to the next call, and journals them once.
package lobby

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/bot/access"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/record"
	"ghostbot/bot/show"
	"ghostbot/bot/thread"
	"ghostbot/store"
)

// Lobby is the desk's other side. Its methods are safe for concurrent use.
type Lobby struct {
	desk  *bot.Desk
	o     bot.Options
	cases *shared
	refusals
	forgot atomic.Int64 // when old questions were dropped last
}

// New returns the lobby of a desk.
func New(d *bot.Desk) *Lobby { return &Lobby{desk: d, o: d.Options(), cases: newShared()} }

// Case is one line of a list.
type Case struct {
	bot.CaseStatus
	Place    bot.Place // with its thread, when people were shown one
	Report   string    // address of the report; "": there is none
	Summary  string
	ClosedAt time.Time
	From     string // the case that it goes on from
	Kind     string // as [bot.Opening] has it
}

// Page is a part of a list: open cases first, the newest first, then closed ones.
type Page struct {
	Cases  []Case
	Number int // from 1
	Pages  int
	Open   int // of all pages
	Closed int
}

// List returns one page of the cases that want accepts: all that are open, and those that
// have ended and were opened within [Kept]. Of all others nothing is read.
func (l *Lobby) List(ctx context.Context, want func(bot.CaseInfo) bool, number, size int) (Page, error) {
	all, err := l.cases.read(ctx, l.recent)
	if err != nil {
		return Page{}, err
	}
	all = slices.DeleteFunc(all, func(c bot.CaseInfo) bool { return !want(c) })
	slices.SortStableFunc(all, newestFirst)
	p := Page{Pages: max(1, (len(all)+size-1)/size)}
	for _, c := range all {
		if c.Closed {
			p.Closed++
		} else {
			p.Open++
		}
	}
	p.Number = min(max(number, 1), p.Pages)
	from := (p.Number - 1) * size
	for _, c := range all[from:min(from+size, len(all))] {
		one, err := l.describe(ctx, c)
		if err != nil {
			return p, err
		}
		p.Cases = append(p.Cases, one)
	}
	return p, nil
}

// Kept is how long ago a case that has ended may have been opened to stand in a list.
const Kept = 30 * 24 * time.Hour

// recent reads the open cases, whenever they were opened, and what was opened within [Kept]: a case's id
// begins with the time, and so thousands of older ones are not touched.
func (l *Lobby) recent(ctx context.Context) (out []bot.CaseInfo, err error) {
	if out, err = l.desk.Active(ctx, ""); err != nil {
		return nil, err
	}
	open := map[string]bool{}
	for _, c := range out {
		open[c.SessionID] = true
	}
	now := l.o.Now().UTC()
	since := now.Add(-Kept)
	for m := since.AddDate(0, 0, 1-since.Day()).Truncate(24 * time.Hour); m.Before(now.Add(time.Hour)); m = m.AddDate(0, 1, 0) {
		vs, err := l.o.DB.List(ctx, store.Deployment, m.Format("case/ghost_200601"))
		if err != nil {
			return nil, err
		}
		for _, v := range vs {
			var c bot.CaseInfo
			if err := json.Unmarshal(v.Data, &c); err != nil { // it hides no other
				l.o.Log.Error("stored value ignored", "why", fmt.Errorf("%s: %w", v.Key, err))
				continue
			}
			if c.Closed && c.CreatedAt.After(since) && !open[c.SessionID] {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// newestFirst puts open cases before closed ones.
func newestFirst(a, b bot.CaseInfo) int {
	switch {
	case a.Closed != b.Closed && a.Closed:
		return 1
	case a.Closed != b.Closed:
		return -1
	case a.Closed:
		return b.ClosedAt.Compare(a.ClosedAt)
	}
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.SessionID, a.SessionID))
}

// Describe reads what is known of one case, or [bot.ErrNoCase].
func (l *Lobby) Describe(ctx context.Context, sid string) (Case, error) {
	c, err := l.desk.Case(ctx, sid)
	if err != nil {
		return Case{}, err
	}
	return l.describe(ctx, c)
}

func (l *Lobby) describe(ctx context.Context, c bot.CaseInfo) (Case, error) {
	s, err := record.Describe(ctx, l.o.DB, c)
	if record.Away(ctx, err) {
		return Case{}, err
	} else if err != nil { // it hides no other
		s.State = record.Unread
	}
	out := Case{CaseStatus: s, Place: c.Opening.Place, Summary: c.Summary, ClosedAt: c.ClosedAt, From: c.Opening.From, Kind: c.Opening.Kind}
	m, err := thread.Load(ctx, l.o.DB, c.SessionID)
	if record.Away(ctx, err) {
		return out, err
	} else if err != nil {
		out.State = record.Unread
	}
	if m.Place.Thread != "" {
		out.Place = m.Place
	}
	if at := m.Sent["report"].Addr; at != "-" {
		out.Report = at
	}
	if carried, rests := l.desk.Holding(c.SessionID); !c.Closed && !carried && rests > 0 {
		out.State = "resting"
	}
	return out, nil
}

// Only returns the case that a channel's people mean when they name none: the only open
// one. last is the newest closed one.
func (l *Lobby) Only(ctx context.Context, channel string) (open []string, last string, err error) {
	all, err := l.cases.read(ctx, l.recent)
	if err != nil {
		return nil, "", err
	}
	all = slices.DeleteFunc(all, func(c bot.CaseInfo) bool { return c.Opening.Place.Channel != channel })
	slices.SortStableFunc(all, newestFirst)
	for _, c := range all {
		switch {
		case c.Closed:
			return open, c.SessionID, nil
		case len(open) < 20:
			open = append(open, c.SessionID)
		}
	}
	return open, "", nil
}

// State is where the investigation of a case is, off its session file: an index, not
// the truth.
type State struct {
	Case
	Hypotheses []agent.Hypothesis
	Title      string // of the conclusion, when there is one
}

// State reads where a case is.
func (l *Lobby) State(ctx context.Context, sid string) (State, error) {
	c, err := l.Describe(ctx, sid)
	if err != nil {
		return State{}, err
	}
	out := State{Case: c}
	v, err := l.o.DB.Get(ctx, store.Key{Scope: sid, Name: "ghost_session"})
	if errors.Is(err, store.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	var s agent.Case
	if json.Unmarshal(v.Data, &s) == nil {
		out.Hypotheses = s.Hypotheses
	}
	return out, nil
}

// Report is the report file of a closed case.
func (l *Lobby) Report(sid string) ([]byte, error) { return l.o.Body(sid) }

// Waiting is a command that waits for somebody's decision.
type Waiting struct {
	SessionID string
	Symptom   string
	Command   string
	Expires   time.Time
	Place     bot.Place
	Card      string // address of its card; "": not shown yet
}

// Waiting returns the commands of open cases that want accepts and about which user may
// decide. A look-up that fails hides the command.
func (l *Lobby) Waiting(ctx context.Context, user string, want func(bot.CaseInfo) bool) ([]Waiting, error) {
	open, err := l.desk.Active(ctx, "")
	if err != nil {
		return nil, err
	}
	var out []Waiting
	for _, c := range open {
		if !want(c) {
			continue
		}
		of, err := l.waitingIn(ctx, user, c)
		if record.Away(ctx, err) {
			return out, err
		} else if err != nil { // it hides no other
			l.o.Log.Warn("what waits in a case is not known", "session_id", c.SessionID, "err", err)
		}
		out = append(out, of...)
	}
	slices.SortStableFunc(out, func(a, b Waiting) int { return a.Expires.Compare(b.Expires) })
	return out, nil
}

func (l *Lobby) waitingIn(ctx context.Context, user string, c bot.CaseInfo) (out []Waiting, err error) {
	vs, err := l.o.DB.List(ctx, c.SessionID, "proposal/")
	if err != nil {
		return nil, err
	}
	now, err := l.o.DB.Now(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range vs {
		var p proposal.Stored
		if json.Unmarshal(v.Data, &p) != nil || p.State != bot.StatePending || !now.Before(p.Proposal.Expires) {
			continue
		}
		if slices.ContainsFunc(p.Votes, func(v proposal.Vote) bool { return v.By == user }) || !l.mayDecide(ctx, user, c, p) {
			continue
		}
		m, err := thread.Load(ctx, l.o.DB, c.SessionID)
		if err != nil {
			return out, err
		}
		place := c.Opening.Place
		if m.Place.Thread != "" {
			place = m.Place
		}
		out = append(out, Waiting{SessionID: c.SessionID, Symptom: c.Opening.Symptom, Command: p.Proposal.Display,
			Expires: p.Proposal.Expires, Place: place, Card: m.Sent[cardKey(p.Proposal.AuditID)].Addr})
	}
	return out, nil
}

func (l *Lobby) mayDecide(ctx context.Context, user string, c bot.CaseInfo, p proposal.Stored) bool {
	_, ok := l.o.Access.May(ctx, l.o.Front, user, "", proposal.About(c.Opening.Place.Channel, p.Proposal))
	return ok
}

// cardKey is the key of the message that shows the command with this audit id: its
// number is the last part.
func cardKey(audit string) string {
	n, err := strconv.ParseUint(audit[strings.LastIndexByte(audit, '_')+1:], 10, 64)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("card/%03d", n)
}

// Instruct passes a person's words on to the brain, unless the deployment lets only
// others steer the case: then why says so, and the refusal is journaled.
func (l *Lobby) Instruct(ctx context.Context, w bot.Words) (why string, err error) {
	c, err := l.desk.Case(ctx, w.SessionID)
	if err != nil {
		return "", err
	}
	if c.Closed {
		return "", bot.ErrClosed
	}
	why, ok := l.o.Access.MayInstruct(ctx, l.o.Front, w.By, c.Opening.Requester, c.Opening.Place.Channel)
	if ok {
		return "", l.desk.Instruct(ctx, w)
	}
	// The same words may be allowed later: a refusal is no delivery.
	return why, inbox.Refuse(ctx, l.o.DB, w.SessionID, []string{"refused", w.Delivery},
		show.Refusal{By: w.By, What: "instruct", Text: clip(l.o.Redact(w.Text), 500), Why: access.Plain(why)})
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
