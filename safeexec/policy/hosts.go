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
		switch medium, loses := bound(argv[3:]); {
		case medium && loses:
			return RuleEndLoss, "acts on one process, which is held and compared with the plan first; what it has not finished writing may be lost; its risk is else at most medium"
		case medium:
			return RuleEnd, "acts on one process, which is held and compared with the plan first; its risk is at most medium"
		}
		return RuleEndHigh, "acts on processes whose risk may be high: others depend on them, or data may be lost"
	case slices.Contains(signals, path.Base(argv[0])):
		return RuleSignal, argv[0] + " hits whatever has that number or name when it runs; the triage of host processes (`/ghost triage`, tool triage_processes) compares the process with what was judged first"
	}
	return rule, reason
}

// bound reads what an apply binds itself to. It knows the flags of a card and no
// others: a line that can be read in two ways, or that says something twice, binds
// to nothing.
func bound(args []string) (medium, loses bool) {
	seen := map[string]bool{}
	for i := 0; i < len(args); i++ {
		name, value, glued := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(args[i], "-"), "-"), "=")
		if !strings.HasPrefix(args[i], "-") || seen[name] {
			return false, false
		}
		seen[name] = true
		switch name {
		case "here", "attended", "accept-data-loss":
			if glued && value != "true" {
				return false, false
			}
			loses = loses || name == "accept-data-loss"
		case "session", "targets", "action", "exit-code", "max-risk":
			if !glued {
				if i++; i == len(args) {
					return false, false
				}
				value = args[i]
			}
			if value == "" || value[0] == '-' {
				return false, false
			}
			medium = medium || name == "max-risk" && value == "medium"
		default:
			return false, false
		}
	}
	return medium, loses
}
