package words

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	redact := func(s string) string { return strings.ReplaceAll(s, "secret", "***") }
	opaque := map[string]bool{"seal": true}
	for raw, want := range map[string]bool{
		`{"a":["b",1,null,true],"seal":"secret"}`: true,
		`"plain"`:                    true,
		`{"a":"a secret"}`:           false,
		`{"a":[{"b":["a secret"]}]}`: false,
		`{"a secret":1}`:             false,
		`{"sealed":"secret"}`:        false,
		`{"a"`:                       false,
		``:                           false,
		`"` + strings.Repeat("a", MaxKept-2) + `"`: true,
		`"` + strings.Repeat("a", MaxKept-1) + `"`: false,
	} {
		if got := Clean(json.RawMessage(raw), opaque, redact); got != want {
			t.Errorf("%.40s: %v", raw, got)
		}
	}
}
