package report

import (
	"fmt"
	"strings"
	"testing"

	"ghostbot/forensics/compare"
	"ghostbot/forensics/compare/baseline"
	"ghostbot/forensics/compare/clock"
)

// TestFigures: each block that a capture has makes its rows, and none that it does not have.
func TestFigures(t *testing.T) {
	for _, tt := range []struct {
		name, json string
		want, not  []string
	}{
		{"nothing", `{}`, []string{"| packets | 0 |"}, []string{"TCP", "DNS", "echo", "ARP", "TLS", "HTTP"}},
		{"TCP", `{"tcp":{"streams_total":3,"retransmissions_total":4,"duplicate_ack_total":5,"out_of_order_total":6,"rst_count":7,"zero_window_total":8,
			"ack_rtt_ms":{"min":1,"median":2,"p95":3,"max":4.567},"connection_stats":{"syn_sent":9,"handshakes_completed":8,"handshake_success_rate_pct":88.9}}}`,
			[]string{"| TCP streams | 3 |", "| handshakes | 8 of 9 SYN (88.9 %) |", "| retransmissions, duplicate ACKs, out of order | 4, 5, 6 |", "| resets, zero windows | 7, 8 |",
				"| round-trip time of ACKs | min 1.00 ms, median 2.00 ms, p95 3.00 ms, max 4.57 ms |"}, []string{"DNS", "echo"}},
		{"DNS", `{"dns":{"queries_total":3,"responses_total":2,"unanswered_queries":1,"latency_ms":{"median":7}}}`,
			[]string{"| DNS queries, responses, unanswered | 3, 2, 1 |", "| DNS latency | min under 0.01 ms, median 7.00 ms, p95 under 0.01 ms, max under 0.01 ms |"}, []string{"TCP"}},
		{"echo", `{"icmp":{"echo_pairs_matched":3,"echo_unmatched":1,"rtt_ms":{"max":9}}}`, []string{"| echo requests answered, not answered | 3, 1 |", "max 9.00"}, nil},
		{"ICMP without echo", `{"icmp":{"echo_pairs_matched":0,"echo_unmatched":0}}`, nil, []string{"echo"}},
		{"ARP", `{"arp":{"total_requests":5,"total_replies":4,"unanswered_requests":[{"ip":"192.0.2.1","count":1}]}}`, []string{"| ARP requests, replies, addresses without answer | 5, 4, 1 |"}, nil},
		{"TLS", `{"tls":{"client_hellos":5,"server_hellos":4,"alerts":{"unknown_ca":1}}}`, []string{"| TLS client hellos, server hellos, kinds of alerts | 5, 4, 1 |"}, nil},
		{"HTTP", `{"http":{"status":{"200":5},"response_time_ms":{"p95":44}}}`, []string{"| HTTP response time | min under 0.01 ms, median under 0.01 ms, p95 44.00 ms, max under 0.01 ms |"}, nil},
	} {
		var b strings.Builder
		parse(t, tt.json).figures(&b)
		for _, want := range tt.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: no %q in\n%s", tt.name, want, b.String())
			}
		}
		for _, not := range tt.not {
			if strings.Contains(b.String(), not) {
				t.Errorf("%s: %q in\n%s", tt.name, not, b.String())
			}
		}
	}
}

// TestLimits: what a reader has to know is said, and what does not apply is not.
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		json string
		want []string
	}{
		{`{"provenance":{"sha256":"ab"}}`, []string{"One capture point sees"}},
		{`{"provenance":{}}`, []string{"No digest", "One capture point sees"}},
		{`{"provenance":{"sha256":"ab","error":"cut. "}}`, []string{"cut.", "One capture point sees"}},
		{`{"provenance":{"sha256":"ab","bytes_skipped":1}}`, []string{"1 byte of the file", "One capture point sees"}},
		{`{"provenance":{"sha256":"ab","packets_cut_by_snap_length":1,"snap_length":64}}`, []string{"1 packet cut by the snap length of 64 bytes", "One capture point sees"}},
		{`{"provenance":{"sha256":"ab","incomplete":["a","b."]}}`, []string{"a.", "b.", "One capture point sees"}},
	} {
		got := parse(t, tt.json).limits()
		if len(got) != len(tt.want) {
			t.Errorf("%s: %q", tt.json, got)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], tt.want[i]) {
				t.Errorf("%s: %q, want %q", tt.json, got[i], tt.want[i])
			}
		}
	}
}

