package safeexec

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"ghostbot/safeexec/process"
)

// Fold turns the entries of a shell journal into one record per command, in the
// order of their proposals. Entries of other kinds are skipped. A body that does
// not parse counts in the direction that starts nothing: a decision is a denial,
// an outcome is unknown.
func Fold(entries []Entry) []Record {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.N, b.N) })
	f := folder{index: map[string]int{}}
	for _, e := range entries {
		f.apply(e)
	}
	return f.records
}

type folder struct {
	records []Record
	index   map[string]int
}

func (f *folder) apply(e Entry) {
	if e.Kind == "proposed" {
		f.proposed(e)
		return
	}
	var about struct {
		AuditID string `json:"audit_id"`
	}
	if json.Unmarshal(e.Body, &about) != nil {
		return
	}
	i, ok := f.index[about.AuditID]
	if !ok {
		return
	}
	r := &f.records[i]
	switch e.Kind {
	case "decided":
		r.decided(e)
	case "intent":
		r.Intent = true
	case "started":
		r.started(e)
	case "outcome":
		r.outcome(e)
	}
}

func (f *folder) proposed(e Entry) {
	var p Proposal
	if json.Unmarshal(e.Body, &p) != nil {
		p = Proposal{Rule: "unreadable", Risk: "the journaled proposal does not parse"} // class FORBIDDEN
	}
	p.AuditID = e.ID
	if len(e.Hash) >= 32 {
		p.ID = e.Hash[:32]
	}
	if _, again := f.index[e.ID]; again {
		return
	}
	f.index[e.ID] = len(f.records)
	f.records = append(f.records, Record{Proposal: p, At: e.Time})
	if i, ok := f.index[p.Replaces]; ok && p.Replaces != "" {
		f.records[i].ReplacedBy = e.ID
	}
}

// decided keeps the last decision, but only an approval can be overtaken: what
// was once refused stays refused.
func (r *Record) decided(e Entry) {
	if r.Decided != nil && r.Decided.Decision != approved {
		return
	}
	var d Decided
	if json.Unmarshal(e.Body, &d) != nil {
		d = Decided{AuditID: r.Proposal.AuditID, Decision: denied, Reason: "the journaled decision does not parse"}
	}
	r.Decided = &d
}

func (r *Record) started(e Entry) {
	r.Intent = true
	var st Started
	if json.Unmarshal(e.Body, &st) == nil {
		r.Started = &st
	}
}

// outcome keeps the first outcome, unless that one was unknown: a former
// holder's late report tells more.
func (r *Record) outcome(e Entry) {
	if r.Result != nil && r.Result.Error != "outcome_unknown" {
		return
	}
	var res Result
	if json.Unmarshal(e.Body, &res) != nil {
		res = Result{AuditID: r.Proposal.AuditID, Status: "error", Error: "outcome_unknown", Detail: "the journaled outcome does not parse"}
	}
	r.Result = &res
}

// Continue carries on with a record that a crash left unfinished: the same
// command, whatever a re-asked brain would say now. Call it for every record of
// [Fold] without a Result, in order; each call returns the result of the last
// link that it made. A record that is finished, in the journal or in this
// process, returns its result and starts nothing.
func (s *Shell) Continue(ctx context.Context, r Record) (Result, error) {
	if r.Result != nil {
		return *r.Result, nil
	}
	s.mu.Lock()
	res, ok := s.results[r.Proposal.AuditID]
	s.mu.Unlock()
	if ok {
		return res, nil
	}
	res, err := s.resume(ctx, r)
	if err != nil {
		return res, fmt.Errorf("safeexec: continue %s: %w", r.Proposal.AuditID, err)
	}
	return res, nil
}

func (s *Shell) resume(ctx context.Context, r Record) (Result, error) {
	if r.ReplacedBy == "" {
		return s.carry(ctx, r)
	}
	// The next link is proposed already and carried on by its own call.
	switch {
	case r.Intent:
		res, _ := s.lost(r)
		return s.done(ctx, r.Proposal, res)
	case r.Decided != nil && r.Decided.Decision == modified:
		return s.done(ctx, r.Proposal, replaced("user_modified", "edited by a person"))
	case r.Decided != nil:
		return s.done(ctx, r.Proposal, replaced("blocked", r.Decided.Reason))
	}
	return s.done(ctx, r.Proposal, replaced("blocked", "replaced"))
}

// unknown is for an intent without an outcome. What is left of the process is
// ended first. A SAFE command is proposed once more, as a repeat that says so; a
// RISKY one, and a repeat, stays unknown, and people decide.
func (s *Shell) unknown(ctx context.Context, r Record, more bool) (*Proposal, Result, error) {
	p := r.Proposal
	res, ended := s.lost(r)
	if p.Class != Safe || p.Repeat || !ended || !more {
		res, err := s.done(ctx, p, res)
		return nil, res, err
	}
	again := p.request()
	again.Repeat, again.Replaces = true, p.AuditID
	next := s.plan(s.request(again), again)
	next.Edited = p.Edited
	next, err := s.propose(ctx, next)
	if err != nil {
		return nil, Result{}, err
	}
	if _, err := s.finish(ctx, p, res); err != nil {
		return nil, Result{}, err
	}
	return &next, Result{}, nil
}

// lost ends what may be left of r's process and is the result that says that
// nobody knows what it did. ended is false when something is still running.
func (s *Shell) lost(r Record) (res Result, ended bool) {
	note, ended := s.endLeftovers(r)
	by := ""
	if r.Decided != nil {
		by = r.Decided.By
	}
	return Result{
		Status: "error", Action: permitted(r.Proposal), Error: "outcome_unknown", DecidedBy: by,
		Detail: "interrupted after its start was allowed, effect unknown; " + note,
	}, ended
}

// endLeftovers ends what a former life of the bot may have left running of r's
// command on this machine.
func (s *Shell) endLeftovers(r Record) (note string, ended bool) {
	st := r.Started
	switch {
	case st == nil:
		return process.EndLeftovers(nil, r.Proposal.ID)
	case st.Host != s.host || st.BootID != s.boot:
		return fmt.Sprintf("it ran on %s, which ends it by itself when the bot is gone", st.Host), true
	}
	return process.EndLeftovers(&process.Started{PID: st.PID, Ticks: st.Ticks}, r.Proposal.ID)
}
