package main

import (
	"strings"

	"ghostbot/agent/playbook/symptom"
)

// aboutTheSame reports whether two symptoms are about the same thing: they name the
// same target, or, when one of them names none, say the same in other case, spacing
// or punctuation.
func aboutTheSame(a, b string) bool {
	x, y := symptom.Parse(a), symptom.Parse(b)
	if len(x.Targets) == 0 || len(y.Targets) == 0 {
		return plainWords(a) == plainWords(b) && plainWords(a) != ""
	}
	for _, s := range x.Targets {
		for _, t := range y.Targets {
			if sameTarget(s, t) {
				return true
			}
		}
	}
	return false
}

// sameTarget compares host and port; a port that a text does not say is any.
func sameTarget(a, b symptom.Endpoint) bool {
	return strings.EqualFold(a.Host, b.Host) && (a.Port == b.Port || a.Port == 0 || b.Port == 0)
}

func plainWords(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return strings.ContainsRune(" \t\n.,;:!?\"'()", r)
	}), " ")
}
