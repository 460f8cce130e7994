package blockkit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// sharedFile reads a file of the reference folder beside the module; it is not part of the project.
func sharedFile(t *testing.T, name string) []byte {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "..", "shared", name))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("reference not here: %v", err)
	}
	return raw
}

type refField struct {
	Kind     string `json:"kind"`
	Required bool   `json:"required"`
	Max      int    `json:"max"`
	Items    struct {
		OneOf []string `json:"one_of"`
		Max   int      `json:"max"`
	} `json:"items"`
	OneOf  []string `json:"one_of"`
	Values []string `json:"values"`
}

type refShape struct {
	Fields   map[string]refField `json:"fields"`
	Surfaces []Surface           `json:"surfaces"`
}

type reference struct {
	Objects  map[string]refShape `json:"objects"`
	Elements map[string]refShape `json:"elements"`
	Blocks   map[string]refShape `json:"blocks"`
	Views    struct {
		Modal refShape `json:"modal"`
		Home  refShape `json:"home"`
	} `json:"views"`
}

// stricter are the places in which this package knowingly says something else than the reference:
// required in the reference's note, or bounded where the reference leaves it open.
var stricter = map[string]bool{
	"confirm.title": true, // "always send it"
}

// unsupported are types so new that clients disagree about them.
var unsupported = []string{
	"data_table", "data_visualization", "card", "carousel", "container", "layout", "alert", "file", // blocks
	"text", "url", "workflow", "action", // objects and elements that are written inline here
}

// Every limit of the reference holds here: the tables are compared field by field.
func TestTablesAgreeWithReference(t *testing.T) {
	var ref reference
	if err := json.Unmarshal(sharedFile(t, "blockkit_limits.json"), &ref); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, group := range []struct {
		name string
		ref  map[string]refShape
		mine map[string]shape
	}{{"object", ref.Objects, objects}, {"element", ref.Elements, elements}, {"block", ref.Blocks, blocks}} {
		for name, want := range group.ref {
			if slices.Contains(unsupported, name) {
				continue
			}
			got, ok := group.mine[name]
			if !ok {
				t.Errorf("%s %s is missing", group.name, name)
				continue
			}
			compared += compareShape(t, name, got, want)
		}
	}
	compared += compareShape(t, "modal", views[Modal], ref.Views.Modal)
	compared += compareShape(t, "home", views[Home], ref.Views.Home)
	if compared < 150 {
		t.Errorf("only %d fields were compared", compared)
	}
}

func compareShape(t *testing.T, name string, got shape, want refShape) int {
	t.Helper()
	mine := map[string]field{}
	for _, f := range got.fields {
		mine[f.name] = f
	}
	n := 0
	for k, w := range want.Fields {
		if k == "block_id" {
			continue // checked for all blocks alike
		}
		f, ok := mine[k]
		if !ok {
			t.Errorf("%s.%s is missing", name, k)
			continue
		}
		n++
		compareField(t, name+"."+k, f, w)
	}
	if len(want.Surfaces) == 1 && !slices.Equal(got.surfaces, want.Surfaces) {
		t.Errorf("%s: surfaces %v, want %v", name, got.surfaces, want.Surfaces)
	}
	return n
}

func compareField(t *testing.T, at string, got field, want refField) {
	t.Helper()
	if got.required != want.Required && !stricter[at] {
		t.Errorf("%s: required %t, want %t", at, got.required, want.Required)
	}
	bounded := got.kind == kString || got.kind == kText || got.kind == kArray || got.kind == kInt
	if bounded && want.Max > 0 && got.max != want.Max {
		t.Errorf("%s: max %d, want %d", at, got.max, want.Max)
	}
	if want.Kind == "enum" && !slices.Equal(got.of, want.Values) {
		t.Errorf("%s: values %v, want %v", at, got.of, want.Values)
	}
	if want.Kind == "element" && got.kind == kElement {
		slices.Sort(want.OneOf)
		of := slices.Sorted(slices.Values(got.of))
		if !slices.Equal(of, want.OneOf) {
			t.Errorf("%s: members %v, want %v", at, of, want.OneOf)
		}
	}
	if len(want.Items.OneOf) > 1 && got.kind == kArray && !slices.Contains(want.Items.OneOf, "mrkdwn") {
		slices.Sort(want.Items.OneOf)
		of := slices.Sorted(slices.Values(got.of))
		if !slices.Equal(of, want.Items.OneOf) && at != "table.rows" {
			t.Errorf("%s: members %v, want %v", at, of, want.Items.OneOf)
		}
	}
}
