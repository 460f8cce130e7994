package filter

import (
	"errors"
	"strings"
	"testing"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
)

func TestMatch(t *testing.T) {
	v4 := frame.View{Kind: frame.TCP, Src: flow.V4([]byte{192, 0, 2, 1}), Dst: flow.V4([]byte{198, 51, 100, 2}), SPort: 40000, DPort: 443}
	v6 := frame.View{Kind: frame.UDP, Src: flow.V6([]byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}),
		Dst: flow.V6([]byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}), SPort: 5000, DPort: 53}
	ping := frame.View{Kind: frame.ICMPv6, Src: v6.Src, Dst: v6.Dst}
	tests := []struct {
		text             string
		is4, is6, isPing bool
	}{
		{"tcp", true, false, false},
		{"UDP", false, true, false},
		{"icmp", false, false, true},
		{"arp", false, false, false},
		{"host 192.0.2.1", true, false, false},
		{"host 2001:db8::2", false, true, true},
		{"198.51.100.2", true, false, false},
		{"net 198.51.100.0/24", true, false, false},
		{"net 2001:db8::/32 and udp", false, true, false},
		{"port 443", true, false, false},
		{"port 443 and host 192.0.2.9", false, false, false},
		{"192.0.2.1:40000 -> 198.51.100.2:443", true, false, false},
		{"198.51.100.2:443 <-> 192.0.2.1:40000", true, false, false},
		{"192.0.2.1:443", false, false, false},
		{"[2001:db8::1]:5000 -> [2001:db8::2]:53", false, true, false},
	}
	for _, tt := range tests {
		f, err := Parse(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if f.Match(&v4) != tt.is4 || f.Match(&v6) != tt.is6 || f.Match(&ping) != tt.isPing {
			t.Errorf("%s: %v %v %v", tt.text, f.Match(&v4), f.Match(&v6), f.Match(&ping))
		}
		if f.String() != tt.text {
			t.Errorf("%s is printed as %s", tt.text, f)
		}
	}
}

func TestNotUnderstood(t *testing.T) {
	for _, text := range []string{"", "and", "host", "host example", "port 70000", "port x", "net 192.0.2.1", "tls", "tcp or udp", "192.0.2.1:99999"} {
		if _, err := Parse(text); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Parse("tcp and port 70000"); !strings.Contains(err.Error(), `"port 70000": not`) {
		t.Errorf("%v does not name the value", err)
	}
}
