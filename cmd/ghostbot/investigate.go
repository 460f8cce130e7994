package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	xterm "golang.org/x/term"

	"ghostbot/agent"
	"ghostbot/agent/brains"
	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/bot/show"
	"ghostbot/bot/term"
	"ghostbot/cmd/ghostbot/ledger"
	"ghostbot/cmd/ghostbot/options"
	"ghostbot/store"
)

// asked are the flags of investigate.
type asked struct {
	symptom         string
	resume, brain   options.Text
	model, maxTurns options.Text
	turns           int // of maxTurns; 0: not given
	safeOnly        bool
	cleanup         bool // the case removes what others left
}

// Limits of --max-turns and GHOST_MAX_TURNS.
const minTurns, maxTurns = 1, 1000

// investigate carries one case in the terminal. It returns 0 when the case ended
// with a cause or with no fault found, 1 when it ended otherwise or was left.
func investigate(ctx context.Context, c *cli, args []string) error {
	a, err := investigateFlags(c, args)
	if err != nil {
		return err
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	ctx, calm := interrupted(ctx)
	defer calm()
	screen, err := term.Open(term.Streams{In: c.in, Out: terminalOr(c.out), Err: c.err, Dumb: dumb()})
	if err != nil {
		return fail(exitUnavailable, "terminal: %w", err)
	}
	defer screen.Close()
	if a.symptom == "" && !a.cleanup && !a.resume.Given && !screen.Interactive() {
		return usageError("investigate: a symptom is missing: say what fails, where, since when")
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	if a.resume.Given { // opening a store would make one
		if there, err := hasStore(c.state()); err != nil {
			return fail(exitUnavailable, "state directory: %w", err)
		} else if !there {
			return a.unknown(c)
		}
	}
	t := &terminal{c: c, asked: a, screen: screen}
	return t.run(ctx, leave, cfg)
}

// dumb reports a terminal that only prints (terminfo's name for it, or none).
func dumb() bool { return slices.Contains([]string{"", "dumb"}, os.Getenv("TERM")) }

// interrupted ends ctx when the terminal is closed (SIGHUP), unless whoever started
// the program wants it to go on then (nohup), and lets writing to a pipe that nobody
// reads any more be an error like others: the case is left in order, not killed.
func interrupted(ctx context.Context) (context.Context, func()) {
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE)
	if signal.Ignored(syscall.SIGHUP) {
		return ctx, func() { signal.Stop(gone) }
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	return ctx, func() { stop(); signal.Stop(gone) }
}

func investigateFlags(c *cli, args []string) (asked, error) {
	var a asked
	rest, err := c.flags("investigate", args, func(fs *flag.FlagSet) {
		fs.Var(&a.resume, "resume", "go on with the case `SID` of a terminal")
		fs.Var(&a.brain, "brain", "who proposes, auto, gemini or playbook: `BRAIN`")
		fs.Var(&a.model, "model", "name of the model that is asked: `NAME`")
		fs.Var(&a.maxTurns, "max-turns", "turns before you are asked, 1 to 1000: `N`")
		fs.BoolVar(&a.safeOnly, "yes-safe-only", false, "ask nobody: read-only probes run, everything else is denied")
		fs.BoolVar(&a.cleanup, "cleanup", false, "look for what cases left in the cloud and here, and ask once")
	})
	if err != nil {
		return a, err
	}
	a.symptom = strings.TrimSpace(strings.Join(rest, " "))
	return a, a.check()
}

// check answers values that are not accepted.
func (a *asked) check() error {
	if a.maxTurns.Given {
		n, err := strconv.Atoi(a.maxTurns.Value)
		if err != nil {
			return usageError("--max-turns: %q is not a whole number (accepted: %d to %d)", a.maxTurns.Value, minTurns, maxTurns)
		}
		if n < minTurns || n > maxTurns {
			return usageError("--max-turns: %d is out of range (accepted: %d to %d)", n, minTurns, maxTurns)
		}
		a.turns = n
	}
	switch {
	case a.resume.Given && audit.FileName(a.resume.Value, audit.Case) == "":
		return usageError("--resume: %q is not a case (accepted: ghost_YYYYMMDD_HHMMSS, perhaps with -2)", a.resume.Value)
	case a.resume.Given && a.symptom != "":
		return usageError("investigate: --resume %q continues a case with the symptom it has; leave the symptom out", a.resume.Value)
	case a.cleanup && (a.resume.Given || a.symptom != ""):
		return usageError("investigate: --cleanup looks for what cases left, without a symptom and without --resume")
	case a.brain.Given && !slices.Contains(brains.Names(), a.brain.Value):
		return usageError("--brain: %q is not a brain of this build (accepted: %s)", a.brain.Value, strings.Join(brains.Names(), " "))
	case a.model.Given && strings.TrimSpace(a.model.Value) == "":
		return usageError("--model: %q is not the name of a model (accepted: a name such as gemini-2.5-flash)", a.model.Value)
	}
	return nil
}

// unknown is the answer to a case that is not there.
func (a *asked) unknown(c *cli) error {
	return fail(exitNegative, "--resume: there is no case %s in %s", a.resume.Value, c.state())
}

// config is the environment as the flags change it.
func (a *asked) config() (config, error) {
	cfg, err := read()
	if err != nil {
		return cfg, err
	}
	if a.turns != 0 {
		cfg.MaxTurns = options.Whole(a.turns)
	}
	cfg.Brain, cfg.Model = cmp.Or(a.brain.Value, cfg.Brain), cmp.Or(a.model.Value, cfg.Model)
	if err := cfg.check(); err != nil {
		return cfg, err
	}
	if a.model.Given && !cfg.choice().AsksModel() {
		return cfg, usageError("--model: %q has no use: no model is asked (accepted: --brain gemini, with GEMINI_API_KEY)", a.model.Value)
	}
	return cfg, nil
}

// terminalOr is the terminal beneath the stream that watches for lost output, or
// that stream.
func terminalOr(w io.Writer) io.Writer {
	if s, ok := w.(*sink); ok {
		if f, ok := s.w.(*os.File); ok && xterm.IsTerminal(int(f.Fd())) {
			return f
		}
	}
	return w
}

// terminal is one run of investigate.
type terminal struct {
	c      *cli
	asked  asked
	screen *term.Screen
	front  *term.Front
	p      *program
}

func (t *terminal) run(ctx context.Context, leave func(), cfg config) error {
	who := person()
	access := bot.Access{Approvers: []string{who}, Self: true, TwoPerson: cfg.TwoPerson, Factor: cfg.SecondFactor}
	if t.asked.safeOnly {
		access.Refuse = "no approver"
	}
	t.front = term.New(term.Options{Console: t.screen, Person: who, Leave: leave, Silent: t.asked.safeOnly, Piped: !t.screen.Interactive(), Flags: t.c.dirFlags(),
		Rules: show.Rules{Needed: access.Needed, Self: true, Approvers: access.Approvers}})
	log := slog.New(slog.DiscardHandler) // the screen shows what a person can use
	if !t.screen.Edited() {
		log = slog.New(slog.NewTextHandler(t.c.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	cfg.RedisURL = "" // a terminal's case stays on its machine
	p, err := assemble(ctx, t.c, cfg, log)
	if err != nil {
		return err
	}
	defer p.close()
	t.p = p
	if err := p.checkModel(ctx); err != nil {
		return err
	}
	o := p.options(t.front, "term", access, occasional{p})
	if p.desk, err = bot.New(o); err != nil {
		return err
	}
	sid, err := t.begin(ctx, who)
	if sid != "" && ctx.Err() != nil { // left before anything of it was shown
		return t.open(ctx, err, sid)
	}
	if err != nil || sid == "" {
		return err
	}
	go t.front.Listen(ctx, p.desk)
	return t.carry(ctx, sid)
}

// person names whoever sits here in journals.
func person() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return "local:" + u.Username
	}
	return "local:" + fmt.Sprint(os.Getuid())
}

// begin opens the case, or finds the one to resume. sid is "" when there is nothing
// left to do.
func (t *terminal) begin(ctx context.Context, who string) (sid string, err error) {
	if t.asked.resume.Given {
		return t.resumed(ctx)
	}
	open := t.p.desk.Open
	if t.asked.cleanup {
		open = t.p.desk.Sweep
	} else if t.asked.symptom == "" {
		if t.asked.symptom, err = t.intent(ctx); err != nil {
			return "", err
		}
	}
	sid, err = open(ctx, bot.Opening{Delivery: "terminal " + fmt.Sprint(time.Now().UnixNano(), os.Getpid()), Symptom: t.asked.symptom,
		Requester: who, Place: bot.Place{Transport: "term", Channel: "terminal"}})
	switch {
	case errors.Is(err, bot.ErrSweeping):
		return "", fail(exitUnavailable, "%w: %s", err, sid)
	case errors.Is(err, bot.ErrNoSweeps):
		return "", usageError("--cleanup: captures are not configured, so that nothing was left in the cloud (accepted: with GHOST_AZ_SUBSCRIPTION)")
	case err != nil:
		return "", fail(exitUnavailable, "%w", err)
	}
	t.front.Banner(versionOf().Version, sid)
	return sid, t.unfinished(ctx, sid)
}

// intent asks for the symptom. The goroutine that reads ends with the process when
// nothing is typed: a read of a terminal cannot be taken back.
func (t *terminal) intent(ctx context.Context) (string, error) {
	t.front.Say("What network problem should I investigate?")
	lines := make(chan string)
	go func() {
		defer close(lines)
		for {
			t.screen.Prompt("Symptom: ", "")
			l, err := t.screen.ReadLine()
			if err != nil {
				return
			}
			if text := strings.TrimSpace(l.Text); text != "" {
				t.screen.Prompt("> ", "")
				lines <- text
				return
			}
		}
	}()
	select {
	case text, ok := <-lines:
		if ok {
			return text, nil
		}
	case <-ctx.Done():
	}
	return "", fail(exitNegative, "no symptom was given: no case was opened")
}

func (t *terminal) resumed(ctx context.Context) (string, error) {
	info, err := t.p.desk.Case(ctx, t.asked.resume.Value)
	switch {
	case errors.Is(err, bot.ErrNoCase):
		return "", t.asked.unknown(t.c)
	case err != nil:
		return "", fail(exitUnavailable, "%w", err)
	case info.Opening.Place.Transport != "term":
		return "", usageError("--resume: %s lives in a %s thread and continues there, when the bot runs", info.SessionID, info.Opening.Place.Transport)
	case info.Closed:
		t.front.Say(info.SessionID + " is finished (" + info.Verdict + "): " + info.Summary)
		t.front.Say("Its report: " + reportPath(t.p.auditDir, info.SessionID))
		return "", nil
	}
	t.front.Banner(versionOf().Version, info.SessionID)
	return info.SessionID, nil
}

// unfinished lists the cases of terminals that nobody carries any more.
func (t *terminal) unfinished(ctx context.Context, but string) error {
	all, err := t.p.desk.Active(ctx, "")
	if err != nil {
		return fail(exitUnavailable, "%w", err)
	}
	n := 0
	for _, c := range all {
		if c.SessionID != but && c.Opening.Place.Transport == "term" {
			n++
			t.front.Say("  [..] unfinished: " + c.SessionID + "  " + short(oneLine(c.Opening.Symptom), 60))
		}
	}
	if n > 0 {
		t.front.Say("  Continue one with: ghostbot investigate --resume CASE" + t.c.dirFlags())
	} else {
		t.front.Say("  [OK] No unfinished case of a terminal.")
	}
	t.front.Say(t.p.cfg.cloud().Leftovers())
	return nil
}

// carry holds the case until it is closed, and then the fresh one that people may
// have wanted in its place.
func (t *terminal) carry(ctx context.Context, sid string) error {
	for {
		err := t.p.desk.Carry(ctx, sid)
		if err != nil {
			return t.open(ctx, err, sid)
		}
		info, err := t.p.desk.Case(context.WithoutCancel(ctx), sid)
		if err != nil {
			return fail(exitUnavailable, "%w", err)
		}
		if info.Next == "" {
			return t.verdict(info)
		}
		sid = info.Next
		t.front.Banner(versionOf().Version, sid)
	}
}

// open says why a case is still open, and how it goes on.
func (t *terminal) open(ctx context.Context, err error, sid string) error {
	again := "continue with: ghostbot investigate --resume " + sid + t.c.dirFlags()
	left, lost := t.front.Left()
	switch {
	case t.front.Waits():
		return fail(exitUnavailable, "%s waits: its files were changed, and only a person can say what becomes of it; in a terminal, %s", sid, again)
	case lost != nil && !goneAway(lost):
		return fail(exitInternal, "standard output: %v; session saved; %s", lost, again)
	case left, ctx.Err() != nil:
		return fail(exitNegative, "session saved; %s", again)
	case errors.Is(err, store.ErrHeld):
		return fail(exitUnavailable, "%s is carried by another ghostbot just now", sid)
	}
	return fail(exitUnavailable, "%s rests: %w; %s", sid, err, again)
}

// goneAway reports that whoever read or watched what is printed has gone: the pipe
// or the terminal is closed.
func goneAway(err error) bool { return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EIO) }

// verdict is the exit code of a case that ended.
func (t *terminal) verdict(info bot.CaseInfo) error {
	if l := t.front.Unread(); l != "" {
		t.front.Say("Nothing asked for this line of standard input: " + l)
	}
	end, ok := t.front.Ended()
	switch {
	case ok && end.EndedBy != "stopped" && (info.Verdict == "root_cause" || info.Verdict == "no_fault"):
		return nil
	case ok && end.EndedBy == agent.KindSweep:
		return nil
	case ok && end.EndedBy == "stopped":
		return fail(exitNegative, "%s was stopped", info.SessionID)
	}
	return fail(exitNegative, "%s ended without a verified cause", info.SessionID)
}

// occasional is the register of a process that serves nothing: it is opened for
// each entry. While a bot serves the same state directory the register is the
// bot's, and the entry is left out and logged.
type occasional struct{ p *program }

// Append implements [bot.Journal].
func (o occasional) Append(ctx context.Context, kind string, body any) (n uint64, hash string, err error) {
	l, err := o.p.db.Acquire(ctx, store.Deployment, "investigate", time.Minute)
	if errors.Is(err, store.ErrHeld) {
		o.p.log.Warn("not registered: another ghostbot has the register", "kind", kind)
		return 0, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	defer o.p.db.Release(context.WithoutCancel(ctx), l)
	log, err := o.p.ring.Open(ctx, audit.Options{SID: audit.Register, Fence: l.Fence, Stream: ledger.Stream{DB: o.p.db, Scope: store.Deployment, Fence: l.Fence}})
	if err != nil {
		return 0, "", err
	}
	defer log.Close()
	return ledger.Journal{Of: log.Journal(audit.Register)}.Append(ctx, kind, body)
}

// AppendVia implements [bot.Journal]; nothing registers that way.
func (o occasional) AppendVia(context.Context, string, any, func(context.Context, store.Line) error) (uint64, string, error) {
	return 0, "", errors.New("the register takes no joint entries")
}

var _ bot.Journal = occasional{}
