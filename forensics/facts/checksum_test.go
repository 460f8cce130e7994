package facts

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
)

// plain is the checksum of RFC 1071, word by word.
func plain(v *frame.View, payload []byte) uint16 {
	var b []byte
	for _, a := range [2]flow.Addr{v.Src, v.Dst} {
		raw := a.Netip().As16()
		if a.Is4() {
			b = append(b, raw[12:]...)
		} else {
			b = append(b, raw[:]...)
		}
	}
	b = append(b, 0, 0, byte(len(payload)>>8), byte(len(payload)), 0, 0, 0, v.Proto)
	b = append(b, payload...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	sum := uint32(0)
	for ; len(b) > 0; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

func made(r *rand.Rand, v6, udp bool, n int) *frame.View {
	v := &frame.View{Src: flow.V4([]byte{192, 0, 2, 1}), Dst: flow.V4([]byte{198, 51, 100, 200}), Kind: frame.TCP, Proto: 6, Depth: 1}
	if v6 {
		v.Src, v.Dst = flow.Addr{Hi: r.Uint64(), Lo: r.Uint64()}, flow.Addr{Hi: r.Uint64(), Lo: r.Uint64()}
	}
	head, at := 20, 16
	if udp {
		v.Kind, v.Proto, head, at = frame.UDP, 17, 8, 6
	}
	v.L4 = make([]byte, head+n)
	for i := range v.L4 {
		v.L4[i] = byte(r.Uint32())
	}
	if udp {
		binary.BigEndian.PutUint16(v.L4[4:], uint16(len(v.L4)))
	}
	v.L4Len, v.IPLen = len(v.L4), len(v.L4)+20
	binary.BigEndian.PutUint16(v.L4[at:], 0)
	binary.BigEndian.PutUint16(v.L4[at:], plain(v, v.L4))
	return v
}

func TestChecksum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		v6, udp := i%2 == 1, i%3 == 0
		v := made(r, v6, udp, i)
		at := 16
		if udp {
			at = 6
		}
		if got := checksum(v); got != sumGood {
			t.Fatalf("%d bytes, IPv6 %v, UDP %v: %d", i, v6, udp, got)
		}
		right := binary.BigEndian.Uint16(v.L4[at:])
		binary.BigEndian.PutUint16(v.L4[at:], fold(pseudo(v)))
		if got := checksum(v); got != sumOffload {
			t.Fatalf("%d bytes, left to the hardware: %d", i, got)
		}
		binary.BigEndian.PutUint16(v.L4[at:], fold(pseudo(v)-uint64(v.L4Len)))
		if got := checksum(v); got != sumOffload {
			t.Fatalf("%d bytes, segmentation left to the hardware: %d", i, got)
		}
		binary.BigEndian.PutUint16(v.L4[at:], right)
		v.L4[r.IntN(at)&^1] ^= 1 << r.IntN(8)
		if udp {
			continue // its length may have changed
		}
		if got := checksum(v); got != sumBad {
			t.Fatalf("%d bytes, one bit changed: %d", i, got)
		}
	}
}

func TestChecksumUnknown(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for what, change := range map[string]func(*frame.View){
		"cut":                   func(v *frame.View) { v.L4 = v.L4[:len(v.L4)-1] },
		"a fragment":            func(v *frame.View) { v.Partial = true },
		"no length":             func(v *frame.View) { v.IPLen = 0 },
		"short":                 func(v *frame.View) { v.L4, v.L4Len = v.L4[:10], 10 },
		"no checksum":           func(v *frame.View) { v.Kind, v.L4[4], v.L4[5], v.L4[6], v.L4[7] = frame.UDP, 0, byte(len(v.L4)), 0, 0 },
		"put together by a NIC": func(v *frame.View) { v.IPLen = 3000; v.L4[16] ^= 0x55 },
	} {
		v := made(r, false, false, 100)
		change(v)
		if got := checksum(v); got != sumUnknown {
			t.Errorf("%s: %d", what, got)
		}
	}
}

// TestSample: all of the first packets are checked, then one in so many, and senders are
// bounded.
func TestSample(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := pass{f: &Facts{Sums: map[flow.Addr]*Sums{}}}
	v := made(r, false, false, 10)
	for range sumAll + 10*sumEvery {
		p.sum(v)
	}
	if s := p.f.Sums[v.Src]; s.Checked != sumAll+10 || s.Bad != 0 {
		t.Errorf("%+v", s)
	}
	p.f.Summable = 0
	v.L4[3] ^= 1
	for i := range 7 {
		p.n = uint32(i + 1)
		p.sum(v)
	}
	if s := p.f.Sums[v.Src]; s.Bad != 7 || len(s.Frames) != sumFrames || s.Frames[0] != 1 || s.Dir != 0 {
		t.Errorf("%+v", s)
	}
	for i := range uint64(sumHosts + 100) {
		w := *v
		w.Src.Lo += i << 1
		p.sum(&w)
	}
	if len(p.f.Sums) > sumHosts {
		t.Errorf("%d senders", len(p.f.Sums))
	}
}

// FuzzChecksum compares with the sum of RFC 1071, word by word.
func FuzzChecksum(f *testing.F) {
	f.Add([]byte("0123456789012345678901"), true)
	f.Fuzz(func(t *testing.T, b []byte, v6 bool) {
		if len(b) < 18 || len(b) > 1400 {
			return
		}
		v := &frame.View{Src: flow.Addr{Hi: 1, Lo: 7}, Dst: flow.Addr{Hi: 2, Lo: 9}, Kind: frame.TCP, Proto: 6, Depth: 1, L4: b, L4Len: len(b), IPLen: len(b) + 40}
		if !v6 {
			v.Src, v.Dst = flow.V4([]byte{10, 0, 0, 1}), flow.V4([]byte{10, 0, 0, 2})
		}
		if good := plain(v, b) == 0; good != (checksum(v) == sumGood) {
			t.Fatalf("%x: %v, %d", b, good, checksum(v))
		}
	})
}
