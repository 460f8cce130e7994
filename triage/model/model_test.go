package model_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/triage/model"
)

var losses = model.Losses{
	model.Spare: {0, 10, 30, 50}, model.Pause: {5, 6, 15, 20}, model.Throttle: {8, 8, 10, 15},
	model.Restart: {60, 12, 8, 5}, model.Kill: {100, 20, 1, 1},
}

// pure is a line of the regression data that is arithmetic only.
type pure struct {
	Case  string `json:"case"`
	Setup struct {
		Kind         string          `json:"kind"`
		Evidence     json.RawMessage `json:"evidence"`
		Capabilities model.Capable   `json:"capabilities"`
		E            []float64       `json:"e"`
		Alpha        float64         `json:"alpha"`
		M            int             `json:"m"`
		W0           float64         `json:"w0"`
		W            float64         `json:"w"`
		Elapsed      float64         `json:"elapsed_s"`
		Regimes      map[string]struct {
			Shape    float64 `json:"shape"`
			Rate     float64 `json:"rate_s"`
			Exposure float64 `json:"exposure_s"`
		} `json:"regimes"`
		Residuals   json.RawMessage      `json:"residuals"`
		Calibration map[string][]float64 `json:"calibration"`
		Posterior   map[string]float64   `json:"posterior"`
	} `json:"setup"`
	Command string          `json:"command"`
	Expect  json.RawMessage `json:"expect"`
}

func vectors(t *testing.T) []pure {
	t.Helper()
	files, _ := filepath.Glob("../../../shared/vectors/triage*.jsonl")
	if len(files) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("../shared/vectors/triage.jsonl is missing")
		}
		t.Skip("../shared/vectors is not here")
	}
	var out []pure
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		sc := bufio.NewScanner(f)
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			var p pure
			if json.Unmarshal(sc.Bytes(), &p) == nil && p.Setup.Kind == "pure" {
				out = append(out, p)
			}
		}
		f.Close()
	}
	return out
}

// TestVectors computes every case of the regression data that needs no process.
func TestVectors(t *testing.T) {
	known := map[string]func(*testing.T, pure){
		"infer(evidence)": checkInfer, "ebh": checkEBH, "alpha_investing": checkAlpha, "survival": checkSurvival,
		"conformal_interval": checkInterval, "conformal_class": checkClass, "voi over missing features": checkVOI, "voi": checkNeverNegative,
	}
	n := 0
	for _, p := range vectors(t) {
		t.Run(p.Case, func(t *testing.T) {
			check, ok := known[p.Command]
			if !ok {
				t.Fatalf("no check for the command %q", p.Command)
			}
			check(t, p)
		})
		n++
	}
	t.Logf("%d cases", n)
}

