package symptom

import (
	"slices"
	"strconv"
	"strings"

	"ghostbot/agent/playbook/pattern"
)

// What people say about endpoints that is not "this one is in trouble": that it is
// the wrong one, that it is in order, that it is to be left alone.
//
// A wrong guess here costs a different amount in each direction. An endpoint that
// is looked at needlessly costs a few reads; one that is left out may be the
// fault. So only explicit words take an endpoint out; what is unclear adds it.
//
// The patterns read the text with every endpoint replaced by a mark, a number
// between two control characters, which [Clean] lets through nowhere else.

const (
	mark = `\x02(\d+)\x03`
	// near are the words between what is said and the endpoint of which it is said.
	near  = `[\s:=,"'(-]*` + near0
	near0 = `(?:\b(?:the|this|our|my|its|a|an|port|ports|host|server|service|url|address|addr|endpoint|one|box|machine|node|ip|api|app|upstream|backend|gateway|tcp|udp|http|https|der|die|das|den|dem|le|la|el|il)\b[\s:=,"'(-]*)*`
	// place are prepositions, where they cannot turn the meaning around.
	place   = `(?:\b(?:on|at|to|of|with|about|from|for|auf|bei|an|sur|en|mit|von|de|à|su)\b)?`
	ends    = `["')]*\s*(?:$|[.,;:!?\n)])`
	be      = `(?:it'?s|it is|its|that'?s|that is|this is|das ist|es ist|ist es|c'est|ce serait|es|é|è|era|was|i meant|i mean|rather|actually)`
	healthy = `(?:fine|ok|okay|good|great|healthy|alive|working|running|green|clean|in order|in ordnung|gut|bien|bene|innocent|unaffected|reachable|responding|answering|normal|not (?:the |an? |my |our )?(?:problem|issue|cause|culprit|suspect|fault)|not (?:affected|involved|broken|down|it)|nicht (?:das problem|betroffen))`
	a       = `(?:host|hostname|port|target|address|service|server|machine|box|node|url|ip|endpoint|system|place|one|rechner|dienst|adresse|hôte|puerto|porta)`
)

