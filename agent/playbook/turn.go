package playbook

import (
	"slices"
	"strings"

	"ghostbot/agent"
	"ghostbot/agent/playbook/place"
	"ghostbot/agent/playbook/rules"
)

// each are the kinds of hypotheses that a try of one address of several decides.
var each = []string{"refused", "filtered"}

// serves says which kind of hypothesis a reader's facts decide, best first.
var serves = map[string][]string{
	"udptry": {"refused"}, "sample": {"unstable"}, "pingmore": {"path"}, "tracetimes": {"path"}, "fetch": {"dependency", "application", "slow", "hang", "reset", "refused", "protocol"}, "digtcp": {"dns-server"}, "poke": {"hang", "reset"}, "six": {"refused", "filtered"}, "four": {"refused", "filtered"}, "full": {"filtered", "overload"}, "at1": each, "at2": each, "at3": each, "at4": each, "webat1": each, "webat2": each, "webat3": each, "webat4": each, "udpsocket": {"refused", "hang"}, "anyway": {"application", "dependency", "untrusted"},
	"connect": {"refused", "filtered", "overload"}, "trytls": {"protocol", "reset", "expired"}, "tryconnect": {"refused", "filtered"}, "tryopenssl": {"refused", "filtered"},
	"listeners": {"refused", "overload", "filtered"}, "counters": {"overload", "filtered"}, "certificate": {"expired", "wrong-name", "untrusted", "protocol"},
	"ping": {"path", "filtered"}, "bigping": {"filtered", "path"}, "trace": {"path"}, "neighbour": {"path"}, "route": {"path", "refused"},
	"alive": {"dns-server"}, "dig": {"no-record", "dns-server"}, "lookup": {"no-record", "dns-server"}, "dighere": {"no-record", "dns-server"}, "lookuphere": {"no-record", "dns-server"},
	"zone": {"dns-server", "no-record"}, "dnssocket": {"dns-server"}, "getent": {"resolver", "no-record"},
	"waiting": {"hang", "dependency"}, "capture": {"refused"}, "journal": {"refused"}, "synsent": {"refused"},
}

// next is the turn for the board: hypotheses first, then commands, then, when
// there is nothing left to ask, the end.
func (b *board) next(o Options) agent.Turn {
	all := b.suspicions(o)
	if t, ok := b.processes(all); ok {
		return t
	}
	if len(b.roots()) == 0 && b.again {
		return b.noTarget(otherQuestion)
	} else if len(b.roots()) == 0 {
		return b.noTarget(b.unnamed())
	}
	if here := b.onlyHere(); here != "" {
		return b.noTarget(here)
	}
	hyps := b.hypotheses()
	m := b.manage(hyps, false)
	runs := b.runs(b.stated(hyps, m), o)
	if len(runs) == 0 {
		if s, ok := b.stuck(o); ok {
			if s.state.Next != nil && b.mayAsk() {
				return b.step(s)
			}
			all = append(all, s)
		}
		return b.close(hyps, all)
	}
	var moves []agent.Move
	if done := b.settled(all); done != nil {
		moves = append(moves, *done)
	}
	if m != nil {
		moves = append(moves, *m)
	}
	for _, r := range runs {
		moves = append(moves, r)
	}
	return agent.Turn{Text: b.words(runs), Moves: moves}
}

// stated are the hypotheses that the case has once m is applied: a command is for
// one of those.
func (b *board) stated(hyps []hypothesis, m *agent.ManageHypotheses) []hypothesis {
	known := b.known()
	return slices.DeleteFunc(slices.Clone(hyps), func(h hypothesis) bool {
		_, is := known[h.id]
		return !is && (m == nil || !slices.ContainsFunc(m.Add, func(a agent.Hypothesis) bool { return a.ID == h.id }))
	})
}

// known are the hypotheses that the case has.
func (b *board) known() map[string]agent.Hypothesis {
	out := map[string]agent.Hypothesis{}
	for _, h := range b.view.Case.Hypotheses {
		out[h.ID] = h
	}
	return out
}

