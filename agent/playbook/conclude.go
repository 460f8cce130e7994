package playbook

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ghostbot/agent"
	"ghostbot/agent/playbook/pattern"
	"ghostbot/agent/playbook/phrase"
	"ghostbot/agent/playbook/place"
	"ghostbot/agent/playbook/rules"
)

var (
	portLike    = pattern.New(`(?i)(?:\bport\s+|[\w\])]:)(\d{5,9})\b`)
	noRiskWords = pattern.New(`(?i)\b(no (more )?(risky|captures?|approvals?|commands?)|stop asking|nothing (more|else)|read[- ]only|don'?t (touch|run|capture)|not necessary|unnecessary|no need|enough|not now|not yet|not today|later|no thanks?|no thank you|nicht jetzt|jetzt nicht|pas maintenant|ahora no|no ahora)\b`)
)

// question is what is asked when no text names a target.
const (
	otherQuestion = "Which one is it instead? Please name the host and port or the URL, for example `127.0.0.1:18080` or `https://shop.example.com/cart`."
	question      = "I could not find a host, port or URL in this. Which one should I look at? For example: `127.0.0.1:18080`, `https://shop.example.com/cart`, `[::1]:8080`, or `api.example.com at DNS server 10.0.0.53`."
)

// unnamed is the question for a text without a target. It says why what looks
// like one was not taken.
func (b *board) unnamed() string {
	text := b.view.Case.Symptom
	for _, m := range portLike.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil && n > 65535 {
			return "There is no port " + m[1] + ": ports go from 1 to 65535. Which one should I look at? For example: `127.0.0.1:18080`."
		}
	}
	if b.shortened() {
		return "The text was too long and only its beginning was kept; no host, port or URL stands there. Which one should I look at? For example: `127.0.0.1:18080` or `https://shop.example.com/cart`."
	}
	return question
}

// shortened reports whether the symptom was longer than what is kept.
func (b *board) shortened() bool { return strings.HasSuffix(b.view.Case.Symptom, "… [shortened]") }

