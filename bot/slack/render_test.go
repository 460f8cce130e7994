package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/bot/show"
	"ghostbot/internal/sim/slack/blockkit"
)

const sid = "ghost_20260314_104512"

// hostile is text that would page people, forge links or break a layout if any
// of it were taken as markup.
const hostile = "<!channel> <!here> <@U0> <!subteam^S1> <https://evil.example.com|https://good.example.com> *b* _i_ `c` ```x``` \u202edenied\u202c \x02U1\x03 \x00 &amp; & > \n> quote"

func at(h, m int) time.Time { return time.Date(2026, 3, 14, h, m, 0, 0, time.UTC) }

func card(state string) *show.CardView {
	exit := 0
	c := &show.CardView{SessionID: sid, ProposalID: strings.Repeat("a", 32), Digest: strings.Repeat("b", 64), AuditID: sid + "_007", State: state,
		Command: "tcpdump -i lo -c 20 -nn 'tcp port 18081'", Why: hostile, Hypothesis: "h1", Risk: hostile, Target: hostile, Effect: hostile,
		Timeout: time.Minute, Expires: at(11, 15), Approvers: []string{"U1", "S1"}, Needed: 2, Requester: "U1", Head: strings.Repeat("c", 32)}
	if state != bot.StatePending {
		c.By, c.At, c.Votes, c.Reason, c.Modified, c.Exit, c.Output, c.Detail = "U2", at(10, 50), []string{"U2"}, hostile, hostile, &exit, hostile, hostile
	}
	return c
}

// everyMessage is one of each, with hostile and oversize content.
func everyMessage() map[string]show.Message {
	long := strings.Repeat(hostile+" ", 400)
	var hs []agent.Hypothesis
	var steps []show.Step
	for i := range 30 {
		hs = append(hs, agent.Hypothesis{ID: fmt.Sprint("h", i), Description: long, State: agent.Active, Why: long})
		steps = append(steps, show.Step{Command: long, State: hostile, Seconds: 3})
	}
	lines := make([]string, 40)
	causes := make([]agent.Cause, 40)
	for i := range lines {
		lines[i] = long
		causes[i] = agent.Cause{Statement: long, Evidence: []string{sid + "_007", sid + "_009"}}
	}
	q := agent.Question{ID: "q1", Text: long, Options: []agent.Option{{Key: "report", Label: hostile}, {Key: "extend", Label: "Extend"}}, Expires: at(11, 0)}
	ms := map[string]show.Message{
		"root":      {Key: "root", Kind: show.KindRoot, Root: &show.RootView{Symptom: long, State: "investigating", Requester: "U1", Brain: hostile, Verdict: "root_cause"}},
		"root none": {Key: "root", Kind: show.KindRoot, Root: &show.RootView{Symptom: "x", State: "investigating", Requester: "U1", Approvers: []string{"U1"}}},
		"progress":  {Key: "progress", Kind: show.KindProgress, Text: long, Progress: &show.ProgressView{Hypotheses: hs, Steps: steps[:12], Hidden: 18}},
		"empty":     {Key: "progress", Kind: show.KindProgress, Progress: &show.ProgressView{}},
		"say":       {Key: "say/002", Kind: show.KindSay, Text: long},
		"question":  {Key: "question/q1", Kind: show.KindQuestion, Question: &show.QuestionView{Question: q}},
		"answered":  {Key: "question/q1", Kind: show.KindQuestion, Question: &show.QuestionView{Question: q, Answer: &agent.Answer{Key: "report", By: "U1", Text: hostile}}},
		"log":       {Key: "log/003", Kind: show.KindLog, Log: &show.LogView{What: hostile, By: hostile, Body: long, Head: strings.Repeat("c", 32), N: 3}},
		"report":    {Key: "report", Kind: show.KindReport, Report: &show.Report{Title: long, Summary: long, Verdict: hostile, Confidence: hostile, Causes: causes, Actions: lines, Gaps: lines}},
	}
	for _, st := range []string{"PENDING", "APPROVED", "RUNNING", "DONE", "FAILED", "DENIED", "MODIFIED", "EXPIRED", "CANCELLED", "SUPERSEDED", "UNKNOWN"} {
		ms["card "+st] = show.Message{Key: "card/007", Kind: show.KindCard, Card: card(st)}
	}
	huge := card("PENDING")
	huge.Command = strings.Repeat("x ", 5000)
	ms["card huge"] = show.Message{Key: "card/007", Kind: show.KindCard, Card: huge}
	voted, coded := card("PENDING"), card("PENDING")
	voted.Votes, voted.At, voted.Needed, voted.Separates, voted.Means = []string{"U1"}, at(11, 0), 2, long, long
	coded.Code, coded.Target, coded.Effect = true, long, long
	ms["card voted"] = show.Message{Key: "card/007", Kind: show.KindCard, Card: voted}
	ms["card coded"] = show.Message{Key: "card/007", Kind: show.KindCard, Card: coded}
	for k, m := range ms {
		m.SessionID = sid
		ms[k] = m
	}
	return ms
}

