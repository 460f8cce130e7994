package forensics

import (
	"slices"
	"strings"
	"testing"

	"ghostbot/forensics/finding"
)

const (
	ask    = "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n"
	answer = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"
)

// TestLate: slow responses that packets alone do not show, and what is none.
func TestLate(t *testing.T) {
	for _, tt := range []struct {
		what string
		slow string // in the summary; "": quiet
		play func(l *link)
	}{
		{"an interim response", "slow-server", func(l *link) {
			l.c(21, "A", 0, ask)
			l.s(42, "A", 0, "HTTP/1.1 103 Early Hints\r\n\r\n")
			l.s(2500, "A", 0, answer)
			l.c(2500.1, "A", 0)
		}},
		{"a request on its way", "slow-server", func(l *link) {
			l.c(21, "A", 0, ask)
			l.s(41, "A", 0)
			l.c(1900, "A", 0, ask)
			l.s(2000, "A", 0, answer+answer)
			l.c(2000.1, "A", 0)
		}},
		{"an upload that takes its time", "", func(l *link) {
			l.c(21, "A", 0, "POST / HTTP/1.1\r\nContent-Length: 20\r\n\r\n0123456789")
			l.s(41, "A", 0, "HTTP/1.1 100 Continue\r\n\r\n")
			l.c(1500, "A", 0, "0123456789")
			l.s(1520, "A", 0, answer)
			l.c(1520.1, "A", 0)
		}},
		{"responses that are long and wait for each other", "", func(l *link) {
			l.c(21, "A", 0, ask+ask)
			l.s(41, "A", 0, "HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n")
			for i := range 60 {
				l.s(42+float64(i)*15, "A", 1000)
				l.c(42.1+float64(i)*15, "A", 0)
			}
			l.s(942, "A", 0, answer)
			l.c(942.1, "A", 0)
		}},
		{"a loss", "packet-loss", func(l *link) {
			l.c(21, "A", 0, ask)
			l.cn -= uint32(len(ask))
			l.c(1500, "A", 0, ask)
			l.s(1520, "A", 0, answer)
			l.c(1520.1, "A", 0)
		}},
	} {
		a := analyse(t, func(w *world) { tt.play(w.link(40000, 80).open(0)) })
		i := slices.IndexFunc(a.Findings, func(f finding.Finding) bool { return f.Severity >= finding.Medium })
		switch {
		case tt.slow == "" && i >= 0:
			t.Errorf("%s: %s %s", tt.what, a.Findings[i].Code, a.Findings[i].Summary)
		case tt.slow == "slow-server" && (i != 0 || a.Findings[0].Code != tt.slow || len(a.Findings[0].Frames) != 2 || !strings.Contains(a.Findings[0].Summary, "s for the first byte")):
			t.Errorf("%s: %+v", tt.what, a.Findings)
		case tt.slow == "packet-loss" && slices.ContainsFunc(a.Findings, func(f finding.Finding) bool { return f.Code == "slow-server" && f.Protocol == "http" }):
			t.Errorf("%s: %+v", tt.what, a.Findings)
		}
	}
}

// TestPieces: a sender of small bursts is no fault of the network, however short its pauses are.
func TestPieces(t *testing.T) {
	for _, tt := range []struct {
		n, segments int
		gap, trip   float64
		slow        bool
	}{{60, 8, 100, 20, true}, {100, 4, 60, 20, true}, {40, 10, 140, 20, true}, {300, 2, 20, 20, false}, {90, 4, 90, 2, true}, {200, 1, 8, 1, false}} {
		a := analyse(t, func(w *world) { w.pieces(tt.n, tt.segments, tt.gap, tt.trip) })
		if f := a.Findings[0]; f.Severity >= finding.Medium || (f.Code == "slow-sender") != tt.slow {
			t.Errorf("%+v: %s %s", tt, f.Code, f.Summary)
		}
	}
}
