package ghostbot

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestDocumentsKnowTheProgram compares the tables of the documents with the code
// that they describe, in both directions.
func TestDocumentsKnowTheProgram(t *testing.T) {
	tests := []struct{ what, code, doc string }{
		{"variables of serve",
			all(t, "cmd/ghostbot/config.go", `envconfig:"(\w+)"`),
			all(t, section(t, "docs/operating.md", "## Variables of `serve`"), "(?m)^\\| `([A-Z_]+)` \\|")},
		{"verbs",
			all(t, between(t, "cmd/ghostbot/main.go", "func verbs()", "\n}\n"), `(?m)^\t*\{"(\w+)", `),
			all(t, between(t, "docs/cli.md", "## Verbs", "\n### "), "(?m)^\\| `([a-z]+)` \\|")},
		{"verbs of audit",
			all(t, between(t, "cmd/ghostbot/audit.go", "switch rest[0]", "\n\t}\n"), `case "(\w+)"`),
			all(t, section(t, "docs/cli.md", "### audit"), "(?m)^\\| `([a-z]+)` \\|")},
		{"variables in the README",
			all(t, "cmd/ghostbot/config.go", `envconfig:"(\w+)"`),
			all(t, section(t, "README.md", "### Configuration"), "(?m)^\\| `([A-Z_]+)` \\|")},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(strings.Fields(tt.code), strings.Fields(tt.doc)); diff != "" {
			t.Errorf("%s: the code (-) and the document (+) differ:\n%s", tt.what, diff)
		}
	}
}

// TestDocumentsNameWhatExists checks what documents mention in passing: variables,
// targets of the Makefile, packages, and modules of the shipped binary.
func TestDocumentsNameWhatExists(t *testing.T) {
	config, makefile := text(t, "cmd/ghostbot/config.go"), text(t, "Makefile")
	for _, name := range documents(t) {
		doc := text(t, name)
		for _, v := range regexp.MustCompile(`\b(GHOST|SLACK)_[A-Z][A-Z_]*[A-Z]\b`).FindAllString(doc, -1) {
			if !strings.Contains(config+makefile, v) {
				t.Errorf("%s: nothing reads %s", name, v)
			}
		}
		for _, m := range regexp.MustCompile("(?m)(?:`|^)make ([a-z0-9-]+)").FindAllStringSubmatch(doc, -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: there is no make %s", name, m[1])
			}
		}
	}
	// The README says that make help lists them all; what only prepares others is no command.
	help, _, _ := strings.Cut(makefile[strings.Index(makefile, "\nhelp:"):], "\n\n")
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(makefile, -1) {
		if name := m[1]; name != "help" && !strings.HasPrefix(name, "deps-") && !regexp.MustCompile(`make `+name+`[ "]`).MatchString(help) {
			t.Errorf("make help says nothing of make %s", name)
		}
	}
	pkgs, _ := load(t, ".")
	readme, architecture := text(t, "README.md"), text(t, "docs/architecture.md")
	for _, name := range slices.Sorted(maps.Keys(arrows)) {
		room := strings.TrimPrefix(name, "ghostbot/")
		if pkgs[name] != nil && name != "ghostbot" && !strings.Contains(architecture, "`"+room+"`") {
			t.Errorf("docs/architecture.md: nothing about %s", room)
		}
	}
	for name, p := range pkgs {
		if strings.Contains(name, "internal/") || strings.Contains(name, "ghostlab") {
			continue
		}
		for im := range p.imports {
			root := slices.IndexFunc(thirdParty, func(r string) bool { return im == r || strings.HasPrefix(im, r+"/") })
			if root >= 0 && len(p.files) > 0 && !strings.Contains(readme, "`"+thirdParty[root]+"`") {
				t.Errorf("README.md: no reason for %s, which %s imports", thirdParty[root], name)
			}
		}
	}
}

// codeSpan is text in backticks: what looks like a link there is none.
var codeSpan = regexp.MustCompile("`[^`\n]*`")

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksResolve(t *testing.T) {
	for _, name := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(text(t, name), ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") {
				continue
			}
			file := name
			if target != "" {
				file = filepath.Join(filepath.Dir(name), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s: %v", name, m[1], err)
			} else if anchor != "" && !slices.Contains(anchors(text(t, file)), anchor) {
				t.Errorf("%s: %s: no such heading", name, m[1])
			}
		}
	}
}

var (
	picture = regexp.MustCompile(`!\[([^\]]*)\]\(([^)\s]+)\)`)
	tag     = regexp.MustCompile(`<img\b[^>]*>`)
	source  = regexp.MustCompile(`\bsrc="([^"]+)"`)
	words   = regexp.MustCompile(`\balt="([^"]+)"`)
)

// pictureLimit is what a picture may weigh, in bytes: a clone carries all of them.
const pictureLimit = 300_000

