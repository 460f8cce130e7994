// Package triage is the case about processes of this machine: it looks once, puts
// what is to be decided to people, does what they pick and approve, looks what
// became of it, and ends. It has no brain.
//
// # Who decides
//
// Picking decides nothing but what is proposed: each picked process is looked at
// again, must be the one that was picked, and then becomes a RISKY command of its own
// in the gate, with a card, approvers, two people where its risk is high, and an end.
//
// # Crashes
//
// Every step is a command at a place of its own, a question with an id, or words with
// a number: what the journals have is not done again. A command whose outcome is not
// known is put to people by the gate.
package triage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/agent/hosts"
	"ghostbot/safeexec"
)

// Kind is how entries say that a case is a triage, and how it ended.
const Kind = agent.KindTriage

// AskTriage is the kind of its questions.
const AskTriage = "triage"

// Answers to them. Everything else does nothing.
const (
	Leave   = "leave"
	Explain = "explain"
	Apply   = agent.KeyApply
)

// maxExplain bounds how often, and about how many processes, reasons are given.
const (
	maxExplain = 5
	maxReasons = 3
)

// Options are what a triage is built from. All are required but TTL and Now.
type Options struct {
	SessionID string
	Self      string        // the product's own program
	Journal   agent.Journal // the case journal
	Gate      agent.Gate
	People    agent.People
	Feed      func(ctx context.Context, after uint64) ([]agent.Entry, error)
	Save      func(ctx context.Context, c agent.Case) error
	TTL       time.Duration // how long people may think; default 30 min
	Now       func() time.Time
	Clock     func() time.Time // of whoever decides that a question has expired; nil: Now
}

// Triage is one of them. It is used once, by one goroutine.
type Triage struct {
	o     Options
	words int // turns so far
}

// New checks o and returns a triage that has not read anything yet.
func New(o Options) (*Triage, error) {
	if o.SessionID == "" || o.Self == "" || o.Journal == nil || o.Gate == nil || o.People == nil || o.Feed == nil || o.Save == nil {
		return nil, errors.New("new triage: a required option is missing")
	}
	if o.TTL <= 0 {
		o.TTL = 30 * time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = o.Now
	}
	return &Triage{o: o}, nil
}

// stopGrace bounds the last write of a triage that a person stopped.
const stopGrace = 5 * time.Second

// Investigate starts or resumes it and returns how it ended; see
// [agent.Agent.Investigate] for what ctx and errors mean.
func (t *Triage) Investigate(ctx context.Context) (agent.Conclusion, error) {
	c, err := t.run(ctx)
	if stopped := context.Cause(ctx); err != nil && ctx.Err() != nil && errors.Is(stopped, agent.ErrStopped) {
		last, done := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
		defer done()
		c, err = t.stopped(last, stopped)
	}
	if err != nil {
		return agent.Conclusion{}, fmt.Errorf("triage %s: %w", t.o.SessionID, err)
	}
	return c, nil
}

func (t *Triage) run(ctx context.Context) (agent.Conclusion, error) {
	f, err := t.fold(ctx)
	if err != nil {
		return agent.Conclusion{}, err
	}
	k := f.Case()
	if k.Conclusion != nil {
		return *k.Conclusion, t.o.Save(ctx, k)
	} else if k.CreatedAt.IsZero() {
		return agent.Conclusion{}, agent.ErrNotOpened
	}
	for _, c := range f.Commands() {
		if c.Result == nil {
			if _, err := t.o.Gate.Continue(ctx, c.Record); err != nil {
				return agent.Conclusion{}, fmt.Errorf("continue %s: %w", c.Proposal.AuditID, err)
			}
		}
	}
	focus := agent.Focus{}
	if k.Opened.Focus != nil {
		focus = *k.Opened.Focus
	}
	seen, id, ok, err := t.look(ctx, focus, k.Requester)
	if err != nil {
		return agent.Conclusion{}, err
	}
	if !ok {
		return t.conclude(ctx, agent.Conclusion{EndedBy: Kind, Complete: agent.Complete{Verdict: Kind, Summary: "The processes of this machine could not be looked at.",
			Gaps: []string{"The look gave nothing that could be read (" + id + ")."}}})
	}
	return t.decide(ctx, seen, k.Requester)
}

// maxPages bounds how often a look is asked for more.
const maxPages = agent.MaxPicks / hosts.MaxRows

