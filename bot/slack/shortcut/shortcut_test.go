package shortcut

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func wrap(message string) []byte {
	return []byte(fmt.Sprintf(`{"type":"message_action","callback_id":"ghost_investigate","trigger_id":"t","response_url":"https://hooks.example.com/x",
		"team":{"id":"T1"},"user":{"id":"U1"},"channel":{"id":"C1"},"message_ts":"1.1","message":%s}`, message))
}

// Alerts in the forms in which monitoring posts them.
func TestSymptoms(t *testing.T) {
	for name, tt := range map[string]struct{ message, want string }{
		"plain": {`{"ts":"1.1","text":"checkout gets 502"}`, "checkout gets 502"},
		"attachment with fields": {`{"text":"","attachments":[{"fallback":"[FIRING] x","pretext":"*[FIRING:1]*","title":"HighErrorRate","text":"502 from 192.0.2.10",
			"fields":[{"title":"Severity","value":"critical"},{"title":"","value":"no title"},{"title":"empty","value":""}]}]}`,
			"*[FIRING:1]*\nHighErrorRate\n502 from 192.0.2.10\nSeverity: critical\nno title\nempty"},
		"only a fallback":        {`{"text":"","attachments":[{"fallback":"disk full on db-1"}]}`, "disk full on db-1"},
		"a fallback of no words": {`{"text":"look","attachments":[{"fallback":"[no preview available]","blocks":[{"type":"section","text":{"type":"mrkdwn","text":"inside"}}]}]}`, "look\ninside"},
		"the same thrice":        {`{"text":"checkout *fails*","blocks":[{"type":"section","text":{"type":"mrkdwn","text":"checkout fails"}},{"type":"header","text":{"type":"plain_text","text":"checkout fails"}}]}`, "checkout *fails*"},
		"rich text": {`{"text":"","blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"see "},
			{"type":"link","url":"https://shop.example.com/cart","text":"cart"},{"type":"text","text":" says "},{"type":"user","user_id":"U2"},{"type":"emoji","name":"fire"}]},
			{"type":"rich_text_list","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"one"}]},{"type":"rich_text_section","elements":[{"type":"text","text":"two"}]}]}]}]}`,
			"see cart https://shop.example.com/cart says <@U2>:fire:\none\ntwo"},
		"unknown blocks": {`{"text":"a","blocks":[{"type":"hologram","title":"T","text":{"type":"mrkdwn","text":"b"},"elements":[{"type":"never_heard_of","text":"c"},{"type":"button","text":{"type":"plain_text","text":"Silence"}}]},
			{"type":"table","rows":[[{"type":"raw_text","text":"h"},{"type":"raw_text","text":"i"}]]},7,null,"x",{"type":"image","alt_text":"a chart"}]}`, "a\nT\nb\nc\nh\ni\na chart"},
		"wrong types":  {`{"text":5,"blocks":{"no":"list"},"attachments":["no object",{"text":"t","fields":[{"title":1,"value":[]}]}]}`, "t"},
		"direction":    {`{"text":"\u202echeckout\u202c fails\u0000 now"}`, "checkout fails now"},
		"nothing":      {`{}`, ""},
		"only a image": {`{"text":"","files":[{"name":"x.png"}]}`, ""},
	} {
		c, err := Read(wrap(tt.message))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(tt.want, c.Symptom); diff != "" || c.Left != 0 {
			t.Errorf("%s (-want +got), %d left:\n%s", name, c.Left, diff)
		}
	}
}

func TestWhoAndWhere(t *testing.T) {
	c, err := Read(wrap(`{"thread_ts":"0.9","text":"x","is_ephemeral":true}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Call{Trigger: "t", ResponseURL: "https://hooks.example.com/x", User: "U1", UserTeam: "T1", Channel: "C1", TS: "1.1", ThreadTS: "0.9", Symptom: "x", Ephemeral: true}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

func TestLong(t *testing.T) {
	text, err := json.Marshal(strings.Repeat("é", 12_000))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Read(wrap(`{"text":` + string(text) + `}`))
	if err != nil || utf8.RuneCountInString(c.Symptom) != Max || c.Left != 9_000 {
		t.Errorf("%d runes, %d left, %v", utf8.RuneCountInString(c.Symptom), c.Left, err)
	}
	deep := strings.Repeat(`[{"type":"x","elements":`, 1_000) + `"deep"` + strings.Repeat(`}]`, 1_000)
	if c, err := Read(wrap(`{"text":"top","blocks":` + deep + `}`)); err != nil || c.Symptom != "top" {
		t.Errorf("deep blocks: %q, %v", c.Symptom, err)
	}
}

func TestOthers(t *testing.T) {
	for _, raw := range []string{
		`{"type":"block_actions","callback_id":"ghost_investigate","user":{"id":"U1"}}`, `{"type":"message_action","callback_id":"other","user":{"id":"U1"}}`,
		`{"type":"message_action","callback_id":"ghost_investigate"}`, `{}`,
	} {
		if _, err := Read([]byte(raw)); !errors.Is(err, ErrOther) {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for _, raw := range []string{``, `[]`, `"x"`, `{"user":7}`} {
		if _, err := Read([]byte(raw)); err == nil {
			t.Errorf("%q is read", raw)
		}
	}
}

// FuzzRead: whatever a message holds, what is taken of it fits a window, has no control
// characters, says no line twice, and loses no count.
func FuzzRead(f *testing.F) {
	f.Add(`{"text":"a","blocks":[{"type":"section","text":{"type":"mrkdwn","text":"b"}}],"attachments":[{"fallback":"c"}]}`)
	f.Add(`{"text":"\u202e\u0000","blocks":[[[[]]]]}`)
	f.Fuzz(func(t *testing.T, message string) {
		if !json.Valid([]byte(message)) {
			t.Skip()
		}
		c, err := Read(wrap(message))
		if err != nil {
			return
		}
		if n := utf8.RuneCountInString(c.Symptom); n > Max || c.Left < 0 || c.Left > 0 && n != Max {
			t.Errorf("%d runes, %d left", n, c.Left)
		}
		seen := map[string]bool{}
		for line := range strings.Lines(c.Symptom) {
			if seen[line] || strings.ContainsAny(line, "\x00\x1b\u202e") {
				t.Errorf("line %q", line)
			}
			seen[line] = strings.HasSuffix(line, "\n")
		}
	})
}
