package read

import (
	"strconv"
	"strings"

	"ghostbot/agent/playbook/pattern"
)

// Marker opens the line of figures that [WriteOut] makes curl print last.
const Marker = "timing: code="

// WriteOut is the argument of curl's -w whose figures [Web] reads. It has no
// backslash, so that it looks the same to every parser of command lines.
const WriteOut = " " + Marker + "%{http_code} ip=%{remote_ip} dns=%{time_namelookup} connect=%{time_connect} tls=%{time_appconnect} first=%{time_starttransfer} total=%{time_total} bytes=%{size_download}"

// Web is what `curl -sS -i -w WriteOut URL` says. Times are seconds since the
// start of the request; 0 means that the phase was not reached.
type Web struct {
	Fail    Failure
	Late    bool   // it failed by running out of time
	Detail  string // curl's own error text, one line
	Code    int    // status of the last answer, 0 without one
	IP      string // address that was connected to
	DNS     float64
	Connect float64
	TLS     float64
	First   float64 // first byte of the answer
	Total   float64
	Bytes   int
	Header  map[string]string // lower-case names
	Body    string
}

// Answered reports whether an HTTP answer came.
func (w Web) Answered() bool { return w.Code >= 100 }

// Streams reports whether an answer is one that is not meant to end.
func (w Web) Streams() bool {
	return strings.Contains(w.Header["content-type"], "event-stream") || strings.Contains(w.Header["content-type"], "multipart/x-mixed")
}

// Curl reads curl's output. Exit codes are read before words: they are the same
// in every version and language (curl's manual, EXIT CODES).
func Curl(o Output) Web {
	var w Web
	text := o.Stdout
	if i := figuresAt(text); i >= 0 {
		w.figures(text[i:])
		text = strings.TrimSuffix(text[:i], " ")
	}
	w.answer(text)
	w.Detail = curlError(o.both())
	w.Fail, w.Late = w.failed(o), o.Exit == 28
	return w
}

// figuresAt is where the line of figures begins, -1 without one. What masks credentials
// may have taken the code away, behind an answer that speaks of a token; the status line
// has it as well.
func figuresAt(text string) int {
	if i := strings.LastIndex(text, Marker); i >= 0 {
		return i
	}
	label, _, _ := strings.Cut(Marker, "code=")
	i := strings.LastIndex(text, label)
	if i < 0 || !strings.Contains(text[i:], " dns=") || !strings.Contains(text[i:], " total=") {
		return -1
	}
	return i
}

// Sample reads several requests of one curl that prints nothing but [WriteOut]. The
// last one is how it ended.
func Sample(o Output) []Web {
	var out []Web
	parts := strings.Split(o.Stdout, Marker)
	for i, part := range parts[1:] {
		var w Web
		w.figures(Marker + part)
		if i == len(parts)-2 {
			w.Detail = curlError(o.both())
			w.Fail, w.Late = w.failed(o), o.Exit == 28
		}
		if out = append(out, w); len(out) == 20 {
			break
		}
	}
	return out
}

var figure = pattern.New(`(code|ip|dns|connect|tls|first|total|bytes)=([0-9A-Fa-f:.,%a-z]*)`)

func (w *Web) figures(text string) {
	for _, m := range figure.FindAllStringSubmatch(text, 8) {
		n, _ := strconv.ParseFloat(strings.ReplaceAll(m[2], ",", "."), 64)
		if n < 0 || n > 1e9 || n != n {
			n = 0
		}
		switch m[1] {
		case "code":
			w.Code = int(n)
		case "ip":
			w.IP = m[2]
		case "dns":
			w.DNS = n
		case "connect":
			w.Connect = n
		case "tls":
			w.TLS = n
		case "first":
			w.First = n
		case "total":
			w.Total = n
		case "bytes":
			w.Bytes = int(n)
		}
	}
	if w.Code > 999 {
		w.Code = 0
	}
}

var statusLine = pattern.New(`^HTTP/[0-9.]+ ([1-5][0-9][0-9])\b`)

// answer reads the header blocks of -i. Interim answers (1xx) and a proxy's
// "200 Connection established" precede the one that counts.
func (w *Web) answer(text string) {
	for {
		head, body, _ := cutBlock(text)
		m := statusLine.FindStringSubmatch(head)
		if m == nil {
			w.Body = text
			return
		}
		w.Header = headers(head)
		if w.Code == 0 {
			w.Code, _ = strconv.Atoi(m[1])
		}
		w.Body = body
		if !statusLine.MatchString(body) {
			return
		}
		text = body
	}
}

