package report

import (
	"fmt"
	"slices"
	"strings"

	"ghostbot/forensics/report/advice"
)

// Image is a picture that a report shows.
type Image struct {
	// File is relative to the report.
	File, Title, Alt string
}

const (
	maxRows    = 50 // of the anomaly table
	maxCauses  = 3
	maxEvident = 8 // frames
)

// Forensic writes the report: Executive Summary, Anomaly Table, Root Cause Analysis, Remediation,
// then figures, pictures and limits.
func (d *Document) Forensic(images []Image) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Forensic report: %s\n\n", escape(d.Summary.File))
	b.WriteString(d.subject() + "\n\n## Executive Summary\n\n")
	b.WriteString(strings.Join(d.sentences(), " ") + "\n\n## Anomaly Table\n\n")
	d.table(&b)
	b.WriteString("\n## Root Cause Analysis\n\n")
	d.causes(&b)
	b.WriteString("## Remediation\n\n")
	d.remedies(&b)
	b.WriteString("## Figures\n\n")
	d.figures(&b)
	if len(images) > 0 {
		b.WriteString("## Pictures\n\n")
		for _, i := range images {
			fmt.Fprintf(&b, "![%s](%s)\n\n%s: %s\n\n", escape(i.Alt), strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29").Replace(i.File), escape(i.Title), escape(i.Alt))
		}
	}
	b.WriteString("## Limits\n\n")
	for _, l := range d.limits() {
		fmt.Fprintf(&b, "- %s\n", l)
	}
	return b.String()
}

// subject says what was looked at.
func (d *Document) subject() string {
	s := fmt.Sprintf("%s in %.3f s", count(d.Summary.Packets, "packet"), d.Summary.Seconds)
	if len(d.Summary.Protocols) > 0 {
		s += "; " + escape(strings.Join(d.Summary.Protocols, ", "))
	}
	if d.Provenance.Bytes > 0 {
		s += fmt.Sprintf("; %d bytes", d.Provenance.Bytes)
	}
	if d.Provenance.SHA256 != "" {
		s += fmt.Sprintf("; SHA-256 `%s`", strings.ReplaceAll(d.Provenance.SHA256, "`", ""))
	}
	if d.Provenance.Filter != "" {
		s += "; filtered by " + escape(d.Provenance.Filter)
	}
	return s + "."
}

// sentences are the executive summary.
func (d *Document) sentences() []string {
	loud := d.loud()
	if d.unjudged() {
		return d.nothing()
	}
	if len(loud) == 0 {
		return d.clean()
	}
	top := loud[0]
	out := []string{fmt.Sprintf("**%s**: %s.", title(top.Code), stop(escape(top.Summary)))}
	if a, ok := advice.For(top.Code); ok {
		out = append(out, a.Why)
	}
	if top.Confidence > 0 {
		out = append(out, fmt.Sprintf("This is %s (severity %s, frames %s).", certainty(top.Confidence), top.Severity, frames(top.Frames, 3)))
	} else {
		out = append(out, fmt.Sprintf("Severity %s, frames %s.", top.Severity, frames(top.Frames, 3)))
	}
	if n := len(loud) - 1; n > 0 {
		var names []string
		for _, f := range loud[1:min(len(loud), 4)] {
			names = append(names, strings.ToLower(title(f.Code)))
		}
		out = append(out, fmt.Sprintf("Besides: %s.", strings.Join(unique(names), "; ")))
	}
	if h := d.harmless(); h != "" {
		out = append(out, h)
	}
	return out
}

// unjudged reports whether the first finding says that there was nothing to judge.
func (d *Document) unjudged() bool {
	return len(d.Findings) > 0 && slices.Contains([]string{"filter-matched-nothing", "unreadable-capture", "empty-capture"}, d.Findings[0].Code)
}

// nothing says that no packet was judged, which is not the same as healthy.
func (d *Document) nothing() []string {
	out := []string{"**Nothing was judged**: this says nothing of the network."}
	if d.Summary.Packets > 0 {
		out[0] = "**Hardly anything was judged**: this says nothing of the network."
	}
	for _, f := range d.Findings {
		out = append(out, stop(escape(f.Summary))+".", escape(f.Confirm))
	}
	return out
}

