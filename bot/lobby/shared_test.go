package lobby

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ghostbot/bot"
)

// Many who ask at one moment cost two readings, and each gets what was read after they
// asked; what one does with it is not seen by another.
func TestSharedReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared()
		var readings, version atomic.Int64
		list := func(context.Context) ([]bot.CaseInfo, error) {
			readings.Add(1)
			v := version.Load()
			time.Sleep(time.Second)
			return []bot.CaseInfo{{CreatedAt: time.Unix(v, 0)}}, nil
		}
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 5 * time.Millisecond) // all during the first reading
				asked := version.Add(1)
				got, err := s.read(t.Context(), list)
				if err != nil || len(got) != 1 || got[0].CreatedAt.Unix() < asked {
					t.Errorf("asked at %d: %v, %v", asked, got, err)
				}
				got[0] = bot.CaseInfo{SessionID: "mine"}
				if got, _ := s.read(t.Context(), list); got[0].SessionID != "" {
					t.Error("somebody sees what another did with the list")
				}
			})
		}
		wg.Wait()
		if n := readings.Load(); n > 4 {
			t.Errorf("%d readings for 200 questions", n)
		}
	})
}

// Whoever gave up takes the reading away from nobody, and an error is everybody's but not
// the next one's.
func TestSharedReadingFails(t *testing.T) {
	s := newShared()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.read(gone, func(ctx context.Context) ([]bot.CaseInfo, error) { return nil, ctx.Err() }); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	broken := errors.New("broken")
	if _, err := s.read(t.Context(), func(context.Context) ([]bot.CaseInfo, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if _, err := s.read(t.Context(), func(context.Context) ([]bot.CaseInfo, error) { return nil, nil }); err != nil {
		t.Errorf("%v", err)
	}
}

// Who leads a reading waits no longer than their own time lasts, and leaves it to those
// who have more.
func TestSharedReadingOfTheImpatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared()
		slow := func(ctx context.Context) ([]bot.CaseInfo, error) {
			select {
			case <-time.After(4 * time.Second):
				return []bot.CaseInfo{{SessionID: "x"}}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = s.read(t.Context(), slow) })
		synctest.Wait()
		wg.Go(func() {
			ctx, done := context.WithTimeout(t.Context(), 2*time.Second)
			defer done()
			began := time.Now()
			if _, err := s.read(ctx, slow); err == nil || time.Since(began) > 2*time.Second {
				t.Errorf("who has two seconds got %v after %v", err, time.Since(began))
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if got, err := s.read(t.Context(), slow); err != nil || len(got) != 1 {
				t.Errorf("who has time got %v, %v", got, err)
			}
		})
		wg.Wait()
	})
}
