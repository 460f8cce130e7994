package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkFsyncFloor is what one append with fsync costs without a journal:
// the figure that Append stands beside.
func BenchmarkFsyncFloor(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := make([]byte, 700)
	for b.Loop() {
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	l := open(b, Options{Dir: b.TempDir(), Keys: testKeys, Now: time.Now})
	body := map[string]string{"output": strings.Repeat("x", 300)}
	for b.Loop() {
		add(b, l, Shell, "outcome", body)
	}
}

// BenchmarkVerify reads a case of 1,000 entries; BenchmarkReopen does it before
// it appends.
func BenchmarkVerify(b *testing.B) {
	dir, size := large(b)
	b.SetBytes(size)
	for b.Loop() {
		if r := Verify(dir, sid, VerifyOptions{Keys: testKeys}); !r.OK {
			b.Fatal(r.Why)
		}
	}
}

func BenchmarkReopen(b *testing.B) {
	dir, size := large(b)
	b.SetBytes(size)
	for b.Loop() {
		open(b, Options{Dir: dir, Keys: testKeys})
	}
}

func large(b *testing.B) (dir string, size int64) {
	dir = b.TempDir()
	l := open(b, Options{Dir: dir, Keys: testKeys})
	for i := range 1000 {
		add(b, l, []string{Case, Shell, Tasks}[i%3], "outcome", map[string]string{"output": strings.Repeat("line of output\n", 60)})
	}
	for _, j := range journals(sid) {
		size += int64(len(read(b, path(dir, j))))
	}
	return dir, size
}
