package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"

	"ghostbot/safeexec/policy"
)

// flags parses args, which may mix flags and arguments in any order, and returns
// the arguments. Every verb takes --state-dir.
func (c *cli) flags(name string, args []string, define func(*flag.FlagSet)) ([]string, error) {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&c.stateDir, "state-dir", "", "where files live")
	fs.StringVar(&c.auditDir, "audit-dir", "", "where journals live")
	if define != nil {
		define(fs)
	}
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, usageError("%s: %s", name, plainFlagError(err, fs))
		}
		if err := namedDirs(fs); err != nil {
			return nil, err
		}
		read := len(args) - fs.NArg()
		ended := read > 0 && args[read-1] == "--"
		args = fs.Args()
		if ended || len(args) == 0 {
			return append(rest, args...), nil
		}
		rest, args = append(rest, args[0]), args[1:]
	}
}

// namedDirs refuses a directory flag without a name: the default in its place would
// be another directory than the one that was meant.
func namedDirs(fs *flag.FlagSet) (err error) {
	fs.Visit(func(f *flag.Flag) {
		if (f.Name == "state-dir" || f.Name == "audit-dir") && f.Value.String() == "" {
			err = usageError("--%s: \"\" names no directory (accepted: a directory)", f.Name)
		}
	})
	return err
}

// plainFlagError names the flag, the value and what is accepted.
func plainFlagError(err error, fs *flag.FlagSet) string {
	if text, ok := strings.CutSuffix(err.Error(), ": parse error"); ok { // of a boolean
		return text + " (accepted: true false)"
	}
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, dashed(f.Name)) })
	return err.Error() + " (accepted flags: " + strings.Join(names, " ") + ")"
}

// dashed is a flag as people write it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// given is a text flag that knows whether it was given: an empty value is refused,
// not taken for the default.
type given struct {
	text string
	is   bool
}

// String implements [flag.Value].
func (g *given) String() string { return g.text }

// Set implements [flag.Value].
func (g *given) Set(s string) error {
	g.text, g.is = s, true
	return nil
}

// dirFlags are the directory flags of this run, for a command line that is printed.
func (c *cli) dirFlags() string {
	out := ""
	for _, f := range []struct{ name, value string }{{"state-dir", c.stateDir}, {"audit-dir", c.auditDir}} {
		if f.value != "" {
			out += " --" + f.name + " " + policy.Quote([]string{f.value})
		}
	}
	return out
}

// state returns the state directory: the flag, GHOST_STATE_DIR, or ghostbot in
// the user's state home (XDG base directory specification).
func (c *cli) state() string {
	switch {
	case c.stateDir != "":
		return c.stateDir
	case os.Getenv("GHOST_STATE_DIR") != "":
		return os.Getenv("GHOST_STATE_DIR")
	case os.Getenv("XDG_STATE_HOME") != "":
		return filepath.Join(os.Getenv("XDG_STATE_HOME"), "ghostbot")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "."
	}
	return filepath.Join(home, ".local", "state", "ghostbot")
}

// audits returns the audit directory: the flag, GHOST_AUDIT_DIR, or audit in the
// state directory.
func (c *cli) audits() string {
	switch {
	case c.auditDir != "":
		return c.auditDir
	case os.Getenv("GHOST_AUDIT_DIR") != "":
		return os.Getenv("GHOST_AUDIT_DIR")
	}
	return filepath.Join(c.state(), "audit")
}
