package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"ghostbot/internal/pcapgen"
)

// pcapgenVerb writes a capture. A file that is not complete is removed.
func pcapgenVerb(ctx context.Context, args []string, out, log io.Writer) error {
	fs := flag.NewFlagSet("pcapgen", flag.ContinueOnError)
	size := fs.String("size", "1GiB", "")
	seed := decimal(fs, "seed", uint64(0))
	name := fs.String("o", "", "")
	list := fs.Bool("list", false, "")
	rest, err := parseArgs(fs, args, out, 1)
	if err != nil {
		return err
	}
	if *list {
		return printProfiles(out)
	}
	n, err := bytesOf(*size)
	switch {
	case err != nil:
		return fmt.Errorf("%w: --size %q: want bytes as in 500000, 64MiB or 1GiB", errUsage, *size)
	case len(rest) == 0 || !isProfile(rest[0]):
		return fmt.Errorf("%w: profile %q: have %s", errUsage, strings.Join(rest, ""), strings.Join(profileNames(), ", "))
	case *name == "":
		return fmt.Errorf("%w: -o: want a file, or - for standard output", errUsage)
	}
	st, err := writeCapture(ctx, *name, pcapgen.Options{Profile: rest[0], Size: n, Seed: *seed}, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "%s: %d packets, %d bytes, %d connections\n", rest[0], st.Packets, st.Bytes, st.Connections)
	return nil
}

func writeCapture(ctx context.Context, name string, o pcapgen.Options, out io.Writer) (pcapgen.Stats, error) {
	if name == "-" {
		return pcapgen.Write(interruptible{ctx, out}, o)
	}
	f, err := os.Create(name)
	if err != nil {
		return pcapgen.Stats{}, fmt.Errorf("%w: -o: %v", errUnavailable, err)
	}
	st, err := pcapgen.Write(interruptible{ctx, f}, o)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if info, look := os.Stat(name); err != nil && look == nil && info.Mode().IsRegular() {
		_ = os.Remove(name) // the error that is returned says more
	}
	return st, err
}

// interruptible ends writing with its context.
type interruptible struct {
	ctx context.Context
	w   io.Writer
}

func (i interruptible) Write(b []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.w.Write(b)
}

func printProfiles(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, p := range pcapgen.Profiles() {
		fmt.Fprintf(w, "%s\t%s\n", p.Name, p.About)
	}
	return w.Flush()
}

func profileNames() []string {
	var out []string
	for _, p := range pcapgen.Profiles() {
		out = append(out, p.Name)
	}
	return out
}

func isProfile(name string) bool {
	for _, p := range pcapgen.Profiles() {
		if p.Name == name {
			return true
		}
	}
	return false
}

// bytesOf reads a size: a number, with KiB, MiB, GiB or without.
func bytesOf(s string) (int64, error) {
	shift := 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if cut, ok := strings.CutSuffix(s, unit); ok {
			s, shift = cut, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && (n <= 0 || n > 1<<50>>shift) {
		err = strconv.ErrRange
	}
	return n << shift, err
}
