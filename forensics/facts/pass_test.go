package facts

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/forensics/capture"
)

// ipv4 writes a frame with an IPv4 packet.
func ipv4(src, dst, proto byte, body []byte) []byte {
	b := make([]byte, 34, 34+len(body))
	b[0], b[6], b[12], b[14], b[22], b[23] = 2, 2, 8, 0x45, 64, proto
	b[5], b[11] = dst, src
	binary.BigEndian.PutUint16(b[16:], uint16(20+len(body)))
	copy(b[26:], []byte{192, 0, 2, src})
	copy(b[30:], []byte{192, 0, 2, dst})
	return append(b, body...)
}

func ports(src, dst uint16, body []byte) []byte {
	b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, src), dst)
	return append(binary.BigEndian.AppendUint16(append(b, 0, 0)[:4], uint16(8+len(body))), append([]byte{0, 0}, body...)...)
}

// question is a DNS message; the upper bit of flags makes it an answer.
func question(id, flags uint16) []byte {
	b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, id), flags)
	b = append(b, 0, 1, 0, byte(flags>>15), 0, 0, 0, 0)
	return append(b, "\x01a\x07example\x03com\x00\x00\x01\x00\x01"...)
}

func segment(sport, dport uint16, flags byte, seq, ack uint32, body []byte) []byte {
	b := make([]byte, 20)
	binary.BigEndian.PutUint16(b, sport)
	binary.BigEndian.PutUint16(b[2:], dport)
	binary.BigEndian.PutUint32(b[4:], seq)
	binary.BigEndian.PutUint32(b[8:], ack)
	b[12], b[13], b[15] = 5<<4, flags, 100
	return append(b, body...)
}

// mixture is a capture in which DNS changes between UDP and TCP, ICMP errors quote
// segments, and everything else stands between.
func mixture(rnd *rand.Rand, n int) []byte {
	le := binary.LittleEndian
	file := make([]byte, 24)
	le.PutUint32(file, 0xa1b2c3d4)
	le.PutUint32(file[16:], 1<<16)
	file[20] = 1
	seq := [4]uint32{1, 1, 1, 1}
	late := rnd.IntN(n) // no DNS over TCP before
	for i := range n {
		var b []byte
		id, port := uint16(rnd.IntN(30)), uint16(3000+rnd.IntN(4))
		flags := uint16(rnd.IntN(2)) << 15
		kind := rnd.IntN(7)
		if kind == 2 && i < late {
			kind = 5
		}
		switch kind {
		case 0, 1:
			b = ipv4(1, 53, 17, ports(port, 53, question(id, 0)))
			if flags != 0 {
				b = ipv4(53, 1, 17, ports(53, port, question(id, flags)))
			}
		case 2:
			m := question(id, 0)
			m = append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...)
			b = ipv4(1, 53, 6, segment(port, 53, 0x18, seq[port-3000], 1, m))
			seq[port-3000] += uint32(len(m))
		case 3:
			quoted := ipv4(1, 9, 6, segment(port, 80, 2, 7, 0, nil))[14:]
			b = ipv4(254, 1, 1, append([]byte{3, 1, 0, 0, 0, 0, 0, 0}, quoted...))
		case 4:
			b = ipv4(1, 9, 6, segment(port, 80, byte(rnd.IntN(32)), uint32(rnd.IntN(5)*10), uint32(rnd.IntN(5)*10), make([]byte, rnd.IntN(20))))
		case 5:
			b = ipv4(1, 8, 17, ports(port, 4000, []byte("hello")))
		default:
			b = ipv4(1, 7, 1, []byte{byte(rnd.IntN(2) * 8), 0, 0, 0, 0, 1, 0, byte(rnd.IntN(9))})
		}
		file = le.AppendUint32(le.AppendUint32(file, uint32(1e9+i/1000)), uint32(i%1000*1000))
		file = append(le.AppendUint32(le.AppendUint32(file, uint32(len(b))), uint32(len(b))), b...)
	}
	return file
}

// collect makes the pass and writes down everything that it found.
func collect(t *testing.T, file []byte, o Options) string {
	t.Helper()
	f, err := capture.New(context.Background(), bytes.NewReader(file), int64(len(file)), capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o.Frames = true
	found, err := Collect(context.Background(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	d := found.DNS
	b, err := json.Marshal(map[string]any{
		"packets": found.Packets, "kinds": found.Kinds, "layers": found.Layers, "series": found.Series, "tcp": found.TCP.Total, "frames": found.TCP.Frames,
		"dns": []any{d.Queries, d.Responses, d.Unanswered, d.Resends, d.Retries, d.Unsolicited, d.Open, d.Names}, "errors": found.Control.Errors, "echo": found.Control.V4.Matched,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestStages compares the pass whose stages take turns for each packet with those
// whose stages run at the same time or take turns for each batch.
func TestStages(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 10 {
		file := mixture(rnd, 3000)
		seen := 0
		want := collect(t, file, Options{Each: func(p *Packet) { seen++ }})
		if seen != 3000 {
			t.Errorf("%d packets seen", seen)
		}
		for cores := 1; cores <= 3; cores++ {
			old := runtime.GOMAXPROCS(cores)
			got := collect(t, file, Options{})
			runtime.GOMAXPROCS(old)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("packet by packet (-), %d cores (+):\n%s", cores, diff)
			}
		}
	}
}

// TestLate: what waits for its batch to be followed holds pieces of the file, of which there
// are few. A file of more of them than there are must come to its end.
func TestLate(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	file := mixture(rand.New(rand.NewPCG(2, 2)), 60_000)
	if len(file) < 16*256<<10 {
		t.Fatalf("%d bytes are too few", len(file))
	}
	if diff := cmp.Diff(collect(t, file, Options{Each: func(*Packet) {}}), collect(t, file, Options{})); diff != "" {
		t.Errorf("packet by packet (-), in batches (+):\n%s", diff)
	}
}