func evidence(t *testing.T, p pure) model.Evidence {
	t.Helper()
	var e model.Evidence
	if err := json.Unmarshal(p.Setup.Evidence, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func want[T any](t *testing.T, p pure) T {
	t.Helper()
	var w T
	if err := json.Unmarshal(p.Expect, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tol {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func checkInfer(t *testing.T, p pure) {
	w := want[struct {
		Posterior  map[string]float64       `json:"posterior"`
		LogE       *float64                 `json:"log_e"`
		Loss       map[model.Action]float64 `json:"loss"`
		Action     model.Action             `json:"recommended_action"`
		Robustness string                   `json:"decision_robustness"`
		Tolerance  float64                  `json:"tolerance"`
	}](t, p)
	pr, e := model.DefaultPriors(), evidence(t, p)
	can := p.Setup.Capabilities
	post := pr.Infer(e)
	tol := max(w.Tolerance, 1e-6)
	for i, c := range model.Classes {
		if v, ok := w.Posterior[c]; ok {
			near(t, c, post.P[i], v, tol)
		}
	}
	if w.LogE != nil {
		near(t, "log_e", post.LogE, *w.LogE, tol)
	}
	exp := losses.Expected(post.P)
	for a, v := range w.Loss {
		near(t, "loss of "+string(a), exp[a], v, tol*100)
	}
	if got := model.Choose(&post, e, losses, can); got != w.Action {
		t.Errorf("action %s, want %s", got, w.Action)
	}
	if got, carried := pr.Robustness(e, losses, can); w.Robustness != "" && got != w.Robustness {
		t.Errorf("robustness %s (%v), want %s", got, carried, w.Robustness)
	}
}

func logs(e []float64) []float64 {
	var out []float64
	for _, x := range e {
		out = append(out, math.Log(x))
	}
	return out
}

func checkEBH(t *testing.T, p pure) {
	w := want[struct {
		K          int       `json:"k"`
		Thresholds []float64 `json:"thresholds"`
	}](t, p)
	k, member := model.EBH(logs(p.Setup.E), p.Setup.M, p.Setup.Alpha)
	if k != w.K {
		t.Errorf("k = %d, want %d", k, w.K)
	}
	n := 0
	for _, in := range member {
		if in {
			n++
		}
	}
	if n != k {
		t.Errorf("%d members for k = %d", n, k)
	}
	for i, v := range w.Thresholds {
		near(t, "threshold", model.Threshold(i+1, p.Setup.M, p.Setup.Alpha), v, 1e-3)
	}
}

func checkAlpha(t *testing.T, p pure) {
	w := want[struct {
		After  []float64 `json:"wealth_after"`
		Wealth *float64  `json:"wealth"`
	}](t, p)
	r := model.DefaultWealth()
	if w.Wealth != nil {
		near(t, "wealth", r.After(p.Setup.W, time.Duration(p.Setup.Elapsed*float64(time.Second))), *w.Wealth, 1e-9)
	}
	wealth := p.Setup.W0
	for i, e := range logs(p.Setup.E) {
		if i >= len(w.After) {
			if !r.Exhausted(wealth) {
				t.Errorf("test %d is allowed with %v", i+1, wealth)
			}
			return
		}
		wealth, _ = r.Test(wealth, e)
		near(t, "wealth", wealth, w.After[i], 1e-9)
	}
}

func checkSurvival(t *testing.T, p pure) {
	w := want[struct {
		Survival  float64            `json:"survival_prob"`
		Hazard    map[string]float64 `json:"hazard_now"`
		Tolerance float64            `json:"tolerance"`
	}](t, p)
	var rs []model.Regime
	for _, name := range slices.Sorted(maps.Keys(p.Setup.Regimes)) {
		r := p.Setup.Regimes[name]
		rs = append(rs, model.Regime{Name: name, Shape: r.Shape, Rate: r.Rate, Exposure: r.Exposure})
	}
	near(t, "survival", model.Survival(rs), w.Survival, 1e-6)
	for _, r := range rs {
		if v, ok := w.Hazard[r.Name]; ok {
			near(t, r.Name, r.Hazard(), v, 1e-8)
		}
	}
}

func checkInterval(t *testing.T, p pure) {
	w := want[struct {
		Valid bool     `json:"valid"`
		Q     *float64 `json:"q"`
	}](t, p)
	var list []float64
	if string(p.Setup.Residuals) == `"1..10"` {
		for i := range 10 {
			list = append(list, float64(i+1))
		}
	} else if json.Unmarshal(p.Setup.Residuals, &list) != nil {
		t.Fatalf("residuals %s", p.Setup.Residuals)
	}
	q, valid := model.Conformal(list, p.Setup.Alpha)
	if valid != w.Valid {
		t.Errorf("valid = %v, want %v", valid, w.Valid)
	}
	if w.Q != nil {
		near(t, "q", q, *w.Q, 1e-9)
	}
}

func checkClass(t *testing.T, p pure) {
	w := want[struct {
		P   map[string]float64 `json:"p"`
		Set []string           `json:"prediction_set"`
	}](t, p)
	var scores [4][]float64
	var post [4]float64
	for i, c := range model.Classes {
		scores[i], post[i] = p.Setup.Calibration[c], p.Setup.Posterior[c]
	}
	pv, set, _ := model.ConformalClass(scores, post, p.Setup.Alpha)
	for i, c := range model.Classes {
		if v, ok := w.P[c]; ok {
			near(t, "p of "+c, pv[i], v, 1e-9)
		}
	}
	if diff := cmp.Diff(w.Set, set); diff != "" {
		t.Errorf("prediction set (-want +got):\n%s", diff)
	}
}

func checkVOI(t *testing.T, p pure) {
	w := want[struct {
		Current   float64            `json:"current_loss"`
		EVSI      map[string]float64 `json:"evsi"`
		Gain      map[string]float64 `json:"expected_gain"`
		Best      string             `json:"best_probe"`
		Tolerance float64            `json:"tolerance"`
	}](t, p)
	current, gains := model.DefaultPriors().VOI(evidence(t, p), losses, model.Capable{})
	near(t, "current loss", current, w.Current, w.Tolerance)
	best := ""
	for _, name := range slices.Sorted(maps.Keys(gains)) {
		if best == "" || gains[name].EVSI > gains[best].EVSI {
			best = name
		}
	}
	for name, v := range w.EVSI {
		near(t, "evsi of "+name, gains[name].EVSI, v, w.Tolerance)
	}
	for name, v := range w.Gain {
		near(t, "gain of "+name, gains[name].Expected, v, w.Tolerance)
	}
	if w.Best != "" && best != w.Best {
		t.Errorf("best probe %q, want %q", best, w.Best)
	}
}

func checkNeverNegative(t *testing.T, _ pure) { neverNegative(t) }

func randomEvidence(r *rand.Rand, p *model.Priors) model.Evidence {
	var e model.Evidence
	if k := r.IntN(12); k <= 10 {
		e.CPUK = &k
	}
	for _, f := range p.Features {
		if i := r.IntN(len(f.Levels) + 1); i < len(f.Levels) {
			e = e.With(f.Name, f.Levels[i])
		}
	}
	return e
}

func neverNegative(t *testing.T) {
	t.Helper()
	r, p := rand.New(rand.NewPCG(1, 2)), model.DefaultPriors()
	for range 1000 {
		e := randomEvidence(r, p)
		can := model.Capable{Throttle: r.IntN(2) == 0, Restart: r.IntN(2) == 0}
		current, gains := p.VOI(e, losses, can)
		gains["wait"] = p.Wait(e, losses, can, 0.25)
		for name, g := range gains {
			if g.EVSI < -1e-9 || g.Expected < -1e-9 || math.IsNaN(g.EVSI+g.Expected) || g.EVSI > current+1e-9 {
				t.Fatalf("%+v: %s gives %+v", e, name, g)
			}
		}
	}
}

func TestValueOfInformationIsNeverNegative(t *testing.T) { neverNegative(t) }

// A posterior is a distribution, whatever was seen, and a process that runs is
// no zombie.
func TestPosteriorIsADistribution(t *testing.T) {
	r, p := rand.New(rand.NewPCG(3, 4)), model.DefaultPriors()
	for range 2000 {
		e := randomEvidence(r, p)
		post := p.Infer(e)
		sum := 0.0
		for _, v := range post.P {
			sum += v
			if v < 0 || v > 1 || math.IsNaN(v) {
				t.Fatalf("%+v: %v", e, post.P)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("%+v: sums to %v", e, sum)
		}
		if e.State == "R" && post.Top() == model.Zombie {
			t.Fatalf("%+v: a running zombie %v", e, post.P)
		}
		if a := model.Choose(&post, e, losses, model.Capable{}); a == model.Throttle || a == model.Restart || a == model.Kill && post.Gone() < 0.9 {
			t.Fatalf("%+v: %s", e, a)
		}
	}
}

func TestFeasible(t *testing.T) {
	k := func(n int) *int { return &n }
	all := model.Capable{Throttle: true, Restart: true}
	tests := []struct {
		name string
		e    model.Evidence
		can  model.Capable
		want []model.Action
	}{
		{"zombie", model.Evidence{State: "Z", CPUK: k(10)}, all, []model.Action{model.Spare}},
		{"uninterruptible", model.Evidence{State: "D", CPUK: k(10)}, all, []model.Action{model.Spare, model.Throttle, model.Restart}},
		{"busy", model.Evidence{State: "R", CPUK: k(10)}, all, []model.Action{model.Spare, model.Throttle, model.Pause, model.Restart, model.Kill}},
		{"busy, serving", model.Evidence{State: "R", CPUK: k(10), Net: "active"}, all, []model.Action{model.Spare, model.Throttle, model.Restart, model.Kill}},
		{"half busy", model.Evidence{State: "R", CPUK: k(4)}, all, []model.Action{model.Spare, model.Pause, model.Restart, model.Kill}},
		{"no cgroup, no supervisor", model.Evidence{State: "S", CPUK: k(10)}, model.Capable{}, []model.Action{model.Spare, model.Pause, model.Kill}},
		{"stopped", model.Evidence{State: "T", CPUK: k(3)}, model.Capable{}, []model.Action{model.Spare, model.Kill}},
		{"cpu unknown", model.Evidence{State: "S"}, all, []model.Action{model.Spare, model.Restart, model.Kill}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, model.Feasible(tt.e, tt.can)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestPriorsAreChecked(t *testing.T) {
	good, err := json.Marshal(model.DefaultPriors())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, old, new string }{
		{"no json", "{", "["},
		{"sum", `"useful":0.9`, `"useful":0.8`},
		{"zero prior", `"zombie":0.01`, `"zombie":0`},
		{"unknown feature", `"name":"io"`, `"name":"colour"`},
		{"feature twice", `"name":"io"`, `"name":"tty"`},
		{"zero count", `"useful":[5,5]`, `"useful":[5,0]`},
		{"count missing", `"useful":[5,5]`, `"useful":[5]`},
		{"cap", `"cap_nats":5`, `"cap_nats":0`},
		{"mixture", `[0.65,0.5,8]`, `[0.65,-1,8]`},
		{"mixture weights", `[0.65,0.5,8]`, `[0.5,0.5,8]`},
	}
	for _, tt := range tests {
		bad := strings.Replace(string(good), tt.old, tt.new, 1)
		if bad == string(good) {
			t.Fatalf("%s: %s is not in the file", tt.name, tt.old)
		}
		if _, err := model.ParsePriors([]byte(bad)); !errors.Is(err, model.ErrPriors) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestImpossibleReadingsAreNoEvidence(t *testing.T) {
	p := model.DefaultPriors()
	for _, k := range []int{-1, 11} {
		post := p.Infer(model.Evidence{CPUK: &k, Net: "colourful"})
		if len(post.Terms) != 0 {
			t.Errorf("k = %d: terms %v", k, post.Terms)
		}
	}
}

func TestBudgetComesBack(t *testing.T) {
	r := model.DefaultWealth()
	tests := []struct {
		w       float64
		elapsed time.Duration
		want    float64
	}{{0, 24 * time.Hour, 0.05}, {0.04, 24 * time.Hour, 0.05}, {0.07, time.Hour, 0.05}, {0.01, -time.Hour, 0.01}}
	for _, tt := range tests {
		near(t, "wealth", r.After(tt.w, tt.elapsed), tt.want, 1e-12)
	}
	if got := r.Until(0.0005); got <= 0 || r.Exhausted(r.After(0.0005, got)) {
		t.Errorf("after %v there is still no budget", got)
	}
	if got := r.Until(0.05); got != 0 {
		t.Errorf("a full budget waits %v", got)
	}
}

// Survival falls to nothing with time, which a model that learns from the same
// time twice does not do.
func TestSurvivalFalls(t *testing.T) {
	r := model.Regimes[2]
	r.Exposure = 30 * 86400
	if got := model.Survival([]model.Regime{r}); got > 0.01 {
		t.Errorf("after 30 days %v", got)
	}
}

// No file makes the budget larger than the rules do.
func TestWealthIsCapped(t *testing.T) {
	r := model.DefaultWealth()
	for _, elapsed := range []time.Duration{-time.Hour, 0, time.Hour} {
		if w := r.After(1e9, elapsed); w != r.Initial {
			t.Errorf("after %v: %v", elapsed, w)
		}
	}
}
