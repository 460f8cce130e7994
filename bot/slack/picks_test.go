package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"

	"ghostbot/agent"
	"ghostbot/bot/show"
	"ghostbot/bot/slack/link"
	"ghostbot/internal/sim/slack/blockkit"
)

// names that processes gave themselves to page people, to break out of code, to turn
// the direction of writing, or to be a line of the bot's own.
var names = []string{
	"<!channel> <@U1> <!subteam^S1>", "`*rm -rf*`", "\u202eexe.txt", "one\ntwo\r\nApproved by commander", "\x1b[31mred\x1b[0m", "<https://example.com|here>", strings.Repeat("x", 4000), "", "\u200b\u2066", "&amp; <b>", "@here @everyone",
}

func planCard(n int) show.Message {
	q := agent.Question{ID: "triage-1", Kind: "triage", Text: "58 processes were looked at.", Options: []agent.Option{{Key: "leave", Label: "Dismiss"}, {Key: "explain", Label: "Explain"}, {Key: "apply", Label: "Apply selected"}}}
	for i := range n {
		name := names[i%len(names)]
		q.Picks = append(q.Picks, agent.Pick{Key: fmt.Sprint(i + 1), Label: fmt.Sprintf("end %d %s", 4711+i, name), About: name, Selected: i%3 == 0})
		q.Text += "\n" + name
	}
	return show.Message{Key: "question/triage-1", SessionID: "ghost_20260314_104512", Kind: show.KindQuestion, Question: &show.QuestionView{Question: q, SessionID: "ghost_20260314_104512"}}
}

func elements(t *testing.T, blocks []slackgo.Block) []blockkit.Placed {
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
		t.Errorf("%+v", v)
	}
	if len(list) > 50 {
		t.Errorf("%d blocks", len(list))
	}
	return blockkit.Interactive(list)
}

// A plan card is within Slack's limits whatever processes call themselves: at most ten
// boxes in a group, ticked as preselected, and with keys that are no process numbers.
func TestPlanCard(t *testing.T) {
	for n, groups := range map[int]int{1: 1, 10: 1, 14: 2, 40: 4} {
		_, blocks := render(planCard(n))
		boxes, buttons := 0, []string{}
		for _, p := range elements(t, blocks) {
			switch p.Type() {
			case "checkboxes":
				boxes++
				options := p.Element["options"].([]any)
				if len(options) > 10 {
					t.Errorf("%d boxes in a group", len(options))
				}
				for _, o := range options {
					if v := o.(map[string]any)["value"].(string); len(v) > 2 {
						t.Errorf("the value of a box is %q", v)
					}
				}
			case "button":
				buttons = append(buttons, p.Element["text"].(map[string]any)["text"].(string))
			}
		}
		if boxes != groups || !slices.Equal(buttons, []string{"Dismiss", "Explain", "Apply selected"}) {
			t.Errorf("%d processes: %d groups, want %d; buttons %q", n, boxes, groups, buttons)
		}
	}
}

// Nothing that a process calls itself is markup, pages anybody or hides characters.
func TestHostileProcessNames(t *testing.T) {
	m := planCard(len(names))
	open, blocks := render(m)
	m.Question.Answer = &agent.Answer{Key: "apply", By: "U1", Text: "Apply selected", Picked: []string{"1", "2", "3", "4", "5", "6", "9", "10", "11"}}
	done, after := render(m)
	for _, list := range [][]slackgo.Block{blocks, after} {
		elements(t, list)
		raw, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		var walk func(v any)
		walk = func(v any) {
			switch v := v.(type) {
			case map[string]any:
				if text, _ := v["text"].(string); v["type"] == "mrkdwn" {
					for _, bad := range []string{"<!channel>", "<@U1>", "<!subteam", "<https://example.com", "\u202e"} {
						if strings.Contains(text, bad) {
							t.Errorf("markup holds %q: %q", bad, text)
						}
					}
				} else if strings.ContainsAny(text, "\u202e\x1b\u2066\u200b\r") && v["type"] == "plain_text" {
					t.Errorf("a box hides characters: %q", text)
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
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		walk(v)
	}
	for _, text := range []string{open, done} {
		if strings.Contains(text, "<!channel>") || strings.Contains(text, "<@U1>") {
			t.Errorf("the notification pages people: %q", text)
		}
	}
}

// What is ticked comes from the boxes of the message, from every group, and from
// nothing else.
func TestPicked(t *testing.T) {
	option := func(v string) slackgo.OptionBlockObject { return slackgo.OptionBlockObject{Value: v} }
	cb := slackgo.InteractionCallback{BlockActionState: &slackgo.BlockActionStates{Values: map[string]map[string]slackgo.BlockAction{
		"picks0": {actPicks: {SelectedOptions: []slackgo.OptionBlockObject{option("1"), option("3")}}},
		"picks1": {actPicks: {SelectedOptions: []slackgo.OptionBlockObject{option("12")}}},
		"other":  {"another": {SelectedOptions: []slackgo.OptionBlockObject{option("9")}}},
	}}}
	got := picked(cb)
	slices.Sort(got)
	if !slices.Equal(got, []string{"1", "12", "3"}) {
		t.Errorf("picked %q", got)
	}
	if got := picked(slackgo.InteractionCallback{}); got != nil {
		t.Errorf("nothing is ticked: %q", got)
	}
}

// Boxes that could not be read are no boxes that are not ticked: nothing is answered, and whoever
// pressed is told.
func TestUnreadBoxesAreTold(t *testing.T) {
	said := ""
	f := server(t, func(method string) (int, http.Header, string) {
		said += method
		return 200, nil, `{"ok":true}`
	}) // it has no desk: an answer would panic
	payload := `{"type":"block_actions","user":{"id":"U1"},"channel":{"id":"C1"},"container":{"channel_id":"C1","message_ts":"1.1"},"message":{"blocks":[{"type":7}]},
		"actions":[{"action_id":"ghost_answer_apply","value":"ghost_1 q apply","action_ts":"2.2"}],"state":{"values":{"picks0":{"ghost_picks":{"type":"checkboxes","selected_options":"all"}}}}}`
	cb, ok := link.RawInteraction([]byte(payload))
	if !ok {
		t.Fatal("the click is lost")
	}
	f.answer(t.Context(), job{}, cb, cb.ActionCallback.BlockActions[0])
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	f.whispers.Leave("C1", func(context.Context) { stop() })
	f.whispers.Work(ctx)
	if said != "chat.postEphemeral" {
		t.Errorf("called %q", said)
	}
}
