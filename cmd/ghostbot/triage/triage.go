// Package triage is the verb agent without its program: flags, formats, error
// documents and exit codes of the contract for host processes.
//
// Standard output carries one document and nothing else; everything that is for
// people who watch goes to standard error. Nothing ever asks for input but the
// verb approve, which wants a terminal.
package triage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"ghostbot/cmd/ghostbot/options"
	"ghostbot/safeexec/redact"
	core "ghostbot/triage"
	"ghostbot/triage/session"
	"ghostbot/triage/view"
)

// Exit codes of the contract.
const (
	exitClean       = 0
	exitCandidates  = 1
	exitApplied     = 2
	exitPartial     = 3
	exitBlocked     = 4
	exitGoal        = 5
	exitInterrupted = 6
	exitUsage       = 10
	exitCapability  = 11
	exitPermission  = 12
	exitVersion     = 13
	exitLocked      = 14
	exitSession     = 15
	exitInternal    = 20
	exitIO          = 21
	exitTimeout     = 22
)

// Streams are where a verb reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	State    string // the state directory when no flag names another one
	Line     func(string) string
}

// verb is one word after agent.
type verb struct {
	name  string
	about string
	flags func(*call, *flag.FlagSet)
	run   func(context.Context, *call) (int, error)
}

func verbs() []verb {
	return []verb{
		{"snapshot", "look at all processes and keep what was seen as a session", snapshotFlags, snapshot},
		{"plan", "judge what a session saw, or what is there now", planFlags, planVerb},
		{"explain", "why a process was judged as it was", explainFlags, explain},
		{"apply", "do what a plan recommends, or what is named", applyFlags, apply},
		{"verify", "look what became of what was applied", verifyFlags, verify},
		{"diff", "compare two sessions", diffFlags, diff},
		{"status", "where a session is", sessionFlag, status},
		{"sessions", "list or clean up sessions", sessionsFlags, sessions},
		{"report", "write a report of a session", reportFlags, report},
		{"export", "bundle a session with a manifest", exportFlags, export},
		{"capabilities", "what could be done on this machine", capabilityFlags, capabilities},
		{"approve", "record a person's approval of one action; wants a terminal", approveFlags, approve},
		{"tail", "print the audit log of a session", tailFlags, tail},
	}
}

// Usage is the usage line of the verb.
const Usage = "snapshot|plan|explain|apply|verify|diff|status|sessions|report|export|capabilities|approve|tail [--session ID] [--format json|jsonl|md|summary|metrics|slack|prose|exitcode] ..."

// call is one command line in progress.
type call struct {
	s       Streams
	verb    string
	args    []string // as given
	rest    []string
	given   []string // the flags that were written
	format  string
	state   string
	config  string
	here    bool
	code    string
	pretty  bool
	compact bool
	verbose bool
	loud    bool
	window  time.Duration
	timeout time.Duration
	session string
	engine  *core.Engine

	snapshotOptions
	planOptions
	applyOptions
	otherOptions
	hereOptions
}

// usageError is a bad flag or value.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// gcPercent keeps a look at hundreds of processes small: it is over before a
// larger heap would pay.
const gcPercent = 16

