package playbook

import (
	"slices"
	"strconv"

	"ghostbot/agent"
)

// cause is a confirmed reading of a rule at a place.
type cause struct {
	p     *place
	rule  *rule
	read  *reading
	facts []fact
}

// judge decides one rule at a place.
func (p *place) judge(r *rule) (agent.State, *reading, []fact) {
	for i := range r.confirm {
		if ok, used := p.holds(r.confirm[i].when); ok {
			return agent.Confirmed, &r.confirm[i], used
		}
	}
	if ok, used := p.any(r.refute); ok {
		return agent.Refuted, nil, used
	}
	return agent.Active, nil, nil
}

// causes are the confirmed rules of a place that explain its trouble: one of
// each family, and none that only repeats what another one says.
func (p *place) causes() []cause {
	var out []cause
	families := map[string]bool{}
	for i := range rules {
		r := &rules[i]
		s, rd, used := p.judge(r)
		if s != agent.Confirmed || r.family != "" && families[r.family] {
			continue
		}
		families[r.family] = r.family != ""
		out = append(out, cause{p, r, rd, used})
	}
	return slices.DeleteFunc(out, func(c cause) bool { return minor(c, out) })
}

// minor reports whether another cause at the same place makes c a remark: an
// unknown authority when the service behind it fails anyway, slowness or
// unsteadiness when something is broken outright, a weaker reading of the path.
func minor(c cause, all []cause) bool {
	for _, o := range all {
		switch {
		case o.rule == c.rule:
		case c.rule.name == "untrusted" && !c.p.has("about-certificate"),
			c.rule.name == "unstable",
			c.rule.name == "slow" && c.rule != o.rule,
			c.read.sure == "low",
			c.rule.name == "reset" && o.rule.name == "protocol":
			return true
		}
	}
	return false
}

// id names a rule at a place in the case's hypotheses. It depends on nothing
// but the two, so that a view that grows never renames one.
func (p *place) id(r *rule) string { return "H" + strconv.Itoa(p.n) + "-" + r.name }

func ruleNamed(name string) *rule {
	for i := range rules {
		if rules[i].name == name {
			return &rules[i]
		}
	}
	return nil
}

// opening returns the hypotheses that a place starts with.
func (p *place) opening() []*rule {
	for _, o := range openings {
		if !p.has("about-"+string(o.kind)) && o.kind != "" {
			continue
		}
		var out []*rule
		for _, x := range o.rules {
			if ok, _ := p.holds(x.needs); ok && len(out) < p.openingSize() {
				out = append(out, ruleNamed(x.rule))
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// openingSize: a place behind another one gets fewer hypotheses, so that a chain
// does not drown the reader.
func (p *place) openingSize() int {
	if p.parent != nil {
		return 3
	}
	return maxOpenings
}

// hypothesis is one rule at one place with its state as the facts have it.
type hypothesis struct {
	id    string
	says  string
	p     *place
	rule  *rule
	state agent.State
	read  *reading
	facts []fact
}

// hypotheses lists what is believed and asked at every place: the openings, and
// every other rule that the facts confirm.
func (b *board) hypotheses() []hypothesis {
	var out []hypothesis
	for _, p := range b.places {
		opening := p.opening()
		for i := range rules {
			r := &rules[i]
			s, rd, used := p.judge(r)
			if !slices.Contains(opening, r) && (s != agent.Confirmed || !slices.ContainsFunc(p.causes(), func(c cause) bool { return c.rule == r })) {
				continue
			}
			out = append(out, hypothesis{p.id(r), p.text(r.says), p, r, s, rd, used})
		}
	}
	slices.SortStableFunc(out, func(x, y hypothesis) int {
		if x.p != y.p {
			return x.p.n - y.p.n
		}
		return rank(opened(x), x.p.opening()) - rank(opened(y), y.p.opening())
	})
	return out
}

func opened(h hypothesis) *rule { return h.rule }

// rank orders the hypotheses of a place as its opening does, later ones last.
func rank(r *rule, opening []*rule) int {
	if i := slices.Index(opening, r); i >= 0 {
		return i
	}
	return len(opening)
}

// steps are the probes that the ladder still has for a place.
func (b *board) steps(p *place) []probe {
	if p.aside != "" {
		return nil
	}
	var out []probe
	for _, s := range append(slices.Clone(ladder), afterDenial...) {
		if ok, _ := p.any(s.when); !ok {
			continue
		}
		if pr, ok := b.choose(p, s.ask); ok && !slices.ContainsFunc(out, func(x probe) bool { return x.name == pr.name }) {
			out = append(out, pr)
		}
	}
	return out
}

// choose returns the probe to ask for a step: the named one, or the first of its
// substitutes when its tool is missing, did not understand or was refused. A
// step whose question was answered has none.
func (b *board) choose(p *place, name string) (probe, bool) {
	for i := 0; name != "" && i < len(probes); i++ {
		pr := probeNamed(name)
		switch {
		case p.asked[name] && !p.has("without-"+name):
			return probe{}, false
		case !p.asked[name] && !b.missing[pr.tool] && b.allowed(p, pr):
			return pr, true
		}
		name = pr.instead
	}
	return probe{}, false
}

// allowed reports whether a probe can be asked: its parts are known, the same
// command was not refused, and it ran exactly as often as its turn says. The
// last rule also means that no case can repeat a command without end.
func (b *board) allowed(p *place, pr probe) bool {
	cmd, ok := p.command(pr)
	if !ok || b.count[cmd] != max(pr.repeat, 1)-1 {
		return false
	}
	return !slices.ContainsFunc(b.refused, func(r refusal) bool { return r.command == cmd })
}

func probeNamed(name string) probe {
	for _, pr := range probes {
		if pr.name == name {
			return pr
		}
	}
	return probe{}
}
