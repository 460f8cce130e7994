package playbook_test

import (
	"encoding/json"
	"strings"
	"testing"

	"ghostbot/agent"
	"ghostbot/agent/hosts"
	"ghostbot/agent/playbook"
	"ghostbot/safeexec"

	"github.com/google/go-cmp/cmp"
)

// machine is a host with processes, and the person who answers cards about them.
type machine struct {
	t    *testing.T
	rows []hosts.Row
	deny string
	did  []string
}

func (h *machine) answer(m agent.TriageProcesses) safeexec.Result {
	zero := 0
	h.did = append(h.did, m.Do)
	r := safeexec.Result{Status: "completed", Classification: safeexec.Safe, Action: "auto_approved", ExitCode: &zero}
	switch {
	case m.Do == hosts.Look:
		b, err := json.Marshal(hosts.Seen{Session: "sess-20260301-091500-k3m9qa", Host: "edge-7", Scanned: 58, TopDemand: 0.04, Rows: h.rows})
		if err != nil {
			h.t.Fatal(err)
		}
		r.Output = string(b)
	case m.Do == hosts.End && h.deny != "":
		return safeexec.Result{Status: "denied", Classification: safeexec.Risky, Action: "user_denied", DenialReason: h.deny, DecidedBy: "U1"}
	case m.Do == hosts.End:
		if m.Patience == 0 {
			h.t.Error("the report waits for a card without an end")
		}
		r.Classification, r.Action, r.DecidedBy, r.Output = safeexec.Risky, "user_approved", "U1", `{"results":[{"outcome":"success"}]}`
	case m.Do == hosts.Verify:
		r.Output = `{"verification":{"overall_status":"success"},"action_outcomes":[{"target":{"pid":4711},"outcome":"confirmed_dead"}]}`
	}
	return r
}

func investigateHosts(t *testing.T, symptom string, o playbook.Options, h *machine) *investigation {
	t.Helper()
	h.t = t
	in := investigate(t, symptom)
	in.brain = playbook.New(o)
	in.hosts = h.answer
	in.run = func(m agent.RunShell) safeexec.Result {
		zero := 0
		r := safeexec.Result{Status: "completed", Classification: safeexec.Safe, Action: "auto_approved", Command: m.Command, ExitCode: &zero}
		if strings.HasPrefix(m.Command, "ps -o") {
			r.Output = " 4711 1 S 7300 0.0 python3"
		} else {
			code := 127
			r.ExitCode = &code
		}
		return r
	}
	return in
}

func squatter() []hosts.Row {
	return []hosts.Row{{PID: 4711, StartID: "1f0c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b:163522:4711", Command: "python3 worker.py", Class: "useful", Useful: 0.9, Action: "spare", Ports: []int{18080}, Focused: true, CanEnd: true, AgeS: 7300}}
}

// A symptom that speaks of a process of this machine is about processes first; one
// about another machine, or of a deployment that may not look, is not.
func TestProcesses(t *testing.T) {
	on := playbook.Options{Hosts: true}
	const inUse = "checkout cannot start: listen tcp 127.0.0.1:18080: bind: address already in use"
	for name, c := range map[string]struct {
		text    string
		o       playbook.Options
		h       machine
		did     []string
		verdict string
		says    string
		gap     string
	}{
		"squatter":                    {inUse, on, machine{rows: squatter()}, []string{"look", "end", "verify"}, "root_cause", "holds port 18080. It was ended with a person's approval; it is gone", ""},
		"squatter refused":            {inUse, on, machine{rows: squatter(), deny: "it is ours"}, []string{"look", "end"}, "root_cause", "It was not ended (a person refused: it is ours) and still runs", "was not approved"},
		"squatter, only safe":         {inUse, playbook.Options{Hosts: true, SafeOnly: true}, machine{rows: squatter()}, []string{"look"}, "root_cause", "holds port 18080", ""},
		"nobody holds it":             {inUse, on, machine{}, []string{"look"}, "unverified", "No process of edge-7 explains it: 58 were looked at", ""},
		"hosts are not looked at":     {inUse, playbook.Options{}, machine{}, nil, "unverified", "", ""},
		"another machine":             {"203.0.113.9:18080 says address already in use", on, machine{}, nil, "unverified", "", ""},
		"no target, nobody":           {"zombies pile up on this box", on, machine{}, []string{"look"}, "no_fault", "No fault found. No process of edge-7 explains it", ""},
		"asked in the symptom":        {"triage --port 18080", on, machine{rows: squatter()}, []string{"look"}, "root_cause", "was judged useful, recommended: spare", ""},
		"asked and nothing to decide": {"triage", on, machine{}, []string{"look"}, "no_fault", "No process of edge-7", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := investigateHosts(t, c.text, c.o, &c.h)
			end := in.finish()
			if diff := cmp.Diff(c.did, c.h.did); diff != "" {
				t.Errorf("did (-want +got):\n%s", diff)
			}
			if end.Verdict != c.verdict || !strings.Contains(end.Summary, c.says) || !strings.Contains(strings.Join(end.Gaps, " "), c.gap) {
				t.Errorf("%s: %q, gaps %q", end.Verdict, end.Summary, end.Gaps)
			}
			if c.verdict == "root_cause" {
				if len(end.Causes) != 1 || len(end.Causes[0].Evidence) < 2 || len(end.Confirmed) != 1 {
					t.Errorf("causes %+v confirmed by %v", end.Causes, end.Confirmed)
				}
			}
		})
	}
}

// Words in the thread are a request to look: once each, beside what goes on.
func TestAskedInTheThread(t *testing.T) {
	h := &machine{rows: squatter()}
	in := investigateHosts(t, "checkout gets 502 from 127.0.0.1:18080", playbook.Options{Hosts: true}, h)
	in.step()
	in.view.Instructions = append(in.view.Instructions, agent.Instruction{By: "U1", Text: "triage --port 18080", ID: "g_100", Turn: in.view.Case.TurnCount})
	end := in.finish()
	if diff := cmp.Diff([]string{"look"}, h.did); diff != "" {
		t.Errorf("did (-want +got):\n%s", diff)
	}
	if !strings.Contains(end.Summary, "was judged useful") {
		t.Errorf("%q", end.Summary)
	}
}
