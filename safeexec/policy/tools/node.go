package tools

import "strings"

// mode says how a flag takes its value.
type mode uint8

const (
	noValue  mode = iota
	required      // glued, after "=", or the next argument
	glued         // glued or after "=", or missing
	loose         // like required, but may be missing
	equals        // only after "="
	apart         // the next argument, or missing; never glued in a bundle
)

// style is how a program reads its flags.
type style uint8

const (
	getopt style = iota // -abc, -oVALUE, --long=VALUE; flags may follow operands
	pflag               // the same, with -o=VALUE and --flag=false (Go programs)
	dash                // -long VALUE or -long=VALUE with one dash (openssl, ip)
	curl                // like getopt, but long options never take "="
	words               // no flags but those listed, exactly as listed
	raw                 // read by its check alone
)

var styles = map[string]style{"getopt": getopt, "pflag": pflag, "dash": dash, "curl": curl, "words": words, "raw": raw}

// flag is one listed flag. A flag with a "no" text is never SAFE.
type flag struct {
	names []string
	mode  mode
	value *value
	no    string
}

// entry is a keyword in the order of the table: a word with values, a sub
// command, or one that is denied.
type entry struct {
	names  []string
	values []*value
	sub    *node
	no     string
}

// slot is a place for operands.
type slot struct {
	value    *value
	min, max int
}

// rule is a "need" or "with" line.
type rule struct {
	flag  string // empty for need
	flags []string
	hint  string
}

// node is a program or one of its sub commands.
type node struct {
	names   []string
	parent  *node
	safe    string
	style   style
	abbrev  bool
	bare    bool
	plus    bool // some flags begin with "+"
	flags   map[string]*flag
	listed  []*flag
	entries []*entry
	slots   []slot
	rules   []rule
	checks  []string
}

func (n *node) flag(name string) *flag {
	for ; n != nil; n = n.parent {
		if f := n.flags[name]; f != nil {
			return f
		}
	}
	return nil
}

// entry finds the keyword that a token stands for.
func (n *node) entry(tok string) *entry {
	for _, e := range n.entries {
		for _, name := range e.names {
			if tok == name || n.abbrev && tok != "" && strings.HasPrefix(name, tok) {
				return e
			}
		}
	}
	return nil
}

func (n *node) hasSubs() bool {
	for _, e := range n.entries {
		if e.sub != nil {
			return true
		}
	}
	return false
}

// run reads args under this node's grammar and everything below it.
func (n *node) run(c *Call, args []string) *Problem {
	c.raw = args
	if n.style == raw {
		return n.finish(c)
	}
	r := reader{c: c, at: n, args: args}
	if p := r.read(); p != nil {
		return p
	}
	if p := r.operands(); p != nil {
		return p
	}
	for at := r.at; at != nil; at = at.parent {
		if p := at.finish(c); p != nil {
			return p
		}
	}
	return nil
}

// finish applies the rules about combinations.
func (n *node) finish(c *Call) *Problem {
	for _, r := range n.rules {
		if (r.flag == "" || c.Has(r.flag)) && !c.Has(r.flags...) {
			return c.problem("need", "%s %s", c.Name, r.hint)
		}
	}
	for _, name := range n.checks {
		if p := checks[name](c); p != nil {
			return p
		}
	}
	return nil
}

// reader walks over the arguments of one call.
type reader struct {
	c    *Call
	at   *node // the innermost sub command so far
	args []string
	i    int
	ends bool // a "--" was seen
}

func (r *reader) read() *Problem {
	for r.i < len(r.args) {
		tok := r.args[r.i]
		r.i++
		if p := r.token(tok); p != nil {
			return p
		}
	}
	if r.at.hasSubs() && !r.at.bare && len(r.c.Args) == 0 {
		return r.c.problem("args", "%s: what it should do is missing", r.title())
	}
	return nil
}

func (r *reader) token(tok string) *Problem {
	style := r.c.root.style
	switch {
	case r.ends || !r.isFlag(tok):
		return r.word(tok)
	case style == words || style == dash:
		return r.dashFlag(tok)
	case tok == "--":
		r.ends = true
		return nil
	case strings.HasPrefix(tok, "--"):
		return r.longFlag(tok)
	case tok[0] == '+':
		return r.plusFlag(tok)
	}
	return r.bundle(tok)
}

// isFlag reports a flag. A "+" begins one only where the table lists such.
func (r *reader) isFlag(tok string) bool {
	return len(tok) > 1 && (tok[0] == '-' || tok[0] == '+' && r.c.root.plus)
}

func (r *reader) title() string {
	return strings.Join(append([]string{r.c.Name}, r.c.Subs...), " ")
}

func (r *reader) unlisted(name string) *Problem {
	return r.c.problem("flag", "%s %s is not on the list of flags that run without a person", r.title(), Clip(name))
}

// take records a flag, with its value when it has one.
func (r *reader) take(name string, f *flag, value string, has bool) *Problem {
	if f.no != "" {
		return r.c.problem("flag", "%s %s: %s", r.title(), name, f.no)
	}
	switch f.mode {
	case noValue:
		if has && !(r.c.root.style == pflag && (value == "true" || value == "false")) {
			return r.c.problem("flag", "%s %s takes no value", r.title(), name)
		}
	case required:
		if !has {
			if r.i >= len(r.args) {
				return r.c.problem("flag", "%s %s needs a value", r.title(), name)
			}
			value, has = r.args[r.i], true
			r.i++
			if len(value) > 1 && value[0] == '-' && !f.value.negative {
				return r.c.problem("value", "%s %s: a value that begins with a dash could be read as a flag", r.title(), name)
			}
		}
	case loose, apart:
		if !has && r.i < len(r.args) && !r.isFlag(r.args[r.i]) {
			value, has = r.args[r.i], true
			r.i++
		}
	case equals:
		if !has {
			return r.unlisted(name)
		}
	}
	if has && f.mode != noValue {
		if want := f.value.ok(value); want != "" {
			return r.c.problem("value", "%s %s %s: %s", r.title(), name, Clip(value), want)
		}
	}
	r.c.Flags = append(r.c.Flags, Given{f.names[0], value})
	return nil
}

