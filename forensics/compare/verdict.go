package compare

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"ghostbot/forensics/compare/clock"
	"ghostbot/forensics/trace"
)

// Verdict says which segment is at fault.
type Verdict struct {
	// Status is CLEAN PATH, PARTIAL DROP, FULL DROP, ASYMMETRIC ROUTING, DEGRADED (REORDERED), DEGRADED (DELAYED),
	// DEGRADED (DUPLICATED), INTERFERENCE, SLOW HOST or UNRELATED.
	Status string `json:"status"`
	// Severity is that of a finding: INFO for a clean path, CRITICAL when nothing arrives.
	Severity string `json:"severity"`
	// Code is that of a finding, healthy, or unrelated-captures.
	Code string `json:"code"`
	// Segment is where: "between A and B, towards B", "between A and B, towards A", "between A and B,
	// both ways", "behind A", "behind B", or "none".
	Segment string `json:"segment"`
	// Confidence is HIGH, MEDIUM or LOW.
	Confidence string `json:"confidence"`
	// Summary is one sentence, Reasons are what it rests on, Check is what would refute it.
	Summary string   `json:"summary"`
	Reasons []string `json:"reasons"`
	Check   string   `json:"check"`
}

// result puts everything together.
func (w *world) result() *Result {
	r := &Result{Clock: w.time, Alterations: w.changes(), NAT: w.translations()}
	for p, c := range []*Capture{&r.A, &r.B} {
		*c = Capture{Packets: len(w.side[p].packets), NotRouted: w.side[p].skipped, Elsewhere: w.away[p], OutsideTime: w.outside[p]}
		for _, l := range w.lanes {
			c.Matched += len(l.pairs)
			if point(p) == l.from {
				c.Copies += len(l.copies[p])
			}
		}
	}
	r.AToB, r.BToA = w.direction(pointA), w.direction(pointB)
	r.Flows = w.flowsOf()
	r.Servers = w.servers()
	if w.time.Basis == "both directions" {
		r.RoundTripMS = clock.Milli((*w.time.HighMS - *w.time.LowMS) * 1e6)
	}
	w.remark(r)
	r.Notes = w.notes
	r.Verdict = w.verdict(r)
	return r
}

// direction makes the figures of the packets that come from a point.
func (w *world) direction(from point) Direction {
	d, to := w.dir[from], from.other()
	out := Direction{Sent: d.delivered + len(d.lost), Delivered: d.delivered, Lost: len(d.lost), Duplicated: len(d.copies),
		Reordered: len(d.reordered), Injected: len(d.injected), MissedAtSource: len(d.missed), Bypassing: d.bypassing}
	if out.Sent > 0 {
		out.LossPct = math.Round(1e4*float64(out.Lost)/float64(out.Sent)) / 100
	}
	out.LostFrames = w.frames(from, d.lost)
	out.ReorderedFrames, out.InjectedFrames = w.frames(to, d.reordered), w.frames(to, d.injected)
	out.DelayMS = spread(d.delays, 0)
	if len(d.delays) > 0 {
		out.VariationMS = spread(d.delays, slices.Min(d.delays))
	}
	out.Pattern = w.pattern(from).name
	return out
}

func (w *world) frames(p point, list []int) []int {
	out := make([]int, 0, min(len(list), maxFrames))
	for _, i := range list {
		out = append(out, w.at(p, i).Frame)
	}
	slices.Sort(out)
	return out[:min(len(out), maxFrames)]
}

// spread describes values less a base, in milliseconds. The values get sorted.
func spread(v []float64, base float64) Spread {
	if len(v) == 0 {
		return Spread{}
	}
	slices.Sort(v)
	at := func(i int) float64 { return clock.Milli(v[i] - base) }
	n := len(v)
	s := Spread{Min: at(0), Median: at(n / 2), P95: at(min(n-1, n*95/100)), Max: at(n - 1)}
	if n%2 == 0 {
		s.Median = clock.Milli((v[n/2-1]+v[n/2])/2 - base)
	}
	return s
}

