package term

import (
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"

	"ghostbot/bot/show"
)

// Widths of the layout, in columns.
const (
	minWidth = 32
	maxWidth = 100
)

// columns measures text. What a border is drawn with is one column wide whatever
// the language of the environment says.
func columns() *runewidth.Condition { return &runewidth.Condition{StrictEmojiNeutral: true} }

// write prints what is laid out already. When that is not possible any more nobody
// sees what happens here: the case is left.
func (f *Front) write(s string) {
	if _, err := io.WriteString(f.o.Console, s); err != nil {
		f.leave(err)
	}
}

func (f *Front) width() int { return min(max(f.o.Console.Width(), minWidth), maxWidth) }

// print writes text behind a prefix, wrapped at blanks; further lines are
// indented as deep as the prefix of the first.
func (f *Front) print(prefix, text string) {
	first := columns().StringWidth(prefix)
	indent := min(first, 14, f.width()/3)
	var b strings.Builder
	lead, used := prefix, first-indent // of the first line, beyond the indent
	for _, line := range strings.Split(strings.TrimRight(show.Clean(text), "\n"), "\n") {
		for _, part := range flow(line, used, f.width()-indent, false) {
			used = 0
			b.WriteString(strings.TrimRight(lead+part, " ") + "\n")
			lead = strings.Repeat(" ", indent)
		}
	}
	f.write(b.String())
}

// quote prints the first lines of an output as they are.
func (f *Front) quote(text string) {
	text = strings.TrimRight(show.Clean(text), "\n")
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	more := len(lines) - outputLines
	for _, l := range lines[:min(len(lines), outputLines)] {
		f.print("        | ", l)
	}
	if more > 0 {
		f.print("        | ", fmt.Sprintf("… %d more lines in the journal", more))
	}
}

// rule writes a border line.
func (f *Front) rule() { f.write(strings.Repeat("═", f.width()) + "\n") }

// Banner opens a case on the screen.
func (f *Front) Banner(version, sid string) {
	f.rule()
	f.print("  ", "GHOSTBOT  "+version+"  |  Session: "+sid)
	f.rule()
}

// Say prints one line of the program itself.
func (f *Front) Say(text string) { f.print("", text) }

// wrap is flow on lines that are all free.
func wrap(line string, width int, hard bool) []string { return flow(line, 0, width, hard) }

// flow breaks a line at blanks so that no part is wider than width columns. A word
// that is wider is broken if hard, and else left whole, so that a path or a command
// can be copied. There is always one part. Of the first line used columns are taken.
func flow(line string, used, width int, hard bool) []string {
	var out []string
	cur, w, width := "", used, max(width, 2) // a wide rune has room
	c := columns()
	for _, word := range strings.SplitAfter(strings.ReplaceAll(line, "\t", "    "), " ") {
		for {
			n := c.StringWidth(strings.TrimRight(word, " "))
			if w+n <= width || cur == "" && !hard && w == 0 {
				cur, w = cur+word, w+c.StringWidth(word)
				break
			}
			if cur != "" || w > 0 {
				out, cur, w = append(out, strings.TrimRight(cur, " ")), "", 0
				continue
			}
			head := c.Truncate(word, width, "")
			if head == "" { // one rune wider than the line
				head = string([]rune(word)[:1])
			}
			out, word = append(out, head), word[len(head):]
		}
	}
	return append(out, strings.TrimRight(cur, " "))
}

// box frames lines. A line that begins with a label ("COMMAND:  ls") keeps what is
// wrapped beneath the text, not beneath the label.
func box(title string, rows [][2]string, foot string, width int) string {
	inner := width - 4
	c := columns()
	var b strings.Builder
	line := func(s string) {
		b.WriteString("│ " + s + strings.Repeat(" ", max(0, inner-c.StringWidth(s))) + " │\n")
	}
	b.WriteString("┌" + strings.Repeat("─", width-2) + "┐\n")
	line(strings.Repeat(" ", max(0, (inner-c.StringWidth(title))/2)) + title)
	for _, r := range rows {
		label := fmt.Sprintf("%-12s", r[0])
		for _, part := range wrap(show.Clean(r[1]), inner-12, true) {
			line(label + part)
			label = strings.Repeat(" ", 12)
		}
	}
	line("")
	for _, part := range wrap(foot, inner, true) {
		line(part)
	}
	b.WriteString("└" + strings.Repeat("─", width-2) + "┘\n")
	return b.String()
}
