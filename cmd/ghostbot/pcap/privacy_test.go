package pcap

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ghostbot/forensics"
)

// film writes a capture between 192.0.2.1 and 198.51.100.2, packet by packet.
type film struct {
	bytes.Buffer
	ms  int64
	seq [2]uint32
}

func newFilm() *film {
	f := &film{seq: [2]uint32{1000, 5000}}
	head := make([]byte, 24)
	binary.LittleEndian.PutUint32(head, 0xa1b2c3d4)
	binary.LittleEndian.PutUint32(head[16:], 65535)
	head[20] = 1
	f.Write(head)
	return f
}

func (f *film) packet(back bool, proto byte, l4 []byte) {
	f.ms += 20
	b := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 0, byte(f.ms >> 8), byte(f.ms), 0x40, 0, 64, proto, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2}, l4...)
	if back {
		copy(b[26:], []byte{198, 51, 100, 2, 192, 0, 2, 1})
	}
	binary.BigEndian.PutUint16(b[16:], uint16(20+len(l4)))
	var h [16]byte
	binary.LittleEndian.PutUint32(h[:], uint32(1_700_000_000+f.ms/1000))
	binary.LittleEndian.PutUint32(h[4:], uint32(f.ms%1000*1000))
	binary.LittleEndian.PutUint32(h[8:], uint32(len(b)))
	binary.LittleEndian.PutUint32(h[12:], uint32(len(b)))
	f.Write(h[:])
	f.Write(b)
}

// tcp sends a segment; side 0 is the client, whose port is cp.
func (f *film) tcp(side int, cp, sp uint16, flags byte, payload string) {
	b := make([]byte, 20, 20+len(payload))
	from, to := cp, sp
	if side == 1 {
		from, to = sp, cp
	}
	binary.BigEndian.PutUint16(b, from)
	binary.BigEndian.PutUint16(b[2:], to)
	binary.BigEndian.PutUint32(b[4:], f.seq[side])
	binary.BigEndian.PutUint32(b[8:], f.seq[side^1])
	b[12], b[13], b[14] = 0x50, flags, 100
	f.packet(side == 1, 6, append(b, payload...))
	f.seq[side] += uint32(len(payload))
	if flags&3 != 0 {
		f.seq[side]++
	}
}

func (f *film) open(cp, sp uint16) {
	f.tcp(0, cp, sp, 2, "")
	f.tcp(1, cp, sp, 0x12, "")
	f.tcp(0, cp, sp, 0x10, "")
}

func (f *film) udp(back bool, from, to uint16, payload string) {
	b := make([]byte, 8)
	binary.BigEndian.PutUint16(b, from)
	binary.BigEndian.PutUint16(b[2:], to)
	binary.BigEndian.PutUint16(b[4:], uint16(8+len(payload)))
	f.packet(back, 17, append(b, payload...))
}

// mark is in every payload of the capture; it may not be in any output.
const mark = "m4rk3d"