func (r *reader) longFlag(tok string) *Problem {
	name, value, has := strings.Cut(tok, "=")
	f := r.at.flag(name)
	if f == nil || has && r.c.root.style == curl {
		return r.unlisted(name)
	}
	return r.take(name, f, value, has)
}

// plusFlag reads the flags of dig and lsof that begin with "+".
func (r *reader) plusFlag(tok string) *Problem {
	name, value, has := strings.Cut(tok, "=")
	if f := r.at.flag(name); f != nil {
		return r.take(name, f, value, has)
	}
	if f := r.at.flag(tok[:2]); f != nil && f.mode != noValue { // lsof +c15
		return r.take(tok[:2], f, tok[2:], len(tok) > 2)
	}
	return r.unlisted(tok)
}

// bundle reads short flags, several in one argument.
func (r *reader) bundle(tok string) *Problem {
	for j := 1; j < len(tok); j++ {
		name := "-" + tok[j:j+1]
		f := r.at.flag(name)
		if f == nil {
			return r.unlisted(name)
		}
		rest := tok[j+1:]
		if r.c.root.style == pflag && strings.HasPrefix(rest, "=") {
			return r.take(name, f, rest[1:], true)
		}
		if f.mode == apart && rest != "" {
			r.c.Flags = append(r.c.Flags, Given{f.names[0], ""})
			continue
		}
		if f.mode == noValue || rest == "" && f.mode != equals {
			if p := r.take(name, f, "", false); p != nil {
				return p
			}
			continue
		}
		return r.take(name, f, rest, rest != "")
	}
	return nil
}

// dashFlag reads -name, --name, -name=value.
func (r *reader) dashFlag(tok string) *Problem {
	if f := r.at.flag(tok); f != nil {
		return r.take(tok, f, "", false)
	}
	name, value, has := strings.Cut(tok, "=")
	f := r.at.flag(name)
	if f == nil || !has || r.c.root.style == words && f.mode != equals {
		return r.unlisted(name)
	}
	return r.take(name, f, value, true)
}

// word reads a token that is no flag: a sub command, a keyword, an operand.
func (r *reader) word(tok string) *Problem {
	e := r.at.entry(tok)
	switch {
	case e == nil && r.at.hasSubs() && len(r.at.slots) == 0:
		return r.c.problem("args", "%s %s is not on the list of what runs without a person", r.title(), Clip(tok))
	case e == nil:
		r.c.Args = append(r.c.Args, tok)
	case e.no != "":
		return r.c.problem("args", "%s %s: %s", r.title(), Clip(tok), e.no)
	case e.sub != nil:
		r.c.Subs = append(r.c.Subs, e.names[0])
		r.at = e.sub
	default:
		return r.keyword(tok, e)
	}
	return nil
}

func (r *reader) keyword(tok string, e *entry) *Problem {
	for _, v := range e.values {
		if r.i >= len(r.args) {
			return r.c.problem("args", "%s %s needs a value", r.title(), Clip(tok))
		}
		given := r.args[r.i]
		r.i++
		if len(given) > 1 && given[0] == '-' {
			return r.c.problem("value", "%s %s: a value that begins with a dash could be read as a flag", r.title(), Clip(tok))
		}
		if want := v.ok(given); want != "" {
			return r.c.problem("value", "%s %s %s: %s", r.title(), Clip(tok), Clip(given), want)
		}
	}
	r.c.Flags = append(r.c.Flags, Given{e.names[0], ""})
	return nil
}

// dashed reports whether an operand may begin with a dash.
func (n *node) dashed() bool {
	for _, s := range n.slots {
		if s.value.negative {
			return true
		}
	}
	return false
}

// operands matches the operands with the slots, in order and greedily.
func (r *reader) operands() *Problem {
	rest := r.c.Args
	for _, a := range rest {
		if len(a) > 1 && a[0] == '-' && !r.at.dashed() {
			return r.c.problem("args", "%s %s: an operand that begins with a dash could be read as a flag", r.title(), Clip(a))
		}
	}
	for _, s := range r.at.slots {
		n := 0
		for n < s.max && n < len(rest) {
			if want := s.value.ok(rest[n]); want != "" {
				if n < s.min {
					return r.c.problem("args", "%s %s: %s", r.title(), Clip(rest[n]), want)
				}
				break
			}
			n++
		}
		if n < s.min {
			return r.c.problem("args", "%s: %s is missing", r.title(), s.value.what)
		}
		rest = rest[n:]
	}
	if len(rest) == 0 {
		return nil
	}
	if len(r.at.slots) == 0 {
		return r.c.problem("args", "%s %s: more than what runs without a person", r.title(), Clip(rest[0]))
	}
	last := r.at.slots[len(r.at.slots)-1]
	if want := last.value.ok(rest[0]); want != "" {
		return r.c.problem("args", "%s %s: %s", r.title(), Clip(rest[0]), want)
	}
	return r.c.problem("args", "%s %s: one operand too many", r.title(), Clip(rest[0]))
}
