package report

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ghostbot/forensics/report/advice"
)

// sick is a capture with faults; its name and its DNS names try to be more than text.
const sick = `{
"capture_summary": {"file":"a|b` + "`" + `c.pcap","total_packets":1200,"duration_seconds":12.5,"avg_packets_per_second":96,"protocols_present":["eth","ip","tcp","dns"]},
"tcp": {"streams_total":7,"retransmissions_total":12,"rst_count":1,"duplicate_ack_total":30,"out_of_order_total":2,"zero_window_total":0,
  "ack_rtt_ms":{"min":1,"median":20.5,"p95":31,"max":400},
  "connection_stats":{"syn_sent":7,"handshakes_completed":3,"handshake_success_rate_pct":42.9},
  "streams_with_issues":[{"stream_id":3,"src":"192.0.2.10:40000","dst":"198.51.100.20:443","retransmissions":12}]},
"dns": {"queries_total":9,"responses_total":9,"unanswered_queries":0,"rcode_distribution":{"NXDOMAIN":1},"latency_ms":{"min":1,"median":2,"p95":3,"max":4},
  "nxdomain_domains":["$(reboot).example.com","db.example.com."]},
"findings": [
  {"severity":"HIGH","protocol":"TCP","code":"syn-blackhole","summary":"SYN to 198.51.100.20:443 get no answer","detail":"7 SYN, repeated 4 times each","confirm":"a capture at the server","frames":[13,15,18],"flow":"192.0.2.10:40000 -> 198.51.100.20:443","confidence":0.92},
  {"severity":"MEDIUM","protocol":"DNS","code":"dns-nxdomain","summary":"<b>1 name</b> does not exist","detail":"$(reboot).example.com | x\n# not a heading","frames":[1,2,3,4,5,6,7,8,9,10],"flow":"192.0.2.10:5353 -> 192.0.2.53:53","confidence":0.75},
  {"severity":"MEDIUM","protocol":"TCP","code":"syn-blackhole","summary":"another one","frames":[20],"flow":"","confidence":0.5},
  {"severity":"LOW","protocol":"TCP","code":"port-reuse","summary":"a port is used again","frames":[30]}],
"provenance": {"sha256":"ab12","bytes":99999,"snap_length":96,"packets_cut_by_snap_length":800,"bytes_skipped":0,"incomplete":["1 TCP connections were forgotten"],"error":"the file is damaged: cut in the middle of a packet"}
}`

const well = `{"capture_summary":{"file":"ok.pcap","total_packets":62,"duration_seconds":3},
"tcp":{"streams_total":4,"retransmissions_total":0,"connection_stats":{"syn_sent":4,"handshakes_completed":4,"handshake_success_rate_pct":100},"ack_rtt_ms":{"median":1.25}},
"icmp":{"echo_pairs_matched":5,"echo_unmatched":0},"findings":[],"provenance":{"sha256":"cd"}}`

func parse(t *testing.T, s string) *Document {
	t.Helper()
	d, err := Parse([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// headings are those of the design, in this order.
func headings(md string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(md, -1) {
		out = append(out, m[1])
	}
	return out
}

func TestForensic(t *testing.T) {
	md := parse(t, sick).Forensic([]Image{{"x (1)_rtt.png", "Round-trip time", "median 20 ms, steady."}})
	if want := []string{"Executive Summary", "Anomaly Table", "Root Cause Analysis", "Remediation", "Figures", "Pictures", "Limits"}; !slices.Equal(headings(md), want) {
		t.Errorf("headings %q, want %q", headings(md), want)
	}
	for _, want := range []string{
		"# Forensic report: a\\|b\\`c.pcap\n",
		"**SYN packets get no answer**: SYN to 198.51.100.20:443 get no answer.",
		"as good as certain (severity HIGH, frames 13, 15, 18)",
		"Besides: names do not exist; syn packets get no answer.",
		"no receiver closed its window",
		"| HIGH | TCP | SYN packets get no answer (`syn-blackhole`) | SYN to 198.51.100.20:443 get no answer. 7 SYN, repeated 4 times each | 13, 15, 18 |",
		"| LOW | TCP | Ports are used again quickly (`port-reuse`) |",
		"1, 2, 3, 4, 5, 6, 7, 8 and 2 more",
		"**What would confirm or refute it.** a capture at the server.",
		"traceroute -n -T -p 443 198.51.100.20\n",
		"dig db.example.com @192.0.2.53\n",
		"**Verify.** The handshake completes within one round trip.",
		"| handshakes | 3 of 7 SYN (42.9 %) |",
		"![median 20 ms, steady.](x%20%281%29_rtt.png)",
		"- the file is damaged: cut in the middle of a packet.",
		"- 800 packets cut by the snap length of 96 bytes",
	} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in\n%s", want, md)
		}
	}
	for _, bad := range []string{"<b>", "\n# not a heading", "port-reuse\n"} {
		if strings.Contains(md, bad) {
			t.Errorf("%q in\n%s", bad, md)
		}
	}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(md, -1) {
		if strings.Contains(block[1], "reboot") || strings.Contains(block[1], "{server}") {
			t.Errorf("commands:\n%s", block[1])
		}
	}
	if n := strings.Count(md, "### "); n != 4 { // two causes, each with a remedy
		t.Errorf("%d sub-headings", n)
	}
}

func TestHealthy(t *testing.T) {
	md := parse(t, well).Forensic(nil)
	for _, want := range []string{"**Healthy**", "4 TCP streams with 0 retransmissions and 0 resets; handshakes succeeded in 100.0 %; median round-trip time 1.25 ms.",
		"5 echo requests answered, 0 not.", "No anomaly was found.", "There is no fault to explain", "tcpdump -ni any -s 128 -w capture.pcap host SERVER"} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in\n%s", want, md)
		}
	}
	if strings.Contains(md, "## Pictures") {
		t.Error("a heading for no pictures")
	}
}

