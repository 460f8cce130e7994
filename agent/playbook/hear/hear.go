// Package hear sorts answers that say the same whatever place they are about: it
// makes of each the facts that it shows and a sentence for people.
package hear

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ghostbot/agent/playbook/phrase"
	"ghostbot/agent/playbook/read"
)

// slowLookup, in seconds, is what a look-up takes only when something waits.
const slowLookup = 0.7

// Server sorts the answer of the DNS server that the symptom names.
func Server(a read.Answer, name, at string) (w []string, said string) {
	if a.Alias != "" {
		w = append(w, "alias")
	}
	switch {
	case a.Fail == read.Usage:
		w = append(w, "unsuitable")
		return w, ""
	case a.Resolved():
		w = append(w, "named-there")
		if a.Took > int(1000*slowLookup) {
			w = append(w, "lookup-slow")
			return w, at + " answers for " + name + ", but needs " + phrase.Millis(float64(a.Took)) + "."
		}
		return w, at + " answers " + name + " with " + a.Addrs[0] + "."
	case a.Status == "NXDOMAIN":
		w = append(w, "no-name")
		return w, at + " answers NXDOMAIN for " + name + "."
	case a.Status == "NOERROR":
		w = append(w, "no-data")
		return w, at + " has no address for " + name + "."
	case a.Status == "REFUSED":
		w = append(w, "server-unwilling")
		return w, at + " answers REFUSED for " + name + "."
	case a.Status != "":
		w = append(w, "server-fails")
		return w, at + " answers " + a.Status + " for " + name + "."
	case a.Cut:
		w = append(w, "server-cut")
		return w, at + " answers for " + name + " over UDP with a truncated answer, and not over TCP."
	}
	word, said := unheard(a, at)
	return append(w, word), said
}

// unheard is for a server from which no answer came.
func unheard(a read.Answer, at string) (word, said string) {
	if a.Fail == read.Refused {
		return "server-refused", "Nothing answers DNS on " + at + ": queries are refused."
	}
	return "server-silent", "The DNS server " + at + " does not answer."
}

// Here sorts the answer of this machine's own DNS servers.
func Here(a read.Answer, name string) (w []string, said string) {
	if a.Alias != "" {
		w = append(w, "alias")
	}
	switch {
	case a.Fail == read.Usage:
		w = append(w, "unsuitable")
		return w, ""
	case a.Resolved():
		w = append(w, "named-here")
		if len(a.Asked) > 0 {
			w = append(w, "first-mute")
			return w, name + " resolves to " + a.Addrs[0] + " here, after " + strings.Join(a.Asked, " and ") + " did not answer."
		}
		return w, name + " resolves to " + a.Addrs[0] + " here."
	case a.Status == "NXDOMAIN":
		w = append(w, "no-name-here")
		return w, "This machine's DNS answers NXDOMAIN for " + name + "."
	case a.Status == "NOERROR":
		w = append(w, "no-data-here")
		return w, "This machine's DNS has no address for " + name + "."
	case a.Status != "":
		w = append(w, "fails-here")
		return w, "This machine's DNS answers " + a.Status + " for " + name + "."
	case a.Cut:
		w = append(w, "cut-here")
		return w, "This machine's DNS server answers for " + name + " over UDP with a truncated answer, and not over TCP."
	}
	w = append(w, "silent-here")
	if a.Fail == read.Refused && len(a.Asked) > 0 && !slices.ContainsFunc(a.Asked, func(s string) bool { return !loopback(s) }) {
		w = append(w, "no-server-here")
	}
	return w, "This machine's DNS servers do not answer."
}

// ServerTCP reads what the server says over TCP after UDP failed.
func ServerTCP(a read.Answer, at string) (w []string, said string) {
	switch {
	case a.Fail == read.Usage:
		w = append(w, "unsuitable")
		return w, ""
	case a.Resolved():
		w = append(w, "tcp-answers")
		return w, at + " does answer over TCP."
	}
	w = append(w, "tcp-silent")
	return w, ""
}

// AAAA reads whether a question for the other family of address is answered,
// which most programs ask along with the first: nothing but silence is a fault.
func AAAA(a read.Answer, host string) (w []string, said string) {
	switch {
	case a.Fail == read.Usage:
		w = append(w, "unsuitable")
	case a.Status != "" && len(a.Asked) > 0:
		w = append(w, "aaaa-answers", "first-mute-too")
	case a.Status != "":
		w = append(w, "aaaa-answers")
	case a.Fail == read.Silent:
		w = append(w, "aaaa-silent")
		return w, "This machine's DNS server does not answer for the IPv6 address of " + host + "."
	}
	return w, ""
}

