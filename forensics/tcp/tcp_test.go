package tcp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
)

const (
	clientPort = 40000
	serverPort = 443
)

// talk writes segments between a client and a server. Times are in milliseconds.
type talk struct {
	t   *Tracker
	no  uint32
	ttl uint8
}

func newTalk() *talk { return &talk{t: New(Options{Frames: true}), ttl: 64} }

var (
	clientAddr = flow.V4([]byte{192, 0, 2, 1})
	serverAddr = flow.V4([]byte{198, 51, 100, 2})
)

// header writes a TCP header.
func header(sp, dp uint16, flags uint8, seq, ack uint32, win uint16, options ...byte) []byte {
	b := make([]byte, 20, 60)
	binary.BigEndian.PutUint16(b, sp)
	binary.BigEndian.PutUint16(b[2:], dp)
	binary.BigEndian.PutUint32(b[4:], seq)
	binary.BigEndian.PutUint32(b[8:], ack)
	for len(options)%4 != 0 {
		options = append(options, 0)
	}
	b[12] = byte((20+len(options))/4) << 4
	b[13] = flags
	binary.BigEndian.PutUint16(b[14:], win)
	return append(b, options...)
}

func (k *talk) send(client bool, ms float64, flags uint8, seq, ack uint32, size int, win uint16, options ...byte) *Event {
	k.no++
	v := frame.View{Src: clientAddr, Dst: serverAddr, SPort: clientPort, DPort: serverPort, Kind: frame.TCP, TTL: k.ttl, HasID: true, ID: uint16(k.no)}
	if !client {
		v.Src, v.Dst, v.SPort, v.DPort = v.Dst, v.Src, v.DPort, v.SPort
	}
	v.L4 = append(header(v.SPort, v.DPort, flags, seq, ack, win, options...), make([]byte, size)...)
	v.L4Len = len(v.L4)
	return k.t.Add(&v, k.no, 1e18+int64(ms*1e6))
}

func (k *talk) c(ms float64, flags uint8, seq, ack uint32, size int, win uint16, options ...byte) *Event {
	return k.send(true, ms, flags, seq, ack, size, win, options...)
}

func (k *talk) s(ms float64, flags uint8, seq, ack uint32, size int, win uint16, options ...byte) *Event {
	return k.send(false, ms, flags, seq, ack, size, win, options...)
}

// open shakes hands: the client's next number is 101, the server's 501; RTT 20 ms.
func (k *talk) open() *talk {
	k.c(0, SYN, 100, 0, 0, 1000)
	k.s(20, SYN|ACK, 500, 101, 0, 1000)
	k.c(20.1, ACK, 101, 501, 0, 1000)
	return k
}

// names lists the verdicts of an event.
func names(v Verdict) string {
	var out []string
	for c := range Classes {
		if v.Has(Class(c)) {
			out = append(out, Names[c])
		}
	}
	return strings.Join(out, " ")
}