// manage brings the case's hypotheses to where the facts are. At the end every
// open one is closed: what the facts did not decide cannot be verified. Before,
// at most [agent.MaxActive] are open: those of the places that are looked at
// now come first, and the others when there is room.
func (b *board) manage(hyps []hypothesis, end bool) *agent.ManageHypotheses {
	var m agent.ManageHypotheses
	known := b.known()
	open := 0
	for _, h := range hyps {
		have, is := known[h.id]
		if !is {
			continue
		}
		u := b.update(h, end)
		if b.tells(u, have, h.state, end) {
			if have.State == agent.Confirmed && u.State == agent.Unverifiable {
				u.Why = "what was seen later does not bear it out"
			}
			m.Update = append(m.Update, u)
			have.State = u.State
		}
		if have.Open() {
			open++
		}
	}
	for _, h := range b.view.Case.Hypotheses {
		if end && h.Open() && !slices.ContainsFunc(hyps, func(x hypothesis) bool { return x.id == h.ID }) {
			m.Update = append(m.Update, agent.HypothesisUpdate{ID: h.ID, State: agent.Unverifiable, Why: "not decided by what could be seen"})
		}
	}
	b.admit(&m, hyps, open, end)
	if len(m.Add) == 0 && len(m.Update) == 0 {
		return nil
	}
	return &m
}

// tells reports whether an update says something that the case does not know.
func (b *board) tells(u agent.HypothesisUpdate, have agent.Hypothesis, facts agent.State, end bool) bool {
	switch {
	case end && u.State == agent.Confirmed && have.State == u.State:
		return have.Why != u.Why // later commands said it better than the one that confirmed it
	case end && have.State == agent.Confirmed && facts != agent.Confirmed && u.State == agent.Unverifiable:
		return true // what was seen later does not bear it out
	case u.State == agent.Active || have.State == u.State:
		return false
	}
	return u.State != agent.Unverifiable || have.Open()
}

// admit adds the hypotheses that the case has not, as far as there is room beside
// the open ones. One that is decided already needs none but for its entry.
func (b *board) admit(m *agent.ManageHypotheses, hyps []hypothesis, open int, end bool) {
	known := b.known()
	for _, h := range b.byPlace(hyps) {
		if _, is := known[h.id]; is {
			continue
		}
		u := b.update(h, end)
		if end && u.State == agent.Unverifiable && h.read == nil { // never stated, never tested
			continue
		}
		if open >= agent.MaxActive && !b.makeRoom(m, hyps, &open) {
			return
		}
		m.Add = append(m.Add, agent.Hypothesis{ID: h.id, Description: h.says + ".", State: agent.Active})
		if u.State != agent.Active {
			m.Update = append(m.Update, u)
			continue
		}
		open++
	}
}

// byPlace puts the hypotheses of the place that is looked at now first.
func (b *board) byPlace(hyps []hypothesis) []hypothesis {
	out := slices.Clone(hyps)
	rank := map[*place.Place]int{}
	for i, p := range b.inOrder() {
		rank[p] = i
		if len(b.steps(p)) == 0 {
			rank[p] += len(b.places)
		}
	}
	slices.SortStableFunc(out, func(x, y hypothesis) int { return rank[x.p] - rank[y.p] })
	return out
}

// makeRoom closes an open hypothesis at a place at which nothing is left to ask:
// what was seen does not decide it. What is behind the place may still do so.
func (b *board) makeRoom(m *agent.ManageHypotheses, hyps []hypothesis, open *int) bool {
	known := b.known()
	for _, h := range hyps {
		have, is := known[h.id]
		if !is || !have.Open() || h.state != agent.Active || len(b.steps(h.p)) > 0 ||
			slices.ContainsFunc(h.p.Behind, func(c *place.Place) bool { return len(b.steps(c)) > 0 }) ||
			slices.ContainsFunc(m.Update, func(u agent.HypothesisUpdate) bool { return u.ID == h.id }) {
			continue
		}
		m.Update = append(m.Update, agent.HypothesisUpdate{ID: h.id, State: agent.Unverifiable, Why: notDecided})
		*open--
		return true
	}
	return false
}

const notDecided = "not decided by what could be seen from this machine"

