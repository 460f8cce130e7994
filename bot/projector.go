package bot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ghostbot/bot/show"
	"ghostbot/store"
)

// editEvery bounds how often the messages that summarise a case are edited;
// cards, questions and the end of a case are written at once.
const editEvery = time.Second

// sentMessage is what the message map knows of one message.
type sentMessage struct {
	Addr    string `json:"addr,omitempty"`
	Hash    string `json:"hash,omitempty"` // of what it shows
	Posting bool   `json:"posting,omitempty"`
}

// messageMap is the value at "messages". Only the holder writes it.
type messageMap struct {
	Sent  map[string]sentMessage `json:"sent"`
	Place Place                  `json:"place"`
	LastN uint64                 `json:"last_n"` // entries shown so far
}

func messagesKey(sid string) store.Key { return store.Key{Scope: sid, Name: "messages"} }

func loadMessages(ctx context.Context, db store.DB, sid string) (messageMap, error) {
	m := messageMap{Sent: map[string]sentMessage{}}
	v, err := db.Get(ctx, messagesKey(sid))
	if errors.Is(err, store.ErrNotFound) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(v.Data, &m); err != nil {
		return m, fmt.Errorf("message map: %w", err)
	}
	return m, nil
}

// Permanent marks an error of a front that trying again cannot mend.
type Permanent interface{ Permanent() bool }

// Delayed marks an error of a front that says when to try again.
type Delayed interface{ RetryAfter() time.Duration }

// projector keeps the thread of one case in step with its journal.
type projector struct {
	db      store.DB
	front   Front
	log     Log
	slog    *slog.Logger
	sid     string
	fence   func() uint64
	show    *show.Fold
	m       messageMap
	n       uint64               // entries applied
	edited  map[string]time.Time // last edit of a summarising message
	again   time.Time            // when to do that; zero: not at all
	body    func(sid string) ([]byte, error)
	settled chan uint64 // receives the last entry shown after each complete pass
}

// run shows entries until ctx ends.
func (p *projector) run(ctx context.Context) {
	backoff := time.Second
	for {
		changed := p.log.Changed()
		next, err := p.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			next = min(backoff, 30*time.Second)
			var d Delayed
			if errors.As(err, &d) && d.RetryAfter() > next {
				next = d.RetryAfter()
			}
			backoff *= 2
			p.slog.Warn("thread is behind the journal", "session_id", p.sid, "entry", p.n, "retry_in", next, "err", err)
			changed = nil // an outage is waited out; the comparison catches up
		default:
			backoff = time.Second
		}
		p.sleep(ctx, changed, next)
	}
}

func (p *projector) sleep(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	if d <= 0 {
		d = time.Hour
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	case <-ctx.Done():
	}
}

// pass applies new entries and writes what differs, once. next is when a
// postponed edit is due; 0 when nothing is.
func (p *projector) pass(ctx context.Context) (next time.Duration, err error) {
	entries, err := p.log.Since(p.n)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		p.show.Apply(e)
		p.n = e.N
	}
	p.rewriteCards()
	if !p.again.IsZero() {
		next = max(time.Until(p.again), time.Millisecond)
	}
	var behind error
	for _, m := range p.show.Messages() {
		wait, err := p.write(ctx, m)
		if err != nil && p.m.Sent[m.Key].Addr != "" && ctx.Err() == nil {
			behind = fmt.Errorf("message %s: %w", m.Key, err) // an edit that fails keeps no new message back
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("message %s: %w", m.Key, err)
		}
		if wait > 0 && (next == 0 || wait < next) {
			next = wait
		}
		if p.stale() && m.Kind != show.KindRoot {
			return time.Millisecond, nil // newer entries first decide what is shown
		}
	}
	if behind != nil {
		return 0, behind
	}
	if p.m.LastN != p.n {
		p.m.LastN = p.n
		if err := p.save(ctx); err != nil {
			return 0, err
		}
	}
	p.settle(next)
	return next, nil
}

// settle tells whoever waits for the end of the case how far people can see.
func (p *projector) settle(next time.Duration) {
	n := p.n
	if next > 0 && p.again.IsZero() {
		return // an edit is still due
	}
	latest(p.settled, n)
}

func (p *projector) shown() <-chan uint64 { return p.settled }

// stale reports whether the journal moved on since the entries were read.
func (p *projector) stale() bool {
	entries, err := p.log.Since(p.n)
	return err == nil && len(entries) > 0
}

