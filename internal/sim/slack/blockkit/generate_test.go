package blockkit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// The tests in this file build instances out of the tables themselves: a smallest valid one of every
// type, one at and one over every limit, one without each required member. They show that the
// checker enforces what the tables say, everywhere and not only where a person thought of it.

// sample is a valid value for a field with n as its size; n 0 means the smallest.
func sample(f field, n int) any {
	size := max(n, f.min, 1)
	switch f.kind {
	case kString:
		return strings.Repeat("x", size)
	case kText:
		return obj{"type": "plain_text", "text": strings.Repeat("x", size)}
	case kEnum:
		return f.of[0]
	case kInt:
		return float64(max(n, f.min))
	case kBool:
		return true
	case kObject:
		return smallest(objects[f.of[0]], "")
	case kElement:
		return memberOf(f.of, 0)
	case kRich:
		return times(size, func(int) any {
			return obj{"type": "rich_text_section", "elements": []any{obj{"type": "text", "text": "x"}}}
		})
	case kArray:
		return times(size, func(i int) any { return memberOf(f.of, i) })
	}
	return "anything"
}

// memberOf is a smallest valid member of an array or element slot; i keeps ids apart.
func memberOf(types []string, i int) any {
	if len(types) == 0 {
		return "x"
	}
	if types[0] == "row" {
		return []any{obj{"type": "raw_text", "text": "x"}}
	}
	if strings.HasPrefix(types[0], "text:") {
		return obj{"type": "mrkdwn", "text": "x"}
	}
	if sh, ok := objects[types[0]]; ok {
		return smallest(sh, "")
	}
	e := smallest(elements[types[0]], types[0])
	if _, has := fieldOf(elements[types[0]], "action_id"); has {
		e["action_id"] = fmt.Sprintf("id %d", i)
	}
	return e
}

