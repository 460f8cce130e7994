// Package danger finds catastrophes: commands that no approval may start.
//
// A catastrophe destroys the machine or its data (a recursive delete of a
// system or home directory, a file system made on a disk, a write to a block
// device), takes it out of service (power, run level, all processes, a fork
// bomb), or hands out credentials (a credential store printed or copied, a
// cloud's metadata service asked for a token).
//
// It is searched in every command of a syntax tree and through every program
// that starts another one: sudo, env, timeout, xargs, find -exec, sh -c, ssh,
// kubectl exec and so on, recursively. Where a value is not in the text (a
// variable, a substitution), it counts as empty, which is what a shell would
// use for one that is unset. Only the position of a command counts: a host, a
// resource or a file that is merely called like a dangerous program is none.
//
// The search is bounded: what nests deeper than a person would write is itself
// reported.
package danger

import (
	"strings"

	"ghostbot/safeexec/policy/shellwords"
)

const (
	maxDepth = 24    // wrappers and shells inside each other
	maxSteps = 20000 // commands looked at in one text, long ones counted several times
)

// Text searches a command text and returns what the catastrophe is, in a few
// words for people, or "". Text that does not parse is searched token by token.
func Text(text string) string {
	s := search{budget: maxSteps}
	s.text(text)
	return s.found
}

// Argv searches one argument list.
func Argv(argv []string) string {
	s := search{budget: maxSteps}
	s.argv(argv)
	return s.found
}

// Command searches a parsed command; text is what it was parsed from.
func Command(c shellwords.Command, text string) string {
	s := search{budget: maxSteps}
	switch {
	case c.Argv != nil && c.Problem == nil:
		s.argv(c.Argv)
	case c.File != nil: // also where a shell would have replaced something
		s.tree(c.File)
	default:
		s.tokens(text)
	}
	return s.found
}

// search is one search; found is set once and ends it.
type search struct {
	found  string
	depth  int
	budget int
	flat   bool              // the text does not parse: it is split once, not again at every wrapper
	vars   map[string]string // literal assignments seen so far in the text
	cwd    string            // where a cd before this command has led; "" when unknown
	funcs  map[string]bool   // functions that the text declares
}

func (s *search) report(why string) {
	if s.found == "" {
		s.found = why
	}
}

// enter counts a level of nesting; it returns false when the search is over.
func (s *search) enter(cost int) bool {
	s.depth++
	s.budget -= 1 + cost
	if s.depth > maxDepth || s.budget < 0 {
		s.report("commands nested deeper than anybody can review")
	}
	return s.found == ""
}

func (s *search) leave() { s.depth-- }

func (s *search) text(text string) {
	defer s.leave()
	if s.enter(len(text) / 256) {
		s.parse(text)
	}
}

func (s *search) parse(text string) {
	f := shellwords.Tree(text)
	if f == nil {
		s.tokens(text)
		return
	}
	s.tree(f)
}

// argv looks at one command and at whatever it would start.
func (s *search) argv(argv []string) {
	if len(argv) == 0 {
		return
	}
	defer s.leave()
	if !s.enter(len(argv) / 256) {
		return
	}
	name := base(argv[0])
	s.judge(name, argv)
	if s.found == "" {
		s.unwrap(name, argv)
	}
	if placed := s.placed(name, argv); placed != nil && s.found == "" {
		s.judge(name, placed)
		s.unwrap(name, placed)
	}
}

// judge looks at one command itself, not at what it starts.
func (s *search) judge(name string, argv []string) {
	if check, ok := programs[name]; ok {
		s.report(check(argv))
	} else if isGlob(name) {
		for _, n := range globbed(name) {
			s.report(programs[n](argv))
		}
	}
	for prefix, check := range families {
		if strings.HasPrefix(name, prefix) {
			s.report(check(argv))
		}
	}
	if readers[name] {
		s.report(readsCredentials(name, argv))
	}
}

// placed gives the arguments of a command that follows a cd their place, so that
// "cd / && rm -rf *" reads as what it does; nil when nothing is different. Only
// programs that are searched for their files have one.
func (s *search) placed(name string, argv []string) []string {
	if s.cwd == "" || programs[name] == nil && !readers[name] && name != "find" {
		return nil
	}
	out := append([]string{}, argv...)
	for i, a := range out[1:] {
		if a != "" && a[0] != '-' && a[0] != '/' && a[0] != '~' && !strings.Contains(a, "=") && !strings.Contains(a, "://") {
			out[i+1] = strings.TrimSuffix(s.cwd, "/") + "/" + a
		}
	}
	return out
}

// base is the program's name without folders. Letter case counts, as it does
// for the kernel.
func base(arg0 string) string {
	if i := strings.LastIndexByte(arg0, '/'); i >= 0 {
		arg0 = arg0[i+1:]
	}
	return arg0
}

// tokens searches a text that is no shell text: quotes are dropped and every
// operator starts a new command.
func (s *search) tokens(text string) {
	if forkShape.MatchString(text) {
		s.report("a fork bomb")
		return
	}
	if s.depth <= 1 {
		s.budget += len(text) // every line of a long text is looked at
	}
	s.flat = true
	for line := range strings.SplitSeq(unquote(text), "\n") {
		if s.found != "" {
			return
		}
		s.tokenLine(line)
	}
}

func (s *search) tokenLine(line string) {
	for {
		line = strings.TrimLeft(line, " \t")
		first, rest, more := strings.Cut(line, " ")
		if !more || !isAssignment(first) && !keywords[first] {
			if strings.IndexByte(line, '>') < 0 && !interesting(base(first)) {
				return
			}
			break
		}
		line = rest
	}
	fields := strings.Fields(line)
	for i, f := range fields {
		if f == ">" && i+1 < len(fields) {
			s.report(writesTo(fields[i+1]))
		}
	}
	s.argv(fields)
}

// interesting reports names at which a search goes on.
func interesting(name string) bool {
	if programs[name] != nil || readers[name] || shells[name] || interpreters[name] || builtins[name] || isGlob(name) {
		return true
	}
	_, wraps := wrappers[name]
	return wraps || strings.HasPrefix(name, "mkfs") || strings.HasPrefix(name, "newfs") || strings.HasPrefix(name, "python")
}

// builtins are followed by code of their own.
var builtins = map[string]bool{"fd": true, "fdfind": true, "alias": true, "trap": true}

// unquote drops quotes and turns operators into line ends, in one pass.
func unquote(text string) string {
	out := make([]byte, 0, len(text)+16)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\'', '"', '\\', 0:
		case ';', '&', '|', '(', ')', '`', '{', '}', '\r', '<', '\n':
			if n := len(out); n > 0 && out[n-1] != '\n' {
				out = append(out, '\n')
			}
		case '>':
			out = append(out, " > "...)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

var keywords = map[string]bool{"if": true, "then": true, "else": true, "elif": true, "do": true, "while": true, "until": true,
	"!": true, "time": true}

// Wraps reports whether a program starts other programs that are given as
// arguments.
func Wraps(arg0 string) bool {
	name := base(arg0)
	_, ok := wrappers[name]
	return ok || shells[name]
}
