package finding

import (
	"fmt"

	"ghostbot/forensics/semantic/text"
	"ghostbot/forensics/tcp"
)

// flood finds handshakes that are opened in masses and never completed.
func (c *inquiry) flood() {
	flooded := c.flooded()
	for _, v := range c.listed {
		pending, sources := v.half+v.silent, flooded[v]
		if sources != nil && (len(sources) > 20 || pending >= 60) {
			for _, x := range v.conns {
				if !x.s.Done {
					x.explained = "syn-flood"
				}
			}
			c.add(Finding{Severity: Critical, Protocol: "tcp", Code: "syn-flood", Confidence: 0.9, Frames: firstFrames(v.conns, "syn-flood"), Flow: text.Service(v.end.a, v.end.p),
				Summary: fmt.Sprintf("%s gets more SYNs than anybody completes: %d of %d from %d sources.", text.Service(v.end.a, v.end.p), pending, v.attempts, len(sources)),
				Detail:  fmt.Sprintf("%d were answered with SYN-ACK and never acknowledged, %d were not answered; %d handshakes were completed. Clients that mean it find the backlog full.", v.half, v.silent, v.opened),
				Confirm: "nstat -az TcpExtTCPReqQFullDoCookies TcpExtTCPReqQFullDrop on the server; sources that answer the SYN-ACK would speak against it."})
		}
	}
}

func firstFrames(conns []*conn, why string) (out []uint32) {
	for _, x := range conns {
		if len(out) < 6 && (why == "" || x.explained == why) {
			out = append(out, x.s.FirstFrame)
		}
	}
	return out
}

// backlog finds a service whose process does not accept: the kernel completes some
// handshakes, nobody answers what is asked, and further SYNs are dropped.
func (c *inquiry) backlog() {
	for _, v := range c.listed {
		repeated, queue, deaf := 0, 0, 0
		for _, x := range v.conns {
			if sv, cl := x.half(x.server()), x.half(x.client); sv.SYNs > 1 && cl.SYNs == 1 && x.s.InitialRTT < 900e6 && x.s.Done && !c.copying && x.side(x.server()).Copies == 0 {
				repeated++ // the SYN-ACK again though it was acknowledged in time: the ACK was dropped
				queue++
			} else if x.s.Done && x.d.Turns.Waiting && x.half(x.server()).Bytes == 0 {
				queue++
				if s := x.side(x.client); s.OpenRun >= 2 && s.AckedLen == 0 {
					deaf++ // the kernel dropped the ACK of the handshake, and knows no connection
				}
			}
		}
		if v.opened < 1 || queue-deaf < 1 && deaf > 0 || queue < 2 || v.silent+v.resyn+repeated+deaf < 2 || v.served > queue+v.silent || c.icmpAbout[v.end.a] {
			continue
		}
		for _, x := range v.conns {
			x.explained = "backlog-overflow"
		}
		c.add(Finding{Severity: High, Protocol: "tcp", Code: "backlog-overflow", Confidence: 0.9, Frames: firstFrames(v.conns, ""), Flow: text.Service(v.end.a, v.end.p),
			Summary: fmt.Sprintf("The server process at %s does not accept connections: its accept queue is full.", text.Service(v.end.a, v.end.p)),
			Detail:  fmt.Sprintf("%d connections were opened by the kernel and %d of them never answered; %d further SYNs got no answer or only after a repetition, and on %d connections the request is not even acknowledged.", v.opened, v.unserved, v.silent+v.resyn, deaf),
			Confirm: fmt.Sprintf("On %v: ss -ltn sport = :%d (Recv-Q at Send-Q), nstat -az TcpExtListenOverflows.", v.end.a, v.end.p)})
	}
}

