package redact

import (
	"strings"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
)

// connects are what connection strings have in the place of ://.
var connects = []string{"@tcp(", "@unix(", "jdbc:oracle:", "new pdo("}

// params are names of query and form parameters that no label covers, with the
// sign before them. A query's signs make a secret of every value; elsewhere it
// must look like one.
var params = paramTable()

func paramTable() (t []string) {
	for _, name := range []string{"sig=", "signature=", "x-amz-signature=", "x-goog-signature=", "oauth_signature=", "code=", "sid=", "ticket=", "auth=", "hmac=", "assertion=", "samlresponse=", "key=", "sas=", "jwt=", "k="} {
		for _, sign := range []string{"?", "&", "#", ";"} {
			t = append(t, sign+name)
		}
	}
	for _, sign := range []string{" ", "\n", "\"", "'", ","} {
		t = append(t, sign+"sig=", sign+"signature=")
	}
	return append(t, "\nsamlresponse=", "jsessionid=", "phpsessid=", "sessionid=", "session_id=", "code_verifier=", "client_assertion=")
}

// paramEnd are the bytes that end the value of a parameter.
var paramEnd = shape.NewSet(" \t\r\n\"'`<>&?;,()[]{}|\\")

// param masks the value of a query parameter.
func (s *scanner) param(name string, a, b int) {
	t := s.T
	if a < s.paramDone || scan.MarkAt(t[b:]) > 0 {
		return
	}
	end, stop := b, min(len(t), b+scan.GuardLen)
	for end < stop && !paramEnd[t[end]] {
		end++
	}
	c, ok := secretParam(name, t[b:end])
	if !ok {
		return
	}
	for end < len(t) && !paramEnd[t[end]] {
		end++
	}
	end = s.Wrapped(b, end)
	s.paramDone = end
	s.Mask(b, end, c)
}

// secretParam decides about the value that begins with v.
func secretParam(name, v string) (scan.Category, bool) {
	query := strings.IndexByte("?&#;", name[0]) >= 0
	k := shape.Count(v)
	switch name = strings.TrimLeft(name, "?&#; \n\"',"); {
	case len(v) < 4 || scan.Empty(v):
		return 0, false
	case strings.HasSuffix(name, "sig=") || strings.HasSuffix(name, "signature="):
		return scan.SAS, query || len(v) >= 20 && shape.Mixed(v)
	case name == "key=" || name == "sas=" || name == "jwt=" || name == "k=":
		return scan.Token, query && len(v) >= 20 && shape.Mixed(v)
	case name == "sid=" || name == "code=" || name == "ticket=" || name == "auth=":
		return scan.Token, len(v) >= 12 && shape.Secret(v)
	}
	return scan.Token, len(v) >= 8 && k.Digit+k.Upper > 0 && v[0] != '$' && v[0] != '{'
}

// connect handles the forms of connects.
func (s *scanner) connect(word string, a, b int) {
	switch word {
	case "jdbc:oracle:":
		end := connectByte.End(s.T, b, b+200)
		s.backUser(b, strings.IndexByte(s.T[b:end], '@')+b, '/')
	case "new pdo(":
		s.pdo(b)
	default:
		s.backUser(max(0, a-200), a, ':')
	}
}

// connectByte are the characters of an Oracle connect string.
var connectByte = shape.NewSet(shape.Alphabet + "+/=_-.~%@:$!*#")

// authorityEnd are the characters that end the host of a URL.
var authorityEnd = shape.NewSet("/?# \t\r\n\"'`<>\\|,(){}")

// maxAuthority bounds user, password and host of a URL.
const maxAuthority = 1024

