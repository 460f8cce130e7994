// Package redis starts real Redis servers for tests: on free ports of 127.0.0.1, in
// directories of their own, ended with the test.
package redis

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Server is one process of redis-server.
type Server struct {
	Port int
	Dir  string
	args []string
	env  []string
	cmd  *exec.Cmd
	t    testing.TB
}

// Start starts a server that ghostbot accepts; args come behind and win. A test
// without the program is skipped, and fails with CI=true.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	Need(t)
	s := New(t, FreePort(t), args...)
	s.Up()
	return s
}

// Need skips the test when there is no redis-server.
func Need(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("redis-server is not installed: scripts/deps test")
		}
		t.Skip("redis-server is not installed: scripts/deps test")
	}
}

// New is a server that does not run yet.
func New(t testing.TB, port int, args ...string) *Server {
	dir, err := os.MkdirTemp("", "redis") // not t.TempDir: its name would be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Port: port, Dir: dir, t: t}
	s.args = append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes",
		"--maxmemory-policy", "noeviction", "--unixsocket", filepath.Join(dir, "redis.sock"), "--logfile", filepath.Join(dir, "log"),
		"--repl-diskless-sync-delay", "0",
	}, args...)
	t.Cleanup(func() {
		s.Kill()
		os.RemoveAll(dir)
	})
	return s
}

// Up starts the process and waits until it answers.
func (s *Server) Up() {
	s.t.Helper()
	s.cmd = exec.Command("redis-server", s.args...)
	s.cmd.Dir = s.Dir
	s.cmd.Env = append(os.Environ(), s.env...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("redis-server: %v", err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", s.Addr(), time.Second)
		if err == nil {
			fmt.Fprintf(c, "PING\r\n")
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			b := make([]byte, 64)
			n, _ := c.Read(b)
			c.Close()
			if n > 0 && string(b[:min(n, 8)]) != "-LOADING" {
				return
			}
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(s.Dir, "log"))
			s.t.Fatalf("redis-server on %s does not answer: %s", s.Addr(), log)
		}
	}
}

// Kill ends the process at once. What it has written is kept for [Server.Up].
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Signal sends a signal to the process.
func (s *Server) Signal(sig syscall.Signal) {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(sig)
	}
}

// Addr is where it listens.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// URL is its address for GHOST_REDIS_URL.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Do sends one command and returns its reply as redis-cli prints it.
func (s *Server) Do(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("redis-cli", append([]string{"-p", strconv.Itoa(s.Port)}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("redis-cli %v: %v: %s", args, err, out)
	}
	return string(out)
}

// FreePort returns a port of 127.0.0.1 that is free, and whose port above by 10000,
// which a cluster's nodes talk on, exists.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if port >= 55000 {
			continue
		}
		bus, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+10000)) // a cluster's nodes talk there
		if err == nil {
			bus.Close()
			return port
		}
	}
	t.Fatal("no free port below 55000")
	return 0
}
