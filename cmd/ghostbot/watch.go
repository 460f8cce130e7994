package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"ghostbot/cmd/ghostbot/forget"
	"ghostbot/cmd/ghostbot/home"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/cmd/ghostbot/logs"
	"ghostbot/cmd/ghostbot/metrics"
	"ghostbot/cmd/ghostbot/ops"
	"ghostbot/cmd/ghostbot/secrets"
	"ghostbot/cmd/ghostbot/vault"
	"ghostbot/safeexec/redact"
)

// ops is what operators chose.
func (c *config) ops() ops.Config {
	v := versionOf()
	return ops.Config{HealthAddr: c.HealthAddr, Traces: c.OTLPEndpoint != "", Build: metrics.Build{Version: v.Version, Commit: v.Commit, Go: v.Go},
		Clean: scrubber(c.redactor())}
}

// logging is what operators chose.
func (c *config) logging() logs.Config { return logs.Config{Format: c.Log, Level: c.LogLevel} }

// redactor knows the program's own secrets.
func (c *config) redactor() *redact.Redactor {
	return redact.New(redact.Options{Known: append(c.who().Known(), secrets.Known()...)})
}

// scrubber removes credentials from one piece of text; text that could not be redacted
// is withheld.
func scrubber(r *redact.Redactor) func(string) string {
	return func(s string) string {
		out, err := r.RedactFor(s, "")
		if err != nil {
			return "[withheld: redaction failed]"
		}
		return out.Text
	}
}

// answering serves the operators' pages while do runs: also while the program waits
// for Slack, and until it has drained.
func (p *program) answering(ctx context.Context, do func(context.Context) error) error {
	open, shut := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, p.ops.Drain)()
	var wg sync.WaitGroup
	wg.Go(func() { p.ops.Run(open, p.db, p.desk.Missing, p.auditDir) })
	err := do(ctx)
	shut()
	wg.Wait()
	return err
}

// auditDelete deletes a closed case for good.
func auditDelete(ctx context.Context, c *cli, sid string, f auditFlags, ring *keyring.Ring) error {
	c.stateDir, c.auditDir = c.state(), c.audits() // whatever .env says
	cfg, err := read()
	if err != nil {
		return err
	}
	o := cfg.forget(c, ring)
	o.By, o.Reason = f.by, f.reason
	if err := o.Check(); err != nil {
		return usageError("%w", err)
	}
	if err := ring.Writable(); err != nil {
		return fail(exitUsage, "--key-file: %w", err)
	}
	if there, err := hasStore(c.state()); cfg.RedisURL == "" && (err != nil || !there) {
		return fail(exitUnavailable, "state directory: there is nothing in %s", c.state())
	}
	keys, err := keyring.Keys(f.keyFile)
	if err != nil {
		return fail(exitUsage, "--key-file: %w", err)
	}
	e, err := forget.Delete(ctx, o, home.Options{Dir: c.state(), Redis: cfg.redis(), Keys: keys, Ring: ring, Owner: processName(), Lease: cfg.Lease,
		Retention: cfg.RedisRetention, Log: slog.New(slog.DiscardHandler)}, sid)
	switch {
	case errors.Is(err, forget.ErrNoCase), errors.Is(err, forget.ErrOpen):
		return fail(exitNegative, "%w", err)
	case err != nil:
		return fail(exitUnavailable, "%w", err)
	case f.json:
		return encode(c.out, e)
	}
	fmt.Fprintf(c.out, "ok  %s is deleted: %d files, %d entries; %s of the register keeps its head\n", sid, e.Files, e.Entries, oneLine(e.Of))
	return nil
}

// work holds the directories of cases.
func (c *config) work(l *cli) string { return absolute(forget.Work(l.state(), c.WorkDir)) }

// forget is where closed cases lie.
func (c *config) forget(l *cli, ring *keyring.Ring) forget.Options {
	return forget.Options{StateDir: l.state(), AuditDir: absolute(l.audits()), WorkDir: c.WorkDir, Memory: vault.Memory(c.work(l)), Ring: ring}
}
