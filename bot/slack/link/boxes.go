package link

import (
	"encoding/json"

	slackgo "github.com/slack-go/slack"
)

// unread marks the state of a message that could not be read, in place of a block.
const unread = "unread"

// boxes reads what is ticked in a message, past everything that the library does not
// know. What is there and cannot be read is told apart from what is not ticked: an
// answer without it would say something else than the person chose.
func boxes(raw json.RawMessage) *slackgo.BlockActionStates {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	out := &slackgo.BlockActionStates{Values: map[string]map[string]slackgo.BlockAction{}}
	var s struct {
		Values map[string]map[string]json.RawMessage `json:"values"`
	}
	if json.Unmarshal(raw, &s) != nil {
		out.Values[unread] = nil
		return out
	}
	for block, actions := range s.Values {
		out.Values[block] = map[string]slackgo.BlockAction{}
		for id, one := range actions {
			a, ok := ticked(one)
			if !ok {
				out.Values[unread] = nil
			}
			out.Values[block][id] = a
		}
	}
	return out
}

// fields reads what was typed into a window, past every input that the library does not know.
// One that cannot be read is empty, which the front tells as it does an empty field: under it.
func fields(raw json.RawMessage) *slackgo.ViewState {
	var s struct {
		Values map[string]map[string]json.RawMessage `json:"values"`
	}
	out := &slackgo.ViewState{Values: map[string]map[string]slackgo.BlockAction{}}
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return out
	}
	for block, inputs := range s.Values {
		out.Values[block] = map[string]slackgo.BlockAction{}
		for id, one := range inputs {
			var a slackgo.BlockAction
			if json.Unmarshal(one, &a) == nil {
				out.Values[block][id] = a
			}
		}
	}
	return out
}

// ticked reads one group of boxes; other elements have none.
func ticked(raw json.RawMessage) (a slackgo.BlockAction, ok bool) {
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &kind) != nil {
		return a, false
	}
	if a.Type = slackgo.ActionType(kind.Type); kind.Type != "checkboxes" {
		return a, true
	}
	var b struct {
		Options []struct {
			Value string `json:"value"`
		} `json:"selected_options"`
	}
	if json.Unmarshal(raw, &b) != nil {
		return a, false
	}
	for _, o := range b.Options {
		a.SelectedOptions = append(a.SelectedOptions, slackgo.OptionBlockObject{Value: o.Value})
	}
	return a, true
}

// Unread reports that something that is ticked in the message could not be read.
func Unread(cb slackgo.InteractionCallback) bool {
	if cb.BlockActionState == nil {
		return false
	}
	_, bad := cb.BlockActionState.Values[unread]
	return bad
}
