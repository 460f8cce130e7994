package redact

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"sort"
	"strings"
)

// minKnown is the length from which a known value is masked.
const minKnown = 6

// knownPrefix is how much of a known form the automaton matches; the rest is
// compared.
const knownPrefix = 8

// known finds the secrets of this process in all their forms.
type known struct {
	forms  []string // sorted
	starts []string // their first knownPrefix bytes, each once
	words  *automaton
}

// newKnown prepares values; nil when there are none.
func newKnown(values []string) *known {
	set := map[string]bool{}
	for _, v := range values {
		if len(v) < minKnown {
			continue
		}
		for _, f := range formsOf(v) {
			if len(f) >= minKnown {
				set[f] = true
			}
		}
	}
	if len(set) == 0 {
		return nil
	}
	k := &known{}
	seen := map[string]bool{}
	for f := range set {
		k.forms = append(k.forms, f)
	}
	sort.Strings(k.forms)
	for _, f := range k.forms {
		if p := f[:min(len(f), knownPrefix)]; !seen[p] {
			seen[p] = true
			k.starts = append(k.starts, p)
		}
	}
	k.words = newAutomaton(k.starts, true)
	return k
}

// formsOf are the ways in which a value may be written: as it is, in base64 at
// each of the three places it can have in a longer text, in hexadecimal, with
// percent escapes. Backslash escapes are undone by the views.
func formsOf(v string) []string {
	forms := []string{v, url.QueryEscape(v), url.PathEscape(v), hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v)))}
	for shift := range 3 {
		raw := []byte(strings.Repeat("\x00", shift) + v)
		whole := len(raw) - len(raw)%3 // the last group depends on what follows
		from := (shift*4 + 2) / 3      // so does the first
		if whole <= shift {
			continue
		}
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			if f := e.EncodeToString(raw[:whole]); len(f) > from {
				forms = append(forms, f[from:])
			}
		}
	}
	return forms
}

// known masks known values in the view.
func (s *scanner) known() {
	k := s.f.known
	if k == nil {
		return
	}
	done := 0
	k.words.each(s.t, func(w int32, end int) bool {
		start := end - len(k.starts[w])
		if start < done {
			return true
		}
		if n := k.longest(s.t[start:]); n > 0 {
			s.mask(start, start+n, catKnown)
			done = start + n
		}
		return true
	})
}

// longest is the length of the longest form that t begins with, or of the
// piece of one that t ends with where something was cut off.
func (k *known) longest(t string) int {
	i := sort.SearchStrings(k.forms, t[:min(len(t), knownPrefix)])
	if i > 0 {
		i--
	}
	best := 0
	for ; i < len(k.forms); i++ {
		f := k.forms[i]
		n := common(f, t)
		if n == len(f) {
			best = max(best, n)
		} else if n >= knownPrefix && edge(t[n:]) {
			best = max(best, n)
		}
		if n == 0 && f > t[:min(len(t), knownPrefix)] {
			break
		}
	}
	return best
}

func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// edge says whether t begins with what a truncation leaves, or is at its end.
func edge(t string) bool {
	return t == "" || strings.HasPrefix(t, "[truncated") || strings.HasPrefix(t, "...") || strings.HasPrefix(t, "…") || strings.HasPrefix(t, "\n[truncated") || strings.HasPrefix(t, "[...]")
}
