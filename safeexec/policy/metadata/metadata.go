// Package metadata recognises the addresses at which clouds hand instance
// secrets to whoever asks from inside a machine, however they are spelled.
//
// The services listen on link-local and a few well-known addresses; a reader
// of a URL would miss most ways to write one: decimal, hexadecimal, octal and
// short dotted forms, IPv4 inside IPv6 (mapped, compatible, NAT64, 6to4), a
// percent-encoded host, a name that a public resolver turns into the address.
package metadata

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// names are hosts that clouds resolve to their metadata service.
var names = map[string]bool{
	"metadata": true, "metadata.google.internal": true, "metadata.goog": true, "metadata.google": true,
	"instance-data": true, "instance-data.ec2.internal": true, "metadata.azure.internal": true,
	"metadata.azure.com": true, "metadata.packet.net": true, "metadata.platformequinix.com": true,
	"metadata.tencentyun.com": true, "metadata.oraclecloud.com": true, "metadata.ec2.internal": true,
	"metadata.service": true, "metadata.aliyun.com": true, "169.254.169.254.in-addr.arpa": true,
}

// addresses besides IPv4 link-local, which is treated as metadata as a whole.
var addresses = map[netip.Addr]bool{
	netip.MustParseAddr("100.100.100.200"): true, // Alibaba
	netip.MustParseAddr("168.63.129.16"):   true, // Azure wire server
	netip.MustParseAddr("192.0.0.192"):     true, // Oracle, older shapes
	netip.MustParseAddr("fd00:ec2::254"):   true, // AWS
	netip.MustParseAddr("fd00:ec2::23"):    true, // AWS, pod identity
	netip.MustParseAddr("fd20:ce::254"):    true, // Google
	netip.MustParseAddr("fd00:42::42"):     true, // Scaleway
}

var linkLocal = netip.MustParsePrefix("169.254.0.0/16")

// Host reports whether host, a name or an address without port, is a cloud
// metadata service or would be read as one by a client.
func Host(host string) bool {
	h := strings.ToLower(strings.Trim(host, "[]"))
	if strings.Contains(h, "%") {
		if u, err := url.PathUnescape(h); err == nil {
			h = u
		}
		if i := strings.IndexByte(h, '%'); i >= 0 {
			h = h[:i] // an IPv6 zone
		}
	}
	h = strings.TrimRight(h, ".")
	if names[h] || strings.HasSuffix(h, ".metadata.google.internal") {
		return true
	}
	if a, ok := ParseIP(h); ok {
		return addr(a)
	}
	return embeds(h)
}

func addr(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if addresses[a] || a.Is4() && linkLocal.Contains(a) {
		return true
	}
	if !a.Is6() {
		return false
	}
	b := a.As16()
	for _, at := range v4InV6(b) {
		v4 := netip.AddrFrom4([4]byte(b[at : at+4]))
		if linkLocal.Contains(v4) || addresses[v4] {
			return true
		}
	}
	return false
}

// v4InV6 lists where an IPv6 address may carry an IPv4 one.
func v4InV6(b [16]byte) []int {
	var at []int
	if b[0] == 0x20 && b[1] == 0x02 { // 6to4
		at = append(at, 2)
	}
	zero, translated := true, b[8] == 0xff && b[9] == 0xff && b[10] == 0 && b[11] == 0 // RFC 2765 section 2.1: ::ffff:0:a.b.c.d
	for i, x := range b[:10] {
		zero, translated = zero && x == 0, translated && (x == 0 || i >= 8)
	}
	nat64 := b[0] == 0 && b[1] == 0x64 && b[2] == 0xff && b[3] == 0x9b
	local := b[0] == 0xfe && b[1] == 0x80 // OpenStack answers at fe80::a9fe:a9fe
	isatap := b[8]&0xfd == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
	if zero || translated || nat64 || local || isatap {
		at = append(at, 12)
	}
	return at
}

// embeds finds a metadata address inside a name, as wildcard resolvers serve:
// 169.254.169.254.nip.io, 169-254-169-254.sslip.io, a9fea9fe.nip.io.
func embeds(h string) bool {
	for _, m := range []string{"169.254.169.254", "169-254-169-254", "a9fea9fe", "169.254.170.2", "169-254-170-2",
		"168.63.129.16", "168-63-129-16", "100.100.100.200", "100-100-100-200", "fd00-ec2--254"} {
		if strings.Contains(h, m) {
			return true
		}
	}
	return false
}

// ParseIP reads an address as the C library's inet_aton and inet_pton do:
// dotted with one to four parts, each decimal, octal or hexadecimal, or IPv6.
func ParseIP(s string) (netip.Addr, bool) {
	if strings.Contains(s, ":") {
		a, err := netip.ParseAddr(s)
		return a, err == nil
	}
	parts := strings.Split(s, ".")
	if len(parts) > 4 || s == "" {
		return netip.Addr{}, false
	}
	var v uint64
	for i, p := range parts {
		n, ok := part(p)
		room := uint(8)
		if i == len(parts)-1 {
			room = uint(8 * (5 - len(parts)))
		}
		if !ok || n >= 1<<room {
			return netip.Addr{}, false
		}
		v = v<<room | n
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true
}

func part(p string) (uint64, bool) {
	base := 10
	switch {
	case strings.HasPrefix(p, "0x") || strings.HasPrefix(p, "0X"):
		base, p = 16, p[2:]
		if p == "" {
			return 0, true
		}
	case len(p) > 1 && p[0] == '0':
		base, p = 8, p[1:]
	}
	n, err := strconv.ParseUint(p, base, 32)
	return n, err == nil
}

// credentialWords name the parts of metadata paths that return a credential.
var credentialWords = []string{
	"identity", "/iam", "service-accounts", "security-credentials", "goalstate", "vmsettings", "/ram/", "/cam/",
	"credentials", "/token", "oauth2", "ssh-keys", "hostingenvironmentconfig", "comp=certificates", "extensionsconfig",
	"/v2/credentials", "access_token", "accesstoken", "certificates",
}

// CredentialPath reports whether the path and query of a metadata address
// return a credential: a managed identity's token, an instance role, a service
// account, the goal state that carries the machine's certificates.
func CredentialPath(pathAndQuery string) bool {
	p := strings.ToLower(pathAndQuery)
	for range 3 { // encodings of encodings
		u, err := url.PathUnescape(p)
		if err != nil || u == p {
			break
		}
		p = strings.ToLower(u)
	}
	p = squeeze(p)
	for _, w := range credentialWords {
		if strings.Contains(p, w) {
			return true
		}
	}
	return false
}

// squeeze removes what servers ignore in a path: doubled slashes, "/./" and
// climbing, so that /latest/x/../iam reads as /latest/iam.
func squeeze(p string) string {
	path, query, _ := strings.Cut(p, "?")
	var out []string
	for _, seg := range strings.Split(path, "/") {
		switch seg {
		case "", ".":
		case "..":
			if len(out) > 0 {
				out = out[:len(out)-1]
			}
		default:
			out = append(out, seg)
		}
	}
	return "/" + strings.Join(out, "/") + "?" + query
}
