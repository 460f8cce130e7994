// Package window lays out the windows that open behind the buttons of a card. It is pure;
// what is sent back is judged elsewhere.
package window

import (
	slackgo "github.com/slack-go/slack"

	"ghostbot/bot/slack/kit"
)

// Callback ids of windows.
const (
	ViewReason = "ghost_reason"
	ViewEdit   = "ghost_edit"
	ViewCode   = "ghost_code"
)

// canned are reasons that are offered beside free text; the brain reads the words.
var canned = []string{
	"Wrong target", "Too risky right now", "Not needed, try something else", "I will check this myself", "Wrong resource group, account or name",
}

// Reason asks why a command was denied, which is decided already.
func Reason(meta string) slackgo.ModalViewRequest {
	var opts []*slackgo.OptionBlockObject
	for _, r := range canned {
		opts = append(opts, slackgo.NewOptionBlockObject(r, kit.PlainText(r, 75), nil))
	}
	pick := slackgo.NewInputBlock("canned", kit.PlainText("Reason", 100), nil, slackgo.NewOptionsSelectBlockElement(slackgo.OptTypeStatic, kit.PlainText("Choose a reason", 100), "canned", opts...))
	pick.Optional = true
	words := slackgo.NewPlainTextInputBlockElement(kit.PlainText("What should the bot do instead?", 100), "words")
	words.Multiline, words.MaxLength = true, 1000
	free := slackgo.NewInputBlock("words", kit.PlainText("In your own words", 100), kit.PlainText("The bot reads this and plans around it.", 150), words)
	free.Optional = true
	return kit.Modal(ViewReason, meta, "Denied", "Send", "Skip",
		kit.Section("The command is *denied* and nothing runs. A reason helps the investigation."), pick, free)
}

// Edit shows a command to be changed.
func Edit(meta, command string) slackgo.ModalViewRequest {
	input := slackgo.NewPlainTextInputBlockElement(nil, "command")
	input.InitialValue, input.Multiline, input.MaxLength = kit.Cut(command, kit.CommandMax), true, kit.CommandMax
	block := slackgo.NewInputBlock("command", kit.PlainText("Command", 100), kit.PlainText("One command without pipes or substitutions. It is classified again and, unless it is read-only, asked for again.", 300), input)
	return kit.Modal(ViewEdit, meta, "Edit the command", "Propose", "Keep as it is", block)
}

// Code asks for a code of an authenticator app, under the command that it is for.
func Code(meta, command string) slackgo.ModalViewRequest {
	input := slackgo.NewPlainTextInputBlockElement(kit.PlainText("Six digits", 100), "code")
	input.MaxLength = 12
	code := slackgo.NewInputBlock("code", kit.PlainText("Code of your authenticator app", 100), kit.PlainText("A code counts once. Nobody but this window asks you for it.", 150), input)
	return kit.Modal(ViewCode, meta, "Approve with a code", "Approve", "Back",
		slackgo.NewRichTextBlock("command", kit.Pre(kit.WrapArgs(kit.Cut(command, kit.CommandMax), 60))), code)
}

// Unstored is what stands under the field block when the store did not answer. A code is used up by then, or
// may be: it is checked first, and what was typed once is never taken again.
func Unstored(block string) string {
	const unknown = "The store did not answer, so whether this is stored is not known. "
	if block == "code" {
		return unknown + "Take your code for used up: wait until your app shows the next one, and send that. The approval counts once."
	}
	return unknown + "Send it again in a moment: it counts once."
}
