package tools

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ghostbot/safeexec/policy/metadata"
	"ghostbot/safeexec/policy/shellwords"
)

// value is a type of the tables. ok returns "" for a good value, otherwise
// what is expected, for people.
type value struct {
	what     string // what the value is, as in "a host"
	ok       func(v string) string
	negative bool   // the value may begin with a dash, as in --tail -1
	pattern  string // what it must match, for the manual; empty where words say it
}

// types are the simple types, by name.
var types = map[string]*value{
	"host":      is("a host name or an address", hostName),
	"unicast":   is("one host, neither multicast nor broadcast", unicast),
	"ip":        is("an IP address", address),
	"prefix":    is("an address or a prefix", prefix),
	"iface":     is("an interface name", match(`^[A-Za-z0-9_.:@-]{1,64}$`)),
	"port":      is("a port number or a service name", portShape),
	"ncport":    is("a port number or a service name that is no range of ports", ncPort),
	"server":    is("one host that is no cloud metadata service", func(v string) bool { return unicast(v) && !metadata.Host(v) }),
	"hostport":  is("host:port", hostPort),
	"name":      is("a plain name", match(`^[A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,252}$`)),
	"word":      is("a plain word", match(`^[A-Za-z0-9_.:,=/@%+~^-]{1,400}$`)),
	"list":      is("a list of plain names", match(`^[A-Za-z0-9_*][A-Za-z0-9_.,:%=+*-]{0,400}$`)),
	"hex":       is("a number", match(`^(0x[0-9a-fA-F]{1,32}|[0-9]{1,20})$`)),
	"text":      is("printable text", printable),
	"number":    is("a number", match(`^[0-9]{1,12}$`)),
	"dnsname":   is("a name or a record type other than a zone transfer", dnsWord),
	"rrtype":    is("a record type other than a zone transfer", rrType),
	"cert":      is("a certificate file (.pem, .crt, .cer, .der)", certFile),
	"castore":   is("a file or folder of the system's certificates", caStore),
	"url":       is("an http or https address without credentials, whose path neither acts nor opens settings or secrets", plainURL),
	"header":    is("a header that carries no credential", header),
	"curlform":  is("text with ordinary curl variables", curlFormat),
	"resolve":   is("host:port:address, not of a cloud metadata service", resolve),
	"connect":   is("host:port:host:port, not of a cloud metadata service", connectTo),
	"filter":    is("a filter expression", filterText),
	"field":     is("a field that carries no payload and no credential", captureField),
	"tap":       is("a statistic that prints no payload", tap),
	"protos":    is("protocols without payload or credentials", protocols),
	"path":      is("a path", match(`^/[A-Za-z0-9_./@:+-]{0,400}$`)),
	"time":      is("a point in time", match(`^[A-Za-z0-9_:. +-]{1,40}$`)),
	"sysctl":    is("a kernel setting that is no secret", sysctlKey),
	"whoisflag": is("the kind of object", match(`^(n|d|a|r|z|p|o|e|\+|=)$`)),
	"whois":     dashes(is("a name, an address, a prefix or an AS number", whoisQuery)),
	"hopto":     is("one host, neither multicast nor broadcast", func(v string) bool { h, port, ok := strings.Cut(v, "/"); return unicast(h) && (!ok || portShape(port)) }),
	"digword":   is("a name, a record type other than a zone transfer, or @server", digWord),
	"nsname":    is("a name or an address", hostName),
	"routeto":   is("an address", routeTo),
	"certstore": is("a certificate file or a folder of the system's certificates", func(v string) bool { return certFile(v) || caStore(v) }),
	"mac":       is("a hardware address", match(`^[0-9a-fA-F]{1,2}([:-][0-9a-fA-F]{1,2}){5}$`)),
}

// describe says for the manual what a value may be.
func (v *value) describe() string {
	if v.pattern != "" {
		return "text like `" + v.pattern + "`"
	}
	return v.what
}

func is(what string, good func(string) bool) *value {
	return &value{what: what, ok: func(v string) string {
		if good(v) {
			return ""
		}
		return "give " + what
	}}
}

// dashes allows values that begin with a dash.
func dashes(v *value) *value {
	v.negative = true
	return v
}

