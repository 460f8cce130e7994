package jmespath

import (
	"fmt"
	"strconv"
)

type parser struct {
	toks  []token
	i     int
	depth int
}

func (p *parser) peek() token { return p.toks[p.i] }

func (p *parser) next() token {
	t := p.toks[p.i]
	if t.kind != end {
		p.i++
	}
	return t
}

// is reports and consumes an operator.
func (p *parser) is(o string) bool {
	if t := p.peek(); t.kind == op && t.text == o {
		p.i++
		return true
	}
	return false
}

func (p *parser) want(o string) error {
	if p.is(o) {
		return nil
	}
	if t := p.peek(); t.kind != end {
		return fmt.Errorf("%q is missing before %q at position %d", o, t.text, t.at+1)
	}
	return fmt.Errorf("%q is missing at the end", o)
}

// power is how strongly an operator binds to what is left of it.
var power = map[string]int{"|": 1, "||": 2, "&&": 3, "==": 5, "!=": 5, "<": 5, "<=": 5, ">": 5, ">=": 5, "[]": 9, "[?": 21, ".": 40, "[": 55}

const notPower, projectionStop = 45, 10

func (p *parser) expression(min int) (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("the expression nests deeper than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	left, err := p.prefix()
	for err == nil {
		t := p.peek()
		if t.kind != op || power[t.text] <= min {
			return left, nil
		}
		p.i++
		left, err = p.infix(left, t)
	}
	return nil, err
}

func (p *parser) prefix() (*node, error) {
	t := p.next()
	switch t.kind {
	case ident:
		if p.is("(") {
			return p.call(t)
		}
		return &node{kind: field, name: t.text}, nil
	case quoted:
		if n := p.peek(); n.kind == op && n.text == "(" {
			return nil, fmt.Errorf("a quoted name is no function, at position %d", t.at+1)
		}
		return &node{kind: field, name: t.text}, nil
	case raw, jsonLit:
		return &node{kind: literal}, nil
	case op:
		return p.prefixOperator(t)
	}
	return nil, unexpected(t)
}

func (p *parser) prefixOperator(t token) (*node, error) {
	switch t.text {
	case "@":
		return &node{kind: current}, nil
	case "*":
		return p.projected(&node{kind: current}, 20)
	case "[]":
		return p.projected(&node{kind: current}, 9)
	case "[?":
		return p.condition(&node{kind: current})
	case "[":
		return p.bracket(nil, t)
	case "{":
		return p.hash()
	case "!":
		n, err := p.expression(notPower)
		return &node{kind: logic, kids: []*node{n}}, err
	case "&":
		n, err := p.expression(0)
		return &node{kind: logic, kids: []*node{n}}, err
	case "(":
		n, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		return n, p.want(")")
	}
	return nil, unexpected(t)
}

func (p *parser) infix(left *node, t token) (*node, error) {
	switch t.text {
	case ".":
		if p.is("*") {
			return p.projected(join(left, &node{kind: current}), 20)
		}
		right, err := p.dotted(power["."])
		return join(left, right), err
	case "|":
		right, err := p.expression(power["|"])
		return join(left, right), err
	case "[]":
		return p.projected(join(left, &node{kind: current}), 9)
	case "[?":
		return p.condition(left)
	case "[":
		return p.bracket(left, t)
	}
	right, err := p.expression(power[t.text])
	return &node{kind: logic, kids: []*node{left, right}}, err
}

func join(left, right *node) *node {
	if left == nil || right == nil {
		return right
	}
	return &node{kind: chain, kids: []*node{left, right}}
}

// dotted reads what may follow a dot.
func (p *parser) dotted(min int) (*node, error) {
	t := p.peek()
	switch {
	case t.kind == ident || t.kind == quoted || t.kind == op && t.text == "*":
		return p.expression(min)
	case t.kind == op && t.text == "[":
		p.i++
		return p.items()
	case t.kind == op && t.text == "{":
		p.i++
		return p.hash()
	}
	return nil, unexpected(t)
}

// projected reads what is applied to every element of left.
func (p *parser) projected(left *node, min int) (*node, error) {
	t := p.peek()
	switch {
	case t.kind == end || t.kind == op && power[t.text] < projectionStop:
		return left, nil
	case t.kind == op && t.text == "[":
		p.i++
		right, err := p.bracket(nil, t)
		if err != nil {
			return nil, err
		}
		return p.projected(join(left, right), min)
	case t.kind == op && t.text == "[?":
		p.i++
		right, err := p.condition(&node{kind: current})
		return join(left, right), err
	case t.kind == op && t.text == ".":
		p.i++
		right, err := p.dotted(min)
		return join(left, right), err
	}
	return nil, unexpected(t)
}

func (p *parser) condition(left *node) (*node, error) {
	if _, err := p.expression(0); err != nil {
		return nil, err
	}
	if err := p.want("]"); err != nil {
		return nil, err
	}
	return p.projected(join(left, &node{kind: filter}), 21)
}

// bracket reads what follows "[": an index, a slice, "*", or a list.
func (p *parser) bracket(left *node, open token) (*node, error) {
	t := p.peek()
	switch {
	case t.kind == number || t.kind == op && t.text == ":":
		slice, err := p.index()
		if err != nil {
			return nil, err
		}
		n := join(left, &node{kind: current})
		if slice {
			return p.projected(n, 20)
		}
		return n, nil
	case t.kind == op && t.text == "*":
		p.i++
		if err := p.want("]"); err != nil {
			return nil, err
		}
		return p.projected(join(left, &node{kind: current}), 20)
	case left != nil:
		return nil, unexpected(t)
	}
	return p.items()
}

// index reads N], or A:B:C] and reports whether it was a slice.
func (p *parser) index() (slice bool, err error) {
	colons := 0
	for {
		t := p.next()
		switch {
		case t.kind == number:
			if _, err := strconv.Atoi(t.text); err != nil {
				return false, fmt.Errorf("the number at position %d is too large", t.at+1)
			}
			if n := p.peek(); n.kind == number {
				return false, unexpected(n)
			}
		case t.kind == op && t.text == ":" && colons < 2:
			colons++
		case t.kind == op && t.text == "]":
			return colons > 0, nil
		default:
			return false, unexpected(t)
		}
	}
}

func (p *parser) items() (*node, error) {
	n := &node{kind: list}
	for {
		e, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, e)
		if p.is("]") {
			return n, nil
		}
		if err := p.want(","); err != nil {
			return nil, err
		}
	}
}

func (p *parser) hash() (*node, error) {
	n := &node{kind: list}
	for {
		if t := p.next(); t.kind != ident && t.kind != quoted {
			return nil, unexpected(t)
		}
		if err := p.want(":"); err != nil {
			return nil, err
		}
		e, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, e)
		if p.is("}") {
			return n, nil
		}
		if err := p.want(","); err != nil {
			return nil, err
		}
	}
}

func (p *parser) call(name token) (*node, error) {
	limits, known := functions[name.text]
	if !known {
		return nil, fmt.Errorf("there is no function %s()", name.text)
	}
	n := &node{kind: call, name: name.text}
	for !p.is(")") {
		if len(n.kids) > 0 {
			if err := p.want(","); err != nil {
				return nil, err
			}
		}
		e, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, e)
	}
	if len(n.kids) < limits[0] || limits[1] >= 0 && len(n.kids) > limits[1] {
		return nil, fmt.Errorf("%s() takes %d arguments, not %d", name.text, limits[0], len(n.kids))
	}
	return n, nil
}
