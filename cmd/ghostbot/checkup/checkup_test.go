package checkup

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMayMake(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ path, want string }{
		{dir, ""},
		{filepath.Join(dir, "a", "b", "c"), ""},
		{filepath.Join(dir, "file"), "is not a directory"},
		{filepath.Join(dir, "file", "x"), "not a directory"},
		{"relative/path", ""},
	} {
		err := mayMake(tc.path)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got %v, want %q", tc.path, err, tc.want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d entries after asking, %v", len(entries), err)
	}
	if err := mayMake("/proc/1/nothing"); err == nil {
		t.Error("/proc is taken for a place to write")
	}
}

func TestTools(t *testing.T) {
	empty, all := t.TempDir(), t.TempDir()
	for _, x := range append(tools, azure) {
		if err := os.WriteFile(filepath.Join(all, x.name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	some := t.TempDir()
	for _, x := range tools {
		if mode := map[string]os.FileMode{"tcpdump": 0o644, "ss": 0o644}[x.name]; mode == 0 {
			if err := os.Symlink(filepath.Join(all, x.name), filepath.Join(some, x.name)); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(filepath.Join(some, x.name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		path       string
		cloud, ok  bool
		what, hint string
	}{
		{all, false, true, "tcpdump", ""},
		{empty + ":" + all, true, true, " az", ""},
		{some, false, false, "not installed: ss tcpdump (looked in " + some + ")", "apt-get install iproute2 tcpdump; without tcpdump: no packets of this machine"},
		{some + ":" + all, false, true, "tcpdump", ""},
		{empty, true, false, "not installed: ping dig", "apt-get install iputils-ping bind9-dnsutils iproute2 curl"},
		{empty, true, false, " az ", "without az: no captures in Azure"},
	} {
		k := Tools(tc.path, tc.cloud)
		if k.OK != tc.ok || !strings.Contains(k.What, tc.what) || !strings.Contains(k.Hint, tc.hint) || k.OK != (k.Hint == "") {
			t.Errorf("%s: got %+v", tc.path, k)
		}
	}
	if onPath("no-such-tool", "/usr/bin:/bin") || !onPath("sh", "/nowhere:/usr/bin:/bin") {
		t.Error("what is on the path is not found, or what is not is")
	}
	if k := Tools("", false); k.OK != !strings.HasPrefix(k.What, "not installed: ") {
		t.Errorf("got %+v", k)
	}
}

// A hint is printed on the line of what it explains, and nothing leaves the line.
func TestDoctorLine(t *testing.T) {
	for _, tc := range []struct {
		k    Line
		want string
	}{
		{Line{Name: "a", OK: true, What: "b"}, "ok  a: b\n"},
		{Line{Name: "a", What: "b\n c", Hint: "do d"}, "BAD a: b c (do d)\n"},
	} {
		var out bytes.Buffer
		Print(&out, tc.k, func(s string) string { return strings.Join(strings.Fields(s), " ") })
		if out.String() != tc.want {
			t.Errorf("got %q, want %q", &out, tc.want)
		}
	}
}
