package app

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"testing"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
)

// TestSecrets derives the keys of RFC 9001, appendix A.1, and RFC 9369, appendix A.1.
func TestSecrets(t *testing.T) {
	id, _ := hex.DecodeString("8394c8f03e515708")
	for _, tt := range []struct {
		version uint32
		side    int
		iv      string
	}{{quic1, 0, "fa044b2f42a3fd3b46fb255c"}, {quic1, 1, "0ac1493ca1905853b0bba03e"}, {quic2, 0, "91f73e2351d8fa91660e909f"}, {quic2, 1, "dd13c276499c0249d3310652"}} {
		keys, err := secrets(tt.version, id)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(keys[tt.side].iv[:]); got != tt.iv {
			t.Errorf("version %x, side %d: iv %s, want %s", tt.version, tt.side, got, tt.iv)
		}
	}
	for text, n := range map[string]int{"key": 16, "iv": 12, "hp": 16} {
		if b, err := label(bytes.Repeat([]byte{1}, 32), "quic "+text, n); err != nil || len(b) != n {
			t.Errorf("%s: %x, %v", text, b, err)
		}
	}
}

func number(v int) []byte { return []byte{0x40 | byte(v>>8), byte(v)} }

// sealedInitial makes an Initial packet as an endpoint does.
func sealedInitial(t *testing.T, version uint32, original, to []byte, client bool, pn byte, frames []byte) []byte {
	t.Helper()
	keys, err := secrets(version, original)
	if err != nil {
		t.Fatal(err)
	}
	s := keys[1]
	if client {
		s = keys[0]
	}
	for len(frames) < 40 {
		frames = append(frames, 0)
	}
	first := byte(0xc0)
	if version == quic2 {
		first = 0xd0
	}
	p := binary.BigEndian.AppendUint32([]byte{first}, version)
	p = append(append(p, byte(len(to))), to...)
	p = append(p, 4, 's', 'r', 'c', '1', 0) // source ID, no token
	p = append(p, number(1+len(frames)+16)...)
	at := len(p)
	p = append(p, pn)
	nonce := s.iv
	nonce[11] ^= pn
	p = append(p, s.body.Seal(nil, nonce[:], frames, p)...)
	var mask [16]byte
	s.head.Encrypt(mask[:], p[at+4:at+20])
	p[0] ^= mask[0] & 0x0f
	p[at] ^= mask[1]
	return p
}

// hello is a client's hello that asks for a name.
func hello(name string) []byte {
	n := len(name)
	ext := append([]byte{0, 0, 0, byte(n + 5), 0, byte(n + 3), 0, 0, byte(n)}, name...)
	b := append([]byte{3, 3}, make([]byte, 32)...)
	b = append(b, 0, 0, 2, 0x13, 1, 1, 0, 0, byte(len(ext)))
	b = append(b, ext...)
	return append([]byte{1, 0, 0, byte(len(b))}, b...)
}

// crypto is a frame with a part of a handshake.
func crypto(at int, b []byte) []byte {
	return append(append(append([]byte{6}, number(at)...), number(len(b))...), b...)
}

func closing(code int, reason string) []byte {
	return append(append(append(append([]byte{0x1c}, number(code)...), 6), byte(len(reason))), reason...)
}

// datagram hands one to a log; back is from the server.
func datagram(l *Log, no uint32, back bool, payload []byte) {
	v := frame.View{Src: flow.V4([]byte{192, 0, 2, 1}), Dst: flow.V4([]byte{198, 51, 100, 2}), SPort: 50000, DPort: 443, L4: append(make([]byte, 8), payload...)}
	if back {
		v.Src, v.Dst, v.SPort, v.DPort = v.Dst, v.Src, v.DPort, v.SPort
	}
	v.L4Len = len(v.L4)
	l.Datagram(&v, no, int64(no)*1e6)
}

