package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/dormant"
	"ghostbot/bot/forgotten"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/record"
	"ghostbot/bot/show"
	"ghostbot/bot/standstill"
	"ghostbot/bot/thread"
	"ghostbot/store"
)

// endWait bounds how long the end of a case waits for the thread to show it when the
// bot is not in the channel any more: then the case is closed; its journals and
// report are written, and the register has its head. A thread that is only behind, because Slack
// is away or takes no more, is waited for: whoever gave up its turns would begin anew.
const endWait = 10 * time.Minute

// holder is one process's hold on one case.
type holder struct {
	d     *Desk
	sid   string
	info  CaseInfo
	lease atomic.Pointer[store.Lease]
	log   Log
	lost  context.CancelCauseFunc // ends everything: the lease is gone
	stop  context.CancelCauseFunc // ends the investigation: a person stopped it
	end   sync.Mutex              // of deaf: held while an entry beside the investigation is written
	deaf  bool                    // the last entries are written: nothing more is
	blind bool                    // people could not be shown the end

	at     Place  // where people see the case, when the store does not tell
	found  uint64 // entries that were there before this holder wrote one
	closes bool   // a report is among them: what is left is to close the case
	sweeps bool   // it investigates nothing: one is like every other
	recall bool   // nobody has looked for closed cases that look like this one yet

	turn   *dormant.Turn
	asked  time.Time // when the lease was asked for that is held
	went   time.Time // since when nothing keeps it
	woken  bool      // it was dormant: this process has carried it on
	conns  *uint64   // connections to people when its open cards were written last; nil: not known
	rest   *rest     // why the case is let go of; nil: it is not
	shows  *thread.Projector
	behind bool        // its thread does not show everything, now that nobody does anything for it
	paired atomic.Bool // neighbours have been told, or are not: the case may sleep
	named  bool        // they were told; read once paired
}

func (h *holder) fence() uint64 { return h.lease.Load().Fence }

