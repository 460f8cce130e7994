// Package words prepares what a brain says for the journal: redacted, and cut to
// a size that a journal line can carry.
//
// Words that only inform are cut with an ellipsis. Arguments that act, because
// they reach a command line or the cloud, must survive unchanged: when redaction
// or a limit would change one, the whole call is refused, so that what runs is
// what was journaled and shown.
package words

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Longest texts, in bytes.
const (
	MaxLong     = 16 << 10 // words of a turn, a summary
	MaxText     = 4 << 10  // every other text that informs
	MaxArgument = 8 << 10  // an argument that acts
)

// Limits of one call. Beyond them it is refused as a whole: half of a list is
// not what the brain decided.
const (
	MaxList = 100      // elements of one list
	MaxCall = 64 << 10 // bytes of its arguments
)

// MaxKept is the longest answer, in bytes, that is kept in a model's own form.
const MaxKept = 256 << 10

// Why a call was refused.
const (
	Credential = "credential_in_arguments"
	TooLong    = "argument_too_long"
)

// Rules say what the members of a call's arguments are. Members that are not
// named only inform.
type Rules struct {
	Acting map[string]bool
	Long   map[string]bool
}

// Scrub returns the arguments as they may be journaled; refused is "" when the
// call may be made.
func Scrub(args json.RawMessage, rules Rules, redact func(string) string) (out json.RawMessage, refused string, err error) {
	var tree any
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, "", err
	}
	s := scrubber{rules: rules, redact: redact}
	out, err = json.Marshal(s.walk("", tree))
	if len(out) > MaxCall {
		return json.RawMessage("{}"), TooLong, err
	}
	return out, s.refused, err
}

// Clean reports whether a JSON value may be kept as it is: it is not too long,
// and redaction changes no text and no name in it. Members whose names are in
// opaque are not looked at. Of nothing there is nothing to keep.
func Clean(raw json.RawMessage, opaque map[string]bool, redact func(string) string) bool {
	var tree any
	if len(raw) == 0 || len(raw) > MaxKept || json.Unmarshal(raw, &tree) != nil {
		return false
	}
	return clean(tree, opaque, redact)
}

func clean(v any, opaque map[string]bool, redact func(string) string) bool {
	switch v := v.(type) {
	case string:
		return redact(v) == v
	case []any:
		for _, x := range v {
			if !clean(x, opaque, redact) {
				return false
			}
		}
	case map[string]any:
		for k, x := range v {
			if !opaque[k] && (redact(k) != k || !clean(x, opaque, redact)) {
				return false
			}
		}
	}
	return true
}

type scrubber struct {
	rules   Rules
	redact  func(string) string
	refused string
}

func (s *scrubber) walk(key string, v any) any {
	switch v := v.(type) {
	case string:
		return s.text(key, v)
	case []any:
		if len(v) > MaxList {
			v, s.refused = v[:MaxList], TooLong
		}
		for i := range v {
			v[i] = s.walk(key, v[i])
		}
		return v
	case map[string]any:
		for k := range v {
			v[k] = s.walk(k, v[k])
		}
	}
	return v
}

func (s *scrubber) text(key, v string) string {
	limit := MaxText
	switch {
	case s.rules.Acting[key]:
		limit = MaxArgument
	case s.rules.Long[key]:
		limit = MaxLong
	}
	out := Clip(s.redact(Clip(v, limit)), limit)
	if s.rules.Acting[key] && out != v && s.refused == "" {
		s.refused = Credential
		if len(v) > limit {
			s.refused = TooLong
		}
	}
	return out
}

// Clip cuts s to at most n bytes, an ellipsis included, between two characters.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[:n-len("…")]
	for len(s) > 0 {
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size > 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s + "…"
}
