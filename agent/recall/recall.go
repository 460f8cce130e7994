// Package recall says how much two cases look alike, and why: for the line that
// names another open case, for the closed cases that a new one is reminded of, and
// for ghostbot cases --like. It is pure and keeps nothing.
//
// # Points
//
// A likeness is a sum, and every part of it has a reason that people can read:
//
//	the same words                      60   case, spacing and punctuation apart
//	the same host and port              50   a target of one is a target of the other
//	the same host, port said by one     45
//	the same host, other port           20
//	the same port, other host           10
//	the same protocol                    5   http, https, tcp or udp, where both say it
//	the same kind of trouble            15   refused, silent, name, ...; 5 for each further one, 25 at most
//	the same status code                 5
//	the same kind of cause              10   what the closed case found, against what the other says or found
//	shared words                        20   times shared / all words of both
//
// Of host and port only the best line counts. [Match.Same] (the same target, or the
// same words where one names none) is what makes two open cases name each other;
// [Enough] points make a closed case worth recalling; [Listed] points put a case into
// a list that somebody asked for.
//
// # Cost
//
// Reading a symptom for targets and kinds takes half a millisecond. A [Search] does
// that only for the [finalists] whose plain words overlap most, so that thousands of
// closed cases are looked through in milliseconds, and keeps nothing of the others.
package recall

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"ghostbot/agent/playbook/symptom"
)

// Limits of what is compared and kept.
const (
	// Enough is how many points a closed case needs to be recalled.
	Enough = 40
	// Listed is how many points put a case into a list.
	Listed = 5
	// finalists is how many cases a search looks at closely.
	finalists = 16
	// maxText is how much of a symptom or a cause is read, in bytes.
	maxText = 1000
	maxKind = 25
)

// Reason is one part of a likeness.
type Reason struct {
	What   string `json:"what"`            // same words, same target, same host, same port, same protocol, same kind, same status, same cause, shared words
	Value  string `json:"value,omitempty"` // what is the same
	Points int    `json:"points"`
}

// String is the reason for people.
func (r Reason) String() string {
	if r.Value == "" {
		return r.What
	}
	return r.What + " " + r.Value
}

// Match is how much two cases look alike. The zero value is "not at all".
type Match struct {
	Points  int      `json:"points"`
	Reasons []Reason `json:"reasons"` // most points first
}

// Same reports whether the two are about the same thing: the same target, or the
// same words where one of them names no target.
func (m Match) Same() bool {
	return slices.ContainsFunc(m.Reasons, func(r Reason) bool { return r.What == sameTarget || r.What == sameWords })
}

// String lists the reasons.
func (m Match) String() string {
	var out []string
	for _, r := range m.Reasons {
		out = append(out, r.String())
	}
	return strings.Join(out, ", ")
}

// Names of reasons.
const (
	sameWords    = "same words"
	sameTarget   = "same target"
	sameHost     = "same host"
	samePort     = "same port"
	sameProtocol = "same protocol"
	sameKind     = "same kind"
	sameStatus   = "same status"
	sameCause    = "same kind of cause"
	sharedWords  = "shared words"
)

// Text is what one case says, read at most once.
type Text struct {
	symptom, cause string
	words          map[string]bool
	plain          string
	read           bool
	s              symptom.Symptom
	causes         []symptom.Kind
}

// Of prepares a symptom and, of a closed case, the cause that was found.
func Of(said, cause string) *Text {
	t := &Text{symptom: clip(said), cause: clip(cause)}
	t.words = tokens(t.symptom)
	t.plain = plain(t.symptom)
	return t
}

func clip(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return strings.ToValidUTF8(s, " ")
}

// Same reports whether two symptoms are about the same thing.
func Same(a, b string) bool {
	x, y := Of(a, ""), Of(b, "")
	return overlap(x.words, y.words) > 0 && x.Match(y).Same()
}

