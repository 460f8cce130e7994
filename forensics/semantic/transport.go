package semantic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"ghostbot/forensics/app"
	"ghostbot/forensics/dns"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/semantic/text"
	"ghostbot/forensics/stat"
	"ghostbot/forensics/tcp"
)

// TCP is the specification's block.
type TCP struct {
	Streams         uint32              `json:"streams_total"`
	Retransmissions uint64              `json:"retransmissions_total"`
	Resets          uint64              `json:"rst_count"`
	DupACKs         uint64              `json:"duplicate_ack_total"`
	OutOfOrder      uint64              `json:"out_of_order_total"`
	ZeroWindow      uint64              `json:"zero_window_total"`
	Verdicts        map[string]uint64   `json:"verdicts,omitempty"`
	ACKRTT          stat.Summary        `json:"ack_rtt_ms"`
	Connections     Connections         `json:"connection_stats"`
	Issues          []Stream            `json:"streams_with_issues"`
	IssuesTotal     int                 `json:"streams_with_issues_total"`
	Frames          map[string][]uint32 `json:"frames,omitempty"`
}

// Connections is how connections began and ended.
type Connections struct {
	SYN        uint32  `json:"syn_sent"`
	SYNACK     uint32  `json:"syn_ack_received"`
	Handshakes uint32  `json:"handshakes_completed"`
	Success    float64 `json:"handshake_success_rate_pct"`
	RSTs       uint32  `json:"rst_teardowns"`
	FINs       uint32  `json:"fin_teardowns"`
}

// Stream is a connection with something to look at.
type Stream struct {
	ID              uint32       `json:"stream_id"`
	Src             string       `json:"src"`
	Dst             string       `json:"dst"`
	Retransmissions uint32       `json:"retransmissions"`
	DupACKs         uint32       `json:"duplicate_acks"`
	OutOfOrder      uint32       `json:"out_of_order"`
	ZeroWindow      uint32       `json:"zero_window_events"`
	RST             uint32       `json:"rst"`
	ACKRTT          stat.Summary `json:"ack_rtt_ms"`
	Delta           stat.Summary `json:"delta_ms"`
	Frames          []uint32     `json:"sample_frames"`
	Bytes           [2]uint64    `json:"bytes"` // payload from src and from dst
	MSS             [2]uint16    `json:"mss"`
	Scale           [2]*int      `json:"window_scale"` // null: not seen
	SACK            bool         `json:"sack_permitted"`
	Handshake       float64      `json:"handshake_ms,omitempty"`
	InFlight        [2]int       `json:"max_bytes_in_flight"`
	Rate            [2]float64   `json:"mbit_per_second"`
	Idle            float64      `json:"longest_idle_ms"`
	Backoff         int          `json:"rto_backoff,omitempty"` // most times that one segment was sent again
	Stall           float64      `json:"longest_repair_ms,omitempty"`
	End             string       `json:"ended"`
}

func tcpBlock(f *facts.Facts, frames bool) *TCP {
	t := f.TCP
	if f.Kinds[frame.TCP] == 0 {
		return nil
	}
	b := &TCP{Streams: t.Total.Streams, Retransmissions: t.Count[tcp.Retransmission], Resets: t.Count[tcp.Reset], DupACKs: t.Count[tcp.DupACK],
		OutOfOrder: t.Count[tcp.OutOfOrder], ZeroWindow: t.Count[tcp.ZeroWindow], ACKRTT: t.RTT.Summary(), Verdicts: map[string]uint64{},
		Connections: Connections{SYN: t.Total.SYNStreams, SYNACK: t.Total.SYNACKs, Handshakes: t.Total.Handshakes, RSTs: t.Total.RSTs, FINs: t.Total.FINs}}
	for c, n := range t.Count {
		if n > 0 {
			b.Verdicts[tcp.Names[c]] = n
		}
	}
	if t.Total.SYNStreams > 0 {
		b.Connections.Success = round(100*float64(t.Total.Handshakes)/float64(t.Total.SYNStreams), 1)
	}
	b.Issues, b.IssuesTotal = issues(t)
	if frames {
		b.Frames = map[string][]uint32{}
		for c, list := range t.Frames {
			if list == nil {
				list = []uint32{}
			}
			b.Frames[tcp.Names[c]] = list
		}
	}
	return b
}

