package slack

import (
	"strings"
	"unicode"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot/show"
)

func clean(s string) string { return show.Clean(s) }

// escape makes untrusted text safe for mrkdwn: no <...> markup can arise from it
// (Slack's formatting reference: escape &, < and >, in that order), and no code
// style, in which this front alone writes heads and ids.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "'").Replace(clean(s))
}

// mrkdwn escapes text and turns the marks of access.Mention into Slack mentions.
func mrkdwn(s string) string { return marked(s, escape, mention) }

// marked applies text to what stands outside of the marks of access.Mention, and id
// to what stands in them.
func marked(s string, text, id func(string) string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '\x02')
		if i < 0 {
			break
		}
		j := strings.IndexByte(s[i:], '\x03')
		if j < 0 {
			break
		}
		b.WriteString(text(s[:i]))
		b.WriteString(id(s[i+1 : i+j]))
		s = s[i+j+1:]
	}
	b.WriteString(text(s))
	return b.String()
}

// headline is a symptom as a title: without the signs that make a title loud or
// unreadable (pictures, piles of accents), and cut. whole reports that nothing of the
// symptom is missing.
func headline(symptom string, n int) (title string, whole bool) {
	marks := 0
	title = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Me) {
			if marks++; marks > 2 {
				return -1
			}
		} else {
			marks = 0
		}
		if picture(r) {
			return -1
		}
		return r
	}, symptom)
	title = cut(oneLine(title), n)
	return title, title == symptom
}

// picture reports whether r is drawn as an emoji, or changes how one is drawn.
func picture(r rune) bool {
	return r >= 0x1f000 && r <= 0x1faff || r >= 0x2600 && r <= 0x27bf || r >= 0x2b00 && r <= 0x2bff || r >= 0x2300 && r <= 0x23ff ||
		r >= 0xfe00 && r <= 0xfe0f || r == 0x20e3
}

// tame is a name of ours that went through a file or another program, for mrkdwn:
// letters, digits and what separates them, and nothing that formats.
func tame(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" .,:;/()+-'", r) {
			return r
		}
		return -1
	}, oneLine(s))
}

// isolate keeps letters that are written from right to left from reordering what
// stands around them (Unicode's FSI and PDI); other text stays as it is.
func isolate(s string) string {
	if strings.ContainsFunc(s, rightToLeft) {
		return "\u2068" + s + "\u2069"
	}
	return s
}

// rightToLeft reports whether r is in one of the blocks of such scripts.
func rightToLeft(r rune) bool {
	return r >= 0x0590 && r <= 0x08ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff ||
		r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}

// mention is the markup for a user or group id; anything else is escaped.
func mention(id string) string {
	for _, r := range id {
		if !(r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return escape(id)
		}
	}
	switch {
	case strings.HasPrefix(id, "S"):
		return "<!subteam^" + id + ">"
	case strings.HasPrefix(id, "U"), strings.HasPrefix(id, "W"):
		return "<@" + id + ">"
	}
	return escape(id)
}

func mentions(ids []string) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = mention(id)
	}
	return strings.Join(out, ", ")
}

// cut shortens s to n runes, with an ellipsis that says so.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

func oneLine(s string) string { return show.OneLine(s) }

// plainText is a plain_text object, which parses no markup.
func plainText(s string, n int) *slackgo.TextBlockObject {
	s = cut(oneLine(s), n)
	if s == "" {
		s = " "
	}
	return slackgo.NewTextBlockObject(slackgo.PlainTextType, s, false, false)
}

// markup is a mrkdwn object of text that is already safe. Verbatim: bare URLs
// and names in it are not linked.
func markup(s string, n int) *slackgo.TextBlockObject {
	o := slackgo.NewTextBlockObject(slackgo.MarkdownType, cut(s, n), false, true)
	return o
}

// wrapArgs breaks a quoted command line at blanks outside quotes, so that no
// argument hides behind a phone's edge. What is hashed and run is the list.
func wrapArgs(s string, width int) string {
	var b strings.Builder
	col, quote := 0, rune(0)
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		}
		if r == ' ' && quote == 0 && col >= width {
			b.WriteString("\n    ")
			col = 4
			continue
		}
		b.WriteRune(r)
		col++
	}
	return b.String()
}