// marked is a capture of everything that has payload: HTTP with paths, queries, headers and
// bodies, answers with errors, DNS with TXT, TLS with junk, DHCP with a host name, SIP, pings,
// and a connection of a protocol that nobody knows.
func marked() *film {
	f := newFilm()
	f.open(4000, 80)
	f.tcp(0, 4000, 80, 0x18, "GET /"+mark+"/path?token="+mark+" HTTP/1.1\r\nHost: www.example.com\r\nCookie: sid="+mark+"\r\nAuthorization: Basic "+mark+"\r\n\r\n")
	f.tcp(1, 4000, 80, 0x18, "HTTP/1.1 200 "+mark+"\r\nSet-Cookie: sid="+mark+"\r\n\r\n<html>"+mark+"</html>")
	for range 4 {
		f.tcp(0, 4000, 80, 0x18, "POST /"+mark+" HTTP/1.1\r\n\r\n"+mark)
		f.tcp(1, 4000, 80, 0x18, "HTTP/1.1 503 "+mark+"\r\nLocation: /"+mark+"\r\n\r\n"+mark)
	}
	f.tcp(1, 4000, 80, 0x14, "")
	question := "\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07example\x03com\x00\x00\x10\x00\x01"
	answer := "\x00\x07\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\x03www\x07example\x03com\x00\x00\x10\x00\x01\xc0\x0c\x00\x10\x00\x01\x00\x00\x00\x3c\x00\x07\x06" + mark
	f.udp(false, 5000, 53, question)
	f.udp(true, 53, 5000, answer)
	f.open(4001, 443)
	f.tcp(0, 4001, 443, 0x18, "\x16\x03\x01\x00\x04\x01\x00\x00\x00\x17\x03\x03\x00\x06"+mark)
	f.tcp(1, 4001, 443, 0x18, "HTTP/1.1 400 "+mark+"\r\n\r\n"+mark)
	f.open(4002, 9999)
	for range 3 {
		f.tcp(0, 4002, 9999, 0x18, "user "+mark+" pass "+mark)
		f.seq[0] -= uint32(len("user " + mark + " pass " + mark)) // again
	}
	f.udp(false, 5001, 5060, "INVITE sip:"+mark+"@example.com SIP/2.0\r\n\r\n")
	f.udp(false, 5002, 9998, mark)
	f.packet(false, 1, []byte("\x08\x00\x00\x00\x00\x01\x00\x01"+mark+mark))
	f.packet(true, 1, []byte("\x00\x00\x00\x00\x00\x01\x00\x01"+mark+"another"))
	dhcp := make([]byte, 240)
	dhcp[0] = 1
	copy(dhcp[44:], mark) // sname
	binary.BigEndian.PutUint32(dhcp[236:], 0x63825363)
	f.udp(false, 68, 67, string(dhcp)+"\x35\x01\x01\x0c\x06"+mark+"\xff")
	f.packet(true, 1, append([]byte("\x03\x01\x00\x00\x00\x00\x00\x00\x45\x00\x00\x40\x00\x01\x00\x00\x40\x06\x00\x00\xc0\x00\x02\x01\xc6\x33\x64\x02\x0f\xa0\x00\x50\x00\x00\x00\x01"), mark...))
	return f
}

// TestNoPayload: what packets carry reaches no output; names of hosts do.
func TestNoPayload(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "a.pcap"), filepath.Join(dir, "b.pcap")
	film := marked()
	for _, name := range []string{file, other} {
		if err := os.WriteFile(name, film.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(film.String(), mark); n < 40 {
		t.Fatalf("%d marks", n)
	}
	out := filepath.Join(dir, "out")
	var all strings.Builder
	for _, args := range [][]string{
		{file, "-semantic-dir", out, "-report-dir", out, "-plots", out}, {file, "-json", "-frames"},
		{file, "-compare", other, "-mode", "endpoints", "-report-dir", out}, {file, "-compare", other, "-mode", "baseline", "-json"}, {file, "-compare", other, "-mode", "endpoints", "-json"},
	} {
		text, err := verb(context.Background(), t, args...)
		if err != nil {
			t.Fatalf("%v: %v", args[1:], err)
		}
		all.WriteString(text)
	}
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) < 5 {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(out, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(raw)
	}
	for _, bad := range []string{mark, "token=", "Cookie", "Authorization", "<html>", "INVITE", "user "} {
		if i := strings.Index(all.String(), bad); i >= 0 {
			t.Errorf("%q is in an output: ...%s", bad, all.String()[max(0, i-80):min(all.Len(), i+80)])
		}
	}
	for _, good := range []string{"www.example.com", "http-errors", "TXT"} {
		if !strings.Contains(all.String(), good) {
			t.Errorf("%q is in no output", good)
		}
	}
}

// TestBadInput is the list of what may come instead of a capture: one line and the exit of
// wrong usage, or what could be read, with the reason.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	whole := marked().Bytes()
	packets := 0
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	set := func(at int, v uint32) []byte {
		b := bytes.Clone(whole)
		binary.LittleEndian.PutUint32(b[at:], v)
		return b
	}
	first := 24 // record header of the first packet: seconds, microseconds, captured, on the wire
	packets = count(t, whole)
	unreadable := write("unreadable.pcap", whole)
	if err := os.Chmod(unreadable, 0); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what    string
		file    string
		refused string // a part of the error; else the file is read
		least   int    // packets
		reason  bool   // provenance.error
	}{
		{"not a capture", write("text", []byte("this is no capture, and long enough to be one")), "not a capture", 0, false},
		{"zero bytes", write("empty", nil), "not a capture", 0, false},
		{"three bytes", write("three", whole[:3]), "not a capture", 0, false},
		{"a directory", dir, "not a regular file", 0, false},
		{"a device", "/dev/null", "not a regular file", 0, false},
		{"no such file", filepath.Join(dir, "none"), "no such file", 0, false},
		{"header only", write("header", whole[:24]), "", 0, false},
		{"cut in the middle of a packet", write("cut", whole[:len(whole)-5]), "", packets - 1, true},
		{"cut in the header of a record", write("record", whole[:24+7]), "", 0, true},
		{"a length that lies", write("long", set(first+8, 0x7fffffff)), "", packets - 2, true},
		{"a length of zero", write("zero", set(first+8, 0)), "", packets - 3, true},
		{"more on the wire than can be", write("wire", set(first+12, 0x7fffffff)), "", packets - 2, false},
		{"time going backwards", write("back", set(first, 1_900_000_000)), "", packets, false},
		{"a negative time", write("negative", set(first, 0x80000000)), "", packets, false},
		{"an absurd time", write("absurd", set(first, 0xffffffff)), "", packets, false},
		{"microseconds past the second", write("micro", set(first+4, 0xffffffff)), "", packets - 2, false},
	} {
		text, err := verb(context.Background(), t, tt.file, "-json")
		if tt.refused != "" {
			if !isUsage(err) || !strings.Contains(err.Error(), tt.refused) || strings.Contains(err.Error(), "\n") || text != "" {
				t.Errorf("%s: %v, %.80s", tt.what, err, text)
			}
			continue
		}
		var d struct {
			Summary struct {
				Packets int `json:"total_packets"`
			} `json:"capture_summary"`
			Findings   []struct{ Code, Summary string }
			Provenance struct{ Error string }
		}
		if err != nil || json.Unmarshal([]byte(text), &d) != nil {
			t.Errorf("%s: %v, %.80s", tt.what, err, text)
			continue
		}
		if d.Summary.Packets < tt.least || tt.reason && d.Provenance.Error == "" {
			t.Errorf("%s: %d of %d packets, error %q", tt.what, d.Summary.Packets, packets, d.Provenance.Error)
		}
		empty := len(d.Findings) > 0 && d.Findings[0].Code == "empty-capture"
		if empty != (tt.what == "header only") || d.Summary.Packets == 0 && d.Findings[0].Code == "healthy" {
			t.Errorf("%s: %+v", tt.what, d.Findings)
		}
		if _, err := verb(context.Background(), t, tt.file, "-report-dir", filepath.Join(dir, "r"), "-plots", filepath.Join(dir, "p"), "-semantic-dir", filepath.Join(dir, "s")); err != nil {
			t.Errorf("%s: report: %v", tt.what, err)
		}
	}
	if os.Geteuid() != 0 { // whom nothing is unreadable
		if _, err := verb(context.Background(), t, unreadable); !isUsage(err) || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("unreadable: %v", err)
		}
	}
}

