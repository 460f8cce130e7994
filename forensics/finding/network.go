package finding

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ghostbot/forensics/control"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/semantic/text"
	"ghostbot/forensics/tcp"
)

// copies recognises a capture that has packets twice, and a network that makes
// copies. Both look like retransmissions to a program that has no look at the IP
// identification.
func (c *inquiry) copies() {
	var copies, hops, segments uint32
	var at []uint32
	run := uint8(0)
	for _, x := range c.conns {
		for i := range 2 {
			s := x.side(i)
			copies, hops = copies+s.Copies+c.doubled(s), hops+s.Hops
			segments += x.half(i).Packets
			at = append(at, s.CopyAt[:]...)
			run = max(run, s.CopyRun)
		}
	}
	if copies == 0 || segments == 0 || run > 3 {
		return
	}
	share := float64(copies) / float64(segments)
	cooked := c.f.Layers[4] > 0
	switch {
	case share > 0.3 && (hops > copies/2 || cooked || share > 0.45):
		c.copying = true
		c.add(Finding{Severity: Low, Protocol: "capture", Code: "capture-duplicates", Confidence: 0.95, Frames: at,
			Summary: fmt.Sprintf("The capture holds packets twice: %d of %d TCP segments are copies.", copies, segments),
			Detail:  "Copies have the same IP identification and the same bytes as a packet just before, " + when(hops > 0, "with a TTL lower by one: both sides of a router were recorded.", "with the same TTL: the packet was recorded at two interfaces.") + " Retransmissions and duplicate ACKs of such a capture are no loss.",
			Confirm: "Capture on one interface (not any) and look again."})
	case copies >= 3 && share > 0.002:
		c.add(Finding{Severity: Low, Protocol: "ip", Code: "duplication", Confidence: 0.9, Frames: at,
			Summary: fmt.Sprintf("The network duplicates packets: %d of %d TCP segments (%.1f %%) came twice.", copies, segments, 100*share),
			Detail:  "The copies have the IP identification of a packet just before, so no host sent them again. Receivers discard them; they cost bandwidth and duplicate ACKs.",
			Confirm: "Look for a loop at layer 2, a mirrored port that feeds back, or a bonding mode that floods."})
	}
}

// doubled is how many copies of a direction came late, or are told by the receiver alone:
// it got twice what nobody sent twice.
func (c *inquiry) doubled(s *tcp.Side) uint32 {
	again := s.Resent + s.Filled + s.Needless
	switch {
	case s.Doubled > 2*again && s.Doubled*3 >= s.Late: // else what was sent again in vain came before what it had overtaken
		return s.Doubled
	case s.Copies == 0 && s.Late == 0 && s.DSACKs > 3+2*again:
		return s.DSACKs
	}
	return 0
}

// duplicateAddress finds addresses with two owners. A virtual address of a
// redundancy protocol moves on purpose.
func (c *inquiry) duplicateAddress() {
	for i, list := range [][]*control.Conflict{c.f.Control.ARP.Conflicts, c.f.Control.ND.Conflicts} {
		for _, x := range list {
			if slices.ContainsFunc(x.MACs, control.MAC.Virtual) {
				c.add(Finding{Severity: Info, Protocol: "arp", Code: "virtual-address-moved", Confidence: 0.8, Frames: x.Frames,
					Summary: fmt.Sprintf("%v is claimed by %d MAC addresses, one of them of a redundancy protocol.", x.Addr, len(x.MACs)),
					Detail:  "VRRP, HSRP and GLBP move an address between routers on purpose. Frequent moves would be flapping."})
				continue
			}
			c.conflict[x.Addr] = true
			c.add(Finding{Severity: Critical, Protocol: []string{"arp", "icmpv6"}[i], Code: "duplicate-ip", Confidence: 0.95, Frames: x.Frames,
				Summary: fmt.Sprintf("Two hosts use the address %v.", x.Addr),
				Detail:  fmt.Sprintf("%v is claimed by %v. Packets reach whoever answered last; connections break or are refused by the wrong host.", x.Addr, macs(x.MACs)),
				Confirm: "Find the second MAC in the switch's address table. The same MAC on both ports would mean a moved host or a bridge instead."})
		}
	}
}

