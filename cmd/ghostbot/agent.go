package main

import (
	"context"
	"errors"

	"ghostbot/cmd/ghostbot/triage"
)

// markWork lets commands of cases find the state directory from where they run.
func markWork(c *cli, work string) error { return triage.Mark(work, absolute(c.state())) }

// agentVerb runs the contract for host processes, which has its own exit codes.
func agentVerb(ctx context.Context, c *cli, args []string) error {
	if code := triage.Run(ctx, args, triage.Streams{In: c.in, Out: c.out, Err: c.err, State: c.state(), Line: oneLine}); code != exitOK {
		return &exitError{code: code, err: errors.New("")}
	}
	return nil
}
