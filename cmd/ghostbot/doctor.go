package main

import (
	"context"
	"flag"
	"fmt"

	"ghostbot/bot/slack"
	"ghostbot/cmd/ghostbot/checkup"
	"ghostbot/safeexec/redact"
)

// doctor checks what serve needs, a line each, without changing anything.
func doctor(ctx context.Context, c *cli, args []string) error {
	var asJSON bool
	rest, err := c.flags("doctor", args, func(fs *flag.FlagSet) { fs.BoolVar(&asJSON, "json", false, "") })
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
	known := redact.New(redact.Options{Known: []string{string(cfg.AppToken), string(cfg.BotToken), string(cfg.GeminiKey)}})
	front := slack.Options{AppToken: string(cfg.AppToken), BotToken: string(cfg.BotToken), APIURL: cfg.SlackURL}
	lines := []checkup.Line{
		checkup.Config(err),
		checkup.Approvers(ctx, cfg.who(), front),
		checkup.Slack(ctx, front, known),
		checkup.Brain(ctx, cfg.choice()),
		checkup.State(c.state(), there, storeErr),
		checkup.Key(cfg.JournalKeyFile),
		checkup.Port(cfg.HealthAddr),
		checkup.Tools(),
	}
	if cfg.RedisURL != "" {
		lines = append(lines, checkup.Redis(ctx, cfg.redis()))
	}
	return lines
}
