package anonymize

import (
	"net/netip"
	"strings"
)

// kind is what was found.
type kind uint8

const (
	address kind = iota
	prefix
	hardware
	resource
)

// found is a part of a text that is hidden. value is its canonical form: two
// spellings of one thing have one.
type found struct {
	start, end int
	kind       kind
	value      string
}

// maxRun bounds what is read as one address, with its zone and length.
const maxRun = 80

// find lists what is hidden in text, in order.
func find(text string) []found {
	var out []found
	for i := 0; i < len(text); {
		f, ok := at(text, i)
		switch {
		case ok:
			out = append(out, f)
			i = f.end
		case wordByte(text[i]):
			for i < len(text) && wordByte(text[i]) {
				i++
			}
		default:
			i++
		}
	}
	return out
}

func wordByte(c byte) bool { return digit(c) || c == '_' || letter(c) }
func digit(c byte) bool    { return c >= '0' && c <= '9' }
func letter(c byte) bool   { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func hexByte(c byte) bool  { return digit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// at looks for something that begins at i.
func at(text string, i int) (found, bool) {
	c := text[i]
	switch {
	case c == '/':
		return resourceID(text, i)
	case i > 0 && text[i-1] == '.', !hexByte(c) && (!strings.HasPrefix(text[i:], "::") || i > 0 && wordByte(text[i-1])):
		return found{}, false
	}
	for _, look := range [...]func(string, int) (found, bool){hardwareAddress, dotted, dashed, colons, nibbles} {
		if f, ok := look(text, i); ok {
			return f, true
		}
	}
	return found{}, false
}

// ends says whether nothing of a longer word follows at i.
func ends(text string, i int) bool { return i >= len(text) || !wordByte(text[i]) }

// hides says whether an address is one of the inside.
func hides(ip netip.Addr) bool {
	ip = ip.Unmap()
	if ip.Is4() {
		return ip.IsPrivate() || shared.Contains(ip)
	}
	return !ip.IsLoopback() && !ip.IsUnspecified() && !ip.IsMulticast()
}

var shared = netip.MustParsePrefix("100.64.0.0/10")

// quad reads four decimal parts from i that sep separates.
func quad(text string, i int, sep byte) (ip netip.Addr, end int, ok bool) {
	var parts [4]byte
	for n := range parts {
		v, from := 0, i
		for i < len(text) && i-from < 3 && digit(text[i]) {
			v = v*10 + int(text[i]-'0')
			i++
		}
		if i == from || v > 255 || i-from > 1 && text[from] == '0' {
			return ip, 0, false
		}
		parts[n] = byte(v)
		if n < 3 {
			if i >= len(text) || text[i] != sep {
				return ip, 0, false
			}
			i++
		}
	}
	return netip.AddrFrom4(parts), i, ends(text, i)
}

// dotted finds 10.0.0.5, 10.0.0.5/8, 10.0.0.5.443 as tcpdump writes a port, and
// 5.0.0.10.in-addr.arpa. More numbers behind it make a version of it.
func dotted(text string, i int) (found, bool) {
	ip, end, ok := quad(text, i, '.')
	if !ok {
		return found{}, false
	}
	const reverse = ".in-addr.arpa"
	if rest := text[end:]; len(rest) >= len(reverse) && strings.EqualFold(rest[:len(reverse)], reverse) {
		b := ip.As4()
		ip = netip.AddrFrom4([4]byte{b[3], b[2], b[1], b[0]})
		return found{i, end + len(reverse), address, ip.String()}, hides(ip)
	}
	if k := end; k+1 < len(text) && text[k] == '.' && digit(text[k+1]) {
		for k++; k < len(text) && digit(text[k]); k++ {
		}
		if k-end > 6 || k+1 < len(text) && text[k] == '.' && digit(text[k+1]) || !ends(text, k) {
			return found{}, false
		}
	}
	if !hides(ip) {
		return found{}, false
	}
	return sized(text, i, end, ip), true
}

// sized adds the length of a prefix that follows an address.
func sized(text string, start, end int, ip netip.Addr) found {
	if end < len(text) && text[end] == '/' {
		k := end + 1
		for k < len(text) && k-end < 4 && digit(text[k]) {
			k++
		}
		if p, err := netip.ParsePrefix(ip.WithZone("").String() + text[end:k]); err == nil && p == p.Masked() && p.Bits() < ip.BitLen() && ends(text, k) {
			return found{start, k, prefix, p.String()}
		}
	}
	return found{start, end, address, ip.Unmap().WithZone("").String()}
}

// dashed finds 10-0-0-5, as in the names that clouds and clusters give.
func dashed(text string, i int) (found, bool) {
	ip, end, ok := quad(text, i, '-')
	if !ok || end < len(text) && text[end] == '-' && end+1 < len(text) && digit(text[end+1]) || !hides(ip) {
		return found{}, false
	}
	return found{i, end, address, ip.String()}, true
}

// colons finds an IPv6 address, with an IPv4 one in it, a zone, or a port
// behind a dot as tcpdump writes it.
func colons(text string, i int) (found, bool) {
	end, stop := i, min(len(text), i+maxRun)
	for end < stop && (hexByte(text[end]) || text[end] == ':' || text[end] == '.') {
		end++
	}
	if strings.Count(text[i:end], ":") < 2 || !ends(text, end) || i > 0 && text[i-1] == ':' {
		return found{}, false
	}
	for _, cut := range [...]string{".:", ""} {
		run := strings.TrimRight(text[i:end], cut)
		if strings.HasSuffix(text[i:end], "::") && cut != "" {
			run = text[i:end]
		}
		if dot := strings.LastIndexByte(run, '.'); dot > 0 && strings.Count(run, ".") == 1 {
			run = run[:dot]
		}
		ip, err := netip.ParseAddr(run)
		if err != nil || len(run) == 23 && grouped(run, 2, ':') { // eight bytes of a fingerprint
			continue
		}
		if !hides(ip) {
			return found{}, false
		}
		return sized(text, i, i+len(run), ip), true
	}
	return found{}, false
}

// nibbles finds the name of an IPv6 address in the reverse zone.
func nibbles(text string, i int) (found, bool) {
	const zone, length = ".ip6.arpa", 63
	if len(text)-i < length+len(zone) || !strings.EqualFold(text[i+length:i+length+len(zone)], zone) {
		return found{}, false
	}
	var b [32]byte
	for k := range 32 {
		c := text[i+2*k]
		if !hexByte(c) || k < 31 && text[i+2*k+1] != '.' {
			return found{}, false
		}
		b[31-k] = c
	}
	var s strings.Builder
	for k := 0; k < 32; k += 4 {
		if k > 0 {
			s.WriteByte(':')
		}
		s.Write(b[k : k+4])
	}
	ip, err := netip.ParseAddr(s.String())
	if err != nil || !hides(ip) {
		return found{}, false
	}
	return found{i, i + length + len(zone), address, ip.String()}, true
}

// hardwareAddress finds 00:0d:3a:12:4f:8b, with dashes, and 000d.3a12.4f8b.
func hardwareAddress(text string, i int) (found, bool) {
	for _, f := range [...]struct {
		group int
		sep   string
	}{{2, ":"}, {2, "-"}, {4, "."}} {
		end := i + 12 + (12/f.group - 1)
		if end > len(text) || !ends(text, end) || end < len(text) && text[end] == f.sep[0] && end+1 < len(text) && hexByte(text[end+1]) {
			continue
		}
		digits := strings.ReplaceAll(text[i:end], f.sep, "")
		if len(digits) != 12 || strings.Trim(digits, "0123456789abcdefABCDEF") != "" || !grouped(text[i:end], f.group, f.sep[0]) {
			continue
		}
		v := strings.ToLower(digits)
		return found{i, end, hardware, v}, v != "ffffffffffff" && v != "000000000000" && (i == 0 || text[i-1] != ':')
	}
	return found{}, false
}

func grouped(s string, n int, sep byte) bool {
	for i := n; i < len(s); i += n + 1 {
		if s[i] != sep {
			return false
		}
	}
	return true
}

// resourceID finds the id of an Azure resource or resource group.
func resourceID(text string, i int) (found, bool) {
	const head, group = "/subscriptions/", "/resourcegroups/"
	if len(text)-i < len(head) || !strings.EqualFold(text[i:i+len(head)], head) {
		return found{}, false
	}
	end := i
	for end < len(text) && (wordByte(text[end]) || strings.IndexByte("/-.()", text[end]) >= 0) {
		end++
	}
	for end > i && strings.IndexByte("/.)", text[end-1]) >= 0 {
		end--
	}
	id := strings.ToLower(text[i:end])
	return found{i, end, resource, id}, strings.Contains(id, group)
}
