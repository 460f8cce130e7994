package shellwords

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePlain(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"ping -c 4 10.0.0.5", []string{"ping", "-c", "4", "10.0.0.5"}},
		{"  ping   -c  4  x  ", []string{"ping", "-c", "4", "x"}},
		{"dig '+timeout=3' \"svc.cluster.local\"", []string{"dig", "+timeout=3", "svc.cluster.local"}},
		{`ss -tn dst 172.16.0.0/12 dport \> :1024`, []string{"ss", "-tn", "dst", "172.16.0.0/12", "dport", ">", ":1024"}},
		{`curl -w "a\n" x`, []string{"curl", "-w", `a\n`, "x"}},
		{`curl -w "a\"b\$c\\d\` + "`" + `" x`, []string{"curl", "-w", "a\"b$c\\d`", "x"}},
		{`a 'it'\''s'`, []string{"a", "it's"}},
		{`a "it's"`, []string{"a", "it's"}},
		{`a ''`, []string{"a", ""}},
		{`a b'c'"d"e`, []string{"a", "bcde"}},
		{"kubectl get pods -l app=x,tier!=cache", []string{"kubectl", "get", "pods", "-l", "app=x,tier!=cache"}},
		{"az vm list --query [0].id", []string{"az", "vm", "list", "--query", "[0].id"}},
		{"curl https://x.example/a?b=c", []string{"curl", "https://x.example/a?b=c"}},
		{"docker ps --format {{.Names}}", []string{"docker", "ps", "--format", "{{.Names}}"}},
		{"tcpdump -# -r a.pcap", []string{"tcpdump", "-#", "-r", "a.pcap"}},
		{"a b#c", []string{"a", "b#c"}},
		{"a b~c", []string{"a", "b~c"}},
		{"az x -n B\u00fcro", []string{"az", "x", "-n", "B\u00fcro"}},
		{"a @b +c %d ^e", []string{"a", "@b", "+c", "%d", "^e"}},
		{"a x=y", []string{"a", "x=y"}},
	} {
		got := Parse(c.text)
		if got.Problem != nil {
			t.Errorf("Parse(%q): %v", c.text, *got.Problem)
		}
		if d := cmp.Diff(c.want, got.Argv); d != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", c.text, d)
		}
	}
}

