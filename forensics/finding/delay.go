package finding

import (
	"fmt"

	"ghostbot/forensics/app"
	"ghostbot/forensics/control"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/stat"
	"ghostbot/forensics/tcp"
)

const (
	farRTT   = 150e6 // ns: farther than across a continent
	slowWait = 500e6 // ns: people notice
)

// delay finds long round trips, and those that grow or vary.
func (c *inquiry) delay() {
	c.bloat()
	c.vary()
	c.far()
}

// trips are the round trips of what end i sends, and how much successive ones differ: near
// to it until the ACK comes, at the other end until a time stamp of the receiver comes back.
func (x *conn) trips(i int) (r *stat.Dist, swing float64, far bool) {
	s := x.side(i)
	if x.near(i) {
		return &x.d.RTT[i], float64(s.Swing) / float64(max(s.Jumps, 1)), false
	}
	if s.Echo == nil {
		return &stat.Dist{}, 0, true
	}
	return &s.Echo.Trip, float64(s.Echo.Swing) / float64(max(s.Echo.Trip.N-1, 1)), true
}

// bloat finds a queue that grows under load: round trips rise smoothly with the
// transfer and nothing is lost.
func (c *inquiry) bloat() {
	for _, x := range c.conns {
		if x.explained != "" {
			continue
		}
		for i := range 2 {
			s := x.side(i)
			r, swing, far := x.trips(i)
			if r.N < 30 && !(far && r.N >= 15) || x.half(i).Bytes < 50_000 {
				continue
			}
			low := r.Min
			if far && x.s.InitialRTT > 0 { // stamps are followed when the queue has begun to grow
				low = min(low, x.s.InitialRTT)
			}
			base := max(low, 100e3)
			smooth := r.N > 1 && (swing < 0.15*r.Sum/float64(r.N) || far && swing < 0.2*r.Sum/float64(r.N)) // stamps are few
			if high := r.Quantile(0.95); high < 3*base || high-base < 40e6 || !smooth || !bottled(x, i, r.Median() >= 2*base) || c.lossOf(x, i) > 0.003 || x.s.InitialRTT > high/2 || s.FullTimes > 5 || int64(x.d.Count[i^1][tcp.DupACK])*20 > r.N {
				continue
			} else {
				x.explained = "bufferbloat"
				c.add(Finding{Severity: Medium, Protocol: "tcp", Code: "bufferbloat", Confidence: 0.9, Frames: []uint32{x.s.FirstFrame, s.Largest}, Flow: x.flow(),
					Summary: fmt.Sprintf("The round trip grows from %s to %s while %v sends: a queue on the path is too long.", ms(low), ms(high), x.addr(i)),
					Detail: fmt.Sprintf("It rises smoothly with the load, and almost nothing is lost; everything else on that path waits in the same queue (median %s).%s", ms(r.Median()),
						when(far, " Seen at the receiver, by the time stamps that come back with the data.", "")),
					Confirm: "Ping during a transfer and without one; fq_codel or a smaller queue at the slowest link makes the difference vanish."})
				break
			}
		}
	}
}

// blind says when a transfer's queue cannot be seen: the capture point is at its receiver, and
// nothing comes back to it that tells how long the way was.
func (c *inquiry) blind() string {
	for _, x := range c.conns {
		for i := range 2 {
			if e := x.side(i).Echo; e != nil && e.Trip.N == 0 && e.Idle == 0 && x.half(i).Bytes >= 1e6 && x.half(i^1).Packets > 0 && !x.near(i) {
				return fmt.Sprintf("The capture point is at the receiver of what %v sends, without TCP time stamps: round trips under load cannot be seen.", x.addr(i))
			}
		}
	}
	return ""
}

// bottled reports whether a transfer's rate is that of one narrow place, which is constant.
// When most round trips are long, less of that will do; a short transfer has no rate.
func bottled(x *conn, i int, long bool) bool {
	s := steady(x, i)
	return s >= 0.75 || long && (s == 0 || s >= 0.5)
}