func macs(list []control.MAC) string {
	out := ""
	for i, m := range list {
		if i > 0 {
			out += " and "
		}
		out += m.String()
	}
	return out
}

// loops finds packets that run in circles: TTL exceeded about one destination, or
// the same packet again and again with a falling TTL.
func (c *inquiry) loops() {
	type about struct {
		sources map[flow.Addr]uint64
		count   uint64
		frames  []uint32
		ports   map[uint16]bool
	}
	by := map[flow.Addr]*about{}
	for _, e := range c.f.Control.Errors {
		if e.Code != 0 || !(e.Type == 11 && !e.V6 || e.Type == 3 && e.V6) || c.onPurpose(e) {
			continue
		}
		a := by[e.About]
		if a == nil {
			a = &about{sources: map[flow.Addr]uint64{}, ports: map[uint16]bool{}}
			by[e.About] = a
		}
		a.sources[e.Src] += e.Count
		a.ports[e.Port] = true
		a.count += e.Count
		a.frames = append(a.frames, e.Frames...)
	}
	falling := c.falling()
	for _, dst := range sorted(by) {
		a := by[dst]
		most := uint64(0)
		for _, n := range a.sources {
			most = max(most, n)
		}
		if !falling[dst] && most <= 6 && (len(a.sources) > 2 && a.count <= 3*uint64(len(a.sources)) || len(a.ports) > 8) { // a traceroute walks on purpose
			c.add(Finding{Severity: Info, Protocol: "icmp", Code: "traceroute", Confidence: 0.7, Frames: a.frames, Summary: fmt.Sprintf("Somebody traced the route to %v.", dst),
				Detail: fmt.Sprintf("%d routers answered that the TTL was exceeded, each a few times.", len(a.sources))})
			continue
		}
		if a.count < 2 && !falling[dst] && !c.far64(dst) {
			continue
		}
		c.icmpAbout[dst] = true
		c.add(Finding{Severity: High, Protocol: "icmp", Code: "routing-loop", Confidence: 0.93, Frames: a.frames,
			Summary: fmt.Sprintf("Packets to %v run in a circle until their TTL is used up.", dst),
			Detail:  fmt.Sprintf("%s answered %d times that the TTL was exceeded%s.", plural(len(a.sources), "router", "routers"), a.count, when(falling[dst], ", and the capture shows the same packets again with a falling TTL", "")),
			Confirm: fmt.Sprintf("traceroute -n %v shows the routers that point at each other; compare their routes to it.", dst)})
	}
	for _, dst := range sorted(falling) {
		if by[dst] == nil {
			c.icmpAbout[dst] = true
			c.add(Finding{Severity: High, Protocol: "ip", Code: "routing-loop", Confidence: 0.85,
				Summary: fmt.Sprintf("Packets to %v pass here again and again with a falling TTL.", dst),
				Detail:  "The same packet (same IP identification) came at least four times. No TTL-exceeded message is in the capture.",
				Confirm: fmt.Sprintf("traceroute -n %v", dst)})
		}
	}
}

// sorted are the addresses of a map in their order: what is printed does not depend on chance.
func sorted[V any](m map[flow.Addr]V) []flow.Addr {
	return slices.SortedFunc(maps.Keys(m), func(a, b flow.Addr) int { return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo)) })
}

// onPurpose reports whether the packets that an error is about were sent with a small
// TTL: traceroutes and programs that open holes in a NAT do that.
func (c *inquiry) onPurpose(e *control.Errors) bool {
	if e.Proto != 17 {
		return false
	}
	_, u := c.f.App.UDP.Find(&e.Quoted)
	return u != nil && u.TTL > 0 && u.TTL < 30
}

// far64 reports whether a connection to an address left with a usual TTL: then one
// message that it was used up is enough.
func (c *inquiry) far64(dst flow.Addr) bool {
	return slices.ContainsFunc(c.conns, func(x *conn) bool {
		return x.addr(x.server()) == dst && x.half(x.client).TTL >= 32 && x.half(x.server()).Packets == 0
	})
}

