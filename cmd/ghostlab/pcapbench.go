package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ghostbot/internal/pcapgen"
)

// Bars of the capture benchmark. Ratios hold on any machine; everything they compare ran in the
// same run on the same file. Time is compared without the digest, which neither of the others
// computes: it is SHA-256 on one core, and no analysis, however fast, ends before it. The ratios
// with the digest, and how long the digest alone takes, are printed beside.
const (
	barTshark   = 80   // times tshark's single pass, at least
	barTcptrace = 0.7  // of tcptrace's time, at most
	barCat      = 0.25 // of cat's rate, at least, bulk only
	barMemory   = 150  // MB resident, at most
)

// tsharkPart is the part of a profile that tshark reads; its cost per packet is constant.
func tsharkPart(profile string) int64 {
	if profile == "small" {
		return 20
	}
	return 4
}

// tsharkFields are what one pass of tshark has to print: what an analysis of TCP starts from.
func tsharkFields() []string {
	return strings.Fields(`frame.number frame.time_epoch ip.src ip.dst tcp.stream tcp.srcport tcp.dstport tcp.flags
		tcp.analysis.retransmission tcp.analysis.duplicate_ack tcp.analysis.out_of_order tcp.analysis.zero_window
		tcp.analysis.ack_rtt tcp.len tcp.window_size_value tcp.time_delta`)
}

// errMissed says that a bar does not hold.
var errMissed = errors.New("a bar does not hold")

// bench is one run of the capture benchmark.
type bench struct {
	ghostbot, dir string
	size          int64
	runs          int
	out           io.Writer
	missed        int
}

// pcapbench compares `ghostbot pcap` with cat, tcptrace and tshark on the profiles of pcapgen.
func pcapbench(ctx context.Context, args []string, out, log io.Writer) error {
	fs := flag.NewFlagSet("pcapbench", flag.ContinueOnError)
	size := fs.String("size", "1GiB", "")
	binary := fs.String("ghostbot", "", "")
	runs := fs.Int("runs", 3, "")
	dir := fs.String("dir", "", "")
	profiles, err := parseArgs(fs, args, out, len(pcapgen.Profiles()))
	if err != nil {
		return err
	}
	b := bench{runs: *runs, out: out}
	if b.size, err = bytesOf(*size); err != nil {
		return fmt.Errorf("%w: --size %q: want bytes as in 64MiB or 1GiB", errUsage, *size)
	}
	if i := slices.IndexFunc(profiles, func(p string) bool { return !isProfile(p) }); i >= 0 {
		return fmt.Errorf("%w: profile %q: have %s", errUsage, profiles[i], strings.Join(profileNames(), ", "))
	}
	if b.runs < 1 {
		return fmt.Errorf("%w: --runs %d: want 1 or more", errUsage, b.runs)
	}
	if b.ghostbot, err = findBot(*binary); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(*dir, "pcapbench-"); err != nil {
		return fmt.Errorf("%w: --dir: %v", errUnavailable, err)
	}
	defer os.RemoveAll(b.dir)
	if len(profiles) == 0 {
		profiles = profileNames()
	}
	for _, p := range profiles {
		fmt.Fprintf(log, "measuring %s\n", p)
		if err := b.profile(ctx, p); err != nil {
			return err
		}
	}
	if b.missed > 0 {
		return fmt.Errorf("%w: %d of them", errMissed, b.missed)
	}
	return nil
}

// profile measures one profile; its files are removed before the next one is written.
func (b *bench) profile(ctx context.Context, name string) error {
	whole, part := filepath.Join(b.dir, name+".pcap"), filepath.Join(b.dir, name+"-part.pcap")
	defer os.Remove(whole)
	defer os.Remove(part)
	all, err := writeCapture(ctx, whole, pcapgen.Options{Profile: name, Size: b.size}, nil)
	if err != nil {
		return err
	}
	some, err := writeCapture(ctx, part, pcapgen.Options{Profile: name, Size: max(1, b.size/tsharkPart(name))}, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "\n%s: %d packets, %d bytes, %d connections\n", name, all.Packets, all.Bytes, all.Connections)
	cat, err := b.time(ctx, whole, "cat", whole)
	if err != nil {
		return err
	}
	b.row("cat to /dev/null", cat, "", 0, 0, 0)
	floor, err := b.repeat(ctx, whole, func() (measure, error) { return digest(whole) })
	if err != nil {
		return err
	}
	b.row("SHA-256 of the file, one core", floor, "", 0, 0, 0)
	full, err := b.time(ctx, whole, b.ghostbot, "pcap", "--json", whole)
	if err != nil {
		return err
	}
	b.row("ghostbot pcap --json", full, "MB resident", full.resident, 0, barMemory)
	bare, err := b.time(ctx, whole, b.ghostbot, "pcap", "--json", "--no-hash", whole)
	if err != nil {
		return err
	}
	share := 0.0
	if name == "bulk" {
		share = barCat
	}
	b.row("ghostbot pcap --json --no-hash", bare, "of cat's rate", cat.seconds/bare.seconds, share, 0)
	b.others(ctx, ours{full.seconds, bare.seconds, floor.seconds}, whole, part, float64(all.Packets)/float64(some.Packets))
	return ctx.Err()
}

