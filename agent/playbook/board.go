package playbook

import (
	"slices"
	"strings"

	"ghostbot/agent"
	"ghostbot/agent/playbook/read"
	"ghostbot/agent/playbook/symptom"
	"ghostbot/safeexec"
)

// board is a view worked out: the places, what is known about them, and what
// people said. It is built anew from every view, by going through observations
// and instructions in the order in which they came, and nothing else; so the
// same view gives the same board, and a longer one extends it.
type board struct {
	view     agent.View
	places   []*place
	past     []agent.Observation // read so far
	count    map[string]int      // how often a command was run
	missing  map[string]bool     // tools that are not installed
	commands int
	optional int  // RISKY steps proposed so far
	person   bool // the last RISKY step was decided by a person
	finish   bool // people want the report now
	noRisk   bool // people want no more RISKY steps
	asked    int  // instructions without a target while there is none
	said     []string
	refused  []refusal
	failed   []string // commands that gave nothing, in words
}

// refusal is a command that was not allowed.
type refusal struct {
	id, command, reason, hypothesis string
}

func newBoard(v agent.View) *board {
	b := &board{view: v, count: map[string]int{}, missing: map[string]bool{}}
	b.open(symptom.Parse(v.Case.Symptom))
	obs, ins := v.Observations, v.Instructions
	for len(obs) > 0 || len(ins) > 0 {
		if len(ins) == 0 || len(obs) > 0 && obs[0].Turn <= ins[0].Turn {
			b.observe(obs[0])
			obs = obs[1:]
			continue
		}
		b.instruct(ins[0].Text)
		ins = ins[1:]
	}
	b.settle()
	return b
}

// open adds the places that people name. A text that only names a DNS server is
// about that server.
func (b *board) open(s symptom.Symptom) {
	for _, e := range s.Targets {
		b.add(newPlace(e, s))
	}
	if len(s.Targets) == 0 && s.Resolver != nil {
		p := newPlace(symptom.Endpoint{Scheme: "tcp", Host: s.Resolver.Host, Port: s.Resolver.Port}, s)
		p.server = nil
		b.add(p)
	}
}

// add puts a place on the board unless it is there, and reads again what was
// observed before, because one command may serve two places.
func (b *board) add(p *place) *place {
	for _, have := range b.places {
		if have.aside == "" && have.end.Same(p.end) && (have.end.Scheme == p.end.Scheme || have.end.Port != 0) {
			return have
		}
	}
	if len(b.places) >= maxPlaces {
		return nil
	}
	p.n = len(b.places) + 1
	b.places = append(b.places, p)
	past := b.past
	b.past = nil
	count := b.count
	b.count = map[string]int{}
	for i, o := range past {
		b.past = past[:i]
		b.apply(p, o)
		b.tally(o)
	}
	b.past, b.count = past, count
	return p
}

// instruct takes a person's words: a correction, an addition, or a wish.
func (b *board) instruct(text string) {
	s := symptom.Parse(text)
	b.finish = b.finish || s.Finish
	b.noRisk = b.noRisk || noRiskWords.MatchString(text)
	if len(s.Targets) == 0 && s.Resolver != nil && len(b.roots()) > 0 {
		b.newServer(*s.Resolver)
		return
	}
	if len(s.Targets) == 0 && s.Resolver == nil {
		b.hint(s)
		return
	}
	old := symptom.Parse(b.view.Case.Symptom)
	if len(s.Kinds) == 0 {
		s.Kinds, s.Codes = old.Kinds, old.Codes
	}
	if s.Resolver == nil {
		s.Resolver = old.Resolver
	}
	if s.Since == "" {
		s.Since = old.Since
	}
	if s.Correction {
		s = b.correct(s, text)
	}
	b.open(s)
}

// correct sets aside what people take back: the places they say it is not, or
// all when they only say what it is.
func (b *board) correct(s symptom.Symptom, text string) symptom.Symptom {
	denied := map[string]bool{}
	for _, m := range notThis.FindAllStringSubmatch(text, 8) {
		for _, e := range symptom.Parse(m[1]).Targets {
			denied[e.String()] = true
		}
	}
	keep := s.Targets[:0:0]
	for _, e := range s.Targets {
		if !denied[e.String()] {
			keep = append(keep, b.samePlace(e, s.PortOnly))
		}
	}
	s.Targets = keep
	for _, p := range b.places {
		if p.aside == "" && !slices.ContainsFunc(keep, p.end.Same) {
			p.aside = "set aside: the target was corrected in the thread"
		}
	}
	return s
}