func TestParseProblems(t *testing.T) {
	for _, c := range []struct {
		text, rule string
		argv       bool // there is a list nevertheless
	}{
		{"", "empty", false},
		{"   ", "empty", false},
		{" \t\n", "empty", false},
		{"a\x00b", "control-character", false},
		{"a\rb", "line-end", false},
		{"a\nb", "line-end", false},
		{"a\n", "line-end", false},
		{"a\tb", "control-character", false},
		{"a\vb", "control-character", false},
		{"a\x1b[0m", "control-character", false},
		{"a\x7f", "control-character", false},
		{"a x\u0085y", "control-character", false},
		{"a x\u2028y", "odd-character", false},
		{"a x\u00a0y", "odd-character", false},
		{"a x\u200by", "odd-character", false},
		{"a x\u202ey", "odd-character", false},
		{"a x\ufeffy", "odd-character", false},
		{"a x\u0301", "odd-character", false},
		{"a \U0001f600", "odd-character", false},
		{"a \xff", "encoding", false},
		{"a \xc3", "encoding", false},
		{"p\u0456ng x", "command-word", false},
		{"ping\u200b x", "command-word", false},
		{"a 'b", "syntax", false},
		{"a \"b", "syntax", false},
		{"a `b", "syntax", false},
		{"a $(b", "syntax", false},
		{";", "syntax", false},
		{"|", "syntax", false},
		{"&& ||", "syntax", false},
		{"a )", "syntax", false},
		{"a # b", "comment", false},
		{"# a", "comment", false},
		{"a #b", "comment", false},
		{"a; b", "compound", false},
		{"a;", "compound", false},
		{"a &", "background", false},
		{"a & b", "compound", false},
		{"a && b", "compound", false},
		{"a || b", "compound", false},
		{"a | b", "compound", false},
		{"a |& b", "compound", false},
		{"! a", "compound", false},
		{"(a)", "compound", false},
		{"{ a; }", "compound", false},
		{"if a; then b; fi", "compound", false},
		{"while a; do b; done", "compound", false},
		{"for i in 1; do a; done", "compound", false},
		{"f() { a; }", "compound", false},
		{"time a", "compound", false},
		{"coproc a", "compound", false},
		{"[[ a ]]", "compound", false},
		{"((1))", "compound", false},
		{"let a=1", "compound", false},
		{"export A=b", "compound", false},
		{"A=b a", "assignment", false},
		{"A=b", "assignment", false},
		{"a > b", "redirection", false},
		{"a 2>&1", "redirection", false},
		{"a < b", "redirection", false},
		{"a <<< b", "redirection", false},
		{"a $b", "expansion", false},
		{"a \"$b\"", "expansion", false},
		{"a ${b}", "expansion", false},
		{"a $((1))", "expansion", false},
		{"a $\"b\"", "expansion", false},
		{"a $(b)", "substitution", false},
		{"a `b`", "substitution", false},
		{"a \"`b`\"", "substitution", false},
		{"a <(b)", "substitution", false},
		{"a @(b)", "glob", false},
		{"a $'b'", "ansi-quote", true},
		{"a *", "glob", true},
		{"a b?", "glob", true},
		{"a ~", "tilde", true},
		{"a ~b/c", "tilde", true},
		{"a {b,c}", "brace", true},
		{"a {1..3}", "brace", true},
		{"a $", "expansion", true},
		{"'a' b", "command-word", true},
		{"\"a\" b", "command-word", true},
		{"a'' b", "command-word", true},
		{"\\a b", "command-word", true},
		{"a\\b c", "command-word", true},
		{"$ a b", "command-word", false},
		{" $  a", "command-word", false},
		{"% a", "command-word", false},
		{"> a", "command-word", false},
		{">>> a", "command-word", false},
		{"user@host:~$ a b", "command-word", false},
		{"root@host:/var/log# a", "command-word", false},
		{"[root@host ~]# a b", "command-word", false},
		{"user@host ~ % a", "command-word", false},
		{"~/src $ a", "command-word", false},
		{"bash-5.2$ a", "command-word", false},
		{"switch# a", "command-word", false},
		{"$ a && b", "command-word", false},
		{"$ a \u2014b", "command-word", false},
		{"a % b $", "expansion", true},
		{"ssh a@b #", "comment", false},
		{strings.Repeat("a ", MaxText), "too-long", false},
		{strings.Repeat("(", 300), "too-deep", false},
	} {
		got := Parse(c.text)
		if got.Problem == nil {
			t.Errorf("Parse(%.40q) has no problem, argv %q", c.text, got.Argv)
			continue
		}
		if got.Problem.Rule != c.rule {
			t.Errorf("Parse(%.40q) = %s (%s), want %s", c.text, got.Problem.Rule, got.Problem.Reason, c.rule)
		}
		if (got.Argv != nil) != c.argv {
			t.Errorf("Parse(%.40q).Argv = %q", c.text, got.Argv)
		}
		if r := got.Problem.Reason; r == "" || len(r) > 120 {
			t.Errorf("Parse(%.40q): the reason is not one short sentence: %q", c.text, r)
		}
	}
}

