// Package finding turns what was counted into statements about the network. Its rules
// about connections are here; those that look at one protocol alone live in rooms:
// hints (tunnels, generated names, damaged bits) and services (DHCP, QUIC, routers'
// advertisements, unanswered UDP).
package finding

import "ghostbot/forensics/finding/statement"

// Severity orders findings.
type Severity = statement.Severity

// Severities. The zero value is no severity.
const (
	Info     = statement.Info
	Low      = statement.Low
	Medium   = statement.Medium
	High     = statement.High
	Critical = statement.Critical
)

// ParseSeverity reads a severity in either case.
func ParseSeverity(text string) (Severity, bool) { return statement.ParseSeverity(text) }

// Finding is one statement with its evidence.
type Finding = statement.Finding

func ms(ns int64) string                    { return statement.Duration(ns) }
func plural(n int, one, many string) string { return statement.Plural(n, one, many) }
func when(b bool, yes, no string) string    { return statement.When(b, yes, no) }
