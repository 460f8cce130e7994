package semantic

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"ghostbot/forensics/control"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/stat"
	"ghostbot/forensics/tcp"
)

// maxList bounds the lists of the document, so that it stays under 5,000 tokens.
const maxList = 10

// round rounds half to even at a number of decimals.
func round(v float64, decimals int) float64 {
	p := math.Pow(10, float64(decimals))
	return math.RoundToEven(v*p) / p
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more places)", n)
}

// capped cuts a list and returns the total when it was cut.
func capped[T any](list []T) ([]T, int) {
	if len(list) <= maxList {
		return list, 0
	}
	return list[:maxList], len(list)
}

func incomplete(f *facts.Facts) []string {
	var out []string
	say := func(n uint64, format string) {
		if n > 0 {
			out = append(out, fmt.Sprintf(format, n))
		}
	}
	t := f.TCP.Total
	say(uint64(t.Forgotten), "%d TCP connections were forgotten for lack of room: totals count them, lists do not")
	say(uint64(t.NoDetail), "%d TCP connections were followed without details: verdicts are complete, their RTTs are not listed")
	say(t.Unlisted, "%d segments were not remembered for RTT measurement")
	say(f.DNS.Forgotten, "%d DNS transactions were closed early: an answer after them counts as unsolicited")
	say(f.App.Missed, "%d UDP flows or application sessions were beyond the budget")
	say(f.Control.Unlisted, "%d ICMP errors were beyond the budget")
	out = append(out, partial(f)...)
	if f.Packets == 0 && f.Capture.Packets > 0 {
		say(f.Capture.Packets, "the filter matched none of %d packets")
	} else if f.Packets == 0 {
		out = append(out, "there is no packet to analyse")
	}
	if k := known(f); f.Packets > 0 && k == 0 {
		out = append(out, "no packet carries a protocol that this analysis follows")
	}
	return out
}

// partial says what cannot be judged because the capture has only a part of it: the
// beginning of connections, or one of their directions.
func partial(f *facts.Facts) []string {
	all, late, one := 0, 0, 0
	f.TCP.Table.All(func(_ uint32, _ *flow.Key, s *tcp.Stream) bool {
		a, b := &s.Half[0], &s.Half[1]
		if a.Packets+b.Packets < 3 {
			return true
		}
		all++
		if a.SYNs+b.SYNs == 0 {
			late++
		}
		if (a.Packets == 0 || b.Packets == 0) && a.Bytes+b.Bytes > 0 {
			one++
		}
		return true
	})
	var out []string
	if late > 0 {
		out = append(out, fmt.Sprintf("%d of %d TCP connections began before the capture: their handshake, MSS and window scale are unknown", late, all))
	}
	if one > 0 {
		out = append(out, fmt.Sprintf("%d of %d TCP connections have one direction only: round trips, and losses of the other one, cannot be judged", one, all))
	}
	return out
}

// ARP is the specification's block.
type ARP struct {
	Requests   uint64      `json:"total_requests"`
	Replies    uint64      `json:"total_replies"`
	Unanswered []Asked     `json:"unanswered_requests"`
	Total      int         `json:"unanswered_requests_total,omitempty"`
	Gratuitous uint64      `json:"gratuitous_arp_count"`
	Duplicates []Duplicate `json:"duplicate_ip_alerts,omitempty"`
}

// Asked is an address that nobody answered for.
type Asked struct {
	IP    string `json:"ip"`
	Count uint64 `json:"count"`
}

// Duplicate is an address with more than one MAC.
type Duplicate struct {
	IP     string   `json:"ip"`
	MACs   []string `json:"macs"`
	Frames []uint32 `json:"sample_frames"`
}

func arp(f *facts.Facts) *ARP {
	a := &f.Control.ARP
	if a.Requests+a.Replies == 0 {
		return nil
	}
	b := &ARP{Requests: a.Requests, Replies: a.Replies, Gratuitous: a.Gratuitous}
	b.Unanswered, b.Total = capped(unanswered(a.Targets))
	b.Duplicates, _ = capped(duplicates(a.Conflicts))
	return b
}

