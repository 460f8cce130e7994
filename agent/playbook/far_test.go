package playbook_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

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
	for _, ip := range []string{"9", "11", "12", "13", "14"} {
		n.do("ip -n " + n.far + " addr add 203.0.113." + ip + "/24 dev toc")
	}
	n.names(farHosts, "")
	for _, at := range []string{"203.0.113.10:80", "203.0.113.10:84", "203.0.113.10:87", "203.0.113.10:88", "203.0.113.13:84", "203.0.113.10:6379"} {
		n.web(n.far, at, ok)
	}
	n.web(n.far, "203.0.113.13:80", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	n.in(n.far, "iptables -A INPUT -p tcp -d 203.0.113.12 -j DROP")
	n.inside(n.far, func() error {
		pc, err := net.ListenPacket("udp", "203.0.113.10:514")
		if err == nil {
			n.t.Cleanup(func() { pc.Close() })
		}
		return err
	})
	n.detour("long", func(int) time.Duration { return 200 * time.Millisecond }, "203.0.113.21")
	n.detour("uneven", func(i int) time.Duration { return time.Duration(i%5) * 60 * time.Millisecond }, "203.0.113.22")
	n.web(n.far, "203.0.113.21:80", ok)
	n.web(n.far, "203.0.113.21:6379", ok)
}

// farCases are services of another machine of which a part does not serve.
var farCases = []farCase{
	{"one of two addresses refuses", "http://two.shop.test/ fails for some users", "", "", want{"root_cause", []string{"203.0.113.11 refuses connections, 203.0.113.10 accepts them"}, "refused", "medium"}},
	{"one of two refuses, not the web", "redis at two.shop.test:6379 is refused at times", "", "", want{"root_cause", []string{"203.0.113.11 refuses connections, 203.0.113.10 accepts them"}, "refused", "medium"}},
	{"one of two is silent", "redis at mute.shop.test:6379 is slow for half of the users", "", "", want{"root_cause", []string{"203.0.113.12 does not answer connection attempts, 203.0.113.10 accepts them"}, "203.0.113.12", "medium"}},
	{"one of two answers with an error", "http://odd.shop.test/ gives 500", "", "", want{"root_cause", []string{"203.0.113.13 (500) answers with an error, 203.0.113.10 answers as it should"}, "500", "medium"}},
	{"both of two serve", "http://both.shop.test:84/ is down", "", "", want{"no_fault", nil, "", ""}},
	{"a long way, and a share of it named", "http://203.0.113.21/ is 200 ms slower since noon", "", "", want{"root_cause", []string{"The way to 203.0.113.21 and back takes long from this machine: "}, "mdev", "medium"}},
	{"a long way, not the web", "redis at 203.0.113.21:6379 is slow", "", "", want{"root_cause", []string{"The way to 203.0.113.21 and back takes long from this machine: "}, "mdev", "medium"}},
	{"an uneven way", "jitter on the way to 203.0.113.22", "", "", want{"root_cause", []string{"The time to 203.0.113.22 and back varies from packet to packet: "}, "mdev", "medium"}},
	{"a quick way", "latency to 203.0.113.9 is high, 300 ms instead of 200", "", "", want{"no_fault", nil, "", ""}},
	{"a UDP port that nothing is bound to", "voip at udp 203.0.113.9:5060 has no audio", "", "", want{"root_cause", []string{"203.0.113.9 sends datagrams for UDP port 5060 back as undeliverable (ICMP port unreachable)"}, "", "medium"}},
	{"a UDP port of which nobody can say", "syslog udp 203.0.113.10:514: messages are lost", "", "", want{"unverified", nil, "", "low"}},
	{"no DNS server at all", "http://web.shop.test/ is down", "", "", want{"root_cause", []string{"Nothing on this machine answers DNS queries, and it asks no other server"}, "refused", "high"}},
	{"none of two serves", "http://none.shop.test/ is down", "", "", want{"root_cause", []string{"Nothing accepts connections on none.shop.test:80"}, "", ""}},
}

type farCase struct {
	name, text string
	ns, breaks string
	want       want
}

// detour carries packets for some addresses of the far machine from the left router
// to the right one over a link on which each takes as long as wait says; the way
// back is the usual one. It stands for a long or an uneven path in kernels that
// cannot delay packets themselves.
func (n *network) detour(dev string, wait func(i int) time.Duration, addrs ...string) {
	n.t.Helper()
	from, to := n.tun(n.left, dev), n.tun(n.right, dev)
	n.in(n.right, "sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf."+dev+".rp_filter=0")
	for _, a := range addrs {
		n.do("ip -n " + n.far + " addr add " + a + "/24 dev toc")
		n.do("ip -n " + n.left + " route add " + a + "/32 dev " + dev)
	}
	go func() {
		buf := make([]byte, 2000)
		for i := 0; ; i++ {
			k, err := from.Read(buf)
			if err != nil {
				return
			}
			packet := slices.Clone(buf[:k])
			time.AfterFunc(wait(i), func() { _, _ = to.Write(packet) }) // what is lost is lost
		}
	}()
}

// tun is a network device of a namespace whose packets the test carries.
func (n *network) tun(ns, dev string) *os.File {
	n.t.Helper()
	var f *os.File
	n.inside(ns, func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		req, err := unix.NewIfreq(dev)
		if err != nil {
			return err
		}
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
			unix.Close(fd)
			return err
		}
		f = os.NewFile(uintptr(fd), dev)
		return nil
	})
	n.t.Cleanup(func() { f.Close() })
	n.do("ip -n " + ns + " link set " + dev + " up")
	return f
}
