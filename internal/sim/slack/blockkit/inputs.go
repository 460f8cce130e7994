package blockkit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Placed is an element together with the block it stands in.
type Placed struct {
	BlockID   string
	BlockType string
	Element   map[string]any
	Block     map[string]any
}

// Type is the element's type.
func (p Placed) Type() string { return str(p.Element["type"]) }

// ActionID is the element's action_id.
func (p Placed) ActionID() string { return str(p.Element["action_id"]) }

// Label is what a person reads on or beside the element: a button's text, an input's label, or the
// placeholder.
func (p Placed) Label() string {
	for _, t := range []any{p.Element["text"], p.Block["label"], p.Element["placeholder"]} {
		if s := str(object(t)["text"]); s != "" {
			return s
		}
	}
	return p.ActionID()
}

// Interactive lists the elements that a person can operate, in reading order.
func Interactive(blockList []any) []Placed {
	var out []Placed
	for _, b := range blockList {
		m := object(b)
		place := func(e any) {
			if el := object(e); el != nil && elements[str(el["type"])].fields != nil && str(el["type"]) != "image" {
				out = append(out, Placed{str(m["block_id"]), str(m["type"]), el, m})
			}
		}
		switch str(m["type"]) {
		case "actions", "context_actions":
			for _, e := range list(m["elements"]) {
				place(e)
			}
		case "section":
			place(m["accessory"])
		case "input":
			place(m["element"])
		}
	}
	return out
}

// AssignIDs gives every block without block_id and every interactive element without action_id one
// from next, as Slack does, so that clicks can name them. It changes the blocks in place.
func AssignIDs(blockList []any, next func() string) {
	for _, b := range blockList {
		if m := object(b); m != nil && str(m["block_id"]) == "" {
			m["block_id"] = next()
		}
	}
	for _, p := range Interactive(blockList) {
		if p.ActionID() == "" {
			p.Element["action_id"] = next()
		}
	}
}

// Options are the choices of an element, grouped or not.
func (p Placed) Options() []map[string]any {
	var out []map[string]any
	for _, o := range list(p.Element["options"]) {
		out = append(out, object(o))
	}
	for _, g := range list(p.Element["option_groups"]) {
		for _, o := range list(object(g)["options"]) {
			out = append(out, object(o))
		}
	}
	return out
}

// Option finds a choice by its value, else by its text.
func (p Placed) Option(want string) (map[string]any, bool) {
	for _, o := range p.Options() {
		if str(o["value"]) == want {
			return o, true
		}
	}
	for _, o := range p.Options() {
		if strings.EqualFold(str(object(o["text"])["text"]), want) {
			return o, true
		}
	}
	return nil, false
}

// State is what Slack sends as state.values: block id, action id, value object.
type State map[string]map[string]map[string]any

// Set stores one value object.
func (s State) Set(blockID, actionID string, v map[string]any) {
	if s[blockID] == nil {
		s[blockID] = map[string]map[string]any{}
	}
	s[blockID][actionID] = v
}

// InitialState is the state of freshly shown blocks: initial values where given, empty ones where
// not. Buttons and overflow menus have no state.
func InitialState(blockList []any) State {
	s := State{}
	for _, p := range Interactive(blockList) {
		if v := p.initial(); v != nil {
			s.Set(p.BlockID, p.ActionID(), v)
		}
	}
	return s
}

// stateKeys maps an element type to its key in a value object and the property with its initial value.
var stateKeys = map[string][2]string{
	"plain_text_input": {"value", "initial_value"}, "email_text_input": {"value", "initial_value"},
	"url_text_input": {"value", "initial_value"}, "number_input": {"value", "initial_value"},
	"rich_text_input": {"rich_text_value", "initial_value"},
	"checkboxes":      {"selected_options", "initial_options"}, "radio_buttons": {"selected_option", "initial_option"},
	"static_select": {"selected_option", "initial_option"}, "external_select": {"selected_option", "initial_option"},
	"multi_static_select":        {"selected_options", "initial_options"},
	"multi_external_select":      {"selected_options", "initial_options"},
	"users_select":               {"selected_user", "initial_user"},
	"multi_users_select":         {"selected_users", "initial_users"},
	"conversations_select":       {"selected_conversation", "initial_conversation"},
	"multi_conversations_select": {"selected_conversations", "initial_conversations"},
	"channels_select":            {"selected_channel", "initial_channel"},
	"multi_channels_select":      {"selected_channels", "initial_channels"},
	"datepicker":                 {"selected_date", "initial_date"}, "timepicker": {"selected_time", "initial_time"},
	"datetimepicker": {"selected_date_time", "initial_date_time"}, "file_input": {"files", ""},
}

