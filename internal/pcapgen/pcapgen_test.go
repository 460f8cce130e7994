package pcapgen

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// generate writes a capture to memory.
func generate(t *testing.T, o Options) ([]byte, Stats) {
	t.Helper()
	var b bytes.Buffer
	st, err := Write(&b, o)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), st
}

// TestBytes pins what the profiles write: a change of these hashes makes figures of before and
// after incomparable, so it needs a reason.
func TestBytes(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{"bulk", 4 << 20, 0}, "460e1f83f1f9f6fc"},
		{Options{"flows", 4 << 20, 0}, "fa8867fb775e6d9a"},
		{Options{"small", 4 << 20, 0}, "90d0b516252e7e91"},
		{Options{"small", 1 << 20, 7}, "3f1f36b50afb9867"},
	} {
		b, _ := generate(t, tt.o)
		sum := sha256.Sum256(b)
		if got := hex.EncodeToString(sum[:8]); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.o, got, tt.want)
		}
	}
}

func TestSameAgainAndOtherSeeds(t *testing.T) {
	for _, p := range Profiles() {
		a, st := generate(t, Options{p.Name, 1 << 20, 0})
		b, again := generate(t, Options{p.Name, 1 << 20, p.Seed})
		if !bytes.Equal(a, b) || st != again {
			t.Errorf("%s: not the same bytes twice", p.Name)
		}
		if c, _ := generate(t, Options{p.Name, 1 << 20, p.Seed + 1}); bytes.Equal(a, c) {
			t.Errorf("%s: the seed does not matter", p.Name)
		}
	}
}

func TestSize(t *testing.T) {
	for _, p := range Profiles() {
		for _, size := range []int64{1, 1000, 100_000, 5_000_000} {
			b, st := generate(t, Options{p.Name, size, 0})
			if int64(len(b)) < size || int64(len(b)) > size+64<<10 || st.Bytes != int64(len(b)) {
				t.Errorf("%s of %d bytes: %d bytes, stats say %d", p.Name, size, len(b), st.Bytes)
			}
		}
	}
}

// frame is what the test reads of one frame with an independent decoder.
type frame struct {
	at  int64
	pkt gopacket.Packet
}

func decode(t *testing.T, b []byte, visit func(i int, f frame)) {
	t.Helper()
	r, err := pcapgo.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if r.LinkType() != layers.LinkTypeEthernet || r.Snaplen() != snapLen {
		t.Errorf("link type %v, snap length %d", r.LinkType(), r.Snaplen())
	}
	for i := 1; ; i++ {
		data, ci, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || ci.CaptureLength != ci.Length {
			t.Fatalf("frame %d: %d of %d bytes, %v", i, ci.CaptureLength, ci.Length, err)
		}
		visit(i, frame{ci.Timestamp.UnixMicro(), gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default)})
	}
}

// TestFrames decodes every frame: no error, times that never go back, checksums that are those that
// gopacket computes, and the counts of the stats.
func TestFrames(t *testing.T) {
	for _, p := range Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			b, want := generate(t, Options{p.Name, 3 << 20, 0})
			var got Stats
			last := int64(0)
			decode(t, b, func(i int, f frame) {
				if f.at < last {
					t.Fatalf("frame %d: time goes back", i)
				}
				last = f.at
				if e := f.pkt.ErrorLayer(); e != nil {
					t.Fatalf("frame %d: %v", i, e.Error())
				}
				if !bytes.HasPrefix(rewritten(t, f.pkt), f.pkt.Data()) { // gopacket pads to 60 bytes
					t.Fatalf("frame %d differs from what gopacket writes (length or checksum):\n%s", i, f.pkt.Dump())
				}
				count(&got, f.pkt)
			})
			// These need state; tshark judges them in another test.
			got.DuplicateACKs, got.Lost, got.Late, got.Resent = want.DuplicateACKs, want.Lost, want.Late, want.Resent
			got.SYNUnanswered, got.Refused, got.QueriesUnanswered = want.SYNUnanswered, want.Refused, want.QueriesUnanswered
			got.EchoesUnanswered, got.Connections = want.EchoesUnanswered, want.Connections
			got.Bytes = int64(len(b))
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("stats (-) and frames (+):\n%s", d)
			}
		})
	}
}

