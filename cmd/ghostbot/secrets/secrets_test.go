package secrets

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ghostbot/internal/input"
)

// unset empties every variable that the machine of the test has.
func unset(t *testing.T) {
	t.Helper()
	for name := range Variables {
		t.Setenv(name, "")
	}
}

// Each variable alone gives its secret, and gives nothing when it holds none.
func TestEachVariable(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		name := filepath.Join(dir, rand.Text())
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for name, kind := range Variables {
		want := rand.Text() + "/+%" // so that its escaped form differs
		var v string
		switch kind {
		case Value:
			v = want
		case URL:
			v = "redis://user:" + url.PathEscape(want) + "@db.example.com:6379/1"
		case Headers:
			v = "x-a=1,authorization=Bearer%20" + url.PathEscape(want)
		case Password:
			v = file(want + "\r\nthe rest is a remark\n")
		case Lines:
			v = file("# made on a day\nanother-key-of-the-deployment\r\n\n" + want + "\n")
		case Keys:
			v = file("older-key-of-the-deployment") + ", " + file("\n"+want+"\n")
		}
		t.Run(name, func(t *testing.T) {
			unset(t)
			if got := Known(); len(got) > 0 {
				t.Errorf("nothing is set, and %d values are known", len(got))
			}
			t.Setenv(name, v)
			if got := Known(); !slices.Contains(got, want) {
				t.Errorf("%s: its value is not among %d known", kind, len(got))
			}
		})
	}
}

func TestOddValues(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, []byte(strings.Repeat("x", maxFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		kind Kind
		v    string
		want []string
	}{
		{URL, "redis://db.example.com", nil},
		{URL, "redis://user@db.example.com", nil},
		{URL, "redis://:pa%ss@db.example.com", []string{"pa%ss"}}, // no URL, and the password shows all the same
		{URL, "http://user:a@b@db.example.com", []string{"a@b", "a@b", "a@b"}},
		{URL, "https://" + strings.Repeat("t", telling) + "@db.example.com", []string{strings.Repeat("t", telling)}}, // a token, and no password
		{URL, "https://api.example.com/v1?key=k%2Fey&page=2&q=" + strings.Repeat("q", telling) + "#f", []string{"k/ey", "k%2Fey", strings.Repeat("q", telling), strings.Repeat("q", telling)}},
		{URL, "https://api.example.com:port/%zz?access_token=word;x", []string{"word", "word"}}, // no URL
		{URL, "https://api.example.com/?page=2&token=", nil},
		{Headers, "alone", nil},
		{Headers, "x-scope-orgid=production,x-api-key=hunter", []string{"hunter", "hunter", "hunter"}},
		{Password, filepath.Join(dir, "none"), []string{""}},
		{Password, dir, []string{""}},
		{Password, "/dev/zero", []string{""}},
		{Keys, big, []string{""}},
		{Lines, big, nil},
		{"", "x", nil},
	} {
		if got := values(tc.kind, tc.v); !slices.Equal(got, tc.want) {
			t.Errorf("%s %q: got %q, want %q", tc.kind, tc.v, got, tc.want)
		}
	}
}

// TestThroughPipe: what comes through a pipe is masked as well, and whoever uses it
// still gets it.
func TestThroughPipe(t *testing.T) {
	unset(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("hunter-of-the-pipe\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	name := fmt.Sprintf("/dev/fd/%d", r.Fd())
	t.Setenv("GHOST_REDIS_PASSWORD_FILE", name)
	for range 2 {
		if got := Known(); !slices.Contains(got, "hunter-of-the-pipe") {
			t.Errorf("%q", got)
		}
	}
	if b, err := input.Secret(name, maxFile); err != nil || string(b) != "hunter-of-the-pipe\n" {
		t.Errorf("%q, %v", b, err)
	}
}
