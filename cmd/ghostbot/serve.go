package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ghostbot/agent"
	"ghostbot/agent/brains"
	"ghostbot/agent/recall"
	"ghostbot/agent/sweep"
	"ghostbot/agent/triage"
	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/bot/show"
	"ghostbot/bot/slack"
	"ghostbot/bot/slack/pace"
	"ghostbot/cmd/ghostbot/cloud"
	"ghostbot/cmd/ghostbot/forget"
	"ghostbot/cmd/ghostbot/home"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/cmd/ghostbot/ledger"
	"ghostbot/cmd/ghostbot/logs"
	"ghostbot/cmd/ghostbot/memory"
	"ghostbot/cmd/ghostbot/ops"
	"ghostbot/cmd/ghostbot/plots"
	"ghostbot/cmd/ghostbot/vault"
	"ghostbot/cmd/ghostbot/who"
	"ghostbot/internal/input"
	"ghostbot/safeexec"
	"ghostbot/safeexec/anonymize"
	"ghostbot/safeexec/policy"
	"ghostbot/safeexec/redact"
	"ghostbot/store"
)

// serve runs the Slack bot until it is told to stop.
func serve(ctx context.Context, c *cli, args []string) error {
	rest, err := c.flags("serve", args, nil)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError("serve takes no argument, got %q", rest[0])
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	log := logs.New(c.err, cfg.logging(), scrubber(cfg.redactor()))
	chosen := cfg.ops()
	chosen.Log = log
	if c.ops, err = ops.New(chosen); err != nil {
		return fail(exitUsage, "%w", err)
	}
	defer c.ops.Close()
	masks := cfg.redactor()
	front, err := slack.New(slack.Options{AppToken: string(cfg.AppToken), BotToken: string(cfg.BotToken), APIURL: cfg.SlackURL, Local: pace.Local(cfg.SlackURL), Many: cfg.RedisURL != "", Log: log, Transport: c.ops.Transport(),
		Redact: func(s string) string { return masks.Redact(s).Text }})
	if err != nil {
		return fail(exitUsage, "%w", err)
	}
	c.ops.Front(front)
	p, err := build(ctx, c, cfg, front, log)
	if err != nil {
		return err
	}
	defer p.close()
	if cfg.Brain == brains.Gemini { // with another brain behind it, cases need not wait for it
		if err := p.checkModel(ctx); err != nil {
			return err
		}
	}
	return p.answering(ctx, func(ctx context.Context) error { return p.serve(ctx, front) })
}

// program is everything that serve builds, in one pass.
type program struct {
	cfg      config
	log      *slog.Logger
	ops      *ops.Ops // nil: nobody watches
	db       store.DB
	close    func()
	auditDir string
	workDir  string
	self     string // the program's own binary
	runners  *safeexec.Supervisors
	policy   *policy.Policy
	redactor *redact.Redactor
	brain    agent.Brain
	ring     *keyring.Ring
	vault    *vault.Vault // encrypts what commands leave, and opens it
	spool    *vault.Spool // where they leave it; nil: nothing is encrypted
	topology []byte       // secret from which the cases' names for addresses are made; nil: nothing is hidden
	desk     *bot.Desk
	access   bot.Access
	codes    bot.Codes
	state    *home.State
	forget   forget.Options
	process  string // names this process in leases
}

