package ghostbot

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// arrows are the imports of our own packages that are allowed. A package that is
// not listed here fails the test. "..." allows the package's own rooms.
var arrows = map[string][]string{
	"ghostbot":                  {},
	"ghostbot/audit":            {"ghostbot/internal/beneath"},
	"ghostbot/store":            {},
	"ghostbot/store/storetest":  {"ghostbot/store"},
	"ghostbot/store/sealed":     {"ghostbot/store"},
	"ghostbot/store/file":       {"ghostbot/store", "ghostbot/internal/beneath"},
	"ghostbot/store/redis":      {"ghostbot/store", "ghostbot/internal/input"},
	"ghostbot/internal/fault":   {},
	"ghostbot/internal/input":   {},
	"ghostbot/internal/otlp":    {},
	"ghostbot/internal/beneath": {"ghostbot/internal/fault"},

	"ghostbot/triage":              {"ghostbot/triage/...", "ghostbot/internal/input"},
	"ghostbot/triage/scan":         {"ghostbot/triage/model", "ghostbot/triage/proc"},
	"ghostbot/triage/policy":       {"ghostbot/triage/model", "ghostbot/triage/scan"},
	"ghostbot/triage/plan":         {"ghostbot/triage/model", "ghostbot/triage/policy", "ghostbot/triage/proc", "ghostbot/triage/scan"},
	"ghostbot/triage/act":          {"ghostbot/triage/model", "ghostbot/triage/pidfd", "ghostbot/triage/plan", "ghostbot/triage/policy", "ghostbot/triage/proc", "ghostbot/triage/scan", "ghostbot/triage/session"},
	"ghostbot/triage/view":         {"ghostbot/triage/act", "ghostbot/triage/model", "ghostbot/triage/plan", "ghostbot/triage/scan", "ghostbot/triage/session"},
	"ghostbot/cmd/ghostbot/answer": {"ghostbot/audit"},
	"ghostbot/cmd/ghostbot/triage": {"ghostbot/cmd/ghostbot/answer", "ghostbot/cmd/ghostbot/options", "ghostbot/triage", "ghostbot/triage/...", "ghostbot/safeexec", "ghostbot/safeexec/policy", "ghostbot/safeexec/redact", "ghostbot/internal/input"},

	"ghostbot/triage/proc":    {},
	"ghostbot/triage/model":   {},
	"ghostbot/triage/pidfd":   {},
	"ghostbot/triage/session": {"ghostbot/internal/beneath"},

	"ghostbot/safeexec":           {"ghostbot/safeexec/policy", "ghostbot/safeexec/redact", "ghostbot/safeexec/truncate", "ghostbot/safeexec/process", "ghostbot/safeexec/anonymize"},
	"ghostbot/safeexec/anonymize": {},
	"ghostbot/safeexec/process":   {},
	"ghostbot/safeexec/policy":    {"ghostbot/safeexec/policy/..."},
	"ghostbot/safeexec/policy/*":  {"ghostbot/safeexec/policy/..."},
	"ghostbot/safeexec/redact":    {"ghostbot/safeexec/redact/..."},
	"ghostbot/safeexec/redact/*":  {"ghostbot/safeexec/redact/..."},
	"ghostbot/safeexec/truncate":  {},

	"ghostbot/orchestrator":           {"ghostbot/safeexec", "ghostbot/orchestrator/..."},
	"ghostbot/orchestrator/*":         {"ghostbot/orchestrator/..."},
	"ghostbot/agent":                  {"ghostbot/safeexec", "ghostbot/orchestrator", "ghostbot/agent/checksum", "ghostbot/agent/commands", "ghostbot/agent/hosts", "ghostbot/agent/hypothesis", "ghostbot/agent/words"},
	"ghostbot/agent/hosts":            {},
	"ghostbot/agent/triage":           {"ghostbot/agent", "ghostbot/agent/hosts", "ghostbot/safeexec"},
	"ghostbot/agent/playbook/suspect": {"ghostbot/agent", "ghostbot/agent/hosts", "ghostbot/agent/playbook/pattern"},
	"ghostbot/agent/checksum":         {},
	"ghostbot/agent/commands":         {"ghostbot/safeexec"},
	"ghostbot/agent/hypothesis":       {},
	"ghostbot/agent/words":            {},
	"ghostbot/agent/playbook":         {"ghostbot/agent", "ghostbot/agent/hosts", "ghostbot/safeexec", "ghostbot/agent/playbook/..."},
	"ghostbot/agent/playbook/*":       {"ghostbot/agent/playbook/..."},
	"ghostbot/agent/brains":           {"ghostbot/agent", "ghostbot/agent/fallback", "ghostbot/agent/gemini", "ghostbot/agent/playbook"},
	"ghostbot/agent/fallback":         {"ghostbot/agent"},
	"ghostbot/agent/sweep":            {"ghostbot/agent", "ghostbot/orchestrator"},
	"ghostbot/agent/recall":           {"ghostbot/agent/playbook/symptom"},
	"ghostbot/agent/gemini":           {"ghostbot/agent", "ghostbot/agent/hosts", "ghostbot/agent/words", "ghostbot/safeexec"},
	"ghostbot/agent/rca":              {"ghostbot/agent", "ghostbot/agent/hosts", "ghostbot/agent/commands", "ghostbot/agent/playbook/symptom", "ghostbot/safeexec", "ghostbot/orchestrator", "ghostbot/audit"},

	"ghostbot/bot":              {"ghostbot/agent", "ghostbot/safeexec", "ghostbot/store", "ghostbot/bot/access", "ghostbot/bot/dormant", "ghostbot/bot/forgotten", "ghostbot/bot/inbox", "ghostbot/bot/neighbours", "ghostbot/bot/proposal", "ghostbot/bot/record", "ghostbot/bot/standstill", "ghostbot/bot/show", "ghostbot/bot/tampered", "ghostbot/bot/thread"},
	"ghostbot/bot/record":       {"ghostbot/agent", "ghostbot/store", "ghostbot/bot/inbox", "ghostbot/bot/proposal", "ghostbot/bot/show", "ghostbot/bot/thread"},
	"ghostbot/bot/standstill":   {"ghostbot/store", "ghostbot/bot/show"},
	"ghostbot/bot/forgotten":    {"ghostbot/agent", "ghostbot/safeexec", "ghostbot/store", "ghostbot/bot/proposal", "ghostbot/bot/record", "ghostbot/bot/thread"},
	"ghostbot/bot/dormant":      {"ghostbot/store", "ghostbot/bot/thread"},
	"ghostbot/bot/neighbours":   {"ghostbot/agent", "ghostbot/store", "ghostbot/bot/inbox", "ghostbot/bot/show", "ghostbot/bot/thread"},
	"ghostbot/bot/inbox":        {"ghostbot/agent", "ghostbot/bot/proposal", "ghostbot/bot/show", "ghostbot/store"},
	"ghostbot/bot/tampered":     {"ghostbot/agent", "ghostbot/bot/show", "ghostbot/store"},
	"ghostbot/bot/access":       {"ghostbot/internal/input"},
	"ghostbot/bot/typed":        {},
	"ghostbot/bot/proposal":     {"ghostbot/agent", "ghostbot/safeexec", "ghostbot/store", "ghostbot/bot/access"},
	"ghostbot/bot/thread":       {"ghostbot/agent", "ghostbot/store", "ghostbot/bot/show"},
	"ghostbot/bot/show":         {"ghostbot/agent", "ghostbot/safeexec"},
	"ghostbot/bot/term":         {"ghostbot/bot", "ghostbot/bot/show", "ghostbot/safeexec", "ghostbot/agent"},
	"ghostbot/bot/slack/*":      {},
	"ghostbot/bot/slack/people": {"ghostbot/bot/access"},
	"ghostbot/bot/factor":       {"ghostbot/internal/input", "ghostbot/store"},
	"ghostbot/bot/slack":        {"ghostbot/bot", "ghostbot/bot/lobby", "ghostbot/agent/hosts", "ghostbot/bot/access", "ghostbot/bot/show", "ghostbot/bot/slack/...", "ghostbot/bot/thread", "ghostbot/bot/typed", "ghostbot/safeexec", "ghostbot/agent"},

	"ghostbot/bot/lobby":             {"ghostbot/agent", "ghostbot/bot", "ghostbot/bot/access", "ghostbot/bot/inbox", "ghostbot/bot/proposal", "ghostbot/bot/record", "ghostbot/bot/show", "ghostbot/bot/thread", "ghostbot/store"},
	"ghostbot/bot/slack/kit":         {"ghostbot/bot/show"},
	"ghostbot/bot/slack/kit/kittest": {"ghostbot/bot/slack/kit"},
	"ghostbot/bot/slack/window":      {"ghostbot/bot/slack/kit"},
	"ghostbot/bot/slack/attach":      {"ghostbot/bot/show", "ghostbot/bot/slack/kit"},
	"ghostbot/bot/slack/entry":       {"ghostbot/agent", "ghostbot/agent/hosts", "ghostbot/bot", "ghostbot/bot/lobby", "ghostbot/bot/show", "ghostbot/bot/slack/kit", "ghostbot/bot/slack/shortcut", "ghostbot/bot/typed"},
	"ghostbot/bot/slack/unsure":      {},
	"ghostbot/bot/slack/lane":        {},
	"ghostbot/bot/slack/grant":       {},
	"ghostbot/bot/slack/home":        {"ghostbot/bot", "ghostbot/bot/lobby", "ghostbot/bot/show", "ghostbot/bot/slack/entry", "ghostbot/bot/slack/kit"},
	"ghostbot/bot/slack/shortcut":    {"ghostbot/bot/show"},

	"ghostbot/forensics":   {"ghostbot/forensics/..."},
	"ghostbot/forensics/*": {"ghostbot/forensics/..."},

	"ghostbot/cmd/ghostbot/*":        {},
	"ghostbot/cmd/ghostbot/memory":   {"ghostbot/agent", "ghostbot/agent/recall", "ghostbot/audit", "ghostbot/bot", "ghostbot/bot/record", "ghostbot/bot/show", "ghostbot/cmd/ghostbot/keyring", "ghostbot/store", "ghostbot/internal/input"},
	"ghostbot/cmd/ghostbot/home":     {"ghostbot/audit", "ghostbot/bot", "ghostbot/bot/proposal", "ghostbot/cmd/ghostbot/keyring", "ghostbot/cmd/ghostbot/ledger", "ghostbot/cmd/ghostbot/stray", "ghostbot/cmd/ghostbot/topology", "ghostbot/store", "ghostbot/store/file", "ghostbot/store/redis", "ghostbot/store/sealed"},
	"ghostbot/cmd/ghostbot/stray":    {"ghostbot/audit", "ghostbot/store"},
	"ghostbot/cmd/ghostbot/ledger":   {"ghostbot/agent", "ghostbot/audit", "ghostbot/bot", "ghostbot/store"},
	"ghostbot/cmd/ghostbot/cloud":    {"ghostbot/agent", "ghostbot/audit", "ghostbot/orchestrator", "ghostbot/orchestrator/...", "ghostbot/safeexec"},
	"ghostbot/cmd/ghostbot/checkup":  {"ghostbot/agent/brains", "ghostbot/audit", "ghostbot/bot/access", "ghostbot/bot/slack", "ghostbot/bot/slack/grant", "ghostbot/bot/slack/pace", "ghostbot/cmd/ghostbot/health", "ghostbot/cmd/ghostbot/keyring", "ghostbot/cmd/ghostbot/stray", "ghostbot/cmd/ghostbot/vault", "ghostbot/cmd/ghostbot/who", "ghostbot/safeexec", "ghostbot/safeexec/policy", "ghostbot/store", "ghostbot/store/file", "ghostbot/store/redis", "ghostbot/store/sealed"},
	"ghostbot/cmd/ghostbot/who":      {"ghostbot/bot", "ghostbot/bot/access", "ghostbot/bot/factor", "ghostbot/store"},
	"ghostbot/cmd/ghostbot/topology": {"ghostbot/internal/input"},
	"ghostbot/cmd/ghostbot/totp":     {"ghostbot/bot/factor", "ghostbot/cmd/ghostbot/who"},
	"ghostbot/cmd/ghostbot/forget":   {"ghostbot/audit", "ghostbot/bot", "ghostbot/cmd/ghostbot/home", "ghostbot/cmd/ghostbot/keyring", "ghostbot/cmd/ghostbot/ledger", "ghostbot/store", "ghostbot/store/file", "ghostbot/store/sealed"},
	"ghostbot/cmd/ghostbot/secrets":  {"ghostbot/internal/input"},
	"ghostbot/cmd/ghostbot/dotenv":   {"ghostbot/internal/input"},
	"ghostbot/cmd/ghostbot/evidence": {"ghostbot/agent/rca", "ghostbot/audit", "ghostbot/cmd/ghostbot/keyring", "ghostbot/cmd/ghostbot/vault", "ghostbot/internal/input"},
	"ghostbot/cmd/ghostbot/ops":      {"ghostbot/agent", "ghostbot/bot", "ghostbot/cmd/ghostbot/health", "ghostbot/cmd/ghostbot/logs", "ghostbot/cmd/ghostbot/metrics", "ghostbot/cmd/ghostbot/observe", "ghostbot/cmd/ghostbot/spans", "ghostbot/store"},
	"ghostbot/cmd/ghostbot/logs":     {"ghostbot/agent", "ghostbot/cmd/ghostbot/observe", "ghostbot/safeexec"},
	"ghostbot/cmd/ghostbot/spans":    {"ghostbot/agent", "ghostbot/cmd/ghostbot/observe", "ghostbot/orchestrator", "ghostbot/safeexec"},
	"ghostbot/cmd/ghostbot/observe":  {"ghostbot/agent", "ghostbot/audit", "ghostbot/bot", "ghostbot/store"},
	"ghostbot/cmd/ghostbot/metrics":  {"ghostbot/agent", "ghostbot/cmd/ghostbot/observe", "ghostbot/orchestrator", "ghostbot/safeexec", "ghostbot/store"},
	"ghostbot/cmd/ghostbot/keyring":  {"ghostbot/audit", "ghostbot/store", "ghostbot/store/sealed", "ghostbot/internal/input"},
	"ghostbot/cmd/ghostbot/vault":    {"ghostbot/safeexec", "ghostbot/internal/input"},
	"ghostbot/cmd/ghostbot/pcap":     {"ghostbot/cmd/ghostbot/bar", "ghostbot/cmd/ghostbot/vault", "ghostbot/forensics", "ghostbot/forensics/..."},
	"ghostbot/cmd/ghostbot":          {"ghostbot/cmd/ghostbot/...", "ghostbot/forensics", "ghostbot/forensics/...", "ghostbot/agent", "ghostbot/agent/...", "ghostbot/audit", "ghostbot/bot", "ghostbot/bot/...", "ghostbot/orchestrator", "ghostbot/orchestrator/...", "ghostbot/safeexec", "ghostbot/safeexec/...", "ghostbot/store", "ghostbot/store/...", "ghostbot/internal/input"},
	"ghostbot/cmd/ghostbot/jsonl":    {},
	"ghostbot/cmd/ghostbot/plots":    {"ghostbot/cmd/ghostbot/vault"},
	"ghostbot/cmd/ghostbot/options":  {},

	"ghostbot/internal/pcapgen": {},

	"ghostbot/forensics/trace":           {"ghostbot/forensics/frame"},
	"ghostbot/forensics/trace/tracetest": {"ghostbot/forensics/trace"},
	"ghostbot/forensics/picture":         {"ghostbot/forensics/trace"},
	"ghostbot/forensics/compare":         {"ghostbot/forensics/trace", "ghostbot/forensics/compare/..."},
	"ghostbot/forensics/compare/*":       {},
	"ghostbot/forensics/report":          {"ghostbot/forensics/compare", "ghostbot/forensics/compare/...", "ghostbot/forensics/report/advice"},
	"ghostbot/forensics/report/advice":   {},

	"ghostbot/internal/sim/gemini":    {},
	"ghostbot/internal/sim/redis":     {},
	"ghostbot/internal/sim/slack":     {"ghostbot/internal/sim/slack/..."},
	"ghostbot/internal/sim/slack/*":   {"ghostbot/internal/sim/slack/..."},
	"ghostbot/internal/sim/azure":     {"ghostbot/internal/sim/azure/..."},
	"ghostbot/internal/sim/azure/*":   {"ghostbot/internal/sim/azure/..."},
	"ghostbot/internal/sim/azure/lab": {"ghostbot/internal/sim/azure", "ghostbot/internal/sim/azure/..."},
	"ghostbot/cmd/ghostlab":           {"ghostbot/internal/...", "ghostbot/cmd/ghostlab/..."},
	"ghostbot/cmd/ghostlab/*":         {"ghostbot/internal/...", "ghostbot/cmd/ghostlab/..."},
}

