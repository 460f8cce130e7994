package place

import (
	"slices"
	"strconv"
	"strings"

	"ghostbot/agent/playbook/phrase"
	"ghostbot/agent/playbook/read"
	"ghostbot/agent/playbook/symptom"
)

// maxAddrs is how many addresses of one name are tried one by one.
const maxAddrs = 4

// address of a name that has several, and what became of a try of it.
type address struct {
	ip, state string // state is a fact: at-open, at-refused, ...; "" before the try and when it said nothing
	code      int    // of the web's answer
}

// several keeps the addresses of a name that has more than one, so that each is
// tried by itself: clients take one of them, and programs here go on to the next
// when one fails, which hides a dead one. A name with one address of each family
// is left to the probes of families.
func (p *Place) several(addrs []string, m Moment) {
	var list []address
	for _, s := range addrs {
		if symptom.ValidHost(s) && !slices.ContainsFunc(list, func(a address) bool { return a.ip == s }) && len(list) < maxAddrs {
			list = append(list, address{ip: s})
		}
	}
	if len(p.at) == 0 && len(list) > 1 && !p.Has("two-families") {
		p.at = list
		p.note(m, "several")
	}
}

// tryOf reads a try of the n-th address.
func tryOf(n int, web bool) func(*Place, read.Output, Moment) string {
	return func(p *Place, o read.Output, m Moment) string {
		f, code := read.None, 0
		if web {
			w := read.Curl(o)
			f, code = w.Fail, w.Code
		} else if c := read.Connect(o); !c.OK {
			f = c.Fail
		}
		if f == read.Usage || n >= len(p.at) {
			p.note(m, "unsuitable")
			return ""
		}
		a := &p.at[n]
		if !web && f == read.None && a.state != "" {
			return "" // the request said more
		}
		a.code = code
		switch f {
		case read.NoConnect: // some versions of curl do not say how
			p.note(m, "at-unconnected")
			return ""
		case read.Refused:
			a.state = "at-refused"
		case read.Silent:
			a.state = "at-silent"
		case read.Reset, read.Empty, read.NoAnswer:
			a.state = "at-broken"
		case read.None:
			if a.state = "at-open"; code >= 500 {
				a.state = "at-error"
			}
		default:
			return ""
		}
		p.note(m, a.state)
		return p.End.Host + " at " + a.ip + " " + phrase.Address[a.state] + "."
	}
}

// atWhich lists the addresses with a state, those of errors with the code.
func (p *Place) atWhich(state string) string {
	var out []string
	for _, a := range p.at {
		switch {
		case a.state != state:
		case a.code >= 500:
			out = append(out, a.ip+" ("+strconv.Itoa(a.code)+")")
		default:
			out = append(out, a.ip)
		}
	}
	return strings.Join(out, " and ")
}

// atBad is the first address that does not serve.
func (p *Place) atBad() string {
	for _, a := range p.at {
		if a.state != "" && a.state != "at-open" {
			return a.ip
		}
	}
	return ""
}

// atPart is the n-th address, from 1, as part of a command.
func (p *Place) atPart(n string) (string, bool) {
	i, err := strconv.Atoi(n)
	if err != nil || i < 1 || i > len(p.at) {
		return "", false
	}
	return p.at[i-1].ip, true
}
