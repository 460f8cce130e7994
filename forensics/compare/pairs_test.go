package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ghostbot/forensics/trace"

	"github.com/google/go-cmp/cmp"
)

// outcome is what a pair of captures is known to show.
type outcome struct {
	status, code, segment          string
	lostAB, lostBA                 int
	injectedAB, injectedBA         int
	reorderedAB, reorderedBA       int
	deliveredAB, deliveredBA       int
	bypassing, missedAtSource, nat int
}

func outcomeOf(r *Result) outcome {
	return outcome{r.Verdict.Status, r.Verdict.Code, r.Verdict.Segment, r.AToB.Lost, r.BToA.Lost, r.AToB.Injected, r.BToA.Injected,
		r.AToB.Reordered, r.BToA.Reordered, r.AToB.Delivered, r.BToA.Delivered,
		r.AToB.Bypassing + r.BToA.Bypassing, r.AToB.MissedAtSource + r.BToA.MissedAtSource, len(r.NAT)}
}

const (
	towardsB = "between A and B, towards B"
	towardsA = "between A and B, towards A"
	bothWays = "between A and B, both ways"
)

// lab are the pairs of the regression data. Counts of losses were taken from lists of tshark's
// fields of both files (addresses, IP ID, sequence numbers, time stamps), by set difference.
var lab = []struct {
	name string
	want outcome
}{
	{"frag_dropped_a", outcome{status: "PARTIAL DROP", code: "fragments-dropped", segment: bothWays, lostAB: 6, lostBA: 3, deliveredAB: 9, deliveredBA: 6}},
	{"idle_timeout_firewall_a", outcome{status: "PARTIAL DROP", code: "idle-timeout", segment: towardsB, lostAB: 6, deliveredAB: 4, deliveredBA: 3}},
	{"nat_pair_a", outcome{status: "CLEAN PATH", code: "healthy", segment: "none", deliveredAB: 48, deliveredBA: 40, nat: 1}},
	{"pair_healthy_a", outcome{status: "CLEAN PATH", code: "healthy", segment: "none", deliveredAB: 281, deliveredBA: 233}},
	{"pair_loss_b", outcome{status: "PARTIAL DROP", code: "packet-loss", segment: bothWays, lostAB: 5, lostBA: 6, deliveredAB: 315, deliveredBA: 247}},
	{"pair_server_delay_b", outcome{status: "SLOW HOST", code: "slow-server", segment: "behind B", deliveredAB: 21, deliveredBA: 15}},
	{"pmtud_blackhole_b", outcome{status: "PARTIAL DROP", code: "pmtud-blackhole", segment: towardsB, lostAB: 18, deliveredAB: 11, deliveredBA: 8}},
	{"reorder_b", outcome{status: "DEGRADED (REORDERED)", code: "reordering", segment: towardsB, reorderedAB: 47, deliveredAB: 837, deliveredBA: 614}},
	{"rst_injected_midbox_b", outcome{status: "INTERFERENCE", code: "rst-injected", segment: towardsA, lostAB: 3, injectedBA: 3, deliveredAB: 6, deliveredBA: 3}},
	{"syn_blackhole_a", outcome{status: "PARTIAL DROP", code: "syn-blackhole", segment: towardsB, lostAB: 21, deliveredAB: 6, deliveredBA: 4}},
	{"synack_blocked_a", outcome{status: "FULL DROP", code: "return-path-blocked", segment: towardsA, lostBA: 16, deliveredAB: 12}},
}

func loadPair(t *testing.T, name string) (a, b []trace.Packet) {
	t.Helper()
	return load(t, "gen__"+name+"__client.pcap"), load(t, "gen__"+name+"__server.pcap")
}

func TestLabPairs(t *testing.T) {
	for _, tt := range lab {
		a, b := loadPair(t, tt.name)
		r := Endpoints(a, b)
		if d := cmp.Diff(tt.want, outcomeOf(r), cmp.AllowUnexported(outcome{})); d != "" {
			t.Errorf("%s, want (-) and got (+):\n%s%s", tt.name, d, show(r))
		}
		back := Endpoints(b, a) // the other way round, everything is mirrored
		mirrored := outcome{back.Verdict.Status, back.Verdict.Code, tt.want.segment, back.BToA.Lost, back.AToB.Lost, back.BToA.Injected, back.AToB.Injected,
			back.BToA.Reordered, back.AToB.Reordered, back.BToA.Delivered, back.AToB.Delivered,
			back.AToB.Bypassing + back.BToA.Bypassing, back.AToB.MissedAtSource + back.BToA.MissedAtSource, len(back.NAT)}
		if d := cmp.Diff(tt.want, mirrored, cmp.AllowUnexported(outcome{})); d != "" {
			t.Errorf("%s the other way round:\n%s", tt.name, d)
		}
	}
}

// shifted returns the packets with another clock: so much ahead, and so much faster.
func shifted(list []trace.Packet, by int64, rate float64) []trace.Packet {
	out := slices.Clone(list)
	for i := range out {
		out[i].Time += by + int64(rate*float64(list[i].Time-list[0].Time))
	}
	return out
}