func cutBlock(text string) (head, body string, found bool) {
	if h, b, ok := strings.Cut(text, "\r\n\r\n"); ok {
		return h, b, true
	}
	return strings.Cut(text, "\n\n")
}

func headers(block string) map[string]string {
	out := map[string]string{}
	for _, l := range lines(block) {
		k, v, ok := strings.Cut(l, ":")
		k = strings.ToLower(strings.TrimSpace(k))
		if ok && len(out) < 60 && out[k] == "" && len(k) < 60 {
			out[k] = strings.TrimSpace(v)
		}
	}
	return out
}

var curlErrorLine = pattern.New(`curl: \(\d+\) ?([^\n]{0,300})`)

func curlError(text string) string {
	m := curlErrorLine.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}

func (w Web) failed(o Output) Failure {
	switch o.Exit {
	case 0:
		return None
	case 2:
		return Usage
	case 5, 6:
		return Unresolved
	case 7:
		return w.noConnect()
	case 1, 8:
		return NotHTTP
	case 18, 92:
		return Cut
	case 28:
		return w.late()
	case 35:
		return w.handshake()
	case 51, 58, 60, 77, 83, 90, 91:
		return Untrusted
	case 52:
		return Empty
	case 55, 56:
		return w.broken()
	}
	return Other
}

// noConnect: curl 7.85 and later say only "Couldn't connect to server".
func (w Web) noConnect() Failure {
	if f := failure(w.Detail); f != Other && f != Usage {
		return f
	}
	return NoConnect
}

// late says which phase a time-out of curl fell into.
func (w Web) late() Failure {
	switch {
	case strings.Contains(strings.ToLower(w.Detail), "resolving"):
		return Unresolved
	case w.Code != 0 || w.First != 0:
		return Stalled
	case w.Connect != 0 || strings.Contains(w.Detail, "SSL"):
		return NoAnswer
	}
	return Silent
}

var (
	notTLS    = pattern.New(`(?i)wrong version number|unknown protocol|packet length too long|record overflow|unrecognized.*packet|first record does not look like|http request|unexpected message`)
	alertText = pattern.New(`(?i)alert|handshake fail|unsupported protocol|no protocols|no shared|version too low|internal error|dh key too small|ca md too weak`)
)

// serverAlert is an alert that the other side sent, as libraries spell it.
var serverAlert = pattern.New(`(?i)\b(?:ssl|tls)\S* alert \w+`)

// aboutClient are alerts about the certificate of whoever receives them (RFC 8446
// 6.2), which is the client's here.
var aboutClient = pattern.New(`(?i)alert (?:certificate (?:required|unknown|expired|revoked)|bad certificate|unsupported certificate)|alert number (?:116|42|43|44|45|46)\b`)

// WantsCertificate reports whether the other side turned a client away because of
// its certificate.
func (w Web) WantsCertificate() bool { return w.Fail == Alert && aboutClient.MatchString(w.Detail) }

// refusesName and refusesVersion are the alerts about the server name that a client
// sends (RFC 6066 3) and about the version (RFC 8446 6.2), and what a library says that
// gives up itself because the other side offers nothing newer.
var (
	refusesName    = pattern.New(`(?i)unrecognized[ _]name|alert number 112\b`)
	refusesVersion = pattern.New(`(?i)alert protocol version|alert number 70\b`)
	tooOld         = pattern.New(`(?i)unsupported protocol|version too low`)
)

// RefusesName reports whether the handshake failed because of the server name.
func (w Web) RefusesName() bool { return w.Fail == Alert && refusesName.MatchString(w.Detail) }

// TooOld reports whether the library here gave up because of the version that the other
// side chose.
func (w Web) TooOld() bool {
	return w.Fail == Alert && !w.RefusesVersion() && tooOld.MatchString(w.Detail)
}

// RefusesVersion reports whether the other side refused the versions that it was offered.
func (w Web) RefusesVersion() bool { return w.Fail == Alert && refusesVersion.MatchString(w.Detail) }

func (w Web) handshake() Failure {
	switch f := failure(w.Detail); {
	case notTLS.MatchString(w.Detail):
		return NotTLS
	case f == Reset || strings.Contains(w.Detail, "SYSCALL") || strings.Contains(strings.ToLower(w.Detail), "eof"):
		return Reset
	case f == Silent:
		return NoAnswer
	}
	return Alert
}

func (w Web) broken() Failure {
	switch {
	case w.Code != 0:
		return Cut
	case serverAlert.MatchString(w.Detail): // TLS 1.3 turns a client away after its own handshake is done (RFC 8446 4.4.2.4)
		return Alert
	}
	return Reset
}
