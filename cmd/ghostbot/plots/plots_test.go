package plots

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"ghostbot/cmd/ghostbot/vault"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	good := put("c_rtt.png", "png")
	put("c_forensic_report.md", "# x\n\n![Round-trip time: 3 ms, then 240 ms](./c_rtt.png)\n![](c_other.png)\n")
	other := put("c_other.png", "png2")
	secret := filepath.Join(t.TempDir(), "secret.png")
	if err := os.WriteFile(secret, []byte("png"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "link.png")); err != nil {
		t.Fatal(err)
	}
	large := put("large.png", strings.Repeat("x", Most+1))
	for _, tt := range []struct {
		name, sum, alt string
		ok             bool
	}{
		{"c_rtt.png", good, "Round-trip time: 3 ms, then 240 ms", true},
		{"c_other.png", other, "c_other.png", true},
		{"c_rtt.png", other, "", false},
		{"c_rtt.png", "", "", false},
		{"link.png", good, "", false},
		{"../secret.png", good, "", false},
		{"c_forensic_report.md", good, "", false},
		{"large.png", large, "", false},
		{"none.png", good, "", false},
	} {
		png, alt, err := Read(nil, dir, tt.name, tt.sum)
		if (err == nil) != tt.ok || alt != tt.alt || tt.ok && len(png) == 0 {
			t.Errorf("Read(%s) = %d bytes, %q, %v", tt.name, len(png), alt, err)
		}
	}
	if _, _, err := Read(nil, dir, "c_rtt.png", other); !errors.Is(err, ErrChanged) {
		t.Errorf("another hash: %v", err)
	}
	if _, _, err := Read(nil, filepath.Join(dir, "none"), "c_rtt.png", good); err == nil {
		t.Error("a directory that is not there")
	}
}

// TestReadEncrypted: a picture is known by its own name, and so is the report that says what
// it shows, when both lie encrypted.
func TestReadEncrypted(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir, key := t.TempDir(), filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(id.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := vault.Load(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"c_rtt.png": "png", "c_forensic_report.md": "![Round-trip time: 3 ms](./c_rtt.png)\n", "large.png": strings.Repeat("x", Most+1)} {
		if _, err := v.Place(dir, name, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	png, alt, err := Read(v, dir, "c_rtt.png", hash("png"))
	if string(png) != "png" || alt != "Round-trip time: 3 ms" || err != nil {
		t.Errorf("%q, %q, %v", png, alt, err)
	}
	if _, _, err := Read(v, dir, "c_rtt.png", hash("other")); !errors.Is(err, ErrChanged) {
		t.Errorf("another hash: %v", err)
	}
	if _, _, err := Read(nil, dir, "c_rtt.png", hash("png")); !errors.Is(err, vault.ErrKey) {
		t.Errorf("without a key: %v", err)
	}
	if _, _, err := Read(v, dir, "large.png", hash(strings.Repeat("x", Most+1))); err == nil {
		t.Error("too large a picture is read")
	}
}
