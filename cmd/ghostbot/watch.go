package main

import (
	"context"
	"sync"

	"ghostbot/cmd/ghostbot/logs"
	"ghostbot/cmd/ghostbot/metrics"
	"ghostbot/cmd/ghostbot/ops"
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
	return redact.New(redact.Options{Known: append(c.who().Known(), string(c.AppToken), string(c.BotToken), string(c.GeminiKey))})
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
	wg.Go(func() { p.ops.Run(open, p.db) })
	err := do(ctx)
	shut()
	wg.Wait()
	return err
}
