package tcp

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
)

// traffic makes segments of some connections in any order, with everything that
// headers can have, quotations by ICMP errors among them.
func traffic(rnd *rand.Rand, n int) (views []frame.View) {
	for i := range n {
		flags := []uint8{ACK, ACK, ACK, ACK, SYN, SYN | ACK, FIN | ACK, RST, RST | ACK}[rnd.IntN(9)]
		seq, ack := uint32(rnd.IntN(20)*100), uint32(rnd.IntN(20)*100)
		v := frame.View{Src: clientAddr, Dst: serverAddr, SPort: uint16(1000 + rnd.IntN(40)), DPort: serverPort, Kind: frame.TCP, TTL: 64, HasID: true, ID: uint16(i), Depth: 1,
			MAC: []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}}
		if rnd.IntN(2) == 0 {
			v.Src, v.Dst, v.SPort, v.DPort = v.Dst, v.Src, v.DPort, v.SPort
		}
		v.L4 = append(header(v.SPort, v.DPort, flags, seq, ack, uint16(rnd.IntN(3)*500)), make([]byte, rnd.IntN(3)*100)...)
		v.L4Len = len(v.L4)
		switch rnd.IntN(12) {
		case 0:
			v.L4 = v.L4[:8+rnd.IntN(12)] // cut
		case 1:
			v.L4[12] = byte(rnd.IntN(16)) << 4 // a header of any length
		case 2:
			v.IfIndex = uint32(rnd.IntN(3))
		case 3:
			v.Partial = true
		}
		views = append(views, v)
	}
	return views
}

// verdict is what is compared of an event.
type verdict struct {
	Frame   uint32
	Verdict Verdict
	RTT     int64
	New     bool
	Stream  uint32
	Detail  bool
}

func verdictOf(e *Event) verdict {
	v := verdict{e.Frame, e.Verdict, e.RTT, e.New, 0, e.Detail != nil}
	if e.Stream != nil {
		v.Stream = e.Stream.Number
	}
	return v
}

// TestTakeAll judges traffic segment by segment, and read ahead in pieces.
func TestTakeAll(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 9))
	for range 30 {
		views := traffic(rnd, 600)
		one, all := New(Options{Frames: true, Details: 20}), New(Options{Frames: true, Details: 20})
		var want, got []verdict
		var read []Input
		for i := range views {
			no, now := uint32(i+1), int64(1e18)+int64(i)*1e6
			read = append(read, Input{})
			if i%10 == 9 {
				one.Quoted(&views[i], no, now, 3)
				all.ReadQuoted(&read[i], &views[i], no, now, 3)
				continue
			}
			want = append(want, verdictOf(one.Add(&views[i], no, now)))
			all.Read(&read[i], &views[i], no, now)
		}
		for len(read) > 0 {
			n := min(1+rnd.IntN(100), len(read))
			all.TakeAll(read[:n], func(in *Input, e *Event) {
				if !in.Quoted() {
					got = append(got, verdictOf(e))
				}
			})
			read = read[n:]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("one by one (-), ahead (+):\n%s", diff)
		}
		if diff := cmp.Diff(one.Total, all.Total) + cmp.Diff(one.Count, all.Count) + cmp.Diff(one.Frames, all.Frames); diff != "" {
			t.Fatalf("totals: %s", diff)
		}
		streams := func(t *Tracker) (out []Stream) {
			t.Table.All(func(_ uint32, _ *flow.Key, s *Stream) bool { out = append(out, *s); return true })
			return out
		}
		if diff := cmp.Diff(streams(one), streams(all), cmp.AllowUnexported(Stream{}, Half{}, queue{})); diff != "" {
			t.Fatalf("streams: %s", diff)
		}
	}
}

// TestReadAgain reads into what earlier segments left there: nothing of them stays.
func TestReadAgain(t *testing.T) {
	tr := New(Options{})
	var used Input
	for i, v := range traffic(rand.New(rand.NewPCG(3, 1)), 3000) {
		if i%5 == 0 && len(v.L4) >= 20 {
			v.L4 = append(header(v.SPort, v.DPort, ACK, 1, 2, 3), 3, 3, 7, 2, 4, 5, 180, 4, 2, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 30, 3, 0)
			v.L4[12] = 14 << 4
			v.L4Len = len(v.L4)
		}
		var fresh Input
		tr.Read(&used, &v, uint32(i), int64(i))
		tr.Read(&fresh, &v, uint32(i), int64(i))
		if diff := cmp.Diff(fresh.Segment, used.Segment); diff != "" || fresh.Key != used.Key || fresh.Dir != used.Dir || fresh.kind != used.kind || fresh.link != used.link {
			t.Fatalf("segment %d: new (-), used (+)\n%s%+v\n%+v", i, diff, fresh, used)
		}
		if k, reverse := flow.Make(v.Src, v.Dst, v.SPort, v.DPort, 6); k != used.Key || reverse != (used.Dir == 1) {
			t.Fatalf("segment %d: %+v, want %+v", i, used.Key, k)
		}
	}
}

// TestPath tells ways apart without the frame.
func TestPath(t *testing.T) {
	tr := New(Options{})
	mac := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}
	for _, v := range []frame.View{
		{}, {MAC: mac, Depth: 1}, {MAC: mac, Depth: 2}, {MAC: mac[:6], Depth: 1}, {MAC: mac, Depth: 1, IfIndex: 7}, {IfIndex: 9},
		{MAC: []byte{1, 0, 0x5e, 0, 0, 1, 2, 0, 0, 0, 0, 2}, Depth: 1}, {MAC: []byte{0, 0, 0x5e, 0, 1, 1, 2, 0, 0, 0, 0, 2}, Depth: 1},
	} {
		var in Input
		tr.Read(&in, &v, 1, 1)
		if got, want := in.link, v.LinkMark(); got != want {
			t.Errorf("%+v: %x, want %x", v, got, want)
		}
	}
}

// TestDetailsAreUsedAgain lets connections end well, so that details go from one to
// the next: what a new one finds there is nothing.
func TestDetailsAreUsedAgain(t *testing.T) {
	var d Detail
	for range 300 {
		d.Gap.Add(1e6)
		d.RTT[1].Add(2e6)
		d.Turns.Mid.Add(3e6)
	}
	d.Side[0].Copies, d.Tag = 3, 4
	d.reset()
	if d.Gap.N+d.RTT[1].N+d.Turns.Mid.N != 0 || d.Gap.Max != 0 || d.Side[0].Copies != 0 || d.Tag != 0 {
		t.Errorf("%+v", d)
	}
	d.Gap.Add(5e6)
	if d.Gap.N != 1 || d.Gap.Median() != 5e6 || d.Gap.Above(1e6) != 1 {
		t.Errorf("gap %+v", d.Gap)
	}
}
