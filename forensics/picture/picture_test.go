package picture

import (
	"bytes"
	"image/png"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ghostbot/forensics/trace"
	"ghostbot/forensics/trace/tracetest"
)

// collect runs a capture of the regression data through a collector. Retransmissions are taken to be
// what was sent before, by sequence number.
func collect(t *testing.T, name string, req Request) *Collector {
	t.Helper()
	packets := tracetest.Load(t, name)
	req.File = name
	top, again := map[netip.AddrPort]uint32{}, map[int]bool{}
	for i := range packets {
		p := &packets[i]
		if p.Proto != trace.TCP || p.Span() == 0 {
			continue
		}
		d := netip.AddrPortFrom(p.Src, p.SrcPort)
		if last, known := top[d]; known && int32(p.Seq-last) < 0 {
			again[i] = true
		} else {
			top[d] = p.Seq + uint32(p.Span())
		}
	}
	if !req.Stream.A.IsValid() {
		for _, p := range packets {
			if p.Proto == trace.TCP {
				req.Stream, req.StreamName = Flow{trace.TCP, netip.AddrPortFrom(p.Src, p.SrcPort), netip.AddrPortFrom(p.Dst, p.DstPort)}, "stream 0"
			}
		}
	}
	c := New(req)
	for i := range packets {
		c.Add(&packets[i], Mark(b2i(again[i])), 0)
	}
	return c
}

// TestLook writes pictures to a directory that somebody names, to be looked at.
func TestLook(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("PICTURES names no directory")
	}
	for name, frame := range map[string]int{"gen__pair_loss_b__client.pcap": 92, "gen__syn_blackhole_a__client.pcap": 13, "gen__rst_injected_midbox_b__client.pcap": 7,
		"gen__bufferbloat_a__client.pcap": 5, "gen__zero_window_stall_a__server.pcap": 20, "gen__dns_timeout_b__client.pcap": 3, "gen__loss_burst_b__client.pcap": 60, "gen__half_open_b__client.pcap": 5} {
		if _, err := os.Stat(filepath.Join("../../../shared/pcaps", name)); err != nil {
			t.Log(err)
			continue
		}
		for _, p := range collect(t, name, Request{Frame: frame}).Pictures() {
			var b bytes.Buffer
			if err := p.PNG(&b); err != nil {
				t.Fatal(err)
			}
			if _, err := png.Decode(bytes.NewReader(b.Bytes())); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(name, ".pcap")+"_"+p.Name+".png"), b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
