package forensics

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ghostbot/forensics/finding"
)

// download is a transfer at a constant rate as its receiver sees it: a segment every
// step ms, whose time stamp comes back after the round trip of its moment.
func (w *world) download(stamps bool, n int, step float64, trip func(ms float64) float64) {
	const base = 100_000 // of the clocks
	l := w.link(40000, 80).open(0)
	l.c(21, "A", 80)
	for i := range n {
		at := 45 + float64(i)*step
		d := seg{from: server, to: client, sp: 80, dp: 40000, flags: "A", seq: l.sn, ack: l.cn, size: 1448}
		a := seg{from: client, to: server, sp: 40000, dp: 80, flags: "A", seq: l.cn, ack: l.sn + 1448}
		if stamps {
			d.ts, d.ecr = base+uint32(at), base+uint32(max(at-trip(at), 0))
			a.ts, a.ecr = base+uint32(at), d.ts
		}
		w.tcp(at, d)
		l.sn += 1448
		w.tcp(at+0.05, a)
	}
}

// pieces are a download whose sender writes n pieces of so many segments, one every gap ms. Each
// brings back the time stamp of the last ACK that has arrived, trip ms ago or more.
func (w *world) pieces(n, segments int, gap, trip float64) {
	const base = 100_000
	l := w.link(40000, 80).open(0)
	l.c(21, "A", 80)
	echo := uint32(base + 21)
	for i := range n * segments {
		at := 45 + float64(i/segments)*gap + float64(i%segments)*0.1
		w.tcp(at, seg{from: server, to: client, sp: 80, dp: 40000, flags: "A", seq: l.sn, ack: l.cn, size: 1448, ts: base + uint32(at), ecr: echo})
		l.sn += 1448
		w.tcp(at+0.05, seg{from: client, to: server, sp: 40000, dp: 80, flags: "A", seq: l.cn, ack: l.sn, ts: base + uint32(at), ecr: base + uint32(at)})
		if (i+1)%segments == 0 || trip < 0.1 {
			echo = base + uint32(at)
		}
	}
}

// response is HTTP that announces so many bytes; the client acknowledges each segment.
func (l *link) response(ms float64, length int, segments int) float64 {
	l.c(ms, "A", 0, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
	l.s(ms+20, "A", 0, fmt.Sprintf("HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n", length))
	l.c(ms+20.1, "A", 0)
	for i := range segments {
		l.s(ms+21+float64(i), "A", 1000)
		l.c(ms+21.1+float64(i), "A", 0)
	}
	return ms + 22 + float64(segments)
}

// receiverScenarios are faults as the receiver of data sees them.
func receiverScenarios() []scenario {
	return []scenario{
		{"bufferbloat", func(w *world) {
			w.download(true, 1400, 5.8, func(at float64) float64 { return min(20+at*0.075, 320) })
		}},
		{"server-no-response", func(w *world) { // the client gives up; the server still acknowledges
			l := w.link(40000, 80).open(0)
			at := l.response(21, 50_000, 20)
			l.c(at+15_000, "FA", 0)
			l.s(at+15_020, "A", 0)
		}},
		{"server-no-response", func(w *world) { // the capture ends, and nothing more has come
			l := w.link(40000, 80).open(0)
			l.response(21, 50_000, 20)
			w.ping(30_000, 1, true, 20)
		}},
		{"server-no-response", func(w *world) { // the server says that it has finished, and has not
			l := w.link(40000, 80).open(0)
			at := l.response(21, 50_000, 20)
			l.s(at+1, "FA", 0)
			l.sn++
			l.c(at+1.1, "FA", 0)
		}},
	}
}

// analyse plays a scenario.
func analyse(t *testing.T, play func(*world)) *Analysis {
	t.Helper()
	w := newWorld(t)
	play(w)
	a, err := AnalyzeReader(context.Background(), bytes.NewReader(w.file.Bytes()), int64(w.file.Len()), "scenario", Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestReceiverQuiet: what looks like a fault at the receiver and is none.
func TestReceiverQuiet(t *testing.T) {
	flat := func(float64) float64 { return 20 }
	for what, play := range map[string]func(*world){
		"a download without a queue": func(w *world) { w.download(true, 1400, 5.8, flat) },
		"a long path":                func(w *world) { w.download(true, 1400, 5.8, func(float64) float64 { return 45 }) },
		"no time stamps":             func(w *world) { w.download(false, 1400, 5.8, flat) },
		"a sender that pauses":       func(w *world) { w.pieces(60, 8, 100, 0.05) },
		"a sender of few events":     func(w *world) { w.pieces(240, 1, 1000, 20) },
		"a sender of larger events":  func(w *world) { w.pieces(90, 3, 300, 20) },
		"a response that is complete": func(w *world) {
			l := w.link(40000, 80).open(0)
			at := l.response(21, 20_000, 20)
			l.c(at+15_000, "FA", 0)
			l.s(at+15_020, "FA", 0)
		},
		"a response that is under way when the capture ends": func(w *world) {
			w.link(40000, 80).open(0).response(21, 50_000, 20)
		},
		"a client that closes in the middle": func(w *world) {
			l := w.link(40000, 80).open(0)
			at := l.response(21, 50_000, 20)
			l.c(at+1, "FA", 0)
			l.s(at+20, "A", 0)
			w.ping(at+30_000, 1, true, 20)
		},
		"a client that closes in the middle, and the server after it": func(w *world) {
			l := w.link(40000, 80).open(0)
			at := l.response(21, 50_000, 20)
			l.c(at+1, "FA", 0)
			l.cn++
			l.s(at+21, "FA", 0)
			l.sn++
			l.c(at+21.1, "A", 0)
			w.ping(at+30_000, 1, true, 20)
		},
		"an answer to HEAD": func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 0, "HEAD / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
			l.s(41, "A", 0, "HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n")
			l.c(41.1, "A", 0)
			w.ping(30_000, 1, true, 20)
		},
	} {
		a := analyse(t, play)
		blind := strings.Contains(a.Findings[0].Limits, "round trips under load cannot be seen")
		if want := what == "no time stamps"; blind != want {
			t.Errorf("%s: limits %q", what, a.Findings[0].Limits)
		}
		if i := slices.IndexFunc(a.Findings, func(f finding.Finding) bool { return f.Severity >= finding.Medium }); i >= 0 {
			t.Errorf("%s: %s %s", what, a.Findings[i].Code, a.Findings[i].Summary)
		}
	}
}

// TestWhoStopped: half a response, and who is to blame, as far as the client can tell.
func TestWhoStopped(t *testing.T) {
	for i, want := range []string{"", "The server stopped", "cannot be told", "The server ended"} {
		if want == "" {
			continue
		}
		f := analyse(t, receiverScenarios()[i].play).Findings[0]
		if all := f.Summary + " " + f.Detail + " " + f.Limits; !strings.Contains(all, want) || !strings.Contains(all, "20000 of 50000 bytes") {
			t.Errorf("%d: nothing about %q in %s", i, want, all)
		}
	}
}
