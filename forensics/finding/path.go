package finding

import (
	"fmt"
	"math"

	"ghostbot/forensics/control"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/stat"
	"ghostbot/forensics/tcp"
)

// windows finds receivers that do not read.
func (c *inquiry) windows() {
	for _, x := range c.conns {
		if x.explained != "" {
			continue
		}
		for i := range 2 {
			s := x.side(i)
			zero := x.d.Count[i][tcp.ZeroWindow]
			probes := x.d.Count[i^1][tcp.ZeroWindowProbe]
			if zero >= 2 && s.ZeroTime > 20e6 || zero > 0 && probes > 0 {
				x.explained = "zero-window"
				c.add(Finding{Severity: High, Protocol: "tcp", Code: "zero-window", Confidence: 0.93, Frames: append(x.d.Evidence[tcp.ZeroWindow][:], x.d.Evidence[tcp.ZeroWindowProbe][:]...), Flow: x.flow(),
					Summary: fmt.Sprintf("%v does not read what it gets: its receive window was closed %d times, for %s in total.", x.addr(i), zero, ms(s.ZeroTime)),
					Detail:  fmt.Sprintf("The sender %v waits and probes (%d probes); the network is not at fault. The receiving application is slow, blocked or dead.", x.addr(i^1), probes+x.d.Count[i^1][tcp.KeepAlive]),
					Confirm: fmt.Sprintf("On %v: ss -tmi shows a full receive queue; look at what the process does.", x.addr(i))})
				break
			}
			if x.half(i^1).Bytes > 50_000 && s.MaxWindow > 0 && s.MaxWindow < 65_536 && c.fills(x, i^1, s.MaxWindow) && c.lossOf(x, i^1) < 0.005 {
				x.explained = "small-receive-window"
				c.add(Finding{Severity: Low, Protocol: "tcp", Code: "small-receive-window", Confidence: 0.9, Frames: x.d.Evidence[tcp.WindowFull][:], Flow: x.flow(),
					Summary: fmt.Sprintf("%v offers a receive window of %d bytes at most, and the sender fills it.", x.addr(i), s.MaxWindow),
					Detail:  fmt.Sprintf("With a round trip of %s that allows %.2f Mbit/s, whatever the network could carry. The window was full %d times.", ms(x.rtt()), float64(s.MaxWindow)*8e3/float64(max(x.rtt(), 1)), x.d.Count[i^1][tcp.WindowFull]),
					Confirm: "Receive buffer of the application (SO_RCVBUF) and net.ipv4.tcp_rmem; window scaling stripped by a device would show in the SYN."})
				break
			}
		}
	}
}

// fills reports whether a sender uses up the window that it is given: often to the last
// byte, or all of a transfer with less than a segment left.
func (c *inquiry) fills(x *conn, i, window int) bool {
	s, n := x.side(i), x.half(i).Bytes
	paced := float64(n)*float64(x.s.InitialRTT) > 0.7*float64(window)*float64(x.s.Last-x.s.First) // the receiver sees the rate that the window allows
	return x.d.Count[i][tcp.WindowFull]*20 > x.half(i).Packets || window < 20_000 && n > 20*uint64(window) && (s.InFlight+1460 > window && s.InFlight <= window || paced)
}

// lossOf is the share of a direction's segments that were lost; what the receiver got
// twice was not.
func (c *inquiry) lossOf(x *conn, i int) float64 {
	if x.half(i).Packets == 0 {
		return 0
	}
	s := x.side(i)
	return float64(s.Resent-min(s.Resent, vain(s))+s.Filled) / float64(x.half(i).Packets)
}

// vain is how many segments that were sent again had arrived: the receiver says so, or its
// ACKs bring the time stamps of the first copies back.
func vain(s *tcp.Side) uint32 {
	if s.Vain > 0 && s.Vain*10 >= s.Rows*7 {
		return s.Resent
	}
	return max(s.DSACKs, s.Vain)
}

