package safeexec

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ghostbot/safeexec/policy"
	"ghostbot/safeexec/process"
)

// maxLinks bounds how often one request may be edited, superseded or repeated.
const maxLinks = 8

// Decisions as they are journaled.
const (
	approved   = "APPROVED"
	denied     = "DENIED"
	modified   = "MODIFIED"
	expired    = "EXPIRED"
	cancelled  = "CANCELLED"
	superseded = "SUPERSEDED"
)

// reasonCredential stands in the decided entry of an edit whose text held a
// credential: the journal has only its redacted form, which must never be taken
// for the command itself.
const reasonCredential = "the edited command contains a credential"

// ErrPanicked is what an approver's panic becomes.
var ErrPanicked = errors.New("approver panicked")

// ErrAlreadyStarted says that this process has already written an intent for
// the proposal and does not know what came of it.
var ErrAlreadyStarted = errors.New("already started")

// carry takes a record from wherever it stands to a result, over as many links
// as people and policies make of it.
func (s *Shell) carry(ctx context.Context, r Record) (Result, error) {
	for link := 1; ; link++ {
		next, res, err := s.step(ctx, r, link < maxLinks)
		if err != nil || next == nil {
			return res, err
		}
		r = Record{Proposal: *next}
	}
}

// step finishes one link: with a result, or with the proposal that replaces it.
// more says whether there may be another one.
func (s *Shell) step(ctx context.Context, r Record, more bool) (*Proposal, Result, error) {
	p := r.Proposal
	if r.Intent {
		return s.unknown(ctx, r, more)
	}
	if r.Decided != nil && r.Decided.Decision != approved {
		return s.answered(ctx, p, *r.Decided, r.Decided.Modified, more)
	}
	if r.Decided == nil {
		now, why := s.recheck(p)
		res, refused := s.refuse(p)
		if refused || why != "" {
			next, res, settled, err := s.settle(ctx, p, more)
			if settled || err != nil {
				return next, res, err
			}
		}
		if refused {
			res, err := s.finish(ctx, p, res)
			return nil, res, err
		}
		if why != "" {
			return s.supersede(ctx, p, now, why, more)
		}
		if p.Class == Safe {
			res, err := s.start(ctx, p, Decided{})
			return nil, res, err
		}
		d, fresh, err := s.ask(ctx, p)
		if err != nil {
			return nil, Result{}, err
		}
		return s.answered(ctx, p, d, fresh, more)
	}
	return s.use(ctx, p, *r.Decided, more)
}

// settle takes the answer that people gave to a RISKY proposal before it became
// one that may not be asked about as it stands: a denial or an edit that was
// acknowledged is not undone by a restart under other rules. settled is false
// when nobody answered; then nobody can any more.
func (s *Shell) settle(ctx context.Context, p Proposal, more bool) (next *Proposal, res Result, settled bool, err error) {
	if p.Class != Risky {
		return nil, res, false, nil
	}
	answered, err := s.opt.Approver.Settle(ctx, p)
	if err != nil {
		return nil, res, true, fmt.Errorf("settle: %w", err)
	}
	if !answered {
		return nil, res, false, nil
	}
	d, typed, err := s.ask(ctx, p)
	if err != nil {
		return nil, res, true, err
	}
	next, res, err = s.answered(ctx, p, d, typed, more)
	return next, res, true, err
}

// refuse is about commands for which nobody is asked and nothing is started.
func (s *Shell) refuse(p Proposal) (Result, bool) {
	switch {
	case p.Class == Forbidden && p.Rule == ruleCredential:
		return Result{Status: "error", Action: "blocked", Error: "credential_in_command", Detail: "the command contains a credential; nobody can approve it"}, true
	case p.Class == Forbidden:
		return Result{Status: "error", Action: "blocked", Error: "forbidden_command", Detail: p.Risk}, true
	case len(p.Argv) == 0:
		return Result{Status: "error", Action: "blocked", Error: "not_one_command", Detail: p.Risk}, true
	case p.Class == Risky && p.Rule == policy.RuleQuery:
		return Result{Status: "error", Action: "blocked", Error: "invalid_query", Detail: p.Risk}, true
	case p.Class == Risky && s.opt.ReadOnly:
		return Result{Status: "denied", Action: "blocked", DenialReason: "read-only mode"}, true
	case p.Program == "":
		return notInstalled(p), true
	}
	return Result{}, false
}

// notInstalled is evidence: the program is not there. Nobody is asked about it.
func notInstalled(p Proposal) Result {
	code, action := 127, "auto_approved"
	if p.Class != Safe {
		action = "blocked"
	}
	text := p.Argv[0] + ": not installed"
	if strings.ContainsRune(p.Argv[0], '/') && !filepath.IsAbs(p.Argv[0]) {
		text = p.Argv[0] + ": relative paths name no program here"
	}
	return Result{Status: "completed", Action: action, ExitCode: &code, Stderr: text}
}

