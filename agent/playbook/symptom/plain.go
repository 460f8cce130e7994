package symptom

import (
	"html"
	"strings"
	"unicode"

	"ghostbot/agent/playbook/pattern"
)

// What chats, ticket systems, keyboards and careful people do to an address,
// undone: the patterns of the finder then read one spelling of everything.

var (
	slackLink    = pattern.New(`<(https?://[^>|\s]+)\|([^>]*)>`)
	markdownLink = pattern.New(`\[[^\]\n]{0,200}\]\((https?://[^)\s]+)\)`)
	defanged     = pattern.New(`(?i)\bhxxp(s?)(:|\[:\])//`)
	brokenScheme = pattern.New(`(?i)\b(https?)(?::/|//)([a-z0-9\[])`)
	emphasis     = pattern.New(`(^|[\s(])(?:[*~][*_~]*(\[|[0-9A-Za-z])|_+(\[|[0-9]|https?:))`)
	emphasisEnd  = pattern.New(`([0-9A-Za-z\]/])[*_~]+($|[\s,;.:!?)])`)
	// wildcard is a listener's address as tools print it: it is reached over
	// loopback, and is no address to connect to.
	wildcard4 = pattern.New(`(^|[\s"'(=]|https?://)(?:0\.0\.0\.0|\*):(\d{2,5})\b`)
	wildcard6 = pattern.New(`(^|[\s"'(=]|https?://)(?:\[::\]|::):(\d{2,5})\b`)
	// replaced is how people who edit text correct a port.
	replaced  = pattern.New(`(?:^|\s)s/:?(\d{2,5})/:?(\d{2,5})/?g?(?:$|\s)`)
	loopback6 = pattern.New(`(^|[\s"'(=/])::1:(\d{2,5})($|[^\d:a-fA-F])`)
	nodePair6 = pattern.New(`\b(E[A-Z]{5,14}) ([0-9a-f]*:[0-9a-f:]*:[0-9a-f]*):(\d{2,5})($|[^\d:a-fA-F])`)
	words6    = pattern.New(`(?i)\bipv6[ -](?:localhost|loopback)(?: address| interface)?\b|\b(?:localhost|loopback)(?: address)?,? \(?(?:over |via |on |using |with )?(?:ip)?v6\b\)?`)
	protoPort = pattern.New(`(?i)\b(tcp|udp)(?:[/:-]| +)(\d{2,5})($|[^\d.:\w]|[.:](?:\s|$))`)
	// misspelt is the word port as people in a hurry type it before a number.
	misspelt = pattern.New(`(?i)\b(?:prt|pot|potr|porrt|poort|p0rt|prot|portt|pport)[ :=]+(\d{2,5})\b`)
	// apart are a host and a port with something between them that is neither a
	// colon nor the word port.
	apart    = pattern.New(`(?i)(^|[\s"'(\[])(\d{1,3}(?:\.\d{1,3}){3}|localhost)(?: ?: | ?, ?| ?\(|,? (?:on|auf) )(\d{4,5})($|[\s,;.)"'!?])`)
	listed   = pattern.New(`(?i)(\[[0-9a-f:.]+\]|[a-z0-9_.-]+):(\d{2,5})(\s*,\s*:?|\s+(?:and|und|or|oder|nor)\s+:?|\s*[&+]\s*:?|/)(\d{4,5})($|[^\d:./a-z])`)
	ports    = pattern.New(`(?i)\bports? ?[:=]? ?(\d{2,5}(?: ?(?:,|and|und|or|oder|&|\+|/) ?(?:(?:and|und|or) )?(?:port )?:?\d{2,5})+)\b`)
	digits   = pattern.New(`\d{2,5}`)
	hostNear = pattern.New(`(?i)(\[[0-9a-f:.%a-z]+\]|[a-z0-9_][a-z0-9_.%-]*),?\s+(?:on |at )?$`)
	hostNext = pattern.New(`(?i)^ (?:on|at|of|auf) (?:host |server |machine )?(\[[0-9a-f:.%a-z]+\]|[a-z0-9_][a-z0-9_.%-]*)`)
)

// plainText spells addresses as they are usually spelled.
func plainText(text string) string {
	text = strings.Map(narrow, text)
	text = slackLink.ReplaceAllStringFunc(text, func(s string) string {
		m := slackLink.FindStringSubmatch(s)
		if bare, is := strings.CutPrefix(m[1], "http://"); is && strings.TrimSuffix(bare, "/") == strings.TrimSuffix(m[2], "/") {
			return " " + m[2] + " " // the scheme is the chat's own guess
		}
		return " " + m[1] + " "
	})
	if strings.Contains(text, "&") {
		text = html.UnescapeString(text)
	}
	for _, r := range []struct {
		re *pattern.Pattern
		by string
	}{
		{markdownLink, " $1 "}, {defanged, "http$1://"}, {brokenScheme, "$1://$2"}, {emphasis, "$1 $2$3"}, {emphasisEnd, "$1 $2"},
		{replaced, " not port $1 but port $2 "}, {words6, "::1"}, {wildcard4, "${1}127.0.0.1:$2"}, {wildcard6, "${1}[::1]:$2"}, {loopback6, "${1}[::1]:$2$3"}, {nodePair6, "$1 [$2]:$3$4"},
		{misspelt, "port $1"}, {apart, "$1$2:$3$4"}, {protoPort, "$1 port $2$3"},
	} {
		text = r.re.ReplaceAllString(text, r.by)
	}
	text = strings.NewReplacer("/<unresolved>:", ":", "[.]", ".", "(.)", ".", "[:]", ":").Replace(text)
	return quiet(each(text))
}

