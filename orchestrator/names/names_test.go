package names

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

const guid = "6f1c2b7e-0b8e-4c57-9d35-3c9a0a9e1b11"

func TestRules(t *testing.T) {
	long := strings.Repeat("a", 100)
	for _, tc := range []struct {
		what     string
		ok       func(string) bool
		yes, not []string
	}{
		{"group", Group, []string{"rg", "RG_1.(x)-2", "_", "(a)", long[:90]}, []string{"", "-rg", "rg.", "r g", "rg;x", "../x", "rg/x", "größe", long[:91], "--debug", "@x", "a\nb"}},
		{"account", Account, []string{"sa01", long[:24], "123"}, []string{"", "ab", "SA01", "sa-01", long[:25], "sa01.blob", "sa 1"}},
		{"container", Container, []string{"captures", "network-watcher-logs", "a1b", long[:63]}, []string{"", "ab", "a--b", "-ab", "ab-", "$logs", "A-b", "a/b", long[:64], "a_b"}},
		{"subscription", Subscription, []string{guid, strings.ToUpper(guid)}, []string{"", "s", guid + "x", guid[1:], "--query", guid + "\n"}},
		{"task", ValidTask, []string{"ghost_vm-01_20260314T104512_a1b2c3", "ghost_a"}, []string{"", "ghost_", "vm", "ghost_a b", "ghost_a;b", "ghost_a-", "ghost_../x", "ghost_a\n", "ghost_" + long}},
		{"region", func(s string) bool { return Location(s) != "" }, []string{"westeurope", "West Europe", "eastus2"}, []string{"", "west-europe", "x;y", "--x", "a", long}},
	} {
		for _, s := range tc.yes {
			if !tc.ok(s) {
				t.Errorf("%s %q is refused", tc.what, s)
			}
		}
		for _, s := range tc.not {
			if tc.ok(s) {
				t.Errorf("%s %q is accepted", tc.what, s)
			}
		}
	}
	if got := Location("West Europe"); got != "westeurope" {
		t.Errorf("region %q", got)
	}
}

func TestParse(t *testing.T) {
	id := "/subscriptions/" + guid + "/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm-01"
	for _, tc := range []struct {
		in, sub string
		want    Target
		err     error
	}{
		{"vm-01", guid, Target{Group: "g", Name: "vm-01"}, nil},
		{"a", "", Target{Group: "g", Name: "a"}, nil},
		{strings.Repeat("v", 64), "", Target{Group: "g", Name: strings.Repeat("v", 64)}, nil},
		{id, guid, Target{ID: id, Subscription: guid, Group: "rg", Type: "Microsoft.Compute/virtualMachines", Name: "vm-01"}, nil},
		{strings.ToLower(id), strings.ToUpper(guid), Target{ID: strings.ToLower(id), Subscription: guid, Group: "rg", Type: "microsoft.compute/virtualmachines", Name: "vm-01"}, nil},
		{id, "00000000-0000-0000-0000-000000000000", Target{}, ErrSubscription},
		{id + "/extensions/x", guid, Target{}, ErrTarget},
		{id + "/", guid, Target{}, ErrTarget},
		{strings.Replace(id, "vm-01", "..", 1), guid, Target{}, ErrTarget},
		{strings.Replace(id, "rg", "../x", 1), guid, Target{}, ErrTarget},
		{"/etc/passwd", guid, Target{}, ErrTarget},
		{"", "", Target{}, ErrTarget},
		{"vm 01", "", Target{}, ErrTarget},
		{"--ids", "", Target{}, ErrTarget},
		{"@/etc/passwd", "", Target{}, ErrTarget},
		{"vm\"01", "", Target{}, ErrTarget},
		{"../vm", "", Target{}, ErrTarget},
		{"vm-", "", Target{}, ErrTarget},
		{"vm\n", "", Target{}, ErrTarget},
		{strings.Repeat("v", 65), "", Target{}, ErrTarget},
	} {
		got, err := Parse(tc.in, "g", tc.sub)
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%q: %+v, %v; want %+v, %v", tc.in, got, err, tc.want, tc.err)
		}
	}
	a, _ := Parse(id, "", guid)
	b, _ := Parse("VM-01", "RG", guid)
	c, _ := Parse("vm-01", "other", guid)
	if !a.Same(b) || a.Same(c) {
		t.Error("the id and the short name are one VM; another group's is not")
	}
}

func TestParseAccount(t *testing.T) {
	id := AccountID(guid, "rg", "sa01")
	for in, want := range map[string]string{"sa01": "sa01", id: "sa01", "SA": "", strings.Replace(id, "Storage/storageAccounts", "Compute/virtualMachines", 1): "", strings.Replace(id, "6f1c", "7f1c", 1): "", id + "/x": ""} {
		if got, ok := ParseAccount(in, guid); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v", in, got, ok)
		}
	}
}

