package policy

import (
	"path"
	"slices"
	"strings"
)

// Rules of commands that end, stop or slow down processes of this machine. Under
// RuleEnd what is hit was compared with a plan, and its risk is at most medium;
// under RuleEndLoss too, but for what is lost in files that it has open; under
// RuleEndHigh it may be anything, which always takes two people.
const (
	RuleEnd     = "agent-apply"
	RuleEndLoss = "agent-apply-data-loss"
	RuleEndHigh = "agent-apply-high"
	RuleSignal  = "signal"
)

// Ends reports whether a rule is about the product's own verb that acts on processes.
func Ends(rule string) bool { return rule == RuleEnd || rule == RuleEndLoss || rule == RuleEndHigh }

// signals are programs that hit processes by number, name or port alone.
var signals = []string{"kill", "pkill", "killall", "skill", "snice", "tgkill", "xkill"}

// hosts names the rule of a RISKY command about processes of this machine.
func hosts(argv []string, self, rule, reason string) (string, string) {
	switch {
	case self != "" && argv[0] == self && len(argv) > 2 && argv[1] == "agent" && argv[2] == "apply":
		medium := slices.Equal(flagged(argv, "--max-risk"), []string{"medium"})
		if loses := slices.ContainsFunc(argv, func(a string) bool { return strings.Contains(a, "accept-data-loss") }); loses && medium {
			return RuleEndLoss, "acts on one process, which is held and compared with the plan first; what it has not finished writing may be lost; its risk is else at most medium"
		}
		if medium {
			return RuleEnd, "acts on one process, which is held and compared with the plan first; its risk is at most medium"
		}
		return RuleEndHigh, "acts on processes whose risk may be high: others depend on them, or data may be lost"
	case slices.Contains(signals, path.Base(argv[0])):
		return RuleSignal, argv[0] + " hits whatever has that number or name when it runs; the triage of host processes (`/ghost triage`, tool triage_processes) compares the process with what was judged first"
	}
	return rule, reason
}

// flagged are all values that a flag is given.
func flagged(argv []string, name string) (out []string) {
	for i, a := range argv {
		if v, ok := strings.CutPrefix(strings.TrimLeft(a, "-"), strings.TrimLeft(name, "-")+"="); ok {
			out = append(out, v)
		} else if strings.TrimLeft(a, "-") == strings.TrimLeft(name, "-") && i+1 < len(argv) {
			out = append(out, argv[i+1])
		}
	}
	return out
}
