package evidence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"filippo.io/age"

	"ghostbot/agent/rca"
	"ghostbot/audit"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/cmd/ghostbot/vault"
)

const sid = "ghost_20260314_104512"

// written is a case on disk whose one command left a file behind.
type written struct {
	t                 *testing.T
	dir, report, left string
	vault             *vault.Vault
}

type m = map[string]any

func write(t *testing.T) *written {
	t.Helper()
	w := &written{t: t, dir: t.TempDir()}
	w.left = filepath.Join(t.TempDir(), "a.pcap")
	w.put(w.left, "packets")
	sum := sha256.Sum256([]byte("packets"))
	log, err := audit.Open(context.Background(), audit.Options{Dir: w.dir, SID: sid, Fence: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	add := func(journal, kind string, body any) string {
		n, _, err := log.Journal(journal).Append(context.Background(), kind, body)
		if err != nil {
			t.Fatal(err)
		}
		return audit.ID(sid, n)
	}
	add(audit.Case, "opened", m{"symptom": "s"})
	id := add(audit.Shell, "proposed", m{"argv": []string{"tcpdump"}, "command": "tcpdump -w a.pcap", "classification": "RISKY"})
	add(audit.Shell, "outcome", m{"audit_id": id, "status": "completed", "exit_code": 0, "artefacts": []m{{"path": w.left, "size": 7, "sha256": hex.EncodeToString(sum[:])}}})
	add(audit.Case, "concluded", m{"confidence": "low", "ended_by": "brain"})
	in, err := Load(ring(t, w.dir), sid, audit.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := rca.Build(in)
	if err != nil {
		t.Fatal(err)
	}
	w.report = filepath.Join(w.dir, "report.md")
	w.put(w.report, r.Markdown)
	return w
}

func ring(t *testing.T, dir string) *keyring.Ring {
	t.Helper()
	r, err := keyring.New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (w *written) put(path, text string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *written) verify() (Answer, string) {
	w.t.Helper()
	a, err := Verify(ring(w.t, w.dir), sid, w.report, w.vault, audit.VerifyOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var b bytes.Buffer
	a.Print(&b, func(s string) string { return s })
	return a, b.String()
}

// TestArtefactsOnDisk: what became of the file is said; only a changed one is a fault.
func TestArtefactsOnDisk(t *testing.T) {
	for _, tc := range []struct {
		name, state string
		ok          bool
		change      func(path string) error
	}{
		{"as it was", "as recorded", true, func(string) error { return nil }},
		{"gone", "missing", true, os.Remove},
		{"changed", "changed", false, func(p string) error { return os.WriteFile(p, []byte("pockets"), 0o600) }},
		{"longer", "changed", false, func(p string) error { return os.WriteFile(p, []byte("packets!"), 0o600) }},
		{"a pipe", "changed", false, func(p string) error { return errors.Join(os.Remove(p), syscall.Mkfifo(p, 0o600)) }},
		{"a link", "changed", false, func(p string) error { return errors.Join(os.Remove(p), os.Symlink("/dev/zero", p)) }},
		{"a directory", "changed", false, func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) }},
	} {
		w := write(t)
		if err := tc.change(w.left); err != nil {
			t.Fatal(err)
		}
		a, text := w.verify()
		if a.OK != tc.ok || !strings.Contains(text, w.left+" ("+sid+"_002): "+tc.state+"\n") || tc.ok != (a.Why == "") {
			t.Errorf("%s: ok %v, %q\n%s", tc.name, a.OK, a.Why, text)
		}
	}
}

// TestEncryptedArtefacts: the digest is that of what is in a file, so that it holds when the
// file is encrypted, and encrypted again for another key.
func TestEncryptedArtefacts(t *testing.T) {
	key := func() *vault.Vault {
		id, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(id.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := vault.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	ours, other := key(), key()
	for _, tc := range []struct {
		name, state, content string
		ok                   bool
		by, with             *vault.Vault
	}{
		{"with its key", "as recorded", "packets", true, ours, ours},
		{"for a new key", "as recorded", "packets", true, other, other},
		{"changed", "changed", "pockets", false, ours, ours},
		{"longer", "changed", "packets!", false, ours, ours},
		{"with another key", "encrypted", "packets", true, ours, other},
		{"without a key", "encrypted", "packets", true, ours, nil},
	} {
		w := write(t)
		w.vault = tc.with
		name, err := tc.by.Place(filepath.Dir(w.left), filepath.Base(w.left), strings.NewReader(tc.content))
		if err == nil {
			err = os.Rename(filepath.Join(filepath.Dir(w.left), name), w.left)
		}
		if err != nil {
			t.Fatal(err)
		}
		a, text := w.verify()
		if a.OK != tc.ok || !strings.Contains(text, w.left+" ("+sid+"_002): "+tc.state) {
			t.Errorf("%s: ok %v, %q\n%s", tc.name, a.OK, a.Why, text)
		}
	}
}

// TestVerifyReport: what is said about a report, and nothing about it when the
// journals do not verify.
func TestVerifyReport(t *testing.T) {
	w := write(t)
	a, text := w.verify()
	if !a.OK || !a.RCA.Rebuilt || !strings.Contains(text, "ok  report: it is what these journals give; it cites ") {
		t.Errorf("%s", text)
	}
	if raw, err := json.Marshal(a); err != nil || !strings.HasPrefix(string(raw), `{"session_id":"`+sid+`","records":4,"ok":true`) || !strings.Contains(string(raw), `"artefacts":[{"path":`) {
		t.Errorf("%s, %v", raw, err)
	}
	b, _ := os.ReadFile(w.report)
	w.put(w.report, strings.Replace(string(b), "SHA-256 `", "SHA-256 `00", 1))
	if a, text := w.verify(); a.OK || !strings.Contains(text, "BAD report: line ") {
		t.Errorf("%s", text)
	}
	name := filepath.Join(w.dir, audit.FileName(sid, audit.Case))
	j, _ := os.ReadFile(name)
	w.put(name, strings.Replace(string(j), `"low"`, `"lOw"`, 1))
	if a, text := w.verify(); a.OK || a.RCA != nil || a.FirstBad == nil || strings.Count(text, "\n") != 1 {
		t.Errorf("changed journals: %s", text)
	}
	if in, err := Load(ring(t, w.dir), sid, audit.VerifyOptions{}); err != nil || in.Verified.OK || len(in.Entries) != 4 {
		t.Errorf("%d entries, %v", len(in.Entries), err)
	}
	if a, err := Verify(ring(t, t.TempDir()), sid, w.report, w.vault, audit.VerifyOptions{}); err != nil || a.OK || a.Why == "" {
		t.Errorf("no journals: %+v, %v", a, err)
	}
}

// TestFilesThatAreNoReport are refused without being read, whatever they are.
func TestFilesThatAreNoReport(t *testing.T) {
	w := write(t)
	fifo := filepath.Join(w.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(w.dir, "long")
	w.put(long, "")
	if err := os.Truncate(long, rca.MaxFile+1); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, long, w.dir, "/dev/zero", filepath.Join(w.dir, "none")} {
		if _, err := Verify(ring(t, w.dir), sid, path, nil, audit.VerifyOptions{}); !errors.Is(err, ErrNoReport) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestBundle: the manifest names what is there, and only that.
func TestBundle(t *testing.T) {
	w := write(t)
	man, data, err := Bundle(ring(t, w.dir), sid, "report.md")
	if err != nil || !man.Verified.OK || len(man.Files) != 3 || len(data) == 0 {
		t.Fatalf("%+v, %v", man, err)
	}
	os.Remove(w.report)
	if man, _, err = Bundle(ring(t, w.dir), sid, "report.md"); err != nil || len(man.Files) != 2 {
		t.Errorf("%+v, %v", man, err)
	}
	os.Mkdir(w.report, 0o700)
	if _, _, err = Bundle(ring(t, w.dir), sid, "report.md"); err == nil {
		t.Error("a directory is bundled")
	}
}
