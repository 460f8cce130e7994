package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

func TestClassText(t *testing.T) {
	for c, want := range map[Class]string{Safe: "SAFE", Risky: "RISKY", Forbidden: "FORBIDDEN", 7: "FORBIDDEN"} {
		if c.String() != want {
			t.Errorf("%d is %s, want %s", c, c, want)
		}
	}
	for text, want := range map[string]Class{"SAFE": Safe, "RISKY": Risky, "FORBIDDEN": Forbidden, "": Forbidden, "safe": Forbidden, "SAFE ": Forbidden} {
		c := Safe
		if err := c.UnmarshalText([]byte(text)); err != nil || c != want {
			t.Errorf("%q reads as %s (%v), want %s", text, c, err, want)
		}
	}
	var zero Verdict
	if zero.Class != Forbidden {
		t.Error("the zero verdict does not forbid")
	}
}

func TestVerdictJSON(t *testing.T) {
	p := New(Options{})
	for text, want := range map[string]string{
		"uptime":       `{"class":"SAFE","tier":null,"rule":"listed","reason":"a read-only command on the list","environment":"local","argv":["uptime"]}`,
		"az vm list":   `{"class":"SAFE","tier":null,"rule":"listed","reason":"a read-only command on the list","environment":"azure","argv":["az","vm","list"]}`,
		"reboot":       `{"class":"FORBIDDEN","tier":0,"rule":"catastrophe","reason":"never run: the machine restarted","environment":"local","argv":["reboot"]}`,
		"a | b":        `{"class":"RISKY","tier":3,"rule":"compound","reason":"pipes are not run here; the gate takes one command only","environment":"local","argv":null}`,
		"az vm delete": `{"class":"RISKY","tier":2,"rule":"az-mutate","reason":"az vm delete changes resources","environment":"azure","argv":["az","vm","delete"]}`,
		"cat x":        `{"class":"RISKY","tier":1,"rule":"unknown-program","reason":"cat is not on the list of programs that run without a person","environment":"local","argv":["cat","x"]}`,
	} {
		got, err := json.Marshal(p.Classify(text))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, string(got)); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

func TestVersion(t *testing.T) {
	a, b := New(Options{}), New(Options{})
	if a.Version() != b.Version() || len(a.Version()) != 16 || strings.Trim(a.Version(), "0123456789abcdef") != "" {
		t.Errorf("versions of the same policy: %q, %q", a.Version(), b.Version())
	}
	seen := map[string]bool{a.Version(): true}
	for _, o := range []Options{{Self: "/x"}, {CaptureDirs: []string{"/x"}}, {CaptureDirs: []string{"/x", "/y"}}, {Self: "/x", CaptureDirs: []string{"/x"}}} {
		v := New(o).Version()
		if seen[v] {
			t.Errorf("%+v has the version of another policy", o)
		}
		seen[v] = true
	}
}

func TestOptions(t *testing.T) {
	o := Options{Self: "/opt/ghostbot/ghostbot", CaptureDirs: []string{"/var/lib/ghost"}}
	p := New(o)
	for text, want := range map[string]Class{
		"/opt/ghostbot/ghostbot pcap /var/lib/ghost/x --json": Safe, "/opt/ghostbot/ghostbot classify 'rm -rf /'": Safe, "/opt/ghostbot/ghostbot version": Safe,
		"/opt/ghostbot/ghostbot serve": Risky, "/opt/ghostbot/./ghostbot version": Risky, "'/opt/ghostbot/ghostbot' version": Risky, "ghostbot version": Risky,
		"tcpdump -r /var/lib/ghost/x": Safe, "tcpdump -r /var/lib/ghosts/x": Risky, "/opt/ghostbot/ghostbot agent apply x": Risky, "sudo /opt/ghostbot/ghostbot version": Risky,
	} {
		if got := p.Classify(text); got.Class != want {
			t.Errorf("%q is %s (%s), want %s", text, got.Class, got.Reason, want)
		}
	}
	o.CaptureDirs[0] = "/" // what the caller does later changes nothing
	if got := p.Classify("tcpdump -r /etc/x"); got.Class != Risky {
		t.Errorf("a folder changed after New is used: %s", got.Class)
	}
}

func TestDescribe(t *testing.T) {
	docs := New(Options{}).Describe()
	names := map[string]bool{}
	for _, d := range docs {
		names[d.Name] = true
	}
	for _, n := range strings.Fields(`ping traceroute tracepath mtr dig nslookup host whois ss netstat ip ifconfig arp route ethtool lsof curl openssl nc tcpdump tshark capinfos
		conntrack nft iptables tc sysctl nstat uptime free df ps dmesg kubectl bridge nmcli networkctl resolvectl getent hostname uname wg docker cilium calicoctl az`) {
		if !names[n] {
			t.Errorf("%s is not described", n)
		}
	}
	if last := docs[len(docs)-1]; last.Name != "az" || !strings.Contains(last.Safe, "6061") {
		t.Errorf("az is described as %q", last.Safe)
	}
}

// Whatever the text is, the answer is a refusal that a person understands.
func TestBadInput(t *testing.T) {
	p := New(Options{})
	for _, text := range []string{
		"", " ", "\t", "\n", "\x00", strings.Repeat(" ", 1<<20), strings.Repeat("a", 1<<20), strings.Repeat("a ", 1<<19), strings.Repeat("'", 1<<20), strings.Repeat("(", 1<<20), strings.Repeat("\xff", 1<<20),
		"\xff\xfe", "ping \xc3\x28", "'", `"`, "'\"", "`", "$(", "${", "((", ";", ";;", "&", "&&", "||", "|", "> <", ">", "<<", "<<<", "!", "{", "}", "(", ")", "[[", "\\", "$", "#", "if", "for", "case x in",
		"ping -c", "ping --", "ping -", "- ping", "-c 4 ping", "az --", "az -", "''", "'' x", "\"\" x", "curl --", "kubectl", "kubectl get", "docker", "ip -", "nft", "\U0010ffff", "\ufffd", "ping \ufffd",
	} {
		v := p.Classify(text)
		if v.Class == Safe && text != "nft" && text != "curl --" {
			t.Errorf("%.40q is SAFE", text)
		}
		wellFormed(t, text, v)
	}
}

// The same arguments in other quotes are the same command.
func requoted(argv []string) []string {
	quote := func(each func(string) string) string {
		out := argv[0]
		for _, a := range argv[1:] {
			out += " " + each(a)
		}
		return out
	}
	single := func(a string) string { return "'" + strings.ReplaceAll(a, "'", `'\''`) + "'" }
	double := func(a string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(a) + `"`
	}
	slashed := func(a string) string {
		if a == "" {
			return "''"
		}
		var b strings.Builder
		for i := 0; i < len(a); i++ {
			b.WriteByte('\\')
			b.WriteByte(a[i])
		}
		return b.String()
	}
	mixed := func(a string) string {
		if len(a) < 2 {
			return single(a)
		}
		return single(a[:1]) + double(a[1:])
	}
	return []string{quote(single), quote(double), quote(slashed), quote(mixed)}
}

func seeds(f *testing.F) {
	for _, table := range [][]verdict{probesVerdicts, httpVerdicts, shapesVerdicts, azVerdicts, everydayVerdicts, readsVerdicts, neverVerdicts} {
		for i, c := range table {
			if i%7 == 0 {
				f.Add(c.text)
			}
		}
	}
}

// FuzzRequote: quoting an argument list differently never changes its verdict.
func FuzzRequote(f *testing.F) {
	seeds(f)
	p := New(Options{})
	f.Fuzz(func(t *testing.T, text string) {
		v := p.Classify(text)
		wellFormed(t, text, v)
		if len(v.Argv) == 0 || v.Argv[0] == "" || len(text) > 2000 || strings.Trim(v.Argv[0], "abcdefghijklmnopqrstuvwxyz0123456789-_./") != "" {
			return
		}
		for _, a := range v.Argv {
			if !ascii(a) {
				return
			}
		}
		want := p.ClassifyArgv(v.Argv)
		if v.Class == Safe && want.Class != Safe {
			t.Errorf("%q is SAFE as a text and %s as a list", text, want.Class)
		}
		if want.Rule == "command-word" {
			return // a word of the shell's grammar: never plain
		}
		for _, q := range requoted(v.Argv) {
			if len(q) < 16000 && strings.Count(q, "(")+strings.Count(q, "{")+strings.Count(q, "[") <= 256 {
				if d := cmp.Diff(want, p.Classify(q)); d != "" {
					t.Errorf("%q and %q differ:\n%s", Quote(v.Argv), q, d)
				}
			}
		}
	})
}

func ascii(a string) bool {
	for i := 0; i < len(a); i++ {
		if a[i] < ' ' || a[i] > '~' {
			return false
		}
	}
	return true
}

// shapes put a command into something else; none of them is ever SAFE.
var shapes = []string{
	"sudo %s", "env %s", "nohup %s", "timeout 5 %s", "time %s", "nice %s", "xargs %s", "watch %s", "exec %s", "command %s", "busybox %s", "strace %s", "ssh h %s", "find . -exec %s \\;", "docker run x %s",
	"kubectl exec p -- %s", "ip netns exec x %s", "sh -c '%s'", "bash -c \"%s\"", "eval '%s'", "su -c '%s'", "%s; id", "%s && id", "%s || id", "%s | id", "%s &", "id; %s", "(%s)", "{ %s; }", "! %s", "A=b %s",
	"%s > /tmp/x", "%s < /tmp/x", "%s 2>&1", "%s # x", "echo $(%s)", "`%s`", "%s\nid", "%s\rid", "%s\x00", "if true; then %s; fi", "for i in 1; do %s; done", "f() { %s; }; f", "%s $HOME", "%s \"$HOME\"", "./%s", "/tmp/%s", "../%s",
	"\\%s", "%s\u200b", "\u202e%s", "PATH=/tmp %s", "doas %s", "nsenter -t 1 %s", "unshare %s", "chroot / %s", "script -c '%s' x", "parallel %s", "coproc %s", "[[ %s ]]",
}

// FuzzWrapper: nothing is SAFE inside a wrapper, and what is FORBIDDEN alone
// stays so.
func FuzzWrapper(f *testing.F) {
	seeds(f)
	p := New(Options{})
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.TrimSpace(text)
		if text == "" || len(text) > 1000 {
			return
		}
		for _, s := range shapes {
			wrapped := strings.ReplaceAll(s, "%s", text)
			if v := p.Classify(wrapped); v.Class == Safe && !strings.HasPrefix(text, "#") {
				t.Errorf("%q is SAFE around %q", s, text)
			}
		}
		if v := p.Classify(text); v.Class == Forbidden && v.Argv != nil {
			for _, s := range []string{"sudo %s", "timeout 5 %s", "(%s)", "true; %s", "true && %s", "env A=b %s"} {
				if w := p.Classify(strings.ReplaceAll(s, "%s", text)); w.Class != Forbidden {
					t.Errorf("%q is FORBIDDEN, and inside %q it is %s", text, s, w.Class)
				}
			}
		}
	})
}

// FuzzSafe: a SAFE text is exactly one simple command of a listed program, and
// a shell, asked independently, would give that program the same arguments.
func FuzzSafe(f *testing.F) {
	seeds(f)
	p := New(Options{})
	f.Fuzz(func(t *testing.T, text string) {
		v := p.Classify(text)
		wellFormed(t, text, v)
		if v.Class != Safe {
			return
		}
		if v.Argv[0] != "az" && !p.table.Known(v.Argv[0]) {
			t.Errorf("%q is SAFE with the program %q", text, v.Argv[0])
		}
		file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
		if err != nil || len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 {
			t.Fatalf("%q is SAFE, but no single command: %v", text, err)
		}
		call := file.Stmts[0].Cmd.(*syntax.CallExpr)
		fields, err := expand.Fields(&expand.Config{Env: expand.ListEnviron()}, call.Args...)
		if err != nil {
			t.Fatalf("%q is SAFE, but has expansions: %v", text, err)
		}
		if d := cmp.Diff(fields, v.Argv); d != "" {
			t.Errorf("%q: a shell would run another list (-shell +gate):\n%s", text, d)
		}
	})
}
