package jsonl

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

type in struct {
	ID   json.RawMessage `json:"id"`
	Text string          `json:"text"`
}

func TestEach(t *testing.T) {
	tests := []struct{ name, in, out, err string }{
		{"in order", "{\"id\":1,\"text\":\"<a>\"}\n\n  \n{\"id\":2,\"text\":\"b\"}", "{\"id\":1,\"text\":\"<a>\"}\n{\"id\":2,\"text\":\"b\"}\n", ""},
		{"nothing", "", "", ""},
		{"not JSON", "{\"id\":1}\n{", "{\"id\":1,\"text\":\"\"}\n", "line 2 of standard input: not JSON: unexpected end of JSON input (accepted: X)"},
		{"not an object", "[1]\n", "", "line 1 of standard input: not an object (accepted: X)"},
		{"another type", "{\"text\":7}\n", "", "line 1 of standard input: text is a number (accepted: X)"},
		{"too long", strings.Repeat("x", maxLine+1), "", "line 1 of standard input: longer than 67108864 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			err := Each(strings.NewReader(tt.in), &out, "X", func(v in) any { return v })
			if out.String() != tt.out {
				t.Errorf("out %q, want %q", out.String(), tt.out)
			}
			switch {
			case tt.err == "" && err != nil, tt.err != "" && (err == nil || err.Error() != tt.err || !errors.Is(err, ErrInput)):
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

type full struct{}

// Write is a full disk.
func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestLostOutputIsNoBadInput(t *testing.T) {
	err := Each(strings.NewReader(`{"id":1}`), full{}, "X", func(v in) any { return v })
	if !errors.Is(err, io.ErrShortWrite) || errors.Is(err, ErrInput) {
		t.Errorf("error %v", err)
	}
}

// What was asked is answered before more is read: somebody may be waiting.
func TestEachAnswersAtOnce(t *testing.T) {
	questions, ask := io.Pipe()
	answers, answer := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Each(questions, answer, "X", func(v in) any { return v }) }()
	b := make([]byte, 64)
	for range 3 {
		io.WriteString(ask, "{\"id\":1,\"text\":\"a\"}\n")
		if n, err := answers.Read(b); err != nil || string(b[:n]) != "{\"id\":1,\"text\":\"a\"}\n" {
			t.Fatalf("read %q, %v", b[:n], err)
		}
	}
	ask.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestReadLine(t *testing.T) {
	for _, tc := range []struct{ in, want string }{{"", ""}, {"\n", "|"}, {"a\nb", "a|b"}, {strings.Repeat("x", 5<<20) + "\nb\n", strings.Repeat("x", 5<<20) + "|b|"}} {
		var got []string
		in := reader(tc.in)
		for {
			line, err := readLine(in)
			got = append(got, strings.TrimSuffix(string(line), "\n"))
			if err != nil {
				break
			}
		}
		if s := strings.Join(got, "|"); s != tc.want {
			t.Errorf("%d bytes: got %d bytes, want %d", len(tc.in), len(s), len(tc.want))
		}
	}
	if _, err := readLine(reader(strings.Repeat("x", maxLine+1))); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a line without end: %v", err)
	}
}

func reader(s string) *bufio.Reader { return bufio.NewReader(strings.NewReader(s)) }
