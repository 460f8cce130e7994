// Package model says how likely it is that a process is useful, useful but
// broken, abandoned or a zombie, and which action costs least. It is pure:
// evidence and tables in, numbers out, all sums in logarithms.
//
// # Inference
//
// log P(C|x) ∝ log P(C) + Σ log P(x_j|C) over the features that were seen. A
// feature that could not be read has no term. CPU is k of n slots of runnable
// demand under a mixture of Beta-binomials; every other feature is a level with
// the predictive probability count/sum. Within a feature no class may lie more
// than the cap below the best one, so that one odd reading cannot decide alone;
// the state is exempt, because a zombie is one for certain.
//
// # Decision
//
// The action with the least expected loss among those that are possible at all,
// then the rules of [Decide]. Unknown never makes an action easier: a missing
// feature removes evidence, it never adds any.
package model

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrPriors is what every refusal of a priors file is.
var ErrPriors = errors.New("priors are not usable")

// Class is one of the four things a process can be.
type Class uint8

// The four classes, in the order of every vector of this package.
const (
	Useful Class = iota
	UsefulBad
	Abandoned
	Zombie
)

// Classes are the names of the classes in their order.
var Classes = [4]string{"useful", "useful_bad", "abandoned", "zombie"}

// String is the class's name in documents.
func (c Class) String() string { return Classes[c] }

// Evidence is what was seen of one process; what is empty was not seen.
type Evidence struct {
	CPUK    *int   `json:"cpu_k,omitempty"`
	CPUN    int    `json:"cpu_n,omitempty"` // 0: the n of the priors
	Lineage string `json:"lineage,omitempty"`
	IO      string `json:"io,omitempty"`
	TTY     string `json:"tty,omitempty"`
	Net     string `json:"net,omitempty"`
	Queue   string `json:"queue,omitempty"`
	State   string `json:"state,omitempty"`
	Age     string `json:"age,omitempty"`
	Backing string `json:"backing,omitempty"`
	Sig     string `json:"sig,omitempty"`
}

// CPU is the name of the feature that is a count and not a level.
const CPU = "cpu"

// Level returns where the level of a feature is kept; nil for another name.
func (e *Evidence) Level(feature string) *string {
	switch feature {
	case "lineage":
		return &e.Lineage
	case "io":
		return &e.IO
	case "tty":
		return &e.TTY
	case "net":
		return &e.Net
	case "queue":
		return &e.Queue
	case "state":
		return &e.State
	case "age":
		return &e.Age
	case "backing":
		return &e.Backing
	case "sig":
		return &e.Sig
	}
	return nil
}

// Without is the evidence as if a feature had not been seen.
func (e Evidence) Without(feature string) Evidence {
	if feature == CPU {
		e.CPUK = nil
	} else if l := e.Level(feature); l != nil {
		*l = ""
	}
	return e
}

// With is the evidence as if a feature had the level.
func (e Evidence) With(feature, level string) Evidence {
	if l := e.Level(feature); l != nil {
		*l = level
	}
	return e
}

// Component is one part of a mixture: weight, alpha, beta.
type Component [3]float64

// Feature is one categorical feature with its pseudo-counts.
type Feature struct {
	Name      string    `json:"name"`
	Levels    []string  `json:"levels"`
	Uncapped  bool      `json:"uncapped,omitempty"`
	Useful    []float64 `json:"useful"`
	UsefulBad []float64 `json:"useful_bad"`
	Abandoned []float64 `json:"abandoned"`
	Zombie    []float64 `json:"zombie"`
}

func (f *Feature) counts() [4][]float64 {
	return [4][]float64{f.Useful, f.UsefulBad, f.Abandoned, f.Zombie}
}

