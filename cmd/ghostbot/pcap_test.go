package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ghostbot/cmd/ghostbot/pcap"
	"ghostbot/forensics/report"
	"ghostbot/internal/pcapgen"
)

// madeUp writes a capture of a profile and returns its path.
func madeUp(t *testing.T, dir, name, profile string, size int64) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := pcapgen.Write(&b, pcapgen.Options{Profile: profile, Size: size}); err != nil {
		t.Fatal(err)
	}
	return written(t, dir, name, b.Bytes())
}

func written(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// without copies a classic capture without every n-th packet that comes from an address.
func without(t *testing.T, dir, name, file string, from [4]byte, n int) (string, int) {
	t.Helper()
	in, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out, seen, gone := slices.Clone(in[:24]), 0, 0
	for in = in[24:]; len(in) >= 16; {
		size := 16 + int(binary.LittleEndian.Uint32(in[8:]))
		if bytes.Equal(in[16+26:16+30], from[:]) {
			if seen++; seen%n == 0 {
				gone++
				in = in[size:]
				continue
			}
		}
		out = append(out, in[:size]...)
		in = in[size:]
	}
	return written(t, dir, name, out), gone
}

// ghostbot runs a command line.
func ghostbot(t *testing.T, args ...string) (code int, out, log string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), &cli{in: strings.NewReader(""), out: &o, err: &e}, args)
	return code, o.String(), e.String()
}

