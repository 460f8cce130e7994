// Package attach makes the files of a case's thread: the report, pictures of captures, and
// what commands printed, when it is too long for a card.
//
// # What may be in a file
//
// What the journals have, which the gate redacted and shortened, and pictures that the product's
// own analysis drew, whose hashes the journal has. Credentials are looked for again in an
// output; the report is sent as its hash says. Signs that turn or hide text are escaped in an output: it
// is shown as it is by whatever opens it.
//
// # Names
//
// Of case ids, entry numbers, hashes and words of ours alone. They are also how a file is
// found again after a crash, so that the same message always has the same name, and no two have
// one.
package attach

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image/png"
	"slices"
	"strings"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot/show"
	"ghostbot/bot/slack/kit"
)

// OutputMost bounds a file of an output, in bytes. The gate leaves far less.
const OutputMost = 256 << 10

// pixelsMost bounds a picture.
const pixelsMost = 16 << 20

// ErrNothing is a file that cannot be sent, and trying again does not mend it.
var ErrNothing = errors.New("the file is missing, empty, or not what it should be")

// temporary are answers of Slack after which an upload is tried again; every other refusal
// stands.
var temporary = append([]string{"ratelimited", "rate_limited"}, vague...)

// vague are those after which the file may be there.
var vague = []string{"internal_error", "fatal_error", "service_unavailable", "request_timeout", "file_update_failed"}

// Stands reports whether Slack's answer to an upload would be the same again.
func Stands(code string) bool { return !slices.Contains(temporary, code) }

// Unsent reports whether an upload ended before Slack was asked to show the file: then it
// cannot appear later. The library names the step.
func Unsent(err error) bool {
	var refused slackgo.SlackErrorResponse
	var limited *slackgo.RateLimitedError
	text := err.Error()
	return strings.HasPrefix(text, "GetUploadURLExternal: ") || strings.HasPrefix(text, "UploadToURL: ") ||
		errors.As(err, &limited) || errors.As(err, &refused) && !slices.Contains(vague, refused.Err)
}

// API is the part of Slack's that takes files.
type API interface {
	UploadFileContext(ctx context.Context, p slackgo.UploadFileParameters) (*slackgo.FileSummary, error)
}

// Name is what the file of a message is called.
func Name(m show.Message) string {
	switch {
	case m.Output != nil:
		return OutputName(m.Output.AuditID)
	case m.Plot != nil:
		return plotName(m.SessionID, m.Plot)
	}
	return kit.ReportName(m.SessionID)
}

// OutputName is what the output of a command is called as a file.
func OutputName(auditID string) string { return "ghost_output_" + plain(auditID, 80) + ".txt" }

// plotName names a picture by what it shows and by its hash.
func plotName(sid string, v *show.PlotView) string {
	return "ghost_plot_" + plain(sid, 80) + "_" + plain(shows(v.Name), 20) + "_" + plain(v.SHA256, 12) + ".png"
}

// shows is what a picture shows, in one of our words.
func shows(name string) string {
	stem := strings.TrimSuffix(name, ".png")
	if word := stem[strings.LastIndexByte(stem, '_')+1:]; slices.Contains(show.Pictures, word) {
		return word
	}
	return "plot"
}

// plain leaves the letters, digits and signs of a case id.
func plain(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return -1
	}, s)
	return s[:min(len(s), n)]
}

// Of is what is sent for a message. Its channel and thread are the caller's.
func Of(m show.Message, redact func(string) string) (slackgo.UploadFileParameters, error) {
	if redact == nil {
		redact = func(s string) string { return s }
	}
	p := slackgo.UploadFileParameters{Filename: Name(m)}
	switch {
	case m.Output != nil:
		p.Title, p.Content = words(m.Output.Title, 150, redact), output(m.Output.Text, redact)
		p.FileSize = len(p.Content)
	case m.Plot != nil:
		if !picture(m.Plot.PNG) {
			return p, ErrNothing
		}
		p.Title, p.AltTxt = words(m.Plot.Title, 150, redact), words(m.Plot.Alt, 1000, redact)
		p.Reader, p.FileSize = bytes.NewReader(m.Plot.PNG), len(m.Plot.PNG)
	case m.Report != nil:
		p.Title, p.Content, p.FileSize = "Root cause analysis "+m.SessionID, m.Report.Markdown, len(m.Report.Markdown)
	}
	if p.FileSize == 0 {
		return p, ErrNothing
	}
	return p, nil
}

// words are untrusted words beside a file: one line, in which nothing is markup.
func words(s string, n int, redact func(string) string) string {
	return kit.Cut(strings.NewReplacer("<", "(", ">", ")", "`", "'").Replace(show.OneLine(redact(s))), n)
}

// output is the text of a file; it is never empty.
func output(s string, redact func(string) string) string {
	s = show.Visible(redact(s))
	if len(s) > OutputMost {
		s = s[:OutputMost]
		for !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
		s += "\n[cut here: the journal has the rest]\n"
	}
	return s
}

// picture reports whether b is a PNG of a size that people can look at, with nothing behind
// it and no parts but those that the product writes.
func picture(b []byte) bool {
	c, err := png.DecodeConfig(bytes.NewReader(b))
	if err != nil || c.Width*c.Height > pixelsMost {
		return false
	}
	for at := 8; at+12 <= len(b); {
		n, kind := int(binary.BigEndian.Uint32(b[at:])), string(b[at+4:at+8])
		at += 12 + n
		switch kind {
		case "IHDR", "PLTE", "tRNS", "IDAT", "pHYs", "gAMA", "sRGB", "iTXt":
		case "IEND":
			return at == len(b) && n == 0
		default:
			return false
		}
	}
	return false
}

// Send adds the file of a message to a thread.
func Send(ctx context.Context, api API, channel, thread string, m show.Message, redact func(string) string) (id string, err error) {
	p, err := Of(m, redact)
	if err != nil {
		return "", err
	}
	p.Channel, p.ThreadTimestamp = channel, thread
	file, err := api.UploadFileContext(ctx, p)
	if err != nil {
		return "", err
	}
	return file.ID, nil
}

// Instead is what people see in place of a file that Slack does not take.
func Instead(m show.Message, why string) (string, []slackgo.Block) {
	what := "The report"
	where := "`ghostbot audit rca` writes it again where the bot runs"
	switch {
	case m.Output != nil:
		what, where = "The output of entry `"+kit.Escape(kit.Cut(m.Output.AuditID, 80))+"`", "`ghostbot audit show` shows it where the bot runs"
	case m.Plot != nil:
		what, where = "A picture of a capture ("+plain(shows(m.Plot.Name), 20)+")", "it is in the directory of the case where the bot runs"
	}
	text := what + " could not be added as a file: " + kit.Escape(kit.Cut(show.OneLine(why), 120)) + ". " + where + "."
	return text, []slackgo.Block{kit.ContextLine(text)}
}

// In returns the id of the file of a message among those that the bot itself added: a
// name alone could be somebody else's.
func In(got slackgo.Message, m show.Message, mine bool) string {
	if m.Kind != show.KindFile || !mine {
		return ""
	}
	for _, f := range got.Files {
		if f.Name == Name(m) {
			return f.ID
		}
	}
	return ""
}
