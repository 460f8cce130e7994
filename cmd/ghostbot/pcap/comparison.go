package pcap

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"ghostbot/forensics/compare"
	"ghostbot/forensics/compare/baseline"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding"
	"ghostbot/forensics/report"
	"ghostbot/forensics/semantic"
	"ghostbot/forensics/trace"
)

// Comparison is the comparison of two captures; its fields are the JSON of --compare.
type Comparison struct {
	Mode      string               `json:"mode"`
	Endpoints *compare.Result      `json:"endpoints,omitempty"`
	Baseline  *baseline.Drift      `json:"baseline,omitempty"`
	Documents []*semantic.Document `json:"documents"`
	Executive string               `json:"executive_summary,omitempty"` // the report, when it was also written

	packets [2][]trace.Packet
	cut     [2]bool
}

// maxCompared bounds the memory of a comparison, at some 500 bytes a packet and capture.
const maxCompared = 1_000_000

// each keeps the packets of the next capture, when the mode needs them.
func (c *Comparison) each() func(*facts.Packet) {
	i := len(c.Documents)
	if c.Mode != Endpoints || i > 1 {
		return nil
	}
	return func(q *facts.Packet) {
		if c.cut[i] = len(c.packets[i]) == maxCompared; !c.cut[i] {
			c.packets[i] = append(c.packets[i], trace.FromView(q.Frame, q.Raw.Time, q.View))
		}
	}
}

// nothing says that one of the captures has no packet to compare, and which; else it is
// empty.
func (c *Comparison) nothing() string {
	for _, d := range c.Documents {
		if d.Summary.Packets == 0 {
			return d.Summary.File + ": " + strings.TrimSuffix(d.Findings[0].Summary, ".") + ", so that nothing was compared."
		}
	}
	return ""
}

// compare compares the two captures, and returns the report with the severity of its verdict.
func (c *Comparison) compare() (text string, severity finding.Severity, err error) {
	a, b := c.Documents[0], c.Documents[1]
	if c.Mode == Endpoints {
		r := compare.Endpoints(c.packets[0], c.packets[1])
		r.A.File, r.B.File = a.Summary.File, b.Summary.File
		for i, file := range []string{r.A.File, r.B.File} {
			if c.cut[i] {
				r.Notes = append(r.Notes, fmt.Sprintf("only the first %d packets of %s were compared", maxCompared, file))
			}
		}
		c.Endpoints = r
		if why := c.nothing(); why != "" {
			r.Verdict.Summary, r.Verdict.Reasons = why, []string{"nothing was compared"}
		}
		severity, _ = finding.ParseSeverity(r.Verdict.Severity)
		return report.Endpoints(r), severity, nil
	}
	var s [2]baseline.Snapshot
	for i, doc := range c.Documents {
		raw, err := json.Marshal(doc)
		if err != nil {
			return "", 0, err
		}
		d, err := report.Parse(raw)
		if err != nil {
			return "", 0, err
		}
		s[i] = d.Snapshot()
	}
	c.Baseline = baseline.Compare(s[0], s[1])
	if why := c.nothing(); why != "" {
		c.Baseline.Verdict, c.Baseline.Weight, c.Baseline.Summary, c.Baseline.Changes = "NOT COMPARED", "unknown", why, []baseline.Change{}
	}
	severity, _ = finding.ParseSeverity(c.Baseline.Severity)
	return report.Baseline(c.Baseline), severity, nil
}

// escaped is what the report escapes for whoever renders it: a terminal does not.
var escaped = regexp.MustCompile("\\\\([\\\\`*_\\[\\]<>|#~&])")

// both compares two captures and prints what that comes to.
func (v *run) both(ctx context.Context, name string) error {
	c := Comparison{Mode: v.Mode}
	for _, file := range []string{name, v.Compare} {
		doc, err := v.file(ctx, file, c.each())
		if err != nil {
			return err
		}
		doc.Executive = "" // the comparison has its own
		c.Documents = append(c.Documents, doc)
	}
	text, severity, err := c.compare()
	if err != nil {
		return err
	}
	if v.ReportDir != "" {
		if err := v.place(v.ReportDir, stem(name)+"_vs_"+stem(v.Compare)+"_comparison.md", []byte(text)); err != nil {
			return err
		}
		c.Executive = text
	}
	if v.JSON {
		err = v.Encode(v.Out, c)
	} else {
		if v.Terminal {
			text = escaped.ReplaceAllString(text, "$1")
		}
		_, err = io.WriteString(v.Out, text)
	}
	if err == nil && v.limit > 0 && (severity >= v.limit || c.nothing() != "") {
		return ErrReached
	}
	return err
}
