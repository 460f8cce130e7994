package pcapgen

import (
	"encoding/binary"
)

const (
	etherLen = 14
	ipLen    = 20
	udpLen   = 8
	icmpLen  = 8

	protoICMP = 1
	protoTCP  = 6
	protoUDP  = 17

	window      = 4096 // times 128: never reached, so that no segment fills it
	windowScale = 7
)

// TCP flags.
const (
	fin = 1 << iota
	syn
	rst
	psh
	ack
)

// endpoint is an IPv4 address with a port.
type endpoint struct {
	addr uint32
	port uint16
}

// ether writes an Ethernet header. An address's MAC is 02:00 and the address; 0 as destination is
// the broadcast.
func ether(b []byte, src, dst uint32, kind uint16) {
	binary.BigEndian.PutUint16(b, 0x0200)
	binary.BigEndian.PutUint32(b[2:], dst)
	if dst == 0 {
		binary.BigEndian.PutUint16(b, 0xffff)
		binary.BigEndian.PutUint32(b[2:], 0xffffffff)
	}
	binary.BigEndian.PutUint16(b[6:], 0x0200)
	binary.BigEndian.PutUint32(b[8:], src)
	binary.BigEndian.PutUint16(b[12:], kind)
}

// ip starts an IPv4 packet and returns the room for its n bytes of content.
func (c *capture) ip(src, dst uint32, proto uint8, n int) []byte {
	b := c.frame(etherLen + ipLen + n)
	ether(b, src, dst, 0x0800)
	c.id++
	h := b[etherLen:]
	binary.BigEndian.PutUint32(h, 0x45000000|uint32(ipLen+n))
	binary.BigEndian.PutUint32(h[4:], uint32(c.id)<<16|0x4000) // DF
	binary.BigEndian.PutUint32(h[8:], 64<<24|uint32(proto)<<16)
	binary.BigEndian.PutUint32(h[12:], src)
	binary.BigEndian.PutUint32(h[16:], dst)
	sum := 0x4500 + uint64(ipLen+n) + uint64(c.id) + 0x4000 + 64<<8 + uint64(proto) + half(src) + half(dst)
	binary.BigEndian.PutUint16(h[10:], fold(sum))
	return h[ipLen:]
}

// segment is what varies between TCP segments. The payload is n bytes of the text at seq.
type segment struct {
	from, to endpoint
	seq, ack uint32
	flags    uint8
	n        int
	// left and right are a SACK block when they differ.
	left, right uint32
}

// tcp writes a segment.
func (c *capture) tcp(s segment) {
	c.stats.TCP++
	head := 32
	switch {
	case s.flags&syn != 0:
		head = 40
	case s.left != s.right:
		head = 44
	}
	b := c.ip(s.from.addr, s.to.addr, protoTCP, head+s.n)
	binary.BigEndian.PutUint32(b, uint32(s.from.port)<<16|uint32(s.to.port))
	binary.BigEndian.PutUint32(b[4:], s.seq)
	binary.BigEndian.PutUint32(b[8:], s.ack)
	binary.BigEndian.PutUint32(b[12:], uint32(head/4)<<28|uint32(s.flags)<<16|window)
	binary.BigEndian.PutUint32(b[16:], 0)
	c.options(b[20:head], s)
	sum := words(b[:head]) + half(s.from.addr) + half(s.to.addr) + protoTCP + uint64(head+s.n)
	if s.n > 0 {
		sum += c.text.put(b[head:], s.seq)
	}
	binary.BigEndian.PutUint16(b[16:], fold(sum))
}

// options fills the options of a segment. Both ends have the same clock for timestamps.
func (c *capture) options(o []byte, s segment) {
	ms := uint32(c.now / 1000)
	echo := ms
	if s.flags&ack == 0 {
		echo = 0
	}
	if s.flags&syn != 0 {
		binary.BigEndian.PutUint32(o, 0x02040000|1460)
		binary.BigEndian.PutUint32(o[4:], 0x0402080a) // SACK permitted, timestamps
		binary.BigEndian.PutUint32(o[8:], ms)
		binary.BigEndian.PutUint32(o[12:], echo)
		binary.BigEndian.PutUint32(o[16:], 0x01030300|windowScale)
		return
	}
	binary.BigEndian.PutUint32(o, 0x0101080a)
	binary.BigEndian.PutUint32(o[4:], ms)
	binary.BigEndian.PutUint32(o[8:], echo)
	if len(o) > 12 {
		binary.BigEndian.PutUint32(o[12:], 0x0101050a)
		binary.BigEndian.PutUint32(o[16:], s.left)
		binary.BigEndian.PutUint32(o[20:], s.right)
	}
}

