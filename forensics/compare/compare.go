// Package compare sets two captures against each other.
//
// Endpoints takes two captures of the same traffic at two points, A and B, matches their packets one
// to one and says what happened between the points: what was lost, repeated, reordered, delayed or
// altered in each direction, and which segment is at fault. Its rooms: clock, how the clocks of the
// captures differ; baseline, what became worse between two captures of different times.
//
// How packets are matched. Packets belong to flows (protocol, addresses, ports); a flow of A is that
// of B with the same key, or, behind NAT, the one that carries the same sequence numbers and
// payloads. Within one direction of a flow, packets are equal when sequence and acknowledgement
// number, flags, length and payload are. Which other fields survive the path (IP ID, TCP timestamps,
// payload itself where captures are cut) is learned from packets that are unique in both files; those
// that survive then tell a retransmission from its original. What still looks alike is matched in
// order, with the delay that the path has shown.
//
// What is never compared: packets that no router forwards (ARP, neighbour discovery, multicast,
// broadcast), and flows of which the other point cannot be expected to see anything.
//
// The package is pure: it reads no files and starts nothing.
package compare

import (
	"net/netip"

	"ghostbot/forensics/trace"
)

// point is one of the two captures.
type point int

const (
	pointA point = iota
	pointB
)

func (p point) other() point { return 1 - p }

func (p point) String() string { return [...]string{"A", "B"}[p] }

// flowKey names a flow independently of its direction: lo is the smaller end. Fragments have no
// ports that can be relied on, so all of a pair of hosts are one flow.
type flowKey struct {
	proto  uint8
	frag   bool
	lo, hi netip.AddrPort
}

// flow is the packets of one capture with one key, by direction: 0 from lo to hi.
type flow struct {
	key    flowKey
	first  int // index of its first packet
	packet [2][]int
	isn    [2]uint32
	hasISN [2]bool
	mate   *flow
	// turned says that direction 0 here is direction 1 of mate.
	turned bool
}

// side is one capture grouped into flows, in the order of their first packets.
type side struct {
	packets []trace.Packet
	flows   []*flow
	byKey   map[flowKey]*flow
	skipped int
	seen    map[netip.Addr]bool
}

func group(packets []trace.Packet) *side {
	s := &side{packets: packets, byKey: map[flowKey]*flow{}, seen: map[netip.Addr]bool{}}
	for i := range packets {
		p := &packets[i]
		if !p.Routed() {
			s.skipped++
			continue
		}
		s.seen[p.Src], s.seen[p.Dst] = true, true
		key, dir := keyOf(p)
		f := s.byKey[key]
		if f == nil {
			f = &flow{key: key, first: i}
			s.byKey[key] = f
			s.flows = append(s.flows, f)
		}
		f.packet[dir] = append(f.packet[dir], i)
		if p.Proto == trace.TCP && p.Flags&trace.SYN != 0 && !f.hasISN[dir] {
			f.isn[dir], f.hasISN[dir] = p.Seq, true
		}
	}
	return s
}

// key returns the flow of a packet and its direction in it.
func keyOf(p *trace.Packet) (flowKey, int) {
	src, dst := netip.AddrPortFrom(p.Src, p.SrcPort), netip.AddrPortFrom(p.Dst, p.DstPort)
	k := flowKey{proto: p.Proto, frag: p.Fragment()}
	if k.frag {
		src, dst = netip.AddrPortFrom(p.Src, 0), netip.AddrPortFrom(p.Dst, 0)
	}
	if src.Compare(dst) <= 0 {
		k.lo, k.hi = src, dst
		return k, 0
	}
	k.lo, k.hi = dst, src
	return k, 1
}

// ends are source and destination of a direction.
func (f *flow) ends(dir int) (src, dst netip.AddrPort) {
	if dir == 0 {
		return f.key.lo, f.key.hi
	}
	return f.key.hi, f.key.lo
}

// pairFlows finds the flow of b for each flow of a: the one with the same key, else the one with the
// same content (NAT).
func pairFlows(a, b *side) {
	for _, f := range a.flows {
		if g := b.byKey[f.key]; g != nil {
			f.mate, g.mate = g, f
		}
	}
	places := map[token]place{}
	for _, g := range b.flows {
		if g.mate == nil {
			g.tokens(b.packets, func(t token, dir int) {
				if old, taken := places[t]; taken && old.flow != g {
					places[t] = place{} // in two flows: says nothing
				} else if !taken {
					places[t] = place{g, dir}
				}
			})
		}
	}
	for _, f := range a.flows {
		if f.mate == nil {
			f.translated(a.packets, places)
		}
	}
}

// token is what a packet keeps under NAT.
type token struct {
	proto uint8
	flags uint8
	kind  uint16
	seq   uint32
	len   int
	sum   uint64
}

type place struct {
	flow *flow
	dir  int
}

// tokensOfFlow bounds the work for one flow: NAT shows in its first packets.
const tokensOfFlow = 64

// tokens visits what packets keep, of those that are unlikely to be equal by chance.
func (f *flow) tokens(packets []trace.Packet, visit func(token, int)) {
	for dir, list := range f.packet {
		for _, i := range list[:min(len(list), tokensOfFlow)] {
			p := &packets[i]
			t := token{proto: p.Proto, len: p.Len, sum: p.Sum}
			switch {
			case f.key.frag || p.Cut && p.Proto != trace.TCP:
				continue
			case p.Proto == trace.TCP:
				if p.Len == 0 && p.Flags&trace.SYN == 0 {
					continue
				}
				t.seq, t.flags = p.Seq, p.Flags&(trace.SYN|trace.FIN|trace.RST)
				if p.Cut {
					t.sum = 0
				}
			case p.Len < 8:
				continue
			case p.Proto == trace.ICMP || p.Proto == trace.ICMPv6:
				t.kind, t.seq = p.Window, p.Seq
			}
			visit(t, dir)
		}
	}
}

// translated gives f the flow that has most of its tokens.
func (f *flow) translated(packets []trace.Packet, places map[token]place) {
	votes := map[place]int{}
	f.tokens(packets, func(t token, dir int) {
		if at := places[t]; at.flow != nil && at.flow.mate == nil {
			votes[place{at.flow, at.dir ^ dir}]++
		}
	})
	var best place
	for at, n := range votes {
		if best.flow == nil || n > votes[best] || n == votes[best] && at.flow.first < best.flow.first {
			best = at
		}
	}
	if best.flow != nil {
		f.mate, best.flow.mate = best.flow, f
		f.turned, best.flow.turned = best.dir == 1, best.dir == 1
	}
}
