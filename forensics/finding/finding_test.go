package finding

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ghostbot/forensics/app"
	"ghostbot/forensics/capture"
	"ghostbot/forensics/control"
	"ghostbot/forensics/dns"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding/services"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/stat"
	"ghostbot/forensics/tcp"
)

func none() *facts.Facts {
	return &facts.Facts{TCP: tcp.New(tcp.Options{}), DNS: dns.New(), Control: control.New(), App: app.New(), Capture: &capture.Info{}}
}

// TestNothing: an empty capture, a filter that matched nothing and a damaged file are
// told apart, and none is healthy.
func TestNothing(t *testing.T) {
	for _, tt := range []struct {
		info capture.Info
		code string
		sev  Severity
		says string
	}{
		{capture.Info{}, "empty-capture", Info, "holds no packets"},
		{capture.Info{Packets: 1234}, "filter-matched-nothing", Low, "none of 1234 packets"},
		{capture.Info{Skipped: 77}, "unreadable-capture", Low, "damaged"},
		{capture.Info{Damage: []capture.Damage{{Why: "x"}}}, "unreadable-capture", Low, "damaged"},
	} {
		f := none()
		f.Capture = &tt.info
		got := All(f)
		if len(got) != 1 || got[0].Code != tt.code || got[0].Severity != tt.sev || !strings.Contains(got[0].Summary, tt.says) || got[0].Confirm == "" {
			t.Errorf("%+v: %+v", tt.info, got)
		}
	}
}

func TestHealthyHasFigures(t *testing.T) {
	f := none()
	f.Packets = 5
	f.TCP.Total.Streams, f.TCP.Total.Handshakes, f.TCP.Total.SYNStreams = 3, 2, 3
	f.DNS.Queries = 7
	got := All(f)
	if len(got) != 1 || got[0].Code != "healthy" || got[0].Detail != "5 packets; 3 TCP connections, 2 of 3 handshakes completed, 0 segments retransmitted; 7 DNS queries, 0 unanswered; 0 of 0 echo requests answered." {
		t.Errorf("%+v", got)
	}
}

// TestVerdict: by severity, then by confidence, at most three of a code, frames in order
// and without the ones that are not set.
func TestVerdict(t *testing.T) {
	c := &inquiry{f: none()}
	for i, f := range []Finding{
		{Severity: Low, Code: "low", Confidence: 0.9}, {Severity: High, Code: "unsure", Confidence: 0.5}, {Severity: High, Code: "sure", Confidence: 0.9, Frames: []uint32{9, 0, 3, 9, 4}},
		{Severity: Medium, Code: "many", Confidence: 0.4}, {Severity: Medium, Code: "many", Confidence: 0.3}, {Severity: Medium, Code: "many", Confidence: 0.2}, {Severity: Medium, Code: "many", Confidence: 0.1},
	} {
		f.Summary = fmt.Sprint(i)
		c.add(f)
	}
	var got []string
	for _, f := range c.verdict() {
		got = append(got, f.Code+f.Summary)
	}
	if want := "sure2 unsure1 many3 many4 many5 low0"; strings.Join(got, " ") != want {
		t.Errorf("%v", got)
	}
	if fmt.Sprint(c.out[0].Frames) != "[3 4 9]" || c.out[1].Frames == nil {
		t.Errorf("frames %v, %v", c.out[0].Frames, c.out[1].Frames)
	}
	c.add(Finding{Frames: slices.Repeat([]uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 2)})
	if n := len(c.out[len(c.out)-1].Frames); n != 10 {
		t.Errorf("%d frames", n)
	}
}

