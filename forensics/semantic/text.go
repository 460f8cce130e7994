package semantic

import (
	"fmt"
	"io"
	"strings"

	"ghostbot/forensics/finding/statement"
)

// Text writes the document's findings for people. clean makes one line of a text and
// takes out what could control a terminal.
func (d *Document) Text(w io.Writer, clean func(string) string) {
	s := &d.Summary
	fmt.Fprintf(w, "%s: %s in %.3f s: %s\n", clean(s.File), statement.Plural(int(s.Packets), "packet", "packets"), s.Duration, strings.Join(s.Protocols, " "))
	if d.Provenance.Error != "" {
		fmt.Fprintf(w, "  %s\n", clean(d.Provenance.Error))
	}
	for _, n := range d.Provenance.Incomplete {
		fmt.Fprintf(w, "  note: %s\n", clean(n))
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		fmt.Fprintf(w, "\n%-8s %s: %s\n", f.Severity, f.Code, clean(f.Summary))
		if f.Flow != "" {
			fmt.Fprintf(w, "  flow: %s\n", clean(f.Flow))
		}
		fmt.Fprintf(w, "  %s\n", clean(f.Detail))
		if len(f.Frames) > 0 {
			fmt.Fprintf(w, "  frames: %s\n", strings.Trim(fmt.Sprint(f.Frames), "[]"))
		}
		if f.Limits != "" {
			fmt.Fprintf(w, "  not to be judged here: %s\n", clean(f.Limits))
		}
		if f.Confirm != "" {
			fmt.Fprintf(w, "  to confirm: %s\n", clean(f.Confirm))
		}
	}
}
