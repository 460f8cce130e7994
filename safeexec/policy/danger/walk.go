package danger

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"ghostbot/safeexec/policy/shellwords"
)

// forkShape finds a fork bomb in text that does not parse; the class is wide,
// because such text is refused anyway.
var forkShape = regexp.MustCompile(`\(\)\s*\{[^}]{0,100}\|[^}]{0,100}&`)

// tree looks at every command of a syntax tree, those inside substitutions,
// functions and loops included.
func (s *search) tree(f *syntax.File) {
	syntax.Walk(f, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.Stmt:
			s.stmt(x)
		case *syntax.CallExpr:
			s.call(x)
		case *syntax.DeclClause:
			s.decl(x)
		case *syntax.ForClause:
			s.loop(x)
		case *syntax.CoprocClause:
			s.coproc(x)
		case *syntax.FuncDecl:
			s.function(x)
		case *syntax.WhileClause:
			if endless(x) {
				s.report("a fork bomb")
			}
		case *syntax.BinaryCmd:
			if x.Op == syntax.Pipe || x.Op == syntax.PipeAll {
				s.pipe(x)
			}
		}
		return s.found == ""
	})
}

func (s *search) call(c *syntax.CallExpr) {
	for _, a := range c.Assigns {
		s.assign(a)
	}
	argv := s.words(c.Args)
	s.argv(argv)
	if len(argv) > 0 && (argv[0] == "cd" || argv[0] == "pushd") {
		s.cd(argv, len(c.Args))
	}
	if len(argv) > 1 && s.funcs[argv[0]] {
		s.argv(argv[1:]) // a function may run its arguments
	}
}

// cd follows a change of directory. One to a value that is not in the text
// leads nowhere known, unlike one without any word, which leads home.
func (s *search) cd(argv []string, words int) {
	to := skipFlags(argv[1:])
	switch {
	case words == 1:
		s.cwd = "~"
	case len(to) == 0 || to[0] == "-":
		s.cwd = ""
	case to[0] == "" || to[0][0] == '/' || to[0][0] == '~':
		s.cwd = to[0]
	case s.cwd != "":
		s.cwd = strings.TrimSuffix(s.cwd, "/") + "/" + to[0]
	}
}

// coproc gives arguments of the form name=value back to a command from which
// the grammar takes them for assignments, as in "coproc dd of=x".
func (s *search) coproc(c *syntax.CoprocClause) {
	call, ok := c.Stmt.Cmd.(*syntax.CallExpr)
	if !ok {
		return
	}
	argv := s.words(call.Args)
	for _, a := range call.Assigns {
		if a.Name != nil {
			argv = append(argv, a.Name.Value+"="+s.word(a.Value))
		}
	}
	s.argv(argv)
}

func (s *search) assign(a *syntax.Assign) {
	if a.Name == nil || a.Value == nil && a.Array == nil || len(s.vars) >= 64 {
		return
	}
	if s.vars == nil {
		s.vars = map[string]string{}
	}
	s.vars[a.Name.Value] = s.value(a)
}

func (s *search) value(a *syntax.Assign) string {
	if a.Array == nil {
		return s.word(a.Value)
	}
	var items []string
	for _, e := range a.Array.Elems {
		items = append(items, s.word(e.Value))
	}
	return strings.Join(items, " ")
}

// loop gives the variable of a loop all its values at once.
func (s *search) loop(f *syntax.ForClause) {
	it, ok := f.Loop.(*syntax.WordIter)
	if !ok || it.Name == nil || len(s.vars) >= 64 {
		return
	}
	if s.vars == nil {
		s.vars = map[string]string{}
	}
	s.vars[it.Name.Value] = strings.Join(s.words(it.Items), " ")
}

func (s *search) function(f *syntax.FuncDecl) {
	if forks(f) {
		s.report("a fork bomb")
	}
	if f.Name != nil && len(s.funcs) < 64 {
		if s.funcs == nil {
			s.funcs = map[string]bool{}
		}
		s.funcs[f.Name.Value] = true
	}
}

func (s *search) decl(d *syntax.DeclClause) {
	for _, a := range d.Args {
		s.assign(a)
	}
}

// stmt looks at redirections: what is written to, what is read, and text that
// is fed to a shell.
func (s *search) stmt(st *syntax.Stmt) {
	for _, r := range st.Redirs {
		switch r.Op {
		case syntax.RdrIn:
			if credentialFile(s.word(r.Word)) {
				s.report("a credential store read: " + s.word(r.Word))
			}
		case syntax.Hdoc, syntax.DashHdoc:
			s.feed(st, r.Hdoc)
		case syntax.WordHdoc:
			s.feed(st, r.Word)
		case syntax.DplIn, syntax.DplOut:
		default:
			s.report(writesTo(s.word(r.Word)))
		}
	}
}

