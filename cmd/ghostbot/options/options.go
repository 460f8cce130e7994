// Package options reads the flags of a verb: before, between and behind the
// arguments, with errors that name the flag, the value and what is accepted.
package options

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"reflect"
	"slices"
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
// the flags. Every error but a [Help] is a sentence for whoever typed them.
func Parse(fs *flag.FlagSet, args []string) ([]string, error) {
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, &Help{About(fs)}
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

// Help is the error where flags ask for help. It is a [flag.ErrHelp].
type Help struct {
	Flags string // what [About] says of them
}

// Error implements error.
func (h *Help) Error() string { return flag.ErrHelp.Error() }

// Unwrap implements the interface of [errors.Is].
func (h *Help) Unwrap() error { return flag.ErrHelp }

// About has a line for each flag: its names, its value and its text. Names of one variable
// stand in one line. The value is what stands between backquotes in the text; where the
// text ends with it, behind a colon, it is left out there.
func About(fs *flag.FlagSet) string {
	type line struct {
		of                 flag.Value
		names, value, text string
	}
	var lines []*line
	fs.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		var l *line
		if i := slices.IndexFunc(lines, func(l *line) bool { return reflect.TypeOf(f.Value).Comparable() && l.of == f.Value }); i >= 0 {
			l = lines[i]
			l.names += ", " + dashed(f.Name)
		} else {
			l = &line{of: f.Value, names: dashed(f.Name)}
			lines = append(lines, l)
		}
		if f.Usage != "" {
			l.value, l.text = value, strings.TrimSuffix(text, ": "+value)
		}
	})
	width := 0
	for _, l := range lines {
		l.names = strings.TrimSpace(l.names + " " + l.value)
		width = max(width, len(l.names))
	}
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "  %-*s  %s\n", width, l.names, cmp.Or(l.text, "not described"))
	}
	return b.String()
}
