package main

import (
	"context"
	"errors"

	"ghostbot/cmd/ghostbot/pcap"
)

// pcapVerb analyses captures.
func pcapVerb(ctx context.Context, c *cli, args []string) error {
	var o pcap.Options
	files, err := c.flags("pcap", args, o.Define)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return usageError("pcap wants at least one capture file")
	}
	err = o.Run(ctx, files, pcap.Streams{Out: c.out, Terminal: terminalOr(c.out) != c.out, Err: c.err, Line: oneLine, Encode: encode})
	switch {
	case errors.Is(err, pcap.ErrUsage):
		return usageError("pcap: %w", err)
	case errors.Is(err, pcap.ErrWrite):
		return fail(exitUnavailable, "pcap: %w", err)
	case errors.Is(err, pcap.ErrReached):
		return fail(exitNegative, "")
	case errors.Is(err, pcap.ErrInterrupted):
		return fail(exitInternal, "pcap: %w", err)
	}
	return err
}
