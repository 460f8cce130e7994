package pcap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"ghostbot/cmd/ghostbot/vault"
	"ghostbot/internal/pcapgen"
)

// newKey makes a vault of its own.
func newKey(t testing.TB) *vault.Vault {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(id.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := vault.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sealed encrypts a file beside itself and removes it.
func sealed(t testing.TB, v *vault.Vault, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	name, err := v.Place(filepath.Dir(path), filepath.Base(path), f)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(filepath.Dir(path), name)
}

// with runs the verb with a vault.
func with(t testing.TB, v *vault.Vault, files []string, flags ...string) (string, error) {
	t.Helper()
	o := Options{Vault: v}
	fs := flag.NewFlagSet("pcap", flag.ContinueOnError)
	o.Define(fs)
	if err := fs.Parse(flags); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := o.Run(context.Background(), files, Streams{Out: &out, Err: io.Discard, Line: func(s string) string { return s }, Encode: func(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }})
	return out.String(), err
}

// TestEncryptedCaptures: what is said about an encrypted capture is word for word what is
// said about the plain one, its digest included, and what is kept of it is encrypted.
func TestEncryptedCaptures(t *testing.T) {
	dir, v := t.TempDir(), newKey(t)
	a, b := capture(t, dir, "a.pcap", "bulk"), capture(t, dir, "b.pcap", "small")
	out := filepath.Join(dir, "out")
	runs := [][]string{{"-json"}, {"-json", "-filter", "tcp"}, {"-json", "-report-dir", out, "-semantic-dir", out, "-plots", out}, {"-json", "-compare", b, "-mode", "endpoints", "-report-dir", out}, {"-compare", b, "-mode", "baseline"}}
	var want []string
	for _, flags := range runs {
		text, err := with(t, nil, []string{a}, flags...)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, text)
	}
	plain := map[string][]byte{}
	for _, e := range list(t, out) {
		text, err := os.ReadFile(filepath.Join(out, e))
		if err != nil {
			t.Fatal(err)
		}
		plain[e] = text
	}
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	sealed(t, v, a) // and known by its own name
	b2 := sealed(t, v, b)
	for i, flags := range runs {
		flags = slices.Clone(flags)
		if k := slices.Index(flags, b); k >= 0 {
			flags[k] = b2
		}
		got, err := with(t, v, []string{a}, flags...)
		if d := cmp.Diff(want[i], got); d != "" || err != nil {
			t.Errorf("%v: %v (-plain +encrypted):\n%s", flags, err, d)
		}
	}
	if len(plain) < 5 || len(list(t, out)) != len(plain) {
		t.Errorf("kept %v, want %d files", list(t, out), len(plain))
	}
	for name, text := range plain {
		raw, err := os.ReadFile(filepath.Join(out, name+vault.Suffix))
		if err != nil || !bytes.HasPrefix(raw, []byte("age-encryption.org/v1\n")) {
			t.Errorf("%s: %v, or it is not encrypted", name, err)
			continue
		}
		f, err := v.Open(filepath.Join(out, name+vault.Suffix))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		f.Close()
		if !bytes.Equal(got, text) || err != nil {
			t.Errorf("%s: something else is in it: %v", name, err)
		}
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestEncryptedRefused: without the key, with another one, and when the file is damaged,
// one line says so and nothing is printed as if it were a result.
func TestEncryptedRefused(t *testing.T) {
	dir, v := t.TempDir(), newKey(t)
	path := sealed(t, v, capture(t, dir, "a.pcap", "bulk"))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(whole)
	changed[len(changed)/2] ^= 1
	for _, tt := range []struct {
		name    string
		v       *vault.Vault
		content []byte
		want    string
	}{
		{"no key", nil, whole, "a.pcap.age: it is encrypted: name the file with its age identity in GHOST_CAPTURE_KEY_FILE"},
		{"another key", newKey(t), whole, "a.pcap.age: it is encrypted, and no identity in GHOST_CAPTURE_KEY_FILE opens it"},
		{"cut off", v, whole[:len(whole)-20], "a.pcap.age: the encrypted file is damaged, or was cut off"},
		{"changed", v, changed, "a.pcap.age: the encrypted file is damaged, or was cut off"},
	} {
		if err := os.WriteFile(path, tt.content, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := with(t, tt.v, []string{path}, "-json", "-report-dir", filepath.Join(dir, "out"))
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") || out != "" {
			t.Errorf("%s: %q, %v", tt.name, out, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
			t.Errorf("%s: something is kept", tt.name)
		}
	}
}

// processor is the processor time of this process so far.
func processor(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAnalysis is an analysis of a capture beside that of the same one encrypted.
func BenchmarkAnalysis(b *testing.B) {
	dir, v := b.TempDir(), newKey(b)
	for _, profile := range []string{"bulk", "small"} {
		path := filepath.Join(dir, profile+".pcap")
		f, err := os.Create(path)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := pcapgen.Write(f, pcapgen.Options{Profile: profile, Size: 64 << 20}); err != nil || f.Close() != nil {
			b.Fatal(err)
		}
		for _, kind := range []string{"plain", "encrypted"} {
			if kind == "encrypted" {
				path = sealed(b, v, path)
			}
			b.Run(fmt.Sprintf("%s/%s", profile, kind), func(b *testing.B) {
				b.SetBytes(64 << 20)
				before, n := processor(b), 0
				for b.Loop() {
					if _, err := with(b, v, []string{path}, "-json"); err != nil {
						b.Fatal(err)
					}
					n++
				}
				b.ReportMetric(float64((processor(b)-before).Milliseconds())/float64(n), "cpu-ms/op")
			})
		}
	}
}