// Run executes one command line after the word agent and returns its exit code.
func Run(ctx context.Context, args []string, s Streams) int {
	debug.SetGCPercent(gcPercent)
	shed()
	c := &call{s: s, args: args}
	if data := os.Getenv("GHOSTBOT_DATA"); data != "" && os.Getenv("GHOST_STATE_DIR") == "" {
		c.s.State = data
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := c.run(ctx, args)
	if err != nil {
		code = c.fail(err)
	}
	if c.code == "always0" && code < exitUsage || c.code == "done" && code == exitApplied {
		return exitClean
	}
	return code
}

func (c *call) run(ctx context.Context, args []string) (int, error) {
	if len(args) > 0 && slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		return exitClean, c.help()
	}
	v, args, err := find(args)
	if err != nil {
		return 0, err
	}
	c.verb = v.name
	if err := c.parse(v, args); err != nil {
		if help := (*options.Help)(nil); errors.As(err, &help) {
			_, err = fmt.Fprintf(c.s.Out, "usage: ghostbot agent %s [FLAG...]: %s\n%s", v.name, v.about, help.Flags)
			return exitClean, err
		}
		return 0, err
	}
	if err := c.check(); err != nil {
		return 0, err
	}
	if c.engine, err = core.Open(core.Options{Dir: filepath.Join(c.state, "triage"), Here: c.sessions, Config: c.config, Redact: redactor(), Window: c.window, Timeout: c.scanTimeout(), Command: c.command}); err != nil {
		return 0, err
	}
	defer c.engine.Close()
	return v.run(ctx, c)
}

func (c *call) help() error {
	var b strings.Builder
	b.WriteString("usage: ghostbot agent " + Usage + "\n")
	for _, v := range verbs() {
		fmt.Fprintf(&b, "  %-13s %s\n", v.name, v.about)
	}
	_, err := io.WriteString(c.s.Out, b.String())
	return err
}

// redactor masks command lines; one that could not be redacted is withheld.
func redactor() func(string) string {
	r := redact.New(redact.Options{})
	return func(s string) string { return r.Redact(s).Text }
}

// scanTimeout: the flag bounds the scan of the verbs that only look.
func (c *call) scanTimeout() time.Duration {
	if c.verb == "apply" {
		return 0
	}
	return c.timeout
}

func find(args []string) (verb, []string, error) {
	i := slices.IndexFunc(args, func(a string) bool {
		return !strings.HasPrefix(a, "-") && slices.ContainsFunc(verbs(), func(v verb) bool { return v.name == a })
	})
	if len(args) == 0 {
		return verb{}, nil, usage("agent wants a verb")
	}
	if i < 0 || !strings.HasPrefix(args[0], "-") {
		i = 0
	}
	for _, v := range verbs() {
		if v.name == args[i] {
			return v, slices.Concat(args[:i], args[i+1:]), nil
		}
	}
	return verb{}, nil, usage("%q is no verb of agent (accepted: snapshot plan explain apply verify diff status sessions report export capabilities approve tail)", args[i])
}

// formats are the formats that every verb accepts; those of plan are more.
var formats = []string{"json", "jsonl", "md", "summary", "metrics", "slack", "prose", "exitcode", formatCase}

func (c *call) parse(v verb, args []string) error {
	f := flag.NewFlagSet(v.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&c.format, "format", "", "json, jsonl, md, summary, metrics, slack, prose, exitcode or case: `FORMAT`")
	f.StringVar(&c.format, "f", "", "")
	f.StringVar(&c.state, "state-dir", c.s.State, "where sessions live, in place of GHOST_STATE_DIR: `DIR`")
	f.String("audit-dir", "", "accepted for the contract, changes nothing: `DIR`")
	f.StringVar(&c.config, "config", "", "priors, signatures and policy: `DIR`")
	f.StringVar(&c.code, "exit-code", "strict", "strict, always0, or done for 0 in place of 2: `MODE`")
	f.BoolVar(&c.here, "here", false, "keep the session in the working directory, which is a case's")
	f.BoolVar(&c.pretty, "pretty", false, "indent the JSON")
	f.BoolVar(&c.compact, "compact", false, "no optional blocks, which is the default")
	f.BoolVar(&c.verbose, "verbose", false, "all members")
	f.BoolVar(&c.loud, "v", false, "say on standard error what is done")
	f.Bool("robot", false, "accepted for the contract, changes nothing")
	f.Var(duration{&c.timeout}, "timeout", "give up after this `DURATION`")
	v.flags(c, f)
	for {
		if err := f.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return &options.Help{Flags: options.About(f)}
			}
			return usage("agent %s: %s", v.name, options.Explain(err, f))
		}
		args = f.Args()
		if len(args) == 0 {
			break
		}
		c.rest, args = append(c.rest, args[0]), args[1:]
	}
	f.Visit(func(x *flag.Flag) { c.given = append(c.given, x.Name) })
	if len(c.rest) > 0 {
		return usage("agent %s takes no argument, got %q", v.name, c.rest[0])
	}
	return nil
}

