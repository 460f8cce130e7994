package services

import (
	"testing"

	"ghostbot/forensics/control"
	"ghostbot/forensics/dns"
	"ghostbot/forensics/finding/statement"
)

// TestMissing: names with a search domain behind them are harmless when what is before it exists.
func TestMissing(t *testing.T) {
	for _, tt := range []struct {
		what  string
		names []dns.Name
		want  statement.Severity
	}{
		{"a list that ends well", []dns.Name{{Text: "www.example.com.branch.example.org", NX: 2}, {Text: "www.example.com", Full: 1}}, statement.Low},
		{"one of two", []dns.Name{{Text: "www.example.com.example.org", NX: 2}, {Text: "www.example.com", Full: 1}, {Text: "wwww.example.com", NX: 1}}, statement.Medium},
		{"nothing exists", []dns.Name{{Text: "www.example.com.example.org", NX: 2}, {Text: "www.example.com", NX: 2}}, statement.Medium},
		{"the domain exists", []dns.Name{{Text: "www.example.com", NX: 2}, {Text: "example.com", Full: 2}}, statement.Medium},
		{"part of a label", []dns.Name{{Text: "www.example.com", NX: 2}, {Text: "www.exam", Full: 2}}, statement.Medium},
		{"no name", nil, statement.Low},
	} {
		f := empty()
		f.DNS.Names = tt.names
		if got := Missing(f); got != tt.want {
			t.Errorf("%s: %s", tt.what, got)
		}
	}
}

func TestRedirects(t *testing.T) {
	f := empty()
	f.Control.Errors = []*control.Errors{{Type: 5, Src: addr(1), Dst: addr(10), Gateway: addr(2), About: addr(77), Count: 3, Frames: []uint32{4}}, {Type: 3, Code: 1}, {V6: true, Type: 137, Frames: []uint32{9}}}
	got := redirects(f)
	if codes(got) != "LOW icmp-redirect, LOW icmp-redirect" || got[0].Protocol != "icmp" || got[1].Protocol != "icmpv6" {
		t.Errorf("%v", got)
	}
}
