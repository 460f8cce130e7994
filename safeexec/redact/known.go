package redact

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"sort"
	"strings"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/words"
)

// minKnown is the length from which a known value is masked.
const minKnown = 6

// knownPrefix is how much of a known form the automaton matches; the rest is
// compared.
const knownPrefix = 8

// maxStarts is how many of them one automaton holds.
const maxStarts = words.MaxBytes / knownPrefix

// known finds the secrets of this process in all their forms.
type known struct {
	forms  []string           // sorted
	starts []string           // their first knownPrefix bytes, each once
	words  []*words.Automaton // of starts, maxStarts each
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
	for group := range slices.Chunk(k.starts, maxStarts) {
		k.words = append(k.words, words.New(group, true))
	}
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

// findKnown masks known values in the view.
func (s *scanner) findKnown() {
	k := s.known
	if k == nil {
		return
	}
	for g, group := range k.words {
		done := 0
		group.Each(s.T, func(w int32, end int) bool {
			p := k.starts[g*maxStarts+int(w)]
			if start := end - len(p); start >= done {
				if n := k.longest(p, s.T[start:]); n > 0 {
					s.Mask(start, start+n, scan.Known)
					done = start + n
				}
			}
			return true
		})
	}
}

// longest is the length of the longest form that t begins with, or of the
// beginning of one where something was cut off. start is what t begins with.
func (k *known) longest(start, t string) int {
	best := 0
	for i := sort.SearchStrings(k.forms, start); i < len(k.forms) && strings.HasPrefix(k.forms[i], start); i++ {
		n := common(k.forms[i], t)
		if n == len(k.forms[i]) || n >= knownPrefix && edge(t[n:]) {
			best = max(best, n)
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

// tail is the length of the longest end of a form that t begins with, of at
// least knownPrefix bytes.
func (k *known) tail(t string) int {
	best := 0
	for _, f := range k.forms {
		for at := len(f) - knownPrefix; at > 0 && len(t) >= knownPrefix; {
			at = strings.LastIndex(f[:at+knownPrefix], t[:knownPrefix])
			if at < 0 {
				break
			}
			if strings.HasPrefix(t, f[at:]) {
				best = max(best, len(f)-at)
			}
			at--
		}
	}
	return best
}
