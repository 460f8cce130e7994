package forensics

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ghostbot/forensics/report/advice"
)

// sources reads all Go files below some folders, tests or the rest.
func sources(t *testing.T, tests bool, dirs ...string) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") != tests {
				return err
			}
			raw, err := os.ReadFile(path)
			b.Write(raw)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestKinds compares the table of docs/forensics.md with the code, both ways: every code
// of a rule is described and advised on, every described code exists, and so do the tests
// that the table names.
func TestKinds(t *testing.T) {
	raw, err := os.ReadFile("../docs/forensics.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("`([a-z0-9-]+)`")
	rules := sources(t, false, "finding")
	tests := sources(t, true, ".", "../cmd/ghostbot/pcap")
	var played []string
	for _, s := range slices.Concat(firstScenarios(), moreScenarios(), clockScenarios()) {
		played = append(played, s.code)
	}
	var described []string
	for l := range strings.Lines(string(raw)) {
		cells := strings.Split(l, "|")
		if len(cells) != 5 || !strings.HasPrefix(l, "| `") {
			continue
		}
		for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
			described = append(described, m[1])
			if !strings.Contains(rules, `"`+m[1]+`"`) {
				t.Errorf("no rule says %s", m[1])
			}
			if _, ok := advice.For(m[1]); !ok {
				t.Errorf("no advice for %s", m[1])
			}
		}
		named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(cells[3], -1)
		for _, m := range named {
			if !strings.Contains(tests, "func "+m[1]+"(") {
				t.Errorf("%s: there is no %s", cells[1], m[1])
			}
		}
		how := strings.Fields(code.ReplaceAllString(cells[3], ""))
		if s := slices.Contains(how, "S"); s && !slices.ContainsFunc(code.FindAllStringSubmatch(cells[1], -1), func(m []string) bool { return slices.Contains(played, m[1]) }) {
			t.Errorf("%s: no scenario", cells[1])
		} else if !s && len(named) == 0 && !slices.Contains(how, "L") {
			t.Errorf("%s: no test is named", cells[1])
		}
	}
	for _, m := range regexp.MustCompile(`"([a-z0-9]+(?:-[a-z0-9]+)+)"`).FindAllStringSubmatch(rules, -1) {
		if !slices.Contains(described, m[1]) {
			t.Errorf("%s is not described", m[1])
		}
	}
	if len(described) < 80 {
		t.Errorf("%d codes are described", len(described))
	}
}
