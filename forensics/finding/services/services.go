// Package services finds what goes wrong in protocols that hosts need before and beside
// TCP: addresses by DHCP, name servers that answer with errors, routers that advertise themselves, QUIC, and other services
// over UDP that are asked and do not answer.
package services

import (
	"fmt"
	"slices"

	"ghostbot/forensics/app"
	"ghostbot/forensics/control"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding/statement"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/semantic/text"
)

// All returns what the rules of this room find.
func All(f *facts.Facts) []statement.Finding {
	var out []statement.Finding
	for _, rule := range []func(*facts.Facts) []statement.Finding{announcements, leases, rogues, routers, refused, quic, silent, certificates, versions, refusals, halves, unanswered, late, redirects, failures, clock} {
		out = append(out, rule(f)...)
	}
	return out
}

// announcements finds a link on which addresses are announced again and again.
func announcements(f *facts.Facts) []statement.Finding {
	n := f.Control.ARP.Gratuitous
	if n <= 10 || n*10 < f.Control.ARP.Requests+f.Control.ARP.Replies {
		return nil
	}
	return []statement.Finding{{Severity: statement.Low, Protocol: "arp", Code: "arp-announcements", Confidence: 0.7, Frames: f.Control.ARP.Announced,
		Summary: fmt.Sprintf("Addresses are announced %d times by gratuitous ARP in %s.", n, statement.Duration(f.Last-f.First)),
		Detail:  "Hosts announce an address when they get it or take it over. Many announcements are a redundancy protocol that flaps, a network card that fails over again and again, or somebody who wants the traffic of others.",
		Confirm: "tcpdump -en arp: one MAC that announces one address is a host that starts again; two MACs in turn are a fail-over that does not come to rest."}}
}

// leases finds clients that get no address, or not the one they want.
func leases(f *facts.Facts) (out []statement.Finding) {
	d := &f.Control.DHCP
	if d.NAKs > 0 {
		out = append(out, statement.Finding{Severity: statement.Medium, Protocol: "dhcp", Code: "dhcp-nak", Confidence: 0.9, Frames: d.Frames,
			Summary: fmt.Sprintf("A DHCP server refuses addresses that clients ask for: %s.", statement.Plural(int(d.NAKs), "NAK", "NAKs")),
			Detail:  "The client wants an address that it had before, and this server does not give it: the client moved to another network, the lease was given to somebody else, or two servers do not know each other's leases.",
			Confirm: "The server's log has the reason; a client that then gets another address with a new DISCOVER only moved."})
	}
	if d.Declines > 0 {
		out = append(out, statement.Finding{Severity: statement.Medium, Protocol: "dhcp", Code: "dhcp-address-in-use", Confidence: 0.9, Frames: d.Declined,
			Summary: fmt.Sprintf("Clients decline addresses that DHCP gives them: %s.", statement.Plural(int(d.Declines), "DECLINE", "DECLINEs")),
			Detail:  "The client asked for the address by ARP and somebody answered: a host with a fixed address stands in the pool.",
			Confirm: "arping -D for the address on that link names the other MAC; exclude the address from the pool or change the host."})
	}
	return append(out, unserved(d)...)
}

// unserved finds clients that ask again and again. One request without an answer proves
// nothing: its answer may go to the client alone, past the capture point.
func unserved(d *control.DHCP) []statement.Finding {
	again, once := d.Repeated(), d.Unanswered()
	served := uint64(0)
	for _, s := range d.Servers {
		served += s.ACKs
	}
	x := statement.Finding{Severity: statement.High, Protocol: "dhcp", Code: "dhcp-no-answer", Confidence: 0.88, Frames: again,
		Summary: fmt.Sprintf("No DHCP server answers: %s asked again and again.", statement.Plural(len(again), "client", "clients")),
		Detail:  "The same transaction was repeated and neither OFFER nor ACK came. The server is down, in another VLAN, or the relay does not forward.",
		Confirm: "dhcping or dhclient -v on the link; a capture at the relay and at the server shows how far the DISCOVER comes."}
	switch {
	case len(again) == 0 && len(once) > 0 && len(d.Servers) == 0:
		x.Severity, x.Confidence, x.Frames = statement.Low, 0.5, once
		x.Summary = fmt.Sprintf("%s got no answer that is in the capture.", statement.Plural(len(once), "DHCP request", "DHCP requests"))
		x.Detail = "None was repeated, and an answer to one client does not pass other ports of a switch."
	case len(again) == 0:
		return nil
	case served > 0 && len(d.Ignored()) > 0:
		x.Code, x.Confidence = "dhcp-exhausted", 0.7
		x.Summary = fmt.Sprintf("The DHCP server serves others and offers nothing to %s.", statement.Plural(len(again), "client", "clients"))
		x.Detail = fmt.Sprintf("%d leases were given or renewed in the same time. Most often the pool has no free address left; a list of known clients does the same.", served)
		x.Confirm = "Leases against the size of the pool on the server (no free leases in its log)."
	}
	return []statement.Finding{x}
}

