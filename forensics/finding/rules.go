package finding

import (
	"cmp"
	"fmt"
	"slices"

	"ghostbot/forensics/control"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding/hints"
	"ghostbot/forensics/finding/services"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/semantic/text"
	"ghostbot/forensics/tcp"
)

// All applies every rule to the facts and orders what they say. A rule that explains
// a connection keeps later rules from explaining it again: the order of the rules is
// the order of causes, from the link upwards.
func All(f *facts.Facts) []Finding {
	if f.Packets == 0 {
		return []Finding{services.Nothing(f)}
	}
	c := survey(f)
	for _, rule := range []func(*inquiry){
		(*inquiry).copies, (*inquiry).duplicateAddress, (*inquiry).loops, (*inquiry).neighbours, (*inquiry).unreachable, (*inquiry).mtu, (*inquiry).fragments,
		(*inquiry).flood, (*inquiry).backlog, (*inquiry).asymmetric, (*inquiry).refused, (*inquiry).silent,
		(*inquiry).resets, (*inquiry).deadPeers, (*inquiry).windows, (*inquiry).outage, (*inquiry).spikes, (*inquiry).loss, (*inquiry).order, (*inquiry).delay,
		(*inquiry).names, (*inquiry).handshakes, (*inquiry).statuses, (*inquiry).waits, (*inquiry).ports,
	} {
		rule(c)
	}
	for _, x := range append(hints.All(f), services.All(f)...) {
		c.add(x)
	}
	return c.verdict()
}

// inquiry is the state of the rules.
type inquiry struct {
	f         *facts.Facts
	conns     []*conn
	numbers   map[uint32]*conn
	flows     map[string]*conn // by the name that findings print
	services  map[end]*service
	listed    []*service          // the same, by their first connection: findings do not depend on chance
	hops      map[flow.Addr]uint8 // TTL with which a host's own packets arrive
	out       []Finding
	copying   bool // the capture has packets twice
	oneWay    bool // it has one direction only
	conflict  map[flow.Addr]bool
	icmpAbout map[flow.Addr]bool // destinations that ICMP errors explain
}

// end is a service: address and port.
type end struct {
	a flow.Addr
	p uint16
}

// conn is a connection with its details.
type conn struct {
	k         *flow.Key
	s         *tcp.Stream
	d         *tcp.Detail
	client    int // which end; a guess when the beginning is missing
	sure      bool
	explained string
}

func (c *conn) side(i int) *tcp.Side { return &c.d.Side[i] }
func (c *conn) half(i int) *tcp.Half { return &c.s.Half[i] }
func (c *conn) server() int          { return c.client ^ 1 }
func (c *conn) addr(i int) flow.Addr { a, _ := c.k.End(i); return a }
func (c *conn) flow() string {
	return text.End(c.k, c.client) + " -> " + text.End(c.k, c.server())
}

// rtt is the smallest round trip that was seen, ns.
func (c *conn) rtt() int64 {
	best := c.s.InitialRTT
	for i := range c.d.RTT {
		if r := &c.d.RTT[i]; r.N > 0 && r.Max > best && r.Min > 0 && best == 0 {
			best = r.Min
		}
	}
	return best
}

// near reports that the capture point is near to end i: what it sends is acknowledged
// late, what it gets at once.
func (c *conn) near(i int) bool {
	a, b := &c.d.RTT[i], &c.d.RTT[i^1]
	if a.N > 0 && b.N > 0 {
		return a.Min > b.Min
	}
	if c.s.InitialRTT == 0 && a.N > 0 { // nothing to compare with: a host next to it answers sooner
		return a.Min > 3e6
	}
	return c.s.HalfRTT > c.s.InitialRTT/2 == (i == c.client)
}

// service is what happened at one address and port.
type service struct {
	end          end
	conns        []*conn
	opened       int
	refused      int
	silent       int
	resyn        int // opened, but only after the SYN was sent again
	unserved     int // opened, asked, acknowledged, never answered
	served       int
	half         int // SYN-ACK sent, never acknowledged
	attempts     int
	firstRefused int64
}

const maxConns = 200_000

