package digest

import (
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	for in, want := range map[string]string{
		`{"capture_summary": {"total_packets": 2, "duration_seconds": 0.5, "protocols_present": ["eth"]}, "findings": []}`:    "2 packets in 0.500 s: eth\nNothing that a rule knows as a fault.",
		`{"findings": [{"severity": "HIGH", "code": "c", "summary": "s"}, "[truncated: showing 4 of 60 items]"]}`:             "0 packets in 0.000 s: \nHIGH c: s\n[truncated: showing 4 of 60 items]",
		`{"executive_summary": "# One\n\nfault\n", "findings": [{"severity": "HIGH", "code": "c", "summary": "s"}]}`:          "# One\n\nfault",
		`{"executive_summary": "# One [truncated: 9 more]", "findings": [{"severity": "HIGH", "code": "c", "summary": "s"}]}`: "0 packets in 0.000 s: \nHIGH c: s",
		"oops": "The analysis ran; its output could not be read.",
	} {
		if got := Summary(in); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
	long := `{"findings": [` + strings.Repeat(`{"code": "c"},`, 90) + `{"code": "d"}]}`
	if n := strings.Count(Summary(long), "\n"); n != maxSummary-1 {
		t.Errorf("%d lines", n+1)
	}
}
