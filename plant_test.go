package ghostbot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlantedViolations proves that every rule of the tree fails on code that
// breaks it.
func TestPlantedViolations(t *testing.T) {
	const good = "// Package audit is planted.\npackage audit\n"
	tests := []struct{ name, path, code, want string }{
		{"no package comment", "audit/a.go", "package audit\n", "no package comment"},
		{"unknown package", "surprise/a.go", "// Package surprise is planted.\npackage surprise\n", "not in the table of arrows"},
		{"forbidden arrow", "audit/a.go", good + "import _ \"ghostbot/store\"\n", "this arrow is not in the table"},
		{"arrow upwards", "safeexec/a.go", "// Package safeexec is planted.\npackage safeexec\nimport _ \"ghostbot/bot\"\n", "this arrow is not in the table"},
		{"process outside the gate", "bot/a.go", "// Package bot is planted.\npackage bot\nimport _ \"os/exec\"\n", "only the gate and the lab start processes"},
		{"process without os/exec", "bot/a.go", "// Package bot is planted.\npackage bot\nimport \"os\"\nfunc f() { os.StartProcess(\"\", nil, nil) }\n", "starts a process"},
		{"signal", "bot/a.go", "// Package bot is planted.\npackage bot\nimport \"syscall\"\nfunc f() { syscall.Kill(1, 9) }\n", "signals other processes"},
		{"goroutine", "audit/a.go", good + "func f() { go f() }\n", "go statement outside"},
		{"goroutine of a group", "audit/a.go", good + "import \"sync\"\nfunc f() { var wg sync.WaitGroup; wg.Go(func() {}) }\n", "goroutine outside"},
		{"flag in any base", "audit/a.go", good + "import \"flag\"\nfunc f(fs *flag.FlagSet) { fs.Int(\"n\", 0, \"\") }\n", "flag Int reads other bases"},
		{"flag in any base of a field", "audit/a.go", good + "import \"flag\"\nfunc f(fs *flag.FlagSet, n *uint64) { fs.Uint64Var(n, \"n\", 0, \"\") }\n", "flag Uint64Var reads other bases"},
		{"variable in any base", "audit/a.go", good + "type c struct {\n\tN int `envconfig:\"N\"`\n}\n", "variable of type int reads other bases"},
		{"init", "audit/a.go", good + "func init() {}\n", "init function"},
		{"state at package level", "audit/a.go", good + "var calls int\n", "no initial value"},
		{"unlisted module", "audit/a.go", good + "import _ \"example.com/left/pad\"\n", "third-party module"},
		{"long function", "audit/a.go", good + "func f() {\n" + strings.Repeat("\tf()\n", maxFunc+1) + "}\n", "lines, at most"},
		{"large package", "audit/a.go", good + "func f() {\n}\n" + strings.Repeat("func F() {\n\tf()\n}\n", maxPackage/3+10), "lines of code, at most"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			file := filepath.Join(root, tt.path)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(tt.code), 0o644); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(check(t, root), "\n")
			if !strings.Contains(got, tt.want) {
				t.Errorf("check says %q, want something with %q", got, tt.want)
			}
		})
	}
	t.Run("clean", func(t *testing.T) {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "audit"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "audit", "a.go"), []byte(good), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := check(t, root); len(got) > 0 {
			t.Errorf("check finds %v in a clean tree", got)
		}
	})
}