func survey(f *facts.Facts) *inquiry {
	c := &inquiry{f: f, services: map[end]*service{}, hops: map[flow.Addr]uint8{}, conflict: map[flow.Addr]bool{}, icmpAbout: map[flow.Addr]bool{}}
	var room []conn
	f.TCP.Table.All(func(_ uint32, k *flow.Key, s *tcp.Stream) bool {
		if len(room) == 0 {
			room = make([]conn, 256)
		}
		x := &room[0]
		*x = conn{k: k, s: s, d: f.TCP.Detail(s), client: int(s.Client), sure: s.Client >= 0}
		if s.Client < 0 {
			x.client = guess(k)
		}
		c.count(x)
		if x.d != nil && len(c.conns) < maxConns {
			c.conns = append(c.conns, x)
		}
		if x.d != nil { // else nobody keeps it
			room = room[1:]
		}
		return true
	})
	for _, e := range c.f.Control.V4.Pairs {
		if e.ReplyTTL > 0 {
			c.hops[e.Dst] = e.ReplyTTL
		}
	}
	for _, x := range c.conns {
		for i := range 2 {
			if h := x.half(i); h.Packets > uint32(h.RSTs) && h.SYNs+h.Data > 0 || h.ACKed && h.RSTs == 0 {
				c.hops[x.addr(i)] = h.TTL
			}
		}
	}
	return c
}

// guess takes the end with the smaller port for the server.
func guess(k *flow.Key) int {
	if k.PortA() < k.PortB() {
		return 1
	}
	return 0
}

func (c *inquiry) count(x *conn) {
	a, p := x.k.End(x.server())
	v := c.services[end{a, p}]
	if v == nil {
		if len(c.services) >= maxConns {
			return
		}
		v = &service{end: end{a, p}}
		c.services[v.end] = v
		c.listed = append(c.listed, v)
	}
	cl, sv := x.half(x.client), x.half(x.server())
	if x.d != nil && len(v.conns) < 10_000 {
		v.conns = append(v.conns, x)
	}
	if cl.SYNs > 0 || sv.SYNs > 0 {
		v.attempts++
	}
	switch {
	case x.s.Done || sv.Data > 0:
		v.opened++
		if cl.SYNs > 1 || sv.SYNs > 1 {
			v.resyn++
		}
		if sv.Bytes > 0 {
			v.served++
		} else if x.d != nil && x.d.Turns.Waiting {
			v.unserved++
		}
	case cl.SYNs > 0 && sv.RSTs > 0 && !x.s.SYNACK:
		v.refused++
	case cl.SYNs > 0 && sv.Packets == 0 && cl.Bytes == 0: // who sends data has got an answer, even if it is not in the capture
		v.silent++
	case x.s.SYNACK:
		v.half++
	}
}

// flooded are the services with more handshakes that were not completed than
// completed ones, with the hosts that tried.
func (c *inquiry) flooded() map[*service]map[flow.Addr]bool {
	out := map[*service]map[flow.Addr]bool{}
	for _, v := range c.listed {
		if v.attempts >= 50 && (v.half+v.silent)*10 >= v.attempts*6 {
			out[v] = map[flow.Addr]bool{}
		}
	}
	if len(out) == 0 {
		return nil
	}
	c.f.TCP.Table.All(func(_ uint32, k *flow.Key, s *tcp.Stream) bool {
		x := conn{k: k, s: s, client: int(s.Client)}
		if s.Client < 0 {
			x.client = guess(k)
		}
		a, p := k.End(x.server())
		if seen := out[c.services[end{a, p}]]; seen != nil && s.Half[0].SYNs+s.Half[1].SYNs > 0 && len(seen) < 10_000 {
			seen[x.addr(x.client)] = true
		}
		return true
	})
	return out
}

// add takes a finding.
func (c *inquiry) add(f Finding) {
	if f.Frames == nil {
		f.Frames = []uint32{}
	}
	f.Frames = slices.DeleteFunc(f.Frames, func(n uint32) bool { return n == 0 })
	slices.Sort(f.Frames)
	f.Frames = slices.Compact(f.Frames)
	f.Frames = f.Frames[:min(len(f.Frames), 10)]
	if f.Frames == nil {
		f.Frames = []uint32{}
	}
	c.out = append(c.out, f)
}

// has reports whether a code was found with at least a severity.
func (c *inquiry) has(code string) bool {
	return slices.ContainsFunc(c.out, func(f Finding) bool { return f.Code == code })
}