// millis writes a duration in milliseconds. What is below the resolution of the figures
// is said as such, never as zero.
func millis(v float64) string {
	if v < 0.01 {
		return "under 0.01 ms"
	}
	return fmt.Sprintf("%.2f ms", v)
}

// known reports whether anything was measured.
func (s Spread) known() bool { return s.Max > 0 || s.Median > 0 || s.P95 > 0 }

// text writes a distribution in milliseconds.
func (s Spread) text() string {
	if !s.known() {
		return "not measured"
	}
	return fmt.Sprintf("min %s, median %s, p95 %s, max %s", millis(s.Min), millis(s.Median), millis(s.P95), millis(s.Max))
}

// middle is the median in words.
func (s Spread) middle() string {
	if !s.known() {
		return "not measured"
	}
	return millis(s.Median) + " (median)"
}

// roundTrip says what the capture shows of the round trip of TCP. Near the receiver of
// a transfer nearly all ACKs leave at once, and say nothing of the path.
func (t *TCP) roundTrip() string {
	switch {
	case !t.RTT.known():
		return "no round trip could be measured"
	case t.RTT.Median < 0.01:
		return fmt.Sprintf("the median time from data to its ACK is under 0.01 ms (the capture point is next to the receiver), the 95th percentile is %s", millis(t.RTT.P95))
	}
	return "median round-trip time " + millis(t.RTT.Median)
}

// success says how many handshakes succeeded, where one was seen to begin.
func (t *TCP) success() string {
	if t.Connections.SYN == 0 {
		return "no handshake is in the capture"
	}
	return fmt.Sprintf("handshakes succeeded in %.1f %%", t.Connections.Success)
}

// clean says that a capture is healthy, with figures.
func (d *Document) clean() []string {
	out := []string{"**Healthy**: nothing in this capture needs action."}
	if d.TCP != nil {
		out = append(out, fmt.Sprintf("%s with %s and %s; %s; %s.", count(d.TCP.Streams, "TCP stream"),
			count(d.TCP.Retransmissions, "retransmission"), count(d.TCP.Resets, "reset"), d.TCP.success(), d.TCP.roundTrip()))
	}
	if d.DNS != nil {
		out = append(out, fmt.Sprintf("%s, %d unanswered, latency %s.", count(d.DNS.Queries, "DNS query"), d.DNS.Unanswered, d.DNS.Latency.middle()))
	}
	if d.ICMP != nil && d.ICMP.Matched+d.ICMP.Unmatched > 0 {
		out = append(out, fmt.Sprintf("%s answered, %d not.", count(d.ICMP.Matched, "echo request"), d.ICMP.Unmatched))
	}
	minor := slices.DeleteFunc(slices.Clone(d.Findings), func(f Finding) bool { return f.Code == "healthy" })
	if len(minor) > 0 {
		out = append(out, fmt.Sprintf("Of low severity, and listed below for completeness: %s.", count(int64(len(minor)), "finding")))
	}
	return out
}

// harmless says what the figures rule out.
func (d *Document) harmless() string {
	var out []string
	if t := d.TCP; t != nil && t.Streams > 0 {
		if t.Retransmissions == 0 {
			out = append(out, "no TCP segment was repeated, so that loss on the path is no part of it")
		}
		if t.ZeroWindow == 0 && t.Retransmissions > 0 {
			out = append(out, "no receiver closed its window")
		}
	}
	if n := d.DNS; n != nil && n.Queries > 0 && n.Unanswered == 0 {
		out = append(out, "every DNS query was answered")
	}
	if len(out) == 0 {
		return ""
	}
	return "Ruled out by the figures: " + strings.Join(out, "; ") + "."
}

func (d *Document) table(b *strings.Builder) {
	if len(d.Findings) == 0 {
		b.WriteString("No anomaly was found.\n")
		return
	}
	b.WriteString("| Severity | Protocol | Issue | Detail | Frame(s) |\n|---|---|---|---|---|\n")
	for i, f := range d.Findings {
		if i == maxRows {
			fmt.Fprintf(b, "\n%d further findings are in the JSON.\n", len(d.Findings)-maxRows)
			break
		}
		fmt.Fprintf(b, "| %s | %s | %s (`%s`) | %s | %s |\n", escape(f.Severity), escape(f.Protocol), title(f.Code), code(f.Code), escape(join(f.Summary, f.Detail)), frames(f.Frames, maxEvident))
	}
}

