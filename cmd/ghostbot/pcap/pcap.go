// Package pcap is the verb pcap without its command line: it analyses captures, prints what is wrong,
// writes what people keep of it (reports, pictures, the semantic JSON for a model) and compares two
// captures. It joins the rooms of forensics; the errors say which exit code they mean.
package pcap

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"ghostbot/cmd/ghostbot/bar"
	"ghostbot/cmd/ghostbot/vault"
	"ghostbot/forensics"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/filter"
	"ghostbot/forensics/finding"
	"ghostbot/forensics/semantic"
)

// Errors that callers tell apart: a wrong flag or file, a place that cannot be written to, a finding
// of the severity that was asked for, and the end that somebody asked for.
var (
	ErrUsage       = errors.New("usage")
	ErrWrite       = errors.New("not written")
	ErrReached     = errors.New("severity reached")
	ErrInterrupted = errors.New("interrupted")
)

// Options are the flags.
type Options struct {
	JSON, Frames, NoHash          bool
	FailOn, Filter                string
	Compare, Mode                 string
	SemanticDir, ReportDir, Plots string

	Vault *vault.Vault // opens captures, and encrypts what is kept of them; nil: the one of the environment
}

// Streams are where output goes. Line makes any text safe for one line of a terminal, Encode writes
// a value as JSON.
type Streams struct {
	Out, Err io.Writer
	Terminal bool // people read Out as it is
	Line     func(string) string
	Encode   func(io.Writer, any) error
}

// gcPercent trades a little time for memory: most of what an analysis keeps are
// tables without pointers, which cost the collector nothing. Until the first collection
// gcFirst holds: a heap of less than 40 MB is not worth one.
const (
	gcPercent = 40
	gcFirst   = 600
)

// collect sets when garbage is collected.
func collect() {
	debug.SetGCPercent(gcFirst)
	runtime.AddCleanup(new(*int), func(percent int) { debug.SetGCPercent(percent) }, gcPercent)
}

const severityNames = "info low medium high critical"

// Define defines the flags.
func (r *Options) Define(fs *flag.FlagSet) {
	fs.BoolVar(&r.JSON, "json", false, "print the analysis as JSON, and nothing else")
	fs.BoolVar(&r.Frames, "frames", false, "list every frame of every TCP verdict")
	fs.BoolVar(&r.NoHash, "no-hash", false, "leave out the SHA-256 of the file")
	fs.StringVar(&r.FailOn, "fail-on", "", "exit 1 at a finding of info, low, medium, high, critical or above: `SEVERITY`")
	fs.StringVar(&r.Filter, "filter", "", "only what matches, such as host 192.0.2.7 and port 443: `EXPR`")
	fs.StringVar(&r.Compare, "compare", "", "set the capture against another one: `FILE`")
	fs.StringVar(&r.Mode, "mode", "", "what the two are, endpoints or baseline: `MODE`")
	fs.StringVar(&r.SemanticDir, "semantic-dir", "", "write the JSON for a model, under 5,000 tokens: `DIR`")
	fs.StringVar(&r.ReportDir, "report-dir", "", "write the report and its summary: `DIR`")
	fs.StringVar(&r.Plots, "plots", "", "draw pictures: `DIR`")
}

// run is one run of the verb.
type run struct {
	*Options
	Streams
	analysis forensics.Options
	limit    finding.Severity
}

// refused is an error that is an ErrUsage and says only why.
type refused struct{ error }

// Unwrap returns why.
func (r refused) Unwrap() error { return r.error }

// Is makes it an ErrUsage.
func (r refused) Is(target error) bool { return target == ErrUsage }

func usage(format string, args ...any) error { return refused{fmt.Errorf(format, args...)} }

