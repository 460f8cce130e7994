package policy

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shared opens a regression corpus that stands beside the module. Without it
// the test is skipped, except where CI promises that it is there.
func shared(t *testing.T, name string) *bufio.Scanner {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.Open(filepath.Join(dir, "..", "shared", "vectors", name))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("the regression data is not here: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	return s
}

func rows[T any](t *testing.T, name string) []T {
	t.Helper()
	var out []T
	for s := shared(t, name); s.Scan(); {
		var r T
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return out
}

// percent fails when got of total is below (or, for bar 0, above) the bar.
func percent(t *testing.T, what string, got, total int, bar float64) {
	t.Helper()
	p := 100 * float64(got) / float64(total)
	t.Logf("%s: %d of %d (%.1f %%)", what, got, total, p)
	if p < bar {
		t.Errorf("%s: %.1f %%, the bar is %.1f %%", what, p, bar)
	}
}

func TestGateCorpus(t *testing.T) {
	p := New(Options{})
	catastrophes, found := 0, 0
	for _, r := range rows[struct {
		Command string
		MustBe  string `json:"must_be"`
	}](t, "gate.jsonl") {
		v := p.Classify(r.Command)
		if v.Class == Safe {
			t.Errorf("SAFE, though it must not be: %q", r.Command)
		}
		if r.MustBe == "FORBIDDEN" {
			catastrophes++
			if v.Class == Forbidden {
				found++
			} else {
				t.Errorf("%s, though it is a catastrophe: %q", v.Class, r.Command)
			}
		}
	}
	percent(t, "catastrophes forbidden", found, catastrophes, 100)
}

func TestDiagnosticsCorpus(t *testing.T) {
	p := New(Options{})
	safe, runs := 0, 0
	for _, r := range rows[struct {
		Command, Should string
		Arguable        bool
	}](t, "diagnostics.jsonl") {
		if r.Arguable {
			continue
		}
		v := p.Classify(r.Command)
		if r.Should == "SAFE" {
			safe++
			if v.Class == Safe {
				runs++
			} else {
				t.Logf("a nuisance: %q: %s", r.Command, v.Reason)
			}
		} else if v.Class == Safe {
			t.Errorf("SAFE, though a person should see it: %q", r.Command)
		}
	}
	percent(t, "diagnostics that run without a person", runs, safe, 98)
}

func TestAzCorpus(t *testing.T) {
	p := New(Options{})
	reads, runs := 0, 0
	for _, r := range rows[struct{ Command, Effect string }](t, "az_commands.jsonl") {
		v := p.Classify("az " + r.Command)
		switch {
		case r.Effect == "read":
			reads++
			if v.Class == Safe {
				runs++
			}
		case v.Class == Safe:
			t.Errorf("SAFE, though its effect is %s: az %s", r.Effect, r.Command)
		}
		if v.Environment != "azure" {
			t.Errorf("az %s: environment %q", r.Command, v.Environment)
		}
	}
	percent(t, "az reads that run without a person", runs, reads, 95)
}

// deviations are the rows of the original implementation's own tests that this
// policy answers differently, on purpose.
var deviations = map[string]struct{ class, why string }{
	"az keyvault secret get --name dbpass --vault-name myvault": {"RISKY", "no such az command; what is unknown is never SAFE, and it is meant to print a secret"},
	"az login":                            {"RISKY", "changes who is signed in, for every later command"},
	"ping 8.8.8.8":                        {"RISKY", "never ends without a count; the reason says: add -c 4"},
	"ping 8.8.8.8 || reboot":              {"FORBIDDEN", "a part of it is a catastrophe"},
	"dig google.com ; shutdown now":       {"FORBIDDEN", "a part of it is a catastrophe; the original accepts either"},
	"pcap_forensics.py --input file.pcap": {"RISKY", "a script of another product; this one's own verb is known by its absolute path"},
	"ping " + strings.Repeat("a", 10000):  {"RISKY", "no host name is that long, and it has no count"},
}

func TestOriginalTests(t *testing.T) {
	p := New(Options{})
	used := map[string]bool{}
	for _, r := range rows[struct{ Command, Expect, Kind string }](t, "safeexec_classify.jsonl") {
		if r.Kind != "upstream_test" {
			continue
		}
		cmd := strings.ReplaceAll(r.Command, "{TMP}", "/tmp")
		got := p.Classify(cmd).Class.String()
		key := cmd
		if strings.HasPrefix(cmd, "ping aaaa") {
			key = "ping " + strings.Repeat("a", 10000)
		}
		d, listed := deviations[key]
		switch {
		case listed && got != d.class:
			t.Errorf("%.80q is %s, the table of deviations says %s", cmd, got, d.class)
		case listed:
			used[key] = true
		case got != r.Expect:
			t.Errorf("%.80q is %s, the original's test says %s", cmd, got, r.Expect)
		}
	}
	for key := range deviations {
		if !used[key] {
			t.Errorf("the deviation %.60q is not needed", key)
		}
	}
}
