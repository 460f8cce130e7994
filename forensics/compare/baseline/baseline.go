// Package baseline compares the figures of two captures of different times and says what became
// worse, by the weights of the specification: under 10 % stable, to 50 % noteworthy, to 200 %
// significant, above that critical.
package baseline

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Metric is a figure of a capture, a rate or a time, so that captures of different length compare.
type Metric struct {
	Name string
	Unit string
	// Value is NaN where the capture does not have it.
	Value float64
	// HigherIsBetter is false for almost everything that is measured.
	HigherIsBetter bool
	// Noise is the difference that says nothing.
	Noise float64
}

// Issue is a finding of a capture.
type Issue struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Summary  string `json:"summary"`
}

// Snapshot is one capture of a baseline comparison.
type Snapshot struct {
	File    string
	Metrics []Metric
	Issues  []Issue
}

// Weights of changes, in percent of the value before.
const (
	stablePct      = 10
	significantPct = 50
	criticalPct    = 200
)

// Change is a metric in both captures. Before or After is nil when one of them does not have it.
type Change struct {
	Metric string   `json:"metric"`
	Unit   string   `json:"unit"`
	Before *float64 `json:"before"`
	After  *float64 `json:"after"`
	// ChangePct is nil where there was nothing before.
	ChangePct *float64 `json:"change_pct"`
	// Verdict is REGRESSION, IMPROVEMENT, STABLE, NEW ISSUE or RESOLVED; Weight is stable (under
	// 10 %), noteworthy (to 50 %), significant (to 200 %) or critical.
	Verdict string `json:"verdict"`
	Weight  string `json:"weight"`
}

// Drift is the comparison of before and after.
type Drift struct {
	Before string `json:"before"`
	After  string `json:"after"`
	// Changes are those of all metrics, the worst first.
	Changes []Change `json:"changes"`
	// New, Resolved and Remaining are findings by code.
	New       []Issue `json:"new_issues"`
	Resolved  []Issue `json:"resolved_issues"`
	Remaining []Issue `json:"remaining_issues"`
	// Verdict is REGRESSION, IMPROVEMENT or STABLE, Weight that of the worst change, Summary one
	// sentence.
	Verdict string `json:"verdict"`
	Weight  string `json:"weight"`
	Summary string `json:"summary"`
	// Severity is that of a finding: of a regression by its weight, MEDIUM to CRITICAL; INFO otherwise.
	Severity string `json:"severity"`
}

// Compare compares two captures of different times. Metrics are matched by name.
func Compare(before, after Snapshot) *Drift {
	d := &Drift{Before: before.File, After: after.File, New: []Issue{}, Resolved: []Issue{}, Remaining: []Issue{}}
	old := map[string]Metric{}
	for _, m := range before.Metrics {
		old[m.Name] = m
	}
	for _, m := range after.Metrics {
		o, known := old[m.Name]
		if !known {
			o.Value = math.NaN()
		}
		delete(old, m.Name)
		d.add(o.Value, m)
	}
	for _, m := range before.Metrics {
		if _, gone := old[m.Name]; gone {
			v := m.Value
			m.Value = math.NaN()
			d.add(v, m)
		}
	}
	slices.SortStableFunc(d.Changes, func(x, y Change) int { return cmp.Compare(y.rank(), x.rank()) })
	d.issues(before.Issues, after.Issues)
	d.conclude()
	return d
}

