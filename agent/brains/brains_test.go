package brains_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"ghostbot/agent/brains"
	"ghostbot/agent/gemini"
	sim "ghostbot/internal/sim/gemini"
)

func good() brains.Options { return brains.Options{Name: brains.Auto, Tokens: 10_000, USD: 1} }

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		change   func(*brains.Options)
		variable string // "": accepted
	}{
		{func(*brains.Options) {}, ""},
		{func(o *brains.Options) { o.Name = brains.Playbook; o.Key = "" }, ""},
		{func(o *brains.Options) { o.Name = brains.Gemini; o.Key = "k" }, ""},
		{func(o *brains.Options) { o.Key, o.Model = "k", "gemini-x" }, ""},
		{func(o *brains.Options) { o.Name = "oracle" }, "GHOST_BRAIN"},
		{func(o *brains.Options) { o.Name = brains.Gemini }, "GHOST_BRAIN"},
		{func(o *brains.Options) { o.Tokens = 9_999 }, "GHOST_MODEL_TOKENS"},
		{func(o *brains.Options) { o.USD = -0.01 }, "GHOST_MODEL_USD"},
		{func(o *brains.Options) { o.USD = math.NaN() }, "GHOST_MODEL_USD"},
		{func(o *brains.Options) { o.URL = "http://model.example.com" }, "GHOST_GEMINI_URL"},
		{func(o *brains.Options) { o.Key = "k\n" }, "GHOST_MODEL, GEMINI_API_KEY"},
		{func(o *brains.Options) { o.Key, o.Model = "k", "a/b" }, "GHOST_MODEL, GEMINI_API_KEY"},
		{func(o *brains.Options) { o.Model = "a/b" }, ""}, // nobody asks it
	} {
		o := good()
		tc.change(&o)
		err := o.Check()
		var bad *brains.Bad
		if errors.As(err, &bad); (err == nil) != (tc.variable == "") || err != nil && (bad == nil || bad.Variable != tc.variable) {
			t.Errorf("%+v: %v, want %q", o, err, tc.variable)
		}
	}
}

func TestNew(t *testing.T) {
	for _, tc := range []struct{ name, key, want string }{
		{brains.Playbook, "k", "playbook/"},
		{brains.Auto, "", "playbook/"},
		{brains.Auto, "k", "gemini/gemini-flash-latest/p4-"},
		{brains.Gemini, "k", "gemini/gemini-flash-latest/p4-"},
	} {
		o := good()
		o.Name, o.Key = tc.name, tc.key
		b, err := brains.New(o)
		if err != nil || !strings.HasPrefix(b.Name(), tc.want) || strings.Contains(b.Name(), " else playbook/") != (tc.name == brains.Auto && tc.key != "") {
			t.Errorf("%+v: %v, %v", tc, b, err)
		}
	}
	if _, err := brains.New(brains.Options{Name: brains.Gemini}); err == nil {
		t.Error("a model without a key")
	}
}

func TestProbe(t *testing.T) {
	s, err := sim.New(sim.Options{Script: "key good\nmodel gemini-x\n-- 1 answer --\nnone\n"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, tc := range []struct {
		name, key, model, url string
		asked, fatal          bool
		kind                  string
	}{
		{brains.Playbook, "good", "gemini-x", s.URL, false, false, ""},
		{brains.Auto, "good", "gemini-x", s.URL, true, false, ""},
		{brains.Auto, "bad", "gemini-x", s.URL, true, false, gemini.BadKey},
		{brains.Gemini, "bad", "gemini-x", s.URL, true, true, gemini.BadKey},
		{brains.Gemini, "good", "gemini-y", s.URL, true, true, gemini.NoModel},
		{brains.Gemini, "good", "gemini-x", "http://127.0.0.1:1", true, false, gemini.Unreachable},
	} {
		o := brains.Options{Name: tc.name, Key: tc.key, Model: tc.model, URL: tc.url}
		name, fatal, err := o.Probe(t.Context())
		var e *gemini.Error
		if errors.As(err, &e); (name != "") != tc.asked || fatal != tc.fatal || (err == nil) != (tc.kind == "") || e != nil && e.Kind != tc.kind {
			t.Errorf("%+v: %q, %v, %v", tc, name, fatal, err)
		}
	}
}

// TestLimits: a case has a budget of tokens and money where a model is asked.
func TestLimits(t *testing.T) {
	for _, tc := range []struct {
		o      brains.Options
		tokens int
		cost   int64
	}{
		{brains.Options{Name: brains.Gemini, Key: "k", Tokens: 10_000, USD: 0.25}, 10_000, 250_000},
		{brains.Options{Name: brains.Auto, Key: "k", Tokens: 10_000}, 10_000, 0},
		{brains.Options{Name: brains.Auto, Tokens: 10_000, USD: 1}, 0, 0},
	} {
		if tokens, cost := tc.o.Limits(); tokens != tc.tokens || cost != tc.cost {
			t.Errorf("%+v: %d, %d", tc.o, tokens, cost)
		}
	}
}
