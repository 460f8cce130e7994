package facts

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/forensics/capture"
	"ghostbot/forensics/filter"
	"ghostbot/forensics/frame"
)

// tape is a capture that grows packet by packet; times are in milliseconds.
type tape struct{ bytes.Buffer }

func newTape() *tape {
	t := &tape{}
	head := make([]byte, 24)
	binary.LittleEndian.PutUint32(head, 0xa1b2c3d4)
	binary.LittleEndian.PutUint32(head[16:], 65535)
	binary.LittleEndian.PutUint32(head[20:], 1)
	t.Write(head)
	return t
}

func (t *tape) frame(ms int64, wire int, b []byte) {
	var h [16]byte
	binary.LittleEndian.PutUint32(h[:], uint32(1_700_000_000+ms/1000))
	binary.LittleEndian.PutUint32(h[4:], uint32(ms%1000*1000))
	binary.LittleEndian.PutUint32(h[8:], uint32(len(b)))
	binary.LittleEndian.PutUint32(h[12:], uint32(max(wire, len(b))))
	t.Write(h[:])
	t.Write(b)
}

// ip is an Ethernet frame with IPv4 between 192.0.2.a and 192.0.2.b.
func ip(a, b, proto byte, l4 []byte) []byte {
	f := append([]byte{2, 0, 0, 0, 0, b, 2, 0, 0, 0, 0, a, 8, 0, 0x45, 0, 0, byte(20 + len(l4)), 0, 1, 0x40, 0, 64, proto, 0, 0, 192, 0, 2, a, 192, 0, 2, b}, l4...)
	binary.BigEndian.PutUint16(f[16:], uint16(20+len(l4)))
	return f
}

func tcpSeg(a, b byte, sp, dp uint16, seq, ack uint32, flags byte, n int) []byte {
	h := make([]byte, 20+n)
	binary.BigEndian.PutUint16(h, sp)
	binary.BigEndian.PutUint16(h[2:], dp)
	binary.BigEndian.PutUint32(h[4:], seq)
	binary.BigEndian.PutUint32(h[8:], ack)
	h[12], h[13], h[14] = 0x50, flags, 16
	return ip(a, b, 6, h)
}

func udpDatagram(a, b byte, sp, dp uint16, payload []byte) []byte {
	h := make([]byte, 8)
	binary.BigEndian.PutUint16(h, sp)
	binary.BigEndian.PutUint16(h[2:], dp)
	binary.BigEndian.PutUint16(h[4:], uint16(8+len(payload)))
	return ip(a, b, 17, append(h, payload...))
}

const query = "\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07example\x03com\x00\x00\x01\x00\x01"

// mixed has a bit of everything, with one cut frame, one step back and one loss.
func mixed() *tape {
	t := newTape()
	t.frame(0, 0, tcpSeg(1, 2, 4000, 80, 99, 0, 2, 0))
	t.frame(20, 0, tcpSeg(2, 1, 80, 4000, 499, 100, 0x12, 0))
	t.frame(21, 0, tcpSeg(1, 2, 4000, 80, 100, 500, 0x10, 0))
	t.frame(30, 0, tcpSeg(1, 2, 4000, 80, 100, 500, 0x10, 60))
	t.frame(260, 0, tcpSeg(1, 2, 4000, 80, 100, 500, 0x10, 60))
	t.frame(280, 0, tcpSeg(2, 1, 80, 4000, 500, 160, 0x10, 0))
	t.frame(281, 0, tcpSeg(2, 1, 80, 4000, 500, 0, 4, 0))
	t.frame(300, 0, udpDatagram(1, 9, 5000, 53, []byte(query)))
	t.frame(299, 0, udpDatagram(1, 9, 5000, 5353, []byte(query)))
	t.frame(310, 0, udpDatagram(1, 9, 5000, 9999, []byte("x")))
	t.frame(320, 90, ip(1, 2, 1, []byte{8, 0, 0, 0, 0, 1, 0, 1}))
	t.frame(330, 0, append([]byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1}, 0, 0, 0, 0, 0, 0, 192, 0, 2, 77))
	t.frame(340, 0, []byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 0x88, 0xcc, 1, 2, 3, 4})
	return t
}

