package slack

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ghostbot/bot/slack/kit"
	"ghostbot/bot/slack/kit/kittest"
	slacksim "ghostbot/internal/sim/slack"
	"ghostbot/internal/sim/slack/blockkit"
	"ghostbot/safeexec/redact"

	slackgo "github.com/slack-go/slack"
)

// tricks are pieces of text that page, link, format, reorder, or break out of something.
var tricks = []string{
	"<!channel>", "<!here>", "<!everyone>", "<@U0ONCALL01>", "<@U0ONCALL01|x>", "<!subteam^S0NETOPS01>", "<!subteam^S0NETOPS01|@all>", "@channel", "@here",
	"<#C0LAB00001>", "<https://evil.example.com|https://good.example.com>", "<mailto:a@example.com|b>", "<!date^0^{date}^https://evil.example.com|x>",
	"[good](https://evil.example.com)", "`", "```", "```\n<!channel>\n```", "*b*", "_i_", "~s~", "> q", "&lt;!channel&gt;", "&amp;lt;!here&amp;gt;", "&", "<", ">",
	"\u202e", "\u2066", "\u2067", "\u2069", "\u200f", "\u202d", "\u061c", "\x00", "\x02U1\x03", "\x03", "\x1b[31m", "\r\n", "\u2028", "\ufeff", "\U0001f525", "e\u0301\u0301\u0301",
	"שלום", "\xff\xfe", "<!", "<@", "|", "\\", "\"", "${x}", "%s", "ordinary words", "https://example.com/path", "127.0.0.1:18080",
}

func trick(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(6) {
		b.WriteString(tricks[r.IntN(len(tricks))])
		if r.IntN(3) == 0 {
			b.WriteString(strings.Repeat(tricks[r.IntN(len(tricks))]+" ", r.IntN(600)))
		}
	}
	return b.String()
}

// spoil replaces every text below v that is not one of ours by tricks.
func spoil(v reflect.Value, r *rand.Rand, name string) {
	ours := []string{"Key", "SessionID", "Kind", "State", "ProposalID", "Digest", "AuditID", "ID", "Path", "Markdown", "Approvers"} // the last are the configuration's
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			spoil(v.Elem(), r, name)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				spoil(v.Field(i), r, v.Type().Field(i).Name)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i), r, name)
		}
	case reflect.String:
		if !slices.Contains(ours, name) {
			v.SetString(trick(r))
		}
	}
}

// ours is the markup that this front writes itself: a time, and links to other messages.
var ours = regexp.MustCompile(`<@U1>|<!subteam\^S1>|<!date\^[0-9]+\^\{[a-z_]+\}[^<>^|]*\|[^<>|]*>`)

var turning = regexp.MustCompile("[\u202a-\u202e\u2066\u2067\u200e\u200f\u061c\x00-\x08\x0b-\x1f]")

// checkSafe holds one message against everything that must not be in it.
func checkSafe(t *testing.T, name, text string, blocks []slackgo.Block, limits *kittest.Limits) (raw []byte) {
	t.Helper()
	raw, err := json.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	list, err := blockkit.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range blockkit.CheckMessage(list) {
		t.Errorf("%s: %+v", name, v)
	}
	for _, v := range limits.Message(text, blocks) {
		t.Errorf("%s: %s", name, v)
	}
	if n := textLen(raw); n > 10000 {
		t.Errorf("%s: %d characters in all", name, n)
	}
	if n := utf8.RuneCountInString(text); n == 0 || n > 4000 {
		t.Errorf("%s: the text has %d characters", name, n)
	}
	for _, s := range append(mrkdwnTexts(raw), text) {
		if rest := ours.ReplaceAllString(s, ""); strings.ContainsAny(rest, "<>") {
			t.Errorf("%s: markup in %q", name, rest)
		}
	}
	var plain any
	_ = json.Unmarshal(raw, &plain)
	back, _ := json.Marshal(plain) // the texts as they are, without escapes of < and >
	if at := turning.FindIndex(back); at != nil {
		t.Errorf("%s: a sign that turns or hides text at %q", name, back[max(0, at[0]-20):min(len(back), at[1]+20)])
	}
	return raw
}