// look judges all processes once, and prints what is to be decided page by page.
func (t *Triage) look(ctx context.Context, f agent.Focus, by string) (seen hosts.Seen, id string, ok bool, err error) {
	q := hosts.Request{Do: hosts.Look, Port: f.Port, PIDs: f.PIDs, Since: f.Since, Rows: hosts.MaxRows}
	for page := range maxPages {
		res, err := t.command(ctx, page, q, hosts.Row{}, by)
		if err != nil {
			return seen, "", false, err
		}
		more, read := hosts.ReadLook(res.Output)
		switch {
		case !read && page == 0:
			return seen, res.AuditID, false, nil
		case !read:
			return seen, id, true, nil
		case page == 0:
			seen, id = more, res.AuditID
		default:
			seen.Rows, seen.Omitted = append(seen.Rows, more.Rows...), more.Omitted
		}
		if seen.Omitted == 0 {
			break
		}
		q.Session, q.Skip = seen.Session, len(seen.Rows)
	}
	return seen, id, true, nil
}

// decide asks until people leave it at that or pick something.
func (t *Triage) decide(ctx context.Context, seen hosts.Seen, by string) (agent.Conclusion, error) {
	rows, kept := offered(seen)
	head := summary(seen, rows, kept)
	if len(rows) == 0 {
		return t.conclude(ctx, agent.Conclusion{EndedBy: Kind, Complete: agent.Complete{Verdict: Kind, Summary: head}})
	}
	for n := 1; ; n++ {
		a, err := t.o.People.Ask(ctx, t.question(n, head, seen, rows))
		if err != nil {
			return agent.Conclusion{}, err
		}
		picked := chosen(rows, a)
		switch {
		case a.Key == Explain && a.By != "" && n <= maxExplain:
			if err := t.explain(ctx, n, seen, rows, picked, by); err != nil {
				return agent.Conclusion{}, err
			}
		case a.Key == Apply && a.By != "" && len(picked) > 0:
			return t.apply(ctx, picked, a.By, by)
		default:
			return t.conclude(ctx, left(head, a))
		}
	}
}

func left(head string, a agent.Answer) agent.Conclusion {
	c := agent.Conclusion{EndedBy: Kind, By: a.By, Complete: agent.Complete{Verdict: Kind, Summary: head + " Nothing was done."}}
	if a.By == "" {
		c.Summary = head + " Nobody answered, and nothing was done."
	}
	return c
}

// offered are the processes that people may pick, and those that they may not.
func offered(seen hosts.Seen) (rows, kept []hosts.Row) {
	for _, r := range seen.Rows {
		if r.Guarded != "" || !r.CanEnd || len(rows) == agent.MaxPicks {
			kept = append(kept, r)
			continue
		}
		rows = append(rows, r)
	}
	return rows, kept
}

// summary says how much was looked at, and what cannot be decided here.
func summary(seen hosts.Seen, rows, kept []hosts.Row) string {
	text := fmt.Sprintf("%d processes of %s were looked at, %d of them protected. ", seen.Scanned, seen.Host, seen.Protected)
	switch {
	case len(rows) > 0:
		text += fmt.Sprintf("To decide: %d.", len(rows))
	case seen.Focus.Port > 0 && seen.Holders == 0:
		text += fmt.Sprintf("None that can be seen listens on port %d, and none needs a decision.", seen.Focus.Port)
	default:
		text += fmt.Sprintf("None needs a decision; the highest demand is %.2f of a processor.", seen.TopDemand)
	}
	for _, r := range kept {
		why := r.Guarded
		switch {
		case r.State == "Z":
			why = "it has ended and waits for its parent " + r.Parent + " to reap it"
		case r.Young:
			why = "it is too young to be judged"
		case r.Action == "spare":
			why = "it was judged useful"
		case why == "":
			why = "it takes no signal"
		}
		text += fmt.Sprintf(" Left alone: %s (%s).", r.Name(), why)
	}
	if seen.Omitted > 0 {
		text += fmt.Sprintf(" %d more are not shown; name a port or a pid.", seen.Omitted)
	}
	return text
}

// does is what is proposed about a process when it is picked.
func does(r hosts.Row) string {
	switch r.Action {
	case hosts.Pause, hosts.Throttle, hosts.Restart:
		return r.Action
	}
	return hosts.End
}

