package blockkit

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

func length(s string) int { return utf8.RuneCountInString(s) }

// checker collects violations; it stops adding after a bound so that a hostile message cannot make
// an answer of megabytes.
type checker struct {
	surface Surface
	found   []Violation
}

const maxViolations = 50

func (c *checker) add(at, kind, format string, args ...any) {
	if len(c.found) < maxViolations {
		c.found = append(c.found, Violation{Message: fmt.Sprintf(format, args...), Pointer: at, Kind: kind})
	}
}

// CheckMessage validates the blocks of a message; pointers start with /blocks. The sum of all text
// is not part of it: Slack answers that with an error of its own (see TotalText).
func CheckMessage(list []any) []Violation {
	return CheckBlocks(list, Message, "/blocks")
}

// CheckBlocks validates blocks for a surface; at is the pointer of the array.
func CheckBlocks(list []any, on Surface, at string) []Violation {
	c := &checker{surface: on}
	c.blocks(list, at)
	return c.found
}

// CheckView validates a modal or Home view; pointers start with /view.
func CheckView(view map[string]any) []Violation {
	on := Surface(str(view["type"]))
	sh, ok := views[on]
	c := &checker{surface: on}
	if !ok {
		c.add("/view/type", "unsupported_type", "unsupported type: %s", on)
		return c.found
	}
	received := map[string]any{}
	for k, v := range view {
		if !slices.Contains(viewEcho, k) {
			received[k] = v
		}
	}
	c.shape(received, sh, "/view", "type")
	list, isList := view["blocks"].([]any)
	if !isList || len(list) == 0 {
		c.add("/view/blocks", "min_items", "no fewer than 1 items allowed")
		return c.found
	}
	c.blocks(list, "/view/blocks")
	c.submitNeeded(view, list)
	return c.found
}

// viewEcho are the members Slack adds to a view it returns; people send them back with views.update.
var viewEcho = []string{
	"id", "team_id", "app_id", "app_installed_team_id", "bot_id", "hash", "state", "root_view_id", "previous_view_id"}

func (c *checker) submitNeeded(view map[string]any, list []any) {
	if c.surface != Modal || view["submit"] != nil {
		return
	}
	for _, b := range list {
		if str(object(b)["type"]) == "input" {
			c.add("/view", "missing_field", "missing required field: submit")
			return
		}
	}
}

func (c *checker) blocks(list []any, at string) {
	if max := surfaceMax[c.surface]; len(list) > max {
		c.add(at, "max_items", "no more than %d items allowed", max)
	}
	ids := map[string]bool{}
	tables, markdown, cells := 0, 0, 0
	for i, b := range list {
		p := fmt.Sprintf("%s/%d", at, i)
		m, ok := b.(map[string]any)
		if !ok {
			c.add(p, "type", "must provide an object")
			continue
		}
		c.block(m, p)
		if id := str(m["block_id"]); id != "" {
			if ids[id] {
				c.add(p+"/block_id", "unique", "block_id already exists")
			}
			ids[id] = true
		}
		switch str(m["type"]) {
		case "table":
			tables++
			cells += TotalText(m["rows"])
		case "markdown":
			markdown += length(str(m["text"]))
		}
	}
	if tables > 1 {
		c.add(at, "max_per_message", "only one table allowed")
	}
	if cells > 10000 {
		c.add(at, "max_length", "must be less than 10001 characters")
	}
	if markdown > 12000 {
		c.add(at, "max_length", "must be less than 12001 characters")
	}
}

func (c *checker) block(m map[string]any, at string) {
	name := str(m["type"])
	sh, ok := blocks[name]
	if !ok || (sh.surfaces != nil && !slices.Contains(sh.surfaces, c.surface)) {
		c.add(at+"/type", "unsupported_type", "unsupported type: %s", name)
		return
	}
	c.shape(m, sh, at, "type", "block_id")
	if s, ok := m["block_id"].(string); ok && length(s) > 255 {
		c.add(at+"/block_id", "max_length", "must be less than 256 characters")
	}
	c.uniqueActions(m, at)
}

// uniqueActions: action_id values must differ within the containing block.
func (c *checker) uniqueActions(m map[string]any, at string) {
	seen := map[string]bool{}
	for i, e := range list(m["elements"]) {
		id := str(object(e)["action_id"])
		if id == "" {
			continue
		}
		if seen[id] {
			c.add(fmt.Sprintf("%s/elements/%d/action_id", at, i), "unique", "action_id already exists")
		}
		seen[id] = true
	}
}

