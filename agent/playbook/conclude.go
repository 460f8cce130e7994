package playbook

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ghostbot/agent"
)

var (
	noRiskWords = regexp.MustCompile(`(?i)\b(no (more )?(risky|captures?|approvals?|commands?)|stop asking|nothing (more|else)|read[- ]only|don'?t (touch|run|capture)|not necessary|unnecessary|no need|enough)\b`)
	notThis     = regexp.MustCompile(`(?i)(?:\bnot|\binstead of|\brather than|n't)\s+(\S+)`)
)

// question is what is asked when no text names a target.
const question = "I could not find a host, port or URL in this. Which one should I look at? For example: `127.0.0.1:18080`, `https://shop.example.com/cart`, `[::1]:8080`, or `api.example.com at DNS server 10.0.0.53`."

// onlyHere is the question for a symptom that names this machine and nothing on
// it; "" when there is more to look at.
func (b *board) onlyHere() string {
	for _, p := range b.roots() {
		if !p.has("host-only") || !p.has("loopback") {
			return ""
		}
	}
	return "That is this machine itself. Which port or service on it should I look at? For example: `127.0.0.1:18080`."
}

// noTarget asks for a target, and gives up after three times: each answer costs
// people a look at the thread.
func (b *board) noTarget(question string) agent.Turn {
	if len(b.view.Words) < 3 && b.asked < 3 && !b.finish && (b.view.TurnsLeft == 0 || b.view.TurnsLeft > 1) {
		return agent.Turn{Text: question}
	}
	c := agent.Complete{
		Confidence: "low", Verdict: "unverified",
		Summary: "Nothing was investigated: no text named a host, a port or a URL.",
		Gaps:    []string{"No target was named, so no command was run."},
	}
	var moves []agent.Move
	if m := b.manage(b.hypotheses(), true); m != nil {
		moves = append(moves, *m)
	}
	return agent.Turn{Text: "Closing: no target was named.", Moves: append(moves, c)}
}

// conclude closes every hypothesis and the case.
func (b *board) conclude(hyps []hypothesis) agent.Turn {
	c := agent.Complete{}
	found, sure := b.findings()
	for _, f := range found {
		c.Causes = append(c.Causes, f.cause)
		c.Actions = append(c.Actions, f.actions...)
	}
	c.Actions = unique(c.Actions)
	healthy := b.healthy()
	switch {
	case len(found) > 0 && sure != "low":
		c.Verdict, c.Confidence = "root_cause", sure
		c.Summary = b.summary(c.Causes)
	case len(found) == 0 && healthy:
		c.Verdict, c.Confidence = "no_fault", b.calm()
		c.Summary = b.calmSummary()
		c.Actions = []string{"If it happens again, open a case while it lasts" + b.hint4Next() + "."}
	default:
		c.Verdict, c.Confidence = "unverified", "low"
		c.Summary = b.unverified(c.Causes)
	}
	c.Gaps = b.gaps(c.Verdict)
	m := b.manage(hyps, true)
	b.sort(hyps, &c)
	var moves []agent.Move
	if m != nil {
		moves = append(moves, *m)
	}
	text := strings.Join(append(b.said[:min(len(b.said), 1)], head(c.Summary, 300)), " ")
	return agent.Turn{Text: text, Moves: append(moves, c)}
}

// sort lists the hypotheses by how they ended.
func (b *board) sort(hyps []hypothesis, c *agent.Complete) {
	for _, h := range hyps {
		switch b.update(h, true).State {
		case agent.Confirmed:
			c.Confirmed = append(c.Confirmed, h.id)
		case agent.Refuted:
			c.Refuted = append(c.Refuted, h.id)
		default:
			c.Unverifiable = append(c.Unverifiable, h.id)
		}
	}
}

// finding is one root cause with what to do.
type finding struct {
	cause   agent.Cause
	actions []string
	sure    string
}

// findings are the root causes, best first: those of the places that people
// named, in their order, each followed to the end of its chain.
func (b *board) findings() (out []finding, sure string) {
	covered := map[*place]bool{}
	for _, p := range b.roots() {
		if !covered[p] {
			out = append(out, b.ends(p, covered)...)
		}
	}
	order := map[string]int{"high": 0, "medium": 1, "low": 2}
	if slices.ContainsFunc(out, func(f finding) bool { return f.sure != "low" }) {
		out = slices.DeleteFunc(out, func(f finding) bool { return f.sure == "low" })
	}
	for _, f := range out {
		if sure == "" || order[f.sure] > order[sure] {
			sure = f.sure
		}
	}
	return out, sure
}

// ends follows the causes of a place to the places behind it: one finding for
// each end of the chain, which says what it means for the place.
func (b *board) ends(p *place, covered map[*place]bool) []finding {
	covered[p] = true
	var out []finding
	for _, c := range b.byInterest(p) {
		if !strings.Contains(c.read.when, "behind-failed") {
			f := finding{agent.Cause{Statement: p.text(c.read.cause) + ".", Evidence: p.ids(c.facts)}, nil, c.read.sure}
			for _, a := range c.read.do {
				f.actions = append(f.actions, p.text(a))
			}
			out = append(out, f)
			continue
		}
		own := p.ids(slices.Concat(p.facts["error"], p.facts["redirect"]))
		for _, child := range p.behind {
			for _, f := range b.ends(child, covered) {
				f.cause.Statement = strings.TrimSuffix(f.cause.Statement, ".") + p.text(", so {t} "+p.effect()) + "."
				if c.read.sure == "medium" && f.sure == "high" {
					f.sure = "medium"
				}
				f.cause.Evidence = unique(append(f.cause.Evidence, own...))
				out = append(out, f)
			}
		}
	}
	return out
}

