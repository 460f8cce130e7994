package safeexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ghostbot/safeexec/anonymize"
	"ghostbot/safeexec/policy"
	"ghostbot/safeexec/process"
	"ghostbot/safeexec/redact"
)

// Defaults of [Options].
const (
	DefaultTimeout     = 60 * time.Second
	DefaultAzTimeout   = 120 * time.Second // az repeats silently for up to 90 s
	DefaultMaxTimeout  = 10 * time.Minute
	DefaultApprovalTTL = 30 * time.Minute
	DefaultLease       = 12 * time.Second
	DefaultOutputLimit = 1 << 20
)

// DefaultPath is where programs are looked up; the caller's PATH is never used.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// maxCommand bounds the text of one command, in bytes. The kernel's own limit
// for one argument is twice this.
const maxCommand = 64 << 10

// Limits is [process.Limits].
type Limits = process.Limits

// Supervisors is [process.Pool]: supervisors that wait for the next command,
// whichever case it comes from.
type Supervisors = process.Pool

// NewSupervisors is [process.NewPool].
func NewSupervisors() *Supervisors { return process.NewPool() }

// Supervise is [process.Supervise]: main calls it before anything else when the
// program was started with the words of [Options.SelfArgs], as in
//
//	if len(os.Args) == 2 && os.Args[1] == "supervise" {
//		syscall.Exit(safeexec.Supervise())
//	}
func Supervise() int { return process.Supervise() }

// Options are what a shell needs. SessionID, Policy, Journal, Approver,
// Redactor and Dir are required.
type Options struct {
	SessionID string
	Policy    *policy.Policy
	Journal   Journal
	Approver  Approver // without people: one whose Ask denies
	Redactor  *redact.Redactor
	Dir       string   // working directory of commands, created with mode 0700; not their HOME, which is nowhere
	Self      string   // binary that is executed as the supervisor; default os.Executable
	SelfArgs  []string // words that make Self call [Supervise]; default "supervise"
	// Supervisors are shared by the cases of a process, which closes them; nil: each
	// command gets a fresh one.
	Supervisors *Supervisors
	Path        string // colon-separated absolute directories; default [DefaultPath]

	ApprovalTTL time.Duration            // an unanswered proposal expires after this
	Timeout     time.Duration            // of one command
	Timeouts    map[string]time.Duration // by tool (argv[0]); default az: [DefaultAzTimeout]
	MaxTimeout  time.Duration            // bounds what a request may ask for
	Lease       time.Duration            // heartbeat every sixth, the supervisor gives up after two thirds
	OutputLimit int                      // bytes kept of each stream, half from its head and half from its tail; 16 times as much ends the command
	Limits      Limits

	// Anonymizer, when it is set, hides the topology in output before it is
	// journaled and shown, and turns the names that it gave back into what they
	// stand for in the commands of a brain. The command that people see, approve
	// and find in the journal is the real one.
	Anonymizer *anonymize.Anonymizer

	// Spool is where every command but the product's own runs, in place of Dir, so that what
	// it writes can lie in memory; "": in Dir. Keep is given what a command left where it
	// ran, before the outcome is journaled, and says what lies where then; when it fails the command
	// has failed. nil: it stays as it is. CaptureKey is the path of the file whose key opens captures, which
	// the product's own analysis is told.
	Spool      string
	Keep       func(dir string, left []Artefact) ([]Artefact, error)
	CaptureKey string

	ReadOnly bool          // no RISKY command is ever offered
	Identity func() string // cloud account and subscription, asked for az commands; must be quick
	// Journals is the absolute directory of the case's journals: the verb that ends
	// processes looks its approval up there.
	Journals  string
	Requester string                     // who opened the case
	Env       func(tool string) []string // NAME=value additions to a tool's environment; names of ours are dropped
	Now       func() time.Time           // default time.Now
}

// classifier is what the gate needs of a policy.
type classifier interface {
	Classify(text string) policy.Verdict
	ClassifyArgv(argv []string) policy.Verdict
	Version() string
}

// Shell is the gate of one case. Its methods may be called from several
// goroutines, but a case is expected to run one command at a time.
type Shell struct {
	opt    Options
	policy classifier
	host   string
	boot   string

	mu       sync.Mutex
	programs map[string]string // name -> real file; only hits are kept
	results  map[string]Result // finished in this process, by audit id: a stale Record never runs again
	started  map[string]bool   // intents of this process
}

// New checks o, creates the working directory and returns the shell. Nothing is
// journaled.
func New(o Options) (*Shell, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("safeexec: %w", err)
	}
	if err := o.fill(); err != nil {
		return nil, fmt.Errorf("safeexec: %w", err)
	}
	host, boot, err := process.Machine()
	if err != nil {
		return nil, fmt.Errorf("safeexec: %w", err)
	}
	return &Shell{
		opt: o, policy: o.Policy, host: host, boot: boot,
		programs: map[string]string{}, results: map[string]Result{}, started: map[string]bool{},
	}, nil
}

func (o *Options) check() error {
	for _, c := range []struct {
		name    string
		missing bool
	}{
		{"session id", o.SessionID == ""},
		{"policy", o.Policy == nil},
		{"journal", o.Journal == nil},
		{"approver", o.Approver == nil},
		{"redactor", o.Redactor == nil},
		{"working directory", o.Dir == ""},
	} {
		if c.missing {
			return errors.New(c.name + " is required")
		}
	}
	for _, d := range []time.Duration{o.ApprovalTTL, o.Timeout, o.MaxTimeout, o.Lease} {
		if d < 0 {
			return fmt.Errorf("negative duration %v", d)
		}
	}
	for _, dir := range filepath.SplitList(o.Path) {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("search path %q is not absolute", dir)
		}
	}
	return nil
}