func gather(t *testing.T, src *tape, o Options) *Facts {
	t.Helper()
	file, err := capture.New(context.Background(), bytes.NewReader(src.Bytes()), int64(src.Len()), capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, err := Collect(context.Background(), file, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCollect(t *testing.T) {
	f := gather(t, mixed(), Options{Frames: true})
	got := map[string]any{
		"packets": f.Packets, "cut": f.CutFrames, "backwards": f.Backwards, "duration ms": (f.Last - f.First) / 1e6, "TCP": f.Kinds[frame.TCP], "UDP": f.Kinds[frame.UDP],
		"ICMP": f.Kinds[frame.ICMP], "ARP": f.Kinds[frame.ARP], "other": f.Kinds[frame.Other], "streams": f.TCP.Total.Streams, "handshakes": f.TCP.Total.Handshakes,
		"queries": f.DNS.Queries, "unanswered": f.DNS.Unanswered, "other names": f.OtherNames, "UDP flows": f.App.UDP.Len(), "echo": f.Control.V4.Requests,
		"asked by ARP": len(f.Control.ARP.Targets), "largest": f.LargestIP, "senders checked": len(f.Sums), "in the file": f.Capture.Packets,
	}
	want := map[string]any{
		"packets": uint64(13), "cut": uint64(1), "backwards": uint64(1), "duration ms": int64(340), "TCP": uint64(7), "UDP": uint64(3),
		"ICMP": uint64(1), "ARP": uint64(1), "other": uint64(1), "streams": uint32(1), "handshakes": uint32(1),
		"queries": uint64(1), "unanswered": uint64(1), "other names": uint64(1), "UDP flows": 2, "echo": uint64(1),
		"asked by ARP": 1, "largest": 100, "senders checked": 2, "in the file": uint64(13),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	var packets, again, resets, rtts uint32
	var bytes uint64
	for _, b := range f.Series.Values {
		packets, again, resets, rtts, bytes = packets+b.Packets, again+b.Retransmissions, resets+b.Resets, rtts+b.RTTs, bytes+b.Bytes
	}
	if packets != 13 || again != 1 || resets != 1 || rtts == 0 || bytes != f.Wire {
		t.Errorf("series: %d packets, %d again, %d resets, %d RTTs, %d of %d bytes", packets, again, resets, rtts, bytes, f.Wire)
	}
}

// TestEach: what is seen packet by packet is what is counted in one go, and a filter
// hides the rest.
func TestEach(t *testing.T) {
	only, err := filter.Parse("tcp")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		f    *filter.Filter
		want string
	}{{nil, "[1 2 3 4 5 6 7 8 9 10 11 12 13]"}, {only, "[1 2 3 4 5 6 7]"}} {
		var seen []uint32
		segments := 0
		f := gather(t, mixed(), Options{Filter: tt.f, Each: func(p *Packet) {
			seen = append(seen, p.Frame)
			if p.TCP != nil {
				segments++
			}
			if p.Raw == nil || p.View == nil {
				t.Errorf("frame %d without its packet", p.Frame)
			}
		}})
		if fmt.Sprint(seen) != tt.want || segments != 7 || f.Packets != uint64(len(seen)) {
			t.Errorf("frames %v, %d segments, %d counted", seen, segments, f.Packets)
		}
	}
}

func TestFilterMatchesNothing(t *testing.T) {
	none, err := filter.Parse("port 1")
	if err != nil {
		t.Fatal(err)
	}
	if f := gather(t, mixed(), Options{Filter: none}); f.Packets != 0 || f.Capture.Packets != 13 || f.First != 0 || len(f.Series.Values) != 0 {
		t.Errorf("%d of %d packets, first at %d", f.Packets, f.Capture.Packets, f.First)
	}
}

func TestCancelled(t *testing.T) {
	src := mixed()
	file, err := capture.New(context.Background(), bytes.NewReader(src.Bytes()), int64(src.Len()), capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Collect(ctx, file, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestMerge(t *testing.T) {
	a := Bucket{Packets: 1, Bytes: 10, RTTs: 2, RTTMin: 5, RTTMax: 7, RTTSum: 12}
	b := Bucket{Packets: 2, Retransmissions: 1, Resets: 1, Bytes: 20, RTTs: 1, RTTMin: 3, RTTMax: 3, RTTSum: 3}
	want := Bucket{Packets: 3, Retransmissions: 1, Resets: 1, Bytes: 30, RTTs: 3, RTTMin: 3, RTTMax: 7, RTTSum: 15}
	if got := a.Merge(b); got != want {
		t.Errorf("%+v", got)
	}
	if got := b.Merge(a); got != want {
		t.Errorf("the other way: %+v", got)
	}
	if got := a.Merge(Bucket{Packets: 4}); got.RTTMin != 5 || got.RTTs != 2 || got.Packets != 5 {
		t.Errorf("with one that measured nothing: %+v", got)
	}
}