// vary finds round trips that jump up and down without load.
func (c *inquiry) vary() {
	for _, x := range c.conns {
		if x.explained != "" {
			continue
		}
		for i := range 2 {
			r, s := &x.d.RTT[i], x.side(i)
			if r.N < 12 || s.Leaps < 8 || !x.near(i) || c.lossOf(x, i) > 0.01 || s.Nagle >= 5 || x.side(i^1).Nagle >= 5 || delayed(r) {
				continue
			}
			swing := float64(s.Swing) / float64(max(s.Jumps, 1))
			if swing > 0.15*float64(r.Median()) && swing > 8e6 && r.Quantile(0.95)-r.Min > 25e6 && r.Median() > r.Min*5/4 {
				x.explained = "jitter"
				c.add(Finding{Severity: Medium, Protocol: "tcp", Code: "jitter", Confidence: 0.85, Frames: []uint32{x.s.FirstFrame}, Flow: x.flow(),
					Summary: fmt.Sprintf("The round trip to %v varies between %s and %s, with %s from one to the next.", x.addr(i^1), ms(r.Min), ms(r.Quantile(0.95)), ms(int64(swing))),
					Detail:  "Neither load nor loss explains it. Interactive and voice traffic suffers; retransmission timers grow.",
					Confirm: "ping -i 0.2 for a minute: the deviation. Wireless links, shared queues and busy virtual machines vary like this."})
				break
			}
		}
	}
	for _, list := range [][]*control.Pair{c.f.Control.V4.Pairs, c.f.Control.V6.Pairs} {
		for _, p := range list {
			if r := &p.RTT; r.N >= 10 && r.Quantile(0.9) > 2*max(r.Min, 1e6) && r.Quantile(0.9)-r.Min > 30e6 && r.Median() > r.Min+10e6 && !c.has("bufferbloat") && !c.has("jitter") && !c.has("throttling") && p.Unmatched*10 < p.Sent {
				c.add(Finding{Severity: Medium, Protocol: "icmp", Code: "jitter", Confidence: 0.7, Flow: p.Src.String() + " -> " + p.Dst.String(),
					Summary: fmt.Sprintf("Echo replies of %v take between %s and %s.", p.Dst, ms(r.Min), ms(r.Max)),
					Detail:  fmt.Sprintf("Median %s over %d replies.", ms(r.Median()), r.N), Confirm: "Compare with a time without load: a queue grows with load, jitter does not."})
			}
		}
	}
}

// delayed reports whether the long ones among round trips are those of delayed ACKs: 40 ms
// or 200 ms more than the path takes, and nothing between.
func delayed(r *stat.Dist) bool {
	above := func(ms int64) int64 { return r.Above(r.Min + ms*1e6) }
	slow := above(20)
	return slow > 0 && (above(35)-above(52)+above(190)-above(215))*10 >= slow*7
}

// distant are the handshakes with one host that took long.
type distant struct {
	n, all    int
	low, high int64
	at        []uint32
	example   *conn
}

// far finds paths that are simply long: most of all, or that to one host among others, when it
// is out of the ordinary more than once.
func (c *inquiry) far() {
	by := map[flow.Addr]*distant{}
	n, all := 0, 0
	for _, x := range c.conns {
		if x.s.InitialRTT <= 0 || x.half(x.client).SYNs > 1 || x.half(x.server()).SYNs > 1 {
			continue
		}
		d := by[x.addr(x.server())]
		if d == nil {
			d = &distant{}
			by[x.addr(x.server())] = d
		}
		d.all, all = d.all+1, all+1
		if x.s.InitialRTT < farRTT || x.explained == "jitter" || x.explained == "bufferbloat" {
			continue
		}
		if d.n == 0 || x.s.InitialRTT < d.low {
			d.low = x.s.InitialRTT
		}
		d.high = max(d.high, x.s.InitialRTT)
		d.n, n = d.n+1, n+1
		d.at, d.example = append(d.at, x.s.FirstFrame), x
		if x.explained == "" {
			x.explained = "high-latency"
		}
	}
	found := false
	for _, a := range sorted(by) {
		d := by[a]
		if d.n == 0 || d.n*2 < d.all || n*2 < all && d.low < 200e6 {
			continue
		}
		found = true
		c.add(Finding{Severity: Medium, Protocol: "tcp", Code: "high-latency", Confidence: 0.84, Frames: d.at, Flow: d.example.flow(),
			Summary: fmt.Sprintf("The path to %v is long: handshakes take %s to %s.", a, ms(d.low), ms(d.high)),
			Detail:  fmt.Sprintf("%d of %d handshakes took more than %s. Every exchange of question and answer costs that much.", d.n, d.all, ms(farRTT)),
			Confirm: "Distance, a detour or a slow tunnel: mtr -n shows at which hop the time is added."})
	}
	if found {
		return
	}
	for _, list := range [][]*control.Pair{c.f.Control.V4.Pairs, c.f.Control.V6.Pairs} {
		for _, p := range list {
			if r := &p.RTT; r.N >= 3 && (r.Median() >= farRTT || r.N >= 10 && r.Quantile(0.9) >= farRTT) && !c.has("bufferbloat") && !c.has("jitter") && !c.has("throttling") {
				c.add(Finding{Severity: Medium, Protocol: "icmp", Code: "high-latency", Confidence: 0.84, Flow: p.Src.String() + " -> " + p.Dst.String(),
					Summary: fmt.Sprintf("Echo replies of %v take %s (median), one in ten more than %s.", p.Dst, ms(r.Median()), ms(r.Quantile(0.9))),
					Detail:  fmt.Sprintf("%d replies between %s and %s.", r.N, ms(r.Min), ms(r.Max)), Confirm: "mtr -n shows at which hop the time is added."})
			}
		}
	}
}