func TestRefusal(t *testing.T) {
	a, b := flow.V4([]byte{192, 0, 2, 1}), flow.V4([]byte{192, 0, 2, 2})
	for _, tt := range []struct {
		e    control.Errors
		want string
	}{
		{control.Errors{Code: 0, Src: a, Dst: b}, "no-route"}, {control.Errors{Code: 1, Src: a, Dst: b}, "host-down"}, {control.Errors{Code: 1, Src: a, Dst: a}, ""},
		{control.Errors{Code: 3}, "udp-port-closed"}, {control.Errors{Code: 4}, ""}, {control.Errors{Code: 5}, "no-route"}, {control.Errors{Code: 9}, "admin-prohibited"},
		{control.Errors{Code: 10}, "admin-prohibited"}, {control.Errors{Code: 13}, "admin-prohibited"}, {control.Errors{Code: 99}, ""},
		{control.Errors{V6: true, Code: 0}, "no-route"}, {control.Errors{V6: true, Code: 1}, "admin-prohibited"}, {control.Errors{V6: true, Code: 3, Src: a, Dst: b}, "host-down"},
		{control.Errors{V6: true, Code: 3, Src: a, Dst: a}, ""}, {control.Errors{V6: true, Code: 4}, "udp-port-closed"}, {control.Errors{V6: true, Code: 5}, "admin-prohibited"},
		{control.Errors{V6: true, Code: 6}, "admin-prohibited"}, {control.Errors{V6: true, Code: 9}, ""},
	} {
		if got := refusal(&tt.e); got != tt.want {
			t.Errorf("IPv6 %v, code %d: %q, want %q", tt.e.V6, tt.e.Code, got, tt.want)
		}
	}
}

// TestQuoted: an error is about the flow of the packet that it quotes, whichever way.
func TestQuoted(t *testing.T) {
	a, b := flow.V4([]byte{192, 0, 2, 1}), flow.V4([]byte{198, 51, 100, 2})
	k, _ := flow.Make(a, b, 4000, 53, 17)
	for _, tt := range []struct {
		about flow.Addr
		port  uint16
		flow  string
		from  uint16
	}{{b, 53, "192.0.2.1:4000 -> 198.51.100.2:53", 4000}, {a, 4000, "198.51.100.2:53 -> 192.0.2.1:4000", 53}} {
		e := control.Errors{Quoted: k, About: tt.about, Port: tt.port}
		if got := quotedFlow(&e); got != tt.flow || quotedFrom(&e) != tt.from {
			t.Errorf("%s from %d", got, quotedFrom(&e))
		}
	}
	if got := quotedFlow(&control.Errors{Quoted: k}); got != "" {
		t.Errorf("without a port: %s", got)
	}
}

func TestGuess(t *testing.T) {
	a, b := flow.V4([]byte{192, 0, 2, 1}), flow.V4([]byte{198, 51, 100, 2})
	for _, tt := range []struct {
		sport, dport uint16
		client       string
	}{{4000, 80, "192.0.2.1"}, {80, 4000, "198.51.100.2"}, {443, 443, "192.0.2.1"}} {
		k, _ := flow.Make(a, b, tt.sport, tt.dport, 6)
		if addr, _ := k.End(guess(&k)); addr.String() != tt.client {
			t.Errorf("%d to %d: client %v", tt.sport, tt.dport, addr)
		}
	}
}

// rated is a connection with the bytes of one direction over time.
func rated(bytes func(i int) int) *conn {
	d := &tcp.Detail{}
	d.Side[0].Rate = &stat.Series[tcp.Amount]{}
	for i := range 160 {
		*d.Side[0].Rate.At(int64(i) * 1e6) += tcp.Amount(bytes(i))
	}
	return &conn{d: d}
}

func TestSteady(t *testing.T) {
	for _, tt := range []struct {
		what     string
		bytes    func(i int) int
		low, top float64
	}{
		{"constant", func(int) int { return 1000 }, 0.99, 1},
		{"slow start, then constant", func(i int) int { return min(i*100, 1000) }, 0.95, 1},
		{"a saw", func(i int) int { return (i % 60) * 20 }, 0, 0.8},
		{"half of the time", func(i int) int { return i / 80 * 1000 }, -1, 0.3},
	} {
		if got := steady(rated(tt.bytes), 0); got < tt.low || got > tt.top {
			t.Errorf("%s: %.2f, want %.2f to %.2f", tt.what, got, tt.low, tt.top)
		}
	}
	short := rated(func(int) int { return 1 })
	short.d.Side[0].Rate.Values = short.d.Side[0].Rate.Values[:39]
	if steady(short, 0) != 0 || steady(&conn{d: &tcp.Detail{}}, 0) != 0 {
		t.Error("too short to tell")
	}
}

