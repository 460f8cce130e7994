package proposal

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// TestOutageIsNoAnswer: a store that cannot be asked decides nothing, neither while a
// proposal is stored nor while it waits; a lease that ends meanwhile leaves it open.
func TestOutageIsNoAnswer(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to time.Duration // of the outage
		lease    time.Duration
		want     safeexec.Action
		err      error
	}{
		{"while it is stored", 0, time.Minute, time.Hour, safeexec.Approve, nil},
		{"while it waits", 10 * time.Second, 5 * time.Minute, time.Hour, safeexec.Approve, nil},
		{"longer than the lease", 0, 5 * time.Minute, 8 * time.Second, 0, context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				files, err := file.Open(dir, file.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer files.Close()
				db := &outage{DB: files}
				a := &Approvals{DB: db, SessionID: "ghost_20260314_104512", Access: access.Rules{Approvers: []string{"U1"}}, Fence: func() uint64 { return 0 }}
				p := safeexec.Proposal{ID: "0123456789abcdef0123456789abcdef", AuditID: "ghost_20260314_104512_001", Class: safeexec.Risky, Expires: time.Now().Add(time.Hour)}
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

// TestDeletedIsNoDenial: a proposal that somebody deletes while it waits can be answered again.
func TestDeletedIsNoDenial(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db, err := file.Open(dir, file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		a := &Approvals{DB: db, SessionID: "ghost_20260314_104512", Access: access.Rules{Approvers: []string{"U1"}}, Fence: func() uint64 { return 0 }}
		p := safeexec.Proposal{ID: "0123456789abcdef0123456789abcdef", AuditID: "ghost_20260314_104512_001", Class: safeexec.Risky, Expires: time.Now().Add(time.Hour)}
		time.AfterFunc(time.Minute, func() {
			if err := db.Commit(context.Background(), store.Commit{Scope: a.SessionID, Writes: []store.Write{{Key: Key(a.SessionID, p.ID)}}}); err != nil {
				t.Error(err)
			}
		})
		time.AfterFunc(2*time.Minute, func() {
			s, err := Load(context.Background(), db, a.SessionID, p.ID)
			if err != nil || s.State != StatePending {
				t.Errorf("%+v, %v", s, err)
				return
			}
			s.State, s.By, s.UseBy = StateApproved, "U1", time.Now().Add(UseBy)
			if err := s.Put(context.Background(), db, a.SessionID, nil, nil); err != nil {
				t.Error(err)
			}
		})
		if d, err := a.Ask(t.Context(), p); err != nil || d.Action != safeexec.Approve || d.By != "U1" {
			t.Errorf("%+v, %v", d, err)
		}
	})
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
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					files, err := file.Open(dir, file.Options{})
					if err != nil {
						t.Fatal(err)
					}
					defer files.Close()
					db := &apart{DB: files, off: off}
					a := &Approvals{DB: db, SessionID: "ghost_20260314_104512", Access: access.Rules{Approvers: []string{"U1"}}, Fence: func() uint64 { return 0 }}
					began := time.Now()
					p := safeexec.Proposal{ID: "0123456789abcdef0123456789abcdef", AuditID: "ghost_20260314_104512_001", Class: safeexec.Risky, Expires: began.Add(off + 5*time.Minute), Patience: patience}
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