func fieldOf(sh shape, name string) (field, bool) {
	for _, f := range sh.fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

// smallest is the smallest valid instance of a shape.
func smallest(sh shape, kind string) obj {
	out := obj{}
	if kind != "" {
		out["type"] = kind
	}
	for _, f := range sh.fields {
		if f.required {
			out[f.name] = sample(f, 0)
		}
	}
	for _, group := range [][]string{sh.oneOf, sh.exactly} {
		if len(group) > 0 && out[group[0]] == nil {
			f, _ := fieldOf(sh, group[0])
			out[f.name] = sample(f, 0)
		}
	}
	return out
}

// carrier puts an element or block where it is allowed, and says where its members are then.
type carrier struct {
	name  string
	sh    shape
	wrap  func(obj) []any
	check func([]any) []Violation
}

func carriers() []carrier {
	inMessage := func(l []any) []Violation { return CheckMessage(l) }
	var out []carrier
	for _, kind := range slices.Sorted(maps.Keys(blocks)) {
		out = append(out, carrier{"block " + kind, blocks[kind], func(b obj) []any { return []any{b} }, inMessage})
	}
	for _, kind := range slices.Sorted(maps.Keys(elements)) {
		for _, host := range []string{"actions", "input", "context", "context_actions"} {
			name := map[string]string{"input": "element"}[host]
			if name == "" {
				name = "elements"
			}
			if f, _ := fieldOf(blocks[host], name); !slices.Contains(f.of, kind) {
				continue
			}
			wrap := func(e obj) []any {
				b := smallest(blocks[host], host)
				b[name] = []any{e}
				if host == "input" {
					b[name] = e
				}
				return []any{b}
			}
			out = append(out, carrier{"element " + kind + " in " + host, elements[kind], wrap, inMessage})
			break
		}
	}
	return out
}

func (c carrier) kind() string { return strings.Fields(c.name)[1] }

// plainJSON turns Go values into what a decoder gives.
func plainJSON(t *testing.T, l []any) []any {
	t.Helper()
	return of(t, l)
}

func TestEveryTypeHasASmallestInstance(t *testing.T) {
	n := 0
	for _, c := range carriers() {
		n++
		if bad := c.check(plainJSON(t, c.wrap(smallest(c.sh, c.kind())))); len(bad) != 0 {
			t.Errorf("%s: %v", c.name, bad)
		}
	}
	if want := len(blocks) + len(elements); n != want {
		t.Errorf("%d of %d types can be placed somewhere", n, want)
	}
}

func TestEveryRequiredMember(t *testing.T) {
	n := 0
	for _, c := range carriers() {
		for _, f := range c.sh.fields {
			if !f.required {
				continue
			}
			n++
			m := smallest(c.sh, c.kind())
			delete(m, f.name)
			bad := c.check(plainJSON(t, c.wrap(m)))
			if len(bad) == 0 || !slices.ContainsFunc(bad, func(v Violation) bool { return v.Message == "missing required field: "+f.name }) {
				t.Errorf("%s without %s: %v", c.name, f.name, bad)
			}
		}
	}
	if n < 25 {
		t.Errorf("only %d required members", n)
	}
}

func TestEveryLimit(t *testing.T) {
	n := 0
	for _, c := range carriers() {
		for _, f := range c.sh.fields {
			if f.max == 0 || (f.kind != kString && f.kind != kText && f.kind != kArray && f.kind != kInt) {
				continue
			}
			n++
			atLimit, over := smallest(c.sh, c.kind()), smallest(c.sh, c.kind())
			atLimit[f.name], over[f.name] = sample(f, f.max), sample(f, f.max+1)
			for _, m := range []obj{atLimit, over} {
				for _, other := range append(slices.Clone(c.sh.exactly), c.sh.oneOf...) {
					if slices.Contains(c.sh.exactly, f.name) && other != f.name {
						delete(m, other)
					}
				}
			}
			if bad := c.check(plainJSON(t, c.wrap(atLimit))); len(bad) != 0 {
				t.Errorf("%s: %s of size %d is refused: %v", c.name, f.name, f.max, bad)
			}
			bad := c.check(plainJSON(t, c.wrap(over)))
			if len(bad) == 0 || !strings.Contains(bad[0].Pointer, "/"+f.name) {
				t.Errorf("%s: %s of size %d: %v", c.name, f.name, f.max+1, bad)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d limits", n)
	}
}

// A value of the wrong JSON type is refused in every place, without a panic.
func TestEveryWrongType(t *testing.T) {
	wrong := []any{true, 1.5, "text", []any{}, []any{1.0}, obj{}, obj{"type": "nonsense"}}
	for _, c := range carriers() {
		for _, f := range c.sh.fields {
			if f.kind == kAny {
				continue
			}
			refused := 0
			for _, w := range wrong {
				m := smallest(c.sh, c.kind())
				m[f.name] = w
				if len(c.check(plainJSON(t, c.wrap(m)))) > 0 {
					refused++
				}
			}
			if refused < len(wrong)-2 { // some of them can be right by chance
				t.Errorf("%s: %s accepts %d of %d wrong values", c.name, f.name, len(wrong)-refused, len(wrong))
			}
		}
	}
}

// null is the same as absent, everywhere.
func TestEveryNull(t *testing.T) {
	for _, c := range carriers() {
		for _, f := range c.sh.fields {
			if f.required || slices.Contains(c.sh.oneOf, f.name) || slices.Contains(c.sh.exactly, f.name) {
				continue
			}
			m := smallest(c.sh, c.kind())
			m[f.name] = nil
			if bad := c.check(plainJSON(t, c.wrap(m))); len(bad) != 0 {
				t.Errorf("%s: null for %s: %v", c.name, f.name, bad)
			}
		}
	}
}

// Every element that holds a value has a key for it, its state round-trips, and nothing else does.
func TestEveryState(t *testing.T) {
	for kind, sh := range elements {
		e := smallest(sh, kind)
		e["action_id"] = "a"
		p := Placed{BlockID: "b", BlockType: "input", Element: e, Block: obj{}}
		keys, holds := stateKeys[kind]
		v := p.initial()
		if (v != nil) != holds {
			t.Errorf("%s: initial %v", kind, v)
			continue
		}
		if !holds {
			continue
		}
		whole, err := p.Value(v)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		a, _ := json.Marshal(v)
		b, _ := json.Marshal(whole)
		if string(a) != string(b) || whole["type"] != kind {
			t.Errorf("%s: %s comes back as %s", kind, a, b)
		}
		if _, has := v[keys[0]]; !has {
			t.Errorf("%s: no %s in %v", kind, keys[0], v)
		}
	}
}