// update is the state of one hypothesis as the facts have it.
func (b *board) update(h hypothesis, end bool) agent.HypothesisUpdate {
	u := agent.HypothesisUpdate{ID: h.id, State: h.state, Evidence: h.p.IDs(h.facts)}
	weak := h.read != nil && h.read.Sure == "low"
	switch {
	case weak && !end:
		u.State = agent.Active // a mere possibility confirms nothing
	case weak:
		u.State, u.Why = agent.Unverifiable, h.p.Text(h.read.Cause)+"."
	case h.p.Aside != "" && (h.state == agent.Active || len(u.Evidence) == 0):
		u.State, u.Why, u.Evidence = agent.Unverifiable, h.p.Aside, nil
	case h.state != agent.Active && len(u.Evidence) == 0 && !end:
		u.State = agent.Active // nothing is claimed without evidence
	case h.state != agent.Active && len(u.Evidence) == 0:
		u.State, u.Why = agent.Unverifiable, "nothing was seen that decides it"
	case h.state == agent.Confirmed:
		u.Why = h.p.Text(h.read.Cause) + "."
	case h.state == agent.Refuted:
		u.Why = "ruled out: " + h.p.Why(h.facts) + "."
	case b.denials(h.id) >= 3:
		u.State, u.Why, u.Evidence = agent.Unverifiable, "three commands for it were denied", b.deniedIDs(h.id)
	case end:
		u.State, u.Why, u.Evidence = agent.Unverifiable, notDecided, nil
	}
	return u
}

func (b *board) denials(id string) int {
	n := len(b.deniedIDs(id))
	if h, is := b.known()[id]; is {
		n = max(n, h.DenialCount)
	}
	return n
}

func (b *board) deniedIDs(id string) []string {
	var out []string
	for _, r := range b.refused {
		if r.hypothesis == id {
			out = append(out, r.id)
		}
	}
	return out
}

// runs picks the commands of the turn: a few steps of the first place that has
// any, else one optional step.
func (b *board) runs(hyps []hypothesis, o Options) []agent.RunShell {
	left := min(rules.PerTurn, rules.MaxCommands-b.commands)
	if b.view.TurnsLeft > 0 && b.view.TurnsLeft <= 2 || b.finish {
		return nil
	}
	var out []agent.RunShell
	for _, p := range b.inOrder() {
		for len(out) < left {
			steps := b.steps(p)
			if len(steps) == 0 || b.closed(p, hyps) {
				break
			}
			out = append(out, b.run(p, steps[0], hyps))
		}
		if len(out) > 0 {
			return out
		}
	}
	if left > 0 && !o.SafeOnly && !b.noRisk {
		return b.extra(hyps)
	}
	return nil
}

// inOrder lists the places with those behind before their parents: the end of a
// chain is where the cause is.
func (b *board) inOrder() []*place.Place {
	var out []*place.Place
	var add func(p *place.Place)
	add = func(p *place.Place) {
		if slices.Contains(out, p) || p.Aside != "" {
			return
		}
		for _, c := range p.Behind {
			add(c)
		}
		out = append(out, p)
	}
	for _, p := range b.places {
		add(p)
	}
	return out
}

// closed reports whether nothing may be asked for a place any more: every
// hypothesis there was made unverifiable by denials.
func (b *board) closed(p *place.Place, hyps []hypothesis) bool {
	any := false
	for _, h := range hyps {
		if h.p == p {
			any = true
			if b.denials(h.id) < 3 {
				return false
			}
		}
	}
	return any
}

// run makes the move for one probe and marks it as asked, so that the next pick
// of the same turn is another one.
func (b *board) run(p *place.Place, pr rules.Probe, hyps []hypothesis) agent.RunShell {
	cmd, _ := p.Command(pr)
	p.Asked[pr.Name] = true
	b.count[cmd]++
	id, reason := b.reasoning(p, pr, hyps)
	return agent.RunShell{Command: cmd, Reasoning: reason, Hypothesis: id, Target: p.Target(pr), Effect: pr.Effect, Means: p.Text(pr.Means)}
}

