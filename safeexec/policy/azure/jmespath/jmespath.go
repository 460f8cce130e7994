// Package jmespath checks JMESPath expressions, as az --query takes them,
// without evaluating them: a bad expression is explained before a command
// starts, and the fields that an expression can print are known.
//
// The grammar is that of the JMESPath specification with the functions of the
// Python implementation that az uses, which also accepts literals in
// backticks that are no JSON, as older documentation shows them. Nesting is
// bounded, so that no expression costs more than its length.
package jmespath

import "fmt"

// maxDepth bounds nested expressions.
const maxDepth = 64

// Expr is a checked expression.
type Expr struct {
	// Outputs are the names of fields whose values may appear in the result,
	// in the order of appearance; comparisons in filters are not among them.
	Outputs []string
	// Whole reports that the result may be the input itself or a part of it
	// whose fields are not named: "@", "[]", "[0]", a flattened or multi-valued
	// projection without a field behind it.
	Whole bool
}

// Parse checks an expression. The error is one sentence for people with the
// position of the problem.
func Parse(text string) (*Expr, error) {
	toks, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{toks: toks}
	n, err := p.expression(0)
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != end {
		return nil, unexpected(t)
	}
	e := &Expr{}
	e.Whole = n.outputs(e)
	return e, nil
}

func unexpected(t token) error {
	if t.kind == end {
		return fmt.Errorf("the expression ends too early")
	}
	return fmt.Errorf("unexpected %q at position %d", t.text, t.at+1)
}

// functions with their least and most arguments; -1 is any number.
var functions = map[string][2]int{
	"abs": {1, 1}, "avg": {1, 1}, "ceil": {1, 1}, "contains": {2, 2}, "ends_with": {2, 2}, "floor": {1, 1}, "join": {2, 2}, "keys": {1, 1},
	"length": {1, 1}, "map": {2, 2}, "max": {1, 1}, "max_by": {2, 2}, "merge": {1, -1}, "min": {1, 1}, "min_by": {2, 2}, "not_null": {1, -1},
	"reverse": {1, 1}, "sort": {1, 1}, "sort_by": {2, 2}, "starts_with": {2, 2}, "sum": {1, 1}, "to_array": {1, 1}, "to_number": {1, 1},
	"to_string": {1, 1}, "type": {1, 1}, "values": {1, 1},
}

// counting functions return numbers, names or truth values, never a value of
// the input.
var counting = map[string]bool{"contains": true, "ends_with": true, "keys": true, "length": true, "starts_with": true, "type": true}

// node is one part of a parsed expression.
type node struct {
	kind kind
	name string
	kids []*node
}

// kind is the kind of a node.
type kind uint8

const (
	field   kind = iota // name
	chain               // kids[1] applied to what kids[0] gives: ".", "|", "[]"
	current             // "@" or an index, slice, flatten or wildcard: the input's parts
	filter              // a filter; its condition prints nothing
	list                // multi-select list or hash: each kid is printed
	call                // function name over kids
	logic               // comparison, and, or, not
	literal             // a constant
)

// outputs collects the fields that a node can print and reports whether its
// result may be an unnamed part of the input.
func (n *node) outputs(e *Expr) bool {
	switch n.kind {
	case field:
		e.Outputs = append(e.Outputs, n.name)
		return false
	case chain:
		return n.chained(e)
	case current, filter:
		return true
	case call:
		if counting[n.name] {
			return false
		}
		return n.each(e)
	case list, logic:
		return n.each(e)
	}
	return false
}

func (n *node) each(e *Expr) bool {
	whole := false
	for _, k := range n.kids {
		whole = k.outputs(e) || whole
	}
	return whole
}

// chained prints what its right side prints; a right side that only picks
// parts ("[0]", a filter) prints what the left side names.
func (n *node) chained(e *Expr) bool {
	left, right := n.kids[0], n.kids[1]
	if right.picks() {
		return left.outputs(e)
	}
	whole := right.outputs(e)
	if right.kind == list || right.kind == call || right.kind == logic {
		// "a.{b:@}" prints a, which the right side cannot name.
		if whole {
			left.outputs(e)
		}
	}
	return whole
}

func (n *node) picks() bool {
	switch n.kind {
	case current, filter:
		return true
	case chain:
		return n.kids[0].picks() && n.kids[1].picks()
	}
	return false
}