// TestSentences is the executive summary for what a first finding can look like.
func TestSentences(t *testing.T) {
	for _, tt := range []struct {
		name, json string
		want       []string
	}{
		{"unknown code", `{"findings":[{"severity":"CRITICAL","code":"brand-new","summary":"S.","frames":[1]}]}`, []string{"**brand new**: S.", "Severity CRITICAL, frames 1."}},
		{"certain", `{"findings":[{"severity":"HIGH","code":"packet-loss","summary":"S","frames":[1,2,3,4,5],"confidence":0.95}]}`,
			[]string{"**Packets are lost**: S.", "This is as good as certain (severity HIGH, frames 1, 2, 3 and 2 more)."}},
		{"only LOW", `{"findings":[{"severity":"LOW","code":"port-reuse","summary":"S"}]}`, []string{"**Healthy**", "listed below for completeness: 1 finding."}},
		{"no repetition", `{"tcp":{"streams_total":1},"findings":[{"severity":"HIGH","code":"slow-server","summary":"S"}]}`, []string{"loss on the path is no part of it"}},
		{"open windows", `{"tcp":{"streams_total":1,"retransmissions_total":2},"findings":[{"severity":"HIGH","code":"packet-loss","summary":"S"}]}`, []string{"no receiver closed its window"}},
		{"resolver", `{"dns":{"queries_total":2},"findings":[{"severity":"HIGH","code":"packet-loss","summary":"S"}]}`, []string{"every DNS query was answered"}},
		{"four", `{"findings":[{"severity":"HIGH","code":"packet-loss","summary":"S"},{"severity":"HIGH","code":"jitter","summary":"S"},{"severity":"HIGH","code":"jitter","summary":"S"},
			{"severity":"MEDIUM","code":"dns-slow","summary":"S"}]}`, []string{"Besides: delays vary; dns answers are slow."}},
	} {
		got := strings.Join(parse(t, tt.json).sentences(), " ")
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in %q", tt.name, want, got)
			}
		}
	}
}

// TestTable is bounded, and says so.
func TestTable(t *testing.T) {
	d := &Document{}
	for i := range maxRows + 7 {
		d.Findings = append(d.Findings, Finding{Severity: "LOW", Code: "jitter", Summary: fmt.Sprint("number ", i)})
	}
	var b strings.Builder
	d.table(&b)
	if got := strings.Count(b.String(), "\n| LOW"); got != maxRows || !strings.Contains(b.String(), "7 further findings are in the JSON.") {
		t.Errorf("%d rows\n%s", got, b.String()[b.Len()-200:])
	}
}

// TestChosen: each code is explained once, and no more than three.
func TestChosen(t *testing.T) {
	d := &Document{}
	for _, c := range []string{"a", "a", "b", "a", "c", "d"} {
		d.Findings = append(d.Findings, Finding{Severity: "MEDIUM", Code: c})
	}
	d.Findings = append([]Finding{{Severity: "INFO", Code: "z"}}, d.Findings...)
	got := ""
	for _, f := range d.chosen() {
		got += f.Code
	}
	if got != "abc" {
		t.Errorf("chosen %q", got)
	}
}

