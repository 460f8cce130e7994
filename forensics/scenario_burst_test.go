package forensics

import (
	"math/rand"
	"strings"
	"testing"
)

// upload is a sender that probes for the rate of its path, as Reno does: a window a round trip,
// one segment more each time, half of it after a loss. gone says what the path drops.
func (w *world) upload(segments int, gone func(ms float64) bool) {
	l := w.link(40000, 80).open(0)
	const rtt, size = 20.0, 1448
	at, window, next, acked := 21.0, 10.0, 0, 0
	var missing []int
	send := func(ms float64, n int) {
		w.tcp(ms, seg{from: client, to: server, sp: 40000, dp: 80, flags: "A", seq: l.cn + uint32(n*size), ack: l.sn, size: size})
	}
	for acked < segments {
		var lost []int
		n := 0
		again := missing
		for ; n < int(window) && (len(again) > 0 || next < segments); n++ {
			ms := at + float64(n)*min(0.2, rtt/(window+1))
			i := next
			if len(again) > 0 {
				i, again = again[0], again[1:]
			} else {
				next++
			}
			send(ms, i)
			if gone(ms) {
				lost = append(lost, i)
			}
		}
		missing = append(lost, again...)
		for acked = next; len(missing) > 0 && acked > missing[0]; {
			acked = missing[0]
		}
		w.tcp(at+rtt-0.5, seg{from: server, to: client, sp: 80, dp: 40000, flags: "A", seq: l.sn, ack: l.cn + uint32(acked*size)})
		if at += rtt; n > 0 && len(lost) == n { // nothing came back: the timer
			at, window = at+200, 2
		} else if len(lost) > 0 {
			window = max(2, window/2)
		} else {
			window++
		}
	}
}

// gilbert drops in bursts: a path that turns bad once in so many packets, and good again.
func gilbert(seed int64, bad, good, drop float64) func(float64) bool {
	r := rand.New(rand.NewSource(seed))
	is := false
	return func(float64) bool {
		if is {
			is = r.Float64() >= good
		} else {
			is = r.Float64() < bad
		}
		return is && r.Float64() < drop
	}
}

// policer drops what is over a rate, in segments a millisecond, and a burst.
func policer(rate, burst float64) func(float64) bool {
	tokens, last := burst, 0.0
	return func(ms float64) bool {
		tokens, last = min(burst, tokens+(ms-last)*rate), ms
		if tokens < 1 {
			return true
		}
		tokens--
		return false
	}
}

// TestBursts: loss in bursts is no rate limit, however regular a sender repairs it; and a policer is one.
func TestBursts(t *testing.T) {
	for _, tt := range []struct {
		bad, good, drop float64
	}{{0.005, 0.2, 1}, {0.01, 0.1, 0.7}, {0.01, 0.4, 1}, {0.02, 0.3, 0.6}} {
		for seed := range int64(4) {
			a := analyse(t, func(w *world) { w.upload(1200, gilbert(seed, tt.bad, tt.good, tt.drop)) })
			if f := a.Findings[0]; f.Code != "packet-loss" {
				t.Errorf("%+v with %d: %s %s", tt, seed, f.Code, f.Detail)
			} else if tt.good == 0.2 && !strings.Contains(f.Detail, "in bursts of") {
				t.Errorf("%+v with %d: %s", tt, seed, f.Detail)
			}
		}
	}
	for _, tt := range []struct {
		rate, burst float64
		segments    int
	}{{0.5, 10, 1200}, {0.8, 10, 1200}, {0.4, 14, 500}, {1, 14, 1500}, {1.8, 6, 500}} { // of the last three the rate is not constant enough
		if f := analyse(t, func(w *world) { w.upload(tt.segments, policer(tt.rate, tt.burst)) }).Findings[0]; f.Code != "throttling" {
			t.Errorf("policed to %v: %s %s", tt, f.Code, f.Summary)
		}
	}
}
