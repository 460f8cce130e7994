package rca

import (
	"fmt"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
)

// earlier lists the closed cases that this one was reminded of, as the entry that
// names them tells it: their journals are not read again, so that the report stays
// a function of this case's own.
func (d *data) earlier(b *strings.Builder) {
	if len(d.k.Recalled) == 0 {
		return
	}
	at := d.opened
	for _, e := range d.entries {
		if e.Journal == audit.Case && e.Kind == agent.KindRecalled {
			at = e.ID()
			break
		}
	}
	b.WriteString("## Earlier Cases\n\n_Closed cases that look like this one, as their reports told it then. They are no evidence here._\n\n")
	for _, c := range d.k.Recalled {
		fmt.Fprintf(b, "- %s, closed %s, %s (confidence %s); in common: %s", d.prose(cut(plain(c.SessionID), 60)), c.ClosedAt.UTC().Format(time.DateOnly), d.prose(verdictWords(c.Verdict)), d.prose(cut(plain(c.Confidence), 20)), d.prose(cut(plain(c.Why), maxCell)))
		if found := cmpOr(strings.Join(c.Causes, " "), c.Summary); plain(found) != "" {
			fmt.Fprintf(b, "; found then: %s", d.prose(cut(plain(found), maxCell)))
		}
		if c.Head != "" {
			fmt.Fprintf(b, "; head %s", d.prose(cut(plain(c.Head), 40)))
		}
		if c.Note != "" {
			fmt.Fprintf(b, " (%s)", d.prose(cut(plain(c.Note), maxCell)))
		}
		b.WriteString(cite(at) + "\n")
	}
	b.WriteByte('\n')
}

// verdictWords says a verdict for people.
func verdictWords(v string) string {
	switch v {
	case RootCause:
		return "root cause found"
	case NoFault:
		return "no fault found"
	case Unverified:
		return "nothing could be shown"
	}
	return cut(plain(v), 40)
}
