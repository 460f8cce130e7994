package playbook

import (
	"slices"
	"time"

	"ghostbot/agent"
	"ghostbot/agent/playbook/place"
	"ghostbot/agent/playbook/rules"
)

// hypothesis is one rule at one place with its state as the facts have it.
type hypothesis struct {
	id    string
	says  string
	p     *place.Place
	rule  *rules.Rule
	state agent.State
	read  *rules.Reading
	facts []place.Fact
}

// states are the case's words for verdicts.
var states = map[place.Verdict]agent.State{place.Open: agent.Active, place.Confirmed: agent.Confirmed, place.Refuted: agent.Refuted}

// hypotheses lists what is believed and asked at every place: the openings, what
// the case has already, and every other rule that the facts confirm.
func (b *board) hypotheses() []hypothesis {
	var out []hypothesis
	known := b.known()
	for _, p := range b.places {
		opening := append(p.Opening(), b.tested(p, known)...)
		for i := range rules.All {
			r := &rules.All[i]
			v, rd, used := p.Judge(r)
			_, has := known[p.ID(r)]
			cause := v == place.Confirmed && slices.ContainsFunc(p.Causes(), func(c place.Cause) bool { return c.Rule == r })
			if !has && !cause && !slices.Contains(opening, r) {
				continue
			}
			out = append(out, hypothesis{p.ID(r), p.Text(r.Says), p, r, states[v], rd, used})
		}
	}
	slices.SortStableFunc(out, func(x, y hypothesis) int {
		if x.p != y.p {
			return x.p.N - y.p.N
		}
		return rank(x.rule, x.p.Opening()) - rank(y.rule, y.p.Opening())
	})
	return out
}

// tested are rules that the next steps at a place decide and that nobody has
// stated yet: a command that could have refuted an explanation is worth more when
// the explanation was there before it. The first turn keeps to the opening.
func (b *board) tested(p *place.Place, known map[string]agent.Hypothesis) []*rules.Rule {
	if len(b.view.Observations) == 0 {
		return nil
	}
	var out []*rules.Rule
	for _, pr := range b.steps(p) {
		list := serves[pr.Reader]
		if len(list) == 0 || slices.ContainsFunc(list, func(name string) bool {
			_, has := known[p.ID(rules.Named(name))]
			return has || slices.Contains(p.Opening(), rules.Named(name))
		}) {
			continue
		}
		out = append(out, rules.Named(list[0]))
	}
	return out
}

// rank orders the hypotheses of a place as its opening does, later ones last.
func rank(r *rules.Rule, opening []*rules.Rule) int {
	if i := slices.Index(opening, r); i >= 0 {
		return i
	}
	return len(opening)
}

// steps are the probes that the ladder still has for a place.
func (b *board) steps(p *place.Place) []rules.Probe {
	if p.Aside != "" {
		return nil
	}
	var out []rules.Probe
	for _, s := range append(slices.Clone(rules.Ladder), rules.AfterDenial...) {
		if ok, _ := p.Any(s.When); !ok {
			continue
		}
		if pr, ok := b.choose(p, s.Ask); ok && !slices.ContainsFunc(out, func(x rules.Probe) bool { return x.Name == pr.Name }) {
			out = append(out, pr)
		}
	}
	return out
}

// choose returns the probe to ask for a step: the named one, or the first of its
// substitutes when its tool is missing, did not understand or was refused. A
// step whose question was answered has none.
func (b *board) choose(p *place.Place, name string) (rules.Probe, bool) {
	for i := 0; name != "" && i < len(rules.Probes); i++ {
		pr := rules.ProbeNamed(name)
		switch {
		case p.Asked[name] && !p.Has("without-"+name):
			return rules.Probe{}, false
		case !p.Asked[name] && !b.missing[pr.Tool] && b.allowed(p, pr):
			return pr, true
		}
		name = pr.Instead
	}
	return rules.Probe{}, false
}

// enough is how long the commands of an unattended case have run when nothing is
// asked a second time any more, and nothing a third time: a report within a minute
// beats one more sample.
var enough = [2]time.Duration{40 * time.Second, 20 * time.Second}

// spent is how long the commands have run together. It does not count the time
// during which a case waited or nobody ran it.
func (b *board) spent() time.Duration {
	var sum float64
	for _, o := range b.view.Observations {
		if o.Shell != nil {
			sum += o.Shell.Duration
		}
	}
	return time.Duration(sum * float64(time.Second))
}

// elapsed is how long ago the first command was run.
func (b *board) elapsed() time.Duration {
	if len(b.view.Observations) == 0 {
		return 0
	}
	return b.view.Now.Sub(b.view.Observations[0].Time)
}

// allowed reports whether a probe can be asked: its parts are known, the same
// command was not refused, and it ran exactly as often as its turn says. The
// last rule also means that no case can repeat a command without end.
func (b *board) allowed(p *place.Place, pr rules.Probe) bool {
	cmd, ok := p.Command(pr)
	if !ok || pr.Repeat > 1 && b.spent() > enough[min(pr.Repeat, 3)-2] && !b.person || b.count[cmd] != max(pr.Repeat, 1)-1 {
		return false
	}
	return !slices.ContainsFunc(b.refused, func(r refusal) bool { return r.command == cmd })
}
