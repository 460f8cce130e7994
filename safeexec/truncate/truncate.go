// Package truncate shortens what a command printed so that a person and a
// model can read it, without breaking its shape.
//
// # When
//
// Standard output is shortened when it has more than [MaxLines] lines or more
// than [MaxChars] characters (4,000 tokens at four characters a token). Lines
// are counted by splitting at the newline, so a final newline makes one more.
// Standard error keeps every line up to [MaxLines].
//
// # How
//
//	empty        nothing but white space: unchanged
//	binary       more than a tenth control or broken characters: one line instead
//	json_array   first three items, a message, the last item
//	json_object  the same for every list in it; objects at depth three become "..."
//	tabular      the header, the first rows, a message
//	log_stream   first twenty lines, a message, the last ten
//
// When that is not enough (one huge line, four huge items, ten thousand
// fields) long strings, wide objects and long lines are cut as well, until the
// result is within both limits. Every message starts with "[truncated: ", which
// is how the redactor finds the edges that a cut made.
//
// # What always holds
//
// The result is never longer than the text, is valid UTF-8 when the text is,
// stays valid JSON when the text was and the type says so, and no character is
// ever split. The package knows no secrets: its caller redacts before and after.
package truncate

import (
	"strings"
	"unicode/utf8"
)

// Limits of what is shown of one output.
const (
	MaxLines = 200    // lines
	MaxChars = 16_003 // characters: the last count whose quarter is 4,000 tokens
)

// The values of Metadata.OutputType.
const (
	Empty      = "empty"
	Binary     = "binary"
	JSONArray  = "json_array"
	JSONObject = "json_object"
	Tabular    = "tabular"
	LogStream  = "log_stream"
)

// Metadata says what was done to an output. Its JSON form is part of the
// response that a brain sees, so names and types stay.
type Metadata struct {
	TruncationApplied bool   `json:"truncation_applied"`
	TotalLines        int    `json:"total_lines"`           // of the text
	LinesShown        int    `json:"lines_shown"`           // of the text's own lines, or of the re-indented JSON
	TotalBytes        int    `json:"total_bytes,omitempty"` // of the text, only when it was shortened
	OutputType        string `json:"output_type"`
	ItemsTotal        *int   `json:"items_total,omitempty"` // JSON arrays only
	ItemsShown        *int   `json:"items_shown,omitempty"` // JSON arrays only
}

// Output shortens standard output by its shape.
func Output(text string) (string, Metadata) {
	trimmed := strings.TrimSpace(text)
	m := Metadata{TotalLines: countLines(text), OutputType: typeOf(trimmed)}
	m.LinesShown = m.TotalLines
	if m.OutputType == Binary {
		return hide(text, m)
	}
	if m.OutputType == JSONArray {
		n := len(elements(trimmed))
		m.ItemsTotal, m.ItemsShown = ptr(n), ptr(n)
	}
	if m.OutputType == Empty && fits(trimmed) || fits(text) {
		return text, m
	}
	return shorten(text, trimmed, m)
}

// shorten applies the rule of the type; every rule falls back to the one for
// lines, which can shorten anything.
func shorten(text, trimmed string, m Metadata) (string, Metadata) {
	m.TruncationApplied, m.TotalBytes = true, len(text)
	var out string
	ok := false
	switch m.OutputType {
	case JSONArray, JSONObject:
		out, ok = shortenJSON(trimmed, len(text))
		if ok {
			m.LinesShown = countLines(out)
			if m.ItemsTotal != nil {
				m.ItemsShown = ptr(min(*m.ItemsTotal, keepHead+keepTail))
			}
			return out, m
		}
		if m.ItemsShown != nil {
			m.ItemsShown = ptr(0)
		}
	case Tabular:
		out, m.LinesShown, ok = shortenTable(text)
		if ok {
			return out, m
		}
	}
	out, m.LinesShown = shortenLines(text, logHead, logTail, MaxChars)
	return out, m
}

// Stderr shortens standard error, which says why something failed: up to
// MaxLines lines all of them are shown. Beyond that the head and the tail stay.
// Only a text over stderrChars has its longest lines cut.
func Stderr(text string) (string, Metadata) {
	m := Metadata{TotalLines: countLines(text), OutputType: LogStream}
	m.LinesShown = m.TotalLines
	if strings.TrimSpace(text) == "" {
		m.OutputType = Empty
	}
	if countLines(strings.TrimSuffix(text, "\n")) <= MaxLines && len(text) <= stderrChars {
		return text, m
	}
	m.TruncationApplied, m.TotalBytes = true, len(text)
	body, end := text, ""
	if strings.HasSuffix(text, "\n") { // the end of the last line, not one more
		body, end = text[:len(text)-1], "\n"
	}
	out, n := shortenLines(body, stderrHead, stderrTail, stderrChars)
	m.LinesShown = n
	return out + end, m
}

// Hidden is the line that stands for n bytes which are not text. A caller that
// looked at the raw bytes with IsBinary uses it in their place.
func Hidden(n int) string {
	return "[binary output: " + itoa(n) + " bytes, not displayed]"
}

func hide(text string, m Metadata) (string, Metadata) {
	m.TruncationApplied, m.TotalBytes, m.LinesShown = true, len(text), 0
	for _, s := range []string{Hidden(len(text)), "[binary]"} {
		if len(s) <= utf8.RuneCountInString(text) {
			return s, m
		}
	}
	return "", m
}

// fits says whether both limits hold.
func fits(s string) bool {
	return countLines(s) <= MaxLines && (len(s) <= MaxChars || utf8.RuneCountInString(s) <= MaxChars)
}

func countLines(s string) int {
	if s == "" {
		return 0
	}
	return strings.Count(s, "\n") + 1
}

func ptr(n int) *int { return &n }