// rogues finds servers that contradict each other.
func rogues(f *facts.Facts) []statement.Finding {
	var list []*control.DHCPServer
	for _, s := range f.Control.DHCP.Servers {
		if s.Offers+s.ACKs > 0 {
			list = append(list, s)
		}
	}
	for i, a := range list {
		for _, b := range list[i+1:] {
			if a.Router == b.Router && (a.Mask == 0 || b.Mask == 0 || a.Net() == b.Net()) {
				continue
			}
			return []statement.Finding{{Severity: statement.High, Protocol: "dhcp", Code: "dhcp-rogue-server", Confidence: 0.8, Frames: append(slices.Clone(a.Frames), b.Frames...),
				Summary: fmt.Sprintf("Two DHCP servers give out different networks: %v and %v.", a.ID, b.ID),
				Detail:  fmt.Sprintf("%v names the router %v, %v names %v. Clients that believe the wrong one have no way out, or one through somebody else.", a.ID, a.Router, b.ID, b.Router),
				Confirm: "Which of the two is known; the switch port of the other one's MAC. DHCP snooping keeps it out."}}
		}
	}
	return nil
}

// routers finds routers that advertise different things on one link.
func routers(f *facts.Facts) []statement.Finding {
	list := slices.DeleteFunc(slices.Clone(f.Control.Routers.List), func(r *control.Router) bool { return r.Lifetime == 0 || len(r.Prefixes) == 0 })
	for i, a := range list {
		for _, b := range list[i+1:] {
			shared := slices.ContainsFunc(a.Prefixes, func(p control.Prefix) bool { return slices.Contains(b.Prefixes, p) })
			x := statement.Finding{Severity: statement.Medium, Protocol: "icmpv6", Code: "router-conflict", Confidence: 0.65, Frames: append(slices.Clone(a.Frames), b.Frames...),
				Confirm: "Which router is known (ip -6 neigh has its MAC); RA guard on the switch keeps the other one out. Two providers on one link advertise two prefixes on purpose."}
			switch {
			case !shared:
				x.Summary = fmt.Sprintf("Two routers advertise different networks: %v and %v.", a.Addr, b.Addr)
				x.Detail = fmt.Sprintf("%v has %s, %v has %s. Hosts take addresses of both and may send packets of one to the other.", a.Addr, prefixes(a), b.Addr, prefixes(b))
			case a.Flags&0xc0 != b.Flags&0xc0 || a.MTU != b.MTU && a.MTU != 0 && b.MTU != 0:
				x.Summary = fmt.Sprintf("%v and %v advertise the same network with different settings.", a.Addr, b.Addr)
				x.Detail = fmt.Sprintf("Flags 0x%02x and 0x%02x, MTU %d and %d: what a host does depends on whom it heard last.", a.Flags, b.Flags, a.MTU, b.MTU)
			default:
				continue
			}
			return []statement.Finding{x}
		}
	}
	return nil
}

func prefixes(r *control.Router) (out string) {
	for i, p := range r.Prefixes {
		out += statement.When(i > 0, ", ", "") + fmt.Sprintf("%v/%d", p.Addr, p.Bits)
	}
	return out
}

// refused finds addresses that duplicate address detection refused.
func refused(f *facts.Facts) (out []statement.Finding) {
	for _, r := range f.Control.ND.Refused {
		out = append(out, statement.Finding{Severity: statement.Critical, Protocol: "icmpv6", Code: "duplicate-ip", Confidence: 0.93, Frames: r.Frames,
			Summary: fmt.Sprintf("Two hosts want the address %v.", r.Addr),
			Detail:  fmt.Sprintf("%v asked whether it is free, and %v has it or wants it too. The one that asked stays without it.", r.MACs[0], r.MACs[1]),
			Confirm: "ip -6 addr on the host: the address is marked dadfailed. Find the second MAC in the switch's address table."})
	}
	return out
}

