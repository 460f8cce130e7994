package dns

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"ghostbot/forensics/flow"
)

var (
	client = flow.V4([]byte{192, 0, 2, 1})
	server = flow.V4([]byte{192, 0, 2, 53})
)

// msg writes a message with one question and a number of answers (without bodies).
func msg(id, flags uint16, name string, typ uint16, answers uint16) []byte {
	b := make([]byte, 12)
	binary.BigEndian.PutUint16(b, id)
	binary.BigEndian.PutUint16(b[2:], flags)
	b[5] = 1
	binary.BigEndian.PutUint16(b[6:], answers)
	for _, l := range strings.Split(name, ".") {
		b = append(append(b, byte(len(l))), l...)
	}
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(append(b, 0), typ), 1)
}

// script plays messages: q and r are query and response, with milliseconds, port, ID.
type script struct {
	l  *Log
	no uint32
}

func (s *script) q(ms float64, port, id uint16, name string) {
	s.no++
	s.l.UDP(client, server, port, 53, msg(id, 0x0100, name, 1, 0), s.no, 1e18+int64(ms*1e6))
}

func (s *script) r(ms float64, port, id, flags uint16, name string, answers uint16) {
	s.no++
	s.l.UDP(server, client, 53, port, msg(id, 0x8180|flags, name, 1, answers), s.no, 1e18+int64(ms*1e6))
}

func TestPairing(t *testing.T) {
	tests := []struct {
		name string
		play func(s *script)
		want string // queries responses unanswered resends retries unsolicited latencies
	}{
		{"answered", func(s *script) { s.q(0, 1, 7, "a.example.com"); s.r(20, 1, 7, 0, "a.example.com", 1) }, "1 1 0 0 0 0 1"},
		{"unanswered", func(s *script) { s.q(0, 1, 7, "a.example.com") }, "1 0 1 0 0 0 0"},
		{"sent again within five seconds", func(s *script) { s.q(0, 1, 7, "a"); s.q(4999, 1, 7, "a"); s.r(5020, 1, 7, 0, "a", 1) }, "2 1 0 1 1 0 1"},
		{"sent again after five seconds", func(s *script) { s.q(0, 1, 7, "a"); s.q(5001, 1, 7, "a"); s.r(5020, 1, 7, 0, "a", 1) }, "2 1 1 0 1 0 1"},
		{"sent again from another port", func(s *script) { s.q(0, 1, 7, "a"); s.q(1000, 2, 8, "a"); s.r(1020, 2, 8, 0, "a", 1) }, "2 1 1 0 1 0 1"},
		{"another name is no retry", func(s *script) { s.q(0, 1, 7, "a"); s.q(1000, 2, 8, "b") }, "2 0 2 0 0 0 0"},
		{"answered twice", func(s *script) { s.q(0, 1, 7, "a"); s.r(20, 1, 7, 0, "a", 1); s.r(21, 1, 7, 0, "a", 1) }, "1 2 0 0 0 0 1"},
		{"never asked", func(s *script) { s.r(20, 1, 7, 0, "a", 1) }, "0 1 0 0 0 1 0"},
		{"another port", func(s *script) { s.q(0, 1, 7, "a"); s.r(20, 2, 7, 0, "a", 1) }, "1 1 1 0 0 1 0"},
		{"the newest of its ID", func(s *script) {
			s.q(0, 1, 7, "a")
			s.r(9, 1, 7, 0, "a", 1)
			s.q(10, 1, 7, "b")
			s.r(20, 1, 7, 0, "b", 1)
		}, "2 2 0 0 0 0 2"},
	}
	for _, tt := range tests {
		s := &script{l: New()}
		tt.play(s)
		s.l.Finish()
		l := s.l
		if got := fmt.Sprint(l.Queries, l.Responses, l.Unanswered, l.Resends, l.Retries, l.Unsolicited, l.Latency.N); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestKindsOfAnswers(t *testing.T) {
	s := &script{l: New()}
	for i, a := range []struct {
		flags, answers uint16
	}{{0, 1}, {0, 0}, {2, 0}, {3, 0}, {3, 0}, {5, 0}, {0x0200, 0}} {
		name := fmt.Sprintf("N%d.example.com", i)
		s.q(float64(i*100), uint16(i), uint16(i), name)
		s.r(float64(i*100+10+i), uint16(i), uint16(i), a.flags, name, a.answers)
	}
	s.l.Finish()
	l := s.l
	if got := fmt.Sprint(l.Empty, l.Truncated, l.Rcodes[0], l.Rcodes[2], l.Rcodes[3], l.Rcodes[5]); got != "1 1 3 1 2 1" {
		t.Errorf("empty, truncated, NOERROR, SERVFAIL, NXDOMAIN, REFUSED: %s", got)
	}
	if nx := l.Top(5, func(n *Name) uint64 { return n.NX }); len(nx) != 2 || nx[0].Text != "n3.example.com" {
		t.Errorf("NXDOMAIN names: %v", nx)
	}
	if l.Slowest[0].Latency != 16e6 || l.Slowest[0].Name != "n6.example.com" {
		t.Errorf("slowest: %+v", l.Slowest[0])
	}
	sv := l.Servers[server]
	if sv.Queries != 7 || sv.Answers != 7 || len(sv.Evidence["NXDOMAIN"]) != 2 {
		t.Errorf("server: %+v", sv)
	}
}

func TestOverTCP(t *testing.T) {
	l := New()
	k, reverse := flow.Make(client, server, 4000, 53, 6)
	to, from := int(dir(reverse)), int(dir(!reverse))
	framed := func(b []byte) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...) }
	q := append(framed(msg(1, 0, "a.example.com", 1, 0)), framed(msg(2, 0, "b.example.com", 28, 0))...)
	l.TCP(&k, to, q[:1], 1, 0)
	l.TCP(&k, to, q[1:20], 2, 1)
	l.TCP(&k, to, q[20:], 3, 2)
	l.TCP(&k, from, framed(msg(2, 0x8000, "b.example.com", 28, 1)), 4, 3e6)
	l.Finish()
	if l.Queries != 2 || l.Responses != 1 || l.Unanswered != 1 || l.Types[28] != 1 {
		t.Errorf("%d queries, %d responses, %d unanswered", l.Queries, l.Responses, l.Unanswered)
	}
}

