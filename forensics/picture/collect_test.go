package picture

import (
	"bytes"
	"encoding/binary"
	"image/png"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"ghostbot/forensics/trace"
)

var (
	client = netip.MustParseAddrPort("192.0.2.10:40000")
	server = netip.MustParseAddrPort("198.51.100.20:443")
	stream = Flow{trace.TCP, server, client}
)

// seg is a segment at a time in milliseconds.
func seg(frame int, ms float64, up bool, seq, ack uint32, flags uint8, n int) trace.Packet {
	from, to := server, client
	if up {
		from, to = client, server
	}
	return trace.Packet{Frame: frame, Time: 1e18 + int64(ms*1e6), Src: from.Addr(), Dst: to.Addr(), SrcPort: from.Port(), DstPort: to.Port(), Proto: trace.TCP,
		Seq: seq, Ack: ack, Flags: flags, Len: n, Size: n + 40, Window: 100}
}

func run(req Request, list ...trace.Packet) *Collector { return runAgain(req, nil, list...) }

// runAgain is run with frames that were sent before.
func runAgain(req Request, again []int, list ...trace.Packet) *Collector {
	c := New(req)
	for i := range list {
		mark, rtt := Unmarked, int64(0)
		if slices.Contains(again, list[i].Frame) {
			mark = Again
		}
		if list[i].Len == 0 && list[i].Flags == trace.ACK {
			rtt = 20e6
		}
		c.Add(&list[i], mark, rtt)
	}
	return c
}

