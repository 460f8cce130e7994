package pattern

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSameAsRegexp(t *testing.T) {
	const expr, text = `(?i)([a-z]+)=(\d*)`, "a=1, Bc=22, =3, d="
	re := regexp.MustCompile(expr)
	p := New(expr)
	for _, s := range []string{text, "", "x", "=", strings.Repeat(text, 3)} {
		got := []any{p.MatchString(s), p.FindString(s), p.FindStringSubmatch(s), p.FindAllStringSubmatch(s, 2), p.FindAllSubmatchIndex([]byte(s), -1), p.FindAllStringSubmatchIndex(s, -1), p.ReplaceAllString(s, "$2")}
		want := []any{re.MatchString(s), re.FindString(s), re.FindStringSubmatch(s), re.FindAllStringSubmatch(s, 2), re.FindAllSubmatchIndex([]byte(s), -1), re.FindAllStringSubmatchIndex(s, -1), re.ReplaceAllString(s, "$2")}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-regexp +pattern):\n%s", s, diff)
		}
	}
}

func TestConcurrentFirstUse(t *testing.T) {
	p := New(`^a+$`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if !p.MatchString("aaa") {
				t.Error("no match")
			}
		})
	}
	wg.Wait()
}

func TestBadPatternPanicsAtFirstUse(t *testing.T) {
	p := New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("it was used")
		}
	}()
	p.MatchString("x")
}

// A pattern that does not compile would show only when an incident needs it.
func TestEveryPatternCompiles(t *testing.T) {
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	own, _ := filepath.Glob("../*.go")
	seen := 0
	for _, name := range append(files, own...) {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		names := constants(f)
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "New" || len(call.Args) != 1 {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); !ok || x.Name != "pattern" {
				return true
			}
			seen++
			if _, err := regexp.Compile(literal(t, names, call.Args[0])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return true
		})
	}
	if seen < 50 {
		t.Errorf("%d patterns are found, where are the others?", seen)
	}
}

// constants are the constants that a file declares.
func constants(f *ast.File) map[string]ast.Expr {
	out := map[string]ast.Expr{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			for i, v := range s.(*ast.ValueSpec).Values {
				out[s.(*ast.ValueSpec).Names[i].Name] = v
			}
		}
	}
	return out
}

// literal is the text of string literals and of constants, also joined with +.
func literal(t *testing.T, names map[string]ast.Expr, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		return s
	case *ast.BinaryExpr:
		return literal(t, names, e.X) + literal(t, names, e.Y)
	case *ast.Ident:
		if v, ok := names[e.Name]; ok {
			return literal(t, names, v)
		}
	}
	t.Fatalf("a pattern that is no literal: %T", e)
	return ""
}