// ask puts p before a person and journals the answer. Everything but an explicit
// approval by somebody is a denial. When ctx ends first nothing is decided: the
// stored proposal stays open, and Continue asks for the same one. text is the
// edited command as it was typed, which the journal may hold only redacted.
func (s *Shell) ask(ctx context.Context, p Proposal) (d Decided, text string, err error) {
	bound, cancel := context.WithTimeout(ctx, max(0, p.Expires.Sub(s.opt.Now()))+s.opt.Lease)
	defer cancel()
	dec, err := s.askSafely(bound, p)
	if err != nil && ctx.Err() != nil {
		return d, "", fmt.Errorf("ask: %w", context.Cause(ctx))
	}
	if err != nil {
		dec, err = s.settled(ctx, p, err)
	}
	d = s.judge(p, dec, err)
	return d, dec.Modified, s.decide(ctx, d)
}

// settled takes the answer that is stored all the same when asking failed with
// why: what people were told must be what is journaled. When there is none, none
// counts any more.
func (s *Shell) settled(ctx context.Context, p Proposal, why error) (Decision, error) {
	ctx, cancel := s.detach(ctx)
	defer cancel()
	if answered, err := s.opt.Approver.Settle(ctx, p); err != nil || !answered {
		return Decision{}, why
	}
	if dec, err := s.askSafely(ctx, p); err == nil {
		return dec, nil
	}
	return Decision{}, why
}

// decide journals an answer, even when ctx has ended: it is stored already, and
// what people decided must not be lost.
func (s *Shell) decide(ctx context.Context, d Decided) error {
	ctx, cancel := s.detach(ctx)
	defer cancel()
	if _, _, err := s.opt.Journal.Append(ctx, "decided", d); err != nil {
		return fmt.Errorf("journal decision: %w", err)
	}
	return nil
}

func (s *Shell) askSafely(ctx context.Context, p Proposal) (d Decision, err error) {
	defer func() {
		if recover() != nil {
			d, err = Decision{}, ErrPanicked
		}
	}()
	return s.opt.Approver.Ask(ctx, p)
}

// explainSafely waits for the words that follow a denial. Without them it is a
// denial all the same.
func (s *Shell) explainSafely(ctx context.Context, p Proposal) (reason string) {
	defer func() {
		if recover() != nil {
			reason = ""
		}
	}()
	if e, ok := s.opt.Approver.(Explainer); ok {
		return e.Explain(ctx, p)
	}
	return ""
}

// judge turns an answer, or the lack of one, into what is journaled.
func (s *Shell) judge(p Proposal, dec Decision, err error) Decided {
	d := Decided{AuditID: p.AuditID, Decision: denied, By: dec.By, At: dec.At.UTC(), UseBy: dec.UseBy.UTC(), Reason: s.words(dec.Reason), Votes: dec.Votes}
	if dec.At.IsZero() {
		d.At = s.opt.Now().UTC()
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		d.Decision, d.By, d.Reason = expired, "", "expired"
	case err != nil:
		d.By, d.Reason = "", s.scrub("no answer: "+err.Error())
	case dec.Action == Deny:
		d.Decision = denial(dec)
	case dec.Action != Approve && dec.Action != Modify:
		d.By, d.Reason = "", fmt.Sprintf("unknown answer %d", dec.Action)
	case dec.By == "":
		d.Reason = "an approval without a person"
	case dec.Action == Modify && strings.TrimSpace(dec.Modified) == "":
		d.Reason = "an edit without a command"
	case dec.Action == Modify:
		d.Decision, d.Modified, d.Reason = modified, dec.Modified, ""
		if s.leaks(s.Parse(dec.Modified)) {
			d.Modified, d.Reason = s.scrub(dec.Modified), reasonCredential
		}
	case dec.UseBy.IsZero():
		d.By, d.Reason = "", "an approval without a use-by time"
	default:
		d.Decision = approved
	}
	return d
}

// denial names what a denial by nobody was.
func denial(d Decision) string {
	switch {
	case d.By != "":
		return denied
	case d.Reason == "expired":
		return expired
	case d.Reason == "stopped", d.Reason == "withdrawn":
		return cancelled
	case d.Reason == "superseded":
		return superseded // history was lost or the approvers changed: a new card
	}
	return denied
}