func (p Placed) initial() map[string]any {
	keys, ok := stateKeys[p.Type()]
	if !ok {
		return nil
	}
	v := p.Element[keys[1]]
	if v == nil && strings.HasSuffix(keys[0], "s") {
		v = []any{}
	}
	return map[string]any{"type": p.Type(), keys[0]: v}
}

// Value turns what a person or a script gave into the value object of the element: text for text
// inputs, the value or the text of an option for menus, a list of them where several may be
// chosen, or a complete value object as Slack writes it.
func (p Placed) Value(given any) (map[string]any, error) {
	keys, ok := stateKeys[p.Type()]
	if !ok {
		return nil, fmt.Errorf("element %s of type %s holds no value", p.ActionID(), p.Type())
	}
	if m := object(given); m != nil {
		if _, whole := m[keys[0]]; whole {
			out := maps.Clone(m)
			out["type"] = p.Type()
			return out, nil
		}
	}
	v, err := p.coerce(keys[0], given)
	if err != nil {
		return nil, err
	}
	return map[string]any{"type": p.Type(), keys[0]: v}, nil
}

func (p Placed) coerce(key string, given any) (any, error) {
	switch key {
	case "selected_option":
		return p.choose(given)
	case "selected_options":
		out := []any{}
		for _, g := range each(given) {
			o, err := p.choose(g)
			if err != nil {
				return nil, err
			}
			if o != nil {
				out = append(out, o)
			}
		}
		return out, nil
	case "selected_users", "selected_conversations", "selected_channels", "files":
		return each(given), nil
	case "selected_date_time", "rich_text_value":
		return given, nil
	}
	return scalar(given), nil
}

func (p Placed) choose(given any) (any, error) {
	want := str(object(given)["value"])
	if want == "" {
		want, _ = scalar(given).(string)
	}
	if want == "" {
		return nil, nil
	}
	if o, ok := p.Option(want); ok {
		return o, nil
	}
	if strings.Contains(p.Type(), "external") {
		return map[string]any{"text": map[string]any{"type": "plain_text", "text": want}, "value": want}, nil
	}
	return nil, fmt.Errorf("element %s has no option %q", p.ActionID(), want)
}

func each(v any) []any {
	switch v := v.(type) {
	case nil:
		return []any{}
	case []any:
		return v
	}
	return []any{v}
}

// scalar makes a string of a JSON scalar; empty text becomes null, as an untouched field is.
func scalar(v any) any {
	switch v := v.(type) {
	case string:
		if v == "" {
			return nil
		}
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	case nil:
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return string(raw)
}

// Missing checks a filled form the way Slack's client does before it sends a submission: required
// inputs, text lengths, addresses and numbers. The result maps block ids to texts for people.
func Missing(blockList []any, s State) map[string]string {
	out := map[string]string{}
	for _, p := range Interactive(blockList) {
		if p.BlockType != "input" {
			continue
		}
		keys := stateKeys[p.Type()]
		v := s[p.BlockID][p.ActionID()][keys[0]]
		if why := p.complaint(v); why != "" {
			out[p.BlockID] = why
		}
	}
	return out
}

func (p Placed) complaint(v any) string {
	optional, _ := p.Block["optional"].(bool)
	l, isList := v.([]any)
	if v == nil || v == "" || (isList && len(l) == 0) {
		if optional {
			return ""
		}
		return "Please complete this required field."
	}
	s, isText := v.(string)
	if !isText {
		return ""
	}
	switch p.Type() {
	case "plain_text_input":
		return p.lengthComplaint(s)
	case "number_input":
		if _, err := strconv.ParseFloat(s, 64); err != nil {
			return "Please enter a number."
		}
	case "email_text_input":
		if !strings.Contains(s, "@") {
			return "Please enter a valid email address."
		}
	case "url_text_input":
		if !slices.ContainsFunc([]string{"http://", "https://"}, func(p string) bool { return strings.HasPrefix(s, p) }) {
			return "Please enter a valid URL."
		}
	}
	return ""
}

func (p Placed) lengthComplaint(s string) string {
	high := 3000
	if n, ok := p.Element["max_length"].(float64); ok {
		high = int(n)
	}
	if length(s) > high {
		return fmt.Sprintf("Please enter no more than %d characters.", high)
	}
	if low, ok := p.Element["min_length"].(float64); ok && length(s) < int(low) {
		return fmt.Sprintf("Please enter at least %d characters.", int(low))
	}
	return ""
}