var (
	// adds says that a place comes beside those that there are.
	adds = pattern.New(`\b(?:as well|also|additionally|in addition|besides|furthermore|moreover|another (?:one|host|port|service|place|target)|both|not only|auch|ebenfalls|ebenso|zusätzlich|außerdem|beide|sowie|aussi|en plus|también|además|anche|inoltre|também|ook)\b|également|\btoo(?:$|\s*[.,;:!?)\n]|\s+(?:please|pls|thanks|thx)\b)|^\s*(?:and|und|et|y|e|plus|\+|&)\s`)

	// bareNo is a correction that hangs on one word, which may as well answer
	// something else that was asked.
	bareNo = pattern.New(`(?:^|[.;!\n])\s*(?:(?:ah|oh|hm+|hey|ok|uh|er)[\s,]+)?(?:no|nope|nah|nein|nee|non|nej|nie|não|sorry|oops|ups)[\s,.!:-]+` + place + near + mark + ends)
	// corrects are the ways to say that another target was meant, each with it.
	corrects = []*pattern.Pattern{
		pattern.New(`(?:^|[.;!,\n])\s*(?:no|nope|nah|nein|nee|non|nej|nie|não|sorry|oops|ups|argh)[\s,.!:-]+(?:no|sorry|oops|my bad|my mistake|my fault|mein fehler|pardon|perdón)?[\s,.!:-]*` + be + `\s*` + place + near + mark),
		pattern.New(`(?:^|[.;!,\n])\s*(?:correction|korrektur|corrección|edit|typo|tippfehler|my bad|my mistake|mein fehler)\b[\s,.!:-]*(?:` + be + `\s*)?` + place + near + mark),
		pattern.New(`(?:\b(?:i|we) (?:\w+ )?meant|\bmeant to (?:say|write|type|paste)|\bmeinten?\b|\bgemeint (?:ist|war)|\bje voulais dire|\bquise decir|\bme refería|\bintendevo|\bquis dizer)\b[^.;!?\n\x02]{0,40}` + mark),
		pattern.New(`(?:^|[.;!,\n])\s*(?:sorry,? )?i mean,?\s+` + place + near + mark + ends),
		pattern.New(mark + `[^.;!?\n\x02]{0,20}\b(?:is|was) (?:what|the one) (?:i|we) meant\b`),
		pattern.New(`\b(?:wrong|falsche[rns]?|mauvaise?|incorrect|equivocad[oa]|sbagliat[oa]) ` + a + `\b\s*(?:[,.!:;-]+|\b(?:it'?s|it is|please|pls|sorry|use|take|look at|check|try|i meant|the right|should|bitte|es ist|c'est)\b)[^?\x02]{0,60}` + mark),
		pattern.New(mark + `["')]*[\s,.:-]+(?:sorry|my bad|my mistake|typo|oops|ups)` + ends),
		pattern.New(`\b(?:mauvaise?|errado|equivocado)\b[\s,.!:-]+` + be + `?\s*` + place + near + mark),
		pattern.New(`\b(?:mistyped|mispasted|typoed|vertippt|verschrieben|verwechselt)\b[^?\x02]{0,40}` + mark),
		pattern.New(mark + `[^.;!?\n,\x02]{0,30}(?:\b(?:instead|stattdessen|invece|en su lugar)|à la place)(?:\s*(?:$|[.,;!)\n])|\s+(?:please|pls|thanks|thx))`),
		pattern.New(`(?:^|[.;!,\n])\s*(?:instead|stattdessen)\b[\s,:]+(?:please )?(?:look at|check|take|use|try|probe|test|` + be + `)?\s*` + place + near + mark),
		pattern.New(`(?:\bactually,?\s+(?:it'?s|it is|its|that'?s|the ` + a + ` is)|\b(?:it'?s|it is|its|that'?s)\s+(?:actually|rather|really|in fact)|\bin fact,?\s+(?:it'?s|it is)|\bes ist eigentlich|\ben fait,? c'est)\s+` + place + near + mark),
		pattern.New(`\b(?:right|correct|real|actual|proper|intended|richtige[rns]?|bonne?|correct[oa]|giust[oa])\s+` + a + `\b\s*(?:is|was|would be|:|=|ist|wäre|est|es|è)?\s*` + place + near + mark),
		pattern.New(`\b(?:richtig (?:ist|wäre|:)|should (?:be|have been|read|say)|sollte|müsste)\s*(?:on |at )?` + near + mark),
		pattern.New(`\b(?:scratch|forget|ignore|disregard|scrap|strike|vergiss|oublie|olvida)\s+(?:that|it|this|all that|das|ça|eso|what (?:i|we) (?:said|wrote)|mine|my last(?: \w+)?|the (?:first|last|other|old|previous)(?: ` + a + `)?)\b[^?\x02]{0,40}` + mark),
		pattern.New(`\b(?:never ?mind|egal)[\s,.!:-]+(?:` + be + `\s*)?` + place + near + mark + ends),
		pattern.New(`\b(?:change|correct|fix|set|switch) (?:the |that |my |it )?(?:` + a + `|it|that)? ?(?:to|zu|auf)\b\s*` + near + mark),
	}
	// takesBack says that another target was meant, and not which.
	takesBack = pattern.New(`\b(?:i|we) (?:\w+ )?(?:meant?|wanted) (?:the |an? )?(?:other|different|second|first) ` + a + `\b|(?:^|[.;!,\n]|\bno )\s*(?:(?:sorry|no|nope|hey|ups|oops)[\s,]+)?(?:that'?s|this is|that is|it'?s|you'?re (?:looking |working )?(?:at|on)|you are (?:looking |working )?(?:at|on))?\s*(?:the |a )?wrong ` + a + `\s*(?:$|[.,;!])|\bnot (?:that|this|the right) ` + a + `\s*(?:$|[.,;!])|\bmeinte (?:den|die|das) andere[ns]? ` + a + `|(?:^|das ist |nein,? )(?:der |die |das )?falsche[rs]? ` + a + `\s*(?:$|[.,;!])`)
	// starred is how chats correct a word: the right one behind an asterisk.
	starred = pattern.New(`^\s*\*\s?[^*\s]+\s*$|^\s*[^*\s]+\*\s*$`)
	// goesWrong is something that goes to a wrong place, which is a fault and no
	// correction.
	goesWrong = pattern.New(`\b(?:resolv\w+|point\w*|goes|going|go|sent|sends?|return\w*|answer\w*|gets?|got|shows?|has|have|serves?|served|rout\w+|listen\w*|bound|binds?|connect\w*|talk\w*|redirect\w*|use[sd]?|using|picks?)\s+(?:\w+ )?(?:to |on |at |with )?(?:a |an |the )?$`)

	// not says of an endpoint that it is not the one.
	not       = pattern.New(`(\b(?:not|nicht|kein|pas|instead of|rather than|anstatt|anstelle von|statt|au lieu de|plutôt que|en vez de|invece di)\b|n't\b)(\s+(?:on|at|auf|bei|sur|en)\b)?[\s:"'(]` + near0 + mark)
	notReally = pattern.New(`(?:\b(?:why|or|if|whether|whether or|works?|worked|working|ok|okay|fine|reach\w*|answers?|responds?|up|alive|geht|funktioniert|läuft|marche|funciona)\b[^.;!?\n]*|\b(?:do|does|did|can|could|will|would|should)(?: |$))$`)
	notAlone  = pattern.New(`^["')]*,?\s*(?:alone|only|by itself|just|allein|seul)\b`)
	isNot     = pattern.New(`\b(?:is|was|it'?s|that'?s|es ist|c'est)\s*$`)
	spanish   = pattern.New(`\b(?:no|non)\s+` + near + mark + `,?\s+(?:sino|ma|bensì|senão)\b`)
	theWrong  = pattern.New(mark + `["')]*,?\s+(?:(?:is|was|war|ist|est|es)\s+)?(?:the |a |der |die |das )?(?:wrong|falsche[rns]?|mistaken) ` + a + `\b`)

	// handsOff says of an endpoint that it is not to be asked.
	handsOff = []*pattern.Pattern{
		pattern.New(`\b(?:ignore|forget(?: about)?|skip|disregard|leave out|exclude|(?:do not|don'?t|dont|never)\s+(?:ever )?(?:touch|probe|look at|check|ask|test|scan|query|bother(?: with)?|go near|hit|poke)|stay away from|keep (?:away from|off|out of)|hands off|vergiss|ignoriere?n?|finger weg von|ne touche[rz]? pas(?: à)?|no toques|non toccare)\s+` + near + `(?:(?:on|at|auf|bei)\s+)?` + near + mark),
		pattern.New(`\b(?:leave|lass|lasst)\s+` + near + mark + `["')]*\s+(?:alone|out|be|in peace|in ruhe)\b`),
	}
	offLimits = []*pattern.Pattern{
		pattern.New(mark + `["')]*\s*(?:[:,(-]|is|are|ist)?\s*(?:hands off|off[- ]limits|off[- ]bounds|out of (?:scope|bounds)|not in scope|irrelevant|not relevant|unrelated|nicht anfassen|in ruhe lassen|do not touch|don'?t touch)\b`),
	}
	// asks stands before what people ask for, as against what something does.
	asks = pattern.New(`(?:^|[.,;:!?\n(-]|\b(?:please|pls|just|so|and|but|then|to|can you|you can|you may|could you|let'?s|bitte|und|aber|svp|por favor)\b)\s*$`)

	// fine says of an endpoint that it is in order.
	fine = []*pattern.Pattern{
		pattern.New(mark + `["')]*,?\s*(?:and|und|et|y|&)\s*` + near + `\x02\d+\x03["')]*\s+(?:both |all )?(?:(?:are|look|seem|sind|sont)\s+(?:all |both |also |still |just )*` + healthy + `|work|laufen)` + ends),
		pattern.New(mark + `["')]*[\s,]*(?:(?:and |und |, )?(?:that|this|the) one |that |this |it |das |der |die |itself |both |all of (?:it|them) |there )*\s*(?:'s|is|are|looks?|seems?|ist|sind|est|está|è|é)\s+(?:all |totally |perfectly |completely |still |absolutely |also |both |definitely |just |working |up and |up & |to be |ja |noch |auch |ganz )*` + healthy + `(?:\W|$)`),
		pattern.New(mark + `["')]*[\s,]*(?:itself |still |also |though |there )*(?:works|work|geht|funktioniert|läuft|marche|fonctionne|funciona|funziona)\b(?: (?:fine|ok|well|as expected|perfectly|just fine|normally|for me|correctly|properly|gut|einwandfrei|here))*`),
		pattern.New(mark + `["')]*[\s,]*(?:itself |still |also )*(?:responds?|answers?|replies|antwortet|répond|responde)\s+(?:fine|ok|well|normally|as expected|correctly|properly|quickly|200|with 200|immediately|at once|instantly|sofort|bien)\b`),
		pattern.New(mark + `["')]*\s*(?:[:=,(>-]+\s*|\s)(?:all |looks? |is )*` + healthy + ends),
		pattern.New(`\b(?:ruled out|excluded|cleared|eliminated|ausgeschlossen)\s+` + near + mark),
		pattern.New(mark + `["')]*\s+(?:can be|is|was|has been) (?:ruled out|excluded|cleared)\b`),
		pattern.New(`\b(?:nothing (?:is )?wrong|no (?:problems?|issues?|errors?|trouble)|all (?:is )?(?:good|fine|ok)|kein problem|keine probleme|aucun problème|ningún problema)\s+(?:with|on|at|from|mit|bei|auf|avec|con|en)\b` + near + mark),
		pattern.New(`\b(?:works?|fine|ok|okay|good|healthy|funktioniert|geht|läuft|marche|funciona)\s+(?:fine |ok |well |gut )?(?:on|at|with|for|via|through|against|auf|bei|mit|sur)\b` + near + mark),
		pattern.New(`\b(?:checked|tested|tried|verified|looked at|geprüft|getestet|überprüft|vérifié|comprobado)\s+` + near + mark + `["')]*[^.;!?\n\x02]{0,12}[.;!,:\n-]\s*(?:and |but |all |it'?s |is |that (?:one )?(?:is )?|looks? |seems? |everything (?:is )?|nothing )*(?:` + healthy + `|works|wrong(?: there)?)` + ends),
	}
	// unsure stands before what is only asked, hoped or supposed, denied before what
	// is not so.
	unsure = pattern.New(`\b(?:if|whether|ob|si|sure|doubt|ensure|check|verify|test|see|until|unless|when|why|think|thinks|believe|hope|should|must|maybe|perhaps|supposed|claims?|used to|denke|glaube|vielleicht)\b[^.,;:!?\n]*$`)
	denied = pattern.New(`(?:\b(?:is|are|does|do|did|could|nothing|no longer|never|not|barely|hardly|only|nobody|nichts|nicht|kaum|rien|ne|nada|no one|none|stopped|sometimes)\b|n't\b)[^.,;:!?\n\x02]*$`)
	// contrast begins another statement, and and does where nothing is in doubt.
	contrast = pattern.New(`^.*(?:\b(?:but|while|although|though|whereas|yet|because|aber|während|obwohl|mais|alors que|pero|aunque)\b|\()`)
	andThen  = pattern.New(`^.*\b(?:and|und|et|y|e)\b`)
	// limits stand behind what is in order only at times or for some.
	limits = pattern.New(`\b(?:except|only|sometimes|intermittent\w*|until|unless|however|no longer|anymore|any more|for (?:nobody|no ?one|none|some)|when|if|not|nur|manchmal|außer|mais pas|pero no|yesterday|before|earlier)\b|n't\b|\?`)
)