// TestRules goes through the verdicts one by one. The last segment of each case is
// judged.
func TestRules(t *testing.T) {
	scaled := []byte{3, 3, 2}
	tests := []struct {
		name string
		do   func(k *talk) *Event
		want string
	}{
		{"data in order", func(k *talk) *Event { return k.open().c(21, ACK, 101, 501, 10, 1000) }, ""},
		{"a hole", func(k *talk) *Event { return k.open().c(21, ACK, 111, 501, 10, 1000) }, "lost_segment"},
		{"a hole before a RST", func(k *talk) *Event { return k.open().c(21, RST|ACK, 111, 501, 0, 0) }, "reset"},
		{"the same late", func(k *talk) *Event {
			k.open().c(21, ACK, 101, 501, 10, 1000)
			k.c(22, ACK, 111, 501, 10, 1000)
			return k.c(300, ACK, 101, 501, 10, 1000)
		}, "retransmission"},
		{"the same within a round trip", func(k *talk) *Event {
			k.open().c(21, ACK, 101, 501, 10, 1000)
			k.c(22, ACK, 111, 501, 10, 1000)
			return k.c(25, ACK, 101, 501, 10, 1000)
		}, "out_of_order"},
		{"the last one is never out of order", func(k *talk) *Event {
			k.open().c(21, ACK, 101, 501, 10, 1000)
			return k.c(22, ACK, 101, 501, 10, 1000)
		}, "retransmission"},
		{"without a handshake three milliseconds count", func(k *talk) *Event {
			k.c(21, ACK, 101, 501, 10, 1000)
			k.c(22, ACK, 111, 501, 10, 1000)
			return k.c(26, ACK, 101, 501, 10, 1000)
		}, "retransmission"},
		{"a clock that steps back", func(k *talk) *Event {
			k.open().c(21, ACK, 101, 501, 10, 1000)
			k.c(22, ACK, 111, 501, 10, 1000)
			return k.c(19, ACK, 101, 501, 10, 1000)
		}, "retransmission"},
		{"acknowledged before", func(k *talk) *Event {
			k.open().c(21, ACK, 101, 501, 10, 1000)
			k.s(41, ACK, 501, 111, 0, 1000)
			return k.c(300, ACK, 101, 501, 10, 1000)
		}, "retransmission spurious_retransmission"},
		{"after two duplicate ACKs", func(k *talk) *Event {
			k.open()
			for i := range uint32(4) {
				k.c(21, ACK, 101+10*i, 501, 10, 1000)
			}
			k.s(41, ACK, 501, 111, 0, 1000)
			k.s(42, ACK, 501, 111, 0, 1000)
			k.s(43, ACK, 501, 111, 0, 1000)
			return k.c(44, ACK, 111, 501, 10, 1000)
		}, "retransmission fast_retransmission"},
		{"too late after two duplicate ACKs", func(k *talk) *Event {
			k.open()
			for i := range uint32(4) {
				k.c(21, ACK, 101+10*i, 501, 10, 1000)
			}
			k.s(41, ACK, 501, 111, 0, 1000)
			k.s(42, ACK, 501, 111, 0, 1000)
			k.s(43, ACK, 501, 111, 0, 1000)
			return k.c(64, ACK, 111, 501, 10, 1000)
		}, "retransmission"},
		{"a duplicate ACK", func(k *talk) *Event {
			k.open()
			return k.c(22, ACK, 101, 501, 0, 1000)
		}, "duplicate_ack"},
		{"another window", func(k *talk) *Event {
			k.open()
			return k.c(22, ACK, 101, 501, 0, 900)
		}, "window_update"},
		{"a window of zero", func(k *talk) *Event {
			k.open()
			return k.c(22, ACK, 101, 501, 0, 0)
		}, "zero_window"},
		{"a RST has no window", func(k *talk) *Event {
			k.open()
			return k.c(22, RST, 101, 0, 0, 0)
		}, "reset"},
		{"a probe of one byte", func(k *talk) *Event {
			k.open().s(21, ACK, 501, 101, 0, 0)
			return k.c(300, ACK, 101, 501, 1, 1000)
		}, "zero_window_probe"},
		{"and its answer", func(k *talk) *Event {
			k.open().s(21, ACK, 501, 101, 0, 0)
			k.c(300, ACK, 101, 501, 1, 1000)
			return k.s(320, ACK, 501, 101, 0, 0)
		}, "zero_window zero_window_probe_ack"},
		{"the window is full", func(k *talk) *Event {
			k.open()
			return k.c(22, ACK, 101, 501, 1000, 1000)
		}, "window_full"},
		{"a scaled window is full", func(k *talk) *Event {
			k.c(0, SYN, 100, 0, 0, 1000, scaled...)
			k.s(20, SYN|ACK, 500, 101, 0, 1000, scaled...)
			k.c(20.1, ACK, 101, 501, 0, 1000)
			k.s(21, ACK, 501, 101, 0, 1000)
			return k.c(22, ACK, 101, 501, 4000, 1000)
		}, "window_full"},
		{"before its first ACK the window is not scaled", func(k *talk) *Event {
			k.c(0, SYN, 100, 0, 0, 1000, scaled...)
			k.s(20, SYN|ACK, 500, 101, 0, 1000, scaled...)
			k.c(20.1, ACK, 101, 501, 0, 1000)
			return k.c(22, ACK, 101, 501, 1000, 1000)
		}, "window_full"},
		{"without a handshake nobody knows", func(k *talk) *Event {
			k.s(21, ACK, 501, 101, 0, 1000)
			return k.c(22, ACK, 101, 501, 1000, 1000)
		}, ""},
		{"a keep-alive", func(k *talk) *Event { return k.open().c(5000, ACK, 100, 501, 0, 1000) }, "keep_alive"},
		{"and its answer", func(k *talk) *Event {
			k.open().s(21, ACK, 501, 101, 0, 1000)
			k.c(5000, ACK, 100, 501, 0, 1000)
			return k.s(5020, ACK, 501, 101, 0, 1000)
		}, "keep_alive_ack"},
		{"an ACK of something unseen", func(k *talk) *Event { return k.open().s(21, ACK, 501, 111, 0, 1000) }, "ack_lost_segment"},
		{"again", func(k *talk) *Event {
			k.open().s(21, ACK, 501, 111, 0, 1000)
			return k.s(22, ACK, 501, 121, 0, 1000)
		}, ""},
		{"after a duplicate ACK it is not flagged", func(k *talk) *Event {
			k.open().s(21, ACK, 501, 111, 0, 1000)
			k.c(22, ACK, 101, 501, 0, 1000)
			return k.s(23, ACK, 501, 121, 0, 1000)
		}, ""},
		{"the port again", func(k *talk) *Event { return k.open().c(900, SYN, 7000, 0, 0, 1000) }, "reused_ports"},
		{"the SYN again", func(k *talk) *Event {
			k.c(0, SYN, 100, 0, 0, 1000)
			return k.c(1000, SYN, 100, 0, 0, 1000)
		}, "retransmission"},
		{"another SYN-ACK", func(k *talk) *Event {
			k.c(0, SYN, 100, 0, 0, 1000)
			k.s(20, SYN|ACK, 500, 101, 0, 1000)
			return k.s(21, SYN|ACK, 9000, 101, 0, 1000)
		}, "lost_segment reused_ports"},
		{"across the wrap", func(k *talk) *Event {
			k.c(0, ACK, 0xfffffff0, 501, 32, 1000)
			return k.c(1, ACK, 16, 501, 10, 1000)
		}, ""},
	}
	for _, tt := range tests {
		k := newTalk()
		e := tt.do(k)
		if got := names(e.Verdict); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		for c := range Classes {
			last := len(k.t.Frames[c]) > 0 && k.t.Frames[c][len(k.t.Frames[c])-1] == k.no
			if last != e.Verdict.Has(Class(c)) {
				t.Errorf("%s: list of %s disagrees", tt.name, Names[c])
			}
		}
	}
}