// falling returns destinations whose packets were seen at least four times each.
func (c *inquiry) falling() map[flow.Addr]bool {
	out := map[flow.Addr]bool{}
	for _, x := range c.conns {
		for i := range 2 {
			if s := x.side(i); s.CopyRun >= 3 && s.Hops >= 3 {
				out[x.addr(i^1)] = true
				x.explained = "routing-loop"
			}
		}
	}
	return out
}

// neighbours finds hosts that do not answer on their own link. Who asks for others
// and says nothing else is a router: then the host is down for everybody behind it.
func (c *inquiry) neighbours() {
	for _, t := range c.f.Control.ARP.Targets {
		if !t.Answered && t.Asked >= 3 && !c.spoke(t.Addr) {
			c.neighbour(t, "arp", "arp-failure", "ARP requests")
		}
	}
	for _, t := range c.f.Control.ND.Targets {
		if !t.Answered && t.Asked >= 3 && !c.spoke(t.Addr) {
			c.neighbour(t, "icmpv6", "nd-failure", "neighbour solicitations")
		}
	}
}

// spoke reports whether an address sent anything else here.
func (c *inquiry) spoke(a flow.Addr) bool {
	if _, ok := c.hops[a]; ok {
		return true
	}
	_, ok := c.f.Control.ARP.Owner(a)
	return ok
}

func (c *inquiry) neighbour(t *control.Target, protocol, code, what string) {
	unreachable := slices.ContainsFunc(c.f.Control.Errors, func(e *control.Errors) bool {
		return e.About == t.Addr && (!e.V6 && e.Type == 3 && e.Code == 1 || e.V6 && e.Type == 1 && e.Code == 3) && e.Src != e.Dst
	})
	asker := c.talks(t.Asker)
	if unreachable || !asker && (code == "arp-failure" || t.Asker.LinkLocal() && !t.Addr.LinkLocal()) { // a host asks with the address that it sends from
		code = "host-down"
	}
	c.icmpAbout[t.Addr] = true
	c.add(Finding{Severity: High, Protocol: protocol, Code: code, Confidence: 0.9, Frames: t.Frames,
		Summary: fmt.Sprintf("%v does not answer on its link.", t.Addr),
		Detail:  fmt.Sprintf("%v asked %d times in %s with %s for %v and got no answer%s.", t.Asker, t.Asked, ms(t.LastAt-t.FirstAt), what, t.Addr, when(!asker && code == "host-down", "; it sends nothing else here: a router that asks for others does that, and so does a host that wants nothing but this", "")),
		Confirm: fmt.Sprintf("On a host of the same link: ip neigh show %v; arping %v. An answer would mean that a filter or a wrong VLAN is between.", t.Addr, t.Addr)})
}

// talks reports whether an address has conversations of its own in the capture.
func (c *inquiry) talks(a flow.Addr) bool {
	for _, x := range c.conns {
		if x.addr(0) == a || x.addr(1) == a {
			return true
		}
	}
	for _, e := range []*control.Echoes{&c.f.Control.V4, &c.f.Control.V6} {
		for _, p := range e.Pairs {
			if p.Src == a || p.Dst == a {
				return true
			}
		}
	}
	for i := range c.f.DNS.Open {
		if c.f.DNS.Open[i].Client() == a {
			return true
		}
	}
	return c.f.DNS.Queries > 0 || c.f.Kinds[frame.UDP] > 0
}

