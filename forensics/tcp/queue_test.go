package tcp

import "testing"

// A segment is known while it waits, in order or behind a later one, and forgotten
// with its ACK.
func TestSeen(t *testing.T) {
	tr := New(Options{})
	var h Half
	for i, end := range []uint32{100, 300, 200} { // 200 comes behind 300
		tr.push(&h.unacked, end, int64(i))
	}
	for end, want := range map[uint32]bool{100: true, 200: true, 300: true, 250: false} {
		if got := tr.seen(&h.unacked, end); got != want {
			t.Errorf("seen(%d) = %v", end, got)
		}
	}
	if rtt := tr.acknowledge(&h, 200, 10); rtt != 8 {
		t.Errorf("acknowledge = %d, want the time since the segment that ends there", rtt)
	}
	for end, want := range map[uint32]bool{100: false, 200: false, 300: true} {
		if got := tr.seen(&h.unacked, end); got != want {
			t.Errorf("after the ACK seen(%d) = %v", end, got)
		}
	}
}