// TestResolution: what is unknown or below the resolution is said as such.
func TestResolution(t *testing.T) {
	for _, tt := range []struct {
		s          Spread
		rtt, table string
	}{
		{Spread{}, "no round trip could be measured", "not measured"},
		{Spread{0, 0, 12.5, 200}, "the median time from data to its ACK is under 0.01 ms (the capture point is next to the receiver), the 95th percentile is 12.50 ms", "min under 0.01 ms, median under 0.01 ms, p95 12.50 ms, max 200.00 ms"},
		{Spread{0.01, 3, 4, 5}, "median round-trip time 3.00 ms", "min 0.01 ms, median 3.00 ms, p95 4.00 ms, max 5.00 ms"},
	} {
		x := TCP{RTT: tt.s}
		if got := x.roundTrip(); got != tt.rtt {
			t.Errorf("%+v: %s", tt.s, got)
		}
		if got := tt.s.text(); got != tt.table {
			t.Errorf("%+v: %s", tt.s, got)
		}
	}
	if got := (&TCP{}).success(); got != "no handshake is in the capture" {
		t.Error(got)
	}
}

// TestNothingJudged: a filter that matched nothing is no healthy network.
func TestNothingJudged(t *testing.T) {
	d := parse(t, `{"capture_summary":{"file":"x.pcap"},"findings":[{"severity":"LOW","code":"filter-matched-nothing","summary":"The filter matched none of 7 packets.","confirm":"Run it without.","frames":[]}],"provenance":{"filter":"port 1"}}`)
	for _, md := range []string{d.Forensic(nil), d.Executive()} {
		if !strings.Contains(md, "**Nothing was judged**") || !strings.Contains(md, "none of 7 packets") || strings.Contains(strings.ToLower(md), "healthy") || strings.Contains(md, "Nothing is wrong") {
			t.Errorf("%s", md)
		}
	}
}

// TestHealthyAlone: the finding that all is well is no finding of low severity.
func TestHealthyAlone(t *testing.T) {
	for findings, want := range map[string]string{`{"severity":"INFO","code":"healthy"}`: "", `{"severity":"INFO","code":"healthy"},{"severity":"LOW","code":"port-reuse"}`: "1 finding."} {
		md := parse(t, strings.Replace(well, `"findings":[]`, `"findings":[`+findings+`]`, 1)).Executive()
		if got := strings.Contains(md, "for completeness: "); got != (want != "") || !strings.Contains(md, want) {
			t.Errorf("%s: %s", findings, md)
		}
	}
}

func TestExecutive(t *testing.T) {
	for _, s := range []string{sick, well} {
		md := parse(t, s).Executive()
		if n := strings.Count(md, "\n"); n > 50 || n < 5 {
			t.Errorf("%d lines:\n%s", n, md)
		}
		if !strings.Contains(md, "## Verdict") {
			t.Errorf("no verdict in\n%s", md)
		}
	}
	d := parse(t, sick)
	for range 300 {
		d.Findings = append(d.Findings, d.Findings[0])
		d.Provenance.Incomplete = append(d.Provenance.Incomplete, "x")
	}
	if n := strings.Count(d.Executive(), "\n"); n > 50 {
		t.Errorf("%d lines with 300 findings", n)
	}
}

