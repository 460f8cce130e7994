package read

import (
	"net/netip"
	"strconv"
	"strings"

	"ghostbot/agent/playbook/pattern"
)

// Socket is one row of ss or netstat.
type Socket struct {
	State string // LISTEN, ESTAB, ...; "" where the tool was told which
	RecvQ int    // of a listener: connections that wait to be accepted
	SendQ int    // of a listener: how many may wait; -1 where the tool does not say
	Local string // address without brackets and zone; "*" for any
	Port  int
	Peer  string
	PPort int
	Drops int // datagrams that found its buffer full, where the tool was asked for memory (-m)
}

// Full reports whether a listener's accept queue is full: Linux accepts one
// connection more than the backlog, and drops further SYNs when the queue
// exceeds it (net/ipv4/tcp_input.c: sk_acceptq_is_full).
func (s Socket) Full() bool { return s.SendQ >= 0 && s.RecvQ > 0 && s.RecvQ >= s.SendQ }

// Waiting reports whether connections wait to be accepted.
func (s Socket) Waiting() bool { return s.RecvQ > 0 }

// Any reports whether the socket is bound to every address.
func (s Socket) Any() bool { return s.Local == "*" || s.Local == "0.0.0.0" || s.Local == "::" }

// Serves reports whether what is sent to an address of this machine reaches the
// socket. "" is an unknown address, which may be any of the loopback ones. A name of
// this machine has two of them, and clients take either.
func (s Socket) Serves(ip string, hereName bool) bool {
	if hereName {
		ip = ""
	}
	at, err := netip.ParseAddr(ip)
	six := err == nil && at.Is6()
	switch {
	case s.Local == "*":
		return true
	case s.Local == "0.0.0.0":
		return !six
	case s.Local == "::": // ss prints * for a socket of both families, netstat does not tell
		return err != nil || six || s.SendQ < 0
	case hereName:
		return s.Local == "127.0.0.1" || s.Local == "::1"
	case ip == "":
		a, err := netip.ParseAddr(s.Local)
		return err == nil && a.IsLoopback()
	}
	return s.Local == ip
}

// Table is the sockets of one listing. Header says whether the tool printed its
// heading at all: without it "no rows" means nothing.
type Table struct {
	Header bool
	Rows   []Socket
}

// glued are states that some versions of ss print without a blank before the
// first figure when the output is not a terminal (iproute2 4.20).
var glued = pattern.New(`^((?:tcp|udp)?\s*)(LISTEN|ESTAB|UNCONN|SYN-SENT|SYN-RECV|CLOSE-WAIT|TIME-WAIT|LAST-ACK|CLOSING)(\d)`)

var dropped = pattern.New(`skmem:\([^)]*,d(\d{1,18})\)`)

// Sockets reads `ss` (any of -t, -u, -l, -n, with or without a state filter)
// and `netstat -an` of net-tools, busybox and BSD.
func Sockets(o Output) Table {
	var t Table
	for _, l := range lines(o.Stdout) {
		l = glued.ReplaceAllString(l, "$1$2 $3")
		if strings.Contains(l, "Recv-Q") || strings.HasPrefix(l, "Proto ") {
			t.Header = true
			continue
		}
		if s, ok := socket(strings.Fields(l)); ok && len(t.Rows) < 1000 {
			t.Rows = append(t.Rows, s)
		}
		if m := dropped.FindStringSubmatch(l); m != nil && len(t.Rows) > 0 {
			t.Rows[len(t.Rows)-1].Drops, _ = strconv.Atoi(m[1])
		}
	}
	return t
}

// socket reads one row: two figures, then the local and the peer address. ss
// puts the state before the figures, netstat after the addresses.
func socket(f []string) (Socket, bool) {
	i := 0
	for ; i < 3 && i+3 < len(f); i++ {
		rq, err1 := strconv.Atoi(f[i])
		sq, err2 := strconv.Atoi(f[i+1])
		if err1 == nil && err2 == nil {
			s := Socket{RecvQ: rq, SendQ: sq}
			s.Local, s.Port = address(f[i+2])
			s.Peer, s.PPort = address(f[i+3])
			netstat := i == 1 && (strings.HasPrefix(f[0], "tcp") || strings.HasPrefix(f[0], "udp"))
			switch {
			case netstat:
				s.SendQ = -1
				if len(f) > i+4 {
					s.State = f[i+4]
				}
			case i > 0:
				s.State = f[i-1]
			}
			return s, s.Local != ""
		}
	}
	return Socket{}, false
}

// address splits what tools print: 127.0.0.1:80, [::1]:80, :::80, *:80,
// 127.0.0.53%lo:53, and BSD's 127.0.0.1.80.
func address(s string) (host string, port int) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		i = strings.LastIndexByte(s, '.')
	}
	if i < 0 {
		return "", 0
	}
	host, _, _ = strings.Cut(s[:i], "%")
	host = strings.Trim(host, "[]")
	if host == "" {
		host = "*"
	}
	port, _ = strconv.Atoi(s[i+1:])
	return host, port
}

// Connection is what `nc -z -v` says about one host and port.
type Connection struct {
	OK   bool
	IP   string // the address, where the tool names it
	Fail Failure
}

var (
	ncOK = pattern.New(`(?i)succeeded!|\) open\b|\] \S+ \(\S+\) open|Ncat: Connected to|Connected to|\bopen$`)
	ncIP = pattern.New(`[\[(]([0-9A-Fa-f]*[:.][0-9A-Fa-f:.]+)[\])]|connect to ([0-9A-Fa-f]*[:.][0-9A-Fa-f:.]+) port|Connected to ([0-9A-Fa-f:.]+):\d+`)
)

// noIPv6 reports the traditional nc, which looks IPv6 addresses up as names.
func noIPv6(l string) bool {
	host, ok := strings.CutSuffix(l, ": forward host lookup failed: Unknown host")
	_, err := netip.ParseAddr(host)
	return ok && err == nil
}

// Connect reads nc in its OpenBSD, traditional, ncat, BSD and busybox forms.
// A name with several addresses gives one line each; one success decides.
func Connect(o Output) Connection {
	var c Connection
	for _, l := range lines(o.both()) {
		if m := ncIP.FindStringSubmatch(l); m != nil && !c.OK {
			c.IP = m[1] + m[2] + m[3]
		}
		switch {
		case ncOK.MatchString(strings.TrimSpace(l)):
			c.OK = true
		case noIPv6(l):
			c.Fail = Usage
		case !c.OK && c.Fail != Usage:
			if f := failure(l); f == Permission && strings.Contains(c.IP, ":") { // ICMPv6 "administratively prohibited" (Linux, net/ipv6/icmp.c)
				c.Fail = Prohibited
			} else if f != Other {
				c.Fail = f
			}
		}
	}
	switch {
	case c.OK || o.Exit == 0:
		c.OK, c.Fail = true, None
	case c.Fail == None:
		c.Fail = NoConnect
	}
	return c
}
