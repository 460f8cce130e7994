package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// printing opens a case whose waiting card runs a command with a long and hostile output.
func (l *lab) printing(secret string) trap {
	l.t.Helper()
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "line %d <!channel> <https://evil.example.com|https://good.example.com> ```\n", i+1)
	}
	fmt.Fprintf(&b, "token=%s\n\u202egnp.exe \x1b[31mred <!here>\n", secret)
	name := filepath.Join(l.t.TempDir(), "printed.txt")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		l.t.Fatal(err)
	}
	tr := l.trap("incidents")
	o := l.click("incidents", l.approver(0), tr.card.TS, "Modify")
	if o := l.submit(o.ViewID, l.approver(0), map[string]any{"command": "nl -ba " + name}); !o.OK {
		l.t.Fatalf("edit: %+v", o)
	}
	tr.card = l.find(caseLimit, "incidents", "checkout", "Approval needed: nl")
	return tr
}

// outputs are the files of outputs in the thread: names and contents.
func (l *lab) outputs() (names []string, text string) {
	l.t.Helper()
	for _, m := range l.thread("incidents", "checkout") {
		for _, f := range m.Files {
			if strings.HasPrefix(f.Name, "ghost_output_") {
				names = append(names, f.Name)
				if got, ok := l.slack.Workspace().File(f.ID); ok {
					text = string(got.Content)
				}
			}
		}
	}
	return names, text
}

// TestLongOutputIsAFile: what is too long for a card stands in the thread as a file: once,
// also when Slack's answer is lost or the bot is killed in between, and without anything that the
// gate took out.
func TestLongOutputIsAFile(t *testing.T) {
	t.Parallel()
	secret := "xox" + "b-" + strings.Repeat("4", 12) + "-" + strings.Repeat("aB3x", 6)
	for _, tt := range []struct {
		name string
		bad  map[string]any
		kill bool
	}{
		{name: "in a calm"},
		{name: "answer lost", bad: map[string]any{"kind": "lose_reply", "method": "files.completeUploadExternal", "times": 1}},
		{name: "shown late", bad: map[string]any{"kind": "lose_late", "method": "files.completeUploadExternal", "ms": 8000, "times": 1}},
		{name: "killed", bad: map[string]any{"kind": "slow", "method": "files.completeUploadExternal", "ms": 1500, "times": 1}, kill: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			l.run()
			tr := l.printing(secret)
			if tt.bad != nil {
				l.fault(tt.bad)
			}
			if _, taken := tr.press(l.approver(1), "Approve"); !taken {
				t.Fatal("the approval is not taken")
			}
			if tt.kill {
				l.find(caseLimit, "incidents", "checkout", "Ran: nl")
				time.Sleep(400 * time.Millisecond)
				l.kill()
				l.run()
			}
			l.until(90*time.Second, "the file is there", func() bool { names, _ := l.outputs(); return len(names) > 0 })
			tr.end()
			names, text := l.outputs()
			if len(names) != 1 || !strings.HasPrefix(names[0], "ghost_output_"+tr.sid+"_") || !strings.HasSuffix(names[0], ".txt") {
				t.Fatalf("files %v", names)
			}
			for _, want := range []string{"line 1 <!channel>", "line 60 ", "Entry    " + tr.sid, "Result   ok", "gnp.exe "} {
				if !strings.Contains(text, want) {
					t.Errorf("the file lacks %q:\n%.2000s", want, text)
				}
			}
			if strings.Contains(text, secret) || strings.ContainsAny(text, "\u202e\x1b") {
				t.Error("the file has what the gate takes out")
			}
			for _, m := range l.thread("incidents", "checkout") {
				if slices.Contains(m.Paged, l.users["support-desk"].ID) { // no approver, and did not ask: only a mention of everybody reaches them
					t.Errorf("everybody is paged: %s", m.Text)
				}
			}
			card := l.at(tr.card.TS)
			if !strings.Contains(string(card.Blocks), names[0]) || strings.Contains(string(card.Blocks), "line 7 ") {
				t.Errorf("the card: %s", card.Blocks)
			}
			l.whole(tr.sid, names[0])
		})
	}
}

// whole checks that nothing stands in a file that the journal does not have.
func (l *lab) whole(sid, name string) {
	l.t.Helper()
	_, text := l.outputs()
	_, body, _ := strings.Cut(text, "\n\n")
	for _, e := range l.journal(sid) {
		var r struct {
			AuditID string `json:"audit_id"`
			Output  string `json:"output"`
		}
		if e.Kind == "outcome" && json.Unmarshal(e.Body, &r) == nil && "ghost_output_"+r.AuditID+".txt" == name {
			said := strings.NewReplacer("\u202e", `\u202e`, "\x1b", `\u001b`).Replace(strings.TrimRight(r.Output, "\n"))
			if strings.TrimRight(body, "\n") != said {
				l.t.Errorf("the file is not what the journal has:\n%s\n%s", body, said)
			}
			return
		}
	}
	l.t.Errorf("the journal has no output for %s", name)
}

// TestFileThatSlackRefuses: without the scope, or where uploads are off, the thread says that
// the file does not come, once, and the case goes on to its end.
func TestFileThatSlackRefuses(t *testing.T) {
	l := newLab(t)
	l.run()
	tr := l.printing("nothing")
	l.fault(map[string]any{"kind": "error", "method": "files.getUploadURLExternal", "error": "file_uploads_disabled", "times": 100})
	if _, taken := tr.press(l.approver(1), "Approve"); !taken {
		t.Fatal("the approval is not taken")
	}
	l.find(caseLimit, "incidents", "checkout", "The output of entry")
	tr.end()
	said := map[string]int{}
	for _, m := range l.thread("incidents", "checkout") {
		if what, _, ok := strings.Cut(m.Text, " could not be added as a file: file_uploads_disabled"); ok {
			said[strings.Fields(what)[1]]++
		}
	}
	if said["output"] != 1 || said["report"] != 1 {
		t.Errorf("the thread says %v", said)
	}
}
