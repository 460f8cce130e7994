package slacksim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"ghostbot/internal/sim/slack/blockkit"
)

// found is the element an action is about.
type found struct{ blockkit.Placed }

// initialState reports whether the element has a place in the state.
func (f found) initialState(s blockkit.State) bool { return s[f.BlockID][f.ActionID()] != nil }

// pressed is a control, what was chosen with it, and the values of all controls
// beside it after that.
func pressed(blocks []any, c Click) (found, map[string]any, blockkit.State, error) {
	p, chosen, err := locate(blocks, c)
	if err != nil {
		return found{}, nil, nil, err
	}
	state, err := fillState(blocks, c.Values)
	if err != nil {
		return found{}, nil, nil, err
	}
	if p.initialState(state) {
		state.Set(p.BlockID, p.ActionID(), chosen)
	}
	return p, chosen, state, nil
}

// locate finds the element that a click means, and what was chosen on it.
func locate(blocks []any, c Click) (found, map[string]any, error) {
	all := blockkit.Interactive(blocks)
	for _, p := range all {
		if c.ActionID != "" && p.ActionID() == c.ActionID && (c.BlockID == "" || c.BlockID == p.BlockID) {
			return choose(p, c)
		}
	}
	if c.ActionID == "" && c.Label != "" {
		for _, p := range all {
			if strings.EqualFold(plainLabel(p), strings.TrimSpace(c.Label)) {
				return choose(p, c)
			}
		}
		for _, p := range all {
			if _, ok := p.Option(c.Label); ok {
				c.Option = c.Label
				return choose(p, c)
			}
		}
	}
	var have []string
	for _, p := range all {
		have = append(have, fmt.Sprintf("%s %q", p.ActionID(), plainLabel(p)))
	}
	return found{}, nil, refusal("no_such_action", "want action_id or label of one of: %s", strings.Join(have, ", "))
}

func plainLabel(p blockkit.Placed) string { return strings.TrimSpace(p.Label()) }

func choose(p blockkit.Placed, c Click) (found, map[string]any, error) {
	f := found{p}
	switch p.Type() {
	case "button", "workflow_button", "icon_button":
		return f, nil, nil
	case "feedback_buttons":
		return f, map[string]any{"value": c.Option}, nil
	}
	if c.Option == nil && c.Label != "" && c.ActionID != "" {
		c.Option = c.Label
	}
	if p.Type() == "overflow" {
		want, _ := c.Option.(string)
		o, ok := p.Option(want)
		if !ok {
			var have []string
			for _, o := range p.Options() {
				have = append(have, fmt.Sprint(o["value"]))
			}
			return f, nil, refusal("no_such_option", "menu %s has the options: %s", p.ActionID(), strings.Join(have, ", "))
		}
		return f, map[string]any{"selected_option": o}, nil
	}
	v, err := p.Value(c.Option)
	if err != nil {
		return f, nil, refusal("no_such_option", "%v", err)
	}
	return f, v, nil
}

// fillState is the state of the blocks after a person filled in values. Keys are block ids, action
// ids or labels; a value under a block id may itself be keyed by action id.
func fillState(blocks []any, raw json.RawMessage) (blockkit.State, error) {
	state := blockkit.InitialState(blocks)
	given, err := object(raw)
	if err != nil {
		return nil, err
	}
	if inner, ok := given["values"].(map[string]any); ok && len(given) == 1 {
		given = inner
	}
	used := map[string]bool{}
	for _, p := range blockkit.Interactive(blocks) {
		if state[p.BlockID][p.ActionID()] == nil {
			continue
		}
		v, key, ok := pick(given, p)
		if !ok {
			continue
		}
		used[key] = true
		value, err := p.Value(v)
		if err != nil {
			return nil, refusal("invalid_values", "%v", err)
		}
		state.Set(p.BlockID, p.ActionID(), value)
	}
	for k := range given {
		if !used[k] {
			return nil, refusal("invalid_values", "no input %q; the inputs are: %s", k, inputNames(blocks))
		}
	}
	return state, nil
}

func inputNames(blocks []any) string {
	var names []string
	for _, p := range blockkit.Interactive(blocks) {
		names = append(names, fmt.Sprintf("%s/%s %q", p.BlockID, p.ActionID(), plainLabel(p)))
	}
	return strings.Join(names, ", ")
}

func pick(given map[string]any, p blockkit.Placed) (v any, key string, ok bool) {
	for _, key := range []string{p.BlockID, p.ActionID(), plainLabel(p)} {
		v, ok := given[key]
		if !ok {
			continue
		}
		if m, nested := v.(map[string]any); nested && key == p.BlockID {
			if inner, has := m[p.ActionID()]; has {
				return inner, key, true
			}
		}
		return v, key, true
	}
	return nil, "", false
}

func object(raw json.RawMessage) (map[string]any, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return map[string]any{}, nil
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, refusal("invalid_values", "values are not a JSON object")
	}
	return m, nil
}
