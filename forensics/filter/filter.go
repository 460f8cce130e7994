// Package filter understands the expressions that narrow an analysis to one host,
// port or conversation.
//
// An expression is a list of terms that must all hold, optionally joined by "and":
//
//	tcp, udp, icmp, arp          the protocol
//	host ADDRESS                 either end
//	net ADDRESS/BITS             either end
//	port NUMBER                  either end
//	ADDRESS:PORT                 either end, address and port of the same one
//	ADDRESS:PORT -> ADDRESS:PORT the conversation, both directions; as findings print it
package filter

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"ghostbot/forensics/frame"
)

// ErrSyntax says that an expression was not understood.
var ErrSyntax = errors.New(`not understood (accepted: tcp, udp, icmp, arp, host ADDRESS, net ADDRESS/BITS, port NUMBER, ADDRESS:PORT, and "A:P -> B:P", joined by and)`)

// Filter is a parsed expression. It matches when all terms do.
type Filter struct {
	text  string
	terms []term
}

type term func(v *frame.View) bool

// Parse reads an expression.
func Parse(text string) (*Filter, error) {
	f := &Filter{text: text}
	words := strings.Fields(strings.NewReplacer("<->", " ", "->", " ").Replace(text))
	for i := 0; i < len(words); i++ {
		w := words[i]
		arg := ""
		if i+1 < len(words) {
			arg = words[i+1]
		}
		t, used, ok := parse(strings.ToLower(w), arg)
		if !ok {
			return nil, fmt.Errorf("filter %q: %q: %w", text, strings.Join(words[i:min(i+1+used, len(words))], " "), ErrSyntax)
		}
		i += used
		if t != nil {
			f.terms = append(f.terms, t)
		}
	}
	if len(f.terms) == 0 {
		return nil, fmt.Errorf("filter %q: %w", text, ErrSyntax)
	}
	return f, nil
}

// String is the expression as it was given.
func (f *Filter) String() string { return f.text }

// Match reports whether a frame is wanted.
func (f *Filter) Match(v *frame.View) bool {
	for _, t := range f.terms {
		if !t(v) {
			return false
		}
	}
	return true
}

func parse(w, arg string) (t term, used int, ok bool) {
	switch w {
	case "and", "&&":
		return nil, 0, true
	case "tcp":
		return kind(frame.TCP), 0, true
	case "udp":
		return kind(frame.UDP), 0, true
	case "icmp":
		return func(v *frame.View) bool { return v.Kind == frame.ICMP || v.Kind == frame.ICMPv6 }, 0, true
	case "arp":
		return kind(frame.ARP), 0, true
	case "host":
		a, err := netip.ParseAddr(arg)
		return host(a.Unmap()), 1, err == nil
	case "net":
		p, err := netip.ParsePrefix(arg)
		return func(v *frame.View) bool { return p.Contains(v.Src.Netip()) || p.Contains(v.Dst.Netip()) }, 1, err == nil
	case "port":
		n, err := strconv.ParseUint(arg, 10, 16)
		return func(v *frame.View) bool { return v.SPort == uint16(n) || v.DPort == uint16(n) }, 1, err == nil
	}
	if a, err := netip.ParseAddrPort(w); err == nil {
		return end(netip.AddrPortFrom(a.Addr().Unmap(), a.Port())), 0, true
	}
	if a, err := netip.ParseAddr(w); err == nil {
		return host(a.Unmap()), 0, true
	}
	return nil, 0, false
}

func kind(k frame.Kind) term { return func(v *frame.View) bool { return v.Kind == k } }

func host(a netip.Addr) term {
	return func(v *frame.View) bool { return v.Src.Netip() == a || v.Dst.Netip() == a }
}

func end(a netip.AddrPort) term {
	return func(v *frame.View) bool {
		return v.SPort == a.Port() && v.Src.Netip() == a.Addr() || v.DPort == a.Port() && v.Dst.Netip() == a.Addr()
	}
}
