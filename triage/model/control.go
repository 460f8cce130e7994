package model

import (
	"math"
	"slices"
	"time"
)

// EBH applies the e-Benjamini-Hochberg procedure to logarithms of e-values: the
// largest k whose k-th largest e-value is at least m/(alpha k). It is valid
// under any dependence. member says which of them are in the set.
func EBH(logE []float64, m int, alpha float64) (k int, member []bool) {
	idx := make([]int, len(logE))
	for i := range idx {
		idx[i] = i
	}
	slices.SortStableFunc(idx, func(a, b int) int {
		switch {
		case logE[a] > logE[b]:
			return -1
		case logE[a] < logE[b]:
			return 1
		}
		return 0
	})
	for i, at := range idx {
		if logE[at] >= math.Log(Threshold(i+1, m, alpha)) {
			k = i + 1
		}
	}
	member = make([]bool, len(logE))
	for _, at := range idx[:k] {
		member[at] = true
	}
	return k, member
}

// Threshold is the bound that the k-th largest e-value must reach.
func Threshold(k, m int, alpha float64) float64 { return float64(m) / (alpha * float64(k)) }

// Wealth are the rules of alpha-investing: what one test costs, what a
// discovery earns, and how the budget comes back. Because it comes back, the
// guarantee holds per day and not for ever.
type Wealth struct {
	Initial float64       `json:"initial"`
	Spend   float64       `json:"spend"`  // a test costs at most this
	Earn    float64       `json:"earn"`   // a discovery earns this
	Floor   float64       `json:"floor"`  // below it there is no test
	Regain  float64       `json:"regain"` // comes back in Per
	Per     time.Duration `json:"per_ns"`
}

// DefaultWealth are the rules that are shipped.
func DefaultWealth() Wealth {
	return Wealth{Initial: 0.05, Spend: 0.02, Earn: 0.02, Floor: 0.001, Regain: 0.05, Per: 24 * time.Hour}
}

// After is the wealth w after some time without a test. There is never more than
// the initial wealth, whatever a file says.
func (r Wealth) After(w float64, elapsed time.Duration) float64 {
	if elapsed <= 0 || w >= r.Initial {
		return min(r.Initial, w)
	}
	return min(r.Initial, w+r.Regain*elapsed.Seconds()/r.Per.Seconds())
}

// Exhausted says whether w is too little for a test.
func (r Wealth) Exhausted(w float64) bool { return w < r.Floor }

// Level is the level of the next test.
func (r Wealth) Level(w float64) float64 { return min(w/2, r.Spend) }

// Test makes one test with the e-value exp(logE): p = min(1, 1/e).
func (r Wealth) Test(w, logE float64) (after float64, rejected bool) {
	level := r.Level(w)
	rejected = min(1, math.Exp(-logE)) <= level
	after = w - level
	if rejected {
		after += r.Earn
	}
	return after, rejected
}

// Until is how long it takes until w is enough for a test again.
func (r Wealth) Until(w float64) time.Duration {
	if !r.Exhausted(w) {
		return 0
	}
	return time.Duration(math.Ceil((r.Floor-w)/r.Regain*r.Per.Seconds())) * time.Second
}

// Regime is a way in which a process may have come to be forgotten, with a
// Gamma prior on its hazard and the time it has been exposed to it.
type Regime struct {
	Name     string  `json:"name"`
	Shape    float64 `json:"shape"`
	Rate     float64 `json:"rate_s"`
	Exposure float64 `json:"exposure_s"`
}

// Regimes are the priors of the hazard regimes, in seconds.
var Regimes = []Regime{
	{Name: "normal", Shape: 1, Rate: 2.6e6},
	{Name: "tty_lost", Shape: 1.5, Rate: 86400},
	{Name: "orphaned", Shape: 2, Rate: 43200},
	{Name: "io_flatline", Shape: 1.5, Rate: 64800},
	{Name: "cpu_runaway", Shape: 2, Rate: 14400},
	{Name: "memory_growth", Shape: 1.5, Rate: 28800},
}

// Hazard is the regime's hazard now: a/(b+E).
func (r Regime) Hazard() float64 { return r.Shape / (r.Rate + r.Exposure) }

// Survival is the probability, averaged over the prior, that a useful process
// is still in use: the product of (b/(b+E))^a. It goes to 0 with time.
func Survival(rs []Regime) float64 {
	log := 0.0
	for _, r := range rs {
		log += r.Shape * (math.Log(r.Rate) - math.Log(r.Rate+r.Exposure))
	}
	return math.Exp(log)
}

// Conformal is the half width of a split-conformal interval: the residual of
// rank ceil((n+1)(1-alpha)). With too few residuals there is none, and valid
// says so.
func Conformal(residuals []float64, alpha float64) (q float64, valid bool) {
	n := len(residuals)
	rank := int(math.Ceil(float64(n+1)*(1-alpha) - 1e-9))
	if n == 0 || rank > n || rank < 1 {
		return 0, false
	}
	sorted := slices.Clone(residuals)
	slices.Sort(sorted)
	return sorted[rank-1], true
}

// ConformalClass gives the Mondrian p-value of every class for a process with
// posterior p, from the scores (1 - P of the true class) of labelled ones. A
// class without labelled processes cannot be excluded.
func ConformalClass(scores [4][]float64, p [4]float64, alpha float64) (pv [4]float64, set []string, valid bool) {
	for c, list := range scores {
		s, above := 1-p[c], 0
		for _, x := range list {
			if x >= s-1e-12 {
				above++
			}
		}
		pv[c] = float64(1+above) / float64(len(list)+1)
		if pv[c] > alpha {
			set = append(set, Classes[c])
		}
		valid = valid || float64(len(list)+1)*alpha >= 1-1e-9
	}
	return pv, set, valid
}
