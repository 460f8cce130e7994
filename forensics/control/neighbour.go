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
	Announced         []uint32 // the first frames of them
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
		note(&a.Announced, no)
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
	Refused           []Refused // addresses that a host wanted and another one has
	probes            map[flow.Addr]probe
	target            map[flow.Addr]*Target
	owner             map[flow.Addr]MAC
	conflict          map[flow.Addr]*Conflict
}

// Refused is an address that duplicate address detection found in use.
type Refused struct {
	Addr   flow.Addr
	MACs   [2]MAC // who wanted it, and who has it or wanted it too
	Frames []uint32
}

// probe is the last solicitation from :: for an address.
type probe struct {
	mac   MAC
	frame uint32
	at    int64
}

// probeAge is how long after a detection an answer belongs to it, ns.
const probeAge = 2e9

func (n *ND) init() {
	n.probes = map[flow.Addr]probe{}
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
			n.detect(addr, sender(v), no, now)
			return
		}
		n.target = ask(n.target, &n.Targets, addr, v.Src, no, now)
		return
	}
	n.Adverts++
	if p, ok := n.probes[addr]; ok && p.mac != sender(v) && uint64(now-p.at) < probeAge {
		n.refuse(addr, p, sender(v), no)
	}
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

// sender is the link address that a frame comes from.
func sender(v *frame.View) (m MAC) {
	if len(v.MAC) >= 12 {
		m = MAC(v.MAC[6:12])
	}
	return m
}

// detect notes that a host wants an address; two at a time is a conflict as well.
func (n *ND) detect(addr flow.Addr, m MAC, no uint32, now int64) {
	if p, ok := n.probes[addr]; ok && p.mac != m && uint64(now-p.at) < probeAge {
		n.refuse(addr, p, m, no)
		return
	}
	if len(n.probes) < maxHosts {
		n.probes[addr] = probe{m, no, now}
	}
}

func (n *ND) refuse(addr flow.Addr, p probe, m MAC, no uint32) {
	delete(n.probes, addr)
	if len(n.Refused) < maxErrors && p.mac != (MAC{}) && m != (MAC{}) {
		n.Refused = append(n.Refused, Refused{addr, [2]MAC{p.mac, m}, []uint32{p.frame, no}})
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