// issues lists the streams with the most trouble. A stream is listed when it has a
// verdict of the specification's list, or when the 95th percentile of the gaps
// between its packets is more than twice the median over all streams.
func issues(t *tcp.Tracker) ([]Stream, int) {
	out, total := []Stream{}, 0
	limit := 2 * t.Gap.Median()
	t.Table.All(func(_ uint32, k *flow.Key, s *tcp.Stream) bool {
		d := t.Detail(s)
		if d == nil {
			return true
		}
		if weight(d) == 0 && (d.Gap.N == 0 || d.Gap.Quantile(0.95) <= limit) {
			return true
		}
		total++
		out = append(out, stream(k, s, d))
		if len(out) > 64*maxList {
			out = worst(out)
		}
		return true
	})
	return worst(out), total
}

func weight(d *tcp.Detail) uint32 {
	return d.Sum(tcp.Retransmission) + d.Sum(tcp.DupACK) + d.Sum(tcp.OutOfOrder) + d.Sum(tcp.ZeroWindow) + d.Sum(tcp.Reset)
}

func worst(list []Stream) []Stream {
	sum := func(s *Stream) uint32 { return s.Retransmissions + s.DupACKs + s.OutOfOrder + s.ZeroWindow + s.RST }
	slices.SortStableFunc(list, func(a, b Stream) int {
		return cmp.Or(cmp.Compare(sum(&b), sum(&a)), cmp.Compare(b.Delta.P95, a.Delta.P95), cmp.Compare(a.ID, b.ID))
	})
	return list[:min(len(list), maxList)]
}

func stream(k *flow.Key, s *tcp.Stream, d *tcp.Detail) Stream {
	out := Stream{ID: s.Number, Retransmissions: d.Sum(tcp.Retransmission), DupACKs: d.Sum(tcp.DupACK), OutOfOrder: d.Sum(tcp.OutOfOrder),
		ZeroWindow: d.Sum(tcp.ZeroWindow), RST: d.Sum(tcp.Reset), Delta: d.Gap.Summary(), Frames: []uint32{}}
	out.Src, out.Dst = End(k, int(s.FirstDir)), End(k, int(s.FirstDir^1))
	r := &d.RTT[0]
	if d.RTT[1].N > r.N {
		r = &d.RTT[1]
	}
	out.ACKRTT = r.Summary()
	for _, c := range []tcp.Class{tcp.Retransmission, tcp.Reset, tcp.ZeroWindow, tcp.OutOfOrder, tcp.DupACK} {
		for _, no := range d.Evidence[c] {
			if no > 0 && len(out.Frames) < 5 && !slices.Contains(out.Frames, no) {
				out.Frames = append(out.Frames, no)
			}
		}
	}
	slices.Sort(out.Frames)
	out.more(s, d)
	return out
}

// more fills in what is known of both directions.
func (x *Stream) more(s *tcp.Stream, d *tcp.Detail) {
	seconds := float64(s.Last-s.First) / 1e9
	for j, i := range []uint8{s.FirstDir, s.FirstDir ^ 1} {
		h, a := &s.Half[i], &d.Side[i]
		x.Bytes[j], x.MSS[j], x.InFlight[j] = h.Bytes, h.MSS, a.InFlight
		if shift, known := h.Scale(); known && h.SYNs > 0 {
			x.Scale[j] = &shift
		}
		if seconds > 0 {
			x.Rate[j] = round(float64(h.Bytes)*8/1e6/seconds, 3)
		}
		if int(a.MaxRun) > x.Backoff {
			x.Backoff = int(a.MaxRun)
		}
		x.Stall = max(x.Stall, ms(a.Stall))
	}
	x.SACK = s.Half[0].SACKOK && s.Half[1].SACKOK
	x.Handshake, x.Idle = ms(s.InitialRTT), ms(d.Turns.IdleMax)
	x.End = []string{"open", "fin", "rst"}[min(int(s.Closed), 2)]
}

// End writes one end of a conversation as address and port.
func End(k *flow.Key, i int) string { return text.End(k, i) }

