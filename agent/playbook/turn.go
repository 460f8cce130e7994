package playbook

import (
	"slices"
	"strings"

	"ghostbot/agent"
)

// serves says which kind of hypothesis a reader's facts decide, best first.
var serves = map[string][]string{
	"fetch": {"dependency", "application", "slow", "hang", "reset", "refused", "protocol"}, "anyway": {"application", "dependency", "untrusted"},
	"connect": {"refused", "filtered", "overload"}, "tryconnect": {"refused", "filtered"}, "tryopenssl": {"refused", "filtered"},
	"listeners": {"refused", "overload", "filtered"}, "counters": {"overload", "filtered"}, "certificate": {"expired", "wrong-name", "untrusted", "protocol"},
	"ping": {"path", "filtered"}, "bigping": {"filtered", "path"}, "trace": {"path"}, "neighbour": {"path"}, "route": {"path", "refused"},
	"dig": {"no-record", "dns-server"}, "lookup": {"no-record", "dns-server"}, "dighere": {"no-record", "dns-server"}, "lookuphere": {"no-record", "dns-server"},
	"zone": {"dns-server", "no-record"}, "dnssocket": {"dns-server"}, "getent": {"resolver", "no-record"},
	"waiting": {"hang", "dependency"}, "capture": {"refused"}, "journal": {"refused"}, "synsent": {"refused"},
}

