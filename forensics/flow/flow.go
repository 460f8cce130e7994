// Package flow holds what every room that follows conversations shares: addresses
// and keys of fixed size, and a table of records without pointers.
//
// A [Key] is the conversation, not the direction: both ends of a conversation have
// the same key. [Make] says on which side the sender stands. Tunnels, VLANs and
// interfaces are not part of it.
//
// A [Table] keeps records in chunks of equal size, so that growing copies nothing,
// and finds them through open addressing over 64-bit slots. Records are never
// moved: a pointer stays good until [Table.Retire] gives its record up.
package flow

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// Addr is an IP address of either family; IPv4 is kept in its mapped form.
type Addr struct{ Hi, Lo uint64 }

const mapped = 0xffff << 32

// V4 makes an address of four bytes.
func V4(b []byte) Addr { return Addr{0, mapped | uint64(binary.BigEndian.Uint32(b))} }

// V6 makes an address of sixteen bytes.
func V6(b []byte) Addr {
	return Addr{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

// Is4 reports whether the address is IPv4.
func (a Addr) Is4() bool { return a.Hi == 0 && a.Lo>>32 == 0xffff }

// IsZero reports whether the address is 0.0.0.0, :: or unset.
func (a Addr) IsZero() bool { return a.Hi == 0 && (a.Lo == 0 || a.Lo == mapped) }

// Multicast reports whether the address is a group (or the limited broadcast).
func (a Addr) Multicast() bool {
	if a.Is4() {
		return uint32(a.Lo)>>28 == 0xe || uint32(a.Lo) == 0xffffffff
	}
	return a.Hi>>56 == 0xff
}

// LinkLocal reports whether the address never leaves its link.
func (a Addr) LinkLocal() bool {
	if a.Is4() {
		return uint32(a.Lo)>>16 == 0xa9fe
	}
	return a.Hi>>54 == 0xfe80>>6
}

// Netip returns the address in the form of the standard library.
func (a Addr) Netip() netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], a.Hi)
	binary.BigEndian.PutUint64(b[8:], a.Lo)
	return netip.AddrFrom16(b).Unmap()
}

// String writes the address as people do.
func (a Addr) String() string {
	if a == (Addr{}) {
		return "::"
	}
	return a.Netip().String()
}

func (a Addr) less(b Addr) bool { return a.Hi < b.Hi || a.Hi == b.Hi && a.Lo < b.Lo }

// Key identifies a conversation: both addresses, both ports (or other numbers) and
// the protocol. A is the smaller end.
type Key struct {
	A, B  Addr
	Ports uint64 // port of A << 32 | port of B << 16 | protocol
}

// Make returns the key of a conversation and whether the sender is its B.
func Make(src, dst Addr, sport, dport uint16, proto uint8) (k Key, reverse bool) {
	reverse = k.Set(&src, &dst, sport, dport, proto)
	return k, reverse
}

// Set makes k the key that [Make] returns. It moves addresses in the halves that they are made of: what was written
// in halves a moment ago is not there to be read as a whole.
func (k *Key) Set(src, dst *Addr, sport, dport uint16, proto uint8) (reverse bool) {
	if dst.less(*src) || *src == *dst && dport < sport {
		src, dst, sport, dport, reverse = dst, src, dport, sport, true
	}
	k.A.Hi, k.A.Lo, k.B.Hi, k.B.Lo = src.Hi, src.Lo, dst.Hi, dst.Lo
	k.Ports = uint64(sport)<<32 | uint64(dport)<<16 | uint64(proto)
	return reverse
}

// same is k == o, without a call.
func (k *Key) same(o *Key) bool {
	return k.B.Lo == o.B.Lo && k.A.Lo == o.A.Lo && k.Ports == o.Ports && k.A.Hi == o.A.Hi && k.B.Hi == o.B.Hi
}

// PortA is the port of A.
func (k *Key) PortA() uint16 { return uint16(k.Ports >> 32) }

// PortB is the port of B.
func (k *Key) PortB() uint16 { return uint16(k.Ports >> 16) }

// End returns the address and port of A (0) or B (1).
func (k *Key) End(i int) (Addr, uint16) {
	if i == 0 {
		return k.A, k.PortA()
	}
	return k.B, k.PortB()
}

// Multipliers of the hash: odd numbers with well mixed bits (fractional digits of
// the golden ratio and of the roots of 2 and 3).
const (
	mix1 = 0x9e3779b97f4a7c15
	mix2 = 0x6a09e667f3bcc909
	mix3 = 0xbb67ae8584caa73b
)

// Hash mixes all bits of the key with a secret seed, so that nobody can choose keys
// that collide.
func (k *Key) Hash(seed uint64) uint64 {
	h1, l1 := bits.Mul64(k.A.Lo^mix1^seed, k.B.Lo^mix2)
	x := h1 ^ l1
	if k.A.Hi|k.B.Hi != 0 {
		h2, l2 := bits.Mul64(k.A.Hi^mix2, k.B.Hi^mix3^seed)
		x ^= h2 ^ l2
	}
	h3, l3 := bits.Mul64(x^k.Ports^mix3, mix1^seed)
	return h3 ^ l3
}