// asymmetric finds a capture that holds one direction only: connections that go on
// though nothing of the other side was seen.
func (c *inquiry) asymmetric() {
	one, both := 0, 0
	var at []uint32
	var example string
	for _, x := range c.conns {
		a, b := x.half(0), x.half(1)
		switch {
		case a.Packets > 0 && b.Packets > 0:
			both++
		case max(a.Packets, b.Packets) >= 3 && (a.Bytes+b.Bytes > 0 || a.ACKed || b.ACKed) && x.d.Sum(tcp.Retransmission)*3 < max(a.Packets, b.Packets):
			one++
			at, example = append(at, x.s.FirstFrame), x.flow()
			x.explained = "asymmetric-path"
		}
	}
	if one > 0 && one*2 > both {
		c.oneWay = true
		c.add(Finding{Severity: Low, Protocol: "tcp", Code: "asymmetric-path", Confidence: 0.9, Frames: at, Flow: example,
			Summary: fmt.Sprintf("Only one direction is in the capture for %s: the other one takes another path.", plural(one, "connection", "connections")),
			Detail:  "They acknowledge and go on though nothing of the other side is here. Losses, round trips and resets of the unseen direction cannot be judged from this capture. Stateful devices on the way would drop such connections.",
			Confirm: "Capture on both paths, or on an end host; compare traceroute in both directions."})
		return
	}
	c.hopMismatch()
}

// hopMismatch finds conversations whose directions use different interfaces or
// gateways.
func (c *inquiry) hopMismatch() {
	n := 0
	var at []uint32
	for _, x := range c.conns {
		if a, b := x.side(0).Link, x.side(1).Link; a != 0 && b != 0 && a != b && x.side(0).Hops+x.side(1).Hops == 0 {
			n++
			at = append(at, x.s.FirstFrame)
		}
	}
	if n == 0 || c.copying || 2*n < len(c.conns) {
		return
	}
	c.add(Finding{Severity: Low, Protocol: "ip", Code: "asymmetric-path", Confidence: 0.8, Frames: at,
		Summary: fmt.Sprintf("Both directions of %s use different ways.", plural(n, "connection", "connections")),
		Detail:  "Requests leave through one interface or gateway, answers come through another.",
		Confirm: "ip route get in both directions; a stateful firewall on one of the ways would see half of every connection."})
}

// refused reads RSTs that answer a SYN. The TTL tells whether the host itself or
// something nearer said so.
func (c *inquiry) refused() {
	for _, v := range c.listed {
		if v.refused == 0 || c.conflict[v.end.a] {
			continue
		}
		var at []uint32
		other, same, crashed, back := 0, 0, false, false
		var ttl, usual uint8
		var example *conn
		for _, x := range v.conns {
			m := &x.d.RSTs[x.server()]
			if x.s.SYNACK || m.Frame == 0 || x.explained != "" {
				continue
			}
			at = append(at, x.s.FirstFrame, m.Frame)
			example, ttl = x, m.TTL
			if v.firstRefused == 0 || x.s.First < v.firstRefused {
				v.firstRefused = x.s.First
			}
			if h, ok := c.hops[v.end.a]; ok {
				usual = h
				if h != m.TTL {
					other++
				} else {
					same++
				}
			}
			x.explained = "connection-refused"
		}
		if example == nil {
			continue
		}
		for _, x := range v.conns {
			if sv := x.half(x.server()); x.s.Done && x.s.First < v.firstRefused && (sv.RSTs > 0 || sv.FIN && x.d.Turns.Mid.N > 20) && sv.Bytes > 0 && v.firstRefused-x.s.Last < 60e9 {
				crashed = true
			}
			if x.s.Done && x.s.First > v.firstRefused {
				back = true
			}
		}
		if crashed && !back {
			c.crash(v, at)
			continue
		}
		c.refusal(v, example, at, other > same, ttl, usual)
	}
}

