package finding

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ghostbot/forensics/app"
	"ghostbot/forensics/dns"
	"ghostbot/forensics/finding/services"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/semantic/text"
)

// names finds what is wrong with name resolution, server by server.
func (c *inquiry) names() {
	list := make([]*dns.Server, 0, len(c.f.DNS.Servers))
	for _, s := range c.f.DNS.Servers {
		if s.Queries > 0 {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *dns.Server) int {
		return cmp.Or(cmp.Compare(b.Queries, a.Queries), cmp.Compare(a.Addr.Hi, b.Addr.Hi), cmp.Compare(a.Addr.Lo, b.Addr.Lo))
	})
	for _, s := range list {
		c.resolver(s)
	}
}

func (c *inquiry) resolver(s *dns.Server) {
	add := func(sev Severity, code string, conf float64, at []uint32, summary, detail, confirm string) {
		c.add(Finding{Severity: sev, Protocol: "dns", Code: code, Confidence: conf, Frames: at, Summary: summary, Detail: detail, Confirm: confirm, Flow: ""})
	}
	asked := s.Queries
	c.truncated(s)
	if n := s.Rcodes[2]; n > 0 && n*10 >= asked {
		add(High, "dns-servfail", 0.9, s.Evidence["SERVFAIL"], fmt.Sprintf("%v answers %d of %d queries with SERVFAIL.", s.Addr, n, asked),
			"The resolver reached its limits: its own upstream servers do not answer, or DNSSEC validation fails. Names: "+names(c.f.DNS.Top(3, func(n *dns.Name) uint64 { return n.Fail }))+".",
			fmt.Sprintf("dig @%v NAME +cd: an answer would mean that validation fails.", s.Addr))
	}
	if n := s.Rcodes[5]; n > 0 && n*10 >= asked {
		add(High, "dns-refused", 0.9, s.Evidence["REFUSED"], fmt.Sprintf("%v refuses %d of %d queries.", s.Addr, n, asked), "The server does not serve this client: an access list, or no recursion.", "Access lists (allow-query, allow-recursion) of the server.")
	}
	if n := s.Rcodes[3]; n > 0 && n*4 >= asked {
		add(services.Missing(c.f), "dns-nxdomain", 0.85, s.Evidence["NXDOMAIN"], fmt.Sprintf("%v answers %d of %d queries with NXDOMAIN.", s.Addr, n, asked),
			"The names do not exist: "+names(c.f.DNS.Top(3, func(n *dns.Name) uint64 { return n.NX }))+". Typical reasons are a typing error and search domains that are appended.", "The name as the application has it; resolv.conf (search, ndots).")
	}
	if s.Void > 0 && s.Void*4 >= asked {
		add(Medium, "dns-empty-answer", 0.85, s.Evidence["void"], fmt.Sprintf("%d of %d queries get NOERROR without an answer.", s.Void, asked), "The names exist, but have no record of the type that was asked for.", "dig NAME ANY, and the types that the zone has.")
	}
	c.unanswered(s)
	med, high := s.Latency.Median(), s.Latency.Quantile(0.95)
	late := s.Late > s.Repaired && s.Retries > 0
	if far := c.distance(s.Addr); far > 50e6 && med < 2*far && s.Latency.Min > far/2 {
		return // the network takes the time, and another rule says so
	}
	if s.Latency.N > 0 && (med > 200e6 || high > 500e6 && (s.Latency.Above(300e6)-min(s.Latency.Above(300e6), int64(s.Repaired)))*4 >= s.Latency.N || late && s.Unanswered*2 <= s.Retries+s.Late && high > 200e6) {
		add(Medium, "dns-slow", 0.86, append(slowFrames(c.f.DNS), s.Evidence["late"]...), fmt.Sprintf("%v needs %s (median) and up to %s to answer.", s.Addr, ms(med), ms(s.Latency.Max)),
			fmt.Sprintf("%d answers; %d came after the client had asked again.", s.Latency.N, s.Late-s.Repaired), fmt.Sprintf("dig @%v twice: fast the second time means that its upstream is slow; ping tells the network's share.", s.Addr))
	}
}

func slowFrames(l *dns.Log) (out []uint32) {
	for _, s := range l.Slowest[:min(3, len(l.Slowest))] {
		out = append(out, s.Frame)
	}
	return out
}

func names(list []dns.Name) string {
	out := ""
	for i, n := range list {
		if i > 0 {
			out += ", "
		}
		out += n.Text
	}
	return out
}

