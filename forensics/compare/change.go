package compare

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"ghostbot/forensics/trace"
)

// change is what happened to a packet beyond the fall of its TTL.
type change uint16

const (
	changedPayload change = 1 << iota
	changedSegments
	changedFragments
)

// Alteration is a kind of change between the points.
type Alteration struct {
	// Direction is "a_to_b" or "b_to_a".
	Direction string `json:"direction"`
	// Field is what was changed: ttl, dscp, ecn, mss, options, window, df, id, payload, sequence,
	// segments, fragments.
	Field string `json:"field"`
	// From and To are values at the sender's and the receiver's point; of the TTL, To is how many
	// hops are between them.
	From string `json:"from"`
	To   string `json:"to"`
	// Packets were changed so; Frame is the first of them at the receiver.
	Packets int `json:"packets"`
	Frame   int `json:"frame"`
}

// Translation is an address that is another one at B.
type Translation struct {
	AtA   string `json:"at_a"`
	AtB   string `json:"at_b"`
	Ports bool   `json:"ports_change"`
	Flows int    `json:"flows"`
}

// changes lists what happened to the packets of all lanes.
func (w *world) changes() []Alteration {
	type kind struct {
		from            point
		field, old, new string
	}
	index := map[kind]int{}
	var out []Alteration
	for _, l := range w.lanes {
		for _, p := range l.pairs {
			x, y := w.at(l.from, p.index(l.from)), w.at(l.from.other(), p.index(l.from.other()))
			l.visit(p, x, y, func(field, old, new string) {
				k := kind{l.from, field, old, new}
				at, known := index[k]
				if !known {
					at = len(out)
					index[k] = at
					out = append(out, Alteration{Direction: toward(l.from), Field: field, From: old, To: new, Frame: y.Frame})
				}
				out[at].Packets++
			})
		}
	}
	slices.SortStableFunc(out, func(x, y Alteration) int { return y.Packets - x.Packets })
	return out
}

func toward(from point) string { return [...]string{"a_to_b", "b_to_a"}[from] }

// visit names the changes of one packet, x when sent and y when received.
func (l *lane) visit(p pair, x, y *trace.Packet, found func(field, old, new string)) {
	number := func(field string, old, new int) {
		if old != new {
			found(field, fmt.Sprint(old), fmt.Sprint(new))
		}
	}
	switch {
	case p.how&changedSegments != 0:
		found("segments", "", "")
	case p.how&changedFragments != 0:
		found("fragments", "", "")
	case p.how&changedPayload != 0:
		found("payload", "", "")
	}
	if x.TTL != y.TTL {
		found("ttl", "", fmt.Sprintf("%+d", int(x.TTL)-int(y.TTL)))
	}
	number("dscp", int(x.TOS>>2), int(y.TOS>>2))
	if x.TOS&3 != y.TOS&3 {
		found("ecn", ecnName(x.TOS), ecnName(y.TOS))
	}
	if x.DontFragment != y.DontFragment {
		found("df", yesNo(x.DontFragment), yesNo(y.DontFragment))
	}
	if x.ID != y.ID && p.how == 0 && !l.keeps.id {
		found("id", "", "")
	}
	if x.Proto != trace.TCP || x.Fragment() || y.Fragment() {
		return
	}
	if x.Flags&trace.SYN != 0 {
		number("mss", int(x.MSS), int(y.MSS))
		if x.Options != y.Options {
			found("options", optionNames(x.Options), optionNames(y.Options))
		}
	}
	if x.Window != y.Window && p.how == 0 {
		found("window", "", "")
	}
	if l.seq != 0 {
		found("sequence", "", "")
	}
}

func ecnName(tos uint8) string { return [...]string{"not-ECT", "ECT(1)", "ECT(0)", "CE"}[tos&3] }

func yesNo(b bool) string {
	if b {
		return "set"
	}
	return "clear"
}

