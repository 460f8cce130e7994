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
	"os/user"
	"slices"
	"strings"
	"time"

	xterm "golang.org/x/term"

	"ghostbot/agent/brains"
	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/bot/show"
	"ghostbot/bot/term"
	"ghostbot/cmd/ghostbot/ledger"
	"ghostbot/store"
)

// asked are the flags of investigate.
type asked struct {
	symptom  string
	resume   string
	brain    string
	model    string
	maxTurns int
	safeOnly bool
}

// investigate carries one case in the terminal. It returns 0 when the case ended
// with a cause or with no fault found, 1 when it ended otherwise or was left.
func investigate(ctx context.Context, c *cli, args []string) error {
	a, err := investigateFlags(c, args)
	if err != nil {
		return err
	}
	cfg, err := read()
	if err != nil {
		return err
	}
	if a.maxTurns != 0 {
		cfg.MaxTurns = a.maxTurns
	}
	if a.brain != "" && !slices.Contains(brains.Names(), a.brain) {
		return usageError("--brain: %q is not a brain of this build (accepted: %s)", a.brain, strings.Join(brains.Names(), " "))
	}
	cfg.Brain, cfg.Model = cmp.Or(a.brain, cfg.Brain), cmp.Or(a.model, cfg.Model)
	if err := cfg.check(); err != nil {
		return err
	}
	if a.model != "" && !cfg.choice().AsksModel() {
		return usageError("--model: %q has no use: no model is asked (accepted: --brain gemini, with GEMINI_API_KEY)", a.model)
	}
	screen, err := term.Open(c.in, terminalOr(c.out))
	if err != nil {
		return fail(exitUnavailable, "terminal: %w", err)
	}
	defer screen.Close()
	if a.symptom == "" && a.resume == "" && !screen.Interactive() {
		return usageError("investigate: a symptom is missing: say what fails, where, since when")
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	t := &terminal{c: c, asked: a, screen: screen}
	return t.run(ctx, leave, cfg)
}

func investigateFlags(c *cli, args []string) (asked, error) {
	var a asked
	rest, err := c.flags("investigate", args, func(fs *flag.FlagSet) {
		fs.StringVar(&a.resume, "resume", "", "")
		fs.StringVar(&a.brain, "brain", "", "")
		fs.StringVar(&a.model, "model", "", "")
		fs.IntVar(&a.maxTurns, "max-turns", 0, "")
		fs.BoolVar(&a.safeOnly, "yes-safe-only", false, "")
	})
	a.symptom = strings.TrimSpace(strings.Join(rest, " "))
	switch {
	case err != nil:
		return a, err
	case a.maxTurns < 0:
		return a, usageError("--max-turns: %d is out of range (accepted: 1 to 1000)", a.maxTurns)
	case a.resume != "" && a.symptom != "":
		return a, usageError("investigate: --resume %q continues a case with the symptom it has; leave the symptom out", a.resume)
	}
	return a, nil
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
	access := bot.Access{Approvers: []string{who}, Self: true, TwoPerson: cfg.TwoPerson}
	if t.asked.safeOnly {
		access.Refuse = "no approver"
	}
	t.front = term.New(term.Options{Console: t.screen, Person: who, Leave: leave, Silent: t.asked.safeOnly,
		Rules: show.Rules{Needed: access.Needed, Self: true, Approvers: access.Approvers}})
	log := slog.New(slog.DiscardHandler) // the screen shows what a person can use
	if !t.screen.Interactive() {
		log = slog.New(slog.NewTextHandler(t.c.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	p, err := assemble(t.c, cfg, log)
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
	if t.asked.resume != "" {
		return t.resumed(ctx)
	}
	if t.asked.symptom == "" {
		if t.asked.symptom, err = t.intent(); err != nil || t.asked.symptom == "" {
			return "", err
		}
	}
	sid, err = t.p.desk.Open(ctx, bot.Opening{Delivery: "terminal " + fmt.Sprint(time.Now().UnixNano(), os.Getpid()), Symptom: t.asked.symptom,
		Requester: who, Place: bot.Place{Transport: "term", Channel: "terminal"}})
	if err != nil {
		return "", fail(exitUnavailable, "%w", err)
	}
	t.front.Banner(versionOf().Version, sid)
	return sid, t.unfinished(ctx, sid)
}

// intent asks for the symptom.
func (t *terminal) intent() (string, error) {
	t.front.Say("What network problem should I investigate?")
	t.screen.Prompt("> ", "")
	for {
		l, err := t.screen.ReadLine()
		if errors.Is(err, term.ErrLeft) || errors.Is(err, io.EOF) {
			return "", nil
		}
		if l = strings.TrimSpace(l); l != "" || err != nil {
			return l, err
		}
	}
}

func (t *terminal) resumed(ctx context.Context) (string, error) {
	info, err := t.p.desk.Case(ctx, t.asked.resume)
	switch {
	case errors.Is(err, bot.ErrNoCase), errors.Is(err, store.ErrInvalid):
		return "", usageError("--resume: there is no case %q in %s", t.asked.resume, t.c.state())
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
	all, err := t.p.desk.Cases(ctx)
	if err != nil {
		return fail(exitUnavailable, "%w", err)
	}
	n := 0
	for _, c := range all {
		if !c.Closed && c.SessionID != but && c.Opening.Place.Transport == "term" {
			n++
			t.front.Say("  [..] unfinished: " + c.SessionID + "  " + short(oneLine(c.Opening.Symptom), 60))
		}
	}
	if n > 0 {
		t.front.Say("  Continue one with: ghostbot investigate --resume CASE")
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
		if ctx.Err() != nil {
			return fail(exitNegative, "session saved; continue with: ghostbot investigate --resume %s", sid)
		}
		if errors.Is(err, store.ErrHeld) {
			return fail(exitUnavailable, "%s is carried by another ghostbot just now", sid)
		}
		if err != nil {
			return fail(exitUnavailable, "%s rests: %w; continue with: ghostbot investigate --resume %s", sid, err, sid)
		}
		info, err := t.p.desk.Case(ctx, sid)
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

// verdict is the exit code of a case that ended.
func (t *terminal) verdict(info bot.CaseInfo) error {
	end, ok := t.front.Ended()
	switch {
	case ok && end.EndedBy != "stopped" && (info.Verdict == "root_cause" || info.Verdict == "no_fault"):
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
	log, err := audit.Open(ctx, audit.Options{Dir: o.p.auditDir, SID: audit.Register, Fence: l.Fence, Stream: ledger.Stream{DB: o.p.db, Scope: store.Deployment, Fence: l.Fence}, Keys: o.p.keys})
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