// onlyHere is the question for a symptom that names this machine and nothing on
// it; "" when there is more to look at.
func (b *board) onlyHere() string {
	for _, p := range b.roots() {
		if !p.Has("host-only") || !p.Has("loopback") {
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
	case len(found) == 0 && healthy && len(b.before()) > 0:
		c.Verdict, c.Confidence = "unverified", "low"
		c.Summary = b.correctedSummary()
	case len(found) == 0 && healthy:
		c.Verdict, c.Confidence = "no_fault", b.calm()
		c.Summary = b.calmSummary()
		c.Actions = []string{"If it happens again, open a case while it lasts" + b.hint4Next() + "."}
	default:
		c.Verdict, c.Confidence = "unverified", "low"
		c.Summary = b.unverified(c.Causes)
		for _, p := range b.roots() {
			if next := p.Next(); next != "" {
				c.Actions = unique(append(c.Actions, next))
			}
		}
	}
	c.Gaps = b.gaps(c.Verdict)
	m := b.manage(hyps, true)
	b.sort(hyps, &c)
	var moves []agent.Move
	if m != nil {
		moves = append(moves, *m)
	}
	text := strings.Join(append(b.said[:min(len(b.said), 1)], clip(c.Summary, 300)), " ")
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
	server  string // the DNS server that is at fault, with how it fails
	name    string // the name that it was asked for
}

// findings are the root causes, best first: those of the places that people
// named, in their order, each followed to the end of its chain.
func (b *board) findings() (out []finding, sure string) {
	covered := map[*place.Place]bool{}
	for _, p := range b.roots() {
		if !covered[p] {
			out = append(out, b.ends(p, covered)...)
		}
	}
	out = merged(out)
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

// merged makes one finding of those that say the same: two paths of one server
// that is down are one fault, and so are two names at a DNS server that fails.
func merged(list []finding) []finding {
	var out []finding
	for _, f := range list {
		i := slices.IndexFunc(out, func(have finding) bool {
			return have.cause.Statement == f.cause.Statement || f.server != "" && have.server == f.server
		})
		if i < 0 {
			out = append(out, f)
			continue
		}
		if out[i].cause.Statement != f.cause.Statement {
			out[i].cause.Statement = strings.TrimSuffix(out[i].cause.Statement, ".") + "; likewise for " + f.name + "."
		}
		out[i].cause.Evidence = unique(append(slices.Clone(out[i].cause.Evidence), f.cause.Evidence...))
	}
	return out
}

// ends follows the causes of a place to the places behind it: one finding for
// each end of the chain, which says what it means for the place.
func (b *board) ends(p *place.Place, covered map[*place.Place]bool) []finding {
	covered[p] = true
	var out []finding
	for _, c := range b.byInterest(p) {
		if !strings.Contains(c.Reading.When, "behind-failed") {
			f := finding{agent.Cause{Statement: p.Text(c.Reading.Cause) + ".", Evidence: p.IDs(c.Facts)}, nil, c.Reading.Sure, "", ""}
			if c.Rule.Name == "dns-server" && p.Server != nil && p.Parent == nil {
				f.server, f.name = p.Server.String()+" "+c.Reading.When, p.End.Host
			}
			for _, a := range c.Reading.Do {
				f.actions = append(f.actions, p.Text(a))
			}
			out = append(out, f)
			continue
		}
		own := p.IDs(slices.Concat(p.Facts("error"), p.Facts("redirect")))
		for _, child := range p.Behind {
			for _, f := range b.ends(child, covered) {
				f.cause.Statement = strings.TrimSuffix(f.cause.Statement, ".") + p.Text(", so {t} "+p.Effect()) + "."
				if c.Reading.Sure == "medium" && f.sure == "high" {
					f.sure = "medium"
				}
				f.cause.Evidence = unique(append(f.cause.Evidence, own...))
				out = append(out, f)
			}
		}
	}
	return out
}

// byInterest orders the causes of a place: what the symptom speaks of first.
func (b *board) byInterest(p *place.Place) []place.Cause {
	out := p.Causes()
	slices.SortStableFunc(out, func(x, y place.Cause) int {
		return interest(p, x) - interest(p, y)
	})
	return out
}

func interest(p *place.Place, c place.Cause) int {
	if slices.Contains(p.Opening(), c.Rule) {
		return 0
	}
	return 1
}

// healthy reports whether every place that people named works.
func (b *board) healthy() bool {
	for _, p := range b.roots() {
		if !p.Works() || p.Lucky() {
			return false
		}
	}
	return true
}

// calm is the confidence of "no fault found": a fault that comes and goes, or
// one without a description, may be away just now.
func (b *board) calm() string {
	for _, p := range b.roots() {
		if p.About.Intermittent || p.About.Idle || p.End.Left != "" || p.Good() < 3 && !p.Has("bare") {
			return "medium"
		}
	}
	return "high"
}

func (b *board) calmSummary() string {
	out := []string{"No fault found."}
	for _, p := range b.roots() {
		out = append(out, p.Checked())
	}
	return strings.Join(out, " ")
}

// before are the places at which a fault was shown before they were set aside.
func (b *board) before() []*place.Place {
	var out []*place.Place
	for _, p := range b.places {
		if p.Aside != "" && p.Shown() != "" {
			out = append(out, p)
		}
	}
	return out
}

// correctedSummary says that what people named last works, and what was seen of
// what they had named before: a fault that was shown does not go away because
// nobody asks for it any more.
func (b *board) correctedSummary() string {
	out := []string{"No fault was seen at what was named last."}
	for _, p := range b.roots() {
		out = append(out, p.Checked())
	}
	covered := map[*place.Place]bool{}
	for _, p := range b.before() {
		if covered[p] {
			continue
		}
		for _, f := range b.ends(p, covered) {
			out = append(out, "Shown before ("+p.Title()+" was "+p.Aside+"): "+f.cause.Statement)
		}
	}
	return strings.Join(out, " ")
}

// hint4Next says what would help a later case.
func (b *board) hint4Next() string {
	for _, p := range b.roots() {
		if p.Has("client-error") || p.End.HTTP() && p.End.Path == "" {
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
		if len(causes) == 0 && p.Works() {
			out = append(out, p.Checked())
		} else if len(causes) == 0 {
			out = append(out, p.Undecided())
		}
	}
	return strings.Join(out, " ")
}

// gaps are what was wanted and not seen.
func (b *board) gaps(verdict string) []string {
	var out []string
	for _, r := range b.refused {
		reason := phrase.Plain(r.reason, 120)
		if reason == "" || reason == "denied" { // the gate's word for none
			reason = "no reason given"
		}
		out = append(out, "`"+r.command+"` was denied ("+reason+", "+r.id+"), so what it would show is not known.")
	}
	for _, f := range b.failed {
		out = append(out, f+".")
	}
	if b.shortened() {
		out = append(out, "The symptom was too long: its end was not kept, and what it names was not looked at.")
	}
	for _, p := range b.roots() {
		out = append(out, p.Unseen(verdict)...)
	}
	for _, p := range b.places {
		if p.Aside != "" && p.Parent == nil {
			out = append(out, p.Title()+p.End.Path+": "+p.Aside+".")
		}
	}
	for _, x := range b.spared {
		if !slices.ContainsFunc(b.places, func(p *place.Place) bool { return p.End.Same(x.end) && p.End.Path == x.end.Path }) {
			out = append(out, x.end.String()+x.end.Path+": "+x.why+".")
		}
	}
	if len(b.beyond) > 0 {
		out = append(out, "Named too, and not looked at, because one case looks at a few places only: "+strings.Join(unique(b.beyond), ", ")+". Open a case for them.")
	}
	if b.commands >= rules.MaxCommands {
		out = append(out, fmt.Sprintf("The limit of %d commands was reached.", rules.MaxCommands))
	}
	if verdict != "root_cause" {
		out = append(out, "Everything was seen from this machine only; clients elsewhere may see something else.")
	}
	return unique(out)
}

// clip cuts a text between two words.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if i := strings.LastIndexByte(s[:n], ' '); i > 0 {
		n = i
	}
	return s[:n] + "..."
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