// answered acts on a journaled decision. typed is the edited text.
func (s *Shell) answered(ctx context.Context, p Proposal, d Decided, typed string, more bool) (*Proposal, Result, error) {
	switch d.Decision {
	case approved:
		return s.use(ctx, p, d, more)
	case modified:
		return s.modify(ctx, p, d, typed, more)
	case superseded:
		now, why := s.recheck(p)
		if why == "" {
			why = d.Reason
		}
		return s.replace(ctx, p, now, "blocked", why, more)
	}
	action := "user_abandoned"
	if d.By != "" {
		action = "user_denied"
	}
	reason := d.Reason
	if reason == "" && d.By != "" {
		reason = s.words(s.explainSafely(ctx, p))
	}
	if reason == "" {
		reason = strings.ToLower(d.Decision)
	}
	res, err := s.done(ctx, p, Result{Status: "denied", Action: action, DenialReason: reason, DecidedBy: d.By})
	return nil, res, err
}

// use starts an approved proposal if that is still right.
func (s *Shell) use(ctx context.Context, p Proposal, d Decided, more bool) (*Proposal, Result, error) {
	if !s.opt.Now().Before(d.UseBy) {
		res, err := s.late(ctx, p, d)
		return nil, res, err
	}
	if res, refused := s.refuse(p); refused {
		res, err := s.done(ctx, p, res)
		return nil, res, err
	}
	now, why := s.recheck(p)
	if why == "" {
		var err error
		if why, err = s.opt.Approver.Valid(ctx, p); err != nil {
			return nil, Result{}, fmt.Errorf("check approval: %w", err)
		}
	}
	if why != "" {
		return s.supersede(ctx, p, now, why, more)
	}
	res, err := s.start(ctx, p, d)
	return nil, res, err
}

// late journals that an approval was not used in time.
func (s *Shell) late(ctx context.Context, p Proposal, d Decided) (Result, error) {
	e := Decided{AuditID: p.AuditID, Decision: expired, At: s.opt.Now().UTC(), UseBy: d.UseBy, Reason: "approved, but not started in time"}
	if err := s.decide(ctx, e); err != nil {
		return Result{}, err
	}
	return s.done(ctx, p, Result{Status: "denied", Action: "user_abandoned", DenialReason: e.Reason, DecidedBy: d.By})
}

// modify makes a person's edit the next link. They are its requester.
func (s *Shell) modify(ctx context.Context, p Proposal, d Decided, typed string, more bool) (*Proposal, Result, error) {
	r := p.request()
	r.Argv, r.Target, r.Effect, r.Means, r.Timeout, r.Repeat = nil, "", "", "", 0, false
	r.Requester = d.By
	c := s.Parse(typed)
	next := s.plan(c, r)
	next.Edited = true
	if d.Reason == reasonCredential {
		next.Class, next.Rule, next.Risk = Forbidden, ruleCredential, "contains a credential"
		next.Argv, next.Display = nil, s.scrub(c.Display())
	}
	return s.replace(ctx, p, next, "user_modified", "edited by a person", more)
}

// supersede replaces a proposal that may not be started as it stands.
func (s *Shell) supersede(ctx context.Context, p, next Proposal, why string, more bool) (*Proposal, Result, error) {
	d := Decided{AuditID: p.AuditID, Decision: superseded, At: s.opt.Now().UTC(), Reason: why}
	if err := s.decide(ctx, d); err != nil {
		return nil, Result{}, err
	}
	return s.replace(ctx, p, next, "blocked", why, more)
}

// replace proposes next and then closes p: in this order, so that a crash never
// loses what p was replaced by.
func (s *Shell) replace(ctx context.Context, p, next Proposal, action, why string, more bool) (*Proposal, Result, error) {
	if !more {
		res, err := s.done(ctx, p, Result{Status: "denied", Action: "blocked", DenialReason: fmt.Sprintf("replaced %d times", maxLinks)})
		return nil, res, err
	}
	next.Replaces = p.AuditID
	next, err := s.propose(ctx, next)
	if err != nil {
		return nil, Result{}, err
	}
	if _, err := s.done(ctx, p, replaced(action, why)); err != nil {
		return nil, Result{}, err
	}
	return &next, Result{}, nil
}

func replaced(action, why string) Result {
	return Result{Status: "error", Action: action, Error: "superseded", Detail: why}
}

