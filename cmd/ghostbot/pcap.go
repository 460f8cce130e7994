package main

import (
	"context"
	"errors"
	"flag"
	"io"

	"ghostbot/cmd/ghostbot/bar"
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
		b := bar.New(c.err, oneLine(name))
		o.Progress = b.Show
		a, err := forensics.Analyze(ctx, name, o)
		b.Clear()
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
			doc.Text(c.out, oneLine)
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
