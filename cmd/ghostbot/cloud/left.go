package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ghostbot/audit"
	"ghostbot/orchestrator"
	"ghostbot/orchestrator/names"
)

// Left finds what other cases left: their tasks in the audit directory, and the
// files of captures in their working directories.
type Left struct {
	AuditDir string
	WorkDir  string // holds one directory a case
	SelfID   string // the case that looks
	Open     func(ctx context.Context, sid string) (bool, error)
}

// taskFiles is how the task journals of cases are called.
const taskFiles = "orchestrator_tasks_"

// Others returns the tasks of all other cases, oldest case first. Of a case whose
// journals cannot be read the error tells, beside what the others left: one damaged
// case must neither hide them nor be taken for one that left nothing.
func (l Left) Others(ctx context.Context) ([]orchestrator.Other, error) {
	files, err := filepath.Glob(filepath.Join(escape(l.AuditDir), taskFiles+"*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("look for tasks: %w", err)
	}
	var list []orchestrator.Other
	var broken []error
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sid := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), taskFiles), ".jsonl")
		if sid == l.SelfID {
			continue
		}
		tasks, err := l.of(ctx, sid)
		if err != nil {
			broken = append(broken, err)
		}
		list = append(list, tasks...)
	}
	if len(broken) > 0 {
		return list, fmt.Errorf("look for tasks: %w", errors.Join(broken...))
	}
	return list, nil
}

// of returns the tasks of one case.
func (l Left) of(ctx context.Context, sid string) ([]orchestrator.Other, error) {
	entries, err := audit.Read(l.AuditDir, sid)
	if err != nil {
		return nil, err
	}
	open, err := l.Open(ctx, sid)
	if err != nil {
		return nil, err
	}
	var bodies []json.RawMessage
	for _, e := range entries {
		if e.Journal == audit.Tasks && e.Kind == orchestrator.KindTask {
			bodies = append(bodies, json.RawMessage(e.Body))
		}
	}
	var list []orchestrator.Other
	for _, t := range orchestrator.Fold(bodies) {
		if t.SessionID == "" {
			t.SessionID = sid
		}
		list = append(list, orchestrator.Other{Task: *t, Open: open})
	}
	return list, nil
}

// Files returns the files of captures in the working directories of all cases.
func (l Left) Files(ctx context.Context) ([]orchestrator.LocalFile, error) {
	var list []orchestrator.LocalFile
	cases, err := os.ReadDir(l.WorkDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for files: %w", err)
	}
	for _, c := range cases {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		dir := filepath.Join(l.WorkDir, c.Name())
		files, err := os.ReadDir(dir)
		if err != nil { // no directory, or not ours
			continue
		}
		for _, f := range files {
			i, err := f.Info()
			if err != nil || !i.Mode().IsRegular() || !strings.HasPrefix(f.Name(), names.Prefix) {
				continue
			}
			list = append(list, orchestrator.LocalFile{Name: f.Name(), Path: filepath.Join(dir, f.Name()), Modified: i.ModTime()})
		}
	}
	return list, nil
}

// escape makes a path harmless in a pattern.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
