package place

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ghostbot/agent/playbook/phrase"
	"ghostbot/agent/playbook/rules"
)

// Verdict is what the facts of a place make of a rule. The zero value decides
// nothing.
type Verdict uint8

// The verdicts.
const (
	Open Verdict = iota
	Confirmed
	Refuted
)

// Cause is a confirmed reading of a rule at a place.
type Cause struct {
	Place   *Place
	Rule    *rules.Rule
	Reading *rules.Reading
	Facts   []Fact
}

// Judge decides one rule at a place, and says which facts decided.
func (p *Place) Judge(r *rules.Rule) (Verdict, *rules.Reading, []Fact) {
	for i := range r.Confirm {
		if ok, used := p.Holds(r.Confirm[i].When); ok {
			return Confirmed, &r.Confirm[i], used
		}
	}
	if ok, used := p.Any(r.Refute); ok {
		return Refuted, nil, used
	}
	return Open, nil, nil
}

// Causes are the confirmed rules of a place that explain its trouble: one of
// each family, and none that only repeats what another one says.
func (p *Place) Causes() []Cause {
	var all, out []Cause
	families := map[string]bool{}
	for i := range rules.All {
		r := &rules.All[i]
		v, rd, used := p.Judge(r)
		if v != Confirmed || r.Family != "" && families[r.Family] {
			continue
		}
		families[r.Family] = r.Family != ""
		all = append(all, Cause{p, r, rd, used})
	}
	for _, c := range all {
		if !minor(c, all) {
			out = append(out, c)
		}
	}
	return out
}

// Shown says which faults were shown at the place, "" for none.
func (p *Place) Shown() string {
	var out []string
	for _, c := range p.Causes() {
		if c.Reading.Sure != "low" {
			out = append(out, p.Text(c.Reading.Cause)+".")
		}
	}
	return strings.Join(out, " ")
}

// minor reports whether another cause at the same place makes c a remark: an
// unknown authority when the service behind it fails anyway, slowness or
// unsteadiness when something is broken outright, a weaker reading of the path.
func minor(c Cause, all []Cause) bool {
	for _, o := range all {
		switch {
		case o.Rule == c.Rule:
		case c.Rule.Name == "untrusted" && !c.Place.Has("about-certificate"),
			strings.HasPrefix(c.Reading.When, "cert-issuer") && o.Rule.Name == "protocol", // who trusts the authority fails all the same
			c.Rule.Name == "unstable",
			c.Rule.Name == "slow" && o.Rule.Name != "untrusted",
			c.Reading.Sure == "low",
			c.Rule.Name == "reset" && o.Rule.Name == "protocol",
			strings.Contains(o.Reading.When, "hosts-differ") && c.Rule.Name != "resolver":
			return true
		}
	}
	return false
}

// ID names a rule at a place in the case's hypotheses. It depends on nothing
// but the two, so that a view that grows never renames one.
func (p *Place) ID(r *rules.Rule) string { return "H" + strconv.Itoa(p.N) + "-" + r.Name }