// reasoning is one sentence: what the command shows and which hypotheses it
// tells apart.
func (b *board) reasoning(p *place.Place, pr rules.Probe, hyps []hypothesis) (id, text string) {
	var open, all []string
	for _, want := range append(slices.Clone(serves[pr.Reader]), "") {
		for _, h := range hyps {
			if h.p != p || want != "" && h.rule.Name != want || b.denials(h.id) >= 3 || slices.Contains(all, h.id) {
				continue
			}
			all = append(all, h.id)
			if h.state == agent.Active || h.read != nil && h.read.Sure == "low" {
				open = append(open, h.id)
			}
		}
	}
	text = "Shows " + p.Text(pr.Why)
	switch {
	case len(open) > 1:
		return open[0], text + "; separates " + open[0] + " from " + strings.Join(open[1:min(len(open), 3)], " and ") + "."
	case len(open) == 1:
		return open[0], text + "; decides " + open[0] + "."
	case len(all) > 0:
		return all[0], text + "; tests " + all[0] + " once more."
	}
	return "", text + "."
}

// How long a report waits for an answer about an optional command, in seconds:
// incident commanders want the cause, not one more proof of it. A case in which
// nobody reacts has its report within reportWithin of its first command, and a
// question that nobody can read in time is not asked.
const (
	patience     = 40
	reportWithin = 48
	tooShort     = 10
)

// patient is how long an optional command may wait now. When people answer, the
// case takes the time that they take.
func (b *board) patient() int {
	if b.person {
		return patience
	}
	return min(patience, reportWithin-int(b.elapsed().Seconds()))
}

// extra is one RISKY command that would confirm what is known, while people are
// there to answer: after an expiry or without an approver there is no second.
func (b *board) extra(hyps []hypothesis) []agent.RunShell {
	if b.optional > 0 && !b.person || b.patient() < tooShort {
		return nil
	}
	for _, s := range rules.Optional {
		for _, p := range b.inOrder() {
			ok, _ := p.Any(s.When)
			pr := rules.ProbeNamed(s.Ask)
			if !ok || p.Asked[pr.Name] || b.missing[pr.Tool] || !b.allowed(p, pr) || b.proposed(pr) {
				continue
			}
			r := b.run(p, pr, hyps)
			r.Patience = b.patient()
			return []agent.RunShell{r}
		}
	}
	return nil
}

// proposed reports whether a RISKY probe was already proposed at any place: one
// of a kind is enough for a case, and after a denial the same at another place
// is an equivalent command.
func (b *board) proposed(pr rules.Probe) bool {
	for _, p := range b.places {
		if p.Asked[pr.Name] {
			return true
		}
	}
	return false
}

func isOptional(cmd string) bool {
	tool, _, _ := strings.Cut(cmd, " ")
	return slices.ContainsFunc(rules.Probes, func(pr rules.Probe) bool { return pr.Risky && pr.Tool == tool })
}

// words are what the thread reads: what the last turn taught, and what is next.
func (b *board) words(runs []agent.RunShell) string {
	var out []string
	if b.view.Observations == nil {
		out = append(out, "Looking at "+b.targets()+".")
	}
	out = append(out, b.said[:min(len(b.said), 2)]...)
	if len(runs) == 1 && isOptional(runs[0].Command) {
		out = append(out, "The cause is clear; one optional check more, which needs an approval. Without an answer the report comes without it.")
	} else if len(runs) > 0 {
		out = append(out, "Next: finding out "+b.plan(runs)+".")
	}
	return strings.Join(out, " ")
}

func (b *board) targets() string {
	var out []string
	for _, p := range b.roots() {
		s := p.Title()
		if p.Server != nil && p.End.IsName() {
			s += " (asking the DNS server " + p.Server.String() + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, " and ")
}

// plan says in a few words what the commands find out.
func (b *board) plan(runs []agent.RunShell) string {
	var out []string
	for _, r := range runs {
		s, _, _ := strings.Cut(strings.TrimPrefix(r.Reasoning, "Shows "), ";")
		if s = strings.TrimSuffix(s, "."); !slices.Contains(out, s) && len(out) < 2 {
			out = append(out, s)
		}
	}
	return strings.Join(out, ", and ")
}
