package compare

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"ghostbot/forensics/trace"
)

// lose makes a wire that loses what is says, and runs something on it.
func lose(is func(p *trace.Packet, toB bool) bool, run func(*wire)) *Result {
	w := &wire{change: func(p *trace.Packet, toB bool) bool { return !is(p, toB) }}
	run(w)
	return w.result()
}

// TestLossPatterns: what lost packets have in common decides the code, and what passes decides
// whether that is a pattern.
func TestLossPatterns(t *testing.T) {
	for _, tt := range []struct {
		name          string
		is            func(p *trace.Packet, toB bool) bool
		run           func(*wire)
		pattern, code string
		summary       string
	}{
		{"large packets of one direction", func(p *trace.Packet, toB bool) bool { return p.Size > 1400 },
			func(w *wire) { w.connection(40000, 8) }, "size", "pmtud-blackhole", "every packet of 1452 bytes or more vanishes, the largest that passes has 52"},
		{"one large packet among large ones", func(p *trace.Packet, toB bool) bool { return p.Len == 1400 && p.Seq == 5001+1400*3 },
			func(w *wire) { w.connection(40000, 8) }, "scattered", "packet-loss", "1 packet sent at B did not arrive at A (11.11 %): 1 of 9 packets"},
		{"small packets only", func(p *trace.Packet, toB bool) bool { return toB && p.Len == 0 && p.Flags == trace.ACK && p.Seq > 1001 },
			func(w *wire) { w.connection(40000, 8) }, "scattered", "packet-loss", "no pattern"},
		{"every SYN to a port", func(p *trace.Packet, toB bool) bool { return p.Flags == trace.SYN && p.DstPort == 8443 },
			func(w *wire) {
				w.connection(40000, 3)
				for i := range 4 {
					p := segment(true, 41000, 1, 0, trace.SYN, 0)
					p.DstPort = 8443
					w.now += int64(i) * 1e9
					w.send(p)
				}
			}, "syn", "syn-blackhole", "every SYN to 198.51.100.20:8443 vanishes"},
		{"SYN-ACK only", func(p *trace.Packet, toB bool) bool { return p.Flags == trace.SYN|trace.ACK && p.DstPort == 41000 },
			func(w *wire) {
				w.connection(40000, 3)
				for range 3 {
					w.now += 1e9
					w.send(segment(true, 41000, 1, 0, trace.SYN, 0))
					w.send(segment(false, 41000, 9, 2, trace.SYN|trace.ACK, 0))
				}
			}, "syn-ack", "return-path-blocked", "SYN-ACK on the way back"},
		{"after a pause", func(p *trace.Packet, toB bool) bool { return p.Time > 100e9 },
			func(w *wire) {
				w.connection(40000, 3)
				w.now += 300e9
				for range 4 {
					w.now += 1e9
					w.send(segment(true, 40000, 1301, 9201, trace.ACK, 50))
				}
			}, "after idle", "idle-timeout", "after a pause of 301.0 s"},
		{"later fragments", func(p *trace.Packet, toB bool) bool { return p.Offset > 0 },
			func(w *wire) {
				for i := range uint32(5) {
					w.send(trace.Packet{Src: client, Dst: server, Proto: trace.UDP, SrcPort: 5, DstPort: 6, ID: 77 + i, Len: 1400, MoreFragments: true, Sum: uint64(i)})
					w.send(trace.Packet{Src: client, Dst: server, Proto: trace.UDP, ID: 77 + i, Len: 300, Offset: 1400, Sum: uint64(100 + i)})
					w.send(trace.Packet{Src: server, Dst: client, Proto: trace.UDP, SrcPort: 6, DstPort: 5, Len: 30, Sum: uint64(i)})
				}
			}, "fragments", "fragments-dropped", "IP fragments vanish"},
	} {
		r := lose(tt.is, tt.run)
		d := r.AToB
		if r.BToA.Lost > d.Lost {
			d = r.BToA
		}
		if d.Pattern != tt.pattern || r.Verdict.Code != tt.code || !strings.Contains(r.Verdict.Summary, tt.summary) {
			t.Errorf("%s: pattern %q, code %q, %q", tt.name, d.Pattern, r.Verdict.Code, r.Verdict.Summary)
		}
		conserved(t, r)
	}
}