// samePlace gives a port that was corrected without a host the host of the place
// that it corrects.
func (b *board) samePlace(e symptom.Endpoint, portOnly bool) symptom.Endpoint {
	if roots := b.roots(); portOnly && len(roots) > 0 {
		old := roots[0].end
		e.Host = old.Host
		if !old.Guessed {
			e.Scheme, e.Guessed = old.Scheme, false
		}
	}
	return e
}

// hint takes words without a target: they say more about the places there are.
func (b *board) hint(s symptom.Symptom) {
	if len(b.roots()) == 0 {
		b.asked++
	}
	for _, p := range b.roots() {
		p.about.Kinds = append(slices.Clone(p.about.Kinds), s.Kinds...)
		p.about.Intermittent = p.about.Intermittent || s.Intermittent
		p.about.Codes = append(slices.Clone(p.about.Codes), s.Codes...)
	}
}

func (b *board) newServer(e symptom.Endpoint) {
	for _, p := range b.roots() {
		if p.end.IsName() {
			p.server = &e
		}
	}
}

// roots are the places that people named and that were not set aside.
func (b *board) roots() []*place {
	return b.only(func(p *place) bool { return p.parent == nil })
}

func (b *board) only(keep func(*place) bool) []*place {
	var out []*place
	for _, p := range b.places {
		if p.aside == "" && keep(p) {
			out = append(out, p)
		}
	}
	return out
}

// observe reads one observation into every place whose probe it answers, then
// adds the places that it named.
func (b *board) observe(o agent.Observation) {
	if _, is := o.Move.(agent.RunShell); !is {
		return
	}
	if o.Shell == nil { // the loop refused the move itself: asked, without an answer
		o.Shell = &safeexec.Result{AuditID: o.AuditID, Status: "error", Error: "refused"}
	}
	b.commands++
	b.remark(o)
	for _, p := range slices.Clone(b.places) {
		b.apply(p, o)
	}
	b.past = append(b.past, o)
	b.tally(o)
	for _, p := range slices.Clone(b.places) {
		b.follow(p)
	}
	if o.Shell.Status == "denied" && o.Shell.DenialReason != "" {
		b.reason(o.Shell.DenialReason)
	}
}

// reason reads why a person refused: a correction in it counts like one in the
// thread.
func (b *board) reason(text string) {
	b.noRisk = b.noRisk || noRiskWords.MatchString(text)
	if s := symptom.Parse(text); s.Correction && len(s.Targets) > 0 {
		b.instruct(text)
	}
}

func (b *board) tally(o agent.Observation) { b.count[o.Move.(agent.RunShell).Command]++ }

// remark keeps what concerns the whole case: missing tools, refusals.
func (b *board) remark(o agent.Observation) {
	mv := o.Move.(agent.RunShell)
	tool, _, _ := strings.Cut(mv.Command, " ")
	if exit(o) == 127 {
		b.missing[tool] = true
	}
	if isOptional(mv.Command) {
		b.optional++
		b.person = o.Shell.DecidedBy != ""
	}
	switch {
	case o.Shell.Status == "denied":
		b.refused = append(b.refused, refusal{o.AuditID, mv.Command, o.Shell.DenialReason, mv.Hypothesis})
	case exit(o) == 127:
		b.failed = append(b.failed, "`"+tool+"` is not installed here ("+o.AuditID+")")
	case o.Shell.Error != "":
		b.failed = append(b.failed, "`"+mv.Command+"` gave nothing: "+plainText(o.Shell.Error, 40)+" ("+o.AuditID+")")
	}
}

func exit(o agent.Observation) int {
	if o.Shell.ExitCode == nil {
		return -1
	}
	return *o.Shell.ExitCode
}

