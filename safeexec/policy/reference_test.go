package policy

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/policy.md anew")

// TestReferencePage keeps docs/policy.md what the tables say. After a change of
// the tables: go test ./safeexec/policy -run ReferencePage -update
func TestReferencePage(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "policy.md")
	want := reference(New(Options{}))
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("docs/policy.md is not what the tables say (make policy-page writes it; -want +got):\n%.2000s", d)
	}
}

const intro = `# What runs without a person

This page is written by ` + "`make policy-page`" + ` from the tables in ` + "`safeexec/policy`" + `; a test fails when it is stale. What is not on it is not
SAFE. ` + "`ghostbot classify COMMAND`" + ` says the class of one command and why.

## The three classes

| class | what happens |
|---|---|
| SAFE | runs at once. The command ends by itself, writes nothing, changes nothing, prints no secret by design and sends nothing beyond its probe. |
| RISKY | runs after somebody who may decide approved exactly this argument list. Everything that is not understood is RISKY. |
| FORBIDDEN | never runs, whoever approves. |

A text is classified as one command of literal or quoted words. What has a control character, a line end, invalid UTF-8, an unusual character in
the command word, more than one command, a redirection, an expansion, an assignment or a comment is never SAFE, and is not run as it stands either.

The reason names what made a command RISKY. The rule beside it is short and stable:

| rule | why |
|---|---|
| ` + "`unknown-program`" + ` | the program has no table below |
| ` + "`path`" + ` | a program given by its path; only the product itself is one |
| ` + "`wrapper`" + ` | the program starts another one that is given as an argument |
| ` + "`PROGRAM-flag`, `PROGRAM-value`, `PROGRAM-args`" + ` | a flag, a value or an operand that is not listed below |
| ` + "`PROGRAM-need`" + ` | a flag is missing without which the program never ends, changes something or prints a secret |
| ` + "`az-command`" + ` | no command of the tree of azure-cli |
| ` + "`az-mutate`, `az-secret`, `az-exec`, `az-localwrite`, `az-interactive`, `az-auth`, `az-unknown`" + ` | what the az command does instead of reading |
| ` + "`az-option`, `az-value`, `az-file`, `az-output`" + ` | an option, a value, a local file or an output of an az command that reads |
| ` + "`az-query`" + ` | --query is no valid expression; it is refused without asking anybody |
| ` + "`compound`, `redirection`, `background`, `assignment`, `comment`, `expansion`, `substitution`, `glob`, `brace`, `tilde`, `ansi-quote`" + ` | shell syntax, which is not run here |
| ` + "`control-character`, `line-end`, `encoding`, `odd-character`, `command-word`, `syntax`, `empty`, `too-long`, `too-deep`" + ` | the text is no plain command line |
| ` + "`catastrophe`" + ` | FORBIDDEN, see below |

## FORBIDDEN

Found in every command of the text and through every program that starts another one (sudo, env, timeout, xargs, find -exec, sh -c, ssh, kubectl
exec, docker run, az vm run-command and many more):

- a recursive delete, a change of permissions, a move or an emptying mirror of the root, a system directory or a home directory;
- a file system, a partition table or a swap area made on a device, a write to a device, a volume, pool or array removed;
- the machine powered off, restarted, suspended or taken to another run level; every process, everything of root or what process 1 started killed, the way in to the machine (sshd) closed; a fork bomb; another kernel;
- the loss of a file without which nobody can log in or the machine does not start;
- a credential store printed, searched, copied or sent: ssh keys, shadow, ` + "`.env`" + `, kubeconfig, tokens of clouds and tools, ` + "`/proc/*/environ`" + `,
  histories, key stores, configurations with keys; however the path is spelled, climbed to or linked;
- a cloud metadata service asked for a credential, in every spelling of its address.

## Programs
`

// reference renders the page.
func reference(p *Policy) string {
	b := &strings.Builder{}
	b.WriteString(intro)
	for _, d := range p.Describe() {
		if d.Name == "az" {
			continue // below
		}
		fmt.Fprintf(b, "\n### %s\n\n", title(d))
		fmt.Fprintf(b, "SAFE: %s.\n\n", d.Safe)
		writeDoc(b, d, 0)
	}
	writeAz(b, p)
	return b.String()
}

func title(d ToolDoc) string {
	name := d.Name
	if name == "(self)" {
		name = "ghostbot, by its own path"
	}
	return strings.Join(append([]string{name}, d.Other...), ", ")
}

// writeDoc lists what one program or one of its commands allows.
func writeDoc(b *strings.Builder, d ToolDoc, depth int) {
	in := strings.Repeat("  ", depth)
	item := func(label, text string) {
		if text != "" {
			fmt.Fprintf(b, "%s- %s: %s\n", in, label, text)
		}
	}
	for _, n := range d.Needs {
		item("needs", n)
	}
	var plain []string
	for _, f := range d.Flags {
		if f.Value == "" {
			plain = append(plain, f.Names...)
		}
	}
	item("flags", ticked(plain))
	for _, f := range d.Flags {
		if f.Value != "" {
			item(ticked(f.Names), f.Value)
		}
	}
	for _, w := range d.Words {
		value := w.Value
		if value == "" {
			value = "alone"
		}
		item("word "+ticked(w.Names), value)
	}
	item("operands", strings.Join(d.Args, "; "))
	for _, n := range d.Never {
		item("never "+ticked(n.Names), n.Why)
	}
	for _, s := range d.Subs {
		fmt.Fprintf(b, "%s- **%s**\n", in, title(s))
		writeDoc(b, s, depth+1)
	}
}

func ticked(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "` `") + "`"
}

func writeAz(b *strings.Builder, p *Policy) {
	docs := p.Describe()
	groups, held := p.DescribeAz()
	fmt.Fprintf(b, "\n## az\n\nSAFE: %s.\n\n", docs[len(docs)-1].Safe)
	b.WriteString("A command is the leading run of words, in any letter case; no option may stand before it. Never SAFE, whatever the command: an argument that az would\n" +
		"read from a file (`@file`, `@-`), `--debug`, account keys, SAS and connection strings, `--auth-mode key`, `--follow`; a shortened option counts as the\n" +
		"one that it would become. `wait` is a read that the command's time bounds.\n\n" +
		"Reads that are held back, because their plain output may carry a secret or has any size:\n\n")
	for _, h := range held {
		fmt.Fprintf(b, "- %s\n", h)
	}
	b.WriteString("\n| first word | commands that read | all |\n|---|---|---|\n")
	for _, g := range groups {
		fmt.Fprintf(b, "| `%s` | %d | %d |\n", g.Name, g.Reads, g.All)
	}
}

// Every program says in words what of it is SAFE, and every "never" says why.
func TestDescribed(t *testing.T) {
	var walk func(d ToolDoc)
	walk = func(d ToolDoc) {
		for _, n := range d.Never {
			if n.Why == "" || len(n.Names) == 0 {
				t.Errorf("%s: %v is never SAFE without a reason", d.Name, n.Names)
			}
		}
		for _, s := range d.Subs {
			walk(s)
		}
	}
	for _, d := range New(Options{}).Describe() {
		if d.Safe == "" {
			t.Errorf("%s does not say what is SAFE", d.Name)
		}
		walk(d)
	}
}