// Priors are the tables of inference, as they stand in the priors file.
type Priors struct {
	SchemaVersion string             `json:"schema_version"`
	ID            string             `json:"id"`
	Prior         map[string]float64 `json:"classes"`
	CPU           struct {
		N        int                    `json:"n"`
		Mixtures map[string][]Component `json:"mixtures"`
	} `json:"cpu"`
	CapNats  float64   `json:"cap_nats"`
	Features []Feature `json:"features"`
}

//go:embed priors.json
var defaults []byte

// DefaultPriors are the priors that are shipped.
func DefaultPriors() *Priors {
	p, err := ParsePriors(defaults)
	if err != nil {
		panic(err) // the file is part of the program, and a test reads it
	}
	return p
}

// ParsePriors reads and checks a priors file.
func ParsePriors(b []byte) (*Priors, error) {
	var p Priors
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPriors, err)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPriors, err)
	}
	return &p, nil
}

func (p *Priors) check() error {
	sum := 0.0
	for _, c := range Classes {
		if v := p.Prior[c]; !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("class %s has the prior %v", c, v)
		}
		sum += p.Prior[c]
		if err := checkMixture(c, p.CPU.Mixtures[c]); err != nil {
			return err
		}
	}
	if math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("class priors sum to %v, not to 1", sum)
	}
	if p.CPU.N < 1 || !(p.CapNats > 0) {
		return errors.New("cpu.n and cap_nats must be above 0")
	}
	return p.checkFeatures()
}

func checkMixture(class string, m []Component) error {
	sum := 0.0
	for _, c := range m {
		if !(c[0] > 0) || !(c[1] > 0) || !(c[2] > 0) {
			return fmt.Errorf("cpu mixture of %s has the component %v", class, c)
		}
		sum += c[0]
	}
	if math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("cpu mixture of %s has weights that sum to %v", class, sum)
	}
	return nil
}

func (p *Priors) checkFeatures() error {
	var seen []string
	for i := range p.Features {
		f := &p.Features[i]
		if (&Evidence{}).Level(f.Name) == nil || slices.Contains(seen, f.Name) {
			return fmt.Errorf("feature %q is unknown or given twice", f.Name)
		}
		seen = append(seen, f.Name)
		for c, counts := range f.counts() {
			if len(counts) != len(f.Levels) {
				return fmt.Errorf("feature %s: %d counts of %s for %d levels", f.Name, len(counts), Classes[c], len(f.Levels))
			}
			for _, n := range counts {
				if !(n > 0) || math.IsInf(n, 0) {
					return fmt.Errorf("feature %s: count %v of %s", f.Name, n, Classes[c])
				}
			}
		}
	}
	return nil
}

// Feature returns the feature of that name, nil when there is none.
func (p *Priors) Feature(name string) *Feature {
	for i := range p.Features {
		if p.Features[i].Name == name {
			return &p.Features[i]
		}
	}
	return nil
}

// LogPrior is the logarithm of the class priors.
func (p *Priors) LogPrior() (out [4]float64) {
	for i, c := range Classes {
		out[i] = math.Log(p.Prior[c])
	}
	return out
}

// Term is what one feature says: log P(x|C) for each class, capped.
type Term struct {
	Feature string
	Level   string
	Log     [4]float64
}

// Against is the term's weight for abandoned against useful.
func (t Term) Against() float64 { return t.Log[Abandoned] - t.Log[Useful] }

// Posterior is the outcome of an inference.
type Posterior struct {
	P        [4]float64
	LogPrior [4]float64
	Terms    []Term
	LogEvid  float64 // log P(x)
	LogE     float64 // log of the mixture likelihood ratio of {abandoned, zombie} over {useful, useful_bad}
}

// Top is the likeliest class.
func (p *Posterior) Top() Class {
	best := Useful
	for c := UsefulBad; c <= Zombie; c++ {
		if p.P[c] > p.P[best] {
			best = c
		}
	}
	return best
}

// Gone is the probability that nobody misses the process: abandoned or zombie.
func (p *Posterior) Gone() float64 { return p.P[Abandoned] + p.P[Zombie] }