func TestNeighbourly(t *testing.T) {
	for ttl, want := range map[uint8]bool{64: true, 128: true, 255: true, 63: false, 127: false, 60: false, 0: false} {
		if neighbourly(ttl) != want {
			t.Errorf("TTL %d", ttl)
		}
	}
}

func TestAlertReason(t *testing.T) {
	for code, want := range map[uint8]string{40: "cipher", 70: "version", 48: "authority", 45: "expired", 116: "certificate", 112: "name", 80: ""} {
		if got := services.AlertReason(code, false); want != "" && !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%d: %q", code, got)
		}
	}
	if got := services.AlertReason(40, true); strings.Contains(got, "in common") || !strings.Contains(got, "client certificate") {
		t.Errorf("handshake failure after a cipher was chosen: %q", got)
	}
}

// line writes one TCP segment between 192.0.2.1:4000 and 198.51.100.2:80.
func line(file *bytes.Buffer, ms int64, back bool, seq, ack uint32, flags byte, n, captured int) {
	b := make([]byte, 54+n)
	copy(b, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2, 0x0f, 0xa0, 0, 80})
	if back {
		copy(b[26:], []byte{198, 51, 100, 2, 192, 0, 2, 1, 0, 80, 0x0f, 0xa0})
	}
	binary.BigEndian.PutUint16(b[16:], uint16(40+n))
	binary.BigEndian.PutUint16(b[18:], uint16(ms))
	binary.BigEndian.PutUint32(b[38:], seq)
	binary.BigEndian.PutUint32(b[42:], ack)
	b[46], b[47], b[48] = 0x50, flags, 32
	var h [16]byte
	binary.LittleEndian.PutUint32(h[:], uint32(1_700_000_000+ms/1000))
	binary.LittleEndian.PutUint32(h[4:], uint32(ms%1000*1000))
	binary.LittleEndian.PutUint32(h[8:], uint32(min(captured, len(b))))
	binary.LittleEndian.PutUint32(h[12:], uint32(len(b)))
	file.Write(h[:])
	file.Write(b[:min(captured, len(b))])
}

