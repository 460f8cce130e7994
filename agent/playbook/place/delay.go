package place

import (
	"fmt"
	"time"

	"ghostbot/agent/playbook/hear"
	"ghostbot/agent/playbook/phrase"
	"ghostbot/agent/playbook/read"
	"ghostbot/agent/playbook/rules"
	"ghostbot/agent/playbook/symptom"
)

// slowLimit is what one phase of a request may take, in seconds: less where people
// name a shorter time, because that is what they miss.
func (p *Place) slowLimit() float64 {
	limit := rules.SlowElse
	if p.About.Is(symptom.Slow) || p.Parent != nil {
		limit = rules.SlowAsked
	}
	if d := p.About.Delay; d > 0 && p.Parent == nil {
		limit = min(limit, max(rules.NamedShare*d, rules.SlowNamed))
	}
	return limit
}

// rttLimit is from when on a round trip is a slow one, in milliseconds.
func (p *Place) rttLimit() float64 {
	if d := p.About.Delay; d > 0 {
		return 1000 * min(max(rules.NamedShare*d, rules.JitterAsked), rules.SlowTrip)
	}
	return 1000 * rules.SlowTrip
}

// readPingMore reads enough echo requests for an average and a spread that a busy
// moment does not make: slow is what even the quickest of them was, uneven where the
// middle half of them lies as far apart as people notice, and a good part of the whole.
func (p *Place) readPingMore(o read.Output, m Moment) string {
	e := read.Ping(o)
	if e.Sent == 0 || e.Received < e.Sent/2 {
		return ""
	}
	p.echo = e
	switch {
	case e.Loss > 0:
		p.note(m, "ping-loss")
		return "Ping to " + p.End.Host + " loses " + phrase.Percent(e.Loss) + "."
	case e.Min >= p.rttLimit():
		p.note(m, "ping-slow")
	case e.Spread() >= 1000*rules.JitterAsked && e.Spread() >= e.Avg/4:
		p.note(m, "ping-jitter")
	default:
		p.note(m, "ping-quick")
	}
	return p.End.Host + " answers ping in " + p.rtt() + "."
}

// readTraceTimes reads how long each hop takes. A router that answers late itself
// shows nothing: only what stays slow to the end counts.
func (p *Place) readTraceTimes(o read.Output, m Moment) string {
	t := read.Traceroute(o)
	if len(t.Hops) == 0 {
		p.note(m, "unsuitable")
		return ""
	}
	p.trace = t
	p.note(m, "path-timed")
	return ""
}

// soon is how long before its end a certificate is worth a remark.
const soon = 14 * 24 * time.Hour

// expiresSoon says how long a certificate that is valid now is so for, when that is
// not long.
func (p *Place) expiresSoon() (left string, is bool) {
	d := p.hand.NotAfter.Sub(p.seen)
	if !p.Has("cert-dates-ok") || p.hand.NotAfter.IsZero() || d <= 0 || d > soon {
		return "", false
	}
	if h := int(d.Hours()); h < 48 {
		return fmt.Sprintf("%d hours", h), true
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24)), true
}

// rtt are the figures of the last pings.
func (p *Place) rtt() string { return hear.RTT(p.echo) }

// where says where the time of a slow way is lost, as far as that was measured.
func (p *Place) where() string {
	if !p.Has("path-timed") || !p.Has("ping-slow") {
		return ""
	}
	return hear.Where(p.trace, p.echo)
}
