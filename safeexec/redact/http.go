package redact

import (
	"bytes"
	"strings"
)

// params are names of query and form parameters that no label of the
// vocabulary covers, each with the sign before it.
var params = paramTable()

func paramTable() (t []string) {
	for _, sign := range []string{"?", "&", ";", "#", "\"", "'", " ", "\n", ","} {
		for _, name := range []string{"sig=", "signature=", "code=", "x-amz-signature=", "x-goog-signature=", "x-amz-credential=", "sessionid=", "session_id=",
			"jsessionid=", "phpsessid=", "sid=", "assertion=", "code_verifier=", "client_assertion=", "samlresponse=", "ticket=", "oauth_signature=", "hmac="} {
			if sign == "?" || sign == "&" || sign == "#" || strings.HasPrefix(name, "s") && sign != "," || name == "jsessionid=" || name == "phpsessid=" ||
				strings.HasPrefix(name, "code_v") {
				t = append(t, sign+name)
			}
		}
	}
	return append(t, "code_verifier=", "sig%3d")
}

// param masks the value of a query parameter. Outside of a query only what
// looks like a token is one.
func (s *scanner) param(a, b int) {
	t := s.t
	end := b
	for end < len(t) && !paramEnd[t[end]] && end-b < 4096 {
		end++
	}
	if n := markAt(t[b:]); n > 0 {
		return
	}
	name := strings.Trim(strings.ToLower(t[a:b]), "?&;#\"' \n,=")
	query := t[a] == '?' || t[a] == '&' || t[a] == ';' || t[a] == '#'
	switch v := t[b:min(end, b+guardLen)]; {
	case len(v) < 4:
	case name == "sig" || name == "sig%3d" || name == "signature":
		if query || len(v) >= 20 && mixed(v) {
			s.mask(b, end, catSAS)
		}
	case name == "sid" || name == "code" || name == "ticket":
		if query && len(v) >= 12 && looksSecret(v) {
			s.mask(b, end, catToken)
		}
	case len(v) >= 8 && !variableOrWord(v):
		s.mask(b, end, catToken)
	}
}

var paramEnd = byteSet(" \t\r\n\"'`<>&;,)]}|\\")

func variableOrWord(v string) bool {
	k := kinds(v)
	return v[0] == '$' || v[0] == '{' || v[0] == '<' || k.digit == 0 && k.upper == 0
}

// url handles ://, and what connection strings have in its place.
func (s *scanner) url(word string, a, b int) {
	switch word {
	case "://":
		s.userinfo(a, b)
		s.webhook(b)
	case "jdbc:oracle:":
		end := s.run(b, &connectByte, 200)
		s.backUser(b, strings.IndexByte(s.t[b:end], '@')+b, '/')
	case "new pdo(":
		s.pdo(b)
	default:
		s.backUser(max(0, a-200), a, ':')
	}
}

// connectByte are the characters of an Oracle connect string.
var connectByte = byteSet(alphabet + "+/=_-.~%@:$!*#")

// authorityEnd are the characters that end the host of a URL.
var authorityEnd = byteSet("/?# \t\r\n\"'`<>\\|,(){}")

// maxAuthority bounds user, password and host of a URL.
const maxAuthority = 1024

// userinfo masks the password in scheme://user:password@host.
func (s *scanner) userinfo(a, b int) {
	t := s.t
	if a == 0 || !alnum(t[a-1]) {
		return
	}
	limit := min(len(t), b+maxAuthority)
	end := b
	for end < limit && (!authorityEnd[t[end]] || t[end] == ',') {
		end++
	}
	at := strings.LastIndexByte(t[b:end], '@')
	if at < 0 {
		at = s.slashed(b, end)
	}
	if at < 0 {
		return
	}
	at += b
	colon := strings.IndexByte(t[b:at], ':')
	if colon < 0 {
		if user := t[b:at]; len(user) >= 20 && looksSecret(user) && !strings.Contains(user, ".") {
			s.mask(b, at, catURL)
		}
		return
	}
	if pw := t[b+colon+1 : at]; !s.sample(pw) {
		s.mask(b+colon+1, at, catURL)
	}
}

// slashed finds the @ of a password that holds a slash or another character
// that should have been escaped: what stands after the colon is no port then.
func (s *scanner) slashed(b, end int) int {
	t := s.t
	colon := strings.IndexByte(t[b:end], ':')
	if colon < 1 || b+colon+1 >= len(t) || end >= len(t) || t[end] != '/' && t[end] != '#' && t[end] != '?' || allDigits(t[b+colon+1:end]) {
		return -1
	}
	stop := end
	for stop < len(t) && stop-b < 256 && !blank(t[stop]) && strings.IndexByte("\r\n\"'`<>", t[stop]) < 0 {
		stop++
	}
	return strings.LastIndexByte(t[b:stop], '@')
}

