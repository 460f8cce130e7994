package model

import (
	"fmt"
	"math"
)

// Action is what may be done with a process.
type Action string

// The actions of the contract. Resume undoes a pause and is never recommended.
const (
	Spare    Action = "spare"
	Throttle Action = "throttle"
	Pause    Action = "pause"
	Restart  Action = "restart"
	Kill     Action = "kill"
	Review   Action = "review"
	Resume   Action = "resume"
)

// order breaks ties: the gentler action first.
var order = []Action{Spare, Throttle, Pause, Restart, Kill}

// Losses are the costs of each action for each class.
type Losses map[Action][4]float64

// Check says why a loss matrix cannot be used.
func (l Losses) Check() error {
	for _, a := range order {
		v, ok := l[a]
		if !ok {
			return fmt.Errorf("loss of %s is missing", a)
		}
		for _, x := range v {
			if x < 0 || math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("loss of %s is %v", a, x)
			}
		}
	}
	return nil
}

// Expected is the expected loss of every action under p.
func (l Losses) Expected(p [4]float64) map[Action]float64 {
	out := make(map[Action]float64, len(order))
	for _, a := range order {
		sum := 0.0
		for c, loss := range l[a] {
			sum += p[c] * loss
		}
		out[a] = sum
	}
	return out
}

// Capable says what could be done with the process at all on this machine.
type Capable struct {
	Throttle bool `json:"throttle"` // a writable cgroup of its own
	Restart  bool `json:"restart"`  // it has a supervisor with a known command
}

// Feasible lists the actions that make sense for e, in the order of ties. A
// zombie has none but to spare it; a process in an uninterruptible sleep cannot
// take a signal now; only something that runs is worth pausing or throttling,
// and what serves others is not paused.
func Feasible(e Evidence, can Capable) []Action {
	out := []Action{Spare}
	if e.State == "Z" {
		return out
	}
	k := 0
	if e.CPUK != nil {
		k = *e.CPUK
	}
	serving := e.Net == "listen_idle" || e.Net == "active"
	if can.Throttle && k >= 5 {
		out = append(out, Throttle)
	}
	if k >= 2 && !serving && e.State != "D" && e.State != "T" {
		out = append(out, Pause)
	}
	if can.Restart {
		out = append(out, Restart)
	}
	if e.State != "D" {
		out = append(out, Kill)
	}
	return out
}

// Thresholds of the action rule.
const (
	killAbove  = 0.90 // below it a kill becomes a review
	spareAbove = 0.50 // below it a spare becomes a review
)

// Choose applies the action rule to a posterior: least expected loss among what
// is feasible (ties to the gentler action), a kill only of what is gone with 90
// percent, a spare only of what is more likely useful than not. Zombies are for
// a person: the decision is about their parent.
func Choose(p *Posterior, e Evidence, l Losses, can Capable) Action {
	if e.State == "Z" {
		return Review
	}
	return choose(p, Feasible(e, can), l)
}

func choose(p *Posterior, feasible []Action, l Losses) Action {
	exp := l.Expected(p.P)
	best := Spare
	for _, a := range feasible {
		if exp[a] < exp[best] {
			best = a
		}
	}
	switch {
	case best == Kill && p.Gone() < killAbove:
		return Review
	case best == Spare && p.P[Useful] < spareAbove:
		return Review
	}
	return best
}

// Robustness says how many single terms carry the action: high when dropping
// any one of them changes nothing, medium when one does, low when more do. What is
// possible stays as it is: a term is a weight, not the fact behind it.
func (p *Priors) Robustness(e Evidence, l Losses, can Capable) (word string, carried []string) {
	post := p.Infer(e)
	feasible := Feasible(e, can)
	was := choose(&post, feasible, l)
	for _, t := range post.Terms {
		q := p.Infer(e.Without(t.Feature))
		if choose(&q, feasible, l) != was {
			carried = append(carried, t.Feature)
		}
	}
	switch len(carried) {
	case 0:
		return "high", nil
	case 1:
		return "medium", carried
	}
	return "low", carried
}

// Confidence is the word for the probability of the likeliest class.
func Confidence(p float64) string {
	switch {
	case p > 0.99:
		return "very_high"
	case p > 0.95:
		return "high"
	case p > 0.80:
		return "medium"
	}
	return "low"
}

// Gain is what reading one more feature is worth.
type Gain struct {
	EVSI     float64 // expected fall of the least expected loss
	Expected float64 // expected rise of the likeliest class's probability
}

// VOI is the value of information of the features that are missing in e.
func (p *Priors) VOI(e Evidence, l Losses, can Capable) (current float64, gains map[string]Gain) {
	post := p.Infer(e)
	current = least(post.P, e, l, can)
	gains = map[string]Gain{}
	for i := range p.Features {
		f := &p.Features[i]
		if *e.Level(f.Name) != "" || f.Name == "state" {
			continue
		}
		var after []weighted
		for j, level := range f.Levels {
			logs := f.logs(j)
			if t, ok := p.levelTerm(f, level); ok && f.Uncapped {
				logs = t.Log
			}
			after = append(after, weigh(post.P, logs, e.With(f.Name, level)))
		}
		gains[f.Name] = gain(post.P, current, after, e, l, can)
	}
	return current, gains
}

// weighted is one outcome of a probe: its probability, the posterior after it,
// and the evidence then.
type weighted struct {
	prob float64
	post [4]float64
	e    Evidence
}

func weigh(p [4]float64, logs [4]float64, e Evidence) weighted {
	w := weighted{e: e}
	for c := range p {
		w.post[c] = p[c] * math.Exp(logs[c])
		w.prob += w.post[c]
	}
	for c := range w.post {
		w.post[c] /= w.prob
	}
	return w
}

func gain(p [4]float64, current float64, after []weighted, e Evidence, l Losses, can Capable) Gain {
	loss, top, total := 0.0, 0.0, 0.0
	for _, w := range after {
		loss += w.prob * least(w.post, e, l, can)
		top += w.prob * maxOf(w.post)
		total += w.prob
	}
	return Gain{EVSI: max(0, current-loss/total), Expected: max(0, top/total-maxOf(p))}
}

func maxOf(p [4]float64) float64 { return max(p[0], p[1], p[2], p[3]) }

func least(p [4]float64, e Evidence, l Losses, can Capable) float64 {
	exp := l.Expected(p)
	best := math.Inf(1)
	for _, a := range Feasible(e, can) {
		best = min(best, exp[a])
	}
	return best
}

// wake are the rates, per hour, at which a quiet process of each class does
// something.
var wake = [4]float64{4, 1, 0.1, 0}

// Wait is the value of looking again after so many hours.
func (p *Priors) Wait(e Evidence, l Losses, can Capable, hours float64) Gain {
	post := p.Infer(e)
	var active, quiet [4]float64
	for c, rate := range wake {
		quiet[c] = -rate * hours
		active[c] = math.Log(max(1-math.Exp(quiet[c]), 1e-12))
	}
	after := []weighted{weigh(post.P, active, e), weigh(post.P, quiet, e)}
	return gain(post.P, least(post.P, e, l, can), after, e, l, can)
}
