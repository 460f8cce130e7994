package symptom_test

import (
	"strings"
	"testing"

	"ghostbot/agent/playbook/symptom"
)

// BenchmarkParseLong is the worst text that people paste: as long as is read,
// every line with an address and an error.
func BenchmarkParseLong(b *testing.B) {
	text := strings.Repeat(`2026/03/14 10:41:02 [error] connect() failed (111: Connection refused) while connecting to upstream: "http://127.0.0.1:18081/pay"`+"\n", 130)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		symptom.Parse(text)
	}
}

// BenchmarkParseShort is what people type.
func BenchmarkParseShort(b *testing.B) {
	for b.Loop() {
		symptom.Parse("checkout gets 502 from 127.0.0.1:18080 since 10:40")
	}
}
