package redact

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A view is a text to be searched, made from another one, its parent. Its
// pieces say which bytes of the parent its own bytes stand for. The base view
// of a plain text has no pieces: every byte stands for itself.
type view struct {
	text   string
	pieces []piece
	parent *view
}

// A piece is a run of a view's bytes: n of them at at, for size of the
// parent's bytes at from. Where n and size are equal each byte stands for one,
// otherwise all of them stand for all.
type piece struct{ at, n, from, size int32 }

// source maps a range of the view to the range of the text that it stands for.
func (v *view) source(start, end int) (int, int) {
	for ; v != nil; v = v.parent {
		if v.pieces == nil {
			continue
		}
		start, end = v.first(start), v.last(end-1)
	}
	return start, end
}

func (v *view) pieceAt(i int) piece {
	k := sort.Search(len(v.pieces), func(k int) bool { return int(v.pieces[k].at) > i })
	return v.pieces[max(k-1, 0)]
}

// first is where the bytes start that byte i stands for.
func (v *view) first(i int) int {
	p := v.pieceAt(i)
	if p.n == p.size {
		return int(p.from) + i - int(p.at)
	}
	return int(p.from)
}

// last is where they end.
func (v *view) last(i int) int {
	p := v.pieceAt(i)
	if p.n == p.size {
		return int(p.from) + i - int(p.at) + 1
	}
	return int(p.from + p.size)
}

// A builder makes a view of parent.
type builder struct {
	parent *view
	text   []byte
	pieces []piece
}

func newBuilder(parent *view) *builder {
	return &builder{parent: parent, pieces: []piece{{}}}
}

// copy takes over the parent's bytes from i to j.
func (b *builder) copy(i, j int) {
	if i >= j {
		return
	}
	if last := &b.pieces[len(b.pieces)-1]; last.n == last.size && int(last.from+last.size) == i && int(last.at+last.n) == len(b.text) {
		last.n, last.size = last.n+int32(j-i), last.size+int32(j-i)
	} else {
		b.pieces = append(b.pieces, piece{int32(len(b.text)), int32(j - i), int32(i), int32(j - i)})
	}
	b.text = append(b.text, b.parent.text[i:j]...)
}

// put lets s stand for the parent's bytes from i to j.
func (b *builder) put(s string, i, j int) {
	if s == "" {
		return
	}
	b.pieces = append(b.pieces, piece{int32(len(b.text)), int32(len(s)), int32(i), int32(j - i)})
	b.text = append(b.text, s...)
}

// back takes the last character away again.
func (b *builder) back() {
	_, n := utf8.DecodeLastRune(b.text)
	b.text = b.text[:len(b.text)-n]
	for len(b.pieces) > 1 && int(b.pieces[len(b.pieces)-1].at) >= len(b.text) {
		b.pieces = b.pieces[:len(b.pieces)-1]
	}
	if last := &b.pieces[len(b.pieces)-1]; int(last.at+last.n) > len(b.text) {
		if last.n == last.size {
			last.size = int32(len(b.text)) - last.at
		}
		last.n = int32(len(b.text)) - last.at
	}
}

// view ends the work; it is nil when nothing came of it.
func (b *builder) view() *view {
	if len(b.text) == 0 {
		return nil
	}
	return &view{text: string(b.text), pieces: b.pieces, parent: b.parent}
}

// normalise makes the base view of text, and a second one of what string
// escape sequences carry: a link's target is invisible on a terminal, not in a
// journal. The second is nil when there are none.
func normalise(text string) (base, payload *view) {
	root := &view{text: text}
	if plain(text) {
		return root, nil
	}
	b, p := newBuilder(root), newBuilder(root)
	run := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		b.copy(run, i)
		n := b.special(p, i)
		i += n
		run = i
	}
	b.copy(run, len(text))
	return b.view(), p.view()
}

