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