func TestPcapWritesReports(t *testing.T) {
	dir := t.TempDir()
	file := madeUp(t, dir, "a b.pcap", "bulk", 4<<20)
	reports, plots, semantic := filepath.Join(dir, "out", "reports"), filepath.Join(dir, "out", "plots"), filepath.Join(dir, "out", "semantic")
	if err := os.MkdirAll(reports, 0o700); err != nil {
		t.Fatal(err)
	}
	elsewhere := written(t, dir, "elsewhere", []byte("keep"))
	if err := os.Symlink(elsewhere, filepath.Join(reports, "a b_forensic_report.md")); err != nil {
		t.Fatal(err)
	}
	code, out, log := ghostbot(t, "pcap", file, "--report-dir", reports, "--plots", plots, "--semantic-dir", semantic, "--json")
	if code != 0 || !json.Valid([]byte(out)) {
		t.Fatalf("exit %d: %s", code, log)
	}
	md := content(t, filepath.Join(reports, "a b_forensic_report.md"))
	for _, want := range []string{"# Forensic report: a b.pcap", "## Executive Summary", "## Anomaly Table", "## Root Cause Analysis", "## Remediation", "](../plots/a%20b_throughput.png)", "](../plots/a%20b_sequence.png)"} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in\n%s", want, md)
		}
	}
	for _, m := range regexp.MustCompile(`\]\((.*?\.png)\)`).FindAllStringSubmatch(md, -1) {
		picture := content(t, filepath.Join(reports, strings.ReplaceAll(m[1], "%20", " ")))
		if _, err := png.Decode(strings.NewReader(picture)); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
	if content(t, elsewhere) != "keep" {
		t.Error("a link was followed")
	}
	if n := strings.Count(content(t, filepath.Join(reports, "a b_executive_summary.md")), "\n"); n > 50 {
		t.Errorf("executive summary of %d lines", n)
	}
	if s := content(t, filepath.Join(semantic, "a b_semantic.json")); !json.Valid([]byte(s)) || report.Tokens([]byte(s)) > report.MaxTokens {
		t.Errorf("semantic JSON of %d tokens", report.Tokens([]byte(s)))
	}
	left, _ := filepath.Glob(filepath.Join(dir, "out", "*", ".ghostbot-*"))
	info, err := os.Stat(filepath.Join(reports, "a b_forensic_report.md"))
	if err != nil || info.Mode() != 0o600 || len(left) > 0 {
		t.Errorf("mode %v, left %v, %v", info.Mode(), left, err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPcapComparesEndpoints(t *testing.T) {
	dir := t.TempDir()
	a := madeUp(t, dir, "a.pcap", "bulk", 2<<20)
	b, gone := without(t, dir, "b.pcap", a, [4]byte{10, 1, 0, 3}, 40)
	code, out, log := ghostbot(t, "pcap", a, "--compare", b, "--mode", "endpoints", "--json", "--no-hash", "--report-dir", dir)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, log)
	}
	var got pcap.Comparison
	if err := json.Unmarshal([]byte(out), &struct {
		Endpoints any `json:"endpoints"`
		Documents any `json:"documents"`
	}{&got.Endpoints, nil}); err != nil {
		t.Fatal(err)
	}
	r := got.Endpoints
	if lost := r.AToB.Lost + r.BToA.Lost; lost != gone || gone == 0 || r.Verdict.Code != "packet-loss" || r.Verdict.Severity != "HIGH" || r.A.File != "a.pcap" || r.B.File != "b.pcap" {
		t.Errorf("%d lost of %d: %+v", lost, gone, r.Verdict)
	}
	if md := content(t, filepath.Join(dir, "a_vs_b_comparison.md")); !strings.Contains(md, "**PARTIAL DROP**") {
		t.Errorf("%s", md)
	}
	if code, _, _ := ghostbot(t, "pcap", a, "--compare", b, "--mode", "endpoints", "--fail-on", "high"); code != 1 {
		t.Errorf("--fail-on high: exit %d", code)
	}
	if code, out, _ := ghostbot(t, "pcap", a, "--compare", a, "--mode", "endpoints", "--fail-on", "low"); code != 0 || !strings.Contains(out, "**CLEAN PATH**") {
		t.Errorf("the same capture: exit %d\n%s", code, out)
	}
}

func TestPcapComparesWithBaseline(t *testing.T) {
	dir := t.TempDir()
	a, b := madeUp(t, dir, "a.pcap", "small", 1<<20), madeUp(t, dir, "b.pcap", "flows", 1<<20)
	code, out, log := ghostbot(t, "pcap", "--compare", a, a, "--mode", "baseline")
	if code != 0 || !strings.Contains(out, "**STABLE**") {
		t.Errorf("exit %d: %s%s", code, out, log)
	}
	code, out, _ = ghostbot(t, "pcap", a, "--compare", b, "--mode=baseline", "--json", "--fail-on", "medium")
	var got struct{ Baseline struct{ Verdict string } }
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 1 || got.Baseline.Verdict != "REGRESSION" {
		t.Errorf("exit %d, %v: %.300s", code, err, out)
	}
}

func TestPcapReportRefuses(t *testing.T) {
	dir := t.TempDir()
	a := madeUp(t, dir, "a.pcap", "small", 64<<10)
	none := filepath.Join(dir, "none.pcap")
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{a, "--mode", "endpoints"}, 10, "-mode wants -compare"},
		{[]string{a, "--compare", a}, 10, `invalid value "" for flag -mode (accepted: endpoints baseline)`},
		{[]string{a, "--compare", a, "--mode", "temporal"}, 10, `invalid value "temporal"`},
		{[]string{a, a, "--compare", a, "--mode", "baseline"}, 10, "wants one capture file beside it, not 2"},
		{[]string{a, "--compare", a, "--mode", "baseline", "--plots", dir}, 10, "-plots draws one capture"},
		{[]string{a, "--compare", none, "--mode", "endpoints"}, 10, "none.pcap: no such file"},
		{[]string{none, "--compare", a, "--mode", "endpoints"}, 10, "none.pcap: no such file"},
		{[]string{a, "--report-dir", a}, 3, "not a directory"},
		{[]string{a, "--semantic-dir", filepath.Join(a, "x")}, 3, "not a directory"},
		{[]string{a, "--plots", a}, 3, "not a directory"},
	} {
		code, _, log := ghostbot(t, append([]string{"pcap"}, tt.args...)...)
		if first, _, _ := strings.Cut(log, "\n"); code != tt.code || !strings.Contains(first, tt.want) {
			t.Errorf("%v: exit %d, want %d: %s", tt.args, code, tt.code, log)
		}
	}
}