// feed looks at text that a statement gets on its standard input.
func (s *search) feed(st *syntax.Stmt, w *syntax.Word) {
	if w == nil {
		return
	}
	if s.feedsShell(st) {
		s.text(s.word(w))
	}
	if s.feeds(st, "crontab") {
		s.table(s.word(w))
	}
	if c, ok := st.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 {
		if name := base(s.word(c.Args[0])); interpreters[name] {
			s.program(name, []string{name, s.word(w)})
		}
	}
}

func (s *search) feedsShell(st *syntax.Stmt) bool {
	c, ok := st.Cmd.(*syntax.CallExpr)
	return ok && slices.ContainsFunc(s.words(c.Args), func(a string) bool { return readsText(base(a)) })
}

func (s *search) feeds(st *syntax.Stmt, program string) bool {
	c, ok := st.Cmd.(*syntax.CallExpr)
	return ok && slices.ContainsFunc(s.words(c.Args), func(a string) bool { return base(a) == program })
}

// table looks at the commands of a crontab, which follow five fields of time or
// one that begins with "@".
func (s *search) table(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		fields := strings.Fields(line)
		skip := 5
		if strings.HasPrefix(line, "@") {
			skip = 1
		}
		if len(fields) > skip {
			s.text(strings.Join(fields[skip:], " "))
		}
	}
}

// readsText reports programs that run the text on their standard input.
func readsText(name string) bool {
	return shells[name] || name == "at" || name == "batch" || name == "ssh" || name == "source" || name == "."
}

// pipe looks at text that is printed into a shell, and at arguments printed
// into xargs.
func (s *search) pipe(b *syntax.BinaryCmd) {
	said, ok := s.printed(b.X)
	c, isCall := b.Y.Cmd.(*syntax.CallExpr)
	if !ok || !isCall {
		return
	}
	argv := s.words(c.Args)
	for i, a := range argv {
		switch {
		case readsText(base(a)):
			s.text(said)
			return
		case base(a) == "crontab":
			s.table(said)
			return
		case base(a) == "xargs" || base(a) == "parallel":
			s.argv(append(argv[i:len(argv):len(argv)], strings.Fields(said)...))
			return
		}
	}
}

// printed returns what a statement prints when that stands in the text.
func (s *search) printed(st *syntax.Stmt) (string, bool) {
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		argv := s.words(c.Args)
		if len(argv) > 1 && (base(argv[0]) == "echo" || base(argv[0]) == "printf") {
			said := strings.Join(skipFlags(argv[1:]), " ")
			return shellwords.DecodeANSI(said), true
		}
		if len(argv) > 0 && len(st.Redirs) == 1 && st.Redirs[0].Op == syntax.WordHdoc {
			return filtered(argv, s.word(st.Redirs[0].Word))
		}
	case *syntax.BinaryCmd:
		said, ok := s.printed(c.X)
		y, isCall := c.Y.Cmd.(*syntax.CallExpr)
		if !ok || !isCall || c.Op != syntax.Pipe {
			return "", false
		}
		return filtered(s.words(y.Args), said)
	}
	return "", false
}

// filtered is what cat and base64 -d make of a text.
func filtered(argv []string, said string) (string, bool) {
	if len(argv) == 0 {
		return "", false
	}
	switch base(argv[0]) {
	case "cat", "tee":
		return said, true
	case "base64":
		out, err := base64.StdEncoding.DecodeString(strings.TrimSpace(said))
		return string(out), err == nil
	}
	return "", false
}

func skipFlags(args []string) []string {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		args = args[1:]
	}
	return args
}

// forks reports a function that starts itself in a pipeline or in the
// background, whatever its name.
func forks(f *syntax.FuncDecl) bool {
	if f.Name == nil {
		return false // without a name it cannot start itself
	}
	name, bomb := f.Name.Value, false
	syntax.Walk(f.Body, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.BinaryCmd:
			piped := x.Op == syntax.Pipe || x.Op == syntax.PipeAll
			bomb = bomb || piped && (calls(x.X, name) || calls(x.Y, name))
		case *syntax.Stmt:
			bomb = bomb || x.Background && calls(x, name)
		}
		return !bomb
	})
	return bomb
}

func calls(n syntax.Node, name string) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 && c.Args[0].Lit() == name {
			found = true
		}
		return !found
	})
	return found
}

// endless reports a loop without end that starts background processes.
func endless(w *syntax.WhileClause) bool {
	if len(w.Cond) != 1 {
		return false
	}
	c, ok := w.Cond[0].Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) != 1 {
		return false
	}
	lit := c.Args[0].Lit()
	if w.Until && lit != "false" || !w.Until && lit != "true" && lit != ":" {
		return false
	}
	for _, st := range w.Do {
		if st.Background {
			return true
		}
	}
	return false
}
