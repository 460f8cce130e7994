package place

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ghostbot/agent/playbook/behind"
	"ghostbot/agent/playbook/hear"
	"ghostbot/agent/playbook/phrase"
	"ghostbot/agent/playbook/read"
)

// Text fills the {parts} of a sentence of the tables. What comes from outputs
// passes Plain first.
func (p *Place) Text(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		if name == "besides" {
			b.WriteString(p.besides(b.String()))
		} else if say, ok := words[name]; ok {
			b.WriteString(say(p))
		} else if v, ok := p.part(name); ok {
			b.WriteString(v)
		}
		s = after
	}
}

// words are the {parts} of sentences that are not parts of commands as well.
var words = map[string]func(p *Place) string{
	"t":         (*Place).Title,
	"host":      func(p *Place) string { return p.End.Host },
	"code":      (*Place).code,
	"by":        (*Place).by,
	"body":      (*Place).excerpt,
	"child":     (*Place).children,
	"named":     (*Place).blamed,
	"behind":    func(p *Place) string { return strings.Join(p.blame, "; ") },
	"check":     (*Place).check,
	"since":     (*Place).sinceWords,
	"onpath":    func(p *Place) string { return phrase.Around(" to ", p.End.Path, "") },
	"atpath":    func(p *Place) string { return phrase.Around(" (", p.End.Path, ")") },
	"alias":     func(p *Place) string { return phrase.Plain(p.answer.Alias, 80) },
	"queue":     (*Place).queue,
	"elsewhere": (*Place).elsewhere,
	"limit":     (*Place).limit,
	"off":       func(p *Place) string { return p.off },
	"kind":      func(p *Place) string { return p.kind },
	"fileip":    func(p *Place) string { return strings.Join(p.files[:min(len(p.files), 2)], " and ") },
	"dnsip":     func(p *Place) string { return strings.Join(p.dns[:min(len(p.dns), 2)], " and ") },
	"rate":      func(p *Place) string { return fmt.Sprintf("%.0f kB/s", max(1, p.rate/1000)) },
	"overtcp":   (*Place).overTCP,
	"detail":    func(p *Place) string { return phrase.Plain(p.detail, 80) },
	"dns":       func(p *Place) string { return phrase.Seconds(p.late.DNS) },
	"connect":   func(p *Place) string { return phrase.Seconds(p.late.Connect - p.late.DNS) },
	"tls":       func(p *Place) string { return phrase.Seconds(p.late.TLS - p.late.Connect) },
	"first":     func(p *Place) string { return phrase.Seconds(p.late.First - max(p.late.Connect, p.late.TLS)) },
	"rest":      func(p *Place) string { return phrase.Seconds(p.late.Total - p.late.First) },
	"waits":     func(p *Place) string { return strings.Join(p.waits, " and ") },
	"loop":      func(p *Place) string { return hear.Loop(p.trace, p.echo) },
	"told":      func(p *Place) string { return hear.Told(p.trace, p.echo) },
	"loss":      func(p *Place) string { return phrase.Percent(p.echo.Loss) + " of pings" },
	"last":      func(p *Place) string { return hear.LastHop(p.trace) },
	"zone":      (*Place).zoneWords,
	"for": func(p *Place) string {
		if p.dnsOnly() {
			return ""
		}
		return " for " + p.End.Host
	},
	"lookup":    func(p *Place) string { return phrase.Seconds(p.lookup) },
	"srv":       (*Place).serverTitle,
	"status":    func(p *Place) string { return phrase.Plain(p.answer.Status, 12) },
	"notafter":  func(p *Place) string { return phrase.Day(p.hand.NotAfter) },
	"notbefore": func(p *Place) string { return phrase.Day(p.hand.NotBefore) },
	"names":     (*Place).certNames,
	"slowly":    func(p *Place) string { return fmt.Sprintf("%d of %d", len(p.facts["slow-at-times"]), p.fetches) },
	"slowest":   func(p *Place) string { return phrase.Seconds(p.slowest) },
	"banner": func(p *Place) string {
		return phrase.Around(`: "`, p.banner, `"`)
	},
	"otherwise": func(p *Place) string {
		if len(p.facts["cert-name"]) > 0 {
			return " with a certificate for " + p.certNames()
		}
		return " with " + strconv.Itoa(p.telling().Code)
	},
	"weak":     (*Place).weakness,
	"version":  func(p *Place) string { return p.hand.Old },
	"open":     func(p *Place) string { return p.atWhich("at-open") },
	"refusing": func(p *Place) string { return p.atWhich("at-refused") },
	"mute":     func(p *Place) string { return p.atWhich("at-silent") },
	"breaking": func(p *Place) string { return p.atWhich("at-broken") },
	"erring":   func(p *Place) string { return p.atWhich("at-error") },
	"several":  func(p *Place) string { return strconv.Itoa(len(p.at)) },
	"bad":      (*Place).atBad,
	"retry": func(p *Place) string {
		return phrase.Around(", and asks to come back later (Retry-After: ", p.telling().Header["retry-after"], ")")
	},
	"ede": func(p *Place) string {
		if p.answer.EDE == "" {
			return ""
		}
		return ", and gives as its reason " + phrase.Plain(p.answer.EDE, 70)
	},
	"howfailed": func(p *Place) string { return phrase.Codes(p.codes) },
	"drops": func(p *Place) string {
		if len(p.sockets) == 0 {
			return "0"
		}
		return strconv.Itoa(p.sockets[0].Drops)
	},
	"asked":   func(p *Place) string { return phrase.Plain(strings.Join(p.answer.Asked, " and "), 100) },
	"askedin": func(p *Place) string { return phrase.Around(" (", strings.Join(p.answer.Asked, " and "), ")") },
	"rtt":     (*Place).rtt,
	"where":   (*Place).where,
	"ratio": func(p *Place) string {
		return fmt.Sprintf("%d of %d", p.failures, max(p.fetches, p.failures+len(p.goodIDs)))
	},
}

