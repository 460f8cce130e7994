package trace_test

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ghostbot/forensics/capture"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/trace"
	"ghostbot/forensics/trace/tracetest"
)

// read goes through a file with the product's reader.
func read(t *testing.T, path string) []trace.Packet {
	t.Helper()
	f, err := capture.Open(context.Background(), path, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []trace.Packet
	var d frame.Decoder
	var v frame.View
	var p capture.Packet
	for n := uint32(1); f.Next(&p) == nil; n++ {
		d.Decode(&p, &v)
		out = append(out, trace.FromView(n, p.Time, &v))
	}
	return out
}

// TestFromView compares records with those that gopacket's layers give, on the captures of the lab.
// Hashes are others: what is compared of them is which packets have equal ones.
func TestFromView(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/pcaps/gen__*.pcap")
	if len(files) == 0 {
		tracetest.Raw(t, "gen__pair_loss_b__client.pcap") // skips or fails
	}
	packets := 0
	for _, file := range files {
		if strings.Contains(file, "vxlan") || strings.Contains(file, "_any") { // gopacket's first IP layer is the outer one; cooked frames
			continue
		}
		got, want := read(t, file), tracetest.Load(t, filepath.Base(file))
		for i := range want { // gopacket reads no options of a header that is cut behind them
			if i < len(got) && want[i].Proto == trace.TCP && want[i].Options == 0 {
				want[i].Options, want[i].TSVal, want[i].TSEcr = got[i].Options, got[i].TSVal, got[i].TSEcr
			}
		}
		if d := cmp.Diff(want, got, cmpopts.IgnoreFields(trace.Packet{}, "Sum"), cmpopts.EquateComparable(netip.Addr{})); d != "" {
			t.Errorf("%s, gopacket (-) and ours (+):\n%.1500s", file, d)
			continue
		}
		ours, theirs := map[uint64]uint64{}, map[uint64]uint64{}
		for i := range got {
			if w, seen := ours[got[i].Sum]; seen && w != want[i].Sum {
				t.Errorf("%s: frame %d: equal sums for payloads that differ", file, got[i].Frame)
			}
			if g, seen := theirs[want[i].Sum]; seen && g != got[i].Sum {
				t.Errorf("%s: frame %d: sums that differ for equal payloads", file, got[i].Frame)
			}
			ours[got[i].Sum], theirs[want[i].Sum] = want[i].Sum, got[i].Sum
		}
		packets += len(got)
	}
	t.Logf("%d packets", packets)
}

// FuzzFromView takes any bytes for a frame; lengths must stay possible.
func FuzzFromView(f *testing.F) {
	for _, name := range []string{"gen__frag_ok_a__client.pcap", "gen__loss_ipv6_b__client.pcap", "gen__icmp_port_unreach_b__client.pcap"} {
		if raw, err := os.ReadFile(filepath.Join("../../../shared/pcaps", name)); err == nil {
			for at := 24; at+16 < len(raw) && at < 4000; {
				n := int(raw[at+8]) | int(raw[at+9])<<8
				f.Add(raw[at+16:min(at+16+n, len(raw))], uint16(n))
				at += 16 + n
			}
		}
	}
	f.Add([]byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, b []byte, wire uint16) {
		var d frame.Decoder
		var v frame.View
		d.Decode(&capture.Packet{Data: b, Wire: max(uint32(wire), uint32(len(b))), Link: 1}, &v)
		p := trace.FromView(1, 1, &v)
		if p.Len < 0 || p.Len > 1<<20 || p.Span() < 0 || !p.Src.IsValid() && (p.Proto != 0 || p.Size != 0) {
			t.Fatalf("%+v", p)
		}
	})
}
