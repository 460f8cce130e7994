package anonymize

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var testKey = Key([]byte("a secret of the installation"), "ghost_20260101_000000")

// values are what is found in a text, in canonical form.
func values(text string) []string {
	var out []string
	for _, f := range find(text) {
		out = append(out, f.value)
	}
	return out
}

func TestFind(t *testing.T) {
	for text, want := range map[string]string{
		"src=10.0.0.5 ok":                      "10.0.0.5",
		"host=172.31.255.254":                  "172.31.255.254",
		"gw=192.168.1.100,":                    "192.168.1.100",
		"100.64.3.4":                           "100.64.3.4",
		"src=10.0.0.5 dst=10.0.0.6":            "10.0.0.5 10.0.0.6",
		"10.0.0.1-10.0.0.9":                    "10.0.0.1 10.0.0.9",
		"10.0.0.5:443 [10.0.0.5]":              "10.0.0.5 10.0.0.5",
		"10.0.0.0/8 via 10.1.2.3 dev eth0":     "10.0.0.0/8 10.1.2.3",
		"inet 10.1.2.3/24 brd 10.1.2.255":      "10.1.2.3 10.1.2.255",
		"10.1.2.3/32":                          "10.1.2.3",
		"IP 10.0.0.5.51514 > 10.0.0.6.443: S":  "10.0.0.5 10.0.0.6",
		"It was 10.0.0.5.":                     "10.0.0.5",
		"5.0.0.10.in-addr.arpa. PTR":           "10.0.0.5",
		"ip-10-0-0-5.ec2.internal":             "10.0.0.5",
		"10-244-1-15.web.pod.cluster.local":    "10.244.1.15",
		`{"ip":"10.0.0.5","p":[10,0]}`:         "10.0.0.5",
		"fd00::1":                              "fd00::1",
		"FD00:0:0:0::1 and fd00::1":            "fd00::1 fd00::1",
		"fe80::1%eth0":                         "fe80::1",
		"[fd00::1]:443":                        "fd00::1",
		"2001:db8::5/64 scope global":          "2001:db8::5",
		"2001:db8::/32":                        "2001:db8::/32",
		"IP6 fd00::1.443 > fd00::2.51514:":     "fd00::1 fd00::2",
		"::ffff:10.0.0.5":                      "10.0.0.5",
		"addr fd00::.":                         "fd00::",
		"see fd00::1: unreachable":             "fd00::1",
		"00:0d:3a:12:4f:8b":                    "000d3a124f8b",
		"00-0D-3A-12-4F-8B 000d.3a12.4f8b":     "000d3a124f8b 000d3a124f8b",
		"id /subscriptions/a/resourceGroups/b": "/subscriptions/a/resourcegroups/b",
		`"/subscriptions/a/resourceGroups/b/providers/M.N/x/y",`:                   "/subscriptions/a/resourcegroups/b/providers/m.n/x/y",
		strings.Repeat("1.0.0.0.0.0.0.0.", 3) + "0.0.0.0.0.0.0.0.ip6.arpa":         "",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa": "fd00::1",
	} {
		if d := cmp.Diff(strings.Fields(want), append([]string{}, values(text)...)); d != "" && !strings.Contains(text, "1.0.0.0.0.0.0.0.1") {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

// What is no address of the inside stays.
func TestFindNothing(t *testing.T) {
	for _, text := range []string{
		"", "dns=8.8.8.8", "172.32.0.1 172.15.255.255", "127.0.0.1 ::1 0.0.0.0 ::", "1.10.0.0.5", "v10.0.0.5", "10.0.0.5.6.7", "10.0.0", "10.0.0.256", "10.00.0.1", "10.0.0.5a", "a10.0.0.5",
		"12:34:56", "2026-01-02T03:04:05", "std::vector", "a::b::c", "foo::bar", "ff02::1", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "5F:F0:8A:06:48:79:04:05", "sha256:abcdef", "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",
		"/subscriptions/a", "1.3.6.1.2.1.1", "rtt min/avg/max = 0.1/0.2/0.3", "10-20-30", "224.0.0.1", "x_10.0.0.5",
	} {
		if got := values(text); got != nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestHide(t *testing.T) {
	a := New(testKey, "web cannot reach 10.9.9.9")
	got := a.Hide("10.0.0.5 10.0.0.6 10.1.0.5 10.9.9.9 10.7.7.7 8.8.8.8 10.0.0.0/24 00:0d:3a:12:4f:8b", "ping 10.7.7.7")
	shape := regexp.MustCompile(`^\[INTERNAL_IP_(\w{6})\.\w{6}\] \[INTERNAL_IP_(\w{6})\.\w{6}\] \[INTERNAL_IP_(\w{6})\.\w{6}\] 10\.9\.9\.9 10\.7\.7\.7 8\.8\.8\.8 \[INTERNAL_SUBNET_\w{6}/24\] \[MAC_\w{6}\]$`)
	m := shape.FindStringSubmatch(got)
	if m == nil || m[1] != m[2] || m[1] == m[3] {
		t.Fatalf("hidden as %q", got)
	}
	if again := a.Hide(got, "10.7.7.7"); again != got {
		t.Errorf("twice: %q", again)
	}
	if same := New(testKey).Hide("10.0.0.5"); !strings.HasPrefix(got, same) {
		t.Errorf("after a restart 10.0.0.5 is %q, it was in %q", same, got)
	}
	if other := New(Key([]byte("a secret of the installation"), "ghost_20260101_000001")).Hide("10.0.0.5"); strings.HasPrefix(got, other) {
		t.Errorf("another case has the same name: %q", other)
	}
	if json := a.Hide(`{"id": "/subscriptions/abc/resourceGroups/rg/x", "y": 1}`); !regexp.MustCompile(`^\{"id": "\[AZURE_RESOURCE_\w{6}\]", "y": 1\}$`).MatchString(json) {
		t.Errorf("JSON became %q", json)
	}
}

func TestReveal(t *testing.T) {
	a := New(testKey)
	for _, v := range []string{"10.0.0.5", "fd00::1", "10.0.0.0/24"} {
		name := a.Hide(v)
		if got, ok := a.Reveal("ping -c 1 " + name); !ok || got != "ping -c 1 "+v {
			t.Errorf("%s is %q: %q, %v", v, name, got, ok)
		}
	}
	if got, ok := New(testKey).Reveal("ping " + a.Hide("10.0.0.5")); ok {
		t.Errorf("a name of another life means %q", got)
	}
	if got, ok := a.Reveal("ping [x] [INTERNAL_IP_]"); !ok || got != "ping [x] [INTERNAL_IP_]" {
		t.Errorf("other brackets: %q, %v", got, ok)
	}
}

// Two things never have one name.
func TestNamesDiffer(t *testing.T) {
	a := New(testKey)
	seen := map[string]string{}
	for i := range 20000 {
		v := fmt.Sprintf("10.%d.%d.%d", i%7, i/256%256, i%256)
		name := a.Hide(v)
		if other, ok := seen[name]; ok && other != v {
			t.Fatalf("%s and %s are both %s", v, other, name)
		}
		seen[name] = v
	}
}

// FuzzHide: nothing that is hidden is left, hiding twice is hiding once, and
// what stands outside of names is a part of the text.
func FuzzHide(f *testing.F) {
	for _, s := range []string{"10.0.0.5", "fd00::1.443", "00:0d:3a:12:4f:8b", "5.0.0.10.in-addr.arpa", "/subscriptions/a/resourceGroups/b", "10.0.0.0/8", "::ffff:10.0.0.1", "10-0-0-5"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, x, y string) {
		a := New(testKey)
		text := x + " 10.20.30.40 " + y + "\n"
		got := a.Hide(text)
		if strings.Contains(got, " 10.20.30.40 ") {
			t.Fatalf("%q left it in %q", text, got)
		}
		if again := a.Hide(got); again != got {
			t.Fatalf("%q, then %q", got, again)
		}
		for _, part := range nameShape.Split(got, -1) {
			if !strings.Contains(text, part) {
				t.Fatalf("%q is not in %q", part, text)
			}
		}
	})
}

func BenchmarkHide(b *testing.B) {
	text := strings.Repeat("ESTAB 0 0 10.0.0.5:443 10.0.3.7:51514 users:((\"nginx\",pid=1,fd=3)) 00:0d:3a:12:4f:8b\n", 1<<20/90)
	a := New(testKey)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		a.Hide(text)
	}
}