// match compiles pattern when it is first needed, as lazy does.
func match(pattern string) func(string) bool {
	re := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	return func(v string) bool { return re().MatchString(v) }
}

// value reads NAME or NAME(BOUNDS).
func (l *loader) value(s string) (*value, error) {
	if v := types[s]; v != nil {
		return v, nil
	}
	if s == "netdir" {
		return is("a folder of the kernel's network settings or of captures", l.cfg.netDir), nil
	}
	if s == "capture" {
		return is("a capture file (.pcap, .pcapng, .cap) or one in a configured folder", l.cfg.capture), nil
	}
	name, arg, ok := strings.Cut(s, "(")
	if !ok || !strings.HasSuffix(arg, ")") {
		return nil, fmt.Errorf("%q is no type", s)
	}
	return bounded(name, arg[:len(arg)-1])
}

func bounded(name, arg string) (*value, error) {
	switch name {
	case "int", "sec":
		lo, hi, err := bounds(arg)
		if err != nil {
			return nil, err
		}
		if name == "int" {
			return intBetween(lo, hi, arg), nil
		}
		return secondsBetween(lo, hi, arg), nil
	case "enum":
		return enum(strings.Split(arg, "|")), nil
	case "set":
		return set(strings.Split(arg, "|")), nil
	case "re":
		v := is("a value that is known to be harmless here", lazy(arg))
		v.pattern = arg
		return v, nil
	}
	return nil, fmt.Errorf("%q is no type", name)
}

// lazy compiles a pattern of a table when it is first needed: a start of the
// program needs few of them. A pattern that does not compile matches nothing.
func lazy(pattern string) func(string) bool {
	re := sync.OnceValue(func() *regexp.Regexp {
		r, err := regexp.Compile("^(?:" + pattern + ")$")
		if err != nil {
			return nil
		}
		return r
	})
	return func(v string) bool { r := re(); return r != nil && r.MatchString(v) }
}

func bounds(arg string) (lo, hi float64, err error) {
	a, b, ok := strings.Cut(arg, "..")
	if !ok {
		return 0, 0, fmt.Errorf("%q: two bounds are needed", arg)
	}
	if lo, err = strconv.ParseFloat(a, 64); err == nil {
		hi, err = strconv.ParseFloat(b, 64)
	}
	return lo, hi, err
}

func intBetween(lo, hi float64, arg string) *value {
	what := "a number from " + strings.Replace(arg, "..", " to ", 1)
	v := is(what, func(v string) bool {
		n, err := strconv.ParseInt(v, 10, 64)
		return err == nil && v[0] != '+' && float64(n) >= lo && float64(n) <= hi
	})
	v.negative = lo < 0
	return v
}

// secondsBetween accepts plain seconds and the suffixes ms, s, m and h.
func secondsBetween(lo, hi float64, arg string) *value {
	what := "seconds from " + strings.Replace(arg, "..", " to ", 1)
	return is(what, func(v string) bool {
		scale, digits := 1.0, v
		for suffix, f := range map[string]float64{"ms": 0.001, "s": 1, "m": 60, "h": 3600} {
			if d, ok := strings.CutSuffix(v, suffix); ok && d != "" && d[len(d)-1] >= '0' && d[len(d)-1] <= '9' {
				scale, digits = f, d
			}
		}
		if strings.Trim(digits, "0123456789.") != "" {
			return false
		}
		n, err := strconv.ParseFloat(digits, 64)
		return err == nil && n*scale >= lo && n*scale <= hi
	})
}

func enum(values []string) *value {
	known := map[string]bool{}
	for _, v := range values {
		known[v] = true
	}
	return is("one of "+some(values), func(v string) bool { return known[v] })
}

// some lists values for people, the first dozen.
func some(values []string) string {
	if len(values) > 12 {
		return strings.Join(values[:12], ", ") + " and others"
	}
	return strings.Join(values, ", ")
}

// set is a comma-separated list of known values.
func set(values []string) *value {
	one := enum(values)
	unknown := func(v string) bool { return one.ok(v) != "" }
	return is("some of "+some(values), func(v string) bool { return !slices.ContainsFunc(strings.Split(v, ","), unknown) })
}

