package thread

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"ghostbot/agent"
	"ghostbot/bot/show"
	"ghostbot/store"
)

// madeMax bounds how often a thread is made anew: somebody who deletes it again and
// again does not want it.
const madeMax = 3

// errDeleted is a thread that was deleted more often than it is made anew.
var errDeleted error = deleted{}

type deleted struct{}

func (deleted) Error() string { return "the thread was deleted again and again" }
func (deleted) Gone() bool    { return true }

func lost(err error) bool {
	var l Lost
	return errors.As(err, &l) && l.Lost() || missing(err)
}

func missing(err error) bool {
	var m Missing
	return errors.As(err, &m) && m.Missing()
}

func detached(err error) bool {
	var d Detached
	return errors.As(err, &d) && d.Detached()
}

// answerable reports whether a message has buttons at some time: only those are posted
// again. What else was deleted was deleted on purpose, and the journal has it.
func answerable(m show.Message) bool { return m.Kind == show.KindCard || m.Kind == show.KindQuestion }

// note remembers which messages were deleted, as the journal says. Addresses do not
// come back, so that reading an entry again changes nothing.
func (p *Projector) note(e agent.Entry) {
	var r show.Removed
	if e.Journal == "case" && e.Kind == show.KindOfRemoved && json.Unmarshal(e.Body, &r) == nil {
		p.taken[r.Addr] = true
	}
}

// replace posts a message again whose first copy is deleted or cannot be edited any
// more. If the first one is still there, it becomes a pointer, when it can be; a click
// on it decides nothing in any case, because the map names the new one.
// gone says that the first one is surely not there.
func (p *Projector) replace(ctx context.Context, m show.Message, s Sent, gone bool) error {
	p.slog.Warn("message is gone, it is posted again", "session_id", p.sid, "key", m.Key, "was", s.Addr)
	if err := p.post(ctx, m, Sent{}, ""); err != nil || gone {
		return err
	}
	pointer := show.Message{Key: "copy", SessionID: p.sid, Kind: show.KindLog, Text: moved, Log: &show.LogView{What: "notice", Body: moved}}
	if l, ok := p.front.(interface {
		Link(ctx context.Context, at Place) (string, error)
	}); ok {
		at := p.m.Place
		at.Thread = p.m.Sent[m.Key].Addr
		if url, err := l.Link(ctx, at); err == nil {
			pointer.Log.Links = []show.Other{{Link: url}}
		}
	}
	if err := p.front.Update(ctx, p.m.Place, s.Addr, pointer); err != nil && !lost(err) {
		p.slog.Warn("older copy of a message is not retired", "session_id", p.sid, "key", m.Key, "err", err)
	}
	return nil
}

const moved = "This is not the card of that command any more. Use the newest one in this thread."

// anew forgets a thread that is not there any more: everything is posted again, under
// a new first message, as into an empty thread.
func (p *Projector) anew(ctx context.Context) error {
	if p.m.Made >= madeMax {
		return errDeleted
	}
	p.slog.Warn("the thread was deleted, it is made anew", "session_id", p.sid)
	place := p.m.Place
	place.Thread = ""
	p.m = Map{Sent: map[string]Sent{}, Place: place, Made: p.m.Made + 1}
	clear(p.late)
	clear(p.files)
	clear(p.edited)
	return p.save(ctx)
}

// KeyAt returns the key of the message at an address, when people can answer such a
// message; "" for others, and for what is not the case's.
func KeyAt(ctx context.Context, db store.DB, sid, addr string) (string, error) {
	m, err := Load(ctx, db, sid)
	for key, s := range m.Sent {
		if s.Addr == addr && (strings.HasPrefix(key, "card/") || strings.HasPrefix(key, "question/")) {
			return key, err
		}
	}
	return "", err
}

// Another reports whether addr is another message than the card of the command with
// this audit id, and where that card is. A card that is not in the map yet (its post has
// not returned) is accepted: id and digest already bind a click.
func Another(ctx context.Context, db store.DB, sid, auditID, addr string) (live string, other bool) {
	if addr == "" {
		return "", false
	}
	m, err := Load(ctx, db, sid)
	if err != nil {
		return "", true
	}
	at := m.Sent["card/"+auditID[strings.LastIndexByte(auditID, '_')+1:]]
	return at.Addr, at.Addr != "" && at.Addr != addr
}

// Doubt notes that the store may have lost the last marks of a case's messages: those of the entries that are there so far are looked
// for before they are posted, until the thread shows everything. Later ones nobody can have shown.
func Doubt(ctx context.Context, db store.DB, sid string, fence uint64, log Feed) error {
	entries, err := log.Since(0)
	if err != nil || len(entries) == 0 {
		return err
	}
	m, err := Load(ctx, db, sid)
	if err != nil {
		return err
	}
	m.Doubt = entries[len(entries)-1].N
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return db.Commit(ctx, store.Commit{Scope: sid, Fence: fence, Writes: []store.Write{{Key: MessagesKey(sid), Data: data}}})
}
