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
