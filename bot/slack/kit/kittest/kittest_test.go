package kittest

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot/slack/kit"
)

const up = "../../../.."

// What is just enough passes, what is a little too much is named.
func TestLimits(t *testing.T) {
	l := Read(t, up)
	x := func(n int) string { return strings.Repeat("x", n) }
	button := func(label, value int) string {
		return `{"type":"button","action_id":"a","text":{"type":"plain_text","text":"` + x(label) + `"},"value":"` + x(value) + `"}`
	}
	for name, tt := range map[string]struct{ good, bad, want string }{
		"header":      {`{"type":"header","text":{"type":"plain_text","text":"` + x(150) + `"}}`, `{"type":"header","text":{"type":"plain_text","text":"` + x(151) + `"}}`, "151 characters"},
		"header text": {`{"type":"header","text":{"type":"plain_text","text":"x"}}`, `{"type":"header","text":{"type":"mrkdwn","text":"x"}}`, "is mrkdwn"},
		"label":       {`{"type":"actions","elements":[` + button(75, 1) + `]}`, `{"type":"actions","elements":[` + button(76, 1) + `]}`, "76 characters"},
		"value":       {`{"type":"actions","elements":[` + button(5, 2000) + `]}`, `{"type":"actions","elements":[` + button(5, 2001) + `]}`, "2001 characters"},
		"twice":       {`{"type":"actions","elements":[` + button(5, 1) + `]}`, `{"type":"actions","elements":[` + button(5, 1) + `,` + button(5, 1) + `]}`, "action_id twice"},
		"section":     {`{"type":"section","text":{"type":"mrkdwn","text":"x"}}`, `{"type":"section"}`, "one_of_required"},
		"rich text":   {`{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"x"}]}]}`, `{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"broadcast","range":"here"}]}]}`, "everybody is paged"},
		"empty":       {`{"type":"rich_text","elements":[{"type":"rich_text_quote","elements":[{"type":"text","text":"x"}]}]}`, `{"type":"rich_text","elements":[{"type":"rich_text_quote","elements":[{"type":"text","text":""}]}]}`, "an empty text"},
		"markup":      {`{"type":"section","text":{"type":"mrkdwn","text":"<@U1> &lt;"}}`, `{"type":"section","text":{"type":"mrkdwn","text":"<!here>"}}`, "markup"},
		"turned":      {`{"type":"section","text":{"type":"plain_text","text":"a"}}`, `{"type":"section","text":{"type":"plain_text","text":"\\u202e"}}`, "turns or hides"},
		"place":       {`{"type":"divider"}`, `{"type":"markdown","text":"x"}`, "not for a message"},
	} {
		if bad := l.Message("x", decode(t, tt.good)); len(bad) > 0 {
			t.Errorf("%s: what is good is refused: %v", name, bad)
		}
		if bad := l.Message("x", decode(t, tt.bad)); !slices.ContainsFunc(bad, func(s string) bool { return strings.Contains(s, tt.want) }) {
			t.Errorf("%s: %v, want %q", name, bad, tt.want)
		}
	}
	many := slices.Repeat([]slackgo.Block{slackgo.NewDividerBlock()}, 51)
	if len(l.Message("x", many[:50])) > 0 || len(l.Message("x", many)) == 0 || len(l.Home(many)) > 0 || len(l.Message("", many[:1])) == 0 {
		t.Error("the number of blocks, or the text beside them, is judged wrong")
	}
	if len(l.Ack(x(15000), nil)) > 0 || len(l.Ack(x(21000), nil)) == 0 {
		t.Error("an acknowledgement is judged wrong")
	}
	if bad := l.Message("x", slices.Repeat([]slackgo.Block{kit.Section(x(2900))}, 4)); len(bad) != 1 || !strings.Contains(bad[0], "11600 characters in all") {
		t.Errorf("the sum: %v", bad)
	}
	if bad := l.Modal(kit.Modal("id", x(3001), "t", "s", "c", kit.Section("x"))); len(bad) != 1 || !strings.Contains(bad[0], "private_metadata") {
		t.Errorf("a window: %v", bad)
	}
}

func decode(t *testing.T, block string) []slackgo.Block {
	t.Helper()
	var b slackgo.Blocks
	if err := json.Unmarshal([]byte("["+strings.ReplaceAll(block, `\\u`, `\u`)+"]"), &b); err != nil {
		t.Fatal(err)
	}
	return b.BlockSet
}

// A credential in boxes that are ticked at first is withheld there, too, and both stay the
// same: Slack takes no ticked box that is none.
func TestWithheld(t *testing.T) {
	const secret = "s3cr3ts3cr3ts3cr3t"
	o := slackgo.NewOptionBlockObject("1", kit.PlainText("end "+secret, 75), kit.PlainText("about "+secret, 75))
	boxes := slackgo.NewCheckboxGroupsBlockElement("picks", o)
	boxes.InitialOptions = []*slackgo.OptionBlockObject{o}
	blocks := []slackgo.Block{slackgo.NewActionBlock("picks", boxes)}
	if bad := Withheld(secret, "x", blocks); len(bad) > 0 {
		t.Error(bad)
	}
	_, out := kit.Whole("", blocks, func(s string) string { return strings.ReplaceAll(s, secret, "[R]") })
	got := out[0].(*slackgo.ActionBlock).Elements.ElementSet[0].(*slackgo.CheckboxGroupsBlockElement)
	if got.InitialOptions[0].Text.Text != got.Options[0].Text.Text || got.Options[0].Text.Text != "end [R]" || got.Options[0].Description.Text != "about [R]" {
		t.Errorf("%+v", got.Options[0])
	}
}

// What makes something that people see is found, in whatever way it does.
func TestBuilds(t *testing.T) {
	for body, want := range map[string]bool{
		"func f() []slackgo.Block { return nil }": true, "func f() (string, slackgo.RichTextElement) { return g() }": true, "func f() slackgo.ModalViewRequest { return v }": true,
		"func f() { g(slackgo.NewDividerBlock()) }": true, "func f() any { return &slackgo.HeaderBlock{} }": true, "func f() { g(kit.Section(s)) }": true,
		"func f() string { return kit.Escape(s) }": false, "func f() { slackgo.New(s) }": false,
	} {
		path := filepath.Join(t.TempDir(), "x.go")
		if err := os.WriteFile(path, []byte("package x\n\n"+body+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := builds(file.Decls[0].(*ast.FuncDecl)); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}
