package azure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func load(t testing.TB) *Policy {
	t.Helper()
	p, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// source finds the list of commands beside the module.
func source(t *testing.T) *os.File {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.Open(filepath.Join(dir, "..", "shared", "vectors", "az_commands.jsonl"))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("the list of az commands is not here: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// The table in the program is what the list gives today.
func TestUpToDate(t *testing.T) {
	want, err := Compact(source(t))
	if err != nil {
		t.Fatal(err)
	}
	if want != commandsText {
		t.Error("commands.txt is not what the list gives; run go generate")
	}
}

func TestTree(t *testing.T) {
	p := load(t)
	reads, all := p.Count()
	if all < 6000 || reads < 2500 {
		t.Errorf("%d commands, %d of them reads", all, reads)
	}
	for name, want := range map[string]command{
		"network nsg list": {effect: Read}, "vm delete": {effect: Mutate}, "keyvault secret show": {effect: Secret}, "login": {effect: Auth}, "interactive": {effect: Interactive},
		"vm run-command invoke": {effect: Exec}, "storage blob download": {effect: LocalWrite}, "find": {effect: Unknown}, "version": {effect: Read},
		"bot slack show": {Read, []string{"--with-secrets"}}, "deployment group what-if": {Read, []string{"--template-file"}}, "vm wait": {Read, []string{"--include-user-data"}},
	} {
		if d := cmp.Diff(want, p.tree[name], cmp.AllowUnexported(command{}), cmp.Comparer(func(a, b []string) bool { return strings.Join(a, " ") == strings.Join(b, " ") })); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// Every guard belongs to a command that would run without it, or prints one
// secret next to harmless fields.
func TestGuards(t *testing.T) {
	p := load(t)
	for name, g := range guards {
		if e := p.tree[name].effect; e != Read && e != Secret {
			t.Errorf("the guard of %q is never asked: effect %q", name, e)
		}
		if g.reason == "" {
			t.Errorf("the guard of %q gives no reason", name)
		}
		for _, f := range g.fields {
			if l := strings.ToLower(f); strings.Contains(l, "key") || strings.Contains(l, "secret") || strings.Contains(l, "output") || strings.Contains(l, "parameter") {
				t.Errorf("the guard of %q lets %q through", name, f)
			}
		}
	}
	for name := range extra {
		if p.tree[name].effect != Read {
			t.Errorf("%q has options of its own and is no read", name)
		}
	}
}

// The list of options holds nothing that the notes call dangerous.
func TestOptions(t *testing.T) {
	p := load(t)
	for _, o := range strings.Fields(`--debug --account-key --sas-token --connection-string --follow -f -p -u -k -y --file --output-file --result-file --dest --template-file --template-uri --parameters
		--with-secrets --show-secrets --show-values --include-user-data --include-full-endpoint-url --resolve-keyvault --expose-token --msbot --password --username --key --secret
		--blob-endpoint --account-endpoint --no-wait --yes --force --headers --body --method --admin --set --add --remove --defer --cmd --scripts --command`) {
		if p.options[o] || selector(o) {
			t.Errorf("%s is on the list", o)
		}
	}
	for _, c := range p.tree {
		for _, e := range c.escalate {
			if p.options[e] || selector(e) {
				t.Errorf("%s escalates and is on the list", e)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	p := load(t)
	for _, c := range []struct{ args, rule string }{
		{"vm list", ""}, {"VM List", ""}, {"vm list -o table", ""}, {"vm list --query name", ""}, {"network nsg rule list -g r --nsg-name n", ""}, {"--version", ""}, {"--help", ""}, {"vm show --ids /a /b", ""},
		{"", "az-command"}, {"vm", "az-command"}, {"vm list x", "az-command"}, {"frob", "az-command"}, {"-o tsv vm list", "az-command"}, {"--version x", "az-command"},
		{"vm delete", "az-mutate"}, {"keyvault secret show", "az-secret"}, {"storage blob download", "az-localwrite"}, {"vm run-command invoke", "az-exec"}, {"interactive", "az-interactive"}, {"login", "az-auth"}, {"find", "az-unknown"},
		{"rest", "az-exec"}, {"vm list --debug", "az-option"}, {"vm list --frob", "az-option"}, {"vm list -p x", "az-option"}, {"vm image list -p x", ""},
		{"vm list -n @x", "az-file"}, {"vm list -n=@x", "az-file"}, {"vm list --query @x", "az-file"}, {"vm list --query @", ""}, {"vm list -n ~/x", "az-file"}, {"vm list -n /etc/passwd", "az-file"}, {"vm list -n ../x", "az-file"},
		{"vm list --query [", "az-query"}, {"vm list --query a b", "az-query"}, {"vm list --query", "az-query"}, {"vm list -o x", "az-value"}, {"vm list -o", "az-value"}, {"vm list -n a\x01", "az-value"},
		{"storage container list --auth-mode login", ""}, {"storage container list --auth-mode key", "az-option"}, {"storage container list --auth-mode", "az-option"},
		{"bot slack show --with-secrets", "az-option"}, {"bot slack show --with-s", "az-option"}, {"bot slack show --w", "az-option"}, {"containerapp logs show --follow", "az-option"},
		{"network express-route show", "az-output"}, {"network express-route show --query name", ""}, {"network express-route show --query serviceKey", "az-output"}, {"network express-route show --query @", "az-output"},
		{"deployment group show", "az-output"}, {"deployment group show -o table", ""}, {"deployment group show -o table --query @", "az-output"}, {"container logs", "az-output"}, {"group export", "az-output"},
	} {
		got := ""
		if problem := p.Check(append([]string{"az"}, strings.Fields(c.args)...)); problem != nil {
			got = problem.Rule
			if problem.Reason == "" || strings.Contains(problem.Reason, "%!") {
				t.Errorf("az %s: reason %q", c.args, problem.Reason)
			}
		}
		if got != c.rule {
			t.Errorf("az %s = %q, want %q", c.args, got, c.rule)
		}
	}
}

func TestCompact(t *testing.T) {
	in := `{"command":"b show","effect":"read","escalate":[{"arg":"--x *.y","effect":"exec"}]}
{"command":"b list","effect":"read"}
{"command":"a","effect":"mutate"}
`
	got, err := Compact(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(got, "\n: a=m\nb: list=r show=r!--x\n") {
		t.Errorf("Compact = %q", got)
	}
	tree, err := parseTree(got)
	if err != nil || len(tree) != 3 || tree["b show"].escalate[0] != "--x" {
		t.Errorf("parseTree = %v, %v", tree, err)
	}
	for in, want := range map[string]string{"{": "az command list: ", `{"command":"a","effect":"odd"}`: `"a" has the unknown effect "odd"`} {
		if _, err := Compact(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Compact(%q) = %v, want %q", in, err, want)
		}
	}
	for in, want := range map[string]string{"x": "no colon", "a: b": `"b" has no effect`, "a: b=": `"b=" has no effect`} {
		if _, err := parseTree(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseTree(%q) = %v, want %q", in, err, want)
		}
	}
}

// FuzzCheck: a SAFE command is a read of the tree, none of its arguments names
// a file, and taking any option away from it or adding one that escalates is
// judged as expected.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"vm list", "vm show -g r -n n --query a.b -o tsv", "network nsg rule list --nsg-name n", "VM list --ids /a /b", "storage container list --auth-mode login"} {
		f.Add(s)
	}
	p := load(f)
	f.Fuzz(func(t *testing.T, args string) {
		argv := append([]string{"az"}, strings.Fields(args)...)
		if p.Check(argv) != nil || len(argv) < 2 || strings.HasPrefix(argv[1], "-") {
			return
		}
		name := ""
		for _, a := range argv[1:] {
			if strings.HasPrefix(a, "-") {
				break
			}
			name = strings.TrimSpace(name + " " + strings.ToLower(a))
		}
		if e := p.tree[name].effect; e != Read && e != Secret {
			t.Errorf("%q is SAFE with the effect %q", argv, e)
		}
		for _, a := range argv {
			if len(a) > 1 && a[0] == '@' || strings.Contains(a, "--debug") {
				t.Errorf("%q is SAFE with %q", argv, a)
			}
		}
		for _, more := range []string{"--debug", "--deb", "-n=@/etc/passwd", "@/etc/passwd", "--account-key", "--follow", "--query=["} {
			if p.Check(append(argv[:len(argv):len(argv)], more)) == nil {
				t.Errorf("%q is SAFE with %q added", argv, more)
			}
		}
	})
}