// TestLostFlows: flows that are lost as a whole count when their hosts are known at both points, and
// do not when the other point has never heard of them.
func TestLostFlows(t *testing.T) {
	stranger := netip.MustParseAddr("203.0.113.200")
	for _, tt := range []struct {
		name      string
		dst       netip.Addr
		packets   int
		lost      int
		elsewhere int
	}{
		{"one packet to a known host", server, 1, 1, 0},
		{"many packets to a known host", server, 9, 9, 0},
		{"few packets to a stranger", stranger, 2, 0, 2},
		{"many packets to a stranger, from a known host", stranger, 5, 5, 0},
	} {
		w := &wire{}
		w.connection(40000, 5)
		w.change = func(*trace.Packet, bool) bool { return false }
		for i := range tt.packets {
			w.send(trace.Packet{Src: client, Dst: tt.dst, Proto: trace.UDP, SrcPort: 999, DstPort: 53, Len: 40, Sum: uint64(i)})
		}
		r := w.result()
		if r.AToB.Lost != tt.lost || r.A.Elsewhere != tt.elsewhere {
			t.Errorf("%s: lost %d, elsewhere %d", tt.name, r.AToB.Lost, r.A.Elsewhere)
		}
		conserved(t, r)
	}
}

// TestLinkLocalStaysHome: what no router forwards is not looked for.
func TestLinkLocalStaysHome(t *testing.T) {
	w := &wire{}
	w.connection(40000, 5)
	w.a = append(w.a, trace.Packet{Time: 5}, trace.Packet{Time: 6, Src: client, Dst: netip.MustParseAddr("224.0.0.251"), Proto: trace.UDP, Len: 9})
	w.b = append(w.b, trace.Packet{Time: 5})
	r := w.result()
	if r.A.NotRouted != 2 || r.B.NotRouted != 1 || r.Verdict.Code != "healthy" {
		t.Errorf("%+v %+v %s", r.A, r.B, r.Verdict.Code)
	}
	conserved(t, r)
}

// TestEchoBehindNAT: address and identifier of echoes are others at B.
func TestEchoBehindNAT(t *testing.T) {
	public := netip.MustParseAddr("203.0.113.5")
	w := &wire{}
	for i := range uint32(6) {
		for _, kind := range []uint16{8, 0} {
			p := trace.Packet{Src: client, Dst: server, Proto: trace.ICMP, Window: kind << 8, SrcPort: 77, DstPort: 77, Seq: i, Len: 56, Sum: 1000 + uint64(i)}
			if kind == 0 {
				p.Src, p.Dst = server, client
			}
			w.send(p)
		}
	}
	for i := range w.b {
		p := &w.b[i]
		if p.SrcPort, p.DstPort = 3, 3; p.Src == client {
			p.Src = public
		} else {
			p.Dst = public
		}
	}
	r := w.result()
	clean(t, r)
	if len(r.NAT) != 1 || r.NAT[0].AtB != public.String() || r.AToB.Delivered != 6 || r.BToA.Delivered != 6 {
		t.Errorf("%s", show(r))
	}
}

// TestResolverBehindNAT: each query has a port of its own, and all are translated to one address.
func TestResolverBehindNAT(t *testing.T) {
	public := netip.MustParseAddr("203.0.113.5")
	lost := 0
	w := &wire{}
	for i := range uint16(40) {
		q := trace.Packet{Src: client, Dst: server, Proto: trace.UDP, SrcPort: 30000 + i, DstPort: 53, Len: 40, Sum: 5000 + uint64(i)}
		w.change = func(p *trace.Packet, toB bool) bool {
			gone := toB && i%8 == 7
			lost += b2i(gone)
			return !gone
		}
		w.send(q)
		if i%8 != 7 {
			q.Src, q.Dst, q.SrcPort, q.DstPort, q.Sum = server, client, 53, q.SrcPort, 9000+uint64(i)
			w.send(q)
		}
	}
	for i := range w.b {
		if p := &w.b[i]; p.Src == client {
			p.Src, p.SrcPort = public, p.SrcPort+1000
		} else {
			p.Dst, p.DstPort = public, p.DstPort+1000
		}
	}
	r := w.result()
	if r.AToB.Lost != lost || lost != 5 || r.BToA.Lost != 0 || len(r.NAT) != 1 || r.NAT[0].Flows != 35 {
		t.Errorf("lost %d of %d\n%s", r.AToB.Lost, lost, show(r))
	}
	conserved(t, r)
}

