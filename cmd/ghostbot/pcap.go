package main

import (
	"context"

	"ghostbot/cmd/ghostbot/dissect"
)

// pcapVerb analyses captures.
func pcapVerb(ctx context.Context, c *cli, args []string) error {
	f := dissect.Flags{Out: c.out, Err: c.err, Clean: oneLine}
	files, err := c.flags("pcap", args, f.Define)
	if err != nil {
		return err
	}
	switch result, err := f.Run(ctx, files); result {
	case dissect.Usage:
		return usageError("pcap%w", err)
	case dissect.Stopped:
		return fail(exitInternal, "pcap%w", err)
	case dissect.Reached:
		return fail(exitNegative, "")
	default:
		return err
	}
}