// Whatever stands in the fields of whatever can be posted, nobody is paged, no link is
// forged, nothing breaks out, and no limit is exceeded; the workspace, which reads mentions as Slack
// does, says the same.
func TestNoTextGetsOut(t *testing.T) {
	limits := kittest.Read(t, "../..")
	s, err := slacksim.New(slacksim.Options{NoEcho: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	api := slackgo.New(s.BotToken, slackgo.OptionAPIURL(s.APIURL))
	red := redact.New(redact.Options{})
	r := rand.New(rand.NewPCG(11, 4))
	n := 0
	for range 12 {
		for name, m := range everyMessage() {
			spoil(reflect.ValueOf(&m).Elem(), r, "")
			text, blocks := render(m)
			text, blocks = kit.Whole(text, blocks, func(s string) string { return red.Redact(s).Text })
			checkSafe(t, name, text, blocks, limits)
			if t.Failed() {
				return
			}
			if n++; n%9 == 0 {
				if _, _, err := api.PostMessageContext(t.Context(), "C0LAB00001", slackgo.MsgOptionText(text, false), slackgo.MsgOptionBlocks(blocks...)); err != nil {
					t.Errorf("%s is refused: %v", name, err)
				}
			}
		}
	}
	if p := s.Pages(); p.Total+p.Silent > 0 || len(s.Messages("C0LAB00001")) < 20 {
		t.Errorf("people are paged: %+v", p)
	}
}

// A credential that is split over two parts of a message is withheld in both, one that is whole
// is masked, and nothing else changes.
func TestCredentialsInParts(t *testing.T) {
	secret := "xox" + "b-" + strings.Repeat("1", 12) + "-" + strings.Repeat("aB3x", 6)
	red := redact.New(redact.Options{Known: []string{secret}})
	mask := func(s string) string { return red.Redact(s).Text }
	half := len(secret) / 2
	split := []slackgo.Block{kit.Section("first " + secret[:half]), kit.Section(secret[half:] + " last")}
	_, blocks := kit.Whole("text", split, mask)
	raw, err := json.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), secret[half:]) || strings.Count(string(raw), kit.Withheld) != 2 || len(blocks) != 2 {
		t.Errorf("split: %s", raw)
	}
	text, blocks := kit.Whole("see "+secret, []slackgo.Block{kit.Section("it is " + secret + " here")}, mask)
	raw, _ = json.Marshal(blocks)
	if strings.Contains(text+string(raw), secret) || !strings.Contains(string(raw), "it is ") {
		t.Errorf("whole: %s %s", text, raw)
	}
	command := []slackgo.Block{kit.Section("az storage blob delete --name stray.cap --auth-mode login"), kit.Section("Skip")}
	_, blocks = kit.Whole("text", command, mask)
	if raw, _ = json.Marshal(blocks); !strings.Contains(string(raw), "stray.cap") || !strings.Contains(string(raw), "Skip") {
		t.Errorf("a command whose last word may lead a credential: %s", raw)
	}
	for name, m := range everyMessage() {
		text, blocks := render(m)
		gotText, got := kit.Whole(text, blocks, mask)
		before, _ := json.Marshal(blocks)
		after, _ := json.Marshal(got)
		if gotText != text || string(before) != string(after) {
			t.Errorf("%s is changed", name)
		}
	}
	if text, blocks := kit.Whole("x", nil, nil); text != "x" || blocks != nil {
		t.Error("without a redactor something changes")
	}
}

// Both checkers judge what is a little too much, and what is just enough, alike.
func TestCheckersAgree(t *testing.T) {
	limits := kittest.Read(t, "../..")
	text := func(n int) map[string]any {
		return map[string]any{"type": "plain_text", "text": strings.Repeat("x", n)}
	}
	many := func(n int, v any) []any { return slices.Repeat([]any{v}, n) }
	button := func(label, value int) map[string]any {
		return map[string]any{"type": "button", "text": text(label), "value": strings.Repeat("v", value)}
	}
	for name, b := range map[string][2]map[string]any{
		"header":   {{"type": "header", "text": text(150)}, {"type": "header", "text": text(151)}},
		"section":  {{"type": "section", "text": text(3000)}, {"type": "section", "text": text(3001)}},
		"fields":   {{"type": "section", "fields": many(10, text(5))}, {"type": "section", "fields": many(11, text(5))}},
		"field":    {{"type": "section", "fields": many(1, text(2000))}, {"type": "section", "fields": many(1, text(2001))}},
		"context":  {{"type": "context", "elements": many(10, text(5))}, {"type": "context", "elements": many(11, text(5))}},
		"label":    {{"type": "actions", "elements": []any{button(75, 1)}}, {"type": "actions", "elements": []any{button(76, 1)}}},
		"value":    {{"type": "actions", "elements": []any{button(5, 2000)}}, {"type": "actions", "elements": []any{button(5, 2001)}}},
		"actions":  {{"type": "actions", "elements": []any{button(5, 5)}}, {"type": "actions", "elements": []any{}}},
		"block_id": {{"type": "divider", "block_id": strings.Repeat("b", 255)}, {"type": "divider", "block_id": strings.Repeat("b", 256)}},
	} {
		for i, bad := range []bool{false, true} {
			list := []any{b[i]}
			raw, err := json.Marshal(list)
			if err != nil {
				t.Fatal(err)
			}
			var blocks slackgo.Blocks
			if err := json.Unmarshal(raw, &blocks); err != nil {
				t.Fatal(err)
			}
			sim, ref := len(blockkit.CheckMessage(list)) > 0, len(limits.Message("x", blocks.BlockSet)) > 0
			if sim != bad || ref != bad {
				t.Errorf("%s: the workspace refuses %v, the reference %v, want %v", name, sim, ref, bad)
			}
		}
	}
}
