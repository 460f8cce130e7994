package advice

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// more are codes beside the contract.
const more = `arp-announcements certificate-expires checksums-rewritten clock-step corruption dhcp-address-in-use dhcp-exhausted dhcp-nak dhcp-no-answer dhcp-rogue-server dns-enumeration dns-error
	dns-generated-names dns-random-subdomains dns-refused dns-tunnel duplex-mismatch empty-capture filter-matched-nothing http-client-errors icmp-tunnel
	late-answer-refused no-echo-reply no-route quic-closed quic-no-answer quic-retry quic-version router-conflict rst-by-client tls-old-version traceroute udp-no-answer
	unreadable-capture virtual-address-moved`

// contract are the codes that the command line promises.
const contract = `admin-prohibited arp-failure asymmetric-path backlog-overflow bufferbloat capture-duplicates connection-refused dead-peer delay-spike
	dns-empty-answer dns-nxdomain dns-packet-loss dns-servfail dns-slow dns-timeout dns-truncated dns-truncated-tcp-blocked duplicate-ip duplication
	firewall-reject fragments-dropped half-open high-latency host-down http-errors icmp-redirect idle-timeout jitter link-outage nagle-delayed-ack nd-failure
	packet-loss pmtud-blackhole pmtud-working port-reuse reordering return-path-blocked routing-loop rst-by-server rst-injected server-crash
	server-no-response slow-client slow-sender slow-server small-receive-window syn-blackhole syn-flood syn-rate-limit throttling tls-failure
	udp-port-closed zero-window healthy unrelated-captures`

func TestEveryCodeHasAdvice(t *testing.T) {
	want := append(strings.Fields(contract), strings.Fields(more)...)
	slices.Sort(want)
	if got := Codes(); !slices.Equal(got, want) {
		t.Errorf("codes %v\nwant  %v", got, want)
	}
	holes := regexp.MustCompile(`\{[a-z]+\}`)
	for _, code := range want {
		a, ok := For(code)
		if !ok || a.Title == "" || a.Why == "" || a.Do == "" || a.Verify == "" || len(a.Commands) == 0 || len(a.Check) == 0 {
			t.Errorf("%s: %+v", code, a)
		}
		if len(a.Title) > 70 || strings.HasSuffix(a.Title, ".") || !strings.HasSuffix(a.Why, ".") {
			t.Errorf("%s: title %q, why %q", code, a.Title, a.Why)
		}
		for _, c := range append(slices.Clone(a.Commands), a.Check...) {
			for _, h := range holes.FindAllString(c, -1) {
				if !slices.Contains([]string{"{client}", "{server}", "{port}", "{name}"}, h) {
					t.Errorf("%s: %q has %s", code, c, h)
				}
			}
		}
	}
}

func TestUnknownCode(t *testing.T) {
	for _, code := range []string{"", "no-such", "syn", "syn-blackhole\ntitle: x"} {
		if a, ok := For(code); ok {
			t.Errorf("%q: %+v", code, a)
		}
	}
}

func TestParse(t *testing.T) {
	a := parse("title: T\nwhy: W: x.\ndo: D.\n$ one\n$ two\nverify: V.\n$ three\n")
	if a.Title != "T" || a.Why != "W: x." || a.Do != "D." || !slices.Equal(a.Commands, []string{"one", "two"}) || a.Verify != "V." || !slices.Equal(a.Check, []string{"three"}) {
		t.Errorf("%+v", a)
	}
}
