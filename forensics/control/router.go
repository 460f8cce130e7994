package control

import (
	"encoding/binary"
	"slices"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
)

const maxRouters = 64

// Routers are those that advertise themselves to IPv6 hosts.
type Routers struct {
	List []*Router
}

// Router is what one router advertises.
type Router struct {
	Addr     flow.Addr
	MAC      MAC
	Count    uint64
	Lifetime uint16 // seconds as a default router; 0: it is none
	Flags    uint8  // managed (0x80), other configuration (0x40), preference
	MTU      uint32
	Prefixes []Prefix
	Frames   []uint32
}

// Prefix is one that hosts may make addresses of.
type Prefix struct {
	Addr flow.Addr
	Bits uint8
}

// add takes a router advertisement (134).
func (r *Routers) add(v *frame.View, no uint32) {
	b := v.L4
	if len(b) < 16 {
		return
	}
	i := slices.IndexFunc(r.List, func(x *Router) bool { return x.Addr == v.Src && x.MAC == sender(v) })
	if i < 0 {
		if len(r.List) >= maxRouters {
			return
		}
		i = len(r.List)
		r.List = append(r.List, &Router{Addr: v.Src, MAC: sender(v)})
	}
	x := r.List[i]
	x.Count++
	x.Flags = b[5]
	x.Lifetime = max(x.Lifetime, binary.BigEndian.Uint16(b[6:]))
	note(&x.Frames, no)
	for o := b[16:]; len(o) >= 8 && o[1] > 0 && int(o[1])*8 <= len(o); o = o[int(o[1])*8:] {
		switch {
		case o[0] == 3 && o[1] == 4:
			p := Prefix{flow.V6(o[16:32]), o[2]}
			if !slices.Contains(x.Prefixes, p) && len(x.Prefixes) < evidence && o[3]&0xc0 != 0 {
				x.Prefixes = append(x.Prefixes, p)
			}
		case o[0] == 5 && o[1] == 1:
			x.MTU = binary.BigEndian.Uint32(o[4:])
		}
	}
}
