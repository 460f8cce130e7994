package e2e

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
)

// captureKey makes a key file, and names it to the bot.
func captureKey(t *testing.T) (path, env string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "capture.key")
	if err := os.WriteFile(path, []byte(id.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, "GHOST_CAPTURE_KEY_FILE=" + path
}

// magics begin the files that must not lie on disk: captures of both kinds and
// orders, and pictures.
var magics = []string{"\xd4\xc3\xb2\xa1", "\xa1\xb2\xc3\xd4", "\x4d\x3c\xb2\xa1", "\xa1\xb2\x3c\x4d", "\x0a\x0d\x0d\x0a", "\x89PNG"}

// encrypted looks at every file of the state directory: none is a plain capture or a
// plain picture, none has the payload, and the working directory of the case has
// encrypted ones alone, which are returned. Nothing of the case stays in memory.
func (l *lab) encrypted(sid, payload string) []string {
	l.t.Helper()
	var files []string
	look := func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if payload != "" && bytes.Contains(b, []byte(payload)) {
			l.t.Errorf("the payload is in %s", path)
		}
		for _, m := range magics {
			if bytes.HasPrefix(b, []byte(m)) {
				l.t.Errorf("%s is not encrypted", path)
			}
		}
		if filepath.Dir(path) == filepath.Join(l.state, "work", sid) {
			files = append(files, filepath.Base(path))
			if !bytes.HasPrefix(b, []byte("age-encryption.org/v1\n")) {
				l.t.Errorf("%s is not encrypted", path)
			}
		}
		return nil
	}
	if err := filepath.WalkDir(l.state, look); err != nil {
		l.t.Fatal(err)
	}
	memory, err := filepath.Glob("/dev/shm/ghostbot-*/" + sid + "/*")
	if err != nil || len(memory) > 0 {
		l.t.Errorf("in memory: %v, %v", memory, err)
	}
	return files
}

// TestCapturesAreEncrypted is a case that captures packets of this machine with their
// payload, reads the capture and draws it, with a key: the thread has its pictures, and the
// disk has nothing that anybody could read. The age of Debian opens what lies there; the report holds
// against it with the key, and without it one line says what is needed.
func TestCapturesAreEncrypted(t *testing.T) {
	t.Setenv("RUNTIME_DIRECTORY", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	payload := "what a customer wrote " + strings.Repeat("x", 64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(payload)) }))
	t.Cleanup(srv.Close)
	addr := hostOf(t, srv.URL)
	port := addr[strings.LastIndexByte(addr, ':')+1:]
	talk(t, addr)
	key, set := captureKey(t)
	model, env := scripted(t, "gemini", strings.NewReplacer("PORT", port, "BIN", filepath.Join(binDir, "ghostbot")).Replace(plotsScript))
	l := newLab(t, append(env, set)...)
	l.run()
	l.command("incidents", l.approver(0), "/ghost investigate slow answers of "+addr)
	card := l.find(caseLimit, "incidents", "slow", "Approval needed: timeout 6 tcpdump")
	if o := l.click("incidents", l.approver(1), card.TS, "Approve"); !o.OK || o.private() != "" {
		t.Fatalf("%+v", o)
	}
	sid := l.sid("incidents", "slow")
	l.until(90*time.Second, "the report", func() bool { return l.resting("incidents", "slow") })
	l.closed(sid)
	for _, p := range model.Problems() {
		t.Error(p)
	}
	l.pictures("incidents", "slow")
	files := l.encrypted(sid, payload[:22])
	for _, want := range []string{"seen.pcap.age", "seen_throughput.png.age", "seen_forensic_report.md.age"} {
		if !slices.Contains(files, want) {
			t.Errorf("%s is not in %v", want, files)
		}
	}
	capture := filepath.Join(l.state, "work", sid, "seen.pcap.age")
	if _, err := exec.LookPath("age"); err == nil {
		if b, err := exec.Command("age", "-d", "-i", key, capture).Output(); err != nil || !bytes.Contains(b, []byte(payload)) {
			t.Errorf("what age makes of it has no payload: %d bytes, %v", len(b), err)
		}
	} else {
		t.Log("age (Debian package age) is not installed: it was not asked")
	}
	report := filepath.Join(l.state, "audit", "ghost_rca_"+sid+".md")
	for _, tt := range []struct {
		key, want string
		args      []string
	}{
		{key, "seen.pcap.age (" + sid + "_", []string{"audit", "verify", sid, "--rca", report}},
		{key, ": as recorded", []string{"audit", "verify", sid, "--rca", report}},
		{"", ": encrypted", []string{"audit", "verify", sid, "--rca", report}},
		{key, "seen.pcap", []string{"pcap", capture}},
		{"", "it is encrypted: name the file with its age identity in GHOST_CAPTURE_KEY_FILE", []string{"pcap", capture}},
	} {
		cmd := exec.Command(filepath.Join(binDir, "ghostbot"), append(tt.args[:1:1], append([]string{"--state-dir", l.state}, tt.args[1:]...)...)...)
		cmd.Env = append(os.Environ(), "GHOST_CAPTURE_KEY_FILE="+tt.key)
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), tt.want) {
			t.Errorf("with key %q %v: %q is not in\n%s", tt.key, tt.args, tt.want, out)
		}
	}
}
