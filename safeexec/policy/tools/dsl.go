package tools

import (
	"fmt"
	"slices"
	"strings"
)

// load reads table text; see the package comment for the grammar.
func load(src string, c Config) (*Table, error) {
	l := loader{cfg: c, blocks: map[string]*node{}, t: &Table{tools: map[string]*node{}, self: c.Self}}
	for i, line := range strings.Split(src, "\n") {
		if err := l.line(line); err != nil {
			return &Table{}, fmt.Errorf("tool tables line %d (%s): %w", i+1, strings.TrimSpace(line), err)
		}
	}
	return l.t, nil
}

type loader struct {
	cfg    Config
	t      *Table
	blocks map[string]*node
	stack  []*node // the nodes that enclose the current indentation
}

func (l *loader) line(line string) error {
	if i := strings.Index(line, " # "); i >= 0 {
		line = line[:i]
	}
	text := strings.TrimSpace(line)
	if text == "" || text[0] == '#' {
		return nil
	}
	depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
	if depth > len(l.stack) {
		return fmt.Errorf("indented too far")
	}
	l.stack = l.stack[:depth]
	word, rest, _ := strings.Cut(text, " ")
	if depth == 0 {
		return l.top(word, strings.Fields(rest))
	}
	return l.inside(l.stack[depth-1], word, strings.TrimSpace(rest))
}

func (l *loader) top(word string, names []string) error {
	n := &node{names: names, flags: map[string]*flag{}}
	if len(names) == 0 {
		return fmt.Errorf("a name is missing")
	}
	l.stack = append(l.stack, n)
	switch word {
	case "tool":
		for _, name := range names {
			if l.t.tools[name] != nil {
				return fmt.Errorf("%s is listed twice", name)
			}
			l.t.tools[name] = n
		}
		l.t.order = append(l.t.order, n)
	case "block":
		l.blocks[names[0]] = n
	default:
		return fmt.Errorf("%q is not known here", word)
	}
	return nil
}

func (l *loader) inside(n *node, word, rest string) error {
	fields := strings.Fields(rest)
	switch word {
	case "safe":
		n.safe = rest
	case "style":
		s, ok := styles[rest]
		if !ok {
			return fmt.Errorf("no such style")
		}
		n.style = s
	case "abbrev":
		n.abbrev = true
	case "bare":
		n.bare = true
	case "check":
		if checks[rest] == nil {
			return fmt.Errorf("no such check")
		}
		n.checks = append(n.checks, rest)
	case "use":
		return l.use(n, rest)
	case "sub":
		sub := &node{names: fields, parent: n, abbrev: n.abbrev, flags: map[string]*flag{}}
		n.entries = append(n.entries, &entry{names: fields, sub: sub})
		l.stack = append(l.stack, sub)
	case "args":
		return l.slots(n, fields)
	case "need", "with", "no", "deny":
		return l.reasoned(n, word, rest)
	case "word":
		return l.word(n, fields)
	default:
		return l.flags(n, append([]string{word}, fields...))
	}
	return nil
}

func (l *loader) use(n *node, name string) error {
	b := l.blocks[name]
	if b == nil {
		return fmt.Errorf("no such block")
	}
	for _, f := range b.listed {
		n.add(f)
	}
	n.entries = append(n.entries, b.entries...)
	n.slots = append(n.slots, b.slots...)
	n.rules = append(n.rules, b.rules...)
	n.checks = append(n.checks, b.checks...)
	return nil
}

// reasoned reads the lines that end in " : TEXT".
func (l *loader) reasoned(n *node, word, rest string) error {
	names, text, ok := strings.Cut(rest, " : ")
	list := strings.Fields(names)
	if !ok || len(list) == 0 || text == "" {
		return fmt.Errorf("names, a colon and a text are needed")
	}
	switch word {
	case "need":
		n.rules = append(n.rules, rule{flags: list, hint: text})
	case "with":
		n.rules = append(n.rules, rule{flag: list[0], flags: list[1:], hint: text})
	case "no":
		n.add(&flag{names: list, no: text})
	case "deny":
		n.entries = append(n.entries, &entry{names: list, no: text})
	}
	return nil
}

// word reads a keyword line. A name that is also the name of a type is told
// apart by a colon between names and types.
func (l *loader) word(n *node, fields []string) error {
	e := &entry{}
	colon := slices.Index(fields, ":")
	for i, f := range fields {
		if i == colon {
			continue
		}
		v, err := l.value(f)
		isName := i < colon || colon < 0 && err != nil
		switch {
		case isName && len(e.values) == 0:
			e.names = append(e.names, f)
		case err != nil:
			return err
		default:
			e.values = append(e.values, v)
		}
	}
	if len(e.names) == 0 {
		return fmt.Errorf("a keyword is missing")
	}
	n.entries = append(n.entries, e)
	return nil
}

func (l *loader) flags(n *node, fields []string) error {
	f := &flag{}
	for i, word := range fields {
		if word[0] == '-' || word[0] == '+' {
			f.names = append(f.names, word)
			continue
		}
		if i == 0 || i != len(fields)-1 {
			return fmt.Errorf("%q is not known here", word)
		}
		f.mode = required
		switch word[len(word)-1] {
		case '?':
			f.mode, word = glued, word[:len(word)-1]
		case '~':
			f.mode, word = loose, word[:len(word)-1]
		case '=':
			f.mode, word = equals, word[:len(word)-1]
		case '_':
			f.mode, word = apart, word[:len(word)-1]
		}
		v, err := l.value(word)
		if err != nil {
			return err
		}
		f.value = v
	}
	if f.mode == noValue { // a line may list several flags without values
		for _, name := range f.names {
			n.add(&flag{names: []string{name}})
		}
		return nil
	}
	n.add(f)
	return nil
}

func (n *node) add(f *flag) {
	n.listed = append(n.listed, f)
	for _, name := range f.names {
		n.flags[name] = f
		n.plus = n.plus || name[0] == '+'
	}
}

// many is the most operands that "*" and "+" stand for.
const many = 64

func (l *loader) slots(n *node, fields []string) error {
	for _, f := range fields {
		s := slot{min: 1, max: 1}
		switch f[len(f)-1] {
		case '?':
			s.min = 0
		case '*':
			s.min, s.max = 0, many
		case '+':
			s.max = many
		}
		v, err := l.value(strings.TrimRight(f, "?*+"))
		if err != nil {
			return err
		}
		s.value = v
		n.slots = append(n.slots, s)
	}
	return nil
}