func allDigits(s string) bool { return kinds(s).digit == len(s) }

// sample says whether a password in a URL is a mark, a reference, or a word
// that documentation puts there.
func (s *scanner) sample(pw string) bool {
	if pw == "" || onlyMarks(pw) {
		return true
	}
	var buf [24]byte
	low := lowerInto(buf[:], pw)
	return strings.HasPrefix(low, "${") || strings.HasPrefix(low, "$(") || strings.HasPrefix(low, "{{") || strings.Trim(low, "*x.") == "" ||
		pw[0] == '$' && variable(pw[1:]) || low == "redacted" || pw[0] == '<' || pw[0] == '%' && pw[len(pw)-1] == '%'
}

// backUser masks the password that ends at i, after the last sep at or after
// from: user:password@tcp(host), thin:user/password@host.
func (s *scanner) backUser(from, i int, sep byte) {
	if i < from {
		return
	}
	start := i
	for start > from && strings.IndexByte(" \t\r\n\"'`<>=", s.t[start-1]) < 0 {
		start--
	}
	if k := strings.IndexByte(s.t[start:i], sep); k >= 0 && !s.sample(s.t[start+k+1:i]) {
		s.mask(start+k+1, i, catURL)
	}
}

// pdo masks the third argument of PHP's database constructor.
func (s *scanner) pdo(i int) {
	for n := 0; n < 3 && i < len(s.t); n++ {
		i = s.blanks(i)
		v := s.valueAt(i)
		if v.quote == 0 || v.more {
			return
		}
		if n == 2 && !shortHarmless(s.t[v.start:v.end]) {
			s.mask(v.start, v.end, catPassword)
		}
		i = s.blanks(v.after)
		if i < len(s.t) && s.t[i] == ',' {
			i++
		}
	}
}

// webhooks are addresses whose path is the secret.
var webhooks = []string{"hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/", "hooks.slack-gov.com/services/",
	"discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "outlook.office.com/webhook/", "outlook.office365.com/webhook/",
	"hooks.zapier.com/hooks/catch/", "hooks.zapier.com/hooks/standard/", "maker.ifttt.com/trigger/", "events.pagerduty.com/integration/",
	"api.telegram.org/bot", "hc-ping.com/", "hook.eu1.make.com/", "hook.us1.make.com/", "chat.googleapis.com/v1/spaces/", "open.feishu.cn/open-apis/bot/",
	"oapi.dingtalk.com/robot/", "webhooks.opsgenie.com/", "alert.victorops.com/integrations/generic/"}

// webhook masks the path of such an address; the host is at b.
func (s *scanner) webhook(b int) {
	t := s.t[b:min(len(s.t), b+120)]
	from := 0
	if i := strings.Index(t, ".webhook.office.com/webhookb2/"); i > 0 && strings.IndexByte(t[:i], '/') < 0 {
		from = i + len(".webhook.office.com/webhookb2/")
	}
	for _, w := range webhooks {
		if strings.HasPrefix(t, w) {
			from = len(w)
		}
	}
	if from == 0 {
		return
	}
	end := s.run(b+from, &setSegment, 1024)
	for end > b+from && s.t[end-1] == '.' {
		end--
	}
	if end-b-from >= 16 {
		if i := strings.LastIndex(t[:min(len(t), end-b)], "/getMe"); i > 0 { // a method of a bot's API
			end = b + i
		}
		s.mask(b+from, end, catSecret)
	}
}

// bearer masks the token after the word. In prose no token follows.
func (s *scanner) bearer(a, b int) {
	t := s.t
	i := b
	if strings.HasPrefix(t[i:], "%20") {
		i += 3
	} else {
		i = s.blanks(i)
		if strings.HasPrefix(t[i:], ": ") || strings.HasPrefix(t[i:], ":") && i+1 < len(t) && t[i+1] != ':' {
			i = s.blanks(i + 1)
		}
	}
	if i == b || i >= len(t) || a > 0 && alnum(t[a-1]) {
		return
	}
	end := s.run(i, &bearerByte, len(t))
	for end > i && (t[end-1] == '.' || t[end-1] == ',') {
		end--
	}
	v := t[i:min(end, i+guardLen)]
	k := kinds(v)
	if v == "" || shortHarmless(v) || bearerWords[strings.ToLower(v[:min(len(v), 24)])] || end < len(t) && t[end] == '=' || strings.HasSuffix(v, "=") && k.digit == 0 && len(v) < 16 {
		return
	}
	if k.digit == 0 && k.other == 0 && (k.upper == 0 || k.lower == 0 || upper(v[0]) && k.upper == 1) && t[a] == 'b' && len(v) > 3 {
		return
	}
	s.mask(i, s.wrapped(i, end), catBearer)
}

var bearerByte = byteSet(alphabet + "-._~+/=|:%@!")

