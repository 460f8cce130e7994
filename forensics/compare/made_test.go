package compare

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"ghostbot/forensics/trace"
	"ghostbot/forensics/trace/tracetest"
)

// halves makes two points out of one capture: what the first sender says is sent at A, the rest at B,
// and each packet arrives 5 ms later with a lower TTL, unless it is lost. Losses of both directions
// are frames of A and of B.
func halves(r *rand.Rand, list []trace.Packet, share float64) (a, b []trace.Packet, lost [2][]int) {
	var home trace.Packet
	for _, p := range list {
		if p.Routed() {
			home = p
			break
		}
	}
	for _, p := range list {
		fromA := p.Src == home.Src
		if !p.Routed() || !fromA && p.Dst != home.Src {
			continue
		}
		sent, arrives := p, p
		arrives.TTL--
		arrives.Time += 5e6 + int64(r.Float64()*1e6)
		gone := r.Float64() < share
		if fromA {
			a = append(a, sent)
			if !gone {
				b = append(b, arrives)
			}
		} else {
			b = append(b, sent)
			if !gone {
				a = append(a, arrives)
			}
		}
		if gone {
			lost[b2i(!fromA)] = append(lost[b2i(!fromA)], p.Frame)
		}
	}
	// Frames keep the numbers of the one capture, so that losses can be named.
	byTime := func(x, y trace.Packet) int { return int(x.Time - y.Time) }
	slices.SortStableFunc(a, byTime)
	slices.SortStableFunc(b, byTime)
	return a, b, lost
}

// TestEveryCapture makes pairs of the captures of the lab and compares losses frame by frame. Where a
// capture has the same packet several times (made on two interfaces, duplicated or looped by the
// network), nobody can tell which copy was lost; those are left out. ACKs of IPv6 that are equal down
// to their time stamps are counted exactly, but which of them was lost cannot be told either.
func TestEveryCapture(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/pcaps/gen__*.pcap")
	if len(files) == 0 {
		tracetest.Raw(t, "gen__pair_loss_b__client.pcap") // skips or fails
	}
	copies := []string{"gen__capture_duplicates_any_b__router_any.pcap", "gen__asymmetric_path_b__client_any.pcap", "gen__duplication_a__server.pcap", "gen__routing_loop_b__core.pcap"}
	r := rand.New(rand.NewPCG(11, 12))
	packets, losses := 0, 0
	for _, file := range files {
		name := filepath.Base(file)
		if slices.Contains(copies, name) {
			continue
		}
		list := tracetest.Load(t, name)
		for _, share := range []float64{0, 0.02, 0.2} {
			a, b, lost := halves(r, list, share)
			if len(a) < 4 || len(b) < 4 {
				continue
			}
			got := Endpoints(a, b)
			conserved(t, got)
			packets += len(a) + len(b)
			losses += len(lost[0]) + len(lost[1])
			miss := difference(got.AToB.LostFrames, lost[0]) + difference(got.BToA.LostFrames, lost[1])
			if got.AToB.Lost != len(lost[0]) || got.BToA.Lost != len(lost[1]) || miss > 0 && a[0].Src.Is4() {
				t.Errorf("%s at %.0f %%: %d frames wrong; lost %d and %d, want %d and %d; %s", name, 100*share, miss, got.AToB.Lost, got.BToA.Lost, len(lost[0]), len(lost[1]), got.Verdict.Segment)
			}
		}
	}
	t.Logf("%d packets, %d losses", packets, losses)
}

// difference counts what is in only one of two lists.
func difference(x, y []int) int {
	n := 0
	for _, v := range x {
		n += b2i(!slices.Contains(y, v))
	}
	for _, v := range y {
		n += b2i(!slices.Contains(x, v))
	}
	return n
}
