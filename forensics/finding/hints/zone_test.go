package hints

import (
	"fmt"
	"math"
	"testing"

	"ghostbot/forensics/dns"
)

func TestSplit(t *testing.T) {
	for _, tt := range []struct{ name, host, zone string }{
		{"www.example.com", "www", "example.com"},
		{"a.b.example.com.", "a.b", "example.com"},
		{"example.com", "", "example.com"},
		{"www.example.co.uk", "www", "example.co.uk"},
		{"co.uk", "", "co.uk"},
		{"localhost", "", ""},
		{"", "", ""},
		{"1.2.0.192.in-addr.arpa", "", ""},
		{"8.b.d.0.1.0.0.2.ip6.arpa", "", ""},
		{"www.example.de", "www", "example.de"},
	} {
		host, zone := split(tt.name)
		if host != tt.host || zone != tt.zone {
			t.Errorf("%s: %q, %q", tt.name, host, zone)
		}
	}
}

func TestEntropy(t *testing.T) {
	for _, tt := range []struct {
		text string
		want float64
	}{{"", 0}, {"aaaa", 0}, {"abab", 1}, {"abcd", 2}, {"abcdefgh", 3}, {"0123456789abcdef", 4}} {
		if got := entropy(tt.text); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%q: %v", tt.text, got)
		}
	}
}

func TestRandom(t *testing.T) {
	for _, label := range []string{"www", "mail", "download", "accounts", "windowsupdate", "configuration", "telemetry", "newsletter", "authentication", "monitoring",
		"kubernetes", "production", "international", "xn--strae-oqa", "aaaaaaaaaa", "database-primary"} {
		if random(label) {
			t.Errorf("%s is taken for random", label)
		}
	}
	for _, label := range []string{"xkqjzvwpfh", "q7x2k9v4m1z8", "3f9c1b7e5d2a8046", "wqzkxvjbpmcdfg", "jx8kzq3vwh5p", "zzxqkvjwyqhxk"} {
		if !random(label) {
			t.Errorf("%s is not taken for random", label)
		}
	}
}

func TestCounted(t *testing.T) {
	z := zone{absent: []string{"web1", "web2", "web2", "web17", "db1", "5", "mail"}}
	if prefix, n := z.counted(); prefix != "web" || n != 3 {
		t.Errorf("%s %d", prefix, n)
	}
	if _, n := (&zone{}).counted(); n != 0 {
		t.Errorf("%d of nothing", n)
	}
}

func TestSurvey(t *testing.T) {
	zones := survey([]dns.Name{
		{Text: "a.example.com", Count: 2, NX: 1, First: 7, Bytes: 90}, {Text: "b.x.example.com", Count: 1, Odd: 1, First: 9}, {Text: "www.example.org", Count: 5}, {Text: "localhost", Count: 1},
	})
	if len(zones) != 2 {
		t.Fatalf("%d zones", len(zones))
	}
	z := zones[0]
	if z.name != "example.com" || z.names != 2 || z.queries != 3 || z.odd != 1 || z.missing != 1 || z.bytes != 90 || z.mean() != 1.5 || fmt.Sprint(z.frames, z.absent) != "[7 9] [a]" {
		t.Errorf("%+v", z)
	}
	if (&zone{}).mean() != 0 || (&zone{}).entropy() != 0 {
		t.Error("of nothing")
	}
}