// Opening returns the hypotheses that a place starts with.
func (p *Place) Opening() []*rules.Rule {
	for _, o := range rules.Openings {
		if o.Kind != "" && !p.Has("about-"+string(o.Kind)) {
			continue
		}
		var out []*rules.Rule
		for _, x := range o.Rules {
			if ok, _ := p.Holds(x.Needs); ok && len(out) < p.openingSize() {
				out = append(out, rules.Named(x.Rule))
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
func (p *Place) openingSize() int {
	if p.Parent != nil {
		return 3
	}
	return rules.MaxOpenings
}

// IDs are the audit ids of facts, each once, in order of observation. Facts
// that follow from the symptom alone have none; then everything that was seen
// at the place stands for them.
func (p *Place) IDs(facts []Fact) []string {
	with := shown(facts)
	if len(with) == 0 {
		for _, fs := range p.facts {
			with = append(with, shown(fs)...)
		}
	}
	slices.SortStableFunc(with, func(x, y Fact) int {
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
func shown(facts []Fact) []Fact {
	var out []Fact
	for _, f := range facts {
		if f.id != "" && !strings.HasPrefix(f.word, "without-") && !strings.HasPrefix(f.word, "denied-") {
			out = append(out, f)
		}
	}
	return out
}

// Why says in words which facts decided.
func (p *Place) Why(facts []Fact) string {
	var out []string
	for _, f := range facts {
		if s, ok := phrase.Facts[f.word]; ok && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return "what was seen at " + p.Title() + " speaks against it"
	}
	return p.Title() + " " + strings.Join(out, ", ")
}

// Target is what a probe at this place touches.
func (p *Place) Target(pr rules.Probe) string {
	if strings.Contains(pr.Args, "{server}") && p.Server != nil {
		return p.Server.String()
	}
	return p.Title()
}

// Effect is what the failure of the places behind it does to this place, as the
// end of a sentence with {parts}.
func (p *Place) Effect() string {
	switch code := p.telling().Code; {
	case p.Has("unwell"):
		return "calls itself unhealthy ({code})"
	case code < 400:
		return "({code}) sends its clients to a place that does not work"
	}
	return "answers {code}{onpath}"
}

// Works reports whether a place did what it is for, every time it was asked.
func (p *Place) Works() bool {
	if p.failures > 0 || p.Has("redirect") && p.Has("behind-unclear") {
		return false
	}
	switch {
	case p.Has("udp"):
		return p.Has("udp-idle")
	case p.End.Port != 0:
		return len(p.goodIDs) > 0
	case p.dnsOnly():
		return p.Has("server-alive")
	case p.Has("bare"):
		return len(p.Causes()) == 0 && (p.Has("named-there") || p.Has("named-here") || p.Has("named-system"))
	}
	return p.Has("ping-ok") && !p.Has("ping-loss")
}

// Checked says what was seen to be in order at a place.
func (p *Place) Checked() string {
	var out []string
	switch {
	case p.End.HTTP() && p.web.Answered():
		out = append(out, fmt.Sprintf("answered %d of %d requests (the last with %d, the slowest in %s)", len(p.goodIDs), p.fetches, p.web.Code, phrase.Seconds(p.slowest)))
	case p.Has("udp-idle"):
		out = append(out, "a program is bound to the UDP port and nothing waits in its socket")
	case p.Has("open"):
		out = append(out, "accepted every connection")
	}
	for _, w := range []struct{ word, says string }{
		{"queue-ok", "its accept queue is empty"}, {"trusted", "its certificate is valid and trusted"}, {"named-there", "the DNS server resolves it"}, {"server-alive", "it answers DNS queries"},
		{"named-here", "it resolves"}, {"named-system", "programs here resolve it"}, {"ping-ok", "it answers ping"}, {"path-ends", "the path is open"},
	} {
		switch {
		case !p.Has(w.word) || w.word == "ping-ok" && p.Has("ping-loss"):
		case w.word == "ping-ok" && p.rtt() != "":
			out = append(out, w.says+" in "+p.rtt())
		default:
			out = append(out, w.says)
		}
	}
	return p.Title() + p.End.Path + ": " + strings.Join(out, ", ") + "."
}

// Undecided says what was seen of a place at which nothing was decided.
func (p *Place) Undecided() string {
	var out []string
	if p.Has("redirect") && p.Has("behind-unclear") {
		out = append(out, p.Text("it answers {code} and sends its clients to {child}, which could not be judged from here"))
	}
	if p.Has("udp-unanswered") {
		out = append(out, "a datagram to UDP port "+p.portText()+" brought neither an answer nor an ICMP message within 2 s, so something takes it, or it is dropped on the way: UDP does not tell the two apart")
	}
	if p.Has("ping-ok") && p.rtt() != "" {
		out = append(out, p.End.Host+" answers ping in "+p.rtt())
	} else if p.Has("ping-lost") {
		out = append(out, p.End.Host+" does not answer ping")
	}
	if len(out) == 0 {
		return p.Title() + " was not decided."
	}
	return p.Title() + " was not decided: " + strings.Join(out, "; ") + "."
}

// Next is what people can do about a place at which nothing was decided, "" where the
// gaps say it.
func (p *Place) Next() string {
	if !p.Has("udp-unanswered") {
		return ""
	}
	return p.Text("Look on {host}: `ss -lunm sport = :{port}` shows whether a program is bound to the port, whether what arrives waits unread (Recv-Q), and how much was dropped (after d in skmem); a capture there, `tcpdump -ni any udp port {port}`, whether the datagrams of a client arrive at all.")
}

// Unseen are the gaps of one place.
func (p *Place) Unseen(verdict string) []string {
	var out []string
	if verdict == "no_fault" && p.About.Since != "" {
		out = append(out, "What happened at "+p.About.Since+" cannot be seen now; only the present was checked.")
	}
	if p.End.HTTP() && p.End.Left != "" {
		asked := "its root"
		if p.End.Path != "" {
			asked = p.End.Path
		}
		out = append(out, "The path of "+p.Title()+" that was named was left out in part or whole, because "+p.End.Left+"; only "+asked+" was requested.")
	} else if p.End.HTTP() && p.End.Path == "" && verdict == "no_fault" {
		out = append(out, "Only the root path of "+p.Title()+" was requested; no other path was named.")
	}
	if p.Has("says-auth") {
		out = append(out, p.Title()+p.Text(" answers what is asked without signing in{banner}; nobody signed in from here, so nothing behind that was tested."))
	} else if !p.End.HTTP() && p.End.Port != 0 && p.Has("open") && !p.Has("says-no") {
		out = append(out, "Whether "+p.Title()+" speaks its own protocol correctly was not tested, only that it accepts connections.")
	}
	if c := p.web.Code; c == 401 || c == 403 {
		out = append(out, fmt.Sprintf("%s was asked without credentials and answered %d; what a signed-in user sees was not tested.", p.Title(), c))
	}
	if c := p.web.Code; verdict == "no_fault" && c >= 400 && c < 500 && c != 401 && c != 403 && c != 404 {
		out = append(out, fmt.Sprintf("%s turns a plain GET request away with %d; requests of other kinds were not made.", p.Title(), c))
	}
	if p.End.HTTP() && p.web.Code == 404 && verdict == "no_fault" {
		out = append(out, "The root path of "+p.Title()+" answers 404, which is usual for an interface without a start page.")
	}
	if p.End.Usual != "" {
		out = append(out, "No port of "+p.End.Host+" was named; "+p.portText()+" is the usual one of "+p.End.Usual+".")
	}
	if p.Has("udp") {
		out = append(out, "Whether UDP "+p.Title()+" processes what it receives was not tested.")
	}
	if p.dnsOnly() && p.Has("server-alive") {
		out = append(out, "No name was given, so only whether "+p.Title()+" answers at all was tested. Name one in the thread or in a new case.")
	}
	if p.Has("slow-at-times") && verdict == "no_fault" {
		out = append(out, p.Text("Nobody spoke of slowness, but {slowly} requests to {t} took long (the slowest {slowest}), the others did not."))
	}
	if d := p.About.Delay; d > 0 && verdict == "no_fault" && p.Parent == nil && p.rtt() != "" {
		out = append(out, "The "+phrase.Seconds(d)+" that were named were not seen: "+p.End.Host+" answered ping from here in "+p.rtt()+".")
	}
	if left, soon := p.expiresSoon(); soon {
		out = append(out, "Not a fault yet: the certificate of "+p.Title()+" is valid until "+phrase.Day(p.hand.NotAfter)+", "+left+" from now. Renew it before.")
	}
	if p.luck() > 0 && verdict != "root_cause" {
		out = append(out, p.chance())
	}
	if p.otherAddress() {
		out = append(out, p.End.Host+" has more than one address: "+p.echo.To+" did not answer ping, the requests went to "+p.ip+". Clients that prefer the first may wait or fail.")
	}
	if p.About.Idle && verdict == "no_fault" && p.Parent == nil && p.Has("port") {
		out = append(out, "What becomes of a connection to "+p.Title()+" on which nothing happens for a while was not tested: those from here ended at once. A limit for idle connections, of the program or of what passes them on, would not have shown.")
	}
	if p.Has("host-only") {
		out = append(out, "No port of "+p.Title()+" was named, so no service on it was tested.")
	}
	if p.Has("remote") && !p.Has("local") && p.Has("port") {
		out = append(out, "Listeners and queues on "+p.End.Host+" cannot be seen from this machine.")
	}
	return out
}

// otherAddress reports whether a ping was lost at another address of the name
// than the one that requests reach.
func (p *Place) otherAddress() bool {
	to, err := netip.ParseAddr(p.echo.To)
	ip, err2 := netip.ParseAddr(p.ip)
	return err == nil && err2 == nil && to != ip && p.Has("connected") && p.Has("ping-lost")
}

// Leads reports whether q is behind p, so that a circle is not followed.
func (p *Place) Leads(q *Place) bool {
	for _, c := range p.Behind {
		if c == q || c.Leads(q) {
			return true
		}
	}
	return false
}
