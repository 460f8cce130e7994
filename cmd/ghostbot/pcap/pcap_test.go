package pcap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ghostbot/internal/pcapgen"
)

// verb runs the verb with flags and files.
func verb(ctx context.Context, t *testing.T, args ...string) (string, error) {
	t.Helper()
	var o Options
	fs := flag.NewFlagSet("pcap", flag.ContinueOnError)
	o.Define(fs)
	var files []string
	for len(args) > 0 {
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		if args = fs.Args(); len(args) > 0 {
			files, args = append(files, args[0]), args[1:]
		}
	}
	var out bytes.Buffer
	err := o.Run(ctx, files, Streams{Out: &out, Err: io.Discard, Line: func(s string) string { return s }, Encode: func(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }})
	return out.String(), err
}

func capture(t *testing.T, dir, name, profile string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := pcapgen.Write(f, pcapgen.Options{Profile: profile, Size: 200_000}); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOneAndSeveral(t *testing.T) {
	dir := t.TempDir()
	a, b := capture(t, dir, "a.pcap", "bulk"), capture(t, dir, "b.pcap", "small")
	type doc struct {
		Summary struct {
			File string `json:"file"`
		} `json:"capture_summary"`
	}
	out, err := verb(context.Background(), t, a, "-json")
	var one doc
	if err != nil || json.Unmarshal([]byte(out), &one) != nil || one.Summary.File != "a.pcap" {
		t.Errorf("one: %v, %.100s", err, out)
	}
	out, err = verb(context.Background(), t, a, b, "-json", "-no-hash")
	var two []doc
	if err != nil || json.Unmarshal([]byte(out), &two) != nil || len(two) != 2 || two[1].Summary.File != "b.pcap" {
		t.Errorf("two: %v, %.100s", err, out)
	}
	out, err = verb(context.Background(), t, a, b)
	if err != nil || !strings.Contains(out, "a.pcap: ") || !strings.Contains(out, "b.pcap: ") {
		t.Errorf("for people: %v, %s", err, out)
	}
}

// A terminal shows names as they are; whoever renders the report gets them escaped.
func TestComparisonOnATerminal(t *testing.T) {
	dir := t.TempDir()
	a, b := capture(t, dir, "_a_ [x].pcap", "bulk"), capture(t, dir, "gen__b.pcap", "small")
	for _, tt := range []struct {
		terminal bool
		want     string
	}{{true, "_a_ [x].pcap (A) and gen__b.pcap (B)"}, {false, `\_a\_ \[x\].pcap (A) and gen__b.pcap (B)`}} {
		var out strings.Builder
		o := Options{Compare: b, Mode: Endpoints}
		if err := o.Run(context.Background(), []string{a}, Streams{Out: &out, Err: io.Discard, Terminal: tt.terminal, Line: func(s string) string { return s }}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("terminal %v: no %q in\n%s", tt.terminal, tt.want, out.String())
		}
	}
}

// TestBadFiles: one that is no capture does not keep the others from being read, and is told last.
func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	good, none := capture(t, dir, "a.pcap", "small"), filepath.Join(dir, "none")
	out, err := verb(context.Background(), t, none, good, dir)
	if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "none: no such file") || !strings.Contains(err.Error(), "not a regular file") || !strings.Contains(out, "a.pcap: ") {
		t.Errorf("%v, %s", err, out)
	}
	if out, err = verb(context.Background(), t, none, "-json"); !errors.Is(err, ErrUsage) || out != "" {
		t.Errorf("%v, %q", err, out)
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	a := capture(t, dir, "a.pcap", "small")
	for _, tt := range []struct {
		args []string
		is   error
		want string
	}{
		{[]string{a, "-fail-on", "loud"}, ErrUsage, `invalid value "loud" for flag -fail-on (accepted: info low medium high critical)`},
		{[]string{a, "-filter", "port http"}, ErrUsage, `filter "port http"`},
		{[]string{a, "-mode", "baseline"}, ErrUsage, "flag -mode wants -compare FILE"},
		{[]string{a, "-compare", a, "-mode", "x"}, ErrUsage, `invalid value "x" for flag -mode (accepted: endpoints baseline)`},
		{[]string{a, a, a, "-compare", a, "-mode", "baseline"}, ErrUsage, "not 3"},
		{[]string{a, "-compare", a, "-mode", "baseline", "-plots", "p"}, ErrUsage, "-plots"},
		{[]string{a, "-compare", dir, "-mode", "endpoints"}, ErrUsage, "not a regular file"},
		{[]string{a, "-report-dir", filepath.Join(a, "x")}, ErrWrite, "not a directory"},
		{[]string{a, "-compare", a, "-mode", "baseline", "-report-dir", a}, ErrWrite, "not a directory"},
	} {
		if _, err := verb(context.Background(), t, tt.args...); !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v", tt.args[1:], err)
		}
	}
}

