package trace

import (
	"encoding/binary"
	"hash/crc32"

	"ghostbot/forensics/frame"
)

// castagnoli is a polynomial that processors know, as they know the one of Ethernet.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is a hash of 64 bits out of two checksums that cost next to nothing. It tells packets apart; it
// does not keep anybody from making two that are alike.
func sum(b []byte) uint64 {
	return uint64(crc32.ChecksumIEEE(b))<<32 | uint64(crc32.Checksum(b, castagnoli))
}

// FromView makes a record of a decoded frame. A fragment is taken as it is on the wire, whether or
// not it completes a datagram. A frame without an IP packet has neither addresses nor a protocol.
func FromView(number uint32, time int64, v *frame.View) Packet {
	p := Packet{Frame: int(number), Time: time}
	if v.Depth == 0 {
		return p
	}
	p.Src, p.Dst, p.Proto = v.Src.Netip(), v.Dst.Netip(), v.Proto
	p.TTL, p.TOS, p.ID, p.Size, p.DontFragment = v.TTL, v.TOS, uint32(v.ID), v.IPLen, v.DF
	body, n := v.L4, v.L4Len
	if v.Layers&frame.HasFragment != 0 && (v.Whole || v.Kind == frame.Fragment || v.Partial) {
		body, n = p.part(v.IP, v.IPLen)
	}
	if p.Offset == 0 {
		body, n = p.transport(body, n)
	}
	p.Len, p.Cut, p.Sum = max(n, 0), len(body) < n, sum(body)
	return p
}

// part reads the header of a fragment and returns what follows it.
func (p *Packet) part(ip []byte, n int) ([]byte, int) {
	if len(ip) >= 20 && ip[0]>>4 == 4 {
		off := binary.BigEndian.Uint16(ip[6:])
		p.MoreFragments, p.Offset = off&0x2000 != 0, off<<3
		head := min(int(ip[0]&15)*4, len(ip))
		return ip[head:], n - head
	}
	at := 40
	for next := byte(0); at+8 <= len(ip); {
		if at == 40 {
			next = ip[6]
		}
		if next == 44 {
			off := binary.BigEndian.Uint16(ip[at+2:])
			p.MoreFragments, p.Offset, p.ID = off&1 != 0, off&^7, binary.BigEndian.Uint32(ip[at+4:])
			at += 8
			break
		}
		next, at = ip[at], at+8+8*int(ip[at+1])
	}
	at = min(at, len(ip))
	return ip[at:], n - at
}

// transport reads what is behind the IP header and returns the payload, with its length on the wire.
func (p *Packet) transport(b []byte, n int) ([]byte, int) {
	if len(b) < 8 {
		return b, n
	}
	switch p.Proto {
	case TCP:
		return p.segment(b, n)
	case UDP:
		p.SrcPort, p.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	case ICMP, ICMPv6:
		p.Window = binary.BigEndian.Uint16(b)
		switch b[0] {
		case 0, 8, 128, 129:
			p.SrcPort, p.Seq = binary.BigEndian.Uint16(b[4:]), uint32(binary.BigEndian.Uint16(b[6:]))
			p.DstPort = p.SrcPort
		default:
			return quoted(b, n)
		}
	default:
		return b, n
	}
	return b[8:], n - 8
}

// quoted is the transport header that an ICMP error quotes: its first eight bytes.
func quoted(b []byte, n int) ([]byte, int) {
	head := 8 + 40
	if len(b) > 8 && b[8]>>4 == 4 {
		head = 8 + int(b[8]&15)*4
	}
	if n < head+8 || len(b) < head+8 {
		return b[8:], n - 8
	}
	return b[head : head+8], 8
}

// segment reads a TCP header.
func (p *Packet) segment(b []byte, n int) ([]byte, int) {
	p.SrcPort, p.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	p.Seq = binary.BigEndian.Uint32(b[4:])
	if len(b) < 20 {
		return nil, n
	}
	p.Ack, p.Flags, p.Window = binary.BigEndian.Uint32(b[8:]), b[13]&0x3f, binary.BigEndian.Uint16(b[14:])
	head := int(b[12]>>4) * 4
	if head < 20 {
		return nil, n
	}
	p.options(b[20:max(20, min(head, len(b)))])
	return b[min(head, len(b)):], n - head
}

func (p *Packet) options(o []byte) {
	for len(o) > 0 && o[0] != 0 {
		if o[0] == 1 {
			o = o[1:]
			continue
		}
		if len(o) < 2 || o[1] < 2 || int(o[1]) > len(o) {
			return
		}
		v := o[2:o[1]]
		switch {
		case o[0] == 2 && len(v) == 2:
			p.Options |= OptMSS
			p.MSS = binary.BigEndian.Uint16(v)
		case o[0] == 3:
			p.Options |= OptScale
		case o[0] == 4:
			p.Options |= OptSACKPermitted
		case o[0] == 8 && len(v) == 8:
			p.Options |= OptTimestamps
			p.TSVal, p.TSEcr = binary.BigEndian.Uint32(v), binary.BigEndian.Uint32(v[4:])
		}
		o = o[o[1]:]
	}
}