func (c *inquiry) refusal(v *service, x *conn, at []uint32, byOther bool, ttl, usual uint8) {
	where := text.Service(v.end.a, v.end.p)
	if byOther {
		c.add(Finding{Severity: High, Protocol: "tcp", Code: "firewall-reject", Confidence: 0.92, Frames: at, Flow: x.flow(),
			Summary: fmt.Sprintf("Something in front of %v rejects connections to port %d.", v.end.a, v.end.p),
			Detail:  fmt.Sprintf("The RST that answers the SYN arrives with TTL %d, other packets of that host with %d: a device %s to us sent it.", ttl, usual, when(ttl > usual, "nearer", "that is not equally near")),
			Confirm: "A reject rule with tcp-reset on the way; capture at the server: the SYN does not arrive there."})
		return
	}
	c.add(Finding{Severity: High, Protocol: "tcp", Code: "connection-refused", Confidence: 0.9, Frames: at, Flow: x.flow(),
		Summary: fmt.Sprintf("%s refuses connections: nothing listens there.", where),
		Detail:  fmt.Sprintf("%d of %d connection attempts were answered with RST%s.", v.refused, v.attempts, when(usual > 0, fmt.Sprintf(", with the TTL (%d) of the host's other packets", usual), "")),
		Confirm: fmt.Sprintf("On %v: ss -ltn sport = :%d. A firewall that rejects would answer with another TTL, or for other ports too.", v.end.a, v.end.p)})
}

func (c *inquiry) crash(v *service, at []uint32) {
	var broken *conn
	for _, x := range v.conns {
		if x.s.Done && x.s.First < v.firstRefused && (broken == nil || x.half(x.server()).RSTs > 0) {
			broken = x
			x.explained = "server-crash"
			at = append(at, x.d.RSTs[x.server()].Frame)
		}
	}
	c.add(Finding{Severity: Critical, Protocol: "tcp", Code: "server-crash", Confidence: 0.92, Frames: at, Flow: broken.flow(),
		Summary: fmt.Sprintf("The server process at %s died.", text.Service(v.end.a, v.end.p)),
		Detail:  fmt.Sprintf("It ended a connection in the middle of a transfer, and refused %d later ones; none was opened since.", v.refused),
		Confirm: fmt.Sprintf("Logs and core dumps of the service on %v; systemctl status; the port is closed now.", v.end.a)})
}

// silent handles SYNs without an answer, and SYN-ACKs that nobody acknowledges.
func (c *inquiry) silent() {
	for _, v := range c.listed {
		if c.icmpAbout[v.end.a] {
			continue
		}
		c.blackhole(v)
		c.returnPath(v)
		c.lostSYNs(v)
	}
}

func (c *inquiry) blackhole(v *service) {
	var at []uint32
	var example *conn
	n, repeats := 0, 0
	for _, x := range v.conns {
		cl, sv := x.half(x.client), x.half(x.server())
		if x.explained == "" && cl.SYNs > 0 && sv.Packets == 0 && x.s.Closed == tcp.Open && (cl.SYNs > 1 || c.f.Last-x.s.First > 3e9) {
			n++
			repeats += int(cl.SYNs) - 1
			at, example = append(at, x.s.FirstFrame, x.s.SYNFrame), x
		}
	}
	if n == 0 || repeats == 0 && n < 3 {
		return
	}
	for _, x := range v.conns {
		if x.half(x.client).SYNs > 0 && x.half(x.server()).Packets == 0 {
			x.explained = "syn-blackhole"
		}
	}
	if v.end.p == 53 && c.f.DNS.Truncated > 0 {
		return // the rule for names says what that means
	}
	if v.opened > n || v.resyn > 0 && v.opened > 0 {
		c.limited(v, n, at)
		return
	}
	_, up := c.hops[v.end.a]
	c.add(Finding{Severity: High, Protocol: "tcp", Code: "syn-blackhole", Confidence: 0.88, Frames: at, Flow: example.flow(),
		Summary: fmt.Sprintf("SYNs to %s get no answer at all.", text.Service(v.end.a, v.end.p)),
		Detail: fmt.Sprintf("%s, %d SYNs repeated, neither SYN-ACK nor RST nor ICMP came back. A filter drops silently, or the answer does not find its way: this side cannot tell the two apart. %s",
			plural(n, "connection attempt", "connection attempts"), repeats,
			when(up, "Other packets of the host arrive, so that host and path are up, and the filter is one for this port.", "Nothing else of the host is in the capture, so that all of it may be out of reach.")),
		Confirm: "Capture at the server: no SYN there means dropped on the way to it; SYN-ACKs there mean that the return path is blocked."})
	c.add(Finding{Severity: Medium, Protocol: "tcp", Code: "return-path-blocked", Confidence: alternative(up), Frames: at, Flow: example.flow(),
		Summary: fmt.Sprintf("The other explanation: SYN-ACKs of %s are dropped on the way back.", text.Service(v.end.a, v.end.p)),
		Detail:  "From this side it looks exactly like a SYN that is dropped.",
		Confirm: "Capture at the server: SYN-ACKs that are repeated there."})
}