// truncated handles answers that do not fit, and whether asking over TCP works.
func (c *inquiry) truncated(s *dns.Server) {
	if s.Truncated == 0 {
		return
	}
	var blocked []uint32
	for _, x := range c.conns {
		if a, p := x.k.End(x.server()); p == 53 && a == s.Addr && x.half(x.client).SYNs > 0 && !x.s.Done && x.half(x.server()).Data == 0 {
			blocked = append(blocked, x.s.FirstFrame)
			x.explained = "dns-truncated-tcp-blocked"
		}
	}
	if len(blocked) > 0 {
		c.out = slices.DeleteFunc(c.out, func(f Finding) bool {
			return (f.Code == "syn-blackhole" || f.Code == "connection-refused" || f.Code == "firewall-reject") && f.Protocol == "tcp" && len(f.Frames) > 0 && slices.Contains(blocked, f.Frames[0])
		})
		c.add(Finding{Severity: High, Protocol: "dns", Code: "dns-truncated-tcp-blocked", Confidence: 0.95, Frames: append(s.Evidence["truncated"], blocked...), Flow: text.Service(s.Addr, 53),
			Summary: fmt.Sprintf("%v sends truncated answers, and its TCP port 53 does not answer.", s.Addr),
			Detail:  fmt.Sprintf("%d truncated answers ask the client to try TCP; %s to port 53 got nowhere.", s.Truncated, plural(len(blocked), "connection", "connections")),
			Confirm: fmt.Sprintf("dig @%v +tcp NAME; permit TCP 53 in the filters.", s.Addr)})
		return
	}
	c.add(Finding{Severity: Medium, Protocol: "dns", Code: "dns-truncated", Confidence: 0.85, Frames: s.Evidence["truncated"], Flow: text.Service(s.Addr, 53),
		Summary: fmt.Sprintf("%d answers of %v are truncated.", s.Truncated, s.Addr), Detail: "Each has to be asked for again over TCP, which costs two more round trips.",
		Confirm: "EDNS buffer sizes of client and server, and devices that strip EDNS."})
}

// unanswered tells a server that is away from answers that are lost: a retry that
// succeeds speaks for loss.
func (c *inquiry) unanswered(s *dns.Server) {
	if s.Unanswered+s.Repaired == 0 || c.icmpAbout[s.Addr] || c.closed(s.Addr) || c.has("fragments-dropped") {
		return
	}
	if c.oneWay && c.f.DNS.Responses == 0 { // the answers take the way that is not in the capture
		return
	}
	recovered, stuck, pending := int(s.Repaired), 0, uint64(0)
	for i := range c.f.DNS.Open {
		q := &c.f.DNS.Open[i]
		if q.Server() != s.Addr {
			continue
		}
		switch {
		case q.Recovered:
			recovered++
		case !q.Retry && c.f.Last-q.Time < s.Latency.Max:
			pending++ // others waited longer: the capture ended before the answer
		default:
			stuck++
		}
	}
	lost := s.Unanswered - min(s.Unanswered, pending) + s.Repaired
	if lost == 0 {
		return
	}
	f := Finding{Severity: High, Protocol: "dns", Code: "dns-timeout", Confidence: 0.9, Frames: s.Evidence["unanswered"], Flow: text.Service(s.Addr, 53),
		Summary: fmt.Sprintf("%v leaves %d of %d queries without an answer.", s.Addr, lost-s.Repaired, s.Queries),
		Detail:  fmt.Sprintf("%d of them were asked again; %d never got an answer, also not to a repetition.", s.Retries, stuck),
		Confirm: fmt.Sprintf("dig @%v NAME: time-outs for all names mean server or path, for some names what the server asks in turn.", s.Addr)}
	switch {
	case recovered > stuck:
		f.Code, f.Confidence = "dns-packet-loss", 0.88
		f.Summary = fmt.Sprintf("Queries to %v, or its answers, are lost: %d of %d.", s.Addr, lost, s.Queries)
		f.Frames = append(f.Frames, s.Evidence["repaired"]...)
		f.Detail = fmt.Sprintf("%d were answered when they were asked again, so the server knows the names.", recovered)
		f.Confirm = fmt.Sprintf("Capture at the server; ping %v for loss on the path.", s.Addr)
		if late := s.Late - s.Repaired; late > 0 && int(late) >= recovered {
			f.Severity, f.Confidence = Low, 0.6
		}
	case lost*20 < s.Queries:
		f.Severity = Low
	}
	c.add(f)
}

func (c *inquiry) closed(a flow.Addr) bool {
	for _, e := range c.f.Control.Errors {
		if e.About == a && e.Port == 53 && refusal(e) != "" {
			return true
		}
	}
	return false
}

