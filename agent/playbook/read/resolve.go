package read

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ghostbot/agent/playbook/pattern"
)

// Answer is what a resolver said about a name.
type Answer struct {
	Status  string   // NOERROR, NXDOMAIN, SERVFAIL, REFUSED, ...; "" without an answer
	Fail    Failure  // why there was no answer from the server itself
	Addrs   []string // addresses in the answer, in order
	Alias   string   // target of a CNAME without an address
	Zone    string   // owner of the SOA in the authority section
	Server  string   // who answered, host#port as dig prints it
	Took    int      // milliseconds; -1 when not said
	Warning string   // one remark of the tool, such as recursion not available
	Cut     bool     // the answer over UDP was truncated (RFC 1035 4.1.1), and TCP was asked
	Asked   []string // servers that did not answer, host or host#port
	EDE     string   // the server's own reason for a failure (RFC 8914), as in "22 (No Reachable Authority)"
}

// Resolved reports whether the name has an address.
func (a Answer) Resolved() bool { return len(a.Addrs) > 0 }

var (
	digStatus = pattern.New(`->>HEADER<<-.*status: ([A-Z0-9]+)`)
	digServer = pattern.New(`^;; SERVER: (\S+)`)
	digEDE    = pattern.New(`^; EDE:? (\d{1,5})(?: \(([A-Za-z0-9 /-]{1,60})\))?`)
	digTime   = pattern.New(`^;; Query time: (\d+) ([mu])sec`)
	digRecord = pattern.New(`^(\S+)\s+(\d+)\s+(?:IN|CH)\s+([A-Z0-9]+)\s+(.+)$`)
	digComm   = pattern.New(`(?i)communications error to (\S+): (.+)$|connection timed out; no servers could be reached|no servers could be reached|connection refused|couldn't get address for|host unreachable|network unreachable`)
)

// Dig reads dig 9.10 to 9.20.
func Dig(o Output) Answer {
	a := Answer{Took: -1}
	section := ""
	for _, l := range lines(o.both()) {
		switch {
		case digStatus.MatchString(l):
			a.Status = digStatus.FindStringSubmatch(l)[1]
		case strings.HasPrefix(l, ";; ") && strings.HasSuffix(l, "SECTION:"):
			section = strings.Fields(l)[1]
		case a.EDE == "" && digEDE.MatchString(l):
			m := digEDE.FindStringSubmatch(l)
			if a.EDE = m[1]; m[2] != "" {
				a.EDE += " (" + m[2] + ")"
			}
		case strings.HasPrefix(l, ";; Truncated, retrying in TCP"):
			a.Cut = true
		case digServer.MatchString(l):
			a.Server, _, _ = strings.Cut(digServer.FindStringSubmatch(l)[1], "(")
		case digTime.MatchString(l):
			a.Took = digMillis(digTime.FindStringSubmatch(l))
		case strings.Contains(l, "recursion requested but not available"):
			a.Warning = "recursion not available"
		case digRecord.MatchString(l):
			a.record(section, digRecord.FindStringSubmatch(l))
		case a.Status == "" && digComm.MatchString(l):
			a.unanswered(l)
		}
	}
	if a.Status != "" {
		a.Fail = None
	} else if a.Fail == None {
		a.Fail = digExit(o)
	}
	return a
}

func digMillis(m []string) int {
	n, _ := strconv.Atoi(m[1])
	if m[2] == "u" {
		n /= 1000
	}
	return n
}

func (a *Answer) unanswered(l string) {
	if m := digComm.FindStringSubmatch(l); m != nil && m[1] != "" && len(a.Asked) < 4 {
		if s := strings.TrimSuffix(m[1], "#53"); !slices.Contains(a.Asked, s) {
			a.Asked = append(a.Asked, s)
		}
	}
	f := failure(l)
	if strings.Contains(l, "couldn't get address for") {
		f = Unresolved
	}
	if f == Other || a.Fail != None && f == Silent {
		f = Silent
	}
	if a.Fail == None || a.Fail == Silent {
		a.Fail = f
	}
}