// TestPortReuse: a second connection of the same ports begins with other sequence numbers.
func TestPortReuse(t *testing.T) {
	w := &wire{}
	w.connection(40000, 4)
	for _, p := range []trace.Packet{segment(true, 40000, 900000, 0, trace.SYN, 0), segment(false, 40000, 700000, 900001, trace.SYN|trace.ACK, 0), segment(true, 40000, 900001, 700001, trace.ACK, 10)} {
		w.now += 1e9
		w.send(p)
	}
	r := w.result()
	clean(t, r)
	// The first SYN of that port is missing at B: the sequence numbers of the second must not be taken
	// for translated ones of the first.
	w.b = slices.DeleteFunc(w.b, func(p trace.Packet) bool { return p.Flags == trace.SYN && p.Seq == 1000 })
	r = Endpoints(w.a, w.b)
	if n, _ := changed(r, "sequence"); r.AToB.Lost != 1 || n > 0 {
		t.Errorf("%s", show(r))
	}
}

// TestSides: without hops and without an answer, what is known of hosts elsewhere decides.
func TestSides(t *testing.T) {
	w := &wire{change: func(p *trace.Packet, toB bool) bool { p.TTL += 3; return true }} // a bridge
	w.connection(40000, 5)
	w.send(trace.Packet{Src: server, Dst: client, Proto: trace.UDP, SrcPort: 514, DstPort: 514, Len: 20, Sum: 3})
	r := w.result()
	clean(t, r)
	if r.BToA.Sent != 7 || r.AToB.Sent != 12 || r.Clock.Basis != "both directions" {
		t.Errorf("%d to A, %d to B\n%s", r.BToA.Sent, r.AToB.Sent, show(r))
	}
	// One packet of one host in one capture only: its TTL says where it comes from.
	for ttl, want := range map[uint8]int{64: 1, 255: 1, 61: 0} {
		w := &wire{change: func(*trace.Packet, bool) bool { return false }}
		for i := range 3 {
			w.send(trace.Packet{Src: client, Dst: server, Proto: trace.UDP, SrcPort: 1, DstPort: 2, TTL: ttl, Len: 9, Sum: uint64(i)})
		}
		other := w.a[0]
		other.SrcPort, other.Sum = 77, 99
		w.b = append(w.b, other)
		r := w.result()
		if got := b2i(r.AToB.Lost == 3); got != want {
			t.Errorf("TTL %d: %d lost towards B, %d missed at the source", ttl, r.AToB.Lost, r.BToA.MissedAtSource)
		}
	}
}

// TestServers: the time between request and answer is measured where the server is.
func TestServers(t *testing.T) {
	w := &wire{}
	w.send(segment(true, 40000, 1000, 0, trace.SYN, 0))
	w.send(segment(false, 40000, 5000, 1001, trace.SYN|trace.ACK, 0))
	for i := range uint32(6) {
		w.now += 50e6
		w.send(segment(true, 40000, 1001+100*i, 5001+1400*i, trace.ACK, 100))
		w.now += 10e6 + 399e6 // it arrives, and the server thinks
		w.send(segment(false, 40000, 5001+1400*i, 1101+100*i, trace.ACK, 1400))
	}
	r := w.result()
	if len(r.Servers) != 1 {
		t.Fatalf("%+v", r.Servers)
	}
	s := r.Servers[0]
	if s.Host != server.String() || s.Point != "B" || s.Requests != 6 || s.ThinkMS != 400 || s.TotalMS != 420 || r.Verdict.Code != "slow-server" || r.Verdict.Segment != "behind B" {
		t.Errorf("%+v, %+v", s, r.Verdict)
	}
}