// TestMadeUpEndpoints writes a result in which everything occurs.
func TestMadeUpEndpoints(t *testing.T) {
	low, high := -3.0, 4.5
	r := &compare.Result{
		A: compare.Capture{File: "a_1.pcap", Matched: 12}, B: compare.Capture{File: "b.pcap"},
		Clock:       clock.Clock{OffsetMS: 1.25, LowMS: &low, HighMS: &high, DriftPPM: 20, DriftLowPPM: 10, DriftHighPPM: 30, Basis: "both directions", Samples: 12},
		AToB:        compare.Direction{Sent: 10, Delivered: 9, Lost: 1, LossPct: 10, Injected: 2},
		Flows:       []compare.Flow{{Direction: "b_to_a", Protocol: "UDP", Src: "192.0.2.1:53", Dst: "192.0.2.2:40009", AtB: "203.0.113.1:1 > 192.0.2.2:9", Sent: 4, Lost: 1, Status: "PARTIAL DROP"}},
		Alterations: []compare.Alteration{{Direction: "a_to_b", Field: "mss", From: "1460", To: "1360", Packets: 3, Frame: 7}},
		NAT:         []compare.Translation{{AtA: "192.0.2.1", AtB: "203.0.113.1"}},
		Servers:     []compare.Server{{Host: "192.0.2.2", Point: "B", Requests: 4, ThinkMS: 30, TotalMS: 40}, {Host: "192.0.2.3", Point: "A"}},
		Verdict:     compare.Verdict{Status: "PARTIAL DROP", Code: "packet-loss", Segment: "between A and B, towards B", Confidence: "HIGH", Summary: "1 | 2", Reasons: []string{"r1"}, Check: "look."},
		Notes:       []string{"n <1>"},
	}
	md := Endpoints(r)
	for _, want := range []string{"a_1.pcap (A) and b.pcap (B)", "1 \\| 2", "| A to B | 10 | 9 | 1 (10.00 %) | 0 | 0 | 2 |", "B is 1.250 ms ahead of A (between -3.000 and 4.500; both directions, 12 packets)",
		"runs faster by 20.0 ppm (between 10.0 and 30.0)", "| B to A | UDP 192.0.2.1:53 \\> 192.0.2.2:40009 (at B: 203.0.113.1:1 \\> 192.0.2.2:9) | PARTIAL DROP | 4 | 1 | 25.0 % |",
		"| mss | A to B | 1460 | 1360 | 3 | 7 |", "Addresses are translated", "| 192.0.2.2 | B | 4 | 30.00 | 40.00 | 25 % |", "| 192.0.2.3 | A | 0 | 0.00 | 0.00 | 0 % |",
		"- r1\n- Note: n \\<1\\>", "refute it.** look.\n", "mtr -nrwc 200 192.0.2.1\n"} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in\n%s", want, md)
		}
	}
	r.Clock = clock.Clock{Basis: "none"}
	if md := Endpoints(r); !strings.Contains(md, "Nothing is known of the clocks.") {
		t.Errorf("%s", md)
	}
	r.Verdict.Code = "no-such"
	if md := Endpoints(r); !strings.HasSuffix(md, "## Recommended Actions\n\n") {
		t.Errorf("advice for an unknown code:\n%s", md)
	}
}

// TestBaselineActs: the first loud finding decides what is recommended, new ones before old ones.
func TestBaselineActs(t *testing.T) {
	issue := func(code, severity string) baseline.Issue {
		return baseline.Issue{Code: code, Severity: severity, Summary: code}
	}
	for _, tt := range []struct {
		name          string
		before, after []baseline.Issue
		want          string
	}{
		{"new", []baseline.Issue{issue("jitter", "HIGH")}, []baseline.Issue{issue("jitter", "HIGH"), issue("zero-window", "HIGH")}, "ss -tmp"},
		{"old", []baseline.Issue{issue("syn-flood", "HIGH")}, []baseline.Issue{issue("syn-flood", "HIGH")}, "tcp_syncookies"},
		{"quiet", nil, []baseline.Issue{issue("syn-flood", "LOW")}, "nothing to act on"},
		{"resolved", []baseline.Issue{issue("syn-flood", "HIGH")}, nil, "nothing to act on"},
	} {
		md := Baseline(baseline.Compare(baseline.Snapshot{Issues: tt.before}, baseline.Snapshot{Issues: tt.after}))
		_, remedy, _ := strings.Cut(md, "## Remediation")
		if !strings.Contains(remedy, tt.want) {
			t.Errorf("%s: no %q in\n%s", tt.name, tt.want, remedy)
		}
	}
}

// TestTrimPaths: every cut is named by its path, with what was there.
func TestTrimPaths(t *testing.T) {
	n, err := parseNode([]byte(`{"a":{"list":[1,2,3,4],"versions":{"p":1,"q":2,"r":3,"s":4}},"b":[[1,2,3,4,5,6]],"findings":[1,2,3,4,5,6,7],"plain":{"p":1,"q":2,"r":3,"s":4}}`))
	if err != nil {
		t.Fatal(err)
	}
	var cut []member
	n.trim("", 2, &cut)
	shown := n.with("trimmed", cut)
	want := `{"a":{"list":[1,2],"versions":{"p":1,"q":2,"r":3}},"b":[[1,2]],"findings":[1,2,3,4,5],"plain":{"p":1,"q":2,"r":3,"s":4},` +
		`"trimmed":{"a.list":"2 of 4","a.versions":"3 of 4","findings":"5 of 7"}}`
	if got := string(shown.bytes()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
