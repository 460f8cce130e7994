package safeexec

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// A link to a credential store is the store, whatever it is called.
func TestLinks(t *testing.T) {
	l := newLab(t, approve)
	for _, name := range []string{"cat", "tcpdump"} {
		l.program(name, "echo read")
	}
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain.pcap")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := func(name, to string) string {
		at := filepath.Join(dir, name)
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	store := filepath.Join(dir, ".env")
	if err := os.WriteFile(store, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	secret := link("notes.txt", store)
	for command, want := range map[string]Class{
		"cat " + secret:                               Forbidden,
		"cat " + link("again.txt", secret):            Forbidden,
		"tcpdump -nr " + link("a.pcap", store):        Forbidden,
		"cat " + link("fine.txt", plain):              Risky,
		"cat " + filepath.Join(dir, "missing.txt"):    Risky,
		"tcpdump -nr " + link("fine.pcap", plain):     Safe,
		"sudo cat " + secret:                          Forbidden,
		"cat " + filepath.Join(dir, ".", "notes.txt"): Forbidden,
	} {
		if r := l.run(command); r.Classification != want {
			t.Errorf("%s: %s (%s), want %s", command, r.Classification, r.Detail, want)
		}
	}
	if err := os.Symlink(store, filepath.Join(l.dir, "here.txt")); err != nil {
		t.Fatal(err)
	}
	if r := l.run("cat here.txt"); r.Classification != Forbidden {
		t.Errorf("a link in the working directory: %s", r.Classification)
	}
}

// A link that is put in place while people decide starts nothing.
func TestLinkPutInPlace(t *testing.T) {
	dir := t.TempDir()
	file, store := filepath.Join(dir, "notes.txt"), filepath.Join(dir, ".env")
	for _, f := range []string{file, store} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := newLab(t, edit("never"))
	l.program("cat", "echo read")
	l.ppl.answer = func(ctx context.Context, p Proposal) (Decision, error) {
		os.Remove(file)
		os.Symlink(store, file)
		return approve(ctx, p)
	}
	if r := l.run("cat " + file); r.Error != "forbidden_command" || r.Output != "" {
		t.Errorf("%+v", r)
	}
}
