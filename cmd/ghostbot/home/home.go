// Package home opens where a deployment keeps what it must not forget: the state
// directory of one machine, or a Redis that all replicas share.
//
// With Redis every replica has a state directory of its own besides, for journals,
// reports and captures; the directory of one is never that of another.
package home

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/bot/proposal"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/cmd/ghostbot/ledger"
	"ghostbot/cmd/ghostbot/topology"
	"ghostbot/store"
	"ghostbot/store/file"
	"ghostbot/store/redis"
	"ghostbot/store/sealed"
)

// Options say where the state is.
type Options struct {
	Dir       string
	Redis     redis.Options // without URL: the directory alone
	Keys      []audit.Key
	Ring      *keyring.Ring
	Owner     string        // names this process in leases
	Lease     time.Duration // of the register with Redis
	Retention time.Duration // how long Redis keeps a closed case
	Log       *slog.Logger
}

// Alone refuses settings of a Redis without its URL, naming the first: a replica whose URL was forgotten would serve
// alone, beside those that share one, and get part of their clicks.
func Alone(o redis.Options) error {
	const why = "%s is set, but GHOST_REDIS_URL is not set"
	switch {
	case o.URL != "":
		return nil
	case o.PasswordFile != "":
		return fmt.Errorf(why, "GHOST_REDIS_PASSWORD_FILE")
	case o.CAFile != "":
		return fmt.Errorf(why, "GHOST_REDIS_CA_FILE")
	case o.Replicas != 0:
		return fmt.Errorf(why, "GHOST_REDIS_REPLICAS")
	}
	return nil
}

// State is an open store and what belongs to it.
type State struct {
	DB     store.DB // its values are sealed
	o      Options
	files  *file.DB
	shared *redis.DB
	lock   store.Lease
	looked atomic.Int64 // when the store was last asked whether it is still fit
	lost   sync.Map     // session id -> what its journals said when they were opened on a store that may have forgotten
	native sync.Map     // session ids of which [State.OpenLog] found that the store has forgotten nothing, for the next [State.Lost]
	forks  forks
}

// ErrServed means that another process serves the state directory.
var ErrServed = errors.New("another ghostbot serves this state directory")

// lockLease outlives every process: on one machine the kernel's lock, which ends with
// the process, is what counts.
const lockLease = 10 * 365 * 24 * time.Hour

// Open opens the state directory, and Redis if there is one.
func Open(ctx context.Context, o Options) (*State, error) {
	files, err := file.Open(o.Dir, file.Options{})
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	s := &State{o: o, files: files}
	raw, what := store.DB(files), "state directory"
	if o.Redis.URL != "" {
		what = "redis"
		shared := withKeys(o.Redis, o.Keys)
		shared.Refused = func(err error) { o.Log.Error("stored value ignored", "why", err) }
		if s.shared, err = redis.Open(ctx, shared); err != nil {
			s.Close()
			return nil, err
		}
		s.clock(ctx)
		if why := s.shared.Risk(); why != "" {
			o.Log.Warn("a failover of redis may lose what was acknowledged", "why", why)
		}
		raw = s.shared
	}
	values := o.Ring.Seal(raw)
	values.Refused = func(err error) { o.Log.Error("stored value ignored", "why", err) }
	s.DB = values
	if err := values.Check(ctx, store.Deployment); err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w; 'ghostbot audit sign' gives codes to what was stored before the key", what, err)
	}
	return s, nil
}

func withKeys(r redis.Options, keys []audit.Key) redis.Options {
	for _, k := range keys {
		r.Keys = append(r.Keys, redis.Key{ID: k.ID, Secret: k.Secret})
	}
	return r
}

// Reader is the store for verbs that only look; values are shown without their codes
// being checked.
func Reader(o Options) (store.DB, func(), error) {
	if o.Redis.URL != "" {
		db, err := redis.View(o.Redis)
		if err != nil {
			return nil, nil, err
		}
		return sealed.New(db, nil), func() { db.Close() }, nil
	}
	db, err := file.Open(o.Dir, file.Options{})
	if err != nil {
		return nil, nil, fmt.Errorf("state directory: %w", err)
	}
	return sealed.New(db, nil), func() { db.Close() }, nil
}

// Close gives everything back.
func (s *State) Close() {
	if s.shared != nil {
		s.shared.Close()
	}
	s.files.Close()
}

// Shared reports whether other replicas may carry cases too.
func (s *State) Shared() bool { return s.shared != nil }