// unreachable reads what routers and hosts refuse.
func (c *inquiry) unreachable() {
	for _, e := range c.f.Control.Errors {
		if !e.V6 && e.Type != 3 || e.V6 && e.Type != 1 {
			continue
		}
		kind := refusal(e)
		if kind == "no-route" && e.V6 && c.spoke(e.About) {
			kind = "admin-prohibited" // it has a route for others: a filter says so
		}
		if e.Proto == 17 && kind == "udp-port-closed" && e.Port >= 33434 && e.Port < 33535 { // the end of a traceroute
			continue
		}
		if e.Proto == 17 && kind == "udp-port-closed" && quotedFrom(e) == 53 {
			c.add(Finding{Severity: Info, Protocol: "icmp", Code: "late-answer-refused", Confidence: 0.8, Frames: e.Frames, Flow: quotedFlow(e),
				Summary: fmt.Sprintf("%v refuses answers of %v that come after it stopped waiting.", e.Src, e.Dst),
				Detail:  fmt.Sprintf("%d answers came to a port that was closed again.", e.Count)})
			continue
		}
		where := text.Service(e.About, e.Port)
		if e.Port == 0 {
			where = e.About.String()
		}
		f := Finding{Severity: High, Protocol: when(e.V6, "icmpv6", "icmp"), Code: kind, Confidence: 0.9, Frames: e.Frames, Flow: quotedFlow(e)}
		switch kind {
		case "admin-prohibited":
			f.Summary = fmt.Sprintf("A filter at %v rejects traffic to %v.", e.Src, where)
			f.Detail = fmt.Sprintf("%v answered %d times with %s code %d (administratively prohibited).", e.Src, e.Count, f.Protocol, e.Code)
			f.Confirm = fmt.Sprintf("Look for a reject rule on %v that matches the flow.", e.Src)
			c.icmpAbout[e.About] = true
		case "udp-port-closed":
			f.Confidence = 0.85
			f.Summary = fmt.Sprintf("Nothing listens at UDP %s.", where)
			f.Detail = fmt.Sprintf("%v answered %d times that the port is unreachable.", e.Src, e.Count)
			f.Confirm = fmt.Sprintf("On %v: ss -lun; a filter that rejects with port-unreachable looks the same when the sender is not the target.", e.About)
			if e.Proto == 6 {
				f.Code, f.Summary = "firewall-reject", fmt.Sprintf("A filter rejects TCP to %s with port unreachable.", where)
			}
		case "host-down":
			if c.icmpAbout[e.About] && c.has("host-down") {
				continue
			}
			f.Summary = fmt.Sprintf("%v is down: the last router gets no answer from it.", e.About)
			f.Detail = fmt.Sprintf("%v answered %d times that the host is unreachable.", e.Src, e.Count)
			f.Confirm = fmt.Sprintf("On %v: ip neigh show %v; ip route get %v, as a route that says unreachable looks the same.", e.Src, e.About, e.About)
			c.icmpAbout[e.About] = true
		case "no-route":
			f.Summary = fmt.Sprintf("%v has no route to %v.", e.Src, e.About)
			f.Detail = fmt.Sprintf("It answered %d times that the network is unreachable.", e.Count)
			f.Confirm = fmt.Sprintf("On %v: ip route get %v", e.Src, e.About)
			c.icmpAbout[e.About] = true
		default:
			continue
		}
		c.add(f)
	}
	for _, x := range c.conns {
		if x.s.ICMP > 0 && c.icmpAbout[x.addr(x.server())] {
			x.explained = "icmp"
		}
	}
}

// quotedFrom is the source port of the quoted packet.
func quotedFrom(e *control.Errors) uint16 {
	if a, p := e.Quoted.End(0); a == e.About && p == e.Port {
		return e.Quoted.PortB()
	}
	return e.Quoted.PortA()
}

func quotedFlow(e *control.Errors) string {
	if e.Port == 0 {
		return ""
	}
	i := 0
	if a, p := e.Quoted.End(0); a == e.About && p == e.Port {
		i = 1
	}
	return text.End(&e.Quoted, i) + " -> " + text.End(&e.Quoted, i^1)
}

// refusal sorts unreachable messages by their reason. A host's own stack answers
// itself that a neighbour is missing: the link is at fault then.
func refusal(e *control.Errors) string {
	if e.V6 {
		switch e.Code {
		case 1, 5, 6:
			return "admin-prohibited"
		case 3:
			if e.Src == e.Dst {
				return ""
			}
			return "host-down"
		case 4:
			return "udp-port-closed"
		case 0:
			return "no-route"
		}
		return ""
	}
	switch e.Code {
	case 9, 10, 13:
		return "admin-prohibited"
	case 1:
		if e.Src == e.Dst {
			return ""
		}
		return "host-down"
	case 3:
		return "udp-port-closed"
	case 0, 5, 6, 11:
		return "no-route"
	}
	return ""
}

