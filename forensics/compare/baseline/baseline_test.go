package baseline

import (
	"math"
	"strings"
	"testing"
)

func TestThresholds(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		before, after float64
		higher        bool
		verdict       string
		weight        string
	}{
		{100, 109, false, "STABLE", "stable"},
		{100, 110, false, "REGRESSION", "noteworthy"},
		{100, 150, false, "REGRESSION", "noteworthy"},
		{100, 151, false, "REGRESSION", "significant"},
		{100, 300, false, "REGRESSION", "significant"},
		{100, 301, false, "REGRESSION", "critical"},
		{100, 80, false, "IMPROVEMENT", "noteworthy"},
		{100, 80, true, "REGRESSION", "noteworthy"},
		{100, 20, true, "REGRESSION", "significant"},
		{100, 120, true, "IMPROVEMENT", "noteworthy"},
		{100, 0, false, "RESOLVED", "significant"},
		{0, 5, false, "NEW ISSUE", "critical"},
		{0, 5, true, "IMPROVEMENT", "critical"},
		{0, 0.5, false, "STABLE", "stable"},
		{2, 3, false, "STABLE", "stable"}, // within the noise of 1
		{nan, 5, false, "STABLE", "stable"},
		{5, nan, false, "STABLE", "stable"},
	} {
		m := Metric{Name: "x", Unit: "ms", HigherIsBetter: tt.higher, Noise: 1}
		before, after := m, m
		before.Value, after.Value = tt.before, tt.after
		d := Compare(Snapshot{Metrics: []Metric{before}}, Snapshot{Metrics: []Metric{after}})
		if c := d.Changes[0]; c.Verdict != tt.verdict || c.Weight != tt.weight {
			t.Errorf("%v to %v: %s, %s; want %s, %s", tt.before, tt.after, c.Verdict, c.Weight, tt.verdict, tt.weight)
		}
	}
}

func TestVerdict(t *testing.T) {
	ms := func(name string, v float64) Metric { return Metric{Name: name, Unit: "ms", Value: v} }
	issue := func(code, severity string) Issue { return Issue{Code: code, Severity: severity, Summary: "s"} }
	for _, tt := range []struct {
		name          string
		before, after Snapshot
		verdict       string
		first, text   string
	}{
		{"same", Snapshot{Metrics: []Metric{ms("RTT", 10)}}, Snapshot{Metrics: []Metric{ms("RTT", 10)}}, "STABLE", "RTT", "Nothing"},
		{"worst first", Snapshot{Metrics: []Metric{ms("a", 10), ms("b", 10), ms("c", 10)}}, Snapshot{Metrics: []Metric{ms("a", 5), ms("b", 14), ms("c", 90)}},
			"REGRESSION", "c", "c went from 10 to 90 ms (+800 %), a critical regression."},
		{"better", Snapshot{Metrics: []Metric{ms("a", 10)}}, Snapshot{Metrics: []Metric{ms("a", 4)}}, "IMPROVEMENT", "a", "improvement"},
		{"new finding", Snapshot{Metrics: []Metric{ms("a", 10)}}, Snapshot{Metrics: []Metric{ms("a", 10)}, Issues: []Issue{issue("dns-timeout", "HIGH")}},
			"REGRESSION", "a", "New: dns-timeout"},
		{"new finding of no weight", Snapshot{Metrics: []Metric{ms("a", 10)}}, Snapshot{Metrics: []Metric{ms("a", 10)}, Issues: []Issue{issue("port-reuse", "LOW")}},
			"STABLE", "a", "Nothing"},
		{"metrics of one side", Snapshot{Metrics: []Metric{ms("a", 10)}}, Snapshot{Metrics: []Metric{ms("b", 10)}}, "STABLE", "b", "Nothing"},
	} {
		d := Compare(tt.before, tt.after)
		if d.Verdict != tt.verdict || d.Changes[0].Metric != tt.first || !strings.Contains(d.Summary, tt.text) {
			t.Errorf("%s: %+v", tt.name, d)
		}
	}
}

func TestIssues(t *testing.T) {
	a := Snapshot{Issues: []Issue{{Code: "x"}, {Code: "y"}}}
	b := Snapshot{Issues: []Issue{{Code: "y"}, {Code: "z"}}}
	d := Compare(a, b)
	if len(d.New) != 1 || d.New[0].Code != "z" || len(d.Resolved) != 1 || d.Resolved[0].Code != "x" || len(d.Remaining) != 1 || d.Remaining[0].Code != "y" {
		t.Errorf("%+v", d)
	}
}
