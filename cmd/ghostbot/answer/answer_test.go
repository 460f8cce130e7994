package answer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/audit"
)

const sid = "ghost_20260314_104512"

type entry struct {
	kind string
	body map[string]any
}

// journal writes entries, after one that is about something else.
func journal(t *testing.T, entries ...entry) string {
	t.Helper()
	dir := t.TempDir()
	log, err := audit.Open(t.Context(), audit.Options{Dir: dir, SID: sid, Fence: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, _, err := log.Journal(audit.Case).Append(t.Context(), "opened", map[string]any{"symptom": "x"}); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, _, err := log.Journal(audit.Shell).Append(t.Context(), e.kind, e.body); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const id = sid + "_002"

var args = []string{"agent", "apply", "--targets", "7:x"}

func TestFind(t *testing.T) {
	argv := append([]string{"/opt/ghostbot/ghostbot"}, args...)
	proposed := entry{"proposed", map[string]any{"argv": argv, "rule": "agent-apply"}}
	decided := func(decision, by string, votes ...string) entry {
		return entry{"decided", map[string]any{"audit_id": id, "decision": decision, "by": by, "votes": votes}}
	}
	intent := entry{"intent", map[string]any{"audit_id": id, "argv": argv}}
	started := entry{"started", map[string]any{"audit_id": id, "pid": 7}}
	outcome := entry{"outcome", map[string]any{"audit_id": id, "status": "completed"}}
	foreign := entry{"outcome", map[string]any{"audit_id": sid + "_001"}}
	wrapped := entry{"intent", map[string]any{"audit_id": id, "argv": append([]string{"env", "GHOST_APPROVAL=" + id, "/opt/ghostbot/ghostbot"}, args...)}}
	for _, c := range []struct {
		name    string
		entries []entry
		id      string
		want    Answer
		why     string
	}{
		{"one", []entry{proposed, decided("APPROVED", "U1"), intent}, id, Answer{[]string{"U1"}, "agent-apply"}, ""},
		{"two", []entry{proposed, decided("APPROVED", "U2", "U1", "U2"), intent, started, foreign}, id, Answer{[]string{"U1", "U2"}, "agent-apply"}, ""},
		{"over", []entry{proposed, decided("APPROVED", "U1"), intent, started, outcome}, id, Answer{}, "not what runs now"},
		{"not begun", []entry{proposed, decided("APPROVED", "U1")}, id, Answer{}, "not what runs now"},
		{"denied", []entry{proposed, decided("DENIED", "U1"), intent}, id, Answer{}, "nobody approved"},
		{"approved, then denied", []entry{proposed, decided("APPROVED", "U1"), decided("DENIED", "U1"), intent}, id, Answer{}, "nobody approved"},
		{"by nobody", []entry{proposed, decided("APPROVED", ""), intent}, id, Answer{}, "nobody approved"},
		{"undecided", []entry{proposed, intent}, id, Answer{}, "nobody approved"},
		{"in a wrapper", []entry{proposed, decided("APPROVED", "U1"), wrapped}, id, Answer{}, "another command"},
		{"no list", []entry{proposed, decided("APPROVED", "U1"), {"intent", map[string]any{"audit_id": id}}}, id, Answer{}, "another command"},
		{"another entry", []entry{proposed, decided("APPROVED", "U1"), intent}, sid + "_003", Answer{}, "nothing was proposed"},
		{"another case", []entry{proposed, decided("APPROVED", "U1"), intent}, "ghost_20260314_104513_002", Answer{}, "no entry of case"},
		{"no number", []entry{proposed, decided("APPROVED", "U1"), intent}, sid + "_x", Answer{}, "no entry of case"},
		{"a path", []entry{proposed, decided("APPROVED", "U1"), intent}, "../" + id, Answer{}, "no entry of case"},
		{"no object", []entry{proposed, {"decided", nil}, decided("APPROVED", "U1"), intent}, id, Answer{[]string{"U1"}, "agent-apply"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Find(journal(t, c.entries...), sid, c.id, args)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.why == "" && err != nil || c.why != "" && (!errors.Is(err, ErrNone) || !strings.Contains(err.Error(), c.why)) {
				t.Errorf("%v, want %q", err, c.why)
			}
		})
	}
	dir := journal(t, proposed, decided("APPROVED", "U1"), intent)
	if _, err := Find(dir, sid, id, args[:len(args)-1]); !errors.Is(err, ErrNone) {
		t.Errorf("fewer arguments: %v", err)
	}
	if _, err := Find(t.TempDir(), sid, id, args); !errors.Is(err, ErrNone) {
		t.Errorf("no journals: %v", err)
	}
	file := filepath.Join(dir, "shell_audit_"+sid+".jsonl")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(b, []byte("U1"), []byte("U9"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(dir, sid, id, args); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "do not verify") {
		t.Errorf("a changed journal: %v", err)
	}
}
