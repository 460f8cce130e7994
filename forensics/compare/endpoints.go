package compare

import (
	"cmp"
	"math"
	"net/netip"
	"slices"

	"ghostbot/forensics/compare/clock"
	"ghostbot/forensics/trace"
)

// Result is the comparison of two points. Frames of A and B are numbers in their files.
type Result struct {
	// A and B are the captures.
	A Capture `json:"a"`
	B Capture `json:"b"`
	// Clock is how their clocks differ.
	Clock clock.Clock `json:"clock"`
	// AToB and BToA are what happened between the points.
	AToB Direction `json:"a_to_b"`
	BToA Direction `json:"b_to_a"`
	// RoundTripMS is the shortest time from A to B and back, the hosts' own time not included; it
	// does not depend on the clocks.
	RoundTripMS float64 `json:"round_trip_ms"`
	// Servers are how long hosts took to answer, at the point nearest to them.
	Servers []Server `json:"servers,omitempty"`
	// Alterations are what was changed on the way, the most frequent first.
	Alterations []Alteration `json:"alterations,omitempty"`
	// NAT are translated addresses.
	NAT []Translation `json:"nat,omitempty"`
	// Flows are those with losses, duplicates, reordering or packets from nowhere, the worst first.
	Flows []Flow `json:"flows,omitempty"`
	// Verdict is the answer.
	Verdict Verdict `json:"verdict"`
	// Notes say what limits the comparison.
	Notes []string `json:"notes,omitempty"`
}

// Capture is what became of one capture's packets.
type Capture struct {
	// File is for people; Endpoints leaves it empty.
	File string `json:"file"`
	// Packets are all, Matched those with a counterpart.
	Packets int `json:"packets"`
	Matched int `json:"matched"`
	// Elsewhere are packets of flows that the other point cannot be expected to see, NotRouted those
	// that no router forwards, Copies second copies of the same packet in this file, OutsideTime
	// those from when the other capture did not run.
	Elsewhere   int `json:"elsewhere"`
	NotRouted   int `json:"not_routed"`
	Copies      int `json:"copies"`
	OutsideTime int `json:"outside_time"`
}

// Direction is what happened to packets on their way. Sent = Delivered + Lost.
type Direction struct {
	Sent      int `json:"sent"`
	Delivered int `json:"delivered"`
	Lost      int `json:"lost"`
	// LossPct is Lost of Sent.
	LossPct float64 `json:"loss_pct"`
	// LostFrames are frames of the capture on the sender's side, at most 1000.
	LostFrames []int `json:"lost_frames"`
	// Duplicated are packets that arrived more than once, Reordered those that arrived after one that
	// was sent later (RFC 4737), within their flow.
	Duplicated      int   `json:"duplicated"`
	Reordered       int   `json:"reordered"`
	ReorderedFrames []int `json:"reordered_frames,omitempty"`
	// Injected are packets that arrived and were never sent at the other point; MissedAtSource those
	// that the capture there seems to have missed.
	Injected       int   `json:"injected"`
	InjectedFrames []int `json:"injected_frames,omitempty"`
	MissedAtSource int   `json:"missed_at_source"`
	// Bypassing are packets of flows of which the point at their source sees only the other
	// direction: the way of these is another one.
	Bypassing int `json:"bypassing"`
	// DelayMS is the one-way delay, up to the uncertainty of the clock's offset. VariationMS is the
	// delay beyond the shortest one, which does not depend on the offset.
	DelayMS     Spread `json:"delay_ms"`
	VariationMS Spread `json:"variation_ms"`
	// Pattern names what lost packets have in common; empty without losses.
	Pattern string `json:"pattern,omitempty"`
}

// Spread describes a distribution; p95 is element floor(0.95 n) of the sorted values.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
}

// Flow is one direction of a flow.
type Flow struct {
	Direction  string `json:"direction"`
	Protocol   string `json:"protocol"`
	Src        string `json:"src"`
	Dst        string `json:"dst"`
	AtB        string `json:"at_b,omitempty"` // "src > dst" at B, when translated
	Sent       int    `json:"sent"`
	Lost       int    `json:"lost"`
	Duplicated int    `json:"duplicated"`
	Reordered  int    `json:"reordered"`
	Injected   int    `json:"injected"`
	Status     string `json:"status"`
}

// Server is a host that answered requests.
type Server struct {
	Host string `json:"host"`
	// Point is the capture nearer to it, Requests how many were measured.
	Point    string `json:"point"`
	Requests int    `json:"requests"`
	// ThinkMS is the time from request to answer at that point, TotalMS at the client's point, both
	// medians.
	ThinkMS float64 `json:"think_ms"`
	TotalMS float64 `json:"total_ms"`
}

// limits of lists in the result.
const (
	maxFrames = 1000
	maxFlows  = 50
)