// outage finds a time in which nothing gets through, on connections that work before
// and after: at the sender one that backs off, at the receiver a silence after which all
// that was sent meanwhile comes again.
func (c *inquiry) outage() {
	for _, x := range c.conns {
		for i := range 2 {
			s := x.side(i)
			if x.explained != "" || x.half(i).Bytes == 0 {
				continue
			}
			other := int(s.Resent+s.Filled) - int(s.MaxRun) - int(s.AfterGap) // what was in flight is lost at once, and repaired at once
			backsOff := s.Stall >= 1500e6 && s.MaxRun >= 3 && !(s.OpenRun >= 3 && s.OpenLen > 0) && s.AckedLen > 0 && !(vain(s)*2 >= s.Resent && s.Filled == 0) &&
				other*25 <= int(x.half(i).Packets) // else it loses all the time
			gap, at, silent := s.Stall, s.StallAt, c.silence(x, i)
			if !backsOff && !silent {
				continue
			}
			detail := fmt.Sprintf("One segment was sent again %d times with growing pauses until it was acknowledged. Only %d other segments were lost.", s.MaxRun, max(other, 0))
			if !backsOff {
				gap, at = x.d.Turns.IdleMax, x.d.Turns.IdleEnd
				detail = fmt.Sprintf("The capture point is behind the fault: the connection fell silent, and then what was sent before or meanwhile came again%s.", when(s.AfterGap > 0, " ("+plural(int(s.AfterGap), "segment", "segments")+" within a second)", ""))
			}
			x.explained = "link-outage"
			c.add(Finding{Severity: High, Protocol: "tcp", Code: "link-outage", Confidence: 0.9, Frames: append(s.Frames[:], at), Flow: x.flow(),
				Summary: fmt.Sprintf("For %s nothing from %v reached %v; before and after the path works.", ms(gap), x.addr(i), x.addr(i^1)), Detail: detail,
				Confirm: "Link and routing events (interface flaps, fail-over, spanning tree) at that time; other connections of the same path stall at the same moment."})
		}
	}
}

// silence reports an outage as the receiver sees it: most of what was lost is sent again
// right after the longest silence, and it is one gap, where random loss makes many; or what
// ends the silence is itself sent again, which takes several time-outs in a row.
func (c *inquiry) silence(x *conn, i int) bool {
	s, u := x.side(i), &x.d.Turns
	if int(u.IdleDir) != i || u.IdleMax < 1500e6 || u.IdleMax <= 20*x.rtt() {
		return false
	}
	lost := s.Resent + s.Filled
	return u.IdleAgain && x.s.Done && (lost-min(lost, s.AfterGap))*25 <= x.half(i).Packets || s.AfterGap >= 3 && s.AfterGap*10 >= lost*7 && s.Holes*3 <= s.AfterGap+3 && s.Filled > s.Resent
}

// spikes finds a path that holds packets for a long time and delivers them all: the
// sender repeats what was never lost.
func (c *inquiry) spikes() {
	for _, x := range c.conns {
		for i := range 2 {
			s := x.side(i)
			if x.explained != "" {
				continue
			}
			base := max(x.rtt(), 1e6)
			needless := s.Held >= 2 && s.Filled == 0 && s.Resent <= vain(s) && (x.d.Turns.IdleMax > 400e6 && x.d.Turns.IdleMax > 8*base)
			dsacked := vain(s) > 0 && vain(s)*10 >= s.Resent*7 && x.d.Count[i^1][tcp.DupACK] < 20+2*s.DSACKs && s.Filled == 0 && x.d.RTT[i].Max > 400e6 && x.d.RTT[i].Max > 8*base && s.MaxRun < 5
			if !needless && !dsacked || s.Copies > 0 {
				continue
			}
			held := x.d.RTT[i].Max
			if needless && held < 400e6 {
				held = x.d.Turns.IdleMax
			}
			x.explained = "delay-spike"
			c.add(Finding{Severity: Medium, Protocol: "tcp", Code: "delay-spike", Confidence: 0.88, Frames: append(x.d.Evidence[tcp.Spurious][:], x.d.Evidence[tcp.Retransmission][:]...), Flow: x.flow(),
				Summary: fmt.Sprintf("The path from %v held packets for about %s and then delivered them all.", x.addr(i), ms(held)),
				Detail:  fmt.Sprintf("%d segments were sent again although nothing was lost (%d duplicates reported by the receiver): the retransmission timer fired too early.", s.Needless+s.Resent, vain(s)),
				Confirm: "Events that stop forwarding for a moment: wireless roaming, a virtual machine that was moved, a queue that was blocked."})
		}
	}
}

