package azure

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Effect is what a command of az does, in the order of the table's letters.
type Effect byte

// The effects, each with the letter it has in commands.txt.
const (
	Read        Effect = 'r' // asks and changes nothing
	Mutate      Effect = 'm' // changes resources
	Secret      Effect = 's' // prints a secret
	LocalWrite  Effect = 'l' // writes files or settings on this machine
	Exec        Effect = 'x' // runs a program here or on a resource
	Interactive Effect = 'i' // waits for a person or never ends
	Auth        Effect = 'a' // changes who is signed in
	Unknown     Effect = 'u'
)

// letters maps the words of the source list to effects.
var letters = map[string]Effect{"read": Read, "mutate": Mutate, "secret": Secret, "localwrite": LocalWrite, "exec": Exec,
	"interactive": Interactive, "auth": Auth, "unknown": Unknown}

// why says, for people, what a command with an effect does.
var why = map[Effect]string{Mutate: "changes resources", Secret: "prints a secret", LocalWrite: "writes files or settings on this machine",
	Exec: "runs a program", Interactive: "waits for a person or never ends", Auth: "changes who is signed in", Unknown: "has an unknown effect"}

// command is one line of the command tree.
type command struct {
	effect   Effect
	escalate []string // options that make a read more than one
}

// parseTree reads commands.txt: one line a group, "group words: verb=EFFECT",
// with "!--option" for each option that escalates.
func parseTree(text string) (map[string]command, error) {
	tree := make(map[string]command, strings.Count(text, "="))
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		group, verbs, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("az command tree line %d: no colon", i+1)
		}
		for _, v := range strings.Fields(verbs) {
			name, effect, ok := strings.Cut(v, "=")
			if !ok || effect == "" {
				return nil, fmt.Errorf("az command tree line %d: %q has no effect", i+1, v)
			}
			parts := strings.Split(effect, "!")
			tree[strings.TrimSpace(group+" "+name)] = command{Effect(parts[0][0]), parts[1:]}
		}
	}
	return tree, nil
}

// row is one line of the source list.
type row struct {
	Command  string `json:"command"`
	Effect   string `json:"effect"`
	Escalate []struct {
		Arg string `json:"arg"`
	} `json:"escalate"`
}

// Compact turns the source list, one JSON object a line with "command",
// "effect" and "escalate", into the text of commands.txt.
func Compact(src io.Reader) (string, error) {
	groups := map[string][]string{}
	in := bufio.NewScanner(src)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var r row
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return "", fmt.Errorf("az command list: %w", err)
		}
		effect, ok := letters[r.Effect]
		if !ok {
			return "", fmt.Errorf("az command list: %q has the unknown effect %q", r.Command, r.Effect)
		}
		words := strings.Fields(r.Command)
		group, last := strings.Join(words[:len(words)-1], " "), words[len(words)-1]
		verb := last + "=" + string(effect)
		for _, e := range r.Escalate {
			option, _, _ := strings.Cut(e.Arg, " ")
			verb += "!" + option
		}
		groups[group] = append(groups[group], verb)
	}
	if err := in.Err(); err != nil {
		return "", fmt.Errorf("az command list: %w", err)
	}
	return render(groups), nil
}

func render(groups map[string][]string) string {
	names := make([]string, 0, len(groups))
	for g := range groups {
		names = append(names, g)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("# The azure-cli command tree: group: verb=effect (r read, m mutate, s secret, l localwrite, x exec,\n")
	b.WriteString("# i interactive, a auth, u unknown), !--option for options that escalate. Generated, do not edit.\n")
	for _, g := range names {
		verbs := groups[g]
		slices.Sort(verbs)
		b.WriteString(g + ": " + strings.Join(slices.Compact(verbs), " ") + "\n")
	}
	return b.String()
}