// start asks for the right to start p, starts it, and journals what came of it.
func (s *Shell) start(ctx context.Context, p Proposal, d Decided) (Result, error) {
	if err := context.Cause(ctx); err != nil {
		return Result{}, err
	}
	if !s.claim(p.AuditID) {
		return Result{}, fmt.Errorf("start %s: %w", p.AuditID, ErrAlreadyStarted)
	}
	// A lease that was valid at the step below may be taken over one lease time
	// later at the earliest; by then this process has long stopped starting.
	startBy := process.Clock() + s.opt.Lease*2/3
	if err := s.startSafely(ctx, Start{Proposal: p, Risky: p.Class != Safe, Entry: s.intent(p)}); err != nil {
		if ctx.Err() != nil || errors.Is(err, ErrPanicked) {
			return Result{}, fmt.Errorf("start %s: %w", p.AuditID, err)
		}
		return s.done(ctx, p, Result{Status: "denied", Action: "blocked", DenialReason: s.scrub("start refused: " + err.Error()), DecidedBy: d.By})
	}
	if p.Dir == s.opt.Spool { // gone when it was emptied
		if _, err := workDir(p.Dir); err != nil {
			return Result{}, fmt.Errorf("start %s: %w", p.AuditID, err)
		}
	}
	before := look(p.Dir)
	end, err := s.opt.Supervisors.Run(ctx, s.spec(p, startBy, d), func(st process.Started) error { return s.journalStarted(ctx, p, st) })
	if err != nil {
		return Result{}, fmt.Errorf("start %s: %w", p.AuditID, err)
	}
	left, lost := s.keep(p, before.changed())
	res := s.outcome(p, end, left, context.Cause(ctx))
	if lost != nil {
		res.Status, res.Error, res.Detail = "error", "not_kept", s.scrub("what it left is not kept: "+lost.Error())
	}
	res.Action, res.DecidedBy = permitted(p), d.By
	return s.done(ctx, p, res)
}

func (s *Shell) spec(p Proposal, startBy time.Duration, d Decided) process.Spec {
	return process.Spec{
		Path: p.Program, Argv: p.Argv, Dir: p.Dir, Env: slices.Concat(s.environ(p), s.stands(p, d), s.opens(p)), Mark: p.ID, StartBy: startBy, Timeout: p.Timeout,
		Lease: s.opt.Lease, Limits: s.opt.Limits, OutputLimit: s.opt.OutputLimit, Self: s.opt.Self, SelfArgs: s.opt.SelfArgs,
	}
}

func (s *Shell) journalStarted(ctx context.Context, p Proposal, st process.Started) error {
	ctx, cancel := s.detach(ctx)
	defer cancel()
	body := Started{AuditID: p.AuditID, PID: st.PID, Ticks: st.Ticks, BootID: s.boot, Host: s.host}
	if _, _, err := s.opt.Journal.Append(ctx, "started", body); err != nil {
		return fmt.Errorf("journal started: %w", err)
	}
	return nil
}

// claim reports whether this process may write p's intent. It may once.
func (s *Shell) claim(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started[id] {
		return false
	}
	s.started[id] = true
	return true
}

func (s *Shell) startSafely(ctx context.Context, st Start) (err error) {
	defer func() {
		if recover() != nil {
			err = ErrPanicked
		}
	}()
	_, _, err = s.opt.Approver.Start(ctx, st)
	return err
}

func (s *Shell) intent(p Proposal) Intent {
	return Intent{
		AuditID: p.AuditID, Argv: p.Argv, Program: p.Program, Dir: p.Dir, Digest: p.Digest, Timeout: p.Timeout,
		Deadline: s.opt.Now().Add(s.opt.Lease*2/3 + p.Timeout).UTC(), Host: s.host, BootID: s.boot,
	}
}

// permitted names how a command that started got its permission.
func permitted(p Proposal) string {
	switch {
	case p.Edited:
		return "user_modified"
	case p.Class == Safe:
		return "auto_approved"
	}
	return "user_approved"
}

// finish journals the outcome of p. It is written even when ctx has ended: what
// happened must not be lost because the case is stopping.
func (s *Shell) finish(ctx context.Context, p Proposal, r Result) (Result, error) {
	r.AuditID, r.Classification, r.Command, r.Environment = p.AuditID, p.Class, p.Display, p.Env
	ctx, cancel := s.detach(ctx)
	defer cancel()
	if _, _, err := s.opt.Journal.Append(ctx, "outcome", r); err != nil {
		return Result{}, fmt.Errorf("journal outcome: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[p.AuditID] = r
	return r, nil
}

// done finishes a command and, if it was RISKY, tells the approver, whether it was
// started or not: a proposal whose outcome is journaled waits for nobody.
func (s *Shell) done(ctx context.Context, p Proposal, r Result) (Result, error) {
	r, err := s.finish(ctx, p, r)
	if err != nil || p.Class != Risky {
		return r, err
	}
	ctx, cancel := s.detach(ctx)
	defer cancel()
	if err := s.doneSafely(ctx, p, r); err != nil {
		return r, fmt.Errorf("close proposal %s: %w", p.AuditID, err)
	}
	return r, nil
}

func (s *Shell) doneSafely(ctx context.Context, p Proposal, r Result) (err error) {
	defer func() {
		if recover() != nil {
			err = ErrPanicked
		}
	}()
	return s.opt.Approver.Done(ctx, p, r)
}

// detach is for what must still be written after ctx ended, within the third of
// the lease that is left to a holder that has stopped.
func (s *Shell) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), max(s.opt.Lease/3, time.Second))
}
