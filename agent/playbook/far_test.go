package playbook_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"

	"ghostbot/agent"

	"golang.org/x/sys/unix"
)

// inside runs do in a namespace; the sockets that it opens stay there.
func (n *network) inside(ns string, do func() error) {
	n.t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		f, err := os.Open("/var/run/netns/" + ns)
		if err != nil {
			done <- err
			return
		}
		defer f.Close()
		if err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err == nil {
			err = do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		n.t.Skip(err)
	}
}

// web serves at an address of a namespace.
func (n *network) web(ns, addr string, h http.HandlerFunc) {
	n.inside(ns, func() error {
		l, err := net.Listen("tcp", addr)
		if err == nil {
			n.t.Cleanup(func() { l.Close() })
			handle(n.t, l, h)
		}
		return err
	})
}

// names gives the namespace in which commands are run a hosts file and DNS servers
// of its own, in the mounts of each command only.
func (n *network) names(hosts, resolv string) {
	n.t.Helper()
	dir := n.t.TempDir()
	for name, text := range map[string]string{"hosts": hosts, "resolv": resolv, "run": "#!/bin/sh\nmount --bind " + dir + "/hosts /etc/hosts && mount --bind " + dir + "/resolv /etc/resolv.conf && exec \"$@\"\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			n.t.Fatal(err)
		}
	}
	n.wrap = filepath.Join(dir, "run") + " "
	if r := execute(agent.RunShell{Command: "ip netns exec " + n.here + " " + n.wrap + "true"}); *r.ExitCode != 0 {
		n.t.Skip(r.Stderr)
	}
}

// farHosts are names of services on the far machine.
const farHosts = "127.0.0.1 localhost\n203.0.113.11 two.shop.test\n203.0.113.10 two.shop.test\n203.0.113.12 mute.shop.test\n203.0.113.10 mute.shop.test\n" +
	"203.0.113.13 odd.shop.test\n203.0.113.10 odd.shop.test\n203.0.113.10 both.shop.test\n203.0.113.13 both.shop.test\n203.0.113.11 none.shop.test\n203.0.113.9 none.shop.test\n"

// services serves on the far machine: a part of it does not.
func (n *network) services() {
	n.t.Helper()
	for _, ip := range []string{"9", "11", "12", "13"} {
		n.do("ip -n " + n.far + " addr add 203.0.113." + ip + "/24 dev toc")
	}
	n.names(farHosts, "")
	for _, at := range []string{"203.0.113.10:80", "203.0.113.10:84", "203.0.113.13:84", "203.0.113.10:6379"} {
		n.web(n.far, at, ok)
	}
	n.web(n.far, "203.0.113.13:80", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	n.in(n.far, "iptables -A INPUT -p tcp -d 203.0.113.12 -j DROP")
}

// farCases are services of another machine of which a part does not serve.
var farCases = []farCase{
	{"one of two addresses refuses", "http://two.shop.test/ fails for some users", "", "", want{"root_cause", []string{"203.0.113.11 refuses connections, 203.0.113.10 accepts them"}, "refused", "medium"}},
	{"one of two refuses, not the web", "redis at two.shop.test:6379 is refused at times", "", "", want{"root_cause", []string{"203.0.113.11 refuses connections, 203.0.113.10 accepts them"}, "refused", "medium"}},
	{"one of two is silent", "redis at mute.shop.test:6379 is slow for half of the users", "", "", want{"root_cause", []string{"203.0.113.12 does not answer connection attempts, 203.0.113.10 accepts them"}, "203.0.113.12", "medium"}},
	{"one of two answers with an error", "http://odd.shop.test/ gives 500", "", "", want{"root_cause", []string{"203.0.113.13 (500) answers with an error, 203.0.113.10 answers as it should"}, "500", "medium"}},
	{"both of two serve", "http://both.shop.test:84/ is down", "", "", want{"no_fault", nil, "", ""}},
	{"none of two serves", "http://none.shop.test/ is down", "", "", want{"root_cause", []string{"Nothing accepts connections on none.shop.test:80"}, "", ""}},
}

type farCase struct {
	name, text string
	ns, breaks string
	want       want
}