// TestSeverities: every status has one, and only a clean path is INFO.
func TestSeverities(t *testing.T) {
	for status, want := range map[string]string{"CLEAN PATH": "INFO", "UNRELATED": "LOW", "SLOW HOST": "MEDIUM", "DEGRADED (DELAYED)": "MEDIUM", "DEGRADED (REORDERED)": "MEDIUM",
		"DEGRADED (DUPLICATED)": "MEDIUM", "ASYMMETRIC ROUTING": "MEDIUM", "PARTIAL DROP": "HIGH", "INTERFERENCE": "HIGH", "FULL DROP": "CRITICAL"} {
		if got := severity(status); got != want {
			t.Errorf("%s: %s, want %s", status, got, want)
		}
	}
}

func TestSegments(t *testing.T) {
	w := &world{}
	for _, tt := range []struct {
		ab, ba int
		want   string
	}{{5, 0, towardsB}, {0, 5, towardsA}, {5, 1, towardsB}, {5, 2, bothWays}, {2, 5, bothWays}, {1, 5, towardsA}} {
		if got := w.segment(tt.ab, tt.ba); got != tt.want {
			t.Errorf("%d and %d: %s", tt.ab, tt.ba, got)
		}
	}
}

// TestSpread has the rules of the specification: p95 is element floor(0.95 n), the median of an even
// number is the mean of the middle two.
func TestSpread(t *testing.T) {
	ms := func(list ...float64) []float64 {
		for i := range list {
			list[i] *= 1e6
		}
		return list
	}
	for _, tt := range []struct {
		values []float64
		base   float64
		want   Spread
	}{
		{nil, 0, Spread{}},
		{ms(7), 0, Spread{7, 7, 7, 7}},
		{ms(4, 1, 3, 2), 0, Spread{1, 2.5, 4, 4}},
		{ms(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20), 1e6, Spread{0, 9.5, 19, 19}},
		{ms(-3, 5, 5), 0, Spread{-3, 5, 5, 5}},
	} {
		if got := spread(tt.values, tt.base); got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.values, got, tt.want)
		}
	}
}

// TestWindows: a packet is within a capture's time only if it certainly passed while that ran.
func TestWindows(t *testing.T) {
	c := window{from: 100, to: 200}
	for _, tt := range []struct {
		at   float64
		way  delayRange
		want bool
	}{{150, delayRange{10, 20}, true}, {95, delayRange{10, 20}, true}, {85, delayRange{10, 20}, false}, {185, delayRange{10, 20}, false}, {180, delayRange{10, 20}, true},
		{115, delayRange{10, 20}.back(), false}, {125, delayRange{10, 20}.back(), true}} {
		if got := c.covers(tt.at, tt.way); got != tt.want {
			t.Errorf("%v with %+v: %v", tt.at, tt.way, got)
		}
	}
}

// TestRanges: what arrived covers a lost segment even where sequence numbers wrap.
func TestRanges(t *testing.T) {
	r := ranges{{-50, -10}, {0, 100}, {300, 400}}
	for _, tt := range []struct {
		begin, end int32
		want       bool
	}{{-60, -50, false}, {-20, -15, true}, {-10, 0, false}, {50, 60, true}, {100, 300, false}, {100, 301, true}, {399, 500, true}, {400, 500, false}} {
		if got := r.touches(tt.begin, tt.end); got != tt.want {
			t.Errorf("%d to %d: %v", tt.begin, tt.end, got)
		}
	}
}

