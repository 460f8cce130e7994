// Package digest makes the few lines that people and brains read of what the
// product's own analysis printed about a capture.
package digest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// maxSummary bounds the summary, in lines.
const maxSummary = 50

// Summary makes the text that people and brains read of the analysis' JSON, which
// the gate has redacted and shortened: its executive summary or, when that was not
// written or was cut, the findings, which come worst first.
func Summary(out string) string {
	var d struct {
		Executive string `json:"executive_summary"`
		Capture   struct {
			Packets  int      `json:"total_packets"`
			Seconds  float64  `json:"duration_seconds"`
			Contains []string `json:"protocols_present"`
		} `json:"capture_summary"`
		Findings  []json.RawMessage `json:"findings"`
		Endpoints struct {
			Verdict struct {
				Status, Severity, Code, Segment, Confidence, Summary, Check string
				Reasons                                                     []string
			} `json:"verdict"`
		} `json:"endpoints"`
		Documents []json.RawMessage `json:"documents"`
	}
	if json.Unmarshal([]byte(out), &d) != nil {
		return "The analysis ran; its output could not be read."
	}
	if d.Executive != "" && !strings.Contains(d.Executive, "[truncated: ") {
		lines := strings.Split(strings.TrimSpace(d.Executive), "\n")
		return strings.Join(lines[:min(len(lines), maxSummary)], "\n")
	}
	var lines []string
	if v := d.Endpoints.Verdict; v.Summary != "" {
		lines = append(lines, fmt.Sprintf("%s (%s, confidence %s, segment %s): %s", v.Status, v.Code, v.Confidence, v.Segment, v.Summary))
		lines = append(lines, v.Reasons...)
		if v.Check != "" {
			lines = append(lines, "To confirm: "+v.Check)
		}
	} else {
		lines = append(lines, fmt.Sprintf("%d packets in %.3f s: %s", d.Capture.Packets, d.Capture.Seconds, strings.Join(d.Capture.Contains, ", ")))
	}
	for _, raw := range d.Findings {
		var f struct{ Severity, Code, Summary, Flow, Confirm string }
		var left string
		switch {
		case json.Unmarshal(raw, &f) == nil:
			lines = append(lines, strings.TrimSpace(f.Severity+" "+f.Code+": "+f.Summary+" "+f.Flow))
		case json.Unmarshal(raw, &left) == nil:
			lines = append(lines, left)
		}
	}
	if len(d.Findings) == 0 && d.Endpoints.Verdict.Summary == "" {
		lines = append(lines, "Nothing that a rule knows as a fault.")
	}
	return strings.Join(lines[:min(len(lines), maxSummary)], "\n")
}
