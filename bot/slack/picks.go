package slack

import (
	"context"
	"fmt"
	"strings"

	slackgo "github.com/slack-go/slack"

	"ghostbot/agent"
	"ghostbot/agent/hosts"
	"ghostbot/bot"
	"ghostbot/bot/show"
)

// actPicks is the action id of the boxes of a question; what they hold comes with the
// button that is pressed. Their values are the question's own keys, never what they
// stand for.
const actPicks = "ghost_picks"

// groupMax is how many boxes Slack lets one group have.
const groupMax = 10

// optionMax is how long Slack lets the text of a box be.
const optionMax = 75

// picks are the boxes of a question: while it is open to tick, later as they were.
func picks(m show.Message) []slackgo.Block {
	q, a := m.Question.Question, m.Question.Answer
	if len(q.Picks) == 0 {
		return nil
	}
	if a != nil {
		var labels []string
		for _, p := range q.Picks {
			for _, key := range a.Picked {
				if key == p.Key {
					labels = append(labels, oneLine(p.Label))
				}
			}
		}
		if len(labels) == 0 {
			return nil
		}
		return []slackgo.Block{slackgo.NewRichTextBlock("picked", slackgo.NewRichTextSection(bold("Selected  "), word(cut(isolate(strings.Join(labels, "; ")), 1500))))}
	}
	var out []slackgo.Block
	for i := 0; i < len(q.Picks); i += groupMax {
		var all, on []*slackgo.OptionBlockObject
		for _, p := range q.Picks[i:min(i+groupMax, len(q.Picks))] {
			o := slackgo.NewOptionBlockObject(p.Key, plainText(oneLine(p.Label), optionMax), plainText(oneLine(p.About), optionMax))
			if all = append(all, o); p.Selected {
				on = append(on, o)
			}
		}
		boxes := slackgo.NewCheckboxGroupsBlockElement(actPicks, all...)
		boxes.InitialOptions = on
		out = append(out, slackgo.NewActionBlock(fmt.Sprintf("picks%d", i/groupMax), boxes))
	}
	return out
}

// picked is what is ticked in the message whose button was pressed.
func picked(cb slackgo.InteractionCallback) (out []string) {
	if cb.BlockActionState == nil {
		return nil
	}
	for _, block := range cb.BlockActionState.Values {
		for _, o := range block[actPicks].SelectedOptions {
			out = append(out, o.Value)
		}
	}
	return out
}

// triage opens the case about processes, where the person is. While one case is open
// there it belongs to that one.
func (f *Front) triage(ctx context.Context, c slackgo.SlashCommand, rest string) string {
	focus, err := hosts.ParseFocus(rest)
	if err != nil {
		return escape(cut(oneLine(err.Error()), 300)) + ". For example: `/ghost triage --port 8080`"
	}
	if why := f.mayOpen(ctx, c); why != "" {
		return why
	}
	if !f.desk.Triages() {
		return "Host processes cannot be looked at here."
	}
	about := ""
	if open, _, err := f.openCases(ctx, c.ChannelID); err == nil && len(open) == 1 {
		about = open[0]
	}
	sid, err := f.desk.Triage(ctx, bot.Opening{
		Delivery: "slash " + c.TriggerID, Requester: c.UserID, Place: bot.Place{Transport: "slack", Team: c.TeamID, Channel: c.ChannelID},
	}, agent.Focus{Port: focus.Port, PIDs: focus.PIDs, Since: focus.Since, Case: about}, focus.Text())
	if err != nil {
		f.log.Error("triage is not opened", "err", err)
		return "No triage was started: the store does not answer. Try again in a minute."
	}
	f.introduce(sid, c.UserID)
	return ""
}
