package hints

import (
	"fmt"
	"strings"
	"testing"

	"ghostbot/forensics/app"
	"ghostbot/forensics/control"
	"ghostbot/forensics/dns"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding/statement"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/tcp"
)

func empty() *facts.Facts {
	return &facts.Facts{TCP: tcp.New(tcp.Options{}), DNS: dns.New(), Control: control.New(), App: app.New(), Sums: map[flow.Addr]*facts.Sums{}}
}

func codes(list []statement.Finding) string {
	var out []string
	for _, f := range list {
		out = append(out, fmt.Sprintf("%s %s", f.Severity, f.Code))
	}
	return strings.Join(out, ", ")
}

// names makes n names that fit a format.
func names(n int, format string, change func(i int, x *dns.Name)) []dns.Name {
	var out []dns.Name
	for i := range n {
		x := dns.Name{Text: fmt.Sprintf(format, i), Count: 1, First: uint32(i + 1)}
		if change != nil {
			change(i, &x)
		}
		out = append(out, x)
	}
	return out
}

func missing(_ int, x *dns.Name) { x.NX = 1 }

// hex is a label of n characters that differs with i.
func hex(i, n int) string {
	s := ""
	for k := 0; len(s) < n; k++ {
		s += fmt.Sprintf("%x", uint32(i*7919+k*104729+12345)*2654435761)
	}
	return s[:n]
}

func TestNames(t *testing.T) {
	dense := func(n, length int, odd bool) []dns.Name {
		return names(n, "%d.t.example.com", func(i int, x *dns.Name) {
			x.Text = hex(i, length) + ".t.example.com"
			if odd {
				x.Odd = 1
			}
		})
	}
	for _, tt := range []struct {
		what  string
		names []dns.Name
		want  string
	}{
		{"nothing", nil, ""},
		{"hosts", names(50, "host%d.example.com", nil), ""},
		{"a tunnel of long names", dense(20, 40, false), "HIGH dns-tunnel"},
		{"a tunnel of TXT", dense(12, 20, true), "HIGH dns-tunnel"},
		{"too few", dense(7, 60, true), ""},
		{"short ones", dense(40, 10, false), ""},
		{"the same again and again", append(dense(15, 40, false), dns.Name{Text: "www.example.com", Count: 100}), ""},
		{"long and dull", names(30, "%d", func(i int, x *dns.Name) { x.Text = strings.Repeat("a", 40+i%9) + ".example.com" }), ""},
		{"counted", names(12, "nx%d.example.com", missing), "LOW dns-enumeration"},
		{"a few that do not exist", names(9, "nx%d.example.com", missing), ""},
		{"made up", names(15, "%d", func(i int, x *dns.Name) { x.Text, x.NX = hex(i, 14)+".example", 1 }), "HIGH dns-generated-names"},
		{"words", names(15, "%d", func(i int, x *dns.Name) { x.Text, x.NX = "production-network-"+string(rune('a'+i))+".example", 1 }), ""},
		{"made up below one zone", names(30, "%d", func(i int, x *dns.Name) { x.Text, x.NX = hex(i, 12)+"q.example.com", 1 }), "MEDIUM dns-random-subdomains"},
	} {
		f := empty()
		f.DNS.Names = tt.names
		if got := codes(All(f)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, got, tt.want)
		}
	}
}

// TestNoNames: what a tunnel carries in its names is not repeated; its zone is.
func TestNoNames(t *testing.T) {
	f := empty()
	f.DNS.Names = names(20, "%d", func(i int, x *dns.Name) { x.Text = hex(i, 40) + ".t.example.com" })
	for _, x := range All(f) {
		if text := x.Summary + x.Detail + x.Confirm; strings.Contains(text, hex(0, 40)) || !strings.Contains(text, "example.com") {
			t.Errorf("%+v", x)
		}
	}
}

func TestEchoes(t *testing.T) {
	a, b := flow.V4([]byte{192, 0, 2, 1}), flow.V4([]byte{198, 51, 100, 2})
	for _, tt := range []struct {
		pair control.Pair
		want string
	}{
		{control.Pair{Sent: 30, Foreign: 30, Carried: 9000}, "HIGH icmp-tunnel"},
		{control.Pair{Sent: 30, Matched: 30, Carried: 9000}, ""},
		{control.Pair{Sent: 30, Foreign: 9, Carried: 9000}, ""},
		{control.Pair{Sent: 90, Matched: 80, Foreign: 10, Carried: 90_000}, ""},
		{control.Pair{Sent: 30, Foreign: 30, Carried: 240}, ""},
	} {
		f := empty()
		p := tt.pair
		p.Src, p.Dst = a, b
		f.Control.V4.Pairs = []*control.Pair{&p}
		if got := codes(All(f)); got != tt.want {
			t.Errorf("%+v: %s", tt.pair, got)
		}
	}
}

func TestSums(t *testing.T) {
	a, b := flow.V4([]byte{192, 0, 2, 1}), flow.V4([]byte{198, 51, 100, 2})
	for _, tt := range []struct {
		x, y facts.Sums
		want string
	}{
		{facts.Sums{Checked: 100}, facts.Sums{Checked: 100}, ""},
		{facts.Sums{Checked: 1000, Bad: 1}, facts.Sums{Checked: 100}, ""},
		{facts.Sums{Checked: 1000, Bad: 2}, facts.Sums{Checked: 100}, "LOW corruption"},
		{facts.Sums{Checked: 1000, Bad: 20}, facts.Sums{Checked: 100}, "MEDIUM corruption"},
		{facts.Sums{Checked: 1000, Bad: 80}, facts.Sums{Checked: 100}, "HIGH corruption"},
		{facts.Sums{Checked: 1000, Offload: 1000}, facts.Sums{Checked: 100}, ""},
		{facts.Sums{Checked: 100, Bad: 90}, facts.Sums{Checked: 100, Bad: 99}, "INFO checksums-rewritten"},
		{facts.Sums{Checked: 4, Bad: 4}, facts.Sums{}, ""},
	} {
		f := empty()
		f.Sums[a], f.Sums[b] = &tt.x, &tt.y
		if got := codes(All(f)); got != tt.want {
			t.Errorf("%+v, %+v: %s", tt.x, tt.y, got)
		}
	}
}