// Endpoints compares two captures of the same traffic.
func Endpoints(a, b []trace.Packet) *Result {
	m := &matcher{side: [2]*side{group(a), group(b)}}
	pairFlows(m.side[pointA], m.side[pointB])
	m.lanes = lanes(m.side[pointA], m.side[pointB])
	m.match()
	w := &world{matcher: m, of: map[*flow][]*lane{}}
	for _, l := range m.lanes {
		w.of[l.anyFlow()] = append(w.of[l.anyFlow()], l)
	}
	w.locate()
	w.clock()
	m.finish(w.usual())
	w.clock() // with everything that is matched now
	w.judge()
	return w.result()
}

// world is a comparison under way: where hosts are, and what became of packets.
type world struct {
	*matcher
	of      map[*flow][]*lane     // by the flow of A, or of B where A has none
	hosts   [2]map[netip.Addr]int // by point: positive at A's side, negative at B's
	time    clock.Clock
	way     [2]delayRange // by the point that packets come from
	dir     [2]*direction // by the point that packets come from
	outside [2]int
	away    [2]int
	notes   []string
}

// direction collects what result needs of a direction.
type direction struct {
	lost, injected, missed, copies []int // indexes, the first at the sender's point, the others at the receiver's
	lostLane                       []*lane
	reordered                      []int
	delays                         []float64
	largest                        int // delivered packet
	delivered, bypassing           int
}

// locate finds out where the packets of each lane come from: from falling TTLs, else from times,
// else from what other lanes say of the hosts, else from a TTL that was not yet reduced.
func (w *world) locate() {
	w.hosts = [2]map[netip.Addr]int{{}, {}}
	for _, l := range w.lanes {
		if n := w.hops(l); n != 0 {
			w.place(l, n > 0, len(l.pairs))
		}
	}
	for _, l := range w.lanes {
		o := w.opposite(l)
		if l.sure || o == nil || len(l.pairs) == 0 || len(o.pairs) == 0 {
			continue
		}
		if o.sure {
			w.place(l, o.from == pointB, len(l.pairs))
		} else if x, y := w.span(l), w.span(o); x.low != y.low {
			w.place(l, x.low > y.low, len(l.pairs))
		}
	}
	for _, l := range w.lanes {
		if !l.sure {
			w.guess(l)
		}
	}
}

// opposite is the other direction of a lane, nil when there is none.
func (w *world) opposite(l *lane) *lane {
	for _, o := range w.of[l.anyFlow()] {
		if o != l {
			return o
		}
	}
	return nil
}

// hops is how many more packets of a lane have a lower TTL at B than at A, less those with a lower
// one at A.
func (w *world) hops(l *lane) int {
	n := 0
	for _, p := range l.pairs {
		n += cmp.Compare(w.at(pointA, p.a).TTL, w.at(pointB, p.b).TTL)
	}
	return n
}

// place notes that a lane's packets come from A's side, or from B's.
func (w *world) place(l *lane, fromA bool, weight int) {
	l.from, l.sure = pointB, true
	if fromA {
		l.from, weight = pointA, -weight
	}
	w.vote(l, -weight)
}

// vote places the hosts of a lane: positive where its source is at A's side.
func (w *world) vote(l *lane, weight int) {
	if l.f != nil {
		src, dst := l.f.ends(l.dirA)
		w.hosts[pointA][src.Addr()] += weight
		w.hosts[pointA][dst.Addr()] -= weight
	}
	if l.g != nil {
		src, dst := l.g.ends(l.dirB)
		w.hosts[pointB][src.Addr()] += weight
		w.hosts[pointB][dst.Addr()] -= weight
	}
}

// guess places a lane of which nothing was measured.
func (w *world) guess(l *lane) {
	l.from = pointA
	if l.f == nil {
		l.from = pointB
	}
	for p, f := range []*flow{l.f, l.g} {
		if f == nil {
			continue
		}
		src, dst := f.ends([]int{l.dirA, l.dirB}[p])
		if v := w.hosts[p][src.Addr()] - w.hosts[p][dst.Addr()]; v != 0 {
			l.from = pointB
			if v > 0 {
				l.from = pointA
			}
			return
		}
	}
	for p, list := range l.list {
		if len(list) == 0 {
			continue
		}
		l.from = point(p).other()
		if ttl := w.at(point(p), list[0]).TTL; ttl == 64 || ttl == 128 || ttl == 255 {
			l.from = point(p)
		}
		return
	}
}