// TestEveryCodeReports: whatever the finding, the report has its parts and no hole is left open.
func TestEveryCodeReports(t *testing.T) {
	for _, c := range append(advice.Codes(), "some-new-code", "") {
		d := &Document{Findings: []Finding{{Severity: "HIGH", Code: c, Summary: "s", Frames: []int64{1}, Flow: "[2001:db8::1]:4000 -> [2001:db8::2]:80"}}}
		md := d.Forensic(nil)
		if len(headings(md)) != 6 || regexp.MustCompile(`\{(client|server|port|name)\}`).MatchString(md) || !strings.Contains(md, "**Verify.**") {
			t.Errorf("%s:\n%s", c, md)
		}
	}
}

func TestFill(t *testing.T) {
	d := parse(t, sick)
	for _, tt := range []struct{ flow, want string }{
		{"192.0.2.1:4000 -> 198.51.100.2:80", "192.0.2.1 198.51.100.2 80"},
		{"198.51.100.2:80 -> 192.0.2.1:4000", "192.0.2.1 198.51.100.2 80"},
		{"192.0.2.1:4000 > 198.51.100.2:8080", "192.0.2.1 198.51.100.2 8080"},
		{"[2001:db8::1]:4000 -> [2001:db8::2]:53", "2001:db8::1 2001:db8::2 53"},
		{"192.0.2.1 -> 198.51.100.2", "192.0.2.1 198.51.100.2 PORT"},
		{"192.0.2.7", "CLIENT 192.0.2.7 PORT"},
		{"", "CLIENT SERVER PORT"},
		{"; rm -rf / -> $(x)", "CLIENT SERVER PORT"},
	} {
		if got := d.fill("{client} {server} {port}", &Finding{Flow: tt.flow}); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.flow, got, tt.want)
		}
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{"db.example.com": true, "_sip._tcp.example.com": true, "a": true, "": false, "-x": false, "a b": false, "a;b": false, "$(x)": false, "a`b": false,
		"x\n": false, "a/b": false, strings.Repeat("a", 300): false} {
		if hostName.MatchString(name) != ok {
			t.Errorf("%q: want %v", name, ok)
		}
	}
}