func TestRoundTrips(t *testing.T) {
	k := newTalk().open()
	want := func(what string, got, ms float64) {
		t.Helper()
		if got < ms-0.001 || got > ms+0.001 {
			t.Errorf("%s: %v ms, want %v", what, got, ms)
		}
	}
	s := k.t.ev.Stream
	want("handshake", float64(s.InitialRTT)/1e6, 20.1)
	want("half of it", float64(s.HalfRTT)/1e6, 20)
	k.c(30, ACK, 101, 501, 10, 1000)
	k.c(31, ACK, 111, 501, 10, 1000)
	want("one ACK of two", float64(k.s(50, ACK, 501, 121, 0, 1000).RTT)/1e6, 19)
	k.c(60, ACK, 121, 501, 10, 1000)
	k.c(260, ACK, 121, 501, 10, 1000)
	want("from the first copy", float64(k.s(280, ACK, 501, 131, 0, 1000).RTT)/1e6, 220)
	k.c(300, ACK, 131, 501, 10, 1000)
	want("an ACK in the middle", float64(k.s(310, ACK, 501, 135, 0, 1000).RTT), 0)
	want("its rest", float64(k.s(330, ACK, 501, 141, 0, 1000).RTT)/1e6, 30)
	if s.Half[0].unacked.n+s.Half[1].unacked.n != 0 {
		t.Errorf("%d and %d segments stay", s.Half[0].unacked.n, s.Half[1].unacked.n)
	}
}

