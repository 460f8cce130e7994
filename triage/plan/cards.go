package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ghostbot/triage/model"
	"ghostbot/triage/scan"
)

// Card is one piece of the mathematics behind a judgement, with the numbers that
// were really used.
type Card struct {
	ID        string         `json:"id"`
	Title     string         `json:"title"`
	Equations []string       `json:"equations"`
	Values    map[string]any `json:"values"`
	Intuition string         `json:"intuition"`
}

// Galaxy is the block of cards.
type Galaxy struct {
	Enabled bool   `json:"enabled"`
	Cards   []Card `json:"cards"`
}

// Budget is the state of alpha-investing as the cards show it.
type Budget struct {
	Wealth     float64
	UpdatedAt  time.Time
	TestsRun   int
	Rejections int
}

// Context is what the cards need beside the process itself.
type Context struct {
	Plan      *Plan
	Snapshot  *scan.Snapshot
	Priors    *model.Priors
	Losses    model.Losses
	Budget    Budget
	Rules     model.Wealth
	FirstSeen time.Time // zero: never before
	Scores    [4][]float64
}

// Cards computes all seven for one process.
func (c Context) Cards(e *Evaluated) *Galaxy {
	return &Galaxy{true, []Card{c.core(e), c.hazard(e), c.interval(e), c.class(e), c.fdr(e), c.investing(e), c.voi(e)}}
}

// Run computes the cards that are about the run as a whole.
func (c Context) Run() *Galaxy { return &Galaxy{true, []Card{c.fdr(nil), c.investing(nil)}} }

func byClass(v [4]float64) map[string]float64 {
	out := map[string]float64{}
	for i, name := range model.Classes {
		out[name] = v[i]
	}
	return out
}

func (c Context) core(e *Evaluated) Card {
	v := map[string]any{"log_evidence": e.LogEvid, "log_odds": 0.0}
	for i, name := range model.Classes {
		v["log_prior_"+name] = e.LogPrior[i]
	}
	v["posterior_useful"], v["posterior_useful_bad"] = e.Posterior.Useful, e.Posterior.UsefulBad
	v["posterior_abandoned"], v["posterior_zombie"] = e.Posterior.Abandoned, e.Posterior.Zombie
	terms, full := map[string]float64{}, map[string]map[string]float64{}
	odds := e.LogPrior[model.Abandoned] - e.LogPrior[model.Useful]
	heavy, weight := "", 0.0
	for _, t := range e.Terms {
		w := t.Log[model.Abandoned] - t.Log[model.Useful]
		terms[t.Feature], full[t.Feature] = w, byClass(t.Log)
		odds += w
		if math.Abs(w) > math.Abs(weight) {
			heavy, weight = t.Feature, w
		}
	}
	v["terms"], v["terms_full"], v["log_odds"] = terms, full, odds
	side := "useful"
	if weight > 0 {
		side = "abandoned"
	}
	text := "Nothing but the prior speaks."
	if heavy != "" {
		text = fmt.Sprintf("%s weighs most (%.2f nats towards %s); the odds of abandoned to useful are e^%.2f.", heavy, math.Abs(weight), side, odds)
	}
	return Card{"posterior_core", "Posterior Core", []string{"log P(C|x) = log P(C) + Σ_j log P(x_j|C)", "log odds = log P(abandoned|x) - log P(useful|x)"}, v, text}
}

// regimes are those that are active now.
func (c Context) regimes(e *Evaluated) (out []model.Regime, exposure float64) {
	if !c.FirstSeen.IsZero() {
		exposure = max(0, c.Snapshot.RecordedAt.Sub(c.FirstSeen).Seconds())
	}
	lost := e.Evidence.Lineage == "orphan" || e.Evidence.Lineage == "detached"
	k := 0
	if e.Evidence.CPUK != nil {
		k = *e.Evidence.CPUK
	}
	active := map[string]bool{
		"normal": true, "tty_lost": e.Evidence.Lineage == "orphan" && e.Evidence.TTY == "no", "orphaned": lost, "io_flatline": e.Evidence.IO == "none", "cpu_runaway": k >= 8,
	}
	if r := c.record(e.PID); r != nil && len(r.RSSHalves) == 2 {
		active["memory_growth"] = r.RSSHalves[1] > r.RSSHalves[0]*1.01
	}
	for _, r := range model.Regimes {
		if active[r.Name] {
			r.Exposure = exposure
			out = append(out, r)
		}
	}
	return out, exposure
}