func (c *call) check() error {
	if c.format == "" {
		c.format = os.Getenv("PT_OUTPUT_FORMAT")
	}
	if c.format == "" {
		c.format = "json"
	}
	if !slices.Contains(formats, c.format) {
		return usage("--format %q is not known (accepted: %s)", c.format, strings.Join(formats, " "))
	}
	if c.session == "" && slices.Contains(c.given, "session") && c.verb != "diff" {
		return usage("--session wants the id of a session")
	}
	if c.code != "strict" && c.code != "always0" && c.code != "done" {
		return usage("--exit-code %q is not known (accepted: strict always0 done)", c.code)
	}
	if c.window != 0 && (c.window < 200*time.Millisecond || c.window > 10*time.Second) {
		return usage("--window %v is out of range (accepted: 200ms to 10s)", c.window)
	}
	if c.here {
		if err := c.inCase(); err != nil {
			return err
		}
	}
	if c.config == "" {
		if dir := filepath.Join(c.state, "triage", "config"); exists(dir) {
			c.config = dir
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// print writes a document in the format that was asked for; text renders it for
// the formats that are not JSON.
func (c *call) print(doc any, text func() string) error {
	switch {
	case c.format == "exitcode":
		return nil
	case c.format == "json" || c.format == "jsonl" || c.format == formatCase || text == nil:
		b, err := view.Encode(doc, c.pretty && c.format != "jsonl")
		if err != nil {
			return err
		}
		_, err = c.s.Out.Write(b)
		return err
	}
	_, err := io.WriteString(c.s.Out, text())
	return err
}

// log writes for people who watch.
func (c *call) log(format string, args ...any) {
	if c.loud {
		fmt.Fprintf(c.s.Err, "ghostbot agent %s: %s\n", c.verb, c.s.Line(fmt.Sprintf(format, args...)))
	}
}

func sessionFlag(c *call, f *flag.FlagSet) {
	f.StringVar(&c.session, "session", "", "the session: `ID`")
}

// needSession refuses a command line without a session.
func (c *call) needSession() error {
	if c.session == "" {
		return usage("agent %s wants --session ID", c.verb)
	}
	return session.CheckID(c.session)
}

// opened is the session that the command line names. The caller closes it.
func (c *call) opened() (*session.Session, error) {
	if err := c.needSession(); err != nil {
		return nil, err
	}
	return c.engine.Store().Open(c.session)
}

// words is a flag of a list: written again it adds to the list, because a process
// that was named, or what was said of it, is never left away.
type words struct{ list *string }

// String implements [flag.Value].
func (w words) String() string {
	if w.list == nil {
		return ""
	}
	return *w.list
}

// Set implements [flag.Value].
func (w words) Set(s string) error {
	if *w.list != "" {
		s = *w.list + "," + s
	}
	*w.list = s
	return nil
}

// duration is a flag that also accepts plain seconds.
type duration struct{ d *time.Duration }

// String implements [flag.Value].
func (d duration) String() string {
	if d.d == nil {
		return ""
	}
	return d.d.String()
}

// Set implements [flag.Value].
func (d duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil {
		v, err = time.ParseDuration(s + "s")
	}
	if days, ok := strings.CutSuffix(s, "d"); err != nil && ok {
		if v, err = time.ParseDuration(days + "h"); err == nil {
			v *= 24
		}
	}
	if err != nil || v < 0 {
		return fmt.Errorf("%q is no duration (accepted: 5s, 500ms, 2h, 7d)", s)
	}
	*d.d = v
	return nil
}