// clock estimates the clocks from the lanes whose side is measured.
func (w *world) clock() {
	var s [2][]clock.Sample
	origin, first := int64(0), true
	for _, l := range w.lanes {
		for _, p := range l.pairs {
			if t := w.at(pointA, p.a).Time; first || t < origin {
				origin, first = t, false
			}
		}
	}
	for _, l := range w.lanes {
		if !l.sure {
			continue
		}
		for _, p := range l.pairs {
			if p.how == 0 || p.how == changedPayload {
				s[l.from] = append(s[l.from], clock.Sample{At: float64(w.at(pointA, p.a).Time - origin), Ahead: float64(w.difference(p))})
			}
		}
	}
	w.time = clock.Estimate(s[pointA], s[pointB], origin)
}

// usual are the differences of time that each direction has shown.
func (w *world) usual() [2]span {
	var out [2]span
	for _, l := range w.lanes {
		if s := w.span(l); s.known {
			out[l.from].add(s.low)
			out[l.from].add(s.high)
		}
	}
	return out
}

// judge decides what became of every packet without a counterpart.
func (w *world) judge() {
	w.dir = [2]*direction{{}, {}}
	seen := w.expected()
	w.measureWays()
	cover := w.coverage(seen)
	under := w.underWay(seen)
	for _, l := range w.lanes {
		d := w.dir[l.from]
		to := l.from.other()
		if !seen[l] {
			for p := range l.rest {
				w.away[p] += len(l.rest[p])
			}
			continue
		}
		if w.bypass(l) {
			d.bypassing += len(l.rest[to])
			continue
		}
		for _, i := range l.rest[l.from] {
			if t := w.atA(l.from, i); cover[to].covers(t, w.way[l.from]) && t <= under[l.from] {
				d.lost, d.lostLane = append(d.lost, i), append(d.lostLane, l)
			} else {
				w.outside[l.from]++
			}
		}
		for _, j := range l.rest[to] {
			switch {
			case !cover[l.from].covers(w.atA(to, j), w.way[l.from].back()):
				w.outside[to]++
			case w.fromNowhere(l, to, j):
				d.injected = append(d.injected, j)
			default:
				d.missed = append(d.missed, j)
			}
		}
		d.copies = append(d.copies, l.copies[to]...)
		w.delivered(d, l)
	}
}

// bypass reports whether a lane does not pass the point at its source, which sees the other direction
// of the flow.
func (w *world) bypass(l *lane) bool {
	o := w.opposite(l)
	return len(l.list[l.from]) == 0 && len(l.list[l.from.other()]) >= 3 && o != nil && len(o.pairs) >= 3
}

// delivered adds the matched packets of a lane.
func (w *world) delivered(d *direction, l *lane) {
	d.delivered += len(l.pairs)
	for _, p := range l.pairs {
		d.largest = max(d.largest, w.at(l.from, p.index(l.from)).Size)
		if p.how != changedSegments && p.how != changedFragments {
			d.delays = append(d.delays, w.delay(l, p))
		}
	}
	d.reordered = append(d.reordered, w.reordered(l)...)
}

func (p pair) index(at point) int {
	if at == pointA {
		return p.a
	}
	return p.b
}

// reordered returns the packets, as indexes at the receiver, that arrived after one that was sent
// later.
func (w *world) reordered(l *lane) []int {
	to := l.from.other()
	order := slices.Clone(l.pairs)
	slices.SortFunc(order, func(x, y pair) int { return x.index(to) - y.index(to) })
	var out []int
	last := -1
	for _, p := range order {
		if p.how == changedSegments {
			continue
		}
		if sent := p.index(l.from); sent < last {
			out = append(out, p.index(to))
		} else {
			last = sent
		}
	}
	return out
}

// expected says of which lanes both points should see the packets: those of flows that both have;
// of flows between hosts of which both points have another flow; and of three packets or more, those
// with a host that the other capture knows. A flow of one point that is answered there passes the
// other one by, or that capture has a filter.
func (w *world) expected() map[*lane]bool {
	type hosts struct{ x, y netip.Addr }
	both := map[hosts]bool{}
	for _, l := range w.lanes {
		if len(l.pairs) > 0 {
			for p, f := range []*flow{l.f, l.g} {
				src, dst := f.ends([]int{l.dirA, l.dirB}[p])
				both[hosts{src.Addr(), dst.Addr()}] = true
				both[hosts{dst.Addr(), src.Addr()}] = true
			}
		}
	}
	out := map[*lane]bool{}
	for _, l := range w.lanes {
		f, p, dir := l.f, pointA, l.dirA
		if f == nil {
			f, p, dir = l.g, pointB, l.dirB
		}
		src, dst := f.ends(dir)
		other := w.side[p.other()].seen
		known := other[src.Addr()] && other[dst.Addr()] || len(f.packet[0])+len(f.packet[1]) >= 3 && (other[src.Addr()] || other[dst.Addr()])
		out[l] = l.f != nil && l.g != nil || (both[hosts{src.Addr(), dst.Addr()}] || known) && !w.answered(f, p)
	}
	return out
}

