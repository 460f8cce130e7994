package forensics

import (
	"context"
	"path/filepath"
	"testing"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/tcp"
)

// TestSumsOfConnections: what is said of connections sums up to what is said of the capture, verdict by verdict,
// where packets are cut too.
func TestSumsOfConnections(t *testing.T) {
	dir := corpus(t)
	for _, e := range index(t, dir) {
		a, err := Analyze(context.Background(), filepath.Join(dir, e.File), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var sum [tcp.Classes]uint64
		var bytes uint64
		f := a.Facts.TCP
		f.Table.All(func(_ uint32, _ *flow.Key, s *tcp.Stream) bool {
			bytes += s.Half[0].Bytes + s.Half[1].Bytes
			if d := f.Detail(s); d != nil {
				for c := range sum {
					sum[c] += uint64(d.Sum(tcp.Class(c)))
				}
			}
			return true
		})
		sum[tcp.Reset] = f.Count[tcp.Reset] // of some only the flags are captured
		if sum != f.Count || bytes != f.Total.Bytes {
			t.Errorf("%s: %v and %d bytes in connections, %v and %d in all", e.File, sum, bytes, f.Count, f.Total.Bytes)
		}
	}
}
