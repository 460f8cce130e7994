package pcapgen

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// end is one direction of a connection, as a strict receiver sees it.
type end struct {
	next    uint32
	begun   bool
	holes   map[uint32]uint32 // begins and ends of what came early
	fin     bool
	acked   uint32
	hasACK  bool
	repeats int
}

type conversationKey struct{ src, dst endpoint }

// receiver follows all connections of a capture, independently of the code that writes them.
type receiver struct {
	t    *testing.T
	ends map[conversationKey]*end
}

func (r *receiver) end(k conversationKey) *end {
	if r.ends[k] == nil {
		r.ends[k] = &end{holes: map[uint32]uint32{}}
	}
	return r.ends[k]
}

// segment checks that an ACK never covers what was not sent, and never goes back.
func (r *receiver) segment(frame int, ip *layers.IPv4, tcp *layers.TCP) {
	src := endpoint{binary.BigEndian.Uint32(ip.SrcIP), uint16(tcp.SrcPort)}
	dst := endpoint{binary.BigEndian.Uint32(ip.DstIP), uint16(tcp.DstPort)}
	me, other := r.end(conversationKey{src, dst}), r.end(conversationKey{dst, src})
	size := uint32(len(tcp.Payload))
	if tcp.SYN || tcp.FIN {
		size++
	}
	if tcp.SYN && me.begun && tcp.Seq+1 != me.next {
		r.t.Fatalf("frame %d: ports are used again", frame)
	}
	if !me.begun {
		me.begun, me.next = true, tcp.Seq
	}
	switch d := int32(tcp.Seq - me.next); {
	case size == 0:
	case d == 0:
		me.next += size
		for end, early := me.holes[me.next]; early; end, early = me.holes[me.next] {
			delete(me.holes, me.next)
			me.next = end
		}
	case d > 0:
		me.holes[tcp.Seq] = tcp.Seq + size
	default:
		me.repeats++
	}
	me.fin = me.fin || tcp.FIN
	if tcp.ACK && !tcp.RST && other.begun {
		if int32(tcp.Ack-other.next) > 0 {
			r.t.Fatalf("frame %d: acknowledges %d, only %d was sent", frame, tcp.Ack, other.next)
		}
		if me.hasACK && int32(tcp.Ack-me.acked) < 0 {
			r.t.Fatalf("frame %d: an ACK goes back", frame)
		}
		me.acked, me.hasACK = tcp.Ack, true
	}
}

// TestReceivers follows every connection: nothing is acknowledged that was not sent, no hole is left
// at the end, and connections that were established end with FIN from both sides, apart from those of
// small, which is cut where the file is full.
func TestReceivers(t *testing.T) {
	for _, p := range Profiles() {
		b, st := generate(t, Options{p.Name, 8 << 20, 0})
		r := &receiver{t: t, ends: map[conversationKey]*end{}}
		decode(t, b, func(i int, f frame) {
			ip, _ := f.pkt.NetworkLayer().(*layers.IPv4)
			if tcp, ok := f.pkt.TransportLayer().(*layers.TCP); ok {
				r.segment(i, ip, tcp)
			}
		})
		repeats, finished, began := 0, 0, 0
		for k, e := range r.ends {
			if len(e.holes) > 0 {
				t.Errorf("%s: %v has holes at the end", p.Name, k)
			}
			repeats += e.repeats
			finished += int(b2u(e.fin))
			began += int(b2u(e.begun))
		}
		// What was lost comes late and fills a hole; what was resent is a repetition.
		if int64(repeats) != st.Resent {
			t.Errorf("%s: %d repetitions, stats say %d", p.Name, repeats, st.Resent)
		}
		if p.Name != "small" && int64(finished) != 2*(st.Connections-st.SYNUnanswered-st.Refused) {
			t.Errorf("%s: %d of %d directions end with FIN", p.Name, finished, began)
		}
	}
}

func b2u(b bool) uint {
	if b {
		return 1
	}
	return 0
}