// said are the endpoints of which a text says something else than trouble.
type said struct {
	correction bool // another target was meant
	bare       bool // which only the word "no" says
	addition   bool // "as well", "too"
	not        []int
	off        []int
	fine       []int
}

// listen reads what a marked text says about its n endpoints.
func listen(text string) said {
	text = strings.ToLower(text)
	s := said{addition: adds.MatchString(text)}
	for _, p := range handsOff {
		s.off = append(s.off, marks(text, p, inList, func(before, _, _ string) bool { return asks.MatchString(before) })...)
	}
	for _, p := range offLimits {
		s.off = append(s.off, marks(text, p, inList, nil)...)
	}
	for _, p := range fine {
		s.fine = append(s.fine, marks(text, p, inList, inOrder)...)
	}
	if s.addition {
		return s
	}
	s.not = marks(text, not, joined, denies)
	s.not = append(s.not, marks(text, spanish, joined, nil)...)
	s.not = append(s.not, marks(text, theWrong, joined, nil)...)
	for _, p := range corrects {
		s.correction = s.correction || len(marks(text, p, joined, meansAnother)) > 0
	}
	s.bare = !s.correction && len(s.not) == 0 && bareNo.MatchString(text)
	s.correction = s.correction || s.bare
	return s
}

// marks are the numbers of the endpoints that a pattern finds, those joined to
// them in a list included. Keep looks at what stands around a match.
func marks(text string, p, list *pattern.Pattern, keep func(before, match, after string) bool) []int {
	var out []int
	for _, m := range p.FindAllStringSubmatchIndex(text, 16) {
		if keep != nil && !keep(clauseBefore(text[:m[0]]), text[m[0]:m[1]], sentenceAfter(text[m[1]:])) {
			continue
		}
		i := len(m) - 2 // the mark is the last group
		for m[i] < 0 {
			i -= 2
		}
		out = append(out, number0(text[m[i]:m[i+1]]))
		if m[1] > m[i+1]+1 { // said behind the mark: of this one only
			continue
		}
		for _, j := range oneMark.FindAllStringSubmatch(list.FindString(text[m[1]:]), 8) {
			out = append(out, number0(j[1]))
		}
	}
	return out
}

