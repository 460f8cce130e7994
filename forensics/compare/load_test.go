package compare

import (
	"encoding/json"
	"testing"

	"ghostbot/forensics/trace"
	"ghostbot/forensics/trace/tracetest"
)

func load(t *testing.T, name string) []trace.Packet {
	t.Helper()
	return tracetest.Load(t, name)
}

// show prints a result for the log of a failing test.
func show(r *Result) string {
	b, _ := json.MarshalIndent(r, "", " ")
	return string(b)
}
