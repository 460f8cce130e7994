package truncate

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// How much of an output decides about its type.
const (
	sampleChars = 1000
	sampleLines = 10
)

// typeOf detects the shape of trimmed text. The order matters: a table of
// control characters is binary, a one-line JSON array is no log line.
func typeOf(s string) string {
	switch {
	case s == "":
		return Empty
	case IsBinary([]byte(s[:min(len(s), 4*sampleChars)])):
		return Binary
	case s[0] == '[' && json.Valid([]byte(s)):
		return JSONArray
	case s[0] == '{' && json.Valid([]byte(s)):
		return JSONObject
	case looksTabular(s):
		return Tabular
	}
	return LogStream
}

// IsBinary says whether bytes are not text: of the first thousand characters
// more than a tenth are control characters or broken UTF-8. Tab, CR, LF and
// terminal escapes are text; the coloured output of a tool is not binary.
// Call it on the raw bytes: cleaned text has lost what it looks for.
func IsBinary(b []byte) bool {
	seen, bad := 0, 0
	for len(b) > 0 && seen < sampleChars {
		if !utf8.FullRune(b) { // cut by the sample, not broken
			break
		}
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError:
			bad++
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != 0x1b:
			bad++
		}
		seen, b = seen+1, b[n:]
	}
	return bad*10 > seen
}

// looksTabular wants three of the first ten lines with two or more columns and
// at most two different column counts. Columns are two or more spaces apart.
func looksTabular(s string) bool {
	counts := map[int]bool{}
	lines := 0
	for i := 0; i < sampleLines && s != ""; i++ {
		line, rest, _ := strings.Cut(s, "\n")
		s = rest
		if n := columns(line); n > 1 {
			counts[n] = true
			lines++
		}
	}
	return lines >= 3 && len(counts) <= 2
}

// columns counts runs of text that two or more spaces set apart, up to 64 in
// the first 4,096 bytes: a longer line is no table row.
func columns(line string) int {
	line = strings.Trim(line[:min(len(line), 4096)], " ")
	n := 0
	for line != "" && n < 64 {
		n++
		i := strings.Index(line, "  ")
		if i < 0 {
			break
		}
		line = strings.TrimLeft(line[i:], " ")
	}
	return n
}
