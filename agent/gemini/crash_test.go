package gemini_test

import (
	"strings"
	"testing"

	"ghostbot/agent"
	"ghostbot/safeexec"
)

// crashing is a model that remembers nothing: what it says follows from the
// request, so that a process that asks it again gets the same answer.
const crashing = `
choose expectation
-- 1 expect --
last H1 CONFIRMED
-- 1 answer --
call complete_investigation {"confidence":"medium","root_cause_summary":"Done.","causes":[{"statement":"It listens.","evidence":["${audit:1}"]}],"unverifiable_hypotheses":["H2"]}
-- 2 expect --
last run_shell_cmd
any H2
any sysctl
-- 2 answer --
call manage_hypotheses {"update":[{"id":"H1","state":"CONFIRMED","evidence":["${audit:ss -ltn}"],"why":"It listens."}]}
-- 3 expect --
last H1 ACTIVE
-- 3 answer --
text Two things to run.
call run_shell_cmd {"command":"ss -ltn","reasoning":"SAFE","hypothesis_id":"H1"}
call run_shell_cmd {"command":"touch /tmp/ghostbot-never-there/x","reasoning":"RISKY, approved","hypothesis_id":"H1","effect":"none"}
call run_shell_cmd {"command":"sysctl -w net.ipv4.ip_forward=1","reasoning":"RISKY, denied","hypothesis_id":"H2","effect":"routes"}
-- 4 expect --
last No hypothesis is registered yet
-- 4 answer --
call manage_hypotheses {"add":[{"id":"H1","description":"it does not listen"},{"id":"H2","description":"it does not route"}]}
`

// TestCrash kills the process before every entry of a case with a model, a SAFE
// command, one that is approved and one that is denied. After the restart the case
// ends, nothing RISKY starts twice, nothing that was denied starts, and every
// request is one that the API takes.
func TestCrash(t *testing.T) {
	tools(t, "ss", "sysctl", "touch")
	run := func(kill int) *world {
		w := play(t, "port 22 does not answer", crashing)
		w.people = func(p safeexec.Proposal) safeexec.Decision {
			if strings.HasPrefix(p.Display, "touch") {
				return safeexec.Decision{Action: safeexec.Approve, By: "U9", Votes: []string{"U9"}}
			}
			return safeexec.Decision{By: "U9", Reason: "no changes today"}
		}
		if kill > 0 {
			w.kill = kill
			if _, err := w.investigate(); err == nil {
				return nil // the case is over before that entry
			}
			w.kill = 0
			w.brain = ask(t, w.srv.URL)
			if _, err := w.add("case", agent.KindTakeover, map[string]string{"owner": "another"}); err != nil {
				t.Fatal(err)
			}
		}
		end, err := w.investigate()
		if err != nil {
			t.Fatalf("kill %d: %v", kill, err)
		}
		for _, p := range w.srv.Problems() {
			t.Errorf("kill %d: %s", kill, p)
		}
		risky := 0
		for _, s := range w.begun() {
			if strings.HasPrefix(s, "RISKY ") {
				risky++
			}
			if strings.Contains(s, "sysctl") {
				t.Errorf("kill %d: the denied command started", kill)
			}
		}
		if end.EndedBy != "brain" || risky > 1 {
			t.Errorf("kill %d: %+v, started %q", kill, end, w.begun())
		}
		return w
	}
	whole := run(0)
	if len(whole.cards) != 2 {
		t.Fatalf("cards %q, entries %d", whole.cards, len(whole.entries))
	}
	points := 0
	for kill := 1; kill < len(whole.entries); kill++ {
		if run(kill) != nil {
			points++
		}
	}
	if points < 15 {
		t.Errorf("%d points", points)
	}
	t.Logf("%d points", points)
}
