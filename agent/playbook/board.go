package playbook

import (
	"cmp"
	"slices"
	"strings"

	"ghostbot/agent"
	"ghostbot/agent/playbook/pattern"
	"ghostbot/agent/playbook/phrase"
	"ghostbot/agent/playbook/place"
	"ghostbot/agent/playbook/read"
	"ghostbot/agent/playbook/rules"
	"ghostbot/agent/playbook/suspect"
	"ghostbot/agent/playbook/symptom"
	"ghostbot/safeexec"
)

// board is a view worked out: the places, what is known about them, and what
// people said. It is built anew from every view, by going through observations
// and instructions in the order in which they came, and nothing else; so the
// same view gives the same board, and a longer one extends it.
type board struct {
	view     agent.View
	safe     func(command string) bool
	places   []*place.Place
	past     []agent.Observation // read so far
	count    map[string]int      // how often a command was run
	missing  map[string]bool     // tools that are not installed
	commands int
	optional int  // RISKY steps proposed so far
	person   bool // the last RISKY step was decided by a person
	finish   bool // people want the report now
	noRisk   bool // people want no more RISKY steps
	again    bool // people took the target back and named no other
	asked    int  // instructions without a target while there is none
	said     []string
	refused  []refusal
	failed   []string // commands that gave nothing, in words
	spared   []spared // places that people say need no look
	beyond   []string // places that people named and for which there is no room
}

// spared is a place that is left out because people say that it is in order, or
// that it is to be left alone.
type spared struct {
	end   symptom.Endpoint
	never bool // it is not asked even when an answer names it
	why   string
}

// refusal is a command that was not allowed.
type refusal struct {
	id, command, reason, hypothesis string
}

func newBoard(v agent.View, o Options) *board {
	b := &board{view: v, safe: o.Safe, count: map[string]int{}, missing: map[string]bool{}}
	s := symptom.Parse(v.Case.Symptom)
	b.spare(s, person(v.Case.Requester))
	if _, asked := suspect.Words(v.Case.Symptom); !asked || !o.Hosts {
		b.open(s)
	}
	obs, ins := v.Observations, v.Instructions
	for len(obs) > 0 || len(ins) > 0 {
		if len(ins) == 0 || len(obs) > 0 && obs[0].Turn <= ins[0].Turn {
			b.observe(obs[0])
			obs = obs[1:]
			continue
		}
		if _, asked := suspect.Words(ins[0].Text); !asked || !o.Hosts {
			b.instruct(ins[0])
		}
		ins = ins[1:]
	}
	b.settle()
	return b
}

// open adds the places that people name. A text that only names a DNS server is
// about that server.
func (b *board) open(s symptom.Symptom) {
	for _, e := range s.Targets {
		if b.add(place.New(e, s)) == nil {
			b.beyond = append(b.beyond, e.String())
		}
	}
	for _, e := range s.More {
		b.beyond = append(b.beyond, e.String())
	}
	if len(s.Targets) == 0 && s.Resolver != nil {
		b.add(place.New(symptom.Endpoint{Scheme: "tcp", Host: s.Resolver.Host}, s))
	}
}

