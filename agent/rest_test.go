package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ghostbot/safeexec"

	"github.com/google/go-cmp/cmp"
)

// slow makes everybody around the agent take d before they do what they do, and
// calls look each time, while the agent waits.
func (w *world) slow(d time.Duration, look func()) {
	people, output, answer := w.people, w.output, w.answer
	wait := func() {
		time.Sleep(d)
		synctest.Wait()
		look()
	}
	w.people = func(cmd string) safeexec.Decided { wait(); return people(cmd) }
	w.output = func(cmd string) safeexec.Result { wait(); return output(cmd) }
	w.answer = func(q Question) (Answer, bool) { wait(); return answer(q) }
}

// TestLongWaits: a case in which everybody takes hours is the same case, entry by
// entry, and while it waits the agent holds nothing of it.
func TestLongWaits(t *testing.T) {
	quick := incident(t)
	want, fold := quick.investigate()
	for _, tc := range []struct {
		d    time.Duration
		held bool
	}{{restAfter / 8, true}, {restAfter + 1, false}, {48 * time.Hour, false}} {
		synctest.Test(t, func(t *testing.T) {
			w := incident(t)
			a := w.agent()
			waits := 0
			w.slow(tc.d, func() {
				waits++
				a.mu.Lock()
				defer a.mu.Unlock()
				if held := a.s != nil; held != tc.held {
					t.Errorf("after %s the agent holds the case: %v", tc.d, held)
				}
			})
			got, err := a.Investigate(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("conclusion after waits of %s (-quick +slow):\n%s", tc.d, diff)
			}
			if diff := cmp.Diff(quick.kinds(), w.kinds()); diff != "" || waits < 5 {
				t.Errorf("%d waits of %s (-quick +slow):\n%s", waits, tc.d, diff)
			}
			if diff := cmp.Diff(fold.Case(), a.s.Case()); diff != "" {
				t.Errorf("folded case after waits of %s (-quick +slow):\n%s", tc.d, diff)
			}
		})
	}
}

// TestStopAfterALongWait: a case that is stopped while it waits knows again what
// it had found.
func TestStopAfterALongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := incident(t)
		w.people = func(string) safeexec.Decided { return safeexec.Decided{} } // nobody: wait for the end
		ctx, stop := context.WithCancelCause(context.Background())
		time.AfterFunc(24*time.Hour, func() { stop(&StopError{By: "U1"}) })
		got, err := w.agent().Investigate(ctx)
		if err != nil || got.EndedBy != "stopped" || got.By != "U1" {
			t.Fatalf("ended by %q of %q, %v", got.EndedBy, got.By, err)
		}
		if diff := cmp.Diff(FoldAll(testSID, w.entries[:len(w.entries)-1]).SoFar().Unverifiable, got.Unverifiable); diff != "" || len(got.Unverifiable) == 0 {
			t.Errorf("hypotheses left open (-want +got):\n%s", diff)
		}
	})
}

// TestUnreadableAfterALongWait: a case whose journals cannot be read any more
// stops there, and writes nothing.
func TestUnreadableAfterALongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := incident(t)
		broken := errors.New("journal does not verify")
		var fail error
		w.slow(time.Hour, func() { fail = broken })
		a := w.agent()
		feed := a.o.Feed
		a.o.Feed = func(ctx context.Context, after uint64) ([]Entry, error) {
			if fail != nil {
				return nil, fail
			}
			return feed(ctx, after)
		}
		_, err := a.Investigate(context.Background())
		if !errors.Is(err, broken) {
			t.Fatalf("investigate: %v", err)
		}
		last := w.entries[len(w.entries)-1]
		if last.Journal != "shell" || last.Kind != "outcome" {
			t.Errorf("the last entry is %s/%s, want what the gate wrote", last.Journal, last.Kind)
		}
	})
}
