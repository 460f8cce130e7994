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

	"ghostbot/cmd/ghostbot/ops"
	"ghostbot/cmd/ghostbot/options"
	"ghostbot/cmd/ghostbot/secrets"
	"ghostbot/cmd/ghostbot/triage"
	"ghostbot/safeexec"
	"ghostbot/safeexec/redact"
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
	stops bool // ends by its context; SIGINT and SIGTERM end the others as they end any filter
	run   func(ctx context.Context, c *cli, args []string) error
}

// cli is where a verb reads and writes, so that tests can run it in-process.
type cli struct {
	in       io.Reader
	out, err io.Writer
	stateDir string
	auditDir string
	ops      *ops.Ops // of serve
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
		{"serve", "", "run the Slack bot (Socket Mode); configuration from the environment", true, serve},
		{"investigate", `[--resume SID] [--brain auto|gemini|playbook] [--model NAME] [--max-turns N] [--yes-safe-only] [--cleanup] "SYMPTOM"`, "investigate in this terminal", true, investigate},
		{"classify", "[--json] COMMAND | -- WORD... | --jsonl", "the gate's verdict, without running anything", false, classify},
		{"redact", "[--jsonl]", "mask credentials in standard input", false, redactVerb},
		{"cases", "[--json] [--like SID|TEXT]", "list cases with state, age and pending approvals", false, cases},
		{"audit", "verify|show|export|rca|sign|delete SID [--json] [--head HEX] [--rca FILE] [--key-file FILE] [--stream] [-o FILE] [--by NAME] [--reason TEXT]", "check, print, bundle, report, sign or delete journals", false, auditVerb},
		{"pcap", "FILE... [--json] [--frames] [--no-hash] [--fail-on SEVERITY] [--filter EXPR] [--semantic-dir DIR] [--report-dir DIR] [--plots DIR] [--compare FILE --mode endpoints|baseline]", "what is wrong in a capture, where, and how sure that is", true, pcapVerb},
		{"agent", triage.Usage, "judge and end host processes: snapshot, plan, explain, apply, verify (docs/triage.md)", false, agentVerb},
		{"totp", "enrol USER|list|remove USER|unlock USER [--replace] [--file FILE]", "second factors of approvers: codes of an authenticator app", false, totpVerb},
		{"doctor", "[--json]", "check configuration, tokens, model, state directory and tools", false, doctor},
		{"version", "[--json]", "version, commit, Go version", false, version},
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		syscall.Exit(safeexec.Supervise()) // first of all: the path from an approval to its process is short
	}
	os.Exit(run(context.Background(), &cli{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Args[1:]))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, c *cli, args []string) int {
	args = verbFirst(args)
	out := &sink{w: c.out}
	c.out = out
	err := dispatch(ctx, c, args)
	if help := (*options.Help)(nil); errors.As(err, &help) {
		_, err = fmt.Fprint(out, usageLine(args)+"\n"+help.Flags)
	}
	if err == nil && out.err != nil {
		err = fmt.Errorf("standard output: %w", out.err)
	}
	if err == nil {
		return exitOK
	}
	code := exitInternal
	if errors.Is(err, syscall.EPIPE) {
		return code // who read has gone: there is nobody to tell
	}
	var e *exitError
	if errors.As(err, &e) {
		code = e.code
	}
	if msg := err.Error(); msg != "" {
		masks := redact.New(redact.Options{Known: secrets.Known()})
		fmt.Fprintln(c.err, "ghostbot: "+oneLine(scrubber(masks)(msg)))
	}
	if code == exitUsage {
		fmt.Fprintln(c.err, usageLine(args))
	}
	return code
}

// sink remembers that output was lost, which is never a success.
type sink struct {
	w   io.Writer
	err error
}

// Write implements [io.Writer].
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

// verbFirst moves flags that stand before the verb behind it.
func verbFirst(args []string) []string {
	i := 0
	for i < len(args) && strings.HasPrefix(args[i], "-") && !slices.Contains(helpWords, args[i]) {
		if n := strings.TrimLeft(args[i], "-"); n == "state-dir" || n == "audit-dir" {
			i++
		}
		i++
	}
	if i == 0 || i >= len(args) {
		return args
	}
	return slices.Concat(args[i:i+1], args[:i], args[i+1:])
}

// helpWords ask for the list of verbs.
var helpWords = []string{"help", "-h", "-help", "--help"}

func usageLine(args []string) string {
	for _, v := range verbs() {
		if len(args) > 0 && v.name == args[0] {
			return strings.TrimRight("usage: ghostbot "+v.name+" [--state-dir DIR] [--audit-dir DIR] "+v.args, " ")
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
	if slices.Contains(helpWords, args[0]) {
		help(c.out)
		return nil
	}
	for _, v := range verbs() {
		if v.name == args[0] {
			if v.stops {
				var stop func()
				ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
				defer stop()
			}
			return v.run(ctx, c, args[1:])
		}
	}
	return usageError("%q is not a verb", args[0])
}

func help(w io.Writer) {
	fmt.Fprintln(w, "ghostbot investigates network incidents: it asks before it acts and cites what it saw.")
	for _, v := range verbs() {
		fmt.Fprintf(w, "  %s\n      %s\n", strings.TrimRight(v.name+" "+v.args, " "), v.about)
	}
}