// alternative is how likely a blocked way back is: less when it works for other ports.
func alternative(up bool) float64 {
	if up {
		return 0.3
	}
	return 0.45
}

// returnPath handles the server's side: it answers, and the answer does not arrive.
// What a client sees of it is the same as a black hole, unless the SYN is old news
// to the server.
func (c *inquiry) returnPath(v *service) {
	n, synacks := 0, 0
	var at []uint32
	var example *conn
	for _, x := range v.conns {
		sv, cl := x.half(x.server()), x.half(x.client)
		if x.explained == "" && x.s.SYNACK && !x.s.Done && !cl.ACKed && (sv.SYNs > 1 || cl.SYNs > 1) && cl.RSTs == 0 {
			n++
			synacks += int(sv.SYNs)
			at, example = append(at, x.s.FirstFrame, x.s.SYNFrame), x
			x.explained = "return-path-blocked"
		}
	}
	if n == 0 {
		return
	}
	c.add(Finding{Severity: High, Protocol: "tcp", Code: "return-path-blocked", Confidence: 0.9, Frames: at, Flow: example.flow(),
		Summary: fmt.Sprintf("%s answers SYNs, but its SYN-ACKs do not reach the client.", text.Service(v.end.a, v.end.p)),
		Detail:  fmt.Sprintf("%s: %d SYN-ACKs were sent, the client goes on sending its SYN. The way back is filtered or routed elsewhere.", plural(n, "connection", "connections"), synacks),
		Confirm: "Capture at the client: no SYN-ACK there. Check the filters and routes of the return path."})
}

// lostSYNs handles attempts that succeeded only after the SYN was sent again, while
// data is not lost.
func (c *inquiry) lostSYNs(v *service) {
	if v.resyn == 0 {
		return
	}
	c.limited(v, v.silent, nil)
}

func (c *inquiry) limited(v *service, silent int, at []uint32) {
	again, lost := 0, uint32(0)
	var example *conn
	for _, x := range v.conns {
		if cl, sv := x.half(x.client), x.half(x.server()); (cl.SYNs > 1 || sv.SYNs > 1 && x.s.Done) && x.side(0).Copies+x.side(1).Copies == 0 {
			again++
			example = x
			at = append(at, x.s.FirstFrame, x.s.SYNFrame)
		}
		for i := range 2 {
			if s := x.side(i); x.s.Done && s.LostLen[1] > 0 {
				lost += s.Resent + s.Filled
			}
		}
	}
	if example == nil || c.has("syn-rate-limit") {
		return
	}
	if v.attempts >= 10 && again >= 3 && again*50 >= v.attempts && int(lost)*5 <= again {
		for _, x := range v.conns {
			if x.half(x.client).SYNs > 1 {
				x.explained = "syn-rate-limit"
			}
		}
		c.add(Finding{Severity: High, Protocol: "tcp", Code: "syn-rate-limit", Confidence: 0.9, Frames: at, Flow: example.flow(),
			Summary: fmt.Sprintf("New connections to %s are limited: %d of %d SYNs had to be repeated.", text.Service(v.end.a, v.end.p), again, v.attempts),
			Detail:  fmt.Sprintf("Only SYNs are lost (%d connections never opened); what is open loses %d segments. A device on the way, or the server's own queue, drops new connections over a rate.", silent, lost),
			Confirm: "Look for a limit on SYN packets or new connections (hashlimit, connlimit, a load balancer's quota); at the server, nstat -az TcpExtListenDrops."})
		return
	}
	if again*3 >= v.attempts || silent == 0 {
		for _, x := range v.conns {
			if (x.half(x.client).SYNs > 1 || x.half(x.server()).SYNs > 1) && x.explained == "" {
				x.explained = "packet-loss"
			}
		}
		c.add(Finding{Severity: Medium, Protocol: "tcp", Code: "packet-loss", Confidence: 0.75, Frames: at, Flow: example.flow(),
			Summary: fmt.Sprintf("Handshakes with %s lose packets: %d of %d connections needed a SYN or SYN-ACK more than once.", text.Service(v.end.a, v.end.p), again, v.attempts),
			Detail:  "Each of them costs a second or more before the connection opens.",
			Confirm: "Capture at the server: which of the SYNs arrive tells the direction of the loss."})
	}
}