// LogOdds is log P(abandoned|x) - log P(useful|x).
func (p *Posterior) LogOdds() float64 {
	out := p.LogPrior[Abandoned] - p.LogPrior[Useful]
	for _, t := range p.Terms {
		out += t.Against()
	}
	return out
}

// Infer computes the posterior of e.
func (p *Priors) Infer(e Evidence) Posterior {
	post := Posterior{LogPrior: p.LogPrior(), Terms: p.terms(e)}
	var like, joint [4]float64
	for c := range like {
		for _, t := range post.Terms {
			like[c] += t.Log[c]
		}
		joint[c] = post.LogPrior[c] + like[c]
	}
	post.LogEvid = logSum(joint[:]...)
	for c := range joint {
		post.P[c] = math.Exp(joint[c] - post.LogEvid)
	}
	num := logSum(joint[Abandoned], joint[Zombie]) - logSum(post.LogPrior[Abandoned], post.LogPrior[Zombie])
	den := logSum(joint[Useful], joint[UsefulBad]) - logSum(post.LogPrior[Useful], post.LogPrior[UsefulBad])
	post.LogE = num - den
	return post
}

func (p *Priors) terms(e Evidence) []Term {
	var out []Term
	if e.CPUK != nil {
		if t, ok := p.cpuTerm(*e.CPUK, e.CPUN); ok {
			out = append(out, t)
		}
	}
	for i := range p.Features {
		f := &p.Features[i]
		if t, ok := p.levelTerm(f, *e.Level(f.Name)); ok {
			out = append(out, t)
		}
	}
	return out
}

func (p *Priors) cpuTerm(k, n int) (Term, bool) {
	if n == 0 {
		n = p.CPU.N
	}
	if k < 0 || k > n {
		return Term{}, false // a reading that cannot be is no evidence
	}
	t := Term{Feature: CPU, Level: fmt.Sprintf("%d/%d", k, n)}
	for i, c := range Classes {
		var parts []float64
		for _, m := range p.CPU.Mixtures[c] {
			parts = append(parts, math.Log(m[0])+logBetaBinomial(k, n, m[1], m[2]))
		}
		t.Log[i] = logSum(parts...)
	}
	return p.cap(t), true
}

func (p *Priors) levelTerm(f *Feature, level string) (Term, bool) {
	i := slices.Index(f.Levels, level)
	if level == "" || i < 0 {
		return Term{}, false
	}
	t := Term{Feature: f.Name, Level: level, Log: f.logs(i)}
	if f.Uncapped {
		return t, true
	}
	return p.cap(t), true
}

// logs are the logarithms of the predictive probabilities of level i.
func (f *Feature) logs(i int) (out [4]float64) {
	for c, counts := range f.counts() {
		sum := 0.0
		for _, n := range counts {
			sum += n
		}
		out[c] = math.Log(counts[i] / sum)
	}
	return out
}

func (p *Priors) cap(t Term) Term {
	best := slices.Max(t.Log[:])
	for c := range t.Log {
		t.Log[c] = max(t.Log[c], best-p.CapNats)
	}
	return t
}

func logBetaBinomial(k, n int, a, b float64) float64 {
	return logChoose(n, k) + logBeta(float64(k)+a, float64(n-k)+b) - logBeta(a, b)
}

func logChoose(n, k int) float64 {
	return lgamma(float64(n+1)) - lgamma(float64(k+1)) - lgamma(float64(n-k+1))
}

func logBeta(a, b float64) float64 { return lgamma(a) + lgamma(b) - lgamma(a+b) }

func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}

func logSum(xs ...float64) float64 {
	best := slices.Max(xs)
	if math.IsInf(best, -1) {
		return best
	}
	sum := 0.0
	for _, x := range xs {
		sum += math.Exp(x - best)
	}
	return best + math.Log(sum)
}
