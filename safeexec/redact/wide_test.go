package redact

import (
	"strings"
	"testing"
)

// Gaps wider than what is skipped at once break nothing, wherever they stand.
func TestWideGaps(t *testing.T) {
	r := New(Options{})
	for _, f := range append(append([]family{}, templates...), secondTemplates...) {
		for _, text := range f.texts {
			for _, gap := range []string{strings.Repeat(" ", 210), strings.Repeat("\t", 300), strings.Repeat("\n", 70), strings.Repeat(" \n", 70)} {
				for _, in := range []string{strings.ReplaceAll(text, " ", gap), strings.ReplaceAll(text, ": ", ":"+gap), text + gap, gap + text, strings.ReplaceAll(text, "=", "="+gap), strings.ReplaceAll(text, "\n", gap)} {
					if _, err := r.RedactFor(in, ""); err != nil {
						t.Fatalf("%.60q: %v", in, err)
					}
				}
				if words := strings.Fields(text); len(words) > 0 {
					for n := range words {
						if _, err := r.RedactFor(strings.Join(words[:n+1], " ")+gap, ""); err != nil {
							t.Fatalf("%q and a gap: %v", words[:n+1], err)
						}
					}
				}
			}
		}
	}
	for _, tr := range triggers {
		for _, gap := range []string{strings.Repeat(" ", 210), strings.Repeat(" ", 5000), strings.Repeat("\n", 200), "", " ", "\r", "\\", "\"", "'", "=", ":", "<", "[", "{", "(", "|", "/"} {
			for _, in := range []string{tr.word + gap, tr.word + ":" + gap, tr.word + "=" + gap, tr.word + " " + gap, gap + tr.word, tr.word + gap + tr.word, tr.word + "\n" + gap} {
				if _, err := r.RedactFor(in, ""); err != nil {
					t.Fatalf("%q, %d of %.1q: %v", tr.word, len(gap), gap, err)
				}
			}
		}
	}
}