var (
	hostShape = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)
	zone      = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,16}$`)
)

// address accepts an IP address; an IPv6 zone must look like an interface.
func address(v string) bool {
	a, z, zoned := strings.Cut(v, "%")
	ip, err := netip.ParseAddr(a)
	return err == nil && (!zoned || ip.Is6() && zone.MatchString(z))
}

// hostName accepts names as resolvers do (underscores included) and addresses,
// an IPv6 zone included. Labels longer than 63 exist in no zone.
func hostName(v string) bool {
	if strings.Contains(v, ":") {
		return address(v)
	}
	if len(v) > 253 || !hostShape.MatchString(v) {
		return false
	}
	for label := range strings.SplitSeq(v, ".") {
		if len(label) > 63 {
			return false
		}
	}
	return true
}

// unicast refuses groups: one request to them makes every host answer.
func unicast(v string) bool {
	if !hostName(v) {
		return false
	}
	a, _, _ := strings.Cut(v, "%")
	ip, ok := metadata.ParseIP(a)
	return !ok || !ip.Unmap().IsMulticast() && ip != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

var portShape = match(`^([0-9]{1,5}|[a-z][a-z0-9-]{0,30})$`)

// ncPort leaves out ranges: nc.traditional takes ftp-https for the ports from 21 to 443.
// Names with a hyphen are those whose second half is no service.
func ncPort(v string) bool {
	return portShape(v) && (!strings.Contains(v, "-") || hyphened[v])
}

var hyphened = wordSet(`afs3-callback afs3-fileserver bacula-dir bacula-fd bacula-sd cisco-sccp dhcpv6-client dhcpv6-server domain-s ftp-data ftps-data http-alt
 ipsec-nat-t iscsi-target iso-tsap jabber-client jabber-server kerberos-adm kerberos-master kerberos-sec microsoft-ds ms-sql-m ms-sql-s ms-wbt-server
 netbios-dgm netbios-ns netbios-ssn radius-acct sip-tls snmp-trap syslog-tls xmpp-client xmpp-server zabbix-agent zabbix-trapper`)

func prefix(v string) bool {
	if v == "default" || v == "any" || v == "all" {
		return true
	}
	if _, err := netip.ParsePrefix(v); err == nil {
		return true
	}
	return address(v) || match4(v)
}

// match4 accepts the short forms of iproute2, as in 10/8 and 10.1.
var match4 = match(`^[0-9]{1,3}(\.[0-9]{1,3}){0,3}(/[0-9]{1,2})?$`)

func hostPort(v string) bool {
	i := strings.LastIndexByte(v, ':')
	if i <= 0 {
		return hostName(v)
	}
	return portShape(v[i+1:]) && hostName(strings.Trim(v[:i], "[]"))
}

func printable(v string) bool { return len(v) <= 2000 && shellwords.Printable(v) }

// transfers are the record types that copy a zone, by name and by number, and kdig's NOTIFY, which
// makes a secondary ask for one.
var transfers = regexp.MustCompile(`(?i)^(axfr|ixfr(=.*)?|(type)?0*25[1-4]|maila|mailb|notify(=.*)?)$`)

func rrType(v string) bool {
	return len(v) < 24 && !transfers.MatchString(v) && wordShape(v)
}

var wordShape = match(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)
var dnsShape = match(`^[A-Za-z0-9_.*/-]{1,253}$`)

func dnsWord(v string) bool {
	return !transfers.MatchString(v) && (dnsShape(v) || hostName(v))
}

// cleanAbs reports a path without climbing, outside the kernel's folders.
func cleanPath(v string) bool {
	if v == "" || !printable(v) || strings.HasPrefix(v, "//") || within(v, kernelFolders) {
		return false
	}
	return v[0] != '-' && v[0] != '~' && !strings.Contains("/"+v+"/", "/../")
}

var kernelFolders = []string{"/proc", "/sys", "/dev", "/run/secrets", "/var/run/secrets"}

// capture accepts files with a capture's suffix and files below the
// configured folders.
func (c Config) capture(v string) bool {
	if !cleanPath(v) {
		return false
	}
	dir, _ := path.Split(path.Clean(v))
	if within(path.Clean(dir), c.folders()) {
		return true
	}
	plain := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(v, ".age"), ".gz"), ".zst")
	return captureSuffixes[path.Ext(plain)] && path.Base(plain)[0] != '.' && !strings.Contains(v, "/.")
}

var captureSuffixes = map[string]bool{".pcap": true, ".pcapng": true, ".cap": true, ".ntar": true, ".dmp": true}

// netDir accepts folders whose names say nothing but the network's shape.
func (c Config) netDir(v string) bool {
	return dirShape(v) && !strings.Contains(v, "..") && (within(path.Clean(v), netFolders) || within(path.Clean(v), c.folders()))
}

var netFolders = []string{"/sys/class/net", "/proc/net", "/proc/sys/net", "/run/netns", "/var/run/netns"}

// folders are the configured ones that are absolute and not the whole disk.
func (c Config) folders() []string {
	var out []string
	for _, d := range c.CaptureDirs {
		if d = path.Clean(d); path.IsAbs(d) && d != "/" {
			out = append(out, d)
		}
	}
	return out
}

var dirShape = match(`^/[A-Za-z0-9_./:@ -]{1,300}$`)

func certFile(v string) bool {
	if !cleanPath(v) || strings.Contains(v, ":") || strings.Contains(v, "/.") || strings.Contains(v, "private") || strings.Contains(v, "key") {
		return false
	}
	return certSuffixes[path.Ext(v)]
}

var certSuffixes = map[string]bool{".pem": true, ".crt": true, ".cer": true, ".der": true, ".cert": true}

// caFolders are the folders where distributions keep public certificates.
var caFolders = []string{"/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/usr/share/ca-certificates",
	"/usr/local/share/ca-certificates", "/etc/ca-certificates", "/etc/ssl/cert.pem", "/usr/share/pki"}

func caStore(v string) bool {
	return cleanPath(v) && !strings.Contains(v, "private") && within(v, caFolders)
}

// within reports a path that is one of some folders or below one.
func within(p string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return p == f || strings.HasPrefix(p, f+"/") })
}

// filterText is a capture or display filter: text for a compiler of its own.
func filterText(v string) bool { return printable(v) && v != "" && v[0] != '-' && v[0] != '@' }

// sysctlKey refuses assignments, the IPv6 stable secrets, and folders or
// patterns that take them in.
func sysctlKey(v string) bool {
	if !sysctlShape(v) {
		return false
	}
	separator := "."
	if i := strings.IndexAny(v, "./"); i >= 0 && v[i] == '/' { // sysctl(8): then a dot is part of a name
		separator = "/"
	}
	parts := strings.Split(strings.Trim(v, "./"), separator)
	last := parts[len(parts)-1]
	if strings.Contains(last, "secret") || strings.HasSuffix(last, "_key") || strings.ContainsAny(last, "*?[") && strings.Contains(v, "ipv6") {
		return false
	}
	if len(parts) < 2 || strings.ContainsAny(parts[0], "*?[") || strings.ContainsAny(parts[1], "*?[") {
		return false
	}
	if parts[0] == "net" && parts[1] == "ipv6" {
		return len(parts) >= 5 || len(parts) >= 3 && parts[2] != "conf" && !strings.ContainsAny(parts[2], "*?[")
	}
	return true
}

var sysctlShape = match(`^[a-z0-9][a-z0-9_./*?-]{1,120}$`)

// whoisQuery accepts what registries are asked for; free text could carry
// anything to any server.
func whoisQuery(v string) bool { return len(v) <= 253 && whoisShape(v) }

var whoisShape = match(`^ ?(-[a-zA-Z]( [a-z-]+)? )*((n|d|a|r|z|p|o|domain|net|as) (\+ |= )?)?` +
	`([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+\.?|[0-9a-fA-F]*:[0-9a-fA-F:.]+(/[0-9]{1,3})?|[0-9]{1,3}(\.[0-9]{1,3}){1,3}(/[0-9]{1,2})?|` +
	`(AS|as)[0-9]{1,10}|AS-[A-Z0-9-]{1,30}|RS-[A-Z0-9-]{1,30}|![a-z0-9]{1,3}[A-Za-z0-9:./-]{1,40})$`)

// digWord is one operand of dig: @server, a name, a type or a class.
func digWord(v string) bool {
	if server, ok := strings.CutPrefix(v, "@"); ok {
		return hostName(server)
	}
	return dnsWord(v)
}

func routeTo(v string) bool { return prefix(v) || hostName(v) }
