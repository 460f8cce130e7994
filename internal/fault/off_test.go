//go:build !faultinject

package fault

import (
	"errors"
	"testing"
)

// TestOff: an ordinary build only calls through, whatever the environment says.
func TestOff(t *testing.T) {
	t.Setenv("GHOST_FAULT", "kill@1")
	if Enabled {
		t.Fatal("enabled")
	}
	want := errors.New("from f")
	got := ""
	n, err := Write("a", []byte("abc"), func(p []byte) (int, error) {
		got = string(p)
		return 2, want
	})
	if n != 2 || err != want || got != "abc" {
		t.Errorf("write: %d, %v, %q", n, err, got)
	}
	if err := Do(Sync, "a", "", func() error { return want }); err != want {
		t.Errorf("do: %v", err)
	}
}