// TestInitial reads the name that a client asks for and why the server ends it, in both
// versions, with parts in any order, and after a Retry.
func TestInitial(t *testing.T) {
	original := []byte("original")
	h := hello("www.example.com")
	for _, version := range []uint32{quic1, quic2} {
		l := New()
		datagram(l, 1, false, sealedInitial(t, version, original, original, true, 0, append(crypto(20, h[20:]), 1, 0)))
		datagram(l, 2, false, sealedInitial(t, version, original, original, true, 0, crypto(20, h[20:]))) // again
		if len(l.QUIC.Names) != 0 {
			t.Errorf("a name from half a hello: %q", l.QUIC.Names)
		}
		datagram(l, 3, false, sealedInitial(t, version, original, original, true, 1, crypto(0, h[:20])))
		ack := []byte{2, 1, 0, 0, 1}
		datagram(l, 4, true, sealedInitial(t, version, original, []byte("src1"), false, 0, append(ack, closing(0x128, "no name of that kind")...)))
		if fmt.Sprint(l.QUIC.Names) != "[www.example.com]" {
			t.Errorf("version %x: names %q", version, l.QUIC.Names)
		}
		if c := l.QUIC.Closes; len(c) != 1 || c[0].Name() != "TLS alert handshake_failure" || c[0].ByClient || c[0].Frames[0] != 4 {
			t.Errorf("version %x: %+v", version, c)
		}
	}
	l := New()
	datagram(l, 1, false, sealedInitial(t, quic1, original, original, true, 0, crypto(0, h)))
	retry := append([]byte{0xf0, 0, 0, 0, 1, 4, 's', 'r', 'c', '1', 3, 'n', 'e', 'w'}, make([]byte, 30)...)
	datagram(l, 2, true, retry)
	datagram(l, 3, false, sealedInitial(t, quic1, []byte("new"), []byte("new"), true, 1, crypto(0, h)))
	datagram(l, 4, true, sealedInitial(t, quic1, []byte("new"), []byte("src1"), false, 0, closing(2, "")))
	if c := l.QUIC.Closes; len(c) != 1 || c[0].Name() != "CONNECTION_REFUSED" || l.QUIC.Retry != 1 {
		t.Errorf("after a Retry: %+v", c)
	}
}

// TestInitialSaysNothing: what cannot be opened, was changed or comes without its beginning
// is no evidence.
func TestInitialSaysNothing(t *testing.T) {
	original := []byte("original")
	whole := sealedInitial(t, quic1, original, original, true, 0, crypto(0, hello("www.example.com")))
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 0x40
		l := New()
		datagram(l, 1, false, b)
		if len(l.QUIC.Names)+len(l.QUIC.Closes) > 0 {
			t.Fatalf("byte %d changed: %+v", i, l.QUIC)
		}
		datagram(l, 2, false, whole[:i])
	}
	l := New()
	datagram(l, 1, true, sealedInitial(t, quic1, original, []byte("src1"), false, 0, closing(2, "")))
	if len(l.QUIC.Closes) != 0 {
		t.Errorf("without the client: %+v", l.QUIC.Closes)
	}
}

func TestCloses(t *testing.T) {
	var q QUIC
	for i := range uint64(100) {
		q.closed(i%70, i%2 == 0, uint32(i))
	}
	q.closed(0, true, 7)
	if len(q.Closes) != 64 || q.Closes[0].Count != 3 || len(q.Closes[0].Frames) != 3 {
		t.Errorf("%d, %+v", len(q.Closes), q.Closes[0])
	}
	for code, want := range map[uint64]string{2: "CONNECTION_REFUSED", 0x100 + 70: "TLS alert protocol_version", 0x100 + 200: "TLS alert alert", 0x7777: "another reason"} {
		if got := (&Close{Code: code}).Name(); got != want {
			t.Errorf("%x: %s", code, got)
		}
	}
}

func TestVarint(t *testing.T) {
	for _, tt := range []struct {
		b    string
		want uint64
		ok   bool
	}{{"25", 37, true}, {"7bbd", 15293, true}, {"9d7f3e7d", 494878333, true}, {"c2197c5eff14e88c", 151288809941952652, true}, {"", 0, false}, {"40", 0, false}, {"c2197c5eff14e8", 0, false}} {
		b, _ := hex.DecodeString(tt.b)
		if got, _, ok := varint(b); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %d, %v", tt.b, got, ok)
		}
	}
}

// FuzzInitial opens what a client sends with its own keys, so that the frames inside are
// what the fuzzer chooses; nothing may panic, and no name may hold more than a name does.
func FuzzInitial(f *testing.F) {
	f.Add(crypto(0, hello("www.example.com")), true)
	f.Add(closing(2, "x"), false)
	f.Add([]byte{3, 1, 2, 3, 4, 5, 6, 7, 8, 9}, false)
	f.Fuzz(func(t *testing.T, frames []byte, raw bool) {
		if len(frames) > 1200 {
			return
		}
		l := New()
		original := []byte("original")
		if raw {
			datagram(l, 1, false, append([]byte{0xc0, 0, 0, 0, 1}, frames...))
		}
		datagram(l, 2, false, sealedInitial(t, quic1, original, original, true, 0, frames))
		datagram(l, 3, true, sealedInitial(t, quic1, original, []byte("src1"), false, 0, frames))
		for _, n := range l.QUIC.Names {
			if len(n) > 253 {
				t.Fatalf("%q", n)
			}
		}
	})
}