// runners may start processes; signallers may signal processes other than their
// own; owners may contain go statements (sync.WaitGroup.Go counts as one);
// stateful packages may keep counters at package level.
var (
	runners    = []string{"ghostbot/safeexec/process", "ghostbot/cmd/ghostlab", "ghostbot/internal/sim/azure/lab", "ghostbot/internal/sim/redis"}
	signallers = []string{"ghostbot/internal/sim/redis", "ghostbot/safeexec/process", "ghostbot/triage/pidfd", "ghostbot/cmd/ghostlab", "ghostbot/internal/fault"}
	owners     = []string{"ghostbot/cmd/ghostbot", "ghostbot/cmd/ghostlab", "ghostbot/bot", "ghostbot/bot/dormant", "ghostbot/bot/proposal", "ghostbot/bot/slack", "ghostbot/bot/slack/link", "ghostbot/bot/slack/people", "ghostbot/bot/term", "ghostbot/safeexec/process", "ghostbot/forensics/belt", "ghostbot/forensics/capture", "ghostbot/internal/sim/azure", "ghostbot/internal/sim/azure/lab", "ghostbot/internal/sim/gemini", "ghostbot/internal/sim/slack", "ghostbot/internal/sim/slack/socket", "ghostbot/store/redis", "ghostbot/store/storetest"}
	stateful   = []string{"ghostbot/internal/fault"}
)

