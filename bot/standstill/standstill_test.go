package standstill

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
