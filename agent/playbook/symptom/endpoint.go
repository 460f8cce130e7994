package symptom

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"ghostbot/agent/playbook/pattern"
)

// Endpoint is a place on the network. Make one with [ParseEndpoint] or get one
// from [Parse]; then [Endpoint.Valid] holds, which means that every part may be
// put on a command line as (part of) one argument: no part begins with a dash,
// and the alphabet has no blanks, quotes, shell characters or non-ASCII.
type Endpoint struct {
	Scheme string // http, https, tcp, udp, or "" when the text does not say
	Host   string // name or address, without brackets, with zone
	Port   int    // 0 when the text does not say
	Path   string // of a URL; "" or starting with /

	Guessed bool   // the text does not say the scheme
	Usual   string // the service that the text names instead of a port, which is its usual one
	Left    string // why the path that the text has is left out; "" when it is not
}

var (
	label  = pattern.New(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)
	number = pattern.New(`^([0-9]+|0[xX][0-9a-fA-F]*)$`)
	zoneID = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,15}$`)
	path   = pattern.New(`^(/[A-Za-z0-9/._~%?&=+,:@-]{0,199})?$`)
	secret = pattern.New(`(?i)(token|secret|sig|signature|pass|passwd|password|auth|session|jwt|key|code|credential|sas)=|=[^&]{33}`)
)

// Valid reports whether every part of e has its form and e is not a place that
// is never probed (cloud metadata, link-local addresses of metadata services).
func (e Endpoint) Valid() bool {
	switch e.Scheme {
	case "", "http", "https", "tcp", "udp":
	default:
		return false
	}
	return ValidHost(e.Host) && !forbidden(e.Host) && e.Port >= 0 && e.Port <= 65535 && path.MatchString(e.Path)
}

// ValidHost reports whether h is an address or a host name in its canonical
// alphabet. Names whose last label is a number are refused (RFC 1123 2.1 leaves
// them to addresses, and programs read "2130706433" or "0x7f.1" as addresses).
func ValidHost(h string) bool {
	if a, err := netip.ParseAddr(h); err == nil {
		return a.Zone() == "" || zoneID.MatchString(a.Zone())
	}
	h = strings.TrimSuffix(h, ".")
	if h == "" || len(h) > 253 {
		return false
	}
	labels := strings.Split(h, ".")
	for _, l := range labels {
		if !label.MatchString(l) {
			return false
		}
	}
	return !number.MatchString(labels[len(labels)-1])
}

// metadata are addresses of cloud metadata and wire services: asking them can
// hand out credentials, whoever names them.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("192.0.0.192/32"),
	netip.MustParsePrefix("fd00:ec2::/32"),
	netip.MustParsePrefix("fd20:ce::254/128"),
	netip.MustParsePrefix("0.0.0.0/32"),
	netip.MustParsePrefix("::/128"),
}

var metadataName = pattern.New(`(?i)(^|\.)metadata(\.|$)|169[.-]254[.-]169|instance-data|a9fea9fe|168[.-]63[.-]129|\bec2\.internal$`)

func forbidden(h string) bool {
	a, err := netip.ParseAddr(h)
	if err != nil {
		return metadataName.MatchString(h)
	}
	a = embedded(a.WithZone(""))
	for _, p := range metadata {
		if p.Contains(a) {
			return true
		}
	}
	return a.IsMulticast()
}

// embedded returns the IPv4 address inside an IPv4-mapped, NAT64 or 6to4
// address, so that no spelling of a metadata address passes.
func embedded(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if !a.Is6() {
		return a
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a), netip.MustParsePrefix("::/96").Contains(a) && a != netip.IPv6LinkLocalAllNodes() && !a.IsLoopback():
		return netip.AddrFrom4([4]byte(b[12:]))
	case b[0] == 0x20 && b[1] == 0x02:
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a
}

// Addr returns the address when the host is one.
func (e Endpoint) Addr() (netip.Addr, bool) {
	a, err := netip.ParseAddr(e.Host)
	return a, err == nil
}

// IsName reports whether the host is a name that must be resolved.
func (e Endpoint) IsName() bool {
	_, is := e.Addr()
	return !is && e.Host != "" && !hereName(e.Host)
}

// hereName reports the names of this machine (RFC 6761 6.3, Debian's hosts file).
func hereName(h string) bool {
	switch strings.ToLower(strings.TrimSuffix(h, ".")) {
	case "localhost", "localhost6", "ip6-localhost", "ip6-loopback", "localhost.localdomain":
		return true
	}
	return strings.HasSuffix(strings.ToLower(h), ".localhost")
}

// Loopback reports whether the host is this machine whatever its tables say.
func (e Endpoint) Loopback() bool {
	a, is := e.Addr()
	return is && a.IsLoopback() || hereName(e.Host)
}

// String is host:port, with brackets where they are needed, or the host alone.
func (e Endpoint) String() string {
	if e.Port == 0 {
		return e.Host
	}
	return net.JoinHostPort(e.Host, strconv.Itoa(e.Port))
}

// Same reports whether both mean the same host and port.
func (e Endpoint) Same(o Endpoint) bool {
	return strings.EqualFold(strings.TrimSuffix(e.Host, "."), strings.TrimSuffix(o.Host, ".")) && e.Port == o.Port
}

// TLS reports whether the endpoint is spoken to with TLS.
func (e Endpoint) TLS() bool { return e.Scheme == "https" }

// HTTP reports whether a web request makes sense.
func (e Endpoint) HTTP() bool { return e.Scheme == "http" || e.Scheme == "https" }

// URL is the address of a request to e.
func (e Endpoint) URL() string {
	host := e.Host
	if strings.Contains(host, ":") {
		host = "[" + strings.ReplaceAll(host, "%", "%25") + "]"
	}
	if e.Port != 0 && (e.Scheme != "http" || e.Port != 80) && (e.Scheme != "https" || e.Port != 443) {
		host += ":" + strconv.Itoa(e.Port)
	}
	p := e.Path
	if p == "" {
		p = "/"
	}
	return e.Scheme + "://" + host + p
}

// notHTTP are well-known ports whose servers do not speak HTTP.
var notHTTP = map[int]bool{
	21: true, 22: true, 23: true, 25: true, 53: true, 110: true, 143: true, 389: true, 465: true, 587: true, 636: true,
	993: true, 995: true, 1433: true, 1521: true, 1883: true, 3306: true, 3389: true, 5432: true, 5433: true, 5671: true,
	5672: true, 6379: true, 6380: true, 9042: true, 9092: true, 11211: true, 26379: true, 27017: true,
}

// guess fills in scheme and port where the text does not say: ports that end in
// 443 and texts about certificates mean TLS, well-known ports of other
// protocols mean a bare connection, everything else is asked as HTTP.
func (e Endpoint) guess(certificate bool) Endpoint {
	if e.Scheme == "" {
		e.Guessed = true
		switch {
		case e.Port == 0 && e.IsName(), e.Port%1000 == 443, certificate && !notHTTP[e.Port] && e.Port != 80:
			e.Scheme = "https"
		case e.Port == 0:
			return e
		case notHTTP[e.Port]:
			e.Scheme, e.Path = "tcp", ""
		default:
			e.Scheme = "http"
		}
	}
	if e.Port == 0 {
		switch e.Scheme {
		case "https":
			e.Port = 443
		case "http":
			e.Port = 80
		}
	}
	return e
}

// services are those whose port is hardly ever another one.
var services = map[string]struct {
	name, scheme string
	port         int
}{
	"ssh": {"SSH", "tcp", 22}, "sftp": {"SSH", "tcp", 22}, "scp": {"SSH", "tcp", 22}, "ntp": {"NTP", "udp", 123}, "ntpd": {"NTP", "udp", 123}, "sntp": {"NTP", "udp", 123},
	"chrony": {"NTP", "udp", 123}, "chronyd": {"NTP", "udp", 123}, "smtp": {"SMTP", "tcp", 25}, "ldap": {"LDAP", "tcp", 389}, "snmp": {"SNMP", "udp", 161}, "rdp": {"RDP", "tcp", 3389},
}

var serviceWord = pattern.New(`(?i)\b(?:ssh|sftp|scp|s?ntpd?|chronyd?|smtp|ldap|snmp|rdp)\b`)

// usual fills in the port that a service is expected at.
func (e Endpoint) usual(word string) Endpoint {
	if s, ok := services[strings.ToLower(word)]; ok {
		e.Scheme, e.Port, e.Path, e.Usual = s.scheme, s.port, "", s.name
	}
	return e
}

// schemes maps what URLs say to how the endpoint is asked, with the port that
// the scheme implies.
var schemes = map[string]struct {
	as   string
	port int
}{
	"http": {"http", 80}, "https": {"https", 443}, "ws": {"http", 80}, "wss": {"https", 443},
	"tcp": {"tcp", 0}, "grpc": {"tcp", 0}, "redis": {"tcp", 6379}, "rediss": {"tcp", 6380}, "postgres": {"tcp", 5432},
	"postgresql": {"tcp", 5432}, "mysql": {"tcp", 3306}, "amqp": {"tcp", 5672}, "amqps": {"tcp", 5671},
	"mongodb": {"tcp", 27017}, "ldap": {"tcp", 389}, "ldaps": {"tcp", 636}, "kafka": {"tcp", 9092}, "nats": {"tcp", 4222},
	"ssh": {"tcp", 22}, "smtp": {"tcp", 25}, "ftp": {"tcp", 21}, "memcached": {"tcp", 11211}, "mqtt": {"tcp", 1883},
	"dns": {"", 53}, "udp": {"udp", 0},
}

// ParseEndpoint reads one URL, address, host:port or name. User names and
// passwords of URLs are dropped, and so are queries that look like they carry a
// secret.
func ParseEndpoint(s string) (Endpoint, bool) {
	var e Endpoint
	if before, _, is := strings.Cut(s, "://"); is {
		sch, known := schemes[strings.ToLower(before)]
		u, err := url.Parse(s)
		if !known || err != nil || u.Hostname() == "" {
			return Endpoint{}, false
		}
		e = Endpoint{Scheme: sch.as, Host: u.Hostname(), Port: sch.port}
		if e.HTTP() {
			e.Path, e.Left = safePath(u)
		}
		if u.Port() != "" {
			e.Port = atoi(u.Port())
		}
	} else {
		e = hostPort(s)
	}
	e.Host = strings.ToLower(strings.TrimSuffix(e.Host, "."))
	return e, e.Valid()
}

// atoi reads a port; what is none becomes -1, which is not valid.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || len(s) > 5 {
		return -1
	}
	return n
}

func hostPort(s string) Endpoint {
	if _, err := netip.ParseAddr(s); err == nil {
		return Endpoint{Host: s}
	}
	if inner, is := strings.CutPrefix(s, "["); is {
		host, rest, ok := strings.Cut(inner, "]")
		switch {
		case !ok:
		case rest == "":
			return Endpoint{Host: host}
		case rest[0] == ':':
			return Endpoint{Host: host, Port: atoi(rest[1:])}
		}
		return Endpoint{}
	}
	host, port, is := strings.Cut(s, ":")
	if !is {
		return Endpoint{Host: host}
	}
	return Endpoint{Host: host, Port: atoi(port)}
}

// Why a path is left out, as a clause.
const (
	leftSigns  = "it has characters that are never put on a command line"
	leftLong   = "it is longer than 200 characters"
	leftSecret = "its query looks as if it carried a secret"
)

// safePath is the part of a path that may be asked for, and why it is not all.
func safePath(u *url.URL) (p, left string) {
	p = u.EscapedPath()
	switch {
	case u.RawQuery == "":
	case secret.MatchString(u.RawQuery):
		left = leftSecret
	case len(u.RawQuery) > 80:
		left = leftLong
	default:
		p += "?" + u.RawQuery
	}
	switch {
	case path.MatchString(p):
	case len(p) > 200:
		p, left = "", leftLong
	default:
		p, left = "", leftSigns
	}
	if p == "/" {
		p = ""
	}
	return p, left
}

// Guess fills in what an endpoint leaves open, as for one that people name.
func Guess(e Endpoint) Endpoint { return e.guess(false) }

// LoopbackIP reports an address of the loopback interface.
func LoopbackIP(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.IsLoopback()
}

// SelfIP reports an address that is whatever machine asks. Connections to the
// unspecified one go to the machine itself (Linux, ip(7)).
func SelfIP(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && (a.IsLoopback() || a.IsUnspecified())
}