func TestQuote(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{nil, ""},
		{[]string{"ping", "-c", "4", "10.0.0.5"}, "ping -c 4 10.0.0.5"},
		{[]string{"a", ""}, "a ''"},
		{[]string{"a", "b c"}, "a 'b c'"},
		{[]string{"a", "it's"}, `a "it's"`},
		{[]string{"a", `it's "$x" \ ` + "`"}, "a \"it's \\\"\\$x\\\" \\\\ \\`\""},
		{[]string{"a", "$x"}, "a '$x'"},
		{[]string{"a", "*"}, "a '*'"},
		{[]string{"a", "~"}, "a '~'"},
		{[]string{"a", "{a,b}"}, "a '{a,b}'"},
		{[]string{"a", "#b"}, "a '#b'"},
		{[]string{"a", "!"}, "a '!'"},
		{[]string{"a", ";"}, "a ';'"},
		{[]string{"A=b", "c"}, "'A=b' c"},
		{[]string{"time", "a"}, "'time' a"},
		{[]string{"if"}, "'if'"},
		{[]string{"a", "x\ny"}, `a $'x\ny'`},
		{[]string{"a", "x\ty\r"}, `a $'x\ty\r'`},
		{[]string{"a", "\x1b[0m"}, `a $'\x1b[0m'`},
		{[]string{"a", "b\u00fcro"}, `a $'b\u00fcro'`},
		{[]string{"a", "b\u202ec"}, `a $'b\u202ec'`},
		{[]string{"a", "\U0001f600"}, `a $'\U0001f600'`},
		{[]string{"a", "\xff"}, `a $'\xff'`},
		{[]string{"a", "'\\\n"}, `a $'\'\\\n'`},
		{[]string{"a", "\x00"}, `a $'\x00'`},
	} {
		if got := Quote(c.argv); got != c.want {
			t.Errorf("Quote(%q) = %s, want %s", c.argv, got, c.want)
		}
	}
}

func TestDecodeANSI(t *testing.T) {
	for in, want := range map[string]string{
		`abc`: "abc", `\n\t\r\a\b\e\f\v`: "\n\t\r\a\b\x1b\f\v", `\x72\162\u0072\U00000072`: "rrrr", `\'\"\\\?`: `'"\?`,
		`\cA`: "\x01", `\q`: `\q`, `\`: `\`, `\x`: `\x`, `\uZ`: `\uZ`, `a\x41b`: "aAb", `\101`: "A", `\e[0m`: "\x1b[0m",
	} {
		if got := DecodeANSI(in); got != want {
			t.Errorf("DecodeANSI(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestTree(t *testing.T) {
	for text, ok := range map[string]bool{"a | b": true, "a\x00b": true, "a\r\nb": true, "a 'b": false, "": false, strings.Repeat("(", 400): false} {
		if got := Tree(text) != nil; got != ok {
			t.Errorf("Tree(%.20q) = %v", text, got)
		}
	}
}

// A text at the limits is still answered: what this shows is that nothing
// overflows; how fast it is, the benchmarks of the parent tell.
func TestHostile(t *testing.T) {
	for _, unit := range []string{"(", "$(", "`", "{ ", "a|", "a;", "<<a\n", "\"", "$((", "((", "[[ ", "${a:-", "$'", "a&&", "f()", "if ",
		"case x in ", "<(", "@(", "a=(", "while ", "! ", "time ", "\"$(", "${x/", "a<<<", "let ", "((a?", "${a[", "\\", "'", "\x00", "\xff", "\u202e"} {
		for _, n := range []int{250, MaxText / len(unit), 1 << 20 / len(unit)} {
			c := Parse(strings.Repeat(unit, n))
			if c.Problem == nil {
				t.Errorf("%d times %q is a plain command: %.40q", n, unit, c.Argv)
			}
		}
	}
}

// FuzzQuote: a quoted list of printable ASCII comes back; any two lists that
// quote to the same line are the same list, which decoding the line shows.
func FuzzQuote(f *testing.F) {
	f.Add("ping", "-c", "it's \"x\" $y `z` \\")
	f.Add("A=b", "{a,b}", "*?[~]#!")
	f.Add("time", "\u202e", "\xff\x00\n")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		argv := []string{a, b, c}
		line := Quote(argv)
		if !Printable(line) {
			t.Fatalf("Quote(%q) shows something that is not printable ASCII: %q", argv, line)
		}
		if len(line) > MaxText || strings.Count(line, "(")+strings.Count(line, "{")+strings.Count(line, "[") > maxOpen {
			return
		}
		got := Parse(line)
		if got.Argv == nil {
			t.Fatalf("Quote(%q) = %s has no list: %v", argv, line, got.Problem)
		}
		if d := cmp.Diff(argv, got.Argv); d != "" && a != "" {
			t.Errorf("Quote(%q) = %s reads as another list (-want +got):\n%s", argv, line, d)
		}
		if got.Problem != nil && got.Problem.Rule != "command-word" && Printable(a+b+c) {
			t.Errorf("Quote(%q) = %s has a problem: %v", argv, line, *got.Problem)
		}
	})
}