// thirdParty are the module roots that the shipped binary may import.
var thirdParty = []string{
	"filippo.io/age", "github.com/slack-go/slack", "github.com/kelseyhightower/envconfig", "github.com/joho/godotenv",
	"golang.org/x/sys", "golang.org/x/term", "github.com/mattn/go-runewidth", "google.golang.org/genai", "mvdan.cc/sh/v3", "gonum.org/v1/plot", "github.com/google/gopacket", "github.com/klauspost/compress", "github.com/prometheus/client_golang", "go.opentelemetry.io/otel", "github.com/redis/go-redis/v9",
}

const (
	maxFunc    = 120
	p99Func    = 100
	medianFunc = 10
	maxPackage = 2000
	minDoc     = 0.9
	minTests   = 0.9
	minFuzz    = 6
	badErrors  = 0.05
)

// pkg is what the test knows of one package.
type pkg struct {
	path            string
	files           []*ast.File
	doc             bool
	imports         map[string]token.Position
	code, test      int
	exported, named int
	funcs           []int
	errs, opening   int
	findings        []string
	fuzz            int
}

func (p *pkg) bad(fset *token.FileSet, n ast.Node, format string, args ...any) {
	p.findings = append(p.findings, fmt.Sprintf("%s: %s", fset.Position(n.Pos()), fmt.Sprintf(format, args...)))
}

