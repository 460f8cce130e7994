package truncate

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// What stays of a text that is too long.
const (
	logHead, logTail       = 20, 10
	stderrHead, stderrTail = 150, 50
	stderrChars            = 256 << 10 // standard error below this keeps its lines whole
	tableRows              = 199       // data rows; with the header 200 lines
	minCut                 = 64        // a line is cut only when it loses more than the message adds
)

func itoa(n int) string { return strconv.Itoa(n) }

// shortenLines keeps head and tail lines, then cuts the longest lines until
// the text has no more than maxChars characters. It returns how many of the
// text's lines are in the result.
func shortenLines(text string, head, tail, maxChars int) (string, int) {
	lines := strings.Split(text, "\n")
	shown := lines
	msg := ""
	if len(lines) > head+tail {
		msg = "[truncated: " + itoa(len(lines)-head-tail) + " lines omitted]"
		shown = append(lines[:head:head], lines[len(lines)-tail:]...)
	} else {
		head = -1
	}
	for width := maxChars; ; width /= 2 {
		out := joinCut(shown, head, msg, width)
		if utf8.RuneCountInString(out) <= maxChars || width <= minCut {
			return smaller(out, text, maxChars), len(shown)
		}
	}
}

// joinCut joins lines, each cut to width characters, with msg after head lines.
func joinCut(lines []string, head int, msg string, width int) string {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == head {
			b.WriteString(msg)
			b.WriteByte('\n')
		}
		b.WriteString(cutLine(l, width))
	}
	return b.String()
}

// smaller is the promise that text never grows, whatever happened before.
func smaller(out, text string, maxChars int) string {
	if len(out) <= len(text) && utf8.RuneCountInString(out) <= maxChars {
		return out
	}
	return prefix(text, min(maxChars, utf8.RuneCountInString(text)))
}

// cutLine keeps the first two thirds and the last third of width characters of
// a line that is longer, and says how many are missing.
func cutLine(l string, width int) string {
	if len(l) <= width+minCut {
		return l
	}
	n := utf8.RuneCountInString(l)
	if n <= width+minCut {
		return l
	}
	tail := width / 3
	return prefix(l, width-tail) + "[truncated: " + itoa(n-width) + " characters omitted]" + suffix(l, tail)
}

// prefix is the first n characters of s.
func prefix(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// suffix is the last n characters of s.
func suffix(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, w := utf8.DecodeLastRuneInString(s[:i])
		i -= w
	}
	return s[i:]
}

// shortenTable keeps the header and as many rows as the limits allow. It gives
// up when not even three rows fit: then the lines are too long for a table.
func shortenTable(text string) (string, int, bool) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	rows := len(lines) - 1
	used, keep := utf8.RuneCountInString(lines[0])+minCut, 0
	for keep < min(rows, tableRows) {
		used += utf8.RuneCountInString(lines[keep+1]) + 1
		if used > MaxChars {
			break
		}
		keep++
	}
	if keep == rows { // only the trailing newlines were too many
		return strings.Join(lines, "\n"), len(lines), true
	}
	msg := "[truncated: showing " + itoa(keep) + " of " + itoa(rows) + " rows]"
	out := strings.Join(lines[:keep+1], "\n") + "\n" + msg
	return out, keep + 1, keep >= 3 && len(out) <= len(text)
}