// Alive reads what came of asking a DNS server for the root, which every server has an opinion on:
// any answer but a failure shows that it works, a refusal included, because
// servers that keep zones need not know the root.
func Alive(a read.Answer, at string) (w []string, said string) {
	switch {
	case a.Fail == read.Usage:
		w = append(w, "unsuitable")
		return w, ""
	case a.Status == "SERVFAIL":
		w = append(w, "root-fails")
		return w, at + " answers SERVFAIL even for the root."
	case a.Status != "":
		w = append(w, "server-alive")
		return w, at + " answers queries (" + phrase.Plain(a.Status, 12) + " for the root)."
	}
	word, said := unheard(a, at)
	return append(w, word), said
}

// Zone reads what the server has for the zone above a name.
func Zone(a read.Answer, zone string) (w []string, said string) {
	switch {
	case a.Status == "NOERROR":
		w = append(w, "zone-there")
		return w, "The server knows " + zone + ", so only the name below it is missing or broken."
	case a.Status != "":
		w = append(w, "zone-missing")
		return w, "The server answers " + a.Status + " for " + zone + " as well."
	}
	w = append(w, "zone-silent")
	return w, ""
}

// Ping sorts what ping came to.
func Ping(e read.Echo, host string) (w []string, said string) {
	if e.Held {
		w = append(w, "held-here", "ping-lost")
		return w, "This machine's own packet filter does not let packets to " + host + " out."
	}
	if e.Sent == 0 && e.Fail != read.Unreachable && e.Fail != read.Unresolved {
		w = append(w, "unsuitable")
		return w, ""
	}
	switch {
	case e.Loop:
		w = append(w, "ttl-exceeded", "ping-lost")
		return w, "Packets to " + host + " run out of hops: a routing loop."
	case e.Fail == read.Unreachable:
		w = append(w, "unreachable", "ping-lost")
		return w, host + " is reported unreachable."
	case e.Fail == read.Prohibited:
		w = append(w, "prohibited", "ping-lost")
		return w, "A filter rejects packets to " + host + "."
	case e.Fail == read.Unresolved:
		w = append(w, "unresolved")
		return w, host + " does not resolve."
	case e.Received == 0:
		w = append(w, "ping-lost")
		return w, host + " does not answer ping."
	case e.Loss > 0:
		w = append(w, "ping-loss", "ping-ok")
		return w, "Ping to " + host + " loses " + phrase.Percent(e.Loss) + "."
	}
	w = append(w, "ping-ok")
	return w, host + " answers ping in " + RTT(e) + "."
}

// BigPing sorts what full-sized packets came to.
func BigPing(e read.Echo, host string) (w []string, said string) {
	switch {
	case e.Received > 0:
		w = append(w, "big-ok")
	case e.MTU > 0:
		w = append(w, "big-told")
		return w, "Full-sized packets to " + host + " are too big for the path, and it says so."
	case e.Sent > 0:
		w = append(w, "big-lost")
		return w, "Full-sized packets to " + host + " get no answer."
	}
	return w, ""
}

// Trace sorts how far packets get.
func Trace(t read.Trace, host string) (w []string, said string) {
	if t.Held {
		w = append(w, "held-here")
		return w, "This machine's own packet filter does not let packets to " + host + " out."
	}
	if len(t.Hops) == 0 {
		w = append(w, "unsuitable")
		return w, ""
	}
	switch {
	case t.Loop():
		w = append(w, "path-loop")
		return w, "The path to " + host + " goes in a circle."
	case t.Reached():
		w = append(w, "path-ends")
		return w, "The path to " + host + " is open."
	}
	w = append(w, "path-stops")
	last, _ := t.Last()
	switch strings.TrimPrefix(last.Mark, "!") { // traceroute's manual, LIST OF AVAILABLE MARKS
	case "X", "V", "C", "10", "13":
		w = append(w, "prohibited")
		return w, last.Addr + " rejects packets to " + host + " by a filter."
	case "H", "N", "P":
		w = append(w, "unreachable")
		return w, last.Addr + " says that " + host + " cannot be reached."
	}
	return w, "The path to " + host + " stops" + LastHop(t) + "."
}

// LastHop says where a path ends, as the end of a sentence.
func LastHop(t read.Trace) string {
	h, ok := t.Last()
	switch {
	case len(t.Hops) == 0, t.Reached():
		return ""
	case !ok:
		return " before the first router that answers"
	}
	return " after " + h.Addr
}

// Loop names what a path passes more than once, or who said that it does.
func Loop(t read.Trace, e read.Echo) string {
	seen := map[string]bool{}
	for _, h := range t.Hops {
		if h.Addr != "" && seen[h.Addr] {
			return " (" + h.Addr + " is passed more than once)"
		}
		seen[h.Addr] = true
	}
	if e.From != "" {
		return " (reported by " + phrase.Plain(e.From, 45) + ")"
	}
	return ""
}

