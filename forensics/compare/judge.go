package compare

import "fmt"

// What makes a difference that is worth a verdict.
const (
	reorderedShare = 0.005 // of delivered packets
	longRoundTrip  = 150   // ms
	longQueue      = 100   // ms beyond the shortest delay, 95th percentile
	longThinking   = 200   // ms of a server
)

// verdict weighs the figures: what makes packets vanish comes before what delays them, and the
// network before the hosts.
func (w *world) verdict(r *Result) Verdict {
	for _, try := range []func(*Result) (Verdict, bool){w.unrelated, w.interference, w.losses, w.asymmetric, w.disorder, w.repeats, w.delays, w.hostsSlow} {
		if v, ok := try(r); ok {
			v.Confidence, v.Severity = w.confidence(r, v), severity(v.Status)
			v.Reasons = append(v.Reasons, w.reasons(r)...)
			return v
		}
	}
	v := Verdict{Status: "CLEAN PATH", Code: "healthy", Segment: "none",
		Summary: fmt.Sprintf("All %s sent at one point arrived at the other, in order and without long delays.", packets(r.AToB.Sent+r.BToA.Sent)),
		Check:   "a longer pair of captures while the symptom is there"}
	v.Confidence, v.Severity = w.confidence(r, v), severity(v.Status)
	v.Reasons = w.reasons(r)
	return v
}

// severity weighs a status as findings are weighed.
func severity(status string) string {
	switch status {
	case "FULL DROP":
		return "CRITICAL"
	case "PARTIAL DROP", "INTERFERENCE":
		return "HIGH"
	case "CLEAN PATH":
		return "INFO"
	case "UNRELATED":
		return "LOW"
	}
	return "MEDIUM"
}

func (w *world) unrelated(r *Result) (Verdict, bool) {
	if r.A.Matched > 0 {
		return Verdict{}, false
	}
	v := Verdict{Status: "UNRELATED", Code: "unrelated-captures", Segment: "none",
		Summary: "No packet of one capture is in the other: they show different traffic, or something between the points ends connections and makes new ones (a proxy).",
		Check:   "capture both points at the same time, with a request that can be recognised"}
	if lost := r.AToB.Lost + r.BToA.Lost; lost > 0 {
		v = Verdict{Status: "FULL DROP", Code: "packet-loss", Segment: w.segment(r.AToB.Lost, r.BToA.Lost),
			Summary: fmt.Sprintf("None of the %s sent at one point arrived at the other.", packets(lost)), Check: "that both captures ran at the same time"}
	}
	return v, true
}

// segment names the way between the points that has most of something.
func (w *world) segment(ab, ba int) string {
	switch {
	case ba == 0 || ab > 4*ba:
		return "between A and B, towards B"
	case ab == 0 || ba > 4*ab:
		return "between A and B, towards A"
	}
	return "between A and B, both ways"
}

// interference is resets that arrive and were never sent, where losses are in the same flows.
func (w *world) interference(r *Result) (Verdict, bool) {
	n := r.AToB.Injected + r.BToA.Injected
	if n == 0 {
		return Verdict{}, false
	}
	hit := map[*flow]bool{}
	for _, l := range w.lanes {
		for _, j := range l.rest[l.from.other()] {
			if w.fromNowhere(l, l.from.other(), j) {
				hit[l.anyFlow()] = true
			}
		}
	}
	for _, d := range w.dir {
		for _, l := range d.lostLane {
			if !hit[l.anyFlow()] {
				return Verdict{}, false
			}
		}
	}
	at := "A"
	if r.AToB.Injected > r.BToA.Injected {
		at = "B"
	}
	v := Verdict{Status: "INTERFERENCE", Code: "rst-injected", Segment: w.segment(r.AToB.Injected, r.BToA.Injected),
		Summary: fmt.Sprintf("%s reached %s that the other end never sent: something between the points makes such.", packets(n), at),
		Check:   "their TTL and IP ID differ from those of the host that they claim to come from"}
	if w.neverThrough(hit) {
		v.Code = "firewall-reject"
		v.Summary = fmt.Sprintf("%s refused on the way: the answers that reached %s were never sent at the other end.", connections(len(hit)), at)
	}
	if lost := r.AToB.Lost + r.BToA.Lost; lost > 0 {
		v.Reasons = append(v.Reasons, fmt.Sprintf("%s of the same connections did not arrive", packets(lost)))
	}
	return v, true
}

func connections(n int) string {
	if n == 1 {
		return "1 connection was"
	}
	return fmt.Sprintf("%d connections were", n)
}

// neverThrough reports whether nothing of these flows passed between the points.
func (w *world) neverThrough(flows map[*flow]bool) bool {
	for f := range flows {
		for _, l := range w.of[f] {
			if len(l.pairs) > 0 {
				return false
			}
		}
	}
	return true
}

