package options

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	tests := []struct {
		args string // "_" is an empty one
		rest string
		name Text
		yes  bool
		err  string
	}{
		{args: "a b", rest: "a b"},
		{args: "--name n a --yes b", rest: "a b", name: Text{"n", true}, yes: true},
		{args: "a -name=n -yes=false", rest: "a", name: Text{"n", true}},
		{args: "--name _ a", rest: "a", name: Text{"", true}},
		{args: "a -- --name b", rest: "a --name b"},
		{args: "--some-dir _ a", err: `--some-dir: "" names no directory (accepted: a directory)`},
		{args: "a --yes=maybe", err: `verb: invalid boolean value "maybe" for -yes (accepted: true false)`},
		{args: "--many few", err: `verb: invalid value "few" for flag -many (accepted: a whole number, in decimal digits)`},
		{args: "--many 99999999999999999999", err: `verb: invalid value "99999999999999999999" for flag -many (accepted: a whole number, in decimal digits)`},
		{args: "--many 0x10", err: `verb: invalid value "0x10" for flag -many (accepted: a whole number, in decimal digits)`},
		{args: "--share 0x1p-1", err: `verb: invalid value "0x1p-1" for flag -share (accepted: a number, in decimal digits)`},
		{args: "--wait soon", err: `verb: invalid value "soon" for flag -wait (accepted: a duration such as 30s or 5m)`},
		{args: "--what", err: "verb: flag provided but not defined: -what (accepted flags: --many --name -o --share --some-dir --wait --yes)"},
		{args: "a --name", err: "verb: flag needs an argument: -name (accepted flags: --many --name -o --share --some-dir --wait --yes)"},
	}
	for _, tt := range tests {
		var name Text
		fs := New("verb")
		fs.Var(&name, "name", "")
		yes := fs.Bool("yes", false, "")
		fs.String("some-dir", "", "")
		fs.String("o", "", "")
		fs.Var(new(Whole), "many", "")
		fs.Var(new(Number), "share", "")
		fs.Duration("wait", 0, "")
		args := strings.Fields(tt.args)
		for i, a := range args {
			if a == "_" {
				args[i] = ""
			}
		}
		rest, err := Parse(fs, args)
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%s: error %v, want %s", tt.args, err, tt.err)
			}
			continue
		}
		if err != nil || strings.Join(rest, " ") != tt.rest || *yes != tt.yes || cmp.Diff(tt.name, name) != "" {
			t.Errorf("%s: %q, %+v, %v, %v", tt.args, rest, name, *yes, err)
		}
	}
	if _, err := Parse(New("verb"), []string{"a", "--help"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

// TestAbout: a line for each variable, with all its names, whatever it says of its value.
func TestAbout(t *testing.T) {
	fs := New("verb")
	var out, dir string
	var loud bool
	fs.StringVar(&out, "out", "", "where to write: `FILE`")
	fs.StringVar(&out, "o", "", "")
	fs.BoolVar(&loud, "loud", false, "say what is done")
	fs.StringVar(&dir, "dir", "", "read this `DIR` first")
	fs.Func("each", "once for each: `WORD`", func(string) error { return nil })
	fs.Func("other", "", func(string) error { return nil })
	want := "  --dir DIR       read this DIR first\n" +
		"  --each WORD     once for each\n" +
		"  --loud          say what is done\n" +
		"  -o, --out FILE  where to write\n" +
		"  --other         not described\n"
	if diff := cmp.Diff(want, About(fs)); diff != "" {
		t.Errorf("About (- want): %s", diff)
	}
	var h *Help
	if _, err := Parse(fs, []string{"-h"}); !errors.As(err, &h) || h.Flags != About(fs) || !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}