func (t *Text) parse() {
	if t.read {
		return
	}
	t.read, t.s = true, symptom.Parse(t.symptom)
	for i, e := range t.s.Targets {
		if e.Guessed && !t.words[fmt.Sprint(e.Port)] { // what a text does not say is no likeness
			t.s.Targets[i].Port = 0
		}
	}
	if t.cause != "" {
		t.causes = symptom.Parse(t.cause).Kinds
	}
}

// Match compares two cases; it is the same both ways.
func (t *Text) Match(o *Text) Match {
	t.parse()
	o.parse()
	var m Match
	m.targets(t.s, o.s)
	if noTarget := len(t.s.Targets) == 0 || len(o.s.Targets) == 0; t.plain != "" && t.plain == o.plain && (noTarget || m.Same()) {
		m.add(sameWords, "", 60)
	} else if n := len(t.names(o)); n > 0 {
		m.add(sharedWords, strings.Join(t.names(o), " "), 20*n/t.union(o))
	}
	m.kinds(t, o)
	for _, c := range t.s.Codes {
		if slices.Contains(o.s.Codes, c) {
			m.add(sameStatus, fmt.Sprint(c), 5)
			break
		}
	}
	slices.SortStableFunc(m.Reasons, func(a, b Reason) int { return cmp.Or(cmp.Compare(b.Points, a.Points), cmp.Compare(a.What, b.What)) })
	return m
}

func (m *Match) add(what, value string, points int) {
	if points <= 0 {
		return
	}
	m.Points += points
	m.Reasons = append(m.Reasons, Reason{what, value, points})
}

// targets adds the best that two lists of targets have in common. A host that a
// text does not say is a guess, and no likeness.
func (m *Match) targets(a, b symptom.Symptom) {
	var best, protocol Reason
	for _, x := range a.Targets {
		for _, y := range b.Targets {
			if r := likeness(x, y, a.PortOnly || b.PortOnly); r.Points > best.Points {
				best = r
				protocol = Reason{}
				if x.Scheme != "" && x.Scheme == y.Scheme {
					protocol = Reason{sameProtocol, x.Scheme, 5}
				}
			}
		}
	}
	m.add(best.What, best.Value, best.Points)
	m.add(protocol.What, protocol.Value, protocol.Points)
}

func likeness(x, y symptom.Endpoint, guessed bool) Reason {
	host := strings.EqualFold(x.Host, y.Host)
	port := x.Port == y.Port && x.Port != 0
	value := strings.ToLower(x.Host)
	said := max(x.Port, y.Port)
	if said != 0 {
		value = fmt.Sprintf("%s port %d", value, said)
	}
	switch {
	case host && port:
		return Reason{sameTarget, value, 50}
	case host && (x.Port == 0 || y.Port == 0):
		return Reason{sameTarget, value, 45}
	case host && !guessed:
		return Reason{sameHost, strings.ToLower(x.Host), 20}
	case port:
		return Reason{samePort, fmt.Sprint(x.Port), 10}
	}
	return Reason{}
}

// kinds adds the kinds of trouble that both speak of, and whether what one found
// is what the other says or found.
func (m *Match) kinds(a, b *Text) {
	points, said := 0, []string{}
	for _, k := range a.s.Kinds {
		if b.s.Is(k) {
			points += 5
			said = append(said, string(k))
		}
	}
	if points > 0 {
		slices.Sort(said)
		m.add(sameKind, strings.Join(said, " "), min(points+10, maxKind))
	}
	for _, k := range symptomKinds {
		if has(a.causes, k) && (has(b.causes, k) || b.s.Is(k)) || has(b.causes, k) && a.s.Is(k) {
			m.add(sameCause, string(k), 10)
			return
		}
	}
}

// symptomKinds are the kinds that tell one cause from another, in the order in which
// the first common one is named; an error is what every fault shows.
var symptomKinds = []symptom.Kind{symptom.Refused, symptom.Certificate, symptom.Name, symptom.Reset, symptom.Silent, symptom.Overload, symptom.Path, symptom.Redirect, symptom.Slow}

func has(list []symptom.Kind, k symptom.Kind) bool { return slices.Contains(list, k) }