// waits finds ends that let the other one wait: servers that think or never answer,
// senders with pauses, clients with pauses, Nagle's algorithm against delayed ACKs.
func (c *inquiry) waits() {
	for _, x := range c.conns {
		if x.explained == "" || x.explained == "high-latency" || x.explained == "small-receive-window" {
			c.wait(x)
		}
	}
}

func (c *inquiry) wait(x *conn) {
	u := &x.d.Turns
	rtt := max(x.s.InitialRTT, x.rtt())
	think := u.Server.Max - rtt
	asks := x.sure || c.speaks(x, app.HTTP) // else who is asked is a guess, and who sends may want no answer
	end := c.f.Last
	cl := x.half(x.client)
	quiet := end - u.AskedAt
	if x.s.Closed != 0 || cl.FIN {
		quiet = x.s.Last - u.AskedAt
	}
	for i := range 2 {
		if s := x.side(i); s.Nagle >= 5 {
			x.explained = "nagle-delayed-ack"
			c.add(Finding{Severity: Low, Protocol: "tcp", Code: "nagle-delayed-ack", Confidence: 0.9, Frames: s.NagleAt[:], Flow: x.flow(),
				Summary: fmt.Sprintf("%v waits %d times for a delayed ACK before it sends the rest of a message.", x.addr(i), s.Nagle),
				Detail:  "It writes a message in pieces; Nagle's algorithm holds the second one back until the first is acknowledged, and the receiver delays that ACK by 40 ms or more, as it waits for data to send along.",
				Confirm: "TCP_NODELAY on the sender, or one write for the whole message, makes the pauses vanish."})
			return
		}
	}
	for i := range 2 {
		if s := x.side(i); s.Paired >= 8 && s.Paired*10 >= s.Begun*7 {
			x.explained = "nagle-delayed-ack"
			c.add(Finding{Severity: Low, Protocol: "tcp", Code: "nagle-delayed-ack", Confidence: 0.5, Frames: s.PairAt[:], Flow: x.flow(),
				Summary: fmt.Sprintf("%v sends %d of %d messages in two parts, the second one as soon as the first is acknowledged.", x.addr(i), s.Paired, s.Begun),
				Detail:  fmt.Sprintf("That is what Nagle's algorithm makes of a message that is written in pieces: it costs a round trip each time (%s here), and 40 ms and more where the receiver delays its ACK. A program that asks two questions in a row looks the same.", ms(x.rtt())),
				Confirm: "strace -e trace=write,sendto on the sender: two writes for one message; TCP_NODELAY, or one write, makes the gap vanish."})
			return
		}
	}
	switch {
	case asks && u.Waiting && u.AskACKed && u.Answers == 0 && x.half(x.server()).Bytes == 0 && quiet > 2500e6 && quiet > 20*rtt && x.half(x.server()).RSTs == 0:
		x.explained = "server-no-response"
		c.add(Finding{Severity: High, Protocol: "tcp", Code: "server-no-response", Confidence: 0.9, Frames: []uint32{u.AskFrame}, Flow: x.flow(),
			Summary: fmt.Sprintf("%v acknowledges the request and never answers it.", x.addr(x.server())),
			Detail:  fmt.Sprintf("Its TCP is alive (round trip %s); the application sent nothing for %s, until the client gave up or the capture ended.", ms(rtt), ms(quiet)),
			Confirm: "Thread dumps and upstream calls of the server at that time; a full accept queue would also leave SYNs unanswered."})
	case asks && think > slowWait && think > 3*rtt:
		x.explained = "slow-server"
		sev, most := Medium, u.Server.Above(10e9)
		if most >= 2 && most == u.Server.Above(u.Server.Max/20*19) {
			sev = Low // as long each time: the server waits for an event, and says in the end that there was none
		}
		c.add(Finding{Severity: sev, Protocol: "tcp", Code: "slow-server", Confidence: 0.86, Frames: []uint32{u.SlowFrame}, Flow: x.flow(),
			Summary: fmt.Sprintf("%v needs up to %s to answer; the network takes %s of it.", x.addr(x.server()), ms(u.Server.Max), ms(rtt)),
			Detail:  fmt.Sprintf("%d requests, median wait %s. The request is acknowledged at once, so the time goes by inside the server.", u.Server.N, ms(u.Server.Median())),
			Confirm: "The server's own request log: the same times there mean the application, or what it waits for."})
	case u.Mid.N >= 10 && u.Mid.Median() > 2*rtt && u.Mid.Median() > 50e6 || u.Mid.N >= 5 && u.Mid.Quantile(0.75) > 150e6 && u.Mid.Quantile(0.75) > 2*rtt || pausing(x, rtt):
		x.explained = "slow-sender"
		c.add(Finding{Severity: Low, Protocol: "tcp", Code: "slow-sender", Confidence: 0.85, Frames: []uint32{u.MidFrame}, Flow: x.flow(),
			Summary: fmt.Sprintf("%v sends its answer in pieces, with pauses of up to %s.", x.addr(x.server()), ms(u.Mid.Max)),
			Detail:  "There is no loss and the window is open: the application produces its data slowly.",
			Confirm: "What the server waits for while it sends: a disk, a database, a rate limit of its own."})
	case u.FirstWait > 800e6 && u.FirstWait > 5*rtt && u.Requests <= 2:
		x.explained = "slow-client"
		c.add(Finding{Severity: Low, Protocol: "tcp", Code: "slow-client", Confidence: 0.8, Frames: []uint32{u.AskFrame}, Flow: x.flow(),
			Summary: fmt.Sprintf("%v waits %s after the handshake before it asks.", x.addr(x.client), ms(u.FirstWait)),
			Detail:  "Neither the network nor the server is waited for in that time.",
			Confirm: "What the client does before it sends its request."})
	}
}