// special takes over one character that is not plain ASCII, or a control
// sequence, and says how long it was.
func (b *builder) special(payload *builder, i int) int {
	s := b.parent.text[i:]
	if s[0] == 0x1b || s[0] == 0xc2 && len(s) > 1 && s[1] < 0xa0 {
		n, from, to := escape(s)
		if to > from {
			payload.copy(i+from, i+to)
			payload.put("\n", i+to, i+to)
		}
		return n
	}
	if s[0] == '\b' && len(b.text) > 0 && b.text[len(b.text)-1] != '\n' {
		b.back()
		return 1
	}
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError:
		b.copy(i, i+n)
	case r < ' ' || r == 0x7f || invisible(r):
	default:
		if c := fold(r); c != 0 {
			b.put(string(rune(c)), i, i+n)
		} else {
			b.copy(i, i+n)
		}
	}
	return n
}

// invisible says whether a character has no width or only marks its
// neighbour: format characters, fillers, variation selectors, accents.
func invisible(r rune) bool {
	return r >= 0x300 && r <= 0x36f || r >= 0xfe00 && r <= 0xfe0f ||
		r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 || r == 0x2800 ||
		unicode.Is(unicode.Cf, r) || r >= 0xe0100 && r <= 0xe01ef || r >= 0x180b && r <= 0x180f
}

// lookAlikes are letters and signs that are read as the ASCII character at the
// same place of asciiTwins.
const (
	lookAlikes = "аеорсхукмтнвіѕјԁԝոһԛӏАЕОРСХУКМТНВІЅЈΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανρτυικε" + "“”„«»‘’‚‐‑‒–—−⁃꞉∶։˸⁄∕․ꓸ﹦₌⹀﹣﹕ıɡɑℓ"
	asciiTwins = "aeopcxykmthbisjdwnhqlAEOPCXYKMTHBISJABEZHIKMNOPTYXoavptuike" + "\"\"\"\"\"'''-------::::" + "//..===-:igal"
)

// twins is lookAlikes as a table.
var twins = twinTable()

func twinTable() map[rune]byte {
	t := map[rune]byte{}
	i := 0
	for _, r := range lookAlikes {
		t[r] = asciiTwins[i]
		i++
	}
	return t
}

// fold gives the ASCII character that r is read as, 0 when there is none.
func fold(r rune) byte {
	switch {
	case r >= 0xff01 && r <= 0xff5e:
		return byte(r - 0xff01 + '!')
	case r == 0xa0 || r == 0x1680 || r >= 0x2000 && r <= 0x200a || r == 0x202f || r == 0x205f || r == 0x3000:
		return ' '
	case r == 0x85 || r == 0x2028 || r == 0x2029:
		return '\n'
	case r >= 0x1d400 && r < 0x1d6a4: // mathematical letters: alphabets of 52
		if n := (r - 0x1d400) % 52; n < 26 {
			return byte('A' + n)
		} else {
			return byte('a' + n - 26)
		}
	case r >= 0x1d7ce && r <= 0x1d7ff:
		return byte('0' + (r-0x1d7ce)%10)
	}
	return twins[r]
}

// derive makes a view of those lines of v for which has gives an index below
// the line's end, each rewritten by f. A gap between two lines becomes an
// empty line, so that rules do not see neighbours that are none.
func derive(v *view, has func(s string) int, f func(b *builder, i, j int)) *view {
	if v == nil {
		return nil
	}
	b := newBuilder(v)
	for at := 0; at < len(v.text); {
		k := has(v.text[at:])
		if k < 0 {
			break
		}
		start := at + strings.LastIndexByte(v.text[at:at+k], '\n') + 1
		if start > at && len(b.text) > 0 {
			b.put("\n", start, start)
		}
		end := len(v.text)
		if n := strings.IndexByte(v.text[at+k:], '\n'); n >= 0 {
			end = at + k + n + 1
		}
		f(b, start, end)
		at = end
	}
	return b.view()
}
