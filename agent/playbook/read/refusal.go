package read

import (
	"strings"

	"ghostbot/agent/playbook/pattern"
)

// Refusal is what a server says that takes a connection and turns its client away
// in words of its own protocol.
type Refusal struct {
	Kind  RefusalKind
	Words string // as the server wrote them, without the bytes around them
}

// RefusalKind is why a server turns a client away. The zero value is "it does not".
type RefusalKind string

// The kinds of refusals.
const (
	NoRefusal RefusalKind = ""
	Limit     RefusalKind = "limit"  // of connections, clients or the pace of connecting
	Denied    RefusalKind = "denied" // this client is not let in
	SignIn    RefusalKind = "auth"   // nobody is without signing in
	NotReady  RefusalKind = "state"  // starting, stopping, or not serving just now
)

// refusals are the words of servers by kind; the first that the text has decides. A
// code counts at the start of a greeting only: later ones answer what was asked.
var refusals = []struct {
	kind RefusalKind
	says *pattern.Pattern
}{
	{SignIn, pattern.New(`^-(?:NOAUTH|WRONGPASS)\b|^CLIENT_ERROR unauthenticated|^530[ -]`)},
	{Denied, pattern.New(`(?i)is blocked because|is not allowed to connect|^-(?:DENIED|NOPERM)\b|not allowed at this time|^(?:55[04]|502)[ -].*(?:access|denied|not allowed|reject|blocked|refused|permission)|no pg_hba\.conf entry`)},
	{Limit, pattern.New(`(?i)max(?:imum)? (?:number of )?(?:clients|connections)|too many (?:open |concurrent |connected |client )?(?:clients|connections|users|sessions|processes)|exceeded maxstartups|remaining connection slots|connection limit|(?:more than|exceeded the) '?max_\w+|connections? per (?:host|ip|source)|connection rate`)},
	{NotReady, pattern.New(`(?i)^-(?:LOADING|MISCONF|MASTERDOWN|CLUSTERDOWN)\b|(?:database system|server|system) is (?:shutting|starting|loading|in recovery|not accepting)|service (?:not available|unavailable|shutting down|temporarily|closing)`)},
	{NotReady, pattern.New(`^(?:421|554)[ -]`)},
}

// Refuses reads the first bytes that a server sent.
func Refuses(text string) Refusal {
	if len(text) > 2000 {
		text = text[:2000]
	}
	for _, r := range refusals {
		if at := r.says.FindStringSubmatchIndex(text); at != nil {
			return Refusal{r.kind, sentence(text, at[0], at[1])}
		}
	}
	return Refusal{}
}

// sqlState stands before the words of an error packet of MySQL.
var sqlState = pattern.New(`^#[0-9A-Z]{5}`)

// pgBefore and pgBehind are the fields around the message of an error of PostgreSQL
// (its manual, Error and Notice Message Fields) when they run together.
var (
	pgBefore = pattern.New(`^(?:E[^S]{0,4})?S(?:FATAL|PANIC|ERROR)(?:V(?:FATAL|PANIC|ERROR))?C[0-9A-Z]{5}M`)
	pgBehind = pattern.New(`F[a-z_]+\.cL\d+R\w+$`)
)

// sentence is the printable text around a part of what a server sent: protocols of
// databases put bytes that are no text before and behind it.
func sentence(text string, from, to int) string {
	odd := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r == 0xfffd || r > 0x7e }
	if i := strings.LastIndexFunc(text[:from], odd); i >= 0 {
		from = i + 1
	} else {
		from = 0
	}
	if i := strings.IndexFunc(text[to:], odd); i >= 0 {
		to += i
	} else {
		to = len(text)
	}
	s := strings.TrimFunc(text[from:to], func(r rune) bool { return odd(r) || r == ' ' })
	if strings.HasPrefix(text, "E") && strings.Contains(text, "FATAL") { // PostgreSQL: a letter says which field it is, and what carries outputs may drop the zeros between them
		s = strings.TrimPrefix(pgBehind.ReplaceAllString(pgBefore.ReplaceAllString(s, ""), ""), "M")
	}
	return strings.TrimSpace(sqlState.ReplaceAllString(s, ""))
}