// join makes one text of summary and detail, unless one is in the other.
func join(summary, detail string) string {
	if detail == "" || strings.Contains(summary, detail) {
		return summary
	}
	return strings.TrimSuffix(summary, ".") + ". " + detail
}

func stop(s string) string { return strings.TrimRight(s, ". ") }

// title is a code's title; an unknown one is told as it is.
func title(c string) string {
	if a, ok := advice.For(c); ok {
		return a.Title
	}
	return strings.ReplaceAll(code(c), "-", " ")
}

// code is a code without anything that does not belong into one.
func code(c string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}, c)
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}
	return out
}

// chosen are the findings that are explained: the first of each code that is worth acting on.
func (d *Document) chosen() []Finding {
	var out []Finding
	seen := map[string]bool{}
	for _, f := range d.loud() {
		if !seen[f.Code] && len(out) < maxCauses {
			seen[f.Code] = true
			out = append(out, f)
		}
	}
	return out
}

func (d *Document) causes(b *strings.Builder) {
	list := d.chosen()
	if d.unjudged() {
		b.WriteString("Nothing was judged, so that there is no fault to explain and none to exclude.\n\n")
		return
	}
	if len(list) == 0 {
		b.WriteString("There is no fault to explain: the figures below are those of healthy traffic. What a capture at one point cannot show is listed under Limits.\n\n")
		return
	}
	for i, f := range list {
		fmt.Fprintf(b, "### %d. %s\n\n", i+1, title(f.Code))
		fmt.Fprintf(b, "**Observed.** %s.\n\n", stop(escape(join(f.Summary, f.Detail))))
		if a, ok := advice.For(f.Code); ok {
			fmt.Fprintf(b, "**Mechanism.** %s\n\n", a.Why)
		}
		fmt.Fprintf(b, "**Evidence.** Frames %s", frames(f.Frames, maxEvident))
		if f.Flow != "" {
			fmt.Fprintf(b, "; flow %s", escape(f.Flow))
		}
		fmt.Fprintf(b, ". Certainty: %s", certainty(f.Confidence))
		if f.Confidence > 0 {
			fmt.Fprintf(b, " (%.2f)", f.Confidence)
		}
		b.WriteString(".\n\n")
		if f.Limits != "" {
			fmt.Fprintf(b, "**What this capture cannot tell.** %s.\n\n", stop(escape(f.Limits)))
		}
		if f.Confirm != "" {
			fmt.Fprintf(b, "**What would confirm or refute it.** %s.\n\n", stop(escape(f.Confirm)))
		}
	}
}

func (d *Document) remedies(b *strings.Builder) {
	list := d.chosen()
	if d.unjudged() {
		list = d.Findings
	} else if len(list) == 0 {
		list = []Finding{{Code: "healthy"}}
	}
	for i, f := range list {
		a, ok := advice.For(f.Code)
		if !ok {
			a = advice.Advice{Title: title(f.Code), Do: "Look at the evidence frames.", Commands: []string{"tcpdump -ni any -c 100 host {server}"},
				Verify: "A new capture no longer has the finding.", Check: []string{"ghostbot pcap capture.pcap"}}
		}
		fmt.Fprintf(b, "### %d. %s\n\n%s\n\n", i+1, a.Title, a.Do)
		d.commands(b, a.Commands, &f)
		fmt.Fprintf(b, "**Verify.** %s\n\n", a.Verify)
		d.commands(b, a.Check, &f)
	}
}

func (d *Document) commands(b *strings.Builder, list []string, f *Finding) {
	b.WriteString("```sh\n")
	for _, c := range list {
		b.WriteString(d.fill(c, f) + "\n")
	}
	b.WriteString("```\n\n")
}

