package report

import (
	"fmt"
	"strings"

	"ghostbot/forensics/compare"
	"ghostbot/forensics/compare/baseline"
	"ghostbot/forensics/compare/clock"
	"ghostbot/forensics/report/advice"
)

// Endpoints writes the report of a comparison of two points.
func Endpoints(r *compare.Result) string {
	var b strings.Builder
	v := &r.Verdict
	fmt.Fprintf(&b, "# Comparison of two points: %s (A) and %s (B)\n\n## Executive Summary\n\n", escape(r.A.File), escape(r.B.File))
	fmt.Fprintf(&b, "**%s**, segment: %s, confidence %s. %s\n\n", v.Status, v.Segment, v.Confidence, escape(v.Summary))
	b.WriteString("## Path Health Table\n\n| direction | sent | delivered | lost | reordered | duplicated | made on the way | one-way delay (ms): min / median / p95 / max |\n|---|---|---|---|---|---|---|---|\n")
	for _, d := range []struct {
		name string
		d    compare.Direction
	}{{"A to B", r.AToB}, {"B to A", r.BToA}} {
		fmt.Fprintf(&b, "| %s | %d | %d | %d (%.2f %%) | %d | %d | %d | %s |\n", d.name, d.d.Sent, d.d.Delivered, d.d.Lost, d.d.LossPct, d.d.Reordered,
			d.d.Duplicated, d.d.Injected, delays(&d.d))
	}
	b.WriteString("\n" + clockText(&r.Clock) + "\n\n")
	flowsAtFault(&b, r)
	deliveryConfirmed(&b, r)
	b.WriteString("## Verdict\n\n")
	fmt.Fprintf(&b, "%s (`%s`), %s, confidence %s.\n\n", v.Status, v.Code, v.Segment, v.Confidence)
	for _, reason := range v.Reasons {
		fmt.Fprintf(&b, "- %s\n", escape(reason))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "- Note: %s\n", escape(n))
	}
	fmt.Fprintf(&b, "\n**What would confirm or refute it.** %s.\n\n## Recommended Actions\n\n", stop(escape(v.Check)))
	actions(&b, v.Code, firstFlow(r))
	return b.String()
}

// delays are the one-way delays of a direction; without a packet there are none.
func delays(d *compare.Direction) string {
	if d.Delivered == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%.2f / %.2f / %.2f / %.2f", d.DelayMS.Min, d.DelayMS.Median, d.DelayMS.P95, d.DelayMS.Max)
}

// clockText says what is known of the clocks.
func clockText(c *clock.Clock) string {
	limit := func(v *float64) string {
		if v == nil {
			return "unknown"
		}
		return fmt.Sprintf("%.3f", *v)
	}
	if c.Basis == "none" {
		return "Nothing is known of the clocks."
	}
	s := fmt.Sprintf("Clocks: B is %.3f ms ahead of A (between %s and %s; %s, %d packets)", c.OffsetMS, limit(c.LowMS), limit(c.HighMS), c.Basis, c.Samples)
	if c.DriftPPM != 0 {
		s += fmt.Sprintf(", and runs faster by %.1f ppm (between %.1f and %.1f)", c.DriftPPM, c.DriftLowPPM, c.DriftHighPPM)
	}
	return s + ". One-way delays are as good as this offset, which assumes that the fastest packets take equally long in both directions."
}