func (c Context) record(pid int) *scan.Record {
	for i := range c.Snapshot.Records {
		if c.Snapshot.Records[i].PID == pid {
			return &c.Snapshot.Records[i]
		}
	}
	return nil
}

func (c Context) hazard(e *Evaluated) Card {
	rs, exposure := c.regimes(e)
	names, hazards := []string{}, map[string]float64{}
	for _, r := range rs {
		names = append(names, r.Name)
		hazards[r.Name] = r.Hazard()
	}
	s := model.Survival(rs)
	source := "sessions of this tool that saw the same start_id"
	if c.FirstSeen.IsZero() {
		source = "first seen in this session"
	}
	return Card{"hazard_time_varying", "Time-varying Hazard", []string{"S(E) = Π_r (b_r / (b_r + E))^a_r", "h_r(E) = a_r / (b_r + E)"},
		map[string]any{"regimes": names, "exposure_s": exposure, "exposure_source": source, "hazard": hazards, "survival_prob": s},
		fmt.Sprintf("After %.0f s in %s, %.1f %% of useful processes would still be in use.", exposure, strings.Join(names, ", "), 100*s)}
}

const intervalAlpha = 0.10

// interval predicts the second half of the window by the first; how far that is
// off for the others is how far it may be off here.
func (c Context) interval(e *Evaluated) Card {
	var cpu, rss []float64
	for _, r := range c.Snapshot.Records {
		if r.PID != e.PID && len(r.CPUHalves) == 2 && len(r.RSSHalves) == 2 {
			cpu = append(cpu, math.Abs(r.CPUHalves[1]-r.CPUHalves[0]))
			rss = append(rss, math.Abs(r.RSSHalves[1]-r.RSSHalves[0]))
		}
	}
	qc, valid := model.Conformal(cpu, intervalAlpha)
	qr, _ := model.Conformal(rss, intervalAlpha)
	v := map[string]any{"coverage": 1 - intervalAlpha, "calibration_n": len(cpu), "valid": valid, "cpu_interval": nil, "rss_interval": nil, "q_cpu": nil, "q_rss": nil}
	text := fmt.Sprintf("%d processes are too few to calibrate an interval of %.0f %%.", len(cpu), 100*(1-intervalAlpha))
	if r := c.record(e.PID); valid && r != nil && len(r.CPUHalves) == 2 {
		a, b := r.CPUHalves[0], r.RSSHalves[0]
		v["cpu_interval"], v["rss_interval"] = []float64{max(0, a-qc), a + qc}, []float64{max(0, b-qr), b + qr}
		v["q_cpu"], v["q_rss"] = qc, qr
		text = fmt.Sprintf("From its first half the second one was expected to use %.1f to %.1f %% CPU.", max(0, a-qc), a+qc)
	} else if valid {
		valid = false
		v["valid"], text = false, "The process was not there for the whole window."
	}
	return Card{"conformal_interval", "Conformal Interval", []string{"q = residual of rank ceil((n+1)(1-alpha))", "interval = prediction ± q, valid when the rank is at most n"}, v, text}
}

func (c Context) class(e *Evaluated) Card {
	p := [4]float64{e.Posterior.Useful, e.Posterior.UsefulBad, e.Posterior.Abandoned, e.Posterior.Zombie}
	pv, set, valid := model.ConformalClass(c.Scores, p, intervalAlpha)
	n := 0
	for _, s := range c.Scores {
		n += len(s)
	}
	text := fmt.Sprintf("With %d labelled processes for calibration the classes %s cannot be excluded.", n, strings.Join(set, ", "))
	if !valid {
		text = fmt.Sprintf("Too few labelled processes for a calibration (%d): no class can be excluded.", n)
	}
	return Card{"conformal_class", "Conformal Class Set", []string{"s = 1 - P(C|x)", "p_C = (1 + #{i in C: s_i >= s}) / (n_C + 1)", "set = {C: p_C > alpha}"},
		map[string]any{"alpha": intervalAlpha, "p_values": byClass(pv), "prediction_set": set, "calibration_n": n, "valid": valid}, text}
}