// lossy is the loss of one direction between two hosts.
type lossy struct {
	from, to      flow.Addr
	behind, ahead uint32 // lost behind the capture point, or before it
	packets       uint32
	frames        []uint32
	run           uint8
	flow          string
	queued        bool // the round trip grew to a ceiling: a queue in front of a limit
	capped        float64
	rows          uint32
	ttl           [2]uint8
	rtt           int64
	conns         int
	stall         int64
	late          bool // far more came late than was lost: what seems lost may have been overtaken
	ledgers       []*stat.Ledger
	overshot      bool // there was more in flight than loss at random leaves
}

// loss finds data that was sent again because it was lost, by direction, and says on
// which side of the capture point that was. A rate limit loses too, at a ceiling.
func (c *inquiry) loss() {
	if c.copying {
		return
	}
	by := map[[2]flow.Addr]*lossy{}
	var order []*lossy
	for _, x := range c.conns {
		if x.explained != "" {
			continue
		}
		for i := range 2 {
			s := x.side(i)
			n := s.Resent + s.Filled
			if n == 0 || vain(s) >= n && s.Filled == 0 || vain(s)*2 >= n && n >= 10 && s.MaxRun < 3 {
				continue // most of it was sent in vain
			}
			k := [2]flow.Addr{x.addr(i), x.addr(i ^ 1)}
			l := by[k]
			if l == nil {
				l = &lossy{from: k[0], to: k[1]}
				by[k] = l
				order = append(order, l)
			}
			l.behind, l.ahead = l.behind+s.Resent-min(s.Resent, vain(s)), l.ahead+s.Filled
			l.packets += x.half(i).Packets
			l.rows += s.Rows
			l.late = l.late || s.Late >= 5*n
			l.overshot = l.overshot || s.MaxLen > 0 && x.half(i).Packets > 0 && float64(s.Rows)/float64(x.half(i).Packets)*float64(s.InFlight)/float64(s.MaxLen) > 15
			l.ttl, l.rtt = [2]uint8{x.half(i).TTL, x.half(i ^ 1).TTL}, x.s.InitialRTT
			l.frames = append(l.frames, s.Frames[:]...)
			l.run, l.stall = max(l.run, s.MaxRun), max(l.stall, s.Stall)
			l.flow, l.conns = x.flow(), l.conns+1
			l.capped = max(l.capped, steady(x, i))
			if s.Ledger != nil {
				l.ledgers = append(l.ledgers, s.Ledger)
			}
			l.queued = l.queued || c.queued(x, i)
		}
	}
	for _, l := range order {
		c.lost(l)
	}
	c.pings()
}

// queued reports that the round trip of a direction grows with its load and stays
// under a ceiling, as in a queue of limited length.
func (c *inquiry) queued(x *conn, i int) bool {
	r := &x.d.RTT[i]
	if s := steady(x, i); s != 0 && s < 0.5 || r.N*8 < int64(x.half(i).Packets) {
		return false // the wait is for what was lost
	}
	return r.N >= 40 && x.near(i) && r.Median() > 2*r.Min && r.Median()-r.Min > 15e6 && float64(r.Quantile(0.95)) < 2.5*float64(r.Median())
}

// steady is how constant the rate of a transfer is: one minus the coefficient of
// variation of its new bytes over time, without the beginning and the end.
func steady(x *conn, i int) float64 {
	r := x.d.Side[i].Rate
	if r == nil || len(r.Values) < 40 {
		return 0
	}
	const parts = 16
	var sums [parts]float64
	n := len(r.Values)
	for j, v := range r.Values {
		sums[j*parts/n] += float64(v)
	}
	var sum, square float64
	use := sums[2 : parts-1]
	for _, v := range use {
		sum += v
		square += v * v
	}
	mean := sum / float64(len(use))
	if mean == 0 {
		return 0
	}
	return 1 - math.Sqrt(max(square/float64(len(use))-mean*mean, 0))/mean
}

