package plots

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		png, alt, err := Read(dir, tt.name, tt.sum)
		if (err == nil) != tt.ok || alt != tt.alt || tt.ok && len(png) == 0 {
			t.Errorf("Read(%s) = %d bytes, %q, %v", tt.name, len(png), alt, err)
		}
	}
	if _, _, err := Read(dir, "c_rtt.png", other); !errors.Is(err, ErrChanged) {
		t.Errorf("another hash: %v", err)
	}
	if _, _, err := Read(filepath.Join(dir, "none"), "c_rtt.png", good); err == nil {
		t.Error("a directory that is not there")
	}
}