// TestClockShift sets B's clock to another time. Both clocks of the lab are the same, so that the
// shift is the whole offset.
func TestClockShift(t *testing.T) {
	for _, tt := range lab {
		for _, ms := range []int64{0, 3, -250, 3_600_000, -86_400_000} {
			a, b := loadPair(t, tt.name)
			r := Endpoints(a, shifted(b, ms*1e6, 0))
			c := r.Clock
			if c.LowMS != nil && *c.LowMS > float64(ms) || c.HighMS == nil && c.LowMS == nil || c.HighMS != nil && *c.HighMS < float64(ms) {
				t.Errorf("%s shifted by %d ms: %v to %v", tt.name, ms, c.LowMS, c.HighMS)
			}
			if c.Basis == "both directions" && math.Abs(c.OffsetMS-float64(ms)) > 2 {
				t.Errorf("%s shifted by %d ms: offset %.3f", tt.name, ms, c.OffsetMS)
			}
			if got := outcomeOf(r); got.lostAB != tt.want.lostAB || got.lostBA != tt.want.lostBA || got.segment != tt.want.segment || got.code != tt.want.code {
				t.Errorf("%s shifted by %d ms: %+v", tt.name, ms, got)
			}
		}
	}
}

// TestClockAsymmetric makes one direction slower: the offset is then unknowable, the interval still
// has to contain it.
func TestClockAsymmetric(t *testing.T) {
	a, b := loadPair(t, "pair_healthy_a")
	host := a[2].Src
	late := slices.Clone(b)
	for i := range late {
		if late[i].Src == host {
			late[i].Time += 40e6
		}
	}
	r := Endpoints(a, shifted(late, 7e6, 0))
	if *r.Clock.LowMS > 7 || *r.Clock.HighMS < 7 || math.Abs(r.Clock.OffsetMS-27) > 2 {
		t.Errorf("offset %.3f, %.3f to %.3f", r.Clock.OffsetMS, *r.Clock.LowMS, *r.Clock.HighMS)
	}
}

// TestLossIsCountedExactly removes packets from what one end received: exactly those are lost, in
// the direction that they had.
func TestLossIsCountedExactly(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"pair_healthy_a", "nat_pair_a", "reorder_b", "pair_server_delay_b"} {
		for _, share := range []float64{0.01, 0.1, 0.5} {
			a, b := loadPair(t, name)
			client := a[2].Src
			wantAB, wantBA := []int{}, []int{}
			gone := map[uint64]bool{}
			drop := func(list []trace.Packet, is func(*trace.Packet) bool) []trace.Packet {
				return slices.DeleteFunc(slices.Clone(list), func(p trace.Packet) bool {
					if !p.Src.IsValid() || !is(&p) || r.Float64() >= share {
						return false
					}
					gone[uint64(p.ID)<<32^uint64(p.Seq)^uint64(p.TSVal)] = true
					return true
				})
			}
			b2 := drop(b, func(p *trace.Packet) bool { return p.Src != b[3].Src || p.Src == client }) // what B received
			for _, p := range a {
				if p.Src == client && gone[uint64(p.ID)<<32^uint64(p.Seq)^uint64(p.TSVal)] {
					wantAB = append(wantAB, p.Frame)
				}
			}
			clear(gone)
			a2 := drop(a, func(p *trace.Packet) bool { return p.Src != client })
			for _, p := range b {
				if p.Src == b[3].Src && gone[uint64(p.ID)<<32^uint64(p.Seq)^uint64(p.TSVal)] {
					wantBA = append(wantBA, p.Frame)
				}
			}
			got := Endpoints(a2, b2)
			if !slices.Equal(got.AToB.LostFrames, wantAB) || !slices.Equal(got.BToA.LostFrames, wantBA) {
				t.Errorf("%s, %.0f %%: lost %d and %d, want %d and %d\n%s", name, 100*share, got.AToB.Lost, got.BToA.Lost, len(wantAB), len(wantBA), show(got))
			}
			if got.AToB.MissedAtSource+got.BToA.MissedAtSource > 0 {
				t.Errorf("%s: missed at the source: %d, %d", name, got.AToB.MissedAtSource, got.BToA.MissedAtSource)
			}
		}
	}
}

// TestCaptureStartedLate: what was sent before the other capture began is not lost.
func TestCaptureStartedLate(t *testing.T) {
	a, b := loadPair(t, "pair_healthy_a")
	r := Endpoints(a, b[100:])
	if r.AToB.Lost+r.BToA.Lost > 0 || r.A.OutsideTime < 90 || r.Verdict.Code != "healthy" || len(r.Notes) == 0 {
		t.Errorf("B began late: %s", show(r))
	}
	r = Endpoints(a[:400], b)
	if r.AToB.Lost+r.BToA.Lost > 0 || r.B.OutsideTime < 100 || r.Verdict.Code != "healthy" {
		t.Errorf("A ended early: %s", show(r))
	}
}
