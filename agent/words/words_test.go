package words

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	for _, tc := range []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 4, "abcd"}, {"abcde", 4, "a…"}, {"aéé", 4, "a…"}, {"ééé", 5, "é…"}, {"\xff\xff\xff\xff\xff", 4, "…"},
	} {
		if got := Clip(tc.in, tc.n); got != tc.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", tc.in, tc.n, got, tc.want)
		}
	}
}

var rules = Rules{Acting: map[string]bool{"command": true}, Long: map[string]bool{"summary": true}}

func redact(s string) string { return strings.ReplaceAll(s, "hunter2", "[REDACTED]") }

func TestScrub(t *testing.T) {
	long := strings.Repeat("x", MaxText+1)
	list, _ := json.Marshal(map[string]any{"ids": make([]int, MaxList+1)})
	heavy, _ := json.Marshal(map[string]any{"a": slicesOf(long, 20)})
	for _, tc := range []struct {
		name, in, out, refused string
	}{
		{"nothing to do", `{"command":"ls","n":12345678901234567890,"f":1.50,"b":true,"z":null}`, `{"b":true,"command":"ls","f":1.50,"n":12345678901234567890,"z":null}`, ""},
		{"words are redacted", `{"reasoning":"hunter2"}`, `{"reasoning":"[REDACTED]"}`, ""},
		{"words are redacted at any depth", `{"a":[{"b":["hunter2"]}]}`, `{"a":[{"b":["[REDACTED]"]}]}`, ""},
		{"words are cut", `{"why":"` + long + `"}`, `{"why":"` + long[:MaxText-3] + `…"}`, ""},
		{"a long one may be longer", `{"summary":"` + long + `"}`, `{"summary":"` + long + `"}`, ""},
		{"an acting credential", `{"command":"curl -u hunter2"}`, `{"command":"curl -u [REDACTED]"}`, Credential},
		{"an acting list", `{"command":["a","hunter2"]}`, `{"command":["a","[REDACTED]"]}`, Credential},
		{"an acting long one", `{"command":"` + strings.Repeat("x", MaxArgument+1) + `"}`, "", TooLong},
		{"a long list", string(list), "", TooLong},
		{"too much in all", string(heavy), "{}", TooLong},
	} {
		out, refused, err := Scrub(json.RawMessage(tc.in), rules, redact)
		if err != nil || refused != tc.refused || tc.out != "" && string(out) != tc.out {
			t.Errorf("%s: %.80s, %q, %v; want %.80s, %q", tc.name, out, refused, err, tc.out, tc.refused)
		}
	}
	if _, _, err := Scrub(json.RawMessage(`{"a`), rules, redact); err == nil {
		t.Error("broken arguments are accepted")
	}
}

func slicesOf(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

// FuzzScrub: whatever the arguments, the result is JSON within the limits, has
// no secret in it, and a call that may be made has its acting arguments as they
// were.
func FuzzScrub(f *testing.F) {
	f.Add(`{"command":"ls","why":["hunter2"]}`)
	f.Add(`{"command":{"command":["x"]}}`)
	f.Add(`[1,"\ud800"]`)
	f.Fuzz(func(t *testing.T, in string) {
		out, refused, err := Scrub(json.RawMessage(in), rules, redact)
		if err != nil {
			return
		}
		if !json.Valid(out) || len(out) > MaxCall || strings.Contains(string(out), "hunter2") || !utf8.Valid(out) {
			t.Fatalf("%q", out)
		}
		var was, is struct{ Command string }
		if refused == "" && json.Unmarshal([]byte(in), &was) == nil && json.Unmarshal(out, &is) == nil && was != is {
			t.Fatalf("%q became %q", was.Command, is.Command)
		}
	})
}