// Deployment names the installation in what is made in the cloud.
func (s *State) Deployment() string {
	if s.shared != nil {
		return s.shared.Record().ID
	}
	return s.files.Installation()
}

// Native reports whether a case belongs here. With Redis it belongs to all replicas.
func (s *State) Native(ctx context.Context, sid string) (bool, error) {
	if s.shared != nil {
		return true, nil
	}
	native, _, err := s.files.Native(ctx, sid)
	return native, err
}

// Here names where a copied case came from and where it is.
func (s *State) Here(ctx context.Context, sid string) (string, error) {
	_, from, err := s.files.Native(ctx, sid)
	here, herr := s.files.Here(ctx, sid)
	return fmt.Sprintf("from %+v to %+v", from, here), errors.Join(err, herr)
}

// Adopt makes a case belong here.
func (s *State) Adopt(ctx context.Context, sid string) error {
	if s.shared != nil {
		return s.shared.Adopt(ctx, sid)
	}
	return s.files.Adopt(ctx, sid)
}

// Lost says in words that the store may have forgotten the last of a case: it is
// another one since the case was looked through. "" says that it has not.
func (s *State) Lost(ctx context.Context, sid string) (string, error) {
	if s.shared == nil {
		return "", nil
	}
	if _, looked := s.native.LoadAndDelete(sid); looked {
		return "", nil // an epoch that began since refuses the lease under which it was looked
	}
	native, from, to, err := s.shared.Native(ctx, sid)
	if err != nil || native {
		return "", err
	}
	asked, err := s.unfinished(ctx, sid)
	if err != nil {
		return "", err
	}
	what, _ := s.lost.Load(sid)
	found, _ := what.(string)
	if from == redis.Gone {
		return fmt.Sprintf("The store has lost what it had of this case: somebody deleted keys there (FLUSHALL, DEL), or it came up empty. %s"+
			"What people pressed or wrote and no entry has is gone. Answers from before do not count, although they may have been used; what is still open is asked again%s.", found, asked), nil
	}
	return fmt.Sprintf("The store was restarted or replaced (%.8s, before %.8s) and may have forgotten the last second. %s"+
		"Answers from before do not count, although they may have been used; what is still open is asked again%s.", to, from, found, asked), nil
}

// unfinished lists the commands whose answers do not count any more.
func (s *State) unfinished(ctx context.Context, sid string) (string, error) {
	var list []string
	err := proposal.Each(ctx, s.DB, sid, func(p proposal.Stored) error {
		if p.State == bot.StatePending || p.State == bot.StateApproved {
			list = append(list, fmt.Sprintf("%s (%s)", audit.Clip(p.Proposal.Display), p.State))
		}
		return nil
	})
	if len(list) == 0 {
		return "", err
	}
	return ": " + abridged(list, "; "), err
}

// clock says in the log that this machine's clock or the store's is wrong. Nothing is decided by this
// machine's, so that cases go on.
func (s *State) clock(ctx context.Context) {
	if ahead, err := s.shared.Skew(ctx); err == nil {
		if why := redis.Apart(ahead); why != "" {
			s.o.Log.Error("a clock is wrong", "why", why)
		}
	}
}

// Now is the clock of what the store compares with its own: expiries and deadlines are made with it.
func (s *State) Now() time.Time {
	if s.shared != nil {
		return s.shared.Clock()
	}
	return time.Now()
}

// still says in the log, when a case is opened and once a minute at most, that somebody has set the
// store since in a way that [Open] would have refused. Cases go on: what it may forget is said when it does.
func (s *State) still(ctx context.Context) {
	last, now := s.looked.Load(), time.Now().UnixNano()
	if time.Duration(now-last) < time.Minute || !s.looked.CompareAndSwap(last, now) {
		return
	}
	if err := s.shared.Fit(ctx); err != nil && !errors.Is(err, store.ErrUnavailable) {
		s.o.Log.Error("redis is not as it was at the start, and would be refused now", "why", err)
	}
	s.clock(ctx)
}

