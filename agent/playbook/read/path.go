package read

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ghostbot/agent/playbook/pattern"
)

// Echo is what ping says.
type Echo struct {
	Sent, Received int
	Loss           float64   // percent
	Min, Avg, Max  float64   // milliseconds
	Dev            float64   // milliseconds; 0 where the tool does not say
	Times          []float64 // of single answers, in milliseconds
	Fail           Failure   // how it failed when nothing or not everything came back
	From           string    // who reported the failure by ICMP
	To             string    // the address that was pinged
	Loop           bool      // "time to live exceeded"
	MTU            int       // "frag needed ... mtu = N"
	Held           bool      // this machine's own packet filter held a packet back
}

var (
	pingCount = pattern.New(`^\s*(\d+)\s+[^,\d]+,\s*(\d+)\s+[^,]*,.*?([\d.,]+)\s*%`)
	pingRTT   = pattern.New(`=\s*([\d.]+)/([\d.]+)/([\d.]+)(?:/([\d.]+))?`)
	pingTime  = pattern.New(`\bicmp_seq=\d+ .*\btime[=<]([\d.]+) ?ms`)
	pingFrom  = pattern.New(`(?i)^from (\S+?):?\s`)
	pingTo    = pattern.New(`^PING .*?\(([0-9a-fA-F.:]+)\)`)
	pingICMP  = pattern.New(`(?i)unreachable|prohibited|filtered|time to live exceeded|ttl exceeded|hop limit|frag needed|message too long|packet too big`)
	pingHeld  = pattern.New(`(?im)\bsend(?:msg|to)?: operation not permitted`) // EPERM of a packet that the output hook drops; "socket:" is a want of rights
	pingMTU   = pattern.New(`(?i)mtu\s*[=:]?\s*(\d+)`)
)

// Ping reads ping of iputils (any language: only the figures are read), BSD and
// busybox.
func Ping(o Output) Echo {
	var e Echo
	for _, l := range lines(o.both()) {
		if m := pingTo.FindStringSubmatch(l); m != nil {
			e.To = m[1]
		}
		if m := pingTime.FindStringSubmatch(l); m != nil && len(e.Times) < 100 {
			x, _ := strconv.ParseFloat(m[1], 64)
			e.Times = append(e.Times, x)
		}
		switch {
		case pingICMP.MatchString(l):
			e.told(l)
		case pingCount.MatchString(l):
			m := pingCount.FindStringSubmatch(l)
			e.Sent, _ = strconv.Atoi(m[1])
			e.Received, _ = strconv.Atoi(m[2])
			e.Loss, _ = strconv.ParseFloat(strings.ReplaceAll(m[3], ",", "."), 64)
		case strings.Contains(l, "min/avg/max"):
			if m := pingRTT.FindStringSubmatch(l); m != nil {
				e.Min, _ = strconv.ParseFloat(m[1], 64)
				e.Avg, _ = strconv.ParseFloat(m[2], 64)
				e.Max, _ = strconv.ParseFloat(m[3], 64)
				e.Dev, _ = strconv.ParseFloat(m[4], 64)
			}
		}
	}
	e.Held = e.Received == 0 && pingHeld.MatchString(o.both())
	if e.Fail == None && e.Received == 0 {
		e.Fail = Silent
		if e.Sent == 0 {
			e.Fail = failure(o.both())
		}
	}
	return e
}

// Spread is between which times the middle half of the answers came, in milliseconds:
// unlike the deviation, one late answer does not make it large.
func (e Echo) Spread() float64 {
	if len(e.Times) < 8 {
		return 0
	}
	t := slices.Sorted(slices.Values(e.Times))
	return t[len(t)*3/4] - t[len(t)/4]
}

func (e *Echo) told(l string) {
	if m := pingFrom.FindStringSubmatch(strings.TrimSpace(l)); m != nil {
		e.From = m[1]
	}
	if m := pingMTU.FindStringSubmatch(l); m != nil {
		e.MTU, _ = strconv.Atoi(m[1])
	}
	low := strings.ToLower(l)
	switch {
	case strings.Contains(low, "exceeded") || strings.Contains(low, "hop limit"):
		e.Loop, e.Fail = true, Unreachable
	case strings.Contains(low, "prohibited") || strings.Contains(low, "filtered"):
		e.Fail = Prohibited
	case strings.Contains(low, "unreachable"):
		e.Fail = Unreachable
	}
}

// Route is what `ip route get` says.
type Route struct {
	Local bool
	Dev   string
	Via   string
	Src   string
	Kind  string // of a route that lets nothing through: unreachable, prohibit, blackhole
	Fail  Failure
}

// RouteGet reads iproute2 and busybox.
func RouteGet(o Output) Route {
	var r Route
	f := strings.Fields(o.Stdout)
	for i := 0; i+1 < len(f); i++ {
		switch f[i] {
		case "local":
			r.Local = true
		case "dev":
			r.Dev = f[i+1]
		case "via":
			r.Via = f[i+1]
		case "src":
			r.Src = f[i+1]
		}
	}
	r.Local = r.Local || r.Dev == "lo"
	if len(f) > 0 && (f[0] == "blackhole" || f[0] == "unreachable" || f[0] == "prohibit" || f[0] == "throw") {
		r.Fail, r.Kind = Unreachable, f[0]
	}
	if o.Exit != 0 {
		r.Fail = failure(o.both())
		if strings.Contains(o.both(), "RTNETLINK answers") {
			r.Fail, r.Kind = Unreachable, routeKind(o.both())
		}
	}
	return r
}