// add puts a place on the board unless it is there, and reads again what was
// observed before, because one command may serve two places.
func (b *board) add(p *place.Place) *place.Place {
	if fetch, ok := p.Command(rules.ProbeNamed("fetch")); ok && p.End.Path != "" && b.safe != nil && !b.safe(fetch) {
		p.End.Path, p.End.Left = "", "a request to it may act or open what is confidential and needs a person"
	}
	for _, have := range b.places {
		if have.Aside == "" && have.End.Same(p.End) && (have.End.Scheme == p.End.Scheme || have.End.Port != 0) &&
			(p.Parent != nil || p.End.Path == "" || have.End.Path == p.End.Path) {
			return have
		}
	}
	if len(b.places) >= rules.MaxPlaces {
		return nil
	}
	p.N = len(b.places) + 1
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

// instruct takes a person's words: a correction, an addition, or a wish. What is
// no correction in so many words adds to what is looked at and takes nothing away.
func (b *board) instruct(in agent.Instruction) {
	s := symptom.Parse(in.Text)
	b.finish = b.finish || s.Finish
	b.noRisk = b.noRisk || noRiskWords.MatchString(in.Text)
	if s.Bare && b.carded(in.Turn) { // the "no" may be meant for the card
		s.Correction = false
	}
	s.Targets, s.Not, s.Off = b.sameHost(s, s.Targets), b.sameHost(s, s.Not), b.sameHost(s, s.Off)
	b.spare(s, person(in.By)+cited(in.ID))
	if s.Correction {
		b.correct(s, person(in.By)+"'s correction of the target"+cited(in.ID))
	}
	switch {
	case len(s.Targets) > 0 || s.Resolver != nil && len(b.roots()) == 0:
		b.again = false
		b.open(b.inherit(s))
	case s.Resolver != nil:
		b.newServer(*s.Resolver)
	case len(b.roots()) == 0 && (s.Correction || len(s.Off) > 0):
		b.again = true // what they mean instead is asked
	default:
		b.hint(s)
	}
}

// carded reports whether a command of a turn asked people for an approval.
func (b *board) carded(turn int) bool {
	return slices.ContainsFunc(b.past, func(o agent.Observation) bool {
		return o.Turn == turn && o.Shell.Classification == safeexec.Risky
	})
}

// inherit gives a reply what it leaves open from the symptom.
func (b *board) inherit(s symptom.Symptom) symptom.Symptom {
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
	return s
}

// correct sets aside what people take back: the places they say it is not, or
// all when they only say what it is.
func (b *board) correct(s symptom.Symptom, after string) {
	wrong := func(p *place.Place) bool {
		return slices.ContainsFunc(s.Not, p.End.Same) || slices.ContainsFunc(s.Off, p.End.Same)
	}
	if !slices.ContainsFunc(b.places, wrong) {
		wrong = func(p *place.Place) bool { return !slices.ContainsFunc(s.Targets, p.End.Same) }
	}
	b.aside(wrong, "not examined after "+after)
}

// anonymous are ids of accounts that say nothing to who reads them outside of the
// chat: the entry that is cited has them.
var anonymous = pattern.New(`^[UW][A-Z0-9]{7,}$`)

// person is how sentences call somebody.
func person(by string) string {
	if by == "" || anonymous.MatchString(by) {
		return "a person"
	}
	return phrase.Plain(by, 40)
}

func cited(id string) string {
	if id == "" {
		return ""
	}
	return " (" + id + ")"
}

// aside stops looking at places, and at those that only their answers named.
func (b *board) aside(which func(*place.Place) bool, why string) {
	for _, p := range b.places {
		if p.Aside == "" && which(p) {
			p.Aside = why
		}
	}
	for _, p := range b.places { // parents stand before what is behind them
		if p.Parent != nil && p.Aside == "" && !slices.ContainsFunc(b.places, func(q *place.Place) bool {
			return q.Aside == "" && slices.Contains(q.Behind, p)
		}) {
			p.Aside = why
		}
	}
}

// spare notes the places that need no look. One that is being looked at because
// people named it is finished: what is seen there counts for more than what is
// said about it.
func (b *board) spare(s symptom.Symptom, who string) {
	for _, e := range s.Fine {
		why := "left out, because " + who + " says that it is in order"
		b.spared = append(b.spared, spared{e, false, why})
		b.aside(func(p *place.Place) bool {
			return p.End.Same(e) && p.End.Path == e.Path && len(p.Asked) == 0 && len(b.roots()) > 1
		}, why)
	}
	for _, e := range s.Off {
		why := "left alone, because " + who + " asked for that"
		b.spared = append(b.spared, spared{e, true, why})
		b.aside(func(p *place.Place) bool { return p.End.Same(e) }, why)
	}
}

// sameHost gives ports that a reply names without a host the host of the place
// that is being looked at; in a correction the protocol as well.
func (b *board) sameHost(s symptom.Symptom, list []symptom.Endpoint) []symptom.Endpoint {
	roots := b.roots()
	if !s.PortOnly || len(roots) == 0 {
		return list
	}
	out := slices.Clone(list)
	for i := range out {
		old := roots[0].End
		out[i].Host = old.Host
		if s.Correction && !old.Guessed {
			out[i].Scheme, out[i].Guessed = old.Scheme, false
		}
	}
	return out
}

// hint takes words without a target: they say more about the places there are.
func (b *board) hint(s symptom.Symptom) {
	if len(b.roots()) == 0 {
		b.asked++
	}
	for _, p := range b.roots() {
		p.About.Kinds = append(slices.Clone(p.About.Kinds), s.Kinds...)
		p.About.Intermittent = p.About.Intermittent || s.Intermittent
		p.About.Codes = append(slices.Clone(p.About.Codes), s.Codes...)
		p.About.Rate, p.About.Delay, p.About.Jitter = cmp.Or(s.Rate, p.About.Rate), cmp.Or(s.Delay, p.About.Delay), p.About.Jitter || s.Jitter
	}
}

func (b *board) newServer(e symptom.Endpoint) {
	for _, p := range b.roots() {
		if p.End.IsName() {
			p.Server = &e
		}
	}
}

// roots are the places that people named and that were not set aside.
func (b *board) roots() []*place.Place {
	return b.only(func(p *place.Place) bool { return p.Parent == nil })
}

func (b *board) only(keep func(*place.Place) bool) []*place.Place {
	var out []*place.Place
	for _, p := range b.places {
		if p.Aside == "" && keep(p) {
			out = append(out, p)
		}
	}
	return out
}

// observe reads one observation into every place whose probe it answers, then
// adds the places that it named.
func (b *board) observe(o agent.Observation) {
	if _, is := o.Move.(agent.TriageProcesses); is && o.Shell != nil {
		b.commands++
		if o.Shell.Classification == safeexec.Risky {
			b.optional++
			b.person = o.Shell.DecidedBy != ""
		}
	}
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
		b.reason(agent.Instruction{By: o.Shell.DecidedBy, Text: o.Shell.DenialReason, Turn: o.Turn})
	}
}

