package playbook_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ghostbot/agent"
	"ghostbot/safeexec"
)

// network is four namespaces in a row: here, two routers, and there. Addresses
// are of RFC 5737: 192.0.2.0/24, 198.51.100.0/24 and 203.0.113.0/24.
type network struct {
	t                      *testing.T
	here, left, right, far string
	wrap                   string // what a command is run by, with a blank; "" for nothing
}

// newNetwork builds the network, or skips where that is not possible.
func newNetwork(t *testing.T) *network {
	t.Helper()
	for _, tool := range []string{"ip", "iptables", "sysctl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("real networks need %s", tool)
		}
	}
	tag := fmt.Sprintf("pb%d", os.Getpid()%100000)
	n := &network{t: t, here: tag + "a", left: tag + "b", right: tag + "c", far: tag + "d"}
	if out, err := exec.Command("ip", "netns", "add", n.here).CombinedOutput(); err != nil {
		t.Skipf("real networks need the right to make namespaces: %s", out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", n.here).Run() }) // gone at the latest with the machine
	for _, ns := range []string{n.left, n.right, n.far} {
		n.do("ip netns add " + ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
	}
	n.link(n.here, n.left, "192.0.2", 10, 1)
	n.link(n.left, n.right, "198.51.100", 1, 2)
	n.link(n.right, n.far, "203.0.113", 1, 10)
	for _, ns := range []string{n.left, n.right} {
		n.in(ns, "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.icmp_ratelimit=0")
	}
	for _, r := range []string{n.here + " default via 192.0.2.1", n.left + " 203.0.113.0/24 via 198.51.100.2", n.right + " 192.0.2.0/24 via 198.51.100.1", n.far + " default via 203.0.113.1"} {
		ns, route, _ := strings.Cut(r, " ")
		n.do("ip -n " + ns + " route add " + route)
	}
	return n
}

func (n *network) do(command string) {
	n.t.Helper()
	argv := strings.Fields(command)
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		n.t.Skipf("%s: %v %s", command, err, out)
	}
}

func (n *network) in(ns, command string) { n.do("ip netns exec " + ns + " " + command) }

// link joins two namespaces; the devices are called to-LAST-LETTER.
func (n *network) link(a, b, prefix string, hostA, hostB int) {
	toB, toA := "to"+b[len(b)-1:], "to"+a[len(a)-1:]
	n.do(fmt.Sprintf("ip link add %s netns %s type veth peer name %s netns %s", toB, a, toA, b))
	n.do(fmt.Sprintf("ip -n %s addr add %s.%d/24 dev %s", a, prefix, hostA, toB))
	n.do(fmt.Sprintf("ip -n %s addr add %s.%d/24 dev %s", b, prefix, hostB, toA))
	for _, d := range []string{a + " link set " + toB, b + " link set " + toA, a + " link set lo", b + " link set lo"} {
		n.do("ip -n " + d + " up")
	}
}

// investigate runs a case whose commands are executed here.
func (n *network) investigate(text string) *investigation {
	in := investigate(n.t, text)
	in.run = func(m agent.RunShell) safeexec.Result {
		inside := m
		inside.Command = "ip netns exec " + n.here + " " + n.wrap + m.Command
		r := execute(inside)
		r.Command = m.Command
		return r
	}
	return in
}

// TestRealNetwork breaks a routed network in ways that look alike from a browser.
func TestRealNetwork(t *testing.T) {
	tools(t, "curl", "nc", "ping", "traceroute", "openssl", "dig", "getent")
	n := newNetwork(t)
	filter := "iptables -A INPUT -p tcp --dport "
	n.services()
	tests := []farCase{
		{"nothing listens", "http://203.0.113.10:8080/ is down", "", "", want{"root_cause", []string{"Nothing accepts connections on 203.0.113.10:8080"}, "refused", "high"}},
		{"the port is dropped", "http://203.0.113.10:81/ times out", n.far, filter + "81 -j DROP", want{"root_cause", []string{"203.0.113.10 answers ping, but connection attempts to port 81 get no answer"}, "5 received", "medium"}},
		{"the port is rejected", "http://203.0.113.10:83/ is down", n.far, filter + "83 -j REJECT --reject-with icmp-admin-prohibited", want{"root_cause", []string{"connections to port 83 are rejected with an ICMP message"}, "No route", "medium"}},
		{"a host that is not there", "203.0.113.99:80 is unreachable", "", "", want{"root_cause", []string{"203.0.113.99 is unreachable: 198.51.100.2 reports it"}, "nreachable", "medium"}},
		{"a neighbour that is not there", "192.0.2.99:80 does not answer", "", "", want{"root_cause", []string{"192.0.2.99 on this machine's own link does not answer address resolution"}, "192.0.2.99 dev", "high"}},
		{"no route", "198.18.7.1:80 is unreachable", n.here, "ip route add unreachable 198.18.7.0/24", want{"root_cause", []string{"This machine's own routing table has a route of the kind unreachable for 198.18.7.1"}, "RTNETLINK", "high"}},
		{"a routing loop", "198.19.0.1 does not answer ping", n.left, "ip route add 198.19.0.0/24 via 198.51.100.2", want{"root_cause", []string{"Packets to 198.19.0.1 go round in a routing loop"}, "", "high"}},
		{"a filter on the way", "198.18.8.1 does not answer ping", n.left, "ip route add prohibit 198.18.8.0/24", want{"root_cause", []string{"A filter rejects connections to 198.18.8.1"}, "", "high"}},
		{"loss on the way", "packet loss to 203.0.113.11", n.right, "iptables -A FORWARD -p icmp -d 203.0.113.11 -m statistic --mode nth --every 3 --packet 0 -j DROP", want{"root_cause", []string{"The path to 203.0.113.11 loses packets"}, "packet loss", "medium"}},
	}
	tests = append(tests,
		farCase{"only echo requests are dropped", "is 203.0.113.14 down? monitoring cannot ping it", n.right, "iptables -A FORWARD -p icmp --icmp-type echo-request -d 203.0.113.14 -j DROP", want{"root_cause", []string{"203.0.113.14 is up, packets reach it"}, "203.0.113.14", "medium"}},
		farCase{"packets with content are dropped", "http://203.0.113.10:87/ hangs", n.right, "iptables -A FORWARD -p tcp --dport 87 --tcp-flags PSH PSH -j DROP", want{"root_cause", []string{"203.0.113.10:87 accepts connections, but what is sent on them is not acknowledged"}, "203.0.113.10:87", ""}},
		farCase{"answers are dropped", "http://203.0.113.10:88/ hangs", n.right, "iptables -A FORWARD -p tcp --sport 88 --tcp-flags PSH PSH -j DROP", want{"root_cause", []string{"203.0.113.10:88 accepts connections, but no byte of an answer comes within 10 s: the program behind it hangs, or its answers are lost on the way"}, "0 bytes received", "medium"}},
		farCase{"held back by this machine", "203.0.113.15:80 times out", n.here, "iptables -A OUTPUT -d 203.0.113.15 -j DROP", want{"root_cause", []string{"This machine's own packet filter holds back packets to 203.0.113.15"}, "not permitted", ""}},
	)
	n.in(n.right, "ip route add 198.19.0.0/24 via 198.51.100.1")
	for _, tt := range append(tests, farCases...) {
		if tt.breaks != "" {
			n.in(tt.ns, tt.breaks)
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := n.investigate(tt.text)
			in.t = t
			tt.want.check(t, in)
			if strings.Contains(tt.name, "nobody can say") && (!strings.Contains(in.end.Summary, "neither an answer nor an ICMP message") || !strings.Contains(in.end.Summary, "203.0.113.10 answers ping in ") || len(in.end.Actions) == 0) {
				t.Errorf("does not say what was seen: %s", in)
			}
		})
	}
}
