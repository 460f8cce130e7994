// Package forensics reads a packet capture and says what is wrong, where, and how
// sure that is. It knows no Slack, no case and no model.
//
// Its rooms, in the order in which a packet passes them:
//
//   - capture reads files: pcap, pcapng, compressed or not, damaged or not. It owns
//     the goroutines that read and hash.
//   - frame takes headers off, down to the innermost conversation.
//   - flow has addresses, keys and the table of conversations; stat has distributions
//     and series in bounded memory. Everybody uses them.
//   - wallclock notices that the clock of a capture was set while it ran: the pass is made
//     again with the steps taken out.
//   - prefetch asks for memory ahead of its use; it knows nothing of what is there.
//   - filter understands the expressions that narrow an analysis.
//   - tcp gives every segment tshark's verdicts, and keeps what really happened.
//   - dns, control (ICMP, ARP, neighbour discovery, DHCP) and app (TLS, HTTP, QUIC,
//     UDP) follow what their names say.
//   - facts makes the one pass and holds what it counted; belt lets the stages of the
//     pass run at the same time, and owns their goroutines.
//   - finding turns facts into statements with evidence; its rules are deterministic.
//   - semantic writes the JSON.
//
// Nothing of a payload reaches any result, except host names and the dates of
// certificates. Memory is bounded by budgets, and what they leave out is said.
package forensics

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"ghostbot/forensics/capture"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/filter"
	"ghostbot/forensics/finding"
	"ghostbot/forensics/semantic"
)

// Options say what to do with a capture.
type Options struct {
	Hash     bool                   // compute the file's digest, beside the analysis
	Frames   bool                   // list the frames of every TCP verdict
	Filter   *filter.Filter         // nil: everything
	Progress func(read, size int64) // called now and then, from the caller's goroutine
	Each     func(p *facts.Packet)  // called for every packet, from the caller's goroutine
	// Again opens the capture once more. Without it, times that span a step of the clock cannot
	// be told right, unless the capture is a file or an [io.Seeker].
	Again func() (io.ReadCloser, error)
}

// Analysis is what one capture came to.
type Analysis struct {
	Facts    *facts.Facts
	Findings []finding.Finding
	o        Options
}

// Analyze reads one capture. A damaged file is no error: what could be read is
// analysed, and the facts say what could not.
func Analyze(ctx context.Context, path string, o Options) (*Analysis, error) {
	file, err := capture.Open(ctx, path, capture.Options{Hash: o.Hash})
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if o.Again == nil {
		o.Again = func() (io.ReadCloser, error) { return os.Open(path) }
	}
	return analyze(ctx, file, filepath.Base(path), o)
}

// AnalyzeReader is [Analyze] for a capture that is not a file. size is that of the
// stream, 0 when it is not known.
func AnalyzeReader(ctx context.Context, r io.Reader, size int64, name string, o Options) (*Analysis, error) {
	file, err := capture.New(ctx, r, size, capture.Options{Hash: o.Hash})
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if s, ok := r.(io.Seeker); ok && o.Again == nil {
		o.Again = func() (io.ReadCloser, error) {
			_, err := s.Seek(0, io.SeekStart)
			return io.NopCloser(r), err
		}
	}
	return analyze(ctx, file, name, o)
}

func analyze(ctx context.Context, file *capture.File, name string, o Options) (*Analysis, error) {
	fo := facts.Options{Frames: o.Frames, Filter: o.Filter, Progress: o.Progress, Each: o.Each}
	f, err := facts.Collect(ctx, file, fo)
	if err != nil {
		return nil, err
	}
	if len(f.Steps) > 0 && o.Again != nil {
		file.Close() // nothing of it reads any more
		if f, err = again(ctx, f, o.Again, fo); err != nil {
			return nil, err
		}
	}
	f.Name = name
	return &Analysis{Facts: f, Findings: finding.All(f), o: o}, nil
}

// again reads a capture whose clock was set while it ran a second time, now that the steps are
// known. What cannot be read again, or is another capture by now, stays as it was read first.
func again(ctx context.Context, f *facts.Facts, open func() (io.ReadCloser, error), o facts.Options) (*facts.Facts, error) {
	r, err := open()
	if err != nil {
		return f, nil
	}
	defer r.Close()
	file, err := capture.New(ctx, r, f.Capture.Bytes, capture.Options{})
	if err != nil {
		return f, nil
	}
	defer file.Close()
	o.Steps, o.Each = f.Steps, nil
	g, err := facts.Collect(ctx, file, o)
	if err != nil || g.Packets != f.Packets {
		return f, err
	}
	g.Capture, g.Steps, g.Stamped, g.Backwards, g.Unstepped = f.Capture, f.Steps, f.Stamped, f.Backwards, true
	return g, nil
}

// Semantic writes the semantic JSON's document.
func (a *Analysis) Semantic() *semantic.Document {
	o := semantic.Options{Frames: a.o.Frames}
	if a.o.Filter != nil {
		o.Filter = a.o.Filter.String()
	}
	return semantic.Build(a.Facts, a.Findings, o)
}