// mtu finds paths on which large packets vanish, and those where the sender is told.
func (c *inquiry) mtu() {
	told := map[flow.Addr]*control.Errors{}
	for _, e := range c.f.Control.Errors {
		if !e.V6 && e.Type == 3 && e.Code == 4 || e.V6 && e.Type == 2 {
			told[e.About] = e
		}
	}
	for _, x := range c.conns {
		for i := range 2 {
			c.tooLarge(x, i, told)
		}
	}
	for _, x := range c.conns {
		for i := range 2 {
			c.hole(x, i)
		}
	}
	for _, x := range c.conns {
		if x.explained == "" && (told[x.addr(0)] != nil || told[x.addr(1)] != nil) && (x.side(0).LostLen[1] >= 500 || x.side(1).LostLen[1] >= 500) {
			x.explained = "pmtud-working"
		}
	}
	for _, dst := range sorted(told) {
		e := told[dst]
		if c.has("pmtud-blackhole") && e.Count > 0 && e.MTU != 0 && c.stuckTo(dst) {
			continue
		}
		c.add(Finding{Severity: Low, Protocol: when(e.V6, "icmpv6", "icmp"), Code: "pmtud-working", Confidence: 0.9, Frames: e.Frames,
			Summary: fmt.Sprintf("A link on the way to %v carries %d bytes at most; the sender is told so.", dst, e.MTU),
			Detail:  fmt.Sprintf("%v sent %d messages with that MTU, and the path goes on working. The first large segments are lost each time.", e.Src, e.Count),
			Confirm: "A lower MSS or MTU at the sender saves the first losses; tunnels on the way are the usual reason."})
	}
	for _, list := range [][]*control.Pair{c.f.Control.V4.Pairs, c.f.Control.V6.Pairs} {
		for _, p := range list {
			whole, wholeDone := p.BigSent-p.Split, p.BigMatched-p.SplitDone
			if whole >= 2 && wholeDone == 0 && p.Matched > 0 && told[p.Dst] == nil && !c.has("pmtud-blackhole") {
				c.add(Finding{Severity: High, Protocol: "icmp", Code: "pmtud-blackhole", Confidence: 0.7, Frames: p.Evidence,
					Summary: fmt.Sprintf("Large echo requests to %v vanish, small ones are answered.", p.Dst),
					Detail:  fmt.Sprintf("%d large requests without an answer, %d others answered, and nobody says that a packet is too large.", whole, p.Matched),
					Confirm: fmt.Sprintf("ping -M do -s 1200 %v, then larger; find the router whose frag-needed messages are filtered.", p.Dst)})
			}
		}
	}
}

func (c *inquiry) stuckTo(a flow.Addr) bool {
	return slices.ContainsFunc(c.conns, func(x *conn) bool { return x.explained == "pmtud-blackhole" && (x.addr(0) == a || x.addr(1) == a) })
}

// tooLarge checks one direction: only large segments are sent again and again, and
// nothing that large was ever acknowledged while it lasted.
func (c *inquiry) tooLarge(x *conn, i int, told map[flow.Addr]*control.Errors) {
	s := x.side(i)
	if x.explained != "" || s.MaxRun < 1 || s.LostLen[0] < 500 || s.MaxLen < 1000 {
		return
	}
	first := s.OpenRun >= 1 && s.AckedLen == 0 && x.half(i).Bytes > 3*uint64(s.MaxLen) && x.half(i^1).Bytes == 0 && x.s.Last-s.OpenSince > 2e9 // right from the first flight
	stuck := s.OpenRun >= 3 && s.OpenLen >= 1000 && s.AckedLen < s.LostLen[0] || first
	shrunk := s.MaxRun >= 3 && s.LostLen[1] > 1000 && s.AckedLen < s.LostLen[1]
	if !stuck && !shrunk {
		return
	}
	e := told[x.addr(i^1)]
	x.explained = "pmtud-blackhole"
	detail := fmt.Sprintf("Segments of %d bytes were sent again up to %d times; %s was acknowledged. Smaller packets of the same connection pass.", s.LostLen[1], s.MaxRun,
		when(s.AckedLen > 0, fmt.Sprintf("nothing larger than %d bytes", s.AckedLen), "no data"))
	if e != nil {
		detail += fmt.Sprintf(" %v says that %d bytes are the limit, and the sender does not follow.", e.Src, e.MTU)
	} else {
		detail += " Nobody says that a packet is too large: the message is filtered."
	}
	c.add(Finding{Severity: High, Protocol: "tcp", Code: "pmtud-blackhole", Confidence: 0.92, Frames: append(s.Frames[:], s.StallAt), Flow: x.flow(),
		Summary: fmt.Sprintf("Large segments from %v to %v vanish: a path MTU black hole.", x.addr(i), x.addr(i^1)), Detail: detail,
		Confirm: fmt.Sprintf("ping -M do -s 1472 %v from the sender, then smaller; permit ICMP fragmentation needed (IPv6: packet too big), or clamp the MSS.", x.addr(i^1))})
}