func (c Context) fdr(e *Evaluated) Card {
	f := c.Plan.FDR
	v := map[string]any{"alpha": f.Alpha, "m_tested": f.M, "n_discoveries": f.Discoveries, "rejected_pids": f.Rejected, "threshold": model.Threshold(max(f.Discoveries, 1), f.M, f.Alpha)}
	text := fmt.Sprintf("%d of %d tested processes are discoveries at level %.2f.", f.Discoveries, f.M, f.Alpha)
	if e != nil {
		v["log_e"], v["e_value"], v["weight"], v["rejected"] = e.LogE, math.Exp(e.LogE), e.Weight, e.Member
		word := "is not"
		if e.Member {
			word = "is"
		}
		text = fmt.Sprintf("e = %.4g; with %d processes tested the bound is %.4g: it %s a discovery.", math.Exp(e.LogE), f.M, v["threshold"], word)
	}
	return Card{"e_fdr", "e-BH False Discovery Control", []string{"e = P(x|{A,Z}) / P(x|{U,B})", "k* = max{k: e_(k) >= m/(alpha k)}"}, v, text}
}

func (c Context) investing(e *Evaluated) Card {
	w := c.Rules.After(c.Budget.Wealth, c.Snapshot.RecordedAt.Sub(c.Budget.UpdatedAt))
	v := map[string]any{
		"current_wealth": c.Budget.Wealth, "wealth_now": w, "initial_wealth": c.Rules.Initial, "alpha_t": c.Rules.Level(w), "floor": c.Rules.Floor,
		"tests_run": c.Budget.TestsRun, "rejections": c.Budget.Rejections, "regen_at": nil, "exhausted": c.Rules.Exhausted(w),
	}
	text := fmt.Sprintf("%.4f of the day's %.2f is left; the next test may be wrong with probability %.4f. The budget comes back within a day, so the guarantee is per day.", w, c.Rules.Initial, c.Rules.Level(w))
	if d := c.Rules.Until(w); d > 0 {
		v["regen_at"] = c.Snapshot.RecordedAt.Add(d).UTC()
		text = fmt.Sprintf("The budget is used up; there is enough for a test again in %v.", d)
	}
	if e != nil {
		_, v["would_reject"] = c.Rules.Test(w, e.LogE)
		v["p"] = min(1, math.Exp(-e.LogE))
	}
	return Card{"alpha_investing", "Alpha-Investing", []string{"alpha_t = min(W/2, 0.02)", "p = min(1, 1/e)", "W <- W - alpha_t + 0.02 [p <= alpha_t]"}, v, text}
}

func (c Context) voi(e *Evaluated) Card {
	current, gains := c.Priors.VOI(e.Evidence, c.Losses, e.Can)
	gains["wait_15_minutes"] = c.Priors.Wait(e.Evidence, c.Losses, e.Can, waitHours)
	evsi, gain := map[string]float64{}, map[string]float64{}
	var names []string
	for name, g := range gains {
		if g.EVSI > 1e-9 && e.Evidence.State != "Z" {
			evsi[name], gain[name] = g.EVSI, g.Expected
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var best any
	text := "Nothing that could still be read would change the decision."
	for _, n := range names {
		if best == nil || evsi[n] > evsi[best.(string)] {
			best = n
		}
	}
	if best != nil {
		text = fmt.Sprintf("Reading %s would lower the expected loss of %.2f by %.2f.", best, current, evsi[best.(string)])
	}
	return Card{"voi", "Value of Information", []string{"EVSI = min_a L(a) - Σ_y P(y) min_a L(a|y)", "P(y) = Σ_C P(C) P(y|C)"},
		map[string]any{"current_loss": current, "evsi": evsi, "best_probe": best, "expected_gain": gain, "would_change": best != nil}, text}
}
