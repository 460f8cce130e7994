package report

import (
	"math"
	"testing"

	"ghostbot/forensics/compare/baseline"
)

func TestSnapshot(t *testing.T) {
	s := parse(t, sick).Snapshot()
	got := map[string]float64{}
	for _, m := range s.Metrics {
		if _, twice := got[m.Name]; twice {
			t.Errorf("%s twice", m.Name)
		}
		got[m.Name] = m.Value
	}
	for name, want := range map[string]float64{"TCP retransmissions of all packets": 1, "duplicate ACKs of all packets": 2.5, "resets of TCP streams": 14.29, "TCP connections without a handshake": 57.14,
		"TCP round-trip time, median": 20.5, "DNS responses that say no": 11.11, "DNS queries unanswered": 0, "DNS latency, 95th percentile": 3} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{"echo requests unanswered", "echo round-trip time, median", "HTTP response time, median"} {
		if v, there := got[name]; !there || !math.IsNaN(v) {
			t.Errorf("%s: %v, want nothing", name, v)
		}
	}
	if len(s.Issues) != 3 || s.Issues[0].Code != "syn-blackhole" {
		t.Errorf("issues %+v", s.Issues)
	}
}

func TestSnapshotsCompare(t *testing.T) {
	a, b := parse(t, well).Snapshot(), parse(t, sick).Snapshot()
	if d := baseline.Compare(a, b); d.Verdict != "REGRESSION" || d.Weight != "critical" {
		t.Errorf("healthy to sick: %+v", d)
	}
	if d := baseline.Compare(b, a); d.Verdict != "IMPROVEMENT" || len(d.Resolved) != 3 {
		t.Errorf("sick to healthy: %+v", d)
	}
	if d := baseline.Compare(a, a); d.Verdict != "STABLE" {
		t.Errorf("the same: %+v", d)
	}
	http := `{"http":{"status":{"200":3,"502":1},"response_time_ms":{"median":5,"p95":9,"max":9}}}`
	for _, m := range parse(t, http).Snapshot().Metrics {
		if m.Name == "HTTP responses of 500 and above" && m.Value != 25 {
			t.Errorf("%s: %v", m.Name, m.Value)
		}
	}
}
