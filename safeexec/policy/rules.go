package policy

import (
	"slices"
	"strings"
)

// fixedRules are the rules that name no program, apart from "listed" and
// "catastrophe", about which nobody decides. Commands that are no plain argument list
// are refused before anybody is asked; their rules are names all the same.
var fixedRules = []string{
	"unknown-program", "path", "wrapper", "internal", RuleEnd, RuleEndLoss, RuleEndHigh, RuleSignal,
	"az-command", "az-mutate", "az-secret", "az-exec", "az-localwrite", "az-interactive", "az-auth", "az-unknown",
	"az-option", "az-value", "az-file", "az-output", RuleQuery,
	"compound", "redirection", "background", "assignment", "comment", "expansion", "substitution", "glob", "brace", "tilde", "ansi-quote",
	"control-character", "line-end", "encoding", "odd-character", "command-word", "syntax", "empty", "too-long", "too-deep",
}

// toolRules follow the name of a program of the tables.
var toolRules = []string{"flag", "value", "args", "need", "payload", "secret", "settings"}

// KnownRule reports whether the policy has a RISKY rule of this name, or, when the
// name ends in *, rules that begin so. Configuration that names others is a mistake.
func (p *Policy) KnownRule(name string) bool {
	if head, ok := strings.CutSuffix(name, "*"); ok {
		return head != "" && p.rulesBegin(head)
	}
	if slices.Contains(fixedRules, name) {
		return true
	}
	i := strings.LastIndexByte(name, '-')
	return i > 0 && p.table.Known(name[:i]) && slices.Contains(toolRules, name[i+1:])
}

func (p *Policy) rulesBegin(head string) bool {
	begins := func(name string) bool { return strings.HasPrefix(name, head) }
	if slices.ContainsFunc(fixedRules, begins) {
		return true
	}
	if i := strings.LastIndexByte(head, '-'); i > 0 && p.table.Known(head[:i]) {
		return slices.ContainsFunc(toolRules, func(kind string) bool { return strings.HasPrefix(kind, head[i+1:]) })
	}
	return slices.ContainsFunc(p.table.Describe(), func(d ToolDoc) bool {
		return begins(d.Name) || slices.ContainsFunc(d.Other, begins)
	})
}
