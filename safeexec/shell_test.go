package safeexec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNew(t *testing.T) {
	tmp := t.TempDir()
	file := filepath.Join(tmp, "file")
	link := filepath.Join(tmp, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(tmp, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"nothing", func(*Options) {}, ""},
		{"session", func(o *Options) { o.SessionID = "" }, "safeexec: session id is required"},
		{"policy", func(o *Options) { o.Policy = nil }, "safeexec: policy is required"},
		{"journal", func(o *Options) { o.Journal = nil }, "safeexec: journal is required"},
		{"approver", func(o *Options) { o.Approver = nil }, "safeexec: approver is required"},
		{"redactor", func(o *Options) { o.Redactor = nil }, "safeexec: redactor is required"},
		{"folder", func(o *Options) { o.Dir = "" }, "safeexec: working directory is required"},
		{"folder is a file", func(o *Options) { o.Dir = file }, "not a directory"},
		{"folder is a link", func(o *Options) { o.Dir = link }, "is not a directory"},
		{"negative", func(o *Options) { o.Lease = -1 }, "safeexec: negative duration -1ns"},
		{"relative path", func(o *Options) { o.Path = "/bin:." }, `safeexec: search path "." is not absolute`},
	} {
		j := &memory{}
		o := labOptions(tmp, filepath.Join(tmp, "work"), j, newPeople(j, nobody))
		c.change(&o)
		_, err := New(o)
		if got := errText(err); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if fi, err := os.Stat(filepath.Join(tmp, "work")); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("working directory: %v, %v", fi, err)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestZeroCommand(t *testing.T) {
	var c Command
	if v := c.Verdict(); v.Class != Forbidden || v.Argv != nil {
		t.Errorf("the zero command is %+v", v)
	}
	if c.Argv() != nil || c.Display() != "" {
		t.Errorf("the zero command has content: %q %q", c.Argv(), c.Display())
	}
}

// TestCommandIsImmutable: what was classified cannot be changed afterwards.
func TestCommandIsImmutable(t *testing.T) {
	l := newLab(t, nobody)
	c := l.Parse("frob x")
	c.Argv()[0] = "rm"
	c.Verdict().Argv[0] = "rm"
	if diff := cmp.Diff([]string{"frob", "x"}, c.Argv()); diff != "" || c.Display() != "frob x" {
		t.Errorf("changed to %s: %s", c.Display(), diff)
	}
}

func TestDisplay(t *testing.T) {
	l := newLab(t, nobody)
	for text, want := range map[string]string{
		"frob  x":           "frob x",
		"uptime | frob":     "uptime | frob",
		"uptime\x00|\u00e9": `uptime\x00|\u00e9`,
		"echo \"a":          `echo "a`,
	} {
		got := l.Parse(text).Display()
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestTimeouts(t *testing.T) {
	l := newLab(t, nobody, func(o *Options) { o.Timeout, o.MaxTimeout = 0, 0 })
	for _, c := range []struct {
		tool string
		want time.Duration
		got  time.Duration
	}{
		{"ping", 0, time.Minute},
		{"az", 0, 2 * time.Minute},
		{"az", 5 * time.Second, 5 * time.Second},
		{"/opt/az", 0, 2 * time.Minute},
		{"ping", time.Hour, 10 * time.Minute},
		{"ping", -time.Hour, time.Minute},
	} {
		if got := l.timeout(c.tool, c.want); got != c.got {
			t.Errorf("%s %v: got %v, want %v", c.tool, c.want, got, c.got)
		}
	}
}

// TestDigest: everything that an approval binds changes it, nothing else does,
// and no two lists share an encoding.
func TestDigest(t *testing.T) {
	base := Proposal{
		Argv: []string{"a", "bc"}, Program: "/p", Dir: "/d", Identity: "i", Target: "t", Requester: "r", Policy: "v",
		Expires: time.Date(2026, 3, 14, 10, 45, 12, 5, time.UTC),
	}
	// Computed from the documented encoding by another program.
	if got, want := Digest(base), "c3250d86204be81d336283d16a9379385557336974c20d6707262c00e59eb6f7"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	seen := map[string]string{Digest(base): "base"}
	for name, change := range map[string]func(*Proposal){
		"argv":      func(p *Proposal) { p.Argv = []string{"ab", "c"} },
		"argv one":  func(p *Proposal) { p.Argv = []string{"a", "bc", ""} },
		"argv join": func(p *Proposal) { p.Argv = []string{"a\n2:bc"} },
		"no argv":   func(p *Proposal) { p.Argv = nil },
		"program":   func(p *Proposal) { p.Program = "/q" },
		"dir":       func(p *Proposal) { p.Dir = "/e" },
		"identity":  func(p *Proposal) { p.Identity = "" },
		"shifted":   func(p *Proposal) { p.Identity, p.Target = "", "it" },
		"target":    func(p *Proposal) { p.Target = "u" },
		"requester": func(p *Proposal) { p.Requester = "s" },
		"policy":    func(p *Proposal) { p.Policy = "w" },
		"expires":   func(p *Proposal) { p.Expires = p.Expires.Add(1) },
		"no expiry": func(p *Proposal) { p.Expires = time.Time{} },
	} {
		p := base
		change(&p)
		d := Digest(p)
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[d] = name
	}
	same := base
	same.Reasoning, same.AuditID, same.Turn, same.Digest = "x", "y", 7, "z"
	same.Expires = same.Expires.In(time.FixedZone("", 3600))
	if Digest(same) != Digest(base) {
		t.Error("fields that are not bound change the digest")
	}
}

func TestTarget(t *testing.T) {
	for command, want := range map[string]string{
		"ping -c 1 192.0.2.1":                         "192.0.2.1",
		"ping 2001:db8::1":                            "2001:db8::1",
		"curl -sS -o /dev/null https://example.com/x": "example.com",
		"dig +short www.example.com A":                "www.example.com",
		"uptime":                                      "",
		"tcpdump -r /captures/a.pcap":                 "",
		"az group delete -g rg1 --name vm1":           "rg1/vm1",
		"az vm list -g rg1":                           "rg1",
		"az account show":                             "",
		"frob user@example.com a=b.c":                 "",
	} {
		if got := target(strings.Fields(command)); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}

func TestLookUp(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "tool", "")
	for _, f := range []string{"data", "sub/inner"} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755)
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	os.Symlink("tool", filepath.Join(dir, "link"))
	os.Symlink("nowhere", filepath.Join(dir, "dangling"))
	real, err := filepath.EvalSymlinks(filepath.Join(dir, "tool"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"tool": real, "link": real, filepath.Join(dir, "link"): real,
		"data": "", "dangling": "", "sub": "", "sub/inner": "", "./tool": "", "../tool": "", ".": "", "..": "", "": "", "missing": "", dir: "",
	} {
		if got := lookUp(name, dir); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
