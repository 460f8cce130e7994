package kit

import (
	"encoding/json"

	slackgo "github.com/slack-go/slack"
)

// Withheld stands where the parts of a message held a credential together.
const Withheld = "[withheld: a credential, in parts]"

// Whole looks for credentials again in a message as people see it, after it was put together: one that is
// split over two parts is none in either of them. redact masks credentials in a text. What it
// finds across neighbours is withheld in both.
func Whole(text string, blocks []slackgo.Block, redact func(string) string) (string, []slackgo.Block) {
	if redact == nil {
		return text, blocks
	}
	text = redact(text)
	raw, err := json.Marshal(blocks)
	if err != nil || len(blocks) == 0 {
		return text, blocks
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return text, blocks
	}
	var leaves []leaf
	list, _ := v.([]any)
	for _, b := range list {
		kind, _ := b.(map[string]any)["type"].(string)
		gather(b, kind, &leaves)
	}
	if !mask(leaves, redact) {
		return text, blocks
	}
	chosen(v)
	var out slackgo.Blocks
	if raw, err = json.Marshal(v); err != nil || json.Unmarshal(raw, &out) != nil {
		return Withheld, nil
	}
	return text, out.BlockSet
}

// chosen makes the options that are ticked at first the same as those that can be: Slack
// takes no others.
func chosen(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			chosen(e)
		}
	case map[string]any:
		options, _ := v["options"].([]any)
		first, _ := v["initial_options"].([]any)
		for i, f := range first {
			for _, o := range options {
				if o.(map[string]any)["value"] == f.(map[string]any)["value"] {
					first[i] = o
				}
			}
		}
		for _, k := range []string{"elements", "element", "accessory"} {
			chosen(v[k])
		}
	}
}

// WholeView is Whole for a window. What a field begins with is looked at as well.
func WholeView(v slackgo.ModalViewRequest, redact func(string) string) slackgo.ModalViewRequest {
	_, v.Blocks.BlockSet = Whole("", v.Blocks.BlockSet, redact)
	return v
}

// leaf is a text that people see.
type leaf struct {
	of   map[string]any
	key  string
	kind string // of the block that it stands in
}

func (l leaf) get() string {
	s, _ := l.of[l.key].(string)
	return s
}

// gather finds the texts of a message in the order in which they are shown.
func gather(v any, kind string, out *[]leaf) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			gather(e, kind, out)
		}
	case map[string]any:
		if _, ok := v["text"].(string); ok {
			*out = append(*out, leaf{v, "text", kind})
		}
		if _, ok := v["initial_value"].(string); ok {
			*out = append(*out, leaf{v, "initial_value", "initial_value"})
		}
		for _, k := range []string{"text", "label", "title", "fields", "elements", "element", "accessory", "options", "description", "placeholder", "hint", "confirm", "deny"} {
			if _, plain := v[k].(string); !plain {
				gather(v[k], kind, out)
			}
		}
	}
}

// leads reports whether a text ends in words after which anything at all counts as a
// credential, as in "--auth-mode login": what stands in the next part of a message is not
// what followed them.
func leads(text string, redact func(string) string) bool {
	const next = "w" // completes no token but one that lacks a single character
	return redact(text) == text && redact(text+next) != text+next
}

// mask withholds what is a credential alone or with its neighbour.
func mask(leaves []leaf, redact func(string) string) (masked bool) {
	was, alone, apart := make([]string, len(leaves)), make([]string, len(leaves)), make([]bool, len(leaves))
	for i, l := range leaves {
		was[i] = l.get()
		alone[i] = redact(was[i])
	}
	for i := 1; i < len(leaves); i++ {
		if leaves[i-1].kind != leaves[i].kind { // a text is cut into parts of one kind; a button behind a command is no part of it
			continue
		}
		for _, sep := range []string{"", " "} {
			if was[i-1] != "" && was[i] != "" && redact(was[i-1]+sep+was[i]) != alone[i-1]+sep+alone[i] && !leads(was[i-1]+sep, redact) {
				apart[i-1], apart[i] = true, true
			}
		}
	}
	for i, l := range leaves {
		switch {
		case apart[i]:
			alone[i] = Withheld
		case alone[i] == "": // nothing that can be seen was in it; Slack takes no empty text
			alone[i] = "…"
		}
		if alone[i] != was[i] {
			l.of[l.key], masked = alone[i], true
		}
	}
	return masked
}