func unanswered(targets []*control.Target) []Asked {
	out := []Asked{}
	for _, t := range targets {
		if !t.Answered && t.Asked > 0 {
			out = append(out, Asked{t.Addr.String(), t.Asked})
		}
	}
	slices.SortStableFunc(out, func(a, b Asked) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

func duplicates(conflicts []*control.Conflict) []Duplicate {
	var out []Duplicate
	for _, c := range conflicts {
		d := Duplicate{IP: c.Addr.String(), Frames: c.Frames}
		for _, m := range c.MACs {
			d.MACs = append(d.MACs, m.String())
		}
		out = append(out, d)
	}
	return out
}

// ICMP is the specification's block.
type ICMP struct {
	Matched     uint64            `json:"echo_pairs_matched"`
	Unmatched   uint64            `json:"echo_unmatched"`
	RTT         stat.Summary      `json:"rtt_ms"`
	Anomalies   []Anomaly         `json:"anomalies"`
	Total       int               `json:"anomalies_total,omitempty"`
	Types       map[string]uint64 `json:"type_distribution,omitempty"`
	Unreachable []Unreachable     `json:"unreachable_details,omitempty"`
	Redirects   []Redirect        `json:"redirect_details,omitempty"`
	Exceeded    []Exceeded        `json:"ttl_exceeded_sources,omitempty"`
}

// Anomaly is an echo whose answer took more than twice the median.
type Anomaly struct {
	Seq   uint16  `json:"seq"`
	RTT   float64 `json:"rtt_ms"`
	Frame uint32  `json:"frame"`
}

// Unreachable is one kind of destination unreachable.
type Unreachable struct {
	Src     string `json:"src"`
	Dst     string `json:"dst"`
	Code    uint8  `json:"code"`
	Meaning string `json:"code_meaning"`
	Count   uint64 `json:"count"`
	Frame   uint32 `json:"sample_frame"`
	About   string `json:"unreachable_dst,omitempty"`
	MTU     uint32 `json:"mtu,omitempty"`
}

// Redirect is one kind of redirect.
type Redirect struct {
	Src     string `json:"src"`
	Dst     string `json:"dst"`
	Gateway string `json:"gateway"`
	For     string `json:"redirect_for,omitempty"`
	Count   uint64 `json:"count"`
	Frame   uint32 `json:"sample_frame"`
}

// Exceeded is a router at which packets ran out of hops.
type Exceeded struct {
	Src   string `json:"src"`
	Dst   string `json:"dst"`
	About string `json:"original_dst,omitempty"`
	Count uint64 `json:"count"`
	Frame uint32 `json:"sample_frame"`
}

func echoes(e *control.Echoes) (b ICMP) {
	b.Matched, b.Unmatched, b.RTT = e.Matched, e.Requests-e.Matched, e.RTT.Summary()
	b.Anomalies = []Anomaly{}
	limit := 2 * e.RTT.Median()
	for _, s := range e.Samples {
		if s.RTT > limit {
			b.Anomalies = append(b.Anomalies, Anomaly{s.Seq, ms(s.RTT), s.Frame})
		}
	}
	b.Anomalies, b.Total = capped(b.Anomalies)
	return b
}

func icmp(f *facts.Facts) *ICMP {
	types := f.Control.Types[0]
	if len(types) == 0 {
		return nil
	}
	b := echoes(&f.Control.V4)
	b.Types = map[string]uint64{}
	for t, n := range types {
		b.Types[typeName(t[0])] += n
	}
	for _, e := range f.Control.Errors {
		if e.V6 {
			continue
		}
		src, dst, about, frame := e.Src.String(), e.Dst.String(), optional(e.About), e.Frames[0]
		switch e.Type {
		case 3:
			b.Unreachable = append(b.Unreachable, Unreachable{src, dst, e.Code, Meaning(e.Code), e.Count, frame, about, e.MTU})
		case 5:
			b.Redirects = append(b.Redirects, Redirect{src, dst, e.Gateway.String(), about, e.Count, frame})
		case 11:
			b.Exceeded = append(b.Exceeded, Exceeded{src, dst, about, e.Count, frame})
		}
	}
	b.Unreachable, _ = capped(b.Unreachable)
	b.Redirects, _ = capped(b.Redirects)
	b.Exceeded, _ = capped(b.Exceeded)
	return &b
}

// ICMPv6 has the same figures, and neighbour discovery.
type ICMPv6 struct {
	ICMP
	Solicits   uint64      `json:"neighbor_solicitations"`
	Adverts    uint64      `json:"neighbor_advertisements"`
	Unanswered []Asked     `json:"unanswered_solicitations"`
	Conflicts  []Duplicate `json:"duplicate_address_alerts,omitempty"`
	TooBig     []uint32    `json:"packet_too_big_mtu,omitempty"`
	Routers    []Router    `json:"router_advertisements,omitempty"`
}

// Router is what one router advertises.
type Router struct {
	Addr     string   `json:"router"`
	Count    uint64   `json:"count"`
	Lifetime uint16   `json:"lifetime_seconds"`
	MTU      uint32   `json:"mtu,omitempty"`
	Prefixes []string `json:"prefixes,omitempty"`
}

func routers(list []*control.Router) (out []Router) {
	for _, r := range list {
		x := Router{Addr: r.Addr.String(), Count: r.Count, Lifetime: r.Lifetime, MTU: r.MTU}
		for _, p := range r.Prefixes {
			x.Prefixes = append(x.Prefixes, fmt.Sprintf("%v/%d", p.Addr, p.Bits))
		}
		out = append(out, x)
	}
	out, _ = capped(out)
	return out
}

func icmpv6(f *facts.Facts) *ICMPv6 {
	types := f.Control.Types[1]
	if len(types) == 0 {
		return nil
	}
	n := &f.Control.ND
	b := &ICMPv6{ICMP: echoes(&f.Control.V6), Solicits: n.Solicits, Adverts: n.Adverts}
	b.Types = map[string]uint64{}
	for t, n := range types {
		b.Types[type6Name(t[0])] += n
	}
	b.ICMPv6Errors(f)
	b.ICMPv6Neighbours(n)
	b.Routers = routers(f.Control.Routers.List)
	return b
}

// ICMPv6Errors fills in what routers and hosts complained about.
func (b *ICMPv6) ICMPv6Errors(f *facts.Facts) {
	for _, e := range f.Control.Errors {
		if !e.V6 {
			continue
		}
		src, dst, about, frame := e.Src.String(), e.Dst.String(), optional(e.About), e.Frames[0]
		switch e.Type {
		case 1:
			b.Unreachable = append(b.Unreachable, Unreachable{src, dst, e.Code, Meaning6(e.Code), e.Count, frame, about, 0})
		case 2:
			b.TooBig = append(b.TooBig, e.MTU)
		case 3:
			b.Exceeded = append(b.Exceeded, Exceeded{src, dst, about, e.Count, frame})
		case 137:
			b.Redirects = append(b.Redirects, Redirect{src, dst, e.Gateway.String(), about, e.Count, frame})
		}
	}
	b.Unreachable, _ = capped(b.Unreachable)
	b.Redirects, _ = capped(b.Redirects)
	b.Exceeded, _ = capped(b.Exceeded)
	b.TooBig, _ = capped(b.TooBig)
}

// ICMPv6Neighbours fills in neighbour discovery.
func (b *ICMPv6) ICMPv6Neighbours(n *control.ND) {
	b.Unanswered, _ = capped(unanswered(n.Targets))
	b.Conflicts, _ = capped(duplicates(n.Conflicts))
}

func optional(a flow.Addr) string {
	if a == (flow.Addr{}) {
		return ""
	}
	return a.String()
}

var (
	icmpTypes  = map[uint8]string{0: "echo_reply", 3: "dest_unreachable", 5: "redirect", 8: "echo_request", 11: "time_exceeded"}
	icmp6Types = map[uint8]string{1: "dest_unreachable", 2: "packet_too_big", 3: "time_exceeded", 4: "parameter_problem", 128: "echo_request", 129: "echo_reply",
		133: "router_solicitation", 134: "router_advertisement", 135: "neighbor_solicitation", 136: "neighbor_advertisement", 137: "redirect", 143: "mld2_report"}
	meanings = map[uint8]string{0: "Network unreachable", 1: "Host unreachable", 3: "Port unreachable", 4: "Fragmentation needed",
		9: "Network administratively prohibited", 10: "Host administratively prohibited", 13: "Communication administratively prohibited"}
	meanings6 = map[uint8]string{0: "No route to destination", 1: "Communication administratively prohibited", 2: "Beyond scope of source address",
		3: "Address unreachable", 4: "Port unreachable", 5: "Source address failed policy", 6: "Reject route to destination"}
)

func typeName(t uint8) string  { return named(icmpTypes, t, "type_") }
func type6Name(t uint8) string { return named(icmp6Types, t, "type_") }

// Meaning is the text of an ICMP unreachable code.
func Meaning(c uint8) string { return named(meanings, c, "Code ") }

// Meaning6 is the text of an ICMPv6 unreachable code.
func Meaning6(c uint8) string { return named(meanings6, c, "Code ") }

func named(m map[uint8]string, v uint8, other string) string {
	if s, ok := m[v]; ok {
		return s
	}
	return other + strconv.Itoa(int(v))
}

// UDP counts conversations, DNS left out.
type UDP struct {
	Datagrams uint64 `json:"datagrams"`
	Flows     int    `json:"flows"`
	OneWay    int    `json:"one_way_flows"`
	MDNS      uint64 `json:"mdns_llmnr_messages,omitempty"`
	Bytes     uint64 `json:"payload_bytes"`
	// Reply is the time from the first datagram of a conversation to the first of the other end.
	Reply    *stat.Summary `json:"first_reply_ms,omitempty"`
	TopFlows []Talk        `json:"top_flows,omitempty"`
}

// Talk is one conversation.
type Talk struct {
	Flow    string  `json:"flow"`
	Packets uint64  `json:"packets"`
	Bytes   uint64  `json:"bytes"`
	Seconds float64 `json:"duration_seconds"`
	Rate    float64 `json:"kbit_per_second,omitempty"`
	Back    uint64  `json:"packets_back"`
}
