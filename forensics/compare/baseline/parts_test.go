package baseline

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestOrder: what became worse comes first, by weight; then what became better; then the rest, in the
// order of the metrics.
func TestOrder(t *testing.T) {
	var before, after Snapshot
	for _, m := range []struct {
		name    string
		was, is float64
	}{{"same", 10, 10}, {"better", 10, 7}, {"worse", 10, 12}, {"much worse", 10, 19}, {"far worse", 10, 99}, {"much better", 10, 2}, {"same too", 5, 5}, {"new", 0, 9}, {"gone", 9, 0}} {
		before.Metrics = append(before.Metrics, Metric{Name: m.name, Value: m.was, Noise: 0.5})
		after.Metrics = append(after.Metrics, Metric{Name: m.name, Value: m.is, Noise: 0.5})
	}
	var got []string
	for _, c := range Compare(before, after).Changes {
		got = append(got, c.Metric)
	}
	if want := []string{"far worse", "new", "much worse", "worse", "much better", "gone", "better", "same", "same too"}; !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestSentences(t *testing.T) {
	v := func(f float64) *float64 { return &f }
	for _, tt := range []struct {
		c    Change
		want string
	}{
		{Change{Metric: "RTT", Unit: "ms", Before: v(10), After: v(15), ChangePct: v(50), Verdict: "REGRESSION", Weight: "noteworthy"}, "RTT went from 10 to 15 ms (+50 %), a noteworthy regression."},
		{Change{Metric: "loss", Unit: "%", Before: v(0), After: v(2.34567), Verdict: "NEW ISSUE", Weight: "critical"}, "loss went from 0 to 2.346 %, a critical new issue."},
		{Change{Metric: "x", Unit: "ms", Before: v(10), After: v(0), ChangePct: v(-100), Verdict: "RESOLVED", Weight: "significant"}, "x went from 10 to 0 ms (-100 %), a significant improvement."},
	} {
		if got := tt.c.sentence(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestSeverities: a regression weighs as a finding does; anything else is INFO.
func TestSeverities(t *testing.T) {
	for _, tt := range []struct {
		before, after float64
		want          string
	}{{100, 100, "INFO"}, {100, 50, "INFO"}, {100, 130, "MEDIUM"}, {100, 180, "HIGH"}, {100, 900, "CRITICAL"}} {
		d := Compare(Snapshot{Metrics: []Metric{{Name: "m", Value: tt.before}}}, Snapshot{Metrics: []Metric{{Name: "m", Value: tt.after}}})
		if d.Severity != tt.want {
			t.Errorf("%v to %v: %s, want %s", tt.before, tt.after, d.Severity, tt.want)
		}
	}
	if d := Compare(Snapshot{}, Snapshot{Issues: []Issue{{Code: "c", Severity: "HIGH"}}}); d.Severity != "HIGH" || d.Weight != "significant" {
		t.Errorf("a new finding: %+v", d)
	}
}

// TestNothingToCompare: figures that no capture has are no changes, and percentages of nothing are
// not written.
func TestNothingToCompare(t *testing.T) {
	nan := Metric{Name: "m", Value: math.NaN()}
	if d := Compare(Snapshot{Metrics: []Metric{nan}}, Snapshot{Metrics: []Metric{nan}}); len(d.Changes) != 0 || d.Verdict != "STABLE" {
		t.Errorf("%+v", d)
	}
	for _, tt := range []struct{ before, after float64 }{{0, 0}, {0, 5}, {math.NaN(), 5}, {5, math.NaN()}} {
		d := Compare(Snapshot{Metrics: []Metric{{Name: "m", Value: tt.before}}}, Snapshot{Metrics: []Metric{{Name: "m", Value: tt.after}}})
		if d.Changes[0].ChangePct != nil {
			t.Errorf("%v to %v: %v %%", tt.before, tt.after, *d.Changes[0].ChangePct)
		}
		if b, err := json.Marshal(d); err != nil || !strings.Contains(string(b), `"change_pct":null`) || !strings.Contains(string(b), `"new_issues":[]`) {
			t.Errorf("%s, %v", b, err)
		}
	}
}

// TestSignOfChange: a percentage is of the value before, whatever its sign.
func TestSignOfChange(t *testing.T) {
	d := Compare(Snapshot{Metrics: []Metric{{Name: "m", Value: -10}}}, Snapshot{Metrics: []Metric{{Name: "m", Value: 10}}})
	if c := d.Changes[0]; *c.ChangePct != 200 || c.Verdict != "REGRESSION" || c.Weight != "significant" {
		t.Errorf("%+v, %v", c, *c.ChangePct)
	}
}