// load parses every package below root.
func load(t *testing.T, root string) (map[string]*pkg, *token.FileSet) {
	t.Helper()
	fset := token.NewFileSet()
	pkgs := map[string]*pkg{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		name := strings.TrimSuffix("ghostbot/"+filepath.ToSlash(rel), "/.")
		p := pkgs[name]
		if p == nil {
			p = &pkg{path: name, imports: map[string]token.Position{}}
			pkgs[name] = p
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		p.add(fset, path, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pkgs, fset
}

// testCode are packages that only tests import: a conformance suite, and what
// starts programs for them or stands in for one.
func testCode(path string) bool {
	return path == "ghostbot/store/storetest" || path == "ghostbot/bot/slack/kit/kittest" || path == "ghostbot/internal/sim/azure/lab" || path == "ghostbot/internal/sim/azure/fakeaz"
}

func (p *pkg) add(fset *token.FileSet, path string, f *ast.File) {
	lines := codeLines(fset, f)
	if testCode(p.path) {
		p.test, lines = p.test+lines, 0
	}
	if strings.HasSuffix(path, "_test.go") {
		p.test += lines
		for _, d := range f.Decls {
			if fd, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fd.Name.Name, "Fuzz") {
				p.fuzz++
			}
		}
		return
	}
	p.code += lines
	if ast.IsGenerated(f) {
		p.code -= lines
	}
	p.doc = p.doc || f.Doc != nil
	p.files = append(p.files, f)
	for _, im := range f.Imports {
		name, err := strconv.Unquote(im.Path.Value)
		if err == nil {
			p.imports[name] = fset.Position(im.Pos())
		}
	}
	p.inspect(fset, f)
}

// codeLines counts the lines that hold at least one token of code.
func codeLines(fset *token.FileSet, f *ast.File) int {
	seen := map[int]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n.(type) {
		case nil, *ast.Comment, *ast.CommentGroup:
			return false
		}
		first, last := fset.Position(n.Pos()).Line, fset.Position(n.End()-1).Line
		seen[first], seen[last] = true, true
		if _, text := n.(*ast.BasicLit); text {
			for l := first; l < last; l++ {
				seen[l] = true
			}
		}
		return true
	})
	return len(seen)
}

