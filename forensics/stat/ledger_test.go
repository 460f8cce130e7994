package stat

import (
	"math/rand"
	"testing"
)

// TestFull: losses of a bucket of tokens are told from those at random, whatever its rate, and
// also by two ledgers of one path.
func TestFull(t *testing.T) {
	const size, ms = 1448, 1e6
	for _, tt := range []struct {
		name        string
		rate, burst float64 // segments a ms, and segments; 0: at random
		flows       int
	}{{"slow", 0.3, 8, 1}, {"fast", 1, 30, 1}, {"two flows", 0.5, 10, 2}, {"random", 0, 0, 1}, {"random, two flows", 0, 0, 2}} {
		r := rand.New(rand.NewSource(7))
		ledgers := make([]*Ledger, tt.flows)
		windows := make([]float64, tt.flows)
		next := make([]uint32, tt.flows)
		for i := range ledgers {
			ledgers[i], windows[i] = &Ledger{}, 10
		}
		tokens, last := tt.burst, 0.0
		for round := range 400 {
			for f := range ledgers {
				gone, n := false, int(windows[f])
				for i := range n {
					at := float64(round)*20 + float64(f)*7 + float64(i)*0.1
					tokens, last = min(tt.burst, tokens+max(0, at-last)*tt.rate), max(at, last)
					ledgers[f].Sent(int64(at*ms), next[f], size)
					if lost := tt.burst > 0 && tokens < 1 || tt.burst == 0 && r.Float64() < 0.02; lost {
						ledgers[f].Again(next[f])
						gone = true
					} else {
						tokens--
					}
					next[f] += size
				}
				if windows[f]++; gone {
					windows[f] = max(2, windows[f]/2)
				}
			}
		}
		share, n := Full(ledgers)
		if n < 15 || Overflow(ledgers) != (tt.burst > 0) {
			t.Errorf("%s: %.2f of %d", tt.name, share, n)
		}
	}
}

func TestLedger(t *testing.T) {
	var l Ledger
	for i := range 2 * ledgerRoom {
		l.Sent(int64(i)*1e6, uint32(i)*100, 100)
	}
	if len(l.entries) != ledgerRoom {
		t.Errorf("%d entries", len(l.entries))
	}
	l.Again(150)
	l.Again(150)
	l.Again(1 << 31)
	if l.entries[1].size != -100 || l.entries[0].size != 100 {
		t.Errorf("got %v", l.entries[:2])
	}
	var gone Ledger
	gone.Gone(1, 50)
	gone.Gone(1, 0)
	if len(gone.entries) != 1 || gone.entries[0].size != -50 {
		t.Errorf("got %v", gone.entries)
	}
	if share, n := Full([]*Ledger{{}}); share != 0 || n != 0 {
		t.Errorf("nothing: %v of %d", share, n)
	}
	if share, _ := Full([]*Ledger{&gone}); share != 0 {
		t.Errorf("one loss: %v", share)
	}
}
