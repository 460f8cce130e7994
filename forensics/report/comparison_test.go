package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ghostbot/forensics/compare"
	"ghostbot/forensics/compare/baseline"
	"ghostbot/forensics/trace/tracetest"
)

func TestEndpoints(t *testing.T) {
	for _, tt := range []struct {
		name string
		want []string
	}{
		{"syn_blackhole_a", []string{"**PARTIAL DROP**, segment: between A and B, towards B, confidence HIGH.", "| A to B | 27 | 6 | 21 (77.78 %) |",
			"| A to B | TCP 10.70.1.10:38910 \\> 10.70.2.20:443 | FULL DROP | 7 | 7 | 100.0 % |", "traceroute -n -T -p 443 10.70.2.20", "**Verify.**", "Clocks: B is -0.087 ms ahead of A"}},
		{"nat_pair_a", []string{"**CLEAN PATH**", "Addresses are translated between the points", "None: every packet sent at one point is in the capture of the other.", "10.116.2.20"}},
		{"pair_server_delay_b", []string{"**SLOW HOST**, segment: behind B", "| 10.119.0.20 | B |"}},
		{"synack_blocked_a", []string{"**FULL DROP**", "(between unknown and 10.328; one direction, 12 packets)"}},
	} {
		r := compare.Endpoints(tracetest.Load(t, "gen__"+tt.name+"__client.pcap"), tracetest.Load(t, "gen__"+tt.name+"__server.pcap"))
		r.A.File, r.B.File = "client.pcap", "server.pcap"
		md := Endpoints(r)
		for _, want := range tt.want {
			if !strings.Contains(md, want) {
				t.Errorf("%s: no %q in\n%s", tt.name, want, md)
			}
		}
		if want := []string{"Executive Summary", "Path Health Table", "Flows Dropped in Transit", "Delivery Confirmed", "One-Way vs Round-Trip", "Verdict", "Recommended Actions"}; !slices.Equal(headings(md), want) {
			t.Errorf("%s: headings %q", tt.name, headings(md))
		}
	}
}

func TestBaseline(t *testing.T) {
	m := func(name string, v float64) baseline.Metric { return baseline.Metric{Name: name, Unit: "ms", Value: v} }
	d := baseline.Compare(
		baseline.Snapshot{File: "before.pcap", Metrics: []baseline.Metric{m("RTT", 10), m("DNS", 5), m("gone", 1)}, Issues: []baseline.Issue{{Code: "jitter", Severity: "LOW", Summary: "varies"}}},
		baseline.Snapshot{File: "after.pcap", Metrics: []baseline.Metric{m("RTT", 95), m("DNS", 5), m("gone", math.NaN())}, Issues: []baseline.Issue{{Code: "packet-loss", Severity: "HIGH", Summary: "3 % are lost"}}})
	md := Baseline(d)
	for _, want := range []string{"**REGRESSION** (critical). RTT went from 10 to 95 ms (+850 %)", "| RTT (ms) | 10 | 95 | +850.0 % | REGRESSION | critical |", "| gone (ms) | 1 | - | - | STABLE | stable |",
		"- HIGH: 3 % are lost (`packet-loss`)", "- LOW: varies (`jitter`)", "- RTT: 10 to 95 ms, critical", "mtr -nrwc 200 SERVER"} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in\n%s", want, md)
		}
	}
	if want := []string{"Executive Summary", "Change Summary Table", "New Issues", "Resolved Issues", "Regressions", "Remediation"}; !slices.Equal(headings(md), want) {
		t.Errorf("headings %q", headings(md))
	}
	same := Baseline(baseline.Compare(baseline.Snapshot{}, baseline.Snapshot{}))
	for _, want := range []string{"**STABLE**", "None.", "There is nothing to act on."} {
		if !strings.Contains(same, want) {
			t.Errorf("no %q in\n%s", want, same)
		}
	}
}

// TestSuspect: every metric of a snapshot has something to suspect.
func TestSuspect(t *testing.T) {
	for _, m := range parse(t, sick).Snapshot().Metrics {
		worse := m
		m.Value, worse.Value = 1000, 9000
		d := baseline.Compare(baseline.Snapshot{Metrics: []baseline.Metric{m}}, baseline.Snapshot{Metrics: []baseline.Metric{worse}})
		md := Baseline(d)
		if suspect(d) == "" || !strings.Contains(md, "What the figure that became worst usually means") || !strings.Contains(md, "**Verify.**") {
			t.Errorf("%s: suspects %q in\n%s", m.Name, suspect(d), md)
		}
	}
}