func (p *pkg) inspect(fset *token.FileSet, f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			p.function(fset, d)
		case *ast.GenDecl:
			p.general(fset, d)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !slices.Contains(owners, p.path) {
				p.bad(fset, n, "go statement outside the owners of goroutines")
			}
		case *ast.CallExpr:
			p.call(fset, n)
		case *ast.Field:
			p.field(fset, n)
		}
		return true
	})
}

func (p *pkg) function(fset *token.FileSet, d *ast.FuncDecl) {
	if d.Name.Name == "init" && d.Recv == nil {
		p.bad(fset, d, "init function")
	}
	p.export(d.Name, d.Doc, d.Recv == nil || exportedReceiver(d.Recv))
	if d.Body == nil {
		return
	}
	n := fset.Position(d.Body.Rbrace).Line - fset.Position(d.Body.Lbrace).Line - 1
	p.funcs = append(p.funcs, max(n, 1))
	if n > maxFunc {
		p.bad(fset, d, "function %s has %d lines, at most %d are allowed", d.Name.Name, n, maxFunc)
	}
}

func exportedReceiver(r *ast.FieldList) bool {
	t := r.List[0].Type
	if s, ok := t.(*ast.StarExpr); ok {
		t = s.X
	}
	if i, ok := t.(*ast.IndexExpr); ok {
		t = i.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}

func (p *pkg) export(id *ast.Ident, doc *ast.CommentGroup, public bool) {
	if !public || !id.IsExported() || strings.Contains(p.path, "/cmd/") {
		return
	}
	p.exported++
	if doc != nil {
		p.named++
	}
}

func (p *pkg) general(fset *token.FileSet, d *ast.GenDecl) {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			p.export(s.Name, firstDoc(s.Doc, d.Doc), true)
		case *ast.ValueSpec:
			for _, id := range s.Names {
				p.export(id, firstDoc(s.Doc, d.Doc, s.Comment), true)
			}
			if d.Tok == token.VAR && !embedded(firstDoc(s.Doc, d.Doc)) {
				p.variable(fset, s)
			}
		}
	}
}

