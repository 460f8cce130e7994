// Package typed reads what people type to the bot: whom a message is for, which of the
// bot's words it begins with, which case it names, and whether it says stop and nothing
// else. It is pure.
//
// # What is decoration
//
// Clients and people put signs around words: a completed mention gets a colon, an id is
// copied with the code marks that it was shown in, phones make quotation marks round and
// add invisible signs, and people are polite. Such signs and such words are no part of a
// verb or of an id. Everything behind `investigate` is the person's own text and is kept
// as it is.
//
// `stop` in a thread is stricter than a verb behind the bot's name: emphasis, politeness,
// urgency and emoji leave it what it is; a quotation, a code block, a question and any
// other word make it something that is said about stopping.
package typed

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Verbs are the words that a request begins with, in the order in which they are told.
var Verbs = []string{"investigate", "status", "list", "stop", "resume", "rca", "triage", "cleanup", "help"}

// greetings stand before a name or a verb, courtesies around a verb, fillers between a
// verb and an id. None of them changes what is asked for.
var (
	greetings  = []string{"hey", "hi", "hello", "yo", "ok", "okay", "please", "pls", "plz"}
	courtesies = append([]string{"now", "immediately", "asap", "thanks", "thx"}, greetings...)
	fillers    = append([]string{"case", "id", "of", "for", "the"}, courtesies...)
	stops      = []string{"stop", "halt", "abort", "cancel"}
	names      = []string{"/ghost", "ghost", "@ghost", "ghostbot", "@ghostbot"}
)

const (
	ends     = ".,;:!…-–—"
	emphasis = "*_"
	quotes   = "`~\"'“”„‟‘’‚«»‹›<>()[]{}#|"
)

// FirstWord splits a text at its first blank, whatever kind of blank that is.
func FirstWord(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	i := strings.IndexFunc(s, unicode.IsSpace)
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimSpace(s[i:])
}

// seen drops the signs that nobody sees.
func seen(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, s)
}

// bare is a word in lower case without the signs of cutset around it.
func bare(word, cutset string) string { return strings.ToLower(strings.Trim(seen(word), cutset)) }

// prefixes bounds the words before a verb that are looked past.
const prefixes = 8

// Request splits a text into one of [Verbs] and what stands behind it. A text that
// begins with none gives its first word as it was typed.
func Request(text string) (verb, rest string) {
	verb, rest = FirstWord(unwrap(text))
	for word, behind, n := verb, rest, 0; n < prefixes; n++ {
		known := bare(word, ends+emphasis+quotes+"?")
		head, tail, colon := strings.Cut(word, ":")
		switch {
		case slices.Contains(Verbs, known) && !(known == "stop" && strings.Contains(word, "?")):
			return known, behind
		case colon && slices.Contains(Verbs, bare(head, emphasis+quotes)):
			return bare(head, emphasis+quotes), strings.TrimSpace(tail + " " + behind)
		case known == "/ghost": // typed twice, or behind a mention
			verb, rest = FirstWord(unwrap(behind))
		case known != "" && !slices.Contains(greetings, known):
			return verb, rest
		}
		word, behind = FirstWord(unwrap(behind))
	}
	return verb, rest
}

// unwrap takes off the marks that a whole text stands in.
func unwrap(text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "```"); ok && strings.HasSuffix(inner, "```") {
		return strings.TrimSpace(strings.TrimSuffix(inner, "```"))
	}
	for _, pair := range []string{"``", "**", "__", "\"\"", "“”", "„“", "‘’", "«»"} {
		marks := []rune(pair)
		inner, before := strings.CutPrefix(text, string(marks[0]))
		inner, behind := strings.CutSuffix(inner, string(marks[1]))
		if before && behind && !strings.ContainsAny(inner, pair) {
			return strings.TrimSpace(inner)
		}
	}
	return text
}

// idForm is a case's id, or the part of it that tells cases apart.
var idForm = regexp.MustCompile(`^(?:ghost_)?([0-9]{8}_[0-9]{6}(?:-[0-9]{1,9})?)$`)

// Case is the id in what stands behind a verb: "" when no case is named. Of a text that
// is neither, ok is false and name is what it names, to be told.
func Case(text string) (name string, ok bool) {
	var left []string
	for _, w := range strings.Fields(text) {
		if w = bare(w, ends+emphasis+quotes+"?"); w != "" && !slices.Contains(fillers, w) {
			left = append(left, w)
		}
	}
	if len(left) == 0 {
		return "", true
	}
	name = strings.Join(left, " ")
	if m := idForm.FindStringSubmatch(name); m != nil {
		return "ghost_" + m[1], true
	}
	return strings.ReplaceAll(name, "`", "'"), false
}

var emoji = regexp.MustCompile(`:[a-z0-9_+-]+(?:::skin-tone-[2-6])?:`)

// Stop reports whether a reply is the word stop, or one that means the same, and nothing
// else. The comment of the package has the rule.
func Stop(text string) bool {
	said := false
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.So, r) || r >= 0x1f3fb && r <= 0x1f3ff { // pictures and their skin tones
			return ' '
		}
		return r
	}, emoji.ReplaceAllString(text, " "))
	for _, w := range strings.Fields(text) {
		switch w = bare(w, ends+emphasis); {
		case slices.Contains(stops, w):
			said = true
		case w == "it" && said, w == "", slices.Contains(courtesies, w), slices.Contains(names, w):
		default:
			return false
		}
	}
	return said
}

// Address says how a message names the bot.
type Address int

// The ways to name it.
const (
	Absent Address = iota // not at all
	Within                // somewhere: the message may be about the bot
	First                 // at the beginning, after a greeting at most: it is for the bot
)

var mention = regexp.MustCompile(`<@([A-Z0-9]+)(?:\|[^<>\n]*)?>`)

// Addressed is what a message in Slack's markup says beside naming the bot, whose user is
// me. What only belongs to the name, as the colon that clients put there, is left out.
func Addressed(said, me string) (text string, how Address) {
	var b strings.Builder
	last := 0
	for _, at := range mention.FindAllStringSubmatchIndex(said, -1) {
		if said[at[2]:at[3]] != me {
			continue
		}
		before := said[last:at[0]]
		switch {
		case how == Absent && greeting(before):
			how = First
		case how == Absent:
			how = Within
			b.WriteString(before + " ")
		default:
			b.WriteString(before + " ")
		}
		if last = at[1]; how == First && strings.TrimSpace(b.String()) == "" {
			open := strings.TrimLeft(strings.TrimSpace(before), ends+" ")
			rest := strings.TrimLeft(strings.TrimPrefix(said[last:], emphasisOf(open)), ends+" \t\n\u00a0")
			last = len(said) - len(rest)
			b.Reset()
		}
	}
	if how == Absent {
		return said, how
	}
	b.WriteString(said[last:])
	return strings.TrimSpace(b.String()), how
}

// emphasisOf is the mark that was opened right before a name.
func emphasisOf(before string) string {
	if before != "" && strings.ContainsRune(emphasis, rune(before[len(before)-1])) {
		return before[len(before)-1:]
	}
	return ""
}

// greeting reports whether nothing but a greeting stands before a name.
func greeting(before string) bool {
	return !slices.ContainsFunc(strings.Fields(before), func(w string) bool {
		w = bare(w, ends+emphasis)
		return w != "" && !slices.Contains(greetings, w)
	})
}