// transfer is a download of n segments over a path of 20 ms, seen at the server.
func transfer(n int) []trace.Packet {
	out := []trace.Packet{seg(1, 0, true, 100, 0, trace.SYN, 0), seg(2, 0.1, false, 500, 101, trace.SYN|trace.ACK, 0), seg(3, 20.1, true, 101, 501, trace.ACK, 0)}
	for i := range n {
		at := 30 + 25*float64(i)
		out = append(out, seg(2*i+4, at, false, 501+1000*uint32(i), 101, trace.ACK, 1000), seg(2*i+5, at+20, true, 101, 1501+1000*uint32(i), trace.ACK, 0))
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	c := run(Request{}, transfer(50)...)
	if len(c.samples[1]) != 51 || len(c.samples[0]) != 0 {
		t.Fatalf("%d samples to the client, %d to the server", len(c.samples[1]), len(c.samples[0]))
	}
	for _, s := range c.samples[1] {
		if math.Abs(s.value-20) > 1e-6 {
			t.Errorf("round trip of %v ms at %v s", s.value, s.at)
		}
	}
	p := c.roundTrip()
	if !strings.Contains(p.Alt, "to the clients and back: median 20") || !strings.Contains(p.Alt, "steady") {
		t.Errorf("%s", p.Alt)
	}
}

func TestShape(t *testing.T) {
	for _, tt := range []struct {
		name string
		rtt  func(i int) float64
		want string
	}{
		{"steady", func(i int) float64 { return 20 }, "steady"},
		{"filling", func(i int) float64 { return 20 + float64(i) }, "rising"},
		{"draining", func(i int) float64 { return 420 - float64(i) }, "falling"},
		{"full", func(i int) float64 { return 20 + 100*float64(min(i, 1)) }, "packets wait in a queue"},
		{"spikes", func(i int) float64 { return 10 + 300*float64(max(0, i%10-8)) }, "long waits now and then"},
		{"noise", func(i int) float64 { return 20 + 30*float64(max(0, i%10-7)) }, "varying"},
	} {
		c := New(Request{})
		for i := range 400 {
			p := seg(i+1, 10*float64(i), true, 1, 1, trace.ACK, 1)
			c.Add(&p, Unmarked, 0)
			c.sample(0, p.Time, tt.rtt(i))
		}
		if alt := c.roundTrip().Alt; !strings.Contains(alt, tt.want) {
			t.Errorf("%s: %q", tt.name, alt)
		}
	}
}

// TestBins: whatever the times, nothing is lost when bins get wider, and there are never too many.
func TestBins(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	c := New(Request{})
	bytes, segments := int64(0), 0
	for i := range 20000 {
		p := seg(i+1, r.Float64()*float64(1+i*i), i%2 == 0, uint32(i), 0, trace.ACK, r.IntN(1400))
		bytes += int64(p.Size)
		segments += b2i(p.Span() > 0)
		c.Add(&p, Unmarked, 0)
	}
	var got bin
	for _, b := range c.coarse(100) {
		got.add(&b)
	}
	if got.bytes != bytes || got.segments != segments || len(c.bins) > maxBins {
		t.Errorf("%d bytes, %d segments, %d bins; want %d, %d", got.bytes, got.segments, len(c.bins), bytes, segments)
	}
}

func TestPercentiles(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var h histogram
	var all []float64
	for range 5000 {
		v := math.Exp(r.NormFloat64()*2 + 3)
		all = append(all, v)
		h.add(v)
	}
	slices.Sort(all)
	for _, p := range []float64{0, 0.5, 0.95, 0.99} {
		if got, want := h.percentile(p), all[int(p*5000)]; math.Abs(got-want) > 0.04*want {
			t.Errorf("percentile %v: %v, want %v", p, got, want)
		}
	}
	if (&histogram{}).percentile(0.5) != 0 {
		t.Error("a percentile of nothing")
	}
}

// TestSequenceWraps: sequence numbers that pass 2^32 go on upwards.
func TestSequenceWraps(t *testing.T) {
	var list []trace.Packet
	for i := range 100 {
		list = append(list, seg(i+1, float64(i), false, uint32(0xffffffff-50_000+1000*i), 1, trace.ACK, 1000))
	}
	c := run(Request{Stream: stream}, list...)
	h := &c.side[0]
	for i, m := range h.data {
		if m.begin != float64(1000*i) || m.end != float64(1000*i+1000) {
			t.Fatalf("segment %d: %v to %v", i, m.begin, m.end)
		}
	}
}

// TestBounded: a long stream keeps its retransmissions and a bounded number of the rest.
func TestBounded(t *testing.T) {
	c := New(Request{Stream: stream})
	for i := range 200_000 {
		p := seg(i+1, float64(i), false, uint32(1000*i), 1, trace.ACK, 1000)
		if i%3 == 2 {
			p = seg(i+1, float64(i), true, 1, uint32(1000*i), trace.ACK, 0)
		}
		c.Add(&p, Mark(b2i(i%1000 == 999)), 1e6)
	}
	again := 0
	for _, m := range c.side[0].data {
		again += b2i(m.mark == Again)
	}
	if len(c.side[0].data) > maxPoints || len(c.side[0].acks) > maxPoints || len(c.samples[1]) > maxSamples || again != c.side[0].marked[Again] || again < 100 {
		t.Errorf("%d segments (%d again of %d), %d ACKs, %d samples", len(c.side[0].data), again, c.side[0].marked[Again], len(c.side[0].acks), len(c.samples[1]))
	}
}

func TestLadder(t *testing.T) {
	list := transfer(20)
	list = append(list, seg(100, 900, true, 101, 20501, trace.RST, 0))
	other := seg(99, 899, true, 7, 7, trace.ACK, 5)
	other.SrcPort = 5
	list = slices.Insert(list, len(list)-1, other)
	for name, flow := range map[string]Flow{"flow known": stream, "flow of the frame": {}} {
		c := run(Request{Frame: 100, Exchange: flow}, list...)
		var frames []int
		for _, r := range append(c.before, c.after...) {
			frames = append(frames, r.Frame)
		}
		if want := []int{38, 39, 40, 41, 42, 43, 100}; !slices.Equal(frames, want) {
			t.Errorf("%s: frames %v, want %v", name, frames, want)
		}
		if alt := c.drawLadder().Alt; alt != "It ends with a reset from 192.0.2.10:40000." {
			t.Errorf("%s: %q", name, alt)
		}
	}
	c := run(Request{Frame: 4, Exchange: stream, Why: "because"}, list...)
	if n := len(c.before) + len(c.after); n != rungs || c.drawLadder().Alt != "because" {
		t.Errorf("%d rungs, %q", n, c.drawLadder().Alt)
	}
}

func TestLabels(t *testing.T) {
	udp := func(src, dst uint16) trace.Packet {
		return trace.Packet{Proto: trace.UDP, SrcPort: src, DstPort: dst, Len: 30}
	}
	for _, tt := range []struct {
		p    trace.Packet
		mark Mark
		want string
	}{
		{seg(1, 0, true, 1, 0, trace.SYN, 0), Unmarked, "SYN"},
		{seg(1, 0, true, 1, 0, trace.SYN, 0), Again, "SYN (sent again)"},
		{seg(1, 0, true, 1, 0, trace.SYN|trace.ACK, 0), Unmarked, "SYN, ACK"},
		{seg(1, 0, true, 1, 0, trace.PSH|trace.ACK, 9), Unmarked, "ACK, 9 bytes"},
		{seg(1, 0, true, 1, 0, trace.RST, 0), Unmarked, "RST"},
		{seg(1, 0, true, 1, 0, trace.ACK, 9), Disordered, "ACK, 9 bytes (out of order)"},
		{udp(5, 53), Unmarked, "DNS query, 30 bytes"},
		{udp(53, 5), Unmarked, "DNS answer, 30 bytes"},
		{udp(4, 5), Unmarked, "UDP, 30 bytes"},
		{trace.Packet{Proto: trace.ICMP, Window: 3<<8 | 4, Len: 36}, Unmarked, "ICMP type 3 code 4, 36 bytes"},
		{trace.Packet{Proto: 47, Len: 3}, Unmarked, "IP protocol 47, 3 bytes"},
	} {
		if got := (rung{tt.p, tt.mark}).label(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestPNG reads a picture back: its size, its texts, and that something other than white is on it.
func TestPNG(t *testing.T) {
	list := transfer(30)
	c := runAgain(Request{File: "x.pcap", Stream: stream, StreamName: "stream 3", Frame: 10, Exchange: stream}, []int{20}, list...)
	pictures := c.Pictures()
	var names []string
	for _, p := range pictures {
		names = append(names, p.Name)
		var b bytes.Buffer
		if err := p.PNG(&b); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if size := img.Bounds().Size(); size.X != width || size.Y != height {
			t.Errorf("%s: %v", p.Name, size)
		}
		if got := texts(b.Bytes()); got["Title"] != p.Title || got["Description"] != p.Alt || p.Title == "" || strings.Contains(p.Alt, "\n") || len(p.Alt) < 20 {
			t.Errorf("%s: %v", p.Name, got)
		}
		colours := map[any]bool{}
		for x := range width {
			for y := 70; y < height; y++ {
				colours[img.At(x, y)] = true
			}
		}
		if len(colours) < 5 {
			t.Errorf("%s: %d colours", p.Name, len(colours))
		}
	}
	if want := []string{"throughput", "rtt", "sequence", "ladder"}; !slices.Equal(names, want) {
		t.Errorf("pictures %v, want %v", names, want)
	}
}

// texts reads the iTXt chunks of a PNG.
func texts(b []byte) map[string]string {
	out := map[string]string{}
	for b = b[8:]; len(b) >= 12; {
		n := binary.BigEndian.Uint32(b)
		if kind, body := string(b[4:8]), b[8:8+n]; kind == "iTXt" {
			key, value, _ := bytes.Cut(body, []byte{0, 0, 0, 0, 0})
			out[string(key)] = string(value)
		}
		b = b[12+n:]
	}
	return out
}

func TestNothingToDraw(t *testing.T) {
	if p := New(Request{Frame: 1, Stream: stream}).Pictures(); len(p) != 0 {
		t.Errorf("pictures of nothing: %+v", p)
	}
	if p := run(Request{Frame: 9, Stream: stream}, seg(1, 0, true, 1, 0, trace.SYN, 0)).Pictures(); len(p) != 0 {
		t.Errorf("pictures of one packet: %+v", p)
	}
}

func TestNumbers(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{grouped(0.25), "0.25"}, {grouped(9999), "9999"}, {grouped(1234567), "1 234 567"}, {grouped(-12345), "-12 345"},
		{bits(2.5e9), "2.5 Gbit/s"}, {bits(12345678), "12.3 Mbit/s"}, {bits(900), "0.9 kbit/s"},
		{millis(0.5), "0.5 ms"}, {millis(1500), "1.50 s"}, {duration(0.0123), "12.3 ms"}, {duration(5), "5 s"}, {duration(123.4), "123 s"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	list := transfer(500)
	c := New(Request{Stream: stream})
	for i := 0; b.Loop(); i++ {
		c.Add(&list[i%len(list)], Unmarked, 1e6)
	}
}
