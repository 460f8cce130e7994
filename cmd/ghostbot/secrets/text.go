package secrets

import (
	"fmt"
	"io"
)

// Text is a value that never appears in logs, errors or doctor output.
type Text string

// String masks the value.
func (s Text) String() string {
	if s == "" {
		return "(not set)"
	}
	return "(set)"
}

// GoString masks the value in %#v.
func (s Text) GoString() string { return s.String() }

// Format masks the value whatever the verb is.
func (s Text) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalText masks the value in JSON and logs.
func (s Text) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