// FuzzParse: a list exists only for texts of one line without odd characters,
// and quoting the list again gives the same list.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"ping -c 1 x", "a 'b' \"c\"", "a $(b)", "a\nb", "a\x00b", "a {b,c}", "a \\; b", "A=b c", "\u202ea b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := Parse(text)
		if c.Argv == nil && c.Problem == nil {
			t.Fatalf("Parse(%q) says nothing", text)
		}
		if c.Argv == nil {
			return
		}
		if strings.ContainsAny(text, "\x00\r\n\t") {
			t.Errorf("Parse(%q) gives a list in spite of control characters", text)
		}
		if again := Parse(Quote(c.Argv)); len(Quote(c.Argv)) < MaxText && cmp.Diff(c.Argv, again.Argv) != "" && c.Argv[0] != "" {
			t.Errorf("Parse(%q) = %q, quoted and parsed again %q", text, c.Argv, again.Argv)
		}
	})
}

// What a program or a phone made of plain characters is named, with what was meant; what
// cannot be seen is named by its number.
func TestSignsAreNamed(t *testing.T) {
	for text, want := range map[string][]string{
		"curl \u2014max-time 5": {"\u2014 (U+2014)", "dash", "write - or --"}, "ping \u2013c 1": {"\u2013 (U+2013)", "write - or --"}, "ping \u2212c 1": {"(U+2212)", "write - or --"},
		"curl \u201chttp://192.0.2.1/\u201d": {"\u201c (U+201C)", "quotation mark", `write "`}, "dig \u2018x\u2019": {"\u2018 (U+2018)", "write '"}, "a \u00abb\u00bb": {`write "`},
		"a b\u2026": {"\u2026 (U+2026)", "write ..."}, "a\u00a0b c": {"U+00A0", "non-breaking space"}, "a b\u00a0c": {"U+00A0", "write a plain space"}, "a b\u3000c": {"U+3000", "plain space"},
		"a \ufeffb": {"U+FEFF", "byte order mark", "leave it out"}, "\ufeffa b": {"U+FEFF", "byte order mark"}, "a \u200bb": {"U+200B", "invisible", "leave it out"}, "a \u202eb": {"U+202E"},
		"p\u0456ng x": {"\u0456 (U+0456)"}, "a \U0001f600": {"(U+1F600)"}, "a x\u0301": {"U+0301"},
	} {
		p := Parse(text).Problem
		if p == nil || len(p.Reason) > 200 {
			t.Errorf("Parse(%q): %+v", text, p)
			continue
		}
		for _, w := range want {
			if !strings.Contains(p.Reason, w) {
				t.Errorf("Parse(%q): %q, want %q", text, p.Reason, w)
			}
		}
		for _, r := range []string{"\u202e", "\u200b", "\ufeff", "\u00a0", "\u0301"} {
			if strings.Contains(p.Reason, r) {
				t.Errorf("Parse(%q): the reason has the sign itself in it: %q", text, p.Reason)
			}
		}
	}
}

// What stands where a prompt would, and is none.
func TestNoPrompts(t *testing.T) {
	for _, text := range []string{"grep a$ b", "dig @192.0.2.1 example.com % x", "curl http://192.0.2.1/# x", "ssh root@192.0.2.1 uptime", "date +%H % x", "scp root@host:/a b % c", "ping 50% x", "echo $"} {
		if p := prompt(text); p != nil {
			t.Errorf("prompt(%q) = %+v", text, p)
		}
	}
}
