package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"

	"ghostbot/cmd/ghostbot/options"
	"ghostbot/safeexec/policy"
)

// flags parses args, which may mix flags and arguments in any order, and returns
// the arguments. Every verb takes --state-dir.
func (c *cli) flags(name string, args []string, define func(*flag.FlagSet)) ([]string, error) {
	fs := options.New(name)
	fs.StringVar(&c.stateDir, "state-dir", "", "where state lives, in place of GHOST_STATE_DIR: `DIR`")
	fs.StringVar(&c.auditDir, "audit-dir", "", "where journals and reports live, in place of GHOST_AUDIT_DIR: `DIR`")
	if define != nil {
		define(fs)
	}
	rest, err := options.Parse(fs, args)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		err = usageError("%w", err)
	}
	return rest, err
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