// hole is a black hole as the receiver sees it: a gap as large as a full segment is never
// filled, while small segments after it arrive.
func (c *inquiry) hole(x *conn, i int) {
	s := x.side(i)
	missing, last := x.s.Missing(i), x.s.Last
	if x.s.Closed == tcp.Open {
		last = c.f.Last // both ends wait
	}
	if x.explained != "" || s.Holes == 0 || s.Resent+s.Filled > 0 || missing < 1000 || s.MaxLen >= x.s.Large() || last-s.LastData() < 2e9 || x.d.Sum(tcp.ZeroWindow) > 0 {
		return
	}
	x.explained = "pmtud-blackhole"
	for _, y := range c.conns { // whose answer is all large
		if u := &y.d.Turns; y.explained == "" && y.addr(y.server()) == x.addr(i) && y.s.Done && u.Waiting && u.AskACKed && y.half(y.server()).Bytes == 0 {
			y.explained = "pmtud-blackhole"
		}
	}
	c.add(Finding{Severity: High, Protocol: "tcp", Code: "pmtud-blackhole", Confidence: 0.75, Frames: append(x.d.Evidence[tcp.LostSegment][:], s.Largest), Flow: x.flow(),
		Summary: fmt.Sprintf("Large segments from %v to %v do not arrive, small ones do: probably a path MTU black hole.", x.addr(i), x.addr(i^1)),
		Detail:  fmt.Sprintf("%d bytes are missing for %s, to the end of the connection; nothing larger than %d bytes came. Random loss would have been repaired in that time.", missing, ms(last-s.LastData()), s.MaxLen),
		Confirm: fmt.Sprintf("Capture at %v: full-size segments that are sent again and again. ping -M do -s 1472 %v from there, then smaller.", x.addr(i), x.addr(i^1))})
}

// fragments finds that nothing in fragments gets an answer.
func (c *inquiry) fragments() {
	var sent, done uint64
	var at []uint32
	var dst flow.Addr
	small := uint64(0)
	for _, list := range [][]*control.Pair{c.f.Control.V4.Pairs, c.f.Control.V6.Pairs} {
		for _, p := range list {
			sent, done = sent+p.Split, done+p.SplitDone
			small += p.Matched - p.SplitDone
			if p.Split > p.SplitDone {
				at, dst = append(at, p.Evidence...), p.Dst
			}
		}
	}
	partial, echoes, unanswered := c.f.Fragments.Partial, c.f.Fragments.Echoes, c.f.DNS.Unanswered
	detail := fmt.Sprintf("%d fragmented echo requests, %d answered; %d that fit into one packet were answered.", sent, done, small)
	if partial > 0 {
		detail += fmt.Sprintf(" Of %d datagrams a fragment is missing here; %d DNS queries have no answer.", partial, unanswered)
	}
	if sent >= 2 && done == 0 && small > 0 || partial > 0 && unanswered > 0 || echoes >= 2 && sent <= echoes && done == 0 {
		c.add(Finding{Severity: High, Protocol: "ip", Code: "fragments-dropped", Confidence: 0.88, Frames: at,
			Summary: "IP fragments are dropped on the way" + when(dst != flow.Addr{}, fmt.Sprintf(" (%v).", dst), "."),
			Detail:  detail + " Datagrams over the MTU, large DNS answers among them, do not arrive.",
			Confirm: "Send a ping of 3,000 bytes without DF and capture at the other end: the fragments are missing there."})
	}
}
