package control

import (
	"encoding/binary"
	"slices"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
)

// MAC is an Ethernet address.
type MAC [6]byte

// String writes the address with colons.
func (m MAC) String() string {
	const hex = "0123456789abcdef"
	b := make([]byte, 0, 17)
	for i, c := range m {
		if i > 0 {
			b = append(b, ':')
		}
		b = append(b, hex[c>>4], hex[c&15])
	}
	return string(b)
}

// Virtual reports whether the address belongs to a redundancy protocol, whose
// address moves on purpose: VRRP (RFC 5798), HSRP 1 and 2, GLBP.
func (m MAC) Virtual() bool {
	p := uint32(m[0])<<16 | uint32(m[1])<<8 | uint32(m[2])
	return p == 0x00005e && m[3] == 0 || p == 0x00000c && m[3] == 7 && m[4] == 0xac || p == 0x00000c && m[3] == 0x9f || p == 0x0007b4
}

// Conflict is an address that more than one MAC claims.
type Conflict struct {
	Addr   flow.Addr
	MACs   []MAC // the owner first
	Frames []uint32
	Count  uint64
}

// Target is an address that somebody asks for.
type Target struct {
	Addr     flow.Addr
	Asked    uint64
	Answered bool
	Frames   []uint32
	Asker    flow.Addr
	FirstAt  int64
	LastAt   int64
}

// ARP is the address resolution of IPv4.
type ARP struct {
	Requests, Replies uint64
	Gratuitous        uint64
	Probes            uint64
	Duplicate         uint64 // frames that tshark would flag
	Conflicts         []*Conflict
	Targets           []*Target
	owner             map[flow.Addr]MAC
	target            map[flow.Addr]*Target
	conflict          map[flow.Addr]*Conflict
}

func (a *ARP) init() {
	a.owner, a.target, a.conflict = map[flow.Addr]MAC{}, map[flow.Addr]*Target{}, map[flow.Addr]*Conflict{}
}

// ARP4 takes an ARP packet.
func (l *Log) ARP4(v *frame.View, no uint32, now int64) {
	b := v.L4
	if len(b) < 8 {
		return
	}
	a := &l.ARP
	op := binary.BigEndian.Uint16(b[6:])
	switch op {
	case 1:
		a.Requests++
	case 2:
		a.Replies++
	default:
		return
	}
	if len(b) < 28 || b[4] != 6 || b[5] != 4 || binary.BigEndian.Uint16(b[2:]) != 0x0800 {
		return
	}
	src, dst := flow.V4(b[14:18]), flow.V4(b[24:28])
	a.claim(src, MAC(b[8:14]), no)
	if op == 2 {
		a.claim(dst, MAC(b[18:24]), no)
	}
	switch {
	case src == dst:
		a.Gratuitous++
		a.answer(src)
		return
	case src.IsZero():
		a.Probes++
		if op == 1 {
			return
		}
	}
	if op == 2 {
		a.answer(src)
		return
	}
	a.target = ask(a.target, &a.Targets, dst, src, no, now)
}

// claim notes that a MAC uses an address.
func (a *ARP) claim(ip flow.Addr, m MAC, no uint32) {
	if ip.IsZero() || ip.Multicast() || m == (MAC{}) || m[0]&1 != 0 {
		return
	}
	own, ok := a.owner[ip]
	if !ok {
		if len(a.owner) < maxHosts {
			a.owner[ip] = m
		}
		return
	}
	if own == m {
		return
	}
	a.Duplicate++
	c := a.conflict[ip]
	if c == nil {
		if len(a.Conflicts) >= maxErrors {
			return
		}
		c = &Conflict{Addr: ip, MACs: []MAC{own}}
		a.conflict[ip] = c
		a.Conflicts = append(a.Conflicts, c)
	}
	c.Count++
	if !slices.Contains(c.MACs, m) && len(c.MACs) < evidence {
		c.MACs = append(c.MACs, m)
	}
	if len(c.Frames) < evidence {
		c.Frames = append(c.Frames, no)
	}
}

func (a *ARP) answer(ip flow.Addr) {
	if t := a.target[ip]; t != nil {
		t.Answered = true
	} else if len(a.Targets) < maxHosts { // an answer may come before the question that is asked again
		t := &Target{Addr: ip, Answered: true}
		a.target[ip] = t
		a.Targets = append(a.Targets, t)
	}
}

func ask(m map[flow.Addr]*Target, list *[]*Target, ip, by flow.Addr, no uint32, now int64) map[flow.Addr]*Target {
	t := m[ip]
	if t == nil {
		if len(*list) >= maxHosts {
			return m
		}
		t = &Target{Addr: ip}
		m[ip] = t
		*list = append(*list, t)
	}
	if t.Asked == 0 {
		t.FirstAt, t.Asker = now, by
	}
	t.Asked++
	t.LastAt = now
	if len(t.Frames) < evidence {
		t.Frames = append(t.Frames, no)
	}
	return m
}

