// Package checksum computes the checksum of the session file the way its
// original tool does: the SHA-256, in hex, of the file's JSON object without the
// member "_checksum", written as Python's json.dumps(data, sort_keys=True)
// writes it. Keys are sorted by code point, ", " and ": " stand between tokens,
// everything outside printable ASCII is escaped, floats are written as repr does.
package checksum

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Key is the member that holds the checksum of all the others.
const Key = "_checksum"

// Of returns the checksum of a JSON object, whether or not it has one already.
func Of(object []byte) (string, error) {
	text, err := canonical(object)
	if err != nil {
		return "", fmt.Errorf("checksum: %w", err)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:]), nil
}

// canonical writes a JSON object the way json.dumps(sort_keys=True) does,
// without the checksum.
func canonical(object []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return "", err
	}
	if _, err := d.Token(); err != io.EOF {
		return "", errors.New("text after the object")
	}
	delete(m, Key)
	var b strings.Builder
	pyValue(&b, m)
	return b.String(), nil
}

func pyValue(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case json.Number:
		b.WriteString(pyNumber(string(v)))
	case string:
		pyString(b, v)
	case []any:
		b.WriteByte('[')
		for i, x := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			pyValue(b, x)
		}
		b.WriteByte(']')
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys) // UTF-8 sorts by code point, as Python's str does
		b.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				b.WriteString(", ")
			}
			pyString(b, k)
			b.WriteString(": ")
			pyValue(b, v[k])
		}
		b.WriteByte('}')
	}
}

// pyNumber writes an integer as it stands and a float as Python's repr does.
func pyNumber(n string) string {
	if !strings.ContainsAny(n, ".eE") {
		if n == "-0" {
			return "0"
		}
		return n
	}
	f, err := strconv.ParseFloat(n, 64)
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case err != nil:
		return n
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func pyString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"':
			b.WriteString(`\"`)
		case '\\':
			b.WriteString(`\\`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case '\b':
			b.WriteString(`\b`)
		case '\f':
			b.WriteString(`\f`)
		default:
			pyRune(b, r)
		}
	}
	b.WriteByte('"')
}

func pyRune(b *strings.Builder, r rune) {
	switch {
	case r >= ' ' && r <= '~':
		b.WriteRune(r)
	case r < 0x10000 && utf8.ValidRune(r):
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		hi, lo := utf16.EncodeRune(r)
		fmt.Fprintf(b, `\u%04x\u%04x`, hi, lo)
	}
}
