// Package phrase has what sentences about a place are made of: figures as people read
// them, foreign text made fit to be shown, and facts as parts of sentences.
package phrase

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"ghostbot/agent/playbook/read"
)

// Around puts words before and behind s, made fit to be shown, or is "" when nothing is left of it.
func Around(before, s, after string) string {
	if s = Plain(s, 80); s == "" {
		return ""
	}
	return before + s + after
}

// Plain makes foreign text fit to be shown: printable, on one line, without
// what chat systems read as markup or mentions, cut to n characters.
func Plain(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("<>&*~`|@#\"\\{}", r):
			return -1
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case r > 0x7e:
			return -1
		}
		return r
	}, Head(s, 20*n))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > n {
		s = strings.TrimSpace(s[:n]) + "..."
	}
	return s
}

// Seconds is a time as people read it.
func Seconds(f float64) string {
	switch {
	case f < 0:
		return "0 ms"
	case f < 0.9995:
		return fmt.Sprintf("%.0f ms", f*1000)
	}
	return fmt.Sprintf("%.1f s", f)
}

// Millis is a time in milliseconds as people read it.
func Millis(f float64) string { return Seconds(f / 1000) }

// Percent is a share as people read it.
func Percent(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) + " %" }

// Codes says what requests got that failed, as the end of a sentence; 0 is no answer.
func Codes(codes []int) string {
	var out []string
	sorted := slices.Sorted(slices.Values(codes))
	for i := 0; i < len(sorted); {
		n := 1
		for i+n < len(sorted) && sorted[i+n] == sorted[i] {
			n++
		}
		if sorted[i] == 0 {
			out = append(out, fmt.Sprintf("%d without an answer", n))
		} else {
			out = append(out, fmt.Sprintf("%d with %d", n, sorted[i]))
		}
		i += n
	}
	return Around(": ", strings.Join(out, ", "), "")
}

// Day is a moment to the minute.
func Day(t time.Time) string {
	if t.IsZero() {
		return "a past day"
	}
	return t.UTC().Format("2006-01-02 15:04 MST")
}

// LowerFirst makes a sentence the end of another one.
func LowerFirst(s string) string {
	if len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' && !(s[1] >= 'A' && s[1] <= 'Z') {
		return string(s[0]+'a'-'A') + s[1:]
	}
	return s
}

// Head is the first n bytes.
func Head(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// Quote writes one argument so that every parser of command lines reads it back
// as it is. Parts never contain a single quote (package symptom).
func Quote(w string) string {
	for _, r := range w {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_./:@+=,%", r):
		default:
			return "'" + w + "'"
		}
	}
	return w
}

// Bracket puts an IPv6 address into brackets.
func Bracket(ip string) string {
	if strings.Contains(ip, ":") {
		return "[" + ip + "]"
	}
	return ip
}

// Connect are the ends of sentences about a connection attempt.
var Connect = map[read.Failure]string{
	read.Refused: "refuses connections", read.Silent: "does not answer connection attempts", read.Unreachable: "is unreachable",
	read.Prohibited: "is closed by a filter", read.Unresolved: "has a name that does not resolve", read.NoConnect: "cannot be connected to",
	read.Reset: "resets connections", read.Empty: "closes connections at once", read.Other: "cannot be connected to", read.NoPort: "cannot be connected to for want of a local address", read.None: "accepts connections",
}

// Words are the facts that a failure of a request stands for.
var Words = map[read.Failure][]string{
	read.None:        {"connected"},
	read.Refused:     {"refused"},
	read.Silent:      {"silent"},
	read.Unreachable: {"unreachable"},
	read.Prohibited:  {"prohibited"},
	read.Unresolved:  {"unresolved"},
	read.NoConnect:   {"unconnected"},
	read.Reset:       {"connected", "reset"},
	read.Empty:       {"connected", "empty"},
	read.Cut:         {"connected", "cut"},
	read.NoAnswer:    {"connected", "no-answer"},
	read.Stalled:     {"connected", "stalled"},
	read.Untrusted:   {"connected", "untrusted"},
	read.NotTLS:      {"connected", "not-tls"},
	read.Alert:       {"connected", "alert"},
	read.NotHTTP:     {"connected", "not-http"},
	read.NoPort:      {"no-local-port"},
}

// Refusals are the facts that kinds of refusals stand for.
var Refusals = map[read.RefusalKind]string{read.Limit: "says-limit", read.Denied: "says-denied", read.SignIn: "says-auth", read.NotReady: "says-state"}

// Facts are facts as parts of a sentence that begins with the place.
var Facts = map[string]string{
	"ok": "answers as it should", "connected": "accepts connections", "open": "accepts connections", "answered": "answers", "refused": "refuses connections",
	"no-listener": "has no listener", "listener": "has a listener", "queue-ok": "has room in its accept queue", "queue-full": "has a full accept queue",
	"silent": "does not answer connection attempts", "unresolved": "has a name that does not resolve", "error": "answers with an error",
	"own": "produces the error itself", "gateway": "passes on a failure from behind it", "reset": "resets connections", "empty": "closes without an answer",
	"no-answer": "accepts and then says nothing", "unreachable": "is unreachable", "ping-ok": "answers ping", "route-local": "is this machine",
	"no-name": "has a name that its DNS server does not know", "server-fails": "has a DNS server that fails", "server-silent": "has a DNS server that does not answer",
	"server-refused": "has no DNS server behind its address", "named-there": "has a name that its DNS server resolves", "named-here": "has a name that resolves here",
	"named-system": "has a name that programs here resolve", "cert-dates-ok": "has a certificate within its validity", "cert-name-ok": "has a certificate for its name",
	"trusted": "has a certificate that is trusted here", "not-tls": "does not speak TLS", "tls-here": "speaks TLS", "untrusted": "shows a certificate that is not accepted",
	"counted": "was watched through the kernel's counters", "no-data": "has a name without an address", "no-name-here": "has a name that DNS does not know",
	"udp-socket": "has a UDP socket", "no-udp-socket": "has no UDP socket", "udp-idle": "has a UDP socket in which nothing waits", "speaks": "reacts to what is sent",
	"server-alive": "answers DNS queries", "server-unwilling": "has a DNS server that refuses to answer", "behind-failed": "fails because of what is behind it",
}

// Address are the ends of sentences about one address of several.
var Address = map[string]string{
	"at-open": "accepts connections", "at-refused": "refuses connections", "at-silent": "does not answer connection attempts",
	"at-broken": "accepts connections and answers nothing", "at-error": "answers with an error",
}
