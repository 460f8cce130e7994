// Package symptom reads what people type and paste about a broken network: it
// finds endpoints, DNS servers, status codes, times and the kind of trouble.
//
// The text is untrusted. Nothing of it leaves this package except as an
// [Endpoint], whose parts are built from a small alphabet and can therefore be
// put on a command line, as a [Kind], or as a number.
//
// # What counts as an endpoint
//
// URLs, addresses, bracketed IPv6 addresses with or without zone and port,
// host:port, dotted names, "port N on HOST", and the places where error texts of
// common programs put them (see pasted.go). A word with dots is not a name when
// it looks like a file, a version, a class or an abbreviation.
package symptom

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"ghostbot/agent/playbook/pattern"
)

// Kind is a kind of trouble as words describe it.
type Kind string

// The kinds. Unknown is what a text without any known word has.
const (
	Unknown     Kind = ""
	Error       Kind = "error"       // answers, with an error
	Refused     Kind = "refused"     // the connection is refused at once
	Silent      Kind = "silent"      // nothing comes back, time-outs
	Reset       Kind = "reset"       // the connection breaks
	Slow        Kind = "slow"        // it works, slowly
	Name        Kind = "name"        // a name does not resolve
	Certificate Kind = "certificate" // TLS does not trust the other side
	Overload    Kind = "overload"    // too many connections or requests
	Path        Kind = "path"        // routing, loss, host down
	Auth        Kind = "auth"        // turned away for want of credentials
	Redirect    Kind = "redirect"    // sent from one address to the next
)

// Symptom is what a text says.
type Symptom struct {
	Targets      []Endpoint // what to look at, in order of appearance, without repeats
	More         []Endpoint // further endpoints, beyond those that are kept as targets
	Resolver     *Endpoint  // the DNS server that the text names
	PortOnly     bool       // the text has a port and no host; the target's host is a guess
	Kinds        []Kind     // strongest first
	Codes        []int      // HTTP status codes
	Since        string     // HH:MM of "since 10:40"
	Deploy       bool       // "since the deploy": a change is suspected
	Intermittent bool       // "sometimes", "one in ten"
	Rate         float64    // the share that is said to fail, 0.1 of "one in ten"; 0 when the text does not say
	Idle         bool       // what is said to break are connections on which nothing happens for a while
	Jitter       bool       // what is said to be wrong is that times vary
	Delay        float64    // seconds that are said to be too many or lost, of "200 ms more"; 0 when the text does not say
	Correction   bool       // "no, it is ...", "not X but Y": another target was meant
	Bare         bool       // the correction hangs on the word "no", which may answer something else
	Addition     bool       // "as well", "too": beside what was named before
	Not          []Endpoint // what the text says it is not
	Fine         []Endpoint // what the text says is in order
	Off          []Endpoint // what the text says is to be left alone
	Finish       bool       // "wrap up", "conclude"
}

// Is reports whether the text speaks of k.
func (s Symptom) Is(k Kind) bool { return slices.Contains(s.Kinds, k) }

// Limits: how much text is read and how many endpoints are kept. People paste
// whole logs; the first lines carry the fault.
const (
	maxText    = 10_000
	maxTargets = 4
	maxMore    = 8
)

// Parse reads a text. It never fails; a text that says nothing yields a
// Symptom without targets.
func Parse(text string) Symptom {
	text = withoutShown(Clean(text))
	raw := text
	text = plainText(text)
	numbers := codes(text)
	s := Symptom{
		Kinds:        kinds(text, numbers),
		Codes:        numbers,
		Deploy:       deployWords.MatchString(text),
		Intermittent: sometimesWords.MatchString(text),
		Finish:       finishWords.MatchString(text),
	}
	if s.Rate = rate(text); s.Rate > 0 {
		s.Intermittent = true
	}
	s.Idle = idleWords.MatchString(text)
	s.Jitter = jitterWords.MatchString(text)
	if s.Is(Slow) || s.Is(Path) {
		s.Delay = delay(text)
	}
	if m := sinceTime.FindStringSubmatch(text); m != nil {
		s.Since = m[1]
	}
	f := newFinder(text)
	f.run(s.Is(Name))
	s.More = f.more
	s.Targets, s.Resolver, s.PortOnly = f.targets, f.resolver, f.portOnly
	if s.Is(Path) { // about the way there
		for i, t := range s.Targets {
			if t.Usual != "" {
				s.Targets[i] = Endpoint{Host: t.Host}
			}
		}
	}
	f.hear(&s, raw)
	if s.Resolver != nil && !s.Is(Name) {
		s.Kinds = append([]Kind{Name}, s.Kinds...)
	}
	for _, list := range [][]Endpoint{s.Targets, s.Not, s.Fine, s.Off} {
		for i := range list {
			list[i] = list[i].guess(s.Is(Certificate) && !f.tls)
		}
	}
	s.Targets = withPaths(s.Targets, text)
	return s
}

