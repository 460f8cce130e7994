package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	slacksim "ghostbot/internal/sim/slack"
	"ghostbot/internal/sim/slack/workspace"
)

const defaultAddr = "127.0.0.1:8484"

// slackVerb runs the workspace alone and prints, as shell assignments, what a bot needs.
func slackVerb(ctx context.Context, args []string, out, log io.Writer) error {
	fs := flag.NewFlagSet("slack", flag.ContinueOnError)
	addr := fs.String("addr", defaultAddr, "")
	state := fs.String("state", "", "")
	limits := fs.Bool("rate-limits", false, "")
	seedFile := fs.String("seed", "", "")
	if err := parse(fs, args, out); err != nil {
		return err
	}
	opt := slacksim.Options{StateFile: *state, RateLimits: *limits, Approvers: approversFromEnv()}
	if *seedFile != "" {
		seed, err := workspace.ReadSeed(*seedFile)
		if err != nil {
			return fmt.Errorf("%w: --seed: %v", errUsage, err)
		}
		opt.Seed = &seed
	}
	s, err := workspaceAt(opt, *addr, set(fs, "addr"), log)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, e := range s.Env() {
		fmt.Fprintln(out, "export "+e)
	}
	fmt.Fprintf(log, "workspace: %s (Ctrl-C ends it)\n", s.URL)
	<-ctx.Done()
	return nil
}

// approversFromEnv lets GHOST_APPROVERS decide who is shown as an approver, as it does for the bot.
func approversFromEnv() []string {
	v := os.Getenv("GHOST_APPROVERS")
	if v == "" {
		return nil
	}
	return strings.Split(v, ",")
}

// workspaceAt starts a workspace. When the default address is taken, another port is used; an
// address somebody asked for is an error instead.
func workspaceAt(opt slacksim.Options, addr string, asked bool, log io.Writer) (*slacksim.Server, error) {
	s, err := slacksim.New(opt)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%w: --addr %q: want HOST:PORT", errUsage, addr)
	}
	if !loopback(host) {
		return nil, fmt.Errorf("%w: --addr %q: want a loopback address; the workspace has no sign-in", errUsage, addr)
	}
	err = s.Start(addr)
	if taken(err) && !asked {
		fmt.Fprintf(log, "port of %s is taken, using another\n", addr)
		err = s.Start(net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %v", errUnavailable, err)
	}
	return s, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

func taken(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }
