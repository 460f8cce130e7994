// Package advice knows, for each code of a finding, what it means and what to do about it: the
// mechanism, steps with commands, and how to see that it worked. The texts are in advice.txt; a
// command may have {client}, {server}, {port} and {name} in it, which the report replaces. IFACE is
// left for the reader, because a capture does not know the names of interfaces.
package advice

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed advice.txt
var texts string

// Advice is what is known of a code.
type Advice struct {
	// Title is what a reader sees instead of the code, Why the mechanism.
	Title, Why string
	// Do is what to do, with Commands; Verify is how to see that it worked, with Check.
	Do       string
	Commands []string
	Verify   string
	Check    []string
}

// For returns the advice for a code.
func For(code string) (Advice, bool) {
	_, rest, found := strings.Cut("\n"+texts, "\n== "+code+"\n")
	if !found {
		return Advice{}, false
	}
	body, _, _ := strings.Cut(rest, "\n== ")
	return parse(body), true
}

// Codes lists the codes that there is advice for, sorted.
func Codes() []string {
	var out []string
	for l := range strings.Lines(texts) {
		if code, ok := strings.CutPrefix(l, "== "); ok {
			out = append(out, strings.TrimSpace(code))
		}
	}
	slices.Sort(out)
	return out
}

// parse reads one entry: lines of a key and a text; a command belongs to the text above it.
func parse(body string) Advice {
	var a Advice
	commands := &a.Commands
	for l := range strings.Lines(body) {
		l = strings.TrimRight(l, "\n")
		if c, ok := strings.CutPrefix(l, "$ "); ok {
			*commands = append(*commands, c)
			continue
		}
		key, value, _ := strings.Cut(l, ": ")
		switch key {
		case "title":
			a.Title = value
		case "why":
			a.Why = value
		case "do":
			a.Do, commands = value, &a.Commands
		case "verify":
			a.Verify, commands = value, &a.Check
		}
	}
	return a
}
