// Package words finds words in texts and knows what they mean in labels: the
// automaton that looks for all triggers of a redactor at once, and the
// vocabulary that tells "db_password" from "password_policy".
package words

// An Automaton finds many words in one pass over a text (Aho and Corasick,
// 1975, with all failure transitions resolved). Letters match in both cases.
// The alphabet is only as wide as the words need, so that the table stays in
// the cache.
type Automaton struct {
	class [256]uint8 // alphabet: 0 is every byte that is in no word
	bits  uint       // of the alphabet
	next  []uint16   // state<<bits | class
	found []int32    // per state: index into hits, 0 when no word ends here
	hits  []hitRef
}

// A hitRef is a word that ends in a state, and the next one that does.
type hitRef struct{ word, next int32 }

// MaxBytes is how long the words of one automaton may be together.
const MaxBytes = ends - 1

// New builds the automaton of words. exact words are matched as they are;
// without it they are lower-case and the text is folded.
func New(words []string, exact bool) *Automaton {
	m := &Automaton{hits: make([]hitRef, 1)}
	m.alphabet(words, exact)
	width := 1 << m.bits
	trie := make([]uint16, width)
	found := []int32{0}
	for w, s := range words {
		at := 0
		for i := 0; i < len(s); i++ {
			k := at<<m.bits | int(m.class[s[i]])
			if trie[k] == 0 {
				trie[k] = uint16(len(found))
				trie = append(trie, make([]uint16, width)...)
				found = append(found, 0)
			}
			at = int(trie[k])
		}
		m.hits = append(m.hits, hitRef{int32(w), found[at]})
		found[at] = int32(len(m.hits) - 1)
	}
	m.next, m.found = trie, found
	m.resolve()
	m.mark()
	return m
}

func (m *Automaton) alphabet(words []string, exact bool) {
	n := uint8(1)
	for _, s := range words {
		for i := 0; i < len(s); i++ {
			if m.class[s[i]] == 0 {
				m.class[s[i]] = n
				n++
			}
		}
	}
	for c := 'A'; c <= 'Z' && !exact; c++ {
		m.class[c] = m.class[c+'a'-'A']
	}
	for 1<<m.bits < int(n) {
		m.bits++
	}
}

// resolve turns the trie into the automaton, breadth first.
func (m *Automaton) resolve() {
	fail := make([]uint16, len(m.found))
	queue := []uint16{}
	for c := range 1 << m.bits {
		if s := m.next[c]; s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		f := fail[at]
		m.inherit(at, f)
		for c := range 1 << m.bits {
			k := int(at)<<m.bits | c
			over := m.next[int(f)<<m.bits|c]
			if s := m.next[k]; s != 0 {
				fail[s] = over
				queue = append(queue, s)
			} else {
				m.next[k] = over
			}
		}
	}
}

// inherit lets the words that end in state f end in state at as well: they are
// appended to its own chain.
func (m *Automaton) inherit(at, f uint16) {
	if m.found[f] == 0 {
		return
	}
	if m.found[at] == 0 {
		m.found[at] = m.found[f]
		return
	}
	h := m.found[at]
	for m.hits[h].next != 0 {
		h = m.hits[h].next
	}
	m.hits[h].next = m.found[f]
}

// ends marks the transitions into a state in which a word ends, so that the
// search looks nothing else up for the others.
const ends = 1 << 15

// mark sets the marks.
func (m *Automaton) mark() {
	for k, s := range m.next {
		if m.found[s] != 0 {
			m.next[k] = s | ends
		}
	}
}

// Each calls f with every word found in text and the index after it. It stops
// when f returns false. A text begins as if a newline stood before it, so that
// a word with one at its start is found there too.
func (m *Automaton) Each(text string, f func(word int32, end int) bool) {
	next, class, bits := m.next, &m.class, m.bits
	at := int(next[class['\n']] &^ ends)
	for i := 0; i < len(text); i++ {
		s := next[at<<bits|int(class[text[i]])]
		at = int(s &^ ends)
		if s < ends {
			continue
		}
		for h := m.found[at]; h != 0; h = m.hits[h].next {
			if !f(m.hits[h].word, i+1) {
				return
			}
		}
	}
}