// absolute is dir as processes in other directories name it.
func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// assemble builds everything but the register and the desk.
func assemble(ctx context.Context, c *cli, cfg config, log *slog.Logger) (*program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &program{cfg: cfg, log: log, ops: c.ops, auditDir: absolute(c.audits()), workDir: cfg.work(c), self: self, process: processName(),
		policy:   policy.New(policy.Options{Self: self}),
		redactor: cfg.redactor(), runners: safeexec.NewSupervisors(),
	}
	if cfg.WorkDir != "" {
		if err := markWork(c, cfg.WorkDir); err != nil {
			return nil, fail(exitUnavailable, "GHOST_WORK_DIR: %w", err)
		}
	}
	if p.vault, p.spool, err = vault.Ready(cfg.CaptureKeyFile, p.workDir); err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	choice := cfg.choice()
	choice.Log, choice.Hosts = log, true
	choice.Safe = func(command string) bool { return p.policy.Classify(command).Class == policy.Safe }
	if p.brain, err = brains.New(choice); err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	p.brain = p.ops.Brain(p.brain)
	keys, err := keyring.Keys(cfg.JournalKeyFile)
	if err != nil {
		return nil, fail(exitUsage, "GHOST_JOURNAL_KEY_FILE: %w", err)
	}
	if p.ring, err = keyring.New(p.auditDir, keys); err != nil {
		return nil, fail(exitUnavailable, "%w", err)
	}
	if err := p.ring.Writable(); err != nil {
		return nil, fail(exitUsage, "GHOST_JOURNAL_KEY_FILE: %w", err)
	}
	if cfg.RedisURL == "" {
		if err := forget.Expire(ctx, cfg.forget(c, p.ring), cfg.Retention, log); err != nil {
			return nil, fail(exitUnavailable, "GHOST_RETENTION: %w", err)
		}
	}
	p.forget = cfg.forget(c, p.ring)
	p.state, err = home.Open(ctx, home.Options{Dir: c.state(), Redis: cfg.redis(), Keys: keys, Ring: p.ring,
		Owner: p.process, Lease: cfg.Lease, Retention: cfg.RedisRetention, Log: log})
	if err != nil {
		return nil, fail(exitUnavailable, "%w", err)
	}
	p.state.DB = p.ops.DB(p.state.DB) // also what journals are written with
	p.db, p.close = p.state.DB, func() { p.runners.Close(); p.state.Close() }
	if cfg.Anonymize {
		if p.topology, err = p.state.Topology(); err != nil {
			p.close()
			return nil, fail(exitUnavailable, "topology secret: %w", err)
		}
	}
	return p, nil
}

func build(ctx context.Context, c *cli, cfg config, front bot.Front, log *slog.Logger) (*program, error) {
	p, err := assemble(ctx, c, cfg, log)
	if err != nil {
		return nil, err
	}
	settings := cfg.who()
	settings.Log = p.log
	if p.access, p.codes, err = settings.InForce(p.policy.KnownRule, p.db, c.state(), c.audits()); err != nil {
		p.close()
		return nil, usageError("%w", err)
	}
	register, stop, err := p.register(ctx)
	if err != nil {
		p.close()
		return nil, err
	}
	drop := p.close
	p.close = func() { stop(); drop() }
	if p.desk, err = bot.New(p.options(front, "slack", p.access, register)); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *program) options(front bot.Front, transport string, access bot.Access, register bot.Journal) bot.Options {
	tokens, cost := p.cfg.choice().Limits()
	return bot.Options{
		DB: p.db, Front: front, Transport: transport, Owner: p.process, Lease: p.cfg.Lease,
		Access:   access,
		Codes:    who.Journaled(p.codes, register),
		Brain:    p.brain.Name(),
		Policy:   p.policy.Version(),
		MaxTurns: int(p.cfg.MaxTurns), MaxTokens: tokens, MaxCost: cost,
		OpenLog:  p.openLog,
		Adopt:    p.state.Adopt,
		Native:   p.state.Native,
		Here:     p.state.Here,
		Lost:     p.state.Lost,
		Register: register,
		Build:    p.investigator,
		Report:   p.report,
		Plot:     p.plot,
		Body:     func(sid string) ([]byte, error) { return input.Read(reportPath(p.auditDir, sid), 64<<20) },
		Check:    p.checkEdit,
		Argv:     func(text string) []string { return p.policy.Classify(text).Argv },
		Redact:   p.scrub,
		Alike:    recall.Same,
		Recall:   p.recall,
		Session:  agent.SessionFile,
		Lapsed:   p.ops.Lapsed,
		Sweeps:   p.cfg.cloud().Set(), Triage: true,
		Log: p.log,
	}
}

// processName names this process in leases, and no other: containers may have one host
// name, and one number of their process.
func processName() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:6])
}

