package rules_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ghostbot/agent/playbook/rules"
	"ghostbot/agent/playbook/symptom"
)

// vocabulary is every string literal of packages place and behind: the facts it can learn,
// the static words, the readers and the {parts} of sentences.
func vocabulary(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	files, err := filepath.Glob("../place/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("package place is not where it was")
	}
	more, _ := filepath.Glob("../behind/*.go")
	files = append(files, more...)
	for _, room := range []string{"hear", "phrase"} {
		more, _ = filepath.Glob("../" + room + "/*.go")
		files = append(files, more...)
	}
	literal := regexp.MustCompile(`"([a-z0-9-]+)"`)
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range literal.FindAllStringSubmatch(string(raw), -1) {
			out[m[1]] = true
		}
	}
	return out
}

// conditions are all lines of facts in the tables, with where they stand.
func conditions() map[string]string {
	out := map[string]string{}
	for _, s := range slices.Concat(rules.Ladder, rules.Optional, rules.AfterDenial) {
		for _, w := range s.When {
			out[w] = "step " + s.Ask
		}
	}
	for _, r := range rules.All {
		for _, c := range r.Confirm {
			out[c.When] = "rule " + r.Name
		}
		for _, w := range r.Refute {
			out[w] = "rule " + r.Name
		}
	}
	for _, o := range rules.Openings {
		for _, s := range o.Rules {
			out[s.Needs] = "opening " + string(o.Kind)
		}
	}
	return out
}

// TestWords: every word of a condition is one that can hold. A typing error in a
// table would otherwise be a rule that never fires.
func TestWords(t *testing.T) {
	known := vocabulary(t)
	kinds := map[string]bool{}
	for _, k := range []symptom.Kind{symptom.Error, symptom.Refused, symptom.Silent, symptom.Reset, symptom.Slow, symptom.Name, symptom.Certificate, symptom.Overload, symptom.Path, symptom.Redirect, symptom.Auth} {
		kinds[string(k)] = true
	}
	for c, where := range conditions() {
		if strings.TrimSpace(c) == "" {
			t.Errorf("%s has an empty condition", where)
		}
		for _, w := range strings.Fields(c) {
			w = strings.TrimPrefix(w, "!")
			kind, about := strings.CutPrefix(w, "about-")
			probe, without := strings.CutPrefix(w, "without-")
			denied, refused := strings.CutPrefix(w, "denied-")
			switch {
			case about && kinds[kind], without && rules.ProbeNamed(probe).Name != "", refused && rules.ProbeNamed(denied).Name != "":
			case about, without, refused, !known[w]:
				t.Errorf("%s: nothing makes %q hold", where, w)
			}
		}
	}
}

// TestProbes: the parts of every probe exist, and what stands in for another one
// reads the same kind of thing.
func TestProbes(t *testing.T) {
	known := vocabulary(t)
	seen := map[string]bool{}
	for _, p := range rules.Probes {
		if seen[p.Name] || p.Name == "" || p.Tool == "" || p.Args == "" || p.Why == "" || p.Effect == "" {
			t.Errorf("probe %q is double or incomplete", p.Name)
		}
		seen[p.Name] = true
		if !known[p.Reader] {
			t.Errorf("probe %s: no reader %q", p.Name, p.Reader)
		}
		if p.Instead != "" && rules.ProbeNamed(p.Instead).Name == "" {
			t.Errorf("probe %s: no probe %q", p.Name, p.Instead)
		}
		for n, at := 0, p; at.Instead != ""; n++ {
			if at = rules.ProbeNamed(at.Instead); n > 5 {
				t.Fatalf("probe %s: its substitutes go in a circle", p.Name)
			}
		}
		if strings.ContainsAny(p.Args, "'\"`$;|&<>\\") {
			t.Errorf("probe %s: arguments must be plain words: %s", p.Name, p.Args)
		}
		for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(p.Args, -1) {
			if m[1] != "writeout" && m[1] != "sni" && !known[m[1]] {
				t.Errorf("probe %s: no part %q", p.Name, m[0])
			}
		}
		if p.Repeat > 1 && !slices.ContainsFunc(rules.Probes, func(q rules.Probe) bool {
			return q.Args == p.Args && q.Tool == p.Tool && max(q.Repeat, 1) == p.Repeat-1
		}) {
			t.Errorf("probe %s repeats what is not asked a first time", p.Name)
		}
	}
	for _, s := range slices.Concat(rules.Ladder, rules.Optional, rules.AfterDenial) {
		if !seen[s.Ask] {
			t.Errorf("step asks %q, which is no probe", s.Ask)
		}
	}
}

