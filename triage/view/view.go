// Package view turns documents of a triage into what is printed: the JSON of the
// contract with projection and limits, prose in four styles, short formats,
// reports. It is pure, and everything it says comes from the session's own data.
package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"ghostbot/triage/model"
	"ghostbot/triage/plan"
	"ghostbot/triage/scan"
)

// Candidate is a candidate as it is printed, with the blocks that were asked
// for.
type Candidate struct {
	plan.Candidate
	Evidence map[string]any    `json:"evidence,omitempty"`
	Missing  map[string]string `json:"missing_evidence,omitempty"`
	AgeS     float64           `json:"age_s,omitempty"`
	Blocked  []string          `json:"review_reasons,omitempty"`
	Ledger   []Row             `json:"ledger,omitempty"`
	Raw      *scan.Record      `json:"raw,omitempty"`
	Galaxy   *plan.Galaxy      `json:"galaxy_brain,omitempty"`
}

// Row is one line of the evidence ledger.
type Row struct {
	Feature  string             `json:"feature"`
	Level    string             `json:"level"`
	Log      map[string]float64 `json:"log_likelihood"`
	Bits     float64            `json:"bits"` // towards abandoned, against useful
	Strength string             `json:"strength"`
	Note     string             `json:"note"` // feature=level
}

// Ledger lists what each feature said.
func Ledger(e *plan.Evaluated) []Row {
	out := []Row{}
	for _, t := range e.Terms {
		bits := (t.Log[model.Abandoned] - t.Log[model.Useful]) / 0.6931471805599453
		r := Row{Feature: t.Feature, Level: t.Level, Log: map[string]float64{}, Bits: bits, Strength: strength(bits), Note: t.Feature + "=" + t.Level}
		for i, c := range model.Classes {
			r.Log[c] = t.Log[i]
		}
		out = append(out, r)
	}
	return out
}

func strength(bits float64) string {
	switch b := max(bits, -bits); {
	case b > 3.3:
		return "decisive"
	case b > 2:
		return "strong"
	case b > 1:
		return "substantial"
	}
	return "weak"
}

// Levels are the features that were seen, with their levels.
func Levels(e *plan.Evaluated) map[string]any {
	out := map[string]any{}
	if k := e.Evidence.CPUK; k != nil {
		out["cpu_k"] = *k
	}
	for _, t := range e.Terms {
		if t.Feature != model.CPU {
			out[t.Feature] = t.Level
		}
	}
	return out
}

// FieldNames are the members of a candidate that can be asked for.
func FieldNames() []string {
	var out []string
	for _, t := range []reflect.Type{reflect.TypeFor[plan.Candidate](), reflect.TypeFor[Candidate]()} {
		for i := range t.NumField() {
			if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" {
				out = append(out, name)
			}
		}
	}
	return out
}

// Presets are names for lists of fields.
var Presets = map[string][]string{
	"minimal":  {"pid", "start_id", "classification", "recommended_action"},
	"standard": {"pid", "start_id", "uid", "cmd_short", "classification", "posterior", "confidence", "blast_radius", "supervisor", "recommended_action", "action_rationale"},
}

// Fields checks a list of fields; nil is all of them.
func Fields(list string) ([]string, error) {
	if list == "" || list == "full" {
		return nil, nil
	}
	if p, ok := Presets[list]; ok {
		return p, nil
	}
	known := FieldNames()
	var out []string
	for _, f := range strings.Split(list, ",") {
		f = strings.TrimSpace(f)
		if !slices.Contains(known, f) {
			return nil, fmt.Errorf("field %q is not known (accepted: %s)", f, strings.Join(known, " "))
		}
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out, nil
}

// Project keeps some members of a value, in the order of the list.
func Project(v any, fields []string) (json.RawMessage, error) {
	b, err := Encode(v, false)
	if err != nil || fields == nil {
		return bytes.TrimRight(b, "\n"), err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for _, f := range fields {
		value, ok := all[f]
		if !ok {
			continue // an optional block that this candidate does not have
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%q:", f)
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// Encode writes JSON on one line, or indented.
func Encode(v any, pretty bool) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if pretty {
		e.SetIndent("", "  ")
	}
	err := e.Encode(v)
	return b.Bytes(), err
}

// Plan is the document of the verb plan.
type Plan struct {
	plan.Envelope
	Replay      bool              `json:"replay,omitempty"`
	Summary     plan.Summary      `json:"summary"`
	Candidates  []json.RawMessage `json:"candidates"`
	Recommended plan.Recommended  `json:"recommended"`
	Since       string            `json:"since,omitempty"`
	New         []int             `json:"candidates_new,omitzero"`
	Unchanged   []int             `json:"candidates_unchanged_omitted,omitzero"`
	Resolved    []int             `json:"candidates_resolved,omitzero"`
	Prose       *Prose            `json:"prose_summary,omitempty"`
	Galaxy      *plan.Galaxy      `json:"galaxy_brain,omitempty"`
	Protected   []plan.Protected  `json:"protected,omitempty"`
	System      *scan.System      `json:"system_state,omitempty"`
	Goal        *Goal             `json:"goal,omitempty"`
}

// Goal is how much memory the plan was to free.
type Goal struct {
	WantMB    float64 `json:"want_mb"`
	HaveMB    float64 `json:"have_mb"`
	Reachable bool    `json:"reachable"`
}

// Select picks the candidates that are shown: by action, by probability, by
// number. Without a choice of actions that is everything to be decided.
func Select(p *plan.Plan, only []string, minPosterior float64, limit int) []*plan.Evaluated {
	var out []*plan.Evaluated
	for i := range p.Evaluated {
		e := &p.Evaluated[i]
		all := slices.Contains(only, "all")
		if len(only) == 0 && e.Action == model.Spare || len(only) > 0 && !all && !slices.Contains(only, string(e.Action)) {
			continue
		}
		about := e.Gone()
		if e.Action != model.Kill {
			about += e.Posterior.UsefulBad
		}
		if about < minPosterior {
			continue
		}
		out = append(out, e)
	}
	if limit > 0 && len(out) > limit {
		out = out[:limit]
	}
	return out
}