// question shows every process with what would be done to it. The first answer is
// what silence means.
func (t *Triage) question(n int, head string, seen hosts.Seen, rows []hosts.Row) agent.Question {
	q := agent.Question{
		ID: "triage-" + strconv.Itoa(n), Kind: AskTriage, Who: "anyone", Text: head, Expires: t.o.Clock().UTC().Add(t.o.TTL),
		Options: []agent.Option{{Key: Leave, Label: "Dismiss"}, {Key: Explain, Label: "Explain"}, {Key: Apply, Label: "Apply selected"}},
	}
	for i, r := range rows {
		q.Picks = append(q.Picks, agent.Pick{
			Key: strconv.Itoa(i + 1), Label: does(r) + " " + strconv.Itoa(r.PID) + " " + r.Command, Selected: slices.Contains(seen.Presel, r.PID),
			About: fmt.Sprintf("%s, useful with %.2f; up %s; risk %s; %s", strings.ReplaceAll(r.Class, "_", " but "), r.Useful, r.Age(), r.Risk, r.Impact),
		})
		q.Text += fmt.Sprintf("\n%d. %s: %s Impact: %s. Risk: %s.", i+1, r.Name(), sentence(r.Why), strings.TrimSuffix(r.Impact, "."), r.Risk)
		if r.Supervisor != "" {
			q.Text += " Supervised (" + r.Supervisor + "): one that is ended comes back."
		}
	}
	return q
}

func sentence(s string) string { return strings.TrimSuffix(strings.TrimSpace(s), ".") + "." }

// chosen are the rows that were picked.
func chosen(rows []hosts.Row, a agent.Answer) (out []hosts.Row) {
	for i, r := range rows {
		if slices.Contains(a.Picked, strconv.Itoa(i+1)) {
			out = append(out, r)
		}
	}
	return out
}

// explain says why the picked ones, or all, were judged as they were.
func (t *Triage) explain(ctx context.Context, n int, seen hosts.Seen, rows, picked []hosts.Row, by string) error {
	if len(picked) == 0 {
		picked = rows
	}
	var out []string
	for i, r := range picked[:min(len(picked), maxReasons)] {
		res, err := t.command(ctx, 100*n+i, hosts.Request{Do: hosts.Explain, Session: seen.Session, PID: r.PID}, r, by)
		if err != nil {
			return err
		}
		out = append(out, hosts.Reasons(r, res.Output)+" ("+res.AuditID+")")
	}
	return t.say(ctx, strings.Join(out, "\n"))
}

// apply proposes what was picked, one after the other.
func (t *Triage) apply(ctx context.Context, picked []hosts.Row, picker, by string) (agent.Conclusion, error) {
	c := agent.Conclusion{EndedBy: Kind, By: picker, Complete: agent.Complete{Verdict: Kind}}
	done := 0
	for i, r := range picked {
		text, ok, err := t.one(ctx, 1000+10*i, r, by)
		if err != nil {
			return c, err
		}
		if err := t.say(ctx, text); err != nil {
			return c, err
		}
		if done++; !ok {
			done--
			c.Gaps = append(c.Gaps, text)
		}
	}
	c.Summary = fmt.Sprintf("Done and verified: %d. Not done: %d.", done, len(c.Gaps))
	if len(c.Gaps) > 0 {
		c.Actions = []string{"Look again with `/ghost triage` when what is still there may go."}
	}
	return t.conclude(ctx, c)
}

// one looks at a process again, proposes what was picked, and looks what became of
// it; ok says that it is as people wanted.
func (t *Triage) one(ctx context.Context, at int, r hosts.Row, by string) (text string, ok bool, err error) {
	name := r.Name()
	name = strings.ToUpper(name[:1]) + name[1:]
	res, err := t.command(ctx, at, hosts.Request{Do: hosts.Look, PIDs: []int{r.PID}}, r, by)
	if err != nil {
		return "", false, err
	}
	seen, read := hosts.ReadLook(res.Output)
	now, same := seen.Find(r.PID, r.StartID)
	switch {
	case !read:
		return name + " was left alone: it could not be looked at again (" + res.AuditID + ").", false, nil
	case !same:
		return name + " was left alone: it is gone, or its number belongs to another process now (" + res.AuditID + ").", false, nil
	case now.Guarded != "" || !now.CanEnd:
		return name + " was left alone: nothing may be done to it now (" + res.AuditID + ").", false, nil
	}
	if res, err = t.command(ctx, at+1, seen.Request(now, does(r)), now, by); err != nil {
		return "", false, err
	}
	interrupted := ""
	if res.Error == "outcome_unknown" { // what became of it is looked at
		interrupted = "it was interrupted after the approval; "
	} else if why := refused(res); why != "" {
		return name + " still runs: " + why + " (" + res.AuditID + ").", false, nil
	}
	for again := range 2 { // a machine that is busy may not get to it the first time
		if res, err = t.command(ctx, at+2+again, hosts.Request{Do: hosts.Verify, Session: seen.Session}, now, by); err != nil {
			return "", false, err
		} else if res.Status == "completed" {
			break
		}
	}
	v := hosts.ReadVerify(res.Output)
	return name + ": " + interrupted + v.Text() + " (" + res.AuditID + ").", v.Status == "success", nil
}