// speaks reports whether a connection's protocol was recognised as this one.
func (c *inquiry) speaks(x *conn, k app.Kind) bool {
	i := int(x.d.Tag) - 1
	return i >= 0 && i < len(c.f.App.Sessions) && c.f.App.Sessions[i].Stream == x.s.Number && c.f.App.Sessions[i].Kind == k
}

// pausing reports answers in large pieces: most gaps are those between the segments of a piece, and
// most of the time goes by in the few long ones, or in more that are shorter.
func pausing(x *conn, rtt int64) bool {
	mid := &x.d.Turns.Mid
	most := func(n, least int64) bool { return n >= least && n*mid.At(mid.N-1-n/2)*2 > x.s.Last-x.s.First }
	return most(mid.Above(max(150e6, 2*rtt)), 5) || most(mid.Above(max(50e6, 2*rtt)), 10)
}

// ports notes connections that use the port of an earlier one.
func (c *inquiry) ports() {
	n := 0
	var at []uint32
	var example string
	for _, x := range c.conns {
		if x.s.Reused {
			n++
			at, example = append(at, x.s.FirstFrame), x.flow()
		}
	}
	if n > 0 {
		c.add(Finding{Severity: Low, Protocol: "tcp", Code: "port-reuse", Confidence: 0.88, Frames: at, Flow: example,
			Summary: fmt.Sprintf("A client uses the same source port for %s.", plural(n+1, "connection", "connections")),
			Detail:  "Servers and stateful devices may still remember the earlier one (TIME_WAIT) and refuse or ignore the SYN.",
			Confirm: "A fixed source port in the client's configuration, or a NAT with too few ports."})
	}
}
