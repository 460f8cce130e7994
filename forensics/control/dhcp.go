package control

import (
	"encoding/binary"
	"slices"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/stat"
)

// Message types of DHCP.
const (
	dhcpDiscover = 1
	dhcpOffer    = 2
	dhcpRequest  = 3
	dhcpDecline  = 4
	dhcpACK      = 5
	dhcpNAK      = 6
)

const maxLeases = 64 // servers

// DHCP counts messages by type, follows transactions, and keeps what each server says.
type DHCP struct {
	Types    [19]uint64
	Servers  []*DHCPServer
	NAKs     uint64
	Declines uint64
	Frames   []uint32  // of NAKs
	Declined []uint32  // frames of DECLINEs: the address was in use
	Time     stat.Dist // first message of a client to the ACK
	asked    map[uint32]*exchange
	byServer map[flow.Addr]*DHCPServer
}

// DHCPServer is what one server offers. Addresses are those of its last offer or ACK.
type DHCPServer struct {
	ID                 flow.Addr // option 54, else the sender
	Router             flow.Addr
	Mask               uint32
	Given              flow.Addr // the last address that it gave
	Offers, ACKs, NAKs uint64
	Frames             []uint32
}

// Net is the network of the addresses that the server gives; zero when it says none.
func (s *DHCPServer) Net() uint32 { return uint32(s.Given.Lo) & s.Mask }

// exchange is one transaction.
type exchange struct {
	frame                   uint32
	first                   int64
	discovers, requests     uint32
	offered, acked, refused bool
}

// DHCP4 takes the payload of a datagram of ports 67 and 68.
func (l *Log) DHCP4(v *frame.View, no uint32, now int64) {
	b := v.Payload()
	if len(b) < 240 || binary.BigEndian.Uint32(b[236:]) != 0x63825363 {
		return
	}
	d := &l.DHCP
	if d.asked == nil {
		d.asked, d.byServer = map[uint32]*exchange{}, map[flow.Addr]*DHCPServer{}
	}
	o := dhcpOptions(b[240:])
	d.Types[min(int(o.typ), len(d.Types)-1)]++
	x := d.exchange(binary.BigEndian.Uint32(b[4:]), o.typ, no, now)
	switch o.typ {
	case dhcpDiscover:
		x.discovers++
	case dhcpRequest:
		x.requests++
	case dhcpDecline:
		d.Declines++
		note(&d.Declined, no)
	case dhcpOffer, dhcpACK, dhcpNAK:
		d.answer(v, b, &o, x, no, now)
	}
}

func note(list *[]uint32, no uint32) {
	if len(*list) < evidence {
		*list = append(*list, no)
	}
}

// exchange finds or begins a transaction. Beyond the budget they share one that nobody looks at.
func (d *DHCP) exchange(xid uint32, typ uint8, no uint32, now int64) *exchange {
	x := d.asked[xid]
	if x == nil {
		x = &exchange{frame: no, first: now}
		if len(d.asked) < maxErrors && (typ == dhcpDiscover || typ == dhcpRequest) {
			d.asked[xid] = x
		}
	}
	return x
}

func (d *DHCP) answer(v *frame.View, b []byte, o *options, x *exchange, no uint32, now int64) {
	id := o.server
	if id == (flow.Addr{}) {
		id = v.Src
	}
	s := d.byServer[id]
	if s == nil {
		s = &DHCPServer{ID: id}
		if len(d.Servers) < maxLeases {
			d.byServer[id] = s
			d.Servers = append(d.Servers, s)
		}
	}
	note(&s.Frames, no)
	if given := flow.V4(b[16:20]); o.typ != dhcpNAK && !given.IsZero() {
		s.Given, s.Router, s.Mask = given, o.router, o.mask
	}
	switch o.typ {
	case dhcpOffer:
		s.Offers++
		x.offered = true
	case dhcpACK:
		s.ACKs++
		if !x.acked {
			d.Time.Add(now - x.first)
		}
		x.acked = true
	case dhcpNAK:
		s.NAKs++
		d.NAKs++
		x.refused = true
		note(&d.Frames, no)
	}
}

// Unanswered returns the frames of transactions that no server answered, in order.
func (d *DHCP) Unanswered() (out []uint32) {
	for _, x := range d.asked {
		if !x.offered && !x.acked && !x.refused {
			out = append(out, x.frame)
		}
	}
	slices.Sort(out)
	return out
}

// Repeated returns the frames of transactions that were asked more than once and never
// answered, in order.
func (d *DHCP) Repeated() (out []uint32) {
	for _, x := range d.asked {
		if !x.offered && !x.acked && !x.refused && x.discovers+x.requests > 1 {
			out = append(out, x.frame)
		}
	}
	slices.Sort(out)
	return out
}

// Ignored returns the frames of transactions that looked for a server (DISCOVER) and got
// no offer, in order.
func (d *DHCP) Ignored() (out []uint32) {
	for _, x := range d.asked {
		if x.discovers > 0 && x.requests == 0 && !x.offered {
			out = append(out, x.frame)
		}
	}
	slices.Sort(out)
	return out
}

// Complete is how many transactions ended with an address.
func (d *DHCP) Complete() (n int) {
	for _, x := range d.asked {
		if x.acked {
			n++
		}
	}
	return n
}

// options are those that matter here.
type options struct {
	typ            uint8
	server, router flow.Addr
	mask           uint32
}

func dhcpOptions(o []byte) (out options) {
	for len(o) >= 2 && o[0] != 255 {
		if o[0] == 0 {
			o = o[1:]
			continue
		}
		n := int(o[1])
		if len(o) < 2+n {
			return out
		}
		v := o[2 : 2+n]
		switch {
		case o[0] == 53 && n == 1:
			out.typ = v[0]
		case o[0] == 54 && n == 4:
			out.server = flow.V4(v)
		case o[0] == 3 && n >= 4:
			out.router = flow.V4(v)
		case o[0] == 1 && n == 4:
			out.mask = binary.BigEndian.Uint32(v)
		}
		o = o[2+n:]
	}
	return out
}