// plot reads a picture of a case. Where addresses are hidden none is shown: they stand
// in it.
func (p *program) plot(sid string, v show.PlotView) (png []byte, alt string, err error) {
	if p.topology != nil {
		return nil, "", errors.New("addresses are hidden, and stand in plots")
	}
	png, alt, err = plots.Read(p.vault, filepath.Join(p.workDir, sid), v.Name, v.SHA256)
	return png, p.scrub(alt), err
}

// scrub redacts one piece of text; text that could not be redacted is withheld.
func (p *program) scrub(s string) string { return scrubber(p.redactor)(s) }

// register opens the deployment's journal, and keeps a second process from serving the
// same state directory.
func (p *program) register(ctx context.Context) (bot.Journal, func(), error) {
	if err := p.state.Lock(ctx); err != nil {
		return nil, nil, fail(exitUnavailable, "%w", err)
	}
	j, stop, err := p.state.Register(ctx)
	if err == nil {
		body := map[string]any{"policy": p.policy.Version(), "brain": p.brain.Name(), "approvers": p.cfg.Approvers, "approvers_file": p.access.Narrowings(), "two_person": p.cfg.TwoPerson, "second_factor": p.cfg.SecondFactor, "version": versionText()}
		_, _, err = j.Append(ctx, "served", body)
	}
	if err != nil {
		p.state.Unlock(ctx)
		return nil, nil, fail(exitUnavailable, "register: %w", err)
	}
	return j, func() { stop(); p.state.Unlock(ctx) }, nil
}

func (p *program) openLog(ctx context.Context, sid string, fence uint64) (bot.Log, error) {
	log, err := p.state.OpenLog(ctx, sid, fence)
	if errors.Is(err, audit.ErrBroken) || errors.Is(err, audit.ErrDiverged) {
		return nil, fmt.Errorf("%w: %w", bot.ErrTampered, err)
	}
	if err != nil {
		return nil, err
	}
	return p.ops.Log(sid, ledger.NewCase(log))
}

// investigator builds the gate, the captures and the agent of one case.
func (p *program) investigator(parts bot.Parts) (bot.Investigator, error) {
	hide := p.hide(parts.SessionID, parts.Opened.Symptom)
	dir := filepath.Join(p.workDir, parts.SessionID)
	if err := p.spool.Recover(parts.SessionID); err != nil {
		return nil, err
	}
	shell, err := safeexec.New(safeexec.Options{
		SessionID: parts.SessionID, Policy: p.policy, Journal: parts.Shell, Approver: parts.Approver,
		Redactor: p.redactor, Dir: dir, Path: p.cfg.Path, Identity: p.cfg.cloud().Identity, ApprovalTTL: p.cfg.ApprovalTTL,
		Timeout: p.cfg.CommandTimeout, Lease: p.cfg.Lease, ReadOnly: p.cfg.ReadOnly, Requester: parts.Opened.Requester, Anonymizer: hide, Journals: p.auditDir,
		Now: p.state.Now, Supervisors: p.runners, Spool: p.spool.Dir(parts.SessionID), Keep: p.spool.Keep(parts.SessionID), CaptureKey: p.vault.Path(),
	})
	if err != nil {
		return nil, err
	}
	captures := p.cfg.cloud().Captures(cloud.Case{SessionID: parts.SessionID, Gate: shell, Journal: parts.Log.Journal(audit.Tasks), Feed: parts.Feed,
		Self: p.self, Dir: dir, Spool: p.spool.Dir(parts.SessionID), Owner: p.state.Deployment(), Now: p.state.Now, Left: &cloud.Left{AuditDir: p.auditDir, WorkDir: p.workDir, SelfID: parts.SessionID, Open: p.open}})
	if parts.Opened.Kind == agent.KindSweep {
		return sweep.New(sweep.Options{SessionID: parts.SessionID, Journal: parts.Log.Journal(audit.Case), Gate: shell, Captures: captures,
			People: parts.People, Feed: parts.Feed, Save: parts.Save, TTL: p.cfg.ApprovalTTL, Clock: p.state.Now})
	}
	if parts.Opened.Kind == agent.KindTriage {
		return triage.New(triage.Options{SessionID: parts.SessionID, Self: p.self, Journal: parts.Log.Journal(audit.Case), Gate: shell, People: parts.People,
			Feed: parts.Feed, Save: parts.Save, TTL: p.cfg.ApprovalTTL, Clock: p.state.Now})
	}
	return agent.New(agent.Options{
		SessionID: parts.SessionID, Journal: parts.Log.Journal(audit.Case), Gate: shell, Captures: captures,
		Brain: p.brain, People: parts.People, Feed: parts.Feed, Save: parts.Save, Redact: p.scrub,
		Self: p.self, MaxTurns: int(p.cfg.MaxTurns), QuestionTTL: p.cfg.ApprovalTTL, Lease: p.cfg.Lease, Log: p.log, Clock: p.state.Now,
	})
}