func TestEveryMessageIsWithinSlacksLimits(t *testing.T) {
	for name, m := range everyMessage() {
		text, blocks := render(m)
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
		if n := len([]rune(text)); n == 0 || n > 4000 {
			t.Errorf("%s: the text has %d characters", name, n)
		}
		if n := textLen(raw); n > 10000 {
			t.Errorf("%s: the blocks carry %d characters, the budget is 10000", name, n)
		}
	}
}

// textLen counts the characters of every text member.
func textLen(raw []byte) int {
	var v any
	n := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				if s, ok := e.(string); ok && k == "text" {
					n += len([]rune(s))
				}
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	if json.Unmarshal(raw, &v) == nil {
		walk(v)
	}
	return n
}

// TestNothingUntrustedIsMarkup: the only markup in any message is what this
// front itself writes.
func TestNothingUntrustedIsMarkup(t *testing.T) {
	for name, m := range everyMessage() {
		text, blocks := render(m)
		raw, err := json.Marshal(blocks)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"<!channel>", "<!here>", "<@U0>", "<https:"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s: the text holds %q", name, bad)
			}
			for _, s := range mrkdwnTexts(raw) {
				if strings.Contains(s, bad) {
					t.Errorf("%s: markup holds %q: %s", name, bad, s)
				}
			}
		}
		if strings.ContainsAny(string(raw)+text, "\x00\x02\x03\u202e") || strings.Contains(string(raw), `\u0002`) || strings.Contains(string(raw), `\u202e`) {
			t.Errorf("%s: control or direction characters are left", name)
		}
	}
}

// mrkdwnTexts are the texts that Slack parses.
func mrkdwnTexts(raw []byte) []string {
	var v any
	var out []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if v["type"] == "mrkdwn" {
				out = append(out, fmt.Sprint(v["text"]))
			}
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	if json.Unmarshal(raw, &v) == nil {
		walk(v)
	}
	return out
}

// TestEveryMessageDecodes: what the library cannot decode would break the click
// payload that echoes it.
func TestEveryMessageDecodes(t *testing.T) {
	for name, m := range everyMessage() {
		_, blocks := render(m)
		raw, err := json.Marshal(blocks)
		if err != nil {
			t.Fatal(err)
		}
		var back slackgo.Blocks
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(back.BlockSet) != len(blocks) {
			t.Errorf("%s: %d of %d blocks come back", name, len(back.BlockSet), len(blocks))
		}
	}
}

func TestCardOffersButtonsOnlyWhenTheyCanWork(t *testing.T) {
	has := func(c *show.CardView) bool {
		_, blocks := renderCard(c)
		for _, b := range blocks {
			if b.BlockType() == slackgo.MBTAction {
				return true
			}
		}
		return false
	}
	pending, nobody, huge, done := card("PENDING"), card("PENDING"), card("PENDING"), card("DONE")
	nobody.Approvers = nil
	huge.Command = strings.Repeat("x", commandMax+1)
	if !has(pending) || has(nobody) || has(huge) || has(done) {
		t.Errorf("buttons: pending %v, nobody may %v, too long %v, done %v", has(pending), has(nobody), has(huge), has(done))
	}
	text, _ := renderCard(pending)
	if !strings.HasPrefix(text, "Approval needed: tcpdump") || !strings.Contains(text, "Expires 11:15 UTC") {
		t.Errorf("notification line is %q", text)
	}
}

// A second tap is asked for only where two people have to agree without a code: on every card it
// would train people to tap twice.
func TestConfirmsOnlyTheHighestClass(t *testing.T) {
	for _, tt := range []struct {
		needed int
		code   bool
		want   bool
	}{{1, false, false}, {1, true, false}, {2, false, true}, {2, true, false}} {
		c := card("PENDING")
		c.Needed, c.Code = tt.needed, tt.code
		for _, e := range buttons(c, "tcpdump").(*slackgo.ActionBlock).Elements.ElementSet {
			b, ok := e.(*slackgo.ButtonBlockElement)
			if ok && (b.Confirm != nil) != (tt.want && b.ActionID == actApprove) {
				t.Errorf("%d people, code %v: %s asks once more: %v", tt.needed, tt.code, b.ActionID, b.Confirm != nil)
			}
		}
	}
}

