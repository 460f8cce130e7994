// Package blockkit knows what Slack accepts as blocks, views and message text, and says why when
// something is not acceptable.
//
// The limits are data (schema.go): one table for blocks, one for elements, one for composition
// objects. Lengths are counted in Unicode code points, array limits in items, view size in bytes.
// Where sources about Slack disagree the stricter figure is used, because a simulator that lets
// through what the real service rejects is worse than the reverse.
//
// Everything here is pure: JSON values in, findings out. Values are those of encoding/json
// (map[string]any, []any, string, float64, bool, nil).
package blockkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrFormat reports input that is not a JSON array of objects.
var ErrFormat = errors.New("blocks are not an array of objects")

// Surface is where blocks are shown; it decides which block types and how many are allowed.
type Surface string

// The surfaces of Slack.
const (
	Message Surface = "message"
	Modal   Surface = "modal"
	Home    Surface = "home"
)

// MaxTotalText is the number of text characters over all blocks of one message above which the
// message is refused as msg_blocks_too_long. Slack does not document it: rejections were seen at
// 11,341 characters, others only near 12,000.
const MaxTotalText = 11300

// MaxViewBytes is the size of a view's JSON above which it is refused as view_too_large.
const MaxViewBytes = 250 * 1024

// Violation is one reason why blocks are refused.
type Violation struct {
	// Message is Slack's wording where it is known.
	Message string
	// Pointer is the JSON pointer of the offending value.
	Pointer string
	// Kind is the constraint's name as blocks.validate reports it.
	Kind string
}

// String is the form Slack uses in the errors array of a reply.
func (v Violation) String() string {
	return fmt.Sprintf("%s [json-pointer:%s]", v.Message, v.Pointer)
}

// Decode reads a JSON array of blocks. Empty input and null are no blocks; anything else that is
// not an array of objects is ErrFormat.
func Decode(raw []byte) ([]any, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var list []any
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, ErrFormat
	}
	for _, b := range list {
		if _, ok := b.(map[string]any); !ok {
			return nil, ErrFormat
		}
	}
	return list, nil
}

// TotalText counts the text characters that Slack adds up over a message's blocks.
func TotalText(v any) int {
	n := 0
	walk(v, func(m map[string]any) {
		if s, ok := m["text"].(string); ok {
			n += length(s)
		}
	})
	return n
}

// walk calls visit for every object inside v, outer before inner.
func walk(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			walk(e, visit)
		}
	case map[string]any:
		visit(v)
		for _, e := range v {
			walk(e, visit)
		}
	}
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func str(v any) string {
	s, _ := v.(string)
	return s
}
