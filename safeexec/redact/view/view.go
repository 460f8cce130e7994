// Package view makes the texts that a redactor searches: copies of an output
// in which nothing hides any more, each with a map back to the output's bytes.
// Terminal escapes and invisible characters are gone, look-alike letters are
// ASCII, escapes are undone, continued lines are joined, base64 is decoded. A
// view is only ever searched, never shown. Making one takes time linear in the
// length of its parent.
package view

import (
	"bytes"
	"sort"
	"strings"
	"unicode/utf8"
)

// A View is a text to be searched, made from another one, its parent. Its
// pieces say which bytes of the parent its own bytes stand for; without pieces
// every byte stands for itself.
type View struct {
	Text   string
	pieces []piece
	parent *View
}

// A piece is a run of a view's bytes: n of them from at on, for size of the
// parent's bytes from from on. Where n and size are equal each byte stands for
// one, otherwise all of them stand for all.
type piece struct{ at, n, from, size int32 }

// Source maps a range of the view to the range of the text that it stands for.
// What stands for nothing, an added line end, is an empty range.
func (v *View) Source(start, end int) (int, int) {
	for ; v != nil; v = v.parent {
		switch {
		case v.pieces == nil:
		case start >= end:
			start = v.first(start)
			end = start
		default:
			start, end = v.first(start), v.last(end-1)
		}
	}
	return start, end
}

func (v *View) pieceAt(i int) piece {
	k := sort.Search(len(v.pieces), func(k int) bool { return int(v.pieces[k].at) > i })
	return v.pieces[max(k-1, 0)]
}

// first is where the bytes start that byte i stands for.
func (v *View) first(i int) int {
	p := v.pieceAt(i)
	if p.n == p.size {
		return int(p.from) + i - int(p.at)
	}
	return int(p.from)
}

// last is where they end.
func (v *View) last(i int) int {
	p := v.pieceAt(i)
	if p.n == p.size {
		return int(p.from) + i - int(p.at) + 1
	}
	return int(p.from + p.size)
}

// A builder makes a view of parent.
type builder struct {
	parent *View
	text   []byte
	pieces []piece
}

func newBuilder(parent *View) *builder {
	return &builder{parent: parent}
}

// copy takes over the parent's bytes from i to j.
func (b *builder) copy(i, j int) {
	if i >= j {
		return
	}
	if k := len(b.pieces) - 1; k >= 0 && b.pieces[k].n == b.pieces[k].size && int(b.pieces[k].from+b.pieces[k].size) == i {
		b.pieces[k].n += int32(j - i)
		b.pieces[k].size += int32(j - i)
	} else {
		b.add(j-i, i, j)
	}
	b.text = append(b.text, b.parent.Text[i:j]...)
}

// put lets s stand for the parent's bytes from i to j.
func (b *builder) put(s string, i, j int) {
	if s != "" {
		b.add(len(s), i, j)
		b.text = append(b.text, s...)
	}
}

// add begins a piece of n bytes. The first one makes room: a view is about as
// long as its parent.
func (b *builder) add(n, i, j int) {
	if b.text == nil {
		b.text = make([]byte, 0, len(b.parent.Text)-i+n)
	}
	b.pieces = append(b.pieces, piece{int32(len(b.text)), int32(n), int32(i), int32(j - i)})
}

// back takes the last character away again.
func (b *builder) back() {
	_, w := utf8.DecodeLastRune(b.text)
	b.text = b.text[:len(b.text)-w]
	for k := len(b.pieces) - 1; k >= 0; k-- {
		p := &b.pieces[k]
		if int(p.at) >= len(b.text) {
			b.pieces = b.pieces[:k]
			continue
		}
		if left := int32(len(b.text)) - p.at; left < p.n {
			if p.n == p.size {
				p.size = left
			}
			p.n = left
		}
		return
	}
}

// view ends the work; it is nil when nothing came of it.
func (b *builder) view() *View {
	if len(b.text) == 0 {
		return nil
	}
	return &View{Text: string(b.text), pieces: b.pieces, parent: b.parent}
}

// Normalise makes the base view of text, and a second one of what string
// escape sequences carry: a link's target is invisible on a terminal, not in a
// journal. Either is nil when there is nothing in it.
func Normalise(text string) (base, payload *View) {
	root := &View{Text: text}
	if Plain(text) {
		return root, nil
	}
	b, p := newBuilder(root), newBuilder(root)
	run := 0
	for i := 0; i < len(text); {
		if plainByte(text[i]) {
			i++
			continue
		}
		b.copy(run, i)
		i += b.special(p, i)
		run = i
	}
	b.copy(run, len(text))
	return b.view(), p.view()
}

// Plain says whether text is printable ASCII with newlines, tabs and carriage
// returns only: then it is its own base view.
func Plain(text string) bool {
	for i := 0; i < len(text); i++ {
		if !plainByte(text[i]) {
			return false
		}
	}
	return true
}

func plainByte(c byte) bool {
	return c >= ' ' && c < 0x7f || c == '\n' || c == '\t' || c == '\r'
}

// special takes over one character that is not plain, or a control sequence,
// and says how long it was.
func (b *builder) special(payload *builder, i int) int {
	s := b.parent.Text[i:]
	switch {
	case controls(s):
		n, from, to := escape(s)
		if to > from {
			payload.copy(i+from, i+to)
			payload.put("\n", i+to, i+to)
		}
		return n
	case s[0] == '\b' && len(b.text) > 0 && b.text[len(b.text)-1] != '\n': // overstrike
		b.back()
		return 1
	case s[0] == 0 && variable(s[1:]) && variable(b.line()): // the environment of a process
		b.put("\n", i, i+1)
		return 1
	case s[0] < ' ' || s[0] == 0x7f:
		return 1
	}
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError || !invisible(r) {
		if c := fold(r); c != 0 {
			b.put(ascii[c:c+1], i, i+n)
		} else {
			b.copy(i, i+n)
		}
	}
	return n
}

// line is the line that the view ends with, or its last part.
func (b *builder) line() string {
	const most = 4096
	t := b.text[max(0, len(b.text)-most):]
	return string(t[bytes.LastIndexByte(t, '\n')+1:])
}

// variable says whether s begins like an environment variable.
func variable(s string) bool {
	for i := 0; i < len(s) && i < 64; i++ {
		switch c := s[i]; {
		case c == '=':
			return i > 1
		case c != '_' && (c < 'A' || c > 'Z') && (c < '0' || c > '9'):
			return false
		}
	}
	return false
}

// ascii holds every ASCII character at its own place.
var ascii = func() string {
	var b strings.Builder
	for c := range 0x80 {
		b.WriteByte(byte(c))
	}
	return b.String()
}()
