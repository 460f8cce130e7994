package policy

import (
	"strings"
	"testing"
)

// A command that ends processes is RISKY under a rule of its own: the product's own
// by its exact path, with how much it may risk, and raw signals with a pointer.
func TestHostProcesses(t *testing.T) {
	const self = "/opt/ghostbot/ghostbot"
	p := New(Options{Self: self})
	apply := self + " agent apply --here --attended --session sess-20260301-091500-k3m9qa --targets 7:x "
	for cmd, want := range map[string]string{
		self + " agent plan --here --port 8080": "SAFE listed",
		apply + "--max-risk medium":             "RISKY agent-apply", apply + "--max-risk=medium": "RISKY agent-apply", apply + "-max-risk medium": "RISKY agent-apply",
		apply + "--max-risk medium --accept-data-loss": "RISKY agent-apply-data-loss", apply + "--accept-data-loss=true --max-risk=medium": "RISKY agent-apply-data-loss", apply + "--accept-data-loss": "RISKY agent-apply-high",
		apply: "RISKY agent-apply-high", apply + "--max-risk high": "RISKY agent-apply-high", apply + "--max-risk medium --max-risk high": "RISKY agent-apply-high",
		apply + "--max-risk=medium --max-risk=high": "RISKY agent-apply-high", apply + "--max-risk": "RISKY agent-apply-high", apply + "--max-risk mediu": "RISKY agent-apply-high",
		self + " agent apply --here --session --max-risk=medium --session sess-x --targets 7:x --attended": "RISKY agent-apply-high", apply + "--max-risk medium --recommended": "RISKY agent-apply-high",
		apply + "--max-risk medium --yes": "RISKY agent-apply-high", apply + "--max-risk medium x": "RISKY agent-apply-high", apply + "--accept-data-loss=false --max-risk=medium": "RISKY agent-apply-high", apply + "--config --max-risk=medium": "RISKY agent-apply-high",
		"ghostbot agent apply --max-risk medium": "RISKY unknown-program", "/tmp/ghostbot agent apply --max-risk medium": "RISKY path",
		"kill 4711": "RISKY signal", "kill -9 4711": "RISKY signal", "pkill nginx": "RISKY signal", "killall nginx": "RISKY signal", "/bin/kill 4711": "RISKY signal", "kill -HUP 1": "RISKY signal",
		"kill -9 -4711": "RISKY signal", "sudo kill 4711": "RISKY wrapper", "kill 1": "FORBIDDEN catastrophe", "kill -- -1": "FORBIDDEN catastrophe", "kill 0": "FORBIDDEN catastrophe", "killall5": "FORBIDDEN catastrophe",
	} {
		v := p.Classify(cmd)
		if got := v.Class.String() + " " + v.Rule; got != want {
			t.Errorf("%s: %s, want %s", cmd, got, want)
		}
		if v.Rule == RuleSignal && !strings.Contains(v.Reason, "/ghost triage") {
			t.Errorf("%s: %q names no other way", cmd, v.Reason)
		}
	}
}