// TestIdentification: the IP ID counts the IPv4 packets of the file, and nothing else varies in the
// header.
func TestIdentification(t *testing.T) {
	for _, p := range Profiles() {
		b, _ := generate(t, Options{p.Name, 8 << 20, 0})
		want := uint16(1)
		decode(t, b, func(i int, f frame) {
			ip, ok := f.pkt.NetworkLayer().(*layers.IPv4)
			if !ok {
				return
			}
			if ip.Id != want || ip.TTL != 64 || ip.Flags != layers.IPv4DontFragment {
				t.Fatalf("%s: frame %d: id %d, want %d; TTL %d, flags %v", p.Name, i, ip.Id, want, ip.TTL, ip.Flags)
			}
			want++
		})
	}
}

// TestSizesOfFrames: frames of small are 42 to 200 bytes.
func TestSizesOfFrames(t *testing.T) {
	b, _ := generate(t, Options{"small", 4 << 20, 0})
	least, most := 1<<20, 0
	decode(t, b, func(_ int, f frame) {
		least, most = min(least, len(f.pkt.Data())), max(most, len(f.pkt.Data()))
	})
	if least != 42 || most < 190 || most > 200 {
		t.Errorf("frames of %d to %d bytes", least, most)
	}
}

// TestOpenAtATime: about 12,000 sessions of flows are open at a time, which is what makes it hard.
func TestOpenAtATime(t *testing.T) {
	c := newCapture(discard{}, 0x3003)
	var h heap
	most := 0
	for i, at := uint32(0), int64(0); i < 30_000; i, at = i+1, at+sessionEvery {
		for len(h) > 0 && h[0].at <= at {
			c.advance(&h)
		}
		h.push(event{at, uint64(i), c.plan(i)})
		most = max(most, len(h))
	}
	if most < 9_000 || most > 15_000 {
		t.Errorf("%d sessions at a time", most)
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// TestChecksums compares the running sums of the text with sums that are made word by word.
func TestChecksums(t *testing.T) {
	p := newPayload()
	r := rand.New(rand.NewPCG(1, 9))
	buf := make([]byte, 2000)
	for range 2000 {
		seq, n := r.Uint32(), r.IntN(1600)
		b := buf[:n]
		if got, want := fold(p.put(b, seq)), fold(words(b)); got != want {
			t.Fatalf("%d bytes at %d: %04x, want %04x", n, seq, got, want)
		}
	}
}

// FuzzSegment writes any segment; gopacket must read it back, with the checksum that it computes
// itself.
func FuzzSegment(f *testing.F) {
	f.Add(uint32(1), uint32(2), uint16(3), uint16(4), uint32(5), uint32(6), uint8(syn), uint16(0), false)
	f.Add(uint32(0xffffffff), uint32(0), uint16(0xffff), uint16(0), uint32(0xffffffff), uint32(0), uint8(ack|psh), uint16(1447), true)
	f.Fuzz(func(t *testing.T, src, dst uint32, sport, dport uint16, seq, ackNo uint32, flags uint8, n uint16, sack bool) {
		s := segment{from: endpoint{src, sport}, to: endpoint{dst, dport}, seq: seq, ack: ackNo, flags: flags & 0x1f, n: int(n % 1449)}
		if sack && s.flags&syn == 0 {
			s.left, s.right = seq, seq+1
		}
		c := newCapture(discard{}, 1)
		c.tcp(s)
		p := gopacket.NewPacket(c.buf[fileHeader+recordHeader:], layers.LayerTypeEthernet, gopacket.Default)
		if e := p.ErrorLayer(); e != nil {
			t.Fatal(e.Error())
		}
		tcp, ok := p.TransportLayer().(*layers.TCP)
		if !ok || tcp.Seq != seq || tcp.Ack != ackNo || len(tcp.Payload) != s.n || uint16(tcp.SrcPort) != sport || uint16(tcp.DstPort) != dport || tcp.SYN != (s.flags&syn != 0) {
			t.Fatalf("%+v became %+v", s, tcp)
		}
		if got := rewritten(t, p); string(got[:len(p.Data())]) != string(p.Data()) {
			t.Fatalf("another checksum: %x and %x", p.Data(), got)
		}
	})
}