// rewritten serializes a packet again with lengths and checksums of gopacket's own.
func rewritten(t *testing.T, p gopacket.Packet) []byte {
	t.Helper()
	var ls []gopacket.SerializableLayer
	var net gopacket.NetworkLayer
	for _, l := range p.Layers() {
		switch l := l.(type) {
		case *layers.IPv4:
			net = l
		case *layers.TCP:
			_ = l.SetNetworkLayerForChecksum(net)
		case *layers.UDP:
			_ = l.SetNetworkLayerForChecksum(net)
		case *layers.DNS: // its name compression is not gopacket's: taken as bytes
			ls = append(ls, gopacket.Payload(l.LayerContents()))
			continue
		}
		s, ok := l.(gopacket.SerializableLayer)
		if !ok {
			t.Fatalf("layer %v", l.LayerType())
		}
		ls = append(ls, s)
	}
	out := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(out, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ls...); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func count(st *Stats, p gopacket.Packet) {
	st.Packets++
	for _, l := range p.Layers() {
		switch l := l.(type) {
		case *layers.TCP:
			st.TCP++
		case *layers.UDP:
			st.UDP++
		case *layers.ICMPv4:
			st.ICMP++
			if l.TypeCode.Type() == layers.ICMPv4TypeEchoRequest {
				st.Echoes++
			}
		case *layers.ARP:
			st.ARP++
		case *layers.DNS:
			switch {
			case !l.QR:
				st.Queries++
			case l.ResponseCode == layers.DNSResponseCodeNXDomain:
				st.NXDomain++
			case l.ResponseCode == layers.DNSResponseCodeServFail:
				st.ServFail++
			}
		}
	}
}

// TestShares compares the mixes with what they are said to be.
func TestShares(t *testing.T) {
	near := func(what string, got, want, by float64) {
		t.Helper()
		if got < want-by || got > want+by {
			t.Errorf("%s: %.4f, want %.4f", what, got, want)
		}
	}
	_, b := generate(t, Options{"bulk", 64 << 20, 0})
	near("bulk: mean frame", float64(b.Bytes-fileHeader)/float64(b.Packets)-recordHeader, 1027, 10)
	near("bulk: lost", float64(b.Lost)/float64(b.TCP)*1.5, 0.001, 0.0003)
	near("bulk: late", float64(b.Late)/float64(b.TCP)*1.5, 0.0005, 0.0003)
	_, s := generate(t, Options{"small", 16 << 20, 0})
	n := float64(s.Packets)
	near("small: mean frame", float64(s.Bytes-fileHeader)/n-recordHeader, 111, 4)
	near("small: TCP", float64(s.TCP)/n, 0.6, 0.03)
	near("small: DNS and other UDP", float64(s.UDP)/n, 0.34, 0.03)
	near("small: ICMP", float64(s.ICMP)/n, 0.05, 0.01)
	near("small: ARP", float64(s.ARP)/n, 0.01, 0.003)
	near("small: NXDOMAIN", float64(s.NXDomain)/float64(s.Queries), 0.03, 0.01)
	_, f := generate(t, Options{"flows", 64 << 20, 0})
	near("flows: packets of a session", float64(f.Packets)/float64(f.Queries), 24.6, 0.7)
	near("flows: bytes of a session", float64(f.Bytes)/float64(f.Queries), 16104, 400)
	near("flows: refused", float64(f.Refused)/float64(f.Queries), 0.01, 0.005)
	near("flows: unanswered", float64(f.SYNUnanswered)/float64(f.Queries), 0.01, 0.005)
}

// TestPlan compares what a session is said to take with what it takes.
func TestPlan(t *testing.T) {
	var seen [refused + 1]int
	for seed := uint64(1); seed < 3000; seed++ {
		c := newCapture(io.Discard, seed)
		s := c.plan(uint32(seed))
		seen[s.outcome]++
		want := s.bytes() + fileHeader
		for c.play(s) >= 0 {
		}
		if c.total != want {
			t.Fatalf("seed %d, outcome %d: %d bytes, planned %d", seed, s.outcome, c.total, want)
		}
	}
	for outcome, n := range seen {
		if n == 0 {
			t.Errorf("outcome %d never came up", outcome)
		}
	}
}

func TestHeap(t *testing.T) {
	var h heap
	r := rng{42}
	for i := range 1000 {
		h.push(event{at: int64(r.int(50)), seq: uint64(i)})
	}
	var last event
	for n := 0; len(h) > 0; n++ {
		if h[0].before(last) {
			t.Fatalf("%v after %v", h[0], last)
		}
		last = h[0]
		if n%3 == 0 {
			h.wait(int64(r.int(20)))
		} else {
			h.pop()
		}
	}
}

func TestErrors(t *testing.T) {
	if _, err := Write(io.Discard, Options{Profile: "large", Size: 1}); !errors.Is(err, ErrProfile) || err.Error() != `no such profile: "large", have bulk, flows, small` {
		t.Errorf("%v", err)
	}
	for _, p := range Profiles() {
		w := &brokenPipe{left: 3 << 20}
		if _, err := Write(w, Options{p.Name, 1 << 40, 0}); !errors.Is(err, io.ErrClosedPipe) || w.calls > 4 {
			t.Errorf("%s: %v after %d writes", p.Name, err, w.calls)
		}
	}
}

// brokenPipe fails after some bytes.
type brokenPipe struct{ left, calls int }

func (w *brokenPipe) Write(b []byte) (int, error) {
	w.calls++
	if w.left -= len(b); w.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

func BenchmarkWrite(b *testing.B) {
	for _, p := range Profiles() {
		b.Run(p.Name, func(b *testing.B) {
			b.SetBytes(64 << 20)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Write(io.Discard, Options{p.Name, 64 << 20, 0}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestCrowd: as many connections as were asked for, five packets each, and the error of a full disk.
func TestCrowd(t *testing.T) {
	var b bytes.Buffer
	st, err := Crowd(&b, 300)
	if err != nil || st.Connections != 300 || st.Packets != 1500 || st.TCP != 1500 || st.Bytes != int64(b.Len()) {
		t.Errorf("%+v, %d bytes, %v", st, b.Len(), err)
	}
	seen := map[string]bool{}
	for rest := b.Bytes()[fileHeader:]; len(rest) > 0; {
		n := recordHeader + int(binary.LittleEndian.Uint32(rest[8:]))
		if f := rest[recordHeader:n]; f[47] == syn {
			seen[string(f[26:38])] = true
		}
		rest = rest[n:]
	}
	if len(seen) != 300 {
		t.Errorf("%d connections told apart", len(seen))
	}
	if _, err := Crowd(failing{}, 1e5); err == nil || !strings.HasPrefix(err.Error(), "writing a capture of 100000 connections: ") {
		t.Errorf("a full disk: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
