// Command ghostbot investigates network incidents in Slack threads. See the
// package comment of the module root for the tour, and the README for use.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"ghostbot/safeexec"
)

// Exit codes of every verb (the agent verbs have their own).
const (
	exitOK          = 0
	exitNegative    = 1
	exitInternal    = 2
	exitUnavailable = 3
	exitUsage       = 10
)

// verb is one word of the command line.
type verb struct {
	name  string
	args  string // as in the usage line
	about string
	run   func(ctx context.Context, c *cli, args []string) error
}

// cli is where a verb reads and writes, so that tests can run it in-process.
type cli struct {
	in       io.Reader
	out, err io.Writer
	stateDir string
	auditDir string
}

// exitError carries an exit code with its one-line message.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func fail(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

// usageError is a bad flag, value or file; the usage line follows it.
func usageError(format string, args ...any) error { return fail(exitUsage, format, args...) }

func verbs() []verb {
	return []verb{
		{"serve", "", "run the Slack bot (Socket Mode); configuration from the environment", serve},
		{"classify", "COMMAND | --jsonl", "the gate's verdict, without running anything", classify},
		{"redact", "[--jsonl]", "mask credentials in standard input", redactVerb},
		{"cases", "[--json] [--like SID|TEXT]", "list cases with state, age and pending approvals", cases},
		{"audit", "verify|show|export|rca SID", "check, print, bundle or report a case's journals", auditVerb},
		{"doctor", "[--json]", "check configuration, tokens, state directory and tools", doctor},
		{"version", "[--json]", "version, commit, Go version", version},
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		syscall.Exit(safeexec.Supervise()) // first of all: the path from an approval to its process is short
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, &cli{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Args[1:]))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, c *cli, args []string) int {
	err := dispatch(ctx, c, args)
	if err == nil {
		return exitOK
	}
	code := exitInternal
	var e *exitError
	if errors.As(err, &e) {
		code = e.code
	}
	if msg := err.Error(); msg != "" {
		fmt.Fprintln(c.err, "ghostbot: "+strings.ReplaceAll(msg, "\n", " "))
	}
	if code == exitUsage {
		fmt.Fprintln(c.err, usageLine(args))
	}
	return code
}

func usageLine(args []string) string {
	for _, v := range verbs() {
		if len(args) > 0 && v.name == args[0] {
			return strings.TrimRight("usage: ghostbot "+v.name+" [--state-dir DIR] "+v.args, " ")
		}
	}
	var names []string
	for _, v := range verbs() {
		names = append(names, v.name)
	}
	return "usage: ghostbot " + strings.Join(names, "|") + " ..."
}

func dispatch(ctx context.Context, c *cli, args []string) error {
	if len(args) == 0 {
		return usageError("no verb is given")
	}
	if slices.Contains([]string{"help", "-h", "--help"}, args[0]) {
		help(c.out)
		return nil
	}
	for _, v := range verbs() {
		if v.name == args[0] {
			return v.run(ctx, c, args[1:])
		}
	}
	return usageError("%q is not a verb", args[0])
}

func help(w io.Writer) {
	fmt.Fprintln(w, "ghostbot investigates network incidents: it asks before it acts and cites what it saw.")
	for _, v := range verbs() {
		fmt.Fprintf(w, "  %-40s %s\n", v.name+" "+v.args, v.about)
	}
}