// TestManyPacketsClaimed: a block that claims 2^31 packets' worth of bytes is no reason to
// wait, nor to take memory.
func TestManyPacketsClaimed(t *testing.T) {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0x0a0d0d0a)
	b = le.AppendUint32(b, 28)
	b = le.AppendUint32(b, 0x1a2b3c4d)
	b = append(b, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255)
	b = le.AppendUint32(b, 28)
	b = append(le.AppendUint32(le.AppendUint32(b, 1), 20), 1, 0, 0, 0, 0, 0, 4, 0)
	b = le.AppendUint32(b, 20)
	for _, length := range []uint32{1 << 31, 0xfffffff0, 12, 0} {
		c := le.AppendUint32(bytes.Clone(b), 6)
		c = append(le.AppendUint32(c, length), make([]byte, 200)...)
		a, err := forensics.AnalyzeReader(context.Background(), bytes.NewReader(c), int64(len(c)), "x", forensics.Options{})
		if err != nil {
			t.Errorf("%d: %v", length, err)
			continue
		}
		if d := a.Semantic(); d.Provenance.Error == "" || d.Findings[0].Code != "unreadable-capture" {
			t.Errorf("%d: %q, %+v", length, d.Provenance.Error, d.Findings)
		}
	}
}

// TestLiar: a reader that never gives anything is the end of a file, and one that fails is
// an error or a partial result.
func TestLiar(t *testing.T) {
	whole := marked().Bytes()
	broken := io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), failing{})
	a, err := forensics.AnalyzeReader(context.Background(), broken, int64(len(whole)), "x", forensics.Options{})
	if err == nil && (a.Facts.Packets == 0 || a.Semantic().Provenance.Error == "") {
		t.Errorf("%d packets, %q", a.Facts.Packets, a.Semantic().Provenance.Error)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func isUsage(err error) bool { return errors.Is(err, ErrUsage) }

func count(t *testing.T, b []byte) int {
	t.Helper()
	a, err := forensics.AnalyzeReader(context.Background(), bytes.NewReader(b), int64(len(b)), "x", forensics.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return int(a.Facts.Packets)
}
