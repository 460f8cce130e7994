package facts

import (
	"encoding/binary"
	"math/bits"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
)

const (
	sumAll    = 20_000 // segments and datagrams whose checksum is computed, whatever they are
	sumEvery  = 64     // of those that follow, one in so many
	sumHosts  = 4096
	sumFrames = 5
	maxWhole  = 1500
)

// Sums is how often the checksum of TCP and UDP holds in what one host sends. It is
// computed for the first packets of a capture and for a sample of the rest.
type Sums struct {
	Checked uint64
	Bad     uint64 // neither right nor left to the hardware
	Offload uint64 // only the pseudo header is summed up: the network card does the rest
	Frames  []uint32
	// Flow is the conversation of the first bad one.
	Flow flow.Key
	Dir  uint8
}

// sum checks a packet, when its turn has come.
func (p *pass) sum(v *frame.View) {
	f := p.f
	f.Summable++
	if f.Summable > sumAll && f.Summable%sumEvery != 0 {
		return
	}
	verdict := checksum(v)
	if verdict == sumUnknown {
		return
	}
	s := f.Sums[v.Src]
	if s == nil {
		if len(f.Sums) >= sumHosts {
			return
		}
		s = &Sums{}
		f.Sums[v.Src] = s
	}
	s.Checked++
	switch verdict {
	case sumOffload:
		s.Offload++
	case sumBad:
		s.Bad++
		if len(s.Frames) < sumFrames {
			s.Frames = append(s.Frames, p.n)
		}
		if s.Bad == 1 {
			k, reverse := flow.Make(v.Src, v.Dst, v.SPort, v.DPort, v.Proto)
			s.Flow = k
			if reverse {
				s.Dir = 1
			}
		}
	}
}

// What a checksum came to.
const (
	sumUnknown = iota // not captured completely, or none was made
	sumGood
	sumOffload
	sumBad
)

func checksum(v *frame.View) int {
	at := 16
	if v.Kind == frame.UDP {
		at = 6
	}
	if len(v.L4) != v.L4Len || v.L4Len < at+2 || v.Partial || v.Depth == 0 || v.IPLen == 0 || v.Kind == frame.UDP && len(v.L4) != int(binary.BigEndian.Uint16(v.L4[4:])) {
		return sumUnknown
	}
	field := binary.BigEndian.Uint16(v.L4[at:])
	if v.Kind == frame.UDP && field == 0 {
		return sumUnknown
	}
	pseudo := pseudo(v)
	switch {
	case fold(add(pseudo, v.L4)) == 0xffff:
		return sumGood
	case field == fold(pseudo), field == fold(pseudo-uint64(v.L4Len)): // segmentation leaves the length out
		return sumOffload
	case v.IPLen > maxWhole:
		return sumUnknown // put together by a network card that keeps the first segment's checksum
	}
	return sumBad
}

// pseudo sums up the pseudo header.
func pseudo(v *frame.View) uint64 {
	sum := uint64(v.L4Len) + uint64(v.Proto)
	for _, a := range [2]flow.Addr{v.Src, v.Dst} {
		if a.Is4() {
			sum += a.Lo>>16&0xffff + a.Lo&0xffff
			continue
		}
		for _, w := range [2]uint64{a.Hi, a.Lo} {
			sum += w>>48 + w>>32&0xffff + w>>16&0xffff + w&0xffff
		}
	}
	return sum
}

// add adds the words of b in ones' complement.
func add(sum uint64, b []byte) uint64 {
	carry := uint64(0)
	for len(b) >= 8 {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
		b = b[8:]
	}
	var last [8]byte
	copy(last[:], b)
	sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(last[:]), carry)
	sum, carry = bits.Add64(sum, 0, carry)
	return sum + carry
}

// fold makes 16 bits of a sum.
func fold(sum uint64) uint16 {
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	return uint16(sum)
}
