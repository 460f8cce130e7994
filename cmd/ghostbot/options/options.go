// Package options reads the flags of a verb: before, between and behind the
// arguments, with errors that name the flag, the value and what is accepted.
package options

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// Text is a flag that knows whether it was given: an empty value can be refused,
// instead of being taken for the default.
type Text struct {
	Value string
	Given bool
}

// String implements [flag.Value].
func (t *Text) String() string { return t.Value }

// Set implements [flag.Value].
func (t *Text) Set(s string) error {
	t.Value, t.Given = s, true
	return nil
}

// New returns the flags of a verb, for Parse.
func New(verb string) *flag.FlagSet {
	fs := flag.NewFlagSet(verb, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return fs
}

// Parse reads flags and arguments in any order and returns the arguments. "--" ends
// the flags. Every error but [flag.ErrHelp] is a sentence for whoever typed them.
func Parse(fs *flag.FlagSet, args []string) ([]string, error) {
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, errors.New(fs.Name() + ": " + Explain(err, fs))
		}
		read := len(args) - fs.NArg()
		ended := read > 0 && args[read-1] == "--"
		args = fs.Args()
		if ended || len(args) == 0 {
			return append(rest, args...), named(fs)
		}
		rest, args = append(rest, args[0]), args[1:]
	}
}

// named refuses a flag with nothing in it, which is a variable that is not set: what it
// was to check would be left out without a word, and the default in place of a
// directory would be another one than was meant. [Text] says itself what it takes.
func named(fs *flag.FlagSet) (err error) {
	fs.Visit(func(f *flag.Flag) {
		_, own := f.Value.(*Text)
		switch {
		case f.Value.String() != "":
		case strings.HasSuffix(f.Name, "-dir"):
			err = fmt.Errorf("--%s: \"\" names no directory (accepted: a directory)", f.Name)
		case !own:
			err = fmt.Errorf("%s: \"\" is no value (accepted: a value, or leave the flag out)", dashed(f.Name))
		}
	})
	return err
}

// Explain names, of what package flag refused, the flag, the value and what is accepted.
func Explain(err error, fs *flag.FlagSet) string {
	text := err.Error()
	var names []string
	accepted := ""
	fs.VisitAll(func(f *flag.Flag) {
		names = append(names, dashed(f.Name))
		for _, why := range []string{": parse error", ": value out of range"} {
			if cut, ok := strings.CutSuffix(text, " -"+f.Name+why); ok {
				accepted = cut + " -" + f.Name + " (accepted: " + kind(f.Value) + ")"
			}
		}
	})
	switch {
	case accepted != "":
		return accepted
	case strings.HasPrefix(text, "invalid"): // the value's own words
		return strings.Replace(text, ": (accepted: ", " (accepted: ", 1)
	}
	return text + " (accepted flags: " + strings.Join(names, " ") + ")"
}

// kind is what a flag of package flag accepts.
func kind(v flag.Value) string {
	g, ok := v.(flag.Getter)
	if !ok {
		return "another value"
	}
	switch g.Get().(type) {
	case bool:
		return "true false"
	case time.Duration:
		return "a duration such as 30s or 5m"
	}
	return "another value"
}

// dashed is a flag as people write it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
