package triage

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"ghostbot/safeexec"
	"ghostbot/safeexec/policy"
	"ghostbot/safeexec/redact"
	"ghostbot/triage/act"
	"ghostbot/triage/model"
	"ghostbot/triage/plan"
	"ghostbot/triage/session"
)

// approve asks the person at the terminal. What has no terminal cannot approve:
// a program would approve itself.
func approve(_ context.Context, c *call) (int, error) {
	if err := c.needSession(); err != nil {
		return 0, err
	}
	pids, err := pidList(c.pids)
	if err != nil {
		return 0, err
	}
	if len(pids) != 1 || !slices.Contains(doable[1:], c.action) || c.ttl <= 0 {
		return 0, usage("agent approve wants one --pid, a known --action and a --ttl above 0")
	}
	in, ok := c.s.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return 0, blocked("approve wants a terminal: a person has to answer")
	}
	p, err := c.stored(c.session)
	if err != nil {
		return 0, err
	}
	e := p.Find(pids[0])
	if e == nil {
		return 0, usage("process %d is not in the plan", pids[0])
	}
	c.question(e)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != strconv.Itoa(e.PID) {
		return 0, blocked("not approved")
	}
	a := act.Approval{
		Approvers: []string{fmt.Sprintf("uid %d at a terminal", os.Getuid())}, Action: model.Action(c.action), Expires: time.Now().Add(c.ttl).UTC(), AcceptLoss: c.accept, Unlikely: true,
	}
	id, err := c.engine.Approve(c.session, e.PID, a)
	if err != nil {
		return 0, err
	}
	d := approved{Envelope: c.engine.Envelope(c.session), AuditID: id, Target: plan.Target{PID: e.PID, StartID: e.StartID}, Action: a.Action, Expires: a.Expires}
	return exitClean, c.print(d, func() string { return id + "\n" })
}

func (c *call) question(e *plan.Evaluated) {
	fmt.Fprintf(c.s.Err, "%s process %d (%s), %s: %s\n", c.action, e.PID, c.s.Line(e.CmdFull), e.Blast.Summary, c.s.Line(e.Rationale))
	fmt.Fprintf(c.s.Err, "It is abandoned with probability %.2f, useful with %.2f. Risk: %s.\n", e.Gone(), e.Posterior.Useful, e.Blast.Risk)
	fmt.Fprint(c.s.Err, "Type its number to approve: ")
}

// command runs a supervisor's command through the gate. The person's answer is
// the one that was recorded in the session; the gate's own entries go into the
// session's audit log. What the gate forbids stays forbidden.
func (c *call) command(ctx context.Context, x *session.Session, argv []string, by, why string) (string, int, error) {
	j := &journal{x: x}
	sh, err := safeexec.New(safeexec.Options{
		SessionID: x.Manifest.SessionID, Policy: policy.New(policy.Options{}), Journal: j, Approver: recorded{j, by}, Redactor: redact.New(redact.Options{}), Dir: x.Path(),
		Timeout: 30 * time.Second, Requester: by,
	})
	if err != nil {
		return "", 0, err
	}
	res, err := sh.Run(ctx, safeexec.Request{Argv: argv, Reasoning: why, Requester: by})
	if err != nil {
		return "", 0, err
	}
	if res.Status != "completed" || res.ExitCode == nil {
		return "", 0, fmt.Errorf("gate: %s %s %s", res.Status, res.Error, res.Detail)
	}
	return strings.TrimSpace(res.Output + "\n" + res.Stderr), *res.ExitCode, nil
}

// journal writes the gate's entries into the session's audit log.
type journal struct{ x *session.Session }

// Append implements [safeexec.Journal].
func (j *journal) Append(_ context.Context, kind string, body any) (uint64, string, error) {
	if _, err := j.x.Append("gate_"+kind, body); err != nil {
		return 0, "", err
	}
	entries, _, _, err := j.x.Audit()
	if err != nil {
		return 0, "", err
	}
	last := entries[len(entries)-1]
	return uint64(last.N), last.Hash, nil
}

// recorded answers with the approval that the session holds.
type recorded struct {
	j  *journal
	by string
}

// Ask implements [safeexec.Approver].
func (r recorded) Ask(_ context.Context, p safeexec.Proposal) (safeexec.Decision, error) {
	now := time.Now()
	return safeexec.Decision{Action: safeexec.Approve, By: r.by, At: now, UseBy: now.Add(time.Minute), Votes: []string{r.by}}, nil
}

// Start implements [safeexec.Approver].
func (r recorded) Start(ctx context.Context, s safeexec.Start) (uint64, string, error) {
	return r.j.Append(ctx, "intent", s.Entry)
}

// Settle implements [safeexec.Approver].
func (recorded) Settle(context.Context, safeexec.Proposal) (bool, error) { return false, nil }

// Valid implements [safeexec.Approver].
func (recorded) Valid(context.Context, safeexec.Proposal) (string, error) { return "", nil }

// Done implements [safeexec.Approver].
func (recorded) Done(context.Context, safeexec.Proposal, safeexec.Result) error { return nil }
