package policy

import "testing"

// Whatever rule a command is RISKY by is a name that configuration may use.
func TestEveryRuleIsKnown(t *testing.T) {
	p := New(Options{})
	seen := map[string]bool{}
	for _, name := range []string{"never.txt", "catastrophes.txt"} {
		for _, text := range lines(t, name) {
			v := p.Classify(text)
			if v.Class == Risky && !p.KnownRule(v.Rule) {
				t.Errorf("%s: %q is RISKY by the rule %q, which is not known", name, text, v.Rule)
			}
			seen[v.Rule] = true
		}
	}
	if len(seen) < 40 {
		t.Errorf("only %d rules were seen", len(seen))
	}
}

func TestKnownRule(t *testing.T) {
	p := New(Options{})
	for name, want := range map[string]bool{
		"az-mutate": true, "unknown-program": true, "tcpdump-flag": true, "iptables-save-flag": true, "az-*": true, "tcpdump-*": true, "kubectl-s*": true,
		"az-delete": false, "tcpdump-flags": false, "nosuch-flag": false, "listed": false, "catastrophe": false, "": false, "*": false, "nosuch-*": false,
		"-flag": false, "RISKY": false, "tcpdump": false, "AZ-mutate": false,
	} {
		if got := p.KnownRule(name); got != want {
			t.Errorf("KnownRule(%q) = %v", name, got)
		}
	}
}