// flowsAtFault lists flows with losses and other faults.
func flowsAtFault(b *strings.Builder, r *compare.Result) {
	b.WriteString("## Flows Dropped in Transit\n\n")
	if r.A.Matched == 0 {
		b.WriteString("Unknown: no packet of one capture was found in the other.\n\n")
		return
	}
	if len(r.Flows) == 0 {
		b.WriteString("None: every packet sent at one point is in the capture of the other.\n\n")
		return
	}
	b.WriteString("| direction | flow | status | sent | lost | drop rate | reordered | duplicated | made on the way |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range r.Flows {
		rate := 0.0
		if f.Sent > 0 {
			rate = 100 * float64(f.Lost) / float64(f.Sent)
		}
		name := f.Protocol + " " + f.Src + " > " + f.Dst
		if f.AtB != "" {
			name += " (at B: " + f.AtB + ")"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %d | %d | %.1f %% | %d | %d | %d |\n", arrow(f.Direction), escape(name), f.Status, f.Sent, f.Lost, rate, f.Reordered, f.Duplicated, f.Injected)
	}
	b.WriteString("\n")
}

func arrow(direction string) string {
	if direction == "a_to_b" {
		return "A to B"
	}
	return "B to A"
}

// deliveryConfirmed says what is in order, what was altered, and how long servers took.
func deliveryConfirmed(b *strings.Builder, r *compare.Result) {
	fmt.Fprintf(b, "## Delivery Confirmed\n\n%d packets of A and B are the same ones.", r.A.Matched)
	if len(r.NAT) > 0 {
		b.WriteString(" Addresses are translated between the points; the flows were followed by sequence numbers and payload.")
	}
	b.WriteString("\n\n")
	if len(r.Alterations) > 0 {
		b.WriteString("| altered on the way | direction | from | to | packets | first frame at the receiver |\n|---|---|---|---|---|---|\n")
		for _, a := range r.Alterations[:min(len(r.Alterations), maxRows)] {
			fmt.Fprintf(b, "| %s | %s | %s | %s | %d | %d |\n", a.Field, arrow(a.Direction), escape(a.From), escape(a.To), a.Packets, a.Frame)
		}
		b.WriteString("\n")
	}
	b.WriteString("## One-Way vs Round-Trip\n\n")
	if r.RoundTripMS > 0 {
		fmt.Fprintf(b, "From A to B and back takes %s at best, whatever the clocks say.\n\n", millis(r.RoundTripMS))
	} else {
		b.WriteString("The round trip between A and B was not measured.\n\n")
	}
	if len(r.Servers) > 0 {
		b.WriteString("| server | near | requests | its own time (ms, median) | time at the other point (ms) | share of the path |\n|---|---|---|---|---|---|\n")
		for _, s := range r.Servers[:min(len(r.Servers), 10)] {
			share := 0.0
			if s.TotalMS > 0 {
				share = 100 * (s.TotalMS - s.ThinkMS) / s.TotalMS
			}
			fmt.Fprintf(b, "| %s | %s | %d | %.2f | %.2f | %.0f %% |\n", escape(s.Host), s.Point, s.Requests, s.ThinkMS, s.TotalMS, share)
		}
		b.WriteString("\n")
	}
}

// firstFlow is the flow that commands should be about.
func firstFlow(r *compare.Result) string {
	if len(r.Flows) == 0 {
		return ""
	}
	return r.Flows[0].Src + " -> " + r.Flows[0].Dst
}

// actions are the advice for a code, with commands for a flow.
func actions(b *strings.Builder, c, flow string) {
	a, ok := advice.For(c)
	if !ok {
		return
	}
	d, f := &Document{}, Finding{Code: c, Flow: flow}
	fmt.Fprintf(b, "%s\n\n", a.Do)
	d.commands(b, a.Commands, &f)
	fmt.Fprintf(b, "**Verify.** %s\n\n", a.Verify)
	d.commands(b, a.Check, &f)
}

// Baseline writes the report of a comparison of before and after.
func Baseline(d *baseline.Drift) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Comparison with a baseline: %s (before) and %s (after)\n\n## Executive Summary\n\n**%s** (%s). %s\n\n", escape(d.Before), escape(d.After), d.Verdict, d.Weight, escape(d.Summary))
	b.WriteString("## Change Summary Table\n\n| metric | before | after | change | verdict | weight |\n|---|---|---|---|---|---|\n")
	for _, c := range d.Changes {
		change := "-"
		if c.ChangePct != nil {
			change = fmt.Sprintf("%+.1f %%", *c.ChangePct)
		}
		fmt.Fprintf(&b, "| %s (%s) | %s | %s | %s | %s | %s |\n", escape(c.Metric), escape(c.Unit), figure(c.Before), figure(c.After), change, c.Verdict, c.Weight)
	}
	b.WriteString("\nUnder 10 % is stable, to 50 % noteworthy, to 200 % significant, above that critical.\n\n")
	issues(&b, "New Issues", d.New)
	issues(&b, "Resolved Issues", d.Resolved)
	b.WriteString("## Regressions\n\n")
	worse := 0
	for _, c := range d.Changes {
		if c.Verdict == "REGRESSION" || c.Verdict == "NEW ISSUE" {
			worse++
			fmt.Fprintf(&b, "- %s: %s to %s %s, %s\n", escape(c.Metric), figure(c.Before), figure(c.After), escape(c.Unit), c.Weight)
		}
	}
	if worse == 0 {
		b.WriteString("None.\n")
	}
	b.WriteString("\n## Remediation\n\n")
	done := false
	for _, i := range append(append([]baseline.Issue{}, d.New...), d.Remaining...) {
		if f := (Finding{Severity: i.Severity}); f.loud() && !done {
			done = true
			actions(&b, i.Code, "")
		}
	}
	if c := suspect(d); !done && c != "" {
		done = true
		fmt.Fprintf(&b, "No finding explains it. What the figure that became worst usually means is: %s.\n\n", strings.ToLower(title(c)))
		actions(&b, c, "")
	}
	if !done {
		b.WriteString("There is nothing to act on.\n")
	}
	return b.String()
}

// suspect is the code of what usually makes the worst metric worse; empty when none became worse.
func suspect(d *baseline.Drift) string {
	if d.Verdict != "REGRESSION" || len(d.Changes) == 0 {
		return ""
	}
	for _, m := range []struct{ metric, code string }{
		{"TCP retransmissions", "packet-loss"}, {"duplicate ACKs", "packet-loss"}, {"segments out of order", "reordering"}, {"zero windows", "zero-window"},
		{"resets", "rst-by-server"}, {"TCP connections without", "syn-blackhole"}, {"TCP round-trip", "high-latency"}, {"DNS queries unanswered", "dns-timeout"},
		{"DNS responses that say no", "dns-servfail"}, {"DNS latency", "dns-slow"}, {"echo requests", "packet-loss"}, {"echo round-trip", "high-latency"},
		{"HTTP responses", "http-errors"}, {"HTTP response time", "slow-server"}, {"ARP", "arp-failure"},
	} {
		if strings.HasPrefix(d.Changes[0].Metric, m.metric) {
			return m.code
		}
	}
	return ""
}

func figure(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.4g", *v)
}

func issues(b *strings.Builder, heading string, list []baseline.Issue) {
	fmt.Fprintf(b, "## %s\n\n", heading)
	if len(list) == 0 {
		b.WriteString("None.\n\n")
		return
	}
	for _, i := range list {
		fmt.Fprintf(b, "- %s: %s (`%s`)\n", escape(i.Severity), stop(escape(i.Summary)), code(i.Code))
	}
	b.WriteString("\n")
}