// leadIn is what stands before the next endpoint: "but not on".
var leadIn = pattern.New(`(?:\b(?:but|aber|mais|pero|and|und|only)\s+)?(?:\b(?:not|nicht|pas|when|if)\s+)?` + place + near + `$`)

var (
	// joined is "and B" behind an endpoint, and with commas "B, C and D", where the
	// sentence ends or goes on with something else.
	joined  = pattern.New(`^["')]*,?\s*(?:and|und|or|oder|et|y|&|nor)\s*` + near + mark + listEnd)
	inList  = pattern.New(`^["')]*(?:\s*,` + near + mark + `["')]*)*,?\s*(?:and|und|or|oder|et|y|&|nor)\s*` + near + mark + listEnd)
	oneMark = pattern.New(mark)
)

const listEnd = `(?:["')]*\s*(?:$|[.;!?\n)]|,? but\b|,? and\b|,? aber\b))`

func number0(s string) int {
	n, _ := strconv.Atoi(s) // digits, by the pattern
	return n
}

func clauseBefore(s string) string { return tail(s, 60) }

// sentenceAfter is what follows up to the end of the sentence or the next endpoint.
func sentenceAfter(s string) string {
	if i := strings.IndexAny(s, ".;!\n\x02"); i >= 0 {
		if s[i] == 2 {
			s = leadIn.ReplaceAllString(s[:i], "") // it belongs to the next one
		} else {
			s = s[:i]
		}
	}
	if i := strings.IndexByte(s, '?'); i >= 0 {
		s = s[:i+1]
	}
	return head(s, 80)
}