// TestQueueAgreesWithAWalk compares the two lists with tshark's walk over one.
func TestQueueAgreesWithAWalk(t *testing.T) {
	type seg struct {
		end  uint32
		time int64
	}
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		tr := New(Options{})
		var h Half
		var model []seg
		base := uint32(rnd.Uint64())
		for step := range 2000 {
			now := int64(step + 1)
			if rnd.IntN(3) > 0 {
				end := base + uint32(rnd.IntN(4000))
				tr.push(&h.unacked, end, now)
				model = append(model, seg{end, now})
				continue
			}
			if rnd.IntN(4) == 0 {
				base += uint32(rnd.IntN(3000))
			}
			ack := base + uint32(rnd.IntN(500))
			var want int64
			var kept []seg
			for i := len(model) - 1; i >= 0; i-- {
				if model[i].end == ack {
					want = now - model[i].time
				}
			}
			for _, s := range model {
				if before(ack, s.end) {
					kept = append(kept, s)
				}
			}
			model = kept
			if got := tr.acknowledge(&h, ack, now); got != want {
				t.Fatalf("seed %d step %d: %d, want %d", seed, step, got, want)
			}
			if int(h.unacked.n) != len(model) {
				t.Fatalf("seed %d step %d: %d segments, want %d", seed, step, h.unacked.n, len(model))
			}
		}
		tr.release(&h.unacked)
		free := uint32(0)
		for i := tr.pool.free; i != 0; i = tr.pool.at(i).next {
			free++
		}
		if free != tr.pool.made {
			t.Errorf("seed %d: %d of %d segments given back", seed, free, tr.pool.made)
		}
	}
}