// ours are the times of ghostbot, with and without the digest, and that of the digest alone.
type ours struct{ full, bare, floor float64 }

// digest hashes a file as fast as one core can.
func digest(name string) (measure, error) {
	f, err := os.Open(name)
	if err != nil {
		return measure{}, err
	}
	defer f.Close()
	began := time.Now()
	_, err = io.CopyBuffer(sha256.New(), struct{ io.Reader }{f}, make([]byte, 256<<10))
	return measure{seconds: time.Since(began).Seconds()}, err
}

// others measures the programs that people use today; one that is not there has no row.
func (b *bench) others(ctx context.Context, o ours, whole, part string, scale float64) {
	trace, err := b.time(ctx, whole, "tcptrace", "-n", "-l", whole)
	if b.skipped("tcptrace -n -l", err) {
		b.row("tcptrace -n -l", trace, "of its time", o.bare/trace.seconds, 0, barTcptrace)
		b.beside(fmt.Sprintf("%.2f of its time with the digest, which alone takes %.2f", o.full/trace.seconds, o.floor/trace.seconds))
	}
	args := []string{"-n", "-r", part, "-Y", "tcp", "-T", "fields"}
	for _, f := range tsharkFields() {
		args = append(args, "-e", f)
	}
	once := *b
	once.runs = 1
	shark, err := once.time(ctx, part, "tshark", args...)
	if b.skipped("tshark", err) {
		what := fmt.Sprintf("tshark, one pass (%.1f s x %.1f)", shark.seconds, scale)
		shark.seconds *= scale
		b.row(what, shark, "times as fast", shark.seconds/o.bare, barTshark, 0)
		b.beside(fmt.Sprintf("%.1f times as fast with the digest; the digest alone is %.1f times as fast", shark.seconds/o.full, shark.seconds/o.floor))
	}
}

// beside prints what belongs to the row above and has no bar.
func (b *bench) beside(text string) { fmt.Fprintf(b.out, "  %42s %s\n", "", text) }

// skipped says why there is no figure; it returns whether there is one.
func (b *bench) skipped(what string, err error) bool {
	if err != nil {
		fmt.Fprintf(b.out, "  %-42s not measured: %v\n", what, err)
	}
	return err == nil
}

// row prints one line; a bar of 0 is none.
func (b *bench) row(what string, m measure, unit string, value, least, most float64) {
	fmt.Fprintf(b.out, "  %-42s %8.2f s %8.0f MB", what, m.seconds, m.resident)
	if unit != "" {
		fmt.Fprintf(b.out, " %8.2f %s", value, unit)
	}
	verdict := "ok"
	if least > 0 && value < least || most > 0 && value > most {
		verdict = "MISSED"
		b.missed++
	}
	switch {
	case least > 0:
		fmt.Fprintf(b.out, " (bar: %g or more, %s)", least, verdict)
	case most > 0:
		fmt.Fprintf(b.out, " (bar: %g or less, %s)", most, verdict)
	}
	fmt.Fprintln(b.out)
}

// measure is wall time and peak resident memory. The kernel counts into the latter what this program
// had resident when it started the other one, so figures below some 15 MB mean nothing.
type measure struct{ seconds, resident float64 }

// time runs a program some times, with its output thrown away.
func (b *bench) time(ctx context.Context, file, program string, args ...string) (measure, error) {
	return b.repeat(ctx, file, func() (measure, error) {
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Stderr = &said
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return measure{}, fmt.Errorf("%w: %s: %v %s", errUnavailable, filepath.Base(program), err, firstLine(said.String()))
		}
		m := measure{seconds: time.Since(began).Seconds()}
		if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			m.resident = float64(u.Maxrss) / 1024
		}
		return m, nil
	})
}

// repeat measures some times and returns the run of median time. The file is read before, so that no
// run pays for the disk.
func (b *bench) repeat(ctx context.Context, file string, once func() (measure, error)) (measure, error) {
	if err := warm(file); err != nil {
		return measure{}, err
	}
	var all []measure
	for range b.runs {
		m, err := once()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return measure{}, err
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(x, y measure) int { return cmp.Compare(x.seconds, y.seconds) })
	return all[len(all)/2], nil
}

// warm brings a file into the page cache.
func warm(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
