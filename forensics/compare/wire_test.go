package compare

import (
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ghostbot/forensics/trace"
)

// wire is a made-up path between two capture points, 10 ms long. Packets go over it one at a time;
// change may alter what arrives, or lose it.
type wire struct {
	now    int64
	a, b   []trace.Packet
	change func(p *trace.Packet, toB bool) bool // false: lost
	late   int64                                // of the next packet
	nextID [2]uint32
}

var (
	client = netip.MustParseAddr("192.0.2.10")
	server = netip.MustParseAddr("198.51.100.20")
)

// send puts a packet on the wire; those of the client are sent at A.
func (w *wire) send(p trace.Packet) {
	w.now += 1e6
	toB := p.Src == client || p.Src.Is6() && p.Src.As16()[15] == 1
	if p.ID == 0 && p.Src.Is4() {
		w.nextID[b2i(toB)]++
		p.ID = 1000*uint32(1+b2i(toB)) + w.nextID[b2i(toB)]
	}
	if p.TTL == 0 {
		p.TTL = 64
	}
	if p.Size == 0 {
		p.Size = p.Len + 52
	}
	at, arrives := p, p
	at.Time, arrives.Time = w.now, w.now+10e6+w.late
	arrives.TTL -= 3
	w.late = 0
	here, there := &w.b, &w.a
	if toB {
		here, there = &w.a, &w.b
	}
	*here = append(*here, at)
	if w.change == nil || w.change(&arrives, toB) {
		*there = append(*there, arrives)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// result compares what both points have.
func (w *wire) result() *Result {
	for _, list := range [][]trace.Packet{w.a, w.b} {
		slices.SortStableFunc(list, func(x, y trace.Packet) int { return int(x.Time - y.Time) })
		for i := range list {
			list[i].Frame = i + 1
		}
	}
	return Endpoints(w.a, w.b)
}

// segment is a TCP segment of the client (up) or the server.
func segment(up bool, port uint16, seq, ack uint32, flags uint8, n int) trace.Packet {
	p := trace.Packet{Src: client, Dst: server, SrcPort: port, DstPort: 443, Proto: trace.TCP, Seq: seq, Ack: ack, Flags: flags, Window: 500, Len: n, Sum: uint64(seq)*7 + uint64(n),
		DontFragment: true}
	if !up {
		p.Src, p.Dst, p.SrcPort, p.DstPort = server, client, 443, port
	}
	if flags&trace.SYN != 0 {
		p.MSS, p.Options = 1460, trace.OptMSS|trace.OptScale|trace.OptSACKPermitted
	}
	return p
}

// connection sends a handshake and n requests of 100 bytes with answers of 1400.
func (w *wire) connection(port uint16, n int) {
	w.send(segment(true, port, 1000, 0, trace.SYN, 0))
	w.send(segment(false, port, 5000, 1001, trace.SYN|trace.ACK, 0))
	w.send(segment(true, port, 1001, 5001, trace.ACK, 0))
	for i := range uint32(n) {
		w.request(port, i)
	}
}

func (w *wire) request(port uint16, i uint32) {
	w.send(segment(true, port, 1001+100*i, 5001+1400*i, trace.ACK, 100))
	w.send(segment(false, port, 5001+1400*i, 1101+100*i, trace.ACK, 1400))
	w.send(segment(true, port, 1101+100*i, 6401+1400*i, trace.ACK, 0))
}

// changed says how often a field was altered on the way to B.
func changed(r *Result, field string) (n int, to string) {
	for _, a := range r.Alterations {
		if a.Field == field && a.Direction == "a_to_b" {
			n, to = n+a.Packets, a.To
		}
	}
	return n, to
}

func clean(t *testing.T, r *Result) {
	t.Helper()
	if r.AToB.Lost+r.BToA.Lost+r.AToB.MissedAtSource+r.BToA.MissedAtSource+r.AToB.Injected+r.BToA.Injected > 0 {
		t.Errorf("not everything is matched: %s", show(r))
	}
}

func TestAlterations(t *testing.T) {
	for _, tt := range []struct {
		name, field string
		change      func(*trace.Packet, bool) bool
		packets     int
		to          string
	}{
		{"hops", "ttl", nil, 20, "+3"},
		{"DSCP", "dscp", func(p *trace.Packet, toB bool) bool { p.TOS = 46 << 2; return true }, 20, "46"},
		{"congestion mark", "ecn", func(p *trace.Packet, toB bool) bool { p.TOS |= 3; return true }, 20, "CE"},
		{"MSS", "mss", func(p *trace.Packet, toB bool) bool {
			if p.MSS > 0 {
				p.MSS = 1360
			}
			return true
		}, 1, "1360"},
		{"options", "options", func(p *trace.Packet, toB bool) bool { p.Options &^= trace.OptScale; return true }, 1, "mss sack-permitted"},
		{"window", "window", func(p *trace.Packet, toB bool) bool { p.Window /= 2; return true }, 20, ""},
		{"DF", "df", func(p *trace.Packet, toB bool) bool { p.DontFragment = false; return true }, 20, "clear"},
		{"IP ID", "id", func(p *trace.Packet, toB bool) bool { p.ID = p.ID*77 + 5; return true }, 20, ""},
		{"payload", "payload", func(p *trace.Packet, toB bool) bool {
			if p.Len > 0 && toB {
				p.Sum++
			}
			return true
		}, 9, ""},
		{"sequence numbers", "sequence", func(p *trace.Packet, toB bool) bool {
			if toB {
				p.Seq += 77777
			} else {
				p.Ack -= 77777
			}
			return true
		}, 20, ""},
	} {
		w := &wire{change: tt.change}
		w.connection(40000, 9)
		w.b[len(w.b)-1].Sum = 0 // the last ACK has no payload anyway
		w.a[len(w.a)-1].Sum = 0
		r := w.result()
		clean(t, r)
		if n, to := changed(r, tt.field); n != tt.packets || to != tt.to {
			t.Errorf("%s: %d packets to %q, want %d to %q; %+v", tt.name, n, to, tt.packets, tt.to, r.Alterations)
		}
	}
}

// TestTranslation: the client's address and port are others at B; the second connection must not be
// taken for the first.
func TestTranslation(t *testing.T) {
	public := netip.MustParseAddr("203.0.113.5")
	w := &wire{}
	w.change = func(p *trace.Packet, toB bool) bool { return true }
	for i := range 5 {
		w.connection(40000+uint16(i), 4)
	}
	for i := range w.b {
		p := &w.b[i]
		if p.Src == client {
			p.Src, p.SrcPort = public, p.SrcPort+7
		} else {
			p.Dst, p.DstPort = public, p.DstPort+7
		}
		p.Sum += uint64(p.SrcPort+p.DstPort) * 1e6
	}
	for i := range w.a { // payloads differ between connections
		p := &w.a[i]
		p.Sum += uint64(p.SrcPort+p.DstPort+7) * 1e6
	}
	r := w.result()
	clean(t, r)
	if len(r.NAT) != 1 || r.NAT[0] != (Translation{client.String(), public.String(), true, 5}) {
		t.Errorf("NAT %+v", r.NAT)
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "192.0.2.10 at A is 203.0.113.5 at B") {
		t.Errorf("notes %q", r.Notes)
	}
}

// TestDrift lets B's clock run faster.
func TestDrift(t *testing.T) {
	for _, ppm := range []float64{0, 40, -150, 600} {
		w := &wire{}
		for i := range 600 {
			w.connection(40000+uint16(i), 1)
			w.now += 200e6
		}
		w.result()
		r := Endpoints(w.a, shifted(w.b, 5e9, ppm/1e6))
		c := r.Clock
		if c.DriftLowPPM > ppm || c.DriftHighPPM < ppm || math.Abs(c.DriftPPM-ppm) > 10 || math.Abs(c.OffsetMS-5000) > 2 || *c.LowMS > 5000.1 || *c.HighMS < 4999.9 {
			t.Errorf("%v ppm: %+v (%v to %v)", ppm, c, *c.LowMS, *c.HighMS)
		}
		if math.Abs(r.AToB.DelayMS.P95-10) > 1 {
			t.Errorf("%v ppm: delay %+v %+v %+v", ppm, r.AToB.DelayMS, r.BToA.DelayMS, c)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  func(*wire)
		want outcome
	}{
		{"outage", func(w *wire) {
			w.change = func(p *trace.Packet, toB bool) bool { return p.Time < 200e6 || p.Time > 400e6 || !toB }
			w.connection(40000, 300)
		}, outcome{code: "link-outage", status: "PARTIAL DROP", segment: towardsB}},
		{"from a moment on", func(w *wire) {
			w.change = func(p *trace.Packet, toB bool) bool { return p.Time < 200e6 || toB }
			w.connection(40000, 300)
		}, outcome{code: "packet-loss", status: "PARTIAL DROP", segment: towardsA}},
		{"some SYN", func(w *wire) {
			w.change = func(p *trace.Packet, toB bool) bool { return p.Flags != trace.SYN || p.SrcPort%3 == 0 }
			for i := range 30 {
				if port := 40000 + uint16(i); port%3 == 0 {
					w.connection(port, 2)
				} else {
					w.send(segment(true, port, 1000, 0, trace.SYN, 0))
				}
			}
		}, outcome{code: "syn-rate-limit", status: "PARTIAL DROP", segment: towardsB}},
		{"other direction elsewhere", func(w *wire) {
			w.connection(40000, 20)
			w.b = slices.DeleteFunc(w.b, func(p trace.Packet) bool { return p.Src == server })
		}, outcome{code: "asymmetric-path", status: "ASYMMETRIC ROUTING", segment: towardsA}},
		{"duplicates", func(w *wire) {
			w.connection(40000, 20)
			for _, p := range slices.Clone(w.b)[10:20] {
				p.Time += 1e5
				if p.Src == client {
					w.b = append(w.b, p)
				}
			}
		}, outcome{code: "duplication", status: "DEGRADED (DUPLICATED)", segment: towardsB}},
		{"copies in the capture at the source", func(w *wire) {
			w.connection(40000, 20)
			for _, p := range slices.Clone(w.a) {
				if p.Src == client {
					w.a = append(w.a, p)
				}
			}
		}, outcome{code: "healthy", status: "CLEAN PATH", segment: "none"}},
		{"long way", func(w *wire) {
			for i := range 40 {
				w.late = 90e6
				w.send(segment(i%2 == 0, 40000, uint32(1000*i), 1, trace.ACK, 10))
			}
		}, outcome{code: "high-latency", status: "DEGRADED (DELAYED)", segment: bothWays}},
		{"queue", func(w *wire) {
			for i := range 100 {
				w.late = int64(i) * 3e6
				w.send(segment(true, 40000, uint32(1000*i), 1, trace.ACK, 1000))
				w.send(segment(false, 40000, 1, uint32(1000*i), trace.ACK, 0))
			}
		}, outcome{code: "bufferbloat", status: "DEGRADED (DELAYED)", segment: towardsB}},
		{"other traffic", func(w *wire) {
			w.connection(40000, 5)
			other := netip.MustParseAddr("203.0.113.77")
			for i := range w.b {
				w.b[i].Src, w.b[i].Dst, w.b[i].Seq, w.b[i].Sum = other, netip.MustParseAddr("203.0.113.78"), uint32(i)*99, uint64(i)*31
			}
		}, outcome{code: "unrelated-captures", status: "UNRELATED", segment: "none"}},
	} {
		w := &wire{}
		tt.run(w)
		r := w.result()
		if got := outcomeOf(r); got.code != tt.want.code || got.status != tt.want.status || got.segment != tt.want.segment {
			t.Errorf("%s: %s, %s, %s\n%s", tt.name, got.code, got.status, got.segment, show(r))
		}
	}
}

// TestOffload: A sees segments of 2800 bytes that B sees as two.
func TestOffload(t *testing.T) {
	w := &wire{}
	w.connection(40000, 1)
	for i := range uint32(10) {
		whole := segment(true, 40000, 1101+2800*i, 6401, trace.ACK, 2800)
		w.send(whole)
		w.b = w.b[:len(w.b)-1]
		for k := range uint32(2) {
			part := segment(true, 40000, 1101+2800*i+1400*k, 6401, trace.ACK, 1400)
			part.Time, part.TTL, part.ID = w.now+10e6, 61, 5000+2*i+k
			w.b = append(w.b, part)
		}
	}
	r := w.result()
	clean(t, r)
	if n, _ := changed(r, "segments"); n != 10 {
		t.Errorf("%d packets in other segments: %+v", n, r.Alterations)
	}
}

// TestFragmentation: packets are fragmented between the points.
func TestFragmentation(t *testing.T) {
	w := &wire{}
	for i := range uint32(6) {
		p := trace.Packet{Src: client, Dst: server, Proto: trace.UDP, SrcPort: 4000, DstPort: 53, ID: 100 + i, Len: 1400, Sum: uint64(i)}
		w.send(p)
		if i%2 == 0 {
			continue
		}
		w.b = w.b[:len(w.b)-1]
		p.Time, p.TTL = w.now+10e6, 61
		first, second := p, p
		first.MoreFragments, first.Len = true, 800
		second.Offset, second.Len, second.SrcPort, second.DstPort = 808, 600, 0, 0
		w.b = append(w.b, first, second)
	}
	r := w.result()
	clean(t, r)
	if n, _ := changed(r, "fragments"); n != 3 || r.AToB.Delivered != 6 {
		t.Errorf("%d packets fragmented: %s", n, show(r))
	}
}

// TestNothingToTellApart: equal datagrams without IP ID, as of IPv6, are matched by time.
func TestNothingToTellApart(t *testing.T) {
	a6, b6 := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	w := &wire{}
	i := 0
	w.change = func(*trace.Packet, bool) bool { i++; return i%10 != 0 }
	for range 100 {
		w.now += 500e6
		w.send(trace.Packet{Src: a6, Dst: b6, Proto: trace.UDP, SrcPort: 9, DstPort: 9, Len: 100, Sum: 1})
	}
	r := w.result()
	if r.AToB.Lost != 10 || r.AToB.Delivered != 90 || r.AToB.MissedAtSource != 0 {
		t.Errorf("%s", show(r))
	}
	// With a packet in between that is unique, the range of delays is known, and so is which are lost.
	w = &wire{change: w.change}
	i = 0
	for k := range 100 {
		w.now += 500e6
		w.send(trace.Packet{Src: a6, Dst: b6, Proto: trace.UDP, SrcPort: 9, DstPort: 9, Len: 100, Sum: 1 + uint64(k%2*k)})
	}
	r = w.result()
	if want := []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}; !slices.Equal(r.AToB.LostFrames, want) {
		t.Errorf("lost %v, want %v", r.AToB.LostFrames, want)
	}
}

// TestCutPayloads: one capture has only the first bytes of each packet.
func TestCutPayloads(t *testing.T) {
	w := &wire{}
	w.connection(40000, 10)
	for i := range w.b {
		if w.b[i].Len > 0 {
			w.b[i].Cut, w.b[i].Sum = true, 12345
		}
	}
	clean(t, w.result())
}

// TestAcknowledged: a packet that B lacks, but whose receiver has it, was missed by B's capture.
func TestAcknowledged(t *testing.T) {
	w := &wire{change: func(p *trace.Packet, toB bool) bool { return !toB || p.Seq != 1301 || p.Len == 0 }}
	w.connection(40000, 10)
	if notes := strings.Join(w.result().Notes, "\n"); !strings.Contains(notes, "1 of the 1 packets that B lacks were acknowledged there") {
		t.Errorf("notes: %s", notes)
	}
}

func TestEmptyAndSame(t *testing.T) {
	if r := Endpoints(nil, nil); r.Verdict.Code != "unrelated-captures" || r.Clock.Basis != "none" {
		t.Errorf("nothing: %s", show(r))
	}
	w := &wire{}
	w.connection(40000, 5)
	w.result()
	r := Endpoints(w.a, w.a)
	if r.AToB.Lost+r.BToA.Lost > 0 || r.Verdict.Code != "healthy" || r.Clock.OffsetMS != 0 {
		t.Errorf("the same capture twice: %s", show(r))
	}
}

// TestSameTwice: maps must not decide anything.
func TestSameTwice(t *testing.T) {
	run := func() *Result {
		n := 0
		w := &wire{change: func(p *trace.Packet, toB bool) bool { n++; return n%7 != 0 }}
		for i := range 20 {
			w.connection(40000+uint16(i), 6)
		}
		return w.result()
	}
	first := run()
	for range 5 {
		if again := run(); !reflect.DeepEqual(first, again) {
			t.Fatalf("%s\nand then\n%s", show(first), show(again))
		}
	}
}

func BenchmarkEndpoints(b *testing.B) {
	n := 0
	w := &wire{change: func(p *trace.Packet, toB bool) bool { n++; return n%100 != 0 }}
	for i := range 1000 {
		w.connection(10000+uint16(i), 30)
	}
	w.result()
	b.ReportMetric(float64(len(w.a)+len(w.b)), "packets/op")
	for b.Loop() {
		Endpoints(w.a, w.b)
	}
}
