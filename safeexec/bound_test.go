package safeexec

import (
	"strings"
	"testing"
	"time"
)

func TestBound(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"timeout 10 tcpdump -i lo": 10 * time.Second, "timeout -k 2 -s KILL 1.5m x": 90 * time.Second, "timeout --signal=INT --foreground 2h x": 2 * time.Hour,
		"sudo timeout 5s x": 5 * time.Second, "sudo -u root nice -n 5 env A=b /usr/bin/timeout 7 x": 7 * time.Second, "nohup timeout 1d x": 24 * time.Hour,
		"ping timeout 5": 0, "ss -t": 0, "timeout": 0, "timeout x": 0, "timeout -5 x": 0, "timeout -k 5": 0, "timeout 0 x": 0, "sudo": 0, "": 0, "curl timeout": 0,
	} {
		if got := (Proposal{Argv: strings.Fields(text)}).Own(); got != want {
			t.Errorf("%q ends itself after %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]time.Duration{"timeout 10 x": 10 * time.Second, "timeout 90 x": time.Minute, "x": time.Minute} {
		if got := (Proposal{Argv: strings.Fields(text), Timeout: time.Minute}).Bound(); got != want {
			t.Errorf("%q is over after %v, want %v", text, got, want)
		}
	}
}

func TestAsPlanned(t *testing.T) {
	code := func(n int) *int { return &n }
	for _, tc := range []struct {
		text string
		r    Result
		want bool
	}{
		{"timeout 10 tcpdump", Result{Status: "completed", ExitCode: code(124)}, true},
		{"timeout 10 tcpdump", Result{Status: "completed", ExitCode: code(1)}, false},
		{"timeout 10 tcpdump", Result{Status: "error", Error: "timeout", ExitCode: code(124)}, false},
		{"tcpdump", Result{Status: "completed", ExitCode: code(124)}, false},
		{"timeout 10 tcpdump", Result{Status: "completed"}, false},
	} {
		if got := (Proposal{Argv: strings.Fields(tc.text)}).AsPlanned(tc.r); got != tc.want {
			t.Errorf("%s, %+v: %v", tc.text, tc.r, got)
		}
	}
}