func TestNamesOfThings(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{optionNames(0), "none"}, {optionNames(trace.OptMSS | trace.OptTimestamps), "timestamps mss"}, {ecnName(3), "CE"}, {ecnName(0xb8), "not-ECT"}, {yesNo(true), "set"}, {yesNo(false), "clear"},
		{toward(pointA), "a_to_b"}, {toward(pointB), "b_to_a"}, {pointA.String(), "A"}, {pointA.other().String(), "B"},
		{protocolName(flowKey{proto: trace.TCP}), "TCP"}, {protocolName(flowKey{proto: trace.UDP, frag: true}), "IP fragments"}, {protocolName(flowKey{proto: trace.ICMPv6}), "ICMPv6"},
		{protocolName(flowKey{proto: 47}), "IP protocol 47"}, {hostPort(flowKey{proto: trace.UDP}, netip.MustParseAddrPort("[2001:db8::1]:53")), "[2001:db8::1]:53"},
		{hostPort(flowKey{proto: trace.ICMP}, netip.MustParseAddrPort("192.0.2.1:9")), "192.0.2.1"},
		{(&Flow{Sent: 3, Lost: 3}).status(), "FULL DROP"}, {(&Flow{Sent: 3, Lost: 1}).status(), "PARTIAL DROP"}, {(&Flow{Sent: 3}).status(), "DELIVERED"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

// TestLists are bounded, and the worst flow comes first.
func TestLists(t *testing.T) {
	n := 0
	r := lose(func(*trace.Packet, bool) bool { n++; return n%3 == 0 }, func(w *wire) {
		for i := range 120 {
			w.connection(10000+uint16(i), 4+i%7)
		}
	})
	if len(r.Flows) != maxFlows || r.AToB.Lost <= 0 {
		t.Errorf("%d flows", len(r.Flows))
	}
	for i := 1; i < len(r.Flows); i++ {
		if r.Flows[i].Lost > r.Flows[i-1].Lost {
			t.Errorf("flow %d has more losses than the one before", i)
		}
	}
	r = lose(func(p *trace.Packet, toB bool) bool { return toB && p.Len > 0 }, func(w *wire) {
		w.connection(40000, 5)
		for i := range uint32(2000) {
			w.send(segment(true, 41000, 1+100*i, 1, trace.ACK, 100))
		}
	})
	if r.AToB.Lost < 2000 || len(r.AToB.LostFrames) != maxFrames || !slices.IsSorted(r.AToB.LostFrames) {
		t.Errorf("%d lost, %d frames", r.AToB.Lost, len(r.AToB.LostFrames))
	}
}

// TestFilteredCapture: B's capture has only one port. What the other connections say is answered, so
// they are not lost.
func TestFilteredCapture(t *testing.T) {
	w := &wire{}
	w.connection(40000, 5)
	for i := range 6 {
		w.connection(41000+uint16(i), 5)
	}
	w.b = slices.DeleteFunc(w.b, func(p trace.Packet) bool { return p.SrcPort != 40000 && p.DstPort != 40000 })
	r := w.result()
	if r.AToB.Lost != 0 || r.A.Elsewhere != 6*18 || r.Verdict.Code != "healthy" || !strings.Contains(strings.Join(r.Notes, "|"), "108 packets of A: of flows that the other point cannot be expected to see") {
		t.Errorf("%s", show(r))
	}
	conserved(t, r)
	// Refused on the way, by resets that claim to come from the server: those SYN are lost.
	w = &wire{}
	w.connection(40000, 5)
	w.change = func(*trace.Packet, bool) bool { return false }
	w.send(segment(true, 41000, 1, 0, trace.SYN, 0))
	reset := segment(false, 41000, 0, 2, trace.RST|trace.ACK, 0)
	reset.Time, reset.TTL = w.now+1e6, 63
	w.a = append(w.a, reset)
	if r := w.result(); r.AToB.Lost != 1 || r.BToA.Injected != 1 || r.Verdict.Code != "firewall-reject" || r.Verdict.Segment != towardsA {
		t.Errorf("%s", show(r))
	}
}

// TestUnderWay: two captures of a busy path that end together have packets on the way between them.
// The same packets are lost when others are, or when A's capture shows that nothing more came.
func TestUnderWay(t *testing.T) {
	for _, tt := range []struct {
		name string
		wait int64 // how long B's capture goes on after its last packets
		lost bool  // one segment before
		want int
	}{
		{"stopped together", 0, false, 0},
		{"one was lost before", 0, true, 5},
		{"nothing came for long", 400e6, false, 5},
	} {
		w := &wire{}
		n := 0
		w.change = func(p *trace.Packet, toB bool) bool {
			n++
			return !tt.lost || n != 12
		}
		w.connection(40000, 9)
		w.change = func(p *trace.Packet, toB bool) bool { return false }
		for i := range uint32(4) {
			w.send(segment(false, 40000, 5001+9*1400+1400*i, 1901, trace.ACK, 1400))
		}
		if tt.wait > 0 {
			w.now += tt.wait
			w.send(segment(false, 40000, 5001+9*1400, 1901, trace.ACK, 1400))
		}
		r := w.result()
		if r.AToB.Lost+r.BToA.Lost != tt.want {
			t.Errorf("%s: lost %d and %d, want %d: %v", tt.name, r.AToB.Lost, r.BToA.Lost, tt.want, r.Notes)
		}
	}
}
