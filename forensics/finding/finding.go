// Package finding turns what was counted into statements about the network.
package finding

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
		if i > 0 && equalFold(s, text) {
			return Severity(i), true
		}
	}
	return 0, false
}

func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i]|0x20 != b[i]|0x20 {
			return false
		}
	}
	return true
}

// Finding is one statement with its evidence.
type Finding struct {
	Severity   Severity `json:"severity"`
	Protocol   string   `json:"protocol"`
	Code       string   `json:"code"`
	Summary    string   `json:"summary"`
	Detail     string   `json:"detail"`
	Confirm    string   `json:"confirm,omitempty"` // what would confirm or refute it
	Frames     []uint32 `json:"frames"`
	Flow       string   `json:"flow,omitempty"`
	Confidence float64  `json:"confidence"`
}