// names are the words, not numbers or addresses, that both have, sorted.
func (t *Text) names(o *Text) []string {
	var out []string
	for w := range t.words {
		if o.words[w] && isName(w) {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return out
}

func (t *Text) union(o *Text) int {
	n := 0
	for w := range t.words {
		if isName(w) {
			n++
		}
	}
	for w := range o.words {
		if isName(w) && !t.words[w] {
			n++
		}
	}
	return n
}

func isName(w string) bool {
	return !strings.ContainsFunc(w, func(r rune) bool { return unicode.IsDigit(r) || r == '.' })
}

// stop are words that stand in every symptom.
var stop = map[string]bool{
	"the": true, "and": true, "for": true, "from": true, "with": true, "since": true, "not": true, "does": true, "are": true, "was": true, "has": true, "have": true,
	"all": true, "our": true, "get": true, "gets": true, "getting": true, "when": true, "what": true, "why": true, "this": true, "that": true, "to": true, "is": true,
	"in": true, "on": true, "at": true, "of": true, "it": true, "we": true, "but": true, "a": true, "i": true, "http": true, "https": true, "please": true, "check": true, "look": true,
}

// tokens are the words of a text that tell it from others.
func tokens(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '-'
	}) {
		if w = strings.Trim(w, ".-"); len(w) > 1 && !stop[w] {
			out[w] = true
		}
	}
	return out
}

func plain(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return strings.ContainsRune(" \t\n.,;:!?\"'()", r)
	}), " ")
}

// overlap is a cheap guess at a likeness: names of hosts, addresses and numbers
// weigh more than words.
func overlap(a, b map[string]bool) int {
	if len(b) < len(a) {
		a, b = b, a
	}
	n := 0
	for w := range a {
		switch {
		case !b[w]:
		case isName(w):
			n++
		default:
			n += 4
		}
	}
	return n
}

// Past is what is known of a case before its journals are read.
type Past struct {
	ID      string
	Symptom string
	Cause   string // what a closed case found, in words
	At      time.Time
}

// Found is a case of a search.
type Found struct {
	Past
	Match Match
}

// Search looks for cases that look like one. Add every case, then ask for the Best.
type Search struct {
	of   *Text
	keep int
	best []candidate // at most keep, the best first
}

type candidate struct {
	Past
	overlap int
}

// NewSearch returns a search for cases like of; it keeps as many as list of them
// are wanted, and no fewer than it needs to choose well.
func NewSearch(of *Text, list int) *Search { return &Search{of: of, keep: max(list, finalists)} }

// Add considers one case.
func (s *Search) Add(p Past) {
	text := clip(p.Symptom)
	n := overlap(s.of.words, tokens(text))
	if n == 0 && s.of.plain != plain(text) {
		return
	}
	c := candidate{p, n}
	if len(s.best) == s.keep && !c.before(s.best[len(s.best)-1]) {
		return
	}
	c.Symptom, c.Cause = strings.Clone(text), strings.Clone(clip(p.Cause))
	at, _ := slices.BinarySearchFunc(s.best, c, func(have, c candidate) int {
		if have.before(c) {
			return -1
		}
		return 1
	})
	s.best = slices.Insert(s.best, at, c)
	s.best = s.best[:min(len(s.best), s.keep)]
}

// before puts the likelier candidate first, of equals the newer.
func (c candidate) before(o candidate) bool {
	return cmp.Or(cmp.Compare(o.overlap, c.overlap), o.At.Compare(c.At), cmp.Compare(c.ID, o.ID)) < 0
}

// Best returns at most n cases with least points or more, the likeliest first, of
// equals the newest.
func (s *Search) Best(n, least int) []Found {
	var out []Found
	for _, c := range s.best {
		if m := s.of.Match(Of(c.Symptom, c.Cause)); m.Points >= least {
			out = append(out, Found{c.Past, m})
		}
	}
	slices.SortStableFunc(out, func(a, b Found) int {
		return cmp.Or(cmp.Compare(b.Match.Points, a.Match.Points), b.At.Compare(a.At), cmp.Compare(a.ID, b.ID))
	})
	return out[:min(len(out), n)]
}