func (d *Document) figures(b *strings.Builder) {
	b.WriteString("| what | figure |\n|---|---|\n")
	row := func(what, format string, args ...any) {
		fmt.Fprintf(b, "| %s | %s |\n", what, fmt.Sprintf(format, args...))
	}
	row("packets", "%d", d.Summary.Packets)
	if t := d.TCP; t != nil {
		row("TCP streams", "%d", t.Streams)
		if t.Connections.SYN > 0 {
			row("handshakes", "%d of %d SYN (%.1f %%)", t.Connections.Handshakes, t.Connections.SYN, t.Connections.Success)
		}
		row("retransmissions, duplicate ACKs, out of order", "%d, %d, %d", t.Retransmissions, t.DuplicateACKs, t.OutOfOrder)
		row("resets, zero windows", "%d, %d", t.Resets, t.ZeroWindow)
		row("round-trip time of ACKs", "%s", t.RTT.text())
	}
	if n := d.DNS; n != nil {
		row("DNS queries, responses, unanswered", "%d, %d, %d", n.Queries, n.Responses, n.Unanswered)
		row("DNS latency", "%s", n.Latency.text())
	}
	if e := d.ICMP; e != nil && e.Matched+e.Unmatched > 0 {
		row("echo requests answered, not answered", "%d, %d", e.Matched, e.Unmatched)
		row("echo round-trip time", "%s", e.RTT.text())
	}
	if a := d.ARP; a != nil {
		row("ARP requests, replies, addresses without answer", "%d, %d, %d", a.Requests, a.Replies, len(a.Unanswered))
	}
	if t := d.TLS; t != nil {
		row("TLS client hellos, server hellos, kinds of alerts", "%d, %d, %d", t.Hellos, t.Answers, len(t.Alerts))
	}
	if h := d.HTTP; h != nil {
		row("HTTP response time", "%s", h.Time.text())
	}
	b.WriteString("\n")
}

// limits are what the reader has to keep in mind.
func (d *Document) limits() []string {
	out := []string{}
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if d.Provenance.Error != "" {
		add("%s.", stop(escape(d.Provenance.Error)))
	}
	if d.Provenance.Skipped > 0 {
		add("%s of the file were skipped as damaged.", count(d.Provenance.Skipped, "byte"))
	}
	if d.Provenance.Cut > 0 {
		add("%s cut by the snap length of %d bytes: what stands behind it is unknown, so that DNS, TLS and HTTP are judged as far as their beginnings were captured.", count(d.Provenance.Cut, "packet"), d.Provenance.SnapLen)
	}
	for _, f := range d.Findings {
		if f.Code == "healthy" && f.Limits != "" {
			add("%s", stop(escape(f.Limits))+".")
		}
	}
	for _, s := range d.Provenance.Incomplete {
		add("%s.", stop(escape(s)))
	}
	if d.Provenance.SHA256 == "" {
		add("No digest of the file was computed.")
	}
	add("One capture point sees losses before it as gaps and losses behind it as repetitions; to place a loss for certain, compare captures of both ends (`ghostbot pcap A --compare B --mode endpoints`).")
	return out
}

// maxSummary bounds the executive summary's file.
const maxSummary = 50

// Executive writes the executive summary: at most 50 lines.
func (d *Document) Executive() string {
	lines := append([]string{"# Executive summary: " + escape(d.Summary.File), "", d.subject(), "", "## Verdict", ""}, d.sentences()...)
	if loud := d.loud(); len(loud) > 0 {
		lines = append(lines, "", "## Findings", "")
		for _, f := range loud[:min(len(loud), 8)] {
			lines = append(lines, fmt.Sprintf("- %s: %s (`%s`)", f.Severity, stop(escape(f.Summary)), code(f.Code)))
		}
		lines = append(lines, "", "## Next steps", "")
		for i, f := range d.chosen() {
			if a, ok := advice.For(f.Code); ok {
				lines = append(lines, fmt.Sprintf("%d. %s `%s`", i+1, a.Do, d.fill(a.Commands[0], &f)))
			}
		}
	}
	if l := d.limits(); len(l) > 1 {
		lines = append(lines, "", "## Limits", "")
		for _, s := range l[:min(len(l), 5)] {
			lines = append(lines, "- "+s)
		}
	}
	return strings.Join(lines[:min(len(lines), maxSummary)], "\n") + "\n"
}