// remark notes what limits the comparison.
func (w *world) remark(r *Result) {
	note := func(format string, args ...any) { w.notes = append(w.notes, fmt.Sprintf(format, args...)) }
	switch r.Clock.Basis {
	case "one direction":
		note("packets were matched in one direction only: the clock offset is a bound, not an estimate")
	case "inconsistent":
		note("no steady pair of clocks explains the times: one clock was set during the capture, or packets that differ look alike; delays are worth little")
	}
	for p, c := range []Capture{r.A, r.B} {
		if c.OutsideTime > 0 {
			note("%s of %s: from a time when the other capture did not run, and not counted as lost", packets(c.OutsideTime), point(p))
		}
		if c.Elsewhere > 0 {
			note("%s of %s: of flows that the other point cannot be expected to see", packets(c.Elsewhere), point(p))
		}
	}
	for _, d := range []Direction{r.AToB, r.BToA} {
		if d.MissedAtSource > 0 {
			note("%s arrived that the capture at the source does not have: that capture dropped packets, so losses may be capture losses as well", packets(d.MissedAtSource))
		}
	}
	for from, d := range []Direction{r.AToB, r.BToA} {
		if n := w.acknowledged(point(from)); n > 0 {
			note("%d of the %d packets that %s lacks were acknowledged there, though no copy of them is in its file: its capture dropped them, not the network", n, d.Lost, point(from).other())
		}
	}
	for _, n := range r.NAT {
		note("address translation: %s at A is %s at B in %d flows (matched by sequence numbers and payload)", n.AtA, n.AtB, n.Flows)
	}
	if end := w.tail(); end != "" {
		note("%s", end)
	}
}

// acknowledged counts the lost TCP segments whose receiver says that it has them, though nothing that
// arrived carries them.
func (w *world) acknowledged(from point) int {
	n := 0
	byLane := map[*lane][]int{}
	for k, i := range w.dir[from].lost {
		l := w.dir[from].lostLane[k]
		byLane[l] = append(byLane[l], i)
	}
	for l, lost := range byLane {
		back := w.opposite(l)
		if back == nil || l.anyFlow().key.proto != trace.TCP || l.anyFlow().key.frag || len(l.pairs) == 0 {
			continue
		}
		base := w.at(from, l.pairs[0].index(from)).Seq
		top := int32(math.MinInt32)
		for _, j := range back.list[from] { // in the numbers of this capture
			if q := w.at(from, j); q.Flags&trace.ACK != 0 {
				top = max(top, int32(q.Ack-base))
			}
		}
		arrived := w.ranges(l, from, base)
		for _, i := range lost {
			q := w.at(from, i)
			begin := int32(q.Seq - base)
			if size := q.Span(); size > 0 && begin+size <= top && !arrived.touches(begin, begin+size) {
				n++
			}
		}
	}
	return n
}

// ranges are sorted begins and ends of sequence numbers.
type ranges [][2]int32

// ranges returns what arrived of a lane.
func (w *world) ranges(l *lane, from point, base uint32) ranges {
	var out ranges
	for _, p := range l.pairs {
		q := w.at(from, p.index(from))
		if begin := int32(q.Seq - base); q.Span() > 0 {
			out = append(out, [2]int32{begin, begin + q.Span()})
		}
	}
	slices.SortFunc(out, func(x, y [2]int32) int { return cmp.Compare(x[0], y[0]) })
	return out
}

// touches reports whether anything of a range is in r. Segments are short, so that only those that
// begin shortly before can reach into it.
func (r ranges) touches(begin, end int32) bool {
	at, _ := slices.BinarySearchFunc(r, begin-1<<17, func(x [2]int32, v int32) int { return cmp.Compare(x[0], v) })
	for _, x := range r[at:] {
		if x[0] >= end {
			return false
		}
		if x[1] > begin {
			return true
		}
	}
	return false
}

// tail says when losses reach to the end of the receiver's file, where a capture that was stopped
// early looks the same.
func (w *world) tail() string {
	for from := range w.dir {
		to := point(from).other()
		n, last := 0, w.lastAt(to)
		for _, i := range w.dir[from].lost {
			if w.atA(point(from), i) > last {
				n++
			}
		}
		if n > 0 {
			return fmt.Sprintf("%d of the lost packets were sent after the last packet of %s's file: had that capture been stopped before, it would look the same", n, to)
		}
	}
	return ""
}

