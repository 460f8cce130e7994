// Package brains is the choice of a brain: by rules, by a model, or by a model
// with the rules behind it.
package brains

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/agent/fallback"
	"ghostbot/agent/gemini"
	"ghostbot/agent/playbook"
)

// What a brain may be called in a configuration.
const (
	Auto     = "auto" // the model when there is a key, the playbook when there is none or the model fails
	Gemini   = "gemini"
	Playbook = "playbook" // the only one that needs no key
)

// Names are all of them.
func Names() []string { return []string{Auto, Gemini, Playbook} }

// Options are a deployment's choice.
type Options struct {
	Name, Key, Model, URL string
	Tokens                int     // of one case
	USD                   float64 // of one case; 0: no limit
	Log                   *slog.Logger
	// Safe reports whether the gate runs a command without asking; nil: it does.
	Safe func(command string) bool
	// Hosts: the processes of this machine may be looked at.
	Hosts bool
}

// AsksModel reports whether a model is asked at all.
func (o Options) AsksModel() bool { return o.Name == Gemini || o.Name == Auto && o.Key != "" }

// Limits are what one case may use of a model: tokens, and millionths of a dollar; 0
// tokens when none is asked, 0 dollars when there is no limit.
func (o Options) Limits() (tokens int, cost int64) {
	if !o.AsksModel() {
		return 0, 0
	}
	return o.Tokens, int64(o.USD * 1e6)
}

// Bad is a choice that is not accepted.
type Bad struct{ Variable, Why string }

// Error names the variable and what is accepted.
func (b *Bad) Error() string { return b.Variable + ": " + b.Why }

// Check says what is wrong with the choice, without asking anybody. Its error is
// a *[Bad].
func (o Options) Check() error {
	switch {
	case !slices.Contains(Names(), o.Name):
		return &Bad{"GHOST_BRAIN", fmt.Sprintf("%q is not a brain of this build (accepted: %s)", o.Name, strings.Join(Names(), " "))}
	case o.Tokens < 10_000 || o.Tokens > 1_000_000_000:
		return &Bad{"GHOST_MODEL_TOKENS", fmt.Sprintf("%d is out of range (accepted: 10000 to 1000000000)", o.Tokens)}
	case !(o.USD >= 0 && o.USD <= 10_000):
		return &Bad{"GHOST_MODEL_USD", fmt.Sprintf("%g is out of range (accepted: 0, which is no limit, to 10000)", o.USD)}
	case o.Name == Gemini && o.Key == "":
		return &Bad{"GHOST_BRAIN", "gemini needs a key, and GEMINI_API_KEY is not set (accepted: a key, or GHOST_BRAIN=playbook)"}
	case o.URL != "" && gemini.CheckURL(o.URL) != nil:
		return &Bad{"GHOST_GEMINI_URL", gemini.CheckURL(o.URL).Error()}
	}
	if o.AsksModel() {
		if _, err := o.model(); err != nil {
			return &Bad{"GHOST_MODEL, GEMINI_API_KEY", err.Error()}
		}
	}
	return nil
}

func (o Options) model() (*gemini.Brain, error) {
	return gemini.New(gemini.Options{Key: o.Key, Model: o.Model, URL: o.URL, MaxTokens: o.Tokens, MaxCost: int64(o.USD * 1e6), Log: o.Log})
}

// New makes the brain. Nothing is sent.
func New(o Options) (agent.Brain, error) {
	rules := playbook.New(playbook.Options{Safe: o.Safe, Hosts: o.Hosts})
	if !o.AsksModel() {
		return rules, nil
	}
	m, err := o.model()
	switch {
	case err != nil:
		return nil, err
	case o.Name == Gemini:
		return fallback.New(m, nil), nil
	}
	return fallback.New(m, rules), nil
}

// patience bounds how long [Options.Probe] waits.
const patience = 10 * time.Second

// Probe asks the model once, for nothing, whether key and model are accepted.
// fatal reports trouble that does not pass by itself, when there is no other
// brain. name is the model's; "" when no model is asked.
func (o Options) Probe(ctx context.Context) (name string, fatal bool, err error) {
	if !o.AsksModel() {
		return "", false, nil
	}
	m, err := o.model()
	if err != nil {
		return "", true, err
	}
	ctx, done := context.WithTimeout(ctx, patience)
	defer done()
	err = m.Check(ctx)
	var e *gemini.Error
	fatal = errors.As(err, &e) && (e.Kind == gemini.BadKey || e.Kind == gemini.NoModel) && o.Name == Gemini
	return m.Name(), fatal, err
}