// Told says who reports that a host cannot be reached.
func Told(t read.Trace, e read.Echo) string {
	if h, ok := t.Last(); ok && strings.HasPrefix(h.Mark, "!") {
		return h.Addr + " reports it"
	}
	if e.From != "" {
		return phrase.Plain(e.From, 45) + " reports it"
	}
	return "this machine's network stack reports it"
}

// Capture sorts what was seen on the wire.
func Capture(c read.Wire, port string) (w []string, said string) {
	switch {
	case c.Fail != read.None:
		w = append(w, "capture-failed")
		return w, "The capture was not possible here."
	case c.SYN > 0 && c.RST > 0 && c.SYNACK == 0:
		w = append(w, "wire-refused")
		return w, "On the wire every connection attempt to port " + port + " is answered with a reset."
	case c.SYNACK > 0:
		w = append(w, "wire-accepted")
		return w, "On the wire connections to port " + port + " are accepted."
	}
	w = append(w, "wire-nothing")
	return w, "No client asked port " + port + " while the capture ran."
}

// Journal counts the lines of the system journal.
func Journal(o read.Output, port string) (w []string, said string) {
	n := 0
	for _, l := range strings.Split(o.Stdout, "\n") {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "-- ") {
			n++
		}
	}
	if n == 0 || o.Exit != 0 {
		w = append(w, "journal-silent")
		return w, "The system journal has no line about port " + port + "."
	}
	w = append(w, "journal-speaks")
	return w, "The system journal has lines about port " + port + "; they are in the journal entry."
}

// Unacked sorts whether a request that got no answer was received at all: a connection
// that was given up and still has bytes to send (FIN-WAIT-1) has them because nobody
// acknowledged them. A program that hangs does not keep its kernel from doing that.
func Unacked(t read.Table, ip string, port int) (w []string, said string) {
	if !t.Header && len(t.Rows) == 0 {
		w = append(w, "unsuitable")
		return w, ""
	}
	for _, s := range t.Rows {
		switch {
		case s.Peer != ip || s.PPort != port:
		case s.SendQ >= leastRequest:
			w = append(w, "unacked")
			return w, "What was sent to " + ip + " on the connection was not acknowledged."
		default: // its end is on the way
			w = append(w, "ack-unknown")
			return w, ""
		}
	}
	w = append(w, "acked")
	return w, "What was sent to " + ip + " on the connection was acknowledged."
}

// leastRequest is less than any web request or first message of TLS has, in bytes, and
// more than the end of a connection: a FIN counts as one, the farewell of TLS as 31.
const leastRequest = 60

// SynSent sorts whether connection attempts hang here.
func SynSent(t read.Table, port string) (w []string, said string) {
	if len(t.Rows) > 0 {
		w = append(w, "syn-hangs")
		return w, "Connection attempts to port " + port + " hang on this machine."
	}
	w = append(w, "syn-none")
	return w, "No connection attempt to port " + port + " hangs, which fits a refusal."
}

// RTT are the figures of ping as people know them.
func RTT(e read.Echo) string {
	if e.Received == 0 {
		return ""
	}
	s := fmt.Sprintf("%s on average of %d (min/avg/max", phrase.Millis(e.Avg), e.Received)
	if e.Avg < 10 {
		s = fmt.Sprintf("%.1f ms on average of %d (min/avg/max", e.Avg, e.Received)
	}
	if e.Dev > 0 {
		s += "/mdev"
	}
	s += fmt.Sprintf(" %.1f/%.1f/%.1f", e.Min, e.Avg, e.Max)
	if e.Dev > 0 {
		s += fmt.Sprintf("/%.1f", e.Dev)
	}
	return s + " ms)"
}

// Where says between which hops the time is lost, as the end of a sentence.
func Where(t read.Trace, e read.Echo) string {
	if !t.Reached() || e.Min == 0 {
		return ""
	}
	slow, quick := read.Hop{}, read.Hop{}
	for _, h := range t.Hops {
		switch {
		case h.Addr == "" || h.RTT == 0:
		case h.RTT < e.Min/2:
			slow, quick = read.Hop{}, h
		case slow.Addr == "":
			slow = h
		}
	}
	switch {
	case slow.Addr == "":
		return ""
	case quick.Addr == "":
		return fmt.Sprintf("; the first router that answers, %s, is as slow (%.1f ms)", slow.Addr, slow.RTT)
	}
	return fmt.Sprintf("; %s is reached in %.1f ms, %s behind it in %.1f ms", quick.Addr, quick.RTT, slow.Addr, slow.RTT)
}

func loopback(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.IsLoopback()
}