func (o *Options) fill() (err error) {
	orDuration := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	orDuration(&o.ApprovalTTL, DefaultApprovalTTL)
	orDuration(&o.Timeout, DefaultTimeout)
	orDuration(&o.MaxTimeout, DefaultMaxTimeout)
	orDuration(&o.Lease, DefaultLease)
	if o.OutputLimit <= 0 {
		o.OutputLimit = DefaultOutputLimit
	}
	if o.Timeouts == nil {
		o.Timeouts = map[string]time.Duration{"az": DefaultAzTimeout}
	}
	if o.Path == "" {
		o.Path = DefaultPath
	}
	if o.SelfArgs == nil {
		o.SelfArgs = []string{"supervise"}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Identity == nil {
		o.Identity = func() string { return "" }
	}
	if o.Self == "" {
		if o.Self, err = os.Executable(); err != nil {
			return err
		}
	}
	if o.Dir, err = workDir(o.Dir); err != nil {
		return err
	}
	if o.Spool != "" {
		o.Spool, err = workDir(o.Spool)
	}
	return err
}

// dir is where a command runs.
func (s *Shell) dir(argv []string) string {
	if s.opt.Spool == "" || len(argv) > 0 && argv[0] == s.opt.Self {
		return s.opt.Dir
	}
	return s.opt.Spool
}

// workDir makes dir absolute and exclusive to this user. A link in its place is
// refused: commands write there, and whoever owns the link decides where.
func workDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !fi.IsDir() {
		return "", fmt.Errorf("working directory %s is not a directory", dir)
	}
	return dir, os.Chmod(dir, 0o700)
}

// Command is a parsed and classified command. Only [Shell.Parse] makes one that
// may run; the zero Command is FORBIDDEN.
type Command struct {
	text    string
	verdict policy.Verdict
}

// Parse classifies text. It runs nothing and journals nothing.
func (s *Shell) Parse(text string) Command {
	if len(text) > maxCommand {
		return Command{text: string(process.CutEnd([]byte(text[:256]))) + "...", verdict: forbid("too-long", fmt.Sprintf("the command is %d bytes long; %d are accepted", len(text), maxCommand))}
	}
	v := s.policy.Classify(text)
	if slices.ContainsFunc(v.Argv, unclean) {
		v = forbid("encoding", "an argument is not valid UTF-8 or holds a NUL byte, so that it could not be shown and journaled as it is")
	}
	return Command{text: text, verdict: v}
}

func forbid(rule, reason string) policy.Verdict {
	tier := 0
	return policy.Verdict{Class: Forbidden, Tier: &tier, Rule: rule, Reason: reason, Environment: "local"}
}

// Verdict is what the policy said.
func (c Command) Verdict() policy.Verdict {
	v := c.verdict
	v.Argv = c.Argv()
	return v
}

// Argv is the argument list that would run; nil when there is no single one.
func (c Command) Argv() []string { return slices.Clone(c.verdict.Argv) }

// Display is the command for people: every argument quoted where needed,
// control characters and non-ASCII escaped.
func (c Command) Display() string {
	if len(c.verdict.Argv) > 0 {
		return policy.Quote(c.verdict.Argv)
	}
	q := strconv.QuoteToASCII(c.text)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// Quote is an argument list as cards and journals show it; see [Command.Display].
func Quote(argv []string) string { return policy.Quote(argv) }

// request parses what r asks for: its text, or its argument list re-quoted and
// parsed like any text.
func (s *Shell) request(r Request) Command {
	if !s.reveal(&r) {
		return Command{text: r.Command, verdict: forbid("anonymized", "it names an address that this process has not shown; look it up again")}
	}
	if len(r.Argv) == 0 {
		return s.Parse(r.Command)
	}
	c := s.Parse(policy.Quote(r.Argv))
	if c.verdict.Class != Forbidden && !slices.Equal(c.verdict.Argv, r.Argv) {
		return Command{text: c.text, verdict: forbid("argument-list", "the argument list does not survive quoting and parsing")}
	}
	return c
}

// reveal puts what the names of hidden things stand for in their place, so that
// what is classified, shown and run is the real command. It says false when
// nobody knows what one of them means.
func (s *Shell) reveal(r *Request) bool {
	if s.opt.Anonymizer == nil {
		return true
	}
	text, ok := s.opt.Anonymizer.Reveal(r.Command)
	r.Command, r.Argv = text, slices.Clone(r.Argv)
	for i, a := range r.Argv {
		real, known := s.opt.Anonymizer.Reveal(a)
		r.Argv[i], ok = real, ok && known
	}
	if !ok {
		r.Command = "(a command with an unknown name in it)"
	}
	return ok
}

// Run takes one command through the gate and returns what came of it. An error
// means that the journal or the approver's store did not work, or that ctx ended
// before anything was started: the case must stop here and be resumed. Whatever
// happens to the command itself is a Result.
func (s *Shell) Run(ctx context.Context, r Request) (Result, error) {
	if len(r.Argv) == 0 && strings.TrimSpace(r.Command) == "" {
		return Result{Status: "error", Action: "blocked", Error: "empty_command", Detail: "no command was given", Environment: "local"}, nil
	}
	if r.Requester == "" {
		r.Requester = s.opt.Requester
	}
	p, err := s.propose(ctx, s.plan(s.request(r), r))
	if err != nil {
		return Result{}, fmt.Errorf("safeexec: run: %w", err)
	}
	res, err := s.carry(ctx, Record{Proposal: p})
	if err != nil {
		return res, fmt.Errorf("safeexec: run: %w", err)
	}
	return res, nil
}