// quic finds connections that come to nothing.
func quic(f *facts.Facts) (out []statement.Finding) {
	type tally struct {
		n, retried, negotiated int
		frames                 []uint32
		flow                   string
	}
	var dead, other tally
	f.App.UDP.All(func(_ uint32, k *flow.Key, u *app.Flow) bool {
		if !u.QUIC {
			return true
		}
		name := text.End(k, int(u.Dir)) + " -> " + text.End(k, int(u.Dir^1))
		if u.Packets[u.Dir] >= 2 && u.Packets[u.Dir^1] == 0 && u.Last-u.First > 300e6 {
			dead.n, dead.frames, dead.flow = dead.n+1, append(dead.frames, u.FirstFrame), name
		}
		if u.Marks.Has(app.Negotiated) {
			other.negotiated, other.frames, other.flow = other.negotiated+1, append(other.frames, u.FirstFrame), name
		}
		if u.Marks.Has(app.Retried) {
			other.retried++
		}
		return true
	})
	if dead.n > 0 {
		out = append(out, statement.Finding{Severity: statement.Medium, Protocol: "quic", Code: "quic-no-answer", Confidence: 0.8, Frames: dead.frames, Flow: dead.flow,
			Summary: fmt.Sprintf("QUIC gets no answer on %s.", statement.Plural(dead.n, "connection", "connections")),
			Detail:  "The client repeats its Initial packet and nothing comes back: most often a filter drops UDP to that port. Browsers fall back to TCP after a while, which people feel as a slow start.",
			Confirm: "curl --http3-only against the host, and the same over TCP; permit UDP 443 or reject it with an ICMP error, so that the fall-back is fast."})
	}
	if other.negotiated > 0 {
		out = append(out, statement.Finding{Severity: statement.Low, Protocol: "quic", Code: "quic-version", Confidence: 0.85, Frames: other.frames, Flow: other.flow,
			Summary: fmt.Sprintf("A server asks for another version of QUIC on %s.", statement.Plural(other.negotiated, "connection", "connections")),
			Detail:  "Each costs a round trip, and fails when both have no version in common.",
			Confirm: "The versions of client and server; whether packets of the handshake follow."})
	}
	for i := range f.App.QUIC.Closes {
		c := &f.App.QUIC.Closes[i]
		if c.Code == 0 {
			continue
		}
		out = append(out, statement.Finding{Severity: statement.Medium, Protocol: "quic", Code: "quic-closed", Confidence: 0.9, Frames: c.Frames,
			Summary: fmt.Sprintf("The %s ends %s in the handshake: %s.", statement.When(c.ByClient, "client", "server"), statement.Plural(int(c.Count), "QUIC connection", "QUIC connections"), c.Name()),
			Detail:  fmt.Sprintf("Error code 0x%x in an Initial packet. Reasons from 0x100 on are alerts of TLS: name, certificate or versions do not fit; CONNECTION_REFUSED is a server that does not want to.", c.Code),
			Confirm: "curl --http3-only -v against the host gives the same error; the log of the side that ends it."})
	}
	if other.retried >= 3 {
		out = append(out, statement.Finding{Severity: statement.Info, Protocol: "quic", Code: "quic-retry", Confidence: 0.85, Frames: []uint32{},
			Summary: fmt.Sprintf("Servers prove the address of clients before they answer (Retry on %d connections).", other.retried),
			Detail:  "That costs a round trip; servers do it under load or attack.", Confirm: "The server's load, and its setting for Retry."})
	}
	return out
}

// asked are ports at which a server answers when it can.
var asked = map[uint16]string{69: "TFTP", 88: "Kerberos", 123: "NTP", 161: "SNMP", 389: "LDAP", 500: "IKE", 1194: "OpenVPN", 1645: "RADIUS", 1646: "RADIUS", 1812: "RADIUS", 1813: "RADIUS", 3478: "STUN", 4500: "IKE", 5060: "SIP"}

// silent finds services over UDP that are asked and do not answer.
func silent(f *facts.Facts) (out []statement.Finding) {
	type end struct {
		a flow.Addr
		p uint16
	}
	type tally struct {
		n, answered uint64
		first, last int64
		frames      []uint32
		flow        string
	}
	by := map[end]*tally{}
	var order []end
	both := f.App.Reply.N > 0 || f.TCP.Total.Handshakes > 0 || f.DNS.Responses > 0
	f.App.UDP.All(func(_ uint32, k *flow.Key, u *app.Flow) bool {
		a, p := k.End(int(u.Dir ^ 1))
		if asked[p] == "" || a.Multicast() || uint32(a.Lo)&0xff == 0xff && a.Is4() {
			return true
		}
		t := by[end{a, p}]
		if t == nil {
			t = &tally{first: u.First, flow: text.End(k, int(u.Dir)) + " -> " + text.End(k, int(u.Dir^1))}
			by[end{a, p}] = t
			order = append(order, end{a, p})
		}
		t.n, t.answered = t.n+uint64(u.Packets[u.Dir]), t.answered+uint64(u.Packets[u.Dir^1])
		t.first, t.last = min(t.first, u.First), max(t.last, u.Last)
		t.frames = append(t.frames, u.FirstFrame)
		return true
	})
	for _, e := range order {
		t := by[e]
		told := slices.ContainsFunc(f.Control.Errors, func(x *control.Errors) bool { return x.About == e.a && x.Port == e.p })
		if t.answered > 0 || t.n < 3 || t.last-t.first < 1e9 || told {
			continue
		}
		x := statement.Finding{Severity: statement.Medium, Protocol: "udp", Code: "udp-no-answer", Confidence: 0.75, Frames: t.frames, Flow: t.flow,
			Summary: fmt.Sprintf("%s at %s does not answer: %d datagrams in %s.", asked[e.p], text.Service(e.a, e.p), t.n, statement.Duration(t.last-t.first)),
			Detail:  "Neither an answer nor an ICMP error came back. The server is down, ignores this client (an access list, a wrong secret), or a filter drops one of the directions.",
			Confirm: "Capture at the server: datagrams that arrive there and stay without an answer are the server's doing; ss -lun shows whether it listens."}
		if !both {
			x.Severity, x.Confidence = statement.Low, 0.4
			x.Limits = "Nothing in the capture goes both ways, so that answers may have passed elsewhere."
		}
		out = append(out, x)
	}
	return out
}
