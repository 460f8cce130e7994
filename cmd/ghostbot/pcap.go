package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ghostbot/forensics"
	"ghostbot/forensics/filter"
	"ghostbot/forensics/finding"
	"ghostbot/forensics/semantic"
)

// pcapFlags are the flags of the verb pcap.
type pcapFlags struct {
	json, frames, noHash bool
	failOn, filter       string
}

const severityNames = "info low medium high critical"

// pcapVerb analyses captures.
func pcapVerb(ctx context.Context, c *cli, args []string) error {
	var p pcapFlags
	files, err := c.flags("pcap", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&p.json, "json", false, "")
		fs.BoolVar(&p.frames, "frames", false, "")
		fs.BoolVar(&p.noHash, "no-hash", false, "")
		fs.StringVar(&p.failOn, "fail-on", "", "")
		fs.StringVar(&p.filter, "filter", "", "")
	})
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return usageError("pcap wants at least one capture file")
	}
	o := forensics.Options{Hash: !p.noHash, Frames: p.frames}
	limit := finding.Severity(0)
	if p.failOn != "" {
		var ok bool
		if limit, ok = finding.ParseSeverity(p.failOn); !ok {
			return usageError("pcap: invalid value %q for flag -fail-on (accepted: %s)", p.failOn, severityNames)
		}
	}
	if p.filter != "" {
		if o.Filter, err = filter.Parse(p.filter); err != nil {
			return usageError("pcap: %w", err)
		}
	}
	return c.pcapFiles(ctx, files, p, o, limit)
}

// pcapFiles analyses one file after the other. A file that is no capture does not
// keep the others from being read.
func (c *cli) pcapFiles(ctx context.Context, files []string, p pcapFlags, o forensics.Options, limit finding.Severity) error {
	var docs []*semantic.Document
	var bad []error
	reached := false
	for _, name := range files {
		bar := newBar(c.err, name)
		o.Progress = bar.show
		a, err := forensics.Analyze(ctx, name, o)
		bar.clear()
		if ctx.Err() != nil {
			return fail(exitInternal, "pcap: %s: interrupted", name)
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		doc := a.Semantic()
		docs = append(docs, doc)
		for i := range doc.Findings {
			reached = reached || limit > 0 && doc.Findings[i].Severity >= limit
		}
		if !p.json {
			printFindings(c.out, doc)
		}
	}
	if err := pcapJSON(c.out, docs, len(files), p.json); err != nil {
		return err
	}
	if len(bad) > 0 {
		return usageError("pcap: %w", errors.Join(bad...))
	}
	if reached {
		return fail(exitNegative, "")
	}
	return nil
}

// pcapJSON prints an object for one file and a list for several.
func pcapJSON(w io.Writer, docs []*semantic.Document, files int, wanted bool) error {
	switch {
	case !wanted || len(docs) == 0:
		return nil
	case files == 1:
		return encode(w, docs[0])
	}
	return encode(w, docs)
}

// printFindings is the form for people.
func printFindings(w io.Writer, d *semantic.Document) {
	s := &d.Summary
	fmt.Fprintf(w, "%s: %d packets in %.3f s: %s\n", oneLine(s.File), s.Packets, s.Duration, strings.Join(s.Protocols, " "))
	if d.Provenance.Error != "" {
		fmt.Fprintf(w, "  %s\n", oneLine(d.Provenance.Error))
	}
	for _, n := range d.Provenance.Incomplete {
		fmt.Fprintf(w, "  note: %s\n", oneLine(n))
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		fmt.Fprintf(w, "\n%-8s %s: %s\n", f.Severity, f.Code, oneLine(f.Summary))
		if f.Flow != "" {
			fmt.Fprintf(w, "  flow: %s\n", oneLine(f.Flow))
		}
		fmt.Fprintf(w, "  %s\n", oneLine(f.Detail))
		if len(f.Frames) > 0 {
			fmt.Fprintf(w, "  frames: %s\n", strings.Trim(fmt.Sprint(f.Frames), "[]"))
		}
		if f.Confirm != "" {
			fmt.Fprintf(w, "  to confirm: %s\n", oneLine(f.Confirm))
		}
	}
}

// bar shows progress on a terminal, and nothing elsewhere.
type bar struct {
	w     io.Writer
	name  string
	start time.Time
	last  time.Time
	shown bool
}

func newBar(w io.Writer, name string) *bar {
	f, ok := w.(*os.File)
	if !ok {
		return &bar{}
	}
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
		return &bar{}
	}
	return &bar{w: f, name: oneLine(name), start: time.Now()}
}

const (
	barDelay = 300 * time.Millisecond // small files are done before
	barStep  = 100 * time.Millisecond
	barWidth = 30
)

func (b *bar) show(read, size int64) {
	now := time.Now()
	if b.w == nil || size <= 0 || now.Sub(b.start) < barDelay || now.Sub(b.last) < barStep {
		return
	}
	b.last, b.shown = now, true
	part := min(float64(read)/float64(size), 1)
	n := int(part * barWidth)
	rate := float64(read) / 1e6 / now.Sub(b.start).Seconds()
	fmt.Fprintf(b.w, "\r%s [%s%s] %3.0f %%  %.0f MB/s ", b.name, strings.Repeat("#", n), strings.Repeat(".", barWidth-n), 100*part, rate)
}

// clear takes the bar off the line.
func (b *bar) clear() {
	if b.shown {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}
