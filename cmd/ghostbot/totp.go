package main

import (
	"context"
	"errors"
	"os"

	"ghostbot/cmd/ghostbot/totp"
	"ghostbot/internal/input"
)

// totpVerb enrols people with an authenticator app.
func totpVerb(_ context.Context, c *cli, args []string) error {
	o := totp.Options{Out: c.out}
	rest, err := c.flags("totp", args, o.Define(os.Getenv("GHOST_TOTP_FILE")))
	if err != nil {
		return err
	}
	o.Apart = []string{c.state(), c.audits()}
	err = totp.Run(o, rest)
	switch {
	case errors.Is(err, totp.ErrUsage), errors.Is(err, input.ErrKind):
		return usageError("%w", err)
	case err != nil:
		return fail(exitNegative, "%w", err)
	}
	return nil
}
