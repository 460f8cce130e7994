package compare

import (
	"testing"

	"ghostbot/forensics/trace"
)

// FuzzConservation sends what the bytes say and compares with what happened: no packet is counted
// twice, none is forgotten, and losses are those that happened.
func FuzzConservation(f *testing.F) {
	f.Add([]byte("a clean path"), false)
	f.Add([]byte{0, 1, 2, 3, 250, 251, 252, 253, 254, 255, 9, 9, 9}, true)
	f.Add([]byte{255, 255, 255, 255, 0, 0}, false)
	f.Fuzz(func(t *testing.T, plan []byte, ids bool) {
		w := &wire{}
		lost := [2]int{}
		for i, b := range plan[:min(len(plan), 500)] {
			up := b&1 == 0
			p := segment(up, 40000+uint16(b>>6), uint32(b&0x3e)*100, 7, trace.ACK, 100)
			if !ids {
				p.ID = uint32(i)<<8 | 1 // one of its own, whatever looks alike
			}
			w.late = int64(b&0x0c) * 5e5
			drop := b&0x38 == 0x38
			w.change = func(*trace.Packet, bool) bool { return !drop }
			if drop {
				lost[b2i(!up)]++
			}
			w.send(p)
		}
		r := w.result()
		conserved(t, r)
		if r.A.Matched > 20 && len(r.Notes) == 0 && !ids && (r.AToB.Lost != lost[0] || r.BToA.Lost != lost[1]) {
			t.Fatalf("lost %d and %d, want %d and %d\n%s", r.AToB.Lost, r.BToA.Lost, lost[0], lost[1], show(r))
		}
	})
}

// conserved checks that every packet of both captures is accounted for exactly once.
func conserved(t *testing.T, r *Result) {
	t.Helper()
	for _, x := range []struct {
		c         Capture
		out, back Direction
		extra     int
	}{{r.A, r.AToB, r.BToA, 0}, {r.B, r.BToA, r.AToB, 0}} {
		sum := x.c.Matched + x.c.NotRouted + x.c.Elsewhere + x.c.Copies + x.c.OutsideTime +
			x.out.Lost + x.back.Injected + x.back.MissedAtSource + x.back.Bypassing + x.back.Duplicated
		if sum != x.c.Packets || x.out.Sent != x.out.Delivered+x.out.Lost {
			t.Fatalf("%d of %d packets are accounted for\n%s", sum, x.c.Packets, show(r))
		}
	}
}

func TestConservationInTheLab(t *testing.T) {
	for _, tt := range lab {
		a, b := loadPair(t, tt.name)
		conserved(t, Endpoints(a, b))
		conserved(t, Endpoints(a, b[:len(b)/2]))
		conserved(t, Endpoints(a[len(a)/2:], b))
	}
}
