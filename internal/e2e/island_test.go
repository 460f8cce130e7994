package e2e

import (
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// island is a network namespace of its own, in which a bot can run. Its loopback has what
// [island.forward] brings there, at the same addresses as outside, so that a bot
// needs no other settings; what is sent can be dropped by the kernel, silently, as a cable
// that is pulled does. It ends with the test.
type island struct {
	t    testing.TB
	jobs chan func()
	mu   sync.Mutex
	open []net.Listener
}

// newIsland makes one that has the addresses.
func newIsland(t testing.TB, addrs ...string) *island {
	t.Helper()
	for _, name := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(name); err != nil {
			lacking(t, name+" is not installed: scripts/deps test")
		}
	}
	i := &island{t: t, jobs: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		made <- unix.Unshare(unix.CLONE_NEWNET)
		for job := range i.jobs {
			job()
		}
	}()
	if err := <-made; err != nil {
		close(i.jobs)
		lacking(t, "a network namespace cannot be made here: "+err.Error())
	}
	t.Cleanup(func() {
		i.mu.Lock()
		for _, l := range i.open {
			l.Close()
		}
		i.mu.Unlock()
		close(i.jobs)
	})
	i.exec("ip", "link", "set", "lo", "up")
	i.exec("nft", "add table inet cut; add chain inet cut out { type filter hook output priority 0; }")
	for _, a := range addrs {
		i.forward(a)
	}
	return i
}

// lacking skips a test visibly, and fails it where everything has to be there.
func lacking(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// do runs f on the thread that is in the namespace: what f starts and listens to is there
// too.
func (i *island) do(f func()) {
	done := make(chan struct{})
	i.jobs <- func() {
		defer close(done)
		f()
	}
	<-done
}

func (i *island) exec(name string, args ...string) {
	i.t.Helper()
	i.do(func() {
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			i.t.Errorf("%s %v: %v: %s", name, args, err, out)
		}
	})
}

// forward lets the bot reach what listens at addr outside.
func (i *island) forward(addr string) { i.t.Helper(); i.forwardTo(addr, addr) }

// forwardTo lets the bot reach at addr what listens at target outside.
func (i *island) forwardTo(addr, target string) {
	i.t.Helper()
	var l net.Listener
	var err error
	i.do(func() { l, err = net.Listen("tcp", addr) })
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	i.open = append(i.open, l)
	i.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go passOn(c, target)
		}
	}()
}

// passOn connects c with what listens at addr, until either ends.
func passOn(c net.Conn, addr string) {
	defer c.Close()
	s, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer s.Close()
	go func() {
		io.Copy(s, c)
		s.Close()
	}()
	io.Copy(c, s)
}

// cut drops every packet to and from the addresses; without any, everything: the link is
// down. Nobody is told.
func (i *island) cut(addrs ...string) {
	i.t.Helper()
	if len(addrs) == 0 {
		i.exec("ip", "link", "set", "lo", "down")
		return
	}
	var ports []string
	for _, a := range addrs {
		_, port, err := net.SplitHostPort(a)
		if err != nil {
			i.t.Fatal(err)
		}
		ports = append(ports, port)
	}
	set := "{ " + strings.Join(ports, ", ") + " }"
	i.exec("nft", "add rule inet cut out tcp dport "+set+" drop; add rule inet cut out tcp sport "+set+" drop")
}

// heal takes every cut back.
func (i *island) heal() {
	i.t.Helper()
	i.exec("ip", "link", "set", "lo", "up")
	i.exec("nft", "flush chain inet cut out")
}