// hold acquires the case, carries it as far as it goes and releases it. An error
// means that the case is still open.
// [errDormant] means that it is dormant now.
func (d *Desk) hold(ctx context.Context, sid string, t *dormant.Turn) (err error) {
	info, err := d.Case(ctx, sid)
	if known, ok := d.known.Of(sid); t.Was != nil && ok && err != nil && (t.Was.Lease.Forgotten || errors.Is(err, ErrNoCase)) {
		info, err = known, nil // what is gone of it is put back, and nobody else can
	}
	if t.Was == nil && (err != nil || info.Closed) {
		return err
	}
	h := &holder{d: d, sid: sid, info: info, turn: t}
	if err := h.acquire(ctx, t.Was); err != nil {
		return err
	}
	defer func() {
		if errors.Is(err, errDormant) {
			return
		}
		defer d.o.Lapsed(sid)
		d.known.Lapsed(sid, err == nil)
		rctx, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		if rerr := d.o.DB.Release(rctx, *h.lease.Load()); rerr != nil && err == nil && !errors.Is(rerr, store.ErrFenced) {
			err = rerr
		}
	}()
	if err != nil || h.info.Closed {
		return err
	}
	d.known.Keep(h.info)
	err = h.enter(ctx)
	for ctx.Err() == nil && (h.rest != nil || h.regain(ctx, err)) {
		if err = h.sleep(ctx); errors.Is(err, errDormant) {
			return err
		} else if err == nil {
			err = h.enter(ctx)
		}
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	if !h.went.IsZero() && time.Since(h.went) > d.calm {
		d.recovered(sid)
	}
	d.o.Log.Error("case rests", "session_id", sid, "err", err)
	if errors.Is(err, ErrTampered) {
		if closed, berr := h.broken(ctx, err); closed || berr == nil {
			return unless(closed, err)
		}
	}
	h.tell(ctx, err)
	return err
}

func unless(done bool, err error) error {
	if done {
		return nil
	}
	return err
}

// enter carries the case once it is its turn to be read; its lease is kept meanwhile.
func (h *holder) enter(ctx context.Context) error {
	ready := proposal.Stay(ctx, h.d.o.DB, &h.lease, h.asked)
	defer ready()
	return h.turn.Pass(ctx, func() error { return h.carry(ctx, ready) })
}

// carry opens the journals and runs the case's loops: the investigation,
// the lease, what people wrote, the thread. live ends with the process or the lease; the
// investigation also ends when a person stops it, and then its end is still shown.
func (h *holder) carry(ctx context.Context, ready func() time.Time) error {
	log, err := h.d.o.OpenLog(ctx, h.sid, h.fence())
	if err != nil {
		return fmt.Errorf("open journals: %w", err)
	}
	h.log = log
	defer log.Close()
	resume, err := h.begin(ctx)
	if err != nil {
		return err
	}
	copied, err := h.restored(ctx)
	if err != nil {
		return err
	}
	v, err := h.viewer(ctx, resume)
	if err != nil {
		return err
	}
	if p, ok := v.(*thread.Projector); ok {
		h.shows = p
		defer func() { h.at, h.behind = h.d.known.Seen(h.sid, p.Place()), p.Behind() }()
	}
	h.d.rests.Forget(h.sid + away)
	confirmed := ready()
	l := *h.lease.Load()
	l.Forgotten = false // the store has everything of the case again
	h.lease.Store(&l)
	var wg sync.WaitGroup
	defer wg.Wait()
	live, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	run, stop := context.WithCancelCause(live)
	defer stop(nil)
	h.lost, h.stop = lost, stop
	wg.Go(func() { v.Run(live) }) // first: people see the case while the others are looked through
	wg.Go(func() { h.keep(live, confirmed) })
	wg.Go(func() { h.watch(live) })
	h.paired.Store(h.sweeps || h.named)
	if !h.paired.Load() {
		wg.Go(func() { h.named = h.neighbours(live); h.paired.Store(true) })
	}
	h.turn.Inside()
	if err := h.remember(live); err != nil {
		return err
	}
	// Whoever stops the case meanwhile ends it in any case.
	if err := h.vet(run, resume, copied); err != nil && !errors.Is(context.Cause(run), agent.ErrStopped) {
		return err
	}
	h.went = time.Now()
	return h.investigate(run, live, v, resume)
}

// begin writes the first entry of a new case, or the take-over of an old one.
func (h *holder) begin(ctx context.Context) (resume bool, err error) {
	entries, err := h.log.Since(0)
	if err != nil {
		return false, err
	}
	was := record.BegunOf(entries)
	h.sweeps = h.info.Opening.Kind != ""
	h.found, h.closes, h.recall = uint64(len(entries)), was.Reported, !h.sweeps && !was.Turned
	j := h.log.Journal("case")
	if was.Opened && (h.woken || was.Owner == h.d.o.Owner) {
		return true, nil // the same process tries again after an error: nothing was taken over
	}
	if was.Opened {
		_, _, err = j.Append(ctx, show.KindOfTakeover, show.Takeover{Owner: h.d.o.Owner, Why: "Another process continues this case."})
		return true, err
	}
	_, _, err = j.Append(ctx, "opened", h.opened())
	return false, err
}

// void makes sure that no old answer counts in a case whose files were copied
// here from somewhere else: the answers may count there too, so what is unfinished is asked again.
func (h *holder) void(ctx context.Context) (copied bool, err error) {
	o := h.d.o
	if err := h.lostHistory(ctx); err != nil || o.Native == nil {
		return false, err
	}
	native, err := o.Native(ctx, h.sid)
	if err != nil || native {
		return false, err
	}
	return true, inbox.Void(ctx, o.DB, h.sid, h.fence())
}

// lostHistory tells people that the store may have forgotten the last of the case, once
// none of its answers counts any more. A command whose stored value is lost is put back first: the card that
// people see of it must not count again, and it is named with the others.
func (h *holder) lostHistory(ctx context.Context) error {
	o := h.d.o
	if o.Lost == nil {
		return nil
	}
	why, err := o.Lost(ctx, h.sid)
	if err != nil || why == "" {
		return err
	}
	entries, err := h.log.Since(0)
	if err != nil {
		return err
	}
	if back, err := forgotten.Commands(ctx, o.DB, h.sid, h.fence(), entries); err != nil {
		return err
	} else if back {
		if why, err = o.Lost(ctx, h.sid); err != nil {
			return err
		}
	}
	if err := inbox.Void(ctx, o.DB, h.sid, h.fence()); err != nil {
		return err
	}
	if err := thread.Doubt(ctx, o.DB, h.sid, h.fence(), h.log); err != nil {
		return err
	}
	if _, _, err := h.log.Journal("case").Append(ctx, show.KindOfLost, show.Notice{Text: why}); err != nil {
		return err
	}
	return o.Adopt(ctx, h.sid)
}

func (h *holder) opened() agent.Opened {
	o := h.d.o
	pl := h.info.Opening.Place
	return agent.Opened{
		Symptom: h.info.Opening.Symptom, Requester: h.info.Opening.Requester, Transport: pl.Transport,
		Place: pl.Named(h.info.Opening.Source),
		Brain: o.Brain, Policy: o.Policy, MaxTurns: o.MaxTurns, MaxTokens: o.MaxTokens, MaxCost: o.MaxCost, Approvers: o.Access.In(pl.Channel),
		Delivery: h.info.Opening.Delivery, ResumedFrom: h.info.Opening.From, Kind: h.info.Opening.Kind, Focus: h.info.Opening.Focus,
	}
}

// viewer keeps what people see in step with the journal.
type viewer interface {
	Run(ctx context.Context)
	Seen() <-chan uint64 // receives the last entry that people can see
	Gone() bool          // the place is not there any more
}

func (h *holder) viewer(ctx context.Context, resume bool) (viewer, error) {
	o := h.d.o
	if f, ok := o.Front.(Follower); ok {
		return thread.Followed(func(ctx context.Context, shown func(uint64)) error { return f.Follow(ctx, h.sid, h.log, shown) }, func(err error) { h.lost(err) }), nil
	}
	t := thread.Options{
		DB: o.DB, Board: o.Front, Feed: h.log, Log: o.Log, SessionID: h.sid, Fence: h.fence, Place: h.info.Opening.Place, Body: o.Body, Plot: o.Plot,
		Rules: h.d.rules(h.info.Opening.Place.Channel), Conns: h.conns,
	}
	if resume && !h.woken {
		t.Again = time.Now().Add(o.Lease) // an edit of the old process may have landed last
	}
	return thread.New(ctx, t)
}

// investigate runs the agent, writes the report and closes the case once people
// can see it. live outlives a stop by a person, so that the end is still shown.
func (h *holder) investigate(ctx, live context.Context, v viewer, resume bool) error {
	if !h.closes {
		if err := h.conclude(ctx, live, resume); err != nil {
			return err
		}
	}
	h.end.Lock()
	err := h.people().Last(live)
	h.deaf = err == nil // what comes now stays in the inbox
	h.end.Unlock()
	if err != nil {
		return err
	}
	return h.close(live, v)
}

func (h *holder) conclude(ctx, live context.Context, resume bool) error {
	o := h.d.o
	asking := &proposal.Approvals{DB: o.DB, SessionID: h.sid, Fence: h.fence, Shell: h.log.Journal("shell"), Access: o.Access, People: o.Front, Channel: h.info.Opening.Place.Channel, Rests: h.rests()}
	inv, err := o.Build(Parts{
		SessionID: h.sid, Opened: h.opened(), Log: h.log, Resume: resume,
		Approver: asking, Shell: asking, People: h.people(),
		Feed: func(_ context.Context, after uint64) ([]agent.Entry, error) { return h.log.Since(after) },
		Save: h.save,
	})
	if err != nil {
		return err
	}
	if _, err := inv.Investigate(ctx); err != nil {
		return err
	}
	if err := live.Err(); err != nil {
		return err
	}
	if err := h.cancelOpen(live); err != nil {
		return err
	}
	rep, err := o.Report(live, h.sid)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, _, err = h.log.Journal("case").Append(live, show.KindOfReport, rep)
	return err
}

// cancelOpen cancels the proposals that the end of the case left without an
// answer: a click on such a card is told so.
func (h *holder) cancelOpen(ctx context.Context) error {
	return proposal.End(ctx, h.d.o.DB, h.sid, StateCancelled, "the case ended")
}

func (h *holder) people() *inbox.People {
	return &inbox.People{DB: h.d.o.DB, SessionID: h.sid, Fence: h.fence, Feed: h.log, Log: h.log.Journal("case"), Rests: h.rests()}
}

// save stores the session file under the case's fence.
func (h *holder) save(ctx context.Context, c agent.Case) error {
	data, err := h.d.o.Session(c)
	if err != nil {
		return err
	}
	return h.d.o.DB.Commit(ctx, store.Commit{Scope: h.sid, Fence: h.fence(),
		Writes: []store.Write{{Key: sessionFile(h.sid), Data: data}}})
}

// close waits until the thread shows everything, then marks the case closed.
func (h *holder) close(ctx context.Context, v viewer) error {
	entries, err := h.log.Since(0)
	if err != nil || len(entries) == 0 {
		return err
	}
	last := entries[len(entries)-1]
	t := time.NewTimer(h.d.endWait)
	defer t.Stop()
	for shown := uint64(0); shown < last.N; {
		select {
		case shown = <-v.Seen():
		case <-t.C:
			if v.Gone() {
				h.d.o.Log.Error("case is closed although nobody could be shown its end: the bot is not in its channel any more", "session_id", h.sid, "channel", h.info.Opening.Place.Channel)
				h.blind = true
				return h.closed(ctx, entries, last)
			}
			h.d.o.Log.Warn("the thread does not show the end of the case yet", "session_id", h.sid, "shown", shown, "entries", last.N)
			t.Reset(h.d.endWait)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return h.closed(ctx, entries, last)
}

func (h *holder) closed(ctx context.Context, entries []agent.Entry, last agent.Entry) error {
	h.info.Closed, h.info.ClosedAt = true, time.Now().UTC()
	h.info.Concluded(entries)
	entry := map[string]any{"session_id": h.sid, "head": last.Head, "n": last.N, "verdict": h.info.Verdict}
	if h.blind {
		entry["shown"] = false
	}
	if err := h.d.record(ctx, h.info, entry); err != nil {
		return err
	}
	h.unread(ctx)
	return nil
}

// unread tells whoever wrote between the report and the end that nobody read it.
func (h *holder) unread(ctx context.Context) {
	late, err := inbox.Late(ctx, h.d.o.DB, h.sid)
	if err != nil {
		h.d.o.Log.Warn("what came after the report is not known", "session_id", h.sid, "err", err)
	}
	for _, m := range late {
		h.post(ctx, m)
	}
}

// record registers that a case was closed and marks it so.
func (d *Desk) record(ctx context.Context, info CaseInfo, entry map[string]any) error {
	if d.o.Register != nil {
		if _, _, err := d.o.Register.Append(ctx, "closed", entry); err != nil {
			return fmt.Errorf("register: %w", err)
		}
	}
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	return d.o.DB.Commit(ctx, store.Commit{Scope: store.Deployment,
		Writes: append(record.Inactive(info), store.Write{Key: record.Key(info.SessionID), Data: data})})
}

// keep renews the lease, and ends everything this process does for the case when it is lost.
func (h *holder) keep(ctx context.Context, confirmed time.Time) {
	if err := proposal.Keep(ctx, h.d.o.DB, &h.lease, confirmed); err != nil {
		h.lost(fmt.Errorf("%w: %w", ErrLeaseLost, err))
	}
}

// watch looks for a stop, and for what people wrote: at every change that the store tells of, and, where it may miss
// one, as often as the lease is renewed. No renewal waits for it.
func (h *holder) watch(ctx context.Context) {
	for changed := h.d.o.DB.Watch(ctx, h.sid); ctx.Err() == nil; {
		again := h.d.o.Lease / 3
		if stop, heard := h.lookForStop(ctx), h.hear(ctx); stop && heard && store.Tells(h.d.o.DB) {
			again = proposal.PollTold
		}
		t := time.NewTimer(proposal.OnBeat(again))
		select {
		case <-ctx.Done():
		case <-changed:
		case <-t.C:
		}
		t.Stop()
	}
}

// hear journals what people wrote while the case waits or a command runs, so that
// they see that it was heard; the brain reads it at its next turn. What fails here
// is read again then.
func (h *holder) hear(ctx context.Context) (ok bool) {
	ok = true
	h.aside(func() {
		_, err := h.people().Drain(ctx)
		if ok = err == nil; !ok && ctx.Err() == nil {
			h.d.o.Log.Warn("inbox is not read", "session_id", h.sid, "err", err)
		}
	})
	return ok
}

// aside does what writes entries beside the investigation, unless the last ones are
// written: the end that people were shown is the end.
func (h *holder) aside(write func()) {
	h.end.Lock()
	defer h.end.Unlock()
	if !h.deaf {
		write()
	}
}

// lookForStop ends the investigation when a person stopped it; known is false when the
// store did not say: then the intent's guard decides.
func (h *holder) lookForStop(ctx context.Context) (known bool) {
	v, err := h.d.o.DB.Get(ctx, proposal.StopKey(h.sid))
	if err != nil {
		return errors.Is(err, store.ErrNotFound)
	}
	if s, ok := proposal.ReadStop(v.Data); ok {
		h.stop(&agent.StopError{By: s.By})
	}
	return true
}

// mine reports whether this process may still speak about the case: whoever lost the lease is silent, because another
// process says how it is. Where the store does not tell, nobody else can carry the case on.
func (h *holder) mine(ctx context.Context) bool {
	l := h.lease.Load()
	if l == nil {
		return true
	}
	rctx, done := context.WithTimeout(ctx, h.d.o.Lease/6)
	defer done()
	_, err := h.d.o.DB.Renew(rctx, *l)
	return !errors.Is(err, store.ErrFenced)
}

// tell says in the thread, once, that the case rests.
func (h *holder) tell(ctx context.Context, why error) {
	about := h.sid
	if errors.Is(why, store.ErrUnavailable) {
		about += away
	}
	if !errors.Is(why, store.ErrFenced) && h.mine(ctx) {
		h.d.rests.Once(about, func() bool {
			return h.post(ctx, standstill.Message(why, h.d.o.Redact(why.Error()), store.Tells(h.d.o.DB)))
		})
	}
}