// DNS is the specification's block.
type DNS struct {
	Queries     uint64            `json:"queries_total"`
	Responses   uint64            `json:"responses_total"`
	Unanswered  uint64            `json:"unanswered_queries"`
	Retries     uint64            `json:"retried_queries,omitempty"`
	Rcodes      map[string]uint64 `json:"rcode_distribution"`
	Latency     stat.Summary      `json:"latency_ms"`
	Slow        []Slow            `json:"slow_queries"`
	SlowTotal   int64             `json:"slow_queries_total,omitempty"`
	Types       map[string]uint64 `json:"query_type_distribution"`
	NXDomains   []string          `json:"nxdomain_domains,omitempty"`
	ServFails   []string          `json:"servfail_domains,omitempty"`
	TopDomains  []Domain          `json:"top_queried_domains,omitempty"`
	Servers     []string          `json:"dns_servers_queried,omitempty"`
	Truncated   uint64            `json:"truncated_responses"`
	Empty       uint64            `json:"empty_answers,omitempty"`
	Unsolicited uint64            `json:"unsolicited_responses,omitempty"`
}

// Slow is an answer that took more than twice the median.
type Slow struct {
	Latency float64 `json:"latency_ms"`
	Name    string  `json:"name"`
	Frame   uint32  `json:"frame"`
}

// Domain is a name and how often it was asked for.
type Domain struct {
	Name  string `json:"name"`
	Count uint64 `json:"count"`
}

func dnsBlock(f *facts.Facts) *DNS {
	l := f.DNS
	if l.Queries+l.Responses == 0 {
		return nil
	}
	b := &DNS{Queries: l.Queries, Responses: l.Responses, Unanswered: l.Unanswered, Retries: l.Retries, Rcodes: map[string]uint64{}, Latency: l.Latency.Summary(),
		Slow: []Slow{}, Types: map[string]uint64{}, Truncated: l.Truncated, Empty: l.Empty, Unsolicited: l.Unsolicited}
	for c, n := range l.Rcodes {
		if n > 0 {
			b.Rcodes[dns.RcodeName(uint8(c))] = n
		}
	}
	for _, t := range frequent(l.Types, 4*maxList) {
		b.Types[dns.TypeName(t)] = l.Types[t]
	}
	limit := 2 * l.Latency.Median()
	for _, s := range l.Slowest {
		if s.Latency > limit && len(b.Slow) < maxList {
			b.Slow = append(b.Slow, Slow{ms(s.Latency), s.Name, s.Frame})
		}
	}
	if n := l.Latency.Above(limit); n > int64(len(b.Slow)) {
		b.SlowTotal = n
	}
	b.NXDomains = texts(l.Top(maxList, func(n *dns.Name) uint64 { return n.NX }))
	b.ServFails = texts(l.Top(maxList, func(n *dns.Name) uint64 { return n.Fail }))
	for _, n := range l.Top(maxList, func(n *dns.Name) uint64 { return n.Count }) {
		b.TopDomains = append(b.TopDomains, Domain{n.Text, n.Count})
	}
	b.Servers = servers(l)
	return b
}

