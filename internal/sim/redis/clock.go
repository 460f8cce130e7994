package redis

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Clock is the clock of a server, which can be set while the server runs: a library that
// the server is started with adds what stands in a file.
type Clock struct {
	t         testing.TB
	lib, file string
}

// shifted is what a program asks for the time of day, with an offset in microseconds that it shares with a
// file. Redis measures everything else with the clock that nobody sets.
const shifted = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
int gettimeofday(struct timeval *tv, void *tz) {
	static volatile long long *off;
	long long us;
	if (!off) {
		int fd = open(getenv("SHIFT_FILE"), O_RDONLY);
		off = mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
	}
	if (syscall(SYS_gettimeofday, tv, 0) != 0) return -1;
	us = tv->tv_sec * 1000000LL + tv->tv_usec + *off;
	tv->tv_sec = us / 1000000;
	tv->tv_usec = us % 1000000;
	return 0;
}
`

// NewClock is a clock that is right, for now. A test without a C compiler is skipped, and fails with
// CI=true.
func NewClock(t testing.TB) *Clock {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("gcc is not installed: scripts/deps test")
		}
		t.Skip("gcc is not installed: scripts/deps test")
	}
	dir := t.TempDir()
	c := &Clock{t: t, lib: filepath.Join(dir, "shift.so"), file: filepath.Join(dir, "offset")}
	c.Set(0)
	src := filepath.Join(dir, "shift.c")
	if err := os.WriteFile(src, []byte(shifted), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-o", c.lib, src).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v: %s", err, out)
	}
	return c
}

// Set makes the clock ahead of this machine's by off, at once.
func (c *Clock) Set(off time.Duration) {
	c.t.Helper()
	f, err := os.OpenFile(c.file, os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(off.Microseconds())), 0)
		f.Close()
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// StartWith is [Start] on a machine with such a clock.
func StartWith(t testing.TB, c *Clock, args ...string) *Server {
	t.Helper()
	Need(t)
	s := New(t, FreePort(t), args...)
	s.env = []string{"LD_PRELOAD=" + c.lib, "SHIFT_FILE=" + c.file}
	s.Up()
	return s
}
