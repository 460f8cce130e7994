package jmespath

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	reference "github.com/jmespath/go-jmespath"
)

// good expressions, with what they print.
var good = []struct {
	expr    string
	outputs []string
	whole   bool
}{
	{"name", []string{"name"}, false},
	{"[].name", []string{"name"}, false},
	{"[*].name", []string{"name"}, false},
	{"[0].type", []string{"type"}, false},
	{"[-1].type", []string{"type"}, false},
	{"@", nil, true},
	{"[]", nil, true},
	{"[0]", nil, true},
	{"*", nil, true},
	{"*.name", []string{"name"}, false},
	{"a.b.c", []string{"c"}, false},
	{"a.\"b-c\".d[0]", []string{"d"}, false},
	{"values[?name=='Storage.WestEurope'].properties.addressPrefixes[] | [0:10]", []string{"addressPrefixes"}, false},
	{"[?access=='Deny'].{name:name,prio:priority,port:destinationPortRange}", []string{"name", "priority", "destinationPortRange"}, false},
	{"sort_by([?direction=='Inbound'], &priority)[].[priority,name,access]", []string{"priority", "name", "access"}, false},
	{"[].{name:name, rules:length(securityRules)} | [?rules > `10`]", []string{"name"}, false},
	{"[?tags.env=='prod' && location=='westeurope'].name", []string{"name"}, false},
	{"[?powerState!='VM running'].{name:name,state:powerState}", []string{"name", "powerState"}, false},
	{"[?addressSpace.addressPrefixes[?starts_with(@, '10.20.')]].name", []string{"name"}, false},
	{"[?disableBgpRoutePropagation==`true`].name", []string{"name"}, false},
	{"[?provisioningState!='Succeeded'].name", []string{"name"}, false},
	{"instanceView.statuses[1].displayStatus", []string{"displayStatus"}, false},
	{"[?!contains(name, 'x')] | [0].name", []string{"name"}, false},
	{"length(@)", nil, false},
	{"keys(@)", nil, false},
	{"max_by(@, &size).name", []string{"name"}, false},
	{"join(',', [].name)", []string{"name"}, false},
	{"not_null(a, b)", []string{"a", "b"}, false},
	{"[::2].name", []string{"name"}, false},
	{"[?name==`foo`]", nil, true}, // old documentation quotes bare words like this
	{"a || b", []string{"a", "b"}, false},
	{"(a)", []string{"a"}, false},
	{"[?(a>`1` || b<=`2`) && c].d", []string{"d"}, false},
	{"a[?b].c | d", []string{"d"}, false},
	{"secret.{x:@}", []string{"secret"}, true},
	{"a.[b,c]", []string{"b", "c"}, false},
	{"map(&name, @)", []string{"name"}, true},
	{" name ", []string{"name"}, false},
	{"a[]", []string{"a"}, false},
	{"a[].b[].c", []string{"c"}, false},
	{"a[?b][0].c", []string{"c"}, false},
}

func TestGood(t *testing.T) {
	for _, c := range good {
		e, err := Parse(c.expr)
		if err != nil {
			t.Errorf("Parse(%q): %v", c.expr, err)
			continue
		}
		if d := cmp.Diff(&Expr{Outputs: c.outputs, Whole: c.whole}, e); d != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", c.expr, d)
		}
	}
}

func TestBad(t *testing.T) {
	for expr, want := range map[string]string{
		"":                       "the expression ends too early",
		"[":                      "the expression ends too early",
		"[?name=='x'":            `"]" is missing at the end`,
		"[].{a b}":               `":" is missing before "b" at position 7`,
		"name name":              `unexpected "name" at position 6`,
		"a..b":                   `unexpected "." at position 3`,
		"'abc":                   "the ' at position 1 is never closed",
		"upper(name)":            "there is no function upper()",
		"length()":               "length() takes 1 arguments, not 0",
		"length(a, b)":           "length() takes 1 arguments, not 2",
		"a = 'b'":                `unexpected '=' at position 3`,
		"[?a=='b']]":             `unexpected "]" at position 10`,
		"a[b]":                   `unexpected "b" at position 3`,
		"a.1":                    `unexpected "1" at position 3`,
		"{a:b":                   `"," is missing at the end`,
		"-":                      "a number is missing behind - at position 1",
		"a[1 2]":                 `unexpected "2" at position 5`,
		"\"a\\x\"":               "the name at position 1 is no valid quoted name",
		"\"f\"(a)":               "a quoted name is no function, at position 1",
		"[99999999999999999999]": "the number at position 2 is too large",
		"\u00e4":                 `unexpected 'ä' at position 1`,
	} {
		_, err := Parse(expr)
		if err == nil {
			t.Errorf("Parse(%q) is accepted", expr)
			continue
		}
		got := err.Error()
		if got != want {
			t.Errorf("Parse(%q) = %q, want %q", expr, got, want)
		}
	}
}

func TestDepth(t *testing.T) {
	for _, unit := range []string{"(", "[?", "!", "&", "a.{a:", "length(", "[*].[", "{a:"} {
		text := strings.Repeat(unit, 100000)
		if _, err := Parse(text); err == nil {
			t.Errorf("%q repeated is accepted", unit)
		}
	}
	for _, unit := range []string{"a.", "a|", "a||", "[0]", "a[0].", "[*].", "a&&"} {
		Parse(strings.Repeat(unit, 20000)) // long, not deep: must only end
	}
}

// agrees reports whether the reference implementation accepts exactly what is
// accepted here. Functions and literals are left out: the reference checks
// functions only when it evaluates, and knows no bare literals.
func agrees(expr string) (ours, theirs bool, comparable bool) {
	if strings.ContainsAny(expr, "`'\"(\\") {
		return false, false, false
	}
	_, err := Parse(expr)
	_, ref := reference.NewParser().Parse(expr)
	return err == nil, ref == nil, true
}

func TestAgainstReference(t *testing.T) {
	for _, c := range good {
		if strings.Contains(c.expr, "`foo`") {
			continue
		}
		if _, err := reference.Compile(c.expr); err != nil {
			t.Errorf("the reference refuses %q: %v", c.expr, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range good {
		f.Add(c.expr)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		if len(expr) > 200 {
			return
		}
		e, err := Parse(expr)
		if (e == nil) == (err == nil) {
			t.Fatalf("Parse(%q) gives %v and %v", expr, e, err)
		}
		ours, theirs, ok := agrees(expr)
		if ok && ours && !theirs {
			t.Errorf("%q is accepted here and refused by the reference", expr)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(good[13].expr); err != nil {
			b.Fatal(err)
		}
	}
}
