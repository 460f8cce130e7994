package kit

import (
	"regexp"
	"strings"
)

// Unmarkup turns Slack's markup of what a person typed back into plain text:
// <http://host|host> is the host they wrote, <@U1> the name that they saw, &amp; is &.
func Unmarkup(s string, name func(id string) string) string {
	var b strings.Builder
	last := 0
	for _, at := range markupForms.FindAllStringSubmatchIndex(s, -1) {
		b.WriteString(s[last:at[0]])
		last = at[1]
		target, label, ok := strings.Cut(s[at[2]:at[3]], "|")
		id, user := strings.CutPrefix(target, "@")
		switch {
		case ok && strings.HasPrefix(target, "http") && strings.Contains(target, label) && strings.Contains(label, "/"):
			b.WriteString(target)
		case ok && label != "":
			b.WriteString(label)
		case user:
			b.WriteString("@" + name(id))
		default:
			b.WriteString(target)
		}
	}
	b.WriteString(s[last:])
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(b.String())
}

// markupForms are the forms of Slack's markup; what else stands between < and > was
// typed so.
var markupForms = regexp.MustCompile(`<((?:@[UW][A-Z0-9]|#[CG][A-Z0-9]|![a-z]|https?://|mailto:|tel:)[^<>\n]*)>`)
