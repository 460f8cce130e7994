package cloud

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/audit"
	"ghostbot/orchestrator"
)

// journal writes the task journal of a case with the real writer.
func journal(t *testing.T, dir, sid string, tasks ...orchestrator.Task) {
	t.Helper()
	log, err := audit.Open(t.Context(), audit.Options{Dir: dir, SID: sid, Fence: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, x := range tasks {
		if _, _, err := log.Journal(audit.Tasks).Append(t.Context(), orchestrator.KindTask, x); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "au[d]it*") // a name that a pattern would take for one
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a := orchestrator.Task{TaskID: "ghost_a", SessionID: "ghost_20260314_090000", State: orchestrator.Created}
	later := a
	later.State = orchestrator.Waiting
	journal(t, dir, "ghost_20260314_090000", a, later)
	journal(t, dir, "ghost_20260314_100000", orchestrator.Task{TaskID: "ghost_b", State: orchestrator.Broken})
	journal(t, dir, "ghost_20260314_110000", orchestrator.Task{TaskID: "ghost_mine"})
	if err := os.WriteFile(filepath.Join(dir, "orchestrator_tasks_ghost_20260314_120000.jsonl"), []byte("no journal\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := Left{AuditDir: dir, SelfID: "ghost_20260314_110000", Open: func(_ context.Context, sid string) (bool, error) { return sid == "ghost_20260314_100000", nil }}
	list, err := l.Others(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range list {
		got = append(got, x.TaskID+" "+string(x.State)+" of "+x.SessionID+" "+map[bool]string{true: "open", false: "closed"}[x.Open])
	}
	if d := cmp.Diff([]string{"ghost_a WAITING of ghost_20260314_090000 closed", "ghost_b FAILED of ghost_20260314_100000 open"}, got); d != "" {
		t.Error(d)
	}
	l.Open = func(context.Context, string) (bool, error) { return false, errors.New("the store is gone") }
	if list, err := l.Others(t.Context()); err == nil {
		t.Errorf("nobody knows which cases are open: %v", list)
	}
	if list, err := (Left{AuditDir: filepath.Join(dir, "none")}).Others(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("no directory: %v, %v", list, err)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	old := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range []string{"c1/ghost_a.cap", "c1/other.txt", "c2/ghost_b.cap", "ghost_c.cap"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "c1", "ghost_link")); err != nil {
		t.Fatal(err)
	}
	list, err := Left{WorkDir: dir}.Files(t.Context())
	var got []string
	for _, f := range list {
		rel, _ := filepath.Rel(dir, f.Path)
		got = append(got, rel)
		if !f.Modified.Equal(old) || f.Name != filepath.Base(f.Path) {
			t.Errorf("%+v", f)
		}
	}
	if d := cmp.Diff([]string{"c1/ghost_a.cap", "c2/ghost_b.cap"}, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if list, err := (Left{WorkDir: filepath.Join(dir, "none")}).Files(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("no directory: %v, %v", list, err)
	}
}
