package metadata

import "strings"

// SplitURL takes a URL apart the way curl does, leniently: the scheme may be
// missing, user information ends at the last "@", a backslash ends the host.
// Host comes without port and brackets; rest is path, query and fragment.
func SplitURL(raw string) (scheme, user, host, port, rest string) {
	s := raw
	if len(s) > 5 && strings.EqualFold(s[:5], "file:") {
		return "file", "", "", "", "/" + strings.TrimLeft(s[5:], "/")
	}
	if i := strings.Index(s, "://"); i > 0 && isScheme(s[:i]) {
		scheme, s = strings.ToLower(s[:i]), s[i+3:]
	} else if i := strings.Index(s, ":/"); i > 0 && isScheme(s[:i]) { // curl takes one slash for two
		scheme, s = strings.ToLower(s[:i]), s[i+2:]
	}
	s = strings.TrimLeft(s, "/")
	end := strings.IndexAny(s, "/?#\\")
	if end < 0 {
		end = len(s)
	}
	authority, rest := s[:end], s[end:]
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, authority = authority[:i], authority[i+1:]
	}
	host = authority
	if strings.HasPrefix(host, "[") {
		if i := strings.IndexByte(host, ']'); i > 0 {
			return scheme, user, host[1:i], strings.TrimPrefix(host[i+1:], ":"), rest
		}
		return scheme, user, host, "", rest
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		host, port = host[:i], host[i+1:]
	}
	return scheme, user, host, port, rest
}

func isScheme(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (i == 0 || (s[i] < '0' || s[i] > '9') && s[i] != '+' && s[i] != '-' && s[i] != '.') {
			return false
		}
	}
	return s != ""
}
