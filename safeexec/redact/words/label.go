package words

import "ghostbot/safeexec/redact/shape"

// A Label is what the words of a label come to.
type Label struct {
	Noun      Class // of the word that decides
	Qualifier Class // of the other words: Strong, Weak, SharedKey
	Weak      bool  // the value must look like a secret
	Compound  bool  // more than one word, or one that is no English word
}

// Classify decides whether an identifier, with the word before it ("" when
// there is none), is the label of a secret.
func Classify(before, identifier string) (Label, bool) {
	var l list
	if before != "" {
		l.word(before)
	}
	first := l.n
	l.split(identifier)
	noun := l.noun(first)
	if noun < 0 {
		return Label{}, false
	}
	c := l.class[noun]
	out := Label{Noun: c, Qualifier: l.qualifier(noun), Compound: c&Compound != 0 || noun > first}
	out.Weak = c&Plural != 0 || c&(Auth|Compound) == Auth || c&Key != 0 && (c|out.Qualifier)&Strong == 0
	for i, c := range l.class[:l.n] {
		if c&Not != 0 || c&TokenNot != 0 && out.Noun&Token != 0 || i > noun && c&Tail != 0 && c&Neutral == 0 {
			return Label{}, false
		}
		out.Weak = out.Weak || i > noun && c&(Neutral|Noun|Strong) == 0
	}
	return out, true
}

// About says whether a word behind the noun of a label makes it a label about
// the secret, not of it: "fingerprint", "policy".
func About(word string) bool {
	var l list
	l.word(word)
	return l.class[0]&Tail != 0 && l.class[0]&Neutral == 0
}

// maxWords bounds how many words of a label are looked at: the last ones.
const maxWords = 16

// A list is the classes of a label's words.
type list struct {
	class [maxWords]Class
	n     int
}

func (l *list) add(c Class) {
	if l.n == maxWords {
		copy(l.class[:], l.class[1:])
		l.n--
	}
	l.class[l.n] = c
	l.n++
}

// noun is the index of the last noun, not before first, that can decide; -1
// when there is none. "auth" decides only as the last word, a key only with a
// qualifier, be it an unknown one.
func (l *list) noun(first int) int {
	for i := l.n - 1; i >= first; i-- {
		c := l.class[i]
		switch {
		case c&Noun == 0, c&(Noun^Auth) == 0 && i < l.n-1:
		case c&(Noun^Key^Auth) == 0 && c&Key != 0 && c&Qualifier == 0 && l.qualifier(i) == 0 && (i == first || l.any(KeyNot)):
		default:
			return i
		}
	}
	return -1
}

func (l *list) any(c Class) bool {
	for _, w := range l.class[:l.n] {
		if w&c != 0 {
			return true
		}
	}
	return false
}

// qualifier collects what the words but the noun say about a key.
func (l *list) qualifier(noun int) (c Class) {
	for i := range l.n {
		if i != noun {
			c |= l.class[i] & (Qualifier | SharedKey)
		}
	}
	return c
}

// split adds the words of an identifier: parts between separators, at changes
// of case ("apiKey", "APIKey"), without digits at their ends ("password2").
func (l *list) split(s string) {
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && shape.Alnum(s[i]) && !boundary(s, start, i) {
			continue
		}
		if i > start {
			l.word(s[start:i])
		}
		start = i
		if i < len(s) && !shape.Alnum(s[i]) {
			start++
		}
	}
}

// boundary says whether a new word begins with s[i].
func boundary(s string, start, i int) bool {
	if i == start || !shape.Upper(s[i]) {
		return false
	}
	return shape.Lower(s[i-1]) || i+1 < len(s) && shape.Lower(s[i+1]) && !(i+2 == len(s) && s[i+1] == 's')
}

// word adds one word.
func (l *list) word(s string) {
	n := len(s)
	for n > 0 && shape.Digit(s[n-1]) {
		n--
	}
	var buf [40]byte
	switch {
	case n == 0:
		l.add(Neutral)
		return
	case n > len(buf):
		l.add(0)
		return
	}
	for i := range n {
		buf[i] = shape.Lowered(s[i])
	}
	c := classOf(buf[:n])
	if c == Key && n < len(s) { // "key1" of a pair of keys
		c |= Weak
	}
	l.add(c)
}

// classOf looks up one lower-case word.
func classOf(w []byte) Class {
	if c, ok := vocabulary[string(w)]; ok || len(w) < 4 {
		return c
	}
	if len(w) == 4 {
		if w[3] == 'w' && compounds[string(w)] {
			return Pass | Compound
		}
		return 0
	}
	if english[string(w)] {
		return 0
	}
	for _, s := range suffixes {
		if k := len(w) - len(s.end); k >= 0 && w[len(w)-1] == s.end[len(s.end)-1] && string(w[k:]) == s.end {
			return s.class | Compound
		}
	}
	if compounds[string(w)] {
		return Pass | Compound
	}
	return 0
}