// Run does what the options say to the files, of which there is at least one.
func (r *Options) Run(ctx context.Context, files []string, s Streams) error {
	if err := r.check(len(files)); err != nil {
		return err
	}
	if r.Vault == nil {
		v, err := vault.Env()
		if err != nil {
			return usage("%w", err)
		}
		r.Vault = v
	}
	collect()
	v := &run{Options: r, Streams: s, analysis: forensics.Options{Hash: !r.NoHash, Frames: r.Frames}}
	if r.FailOn != "" {
		var ok bool
		if v.limit, ok = finding.ParseSeverity(r.FailOn); !ok {
			return usage("invalid value %q for flag -fail-on (accepted: %s)", r.FailOn, severityNames)
		}
	}
	if r.Filter != "" {
		var err error
		if v.analysis.Filter, err = filter.Parse(r.Filter); err != nil {
			return usage("%w", err)
		}
	}
	if r.Compare != "" {
		return v.both(ctx, files[0])
	}
	return v.each(ctx, files)
}

// check answers flags that do not fit together, or to the files.
func (r *Options) check(files int) error {
	switch {
	case r.Compare == "" && r.Mode != "":
		return usage("flag -mode wants -compare FILE")
	case r.Compare == "":
		return nil
	case r.Mode != Endpoints && r.Mode != Baseline:
		return usage("invalid value %q for flag -mode (accepted: %s %s)", r.Mode, Endpoints, Baseline)
	case files != 1:
		return usage("flag -compare wants one capture file beside it, not %d", files)
	case r.Plots != "":
		return usage("flag -plots draws one capture, and -compare has two")
	}
	return nil
}

// each analyses one file after the other. A file that is no capture does not keep the others from
// being read.
func (v *run) each(ctx context.Context, files []string) error {
	var docs []*semantic.Document
	var bad []error
	reached := false
	for _, name := range files {
		doc, err := v.file(ctx, name, nil)
		if errors.Is(err, ErrUsage) {
			bad = append(bad, errors.Unwrap(err))
			continue
		}
		if err != nil {
			return err
		}
		docs = append(docs, doc)
		reached = reached || v.reached(doc)
		if !v.JSON {
			doc.Text(v.Out, v.Line)
		}
	}
	if err := v.print(docs, len(files)); err != nil {
		return err
	}
	if len(bad) > 0 {
		return usage("%w", errors.Join(bad...))
	}
	if reached {
		return ErrReached
	}
	return nil
}

// reached reports whether a document has what -fail-on asks for. Where no packet was
// judged, or few of many, nothing was shown to be well, so that it fails whatever the severity.
func (v *run) reached(doc *semantic.Document) bool {
	if v.limit == 0 {
		return false
	}
	return doc.Summary.Packets == 0 || slices.ContainsFunc(doc.Findings, func(f finding.Finding) bool { return f.Severity >= v.limit || f.Code == "unreadable-capture" })
}

// print prints an object for one file and a list for several.
func (v *run) print(docs []*semantic.Document, files int) error {
	switch {
	case !v.JSON || len(docs) == 0:
		return nil
	case files == 1:
		return v.Encode(v.Out, docs[0])
	}
	return v.Encode(v.Out, docs)
}

// file analyses one file and writes what was asked for beside the output.
func (v *run) file(ctx context.Context, name string, each func(*facts.Packet)) (*semantic.Document, error) {
	o := v.analysis
	b := bar.New(v.Err, v.Line(name))
	o.Progress, o.Each = b.Show, each
	a, err := v.read(ctx, name, o)
	b.Clear()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", name, ErrInterrupted)
	}
	if err != nil {
		return nil, refused{err}
	}
	doc := a.Semantic()
	return doc, v.keep(ctx, name, doc)
}

// read analyses a capture, encrypted or not. An encrypted one that turns out to be damaged gives no
// result at all: nobody knows what somebody made of it.
func (v *run) read(ctx context.Context, name string, o forensics.Options) (*forensics.Analysis, error) {
	f, err := v.Vault.Open(name)
	if errors.Is(err, vault.ErrKey) || errors.Is(err, vault.ErrCut) || errors.Is(err, vault.ErrFile) {
		return nil, err
	}
	if err != nil {
		return forensics.Analyze(ctx, name, o) // says it as of any capture
	}
	defer f.Close()
	if !f.Sealed {
		return forensics.Analyze(ctx, name, o)
	}
	o.Again = func() (io.ReadCloser, error) { return v.Vault.Open(name) }
	a, err := forensics.AnalyzeReader(ctx, f, f.Size, strings.TrimSuffix(filepath.Base(name), vault.Suffix), o)
	if bad := f.Broken(); bad != nil {
		err = bad
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}
