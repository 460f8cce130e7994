package entry

import (
	"context"
	"fmt"
	"time"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot/slack/kit"
	"ghostbot/bot/slack/shortcut"
)

// Callback ids of windows.
const (
	ViewSymptom = "ghost_symptom"
	ViewOpinion = "ghost_opinion"
)

// SymptomWindow shows the words of a message to be confirmed and edited. left is how
// many characters of it are not there.
func SymptomWindow(text string, left int, meta string) slackgo.ModalViewRequest {
	input := slackgo.NewPlainTextInputBlockElement(kit.PlainText("What fails, where, since when", 100), "symptom")
	input.InitialValue, input.Multiline, input.MaxLength = text, true, shortcut.Max
	hint := "The words of the message. Remove what is beside the point; add a host, a URL or a port if there is none."
	if left > 0 {
		hint = fmt.Sprintf("The message is longer: %d characters of it are not here. %s", left, hint)
	}
	return kit.Modal(ViewSymptom, meta, "Investigate this", "Investigate", "Cancel",
		slackgo.NewInputBlock("symptom", kit.PlainText("Symptom", 100), kit.PlainText(hint, 300), input),
		kit.ContextLine("The case gets a thread of its own in the channel, with a link to this message. Everybody there sees the symptom."))
}

// OpinionWindow asks for words about a report, whose thumb is stored already.
func OpinionWindow(meta string) slackgo.ModalViewRequest {
	words := slackgo.NewPlainTextInputBlockElement(kit.PlainText("What was right, what was missing?", 100), "words")
	words.Multiline, words.MaxLength = true, 1000
	free := slackgo.NewInputBlock("words", kit.PlainText("In your own words", 100), kit.PlainText("Kept in the journal of the case.", 150), words)
	free.Optional = true
	return kit.Modal(ViewOpinion, meta, "Thank you", "Send", "Skip", kit.Section("Your answer is stored. Words are optional."), free)
}

// SendFile sends somebody the report of a case, where nobody else sees it: in their
// conversation with the bot, which a message to a person opens.
func (c *Counter) SendFile(ctx context.Context, a Asked, sid string) Answer {
	fctx, done := context.WithTimeout(ctx, 15*time.Second)
	defer done()
	if _, no := c.known(fctx, a, sid); no.Text != "" {
		return no
	}
	name := kit.Escape(sid)
	body, err := c.o.Lobby.Report(sid)
	if err != nil || len(body) == 0 {
		c.o.Log.Warn("report is not read", "session_id", sid, "err", err)
		return say("The report file of `%s` could not be read. Tell whoever runs the bot; `ghostbot audit rca` writes it again.", name)
	}
	dm, _, err := c.o.API.PostMessageContext(fctx, a.User, slackgo.MsgOptionText("The report of case "+name+":", false))
	if err == nil {
		_, err = c.o.API.UploadFileContext(fctx, slackgo.UploadFileParameters{Filename: kit.ReportName(sid), Title: "Root cause analysis " + sid,
			Content: string(body), FileSize: len(body), Channel: dm})
	}
	if err != nil {
		c.o.Log.Warn("report is not sent", "session_id", sid, "err", err)
		return say("The report could not be sent. It is attached in the case's thread.")
	}
	return say("The report of `%s` is in your conversation with me.", name)
}