// answered reports whether both ends of a flow send, resets not counted: anybody can send those.
func (w *world) answered(f *flow, at point) bool {
	for _, list := range f.packet {
		if !slices.ContainsFunc(list, func(i int) bool { return w.at(at, i).Flags&trace.RST == 0 }) {
			return false
		}
	}
	return true
}

// window is when a capture ran, in A's time.
type window struct{ from, to float64 }

// coverage finds out when captures ran. A capture that has nothing at first, or at last, may have
// been started late or stopped early, or everything was lost on the way to it. The former it is when
// the other point then received packets that this one should have seen leave.
func (w *world) coverage(seen map[*lane]bool) [2]window {
	var out [2]window
	for p := range w.side {
		out[p] = window{from: -1 << 62, to: 1 << 62}
		list := w.side[p].packets
		if len(list) == 0 {
			continue
		}
		first, last := w.atA(point(p), 0), w.atA(point(p), 0)
		for i := range list {
			first, last = min(first, w.atA(point(p), i)), max(last, w.atA(point(p), i))
		}
		before, after := 0, 0
		for _, l := range w.lanes {
			if l.from != point(p) || !seen[l] || w.bypass(l) {
				continue
			}
			for _, j := range l.rest[l.from.other()] {
				switch t := w.atA(l.from.other(), j) - w.way[l.from].least; {
				case w.fromNowhere(l, l.from.other(), j):
				case t < first:
					before++
				case t > last:
					after++
				}
			}
		}
		if before > 0 {
			out[p].from = first
		}
		if after > 0 {
			out[p].to = last
		}
	}
	return out
}

// underWay returns for both directions the time after which packets were still on their way when the
// capture at their source ended. Both captures may have been stopped at that moment: where nothing
// else of connections that both have is missing, and they were busy to the end, that is no loss.
func (w *world) underWay(seen map[*lane]bool) [2]float64 {
	never, n := [2]float64{math.Inf(1), math.Inf(1)}, 0
	end := [2]float64{w.lastAt(pointA), w.lastAt(pointB)}
	for _, l := range w.lanes {
		if !seen[l] || w.bypass(l) {
			continue
		}
		for _, i := range l.rest[l.from] {
			if w.atA(l.from, i)+w.way[l.from].least <= end[l.from] || len(l.pairs) == 0 {
				return never
			}
			n++
		}
	}
	if n < 2 || math.Abs(end[pointA]-end[pointB]) > w.way[pointA].least+w.way[pointB].least+5e6 {
		return never
	}
	return [2]float64{end[pointA] - w.way[pointA].least, end[pointB] - w.way[pointB].least}
}

// lastAt is the time of the last packet of a capture, in A's time.
func (w *world) lastAt(p point) float64 {
	last := math.Inf(-1)
	for i := range w.side[p].packets {
		last = max(last, w.atA(p, i))
	}
	return last
}

// atA is the time of a packet in A's time.
func (w *world) atA(p point, i int) float64 {
	t := w.at(p, i).Time
	if p == pointA {
		return float64(t)
	}
	return float64(t) - w.time.Ahead(t-int64(w.time.Offset()))
}

// covers reports whether a capture certainly ran when a packet, seen elsewhere at t, passed its
// point.
func (c window) covers(t float64, way delayRange) bool {
	return t+way.least >= c.from && t+way.most <= c.to
}

// delayRange is how long packets of a direction take, in nanoseconds.
type delayRange struct{ least, most float64 }

// back is the way from the receiver to the sender in time.
func (d delayRange) back() delayRange { return delayRange{-d.most, -d.least} }

// measureWays finds the delays of both directions.
func (w *world) measureWays() {
	for p := range w.way {
		w.way[p] = delayRange{}
		for _, l := range w.lanes {
			if l.from == point(p) {
				for _, q := range l.pairs {
					late := w.delay(l, q)
					w.way[p].least = min(late, cmp.Or(w.way[p].least, late))
					w.way[p].most = max(late, w.way[p].most)
				}
			}
		}
	}
}

// delay is how long a packet took from the sender's point to the other.
func (w *world) delay(l *lane, p pair) float64 {
	late := float64(w.difference(p)) - w.time.Ahead(w.at(pointA, p.a).Time)
	if l.from == pointB {
		return -late
	}
	return late
}

// fromNowhere reports whether packet j, received and never sent, was made on the way: a reset, or a
// packet whose TTL is that of no other one of its sender.
func (w *world) fromNowhere(l *lane, at point, j int) bool {
	q := w.at(at, j)
	if q.Proto == trace.TCP && q.Flags&trace.RST != 0 {
		return true
	}
	if len(l.pairs) < 3 {
		return false
	}
	for _, p := range l.pairs {
		if w.at(at, p.index(at)).TTL == q.TTL {
			return false
		}
	}
	return true
}