func firstDoc(ds ...*ast.CommentGroup) *ast.CommentGroup {
	for _, d := range ds {
		if d != nil {
			return d
		}
	}
	return nil
}

// embedded reports whether a variable is filled by the compiler.
func embedded(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if strings.HasPrefix(c.Text, "//go:embed ") {
			return true
		}
	}
	return false
}

// variable refuses package variables that hold state: only errors, compiled
// patterns and tables may stand at package level.
func (p *pkg) variable(fset *token.FileSet, s *ast.ValueSpec) {
	for i, id := range s.Names {
		if id.Name == "_" || len(s.Values) > i || slices.Contains(stateful, p.path) {
			continue
		}
		p.bad(fset, id, "package variable %s has no initial value: state does not live at package level", id.Name)
	}
}

var openings = regexp.MustCompile(`^"(failed to|could not|unable to|cannot|error)\b`)

func (p *pkg) call(fset *token.FileSet, c *ast.CallExpr) {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	x, _ := sel.X.(*ast.Ident)
	name := sel.Sel.Name
	if x != nil && (x.Name == "errors" && name == "New" || x.Name == "fmt" && name == "Errorf") && len(c.Args) > 0 {
		if lit, ok := c.Args[0].(*ast.BasicLit); ok {
			p.errs++
			if openings.MatchString(lit.Value) {
				p.opening++
			}
		}
	}
	if x != nil && (x.Name == "unix" || x.Name == "syscall") && (name == "Kill" || name == "PidfdSendSignal" || name == "Tgkill") && !slices.Contains(signallers, p.path) {
		p.bad(fset, c, "signals other processes outside %v", signallers)
	}
	if x != nil && (x.Name == "syscall" || x.Name == "unix" || x.Name == "os") && (name == "Exec" || name == "ForkExec" || name == "StartProcess") && !slices.Contains(runners, p.path) {
		p.bad(fset, c, "starts a process outside %v", runners)
	}
	if n, ok := strings.CutSuffix(name, "Var"); slices.Contains(based, n) && (ok && len(c.Args) == 4 || !ok && len(c.Args) == 3 && literal(c.Args[0]) && literal(c.Args[2])) {
		p.bad(fset, c, "flag %s reads other bases, where 010 is eight: options has decimal ones", name)
	}
	if name == "Go" && len(c.Args) == 1 && !slices.Contains(owners, p.path) {
		if _, ok := c.Args[0].(*ast.FuncLit); ok {
			p.bad(fset, c, "goroutine outside the owners of goroutines")
		}
	}
}

