// Package scan is what all rules of a redactor have in common: a text that is
// being searched, with the categories and ranges of what was found in it, the
// reading of values, and the guards that tell a value from what is none.
//
// Every reader is bounded: it looks at a fixed number of bytes before it
// accepts something, and at more only behind that. This is what keeps the rules
// linear.
package scan

import (
	"strings"

	"ghostbot/safeexec/redact/shape"
)

// A Span is a range of bytes to be masked.
type Span struct {
	Start, End int
	Cat        Category
}

// A Text is a view that is being searched.
type Text struct {
	T     string
	Spans []Span // found so far, in no order

	line struct{ start, end int }
}

// Mask adds a range of the view.
func (s *Text) Mask(start, end int, c Category) {
	if start < end {
		s.Spans = append(s.Spans, Span{start, end, c})
	}
}

// Bounded says whether t[a:b] is bounded by something that is no letter or digit.
func (s *Text) Bounded(a, b int) bool {
	return (a == 0 || !shape.Alnum(s.T[a-1])) && (b >= len(s.T) || !shape.Alnum(s.T[b]))
}

// LineStart is where the line that holds i starts.
func (s *Text) LineStart(i int) int {
	s.measure(i)
	return s.line.start
}

// LineEnd is where the line that holds i ends, without its newline.
func (s *Text) LineEnd(i int) int {
	s.measure(i)
	return s.line.end
}

// measure measures a line once: rules ask for the same one again and again.
func (s *Text) measure(i int) {
	if i >= s.line.start && i <= s.line.end && s.line.end > 0 {
		return
	}
	s.line.start = strings.LastIndexByte(s.T[:i], '\n') + 1
	s.line.end = len(s.T)
	if n := strings.IndexByte(s.T[i:], '\n'); n >= 0 {
		s.line.end = i + n
	}
}

// Blanks skips up to 200 blanks.
func (s *Text) Blanks(i int) int {
	for n := 0; n < 200 && i < len(s.T) && shape.Blank(s.T[i]); n++ {
		i++
	}
	return i
}

// BackBlanks skips up to 200 blanks backwards.
func (s *Text) BackBlanks(i int) int {
	for n := 0; n < 200 && i > 0 && shape.Blank(s.T[i-1]); n++ {
		i--
	}
	return i
}

// Newline says whether a line, or the text, ends at i.
func (s *Text) Newline(i int) bool {
	return i >= len(s.T) || s.T[i] == '\n' || s.T[i] == '\r'
}

// Alone says whether nothing but blanks follows on the line.
func (s *Text) Alone(i int) bool { return s.Newline(s.Blanks(i)) }

// Peek is up to n bytes from i on.
func (s *Text) Peek(i, n int) string {
	i = min(i, len(s.T))
	return s.T[i:min(len(s.T), i+n)]
}

// maxWord bounds the words of a line.
const maxWord = 256

// PlainWord is the end of the word at i; i itself when there is none, or one
// that is too long for a word.
func (s *Text) PlainWord(i int) int { return s.wordWithin(i, maxWord) }

// wordWithin is PlainWord for words of at most n bytes.
func (s *Text) wordWithin(i, n int) int {
	stop := min(len(s.T), i+n+1)
	for end := i; end < stop; end++ {
		if c := s.T[end]; c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			return end
		}
	}
	if stop == len(s.T) && stop-i <= n {
		return stop
	}
	return i
}

// maxWritten is the length of the longest word in written.
const maxWritten = 24

// WrittenWords skips up to four words that say how a secret is written, and
// whether there were any. A word that ends its line is the secret itself.
func (s *Text) WrittenWords(i int) (int, bool) {
	any := false
	for range 4 {
		i = s.Blanks(i)
		end := s.wordWithin(i, maxWritten)
		if end == i || s.Alone(end) {
			return i, any
		}
		if w := s.T[i:end]; !(len(w) <= 3 && shape.Digits(w)) && !shape.Fold(w, written) {
			return i, any
		}
		i, any = end, true
	}
	return s.Blanks(i), any
}

// written are words between a label and its secret that say how it is written.
var written = shape.Words("encrypted cipher simple clear cleartext clear-text plain plaintext plain-text ascii hex hexadecimal ascii-text md5 sha sha1 sha-1 " +
	"sha224 sha256 sha-256 sha384 sha-384 sha512 sha-512 hmac-sha-1 hmac-sha-256 hmac-sha256 hmac-md5 keyed-md5 enc local remote read write read-only read-write ro rw " +
	"aes aes128 aes192 aes256 aes-128 aes-256 des 3des text irreversible-cipher irreversible hash hash2 unencrypted type key-string by with -asplaintext -force " +
	"-string reg_sz reg_expand_sz reg_multi_sz scrypt pbkdf2 key-id level md4 auth priv bcrypt hashed -l -e -m base64 raw tx rx on")

// KeySpace stands between and before the lines of a key, quoted as they may be.
var KeySpace = shape.NewSet(" \t\r\n>|#*+\"',\\")

// PadSet is the padding of base64.
var PadSet = shape.NewSet("=")
