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

// crowd is how many connections the capture has by which memory is measured.
const crowd = 1_000_000

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
	crowd         int
	out           io.Writer
	bars          []bar
}

// pcapbench compares `ghostbot pcap` with cat, tcptrace and tshark on the profiles of pcapgen.
func pcapbench(ctx context.Context, args []string, out, log io.Writer) error {
	fs := flag.NewFlagSet("pcapbench", flag.ContinueOnError)
	size := fs.String("size", "1GiB", "")
	binary := fs.String("ghostbot", "", "")
	runs := decimal(fs, "runs", 3)
	connections := decimal(fs, "connections", crowd)
	dir := fs.String("dir", "", "")
	profiles, err := parseArgs(fs, args, out, len(pcapgen.Profiles()))
	if err != nil {
		return err
	}
	b := bench{runs: *runs, crowd: *connections, out: out}
	if b.size, err = bytesOf(*size); err != nil {
		return fmt.Errorf("%w: --size %q: want bytes as in 64MiB or 1GiB", errUsage, *size)
	}
	if i := slices.IndexFunc(profiles, func(p string) bool { return !isProfile(p) }); i >= 0 {
		return fmt.Errorf("%w: profile %q: have %s", errUsage, profiles[i], strings.Join(profileNames(), ", "))
	}
	if b.runs < 1 {
		return fmt.Errorf("%w: --runs %d: want 1 or more", errUsage, b.runs)
	}
	if b.crowd < 0 || b.crowd > 10*crowd {
		return fmt.Errorf("%w: --connections %d: want 0 (none) to %d", errUsage, b.crowd, 10*crowd)
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
	return b.measure(ctx, profiles, log)
}

// measure measures the profiles and the crowd, and prints the bars.
func (b *bench) measure(ctx context.Context, profiles []string, log io.Writer) error {
	before := load()
	for _, p := range profiles {
		fmt.Fprintf(log, "measuring %s\n", p)
		if err := b.profile(ctx, p); err != nil {
			return err
		}
	}
	if b.crowd > 0 {
		fmt.Fprintf(log, "measuring %d connections\n", b.crowd)
		if err := b.many(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.out, "\nbars (load average of the last minute: %s at the start, %s at the end)\n", before, load())
	if missed := table(b.out, b.bars); missed > 0 {
		return fmt.Errorf("%w: %d of them", errMissed, missed)
	}
	return nil
}

// many measures the memory that a crowd of open connections takes.
func (b *bench) many(ctx context.Context) error {
	name := filepath.Join(b.dir, "crowd.pcap")
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("%w: %v", errUnavailable, err)
	}
	defer os.Remove(name)
	st, err := pcapgen.Crowd(interruptible{ctx, f}, b.crowd)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "\ncrowd: %d packets, %d bytes, %d connections\n", st.Packets, st.Bytes, st.Connections)
	m, err := b.time(ctx, name, b.ghostbot, "pcap", "--json", name)
	if err != nil {
		return err
	}
	b.row("ghostbot pcap --json", m)
	b.bars = append(b.bars, bar{profile: "crowd", what: fmt.Sprintf("MB resident, %d connections", st.Connections), value: m.resident, most: barCrowd})
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
	b.row("cat to /dev/null", cat)
	floor, err := b.repeat(ctx, whole, func() (measure, error) { return digest(whole) })
	if err != nil {
		return err
	}
	b.row("SHA-256 of the file, one core", floor)
	full, err := b.time(ctx, whole, b.ghostbot, "pcap", "--json", whole)
	if err != nil {
		return err
	}
	b.row("ghostbot pcap --json", full)
	bare, err := b.time(ctx, whole, b.ghostbot, "pcap", "--json", "--no-hash", whole)
	if err != nil {
		return err
	}
	b.row("ghostbot pcap --json --no-hash", bare)
	b.bars = append(b.bars, bar{profile: name, what: "MB resident", value: max(full.resident, bare.resident), most: barMemory})
	if name == "bulk" {
		b.bars = append(b.bars, bar{profile: name, what: "of cat's rate, without the digest", value: cat.seconds / bare.seconds, least: barCat})
	}
	b.others(ctx, name, ours{full.seconds, bare.seconds, floor.seconds}, whole, part, float64(all.Packets)/float64(some.Packets))
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
func (b *bench) others(ctx context.Context, name string, o ours, whole, part string, scale float64) {
	trace, err := b.time(ctx, whole, "tcptrace", "-n", "-l", whole)
	if b.measured("tcptrace -n -l", err) {
		b.row("tcptrace -n -l", trace)
	}
	b.compare(bar{profile: name, what: "of tcptrace's time", most: barTcptrace}, err, o, func(s float64) float64 { return s / trace.seconds })
	args := []string{"-n", "-r", part, "-Y", "tcp", "-T", "fields"}
	for _, f := range tsharkFields() {
		args = append(args, "-e", f)
	}
	once := *b
	once.runs = 1
	shark, err := once.time(ctx, part, "tshark", args...)
	if b.measured("tshark", err) {
		what := fmt.Sprintf("tshark, one pass (%.1f s x %.1f)", shark.seconds, scale)
		shark.seconds *= scale
		b.row(what, shark)
	}
	b.compare(bar{profile: name, what: "times tshark's pass", least: barTshark}, err, o, func(s float64) float64 { return shark.seconds / s })
}

// compare adds a bar twice: for the analysis alone and with the digest.
func (b *bench) compare(x bar, err error, o ours, ratio func(float64) float64) {
	y := x
	x.what, y.what = x.what+", without the digest", x.what+", with the digest"
	if err != nil {
		x.missing, y.missing = err.Error(), err.Error()
	} else {
		x.value, y.value, y.floor = ratio(o.bare), ratio(o.full), ratio(o.floor)
	}
	b.bars = append(b.bars, x, y)
}

// measured says why there is no figure; it returns whether there is one.
func (b *bench) measured(what string, err error) bool {
	if err != nil {
		fmt.Fprintf(b.out, "  %-42s not measured: %v\n", what, err)
	}
	return err == nil
}

// row prints what one program took.
func (b *bench) row(what string, m measure) {
	fmt.Fprintf(b.out, "  %-42s %8.2f s %8.0f MB\n", what, m.seconds, m.resident)
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
