package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ghostbot/agent"
	"ghostbot/store"
)

// sweepSymptom is what a sweep is about, in the words of its thread.
const sweepSymptom = "Clean up what other cases left in the cloud and on this machine"

// ErrNoSweeps means that nothing can be left: captures are not configured.
var ErrNoSweeps = errors.New("captures are not configured")

// ErrSweeping means that a sweep is open already; one at a time looks, whichever
// process carries it.
var ErrSweeping = errors.New("a clean-up is under way")

var sweepKey = store.Key{Scope: store.Deployment, Name: "sweep"}

// Sweep opens the case that removes what other cases left, unless one is open: then
// it returns that case and [ErrSweeping]. The same delivery again returns the same
// case.
func (d *Desk) Sweep(ctx context.Context, o Opening) (sid string, err error) {
	if !d.o.Sweeps {
		return "", ErrNoSweeps
	}
	o.Kind, o.Symptom = agent.KindSweep, sweepSymptom
	for {
		v, err := d.o.DB.Get(ctx, sweepKey)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", fmt.Errorf("open sweep: %w", err)
		}
		last := strings.Trim(string(v.Data), `"`)
		if last != "" {
			c, err := d.Case(ctx, last)
			switch {
			case err == nil && c.Opening.Delivery == o.Delivery:
				return last, nil
			case err == nil && !c.Closed:
				return last, ErrSweeping
			case err != nil && !errors.Is(err, ErrNoCase):
				return "", fmt.Errorf("open sweep: %w", err)
			}
		}
		sid, err := d.openNamed(ctx, o, func(sid string) ([]store.Guard, []store.Write) {
			name, _ := json.Marshal(sid) // a string: cannot be refused
			want := store.Absent
			if last != "" {
				want = v.Version
			}
			return []store.Guard{{Key: sweepKey, Version: want}}, []store.Write{{Key: sweepKey, Data: name}}
		})
		if !errors.Is(err, ErrMoved) {
			return sid, err
		}
	}
}

// triageSymptom is what a triage is about, in the words of its thread.
const triageSymptom = "Processes of this machine"

// Triages reports whether cases about processes can be opened.
func (d *Desk) Triages() bool { return d.o.Triage }

// Triage opens a case about processes of this machine, with what it looks at first
// and in words, and the open case that it belongs to.
func (d *Desk) Triage(ctx context.Context, o Opening, f agent.Focus, words string) (sid string, err error) {
	o.Kind, o.Symptom, o.Focus = agent.KindTriage, triageSymptom, &f
	if words != "" {
		o.Symptom += ": " + words
	}
	if f.Case != "" {
		o.Symptom += " (for case " + f.Case + ")"
	}
	return d.Open(ctx, o)
}
