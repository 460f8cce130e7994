package process

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
)

// pem is a private key in shape only.
func pem(lines int) string {
	return "-----BEGIN PRIVATE" + " KEY-----\n" + strings.Repeat("MIIC"+strings.Repeat("Qk", 30)+"\n", lines) + "-----END PRIVATE" + " KEY-----\n"
}

// TestCapture: whatever the chunks, head and tail are those of the stream.
func TestCapture(t *testing.T) {
	var stream []byte
	for i := range 500 {
		stream = fmt.Appendf(stream, "%d,", i)
	}
	for _, limit := range []int{1, 2, 3, 10, 100, 1889, 1890, 1891, 5000} {
		for _, chunk := range []int{1, 2, 3, 7, 64, 5000} {
			c := capture{limit: limit, over: func() {}}
			for b := stream; len(b) > 0; b = b[min(chunk, len(b)):] {
				c.add(b[:min(chunk, len(b))])
			}
			got := c.take()
			half := min(len(stream), limit-limit/2)
			rest := min(len(stream)-half, limit/2)
			want := Stream{Head: stream[:half], Tail: stream[len(stream)-rest:], Total: int64(len(stream))}
			if !bytes.Equal(got.Head, want.Head) || !bytes.Equal(got.Tail, want.Tail) || got.Total != want.Total {
				t.Fatalf("limit %d, chunks of %d:\n got %q %q %d\nwant %q %q %d", limit, chunk, got.Head, got.Tail, got.Total, want.Head, want.Tail, want.Total)
			}
		}
	}
}

func TestPump(t *testing.T) {
	over := 0
	c := capture{limit: 10, over: func() { over++ }}
	c.pump(iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 10*OverFactor))))
	if c.total != 160 || over != 0 {
		t.Errorf("at the bound: total %d, over %d", c.total, over)
	}
	c.pump(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("xyz"))))
	if c.total != 161 || over == 0 {
		t.Errorf("past the bound, reader fails: total %d, over %d", c.total, over)
	}
	c.pump(iotest.ErrReader(errors.New("gone")))
}

func TestCuts(t *testing.T) {
	key := pem(3)
	long := strings.Repeat("A", 3*edge)
	for _, c := range []struct {
		name, in, end, start string
	}{
		{"empty", "", "", ""},
		{"lines", "one\ntwo\n", "one\ntwo\n", "two\n"},
		{"half a word", "one\ntwo thr", "one\ntwo ", "two thr"},
		{"one token", long, "", ""},
		{"a key that begins", "a\n" + key[:60], "a\n", key[:60]},
		{"a key that ends", key[40:] + "b\n", key[40:] + "b\n", "b\n"},
		{"a whole key", "a\n" + key + "b\n", "a\n" + key + "b\n", key + "b\n"},
		{"far newline", long + " x=1\nb\n", long + " x=1\nb\n", "x=1\nb\n"},
	} {
		if got := string(CutEnd([]byte(c.in))); got != c.end {
			t.Errorf("%s: end\n got %q\nwant %q", c.name, got, c.end)
		}
		if got := string(cutStart([]byte(c.in))); got != c.start {
			t.Errorf("%s: start\n got %q\nwant %q", c.name, got, c.start)
		}
	}
}

// FuzzCuts: a cut never invents text, and never leaves a key's beginning.
func FuzzCuts(f *testing.F) {
	f.Add([]byte("a=b\nc"), 3)
	f.Add([]byte(pem(2)), 100)
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		if at < 0 || at > len(b) {
			return
		}
		head, rest := CutEnd(bytes.Clone(b[:at])), cutStart(bytes.Clone(b[at:]))
		if !bytes.HasPrefix(b, head) || !bytes.HasSuffix(b, rest) {
			t.Errorf("cut at %d invents text: %q %q", at, head, rest)
		}
		if i := bytes.LastIndex(head, []byte("-----BEGIN ")); i >= 0 && !bytes.Contains(head[i:], []byte("-----END ")) {
			t.Errorf("half a key is left: %q", head)
		}
	})
}