// userinfo masks the password in scheme://user:password@host, and a user that
// is a token.
func (s *scanner) userinfo(a, b int) {
	t := s.T
	if a == 0 || !shape.Alnum(t[a-1]) {
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
	if user := t[b:at]; colon < 0 {
		if len(user) >= 20 && shape.Secret(user) && strings.IndexByte(user, '.') < 0 {
			s.Mask(b, at, scan.URL)
		}
	} else if !s.sample(user[colon+1:]) {
		s.Mask(b+colon+1, at, scan.URL)
	}
}

// slashed finds the @ of a password that holds a slash or another character
// that should have been escaped: what stands after the colon is no port then.
func (s *scanner) slashed(b, end int) int {
	t := s.T
	colon := strings.IndexByte(t[b:end], ':')
	if colon < 1 || b+colon+1 >= len(t) || end >= len(t) || t[end] != '/' && t[end] != '#' && t[end] != '?' || shape.Digits(t[b+colon+1:end]) {
		return -1
	}
	stop := end
	for stop < len(t) && stop-b < 256 && !shape.Blank(t[stop]) && strings.IndexByte("\r\n\"'`<>", t[stop]) < 0 {
		stop++
	}
	return strings.LastIndexByte(t[b:stop], '@')
}

// sample says whether a password in a URL is a mark, a reference, or a word
// that documentation puts there.
func (s *scanner) sample(pw string) bool {
	if pw == "" || scan.OnlyMarks(pw) {
		return true
	}
	return scan.Reference(pw) || scan.Empty(pw) || strings.Trim(pw, "*x.") == "" || pw[0] == '<' || pw[0] == '$' && shape.Variable(pw[1:]) ||
		len(pw) > 2 && pw[0] == '%' && pw[len(pw)-1] == '%'
}

// backUser masks the password that ends at i, after the last sep at or after
// from: user:password@tcp(host), thin:user/password@host.
func (s *scanner) backUser(from, i int, sep byte) {
	if i < from {
		return
	}
	start := i
	for start > from && strings.IndexByte(" \t\r\n\"'`<>=", s.T[start-1]) < 0 {
		start--
	}
	if k := strings.IndexByte(s.T[start:i], sep); k >= 0 && !s.sample(s.T[start+k+1:i]) {
		s.Mask(start+k+1, i, scan.URL)
	}
}

// pdo masks the third argument of PHP's database constructor.
func (s *scanner) pdo(i int) {
	for n := 0; n < 3 && i < len(s.T); n++ {
		i = s.Blanks(i)
		v := s.ValueAt(i)
		if v.Quote == 0 || v.More {
			return
		}
		if n == 2 && !scan.Empty(s.T[v.Start:v.End]) {
			s.Mask(v.Start, v.End, scan.Password)
		}
		i = s.Blanks(v.After)
		if i < len(s.T) && s.T[i] == ',' {
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

// segment are the characters of a path.
var segment = shape.NewSet(shape.Alphabet + "+/=_-.~%@:")

// webhook masks the path of such an address; the host is at b.
func (s *scanner) webhook(b int) {
	host := s.Peek(b, 120)
	from := 0
	if i := strings.Index(host, ".webhook.office.com/webhookb2/"); i > 0 && strings.IndexByte(host[:i], '/') < 0 {
		from = i + len(".webhook.office.com/webhookb2/")
	}
	for _, w := range webhooks {
		if host != "" && host[0] == w[0] && strings.HasPrefix(host, w) {
			from = len(w)
		}
	}
	if from == 0 || b+from < s.paramDone {
		return
	}
	end := segment.End(s.T, b+from, len(s.T))
	s.paramDone = end
	if i := strings.Index(s.T[b+from:min(end, b+from+128)], "/getMe"); i > 0 { // a method of a bot's API
		end = b + from + i
	}
	for end > b+from && (s.T[end-1] == '.' || s.T[end-1] == ':') {
		end--
	}
	if end-b-from >= 16 {
		s.Mask(b+from, end, scan.Secret)
	}
}

// credential are the characters of a token in a header.
var credential = shape.NewSet(shape.Alphabet + "-._~+/=|:%@!")

// trimmed moves the end of a token out of punctuation.
func (s *scanner) trimmed(start, end int) int {
	for end > start && (s.T[end-1] == '.' || s.T[end-1] == ',' || s.T[end-1] == ':') {
		end--
	}
	return end
}

// bearer masks the token after the word. In prose no token follows.
func (s *scanner) bearer(a, b int) {
	t := s.T
	i := s.Blanks(b)
	if strings.HasPrefix(t[b:], "%20") {
		i = b + 3
	} else if p := s.Peek(i, 2); len(p) == 2 && (p[0] == ':' && p[1] != ':' || p == ", " || p[0] == '=' && shape.Alnum(p[1])) {
		i = s.Blanks(i + 1)
	}
	if i == b || i >= len(t) || a > 0 && shape.Alnum(t[a-1]) || a < s.paramDone {
		return
	}
	end := s.trimmed(i, credential.End(t, i, i+scan.GuardLen))
	if s.proseAfter(t[a:b], t[i:end]) || end < len(t) && t[end] == '=' {
		return
	}
	end = s.trimmed(i, credential.End(t, i, len(t)))
	s.paramDone = end
	s.Mask(i, s.Wrapped(i, end), scan.Bearer)
}

// bearerWords follow the word in prose and in challenges.
var bearerWords = shape.Words("token tokens auth authentication authorization realm error scheme type format of is and or in for header credentials " +
	"credential required missing not from with only access service capability channel id setup release expired invalid plane context bond bonds")

// proseAfter says whether v is no token: it goes on like a sentence or a
// challenge.
func (s *scanner) proseAfter(word, v string) bool {
	if v == "" || scan.Empty(v) || shape.Fold(v, bearerWords) || strings.HasPrefix(v, "authorization_uri=") || strings.HasPrefix(v, "error") {
		return true
	}
	k := shape.Count(v)
	if strings.HasSuffix(v, "=") && k.Digit == 0 && len(v) < 16 { // realm=
		return true
	}
	return word[0] == 'b' && k.Other == 0 && shape.Ordinary(v) && len(v) > 3
}

// oneToken are schemes whose credentials are a single word; those of others go
// on to the end of the line.
var oneToken = shape.Words("basic bearer token negotiate ntlm apikey jwt key ssws sharedkeylite sharedkey bot client-id oauth2 splunk nodeapi genie-key")

// header masks the credentials of an Authorization header, its scheme apart.
func (s *scanner) header(a, b int) {
	t := s.T
	if b < len(t) && scan.LabelSet[t[b]] || a > 0 && shape.Alnum(t[a-1]) || a < s.paramDone {
		return
	}
	closed := s.Closers(b)
	i := s.Blanks(closed)
	n := s.Separator(i)
	if p := s.Peek(i, 1); n == 0 && closed > b && p == "," { // a pair of strings
		n = 1
	} else if n == 0 && i > closed && (p == "\"" || p == "'") { // a server's configuration
		n = 1
		i--
	}
	if n == 0 {
		return
	}
	i = s.Blanks(i + n)
	for k := 0; k < 8 && i < len(t) && (t[i] == '[' && scan.MarkAt(t[i:]) == 0 || strings.IndexByte("\"'\\", t[i]) >= 0); k++ {
		i++
	}
	s.credentials(i)
}

// credentials masks what an Authorization header holds, from i.
func (s *scanner) credentials(i int) {
	t := s.T
	word := shape.SetURL.End(t, i, i+32)
	from, single := word, shape.Fold(t[i:word], oneToken)
	switch p := s.Peek(word, 3); {
	case p == "%20":
		from = word + 3
	case p != "" && shape.Blank(p[0]) && word > i:
		from = s.Blanks(word)
	default: // no scheme: the value is the credential
		from, single = i, true
	}
	end := credential.End(t, from, len(t))
	if !single {
		for end < len(t) && !s.Newline(end) && strings.IndexByte("'`", t[end]) < 0 && !s.closesHeader(from, end) {
			end++
		}
	}
	end = s.trimmed(from, end)
	v := t[from:min(end, from+scan.GuardLen)]
	if v == "" || scan.Empty(v) || strings.HasSuffix(v, "realm=") || scan.MarkAt(t[from:]) > 0 || from == i && headerName(v) {
		return
	}
	s.paramDone = end
	s.Mask(from, s.Wrapped(from, end), scan.Bearer)
}

// closesHeader says whether the quote at i closes the header, rather than a
// parameter in it such as realm="x".
func (s *scanner) closesHeader(from, i int) bool {
	if s.T[i] != '"' {
		return false
	}
	open := strings.LastIndexByte(s.T[max(from, i-256):i], '"')
	return s.T[i-1] != '=' && (open < 0 || !strings.HasSuffix(s.T[max(from, i-256):][:open], "="))
}

// headerName says whether a value is one more name of a header, as in lists
// of allowed headers, or a variable.
func headerName(v string) bool {
	k := shape.Count(v)
	return k.Digit == 0 && (k.Lower == 0 || k.Other == strings.Count(v, "-")) && len(v) < 32 || v[0] == '<' || v[0] == '$'
}

// cookie masks the values of cookies, not their names and attributes.
func (s *scanner) cookie(a, b int) {
	t := s.T
	i := s.Blanks(s.Closers(b))
	flag := strings.HasSuffix(t[:a], "--")
	sign := s.Peek(i, 1)
	if n := s.Peek(s.Blanks(i+1), 1); sign == "=" && (n == `"` || n == "'") { // a script's assignment
		flag = true
	}
	if a > 0 && shape.Alnum(t[a-1]) || sign != ":" && !flag || a < s.paramDone {
		return
	}
	if sign == ":" || sign == "=" {
		i = s.Blanks(i + 1)
	}
	for k := 0; k < 8 && i < len(t) && strings.IndexByte("[\"'\\", t[i]) >= 0; k++ {
		i++
	}
	s.paramDone = s.Pairs(i, len(t), a >= 4 && strings.EqualFold(t[a-4:a], "set-"))
}