// apply reads an observation into a place for every probe that it answers.
func (b *board) apply(p *place, o agent.Observation) {
	text := o.Move.(agent.RunShell).Command
	for _, pr := range probes {
		if max(pr.repeat, 1) != b.count[text]+1 || p.asked[pr.name] {
			continue
		}
		if cmd, ok := p.command(pr); !ok || cmd != text {
			continue
		}
		p.asked[pr.name] = true
		m := moment{o.AuditID, len(b.past), b.view.Now}
		if o.Shell.Status == "denied" {
			p.note(m, "denied-"+pr.name)
		}
		if !usable(o) {
			p.note(m, "without-"+pr.name)
			continue
		}
		out := read.Output{Stdout: o.Shell.Output, Stderr: o.Shell.Stderr, Exit: max(exit(o), 0)}
		said := ""
		if other := modified(o); other != "" {
			said = p.readModified(pr, other, out, m)
		} else {
			said = readers[pr.reader](p, out, m)
		}
		if unsuitable := p.facts["unsuitable"]; len(unsuitable) > 0 {
			delete(p.facts, "unsuitable")
			p.note(m, "without-"+pr.name)
		}
		b.say(o.Turn, said)
		p.settle()
	}
}

// usable reports whether an observation has an output that says something about
// the network. A missing program (exit 127) says only that it is missing.
func usable(o agent.Observation) bool {
	return o.Shell.Status == "completed" && exit(o) != 127 && exit(o) >= 0 || o.Shell.Error == "output_limit"
}

// modified returns the command that ran instead, when a person edited it.
func modified(o agent.Observation) string {
	if o.Shell.Action != "user_modified" || o.Shell.Command == o.Move.(agent.RunShell).Command {
		return ""
	}
	return o.Shell.Command
}

// readModified reads what an edited command printed, as far as it is still the
// same tool asked about the same port.
func (p *place) readModified(pr probe, ran string, out read.Output, m moment) string {
	tool, _, _ := strings.Cut(strings.Trim(ran, "'\""), " ")
	same := tool == pr.tool || strings.Contains(ran, "tcpdump") && strings.Contains(pr.args, "tcpdump")
	if !same || p.end.Port != 0 && !strings.Contains(ran, p.portText()) {
		p.note(m, "modified-"+pr.name)
		return "The command was changed by a person; its output is in the journal."
	}
	return readers[pr.reader](p, out, m)
}

// say keeps what the last turn taught, for the next words to the thread.
func (b *board) say(turn int, text string) {
	if turn == b.lastTurn() && text != "" && !slices.Contains(b.said, text) {
		b.said = append(b.said, text)
	}
}

func (b *board) lastTurn() int {
	if n := len(b.view.Observations); n > 0 {
		return b.view.Observations[n-1].Turn
	}
	return 0
}

// follow adds the places that a place's answers named: at most three hops away
// from what people named.
func (b *board) follow(p *place) {
	found := p.found
	p.found = nil
	if p.aside != "" || p.depth >= maxHops {
		return
	}
	for _, e := range found {
		about := symptom.Parse(p.web.Body)
		about.Targets, about.Codes = nil, nil
		about.Kinds = slices.DeleteFunc(about.Kinds, func(k symptom.Kind) bool { return k == symptom.Error })
		about.Since, about.Deploy, about.Intermittent = p.about.Since, p.about.Deploy, p.about.Intermittent
		c := newPlace(symptom.Guess(e), about)
		c.parent, c.depth, c.redirect = p, p.depth+1, p.web.Code < 400
		got := b.add(c)
		if got == nil || got == p || got.leads(p) {
			continue
		}
		if !slices.Contains(p.behind, got) {
			p.behind = append(p.behind, got)
		}
	}
}

// leads reports whether q is behind p, so that a circle is not followed.
func (p *place) leads(q *place) bool {
	for _, c := range p.behind {
		if c == q || c.leads(q) {
			return true
		}
	}
	return false
}

// settle derives what depends on other places, from the last to the first:
// a place is always added before the places behind it.
func (b *board) settle() {
	for i := len(b.places) - 1; i >= 0; i-- {
		p := b.places[i]
		if len(p.causes()) > 0 {
			p.learn("decided", "", 0)
		}
		p.settleBehind(func(c *place) bool { return len(b.steps(c)) == 0 })
		if len(p.causes()) > 0 && !p.has("decided") {
			p.learn("decided", "", 0)
		}
		if b.person {
			p.learn("person-there", "", 0)
		}
	}
}
