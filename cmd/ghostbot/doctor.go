package main

import (
	"context"
	"flag"
	"fmt"

	"ghostbot/bot/slack"
	"ghostbot/cmd/ghostbot/checkup"
)

// doctor checks what serve needs, a line each, without changing anything.
func doctor(ctx context.Context, c *cli, args []string) error {
	var asJSON bool
	rest, err := c.flags("doctor", args, func(fs *flag.FlagSet) { fs.BoolVar(&asJSON, "json", false, "print a list of objects") })
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError("doctor takes no argument, got %q", rest[0])
	}
	checks := checks(ctx, c)
	if asJSON {
		err = encode(c.out, checks)
	} else {
		for _, k := range checks {
			checkup.Print(c.out, k, oneLine)
		}
	}
	if err == nil && checkup.Bad(checks) {
		return &exitError{code: exitNegative, err: fmt.Errorf("")}
	}
	return err
}

func checks(ctx context.Context, c *cli) []checkup.Line {
	cfg, err := load()
	there, storeErr := hasStore(c.state())
	front := slack.Options{AppToken: string(cfg.AppToken), BotToken: string(cfg.BotToken), APIURL: cfg.SlackURL}
	workspace, reached := checkup.Slack(ctx, front)
	lines := append([]checkup.Line{checkup.Config(err), checkup.Approvers(ctx, cfg.who(), front, reached)}, workspace...)
	lines = append(lines, checkup.Brain(ctx, cfg.choice()), checkup.State(ctx, c.state(), there, storeErr, cfg.JournalKeyFile, cfg.RedisURL == ""))
	if c.auditDir != "" || cfg.AuditDir != "" {
		lines = append(lines, checkup.Dir("audit directory", "--audit-dir or GHOST_AUDIT_DIR", c.audits()))
	}
	if cfg.WorkDir != "" {
		lines = append(lines, checkup.Dir("working directory", "GHOST_WORK_DIR", cfg.WorkDir))
	}
	lines = append(lines, checkup.Key(cfg.JournalKeyFile, c.audits()), checkup.Captures(cfg.CaptureKeyFile, cfg.work(c)), checkup.Port(cfg.HealthAddr), checkup.Tools(cfg.Path, cfg.cloud().Set()))
	if cfg.RedisURL != "" {
		lines = append(lines, checkup.Redis(ctx, cfg.redis(), cfg.JournalKeyFile), checkup.Strays(ctx, cfg.redis(), c.audits()))
	}
	return checkup.Masked(lines, scrubber(cfg.redactor()))
}
