// Package cassette keeps calls of az with what they printed, and finds the one that
// an argument list asks for.
//
// A cassette is a text archive. Each call has a name, and four files under it:
//
//	NAME/argv     one argument a line, without az; words in braces stand for anything
//	NAME/exit     the exit code
//	NAME/stdout
//	NAME/stderr
//
// and NAME/file, in base64, when the call wrote a file, whose name was the argument
// {file}. What stood for a word in braces replaces that word in the output.
package cassette

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// ErrFormat says that a text is not a cassette.
var ErrFormat = errors.New("not a cassette")

// Call is one call.
type Call struct {
	Name           string
	Argv           []string
	Exit           int
	Stdout, Stderr string
	File           []byte // what it wrote to {file}; nil: nothing
}

// Parse reads a cassette.
func Parse(b []byte) ([]Call, error) {
	var calls []Call
	if nameless.Match(b) {
		return nil, fmt.Errorf("%w: a file without a name", ErrFormat)
	}
	for _, f := range txtar.Parse(b).Files {
		name, part, ok := cutLast(f.Name)
		if !ok || name == "" {
			return nil, fmt.Errorf("%w: file %q", ErrFormat, f.Name)
		}
		if len(calls) == 0 || calls[len(calls)-1].Name != name {
			if slices.ContainsFunc(calls, func(c Call) bool { return c.Name == name }) {
				return nil, fmt.Errorf("%w: call %q is there twice", ErrFormat, name)
			}
			calls = append(calls, Call{Name: name})
		}
		if err := calls[len(calls)-1].read(part, string(f.Data)); err != nil {
			return nil, fmt.Errorf("%w: %s: %v", ErrFormat, f.Name, err)
		}
	}
	for _, c := range calls {
		if len(c.Argv) == 0 {
			return nil, fmt.Errorf("%w: call %q has no arguments", ErrFormat, c.Name)
		}
	}
	return calls, nil
}

func cutLast(s string) (before, after string, ok bool) {
	at := strings.LastIndexByte(s, '/')
	if at < 0 {
		return "", "", false
	}
	return s[:at], s[at+1:], true
}

func (c *Call) read(part, data string) (err error) {
	switch part {
	case "argv":
		c.Argv = strings.Split(strings.TrimSuffix(data, "\n"), "\n")
	case "exit":
		c.Exit, err = strconv.Atoi(strings.TrimSpace(data))
	case "stdout":
		c.Stdout = data
	case "stderr":
		c.Stderr = data
	case "file":
		c.File, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(data), ""))
	default:
		err = errors.New("have argv, exit, stdout, stderr, file")
	}
	return err
}

// Format writes a cassette, with a comment before its first call. What was printed
// without a final newline gets one, and a line that looks like the name of a file
// in an archive is an error.
func Format(comment string, calls []Call) ([]byte, error) {
	a := &txtar.Archive{Comment: []byte(comment)}
	for _, c := range calls {
		add := func(part, data string) {
			if data != "" && !strings.HasSuffix(data, "\n") {
				data += "\n"
			}
			a.Files = append(a.Files, txtar.File{Name: c.Name + "/" + part, Data: []byte(data)})
		}
		add("argv", strings.Join(c.Argv, "\n")+"\n") // an empty last one, too
		add("exit", strconv.Itoa(c.Exit))
		add("stdout", c.Stdout)
		add("stderr", c.Stderr)
		if c.File != nil {
			add("file", wrap(base64.StdEncoding.EncodeToString(c.File)))
		}
	}
	b := txtar.Format(a)
	back, err := Parse(b)
	if err != nil || len(back) != len(calls) {
		return nil, fmt.Errorf("%w: what was recorded cannot be kept: %v", ErrFormat, err)
	}
	return b, nil
}

func wrap(s string) string {
	var out strings.Builder
	for part := range slices.Chunk([]byte(s), 100) {
		out.Write(part)
		out.WriteByte('\n')
	}
	return out.String()
}

// nameless is a line that the archive's reader cannot take.
var nameless = regexp.MustCompile(`(?m)^-- ?--\r?$`)

var hole = regexp.MustCompile(`\{[a-z]+\}`)

// Match reports whether an argument list asks for a call, and what the words in
// braces stand for.
func (c Call) Match(argv []string) (map[string]string, bool) {
	if len(argv) != len(c.Argv) {
		return nil, false
	}
	words := map[string]string{}
	for i, pattern := range c.Argv {
		if !match(pattern, argv[i], words) {
			return nil, false
		}
	}
	return words, true
}

// match compares one argument. A word in braces stands for at least one character,
// and for the same text wherever it is.
func match(pattern, arg string, words map[string]string) bool {
	loc := hole.FindStringIndex(pattern)
	if loc == nil {
		return pattern == arg
	}
	rest, ok := strings.CutPrefix(arg, pattern[:loc[0]])
	if !ok {
		return false
	}
	word, after := pattern[loc[0]:loc[1]], pattern[loc[1]:]
	if text, bound := words[word]; bound {
		rest, ok = strings.CutPrefix(rest, text)
		return ok && match(after, rest, words)
	}
	for n := len(rest); n > 0; n-- { // the longest that lets the rest match
		words[word] = rest[:n]
		if match(after, rest[n:], words) {
			return true
		}
		delete(words, word)
	}
	return false
}

// Fill puts words in place of what stands for them.
func Fill(s string, words map[string]string) string {
	return hole.ReplaceAllStringFunc(s, func(w string) string {
		if text, ok := words[w]; ok {
			return text
		}
		return w
	})
}

// Find returns the call that an argument list asks for. When several do, as for a
// question whose answer changes, turn says which: the last one is given from then
// on.
func Find(calls []Call, argv []string, turn int) (Call, bool) {
	var found []Call
	for _, c := range calls {
		if words, ok := c.Match(argv); ok {
			c.Stdout, c.Stderr = Fill(c.Stdout, words), Fill(c.Stderr, words)
			c.Argv = argv
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return Call{}, false
	}
	return found[min(turn, len(found)-1)], true
}

// Pick takes calls by their names, in the order of the names.
func Pick(calls []Call, names ...string) ([]Call, error) {
	var out []Call
	for _, n := range names {
		at := slices.IndexFunc(calls, func(c Call) bool { return c.Name == n })
		if at < 0 {
			return nil, fmt.Errorf("picking %s: no such call was recorded", n)
		}
		out = append(out, calls[at])
	}
	return out, nil
}

// Equal reports whether two calls say the same.
func (c Call) Equal(o Call) bool {
	return c.Name == o.Name && c.Exit == o.Exit && c.Stdout == o.Stdout && c.Stderr == o.Stderr && slices.Equal(c.Argv, o.Argv) && bytes.Equal(c.File, o.File)
}