// frequent are the keys of a map with the largest numbers, which does not depend on chance.
func frequent[K cmp.Ordered](m map[K]uint64, limit int) []K {
	keys := slices.SortedFunc(maps.Keys(m), func(a, b K) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	return keys[:min(limit, len(keys))]
}

func texts(names []dns.Name) (out []string) {
	for _, n := range names {
		out = append(out, n.Text)
	}
	return out
}

func servers(l *dns.Log) (out []string) {
	for a, s := range l.Servers {
		if s.Queries > 0 {
			out = append(out, a.String())
		}
	}
	slices.Sort(out)
	out, _ = capped(out)
	return out
}

// TLS is what was visible of TLS.
type TLS struct {
	Handshakes uint64            `json:"client_hellos"`
	Answered   uint64            `json:"server_hellos"`
	Versions   map[string]uint64 `json:"versions,omitempty"`
	Alerts     map[string]uint64 `json:"alerts,omitempty"`
	Names      []string          `json:"server_names,omitempty"`
	Expiry     []Expiry          `json:"certificates,omitempty"`
	Time       *stat.Summary     `json:"hello_to_hello_ms,omitempty"`
}

// Expiry is the time in which a certificate is valid.
type Expiry struct {
	Name      string `json:"server_name,omitempty"`
	Server    string `json:"server"`
	NotBefore string `json:"not_before"`
	NotAfter  string `json:"not_after"`
	Frame     uint32 `json:"frame"`
}

func tls(f *facts.Facts) *TLS {
	b := &TLS{Versions: map[string]uint64{}, Alerts: map[string]uint64{}}
	seen := map[string]bool{}
	var took stat.Dist
	for _, s := range f.App.Sessions {
		h := &s.TLS
		if h.Hello == 0 && h.ServerHello == 0 && len(h.Alerts) == 0 {
			continue
		}
		if h.Hello > 0 {
			b.Handshakes++
		}
		if h.ServerHello > 0 {
			b.Answered++
			b.Versions[app.VersionName(h.Version)]++
		}
		if h.Hello > 0 && h.ServerHello > 0 {
			took.Add(h.ServerTime - h.HelloTime)
		}
		for _, a := range h.Alerts {
			b.Alerts[a.Name()]++
		}
		if h.SNI != "" && !seen[h.SNI] && len(b.Names) < maxList {
			seen[h.SNI] = true
			b.Names = append(b.Names, h.SNI)
		}
		if h.CertFrame > 0 && len(b.Expiry) < maxList/2 {
			b.Expiry = append(b.Expiry, Expiry{h.SNI, End(&s.Key, 1), h.NotBefore.UTC().Format("2006-01-02T15:04:05Z"), h.NotAfter.UTC().Format("2006-01-02T15:04:05Z"), h.CertFrame})
		}
	}
	if b.Handshakes+b.Answered+uint64(len(b.Alerts)) == 0 {
		return nil
	}
	b.Time = measured(&took)
	return b
}

// measured is a distribution that has values, or nil.
func measured(d *stat.Dist) *stat.Summary {
	if d.N == 0 {
		return nil
	}
	s := d.Summary()
	return &s
}

// HTTP is what was visible of HTTP/1.
type HTTP struct {
	Methods    map[string]uint64 `json:"methods"`
	Status     map[string]uint64 `json:"status"`
	Time       stat.Summary      `json:"response_time_ms"`
	Unanswered int               `json:"requests_without_response,omitempty"`
}

func http(f *facts.Facts) *HTTP {
	if len(f.App.Methods)+len(f.App.Status) == 0 {
		return nil
	}
	b := &HTTP{Methods: f.App.Methods, Status: map[string]uint64{}, Time: f.App.Time.Summary()}
	for c, n := range f.App.Status {
		b.Status[strconv.Itoa(c)] = n
	}
	for _, s := range f.App.Sessions {
		if s.HTTP.Waiting() > 0 {
			b.Unanswered++
		}
	}
	return b
}

// DHCP counts messages by type.
type DHCP struct {
	Messages   map[string]uint64 `json:"messages"`
	Unanswered int               `json:"unanswered_transactions"`
	Complete   int               `json:"completed_transactions"`
	Time       *stat.Summary     `json:"time_to_lease_ms,omitempty"`
	Servers    []DHCPServer      `json:"servers,omitempty"`
}

// DHCPServer is what one server said.
type DHCPServer struct {
	ID     string `json:"server"`
	Router string `json:"router,omitempty"`
	Offers uint64 `json:"offers"`
	ACKs   uint64 `json:"acks"`
	NAKs   uint64 `json:"naks"`
}

var dhcpTypes = []string{"other", "discover", "offer", "request", "decline", "ack", "nak", "release", "inform"}

func dhcp(f *facts.Facts) *DHCP {
	b := &DHCP{Messages: map[string]uint64{}, Unanswered: len(f.Control.DHCP.Unanswered())}
	for t, n := range f.Control.DHCP.Types {
		if n == 0 {
			continue
		}
		name := fmt.Sprintf("type_%d", t)
		if t < len(dhcpTypes) {
			name = dhcpTypes[t]
		}
		b.Messages[name] = n
	}
	if len(b.Messages) == 0 {
		return nil
	}
	d := &f.Control.DHCP
	b.Complete, b.Time = d.Complete(), measured(&d.Time)
	for _, s := range d.Servers {
		b.Servers = append(b.Servers, DHCPServer{s.ID.String(), optional(s.Router), s.Offers, s.ACKs, s.NAKs})
	}
	b.Servers, _ = capped(b.Servers)
	return b
}

// QUIC counts what long headers say.
type QUIC struct {
	Flows       uint64            `json:"flows"`
	Packets     uint64            `json:"packets"`
	Initial     uint64            `json:"initial"`
	Handshake   uint64            `json:"handshake"`
	ZeroRTT     uint64            `json:"zero_rtt,omitempty"`
	Retry       uint64            `json:"retry,omitempty"`
	Negotiation uint64            `json:"version_negotiation,omitempty"`
	Versions    map[string]uint64 `json:"versions,omitempty"`
	Completed   int               `json:"flows_with_protected_packets"`
	Unanswered  int               `json:"flows_without_answer"`
	Names       []string          `json:"server_names,omitempty"`
	Closes      []QUICClose       `json:"closed_in_handshake,omitempty"`
}

// QUICClose is why connections ended in their handshake.
type QUICClose struct {
	Reason string `json:"reason"`
	Code   uint64 `json:"code"`
	By     string `json:"by"`
	Count  uint64 `json:"count"`
}

func quic(f *facts.Facts) *QUIC {
	q := &f.App.QUIC
	if q.Flows == 0 {
		return nil
	}
	b := &QUIC{Flows: q.Flows, Packets: q.Packets, Initial: q.Initial, Handshake: q.Handshake, ZeroRTT: q.ZeroRTT, Retry: q.Retry, Negotiation: q.Negotiation, Versions: map[string]uint64{}}
	for v, n := range q.Versions {
		b.Versions[fmt.Sprintf("0x%08x", v)] = n
	}
	b.Names, _ = capped(unique(q.Names))
	for i := range q.Closes {
		c := &q.Closes[i]
		by := "server"
		if c.ByClient {
			by = "client"
		}
		b.Closes = append(b.Closes, QUICClose{c.Name(), c.Code, by, c.Count})
	}
	b.Closes, _ = capped(b.Closes)
	f.App.UDP.All(func(_ uint32, _ *flow.Key, u *app.Flow) bool {
		if u.QUIC && u.Marks.Has(app.Protected) {
			b.Completed++
		}
		if u.QUIC && u.Packets[u.Dir^1] == 0 {
			b.Unanswered++
		}
		return true
	})
	return b
}

// unique sorts names and leaves out repetitions.
func unique(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

func udp(f *facts.Facts) *UDP {
	if f.Kinds[frame.UDP] == 0 {
		return nil
	}
	b := &UDP{Datagrams: f.Kinds[frame.UDP], Flows: f.App.UDP.Len(), MDNS: f.OtherNames, Reply: measured(&f.App.Reply)}
	var top []Talk
	f.App.UDP.All(func(_ uint32, k *flow.Key, u *app.Flow) bool {
		if u.Packets[0] == 0 || u.Packets[1] == 0 {
			b.OneWay++
		}
		b.Bytes += u.Bytes[0] + u.Bytes[1]
		seconds, rate := float64(u.Last-u.First)/1e9, 0.0
		if seconds > 0 {
			rate = round(float64(u.Bytes[0]+u.Bytes[1])*8/1e3/seconds, 1)
		}
		top = append(top, Talk{Packets: uint64(u.Packets[0]) + uint64(u.Packets[1]), Bytes: u.Bytes[0] + u.Bytes[1], Seconds: round(seconds, 3), Rate: rate, Back: uint64(u.Packets[u.Dir^1]),
			Flow: End(k, int(u.Dir)) + " -> " + End(k, int(u.Dir^1))})
		if len(top) > 64*maxList {
			top = busiest(top)
		}
		return true
	})
	b.TopFlows = busiest(top)
	return b
}

func busiest(list []Talk) []Talk {
	slices.SortStableFunc(list, func(a, b Talk) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Flow, b.Flow)) })
	return list[:min(len(list), maxList/2)]
}