// based are the numbers that package flag and envconfig read in any base.
var based = []string{"Int", "Int64", "Uint", "Uint64", "Float64"}

func literal(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}

// field refuses variables of the environment that are read in any base.
func (p *pkg) field(fset *token.FileSet, f *ast.Field) {
	id, ok := f.Type.(*ast.Ident)
	if ok && f.Tag != nil && strings.Contains(f.Tag.Value, "envconfig:") && (strings.HasPrefix(id.Name, "int") || strings.HasPrefix(id.Name, "uint") || strings.HasPrefix(id.Name, "float")) {
		p.bad(fset, f, "variable of type %s reads other bases, where 010 is eight: options has decimal ones", id.Name)
	}
}

// check returns every violation below root.
func check(t *testing.T, root string) []string {
	t.Helper()
	pkgs, fset := load(t, root)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(pkgs)) {
		p := pkgs[name]
		out = append(out, p.findings...)
		if len(p.files) == 0 {
			continue
		}
		if !p.doc {
			out = append(out, name+": no package comment")
		}
		if p.code > maxPackage {
			out = append(out, fmt.Sprintf("%s: %d lines of code, at most %d are allowed", name, p.code, maxPackage))
		}
		if _, ok := allowed(name); !ok {
			out = append(out, name+": not in the table of arrows")
		}
		for _, im := range slices.Sorted(maps.Keys(p.imports)) {
			if why := importProblem(name, im); why != "" {
				out = append(out, fmt.Sprintf("%s: %s imports %s: %s", p.imports[im], name, im, why))
			}
		}
	}
	_ = fset
	return out
}