func (p *place) effect() string {
	if p.web.Code < 400 {
		return "({code}) sends its clients to a place that does not work"
	}
	return "answers {code}"
}

// byInterest orders the causes of a place: what the symptom speaks of first.
func (b *board) byInterest(p *place) []cause {
	out := p.causes()
	slices.SortStableFunc(out, func(x, y cause) int {
		return interest(p, x) - interest(p, y)
	})
	return out
}

func interest(p *place, c cause) int {
	if slices.Contains(p.opening(), c.rule) {
		return 0
	}
	return 1
}

// healthy reports whether every place that people named works.
func (b *board) healthy() bool {
	for _, p := range b.roots() {
		if !p.works() {
			return false
		}
	}
	return true
}

// works reports whether a place did what it is for, every time it was asked.
func (p *place) works() bool {
	if p.failures > 0 {
		return false
	}
	switch {
	case p.end.Port != 0:
		return len(p.goodIDs) > 0
	case p.has("bare"):
		return p.has("named-there") || p.has("named-here") || p.has("named-system")
	}
	return p.has("ping-ok") && !p.has("ping-loss")
}

// calm is the confidence of "no fault found": a fault that comes and goes, or
// one without a description, may be away just now.
func (b *board) calm() string {
	for _, p := range b.roots() {
		if p.about.Intermittent || len(p.goodIDs) < 3 && !p.has("bare") {
			return "medium"
		}
	}
	return "high"
}

func (b *board) calmSummary() string {
	out := []string{"No fault found."}
	for _, p := range b.roots() {
		out = append(out, p.checked())
	}
	return strings.Join(out, " ")
}

// checked says what was seen to be in order at a place.
func (p *place) checked() string {
	var out []string
	switch {
	case p.end.HTTP() && p.web.Answered():
		out = append(out, fmt.Sprintf("answered %d of %d requests (the last with %d in %s)", len(p.goodIDs), p.fetches, p.web.Code, seconds(p.web.Total)))
	case p.has("open"):
		out = append(out, "accepted every connection")
	}
	for _, w := range []struct{ word, says string }{
		{"queue-ok", "its accept queue is empty"}, {"trusted", "its certificate is valid and trusted"}, {"named-there", "the DNS server resolves it"},
		{"named-here", "it resolves"}, {"named-system", "programs here resolve it"}, {"ping-ok", "it answers ping"}, {"path-ends", "the path is open"},
	} {
		if p.has(w.word) && !(w.word == "ping-ok" && p.has("ping-loss")) {
			out = append(out, w.says)
		}
	}
	return p.title() + ": " + strings.Join(out, ", ") + "."
}

// hint4Next says what would help a later case.
func (b *board) hint4Next() string {
	for _, p := range b.roots() {
		if p.has("client-error") || p.end.HTTP() && p.end.Path == "" {
			return ", with the full address that fails"
		}
	}
	return ""
}

// summary is the root cause in a few sentences.
func (b *board) summary(causes []agent.Cause) string {
	var out []string
	if len(causes) > 1 {
		out = append(out, fmt.Sprintf("%d independent faults.", len(causes)))
	}
	for _, c := range causes {
		out = append(out, c.Statement)
	}
	return strings.Join(out, " ")
}

func (b *board) unverified(causes []agent.Cause) string {
	out := []string{"The cause could not be verified from here."}
	for _, c := range causes {
		out = append(out, c.Statement)
	}
	for _, p := range b.roots() {
		if len(causes) == 0 && p.works() {
			out = append(out, p.checked())
		} else if len(causes) == 0 {
			out = append(out, p.title()+" was not decided.")
		}
	}
	return strings.Join(out, " ")
}

// gaps are what was wanted and not seen.
func (b *board) gaps(verdict string) []string {
	var out []string
	for _, r := range b.refused {
		reason := plainText(r.reason, 120)
		if reason == "" {
			reason = "no reason given"
		}
		out = append(out, "`"+r.command+"` was denied ("+reason+", "+r.id+"), so what it would show is not known.")
	}
	for _, f := range b.failed {
		out = append(out, f+".")
	}
	for _, p := range b.roots() {
		out = append(out, p.unseen(verdict)...)
	}
	if b.commands >= maxCommands {
		out = append(out, fmt.Sprintf("The limit of %d commands was reached.", maxCommands))
	}
	if verdict != "root_cause" {
		out = append(out, "Everything was seen from this machine only; clients elsewhere may see something else.")
	}
	return unique(out)
}

// unseen are the gaps of one place.
func (p *place) unseen(verdict string) []string {
	var out []string
	if verdict == "no_fault" && p.about.Since != "" {
		out = append(out, "What happened at "+p.about.Since+" cannot be seen now; only the present was checked.")
	}
	if p.end.HTTP() && p.end.Path == "" && verdict == "no_fault" {
		out = append(out, "Only the root path of "+p.title()+" was requested; no other path was named.")
	}
	if !p.end.HTTP() && p.end.Port != 0 && p.has("open") {
		out = append(out, "Whether "+p.title()+" speaks its own protocol correctly was not tested, only that it accepts connections.")
	}
	if p.has("host-only") {
		out = append(out, "No port of "+p.title()+" was named, so no service on it was tested.")
	}
	if p.has("remote") && !p.has("local") && p.has("port") {
		out = append(out, "Listeners and queues on "+p.end.Host+" cannot be seen from this machine.")
	}
	return out
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
