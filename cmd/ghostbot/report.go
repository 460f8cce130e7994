package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ghostbot/agent/rca"
	"ghostbot/audit"
	"ghostbot/bot/show"
	"ghostbot/cmd/ghostbot/evidence"
	"ghostbot/cmd/ghostbot/keyring"
)

func reportPath(auditDir, sid string) string {
	return filepath.Join(auditDir, "ghost_rca_"+sid+".md")
}

// report builds the root-cause report of a case from its journals and writes
// it beside them.
func (p *program) report(_ context.Context, sid string) (show.Report, error) {
	r, err := buildReport(p.ring, sid)
	if err != nil {
		return show.Report{}, err
	}
	path := reportPath(p.auditDir, sid)
	if err := writeFile(path, []byte(r.Markdown)); err != nil {
		return show.Report{}, err
	}
	sum := sha256.Sum256([]byte(r.Markdown))
	return show.Report{
		Title: r.Title, Verdict: r.Verdict, Confidence: r.Confidence, Summary: r.Summary, Causes: r.Causes,
		Actions: r.Actions, Gaps: r.Gaps, Path: path, SHA256: hex.EncodeToString(sum[:]), Size: len(r.Markdown), Markdown: r.Markdown,
	}, nil
}

func buildReport(ring *keyring.Ring, sid string) (rca.Report, error) {
	in, err := evidence.Load(ring, sid, audit.VerifyOptions{})
	if err != nil {
		return rca.Report{}, err
	}
	return rca.Build(in)
}

// writeFile replaces path as a whole: a reader sees the old text or the new one.
func writeFile(path string, data []byte) error {
	err := replace(path, data)
	var p *fs.PathError
	var l *os.LinkError
	switch { // the temporary file is nobody's business
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func replace(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.Write(data); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Sync(); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
