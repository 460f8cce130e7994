package slack

import (
	"fmt"
	"strings"

	slackgo "github.com/slack-go/slack"

	"ghostbot/agent"
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
	label, about := widths(q.Picks)
	var out []slackgo.Block
	for i := 0; i < len(q.Picks); i += groupMax {
		var all, on []*slackgo.OptionBlockObject
		for _, p := range q.Picks[i:min(i+groupMax, len(q.Picks))] {
			o := slackgo.NewOptionBlockObject(p.Key, plainText(oneLine(p.Label), label), plainText(oneLine(p.About), about))
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

// picksRoom is how many characters all boxes of a message have together.
const picksRoom = 6400

// widths are how long the texts of a box may be, so that all of them find room in one message: what is
// ticked at first stands in it twice.
func widths(picks []agent.Pick) (label, about int) {
	n := len(picks)
	for _, p := range picks {
		if p.Selected {
			n++
		}
	}
	each := picksRoom / n
	label = min(optionMax, max(each*3/5, 2))
	return label, min(optionMax, max(each-label, 2))
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