// next is the turn for the board: hypotheses first, then commands, then, when
// there is nothing left to ask, the end.
func (b *board) next(o Options) agent.Turn {
	if len(b.roots()) == 0 {
		return b.noTarget(question)
	}
	if here := b.onlyHere(); here != "" {
		return b.noTarget(here)
	}
	hyps := b.hypotheses()
	runs := b.runs(hyps, o)
	if len(runs) == 0 {
		return b.conclude(hyps)
	}
	var moves []agent.Move
	if m := b.manage(hyps, false); m != nil {
		moves = append(moves, *m)
	}
	for _, r := range runs {
		moves = append(moves, r)
	}
	return agent.Turn{Text: b.words(runs), Moves: moves}
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
// open one is closed: what the facts did not decide cannot be verified.
func (b *board) manage(hyps []hypothesis, end bool) *agent.ManageHypotheses {
	var m agent.ManageHypotheses
	known := b.known()
	for _, h := range hyps {
		have, is := known[h.id]
		if !is {
			m.Add = append(m.Add, agent.Hypothesis{ID: h.id, Description: h.says + ".", State: agent.Active})
		}
		u := b.update(h, end)
		if u.State != agent.Active && (!is || have.State != u.State) && !(is && u.State == agent.Unverifiable && !have.Open()) {
			m.Update = append(m.Update, u)
		}
	}
	for _, h := range b.view.Case.Hypotheses {
		if end && h.Open() && !slices.ContainsFunc(hyps, func(x hypothesis) bool { return x.id == h.ID }) {
			m.Update = append(m.Update, agent.HypothesisUpdate{ID: h.ID, State: agent.Unverifiable, Why: "not decided by what could be seen"})
		}
	}
	if len(m.Add) == 0 && len(m.Update) == 0 {
		return nil
	}
	return &m
}

// update is the state of one hypothesis as the facts have it.
func (b *board) update(h hypothesis, end bool) agent.HypothesisUpdate {
	u := agent.HypothesisUpdate{ID: h.id, State: h.state, Evidence: h.p.ids(h.facts)}
	switch {
	case h.p.aside != "":
		u.State, u.Why, u.Evidence = agent.Unverifiable, h.p.aside, nil
	case h.state != agent.Active && len(u.Evidence) == 0 && !end:
		u.State = agent.Active // nothing is claimed without evidence
	case h.state != agent.Active && len(u.Evidence) == 0:
		u.State, u.Why = agent.Unverifiable, "nothing was seen that decides it"
	case h.state == agent.Confirmed:
		u.Why = h.p.text(h.read.cause) + "."
	case h.state == agent.Refuted:
		u.Why = "ruled out: " + h.p.why(h.facts) + "."
	case b.denials(h.id) >= 3:
		u.State, u.Why, u.Evidence = agent.Unverifiable, "three commands for it were denied", b.deniedIDs(h.id)
	case end:
		u.State, u.Why, u.Evidence = agent.Unverifiable, "not decided by what could be seen from this machine", nil
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

// ids are the audit ids of facts, each once, in order of observation. Facts
// that follow from the symptom alone have none; then everything that was seen
// at the place stands for them.
func (p *place) ids(facts []fact) []string {
	with := shown(facts)
	if len(with) == 0 {
		for _, fs := range p.facts {
			with = append(with, shown(fs)...)
		}
	}
	slices.SortStableFunc(with, func(x, y fact) int {
		if x.obs != y.obs {
			return x.obs - y.obs
		}
		return strings.Compare(x.id, y.id)
	})
	var out []string
	for _, f := range with {
		if !slices.Contains(out, f.id) {
			out = append(out, f.id)
		}
	}
	return out
}

// shown are the facts that a command's output shows: not those that follow from
// the symptom, nor those that only say that a command did not run.
func shown(facts []fact) []fact {
	var out []fact
	for _, f := range facts {
		if f.id != "" && !strings.HasPrefix(f.word, "without-") && !strings.HasPrefix(f.word, "denied-") {
			out = append(out, f)
		}
	}
	return out
}

// why says in words which facts decided.
func (p *place) why(facts []fact) string {
	var out []string
	for _, f := range facts {
		if s, ok := factWords[f.word]; ok && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return "what was seen at " + p.title() + " speaks against it"
	}
	return p.title() + " " + strings.Join(out, ", ")
}

// factWords are facts as parts of a sentence that begins with the place.
var factWords = map[string]string{
	"ok": "answers as it should", "connected": "accepts connections", "open": "accepts connections", "answered": "answers", "refused": "refuses connections",
	"no-listener": "has no listener", "listener": "has a listener", "queue-ok": "has room in its accept queue", "queue-full": "has a full accept queue",
	"silent": "does not answer connection attempts", "unresolved": "has a name that does not resolve", "error": "answers with an error",
	"own": "produces the error itself", "gateway": "passes on a failure from behind it", "reset": "resets connections", "empty": "closes without an answer",
	"no-answer": "accepts and then says nothing", "unreachable": "is unreachable", "ping-ok": "answers ping", "route-local": "is this machine",
	"no-name": "has a name that its DNS server does not know", "server-fails": "has a DNS server that fails", "server-silent": "has a DNS server that does not answer",
	"server-refused": "has no DNS server behind its address", "named-there": "has a name that its DNS server resolves", "named-here": "has a name that resolves here",
	"named-system": "has a name that programs here resolve", "cert-dates-ok": "has a certificate within its validity", "cert-name-ok": "has a certificate for its name",
	"trusted": "has a certificate that is trusted here", "not-tls": "does not speak TLS", "tls-here": "speaks TLS", "untrusted": "shows a certificate that is not accepted",
	"counted": "was watched through the kernel's counters", "no-data": "has a name without an address", "no-name-here": "has a name that DNS does not know",
	"server-unwilling": "has a DNS server that refuses to answer", "behind-failed": "fails because of what is behind it",
}

// runs picks the commands of the turn: a few steps of the first place that has
// any, else one optional step.
func (b *board) runs(hyps []hypothesis, o Options) []agent.RunShell {
	left := min(perTurn, maxCommands-b.commands)
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
func (b *board) inOrder() []*place {
	var out []*place
	var add func(p *place)
	add = func(p *place) {
		if slices.Contains(out, p) || p.aside != "" {
			return
		}
		for _, c := range p.behind {
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
func (b *board) closed(p *place, hyps []hypothesis) bool {
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
func (b *board) run(p *place, pr probe, hyps []hypothesis) agent.RunShell {
	cmd, _ := p.command(pr)
	p.asked[pr.name] = true
	b.count[cmd]++
	id, reason := b.reasoning(p, pr, hyps)
	return agent.RunShell{Command: cmd, Reasoning: reason, Hypothesis: id, Target: p.target(pr), Effect: pr.effect}
}

func (p *place) target(pr probe) string {
	if strings.Contains(pr.args, "{server}") && p.server != nil {
		return p.server.String()
	}
	return p.title()
}

// reasoning is one sentence: what the command shows and which hypotheses it
// tells apart.
func (b *board) reasoning(p *place, pr probe, hyps []hypothesis) (id, text string) {
	var open, all []string
	for _, want := range append(slices.Clone(serves[pr.reader]), "") {
		for _, h := range hyps {
			if h.p != p || want != "" && h.rule.name != want || b.denials(h.id) >= 3 || slices.Contains(all, h.id) {
				continue
			}
			all = append(all, h.id)
			if h.state == agent.Active {
				open = append(open, h.id)
			}
		}
	}
	text = "Shows " + p.text(pr.why)
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

// patience, in seconds, is how long a report waits for an answer about an optional
// command: incident commanders want the cause, not one more proof of it.
const patience = 40

// extra is one RISKY command that would confirm what is known, while people are
// there to answer: after an expiry or without an approver there is no second.
func (b *board) extra(hyps []hypothesis) []agent.RunShell {
	if b.optional > 0 && !b.person {
		return nil
	}
	for _, s := range optional {
		for _, p := range b.inOrder() {
			ok, _ := p.any(s.when)
			pr := probeNamed(s.ask)
			if !ok || p.asked[pr.name] || b.missing[pr.tool] || !b.allowed(p, pr) || b.proposed(pr) {
				continue
			}
			r := b.run(p, pr, hyps)
			r.Patience = patience
			return []agent.RunShell{r}
		}
	}
	return nil
}

// proposed reports whether a RISKY probe was already proposed at any place: one
// of a kind is enough for a case, and after a denial the same at another place
// is an equivalent command.
func (b *board) proposed(pr probe) bool {
	for _, p := range b.places {
		if p.asked[pr.name] {
			return true
		}
	}
	return false
}

func isOptional(cmd string) bool {
	tool, _, _ := strings.Cut(cmd, " ")
	return slices.ContainsFunc(probes, func(pr probe) bool { return pr.risky && pr.tool == tool })
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
		s := p.title()
		if p.server != nil && p.end.IsName() {
			s += " (asking the DNS server " + p.server.String() + ")"
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
