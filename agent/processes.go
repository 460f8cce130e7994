package agent

import (
	"context"
	"time"

	"ghostbot/agent/hosts"
	"ghostbot/safeexec"
)

// asCommand reports whether a move is one command of the gate, which journals it
// itself.
func asCommand(m Move) bool {
	switch m.(type) {
	case RunShell, TriageProcesses:
		return true
	}
	return false
}

// request is a move as package hosts has it.
func (m TriageProcesses) request() hosts.Request {
	return hosts.Request{Do: m.Do, Port: m.Port, PIDs: m.PIDs, Session: m.Session, PID: m.PID, StartID: m.StartID}
}

// triage runs one verb of the product's own. What it does to a process, and how
// much it may risk, follows from what a look of this case saw, never from the
// brain's words.
func (a *Agent) triage(ctx context.Context, p place, m TriageProcesses) error {
	q := m.request()
	if err := q.Check(); err != nil {
		return a.refuse(ctx, p, ErrorArguments, "arguments of "+ToolTriage+": "+err.Error())
	}
	r := safeexec.Request{Reasoning: m.Reasoning, Hypothesis: m.Hypothesis, Requester: a.s.c.Requester, Target: "processes of this machine", Turn: p.turn, Index: p.index,
		Effect: "reads /proc and keeps what it saw in the directory of the case"}
	if q.Do != hosts.Look {
		seen, row, ok := a.s.looked(m)
		switch {
		case seen.Session == "":
			return a.refuse(ctx, p, ErrorArguments, "no look of this case has the session "+m.Session+"; look first")
		case q.Do != hosts.Verify && !ok:
			return a.refuse(ctx, p, ErrorArguments, "that look did not print this process; look again, with its pid or port")
		case q.Acts() && (row.Guarded != "" || !row.CanEnd):
			return a.refuse(ctx, p, ErrorArguments, "nothing may be done to this process: "+row.Name()+" "+row.Guarded)
		}
		if q.Acts() {
			q = seen.Request(row, q.Do)
			r.Effect, r.Target = q.Effect(row), row.Name()
			r.Patience = time.Duration(min(max(m.Patience, 0), maxPatience)) * time.Second
		}
	}
	argv, err := q.Argv(a.o.Self)
	if err != nil {
		return a.refuse(ctx, p, ErrorArguments, err.Error())
	}
	r.Argv = argv
	_, err = a.gate(ctx, r)
	return err
}

// looked finds the look that a move names, and the process in it.
func (s *Fold) looked(m TriageProcesses) (hosts.Seen, hosts.Row, bool) {
	for _, o := range s.obs {
		if look, ok := o.Move.(TriageProcesses); !ok || look.Do != hosts.Look || o.Shell == nil || o.Shell.Status != "completed" {
			continue
		}
		seen, ok := hosts.ReadLook(o.Shell.Output)
		if !ok || seen.Session != m.Session {
			continue
		}
		for _, r := range seen.Rows {
			if r.PID == m.PID && (m.StartID == "" || m.StartID == r.StartID) {
				return seen, r, true
			}
		}
		return seen, hosts.Row{}, false
	}
	return hosts.Seen{}, hosts.Row{}, false
}
