package truncate

import (
	"bytes"
	"encoding/json"
	"strings"
)

// What stays of a JSON value: of a list longer than both together the first
// items and the last; of an object what lies above maxDepth.
const (
	keepHead, keepTail = 3, 1
	maxDepth           = 3
	unlimited          = 1 << 30
)

// shrink is how hard a JSON value is pressed: longest string in bytes, fields
// of an object, and the depth at which an object becomes "...".
type shrink struct{ str, fields, depth int }

// levels are tried in order until the result is within the limits. The first
// one is the rule of the design; the others are for values that it leaves long.
func levels(array bool) []shrink {
	first := shrink{unlimited, unlimited, maxDepth}
	ls := []shrink{first, {4000, 180, 3}, {2000, 60, 3}, {1000, 30, 3}, {500, 20, 2}, {200, 10, 2}, {100, 5, 1}, {60, 3, 1}}
	if array { // items are shown whole when they fit
		ls = append([]shrink{{unlimited, unlimited, unlimited}}, ls...)
	}
	return ls
}

// shortenJSON shrinks a valid JSON array or object. It reports false when no
// level gives something that is within the limits and not longer than limit.
func shortenJSON(s string, limit int) (string, bool) {
	for _, l := range levels(s[0] == '[') {
		var raw strings.Builder
		l.value(&raw, s, 0, true)
		compact := raw.String()
		if len(compact) > limit {
			continue
		}
		var b bytes.Buffer
		if json.Indent(&b, []byte(compact), "", "  ") != nil {
			return "", false
		}
		if b.Len() <= limit && fits(b.String()) {
			return b.String(), true
		}
	}
	return "", false
}

// value writes one value. Only the outermost array is cut when nothing else is
// limited; an item that is not cut is not looked into either, so that nesting
// costs nothing.
func (l shrink) value(b *strings.Builder, s string, depth int, top bool) {
	if l.depth == unlimited && !top {
		b.WriteString(s)
		return
	}
	switch s[0] {
	case '[':
		l.list(b, s, depth, top)
	case '{':
		l.object(b, s, depth)
	case '"':
		l.text(b, s)
	default:
		b.WriteString(s)
	}
}

// list writes an array. It is a level of its own only below the top, so that an
// array of objects shows as much of each as one object does.
func (l shrink) list(b *strings.Builder, s string, depth int, top bool) {
	if !top {
		depth++
	}
	if depth > l.depth+1 && len(s) > len(`"..."`) {
		b.WriteString(`"..."`)
		return
	}
	items := elements(s)
	cut := len(items) > keepHead+keepTail
	b.WriteByte('[')
	for i := 0; i < len(items); i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		if cut && i == keepHead {
			b.WriteString(`"[truncated: showing ` + itoa(keepHead+keepTail) + ` of ` + itoa(len(items)) + ` items]",`)
			i = len(items) - keepTail
		}
		l.value(b, items[i], depth, false)
	}
	b.WriteByte(']')
}

// object writes an object, or "..." where it lies too deep.
func (l shrink) object(b *strings.Builder, s string, depth int) {
	if depth >= l.depth {
		if len(s) <= len(`"..."`) {
			b.WriteString(s)
		} else {
			b.WriteString(`"..."`)
		}
		return
	}
	items := elements(s)
	b.WriteByte('{')
	for i, f := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		if i >= l.fields && len(items)-i > 1 {
			b.WriteString(`"[truncated]":"[truncated: showing ` + itoa(i) + ` of ` + itoa(len(items)) + ` fields]"`)
			break
		}
		k := stringEnd(f, 0)
		l.text(b, f[:k])
		b.WriteByte(':')
		l.value(b, strings.TrimLeft(f[k:], " \t\r\n:"), depth+1, false)
	}
	b.WriteByte('}')
}

// text writes a JSON string, cut between two characters or escapes.
func (l shrink) text(b *strings.Builder, s string) {
	if len(s) <= l.str+minCut {
		b.WriteString(s)
		return
	}
	i := 1
	for i < l.str {
		i = nextChar(s, i)
	}
	b.WriteString(s[:i])
	b.WriteString("[truncated: " + itoa(len(s)-i-1) + ` bytes omitted]"`)
}

// nextChar is the end of the character or escape that starts at i in a valid
// JSON string. A surrogate pair is one character.
func nextChar(s string, i int) int {
	if s[i] != '\\' {
		i++
		for s[i]&0xC0 == 0x80 {
			i++
		}
		return i
	}
	if s[i+1] != 'u' {
		return i + 2
	}
	if high := strings.ToLower(s[i+2 : i+4]); high >= "d8" && high < "dc" && s[i+6] == '\\' && s[i+7] == 'u' {
		return i + 12
	}
	return i + 6
}

// elements splits a valid JSON array into its items, or an object into its
// fields ("key": value), without decoding anything: numbers, escapes and the
// order of keys stay as they came.
func elements(s string) []string {
	body := s[1 : len(s)-1]
	var out []string
	depth, start := 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			i = stringEnd(body, i) - 1
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(body[start:i]))
				start = i + 1
			}
		}
	}
	if last := strings.TrimSpace(body[start:]); last != "" {
		out = append(out, last)
	}
	return out
}

// stringEnd is the index after the JSON string that starts at i.
func stringEnd(s string, i int) int {
	for i++; s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return i + 1
}