func value(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

func (d *Drift) add(before float64, m Metric) {
	c := Change{Metric: m.Name, Unit: m.Unit, Before: value(before), After: value(m.Value), Verdict: "STABLE", Weight: "stable"}
	switch {
	case c.Before == nil && c.After == nil:
		return
	case c.Before == nil || c.After == nil || math.Abs(m.Value-before) <= m.Noise:
	case before <= m.Noise && before >= 0: // there was nothing: a percentage says nothing
		c.Verdict, c.Weight = "NEW ISSUE", "critical"
		if m.HigherIsBetter {
			c.Verdict = "IMPROVEMENT"
		}
	default:
		c.weigh(before, m)
	}
	if c.Before != nil && c.After != nil && before != 0 {
		pct := math.Round(1000*(m.Value-before)/math.Abs(before)) / 10
		c.ChangePct = &pct
	}
	d.Changes = append(d.Changes, c)
}

func (c *Change) weigh(before float64, m Metric) {
	pct := 100 * (m.Value - before) / math.Abs(before)
	switch size := math.Abs(pct); {
	case size < stablePct:
		return
	case size <= significantPct:
		c.Weight = "noteworthy"
	case size <= criticalPct:
		c.Weight = "significant"
	default:
		c.Weight = "critical"
	}
	c.Verdict = "REGRESSION"
	if pct > 0 == m.HigherIsBetter {
		c.Verdict = "IMPROVEMENT"
		if !m.HigherIsBetter && m.Value <= m.Noise {
			c.Verdict = "RESOLVED"
		}
	}
}

// rank orders changes: what became worse, then what became better, then the rest, each by weight.
func (c Change) rank() int {
	weight := slices.Index([]string{"stable", "noteworthy", "significant", "critical"}, c.Weight)
	switch c.Verdict {
	case "REGRESSION", "NEW ISSUE":
		return 20 + weight
	case "IMPROVEMENT", "RESOLVED":
		return 10 + weight
	}
	return weight
}

func (d *Drift) issues(before, after []Issue) {
	has := func(list []Issue, code string) bool {
		return slices.ContainsFunc(list, func(i Issue) bool { return i.Code == code })
	}
	for _, i := range after {
		if has(before, i.Code) {
			d.Remaining = append(d.Remaining, i)
		} else {
			d.New = append(d.New, i)
		}
	}
	for _, i := range before {
		if !has(after, i.Code) {
			d.Resolved = append(d.Resolved, i)
		}
	}
}

// conclude weighs everything. A new finding that is worth reading is a regression whatever the
// figures say.
func (d *Drift) conclude() {
	defer d.weigh()
	d.Verdict, d.Weight = "STABLE", "stable"
	d.Summary = "Nothing that is measured changed by 10 % or more."
	if len(d.Changes) > 0 && d.Changes[0].rank() >= 10 {
		c := d.Changes[0]
		d.Weight, d.Summary = c.Weight, c.sentence()
		d.Verdict = "IMPROVEMENT"
		if c.rank() >= 20 {
			d.Verdict = "REGRESSION"
		}
	}
	for _, i := range d.New {
		if i.Severity == "CRITICAL" || i.Severity == "HIGH" || i.Severity == "MEDIUM" {
			if d.Verdict != "REGRESSION" {
				d.Verdict, d.Weight, d.Summary = "REGRESSION", "significant", "What was measured did not become worse, but there is a new finding."
			}
			d.Summary += fmt.Sprintf(" New: %s (%s).", i.Code, i.Summary)
			break
		}
	}
}

func (d *Drift) weigh() {
	d.Severity = "INFO"
	if d.Verdict == "REGRESSION" {
		d.Severity = map[string]string{"noteworthy": "MEDIUM", "significant": "HIGH", "critical": "CRITICAL"}[d.Weight]
	}
}

// sentence says what changed.
func (c Change) sentence() string {
	s := fmt.Sprintf("%s went from %.4g to %.4g %s", c.Metric, *c.Before, *c.After, c.Unit)
	if c.ChangePct != nil {
		s += fmt.Sprintf(" (%+.0f %%)", *c.ChangePct)
	}
	return s + ", a " + c.Weight + " " + map[string]string{"REGRESSION": "regression", "NEW ISSUE": "new issue", "IMPROVEMENT": "improvement", "RESOLVED": "improvement"}[c.Verdict] + "."
}