// resets sorts RSTs on established connections by who sent them.
func (c *inquiry) resets() {
	for _, x := range c.conns {
		if x.explained != "" || x.half(0).RSTs+x.half(1).RSTs == 0 {
			continue
		}
		i := 0
		if m := x.d.RSTs; m[0].Frame == 0 || m[1].Frame != 0 && m[1].Frame < m[0].Frame {
			i = 1
		}
		c.reset(x, i)
	}
}

func (c *inquiry) reset(x *conn, i int) {
	m := &x.d.RSTs[i]
	h := x.half(i)
	f := Finding{Severity: High, Protocol: "tcp", Confidence: 0.88, Frames: []uint32{m.Frame}, Flow: x.flow()}
	from := fmt.Sprintf("%v (the %s)", x.addr(i), when(i == x.server(), "server", "client"))
	zero := x.side(0).ZeroTime+x.side(1).ZeroTime > 0 || x.d.Sum(tcp.ZeroWindow) > 1
	switch {
	case zero, h.FIN && m.Since < 60e9, x.half(i^1).FIN && i == x.client:
		return // the end of something else, or an ordinary one
	case int(h.Packets) > int(h.RSTs) && differs(m.TTL, m.TTLUsual):
		f.Code, f.Confidence = "rst-injected", 0.94
		f.Summary = fmt.Sprintf("Something between the hosts resets connections of %v in its name.", x.addr(i))
		f.Detail = fmt.Sprintf("The RST arrives with TTL %d, everything else of that host with %d; %s.", m.TTL, m.TTLUsual, identification(m))
		f.Confirm = "Capture at the host that is named as the sender: it did not send the RST. Look for an inspecting firewall, proxy or load balancer."
	case m.Alien():
		f.Code, f.Confidence = "rst-injected", 0.82
		f.Summary = fmt.Sprintf("Something resets connections of %v in its name.", x.addr(i))
		f.Detail = fmt.Sprintf("The RST has the usual TTL (%d), but %s, where the identifications of that host count up%s.", m.TTL, identification(m), when(m.Bare, ", and lacks the time stamps that all its other segments have", ""))
		f.Confirm = "Capture at the host that is named as the sender: it did not send the RST. Look for an inspecting firewall, proxy or load balancer."
	case i == x.server() && !m.ACK && m.Idle < 10e9 && m.Since > 500e6 && x.d.Turns.IdleMax > 1e9:
		f.Code = "half-open"
		f.Summary = fmt.Sprintf("%v does not know the connection any more.", x.addr(i))
		f.Detail = fmt.Sprintf("After %s of silence it answers data with a RST of its own making (without ACK, taking the number it was sent): the connection was lost there, by a restart or a time-out.", ms(x.d.Turns.IdleMax))
		f.Confirm = fmt.Sprintf("Uptime of the host and the service on %v; keep-alives shorter than the silence would show it earlier.", x.addr(i))
	case i == x.server() && (x.s.Done || x.half(i).Data > 0 || !x.sure && h.Packets > uint32(h.RSTs)):
		f.Code = "rst-by-server"
		f.Summary = fmt.Sprintf("The server %v aborts connections that are in use.", x.addr(i))
		f.Detail = fmt.Sprintf("RST from %s after %d bytes from it, with its usual TTL (%d): it comes from the host itself.", from, m.Payload, m.TTL)
		f.Confirm = "The server's log at that moment; an abortive close (SO_LINGER 0), a time-out or a crash of the process."
	case i == x.client && x.s.Done && x.d.Turns.Waiting && x.d.Turns.AskACKed:
		return // it gave up waiting: the rule for waits says so
	default:
		f.Code, f.Severity, f.Confidence = "rst-by-client", Low, 0.6
		f.Summary = fmt.Sprintf("The client %v ends connections with RST.", x.addr(i))
		f.Detail = fmt.Sprintf("After %d bytes from it. Many programs do that on purpose.", m.Payload)
	}
	if f.Code != "rst-by-client" {
		x.explained = f.Code
	}
	c.add(f)
}

