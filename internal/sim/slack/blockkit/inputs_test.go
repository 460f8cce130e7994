package blockkit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func choice(value, text string) obj {
	return obj{"text": obj{"type": "plain_text", "text": text}, "value": value}
}

// form is a modal's blocks with one input of several kinds.
func form(t *testing.T) []any {
	in := func(id string, e obj, more obj) obj {
		b := obj{"type": "input", "block_id": id, "label": obj{"type": "plain_text", "text": "Label " + id}, "element": e}
		for k, v := range more {
			b[k] = v
		}
		return b
	}
	return of(t, []any{
		obj{"type": "section", "block_id": "s", "text": obj{"type": "mrkdwn", "text": "x"}, "accessory": obj{"type": "button", "action_id": "side", "text": obj{"type": "plain_text", "text": "Side"}}},
		in("name", obj{"type": "plain_text_input", "action_id": "a", "min_length": 3, "max_length": 5}, nil),
		in("note", obj{"type": "plain_text_input", "action_id": "a", "initial_value": "was"}, obj{"optional": true}),
		in("one", obj{"type": "static_select", "action_id": "a", "options": []any{choice("1", "One"), choice("2", "Two")}}, nil),
		in("many", obj{"type": "checkboxes", "action_id": "a", "options": []any{choice("x", "X"), choice("y", "Y")}, "initial_options": []any{choice("y", "Y")}}, nil),
		in("who", obj{"type": "users_select", "action_id": "a"}, obj{"optional": true}),
		in("num", obj{"type": "number_input", "action_id": "a", "is_decimal_allowed": true}, obj{"optional": true}),
		in("mail", obj{"type": "email_text_input", "action_id": "a"}, obj{"optional": true}),
		in("link", obj{"type": "url_text_input", "action_id": "a"}, obj{"optional": true}),
	})
}

func at(t *testing.T, blocks []any, id string) Placed {
	t.Helper()
	for _, p := range Interactive(blocks) {
		if p.BlockID == id {
			return p
		}
	}
	t.Fatalf("no element in block %s", id)
	return Placed{}
}