// Clean cuts a text to the length that is read and replaces what can hide or
// reorder other characters (controls, bidirectional marks, zero-width
// characters) by blanks.
func Clean(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == unicode.ReplacementChar, unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, " "))
}

var (
	sinceTime      = pattern.New(`(?i)\b(?:since|from|after|around|about|at|seit|ab|depuis|desde|dalle)\s+(?:about\s+|around\s+|ca\.?\s+)?([01]?\d:[0-5]\d|2[0-3]:[0-5]\d)\b`)
	deployWords    = pattern.New(`(?i)\b(deploy(ed|ment|s)?|roll-?out|release[ds]?|upgrade[ds]?|restart(ed)?|reboot(ed)?|migrat(ed|ion)|config(uration)? change|new version|maintenance)\b`)
	sometimesWords = pattern.New(`(?i)\b(sometimes|intermittent(ly)?|sporadic(ally)?|occasional(ly)?|now and then|every now|once in a while|flak[yi]\w*|flapp\w*|random(ly)?|some (requests|calls|users|connections|clients|people|customers)|(one|\d{1,3}) (in|of|out of) (every )?(\d{1,4}|two|three|four|five|six|eight|ten|twenty|hundred)\b|one in|p9\d|tail latenc\w+|(every|each) (second|third|fourth|fifth|other|few|\d+(nd|rd|th))|now and again|half of|\d+ ?(%|percent)|on and off|manchmal|parfois|a veces)`)
	idleWords      = pattern.New(`(?i)\bidle\b|\bidling\b|keep-?alives?\b|\blong-lived\b|\binactiv\w+|after (about |around |~)?(a few|some|\d+) ?(s|secs?|seconds?|m|mins?|minutes?|hours?) (of|without) (silence|traffic|inactivity|activity|queries|use)`)
	finishWords    = pattern.New(`(?i)^\s*(please\s+)?(wrap (it )?up|conclude|finish( up)?|that'?s enough|enough|report now|close (it|the case))\b`)
	statusCode     = pattern.New(`(?i)(?:^|[^\d.:/\w-])([1-5]\d\d)(?:s|er)?(?:$|[^\d.:\w-]|[.:](?:\s|$))`)
	afterNumber    = pattern.New(`(?i)^\s+s\b|^\s*(ms|millisec|sec|min|bytes?|kb|mb|users?|requests?|times?|rps|qps|req|conn|days?|hours?|%|percent|of\b|clients?|people|orders?)`)
	beforeNumber   = pattern.New(`(?i)(\bport|\bpid|\bline|\bid|\btook|\babout|\bover|\bfor|\bwithin|\bafter|#|\$|\bhop|[(\[]|errno)\s*$`)
	statusContext  = pattern.New(`(?i)\b(http|https|status|code|returns?|returned|gets?|got|getting|answers?|answered|respon\w+|error|errors|gateway|throws?|serv(es|ing)|sees?|seeing|with|gives?|bad|unavailable|upstream|proxy|5xx|shows?|fails?)\b`)
)

// codes finds HTTP status codes. A number counts when it is one that people
// speak of, or when the text around it speaks of answers.
func codes(text string) []int {
	var out []int
	if regexp5xx.MatchString(text) {
		out = append(out, 500)
	}
	for _, m := range statusCode.FindAllStringSubmatchIndex(text, -1) {
		n, _ := strconv.Atoi(text[m[2]:m[3]])
		if slices.Contains(out, n) || !plausibleCode(n, tail(text[:m[2]], 60), head(text[m[3]:], 30)) {
			continue
		}
		out = append(out, n)
		if len(out) == 4 {
			break
		}
	}
	return out
}

var regexp5xx = pattern.New(`(?i)\b5(xx|\d\d ?x)\b`)

func plausibleCode(n int, before, after string) bool {
	if afterNumber.MatchString(after) {
		return false
	}
	if n >= 500 && n <= 504 || n == 404 || n == 403 || n == 401 || n == 429 {
		return !portBefore.MatchString(before)
	}
	known := n >= 520 && n <= 527 || n >= 400 && n <= 431 || n == 451 || n == 499 || n >= 505 && n <= 511
	return known && !beforeNumber.MatchString(before) && statusContext.MatchString(before+" "+after)
}

var portBefore = pattern.New(`(?i)(\bport|\bpid|\bline|#)\s*$`)

func head(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

func tail(s string, n int) string {
	if len(s) > n {
		return s[len(s)-n:]
	}
	return s
}