// bearerWords follow the word in prose and in challenges.
var bearerWords = wordSet("token tokens auth authentication authorization realm error scheme type format of is and or in for header credentials " +
	"credential required missing not from with only access service capability channel id setup release realm=... authorization_uri= error= scope= " +
	"expired invalid plane context bonds bond of. token. token: tokens. authentication.")

// headers are the names of headers whose whole value is a secret, with what
// may stand between name and value taken by header.
var headers = []string{"authorization", "x-ms-client-principal", "x-amz-cf-token"}

// oneToken are schemes whose credentials are a single word; those of others go
// on to the end of the line.
var oneToken = wordSet("basic bearer token negotiate ntlm apikey jwt key ssws sharedkeylite sharedkey bot client-id oauth2 splunk nodeapi genie-key")

// header masks the credentials of an Authorization header, its scheme apart.
func (s *scanner) header(a, b int) {
	t := s.t
	if b < len(t) && labelByte(t[b]) || a > 0 && alnum(t[a-1]) {
		return
	}
	i := s.blanks(s.closers(b))
	n := separator(t[i:])
	if n == 0 && i < len(t) && t[i] == ',' && i > b { // a pair of strings
		n = 1
	}
	if n == 0 || i+n >= len(t) {
		return
	}
	i = s.blanks(i + n)
	for i < len(t) && (t[i] == '[' && markAt(t[i:]) == 0 || t[i] == '"' || t[i] == '\'' || t[i] == '\\') {
		i++
	}
	s.credentials(i)
}

// credentials masks what an Authorization header holds, from i.
func (s *scanner) credentials(i int) {
	t := s.t
	word := i
	for word < len(t) && (alnum(t[word]) || t[word] == '-') && word-i < 32 {
		word++
	}
	scheme := strings.ToLower(t[i:word])
	from := word
	switch {
	case strings.HasPrefix(t[word:], "%20"):
		from = word + 3
	case word < len(t) && blank(t[word]) && word > i:
		from = s.blanks(word)
	default: // no scheme: the value is the credential
		from = i
		scheme = "token"
	}
	end := s.run(from, &bearerByte, len(t))
	if !oneToken[scheme] {
		for end < len(t) && strings.IndexByte("\r\n\"'`", t[end]) < 0 || end+1 < len(t) && t[end] == '"' && (t[end-1] == '=' || t[end+1] == ',' || t[end+1] == ' ') && scheme == "digest" {
			end++
		}
	}
	for end > from && (t[end-1] == ',' || t[end-1] == '.') {
		end--
	}
	if v := t[from:min(end, from+guardLen)]; v == "" || shortHarmless(v) || strings.HasSuffix(v, "realm=") || markAt(v) > 0 || from == i && headerList(v) {
		return
	}
	s.mask(from, s.wrapped(from, end), catBearer)
}

// headerList says whether a value is one more name of a header, as in lists
// of allowed headers.
func headerList(v string) bool {
	k := kinds(v)
	return k.digit == 0 && (k.lower == 0 || k.other == strings.Count(v, "-")) && len(v) < 32 || v[0] == '<' || v[0] == '$'
}

// cookie masks the values of cookies, not their names and attributes.
func (s *scanner) cookie(a, b int) {
	t := s.t
	i := s.blanks(s.closers(b))
	if a > 0 && alnum(t[a-1]) || i >= len(t) || t[i] != ':' && !(t[i] == '=' && strings.HasPrefix(t[max(0, a-2):], "--")) && !strings.HasPrefix(t[max(0, a-2):], "--") {
		return
	}
	if t[i] == ':' || t[i] == '=' {
		i++
	}
	i = s.blanks(i)
	for i < len(t) && strings.IndexByte("[\"'\\", t[i]) >= 0 {
		i++
	}
	set := a >= 4 && strings.EqualFold(t[a-4:a], "set-")
	for i < len(t) {
		name := s.run(i, &cookieName, 256)
		if name == i || name >= len(t) || t[name] != '=' {
			return
		}
		end := s.run(name+1, &cookieValue, 8192)
		if v := t[name+1 : min(end, name+1+guardLen)]; !shortHarmless(v) && markAt(v) == 0 && !cookieAttribute(t[i:name]) {
			s.mask(name+1, end, catCookie)
		}
		if set || end >= len(t) || t[end] != ';' {
			return
		}
		i = s.blanks(end + 1)
	}
}

var (
	cookieName  = byteSet(alphabet + "_-.$%!#&*+^|~")
	cookieValue = byteSet(alphabet + "_-.$%!#&*+^|~/=:@(){}[]<>?")
)

func cookieAttribute(name string) bool {
	return bytes.Contains([]byte(" path domain expires max-age samesite "), bytes.ToLower([]byte(" "+name+" ")))
}
