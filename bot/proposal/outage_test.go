package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/access"
	"ghostbot/safeexec"
	"ghostbot/store"
	"ghostbot/store/file"
)

// outage is a store that cannot be asked until its end.
type outage struct {
	store.DB
	end atomic.Int64 // Unix time
}

func (o *outage) down() error {
	if time.Now().Unix() < o.end.Load() {
		return fmt.Errorf("dial: %w", store.ErrUnavailable)
	}
	return nil
}

func (o *outage) Now(ctx context.Context) (time.Time, error) {
	if err := o.down(); err != nil {
		return time.Time{}, err
	}
	return time.Now(), nil
}

func (o *outage) Get(ctx context.Context, k store.Key) (store.Value, error) {
	if err := o.down(); err != nil {
		return store.Value{}, err
	}
	return o.DB.Get(ctx, k)
}

// bubble runs test in fake time, with a store of files.
func bubble(t *testing.T, test func(t *testing.T, files store.DB)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		files, err := file.Open(dir, file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		test(t, files)
	})
}

// stores makes a proposal that people can answer, as [Approvals.Append] does.
func (a *Approvals) stores(t *testing.T, p safeexec.Proposal) {
	t.Helper()
	data, err := a.new(context.Background(), p)
	if err == nil {
		_, err = a.DB.Put(context.Background(), Key(a.SessionID, p.ID), data, store.Absent)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestOutageIsNoAnswer: a store that cannot be asked decides nothing, neither before a
// proposal waits nor while it does; a lease that ends meanwhile leaves it open.
func TestOutageIsNoAnswer(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to time.Duration // of the outage
		lease    time.Duration
		want     safeexec.Action
		err      error
	}{
		{"before it waits", 0, time.Minute, time.Hour, safeexec.Approve, nil},
		{"while it waits", 10 * time.Second, 5 * time.Minute, time.Hour, safeexec.Approve, nil},
		{"longer than the lease", 0, 5 * time.Minute, 8 * time.Second, 0, context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, files store.DB) {
				db := &outage{DB: files}
				a := &Approvals{DB: db, SessionID: "ghost_20260314_104512", Access: access.Rules{Approvers: []string{"U1"}}, Fence: func() uint64 { return 0 }}
				p := safeexec.Proposal{ID: "0123456789abcdef0123456789abcdef", AuditID: "ghost_20260314_104512_001", Class: safeexec.Risky, Expires: time.Now().Add(time.Hour)}
				a.stores(t, p)
				ctx, cancel := context.WithTimeout(t.Context(), c.lease)
				defer cancel()
				down := func() { db.end.Store(time.Now().Add(c.to - c.from).Unix()) }
				if c.from == 0 {
					down()
				} else {
					time.AfterFunc(c.from, down)
				}
				time.AfterFunc(c.to+time.Minute, func() {
					s, err := Load(context.Background(), db, a.SessionID, p.ID)
					if err != nil {
						t.Error(err)
						return
					}
					s.State, s.By, s.UseBy = StateApproved, "U1", time.Now().Add(UseBy)
					if err := s.Put(context.Background(), db, a.SessionID, nil, nil); err != nil {
						t.Error(err)
					}
				})
				d, err := a.Ask(ctx, p)
				if d.Action != c.want || !errors.Is(err, c.err) {
					t.Errorf("%+v, %v", d, err)
				}
			})
		})
	}
}

// TestLostIsAskedAnew: of a proposal that the store does not have any more an answer may be lost as well. It is nobody's
// denial, and no click on its card counts: the gate asks on another one.
func TestLostIsAskedAnew(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration // it is deleted, by somebody or by a failover
		grant string        // of a question that would let it run
	}{
		{"before it waits", 0, ""},
		{"while it waits", time.Minute, ""},
		{"with a grant", 0, "sweep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, db store.DB) {
				a := &Approvals{DB: db, SessionID: sid, Access: access.Rules{Approvers: []string{"U1"}}, People: staff{}, Shell: &lines{}, Fence: func() uint64 { return 0 }}
				p := safeexec.Proposal{ID: "0123456789abcdef0123456789abcdef", AuditID: sid + "_001", Argv: []string{"true"}, Class: safeexec.Risky, Grant: c.grant, Expires: time.Now().Add(time.Hour)}
				q, err := json.Marshal(map[string]any{"question": agent.Question{Grants: "clean", Commands: [][]string{p.Argv}}, "answer": agent.Answer{Key: "clean", By: "U1", At: time.Now()}})
				if err == nil {
					_, err = db.Put(t.Context(), QuestionKey(sid, "sweep"), q, store.Absent)
				}
				if err != nil {
					t.Fatal(err)
				}
				if c.after > 0 {
					a.stores(t, p)
					time.AfterFunc(c.after, func() {
						if err := db.Commit(context.Background(), store.Commit{Scope: sid, Writes: []store.Write{{Key: Key(sid, p.ID)}}}); err != nil {
							t.Error(err)
						}
					})
				}
				d, err := a.Ask(t.Context(), p)
				if err != nil || d.Action != safeexec.Deny || d.Reason != "superseded" || d.By != "" {
					t.Errorf("%+v, %v", d, err)
				}
				if s, err := Load(t.Context(), db, sid, p.ID); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("stored as %s, %v: a click on its card may count", s.State, err)
				}
			})
		})
	}
}

// apart is a store whose clock is off this machine's by so much; it counts the looks.
type apart struct {
	store.DB
	off   time.Duration
	looks atomic.Int64
}

func (a *apart) Now(context.Context) (time.Time, error) { return time.Now().Add(a.off), nil }

func (a *apart) Get(ctx context.Context, k store.Key) (store.Value, error) {
	a.looks.Add(1)
	return a.DB.Get(ctx, k)
}

// TestWaitsByTheClockOfTheStore: whatever this machine's clock says, a proposal waits as long as it is
// said to, and is looked at as often.
func TestWaitsByTheClockOfTheStore(t *testing.T) {
	for _, off := range []time.Duration{0, -10 * time.Minute, 10 * time.Minute} {
		for _, patience := range []time.Duration{0, 2 * time.Minute} {
			t.Run(fmt.Sprint(off, " ", patience), func(t *testing.T) {
				bubble(t, func(t *testing.T, files store.DB) {
					db := &apart{DB: files, off: off}
					a := &Approvals{DB: db, SessionID: "ghost_20260314_104512", Access: access.Rules{Approvers: []string{"U1"}}, Fence: func() uint64 { return 0 }}
					began := time.Now()
					p := safeexec.Proposal{ID: "0123456789abcdef0123456789abcdef", AuditID: "ghost_20260314_104512_001", Class: safeexec.Risky, Expires: began.Add(off + 5*time.Minute), Patience: patience}
					a.stores(t, p)
					want, reason := 5*time.Minute, "expired"
					if patience > 0 {
						want, reason = patience, "withdrawn"
					}
					d, err := a.Ask(t.Context(), p)
					if took := time.Since(began); err != nil || d.Reason != reason || took < want || took > want+time.Second {
						t.Errorf("%+v, %v after %s, want %s after %s", d, err, took, reason, want)
					}
					if n, most := db.looks.Load(), int64(want/PollEvery)+5; n > most {
						t.Errorf("%d looks, want %d at most", n, most)
					}
				})
			})
		}
	}
}