// compare says what a store that may have forgotten the last of a case had of it, against the
// files here. A fence that is not larger than those of the entries is given up: the next
// one is.
func (s *State) compare(ctx context.Context, log *audit.Log, sid string, fence uint64) error {
	s.native.Delete(sid)
	native, _, _, err := s.shared.Native(ctx, sid)
	if err != nil || native {
		s.lost.Delete(sid)
		if native && err == nil {
			s.native.Store(sid, true)
		}
		return err
	}
	entries, err := log.Entries()
	if err != nil || log.Met() == 0 {
		return err
	}
	entries = entries[:log.Met()]
	for _, e := range entries {
		if e.Fence >= fence {
			s.shared.Above(e.Fence)
			return fmt.Errorf("%w: entry %s has fence %d, and the store gave %d", store.ErrUnavailable, e.ID(), e.Fence, fence)
		}
	}
	had := len(entries)
	from, to := log.Offered()
	if from > 0 {
		had = int(from) - 1
	}
	text := "It had nothing of this case. "
	if had > 0 {
		last := entries[had-1]
		text = fmt.Sprintf("Its history of this case ended with entry %d (%s, %s). ", last.N, last.Kind, last.Time.UTC().Format("15:04:05 UTC"))
	}
	if from > 0 {
		var kinds []string
		for _, e := range entries[from-1 : to] {
			kinds = append(kinds, fmt.Sprintf("%d %s", e.N, e.Kind))
		}
		text += fmt.Sprintf("Entries %d to %d were gone there; they were put back from this machine's files: %s. ", from, to, abridged(kinds, ", "))
	}
	s.lost.Store(sid, text+"If another machine has later ones, an entry names them when it carries the case again. ")
	return nil
}

// abridged is a list whose middle is left out when it is long.
func abridged(list []string, by string) string {
	return strings.Join(audit.Abridged(list, func(n int) string { return fmt.Sprintf("(%d more)", n) }), by)
}

// Lock keeps a second process from serving the same state directory.
func (s *State) Lock(ctx context.Context) error {
	var err error
	s.lock, err = s.files.Acquire(ctx, store.Deployment, "serve", lockLease)
	if errors.Is(err, store.ErrHeld) {
		return ErrServed
	}
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	return nil
}

// Unlock is the end of [State.Lock].
func (s *State) Unlock(ctx context.Context) {
	if err := s.files.Release(context.WithoutCancel(ctx), s.lock); err != nil {
		s.o.Log.Warn("register lease is not released", "err", err)
	}
}

// Register opens the deployment's journal. [State.Lock] comes before. stop ends it.
func (s *State) Register(ctx context.Context) (j bot.Journal, stop func(), err error) {
	if s.shared != nil {
		return &register{s: s}, func() {}, nil
	}
	log, err := s.OpenLog(ctx, audit.Register, s.lock.Fence)
	if err != nil {
		return nil, nil, fmt.Errorf("register: %w", err)
	}
	return ledger.Journal{Of: log.Journal(audit.Register)}, func() { log.Close() }, nil
}

// OpenLog opens the journals of a case. With Redis, files here that another history of the
// case was written over follow it; what they held besides is kept, and an entry says so.
func (s *State) OpenLog(ctx context.Context, sid string, fence uint64) (*audit.Log, error) {
	scope := sid
	if sid == audit.Register {
		scope = store.Deployment
	}
	o := audit.Options{SID: sid, Fence: fence, Stream: ledger.Stream{DB: s.DB, Scope: scope, Fence: fence}}
	log, err := s.o.Ring.Open(ctx, o)
	if s.shared == nil {
		return log, err
	}
	if errors.Is(err, audit.ErrDiverged) {
		moved, ferr := audit.Fork(ctx, s.o.Ring.Options(o))
		s.forks.forget()
		if ferr != nil || !moved {
			return nil, errors.Join(err, ferr)
		}
		s.o.Log.Warn("journals here held entries that the store has lost", "session_id", sid)
		log, err = s.o.Ring.Open(ctx, o)
	}
	if err == nil {
		var names []string
		if names, err = s.forks.names(s.o.Ring.Dir()); err == nil {
			err = log.Recover(ctx, names)
		}
	}
	if err == nil && sid != audit.Register {
		s.still(ctx)
		err = s.compare(ctx, log, sid, fence)
	}
	if err != nil && log != nil {
		log.Close()
		return nil, err
	}
	return log, err
}

// Topology is the secret from which cases' names for addresses are made. All replicas
// have the same: it follows from the key of the deployment's journals.
func (s *State) Topology() ([]byte, error) {
	if s.shared == nil {
		return topology.Secret(s.o.Dir)
	}
	for _, k := range s.o.Keys {
		if k.ID == s.shared.Record().Kid {
			h := hmac.New(sha256.New, k.Secret)
			fmt.Fprintf(h, "ghostbot topology 1\n%s", s.shared.Record().ID)
			return h.Sum(nil), nil
		}
	}
	return nil, errors.New("the deployment's key is not here")
}