// Title is how sentences call the place.
func (p *Place) Title() string {
	switch {
	case p.dnsOnly():
		return p.Server.String()
	case p.End.Port == 0:
		return p.End.Host
	}
	return p.End.String()
}

func (p *Place) portText() string { return strconv.Itoa(p.End.Port) }

// limit is how long a request waited before it gave up.
func (p *Place) limit() string {
	if w := p.web; w.Late && w.Total >= 1 {
		return fmt.Sprintf("%.0f s", w.Total)
	}
	return "10 s"
}

// overTCP says how a DNS server fails that was asked over TCP.
func (p *Place) overTCP() string {
	if p.answer.Fail == read.Refused {
		return "refuses connections"
	}
	return "does not answer"
}

// code is the status that the place answers, with how often when not always.
func (p *Place) code() string {
	s := strconv.Itoa(p.telling().Code)
	if p.Has("flapping") {
		s += fmt.Sprintf(" to %d of %d requests", p.failures, p.fetches)
	}
	return s
}

func (p *Place) by() string {
	if s := phrase.Plain(p.telling().Header["server"], 30); s != "" {
		return ", served by " + s
	}
	return ""
}

// excerpt quotes the start of an answer's text.
func (p *Place) excerpt() string {
	s := phrase.Plain(behind.Words(p.telling()), 80)
	if s == "" {
		return ""
	}
	return `: "` + s + `"`
}

func (p *Place) children() string {
	var out []string
	for _, c := range p.Behind {
		out = append(out, c.Title())
	}
	return strings.Join(out, " and ")
}

// blamed are the endpoints that answers named, whether they were looked at or not.
func (p *Place) blamed() string {
	var out []string
	for _, e := range p.named {
		if s := e.String(); !slices.Contains(out, s) && len(out) < 3 {
			out = append(out, s)
		}
	}
	return strings.Join(out, " and ")
}

// check is the command that shows that the place works again.
func (p *Place) check() string {
	switch {
	case p.Has("udp"):
		return "`ss -lun sport = :" + p.portText() + "`"
	case p.End.HTTP():
		return "`curl -sS -i " + phrase.Quote(p.End.URL()) + "`"
	case p.End.Port != 0:
		return "`nc -z -v " + p.End.Host + " " + p.portText() + "`"
	case p.dnsOnly():
		return "`dig -p " + strconv.Itoa(p.Server.Port) + " @" + p.Server.Host + " . SOA`"
	case p.End.IsName():
		return "`dig " + p.End.Host + "`"
	}
	return "`ping -c 4 " + p.End.Host + "`"
}

func (p *Place) sinceWords() string {
	switch {
	case p.About.Since != "":
		return " around " + p.About.Since
	case p.About.Deploy:
		return " with the last change"
	}
	return ""
}

