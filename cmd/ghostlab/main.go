// Command ghostlab is the developer's and demo program: a Slack workspace on loopback, services
// broken on purpose, and the real bot connected to them. It is never shipped.
//
// Verbs:
//
//	ghostlab demo [--incident NAME] [--list]   workspace, broken services and ghostbot in one
//	ghostlab slack                             the workspace alone; prints what a bot needs to connect
//	ghostlab azure                             an Azure for the real az; prints what az and a bot need to reach it
//	ghostlab gemini --script FILE              a scripted model behind the Gemini API; prints what a bot needs to ask it
//	ghostlab pcapgen PROFILE -o FILE           a large packet capture for benchmarks; --list
//	ghostlab pcapbench [PROFILE...]            ghostbot pcap beside cat, tcptrace and tshark
//
// Exit codes: 0 ended as asked, 1 a bar of a benchmark does not hold, 2 internal, 3 something needed is not there, 10 usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	exitOK          = 0
	exitMissed      = 1
	exitInternal    = 2
	exitUnavailable = 3
	exitUsage       = 10
)

const usage = `usage: ghostlab demo [--addr HOST:PORT] [--incident NAME] [--list] [--ghostbot PATH] [--state-dir DIR] [--fresh]
       ghostlab slack [--addr HOST:PORT] [--state FILE] [--seed FILE] [--rate-limits]
       ghostlab azure [--addr HOST:PORT] [--seed FILE] [--speed N]
       ghostlab gemini --script FILE [--addr HOST:PORT]
       ghostlab pcapgen PROFILE -o FILE [--size N] [--seed N] | --list
       ghostlab pcapbench [PROFILE...] [--size N] [--runs N] [--connections N] [--ghostbot PATH] [--dir DIR]`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// errUsage marks errors that are answered with the usage line.
var errUsage = errors.New("usage")

// errUnavailable marks what is missing outside of this program: a port, the bot's binary.
var errUnavailable = errors.New("not available")

// run executes one verb; data goes to out, everything else to log.
func run(ctx context.Context, args []string, out, log io.Writer) int {
	if len(args) == 0 {
		fmt.Fprintln(log, usage)
		return exitUsage
	}
	verbs := map[string]func(context.Context, []string, io.Writer, io.Writer) error{"demo": demo, "slack": slackVerb, "azure": azureVerb, "gemini": geminiVerb, "pcapgen": pcapgenVerb, "pcapbench": pcapbench}
	var err error
	switch verb := verbs[args[0]]; {
	case verb != nil:
		err = verb(ctx, args[1:], out, log)
	case args[0] == "help" || args[0] == "-h" || args[0] == "--help":
		fmt.Fprintln(out, usage)
	default:
		err = fmt.Errorf("%w: verb %q: have demo, slack, azure, gemini, pcapgen, pcapbench", errUsage, args[0])
	}
	return report(err, args[0], log)
}

// usageOf is the line of one verb, all lines where there is no such verb.
func usageOf(verb string) string {
	for line := range strings.Lines(strings.TrimPrefix(usage, "usage: ")) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "ghostlab "+verb+" ") {
			return "usage: " + line
		}
	}
	return usage
}

func report(err error, verb string, log io.Writer) int {
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.Is(err, errUsage):
		fmt.Fprintf(log, "ghostlab: %s\n%s\n", strings.TrimPrefix(err.Error(), errUsage.Error()+": "), usageOf(verb))
		return exitUsage
	case errors.Is(err, errMissed):
		fmt.Fprintf(log, "ghostlab: %v\n", err)
		return exitMissed
	case errors.Is(err, errUnavailable):
		fmt.Fprintf(log, "ghostlab: %v\n", err)
		return exitUnavailable
	}
	fmt.Fprintf(log, "ghostlab: %v\n", err)
	return exitInternal
}

// parse reads the flags of a verb without arguments.
func parse(fs *flag.FlagSet, args []string, log io.Writer) error {
	_, err := parseArgs(fs, args, log, 0)
	return err
}

// parseArgs reads flags, which may stand anywhere, and returns at most n arguments.
func parseArgs(fs *flag.FlagSet, args []string, log io.Writer, n int) ([]string, error) {
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	var rest []string
	for {
		err := fs.Parse(args)
		switch {
		case errors.Is(err, flag.ErrHelp):
			fmt.Fprintln(log, usage)
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w: %v", errUsage, err)
		case fs.NArg() == 0:
			return rest, nil
		case len(rest) == n:
			return nil, fmt.Errorf("%w: unexpected argument %q", errUsage, fs.Arg(0))
		}
		rest, args = append(rest, fs.Arg(0)), fs.Args()[1:]
	}
}

// decimal defines a flag that is a number in decimal digits: of what package flag reads
// itself 010 is eight.
func decimal[T int | uint64 | float64](fs *flag.FlagSet, name string, value T) *T {
	v := &value
	fs.Func(name, "", func(s string) (err error) {
		if strings.ContainsAny(s, "xX_") {
			return errors.New("want decimal digits")
		}
		switch p := any(v).(type) {
		case *int:
			*p, err = strconv.Atoi(s)
		case *uint64:
			*p, err = strconv.ParseUint(s, 10, 64)
		case *float64:
			*p, err = strconv.ParseFloat(s, 64)
		}
		if err != nil {
			return errors.New("want decimal digits")
		}
		return nil
	})
	return v
}

// set reports whether a flag was given.
func set(fs *flag.FlagSet, name string) bool {
	found := false
	fs.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// stateHome is where the demo keeps its files: the user's state directory.
func stateHome() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ghostlab"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the state directory (use --state-dir): %w", err)
	}
	return filepath.Join(home, ".local", "state", "ghostlab"), nil
}