// servers measures from the last data of a request to the first data of the answer, on connections
// whose ends are on different sides.
func (w *world) servers() []Server {
	type key struct {
		host netip.Addr
		at   point
	}
	think, total := map[key][]float64{}, map[key][]float64{}
	for _, l := range w.lanes {
		if l.f == nil || l.g == nil || l.f.key.proto != trace.TCP || l.dirA != 0 {
			continue
		}
		for _, x := range w.exchanges(l) {
			k := key{x.server, x.at}
			think[k] = append(think[k], x.near)
			total[k] = append(total[k], x.far)
		}
	}
	var out []Server
	for k, v := range think {
		out = append(out, Server{k.host.String(), k.at.String(), len(v), spread(v, 0).Median, spread(total[k], 0).Median})
	}
	slices.SortFunc(out, func(x, y Server) int {
		return cmp.Or(cmp.Compare(y.ThinkMS, x.ThinkMS), cmp.Compare(x.Host, y.Host), cmp.Compare(x.Point, y.Point))
	})
	return out[:min(len(out), maxFlows)]
}

// exchange is a request with its answer; times in nanoseconds.
type exchange struct {
	server    netip.Addr
	at        point
	near, far float64
}

// exchanges walks the data packets of a connection that both points have, in the order of the
// server's side. Who is asked first is the server.
func (w *world) exchanges(l *lane) []exchange {
	var up, down *lane
	for _, o := range w.of[l.f] {
		if len(o.pairs) > 0 {
			if p := o.pairs[0]; up == nil || w.at(pointA, p.a).Time < w.at(pointA, up.pairs[0].a).Time {
				up, down = o, up
			} else {
				down = o
			}
		}
	}
	if up == nil || down == nil || up.from == down.from {
		return nil
	}
	near, far := down.from, up.from
	type event struct {
		p    pair
		down bool
	}
	var all []event
	for _, o := range []*lane{up, down} {
		for _, p := range o.pairs {
			if w.at(near, p.index(near)).Len > 0 {
				all = append(all, event{p, o == down})
			}
		}
	}
	slices.SortFunc(all, func(x, y event) int { return x.p.index(near) - y.p.index(near) })
	var out []exchange
	for i := 1; i < len(all); i++ {
		if x, y := all[i-1], all[i]; !x.down && y.down {
			gap := func(at point) float64 { return float64(w.at(at, y.p.index(at)).Time - w.at(at, x.p.index(at)).Time) }
			out = append(out, exchange{w.at(near, y.p.index(near)).Src, near, gap(near), gap(far)})
		}
	}
	return out
}

// lossPattern is what lost packets of a direction have in common.
type lossPattern struct {
	name, code, summary, check string
}

// pattern compares lost packets with delivered ones.
func (w *world) pattern(from point) lossPattern {
	d := w.dir[from]
	if len(d.lost) == 0 {
		return lossPattern{}
	}
	for _, try := range []func(point) (lossPattern, bool){w.fragmentLoss, w.openingLoss, w.sizeLoss, w.idleLoss, w.outage} {
		if p, ok := try(from); ok {
			return p
		}
	}
	return lossPattern{"scattered", "packet-loss",
		fmt.Sprintf("%d of %s are lost between the points, with no pattern in size, port or time", len(d.lost), packets(len(d.lost)+d.delivered)),
		"counters of discards and errors at the interfaces between the points"}
}

// packets writes a number of packets.
func packets(n int) string {
	if n == 1 {
		return "1 packet"
	}
	return fmt.Sprintf("%d packets", n)
}

func (w *world) eachLost(from point, all func(*trace.Packet, *lane) bool) bool {
	d := w.dir[from]
	for k, i := range d.lost {
		if !all(w.at(from, i), d.lostLane[k]) {
			return false
		}
	}
	return true
}

func (w *world) fragmentLoss(from point) (lossPattern, bool) {
	if !w.eachLost(from, func(p *trace.Packet, _ *lane) bool { return p.Fragment() }) {
		return lossPattern{}, false
	}
	return lossPattern{"fragments", "fragments-dropped", "IP fragments vanish while whole packets pass",
		"a ping of 2000 bytes fails where one of 1000 passes"}, true
}

// openingLoss is loss of SYN or of SYN-ACK only, where every one to that port is lost.
func (w *world) openingLoss(from point) (lossPattern, bool) {
	syn, synack := true, true
	ports := map[netip.AddrPort]int{}
	w.eachLost(from, func(p *trace.Packet, _ *lane) bool {
		opening := p.Proto == trace.TCP && p.Flags&trace.SYN != 0
		syn = syn && opening && p.Flags&trace.ACK == 0
		synack = synack && opening && p.Flags&trace.ACK != 0
		ports[netip.AddrPortFrom(p.Dst, p.DstPort)]++
		return true
	})
	switch {
	case synack:
		return lossPattern{"syn-ack", "return-path-blocked", "SYN arrive and every lost packet is a SYN-ACK on the way back",
			"a filter or a route for the way back, or state that the first SYN did not make"}, true
	case !syn:
		return lossPattern{}, false
	}
	for _, l := range w.lanes {
		for _, p := range l.pairs {
			if q := w.at(from, p.index(from)); l.from == from && q.Flags&(trace.SYN|trace.ACK) == trace.SYN && ports[netip.AddrPortFrom(q.Dst, q.DstPort)] > 0 {
				return lossPattern{"some SYN", "syn-rate-limit", "only SYN are lost, and some to the same port arrive", "a limit of new connections between the points"}, true
			}
		}
	}
	names := make([]string, 0, len(ports))
	for p := range ports {
		names = append(names, p.String())
	}
	slices.Sort(names)
	return lossPattern{"syn", "syn-blackhole", fmt.Sprintf("every SYN to %s vanishes, other traffic passes", names[0]),
		"a filter rule for this port between the points"}, true
}

// sizeLoss is loss of everything above a size.
func (w *world) sizeLoss(from point) (lossPattern, bool) {
	d := w.dir[from]
	least := math.MaxInt
	w.eachLost(from, func(p *trace.Packet, _ *lane) bool {
		least = min(least, p.Size)
		return true
	})
	if len(d.lost) < 3 || least <= d.largest || least < 576 {
		return lossPattern{}, false
	}
	return lossPattern{"size", "pmtud-blackhole",
		fmt.Sprintf("every packet of %d bytes or more vanishes, the largest that passes has %d", least, d.largest),
		fmt.Sprintf("ping with the DF bit and %d bytes fails without an answer", least-28)}, true
}

// idleLoss is loss of everything after a pause of a second or more, on each connection that has any.
func (w *world) idleLoss(from point) (lossPattern, bool) {
	d := w.dir[from]
	first := map[*lane]float64{}
	for k, i := range d.lost {
		t := w.atA(from, i)
		if at, known := first[d.lostLane[k]]; !known || t < at {
			first[d.lostLane[k]] = t
		}
	}
	shortest := math.Inf(1)
	for l, lost := range first {
		last := math.Inf(-1)
		for _, o := range w.of[l.anyFlow()] {
			for _, p := range o.pairs {
				t := float64(w.at(pointA, p.a).Time)
				if o == l && t > lost {
					return lossPattern{}, false
				}
				last = max(last, t)
			}
		}
		shortest = min(shortest, lost-last)
	}
	if shortest < 1e9 || math.IsInf(shortest, 1) {
		return lossPattern{}, false
	}
	return lossPattern{"after idle", "idle-timeout",
		fmt.Sprintf("after a pause of %.1f s nothing of the connection passes any more", shortest/1e9),
		"a keep-alive shorter than the pause keeps such a connection alive"}, true
}

// outage is loss of everything during a time.
func (w *world) outage(from point) (lossPattern, bool) {
	d := w.dir[from]
	first, last := math.Inf(1), math.Inf(-1)
	for _, i := range d.lost {
		first, last = min(first, w.atA(from, i)), max(last, w.atA(from, i))
	}
	if len(d.lost) < 3 || last-first < 100e6 {
		return lossPattern{}, false
	}
	before, after := 0, 0
	for _, l := range w.lanes {
		for _, p := range l.pairs {
			if l.from != from {
				continue
			}
			switch t := w.atA(from, p.index(from)); {
			case t < first:
				before++
			case t <= last:
				return lossPattern{}, false
			default:
				after++
			}
		}
	}
	if before == 0 || after == 0 {
		return lossPattern{"from a moment on", "packet-loss", "from a moment on, nothing passes in this direction", "the state of links and routes between the points at that time"}, true
	}
	return lossPattern{"outage", "link-outage", fmt.Sprintf("for %.2f s nothing passes in this direction, then it does again", (last-first)/1e9),
		"the log of interfaces and routing between the points at that time"}, true
}
