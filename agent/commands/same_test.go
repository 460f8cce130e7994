package commands

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []string
		ok   bool
	}{
		{"ss -ltn", []string{"ss", "-ltn"}, true},
		{"  ss\t-ltn \n", []string{"ss", "-ltn"}, true},
		{`a "b c" 'd "e' f\ g ""`, []string{"a", "b c", `d "e`, "f g", ""}, true},
		{`x'y'"z"`, []string{"xyz"}, true},
		{`a 'b`, []string{"a", "b"}, false},
		{`a \`, []string{"a", ""}, false},
		{"", nil, true},
	} {
		got, ok := Split(tc.text)
		if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
			t.Errorf("%q: %v, %s", tc.text, ok, diff)
		}
	}
}

func TestKey(t *testing.T) {
	for _, same := range [][]string{
		{`sysctl -w net.ipv4.ip_forward=1`, `sysctl -w "net.ipv4.ip_forward=1"`, `/usr/sbin/sysctl -w 'net.ipv4.ip_forward=1'`, `sudo sysctl -w net.ipv4.ip_forward=1`, `sysctl  net.ipv4.ip_forward=1 -w`},
		{`reboot`, `/sbin/reboot`, `env reboot`, `env A=b reboot`, `timeout 10 reboot`, `timeout -k 5 10s reboot`, `sudo -n nice -n 5 reboot`},
		{`journalctl -n 50 --since=10:40`, `journalctl --since 10:40 -n 50`},
	} {
		for _, s := range same[1:] {
			a, _ := Split(same[0])
			b, _ := Split(s)
			if Key(a) != Key(b) || !Same(a, b) {
				t.Errorf("%q and %q are two commands", same[0], s)
			}
		}
	}
	for _, other := range [][2]string{{"tcpdump -i lo -c 5", "tcpdump -i lo -c 6"}, {"reboot", "reboot -f"}, {"ping a", "nping a"}, {"timeout 5", "timeout 6"}, {"env", "time"}, {"rm a b", "rm 'a b'"}} {
		a, _ := Split(other[0])
		b, _ := Split(other[1])
		if Key(a) == Key(b) || Same(a, b) {
			t.Errorf("%q and %q are one command", other[0], other[1])
		}
	}
	if Key(nil) != "" {
		t.Error("nothing is a command")
	}
}

// FuzzSplit: quoting what was split gives the same arguments, and one key.
func FuzzSplit(f *testing.F) {
	f.Add(`a "b c" 'd' e\ f --g=h`)
	f.Fuzz(func(t *testing.T, text string) {
		argv, ok := Split(text)
		if !ok {
			return
		}
		var quoted []string
		for _, a := range argv {
			quoted = append(quoted, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
		}
		again, ok := Split(strings.Join(quoted, " "))
		if diff := cmp.Diff(argv, again); !ok || diff != "" || Key(argv) != Key(again) {
			t.Errorf("%q: %v %s", text, ok, diff)
		}
	})
}

// A value right behind the letter of its flag is the value behind a blank.
func TestSameGlued(t *testing.T) {
	for _, same := range [][2]string{
		{"tcpdump -c 1 -i lo", "/usr/bin/tcpdump -c1 -ilo"},
		{"tcpdump -c 1 -i lo", "tcpdump -ilo -c 1"},
		{"nice -n5 tcpdump -i lo", "tcpdump -ilo"},
	} {
		a, _ := Split(same[0])
		b, _ := Split(same[1])
		if !Same(a, b) || !Same(b, a) {
			t.Errorf("%q and %q are two commands", same[0], same[1])
		}
	}
	for _, other := range [][2]string{{"tcpdump -c 1 -i lo", "tcpdump -c2 -ilo"}, {"tcpdump -c 12", "tcpdump -c 1 2"}, {"-c 1", "-c1"}} {
		a, _ := Split(other[0])
		b, _ := Split(other[1])
		if Same(a, b) {
			t.Errorf("%q and %q are one command", other[0], other[1])
		}
	}
}
