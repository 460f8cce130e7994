package forensics

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"ghostbot/forensics/finding"
)

// midStream takes the segments with SYN out of a capture: it began when all was open.
func midStream(file []byte) []byte {
	out := slices.Clone(file[:24])
	for rest := file[24:]; len(rest) > 0; {
		n := 16 + int(binary.LittleEndian.Uint32(rest[8:]))
		f := rest[16:n]
		if len(f) < 54 || f[12] != 8 || f[13] != 0 || f[23] != 6 || f[47]&2 == 0 {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out
}

// midScenarios are faults of connections that are in use.
func midScenarios() []scenario {
	return []scenario{
		{"slow-server", func(w *world) {
			l := w.link(40000, 80).open(0)
			for i := range 3 {
				at := 100 + float64(i)*5000
				l.c(at, "A", 0, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
				l.s(at+20, "A", 0)
				l.s(at+2500, "A", 0, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				l.c(at+2500.1, "A", 0)
			}
		}},
		{"server-no-response", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(100, "A", 0, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
			l.s(120, "A", 0)
			w.ping(20_000, 1, true, 20)
		}},
		{"zero-window", func(w *world) { // the queue of the server is full from the first packet on
			l := w.link(40000, 80)
			l.s(0, "A0", 0)
			for i := range 4 {
				l.c(300*float64(int(1)<<i), "A", 1)
				l.cn--
				l.s(300*float64(int(1)<<i)+20, "A0", 0)
			}
		}},
		{"idle-timeout", func(w *world) { // a gap, and then nothing gets through
			l := w.link(40000, 5432)
			l.c(0, "A", 50)
			l.s(20, "A", 200)
			l.c(20.1, "A", 0)
			l.c(400_000, "A", 50)
			for _, at := range []float64{200, 600, 1400, 3000, 6200} {
				l.again(400_000+at, 50, 50)
			}
		}},
	}
}

// TestMidStream: what is wrong with a connection shows as well when it began before the capture, and
// the finding says what is not known.
func TestMidStream(t *testing.T) {
	known := []string{"dead-peer", "idle-timeout", "half-open", "rst-by-server", "rst-injected", "zero-window", "pmtud-blackhole", "packet-loss", "delay-spike",
		"throttling", "bufferbloat", "jitter", "http-errors", "tls-failure"}
	all := midScenarios()
	for _, s := range slices.Concat(firstScenarios(), moreScenarios(), receiverScenarios()) {
		if slices.Contains(known, s.code) {
			all = append(all, s)
		}
	}
	for _, tt := range all {
		w := newWorld(t)
		tt.play(w)
		file := midStream(w.file.Bytes())
		a, err := AnalyzeReader(context.Background(), bytes.NewReader(file), int64(len(file)), "scenario", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if f := a.Findings[0]; f.Code != tt.code || f.Flow != "" && !strings.Contains(f.Limits, "began before the capture") {
			t.Errorf("%s: found %s, limits %q", tt.code, f.Code, f.Limits)
		}
	}
}

// TestMidStreamQuiet: who sends on a connection that was open may want no answer.
func TestMidStreamQuiet(t *testing.T) {
	for what, play := range map[string]func(*link){
		"reports that nobody answers": func(l *link) {
			for i := range 10 {
				l.c(float64(i)*3000, "A", 100)
				l.s(float64(i)*3000+20, "A", 0)
			}
		},
		"events, long after the last report": func(l *link) {
			for i := range 6 {
				l.c(float64(i)*20_000, "A", 100)
				l.s(float64(i)*20_000+20, "A", 0)
				l.s(float64(i)*20_000+9000, "A", 300)
				l.c(float64(i)*20_000+9000.1, "A", 0)
			}
		},
	} {
		a := analyse(t, func(w *world) { play(w.link(40000, 6633)) })
		if f := a.Findings[0]; f.Severity >= finding.Medium {
			t.Errorf("%s: %s %s", what, f.Code, f.Summary)
		}
	}
}

// TestBothReadings: a SYN that is sent again and never answered may have been dropped, or its answer.
func TestBothReadings(t *testing.T) {
	a := analyse(t, func(w *world) {
		for _, at := range []float64{0, 1000, 3000, 7000} {
			w.syn(at, 40000, 443)
		}
	})
	var codes []string
	for _, f := range a.Findings {
		codes = append(codes, f.Code)
	}
	if len(codes) < 2 || codes[0] != "syn-blackhole" || codes[1] != "return-path-blocked" || !strings.Contains(a.Findings[0].Detail, "cannot tell the two apart") {
		t.Errorf("%v: %s", codes, a.Findings[0].Detail)
	}
}