// routeKind is the kind of route that answers a question with an error: each kind
// has its own (rtnetlink; fib_props in the kernel's net/ipv4/fib_semantics.c).
func routeKind(text string) string {
	switch {
	case strings.Contains(text, "No route to host"):
		return "unreachable"
	case strings.Contains(text, "Permission denied"):
		return "prohibit"
	case strings.Contains(text, "Invalid argument"):
		return "blackhole"
	}
	return ""
}

// Link is one line of `ip -br link`.
type Link struct {
	Name string
	Down bool // switched off, or without a carrier
}

// Links reads `ip -br link`: name, state, address, <FLAGS>. A state of UNKNOWN is
// that of devices without a carrier to sense.
func Links(o Output) []Link {
	var out []Link
	for _, l := range lines(o.Stdout) {
		f := strings.Fields(l)
		if len(f) < 2 || len(out) > 500 {
			continue
		}
		name, _, _ := strings.Cut(f[0], "@")
		flags := f[len(f)-1]
		up := strings.Contains(flags, "<UP") || strings.Contains(flags, ",UP")
		if strings.HasPrefix(flags, "<") {
			out = append(out, Link{name, !up || strings.Contains(flags, "NO-CARRIER") || f[1] == "LOWERLAYERDOWN"})
		}
	}
	return out
}

// Hop is one line of traceroute; Addr is "" for a hop that did not answer.
type Hop struct {
	N    int
	Addr string
	RTT  float64 // milliseconds
	Mark string  // "!H", "!N", "!X", ...
}

// Trace is what traceroute says.
type Trace struct {
	Target string
	Hops   []Hop
	Held   bool // this machine's own packet filter held the first packet back
	Fail   Failure
}

var (
	traceTarget = pattern.New(`(?i)^trac\w+ to \S+ \(([0-9a-f:.%a-z]+)\)`)
	traceHop    = pattern.New(`^\s*(\d{1,2})[?:]?\s+(.*)$`)
	traceMark   = pattern.New(`![A-Z0-9<>-]*`)
)

// Traceroute reads `traceroute -n` of the Linux package, BSD and busybox, and
// `tracepath -n`.
func Traceroute(o Output) Trace {
	var t Trace
	for _, l := range lines(o.Stdout) {
		if m := traceTarget.FindStringSubmatch(l); m != nil {
			t.Target = m[1]
			continue
		}
		if m := traceHop.FindStringSubmatch(l); m != nil && len(t.Hops) < 64 {
			t.Hops = append(t.Hops, hop(m[1], m[2]))
		}
	}
	if o.Exit != 0 && len(t.Hops) == 0 {
		t.Held = pingHeld.MatchString(o.both())
		t.Fail = failure(o.both())
	}
	return t
}

func hop(n, rest string) Hop {
	h := Hop{Mark: traceMark.FindString(rest)}
	h.N, _ = strconv.Atoi(n)
	for _, f := range strings.Fields(rest) {
		f = strings.Trim(f, "()")
		if a, err := netip.ParseAddr(f); err == nil && h.Addr == "" {
			h.Addr = a.String()
		} else if x, err := strconv.ParseFloat(strings.TrimSuffix(f, "ms"), 64); err == nil && h.RTT == 0 && x == x {
			h.RTT = x
		}
	}
	return h
}

// Reached reports whether the target itself answered.
func (t Trace) Reached() bool {
	for _, h := range t.Hops {
		if h.Addr != "" && h.Addr == t.Target && !strings.HasPrefix(h.Mark, "!") {
			return true
		}
	}
	return false
}

// Last is the last hop that answered.
func (t Trace) Last() (Hop, bool) {
	for i := len(t.Hops) - 1; i >= 0; i-- {
		if t.Hops[i].Addr != "" {
			return t.Hops[i], true
		}
	}
	return Hop{}, false
}

// Loop reports whether one router answers again after another one did.
func (t Trace) Loop() bool {
	seen := map[string]int{}
	for i, h := range t.Hops {
		if h.Addr == "" || h.Addr == t.Target {
			continue
		}
		if j, was := seen[h.Addr]; was && i-j > 1 {
			return true
		}
		seen[h.Addr] = i
	}
	return false
}

// Counters reads nstat: one name and value a line.
func Counters(o Output) map[string]uint64 {
	out := map[string]uint64{}
	for _, l := range lines(o.Stdout) {
		f := strings.Fields(l)
		if len(f) < 2 || strings.HasPrefix(f[0], "#") || len(out) > 500 {
			continue
		}
		if n, err := strconv.ParseUint(f[1], 10, 64); err == nil {
			out[f[0]] = n
		}
	}
	return out
}

// Wire is what tcpdump -nn saw of one TCP port.
type Wire struct {
	Packets int
	SYN     int // connection attempts
	SYNACK  int
	RST     int // resets, also as the answer to a SYN
	Fail    Failure
}

var wireFlags = pattern.New(`Flags \[([A-Z.]+)\]`)

// Tcpdump reads the one-line form.
func Tcpdump(o Output) Wire {
	var w Wire
	for _, l := range lines(o.Stdout) {
		m := wireFlags.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		w.Packets++
		switch {
		case m[1] == "S.":
			w.SYNACK++
		case strings.Contains(m[1], "S"):
			w.SYN++
		case strings.Contains(m[1], "R"):
			w.RST++
		}
	}
	if w.Packets == 0 && o.Exit != 0 && o.Exit != 124 {
		w.Fail = failure(o.both())
	}
	return w
}