func differs(a, b uint8) bool { return b != 0 && a != b }

func identification(m *tcp.ResetMark) string {
	if !m.HasID || m.ID == m.LastID+1 {
		return "its identification fits"
	}
	return fmt.Sprintf("its IP identification %d does not follow %d", m.ID, m.LastID)
}

// deadPeers finds keep-alives without an answer, and connections that fell silent
// and found nobody when they went on.
func (c *inquiry) deadPeers() {
	for _, x := range c.conns {
		if x.explained != "" {
			continue
		}
		for i := range 2 {
			if s := x.side(i); s.MaxProbes >= 3 && s.Probes >= 3 && x.d.Sum(tcp.ZeroWindow) == 0 {
				x.explained = "dead-peer"
				c.add(Finding{Severity: High, Protocol: "tcp", Code: "dead-peer", Confidence: 0.93, Frames: append(x.d.Evidence[tcp.KeepAlive][:], s.ProbeAt), Flow: x.flow(),
					Summary: fmt.Sprintf("%v vanished: %d keep-alives of %v got no answer.", x.addr(i^1), s.MaxProbes, x.addr(i)),
					Detail:  "The connection was established and idle; no FIN and no RST ended it. The host, or the path to it, is gone.",
					Confirm: fmt.Sprintf("ping and ip neigh for %v; an answer would mean that a firewall forgot the connection.", x.addr(i^1))})
			}
		}
		c.idle(x)
	}
}

// idle is when a connection that worked falls silent, and what is sent afterwards
// is never answered.
func (c *inquiry) idle(x *conn) {
	if x.explained != "" || x.half(0).Packets == 0 || x.half(1).Packets == 0 {
		return
	}
	for i := range 2 {
		s := x.side(i)
		if s.OpenRun >= 4 && s.OpenQuiet < 3e9 && s.OpenLen <= s.AckedLen && x.s.Last-s.OpenSince > 3e9 && x.half(i^1).LastTime() < s.OpenSince+1e9 {
			x.explained = "dead-peer"
			c.add(Finding{Severity: High, Protocol: "tcp", Code: "dead-peer", Confidence: 0.75, Frames: append(s.Frames[:], s.StallAt), Flow: x.flow(),
				Summary: fmt.Sprintf("%v vanished in the middle of a conversation: %v sent the same data %d times and got no answer.", x.addr(i^1), x.addr(i), s.OpenRun+1),
				Detail:  fmt.Sprintf("Everything worked until then; for %s nothing at all came back, neither FIN nor RST. The host, the path to it, or what a device on the way knew of the connection is gone.", ms(x.s.Last-s.OpenSince)),
				Confirm: fmt.Sprintf("ping %v and a new connection to it: if they work, only this connection is filtered.", x.addr(i^1))})
			return
		}
		if s.OpenRun < 2 || s.OpenQuiet < 3e9 || s.AckedLen == 0 && x.half(i).Bytes == 0 {
			continue
		}
		x.explained = "idle-timeout"
		c.add(Finding{Severity: High, Protocol: "tcp", Code: "idle-timeout", Confidence: 0.9, Frames: append(s.Frames[:], s.StallAt), Flow: x.flow(),
			Summary: fmt.Sprintf("After %s of silence nothing of the connection gets through any more.", ms(s.OpenQuiet)),
			Detail:  fmt.Sprintf("It worked before; then %v sent the same data %d times without any answer. A stateful device on the way forgot the idle connection and drops what belongs to it.", x.addr(i), s.OpenRun+1),
			Confirm: "A keep-alive shorter than the device's time-out makes it go away; capture behind the device: the data does not arrive."})
	}
}
