// Package dissect is the verb pcap: it analyses capture files one after the other
// and prints what they came to.
package dissect

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"

	"ghostbot/cmd/ghostbot/bar"
	"ghostbot/forensics"
	"ghostbot/forensics/filter"
	"ghostbot/forensics/finding"
	"ghostbot/forensics/semantic"
)

// Flags are the flags of the verb, and where it writes.
type Flags struct {
	Out, Err io.Writer
	Clean    func(string) string // makes one harmless line of a text

	json, frames, noHash bool
	failOn, filter       string
	limit                finding.Severity
	options              forensics.Options
}

// Result is how the verb ended.
type Result int

// Results. Only Done comes with an error of the output, if any.
const (
	Done    Result = iota
	Usage          // a flag, a value or a file; the error follows the verb's name
	Stopped        // by its context
	Reached        // a finding is as severe as --fail-on says
)

const severities = "info low medium high critical"

// Define declares the flags.
func (f *Flags) Define(fs *flag.FlagSet) {
	fs.BoolVar(&f.json, "json", false, "")
	fs.BoolVar(&f.frames, "frames", false, "")
	fs.BoolVar(&f.noHash, "no-hash", false, "")
	fs.StringVar(&f.failOn, "fail-on", "", "")
	fs.StringVar(&f.filter, "filter", "", "")
}

func (f *Flags) prepare() (err error) {
	f.options = forensics.Options{Hash: !f.noHash, Frames: f.frames}
	if f.failOn != "" {
		var ok bool
		if f.limit, ok = finding.ParseSeverity(f.failOn); !ok {
			return fmt.Errorf(": invalid value %q for flag -fail-on (accepted: %s)", f.failOn, severities)
		}
	}
	if f.filter != "" {
		if f.options.Filter, err = filter.Parse(f.filter); err != nil {
			return fmt.Errorf(": %w", err)
		}
	}
	return nil
}

// Run analyses the files. One that is no capture does not keep the others from being
// read.
func (f *Flags) Run(ctx context.Context, files []string) (Result, error) {
	if len(files) == 0 {
		return Usage, errors.New(" wants at least one capture file")
	}
	if err := f.prepare(); err != nil {
		return Usage, err
	}
	var docs []*semantic.Document
	var bad []error
	reached := false
	for _, name := range files {
		doc, err := f.file(ctx, name)
		if ctx.Err() != nil {
			return Stopped, fmt.Errorf(": %s: interrupted", name)
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		docs = append(docs, doc)
		for i := range doc.Findings {
			reached = reached || f.limit > 0 && doc.Findings[i].Severity >= f.limit
		}
	}
	if err := f.print(docs, len(files)); err != nil {
		return Done, err
	}
	switch {
	case len(bad) > 0:
		return Usage, fmt.Errorf(": %w", errors.Join(bad...))
	case reached:
		return Reached, nil
	}
	return Done, nil
}

func (f *Flags) file(ctx context.Context, name string) (*semantic.Document, error) {
	b := bar.New(f.Err, f.Clean(name))
	defer b.Clear()
	f.options.Progress = b.Show
	a, err := forensics.Analyze(ctx, name, f.options)
	if err != nil {
		return nil, err
	}
	return a.Semantic(), nil
}

// print writes text for people, or an object for one file and a list for several.
func (f *Flags) print(docs []*semantic.Document, files int) error {
	if !f.json {
		for _, d := range docs {
			d.Text(f.Out, f.Clean)
		}
		return nil
	}
	if len(docs) == 0 {
		return nil
	}
	enc := json.NewEncoder(f.Out)
	enc.SetEscapeHTML(false)
	if files == 1 {
		return enc.Encode(docs[0])
	}
	return enc.Encode(docs)
}
