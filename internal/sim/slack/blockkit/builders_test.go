package blockkit

import (
	"encoding/json"
	"testing"

	"github.com/slack-go/slack"
)

func pto(s string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, s, true, false)
}

func mdo(s string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.MarkdownType, s, false, true)
}

func opt(v string) *slack.OptionBlockObject {
	return slack.NewOptionBlockObject(v, pto(v), nil)
}

// What the official builders make passes, and comes back as the same thing: the checker refuses
// nothing that a bot on slack-go can sensibly send.
func TestBuildersPass(t *testing.T) {
	confirm := slack.NewConfirmationBlockObject(pto("Sure?"), mdo("It *runs*."), pto("Yes"), pto("No")).WithStyle(slack.StyleDanger)
	btn := slack.NewButtonBlockElement("go", "v", pto("Go")).WithStyle(slack.StylePrimary).WithConfirm(confirm)
	btn.AccessibilityLabel = "Go ahead with it"
	pre := &slack.RichTextPreformatted{Type: slack.RTEPreformatted, Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement("$ ss -ltn", nil)}}
	rich := slack.NewRichTextBlock("rich",
		slack.NewRichTextSection(
			slack.NewRichTextSectionTextElement("bold", &slack.RichTextSectionTextStyle{Bold: true}),
			slack.NewRichTextSectionUserElement("U1", nil), slack.NewRichTextSectionEmojiElement("ghost", 2, nil),
			slack.NewRichTextSectionLinkElement("https://example.com", "here", nil), slack.NewRichTextSectionBroadcastElement("here"),
			slack.NewRichTextSectionChannelElement("C1", nil), slack.NewRichTextSectionUserGroupElement("S1")),
		slack.NewRichTextList(slack.RTEListBullet, 1, slack.NewRichTextSection(slack.NewRichTextSectionTextElement("item", nil))),
		pre)
	for name, block := range map[string]slack.Block{
		"header":   slack.NewHeaderBlock(pto("Title")),
		"divider":  slack.NewDividerBlock(),
		"section":  slack.NewSectionBlock(mdo("*text*"), []*slack.TextBlockObject{mdo("a"), pto("b")}, slack.NewAccessory(btn), slack.SectionBlockOptionBlockID("s")),
		"picture":  slack.NewSectionBlock(mdo("x"), nil, slack.NewAccessory(slack.NewImageBlockElement("https://example.com/x.png", "alt"))),
		"context":  slack.NewContextBlock("c", mdo("a"), pto("b"), slack.NewImageBlockElement("https://example.com/x.png", "alt")),
		"image":    slack.NewImageBlock("https://example.com/x.png", "alt", "i", pto("Title")),
		"rich":     rich,
		"markdown": slack.NewMarkdownBlock("m", "# Title\n- item"),
		"table":    slack.NewTableBlock("t").AddRow(slack.NewTableRawTextCell("a"), slack.NewTableRawTextCell("b")),
		"actions": slack.NewActionBlock("a", btn,
			slack.NewOverflowBlockElement("more", opt("d"), opt("s")),
			slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, pto("Pick"), "pick", opt("1"), opt("2")),
			slack.NewOptionsSelectBlockElement(slack.OptTypeUser, pto("Who"), "who"),
			slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeStatic, pto("Many"), "many", opt("1")),
			slack.NewRadioButtonsBlockElement("radio", opt("r")),
			slack.NewCheckboxGroupsBlockElement("check", opt("c")),
			slack.NewDatePickerBlockElement("date"), slack.NewTimePickerBlockElement("time")),
		"input":          slack.NewInputBlock("i", pto("Label"), pto("Hint"), slack.NewPlainTextInputBlockElement(pto("Say"), "say")),
		"optional input": slack.NewInputBlock("i", pto("Label"), nil, slack.NewRadioButtonsBlockElement("radio", opt("r"))).WithOptional(true),
		"number":         slack.NewInputBlock("i", pto("Label"), nil, slack.NewNumberInputBlockElement(pto("n"), "n", true)),
		"address":        slack.NewInputBlock("i", pto("Label"), nil, slack.NewEmailTextInputBlockElement(pto("e"), "e")),
		"feedback": slack.NewContextActionsBlock("f", slack.NewFeedbackButtonsBlockElement("fb",
			slack.NewFeedbackButton(pto("Good"), "+"), slack.NewFeedbackButton(pto("Bad"), "-"))),
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal([]slack.Block{block})
			if err != nil {
				t.Fatal(err)
			}
			l, err := Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			if bad := CheckMessage(l); len(bad) != 0 {
				t.Errorf("%s\nrefused: %v", raw, bad)
			}
			AssignIDs(l, func() string { return "given" })
			again, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			var back slack.Blocks
			if err := json.Unmarshal(again, &back); err != nil || len(back.BlockSet) != 1 || back.BlockSet[0].BlockType() != block.BlockType() {
				t.Errorf("%s comes back as %+v, %v", again, back.BlockSet, err)
			}
		})
	}
}

func TestModalBuildersPass(t *testing.T) {
	view := slack.ModalViewRequest{
		Type: slack.VTModal, Title: pto("Edit the command"), Submit: pto("Propose"), Close: pto("Keep"), CallbackID: "edit",
		PrivateMetadata: "p-1", ExternalID: "e-1", NotifyOnClose: true, ClearOnClose: true,
		Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewInputBlock("cmd", pto("Command"), nil, slack.NewPlainTextInputBlockElement(nil, "c"))}}}
	home := slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewDividerBlock()}}}
	for name, v := range map[string]any{"modal": view, "home": home} {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var def map[string]any
		if err := json.Unmarshal(raw, &def); err != nil {
			t.Fatal(err)
		}
		if bad := CheckView(def); len(bad) != 0 {
			t.Errorf("%s: %s\nrefused: %v", name, raw, bad)
		}
	}
}
