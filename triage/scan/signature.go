package scan

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Signature is a known kind of program. It adds one bounded term to inference
// and never replaces it.
type Signature struct {
	Name    string   `json:"name"`
	Program string   `json:"program"`        // pattern of the program's name, anchored
	Args    []string `json:"args,omitempty"` // patterns, each of which some later word must match, anchored
	Class   string   `json:"class"`          // likely_useful, none, likely_abandoned
	LifeS   float64  `json:"life_s"`         // how long one usually runs; -1: for ever, 0: not known
	program *regexp.Regexp
	args    []*regexp.Regexp
}

// Signatures is a library of them.
type Signatures struct{ list []Signature }

//go:embed signatures.json
var shipped []byte

// DefaultSignatures is the library that is shipped.
func DefaultSignatures() *Signatures {
	s, err := ParseSignatures(shipped)
	if err != nil {
		panic(err) // the file is part of the program, and a test reads it
	}
	return s
}

// ParseSignatures reads and checks a library.
func ParseSignatures(b []byte) (*Signatures, error) {
	var s Signatures
	if err := json.Unmarshal(b, &s.list); err != nil {
		return nil, fmt.Errorf("signatures: %w", err)
	}
	for i := range s.list {
		if err := s.list[i].compile(); err != nil {
			return nil, fmt.Errorf("signature %q: %w", s.list[i].Name, err)
		}
	}
	return &s, nil
}

func (s *Signature) compile() (err error) {
	if s.Name == "" || s.Program == "" || !slices.Contains([]string{"likely_useful", "none", "likely_abandoned"}, s.Class) {
		return errors.New("it needs a name, a program and a known class")
	}
	if s.program, err = regexp.Compile("^(?:" + s.Program + ")$"); err != nil {
		return err
	}
	for _, a := range s.Args {
		re, err := regexp.Compile("^(?:" + a + ")$")
		if err != nil {
			return err
		}
		s.args = append(s.args, re)
	}
	return nil
}

// Match finds the first signature of a command line; nil is none.
func (s *Signatures) Match(argv []string) *Signature {
	name, rest := program(argv)
	if name == "" {
		return nil
	}
	for i := range s.list {
		if sig := &s.list[i]; sig.program.MatchString(name) && sig.covers(rest) {
			return sig
		}
	}
	return nil
}

func (s *Signature) covers(words []string) bool {
	for _, re := range s.args {
		if !slices.ContainsFunc(words, re.MatchString) {
			return false
		}
	}
	return true
}

// interpreters run what their first argument names.
var interpreters = regexp.MustCompile(`^(node|nodejs|deno|bun|npx|ruby|php|perl|python[0-9.]*|pypy[0-9.]*|bundle|uv|poetry|pipenv|sh|bash|dash|zsh|env|nohup|time|nice|exec|run)$`)

// scripts are endings that a program's name has on disk.
var scripts = regexp.MustCompile(`\.(js|mjs|cjs|ts|rb|php|sh|pl)$`)

// program is the name of what runs and the words after it: past interpreters
// and their flags, "-m module" included.
func program(argv []string) (string, []string) {
	words := strings.Fields(strings.Join(argv, " "))
	for i := 0; i < len(words); i++ {
		w := words[i]
		if i > 0 && w == "-m" && i+1 < len(words) {
			return words[i+1], words[i+2:]
		}
		if i > 0 && strings.HasPrefix(w, "-") {
			continue
		}
		name := strings.TrimPrefix(base(w), "-")
		if i == 0 && len(words) > 1 && strings.HasSuffix(name, ":") {
			name = strings.TrimSuffix(name, ":")
		}
		if interpreters.MatchString(name) && i+1 < len(words) && i < 4 {
			continue
		}
		return scripts.ReplaceAllString(name, ""), words[i+1:]
	}
	if len(words) == 0 {
		return "", nil
	}
	return base(words[0]), words[1:]
}