// reason reads why a person refused: a correction, an addition or a place to be
// left alone counts like one in the thread.
func (b *board) reason(in agent.Instruction) {
	b.noRisk = b.noRisk || noRiskWords.MatchString(in.Text)
	if s := symptom.Parse(in.Text); s.Correction || s.Addition && len(s.Targets) > 0 || len(s.Off) > 0 {
		b.instruct(in)
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
		b.failed = append(b.failed, "`"+mv.Command+"` gave nothing: "+phrase.Plain(o.Shell.Error, 40)+" ("+o.AuditID+")")
	}
}

func exit(o agent.Observation) int {
	if o.Shell.ExitCode == nil {
		return -1
	}
	return *o.Shell.ExitCode
}

// apply reads an observation into a place for every probe that it answers.
func (b *board) apply(p *place.Place, o agent.Observation) {
	text := o.Move.(agent.RunShell).Command
	for _, pr := range rules.Probes {
		if max(pr.Repeat, 1) != b.count[text]+1 || p.Asked[pr.Name] {
			continue
		}
		if cmd, ok := p.Command(pr); !ok || cmd != text {
			continue
		}
		m := place.Moment{ID: o.AuditID, Obs: len(b.past), Now: b.view.Now}
		if !usable(o) {
			p.NotRead(pr, o.Shell.Status == "denied", m)
			continue
		}
		out := read.Output{Stdout: o.Shell.Output, Stderr: o.Shell.Stderr, Exit: max(exit(o), 0)}
		b.say(o.Turn, p.Read(pr, out, modified(o), m))
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
func (b *board) follow(p *place.Place) {
	found, about := p.Take()
	if p.Aside != "" || p.Depth >= rules.MaxHops {
		return
	}
	about.Targets, about.Codes = nil, nil
	about.Rate, about.Delay, about.Jitter = 0, 0, false // what people name is of the place that they name
	about.Kinds = slices.DeleteFunc(about.Kinds, func(k symptom.Kind) bool { return k == symptom.Error })
	about.Since, about.Deploy, about.Intermittent = p.About.Since, p.About.Deploy, p.About.Intermittent
	for _, e := range found {
		if slices.ContainsFunc(b.spared, func(x spared) bool { return x.never && x.end.Same(e) }) {
			continue
		}
		c := place.New(symptom.Guess(e), about)
		c.Parent, c.Depth, c.Redirect = p, p.Depth+1, p.Redirects()
		got := b.add(c)
		if got != nil && c.Redirect && got.Leads(p) {
			p.Loops(got)
		}
		if got != nil && got != p && !got.Leads(p) && !slices.Contains(p.Behind, got) {
			p.Behind = append(p.Behind, got)
		}
	}
}

// settle derives what depends on other places, from the last to the first:
// a place is always added before the places behind it.
func (b *board) settle() {
	for i := len(b.places) - 1; i >= 0; i-- {
		p := b.places[i]
		p.Decide(b.person)
		p.SettleBehind(func(c *place.Place) bool { return len(b.steps(c)) == 0 })
		p.Decide(false)
	}
}
