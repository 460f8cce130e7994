package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"

	"ghostbot/internal/sim/gemini"
)

// defaultModelAddr is where the scripted model listens unless told otherwise.
const defaultModelAddr = "127.0.0.1:8485"

// geminiVerb plays one script in place of a model, and prints, as shell assignments,
// what a bot needs to ask it.
func geminiVerb(ctx context.Context, args []string, out, log io.Writer) error {
	fs := flag.NewFlagSet("gemini", flag.ContinueOnError)
	addr := fs.String("addr", defaultModelAddr, "")
	file := fs.String("script", "", "")
	if err := parse(fs, args, out); err != nil {
		return err
	}
	if *file == "" {
		return fmt.Errorf("%w: --script: a file is missing", errUsage)
	}
	text, err := os.ReadFile(*file)
	if err != nil {
		return fmt.Errorf("%w: --script: %v", errUsage, err)
	}
	s, err := gemini.New(gemini.Options{Script: string(text)})
	if err != nil {
		return fmt.Errorf("%w: --script %s: %v", errUsage, *file, err)
	}
	host, _, err := net.SplitHostPort(*addr)
	if err != nil || !loopback(host) {
		return fmt.Errorf("%w: --addr %q: want a loopback HOST:PORT; the model has no accounts", errUsage, *addr)
	}
	err = s.Start(*addr)
	if taken(err) && !set(fs, "addr") {
		fmt.Fprintf(log, "port of %s is taken, using another\n", *addr)
		err = s.Start(net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return fmt.Errorf("%w: %v", errUnavailable, err)
	}
	defer s.Close()
	key, model := s.Accepted()
	fmt.Fprintf(out, "export GHOST_GEMINI_URL=%s\nexport GEMINI_API_KEY=%s\nexport GHOST_MODEL=%s\nexport GHOST_BRAIN=gemini\n", s.URL, key, model)
	fmt.Fprintf(log, "scripted model: %s (Ctrl-C ends it)\n", s.URL)
	<-ctx.Done()
	for _, p := range s.Problems() {
		fmt.Fprintln(log, "problem: "+p)
	}
	if n := s.Left(); n > 0 {
		fmt.Fprintf(log, "%d steps of the script were not played\n", n)
	}
	return nil
}
