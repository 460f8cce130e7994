package forensics

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"testing"

	"ghostbot/forensics/finding"
	"ghostbot/forensics/trace/tracetest"
)

// clockScenarios have a clock that is set in the middle.
func clockScenarios() []scenario {
	return []scenario{{"clock-step", func(w *world) {
		l := w.link(40000, 80).open(0)
		at, off := 21.0, 0.0
		for i := range 60 {
			if i == 30 {
				off = -5000
			}
			l.c(at+off, "A", 100)
			l.s(at+off+20, "A", 100)
			at += 40
		}
	}}}
}

// stepped sets the clock of a classic capture forward by ms, from a share of its packets on.
func stepped(raw []byte, share float64, ms int64) []byte {
	raw = slices.Clone(raw)
	var at []int
	for p := 24; p < len(raw); p += 16 + int(binary.LittleEndian.Uint32(raw[p+8:])) {
		at = append(at, p)
	}
	for _, p := range at[int(float64(len(at))*share):] {
		us := int64(binary.LittleEndian.Uint32(raw[p:]))*1e6 + int64(binary.LittleEndian.Uint32(raw[p+4:])) + ms*1000
		binary.LittleEndian.PutUint32(raw[p:], uint32(us/1e6))
		binary.LittleEndian.PutUint32(raw[p+4:], uint32(us%1e6))
	}
	return raw
}

// TestStep: a capture says the same with a clock that was set in the middle as without, but for a
// remark; and when it can be read only once, the remark says what is wrong.
func TestStep(t *testing.T) {
	for _, name := range []string{"gen__healthy_bulk_b__client.pcap", "gen__loss_5pct_up_b__server.pcap", "gen__healthy_ipv6_a__client.pcap", "gen__delay_spike_a__server.pcap",
		"gen__bufferbloat_a__client.pcap"} {
		raw := tracetest.Raw(t, name)
		want := look(t, bytes.NewReader(raw))
		for _, share := range []float64{0.3, 0.5, 0.8} {
			for _, ms := range []int64{30_000, -30_000, 1500, -400, 3_600_000} {
				got := look(t, bytes.NewReader(stepped(raw, share, ms)))
				i := slices.IndexFunc(got.Findings, func(f finding.Finding) bool { return f.Code == "clock-step" })
				witness := strings.Contains(name, "bulk") || strings.Contains(name, "loss") || strings.Contains(name, "bloat") // both ends send at that time
				if i < 0 {
					if witness {
						t.Errorf("%s from %.1f by %d ms: no remark", name, share, ms)
					}
				} else if f := got.Findings[i]; f.Severity != finding.Low || f.Limits != "" || len(f.Frames) != 1 {
					t.Errorf("%s: %+v", name, f)
				}
				rest := slices.DeleteFunc(slices.Clone(got.Findings), func(f finding.Finding) bool { return f.Code == "clock-step" })
				if !slices.EqualFunc(rest, want.Findings, func(a, b finding.Finding) bool { return a.Code == b.Code && a.Severity == b.Severity }) {
					t.Errorf("%s from %.1f by %d ms: %v, without it %v", name, share, ms, rest, want.Findings)
				}
				if d := got.Facts.Last - got.Facts.First - want.Facts.Last + want.Facts.First; i >= 0 && max(d, -d) > 100e6 {
					t.Errorf("%s from %.1f by %d ms: lasts %d ns longer", name, share, ms, d)
				}
			}
		}
	}
	raw := stepped(tracetest.Raw(t, "gen__healthy_bulk_b__client.pcap"), 0.5, 30_000)
	once := look(t, struct{ io.Reader }{bytes.NewReader(raw)})
	if i := slices.IndexFunc(once.Findings, func(f finding.Finding) bool { return f.Code == "clock-step" }); i < 0 || once.Findings[i].Limits == "" {
		t.Errorf("read once: %+v", once.Findings)
	}
}

func look(t *testing.T, r io.Reader) *Analysis {
	t.Helper()
	a, err := AnalyzeReader(context.Background(), r, 0, "capture", Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestClock: what a clock that is set does not make of a quiet connection.
func TestClock(t *testing.T) {
	a := analyse(t, clockScenarios()[0].play)
	if len(a.Findings) != 2 || a.Findings[1].Code != "healthy" || a.Facts.Last-a.Facts.First > 3e9 || a.Facts.TCP.RTT.Max > 30e6 {
		t.Errorf("%+v", a.Findings)
	}
	if s := a.Semantic(); s.Provenance.LastTime-s.Provenance.FirstTime < 3 || s.Summary.Duration < 3 { // as the packets have it
		t.Errorf("%+v %+v", s.Provenance, s.Summary)
	}
}