func judged(t *testing.T, play func(file *bytes.Buffer)) []Finding {
	t.Helper()
	head := make([]byte, 24)
	binary.LittleEndian.PutUint32(head, 0xa1b2c3d4)
	binary.LittleEndian.PutUint32(head[16:], 96)
	head[20] = 1
	file := bytes.NewBuffer(head)
	play(file)
	src, err := capture.New(context.Background(), bytes.NewReader(file.Bytes()), int64(file.Len()), capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	f, err := facts.Collect(context.Background(), src, facts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return All(f)
}

// TestLimits: a finding says what this capture cannot tell about its connection.
func TestLimits(t *testing.T) {
	const whole = 1 << 16
	zero := func(file *bytes.Buffer, captured int) {
		for i := range int64(4) {
			line(file, 100+i*400, false, 1000+uint32(i)*500, 5000, 0x10, 500, captured)
			line(file, 110+i*400, true, 5000, 1500+uint32(i)*500, 0x10, 0, captured)
		}
		for i := range int64(4) { // the same segment again and again
			line(file, 3000+i*i*700, false, 3000, 5000, 0x10, 500, captured)
		}
	}
	for _, tt := range []struct {
		what string
		play func(file *bytes.Buffer)
		want string
	}{
		{"from the beginning", func(file *bytes.Buffer) {
			line(file, 0, false, 999, 0, 2, 0, whole)
			line(file, 20, true, 4999, 1000, 0x12, 0, whole)
			line(file, 40, false, 1000, 5000, 0x10, 0, whole)
			zero(file, whole)
		}, ""},
		{"in the middle", func(file *bytes.Buffer) { zero(file, whole) }, "began before the capture"},
	} {
		for _, f := range judged(t, tt.play) {
			if f.Flow != "" && (tt.want == "" && f.Limits != "" || !strings.Contains(f.Limits, tt.want)) {
				t.Errorf("%s: %s: %q", tt.what, f.Code, f.Limits)
			}
		}
	}
}

// TestOneSided: of one direction alone nothing is claimed that the other would show.
func TestOneSided(t *testing.T) {
	got := judged(t, func(file *bytes.Buffer) {
		line(file, 0, false, 999, 0, 2, 0, 1<<16)
		for i := range int64(20) {
			line(file, 40+i*10, false, 1000+uint32(i)*100, 5000+uint32(i)*1000, 0x10, 100, 1<<16)
		}
	})
	if got[0].Code != "asymmetric-path" || got[0].Severity > Low || !strings.Contains(got[0].Limits, "Only one direction") {
		t.Errorf("%+v", got)
	}
}

// TestEveryFindingIsComplete: summary, detail, protocol, frames that exist and something
// that would confirm or refute it.
func TestEveryFindingIsComplete(t *testing.T) {
	for _, play := range []func(file *bytes.Buffer){
		func(file *bytes.Buffer) {
			for i := range int64(5) {
				line(file, i*1000, false, 999, 0, 2, 0, 1<<16)
			}
		},
		func(file *bytes.Buffer) {
			line(file, 0, false, 999, 0, 2, 0, 1<<16)
			line(file, 9, true, 0, 1000, 0x14, 0, 1<<16)
		},
	} {
		for _, f := range judged(t, play) {
			if f.Summary == "" || f.Detail == "" || f.Protocol == "" || f.Confidence <= 0 || f.Confidence > 1 || len(f.Frames) == 0 || f.Flow == "" || f.Confirm == "" {
				t.Errorf("%+v", f)
			}
		}
	}
}

// TestCutPackets: that nothing was found says less where packets are cut.
func TestCutPackets(t *testing.T) {
	for _, tt := range []struct {
		cut, tcp uint64
		streams  uint32
		want     string
	}{
		{0, 9, 1, ""},
		{4, 9, 1, ""},
		{9, 9, 1, "9 of 9 packets are cut: alerts"},
		{9, 9, 0, "within the TCP headers"},
		{9, 0, 0, "9 of 9 packets are cut: alerts"},
	} {
		f := none()
		f.Packets, f.CutFrames = 9, tt.cut
		f.Kinds[frame.TCP], f.TCP.Total.Streams = tt.tcp, tt.streams
		if got := All(f)[0].Limits; tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

// TestUnread: a capture of which most could not be read is not healthy, whatever the rest looks like.
func TestUnread(t *testing.T) {
	for _, tt := range []struct {
		skipped   int64
		undecoded uint64
		code      string
		says      string
	}{
		{1000, 0, "healthy", ""},
		{2000, 0, "unreadable-capture", "Most of the file could not be read"},
		{0, 5, "healthy", "5 of 10 packets could not be decoded"},
		{0, 6, "unreadable-capture", "link type 9999"},
		{0, 10, "unreadable-capture", "10 of 10 packets could not be decoded"},
	} {
		f := none()
		f.Packets, f.Undecoded = 10, tt.undecoded
		f.Capture = &capture.Info{Packets: 10, Stream: 3000, Skipped: tt.skipped, Interfaces: []capture.Interface{{Link: 9999}}}
		got := All(f)
		if all := got[0].Summary + got[0].Detail + got[0].Limits; len(got) != 1 || got[0].Code != tt.code || !strings.Contains(all, tt.says) {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

// TestNothingFollowed: where no packet carries what is followed, nothing was judged,
// whether the file is damaged or whole.
func TestNothingFollowed(t *testing.T) {
	f := none()
	f.Packets, f.Kinds[frame.Other] = 1, 1
	f.Capture = &capture.Info{Packets: 1, Stream: 100}
	for range 2 {
		if got := All(f); len(got) != 1 || got[0].Code != "unreadable-capture" {
			t.Errorf("%+v", got)
		}
		f.Capture.Damage = []capture.Damage{{}}
	}
	f.Packets, f.Kinds[frame.TCP] = 2, 1 // something was judged
	if got := All(f); len(got) != 1 || got[0].Code != "healthy" {
		t.Errorf("%+v", got)
	}
}
