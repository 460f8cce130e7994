package compare

import (
	"math"
	"testing"
)

// TestLabDetails compares what is said beside the losses with what the lab was built like: the delay
// of the soft wire, the routers between the points, the servers' own time.
func TestLabDetails(t *testing.T) {
	for _, tt := range []struct {
		name      string
		roundTrip float64 // ms, within a tenth
		hops      string  // that the TTL falls by, "" on a bridge
		server    string  // with the longest time of its own
		think     float64 // ms, within a fifth and a half
		requests  int
		notes     int
	}{
		{"frag_dropped_a", 16.7, "+1", "", 0, 0, 0},
		{"idle_timeout_firewall_a", 16.6, "+1", "10.111.2.20", 2.8, 1, 1},
		{"nat_pair_a", 16.4, "+1", "10.116.2.20", 2.1, 4, 1},
		{"pair_healthy_a", 24.1, "", "10.118.0.20", 0.05, 1, 0},
		{"pair_loss_b", 40.1, "", "10.117.0.20", 0.1, 1, 0},
		{"pair_server_delay_b", 10.2, "", "10.119.0.20", 701, 3, 0},
		{"pmtud_blackhole_b", 20.3, "+1", "10.76.2.20", 1.4, 1, 1},
		{"reorder_b", 24.1, "", "10.55.0.20", 0.05, 1, 0},
		{"rst_injected_midbox_b", 16.6, "+1", "", 0, 0, 0},
		{"syn_blackhole_a", 20.8, "+1", "10.70.2.20", 4.7, 1, 1},
	} {
		a, b := loadPair(t, tt.name)
		r := Endpoints(a, b)
		if math.Abs(r.RoundTripMS-tt.roundTrip) > 0.1*tt.roundTrip {
			t.Errorf("%s: round trip %v ms, want %v", tt.name, r.RoundTripMS, tt.roundTrip)
		}
		if _, hops := changed(r, "ttl"); hops != tt.hops {
			t.Errorf("%s: hops %q, want %q", tt.name, hops, tt.hops)
		}
		if len(r.Notes) != tt.notes {
			t.Errorf("%s: notes %q", tt.name, r.Notes)
		}
		if got := r.Clock.Basis; got != "both directions" || r.Clock.Samples != r.A.Matched {
			t.Errorf("%s: clock %q of %d", tt.name, got, r.Clock.Samples)
		}
		for _, d := range []Direction{r.AToB, r.BToA} {
			if d.Delivered > 0 && (math.Abs(d.DelayMS.Min-tt.roundTrip/2) > 0.1*tt.roundTrip || d.VariationMS.Min != 0 || d.DelayMS.Max < d.DelayMS.P95 || d.DelayMS.P95 < d.DelayMS.Median) {
				t.Errorf("%s: delay %+v, variation %+v", tt.name, d.DelayMS, d.VariationMS)
			}
		}
		if tt.server == "" {
			if len(r.Servers) > 0 {
				t.Errorf("%s: servers %+v", tt.name, r.Servers)
			}
			continue
		}
		if len(r.Servers) != 1 {
			t.Errorf("%s: servers %+v", tt.name, r.Servers)
			continue
		}
		s := r.Servers[0]
		if s.Host != tt.server || s.Point != "B" || s.Requests != tt.requests || math.Abs(s.ThinkMS-tt.think) > 0.2*tt.think+0.5 || s.TotalMS < s.ThinkMS+0.9*tt.roundTrip {
			t.Errorf("%s: %+v", tt.name, s)
		}
	}
}
