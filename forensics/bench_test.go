package forensics

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkAnalyze analyses the largest capture of the corpus, or the file that
// GHOST_BENCH_PCAP names.
func BenchmarkAnalyze(b *testing.B) {
	name := os.Getenv("GHOST_BENCH_PCAP")
	if name == "" {
		name = filepath.Join(corpus(b), "gen__healthy_bulk_b__client.pcap")
	}
	st, err := os.Stat(name)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(st.Size())
	b.ReportAllocs()
	for b.Loop() {
		a, err := Analyze(context.Background(), name, Options{})
		if err != nil {
			b.Fatal(err)
		}
		a.Semantic()
	}
}
