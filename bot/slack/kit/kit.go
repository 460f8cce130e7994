// Package kit is what the rooms of the Slack front build messages of: untrusted text
// made harmless, and the few blocks that are used everywhere. It is pure.
package kit

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot/show"
)

// Escape makes untrusted text safe for mrkdwn: no <...> markup can arise from it
// (Slack's formatting reference: escape &, < and >, in that order), and no code
// style, in which this front alone writes heads and ids.
func Escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "'").Replace(show.Clean(s))
}

// Cut shortens s to n runes, with an ellipsis that says so.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

// Isolate keeps letters that are written from right to left from reordering what
// stands around them (Unicode's FSI and PDI); other text stays as it is.
func Isolate(s string) string {
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

// Mention is the markup for a user or group id; anything else is escaped.
func Mention(id string) string {
	for _, r := range id {
		if !(r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return Escape(Cut(id, 80))
		}
	}
	switch {
	case strings.HasPrefix(id, "S"):
		return "<!subteam^" + id + ">"
	case strings.HasPrefix(id, "U"), strings.HasPrefix(id, "W"):
		return "<@" + id + ">"
	}
	return Escape(Cut(id, 80))
}

// PlainText is a plain_text object, which parses no markup.
func PlainText(s string, n int) *slackgo.TextBlockObject {
	s = Cut(show.OneLine(s), n)
	if s == "" {
		s = " "
	}
	return slackgo.NewTextBlockObject(slackgo.PlainTextType, s, false, false)
}

// Markup is a mrkdwn object of text that is already safe. Verbatim: bare URLs
// and names in it are not linked.
func Markup(s string, n int) *slackgo.TextBlockObject {
	return slackgo.NewTextBlockObject(slackgo.MarkdownType, Cut(s, n), false, true)
}

// RichText is one block of elements in which nothing is markup.
func RichText(id string, elements ...slackgo.RichTextElement) []slackgo.Block {
	return []slackgo.Block{slackgo.NewRichTextBlock(Cut(id, 200), elements...)}
}

// Word is text in a rich text.
func Word(s string) slackgo.RichTextSectionElement {
	if s == "" {
		s = " "
	}
	return slackgo.NewRichTextSectionTextElement(s, nil)
}

// Bold is Word in bold.
func Bold(s string) slackgo.RichTextSectionElement {
	if s == "" {
		s = " "
	}
	return slackgo.NewRichTextSectionTextElement(s, &slackgo.RichTextSectionTextStyle{Bold: true})
}

// Code is one line in the style of code.
func Code(s string) slackgo.RichTextSectionElement {
	s = show.OneLine(s)
	if s == "" {
		s = " "
	}
	return slackgo.NewRichTextSectionTextElement(s, &slackgo.RichTextSectionTextStyle{Code: true})
}

// Section is a block of text that is already safe.
func Section(s string) slackgo.Block {
	return slackgo.NewSectionBlock(Markup(s, 3000), nil, nil)
}

// ContextLine is a small line of text that is already safe.
func ContextLine(s string) slackgo.Block {
	return slackgo.NewContextBlock("", Markup(s, 2000))
}

// When shows a time in the reader's own zone, with UTC as the fallback.
func When(t time.Time) string {
	return fmt.Sprintf("<!date^%d^{time}|%s>", t.Unix(), t.UTC().Format("15:04 UTC"))
}

// Link is a link with a label of ours, or the label alone when the address is not
// one that can stand in markup.
func Link(url, label string) string {
	if !SafeLink(url) {
		return label
	}
	return "<" + url + "|" + label + ">"
}

// SafeLink reports whether a link can stand in markup: nothing in it would end it
// early.
func SafeLink(url string) bool {
	return (strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")) && !strings.ContainsAny(url, "<>|\"` ") && show.OneLine(url) == url
}

// Permalink is the address of a message of the workspace at base ("https://x.slack.com/"),
// in the form that chat.getPermalink documents. It costs no call. thread is the
// address of the thread's first message, or "" when ts is itself one.
func Permalink(base, channel, thread, ts string) string {
	if base == "" || channel == "" || ts == "" {
		return ""
	}
	url := strings.TrimSuffix(base, "/") + "/archives/" + channel + "/p" + strings.Replace(ts, ".", "", 1)
	if thread != "" && thread != ts {
		url += "?thread_ts=" + thread + "&cid=" + channel
	}
	return url
}

// Age is how long ago something was, in one or two words.
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// Modal is a window with fields; meta is what its answer brings back.
func Modal(id, meta, title, submit, closeText string, blocks ...slackgo.Block) slackgo.ModalViewRequest {
	return slackgo.ModalViewRequest{
		Type: slackgo.VTModal, CallbackID: id, PrivateMetadata: meta, NotifyOnClose: true,
		Title: PlainText(title, 24), Submit: PlainText(submit, 24), Close: PlainText(closeText, 24),
		Blocks: slackgo.Blocks{BlockSet: blocks},
	}
}

// Mrkdwn escapes text and turns the marks of access.Mention into Slack mentions.
func Mrkdwn(s string) string { return Marked(s, Escape, Mention) }

// Marked applies text to what stands outside of the marks of access.Mention, and id
// to what stands in them.
func Marked(s string, text, id func(string) string) string {
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

// ReportName is what the report of a case is called as a file.
func ReportName(sid string) string { return "ghost_rca_" + sid + ".md" }

// CommandMax is the longest command that is offered for approval: beyond it people
// cannot read what they approve.
const CommandMax = 2500

// WrapArgs breaks a quoted command line at blanks outside quotes, so that no
// argument hides behind a phone's edge. What is hashed and run is the list.
func WrapArgs(s string, width int) string {
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

// Pre is a block of code in a rich text, with lines as they are.
func Pre(s string) slackgo.RichTextElement {
	p := &slackgo.RichTextPreformatted{}
	p.Type = slackgo.RTEPreformatted
	p.Elements = []slackgo.RichTextSectionElement{Word(show.Clean(s))}
	return p
}
