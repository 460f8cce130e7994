package tcp

import (
	"testing"
	"unsafe"
)

// TestLines: what is loaded together stands together, in lines of a cache.
func TestLines(t *testing.T) {
	const line = 64
	var d Detail
	var s Side
	if got := 40 + unsafe.Sizeof(Stream{}) + 8; got != recordLines*line {
		t.Errorf("a record takes %d bytes", got)
	}
	for _, tt := range []struct {
		what string
		at   uintptr
	}{
		{"Detail", unsafe.Sizeof(d)}, {"Detail.room", unsafe.Offsetof(d.room)}, {"Detail.RTT", unsafe.Offsetof(d.RTT)}, {"Detail.Turns", unsafe.Offsetof(d.Turns)},
		{"Detail.Side", unsafe.Offsetof(d.Side)}, {"Side", unsafe.Sizeof(s)}, {"Side.Swing", unsafe.Offsetof(s.Swing)}, {"Side.quiet", unsafe.Offsetof(s.quiet)},
		{"Side.ring", unsafe.Offsetof(s.ring)}, {"Input", unsafe.Sizeof(Input{})}, {"record of a stream", 40 + unsafe.Sizeof(Stream{}) + 8},
	} {
		if tt.at%line != 0 {
			t.Errorf("%s ends or begins at %d", tt.what, tt.at)
		}
	}
}
