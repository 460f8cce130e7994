package cassette

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const tape = `A comment.
-- show/argv --
network
show
--name
{capture}
-- show/exit --
0
-- show/stdout --
the name is {capture}, not {other}
-- show/stderr --
-- status-1/argv --
status
-- status-1/exit --
0
-- status-1/stdout --
Running
-- status-1/stderr --
-- status-2/argv --
status
-- status-2/exit --
3
-- status-2/stdout --
-- status-2/stderr --
gone
-- get/argv --
get
--file
{file}
-- get/exit --
0
-- get/file --
cGNhcA==
`

func parsed(t *testing.T) []Call {
	t.Helper()
	calls, err := Parse([]byte(tape))
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

func TestParse(t *testing.T) {
	want := []Call{
		{Name: "show", Argv: []string{"network", "show", "--name", "{capture}"}, Stdout: "the name is {capture}, not {other}\n"},
		{Name: "status-1", Argv: []string{"status"}, Stdout: "Running\n"},
		{Name: "status-2", Argv: []string{"status"}, Exit: 3, Stderr: "gone\n"},
		{Name: "get", Argv: []string{"get", "--file", "{file}"}, File: []byte("pcap")},
	}
	if diff := cmp.Diff(want, parsed(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nameless":     "-- --\nx\n",
		"no name":      "-- argv --\nx\n",
		"empty name":   "-- /argv --\nx\n",
		"another file": "-- a/argv --\nx\n-- a/color --\nred\n",
		"no number":    "-- a/argv --\nx\n-- a/exit --\nmany\n",
		"no base64":    "-- a/argv --\nx\n-- a/file --\n%%\n",
		"no arguments": "-- a/exit --\n0\n",
		"there twice":  "-- a/argv --\nx\n-- b/argv --\nx\n-- a/exit --\n1\n",
	} {
		if _, err := Parse([]byte(text)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFormat(t *testing.T) {
	calls := parsed(t)
	b, err := Format("A comment.\n", calls)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(calls, back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range calls {
		if !calls[i].Equal(back[i]) {
			t.Errorf("%s is not equal to itself", calls[i].Name)
		}
	}
	if calls[1].Equal(calls[2]) {
		t.Error("two calls are equal")
	}
	// What would be taken apart differently is refused.
	if _, err := Format("", []Call{{Name: "a", Argv: []string{"x"}, Stdout: "-- b/argv --\nrm\n"}}); !errors.Is(err, ErrFormat) {
		t.Errorf("a line that looks like a file: %v", err)
	}
	if b, err := Format("", []Call{{Name: "a", Argv: []string{"x"}, File: []byte(strings.Repeat("x", 500))}}); err != nil || len(strings.Split(string(b), "\n")[6]) > 100 {
		t.Errorf("%v\n%s", err, b)
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, argv string
		ok            bool
		word          string
	}{
		{"show --name {capture}", "show --name ghost_1", true, "ghost_1"},
		{"show --name {capture}", "show --name", false, ""},
		{"show --name {capture}", "show --nam ghost_1", false, ""},
		{"show --name {capture}", "show --name ghost_1 -o json", false, ""},
		{"show {capture}.cap {capture}", "show a.cap a", true, "a"},
		{"show {capture}.cap {capture}", "show a.cap b", false, ""},
		{"show {capture}.cap", "show a.cap.cap", true, "a.cap"},
		{"show {capture}.cap", "show .cap", false, ""},
		{"x/{capture}/y/{capture}", "x/a/y/a", true, "a"},
		{"x/{capture}/y/{capture}", "x/a/y/b", false, ""},
		{"[].{type:type,id:id}", "[].{type:type,id:id}", true, ""},
	} {
		words, ok := Call{Argv: strings.Fields(tt.pattern)}.Match(strings.Fields(tt.argv))
		if ok != tt.ok || ok && words["{capture}"] != tt.word {
			t.Errorf("%q for %q: %v %v, want %v %q", tt.argv, tt.pattern, ok, words, tt.ok, tt.word)
		}
	}
}

func TestFind(t *testing.T) {
	calls := parsed(t)
	c, ok := Find(calls, []string{"network", "show", "--name", "ghost_1"}, 0)
	if !ok || c.Stdout != "the name is ghost_1, not {other}\n" {
		t.Errorf("%v %q", ok, c.Stdout)
	}
	var got []string
	for turn := range 4 {
		c, _ := Find(calls, []string{"status"}, turn)
		got = append(got, c.Name)
	}
	if diff := cmp.Diff([]string{"status-1", "status-2", "status-2", "status-2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, ok := Find(calls, []string{"delete"}, 0); ok {
		t.Error("what was not recorded is found")
	}
}

func TestPick(t *testing.T) {
	picked, err := Pick(parsed(t), "get", "show")
	if err != nil || len(picked) != 2 || picked[0].Name != "get" {
		t.Errorf("%v, %v", picked, err)
	}
	if _, err := Pick(parsed(t), "none"); err == nil {
		t.Error("what was not recorded is picked")
	}
}

// FuzzParse holds that what can be read can be written and read again, the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(tape))
	f.Add([]byte("-- a/argv --\n\n-- a/exit --\n 7 \n"))
	f.Add([]byte("-- a/b/argv --\n{x}{y}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		calls, err := Parse(b)
		if err != nil {
			return
		}
		out, err := Format("", calls)
		if err != nil {
			return // it has a line that an archive cannot keep
		}
		back, err := Parse(out)
		if err != nil || len(back) != len(calls) {
			t.Fatalf("%d calls became %d: %v", len(calls), len(back), err)
		}
		for i := range calls {
			if back[i].Name != calls[i].Name || !cmp.Equal(back[i].Argv, calls[i].Argv) || back[i].Exit != calls[i].Exit {
				t.Errorf("%+v became %+v", calls[i], back[i])
			}
		}
	})
}

// FuzzMatch holds that a match explains the arguments: with its words in place of
// the braces, the pattern is the argument.
func FuzzMatch(f *testing.F) {
	f.Add("x/{capture}/{file}", "x/a/b")
	f.Add("{a}{b}{a}", "xyx")
	f.Fuzz(func(t *testing.T, pattern, arg string) {
		if len(pattern) > 60 || len(arg) > 60 || strings.Count(pattern, "{") > 4 {
			return
		}
		words, ok := Call{Argv: []string{pattern}}.Match([]string{arg})
		if ok && Fill(pattern, words) != arg {
			t.Errorf("%q with %v is %q, not %q", pattern, words, Fill(pattern, words), arg)
		}
	})
}
