// Package statement is what rules say of a capture: a finding with its severity and
// evidence, and the words that findings share. It is a room of its own so that rules
// can live in several.
package statement

import (
	"fmt"
	"strings"
	"time"
)

// Severity orders findings.
type Severity uint8

// Severities. The zero value is no severity.
const (
	Info Severity = iota + 1
	Low
	Medium
	High
	Critical
)

var severities = [...]string{"", "INFO", "LOW", "MEDIUM", "HIGH", "CRITICAL"}

// String is the severity as the contract spells it.
func (s Severity) String() string { return severities[s] }

// MarshalText implements [encoding.TextMarshaler].
func (s Severity) MarshalText() ([]byte, error) { return []byte(severities[s]), nil }

// ParseSeverity reads a severity in either case.
func ParseSeverity(text string) (Severity, bool) {
	for i, s := range severities {
		if i > 0 && strings.EqualFold(s, text) {
			return Severity(i), true
		}
	}
	return 0, false
}

// Finding is one statement with its evidence.
type Finding struct {
	Severity   Severity `json:"severity"`
	Protocol   string   `json:"protocol"`
	Code       string   `json:"code"`
	Summary    string   `json:"summary"`
	Detail     string   `json:"detail"`
	Confirm    string   `json:"confirm,omitempty"` // what would confirm or refute it
	Limits     string   `json:"limits,omitempty"`  // what this capture cannot tell about it
	Frames     []uint32 `json:"frames"`
	Flow       string   `json:"flow,omitempty"`
	Confidence float64  `json:"confidence"`
}

// Duration writes nanoseconds for people.
func Duration(ns int64) string {
	switch d := time.Duration(ns); {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	case d > 0 && d < 10*time.Microsecond:
		return "less than 10µs"
	default:
		return d.Round(10 * time.Microsecond).String()
	}
}

// Plural writes a number with a noun.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// When chooses between two texts.
func When(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}