func allowed(name string) ([]string, bool) {
	if a, ok := arrows[name]; ok {
		return a, true
	}
	for dir := name; strings.Contains(dir, "/"); {
		dir = dir[:strings.LastIndexByte(dir, '/')]
		if a, ok := arrows[dir+"/*"]; ok {
			return a, true
		}
	}
	return nil, false
}

func importProblem(from, im string) string {
	if im == "os/exec" && !slices.Contains(runners, from) && !strings.HasPrefix(from, "ghostbot/cmd/ghostlab") {
		return "only the gate and the lab start processes"
	}
	if strings.HasPrefix(im, "ghostbot/") {
		list, _ := allowed(from)
		for _, a := range list {
			if a == im || strings.HasSuffix(a, "/...") && strings.HasPrefix(im, strings.TrimSuffix(a, "...")) {
				return ""
			}
		}
		return "this arrow is not in the table"
	}
	if !strings.Contains(strings.SplitN(im, "/", 2)[0], ".") || strings.HasPrefix(from, "ghostbot/internal/") || strings.HasPrefix(from, "ghostbot/cmd/ghostlab") || strings.HasSuffix(from, "test") {
		return ""
	}
	for _, root := range thirdParty {
		if im == root || strings.HasPrefix(im, root+"/") {
			return ""
		}
	}
	return "this third-party module is not in the list (and not in the README)"
}

func TestTree(t *testing.T) {
	for _, v := range check(t, ".") {
		t.Error(v)
	}
}

// TestTreeMeasures checks the bars that are about the tree as a whole.
func TestTreeMeasures(t *testing.T) {
	pkgs, _ := load(t, ".")
	var funcs []int
	var code, tests, exported, named, errs, opening, fuzz int
	for _, p := range pkgs {
		funcs = append(funcs, p.funcs...)
		code, tests, fuzz = code+p.code, tests+p.test, fuzz+p.fuzz
		exported, named = exported+p.exported, named+p.named
		errs, opening = errs+p.errs, opening+p.opening
	}
	sort.Ints(funcs)
	median, p99 := funcs[len(funcs)/2], funcs[len(funcs)*99/100]
	t.Logf("%d packages, %d lines of code, test/code %.2f, %d functions: median %d, p99 %d, longest %d lines; exported with comment %.1f %%; %d fuzz targets; error openings %.1f %%",
		len(pkgs), code, float64(tests)/float64(code), len(funcs), median, p99, funcs[len(funcs)-1], 100*float64(named)/float64(exported), fuzz, 100*float64(opening)/float64(errs))
	if median > medianFunc || p99 > p99Func {
		t.Errorf("functions: median %d lines (at most %d), 99th percentile %d (at most %d)", median, medianFunc, p99, p99Func)
	}
	if r := float64(named) / float64(exported); r < minDoc {
		t.Errorf("exported identifiers with a comment: %.3f, at least %.2f", r, minDoc)
	}
	if r := float64(tests) / float64(code); r < minTests {
		t.Errorf("test/code: %.2f, at least %.2f", r, minTests)
	}
	if fuzz < minFuzz {
		t.Errorf("fuzz targets: %d, at least %d", fuzz, minFuzz)
	}
	if r := float64(opening) / float64(errs); r > badErrors {
		t.Errorf("error texts that open with failed to, could not, ...: %.3f, at most %.2f", r, badErrors)
	}
}
