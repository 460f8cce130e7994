// Package jsonl is a filter of JSON lines: one object in, one out, in the same order,
// as soon as it is there.
package jsonl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest input line, in bytes.
const maxLine = 64 << 20

// ErrInput marks an error of what was read, not of what was written.
var ErrInput = errors.New("input")

// bad is an error that is an ErrInput and says only why.
type bad struct{ error }

// Is makes it an ErrInput.
func (b bad) Is(target error) bool { return target == ErrInput }

// Unwrap returns why.
func (b bad) Unwrap() error { return b.error }

// decode reads one JSON object and says why it is none.
func decode(line []byte, v any) string {
	err := json.Unmarshal(line, v)
	var typ *json.UnmarshalTypeError
	switch {
	case bytes.TrimSpace(line)[0] != '{' && (err == nil || errors.As(err, &typ)):
		return "not an object"
	case errors.As(err, &typ):
		return typ.Field + " is a " + typ.Value
	case err != nil:
		return "not JSON: " + err.Error()
	}
	return ""
}

// Each decodes one T a line and writes what f makes of it, in order. want shows
// people what a line is. An error of the input is an [ErrInput].
func Each[T any](from io.Reader, to io.Writer, want string, f func(T) any) error {
	in := bufio.NewReaderSize(from, 1<<20)
	if head, _ := in.Peek(3); string(head) == "\ufeff" { // the mark that some editors put in front
		_, _ = in.Discard(3) // which were there
	}
	out := bufio.NewWriterSize(to, 1<<20)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for n := 1; ; n++ {
		line, err := readLine(in)
		if len(bytes.TrimSpace(line)) > 0 {
			var v T
			if why := decode(line, &v); why != "" {
				out.Flush()
				return bad{fmt.Errorf("line %d of standard input: %s (accepted: %s)", n, why, want)}
			}
			if werr := enc.Encode(f(v)); werr != nil {
				return werr
			}
		}
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			out.Flush()
			return bad{fmt.Errorf("line %d of standard input: %w", n, err)}
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil { // a person or a program may be waiting for the answer
				return err
			}
		}
	}
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, fmt.Errorf("longer than %d bytes", maxLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			line = append(line, part...)
			continue
		}
		if line == nil {
			return part, err
		}
		return append(line, part...), err
	}
}