// limited reports that loss is that of a policer: the rate of new data is constant, which
// heavy random loss does not leave, and several in a row are dropped where random loss
// drops one. Loss that comes in bursts drops several in a row too, but leaves no such rate.
func (l *lossy) limited(share float64) bool {
	row := float64(l.behind+l.ahead) / float64(max(l.rows, 1))
	switch {
	case l.overshot && row > 1.6:
		return true
	case share < 8:
		return l.capped > 0.9 || l.capped > 0.85 && row > 1.6 && share > 2
	case share < 30:
		return l.capped > 0.84 || l.capped > 0.6 && row > 1.6
	}
	return false
}

func (c *inquiry) lost(l *lossy) {
	n := l.behind + l.ahead
	if n == 0 {
		return
	}
	share := 100 * float64(n) / float64(max(l.packets, 1))
	where := "behind the capture point: the first copies are in the capture"
	switch {
	case l.ahead > 4*l.behind:
		where = "before the capture point: the first copies never came here"
	case l.behind <= 4*l.ahead:
		where = fmt.Sprintf("on both sides of the capture point (%d behind it, %d before it)", l.behind, l.ahead)
	}
	f := Finding{Severity: Medium, Protocol: "tcp", Code: "packet-loss", Confidence: 0.85, Frames: l.frames, Flow: l.flow,
		Summary: fmt.Sprintf("%.1f %% of the segments from %v to %v are lost (%d of %d).", share, l.from, l.to, n, l.packets),
		Detail:  fmt.Sprintf("They were lost %s%s. The same segment was lost %s in a row, longest repair %s.", where, when(n > 2*l.rows && l.rows > 2, fmt.Sprintf(", in bursts of %.0f on average", float64(n)/float64(max(l.rows, 1))), ""), plural(int(l.run), "time", "times"), ms(l.stall)),
		Confirm: "Capture at the other end: what is missing there was lost between the points. Interface error and drop counters along the path."}
	if share > 3 && n >= 4 || l.run >= 3 {
		f.Severity = High
	}
	together := n < 3 && l.ahead == 0 && l.rtt > 10e6 && l.stall < 2e6 // no sender knows of a loss so early: the first copy was held on the way
	if n < 3 && share < 0.5 && l.stall < 1500e6 || l.late || together {
		f.Severity, f.Confidence = Low, 0.6
	}
	limited := l.limited(share)
	if n >= 5 && !l.late && (l.queued || limited || stat.Overflow(l.ledgers)) {
		f.Code, f.Confidence = "throttling", 0.87
		f.Summary = fmt.Sprintf("Traffic from %v to %v runs into a rate limit.", l.from, l.to)
		why := when(l.queued, "the round trip rises under load to a ceiling", "") + when(limited, when(l.queued, ", and ", "")+when(l.overshot, "after more was in flight than loss at random would have left", "the rate of new data is constant"), "")
		why = when(why == "", "each time when most had been sent for what such a rate lets through", why)
		f.Detail = fmt.Sprintf("%d of %d segments are lost, %s. Random loss would vary with neither.", n, l.packets, why)
		f.Confirm = "Policers and shapers on the path (tc -s qdisc, QoS policies, a cloud's per-flow limit): the rate equals a configured one."
	}
	c.add(f)
	c.duplex(l, f.Code, share)
}

// duplex says what loss between neighbours speaks for: with no router and no queue
// between them, only the link itself can lose.
func (c *inquiry) duplex(l *lossy, code string, share float64) {
	if code != "packet-loss" || share < 1 || l.behind+l.ahead < 10 || !neighbourly(l.ttl[0]) || !neighbourly(l.ttl[1]) || l.rtt <= 0 || l.rtt > 3e6 {
		return
	}
	c.add(Finding{Severity: Low, Protocol: "ip", Code: "duplex-mismatch", Confidence: 0.4, Frames: l.frames, Flow: l.flow,
		Summary: fmt.Sprintf("%v and %v seem to be neighbours, and still lose %.1f %%: a link that is damaged, or with two ideas of duplex.", l.from, l.to, share),
		Detail:  fmt.Sprintf("Both arrive with a TTL that no router lowered (%d and %d) and answer within %s. Loss that grows when both send at a time is typical of a duplex mismatch.", l.ttl[0], l.ttl[1], ms(l.rtt)),
		Confirm: "ethtool on both ends (speed, duplex); late collisions and FCS errors in the counters of the switch port; another cable."})
}