// hide names what a case must not see of the topology; nil: nothing is hidden. What
// the requester said is known to whoever reads the thread.
func (p *program) hide(sid, symptom string) *anonymize.Anonymizer {
	if p.topology == nil {
		return nil
	}
	return anonymize.New(anonymize.Key(p.topology, sid), symptom)
}

// recall finds closed cases that look like a new one. What they say about the
// topology is hidden like an output of it.
func (p *program) recall(ctx context.Context, c bot.CaseInfo) ([]agent.Recalled, error) {
	clean := p.scrub
	if hide := p.hide(c.SessionID, c.Opening.Symptom); hide != nil {
		clean = func(s string) string { return hide.Hide(p.scrub(s)) }
	}
	return memory.Options{DB: p.db, Ring: p.ring, Scope: p.cfg.Recall, Clean: clean}.Recall(ctx, c)
}

// open reports whether a case has not ended. One that the store does not know was
// made elsewhere, and may be open there.
func (p *program) open(ctx context.Context, sid string) (bool, error) {
	c, err := p.desk.Case(ctx, sid)
	if errors.Is(err, bot.ErrNoCase) {
		return true, nil
	}
	return !c.Closed, err
}

// sweepAtStart looks once a day for what cases left, in the channel for operators.
func (p *program) sweepAtStart(ctx context.Context) {
	if p.cfg.OpsChannel == "" || !p.cfg.cloud().Set() {
		return
	}
	_, err := p.desk.Sweep(ctx, bot.Opening{
		Delivery: "daily sweep " + time.Now().UTC().Format(time.DateOnly), Place: bot.Place{Transport: "slack", Channel: p.cfg.OpsChannel},
	})
	if err != nil && !errors.Is(err, bot.ErrSweeping) {
		p.log.Error("what cases left is not looked for", "err", err)
	}
}

// checkEdit says why an edited command is not taken.
func (p *program) checkEdit(text string) string {
	v := p.policy.Classify(text)
	switch {
	case v.Class == policy.Forbidden:
		return "FORBIDDEN, whoever approves: " + v.Reason
	case len(v.Argv) == 0:
		return "Not exactly one command: " + v.Reason
	case p.redactor.Contains(text):
		return "The command contains a credential. Leave it out."
	}
	return ""
}

// serve runs front and desk until ctx ends or Slack refuses the tokens; the
// cases give up their leases before it returns.
func (p *program) serve(ctx context.Context, front *slack.Front) error {
	if len(p.access.Users())+len(p.access.Groups()) == 0 {
		p.log.Warn("no approvers are configured (GHOST_APPROVERS): every RISKY command will expire, read-only probes run")
	}
	if err := front.Connect(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fail(exitUnavailable, "%w", err)
	}
	if err := front.Known(ctx, p.access.Narrowings()); err != nil {
		return usageError("GHOST_APPROVERS_FILE: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { _ = p.desk.Run(ctx) })
	wg.Go(func() { p.state.Guard(ctx) })
	wg.Go(func() { forget.Tend(ctx, p.forget, p.state, p.cfg.Retention, p.log) })
	if p.cfg.Brain == brains.Auto {
		wg.Go(func() { _ = p.checkModel(ctx) }) // it only warns
	}
	if front.Mute() == "" { // nobody would see it
		p.sweepAtStart(ctx)
	}
	err := front.Serve(ctx, p.desk)
	stop()
	wg.Wait()
	if err != nil {
		return fail(exitUnavailable, "%w", err)
	}
	p.log.Info("stopped")
	return nil
}