func TestWords(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{escape("gen__x_b__9.pcap _x_ a__ __b"), "gen__x_b__9.pcap \\_x\\_ a\\_\\_ \\_\\_b"},
		{escape("a\nb\x1b[31m"), `a b \[31m`}, {escape("  <x>&*_# ~|\\` "), "\\<x\\>\\&\\*\\_\\# \\~\\|\\\\\\`"}, {escape("a\u2028b\u0085"), "a b"},
		{count(1, "query"), "1 query"}, {count(2, "query"), "2 queries"}, {count(0, "packet"), "0 packets"},
		{frames(nil, 3), "-"}, {frames([]int64{1, 2, 3, 4}, 3), "1, 2, 3 and 1 more"},
		{certainty(0.95), "as good as certain"}, {certainty(0.7), "likely"}, {certainty(0.1), "possible"}, {certainty(0), "not stated"},
		{title("no-such-code"), "no such code"}, {code("A|`b-1\n"), "b-1"}, {join("a.", "b"), "a. b"}, {join("a b", "b"), "a b"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

func TestBadJSON(t *testing.T) {
	for _, s := range []string{"", "{", "[]", `{"findings": 3}`} {
		if _, err := Parse([]byte(s)); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
	for _, s := range []string{"", "{", "{} {}", `{"a": [1,}`} {
		if _, err := Trim([]byte(s)); err == nil {
			t.Errorf("%q was trimmed", s)
		}
	}
}

// large is a document far over the limit.
func large() string {
	var slow, findings, frames []string
	for i := range 3000 {
		slow = append(slow, fmt.Sprintf(`{"latency_ms":%d.5,"name":"host-%d.example.com","frame":%d}`, i, i, i))
		frames = append(frames, fmt.Sprint(i))
	}
	for i := range 40 {
		findings = append(findings, fmt.Sprintf(`{"severity":"LOW","code":"c-%d","frames":[%s]}`, i, strings.Join(frames, ",")))
	}
	return fmt.Sprintf(`{"zeta":1,"dns":{"slow_queries":[%s],"rcode_distribution":{"A":1,"B":2,"C":3,"D":4,"E":5},"x":{"y":[1,2,3]}},"findings":[%s],"provenance":{"bytes":12345678901234567890}}`,
		strings.Join(slow, ","), strings.Join(findings, ","))
}

func TestTrim(t *testing.T) {
	out, err := Trim([]byte(large()))
	if err != nil {
		t.Fatal(err)
	}
	if n := Tokens(out); n > MaxTokens || !json.Valid(out) {
		t.Errorf("%d tokens, valid %v", n, json.Valid(out))
	}
	var got struct {
		DNS struct {
			Slow []json.RawMessage `json:"slow_queries"`
		}
		Findings []struct{ Code string }
		Trimmed  map[string]string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Findings) < 5 || got.Findings[0].Code != "c-0" || len(got.DNS.Slow) == 0 || got.Trimmed["dns.slow_queries"] != fmt.Sprintf("%d of 3000", len(got.DNS.Slow)) || got.Trimmed["findings"] == "" {
		t.Errorf("%s", out)
	}
	if !strings.HasPrefix(string(out), `{"zeta":1,"dns":`) || !strings.Contains(string(out), `"bytes":12345678901234567890}`) {
		t.Errorf("order or numbers changed: %.60s ... %s", out, out[len(out)-200:])
	}
}

func TestTrimLeavesSmallOnes(t *testing.T) {
	for _, s := range []string{`{"b":[1,2],"a":{"x":null,"y":"\u003c"}}`, `[]`, `"x"`, `{"findings":[]}`} {
		if out, err := Trim([]byte(s)); err != nil || string(out) != s {
			t.Errorf("%s became %s, %v", s, out, err)
		}
	}
}

func TestTokens(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abcd": 1, "abcde": 2, "123": 1, "1234": 2, `","`: 2, "é": 1, `{"frames":[12,345]}`: 9} {
		if got := Tokens([]byte(s)); got != want {
			t.Errorf("%q: %d tokens, want %d", s, got, want)
		}
	}
}

// FuzzTrim: what comes out is valid JSON, in the same order, and a second run changes nothing that
// the first one left below the limit.
func FuzzTrim(f *testing.F) {
	f.Add([]byte(sick))
	f.Add([]byte(well))
	f.Add([]byte(`{"a":[[1,[2]],{"b":{}}],"trimmed":1}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := Trim(in)
		if err != nil {
			if json.Valid(in) {
				t.Fatalf("valid, and refused: %v", err)
			}
			return
		}
		if !json.Valid(out) {
			t.Fatalf("not valid: %s", out)
		}
		if Tokens(out) <= MaxTokens {
			if again, err := Trim(out); err != nil || string(again) != string(out) {
				t.Fatalf("%s became %s, %v", out, again, err)
			}
		}
	})
}

// FuzzReport: whatever stands in the texts, a report has its headings once, and commands are only
// made of what may stand in them.
func FuzzReport(f *testing.F) {
	f.Add("summary", "detail", "192.0.2.1:1 -> 192.0.2.2:2", "name.example.com", "dns-nxdomain")
	f.Add("# a\n## b", "|||\n```\n", "$(x) -> `y`", "$(reboot)", "syn-blackhole")
	f.Fuzz(func(t *testing.T, summary, detail, flow, name, code string) {
		d := &Document{Findings: []Finding{{Severity: "HIGH", Code: code, Summary: summary, Detail: detail, Flow: flow, Confirm: detail}}}
		d.Summary.File, d.Provenance.Error = name, summary
		d.DNS = &DNS{NXDomains: []string{name}}
		md := d.Forensic(nil)
		if want := []string{"Executive Summary", "Anomaly Table", "Root Cause Analysis", "Remediation", "Figures", "Limits"}; !slices.Equal(headings(md), want) {
			t.Fatalf("headings %q\n%s", headings(md), md)
		}
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(md, -1) {
			if name != "" && !hostName.MatchString(name) && len(name) > 3 && strings.Contains(block[1], name) && !strings.Contains(known(), name) {
				t.Fatalf("%q is in a command: %s", name, block[1])
			}
		}
		if strings.Count(d.Executive(), "\n") > 50 {
			t.Fatal("a long summary")
		}
	})
}

// known is everything that commands are made of.
func known() string {
	var b strings.Builder
	for _, c := range advice.Codes() {
		a, _ := advice.For(c)
		b.WriteString(strings.Join(a.Commands, "\n") + strings.Join(a.Check, "\n"))
	}
	return b.String() + "CLIENT SERVER PORT NAME"
}