// queue says how full the accept queue of the place's listener is.
func (p *Place) queue() string {
	if len(p.sockets) == 0 {
		return "no listener"
	}
	s := p.sockets[0]
	if p.Has("udp") {
		return fmt.Sprintf("%d bytes waiting", s.RecvQ)
	}
	if s.SendQ < 0 {
		return fmt.Sprintf("%d connections waiting to be accepted", s.RecvQ)
	}
	return fmt.Sprintf("%d connections waiting, room for %d", s.RecvQ, s.SendQ)
}

func (p *Place) elsewhere() string {
	var out []string
	for _, s := range p.sockets {
		host := phrase.Plain(s.Local, 45)
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if a := host + ":" + strconv.Itoa(s.Port); !slices.Contains(out, a) && len(out) < 3 {
			out = append(out, a)
		}
	}
	return strings.Join(out, " and ")
}

// serverTitle is how sentences call the DNS server.
func (p *Place) serverTitle() string {
	switch {
	case p.Server == nil:
		return "of this machine"
	case p.Server.Port == 53:
		return p.Server.Host
	}
	return p.Server.String()
}

func (p *Place) zoneWords() string {
	switch {
	case p.Has("zone-missing") && p.Has("server-fails"):
		return " and for the zone above it"
	case p.Has("zone-there"):
		return "; it does know the zone above it"
	case p.Has("zone-missing"):
		return "; it does not know the zone above it either"
	}
	return ""
}

func (p *Place) certNames() string {
	var out []string
	for _, n := range p.hand.Names {
		if len(out) < 3 {
			out = append(out, phrase.Plain(n, 60))
		}
	}
	if len(out) == 0 {
		return phrase.Plain(p.hand.Subject, 60)
	}
	return strings.Join(out, ", ")
}

// sayWeb is one sentence about a request.
func (p *Place) sayWeb(w read.Web) string {
	t := p.Title()
	if w.Answered() {
		s := t + " answers " + strconv.Itoa(w.Code) + " in " + phrase.Seconds(w.Total)
		if w.Fail == read.Cut {
			s += ", but breaks off in the middle"
		} else if w.Fail == read.Stalled {
			s += ", but does not finish"
		}
		if w.Code >= 500 && len(p.found) > 0 {
			s += " and names " + p.found[0].String() + " behind it"
		}
		return s + "."
	}
	if s, ok := phrase.Connect[w.Fail]; ok && w.Fail != read.None {
		return t + " " + s + "."
	}
	switch w.Fail {
	case read.NoAnswer:
		return t + " accepts the connection and then says nothing."
	case read.Untrusted:
		return t + " shows a certificate that is not accepted (" + phrase.Plain(w.Detail, 70) + ")."
	case read.NotTLS:
		return t + " does not speak TLS."
	case read.Alert:
		return t + " refuses the TLS handshake."
	case read.NotHTTP:
		return t + " answers, but not in HTTP."
	}
	return "The request to " + t + " failed."
}

// certFaults are all faults of the certificate that were seen, as parts of a
// sentence; the first is the one that is named as the cause.
func (p *Place) certFaults() []string {
	var out []string
	for _, f := range []struct{ word, says string }{
		{"cert-expired", "expired on " + phrase.Day(p.hand.NotAfter)}, {"cert-chain", "comes with an expired one in its chain"},
		{"cert-early", "is not valid before " + phrase.Day(p.hand.NotBefore)}, {"cert-name", "is for " + p.certNames() + ", not for " + p.End.Host},
		{"cert-self", "is self-signed"}, {"cert-issuer", "has an unknown issuer"}, {"cert-weak", "is weak (" + p.weakness() + ")"},
	} {
		if p.Has(f.word) {
			out = append(out, f.says)
		}
	}
	return out
}

// besides are the faults of the certificate that the sentence so far does not name.
func (p *Place) besides(sentence string) string {
	all := slices.DeleteFunc(p.certFaults(), func(says string) bool { return strings.Contains(sentence, says) })
	if len(all) == 0 {
		return ""
	}
	return " (besides, it " + strings.Join(all, " and ") + ")"
}

func (p *Place) weakness() string {
	if p.hand.Weak != "" {
		return p.hand.Weak
	}
	return phrase.Plain(p.hand.Text, 60)
}

func (p *Place) sayCertificate() string {
	if all := p.certFaults(); len(all) > 0 {
		return "The certificate of " + p.Title() + " " + strings.Join(all, " and ") + "."
	}
	return "The certificate of " + p.Title() + " is valid until " + phrase.Day(p.hand.NotAfter) + "."
}
