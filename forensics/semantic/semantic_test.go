package semantic

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/forensics/capture"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding"
)

// file is a capture of raw IPv4 packets.
func file(packets ...[]byte) []byte {
	b := make([]byte, 24)
	binary.LittleEndian.PutUint32(b, 0xa1b2c3d4)
	binary.LittleEndian.PutUint32(b[16:], 100)
	binary.LittleEndian.PutUint32(b[20:], 101)
	for i, p := range packets {
		h := make([]byte, 16)
		binary.LittleEndian.PutUint32(h, 1_700_000_000)
		binary.LittleEndian.PutUint32(h[4:], uint32(i)*10_000)
		binary.LittleEndian.PutUint32(h[8:], uint32(len(p)))
		binary.LittleEndian.PutUint32(h[12:], uint32(len(p)))
		b = append(append(b, h...), p...)
	}
	return b
}

func packet(proto, from, to byte, l4 ...byte) []byte {
	b := []byte{0x45, 0, 0, byte(20 + len(l4)), 0, 1, 0, 0, 64, proto, 0, 0, 192, 0, 2, from, 192, 0, 2, to}
	return append(b, l4...)
}

func tcpSeg(from, to byte, sp, dp byte, flags byte, seq, ack byte) []byte {
	return packet(6, from, to, 0, sp, 0, dp, 0, 0, 0, seq, 0, 0, 0, ack, 0x50, flags, 0, 100, 0, 0, 0, 0)
}

func build(t *testing.T, b []byte, o Options) *Document {
	t.Helper()
	f, err := capture.New(context.Background(), bytes.NewReader(b), int64(len(b)), capture.Options{Hash: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fc, err := facts.Collect(context.Background(), f, facts.Options{Frames: o.Frames})
	if err != nil {
		t.Fatal(err)
	}
	fc.Name = "test.pcap"
	return Build(fc, finding.All(fc), o)
}

// keys are the members of a JSON object.
func keys(t *testing.T, v any) []string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(m))
}

// TestKeysOfTheSpecification pins the names that others read.
func TestKeysOfTheSpecification(t *testing.T) {
	d := build(t, file(
		tcpSeg(1, 2, 9, 80, 2, 1, 0), tcpSeg(2, 1, 80, 9, 0x12, 1, 2), tcpSeg(1, 2, 9, 80, 0x10, 2, 2),
		packet(1, 1, 2, 8, 0, 0, 0, 0, 1, 0, 1), packet(1, 2, 1, 0, 0, 8, 0, 0, 1, 0, 1),
		packet(17, 1, 2, append([]byte{0x10, 0, 0, 53, 0, 25, 0, 0}, "\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01"...)...),
	), Options{Frames: true})
	for _, tt := range []struct {
		name string
		v    any
		want string
	}{
		{"document", d, "capture_summary dns findings icmp provenance tcp udp"},
		{"capture_summary", d.Summary, "avg_packets_per_second duration_seconds file protocols_present total_packets"},
		{"connection_stats", d.TCP.Connections, "fin_teardowns handshake_success_rate_pct handshakes_completed rst_teardowns syn_ack_received syn_sent"},
		{"tcp", d.TCP, "ack_rtt_ms connection_stats duplicate_ack_total frames out_of_order_total retransmissions_total rst_count streams_total streams_with_issues streams_with_issues_total zero_window_total"},
		{"icmp", d.ICMP, "anomalies echo_pairs_matched echo_unmatched rtt_ms type_distribution"},
		{"dns", d.DNS, "dns_servers_queried latency_ms queries_total query_type_distribution rcode_distribution responses_total slow_queries top_queried_domains truncated_responses unanswered_queries"},
	} {
		if diff := cmp.Diff(strings.Fields(tt.want), keys(t, tt.v)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if c := d.TCP.Connections; c.Handshakes != 1 || c.Success != 100 {
		t.Errorf("%+v", c)
	}
	if len(d.TCP.Frames) != 16 {
		t.Errorf("%d lists of frames", len(d.TCP.Frames))
	}
	if d.ICMP.Matched != 1 || d.ICMP.Unmatched != 0 {
		t.Errorf("icmp %+v", d.ICMP)
	}
}

func TestProvenance(t *testing.T) {
	b := file(tcpSeg(1, 2, 9, 80, 2, 1, 0), tcpSeg(2, 1, 80, 9, 0x12, 1, 2))
	d := build(t, b[:len(b)-7], Options{Filter: "tcp"})
	p := d.Provenance
	if p.Packets != 1 || p.Error == "" || p.Skipped == 0 || len(p.SHA256) != 64 || p.Filter != "tcp" || p.SnapLen != 100 || p.Bytes != int64(len(b)-7) {
		t.Errorf("%+v", p)
	}
	empty := build(t, file(), Options{})
	if empty.Summary.Packets != 0 || empty.TCP != nil || empty.Findings[0].Code != "empty-capture" || len(empty.Provenance.Incomplete) == 0 {
		t.Errorf("%+v", empty)
	}
	unknown := build(t, file([]byte{0xff, 0xff}), Options{})
	if len(unknown.Provenance.Incomplete) == 0 {
		t.Error("nothing says that no protocol is known")
	}
}

func TestText(t *testing.T) {
	d := build(t, file(tcpSeg(1, 2, 9, 80, 2, 1, 0), tcpSeg(2, 1, 80, 9, 0x14, 0, 2)), Options{})
	d.Summary.File = "evil\x1b[2J.pcap"
	var out bytes.Buffer
	d.Text(&out, func(s string) string { return strings.ReplaceAll(s, "\x1b", "") })
	for _, want := range []string{"evil[2J.pcap: 2 packets", "HIGH     connection-refused: 192.0.2.2:80 refuses", "flow: 192.0.2.1:9 -> 192.0.2.2:80", "frames: 1 2", "to confirm: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
}

func TestListsAreCapped(t *testing.T) {
	var packets [][]byte
	for i := range 200 {
		packets = append(packets, tcpSeg(1, byte(i), 9, 80, 2, 1, 0), tcpSeg(byte(i), 1, 80, 9, 0x14, 0, 2))
	}
	d := build(t, file(packets...), Options{})
	if len(d.TCP.Issues) != maxList || d.TCP.IssuesTotal < 190 {
		t.Errorf("%d of %d streams are listed", len(d.TCP.Issues), d.TCP.IssuesTotal)
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{typeName(8): "echo_request", typeName(77): "type_77", type6Name(135): "neighbor_solicitation", Meaning(4): "Fragmentation needed",
		Meaning(200): "Code 200", Meaning6(1): "Communication administratively prohibited"} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := round(2.675, 2); got != 2.68 && got != 2.67 {
		t.Errorf("round: %v", got)
	}
}