// TestRisky: what needs an approval is optional and nowhere on the ladder, and
// what replaces it after a denial needs none.
func TestRisky(t *testing.T) {
	for _, s := range slices.Concat(rules.Ladder, rules.AfterDenial) {
		if rules.ProbeNamed(s.Ask).Risky {
			t.Errorf("%s is RISKY and not optional", s.Ask)
		}
	}
	for _, s := range rules.Optional {
		p := rules.ProbeNamed(s.Ask)
		if !p.Risky || p.Instead != "" && rules.ProbeNamed(p.Instead).Risky {
			t.Errorf("%s: RISKY %v, instead %q", s.Ask, p.Risky, p.Instead)
		}
	}
}

// TestRules: every rule says what a reader of the report needs.
func TestRules(t *testing.T) {
	known := vocabulary(t)
	part := regexp.MustCompile(`\{(\w+)\}`)
	seen := map[string]bool{}
	for _, r := range rules.All {
		if seen[r.Name] || len("H9-"+r.Name) > 32 || r.Says == "" || len(r.Confirm) == 0 || len(r.Refute) == 0 {
			t.Errorf("rule %q is double or incomplete", r.Name)
		}
		seen[r.Name] = true
		texts := []string{r.Says}
		for _, c := range r.Confirm {
			if !slices.Contains([]string{"high", "medium", "low"}, c.Sure) {
				t.Errorf("rule %s, %s: sure %q", r.Name, c.When, c.Sure)
			}
			if len(c.Do) == 0 && !strings.Contains(c.When, "behind-failed") {
				t.Errorf("rule %s, %s: nothing to do", r.Name, c.When)
			}
			if strings.HasSuffix(c.Cause, ".") || len(c.Cause) < 15 {
				t.Errorf("rule %s: cause %q", r.Name, c.Cause)
			}
			texts = append(append(texts, c.Cause), c.Do...)
		}
		for _, s := range texts {
			for _, m := range part.FindAllStringSubmatch(s, -1) {
				if !known[m[1]] {
					t.Errorf("rule %s: no part %s in %q", r.Name, m[0], s)
				}
			}
		}
	}
}

// TestActions: an action that changes something says how to undo it, and one at
// least of each cause says how to see that it helped.
func TestActions(t *testing.T) {
	for _, r := range rules.All {
		for _, c := range r.Confirm {
			all := strings.Join(c.Do, " ")
			if len(c.Do) > 0 && c.Sure != "low" && !strings.Contains(all, "Verify: ") && !strings.Contains(all, "verify") {
				t.Errorf("rule %s, %s: no way to verify in %q", r.Name, c.When, all)
			}
			for _, d := range c.Do {
				changes := regexp.MustCompile(`^(Start|Add|Install|Remove|Raise|Switch|Let|Allow)\b`).MatchString(d)
				if changes && !strings.Contains(d, "(undo: ") {
					t.Errorf("rule %s: no way back in %q", r.Name, d)
				}
			}
		}
	}
}

// TestOpenings: a symptom of any kind starts with two to four hypotheses at an
// ordinary place.
func TestOpenings(t *testing.T) {
	seen := map[symptom.Kind]bool{}
	for _, o := range rules.Openings {
		if seen[o.Kind] {
			t.Errorf("kind %q is there twice", o.Kind)
		}
		seen[o.Kind] = true
		if len(o.Rules) < 2 {
			t.Errorf("kind %q starts with %d hypotheses", o.Kind, len(o.Rules))
		}
		for _, s := range o.Rules {
			if rules.Named(s.Rule) == nil {
				t.Errorf("kind %q: no rule %q", o.Kind, s.Rule)
			}
		}
	}
	if last := rules.Openings[len(rules.Openings)-1]; last.Kind != symptom.Unknown {
		t.Errorf("the last opening is for %q; it must be the one for texts without known words", last.Kind)
	}
	if rules.Named("no such rule") != nil || rules.ProbeNamed("no such probe").Name != "" {
		t.Error("look-ups of what is not there")
	}
}