// inOrder reports whether "is fine" is said without a doubt and a limit.
func inOrder(before, _, after string) bool {
	before = contrast.ReplaceAllString(before, "")
	return !unsure.MatchString(before) && !denied.MatchString(andThen.ReplaceAllString(before, "")) && !limits.MatchString(after) && len(kinds(after, codes(after))) == 0
}

// denies reports whether "not HOST" says that another one was meant: "works here,
// not on HOST" names the one that fails.
func denies(before, match, after string) bool {
	m := not.FindStringSubmatch(match)
	return !notAlone.MatchString(after) && !notReally.MatchString(before) && (m[2] == "" || isNot.MatchString(before))
}

// meansAnother reports whether a match is about what was said and not about the
// network: something that answers from a wrong address is a fault.
func meansAnother(before, match, _ string) bool {
	return !wrongFirst.MatchString(match) || !goesWrong.MatchString(before)
}

var wrongFirst = pattern.New(`^(?:wrong|falsch|mauvais|incorrect|equivocad|sbagliat)`)

// maxMarks is how many mentions are listened to: people name a few endpoints, and
// what names more is a log.
const maxMarks = 24

// marked is the text with every endpoint that was found replaced by its mark.
func (f *finder) marked() string {
	var b strings.Builder
	from := 0
	for i, x := range f.spans {
		if i == maxMarks {
			return b.String() + f.text[from:min(from+around, len(f.text))]
		}
		if x.at < from {
			continue
		}
		b.WriteString(f.text[from:x.at])
		b.WriteString("\x02" + strconv.Itoa(i) + "\x03")
		from = x.end
	}
	b.WriteString(f.text[from:])
	return b.String()
}