func (w *world) losses(r *Result) (Verdict, bool) {
	lost := r.AToB.Lost + r.BToA.Lost
	if lost == 0 {
		return Verdict{}, false
	}
	from, d := pointA, r.AToB
	if r.BToA.LossPct > r.AToB.LossPct {
		from, d = pointB, r.BToA
	}
	p := w.pattern(from)
	v := Verdict{Status: "PARTIAL DROP", Code: p.code, Segment: w.segment(r.AToB.Lost, r.BToA.Lost), Check: p.check,
		Summary: fmt.Sprintf("%s sent at %s did not arrive at %s (%.2f %%): %s.", packets(d.Lost), from, from.other(), d.LossPct, p.summary)}
	if d.Delivered == 0 {
		v.Status = "FULL DROP"
	}
	return v, true
}

// asymmetric is traffic of which one point sees only one direction.
func (w *world) asymmetric(r *Result) (Verdict, bool) {
	n, past := r.AToB.Bypassing+r.BToA.Bypassing, "B"
	if n == 0 {
		return Verdict{}, false
	}
	if r.AToB.Bypassing > r.BToA.Bypassing {
		past = "A"
	}
	return Verdict{Status: "ASYMMETRIC ROUTING", Code: "asymmetric-path", Segment: w.segment(r.AToB.Bypassing, r.BToA.Bypassing),
		Summary: fmt.Sprintf("%d packets arrive that never passed %s, which sees only the other direction of their flows: the ways there and back differ.", n, past),
		Check:   "the routes of both directions, and that the capture at " + past + " has no filter for one of them"}, true
}

func (w *world) disorder(r *Result) (Verdict, bool) {
	n := r.AToB.Reordered + r.BToA.Reordered
	if all := r.AToB.Delivered + r.BToA.Delivered; n < 3 || float64(n) < reorderedShare*float64(all) {
		return Verdict{}, false
	}
	return Verdict{Status: "DEGRADED (REORDERED)", Code: "reordering", Segment: w.segment(r.AToB.Reordered, r.BToA.Reordered),
		Summary: fmt.Sprintf("%d packets are overtaken on the way, none is lost.", n), Check: "load sharing over links or paths of different delay between the points"}, true
}

func (w *world) repeats(r *Result) (Verdict, bool) {
	n := r.AToB.Duplicated + r.BToA.Duplicated
	if all := r.AToB.Delivered + r.BToA.Delivered; n < 3 || float64(n) < reorderedShare*float64(all) {
		return Verdict{}, false
	}
	return Verdict{Status: "DEGRADED (DUPLICATED)", Code: "duplication", Segment: w.segment(r.AToB.Duplicated, r.BToA.Duplicated),
		Summary: fmt.Sprintf("%d packets arrive more than once.", n), Check: "loops, mirrored ports and redundant links between the points"}, true
}

func (w *world) delays(r *Result) (Verdict, bool) {
	ab, ba := r.AToB.VariationMS, r.BToA.VariationMS
	switch worst := max(ab.P95, ba.P95); {
	case worst >= longQueue:
		return Verdict{Status: "DEGRADED (DELAYED)", Code: "bufferbloat", Segment: w.segment(int(ab.P95), int(ba.P95)),
			Summary: fmt.Sprintf("Packets wait between the points: 5 %% take %.0f ms longer than the fastest.", worst),
			Check:   "the delay grows with the load of the link"}, true
	case r.RoundTripMS >= longRoundTrip:
		return Verdict{Status: "DEGRADED (DELAYED)", Code: "high-latency", Segment: "between A and B, both ways",
			Summary: fmt.Sprintf("From A to B and back takes %.0f ms even at best.", r.RoundTripMS),
			Check:   "the distance, and whether the route is the expected one"}, true
	}
	return Verdict{}, false
}

func (w *world) hostsSlow(r *Result) (Verdict, bool) {
	for _, s := range r.Servers {
		if s.ThinkMS >= longThinking && s.ThinkMS >= 3*(s.TotalMS-s.ThinkMS) {
			return Verdict{Status: "SLOW HOST", Code: "slow-server", Segment: "behind " + s.Point,
				Summary: fmt.Sprintf("%s takes %.0f ms to answer, of %.0f ms that the client waits: the time is spent in the host, not on the path.", s.Host, s.ThinkMS, s.TotalMS),
				Check:   "the server's own log of request times"}, true
		}
	}
	return Verdict{}, false
}

// confidence is lower where the captures themselves leave doubts.
func (w *world) confidence(r *Result, v Verdict) string {
	routed := min(r.A.Packets-r.A.NotRouted-r.A.Elsewhere, r.B.Packets-r.B.NotRouted-r.B.Elsewhere)
	switch {
	case v.Status == "UNRELATED" || r.A.Matched*10 < routed || r.Clock.Basis == "inconsistent":
		return "LOW"
	case r.AToB.MissedAtSource+r.BToA.MissedAtSource > 0 || r.Clock.Basis != "both directions" || r.A.Matched < 10:
		return "MEDIUM"
	}
	return "HIGH"
}

// reasons are the figures of both directions.
func (w *world) reasons(r *Result) []string {
	var out []string
	for i, d := range []Direction{r.AToB, r.BToA} {
		to := point(i).other()
		out = append(out, fmt.Sprintf("towards %s: %d sent, %d delivered, %d lost, %d reordered, %d duplicated, one-way delay %.1f ms (median; 95 %% under %.1f)",
			to, d.Sent, d.Delivered, d.Lost, d.Reordered, d.Duplicated, d.DelayMS.Median, d.DelayMS.P95))
	}
	return out
}