func TestParseBlob(t *testing.T) {
	long := "https://sa01.blob.core.windows.net/network-watcher-logs/subscriptions/" + guid + "/resourcegroups/rg/providers/microsoft.compute/virtualmachines/vm-01/2026/03/14/packetcapture_10_45_12_123.cap"
	for in, want := range map[string]Blob{
		"https://sa01.blob.core.windows.net/captures/ghost_x.cap":       {"sa01", "captures", "ghost_x.cap"},
		"https://sa01.blob.core.usgovcloudapi.net/captures/ghost_x.cap": {"sa01", "captures", "ghost_x.cap"},
		long: {"sa01", "network-watcher-logs", strings.SplitN(long, "/", 5)[4]},
		"http://sa01.blob.core.windows.net/captures/x.cap":                               {},
		"https://sa02.blob.core.windows.net/captures/x.cap":                              {},
		"https://sa01.blob.core.windows.net.example.com:8443/c/x.cap":                    {},
		"https://u@sa01.blob.core.windows.net/captures/x.cap":                            {},
		"https://sa01.blob.core.windows.net/captures/x.cap?sv=1":                         {},
		"https://sa01.blob.core.windows.net/captures/x.cap#y":                            {},
		"https://sa01.blob.core.windows.net/captures/":                                   {},
		"https://sa01.blob.core.windows.net/captures":                                    {},
		"https://sa01.blob.core.windows.net/captures/../x.cap":                           {},
		"https://sa01.blob.core.windows.net/captures/%2e%2e/x.cap":                       {},
		"https://sa01.blob.core.windows.net/captures/-x.cap":                             {},
		"https://sa01.blob.core.windows.net/captures/@x.cap":                             {},
		"https://sa01.blob.core.windows.net/captures/a%20b.cap":                          {},
		"https://sa01.blob.core.windows.net/captures/a//b.cap":                           {},
		"https://sa01.blob.core.windows.net/Captures/x.cap":                              {},
		"https://sa01.blob.core.windows.net/captures/" + strings.Repeat("a/", 600) + "x": {},
		"": {}, "None": {}, "::": {},
	} {
		got, err := ParseBlob(in, "sa01")
		if got != want || (err == nil) != (want != Blob{}) {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
}

func TestTask(t *testing.T) {
	at := time.Date(2026, 3, 14, 10, 45, 12, 0, time.FixedZone("", 3600))
	id := "/subscriptions/" + guid + "/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm-01"
	if got := Task(id, at); !strings.HasSuffix(got, "virtualMachines-vm-01_20260314T094512") {
		t.Errorf("of an id: %s", got)
	}
	seen := map[string]bool{}
	for _, m := range []Mark{{"a", "b", "c"}, {"ab", "", "c"}, {"a", "bc", ""}, {"b", "a", "c"}, {}} {
		if seen[m.String()] || len(m.String()) != 18 {
			t.Errorf("mark %s of %+v", m, m)
		}
		seen[m.String()] = true
	}
	for _, name := range []string{"vm-01", strings.Repeat("x", 500), id, strings.Repeat("é", 90)} {
		if got := Task(name, at) + (Mark{Place: name}).String(); !ValidTask(got) || len(got) > 80 {
			t.Errorf("%s (%d) is no name", got, len(got))
		}
	}
}

func TestRead(t *testing.T) {
	at := time.Date(2026, 3, 14, 9, 45, 12, 0, time.UTC)
	mine := Task("vm-01", at) + Mark{"team-1", "ghost_1", "x"}.String()
	m, ok := Read(mine)
	if !ok || !m.At.Equal(at) || !m.Expires.Equal(at.Add(24*time.Hour)) || !m.By("team-1") || m.By("team-2") {
		t.Errorf("%s: %+v, %v", mine, m, ok)
	}
	m, ok = Read("ghost_vm-01_20260314T094512")
	if !ok || !m.Expires.Equal(at.Add(24*time.Hour)) || m.By("") || m.By("team-1") {
		t.Errorf("without a mark: %+v, %v", m, ok)
	}
	if m, ok = Read("ghost_vm_20260314T094512_00000000000000e1"); !ok || !m.Expires.Equal(at.Add(time.Hour)) {
		t.Errorf("an hour: %+v, %v", m, ok)
	}
	for _, s := range []string{"", "ghost_", "ghost_vm", "other_vm_20260314T094512", "ghost_vm_20261399T094512", "ghost_vm_20260314T094512_00000000000000e9999", "ghost_vm_20260314T094512_0000"} {
		if m, ok := Read(s); ok {
			t.Errorf("%q: %+v", s, m)
		}
	}
}

// What is accepted is harmless as an argument, and reads the same again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"vm-01", "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm", "--x", "@f", "a b", "https://sa01.blob.core.windows.net/captures/a.cap", "https://sa01.blob.x.y/captures/a/b.cap"} {
		f.Add(s)
	}
	harmless := regexp.MustCompile(`^[A-Za-z0-9/._()-]+$`)
	f.Fuzz(func(t *testing.T, s string) {
		if x, err := Parse(s, "g", ""); err == nil {
			for _, arg := range []string{s, x.Name, x.Group} {
				if !harmless.MatchString(arg) || arg[0] == '-' || strings.Contains(arg, "..") && strings.Contains(arg, "/") && strings.Contains(arg, "/../") {
					t.Errorf("%q gives %q", s, arg)
				}
			}
			if y, err := Parse(s, "other", ""); err != nil || x.ID != "" && y != x {
				t.Errorf("%q reads differently in another group: %+v", s, y)
			}
		}
		if b, err := ParseBlob(s, "sa01"); err == nil {
			for _, part := range strings.Split(b.Container+"/"+b.Name, "/") {
				if !harmless.MatchString(part) || part[0] == '-' || part == "." || part == ".." {
					t.Errorf("%q gives %q", s, part)
				}
			}
			if again, err := ParseBlob("https://sa01.blob.core.windows.net/"+b.Container+"/"+b.Name, "sa01"); err != nil || again != b {
				t.Errorf("%q: %+v reads as %+v, %v", s, b, again, err)
			}
		}
	})
}
