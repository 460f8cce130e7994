package slack

import (
	"strings"
	"unicode"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot/show"
	"ghostbot/bot/slack/kit"
)

func clean(s string) string { return show.Clean(s) }

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

func mentions(ids []string) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = mention(id)
	}
	return strings.Join(out, ", ")
}

func oneLine(s string) string { return show.OneLine(s) }

// The room kit makes untrusted text harmless; these are its names here.
func escape(s string) string                               { return kit.Escape(s) }
func isolate(s string) string                              { return kit.Isolate(s) }
func mention(id string) string                             { return kit.Mention(id) }
func cut(s string, n int) string                           { return kit.Cut(s, n) }
func wrapArgs(s string, width int) string                  { return kit.WrapArgs(s, width) }
func plainText(s string, n int) *slackgo.TextBlockObject   { return kit.PlainText(s, n) }
func mrkdwn(s string) string                               { return kit.Mrkdwn(s) }
func marked(s string, text, id func(string) string) string { return kit.Marked(s, text, id) }