// narrow makes full-width forms ASCII, typographic quotes plain, and other
// symbols blank: none of them is part of an address.
func narrow(r rune) rune {
	switch {
	case r < 0x7f:
		return r
	case r >= 0xff01 && r <= 0xff5e:
		return r - 0xfee0
	case strings.ContainsRune("\u2018\u2019\u201a\u2039\u203a", r):
		return '\''
	case strings.ContainsRune("\u201c\u201d\u201e\u00ab\u00bb", r):
		return '"'
	case unicode.IsPunct(r), unicode.IsSymbol(r):
		return ' '
	}
	return r
}

// each writes the host beside every port of a list of ports.
func each(text string) string {
	for range maxTargets {
		m := listed.FindStringSubmatchIndex(text)
		if m == nil {
			break
		}
		host, port, sep := text[m[2]:m[3]], text[m[8]:m[9]], strings.TrimSpace(text[m[6]:m[7]])
		if n := atoi(port); !strings.HasSuffix(sep, ":") && (n >= 1900 && n <= 2099 || afterNumber.MatchString(text[m[9]:])) || sep == "/" && len(port) < 5 ||
			!placeLike(strings.Trim(host, "[]")) || notAHost[strings.ToLower(host)] {
			break
		}
		text = text[:m[6]] + " and " + host + ":" + port + text[m[9]:]
	}
	for from := 0; from < len(text); {
		m := ports.FindStringSubmatchIndex(text[from:])
		if m == nil {
			return text
		}
		a, b := from+m[0], from+m[1]
		before, after, host := text[:a], text[b:], "127.0.0.1"
		if h := hostNear.FindStringSubmatchIndex(before); h != nil && placeLike(before[h[2]:h[3]]) {
			host, before = before[h[2]:h[3]], before[:h[0]]
		} else if h := hostNext.FindStringSubmatchIndex(after); h != nil && placeLike(after[h[2]:h[3]]) {
			host, after = after[h[2]:h[3]], after[h[1]:]
		}
		var out []string
		for _, p := range digits.FindAllString(text[from+m[2]:from+m[3]], maxTargets) {
			out = append(out, host+":"+p)
		}
		list := strings.Join(out, " and ")
		text, from = before+" "+list+after, len(before)+1+len(list)
	}
	return text
}

// placeLike reports whether a word beside ports is a host and not a word.
func placeLike(s string) bool {
	e, ok := ParseEndpoint(s)
	_, is := e.Addr()
	return ok && e.Port == 0 && (is || e.Loopback() || !notAName(s))
}

// calm is a part of a network with what the text says before and after it.
var (
	calm = pattern.New(`(?i)\b((?:it'?s |is )?(?:not|isn't|isnt|kein|keine|nicht|no|without|ruled out|rule out|excluded?)(?: an?| the| about| related to)? )?(?:the |our |its |all )?` +
		`(dns|name resolution|resolution|resolvers?|nameservers?|cert(?:ificate)?s?|zertifikate?|tls|ssl|pings?|routing|routes?|network|netzwerk|firewalls?|proxy|vpn|load|cpu|latency|timeouts?|packet loss|loss|overload|backlog|errors?)` +
		`((?: itself| server| lookups?| checks?)? (?:is|are|looks?|seems?|works?|ist|sind|geht|was|were)(?: to be| all| still| totally| also| perfectly)*,? ?(?:fine|ok|okay|good|great|healthy|clean|green|valid|up|working|in order|in ordnung|gut|not (?:the |an? )?(?:issue|problem|cause))\b|(?: itself)? works\b)?` +
		`( ?(?:problem|issue|error|fault|thing|related|failure|outage|trouble)s?\b)?`)
	flatNo = pattern.New(`(?i)\b(?:it'?s |is )not |^(?:no|without|kein|keine) (?:packet loss|firewalls?|proxy|vpn|timeouts?)`)
)

// quiet takes out what the text says is not the trouble ("dns is fine", "not a
// certificate problem"), so that its words do not count.
func quiet(text string) string {
	return calm.ReplaceAllStringFunc(text, func(s string) string {
		m := calm.FindStringSubmatch(s)
		if m[3] != "" && m[1] == "" || m[1] != "" && m[4] != "" || m[1] != "" && flatNo.MatchString(s) {
			return " "
		}
		return s
	})
}