// rewriteCards forgets what cards show, one lease time after a take-over: an edit
// of the old process may have landed last.
func (p *projector) rewriteCards() {
	if p.again.IsZero() || time.Now().Before(p.again) {
		return
	}
	p.again = time.Time{}
	for key, s := range p.m.Sent {
		if s.Addr != "" && len(key) > 5 && key[:5] == "card/" {
			s.Hash = ""
			p.m.Sent[key] = s
		}
	}
}

// write brings one message up to date. wait says when a postponed edit is due.
func (p *projector) write(ctx context.Context, m show.Message) (wait time.Duration, err error) {
	s := p.m.Sent[m.Key]
	h := messageHash(m)
	switch {
	case s.Addr == "":
		return 0, p.post(ctx, m, s, h)
	case s.Hash == h || m.Kind == show.KindLog || m.Kind == show.KindSay || m.Kind == show.KindFile:
		return 0, nil
	}
	if m.Kind == show.KindRoot || m.Kind == show.KindProgress {
		if d := editEvery - time.Since(p.edited[m.Key]); d > 0 && !finished(m) {
			return d, nil
		}
		p.edited[m.Key] = time.Now()
	}
	if err := p.front.Update(ctx, p.m.Place, s.Addr, p.full(m)); err != nil {
		if !permanent(err) {
			return 0, err
		}
		p.slog.Error("message is not updated", "session_id", p.sid, "key", m.Key, "err", err)
	}
	s.Hash = h
	p.m.Sent[m.Key] = s
	return 0, p.save(ctx)
}

func finished(m show.Message) bool {
	return m.Kind == show.KindProgress && m.Progress.Done ||
		m.Kind == show.KindRoot && (m.Root.State == "finished" || m.Root.State == "stopped")
}

func permanent(err error) bool {
	var p Permanent
	return errors.As(err, &p) && p.Permanent()
}

// full adds what is too large for the journal.
func (p *projector) full(m show.Message) show.Message {
	if m.Kind != show.KindFile || m.Report == nil {
		return m
	}
	r := *m.Report
	if b, err := p.body(p.sid); err == nil {
		r.Markdown = string(b)
	}
	m.Report = &r
	return m
}

// post marks the message, shows it and stores its address. A message that was
// marked before and has no address may have been shown by a process that died:
// it is looked for first.
func (p *projector) post(ctx context.Context, m show.Message, s sentMessage, hash string) error {
	var addr string
	var err error
	if s.Posting {
		if addr, err = p.front.Find(ctx, p.m.Place, m); err != nil {
			return err
		}
		hash = ""
	} else if err := p.mark(ctx, m.Key, sentMessage{Posting: true}); err != nil {
		return err
	}
	if addr == "" {
		hash = messageHash(m)
		addr, err = p.front.Post(ctx, p.m.Place, p.full(m))
	}
	if err != nil {
		if !permanent(err) {
			return err
		}
		p.slog.Error("message is not shown", "session_id", p.sid, "key", m.Key, "err", err)
		addr = "-"
	}
	if m.Kind == show.KindRoot {
		if err := p.thread(ctx, addr); err != nil {
			return err
		}
	}
	p.edited[m.Key] = time.Now()
	return p.mark(ctx, m.Key, sentMessage{Addr: addr, Hash: hash})
}

func (p *projector) mark(ctx context.Context, key string, s sentMessage) error {
	p.m.Sent[key] = s
	return p.save(ctx)
}

// thread remembers the root message's address as the case's thread, and which
// case the thread belongs to.
func (p *projector) thread(ctx context.Context, addr string) error {
	p.m.Place.Thread = addr
	_, _, err := p.db.Once(ctx, threadKey(p.m.Place), []byte(`"`+p.sid+`"`))
	return err
}

func (p *projector) save(ctx context.Context) error {
	data, err := json.Marshal(p.m)
	if err != nil {
		return err
	}
	return p.db.Commit(ctx, store.Commit{Scope: p.sid, Fence: p.fence(),
		Writes: []store.Write{{Key: messagesKey(p.sid), Data: data}}})
}

func messageHash(m show.Message) string {
	data, err := json.Marshal(m)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

func threadKey(p Place) store.Key {
	return store.Key{Scope: store.Deployment, Name: "thread/" + keyPart(p.Transport+" "+p.Channel+" "+p.Thread)}
}