// neighbourly reports a TTL as hosts send it.
func neighbourly(ttl uint8) bool { return ttl == 64 || ttl == 128 || ttl == 255 }

// pings finds loss that echo requests saw.
func (c *inquiry) pings() {
	for _, list := range [][]*control.Pair{c.f.Control.V4.Pairs, c.f.Control.V6.Pairs} {
		for _, p := range list {
			small, lost := p.Sent-p.BigSent, int64(p.Sent-p.BigSent)-int64(p.Matched-p.BigMatched)
			if c.icmpAbout[p.Dst] || c.copying || lost <= 0 || small < 3 || p.Matched == 0 && small < 3 {
				continue
			}
			share := float64(lost) / float64(small)
			f := Finding{Severity: Medium, Protocol: "icmp", Code: "packet-loss", Confidence: 0.8, Frames: p.Evidence, Flow: p.Src.String() + " -> " + p.Dst.String(),
				Summary: fmt.Sprintf("%.0f %% of the echo requests from %v to %v get no answer (%d of %d).", 100*share, p.Src, p.Dst, lost, small),
				Detail:  "Requests or answers are lost, or answers are limited at the target.",
				Confirm: fmt.Sprintf("mtr -n %v in both directions; loss that begins at one hop and stays is real.", p.Dst)}
			switch {
			case p.Matched == 0:
				if c.f.Control.V4.Matched+c.f.Control.V6.Matched == 0 && c.has("asymmetric-path") {
					continue
				}
				f.Code, f.Severity, f.Confidence = "no-echo-reply", Medium, 0.6
				f.Summary = fmt.Sprintf("%v answers none of %d echo requests.", p.Dst, small)
				f.Detail = "The host is down, does not answer pings, or something drops them."
			case share < 0.02:
				f.Severity = Low
			case share > 0.5:
				f.Severity = High
			}
			c.add(f)
		}
	}
}

// order finds packets that overtake each other.
func (c *inquiry) order() {
	var late, packets, dsacks, resent uint32
	var at []uint32
	var example string
	for _, x := range c.conns {
		if x.explained != "" {
			continue
		}
		for i := range 2 {
			s := x.side(i)
			if s.Late > 0 {
				example = x.flow()
			}
			late, packets = late+s.Late-min(s.Late, c.doubled(s)), packets+x.half(i).Packets
			at = append(at, s.LateAt[:]...)
			resent += s.Resent
			dsacks += vain(s)
			if dup := x.d.Count[i^1][tcp.DupACK]; s.Late == 0 && dup > 20+s.DSACKs && s.Resent+s.Filled <= 2*vain(s)+dup/50 && x.half(i).Bytes > 100_000 {
				late += dup / 2
				example = x.flow()
				at = append(at, x.d.Evidence[tcp.DupACK][:]...)
			} else if s.Late == 0 && s.DSACKs >= 5 && s.DSACKs*10 >= (s.Resent+s.Filled)*7 && c.doubled(s) == 0 { // what was sent again had only been overtaken
				late += s.DSACKs
				example = x.flow()
				at = append(at, x.d.Evidence[tcp.DupACK][:]...)
			}
		}
	}
	if late < 3 || packets == 0 {
		return
	}
	c.add(Finding{Severity: Low, Protocol: "tcp", Code: "reordering", Confidence: 0.9, Frames: at, Flow: example,
		Summary: fmt.Sprintf("Packets overtake each other on the way: about %d of %d segments (%.1f %%) came late.", late, packets, 100*float64(late)/float64(packets)),
		Detail:  fmt.Sprintf("They carry older identifications or time stamps than what came before them, or caused duplicate ACKs that no loss explains (%d needless retransmissions reported).", dsacks),
		Confirm: "Several links that are used packet by packet (bonding in round robin, ECMP without flow hashing), or parallel queues."})
	kept := c.out[:0]
	for _, f := range c.out {
		if f.Code == "packet-loss" && f.Protocol == "tcp" && f.Severity <= Medium && resent <= dsacks+late/10 {
			f.Severity = Low
		}
		kept = append(kept, f)
	}
	c.out = kept
}
