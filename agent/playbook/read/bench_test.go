package read_test

import (
	"strings"
	"testing"

	"ghostbot/agent/playbook/read"
)

// BenchmarkConnectLong reads as much as the gate lets through, without a word
// that is known.
func BenchmarkConnectLong(b *testing.B) {
	o := read.Output{Stderr: strings.Repeat("the quick brown fox jumps over the lazy dog\n", 360), Exit: 1}
	b.SetBytes(int64(len(o.Stderr)))
	for b.Loop() {
		read.Connect(o)
	}
}