// refused says why nothing was done; "" when it was.
func refused(r safeexec.Result) string {
	d := hosts.ReadApply(r.Output)
	switch {
	case r.Status == "denied" && r.DecidedBy == "":
		return "nobody approved it in time"
	case r.Status == "denied" && r.DenialReason != "" && r.DenialReason != "denied":
		return "refused, " + r.DenialReason
	case r.Status == "denied":
		return "refused"
	case r.Status != "completed":
		return strings.TrimSpace(r.Status + " " + strings.ReplaceAll(r.Error, "_", " ") + " " + r.Detail)
	case d.Outcome == "success", d.Reason == "process_gone", d.Reason == "already_completed":
		return ""
	case d.Reason == "":
		return "what came of it could not be read"
	}
	return d.Outcome + ", " + d.Reason
}

// command runs a request at a place of its own, or returns what came of it before.
func (t *Triage) command(ctx context.Context, at int, q hosts.Request, r hosts.Row, by string) (safeexec.Result, error) {
	f, err := t.fold(ctx)
	if err != nil {
		return safeexec.Result{}, err
	}
	for _, c := range f.Commands() {
		if c.Proposal.Turn == 1 && c.Proposal.Index == at && c.ReplacedBy == "" && c.Result != nil {
			return *c.Result, nil
		}
	}
	argv, err := q.Argv(t.o.Self)
	if err != nil {
		return safeexec.Result{}, err
	}
	req := safeexec.Request{Argv: argv, Requester: by, Target: "processes of this machine", Turn: 1, Index: at,
		Reasoning: "Triage of host processes: " + q.Do + ".", Effect: "reads /proc and keeps what it saw in the directory of the case"}
	if q.Acts() {
		req.Reasoning, req.Target, req.Effect = "Picked by a person in the triage. "+sentence(r.Why), r.Name(), q.Effect(r)
	}
	res, err := t.o.Gate.Run(ctx, req)
	if err != nil {
		return res, fmt.Errorf("%s: %w", q.Do, err)
	}
	return res, ctx.Err()
}

// say writes words into the thread, once.
func (t *Triage) say(ctx context.Context, text string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.words++
	f, err := t.fold(ctx)
	if err != nil || f.Case().TurnCount >= t.words {
		return err
	}
	_, _, err = t.o.Journal.Append(ctx, agent.KindTurn, agent.TurnEntry{Turn: t.words, Text: text, Moves: []agent.MoveEntry{}})
	return err
}

// fold is the case as its journals have it.
func (t *Triage) fold(ctx context.Context) (*agent.Fold, error) {
	entries, err := t.o.Feed(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("read journals: %w", err)
	}
	return agent.FoldAll(t.o.SessionID, entries), nil
}

// conclude writes the last entry of the case.
func (t *Triage) conclude(ctx context.Context, c agent.Conclusion) (agent.Conclusion, error) {
	if err := ctx.Err(); err != nil {
		return c, err
	}
	c.Confidence, c.At = "high", t.o.Now().UTC()
	if _, _, err := t.o.Journal.Append(ctx, agent.KindConcluded, c); err != nil {
		return c, fmt.Errorf("append conclusion: %w", err)
	}
	f, err := t.fold(ctx)
	if err != nil {
		return c, err
	}
	return c, t.o.Save(ctx, f.Case())
}

// stopped is the end of a triage that a person stopped.
func (t *Triage) stopped(ctx context.Context, cause error) (agent.Conclusion, error) {
	f, err := t.fold(ctx)
	if err != nil {
		return agent.Conclusion{}, err
	}
	if c := f.Case().Conclusion; c != nil {
		return *c, nil
	}
	c := agent.Conclusion{EndedBy: "stopped", Complete: agent.Complete{Verdict: Kind, Summary: "A person stopped the triage. What was not approved was not done."}}
	if who := (*agent.StopError)(nil); errors.As(cause, &who) {
		c.By = who.By
	}
	return t.conclude(ctx, c)
}
