package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// MaxTokens is what the semantic JSON may cost a model.
const MaxTokens = 5000

// Trim cuts the lists of a JSON document until it costs at most MaxTokens, and says in a member
// "trimmed" which ones and how many elements they had. The order of members is kept. Numbers and
// texts are never changed; only lists and long tables lose elements, findings last.
func Trim(semantic []byte) ([]byte, error) {
	root, err := parseNode(semantic)
	if err != nil {
		return nil, fmt.Errorf("trimming the semantic JSON: %w", err)
	}
	out := root.bytes()
	for _, most := range []int{50, 20, 10, 5, 3, 2, 1, 0} {
		if Tokens(out) <= MaxTokens {
			break
		}
		var cut []member
		keep := most
		root.trim("", keep, &cut)
		shown := root.with("trimmed", cut)
		out = shown.bytes()
	}
	return out, nil
}

// node is a JSON value that keeps the order of its members.
type node struct {
	kind    byte // { or [ or 0 for anything else
	raw     json.RawMessage
	list    []node
	members []member
	had     int // elements before any cut
}

type member struct {
	name  string
	value node
}

func parseNode(b []byte) (node, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	n, err := decode(d)
	if err != nil {
		return node{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return node{}, errors.New("more than one value")
	}
	return n, nil
}

func decode(d *json.Decoder) (node, error) {
	t, err := d.Token()
	if err != nil {
		return node{}, err
	}
	delim, nested := t.(json.Delim)
	if !nested {
		raw, err := json.Marshal(t)
		return node{raw: raw}, err
	}
	n := node{kind: byte(delim)}
	for d.More() {
		m := member{}
		if delim == '{' {
			name, err := d.Token()
			if err != nil {
				return node{}, err
			}
			m.name = name.(string)
		}
		if m.value, err = decode(d); err != nil {
			return node{}, err
		}
		if delim == '{' {
			n.members = append(n.members, m)
		} else {
			n.list = append(n.list, m.value)
		}
	}
	n.had = len(n.list) + len(n.members)
	_, err = d.Token()
	return n, err
}

// bytes is the value without spaces.
func (n *node) bytes() []byte {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

func (n *node) write(b *bytes.Buffer) {
	switch n.kind {
	case '{':
		b.WriteByte('{')
		for i := range n.members {
			if i > 0 {
				b.WriteByte(',')
			}
			name, _ := json.Marshal(n.members[i].name) // a string is always valid
			b.Write(name)
			b.WriteByte(':')
			n.members[i].value.write(b)
		}
		b.WriteByte('}')
	case '[':
		b.WriteByte('[')
		for i := range n.list {
			if i > 0 {
				b.WriteByte(',')
			}
			n.list[i].write(b)
		}
		b.WriteByte(']')
	default:
		b.Write(n.raw)
	}
}

// with returns the object with one more member, a table of strings.
func (n *node) with(name string, cut []member) node {
	out := *n
	if n.kind == '{' && len(cut) > 0 {
		out.members = append(slices.Clone(n.members), member{name, node{kind: '{', members: cut}})
	}
	return out
}

// tables are objects whose members are data, not fields: they may be cut like lists.
func table(name string) bool {
	switch name {
	case "type_distribution", "rcode_distribution", "query_type_distribution", "versions", "alerts", "methods", "status", "messages":
		return true
	}
	return false
}

// trim cuts every list to most elements. Of findings at least five stay, because they are ordered and
// the first ones are the answer; a finding's frames are cut as any list.
func (n *node) trim(path string, most int, cut *[]member) {
	name := path[1+lastDot(path):]
	limit := most
	if path == "findings" {
		limit = max(most, 5)
	}
	if n.kind == '[' && len(n.list) > limit {
		n.list = n.list[:limit]
	}
	if n.kind == '{' && table(name) && len(n.members) > max(limit, 3) {
		n.members = n.members[:max(limit, 3)]
	}
	if have := len(n.list) + len(n.members); n.kind != 0 && have < n.had {
		raw, _ := json.Marshal(fmt.Sprintf("%d of %d", have, n.had)) // a string is always valid
		*cut = append(*cut, member{path, node{raw: raw}})
	}
	for i := range n.list {
		var inner []member // cuts in elements are many and alike
		n.list[i].trim("", most, &inner)
	}
	for i := range n.members {
		at := n.members[i].name
		if path != "" {
			at = path + "." + at
		}
		n.members[i].value.trim(at, most, cut)
	}
}

func lastDot(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '.' {
			return i
		}
	}
	return -1
}

// Tokens estimates what a text costs a model: three digits, four letters or two signs a token, which
// is more than usual tokenizers need for JSON.
func Tokens(b []byte) int {
	n := 0
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		kind := class(r)
		run := 0
		for len(b) > 0 && class(r) == kind {
			run++
			b = b[size:]
			if len(b) > 0 {
				r, size = utf8.DecodeRune(b)
			}
		}
		n += (run + kind - 1) / kind
	}
	return n
}

// class is how many characters of a kind make a token.
func class(r rune) int {
	switch {
	case r >= '0' && r <= '9':
		return 3
	case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
		return 4
	case r < 0x80:
		return 2
	}
	return 1
}