// handshakes finds TLS that fails.
func (c *inquiry) handshakes() {
	for _, s := range c.f.App.Sessions {
		h := &s.TLS
		f := Finding{Severity: High, Protocol: "tls", Code: "tls-failure", Confidence: 0.93, Frames: []uint32{h.Hello, h.ServerHello}, Flow: c.flowOf(s)}
		name := when(h.SNI != "", h.SNI, "the server")
		for _, a := range h.Alerts {
			if a.Code == 0 || a.Code == 90 {
				continue
			}
			f.Frames = append(f.Frames, a.Frame)
			f.Summary = fmt.Sprintf("TLS with %s fails: alert %s.", name, a.Name())
			f.Detail = fmt.Sprintf("The alert comes from the %s. %s The client offers %s at most%s.", when(c.fromClient(s, int(a.Dir)), "client", "server"), services.AlertReason(a.Code, h.ServerHello > 0), app.VersionName(h.Offered),
				when(h.ServerHello > 0, ", the server chose "+app.VersionName(h.Version), ", the server chose nothing"))
			f.Confirm = "openssl s_client -connect HOST:PORT -servername NAME shows the same alert; change the side that the alert names."
			break
		}
		switch x := c.byNumber(s.Stream); {
		case f.Summary != "":
		case s.Kind == app.Mixed:
			f.Frames = append(f.Frames, h.MixedFrame)
			f.Summary = "One side speaks TLS, the other does not."
			f.Detail = "The client sends a TLS handshake and the server answers in plain text, or the other way round: the wrong port or a listener without TLS."
			f.Confirm = "curl http:// against the port answers."
		case h.Hello > 0 && h.ServerHello == 0 && x != nil && x.explained == "" && x.half(x.server()).Bytes == 0 && (x.half(x.server()).RSTs > 0 || x.half(x.server()).FIN):
			f.Confidence = 0.8
			f.Summary = fmt.Sprintf("%s ends the connection instead of answering the TLS handshake.", name)
			f.Detail = "The client's hello is acknowledged and the connection closed: no certificate for that name, a limit, or a device that does not like what it sees."
			f.Confirm = "The same with another server name (openssl s_client -servername)."
		case h.Refusal > 0 && h.Version == 0x0304 && x != nil && (x.half(x.server()).RSTs > 0 || x.half(x.server()).FIN):
			f.Confidence = 0.75
			f.Frames = append(f.Frames, h.Refusal)
			f.Summary = fmt.Sprintf("%s ends the TLS connection right after the handshake.", name)
			f.Detail = "All that it sends after the client's part of the handshake is one encrypted record as long as an alert, and then it closes: in TLS 1.3 that is how a client certificate that is missing or not accepted shows."
			f.Confirm = "The server's log names the alert; openssl s_client -cert with a certificate that it accepts."
		case h.CertFrame > 0 && (c.now().After(h.NotAfter) || c.now().Before(h.NotBefore)):
			f.Frames = append(f.Frames, h.CertFrame)
			f.Summary = fmt.Sprintf("The certificate of %s is not valid at the time of the capture.", name)
			f.Detail = fmt.Sprintf("Valid from %s to %s.", h.NotBefore.UTC().Format(time.DateOnly), h.NotAfter.UTC().Format(time.DateOnly))
			f.Confirm = "Renew it, or correct the clock of who checks it."
		}
		if f.Summary != "" {
			if x := c.byNumber(s.Stream); x != nil {
				x.explained = "tls-failure"
			}
			c.out = slices.DeleteFunc(c.out, func(o Finding) bool {
				return o.Flow == f.Flow && (o.Code == "rst-by-server" || o.Code == "rst-by-client")
			})
			c.add(f)
		}
	}
}

func (c *inquiry) now() time.Time { return time.Unix(0, c.f.First) }

func (c *inquiry) byNumber(n uint32) *conn {
	if c.numbers == nil {
		c.numbers = make(map[uint32]*conn, len(c.conns))
		for _, x := range c.conns {
			c.numbers[x.s.Number] = x
		}
	}
	return c.numbers[n]
}

func (c *inquiry) fromClient(s *app.Session, dir int) bool {
	x := c.byNumber(s.Stream)
	return x != nil && x.client == dir
}

func (c *inquiry) flowOf(s *app.Session) string {
	if x := c.byNumber(s.Stream); x != nil {
		return x.flow()
	}
	return text.End(&s.Key, 0) + " -> " + text.End(&s.Key, 1)
}

// statuses finds HTTP servers that answer with errors.
func (c *inquiry) statuses() {
	var errors, responses uint32
	var at []uint32
	var example *app.Session
	for _, s := range c.f.App.Sessions {
		responses += s.HTTP.Responses
		if s.HTTP.Errors5xx > 0 {
			errors += s.HTTP.Errors5xx
			at = append(at, s.HTTP.Evidence...)
			example = s
			if x := c.byNumber(s.Stream); x != nil && x.explained == "" {
				x.explained = "http-errors"
			}
		}
	}
	if errors == 0 || errors*20 < responses {
		return
	}
	codes := ""
	for code := 500; code < 600; code++ {
		if n := c.f.App.Status[code]; n > 0 {
			codes += fmt.Sprintf(" %d (%d times)", code, n)
		}
	}
	c.add(Finding{Severity: High, Protocol: "http", Code: "http-errors", Confidence: 0.92, Frames: at, Flow: c.flowOf(example),
		Summary: fmt.Sprintf("The server answers %d of %d requests with an error of its own.", errors, responses),
		Detail:  "Status" + codes + ". The network carries requests and answers; 502 and 504 come from a proxy whose upstream does not answer.",
		Confirm: "The error log of the server or proxy; a capture between proxy and upstream."})
}
