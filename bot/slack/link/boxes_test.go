package link

import (
	"encoding/json"
	"testing"
)

// A click that the library cannot decode brings the ticked boxes along, or says that
// they could not be read.
func TestUndecodableKeepsBoxes(t *testing.T) {
	frame := func(state string) json.RawMessage {
		return json.RawMessage(`{"type":"block_actions","user":{"id":"U1"},"message":{"blocks":[{"type":7}]},"actions":[{"action_id":"ghost_answer_apply","value":"s q apply","action_ts":"1.1"}],"state":` + state + `}`)
	}
	for _, tt := range []struct {
		name, state string
		want        []string
		unread      bool
	}{
		{"two boxes", `{"values":{"picks0":{"ghost_picks":{"type":"checkboxes","selected_options":[{"value":"a","text":9},{"value":"b"}]}}}}`, []string{"a", "b"}, false},
		{"none", `{"values":{"picks0":{"ghost_picks":{"type":"checkboxes","selected_options":[]}}}}`, nil, false},
		{"another element of a new form", `{"values":{"x":{"y":{"type":"hologram","selected_options":"all"}},"picks0":{"ghost_picks":{"type":"checkboxes","selected_options":[{"value":"a"}]}}}}`, []string{"a"}, false},
		{"boxes of a new form", `{"values":{"picks0":{"ghost_picks":{"type":"checkboxes","selected_options":{"a":true}}}}}`, nil, true},
		{"values of a new form", `{"values":[1]}`, nil, true},
		{"no state", `null`, nil, false},
	} {
		cb, ok := RawInteraction(frame(tt.state))
		if !ok || Unread(cb) != tt.unread {
			t.Errorf("%s: %v, unread %v", tt.name, ok, Unread(cb))
		}
		var got []string
		if cb.BlockActionState != nil {
			for _, o := range cb.BlockActionState.Values["picks0"]["ghost_picks"].SelectedOptions {
				got = append(got, o.Value)
			}
		}
		if len(got) != len(tt.want) || len(got) > 0 && got[len(got)-1] != tt.want[len(got)-1] {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A window that the library cannot decode is not lost: what was typed into the inputs that are
// known counts, and what cannot be read is an empty field, which is told.
func TestUndecodableKeepsWindows(t *testing.T) {
	for _, tt := range []struct{ name, state, command, canned string }{
		{"as it is", `{"values":{"command":{"command":{"type":"plain_text_input","value":"dig a"}},"canned":{"canned":{"type":"static_select","selected_option":{"value":"later"}}}}}`, "dig a", "later"},
		{"an input of a new form", `{"values":{"x":{"y":{"type":"hologram","value":{"deep":1}}},"command":{"command":{"type":"plain_text_input","value":"dig a"}}}}`, "dig a", ""},
		{"the field itself of a new form", `{"values":{"command":{"command":{"type":"plain_text_input","value":["dig","a"]}}}}`, "", ""},
		{"values of a new form", `{"values":[1]}`, "", ""},
		{"a state of a new form", `"none"`, "", ""},
		{"null", `null`, "", ""},
	} {
		raw := `{"type":"view_submission","user":{"id":"U1"},"view":{"id":"V1","hash":"h","callback_id":"c","private_metadata":"s1","blocks":[{"type":7}],"state":` + tt.state + `}}`
		cb, ok := RawInteraction(json.RawMessage(raw))
		if !ok || cb.View.State == nil {
			t.Errorf("%s: the window is lost", tt.name)
			continue
		}
		v := cb.View.State.Values
		if got := v["command"]["command"].Value; got != tt.command || v["canned"]["canned"].SelectedOption.Value != tt.canned {
			t.Errorf("%s: %+v", tt.name, v)
		}
	}
}