// udp starts a datagram and returns the room for its n bytes; seal ends it.
func (c *capture) udp(from, to endpoint, n int) []byte {
	c.stats.UDP++
	b := c.ip(from.addr, to.addr, protoUDP, udpLen+n)
	binary.BigEndian.PutUint32(b, uint32(from.port)<<16|uint32(to.port))
	binary.BigEndian.PutUint32(b[4:], uint32(udpLen+n)<<16)
	return b[udpLen:]
}

// seal computes the checksum of the datagram that was written last, n bytes of content.
func (c *capture) seal(n int) {
	at := len(c.buf) - udpLen - n
	b := c.buf[at:]
	sum := words(b) + words(c.buf[at-8:at]) + protoUDP + uint64(len(b)) // the addresses stand before it
	check := fold(sum)
	if check == 0 {
		check = 0xffff
	}
	binary.BigEndian.PutUint16(b[6:], check)
}

// echo writes an echo request (8) or reply (0) with n bytes of content.
func (c *capture) echo(kind uint8, src, dst uint32, id, seq uint16, n int) {
	c.stats.ICMP++
	b := c.ip(src, dst, protoICMP, icmpLen+n)
	binary.BigEndian.PutUint32(b, uint32(kind)<<24)
	binary.BigEndian.PutUint32(b[4:], uint32(id)<<16|uint32(seq))
	sum := words(b[:icmpLen]) + c.text.put(b[icmpLen:], uint32(seq))
	binary.BigEndian.PutUint16(b[2:], fold(sum))
}

// arp writes a request (1) to everybody or a reply (2).
func (c *capture) arp(op uint16, sender, target uint32) {
	c.stats.ARP++
	b := c.frame(42)
	to := target
	if op == 1 {
		to = 0
	}
	ether(b, sender, to, 0x0806)
	a := b[etherLen:]
	binary.BigEndian.PutUint32(a, 1<<16|0x0800)
	binary.BigEndian.PutUint32(a[4:], 0x0604<<16|uint32(op))
	binary.BigEndian.PutUint16(a[8:], 0x0200)
	binary.BigEndian.PutUint32(a[10:], sender)
	binary.BigEndian.PutUint32(a[14:], sender)
	clear(a[18:24])
	if op == 2 {
		binary.BigEndian.PutUint16(a[18:], 0x0200)
		binary.BigEndian.PutUint32(a[20:], target)
	}
	binary.BigEndian.PutUint32(a[24:], target)
}

// half is the sum of an address's two words.
func half(a uint32) uint64 { return uint64(a>>16) + uint64(a&0xffff) }

// words is the sum of big-endian 16-bit words; an odd last byte counts as the high one.
func words(b []byte) uint64 {
	var sum uint64
	for ; len(b) >= 4; b = b[4:] {
		sum += half(binary.BigEndian.Uint32(b))
	}
	if len(b) >= 2 {
		sum += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		sum += uint64(b[0]) << 8
	}
	return sum
}

// fold is the Internet checksum (RFC 1071) of a sum of words.
func fold(sum uint64) uint16 {
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

const (
	textLen  = 4096
	textMask = 1023
)

// payload is the text that payloads are cut from, with running sums so that no payload has to be
// summed: sums[i] is the sum of the words from i's parity up to byte i.
type payload struct {
	text []byte
	sums []uint64
}

func newPayload() payload {
	p := payload{make([]byte, textLen), make([]uint64, textLen+2)}
	r := rng{0x7e57}
	for i := range p.text {
		p.text[i] = byte(' ' + r.int(95))
	}
	for i := 0; i+1 < textLen; i++ {
		p.sums[i+2] = p.sums[i] + uint64(binary.BigEndian.Uint16(p.text[i:]))
	}
	return p
}

// put copies the text at seq to b and returns its sum; b begins at an even offset.
func (p *payload) put(b []byte, seq uint32) uint64 {
	at := int(seq & textMask)
	copy(b, p.text[at:])
	end := at + len(b)&^1
	sum := p.sums[end] - p.sums[at]
	if len(b)&1 != 0 {
		sum += uint64(p.text[end]) << 8
	}
	return sum
}
