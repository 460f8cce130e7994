package show

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/agent"
	"ghostbot/safeexec"
)

// ran adds a command that was approved, and what it printed.
func (s *story) ran(command, out, bad string, exit int, files ...safeexec.Artefact) {
	class := safeexec.Risky
	if strings.HasPrefix(command, "/opt/ghostbot ") { // as the policy has it
		class = safeexec.Safe
	}
	e := s.propose(class, command)
	s.add("shell", "decided", safeexec.Decided{AuditID: e.ID, Decision: "APPROVED", By: "U1"})
	s.add("shell", "intent", map[string]string{"audit_id": e.ID})
	s.add("shell", "outcome", safeexec.Result{AuditID: e.ID, Status: "completed", ExitCode: &exit, Duration: 1.5, Output: out, Stderr: bad, Artefacts: files})
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

// What fits on a card stands there; of what does not, a card has the first lines and the
// thread the whole, once.
func TestLongOutputsAreFiles(t *testing.T) {
	for _, tt := range []struct {
		name, out, bad string
		card           string
		file           string // "": none
	}{
		{"short", "one\ntwo\n", "", "one\ntwo", ""},
		{"six lines", numbered(6), "", strings.TrimSpace(numbered(6)), ""},
		{"seven lines", numbered(7), "", strings.TrimSpace(numbered(6)) + "\n… 1 more lines in the journal", numbered(7)},
		{"one long line", strings.Repeat("x", 1300), "", strings.Repeat("x", 1200) + "…", strings.Repeat("x", 1300) + "\n"},
		{"only an error", "", "no such device\n", "no such device", ""},
		{"both", "out\n", "bad\n", "out\n--- standard error ---\nbad", ""},
		{"nothing", "", "", "", ""},
	} {
		s := &story{t: t}
		s.add("case", "opened", agent.Opened{Symptom: "x"})
		s.ran("tcpdump -i lo", tt.out, tt.bad, 0)
		var files []string
		for _, m := range fold(s.entries).Messages() {
			if m.Card != nil && (m.Card.Output != tt.card || m.Card.File != (tt.file != "")) {
				t.Errorf("%s: card %q, file %v", tt.name, m.Card.Output, m.Card.File)
			}
			if m.Kind == KindFile {
				files = append(files, m.Key)
				if m.Output.AuditID != sid+"_002" || !strings.HasSuffix(m.Output.Text, "\n\n"+tt.file) || !strings.Contains(m.Output.Text, "Command  tcpdump -i lo\nResult   ok\n") {
					t.Errorf("%s: file %+v", tt.name, m.Output)
				}
			}
		}
		if want := map[bool][]string{true: {"output/002"}}[tt.file != ""]; cmp.Diff(want, files) != "" {
			t.Errorf("%s: files %v", tt.name, files)
		}
	}
}

// A case that prints without end adds no files without end.
func TestOutputsAreBounded(t *testing.T) {
	s := &story{t: t}
	s.add("case", "opened", agent.Opened{Symptom: "x"})
	for range outputsMost + 5 {
		s.ran("tcpdump -i lo", numbered(9), "", 0)
	}
	files, said := 0, 0
	for _, m := range fold(s.entries).Messages() {
		if m.Kind == KindFile {
			files++
		}
		if m.Card != nil && m.Card.File {
			said++
		}
	}
	if files != outputsMost || said != files {
		t.Errorf("%d files, %d cards name one, want %d", files, said, outputsMost)
	}
}

// Only what the product's own analysis drew is a picture: nothing looks into one for
// credentials, and any command can call a file that.
func TestOnlyOwnPicturesAreShown(t *testing.T) {
	const analysis = "/opt/ghostbot pcap /tmp/x.pcap --json --plots ."
	file := func(name string) safeexec.Artefact {
		return safeexec.Artefact{Path: "work/" + name, SHA256: strings.Repeat("a", 32) + fmt.Sprintf("%x", name)}
	}
	for _, tt := range []struct {
		command string
		files   []string
		want    []string
	}{
		{analysis, []string{"x_throughput.png", "x_rtt.png", "x_semantic.json"}, []string{"x_throughput.png", "x_rtt.png"}},
		{analysis, []string{"x_secret.png", "x.png", ".png"}, nil},
		{"/opt/ghostbot pcap /tmp/x.pcap --json", []string{"x_rtt.png"}, nil},
		{"/tmp/other pcap /tmp/x.pcap --json --plots .", []string{"x_rtt.png"}, nil},
		{"ghostbot pcap /tmp/x.pcap --json --plots .", []string{"x_rtt.png"}, nil},
		{"curl -o x_rtt.png http://192.0.2.7/secret", []string{"x_rtt.png"}, nil},
		{"tcpdump -w x_rtt.png", []string{"x_rtt.png"}, nil},
	} {
		s := &story{t: t}
		s.add("case", "opened", agent.Opened{Symptom: "x"})
		var files []safeexec.Artefact
		for _, f := range tt.files {
			files = append(files, file(f))
		}
		s.ran(tt.command, "", "", 0, files...)
		s.add("case", "report", Report{Title: "t"})
		var got []string
		for _, m := range fold(s.entries).Messages() {
			if m.Plot != nil {
				got = append(got, m.Plot.Name)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.command, diff)
		}
	}
}