// TestFilterMatchesNothing: nothing was judged, and a check that asks for findings does
// not pass on it.
func TestFilterMatchesNothing(t *testing.T) {
	a := capture(t, t.TempDir(), "a.pcap", "small")
	out, err := verb(context.Background(), t, a, "-filter", "port 1")
	if err != nil || !strings.Contains(out, "filter-matched-nothing: The filter matched none of ") || strings.Contains(out, "healthy") || strings.Contains(out, "holds no packets") {
		t.Errorf("%v, %s", err, out)
	}
	for _, limit := range []string{"low", "critical"} {
		if _, err := verb(context.Background(), t, a, "-filter", "port 1", "-fail-on", limit); !errors.Is(err, ErrReached) {
			t.Errorf("-fail-on %s: %v", limit, err)
		}
	}
	for _, mode := range []string{"endpoints", "baseline"} {
		out, err := verb(context.Background(), t, a, "-compare", a, "-mode", mode, "-filter", "port 1", "-fail-on", "critical")
		if !errors.Is(err, ErrReached) || !strings.Contains(out, "matched none of ") || !strings.Contains(out, "nothing was compared") || strings.Contains(out, "STABLE") || strings.Contains(out, "CLEAN") || strings.Contains(out, "0.00 ms") {
			t.Errorf("-compare -mode %s: %v, %s", mode, err, out)
		}
	}
	if _, err := verb(context.Background(), t, a, "-fail-on", "critical"); err != nil {
		t.Errorf("without a filter: %v", err)
	}
}

func TestInterrupted(t *testing.T) {
	a := capture(t, t.TempDir(), "a.pcap", "small")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, args := range [][]string{{a}, {a, "-compare", a, "-mode", "endpoints"}} {
		if _, err := verb(ctx, t, args...); !errors.Is(err, ErrInterrupted) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestLostOutput: what cannot be printed is an error.
func TestLostOutput(t *testing.T) {
	a := capture(t, t.TempDir(), "a.pcap", "small")
	broken := errors.New("broken")
	o := Options{JSON: true}
	s := Streams{Out: io.Discard, Err: io.Discard, Line: func(s string) string { return s }, Encode: func(io.Writer, any) error { return broken }}
	if err := o.Run(context.Background(), []string{a}, s); !errors.Is(err, broken) {
		t.Errorf("one file: %v", err)
	}
	o.Compare, o.Mode = a, Baseline
	if err := o.Run(context.Background(), []string{a}, s); !errors.Is(err, broken) {
		t.Errorf("comparison: %v", err)
	}
}

// TestPlace: a file appears whole, for its owner only, and a second one replaces it.
func TestPlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "deep")
	for _, content := range []string{"first", "second"} {
		if err := (&run{Options: &Options{}}).place(dir, "x.md", []byte(content)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "x.md")); err != nil || string(b) != content {
			t.Errorf("%q, %v", b, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (&run{Options: &Options{}}).place(dir, "taken", nil); !errors.Is(err, ErrWrite) {
		t.Errorf("over a directory: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".ghostbot-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestAllFiles: what each flag writes, and that nothing is written without flags.
func TestAllFiles(t *testing.T) {
	dir := t.TempDir()
	a := capture(t, dir, "a.pcap", "bulk")
	for flags, want := range map[string][]string{
		"":                          nil,
		"-json":                     nil,
		"-report-dir OUT":           {"a_executive_summary.md", "a_forensic_report.md"},
		"-semantic-dir OUT":         {"a_semantic.json"},
		"-plots OUT":                {"a_rtt.png", "a_sequence.png", "a_throughput.png"}, // bulk has a worst stream
		"-plots OUT -filter udp":    nil,
		"-semantic-dir OUT -frames": {"a_semantic.json"},
		"-compare " + a + " -mode endpoints -report-dir OUT": {"a_executive_summary.md", "a_forensic_report.md", "a_vs_a_comparison.md"},
	} {
		out := filepath.Join(dir, "out")
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
		args := append([]string{a}, strings.Fields(strings.ReplaceAll(flags, "OUT", out))...)
		if _, err := verb(context.Background(), t, args...); err != nil {
			t.Errorf("%s: %v", flags, err)
		}
		var got []string
		entries, _ := os.ReadDir(out)
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", flags, got, want)
		}
	}
}
