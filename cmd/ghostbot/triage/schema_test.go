package triage_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaDir is where the published schemas are, from this package.
const schemaDir = "../../../docs/schemas"

// schemas compiles the published schemas once.
var schemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	dir := schemaDir
	if d := os.Getenv(inner); d != "" {
		dir = filepath.Join(d, "schemas")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.schema.json"))
	if err != nil {
		return nil, err
	}
	out := map[string]*jsonschema.Schema{}
	for _, f := range files {
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		s, err := c.Compile(f)
		if err != nil {
			return nil, err
		}
		out[strings.TrimSuffix(filepath.Base(f), ".schema.json")] = s
	}
	return out, nil
})

// valid holds a document against the schema of its verb. Projections leave out
// what the schema wants and are checked without their candidates.
func (l *lab) valid(args []string, out string) {
	l.Helper()
	if slices.ContainsFunc(args, func(s string) bool { return s == "--format" || s == "tail" }) || out == "" {
		return
	}
	all, err := schemas()
	if err != nil {
		l.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
	if err != nil {
		if !slices.Contains(args, "report") {
			l.Errorf("%v: no JSON: %v\n%.300s", args, err, out)
		}
		return
	}
	name := args[1]
	m, _ := doc.(map[string]any)
	switch {
	case m["error"] != nil && m["pid"] == nil:
		name = "error"
	case name == "sessions" && slices.Contains(args, "--session"):
		name = "status"
	case name == "report" || name == "export":
		name = "written"
	case name == "plan" && slices.Contains(args, "--fields"):
		m["candidates"] = []any{}
	}
	if all[name] == nil {
		l.Fatalf("no schema for %s", name)
	}
	if err := all[name].Validate(doc); err != nil {
		l.Errorf("%v: %v\n%.1000s", args, err, out)
	}
}

// TestSchemasAreStrict proves that the schemas refuse what the contract forbids.
func TestSchemasAreStrict(t *testing.T) {
	if os.Getenv(inner) != "" {
		t.Skip("this is the inside")
	}
	all, err := schemas()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 12 {
		t.Fatalf("%d schemas", len(all))
	}
	l := &lab{T: t, dir: t.TempDir()}
	good := replayDocument(t, l)
	if err := validate(t, all["plan"], good); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct{ old, new string }{
		{`"schema_version":"1.0.0"`, `"schema_version":1`},
		{`"session_id":"sess-`, `"session_id":"pt-`},
		{`"classification":"useful"`, `"classification":"fine"`},
		{`"confidence":"very_high"`, `"confidence":"certain"`},
		{`"risk_level":"none"`, `"risk_level":"unknown"`},
		{`"recommended_action":"spare"`, `"recommended_action":"keep"`},
		{`"reversible":`, `"reversable":`},
		{`"uncertainty":`, `"doubt":`},
		{`"total_scanned":1`, `"total_scanned":"1"`},
		{`"start_id":"00000000`, `"start_id":"pid:00000000`},
		{`"candidates":[`, `"candidate":[`},
	} {
		changed := strings.Replace(good, bad.old, bad.new, 1)
		if changed == good {
			t.Errorf("%s is not in the document", bad.old)
		} else if validate(t, all["plan"], changed) == nil {
			t.Errorf("%s is accepted", bad.new)
		}
	}
}

func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

// TestSchemasAreSelfContained: nobody needs a network to read them.
func TestSchemasAreSelfContained(t *testing.T) {
	if os.Getenv(inner) != "" {
		t.Skip("this is the inside")
	}
	files, err := filepath.Glob(filepath.Join(schemaDir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"\$ref": "([^"]*)"`).FindAllStringSubmatch(string(b), -1) {
			if !strings.HasPrefix(m[1], "#/$defs/") {
				t.Errorf("%s refers to %s", f, m[1])
			}
		}
		var doc struct {
			Required []string `json:"required"`
		}
		if err := json.Unmarshal(b, &doc); err != nil || len(doc.Required) == 0 {
			t.Errorf("%s: %v, %v", f, doc.Required, err)
		}
	}
}