func optionNames(o trace.Options) string {
	out := ""
	for i, name := range []string{"timestamps", "mss", "window-scale", "sack-permitted"} {
		if o&(1<<i) != 0 {
			out += " " + name
		}
	}
	if out == "" {
		return "none"
	}
	return out[1:]
}

// translations lists the addresses that differ between the points.
func (w *world) translations() []Translation {
	type names struct{ a, b netip.Addr }
	index := map[names]int{}
	var out []Translation
	for _, l := range w.lanes {
		if l.f == nil || l.g == nil || l.dirA != 0 {
			continue
		}
		srcA, dstA := l.f.ends(l.dirA)
		srcB, dstB := l.g.ends(l.dirB)
		for _, e := range [][2]netip.AddrPort{{srcA, srcB}, {dstA, dstB}} {
			if e[0] == e[1] || e[0].Addr() == e[1].Addr() && l.f.key.proto != trace.TCP && l.f.key.proto != trace.UDP {
				continue // the identifier of an echo is no port
			}
			k := names{e[0].Addr(), e[1].Addr()}
			at, known := index[k]
			if !known {
				at = len(out)
				index[k] = at
				out = append(out, Translation{AtA: k.a.String(), AtB: k.b.String()})
			}
			out[at].Flows++
			out[at].Ports = out[at].Ports || e[0].Port() != e[1].Port()
		}
	}
	return out
}

// flowsOf lists the lanes with something to tell.
func (w *world) flowsOf() []Flow {
	seen := w.expected()
	lost, injected := map[*lane]int{}, map[*lane]int{}
	for _, d := range w.dir {
		for _, l := range d.lostLane {
			lost[l]++
		}
	}
	var out []Flow
	for _, l := range w.lanes {
		if !seen[l] {
			continue
		}
		for _, j := range l.rest[l.from.other()] {
			if w.fromNowhere(l, l.from.other(), j) {
				injected[l]++
			}
		}
		f := w.flow(l)
		f.Lost, f.Injected = lost[l], injected[l]
		f.Sent = len(l.pairs) + f.Lost
		f.Status = f.status()
		if f.Lost+f.Duplicated+f.Reordered+f.Injected > 0 {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(x, y Flow) int {
		return cmp.Or(y.Lost-x.Lost, y.Injected-x.Injected, y.Reordered-x.Reordered, y.Duplicated-x.Duplicated)
	})
	return out[:min(len(out), maxFlows)]
}

func (w *world) flow(l *lane) Flow {
	f := Flow{Direction: toward(l.from), Duplicated: len(l.copies[l.from.other()]), Reordered: len(w.reordered(l))}
	near, dir := l.f, l.dirA
	if near == nil {
		near, dir = l.g, l.dirB
	}
	src, dst := near.ends(dir)
	f.Protocol, f.Src, f.Dst = protocolName(near.key), hostPort(near.key, src), hostPort(near.key, dst)
	if l.f != nil && l.g != nil && l.f.key != l.g.key {
		s, d := l.g.ends(l.dirB)
		f.AtB = hostPort(l.g.key, s) + " > " + hostPort(l.g.key, d)
	}
	return f
}

func (f *Flow) status() string {
	switch {
	case f.Sent > 0 && f.Lost == f.Sent:
		return "FULL DROP"
	case f.Lost > 0:
		return "PARTIAL DROP"
	}
	return "DELIVERED"
}

func protocolName(k flowKey) string {
	switch {
	case k.frag:
		return "IP fragments"
	case k.proto == trace.TCP:
		return "TCP"
	case k.proto == trace.UDP:
		return "UDP"
	case k.proto == trace.ICMP:
		return "ICMP"
	case k.proto == trace.ICMPv6:
		return "ICMPv6"
	}
	return fmt.Sprintf("IP protocol %d", k.proto)
}

// hostPort writes an end; only TCP and UDP have ports.
func hostPort(k flowKey, e netip.AddrPort) string {
	if k.frag || k.proto != trace.TCP && k.proto != trace.UDP {
		return e.Addr().String()
	}
	return e.String()
}
