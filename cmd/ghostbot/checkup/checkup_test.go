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
	if onPath("no-such-tool") {
		t.Error("a tool that is not there is found")
	}
	if !onPath("sh") {
		t.Error("sh is not found")
	}
	k := Tools()
	if k.OK != !strings.HasPrefix(k.What, "not installed: ") || k.OK != (k.Hint == "") {
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