// distance is the round trip to a host, as far as anything tells; 0: unknown.
func (c *inquiry) distance(a flow.Addr) (rtt int64) {
	for _, list := range [][]*control.Pair{c.f.Control.V4.Pairs, c.f.Control.V6.Pairs} {
		for _, p := range list {
			if p.Dst == a && p.RTT.N > 0 {
				return p.RTT.Median()
			}
		}
	}
	for _, x := range c.conns {
		if x.addr(x.server()) == a && x.s.InitialRTT > 0 && x.half(x.client).SYNs == 1 && (rtt == 0 || x.s.InitialRTT < rtt) {
			rtt = x.s.InitialRTT
		}
	}
	return rtt
}

// limits says what the capture cannot tell about a finding's connection.
func (c *inquiry) limits(f *Finding) {
	if f.Flow == "" || f.Limits != "" {
		return
	}
	if c.flows == nil {
		c.flows = make(map[string]*conn, len(c.conns))
		for _, x := range c.conns {
			c.flows[x.flow()] = x
		}
	}
	x := c.flows[f.Flow]
	if x == nil {
		return
	}
	if a, b := x.half(0), x.half(1); a.SYNs+b.SYNs == 0 {
		f.Limits = "The connection began before the capture: its handshake, MSS and window scale are unknown."
	} else if (a.Packets == 0 || b.Packets == 0) && a.Bytes+b.Bytes > 0 {
		f.Limits = "Only one direction is in the capture: losses, resets and round trips of the other one cannot be judged."
	}
	if s := c.f.Capture; c.f.CutFrames*2 > c.f.Packets && s != nil && len(s.Interfaces) > 0 && (f.Protocol == "tls" || f.Protocol == "http") {
		f.Limits += when(f.Limits != "", " ", "") + fmt.Sprintf("Packets are cut at %d bytes, so that only the beginning of each message was read.", s.Interfaces[0].SnapLen)
	}
}

// unread says what a capture of cut packets, or at the wrong place, cannot show, however well
// it looks.
func (c *inquiry) unread() string {
	switch cut := c.f.CutFrames; {
	case c.f.Undecoded > 0:
		return fmt.Sprintf("%d of %d packets could not be decoded: not even their link layer is known.", c.f.Undecoded, c.f.Packets)
	case cut*2 <= c.f.Packets && c.f.Fragments.Cut > 0:
		return fmt.Sprintf("%d datagrams that came in fragments are cut: only the beginning of the first fragment was read.", c.f.Fragments.Cut)
	case cut*2 <= c.f.Packets:
		return c.blind()
	case c.f.TCP.Total.Streams == 0 && c.f.Kinds[frame.TCP] > 0:
		return fmt.Sprintf("%d of %d packets are cut, within the TCP headers: no connection could be judged. Capture with a larger snap length (256 shows all headers).", cut, c.f.Packets)
	default:
		return fmt.Sprintf("%d of %d packets are cut: alerts, status codes and names in what is missing could not be read.", cut, c.f.Packets)
	}
}

// maxPerCode keeps one kind of trouble from burying the others.
const maxPerCode = 3

// verdict orders the findings and says when there is nothing to worry about.
func (c *inquiry) verdict() []Finding {
	x, unread := services.Unread(c.f)
	if unread {
		c.add(x)
	}
	slices.SortStableFunc(c.out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(b.Confidence, a.Confidence))
	})
	seen := map[string]int{}
	out := c.out[:0]
	for _, f := range c.out {
		if seen[f.Code]++; seen[f.Code] <= maxPerCode {
			out = append(out, f)
		}
	}
	for i := range out {
		c.limits(&out[i])
	}
	if !unread && (len(out) == 0 || out[0].Severity < Medium) {
		t := &c.f.TCP.Total
		out = append(out, Finding{Severity: Info, Protocol: "capture", Code: "healthy", Summary: "Nothing here needs attention.", Confidence: 0.8, Frames: []uint32{}, Limits: c.unread(),
			Detail: fmt.Sprintf("%d packets; %d TCP connections, %d of %d handshakes completed, %d segments retransmitted; %d DNS queries, %d unanswered; %d of %d echo requests answered.",
				c.f.Packets, t.Streams, t.Handshakes, t.SYNStreams, c.f.TCP.Count[tcp.Retransmission], c.f.DNS.Queries, c.f.DNS.Unanswered,
				c.f.Control.V4.Matched+c.f.Control.V6.Matched, c.f.Control.V4.Requests+c.f.Control.V6.Requests)})
	}
	return out
}
