package policy

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lines reads a list of commands from testdata, without its comments.
func lines(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	for in := bufio.NewScanner(f); in.Scan(); {
		if line := in.Text(); line != "" && !strings.HasPrefix(line, "# ") {
			out = append(out, line)
		}
	}
	return out
}

// The long lists of testdata, each of one class.
func TestLists(t *testing.T) {
	p := New(Options{})
	for name, want := range map[string]Class{"never.txt": notSafe, "everyday.txt": Safe, "catastrophes.txt": Forbidden} {
		all := lines(t, name)
		if len(all) < 200 {
			t.Errorf("%s has only %d lines", name, len(all))
		}
		for _, text := range all {
			v := p.Classify(text)
			if v.Class != want && !(want == notSafe && v.Class != Safe) {
				t.Errorf("%s: %q is %s (%s)", name, text, v.Class, v.Reason)
			}
			wellFormed(t, text, v)
		}
	}
}

// Whatever is dangerous is no better inside of something else.
func TestWrapped(t *testing.T) {
	p := New(Options{})
	for _, w := range []string{"sudo %", "env A=b %", "timeout 9 %", "nohup % &", "bash -c '%'", "ssh host %", "uptime; %", "uptime && %", "$(%)", "xargs %", "time %",
		"kubectl exec pod -- %", "docker exec c %", "find . -exec % \\;", "watch -n 1 %", "if true; then %; fi", "cd /tmp && %", "sh <<< '%'", "nice -n 5 ionice -c 3 %"} {
		for _, c := range []string{"rm -rf /etc", "reboot", "dd if=x of=/dev/sda", "cat /etc/shadow", "mkfs.ext4 /dev/sdb1", "systemctl poweroff"} {
			text := strings.ReplaceAll(w, "%", c)
			if v := p.Classify(text); v.Class != Forbidden {
				t.Errorf("%q is %s (%s), want FORBIDDEN", text, v.Class, v.Reason)
			}
		}
		for _, c := range []string{"ip link set eth0 down", "curl -d x http://192.0.2.1/", "frobnicate x", "ss -tan"} {
			text := strings.ReplaceAll(w, "%", c)
			if v := p.Classify(text); v.Class == Safe {
				t.Errorf("%q is SAFE", text)
			}
		}
	}
}