// Owner is the MAC that an address was seen with first.
func (a *ARP) Owner(ip flow.Addr) (MAC, bool) {
	m, ok := a.owner[ip]
	return m, ok
}

// ND is neighbour discovery.
type ND struct {
	Solicits, Adverts uint64
	Detections        uint64 // of duplicate addresses: solicitations from ::
	Targets           []*Target
	Conflicts         []*Conflict
	target            map[flow.Addr]*Target
	owner             map[flow.Addr]MAC
	conflict          map[flow.Addr]*Conflict
}

func (n *ND) init() {
	n.target, n.owner, n.conflict = map[flow.Addr]*Target{}, map[flow.Addr]MAC{}, map[flow.Addr]*Conflict{}
}

// add takes a solicitation (135) or an advertisement (136).
func (n *ND) add(v *frame.View, no uint32, now int64) {
	b := v.L4
	if len(b) < 24 {
		return
	}
	addr := flow.V6(b[8:24])
	if b[0] == 135 {
		n.Solicits++
		if v.Src.IsZero() {
			n.Detections++
			return
		}
		n.target = ask(n.target, &n.Targets, addr, v.Src, no, now)
		return
	}
	n.Adverts++
	t := n.target[addr]
	if t == nil && len(n.Targets) < maxHosts {
		t = &Target{Addr: addr}
		n.target[addr] = t
		n.Targets = append(n.Targets, t)
	}
	if t != nil {
		t.Answered = true
	}
	if len(b) >= 32 && b[24] == 2 && b[25] == 1 {
		n.claim(addr, MAC(b[26:32]), no)
	}
}

func (n *ND) claim(ip flow.Addr, m MAC, no uint32) {
	own, ok := n.owner[ip]
	switch {
	case !ok && len(n.owner) < maxHosts:
		n.owner[ip] = m
		return
	case !ok || own == m:
		return
	}
	c := n.conflict[ip]
	if c == nil {
		if len(n.Conflicts) >= maxErrors {
			return
		}
		c = &Conflict{Addr: ip, MACs: []MAC{own}}
		n.conflict[ip] = c
		n.Conflicts = append(n.Conflicts, c)
	}
	c.Count++
	if !slices.Contains(c.MACs, m) && len(c.MACs) < evidence {
		c.MACs = append(c.MACs, m)
	}
	if len(c.Frames) < evidence {
		c.Frames = append(c.Frames, no)
	}
}

// DHCP counts messages by type, and the exchanges that nobody answered.
type DHCP struct {
	Types   [19]uint64
	Asked   map[uint32]uint32 // transaction to the frame of its first request
	Frames  []uint32
	Replies map[uint32]bool
	Servers map[flow.Addr]uint64
	NAKs    uint64
}

// DHCP4 takes the payload of a datagram of ports 67 and 68.
func (l *Log) DHCP4(v *frame.View, no uint32) {
	b := v.Payload()
	if len(b) < 240 || binary.BigEndian.Uint32(b[236:]) != 0x63825363 {
		return
	}
	d := &l.DHCP
	if d.Asked == nil {
		d.Asked, d.Replies, d.Servers = map[uint32]uint32{}, map[uint32]bool{}, map[flow.Addr]uint64{}
	}
	xid, typ := binary.BigEndian.Uint32(b[4:]), dhcpType(b[240:])
	d.Types[min(int(typ), len(d.Types)-1)]++
	switch {
	case typ == 1 || typ == 3:
		if _, ok := d.Asked[xid]; !ok && len(d.Asked) < maxErrors {
			d.Asked[xid] = no
		}
	case typ == 2 || typ == 5 || typ == 6:
		if len(d.Replies) < maxErrors {
			d.Replies[xid] = true
			d.Servers[v.Src]++
		}
		if typ == 6 {
			d.NAKs++
			if len(d.Frames) < evidence {
				d.Frames = append(d.Frames, no)
			}
		}
	}
}

// Unanswered returns the frames of requests that no server answered.
func (d *DHCP) Unanswered() []uint32 {
	var out []uint32
	for xid, no := range d.Asked {
		if !d.Replies[xid] {
			out = append(out, no)
		}
	}
	slices.Sort(out)
	return out
}

func dhcpType(o []byte) uint8 {
	for len(o) >= 2 && o[0] != 255 {
		if o[0] == 0 {
			o = o[1:]
			continue
		}
		n := int(o[1])
		if len(o) < 2+n {
			return 0
		}
		if o[0] == 53 && n == 1 {
			return o[2]
		}
		o = o[2+n:]
	}
	return 0
}
