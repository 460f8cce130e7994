package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// vt is the part of a terminal (ECMA-48) that a line editor uses: carriage return,
// line feed, cursor up, down, left, right, and erasing to the right.
type vt struct {
	lines    [][]rune
	row, col int
}

var control = regexp.MustCompile(`^\x1b\[([0-9]*)([A-Za-z])`)

func (v *vt) write(s string) {
	for s != "" {
		if m := control.FindStringSubmatch(s); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				n = 1
			}
			v.move(m[2], n)
			s = s[len(m[0]):]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		v.put(r)
		s = s[size:]
	}
}

func (v *vt) move(to string, n int) {
	switch to {
	case "A":
		v.row = max(0, v.row-n)
	case "B":
		v.row += n
	case "C":
		v.col += n
	case "D":
		v.col = max(0, v.col-n)
	case "K":
		if v.row < len(v.lines) && v.col < len(v.lines[v.row]) {
			v.lines[v.row] = v.lines[v.row][:v.col]
		}
	}
}

func (v *vt) put(r rune) {
	for len(v.lines) <= v.row {
		v.lines = append(v.lines, nil)
	}
	switch r {
	case '\r':
		v.col = 0
	case '\n':
		v.row++
	default:
		for len(v.lines[v.row]) <= v.col {
			v.lines[v.row] = append(v.lines[v.row], ' ')
		}
		v.lines[v.row][v.col] = r
		v.col++
	}
}

func (v *vt) String() string {
	var b strings.Builder
	for _, l := range v.lines {
		b.WriteString(strings.TrimRight(string(l), " ") + "\n")
	}
	return b.String()
}

func TestVT(t *testing.T) {
	for in, want := range map[string]string{
		"a\r\nb":                     "a\nb\n",
		"> \x1b[2D\x1b[Kline\r\n> ":  "line\n>\n",
		"abc\rX":                     "Xbc\n",
		"one\r\ntwo\x1b[A\x1b[3DONE": "ONE\ntwo\n",
		"\x1b[3Cx":                   "   x\n",
	} {
		var v vt
		v.write(in)
		if got := v.String(); got != want {
			t.Errorf("%q shows %q, want %q", in, got, want)
		}
	}
}