func TestNamesAreHarmless(t *testing.T) {
	var m message
	for _, tt := range []struct{ wire, want string }{
		{"\x03WWW\x07eXample\x03com\x00", "www.example.com"},
		{"\x05a\x1b[2J\x00", "a??2j"},
		{"\xc0\x0c", ""},
		{"\x3fshort", ""},
		{strings.Repeat("\x3f"+strings.Repeat("x", 63), 5) + "\x00", ""},
	} {
		m.name = m.buf[:0]
		m.readName([]byte(tt.wire))
		if got := string(m.name); got != tt.want && (tt.want != "" || len(got) > 255) {
			t.Errorf("%q: %q, want %q", tt.wire, got, tt.want)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	s := &script{l: New()}
	const n = maxOpen + 5000
	for i := range n {
		s.q(float64(i)/10, uint16(i), uint16(i>>4), fmt.Sprintf("n%d.example.com", i))
	}
	s.l.Finish()
	if s.l.Unanswered != n || s.l.Forgotten != 5000 || len(s.l.Names) != maxNames || len(s.l.Open) > 1000 || s.l.byID.Len() > maxOpen {
		t.Errorf("unanswered %d, forgotten %d, names %d, open %d, ids %d", s.l.Unanswered, s.l.Forgotten, len(s.l.Names), len(s.l.Open), s.l.byID.Len())
	}
}

// FuzzMessage feeds bytes as messages of both directions; counts must add up.
func FuzzMessage(f *testing.F) {
	f.Add(msg(1, 0x0100, "a.example.com", 1, 0))
	f.Add(msg(1, 0x8183, "b", 28, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := New()
		l.UDP(client, server, 1, 53, b, 1, 1)
		l.UDP(server, client, 53, 1, b, 2, 2)
		k, _ := flow.Make(client, server, 1, 53, 6)
		l.TCP(&k, 0, b, 3, 3)
		l.Finish()
		var answered uint64
		for i := range l.ring {
			if l.ring[i].Answered {
				answered++
			}
		}
		if l.Queries != answered+l.Unanswered+l.Resends || l.Responses < answered {
			t.Fatalf("%d queries, %d answered, %d unanswered, %d resends, %d responses", l.Queries, answered, l.Unanswered, l.Resends, l.Responses)
		}
	})
}

func TestRepairedAndVoid(t *testing.T) {
	tests := []struct {
		name string
		play func(s *script)
		want string // late repaired void
	}{
		{"the repetition is answered as fast as others", func(s *script) {
			s.q(0, 1, 7, "a")
			s.r(9, 1, 7, 0, "a", 1)
			s.q(100, 1, 8, "b")
			s.q(800, 1, 8, "b")
			s.r(810, 1, 8, 0, "b", 1)
		}, "1 1 0"},
		{"the first query is answered late", func(s *script) {
			s.q(0, 1, 7, "a")
			s.r(9, 1, 7, 0, "a", 1)
			s.q(100, 1, 8, "b")
			s.q(800, 1, 8, "b")
			s.r(1200, 1, 8, 0, "b", 1)
		}, "1 0 0"},
		{"nothing to compare with", func(s *script) { s.q(0, 1, 7, "a"); s.q(700, 1, 7, "a"); s.r(709, 1, 7, 0, "a", 1) }, "1 0 0"},
		{"another port", func(s *script) {
			s.q(0, 1, 7, "a")
			s.q(700, 2, 8, "a")
			s.r(705, 1, 7, 0, "a", 1)
			s.r(710, 2, 8, 0, "a", 1)
		}, "1 0 0"},
		{"no records", func(s *script) { s.q(0, 1, 7, "a"); s.r(9, 1, 7, 0, "a", 0) }, "0 0 1"},
		{"no records now, some at another time", func(s *script) {
			s.q(0, 1, 7, "a")
			s.r(9, 1, 7, 0, "a", 0)
			s.q(10, 1, 8, "a")
			s.r(19, 1, 8, 0, "a", 2)
		}, "0 0 0"},
		{"no such name", func(s *script) { s.q(0, 1, 7, "a"); s.r(9, 1, 7, 3, "a", 0) }, "0 0 0"},
	}
	for _, tt := range tests {
		s := &script{l: New()}
		tt.play(s)
		s.l.Finish()
		v := s.l.Servers[server]
		if got := fmt.Sprint(v.Late, v.Repaired, v.Void); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