// around is how much text on each side of an endpoint is read for what is said of
// it: pasted logs are long, and people say it beside it.
const around = 200

// nearby keeps what stands around the marks of a long text.
func nearby(text string) string {
	if len(text) <= 8*around {
		return text
	}
	var b strings.Builder
	from := 0
	for i := 0; i < len(text); i++ {
		if text[i] == 2 {
			b.WriteByte('\n')
			end := min(i+around, len(text))
			if from = max(from, i-around); end > from {
				b.WriteString(text[from:end])
				from = end
			}
		}
	}
	return b.String()
}

// hear sorts the targets by what the text says of them.
func (f *finder) hear(s *Symptom, raw string) {
	if len(f.spans) == 0 {
		s.Correction = takesBack.MatchString(strings.ToLower(raw))
		return
	}
	w := listen(nearby(f.marked()))
	s.Addition, s.Correction, s.Bare = w.addition, w.correction || len(w.not) > 0, w.bare
	if !w.addition && len(f.spans) == 1 && starred.MatchString(raw) {
		s.Correction = true
	}
	var keep []Endpoint
	for _, e := range s.Targets {
		switch {
		case f.of(w.off, e):
			s.Off = append(s.Off, e)
		case f.of(w.not, e) && !f.accused(w.not, e):
			s.Not = append(s.Not, e)
		case f.of(w.fine, e) && !f.accused(w.fine, e):
			s.Fine = append(s.Fine, e)
		default:
			keep = append(keep, e)
		}
	}
	if len(keep) == 0 && len(s.Fine) > 0 { // nothing else is there to look at
		keep, s.Fine = s.Fine, nil
	}
	s.Targets = keep
}

// of reports whether one of the listed mentions is of e.
func (f *finder) of(list []int, e Endpoint) bool {
	return slices.ContainsFunc(list, func(i int) bool { return i < len(f.spans) && f.spans[i].mentions(e) })
}

func (x found) mentions(e Endpoint) bool {
	return x.e.Host == e.Host && x.e.Port == e.Port && (x.e.Path == e.Path || e.Path == "")
}

// accused reports whether another mention of e, which is not in the list, speaks
// of trouble.
func (f *finder) accused(list []int, e Endpoint) bool {
	for i, x := range f.spans {
		if slices.Contains(list, i) || !x.mentions(e) {
			continue
		}
		from, to := 0, len(f.text)
		if i > 0 {
			from = min(f.spans[i-1].end, x.at)
		}
		if i+1 < len(f.spans) {
			to = max(f.spans[i+1].at, x.end)
		}
		if said := clause(f.text[from:x.at], f.text[x.end:to]); len(kinds(said, codes(said))) > 0 {
			return true
		}
	}
	return false
}