func TestCardValueRoundTrip(t *testing.T) {
	c := card("PENDING")
	gotSID, id, digest, ok := parseCardValue(cardValue(c))
	if !ok || gotSID != c.SessionID || id != c.ProposalID || !strings.HasPrefix(c.Digest, digest) || len(digest) < 16 {
		t.Errorf("parseCardValue = %q %q %q %v", gotSID, id, digest, ok)
	}
	for _, bad := range []string{"", "a", "a b", "a b c d"} {
		if _, _, _, ok := parseCardValue(bad); ok {
			t.Errorf("parseCardValue(%q) is accepted", bad)
		}
	}
	if strings.Contains(cardValue(c), "tcpdump") {
		t.Error("the button carries the command")
	}
}

// TestNobodyForgesAHead: code style in a log line is this front's alone.
func TestNobodyForgesAHead(t *testing.T) {
	head := strings.Repeat("c", 32)
	_, blocks := renderLog(show.Message{Kind: show.KindLog, Log: &show.LogView{What: "heard", By: "U1", Body: "ok  ·  head `" + strings.Repeat("0", 32) + "` at entry 44", Head: head, N: 45}})
	raw, err := json.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range mrkdwnTexts(raw) {
		if strings.Count(s, "`") != 2 || !strings.Contains(s, "`"+head+"` at entry 45") {
			t.Errorf("line %q", s)
		}
	}
}

func TestWrapArgs(t *testing.T) {
	in := "tcpdump -i lo -c 20 -nn 'tcp port 18081 and host 192.0.2.1 and not port 22' -s 96 --immediate-mode -w -"
	got := wrapArgs(in, 30)
	if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(in), " ") {
		t.Errorf("wrapping changed the command:\n%s", got)
	}
	if !strings.Contains(got, "'tcp port 18081 and host 192.0.2.1 and not port 22'") {
		t.Errorf("an argument was broken:\n%s", got)
	}
}

