// Package tools holds, as data, what each diagnostic program may do without a
// person, and one small interpreter of that data.
//
// The tables are the *.tool files in this folder; they are meant to be read
// and reviewed by network engineers. What is not written there is not SAFE: an
// unknown program, a flag that is not listed, a value out of bounds, a word
// too many. A table line is one of
//
//	tool NAME...               a program and its other names; what is indented below belongs to it
//	safe TEXT                  what runs, for the manual
//	style STYLE                how it reads flags: getopt (default), pflag, dash, curl, words
//	abbrev                     words may be shortened as the program itself allows: first listed wins
//	FLAG... [VALUE]            flags that are SAFE; VALUE? may follow glued or with "=", VALUE~ may follow
//	                           in any way or be missing, VALUE_ may be the next argument or be missing,
//	                           VALUE= must be glued with "="
//	no FLAG... : REASON        flags that are known and never SAFE
//	need FLAG... : HINT        at least one of these must be given
//	with FLAG FLAG... : HINT   the first only together with one of the others
//	word NAME... [VALUE...]    a keyword and the values that follow it
//	deny NAME... : REASON      a keyword that is never SAFE
//	sub NAME...                a command of the program; its lines are indented below
//	bare                       the program (or sub) is SAFE without a following word
//	args VALUE...              operands in order: VALUE? optional, VALUE* any number, VALUE+ one or more
//	check NAME                 a further rule, in Go
//	block NAME / use NAME      lines used in several places
//
// VALUE is the name of a type, see values.go, often with bounds in brackets:
// int(1..100), sec(0.2..60), enum(a|b), re(PATTERN).
//
// A value that is a separate argument never begins with "-", so a flag cannot
// hide as the value of another one.
package tools

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.tool
var files embed.FS

// Config is what a deployment adds to the tables.
type Config struct {
	// CaptureDirs are absolute folders whose files may be read as captures
	// whatever their suffix.
	CaptureDirs []string
	// Self is the absolute path of the product's own program, or "".
	Self string
}

// Problem says why a command is not SAFE. Rule is short and stable, Reason is
// one sentence for people.
type Problem struct{ Rule, Reason string }

// Table is the loaded policy. It is immutable and safe for concurrent use.
type Table struct {
	tools map[string]*node
	order []*node
	self  string
}

// Load reads the tables that are part of the program.
func Load(c Config) (*Table, error) {
	src, err := Source()
	if err != nil {
		return &Table{}, err
	}
	return load(src, c)
}

// Source returns the text of all tables, in a fixed order; a policy's version
// is a digest over it.
func Source() (string, error) {
	names, err := fs.Glob(files, "*.tool")
	if err != nil {
		return "", fmt.Errorf("tool tables: %w", err)
	}
	var b strings.Builder
	for _, n := range names {
		text, err := files.ReadFile(n)
		if err != nil {
			return "", fmt.Errorf("tool tables: %w", err)
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// Known reports whether name is a program of the table.
func (t *Table) Known(name string) bool { return t.tools[name] != nil }

// Check returns nil when argv is SAFE: a program of the table, or the
// product's own by its exact path, with listed arguments only.
func (t *Table) Check(argv []string) *Problem {
	if len(argv) == 0 {
		return &Problem{"empty", "there is no command in it"}
	}
	name := argv[0]
	if t.self != "" && name == t.self {
		name = selfName
	} else if strings.Contains(name, "/") {
		return &Problem{"path", "a program given by its path runs only after a person agreed; use the plain name"}
	}
	n := t.tools[name]
	if n == nil || name == selfName && argv[0] != t.self {
		return &Problem{"unknown-program", Clip(argv[0]) + " is not on the list of programs that run without a person"}
	}
	c := &Call{Name: argv[0], root: n}
	if name == selfName {
		c.Name = "ghostbot"
	}
	return n.run(c, argv[1:])
}

// selfName is the table's name of the product itself; no program found on the
// search path matches it.
const selfName = "(self)"

// Call is one parsed command, for the rules in Go.
type Call struct {
	Name  string   // the program
	Subs  []string // the words that selected sub commands
	Flags []Given
	Args  []string // operands

	root *node
	raw  []string
}

// Given is a flag with its value.
type Given struct{ Name, Value string }

// Has reports whether one of the flags was given.
func (c *Call) Has(names ...string) bool {
	_, ok := c.Get(names...)
	return ok
}

// Get returns the value of the last of the flags that was given.
func (c *Call) Get(names ...string) (string, bool) {
	for i := len(c.Flags) - 1; i >= 0; i-- {
		for _, n := range names {
			if c.Flags[i].Name == n {
				return c.Flags[i].Value, true
			}
		}
	}
	return "", false
}

func (c *Call) problem(kind, format string, a ...any) *Problem {
	return &Problem{ruleName(c.Name) + "-" + kind, fmt.Sprintf(format, a...)}
}

func ruleName(s string) string {
	if len(s) > 24 {
		s = s[:24]
	}
	return strings.ToLower(s)
}

// Clip shortens an argument for a reason.
func Clip(s string) string {
	const most = 60
	for i, r := range s {
		if i >= most {
			return s[:i] + "..."
		}
		if r < ' ' || r > '~' {
			return "(an unusual name)"
		}
	}
	return s
}
