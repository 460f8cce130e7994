package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// everyVerb are the flags that a document names once for all verbs.
var everyVerb = []string{"--audit-dir", "--state-dir"}

// called runs the program in this process.
func called(args ...string) (out, errOut string, code int) {
	var o, e bytes.Buffer
	code = run(context.Background(), &cli{in: strings.NewReader(""), out: &o, err: &e}, args)
	return o.String(), e.String(), code
}

var flagWord = regexp.MustCompile("(?:^|[\\s\\[(`])(--?[a-z][a-z-]*)")

// flagsIn are the flags that a text names, those of every verb left out.
func flagsIn(text string) []string {
	out := []string{}
	for _, m := range flagWord.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(everyVerb, m[1]) && m[1] != "--help" {
			out = append(out, m[1])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// What a verb takes, what its usage line says and what the document says are the
// same flags.
func TestHelpAndDocumentsAgree(t *testing.T) {
	b, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for _, v := range verbs() {
		if v.name == "agent" { // has verbs with flags of their own, by a contract of its own: docs/triage.md
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			help, errOut, code := called(v.name, "--help")
			usage, flags, _ := strings.Cut(help, "\n")
			if code != exitOK || errOut != "" || !strings.HasPrefix(usage, "usage: ghostbot "+v.name+" [--state-dir DIR] [--audit-dir DIR]") {
				t.Fatalf("--help: exit code %d, %q, %q", code, help, errOut)
			}
			_, errOut, code = called(v.name, "--no-such-flag")
			_, accepted, ok := strings.Cut(strings.SplitN(errOut, "\n", 2)[0], "(accepted flags: ")
			if code != exitUsage || !ok {
				t.Fatalf("a flag that is none: exit code %d, %q", code, errOut)
			}
			takes := flagsIn(accepted)
			if diff := cmp.Diff(takes, flagsIn(usage)); diff != "" {
				t.Errorf("the verb (-) and its usage line (+): %s", diff)
			}
			if diff := cmp.Diff(takes, flagsIn(flags)); diff != "" || strings.Contains(flags, "not described") {
				t.Errorf("the verb (-) and what its help says of each flag (+): %s\n%s", diff, flags)
			}
			row := regexp.MustCompile("(?m)^\\| `" + v.name + "` \\|.*$").FindString(doc)
			if diff := cmp.Diff(takes, flagsIn(row)); diff != "" {
				t.Errorf("the verb (-) and its row of the document (+): %s", diff)
			}
			for _, f := range everyVerb {
				if !strings.Contains(accepted, f) {
					t.Errorf("it takes no %s", f)
				}
			}
		})
	}
}
