package pcapgen

import (
	"bufio"
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTshark lets tshark judge captures: it must see the planted faults, each as what it is, and
// nothing else.
func TestTshark(t *testing.T) {
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Skip("tshark is not installed")
	}
	for _, tt := range []struct {
		profile string
		size    int64
		want    func(Stats) map[string]int64
	}{
		{"bulk", 12 << 20, func(s Stats) map[string]int64 {
			return map[string]int64{"duplicate_ack": s.DuplicateACKs, "lost_segment": s.Lost + s.Late, "out_of_order": s.Late,
				"fast_retransmission": s.Lost, "retransmission": s.Lost}
		}},
		{"flows", 8 << 20, func(s Stats) map[string]int64 {
			return map[string]int64{"retransmission": s.Resent, "flags.reset": s.Refused}
		}},
		{"small", 2 << 20, func(s Stats) map[string]int64 {
			return map[string]int64{"retransmission": s.Resent}
		}},
	} {
		t.Run(tt.profile, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x.pcap")
			b, st := generate(t, Options{tt.profile, tt.size, 0})
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			want := tt.want(st)
			want["streams"], want["queries without answer"] = st.Connections, st.QueriesUnanswered
			want["echoes"], want["echoes without reply"] = st.Echoes, st.EchoesUnanswered
			maps.DeleteFunc(want, zero)
			if d := cmp.Diff(want, verdicts(t, file)); d != "" {
				t.Errorf("planted (-) and seen by tshark (+):\n%s", d)
			}
		})
	}
}

// verdicts counts what tshark says in one pass.
func verdicts(t *testing.T, file string) map[string]int64 {
	t.Helper()
	fields := []string{"tcp.stream", "icmp.type", "icmp.resp_to", "dns.flags.response", "tcp.flags.reset", "ip.checksum.status", "tcp.checksum.status",
		"udp.checksum.status", "icmp.checksum.status", "_ws.malformed"}
	flags := []string{"retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "duplicate_ack", "lost_segment", "ack_lost_segment",
		"window_update", "window_full", "zero_window", "keep_alive", "keep_alive_ack", "reused_ports"}
	args := []string{"-n", "-r", file, "-T", "fields", "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	for _, f := range flags {
		args = append(args, "-e", "tcp.analysis."+f)
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	streams := map[string]bool{}
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		c := strings.Split(sc.Text(), "\t")
		if c[0] != "" && !streams[c[0]] {
			streams[c[0]] = true
			got["streams"]++
		}
		tally(got, c[:len(fields)])
		for i, f := range flags {
			if c[len(fields)+i] != "" {
				got[f]++
			}
		}
	}
	maps.DeleteFunc(got, zero)
	return got
}

func zero(_ string, n int64) bool { return n == 0 }

// tally counts one row of fields.
func tally(got map[string]int64, c []string) {
	switch {
	case c[1] == "8":
		got["echoes"]++
		got["echoes without reply"]++
	case c[2] != "":
		got["echoes without reply"]--
	}
	switch c[3] {
	case "0":
		got["queries without answer"]++
	case "1":
		got["queries without answer"]--
	}
	if c[4] == "1" {
		got["flags.reset"]++
	}
	for _, status := range c[5:9] {
		if status != "" && status != "1" {
			got["bad checksum"]++
		}
	}
	if c[9] != "" {
		got["malformed"]++
	}
}