func TestInitialState(t *testing.T) {
	got := InitialState(form(t))
	want := State{
		"name": {"a": {"type": "plain_text_input", "value": nil}},
		"note": {"a": {"type": "plain_text_input", "value": "was"}},
		"one":  {"a": {"type": "static_select", "selected_option": nil}},
		"many": {"a": {"type": "checkboxes", "selected_options": []any{choice("y", "Y")}}},
		"who":  {"a": {"type": "users_select", "selected_user": nil}},
		"num":  {"a": {"type": "number_input", "value": nil}},
		"mail": {"a": {"type": "email_text_input", "value": nil}},
		"link": {"a": {"type": "url_text_input", "value": nil}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestValue(t *testing.T) {
	blocks := form(t)
	for _, tt := range []struct {
		name, block string
		given       any
		want        map[string]any
		fails       bool
	}{
		{"text", "name", "abc", obj{"type": "plain_text_input", "value": "abc"}, false},
		{"number for text", "name", 12.5, obj{"type": "plain_text_input", "value": "12.5"}, false},
		{"empty text", "name", "", obj{"type": "plain_text_input", "value": nil}, false},
		{"nothing", "name", nil, obj{"type": "plain_text_input", "value": nil}, false},
		{"true for text", "name", true, obj{"type": "plain_text_input", "value": "true"}, false},
		{"list for text", "name", []any{"a"}, obj{"type": "plain_text_input", "value": `["a"]`}, false},
		{"whole value object", "name", obj{"value": "abc"}, obj{"type": "plain_text_input", "value": "abc"}, false},
		{"option by value", "one", "2", obj{"type": "static_select", "selected_option": choice("2", "Two")}, false},
		{"option by text", "one", "two", obj{"type": "static_select", "selected_option": choice("2", "Two")}, false},
		{"option as object", "one", obj{"value": "1"}, obj{"type": "static_select", "selected_option": choice("1", "One")}, false},
		{"no option", "one", nil, obj{"type": "static_select", "selected_option": nil}, false},
		{"unknown option", "one", "3", nil, true},
		{"several", "many", []any{"x", "Y"}, obj{"type": "checkboxes", "selected_options": []any{choice("x", "X"), choice("y", "Y")}}, false},
		{"one of several", "many", "x", obj{"type": "checkboxes", "selected_options": []any{choice("x", "X")}}, false},
		{"unknown among several", "many", []any{"z"}, nil, true},
		{"user", "who", "U1", obj{"type": "users_select", "selected_user": "U1"}, false},
		{"button", "s", "x", nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := at(t, blocks, tt.block).Value(tt.given)
			if (err != nil) != tt.fails {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" && !tt.fails {
				t.Error(diff)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	blocks := form(t)
	for _, tt := range []struct {
		name string
		give map[string]any // block id: value
		want map[string]string
	}{
		{"untouched", nil, map[string]string{"name": "Please complete this required field.", "one": "Please complete this required field."}},
		{"complete", map[string]any{"name": "abc", "one": "1"}, map[string]string{}},
		{"too short", map[string]any{"name": "ab", "one": "1"}, map[string]string{"name": "Please enter at least 3 characters."}},
		{"too long", map[string]any{"name": "abcdef", "one": "1"}, map[string]string{"name": "Please enter no more than 5 characters."}},
		{"longest", map[string]any{"name": "abc", "one": "1", "note": strings.Repeat("x", 3001)}, map[string]string{"note": "Please enter no more than 3000 characters."}},
		{"nothing chosen", map[string]any{"name": "abc", "one": "1", "many": []any{}}, map[string]string{"many": "Please complete this required field."}},
		{"no number", map[string]any{"name": "abc", "one": "1", "num": "x"}, map[string]string{"num": "Please enter a number."}},
		{"no address", map[string]any{"name": "abc", "one": "1", "mail": "x", "link": "example.com"},
			map[string]string{"mail": "Please enter a valid email address.", "link": "Please enter a valid URL."}},
		{"address", map[string]any{"name": "abc", "one": "1", "num": "-1.5", "mail": "x@example.com", "link": "https://example.com"}, map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			state := InitialState(blocks)
			for id, v := range tt.give {
				value, err := at(t, blocks, id).Value(v)
				if err != nil {
					t.Fatal(err)
				}
				state.Set(id, "a", value)
			}
			if diff := cmp.Diff(tt.want, Missing(blocks, state)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAssignIDs(t *testing.T) {
	blocks := of(t, []any{
		obj{"type": "divider"}, obj{"type": "divider", "block_id": "mine"}, obj{"type": "actions", "elements": []any{btn(nil), btn(obj{"action_id": "own"})}}})
	n := 0
	AssignIDs(blocks, func() string { n++; return strings.Repeat("g", n) })
	var ids []string
	for _, b := range blocks {
		ids = append(ids, str(object(b)["block_id"]))
	}
	for _, p := range Interactive(blocks) {
		ids = append(ids, p.ActionID())
	}
	if diff := cmp.Diff([]string{"g", "mine", "gg", "ggg", "own"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestLabels(t *testing.T) {
	blocks := of(t, []any{
		actions(btn(obj{"text": obj{"type": "plain_text", "text": "Approve"}}), obj{"type": "static_select", "action_id": "sel", "placeholder": obj{"type": "plain_text", "text": "Pick"}, "option_groups": []any{obj{"label": pt(1), "options": []any{choice("g", "Grouped")}}}},
			obj{"type": "overflow", "action_id": "more", "options": []any{choice("d", "Details")}})[0],
		form(t)[1]})
	var labels []string
	for _, p := range Interactive(blocks) {
		labels = append(labels, p.Label())
	}
	if diff := cmp.Diff([]string{"Approve", "Pick", "more", "Label name"}, labels); diff != "" {
		t.Error(diff)
	}
	if o, ok := Interactive(blocks)[1].Option("grouped"); !ok || str(o["value"]) != "g" {
		t.Errorf("option in a group: %v, %t", o, ok)
	}
}