func TestTextHelpers(t *testing.T) {
	if got, want := mrkdwn("by \x02U12\x03 & <b> \x02<!channel>\x03 \x02S1\x03 \x02x"), "by <@U12> &amp; &lt;b&gt; &lt;!channel&gt; <!subteam^S1> x"; got != want {
		t.Errorf("mrkdwn = %q, want %q", got, want)
	}
	if got := cut("äöü", 2); got != "ä…" {
		t.Errorf("cut = %q", got)
	}
	for in, want := range map[string]string{"plain": "plain", "שלום": "\u2068שלום\u2069", "a مرحبا": "\u2068a مرحبا\u2069", "": ""} {
		if got := isolate(in); got != want {
			t.Errorf("isolate(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestNothingReordersACard: what an approver reads is in the order in which it will
// run. The command comes escaped from the gate; the words beside it are cleaned of
// direction marks, and isolated where their script runs the other way.
func TestNothingReordersACard(t *testing.T) {
	c := card(bot.StatePending)
	c.Why, c.Target, c.Effect = "\u202etxt.exe\u202c שלום", "\u2066x\u2069", "a\u200fb"
	_, blocks := render(show.Message{Key: "card/007", Kind: show.KindCard, Card: c})
	raw, err := json.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, bad := range []string{"\u202e", "\u202c", "\u2066", "\u200f"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is left", bad)
		}
	}
	if !strings.Contains(text, "\u2068txt.exe שלום\u2069") {
		t.Errorf("the words are not isolated: %s", text)
	}
}

func FuzzMarkup(f *testing.F) {
	f.Add(hostile)
	f.Add("\x02U1\x03<\x02<!here>\x03>")
	f.Fuzz(func(t *testing.T, s string) {
		got := mrkdwn(s)
		for rest := got; ; {
			i := strings.IndexByte(rest, '<')
			if i < 0 {
				break
			}
			if !strings.HasPrefix(rest[i:], "<@U") && !strings.HasPrefix(rest[i:], "<@W") && !strings.HasPrefix(rest[i:], "<!subteam^S") {
				t.Fatalf("mrkdwn(%q) = %q holds markup that nobody wrote", s, got)
			}
			rest = rest[i+1:]
		}
		if e := escape(s); strings.ContainsAny(e, "<>") {
			t.Fatalf("escape(%q) = %q", s, e)
		}
	})
}

// TestNothingUntrustedIsFormatted: stars, underscores and the like of other people format
// nothing: their words stand where Slack parses none.
func TestNothingUntrustedIsFormatted(t *testing.T) {
	for name, m := range everyMessage() {
		_, blocks := render(m)
		raw, err := json.Marshal(blocks)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range mrkdwnTexts(raw) {
			for _, bad := range []string{"*b*", "_i_", "'c'", "&gt; quote"} {
				if strings.Contains(s, bad) {
					t.Errorf("%s: %q stands in markup: %s", name, bad, s)
				}
			}
		}
	}
}

// TestWordsOfPeopleAreQuoted: what a person wrote imitates no line of the bot's.
func TestWordsOfPeopleAreQuoted(t *testing.T) {
	const words = "*Approved* by @kim: reboot\n> x"
	for _, what := range []string{"heard", "reason"} {
		text, blocks := renderLog(show.Message{Kind: show.KindLog, Log: &show.LogView{What: what, By: "U1", Body: words, Note: "read later", Head: strings.Repeat("c", 32), N: 9}})
		rich, ok := blocks[0].(*slackgo.RichTextBlock)
		if !ok || len(rich.Elements) != 2 {
			t.Fatalf("%s: %+v", what, blocks[0])
		}
		head, said := rich.Elements[0].(*slackgo.RichTextSection), rich.Elements[1].(*slackgo.RichTextQuote)
		if got := said.Elements[0].(*slackgo.RichTextSectionTextElement).Text; got != "*Approved* by @kim: reboot > x" {
			t.Errorf("%s: quoted %q", what, got)
		}
		if len(head.Elements) != 3 || head.Elements[2].(*slackgo.RichTextSectionUserElement).UserID != "U1" {
			t.Errorf("%s: head %+v", what, head.Elements)
		}
		if !strings.HasSuffix(text, "x (read later)") {
			t.Errorf("%s: notification %q", what, text)
		}
	}
}

// TestRootSaysThingsOnce: a symptom stands in the header, and below it only when the
// header does not hold all of it; what makes a header loud is left out of it.
func TestRootSaysThingsOnce(t *testing.T) {
	for _, tt := range []struct {
		name, symptom, state, header string
		again                        bool
		hint                         string
	}{
		{"short", "checkout gets 502", "investigating", "Investigating: checkout gets 502", false, "to steer"},
		{"closed", "checkout gets 502", "finished", "Investigated: checkout gets 502", false, "not read any more"},
		{"stopped", "checkout gets 502", "stopped", "Investigated: checkout gets 502", false, "not read any more"},
		{"long", strings.Repeat("a b ", 100), "investigating", "Investigating: " + strings.Repeat("a b ", 24) + "a b…", true, "to steer"},
		{"pictures", "\U0001F525\U0001F525 502 \u26a0\ufe0f\U0001F468\u200d\U0001F469", "investigating", "Investigating: 502", true, "to steer"},
		{"only pictures", strings.Repeat("\U0001F525", 200), "investigating", "Investigating", true, "to steer"},
		{"accents", "Z" + strings.Repeat("\u0301", 60) + "x", "investigating", "Investigating: Z\u0301\u0301x", true, "to steer"},
		{"markup", "<!channel> *b*", "investigating", "Investigating: <!channel> *b*", false, "to steer"}, // plain text parses nothing
	} {
		_, blocks := renderRoot(show.Message{Kind: show.KindRoot, SessionID: sid, Root: &show.RootView{Symptom: tt.symptom, State: tt.state, Requester: "U1", Approvers: []string{"U1"}}})
		header := blocks[0].(*slackgo.HeaderBlock).Text
		if header.Text != tt.header || header.Type != slackgo.PlainTextType || header.Emoji != nil && *header.Emoji {
			t.Errorf("%s: header %+v, want %q", tt.name, header, tt.header)
		}
		if got := blocks[1].BlockType() == slackgo.MBTRichText; got != tt.again {
			t.Errorf("%s: the symptom stands below the header: %v, want %v", tt.name, got, tt.again)
		}
		last := blocks[len(blocks)-1].(*slackgo.ContextBlock).ContextElements.Elements[0].(*slackgo.TextBlockObject).Text
		if !strings.Contains(last, tt.hint) {
			t.Errorf("%s: hint %q, want %q in it", tt.name, last, tt.hint)
		}
	}
}

// TestBulletsKeepCommandsWhole: two long recommendations are shown to their ends,
// and eight of them still fit.
func TestBulletsKeepCommandsWhole(t *testing.T) {
	action := strings.Repeat("restart what is stuck; ", 18) + "Verify: `curl -sS -i http://127.0.0.1:18070/` succeeds."
	for n, whole := range map[int]bool{1: true, 2: true, 8: false} {
		lines := make([]string, n)
		for i := range lines {
			lines[i] = action
		}
		shown, err := json.Marshal(bullets("Recommended actions", lines))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(shown), "succeeds.") == n; got != whole || len(shown) > 8*600 {
			t.Errorf("%d lines: whole %v, want %v, in %d bytes", n, got, whole, len(shown))
		}
	}
}

// An approval that came to nothing never reads like one that ran.
func TestVotesThatCameToNothing(t *testing.T) {
	for _, state := range []string{bot.StateExpired, bot.StateCancelled, bot.StateSuperseded} {
		got := decidedLine(&show.CardView{State: state, Votes: []string{"U1"}, Needed: 2})
		if !strings.Contains(got, "<@U1>") || !strings.Contains(got, "nothing ran") || strings.Contains(got, " at ") {
			t.Errorf("%s: %q", state, got)
		}
	}
}