// TestPictures checks that every picture that a document names is there and says in words what it
// shows, that none is left over, and that each recording of a terminal became one.
func TestPictures(t *testing.T) {
	used := map[string]bool{}
	for _, name := range documents(t) {
		shown := picture.FindAllStringSubmatch(text(t, name), -1)
		for _, img := range tag.FindAllString(text(t, name), -1) {
			src, alt := source.FindStringSubmatch(img), words.FindStringSubmatch(img)
			if src == nil || alt == nil {
				t.Errorf("%s: %s: want src and alt", name, img)
				continue
			}
			shown = append(shown, []string{img, alt[1], src[1]})
		}
		for _, m := range shown {
			file := filepath.Join(filepath.Dir(name), m[2])
			used[file] = true
			if len(strings.Fields(m[1])) < 4 {
				t.Errorf("%s: %s: the alternative text %q says too little", name, m[2], m[1])
			}
			if info, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v; make screenshots", name, err)
			} else if info.Size() >= pictureLimit {
				t.Errorf("%s has %d bytes, less than %d are allowed", file, info.Size(), pictureLimit)
			}
		}
	}
	there, err := filepath.Glob("docs/images/*")
	if err != nil || len(there) == 0 {
		t.Fatalf("docs/images: %v, %v", there, err)
	}
	for _, file := range there {
		if recording, ok := strings.CutSuffix(file, ".txt"); ok {
			file = recording + ".png" // make screenshots turns one into the other
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%v; make screenshots", err)
			}
		}
		if !used[file] {
			t.Errorf("%s: no document shows it", file)
		}
	}
}

// anchors are the fragments of a document's headings.
func anchors(doc string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(doc, -1) {
		out = append(out, strings.ReplaceAll(regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return out
}

// places are paths of one machine and hosts that only some people reach. They are
// put together here so that this file does not contain them.
var places = regexp.MustCompile(`(?:^|[\s"'(=` + "`" + `])/(?:wo` + `rk|tmp/c` + `tx)/|arti` + `factory|jfr` + `og\.io|npm` + `mirror|go` + `proxy\.|\.corp\.exa` + `mple`)

func TestTreeNamesNoMachine(t *testing.T) {
	walk(t, func(name, content string) {
		for i, line := range strings.Split(content, "\n") {
			if m := places.FindString(line); m != "" {
				t.Errorf("%s:%d: mentions %q", name, i+1, m)
			}
		}
	})
}

// walk visits the text files of the tree.
func walk(t *testing.T, visit func(name, content string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "node_modules"}, d.Name()):
			return filepath.SkipDir
		case !d.Type().IsRegular(), d.Name() == ".git": // a file in a linked work tree
			return nil
		}
		if b, err := os.ReadFile(name); err == nil && utf8.Valid(b) { // a file that just went is no finding
			visit(name, string(b))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	var out []string
	walk(t, func(name, _ string) {
		if filepath.Ext(name) == ".md" && !strings.Contains(name, "testdata") {
			out = append(out, name)
		}
	})
	return out
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// section is a part of a document, from a heading to the next one of its level or
// above.
func section(t *testing.T, name, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text(t, name), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s: no heading %q", name, heading)
	}
	for n := strings.IndexByte(heading, ' '); n > 1; n-- {
		rest, _, _ = strings.Cut(rest, "\n"+strings.Repeat("#", n)+" ")
	}
	return rest
}

func between(t *testing.T, name, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text(t, name), from)
	out, _, closed := strings.Cut(rest, to)
	if !ok || !closed {
		t.Fatalf("%s: nothing between %q and %q", name, from, to)
	}
	return out
}

// all lists what a pattern finds, sorted, each once. src is a text, or the name of
// a file.
func all(t *testing.T, src, pattern string) string {
	t.Helper()
	if !strings.Contains(src, "\n") {
		src = text(t, src)
	}
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(src, -1) {
		found[m[1]] = true
	}
	if len(found) == 0 {
		t.Fatalf("nothing matches %s", pattern)
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), " ")
}

// TestClaimsHaveTests: a test that a document names as proof, as "package: TestName",
// exists in that package, and the threat model names one for each claim.
func TestClaimsHaveTests(t *testing.T) {
	named := 0
	for _, name := range documents(t) {
		for _, m := range regexp.MustCompile("`([a-z0-9/]+): ((?:Test|Fuzz|Benchmark)[A-Za-z0-9]+)`").FindAllStringSubmatch(text(t, name), -1) {
			named++
			found := false
			files, err := filepath.Glob(filepath.Join(m[1], "*_test.go"))
			for _, f := range files {
				found = found || strings.Contains(text(t, f), "\nfunc "+m[2]+"(")
			}
			if err != nil || !found {
				t.Errorf("%s: there is no %s in %s", name, m[2], m[1])
			}
		}
	}
	for line := range strings.Lines(between(t, "docs/threat-model.md", "## What holds", "## What does not hold")) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| claim") && !strings.Contains(line, "`") {
			t.Errorf("a claim without a test: %s", line)
		}
	}
	if named == 0 {
		t.Error("no document names a test")
	}
}
