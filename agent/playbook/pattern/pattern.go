// Package pattern compiles regular expressions at first use. The program starts
// anew as the supervisor of every command, and then needs none of the playbook's:
// compiling them all took longer than the rest of that start.
package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a [regexp.Regexp] that is compiled when it is first asked. It may be
// used concurrently.
type Pattern struct{ re func() *regexp.Regexp }

// New returns the pattern expr, which is part of the program: the first use
// panics when it does not compile.
func New(expr string) *Pattern {
	return &Pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

// MatchString is [regexp.Regexp.MatchString].
func (p *Pattern) MatchString(s string) bool { return p.re().MatchString(s) }

// FindString is [regexp.Regexp.FindString].
func (p *Pattern) FindString(s string) string { return p.re().FindString(s) }

// FindStringSubmatch is [regexp.Regexp.FindStringSubmatch].
func (p *Pattern) FindStringSubmatch(s string) []string { return p.re().FindStringSubmatch(s) }

// FindAllStringSubmatch is [regexp.Regexp.FindAllStringSubmatch].
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.re().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is [regexp.Regexp.FindAllStringSubmatchIndex].
func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.re().FindAllStringSubmatchIndex(s, n)
}

// FindAllSubmatchIndex is [regexp.Regexp.FindAllSubmatchIndex].
func (p *Pattern) FindAllSubmatchIndex(b []byte, n int) [][]int {
	return p.re().FindAllSubmatchIndex(b, n)
}

// ReplaceAllString is [regexp.Regexp.ReplaceAllString].
func (p *Pattern) ReplaceAllString(s, by string) string { return p.re().ReplaceAllString(s, by) }

// ReplaceAllStringFunc is [regexp.Regexp.ReplaceAllStringFunc].
func (p *Pattern) ReplaceAllStringFunc(s string, by func(string) string) string {
	return p.re().ReplaceAllStringFunc(s, by)
}

// FindStringSubmatchIndex is [regexp.Regexp.FindStringSubmatchIndex].
func (p *Pattern) FindStringSubmatchIndex(s string) []int { return p.re().FindStringSubmatchIndex(s) }

// FindAllString is [regexp.Regexp.FindAllString].
func (p *Pattern) FindAllString(s string, n int) []string { return p.re().FindAllString(s, n) }