// shape checks the properties of one object; always lists properties that are known outside of the
// shape (type, block_id).
func (c *checker) shape(m map[string]any, sh shape, at string, always ...string) {
	known := map[string]bool{}
	for _, k := range always {
		known[k] = true
	}
	for _, f := range sh.fields {
		known[f.name] = true
		v, present := m[f.name]
		if !present || v == nil {
			if f.required {
				c.add(at, "missing_field", "missing required field: %s", f.name)
			}
			continue
		}
		c.field(v, f, at+"/"+f.name)
	}
	c.presence(m, sh, at)
	for _, k := range sortedKeys(m) {
		if !known[k] {
			c.add(at, "additional_property", "invalid additional property: %s", k)
		}
	}
}

func (c *checker) presence(m map[string]any, sh shape, at string) {
	if n := count(m, sh.oneOf); len(sh.oneOf) > 0 && n == 0 {
		c.add(at, "missing_field", "missing required field: %s", strings.Join(sh.oneOf, " or "))
	}
	if n := count(m, sh.exactly); len(sh.exactly) > 0 && n != 1 {
		c.add(at, "exactly_one", "must provide exactly one of: %s", strings.Join(sh.exactly, ", "))
	}
}

func count(m map[string]any, names []string) int {
	n := 0
	for _, k := range names {
		if m[k] != nil {
			n++
		}
	}
	return n
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (c *checker) field(v any, f field, at string) {
	switch f.kind {
	case kString:
		c.str(v, f, at)
	case kText:
		c.text(v, f, at)
	case kEnum:
		if s, ok := v.(string); !ok || !slices.Contains(f.of, s) {
			c.add(at, "enum", "must be a valid enum value")
		}
	case kInt:
		c.integer(v, f, at)
	case kBool:
		if _, ok := v.(bool); !ok {
			c.add(at, "type", "must be a boolean")
		}
	case kObject:
		c.ref(v, f.of[0], at)
	case kElement:
		c.member(v, f.of, at)
	case kArray:
		c.array(v, f, at)
	case kRich:
		c.rich(v, at)
	}
}

func (c *checker) str(v any, f field, at string) {
	s, ok := v.(string)
	if !ok {
		c.add(at, "type", "must be a string")
		return
	}
	c.bounds(s, f, at)
}

func (c *checker) bounds(s string, f field, at string) {
	if n := length(s); f.max > 0 && n > f.max {
		c.add(at, "max_length", "must be less than %d characters", f.max+1)
	} else if n < f.min {
		c.add(at, "min_length", "must be more than %d characters", f.min-1)
	}
}

func (c *checker) integer(v any, f field, at string) {
	n, ok := v.(float64)
	switch {
	case !ok || n != math.Trunc(n):
		c.add(at, "type", "must be an integer")
	case f.max > 0 && n > float64(f.max):
		c.add(at, "max_value", "must be less than %d", f.max+1)
	case n < float64(f.min):
		c.add(at, "min_value", "must be more than %d", f.min-1)
	}
}

// text checks a text object: emoji belongs to plain_text and verbatim to mrkdwn.
func (c *checker) text(v any, f field, at string) {
	m, ok := v.(map[string]any)
	if !ok {
		c.add(at, "type", "must provide an object")
		return
	}
	extra := ""
	switch t := str(m["type"]); {
	case t == "plain_text":
		extra = "emoji"
	case t == "mrkdwn" && !f.plain:
		extra = "verbatim"
	default:
		c.add(at+"/type", "unsupported_type", "unsupported type: %s", t)
		return
	}
	c.shape(m, with(chars("text", f.min, f.max).must(), flag(extra)), at, "type")
}

func (c *checker) ref(v any, name, at string) {
	m, ok := v.(map[string]any)
	if !ok {
		c.add(at, "type", "must provide an object")
		return
	}
	c.shape(m, objects[name], at, "type")
}

// member checks one member whose type must be among types: an element, a named object, or a text
// written as "text:MAX".
func (c *checker) member(v any, types []string, at string) {
	m, ok := v.(map[string]any)
	if !ok {
		c.add(at, "type", "must provide an object")
		return
	}
	name := str(m["type"])
	for _, t := range types {
		if limit, isText := strings.CutPrefix(t, "text:"); isText && (name == "plain_text" || name == "mrkdwn") {
			max := 0
			fmt.Sscan(limit, &max)
			c.text(v, text("", max), at)
			return
		}
		if _, isObject := objects[t]; isObject {
			c.ref(v, t, at)
			return
		}
		if t == name {
			c.shape(m, elements[t], at, "type")
			c.options(m, at)
			return
		}
	}
	c.add(at+"/type", "unsupported_type", "unsupported type: %s", name)
}

// options: menus show plain text only, and the value range of a text input must not be empty.
func (c *checker) options(m map[string]any, at string) {
	switch str(m["type"]) {
	case "overflow", "static_select", "multi_static_select":
		for i, o := range list(m["options"]) {
			if t := object(object(o)["text"]); t != nil && str(t["type"]) != "plain_text" {
				c.add(fmt.Sprintf("%s/options/%d/text/type", at, i), "unsupported_type", "unsupported type: %s", str(t["type"]))
			}
		}
	case "plain_text_input":
		low, okLow := m["min_length"].(float64)
		high, okHigh := m["max_length"].(float64)
		if okLow && okHigh && low > high {
			c.add(at+"/min_length", "order", "must not be more than max_length")
		}
	}
}

func (c *checker) array(v any, f field, at string) {
	l, ok := v.([]any)
	if !ok {
		c.add(at, "type", "must provide an array")
		return
	}
	if f.max > 0 && len(l) > f.max {
		c.add(at, "max_items", "no more than %d items allowed", f.max)
	} else if len(l) < f.min {
		c.add(at, "min_items", "no fewer than %d items allowed", f.min)
	}
	for i, e := range l {
		p := fmt.Sprintf("%s/%d", at, i)
		switch {
		case len(f.of) == 1 && f.of[0] == "row":
			c.row(e, p)
		case len(f.of) > 0:
			c.member(e, f.of, p)
		}
	}
}

func (c *checker) row(v any, at string) {
	l, ok := v.([]any)
	if !ok {
		c.add(at, "type", "must provide an array")
		return
	}
	if len(l) > 20 {
		c.add(at, "max_items", "no more than 20 items allowed")
	} else if len(l) == 0 {
		c.add(at, "min_items", "no fewer than 1 items allowed")
	}
	for i, cell := range l {
		p := fmt.Sprintf("%s/%d", at, i)
		switch t := str(object(cell)["type"]); t {
		case "raw_text", "raw_number":
			c.ref(cell, t, p)
		case "rich_text":
			c.rich(object(cell)["elements"], p+"/elements")
		default:
			c.add(p+"/type", "unsupported_type", "unsupported type: %s", t)
		}
	}
}

func (c *checker) rich(v any, at string) {
	l, ok := v.([]any)
	if !ok || len(l) == 0 {
		c.add(at, "min_items", "no fewer than 1 items allowed")
		return
	}
	for i, e := range l {
		p := fmt.Sprintf("%s/%d", at, i)
		t := str(object(e)["type"])
		if !richContainers[t] {
			c.add(p+"/type", "unsupported_type", "unsupported type: %s", t)
			continue
		}
		if t == "rich_text_list" {
			c.richList(object(e), p)
			continue
		}
		c.inline(object(e)["elements"], t == "rich_text_preformatted", p+"/elements")
	}
}

func (c *checker) richList(m map[string]any, at string) {
	if s := str(m["style"]); s != "bullet" && s != "ordered" {
		c.add(at+"/style", "enum", "must be a valid enum value")
	}
	if n, ok := m["indent"].(float64); ok && (n < 0 || n > 8) {
		c.add(at+"/indent", "max_value", "must be less than 9")
	}
	c.rich(m["elements"], at+"/elements")
}

func (c *checker) inline(v any, pre bool, at string) {
	l, ok := v.([]any)
	if !ok {
		c.add(at, "type", "must provide an array")
		return
	}
	for i, e := range l {
		p := fmt.Sprintf("%s/%d", at, i)
		m := object(e)
		t := str(m["type"])
		if !richInline[t] || (pre && t != "text" && t != "link") {
			c.add(p+"/type", "unsupported_type", "unsupported type: %s", t)
			continue
		}
		if s, ok := m["text"].(string); t == "text" && (!ok || s == "") {
			c.add(p+"/text", "min_length", "must be more than 0 characters")
		}
		if t == "link" && str(m["url"]) == "" {
			c.add(p, "missing_field", "missing required field: url")
		}
	}
}

// CheckText validates the top-level text of a message whose limit is max; 0 means no limit.
func CheckText(s string, max int) bool { return max == 0 || length(s) <= max }

// Size is the number of bytes Slack counts for a view.
func Size(view any) int {
	raw, err := json.Marshal(view)
	if err != nil {
		return MaxViewBytes + 1
	}
	return len(raw)
}
