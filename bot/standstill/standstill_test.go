package standstill

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ghostbot/store"
)

// What is said of who carries the case on is true of one machine and of many.
func TestMessage(t *testing.T) {
	full := fmt.Errorf("append: %w", store.ErrBroken)
	for _, c := range []struct {
		err  error
		many bool
		want string
	}{
		{errors.New("no answer"), false, "continues by itself"},
		{full, false, "started again"},
		{full, true, "Another replica takes it over"},
	} {
		m := Message(c.err, "why it is", c.many)
		if !strings.Contains(m.Text, c.want) || !strings.Contains(m.Text, "why it is") || m.Log.Body != m.Text {
			t.Errorf("%v, many %v: %q, want %q", c.err, c.many, m.Text, c.want)
		}
	}
}

// A case rests longer each time, but not for ever; what is no trouble of its own does not count.
func TestPause(t *testing.T) {
	const lease = 30 * time.Second
	for _, c := range []struct {
		err    error
		fails  int
		want   time.Duration
		failed bool
	}{
		{errors.New("no answer"), 0, lease, true},
		{errors.New("no answer"), 1, 2 * lease, true},
		{errors.New("no answer"), 100, Longest(lease), true},
		{fmt.Errorf("append: %w", store.ErrBroken), 1, forever, false},
		{fmt.Errorf("take: %w", &store.HeldError{Left: time.Second}), 1, 1020 * time.Millisecond, false},
		{fmt.Errorf("dial: %w", store.ErrUnavailable), 9, lease / 4, false},
		{fmt.Errorf("%w: silence", ErrLeaseLost), 9, lease / 4, false},
	} {
		if wait, failed := Pause(c.err, lease, c.fails); wait != c.want || failed != c.failed {
			t.Errorf("%v after %d: %s, %v", c.err, c.fails, wait, failed)
		}
	}
}
