package pcap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"ghostbot/cmd/ghostbot/vault"
	"ghostbot/forensics"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding"
	"ghostbot/forensics/picture"
	"ghostbot/forensics/report"
	"ghostbot/forensics/semantic"
	"ghostbot/forensics/tcp"
	"ghostbot/forensics/trace"
)

// Modes of a comparison: two ends of the same traffic, before and after.
const (
	Endpoints = "endpoints"
	Baseline  = "baseline"
)

// stem is a file's name without what says that it is a capture.
func stem(name string) string {
	name = filepath.Base(name)
	for _, ext := range []string{vault.Suffix, ".gz", ".zst", ".pcap", ".pcapng", ".cap"} {
		if cut := strings.TrimSuffix(name, ext); cut != "" {
			name = cut
		}
	}
	return name
}

// keep makes the files that were asked for. The names of the pictures go into the report.
func (v *run) keep(ctx context.Context, name string, doc *semantic.Document) error {
	if v.SemanticDir == "" && v.ReportDir == "" && v.Plots == "" {
		return nil
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	d, err := report.Parse(raw)
	if err != nil {
		return err
	}
	if v.SemanticDir != "" {
		small, err := report.Trim(raw)
		if err != nil {
			return err
		}
		if err := v.place(v.SemanticDir, stem(name)+"_semantic.json", small); err != nil {
			return err
		}
	}
	images, err := v.draw(ctx, name, doc)
	if err != nil || v.ReportDir == "" {
		return err
	}
	executive := d.Executive()
	if err := v.place(v.ReportDir, stem(name)+"_executive_summary.md", []byte(executive)); err != nil {
		return err
	}
	doc.Executive = executive
	return v.place(v.ReportDir, stem(name)+"_forensic_report.md", []byte(d.Forensic(images)))
}

// place writes a file whole or not at all, encrypted when there is a key.
func (v *run) place(dir, name string, content []byte) error {
	if _, err := v.Vault.Place(dir, name, bytes.NewReader(content)); err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return nil
}

// draw reads the capture again, now knowing what to look at, and draws it.
func (v *run) draw(ctx context.Context, name string, doc *semantic.Document) ([]report.Image, error) {
	if v.Plots == "" {
		return nil, nil
	}
	c := picture.New(request(doc))
	o := forensics.Options{Filter: v.analysis.Filter}
	o.Each = func(p *facts.Packet) {
		t := trace.FromView(p.Frame, p.Raw.Time, p.View)
		mark, rtt := picture.Unmarked, int64(0)
		if e := p.TCP; e != nil {
			rtt = e.RTT
			switch {
			case e.Verdict.Has(tcp.Retransmission):
				mark = picture.Again
			case e.Verdict.Has(tcp.OutOfOrder):
				mark = picture.Disordered
			}
		}
		c.Add(&t, mark, rtt)
	}
	if _, err := v.read(ctx, name, o); err != nil {
		return nil, err
	}
	var out []report.Image
	for _, p := range c.Pictures() {
		var b strings.Builder
		if err := p.PNG(&b); err != nil {
			return nil, err
		}
		file := stem(name) + "_" + p.Name + ".png"
		if err := v.place(v.Plots, file, []byte(b.String())); err != nil {
			return nil, err
		}
		out = append(out, report.Image{File: v.beside(file), Title: p.Title, Alt: p.Alt})
	}
	return out, nil
}

// beside is the path from the report to a picture.
func (r *Options) beside(file string) string {
	from, err := filepath.Abs(r.ReportDir)
	to, err2 := filepath.Abs(filepath.Join(r.Plots, file))
	if err != nil || err2 != nil {
		return file
	}
	if rel, err := filepath.Rel(from, to); err == nil {
		return filepath.ToSlash(rel)
	}
	return to
}

// request chooses the stream with most retransmissions, and the exchange of the first finding that
// names a frame.
func request(doc *semantic.Document) picture.Request {
	r := picture.Request{File: doc.Summary.File}
	if doc.TCP != nil {
		var worst *semantic.Stream
		for i := range doc.TCP.Issues {
			if s := &doc.TCP.Issues[i]; worst == nil || s.Retransmissions > worst.Retransmissions {
				worst = s
			}
		}
		if worst != nil {
			r.Stream, r.StreamName = flowOf(worst.Src, worst.Dst), fmt.Sprintf("stream %d", worst.ID)
			r.Stream.Proto = trace.TCP
		}
	}
	for _, f := range doc.Findings {
		if f.Severity >= finding.Medium && len(f.Frames) > 0 {
			r.Frame, r.Why = int(f.Frames[0]), f.Summary
			from, to, _ := strings.Cut(f.Flow, " -> ")
			if flow := flowOf(from, to); flow.A.IsValid() && r.StreamName == "" && f.Protocol == "TCP" {
				flow.Proto = trace.TCP
				r.Stream, r.StreamName = flow, "the flow of the first finding"
			}
			break
		}
	}
	return r
}

func flowOf(a, b string) picture.Flow {
	x, errX := netip.ParseAddrPort(a)
	y, errY := netip.ParseAddrPort(b)
	if errX != nil || errY != nil {
		return picture.Flow{}
	}
	return picture.Flow{A: x, B: y}
}
