package hosts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Focus is what people name after /ghost triage.
type Focus struct {
	Port  int
	PIDs  []int
	Since string
}

// ParseFocus reads "--port 8080 --pid 12,13 --since 2h". Chats turn two dashes into
// one long one.
func ParseFocus(text string) (f Focus, err error) {
	text = strings.NewReplacer("—", "--", "–", "--", "=", " ").Replace(text)
	w := strings.Fields(text)
	for i := 0; i < len(w); i += 2 {
		name := strings.ToLower(strings.TrimLeft(w[i], "-"))
		if !slices.Contains([]string{"port", "pid", "pids", "since"}, name) {
			return f, fmt.Errorf("%q is not known (accepted: --port N, --pid N, --since 2h)", clip(w[i], 40))
		}
		if i+1 == len(w) {
			return f, fmt.Errorf("--%s wants a value", name)
		}
		if err := f.set(name, w[i+1]); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *Focus) set(name, v string) error {
	switch name {
	case "port":
		n, err := strconv.Atoi(strings.TrimPrefix(v, ":"))
		if err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("%q is no port (accepted: 1 to 65535)", clip(v, 40))
		}
		f.Port = n
	case "since":
		if !sinceForm.MatchString(v) {
			return fmt.Errorf("%q is no duration (accepted: 30m, 2h, 1d)", clip(v, 40))
		}
		f.Since = v
	default:
		for _, p := range strings.Split(v, ",") {
			n, err := strconv.ParseInt(p, 10, 64)
			if err != nil || n < 1 || n > maxPID || len(f.PIDs) == 20 {
				return fmt.Errorf("%q is no process number (accepted: 1 to %d, at most 20)", clip(p, 40), maxPID)
			}
			if !slices.Contains(f.PIDs, int(n)) {
				f.PIDs = append(f.PIDs, int(n))
			}
		}
	}
	return nil
}

// Text is the focus in words.
func (f Focus) Text() string {
	var out []string
	if f.Port > 0 {
		out = append(out, "port "+strconv.Itoa(f.Port))
	}
	if len(f.PIDs) > 0 {
		out = append(out, "pid "+numbers(f.PIDs))
	}
	if f.Since != "" {
		out = append(out, "new since "+f.Since)
	}
	return strings.Join(out, ", ")
}

// term is what one feature said.
type term struct {
	Feature string  `json:"feature"`
	Level   string  `json:"level"`
	Bits    float64 `json:"bits"`
}

// Reasons are the terms of an explanation that weigh most, in words.
func Reasons(r Row, output string) string {
	var d struct {
		Ledger []term `json:"ledger"`
		What   struct {
			Flips []string `json:"terms_that_flip_the_action"`
		} `json:"what_if"`
	}
	if json.Unmarshal([]byte(output), &d) != nil || len(d.Ledger) == 0 {
		return "Why " + r.Name() + " was judged so could not be read."
	}
	slices.SortStableFunc(d.Ledger, func(a, b term) int { return cmp.Compare(abs(b.Bits), abs(a.Bits)) })
	var terms []string
	for _, t := range d.Ledger[:min(len(d.Ledger), 6)] {
		towards := "abandoned"
		if t.Bits < 0 {
			towards = "useful"
		}
		terms = append(terms, fmt.Sprintf("%s is %s (%.1f bits towards %s)", t.Feature, t.Level, abs(t.Bits), towards))
	}
	text := fmt.Sprintf("Why %s was judged %s (useful %.2f, useful but bad %.2f, abandoned %.2f): %s.", r.Name(), strings.ReplaceAll(r.Class, "_", " but "), r.Useful, r.Bad, r.Gone, strings.Join(terms, ", "))
	if len(d.What.Flips) > 0 {
		text += " Without one of these the action would be another: " + strings.Join(d.What.Flips, ", ") + "."
	}
	return text
}

func abs(x float64) float64 { return max(x, -x) }