func TestHandshakesAndEnds(t *testing.T) {
	k := newTalk().open()
	k.c(30, FIN|ACK, 101, 501, 0, 1000)
	k.s(50, FIN|ACK, 501, 102, 0, 1000)
	k.c(50.1, ACK, 102, 502, 0, 1000)
	k.c(900, SYN, 7000, 0, 0, 1000)
	k.s(920, RST|ACK, 0, 7001, 0, 0)
	k.c(2000, SYN, 9000, 0, 0, 1000)
	k.c(3000, SYN, 9000, 0, 0, 1000)
	got := fmt.Sprintf("%+v", k.t.Total)
	want := fmt.Sprintf("%+v", Totals{Streams: 3, Segments: 10, SYNStreams: 3, SYNACKs: 1, Handshakes: 1, FINs: 1, RSTs: 1})
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestForgettingIsSaid(t *testing.T) {
	tr := New(Options{Streams: 100, Details: 30})
	for i := range 1000 {
		v := frame.View{Src: flow.V4([]byte{10, 0, byte(i >> 8), byte(i)}), Dst: serverAddr, SPort: clientPort, DPort: serverPort, Kind: frame.TCP,
			L4: header(clientPort, serverPort, SYN, 1, 0, 1000), L4Len: 20}
		tr.Add(&v, uint32(i+1), int64(i)*1e9)
	}
	if tr.Table.Len() > 100 || tr.Total.Forgotten < 900 || tr.Total.Streams != 1000 || tr.Total.NoDetail == 0 {
		t.Errorf("%d kept, totals %+v", tr.Table.Len(), tr.Total)
	}
	if int(tr.made) > 30 {
		t.Errorf("%d details", tr.made)
	}
}

func TestHeadersThatCannotBe(t *testing.T) {
	tests := []struct {
		name     string
		change   func(v *frame.View)
		analysed bool
		verdict  string
	}{
		{"as it is", func(*frame.View) {}, true, "reset"},
		{"a header length of 16", func(v *frame.View) { v.L4[12] = 0x40 }, false, ""},
		{"longer than the segment", func(v *frame.View) { v.L4[12] = 0xf0 }, false, ""},
		{"cut in the options", func(v *frame.View) { v.L4, v.L4Len = v.L4[:20], 32; v.L4[12] = 0x80 }, true, "reset"},
		{"cut in the flags", func(v *frame.View) { v.L4 = v.L4[:13] }, false, ""},
		{"part of a datagram", func(v *frame.View) { v.Partial = true }, false, ""},
	}
	for _, tt := range tests {
		v := frame.View{Src: clientAddr, Dst: serverAddr, SPort: 1, DPort: 2, Kind: frame.TCP, L4: header(1, 2, RST, 5, 0, 0), L4Len: 20}
		tt.change(&v)
		e := New(Options{}).Add(&v, 1, 1)
		if e.Analysed != tt.analysed || names(e.Verdict) != tt.verdict {
			t.Errorf("%s: analysed %v, %q", tt.name, e.Analysed, names(e.Verdict))
		}
	}
}

func TestOptions(t *testing.T) {
	v := frame.View{L4: header(1, 2, SYN, 5, 0, 0, 2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 1, 3, 3, 200, 1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2)}
	v.L4Len = len(v.L4)
	var g Segment
	if !g.parse(&v) || g.MSS != 1460 || !g.SACKOK || g.TSVal != 7 || g.TSEcr != 9 || g.Scale != 14 || g.SACKs != 1 || g.SACK != [2]uint32{1, 2} {
		t.Errorf("%+v", g)
	}
	for n := range 256 { // no option list may break it
		b := make([]byte, 40)
		for i := range b {
			b[i] = byte(n * (i + 1))
		}
		g.options(b)
	}
}

// TestCutHandshakes: without the options of the SYN nobody knows the scale, so no
// window is called full.
func TestCutHandshakes(t *testing.T) {
	k := newTalk()
	cut := func(client bool, flags uint8, seq, ack uint32) {
		k.no++
		v := frame.View{Src: clientAddr, Dst: serverAddr, SPort: clientPort, DPort: serverPort, Kind: frame.TCP}
		if !client {
			v.Src, v.Dst, v.SPort, v.DPort = v.Dst, v.Src, v.DPort, v.SPort
		}
		v.L4 = header(v.SPort, v.DPort, flags, seq, ack, 1000, 3, 3, 7)
		v.L4Len = len(v.L4)
		v.L4 = v.L4[:20]
		k.t.Add(&v, k.no, 1e18)
	}
	cut(true, SYN, 100, 0)
	cut(false, SYN|ACK, 500, 101)
	k.c(20.1, ACK, 101, 501, 0, 1000)
	if e := k.c(22, ACK, 101, 501, 1000, 1000); e.Verdict != 0 {
		t.Errorf("verdict %q", names(e.Verdict))
	}
	if _, known := k.t.ev.Stream.Half[0].Scale(); known {
		t.Error("the scale is known")
	}
}

func TestQuotedSegments(t *testing.T) {
	k := newTalk()
	k.c(0, SYN, 100, 0, 0, 1000)
	s := k.t.ev.Stream
	v := frame.View{Src: clientAddr, Dst: serverAddr, SPort: clientPort, DPort: serverPort, L4: header(clientPort, serverPort, SYN, 100, 0, 1000), L4Len: 20}
	k.t.Quoted(&v, 7, 1e18+5e6, 3)
	if s.ICMPFrame != 7 || s.synTime != 1e18+5e6 {
		t.Errorf("frame %d, SYN at %d", s.ICMPFrame, s.synTime)
	}
	v.L4 = v.L4[:8]
	k.t.Quoted(&v, 8, 1e18+6e6, 3)
	if s.ICMPFrame != 8 || k.t.Total.Streams != 1 {
		t.Errorf("a minimal quote: frame %d, %d streams", s.ICMPFrame, k.t.Total.Streams)
	}
	v.SPort = 9
	k.t.Quoted(&v, 9, 1e18+7e6, 3)
	if k.t.Total.Streams != 1 {
		t.Error("a minimal quote made a stream")
	}
}

func BenchmarkAdd(b *testing.B) {
	k := newTalk().open()
	v := frame.View{Src: clientAddr, Dst: serverAddr, SPort: clientPort, DPort: serverPort, Kind: frame.TCP, HasID: true}
	v.L4 = append(header(clientPort, serverPort, ACK, 101, 501, 1000), make([]byte, 1448)...)
	v.L4Len = len(v.L4)
	back := frame.View{Src: serverAddr, Dst: clientAddr, SPort: serverPort, DPort: clientPort, Kind: frame.TCP, HasID: true}
	back.L4 = header(serverPort, clientPort, ACK, 501, 101, 1000)
	back.L4Len = 20
	seq, n := uint32(101), uint32(10)
	b.ReportAllocs()
	for b.Loop() {
		n++
		binary.BigEndian.PutUint32(v.L4[4:], seq)
		k.t.Add(&v, n, int64(n)*1000)
		seq += 1448
		if n%2 == 0 {
			binary.BigEndian.PutUint32(back.L4[8:], seq)
			k.t.Add(&back, n, int64(n)*1000)
		}
	}
}