// digExit: 9 is "no reply from server" (dig's manual, RETURN CODES).
func digExit(o Output) Failure {
	switch {
	case o.Exit == 9:
		return Silent
	case o.Exit == 1:
		return Usage
	}
	return failure(o.both())
}

func (a *Answer) record(section string, m []string) {
	value := strings.TrimSuffix(strings.TrimSpace(m[4]), ".")
	switch {
	case section == "AUTHORITY" && m[3] == "SOA":
		a.Zone = strings.TrimSuffix(m[1], ".")
	case section == "ADDITIONAL" || section == "AUTHORITY":
	case m[3] == "A" || m[3] == "AAAA":
		a.addr(value)
	case m[3] == "CNAME":
		a.Alias = value
	}
}

func (a *Answer) addr(s string) {
	if _, err := netip.ParseAddr(s); err == nil && len(a.Addrs) < 32 {
		a.Addrs = append(a.Addrs, s)
	}
}

var (
	lookupStatus = pattern.New(`\b(NXDOMAIN|SERVFAIL|REFUSED|NOTIMP|FORMERR|NOTAUTH)\b`)
	lookupAddr   = pattern.New(`(?i)^(?:Address(?: \d+)?:\s*|\S+ has (?:IPv6 )?address )([0-9a-f:.]+)`)
	lookupAlias  = pattern.New(`canonical name = (\S+?)\.?$|is an alias for (\S+?)\.?$`)
)

// Lookup reads nslookup (BIND and busybox) and host.
func Lookup(o Output) Answer {
	a := Answer{Took: -1}
	server := true // the first address block of nslookup and host is the server's
	for _, l := range lines(o.both()) {
		l = strings.TrimSpace(l)
		switch {
		case strings.Contains(l, "SERVER:") || strings.HasPrefix(l, "Server:") || strings.HasPrefix(l, "Using domain server"):
			server = true
		case strings.HasPrefix(l, "Name:") && !strings.HasPrefix(l, "Name: 127.") || strings.HasPrefix(l, "Non-authoritative"):
			server = false
		case lookupAddr.MatchString(l):
			if s := lookupAddr.FindStringSubmatch(l)[1]; !strings.Contains(l, "#") && (!server || strings.Contains(l, " has ")) {
				a.addr(s)
			}
		case lookupAlias.MatchString(l):
			m := lookupAlias.FindStringSubmatch(l)
			a.Alias = m[1] + m[2]
		case lookupStatus.MatchString(l):
			a.Status = strings.ToUpper(lookupStatus.FindStringSubmatch(l)[1])
		case strings.Contains(l, "No answer") || strings.Contains(l, "has no A record"):
			a.Status = "NOERROR"
		case strings.Contains(l, "can't resolve") || strings.Contains(l, "can't find"):
			a.Fail = Unresolved
		case digComm.MatchString(l):
			a.unanswered(l)
		}
		if l == "" {
			server = false
		}
	}
	switch {
	case a.Resolved():
		a.Status, a.Fail = "NOERROR", None
	case a.Status != "":
		a.Fail = None
	case a.Fail == None && o.Exit == 0: // host prints nothing for a name without addresses
		a.Status = "NOERROR"
	case a.Fail == None:
		a.Fail = failure(o.both())
	}
	return a
}

// Getent reads `getent ahosts NAME`: what programs on this machine see, files
// and name servers together. Exit 2 is "not found" (getent's manual).
func Getent(o Output) Answer {
	a := Answer{Took: -1}
	seen := map[string]bool{}
	for _, l := range lines(o.Stdout) {
		if f := strings.Fields(l); len(f) > 1 && !seen[f[0]] {
			seen[f[0]] = true
			a.addr(f[0])
		}
	}
	switch {
	case a.Resolved():
		a.Status = "NOERROR"
	case o.Exit == 2:
		a.Fail = Unresolved
	default:
		a.Fail = Other
	}
	return a
}
