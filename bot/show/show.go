// Package show turns the journals of a case into what people see of it: a pure
// function from entries to messages. It knows no transport and no clock; the same
// entries give the same messages, so that a thread can be rebuilt from entry 1.
//
// Every message has a stable key. A message of kind log carries the head of the
// case at its entry and never changes: whoever copies it can show later that the
// journal's tail was cut.
package show

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/safeexec"
)

// Entry kinds of the case journal that bot writes.
const (
	KindOfTakeover = "takeover"
	KindOfRefusal  = "refusal"
	KindOfReason   = "reason"
	KindOfReport   = "report"
	kindOfRepair   = "repair"
	kindOfAsked    = "asked" // a question did not let a command run, so that it has a card
	KindOfNotice   = "notice"
	KindOfHold     = "hold"
	KindOfVote     = "vote"
	KindOfFeedback = "feedback"
	KindOfRemoved  = "removed"
	// KindOfIntegrity: people chose what becomes of a case whose files were changed.
	KindOfIntegrity = "integrity"
	// KindOfLost: the store may have forgotten the last of the case.
	KindOfLost = "history_lost"
	// KindOfRecovered: this machine's journals held entries that the store does not have.
	KindOfRecovered = "recovered"
)

// stepsShown bounds the progress message: earlier steps are counted, not listed.
const stepsShown = 12

// headEvery is the largest number of entries between two posted heads.
const headEvery = 20

// Takeover is the body of a takeover entry: another process continues the case.
type Takeover struct {
	Owner string `json:"owner"`
	Why   string `json:"why"`
}

// Refusal is the body of a refusal entry: somebody pressed or wrote what they
// may not. It is told to them in private and never shown in the thread, which
// anybody could flood with it.
type Refusal struct {
	By      string `json:"by"`
	What    string `json:"what"`
	Text    string `json:"text,omitempty"` // of an edit: the command that was not taken
	Why     string `json:"why"`
	AuditID string `json:"audit_id,omitempty"`
	More    int    `json:"more,omitempty"` // a count of refusals that are not journaled one by one
}

// Hold is the body of a hold entry: an optional command waits longer, because
// somebody edits it or did a moment ago.
type Hold struct {
	AuditID string    `json:"audit_id"`
	By      string    `json:"by,omitempty"` // who edits it; "": nobody any more
	Until   time.Time `json:"until"`
}

// Vote is the body of a vote entry: one of the people that a command needs approved
// it, and others are still needed.
type Vote struct {
	AuditID string    `json:"audit_id"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Code    bool      `json:"code,omitempty"` // a code proved that it was them
	Needed  int       `json:"needed"`
}

// Feedback is the body of a feedback entry: what somebody thought of the report. It
// may stand behind the end of a case, and is shown to nobody but readers of the journal.
type Feedback struct {
	By     string    `json:"by"`
	Useful bool      `json:"useful"`
	Text   string    `json:"text,omitempty"`
	At     time.Time `json:"at"`
}

// Removed is the body of a removed entry: a message that people can answer is not in
// the thread any more, though the bot did not take it away.
type Removed struct {
	Key  string `json:"key"`
	Addr string `json:"addr"`
}

// Notice is the body of a notice entry: something that people should know.
type Notice struct {
	By   string `json:"by,omitempty"` // who did it
	Text string `json:"text"`
	// Cases are the other cases that it names, and where people find them.
	Cases []Other `json:"cases,omitempty"`
}

// Other is another case.
type Other struct {
	Case string `json:"case"`
	Link string `json:"link,omitempty"` // as a transport gave it
}

// Integrity is the body of an integrity entry: the files of the case were not as
// they were left, and what people chose.
type Integrity struct {
	Why    []string `json:"why"`    // a clause each
	Choice string   `json:"choice"` // continue, fresh, abort
	By     string   `json:"by"`
	Next   string   `json:"next,omitempty"`  // fresh: the case that takes its place
	Place  string   `json:"place,omitempty"` // continue, of a copied case: where it came from and where it was when they chose
}

// Text says what was chosen, for people.
func (i Integrity) Text() string {
	switch i.Choice {
	case "continue":
		return "The case continues although its files were changed"
	case "fresh":
		return "A fresh case takes the place of this one: " + i.Next
	}
	return "The case is given up because its files were changed"
}

// LateReason is the body of a reason entry: words that arrived after a denial
// had been passed on.
type LateReason struct {
	AuditID string `json:"audit_id"`
	By      string `json:"by"`
	Text    string `json:"text"`
}

// Fold folds entries into the messages that people see. The zero value is ready;
// Apply the entries in order, then read Messages. It is a pure function of the
// entries: the same entries give the same messages.
type Fold struct {
	sid       string
	opened    agent.Opened
	root      RootView
	progress  ProgressView
	steps     []Step
	stepOf    map[string]int
	cards     map[string]*CardView
	own       map[string]safeexec.Proposal // RISKY ones
	held      map[string]Message           // cards of commands that a question showed
	questions map[string]*QuestionView
	order     []*Message
	byKey     map[string]*Message
	fold      *agent.Fold
	plots     []PlotView      // pictures so far
	drawing   map[string]bool // commands of which pictures are shown
	forgot    map[string]bool // commands that were started in entries which the store lost
	lastHead  uint64
	rules     Rules
}

// Rules are who may decide now: cards show what a click will be held against, not
// what was in force when the case was opened.
type Rules struct {
	Needed    func(class, rule string) int // how many different people a command wants
	Self      bool                         // its requester may be one of them
	Approvers []string                     // users and groups; empty: nobody
	Any       bool                         // somebody may decide about something
	// Who returns those who may decide about a command; nil: Approvers.
	Who func(class, rule string) []string
	// Code reports whether approving a command needs a code; nil: never.
	Code func(class, rule string) bool
}

func (r Rules) who(class, rule string) []string {
	if r.Who == nil {
		return r.Approvers
	}
	return r.Who(class, rule)
}

// New returns an empty projection.
func New(sid string, rules Rules) *Fold {
	return &Fold{
		sid: sid, rules: rules, fold: agent.NewFold(sid),
		stepOf: map[string]int{}, cards: map[string]*CardView{}, held: map[string]Message{}, own: map[string]safeexec.Proposal{},
		questions: map[string]*QuestionView{}, byKey: map[string]*Message{}, drawing: map[string]bool{}, forgot: map[string]bool{},
	}
}

// Messages returns what people should see now, in the order of first appearance.
// The messages are copies of pointers: read them before the next Apply.
func (s *Fold) Messages() []Message {
	out := make([]Message, 0, len(s.order))
	for _, m := range s.order {
		out = append(out, *m)
	}
	return out
}

// Apply folds one entry.
func (s *Fold) Apply(e agent.Entry) {
	s.fold.Apply(e)
	switch e.Journal {
	case "case":
		s.applyCase(e)
	case "shell":
		s.applyShell(e)
	}
	if len(s.order) == 0 {
		return
	}
	s.refresh(e)
	if e.N-s.lastHead >= headEvery {
		s.log(e, LogView{What: "head"})
	}
}

func (s *Fold) applyCase(e agent.Entry) {
	switch e.Kind {
	case "opened":
		s.open(e)
	case "turn":
		s.turn(e)
	case "question":
		s.question(e)
	case "answer":
		s.answer(e)
	case "concluded":
		s.conclude(e)
	case KindOfReport:
		s.report(e)
	case KindOfHold:
		s.hold(e)
	case KindOfVote:
		s.vote(e)
	default:
		s.line(e)
	}
}

// hold tells on the card until when an optional command waits now.
func (s *Fold) hold(e agent.Entry) {
	var h Hold
	if json.Unmarshal(e.Body, &h) != nil {
		return
	}
	if c, ok := s.cards[h.AuditID]; ok && c.State == "PENDING" && !c.Withdraw.IsZero() {
		c.Withdraw, c.Editing = h.Until, h.By
	}
}

// vote tells on the card, and in the log, who approved before others did.
func (s *Fold) vote(e agent.Entry) {
	var v Vote
	if json.Unmarshal(e.Body, &v) != nil {
		return
	}
	c, ok := s.cards[v.AuditID]
	if !ok || c.State != "PENDING" || slices.Contains(c.Votes, v.By) {
		return
	}
	c.Votes, c.At, c.Needed = append(c.Votes, v.By), v.At, max(c.Needed, v.Needed)
	c.Withdraw = time.Time{} // somebody reacted
	s.log(e, LogView{What: "vote", By: v.By, Body: c.Command, Note: fmt.Sprintf("%d of %d; somebody else has to approve as well", len(c.Votes), c.Needed)})
}

// line shows the entries that are one line of the thread's log.
func (s *Fold) line(e agent.Entry) {
	switch e.Kind {
	case KindOfTakeover:
		var t Takeover
		if json.Unmarshal(e.Body, &t) == nil {
			s.log(e, LogView{What: "takeover", Body: t.Why})
		}
	case kindOfRepair:
		s.log(e, LogView{What: "repaired"})
	case KindOfReason:
		var r LateReason
		if json.Unmarshal(e.Body, &r) == nil {
			s.log(e, LogView{What: "reason", By: r.By, Body: r.Text})
		}
	case KindOfRemoved:
		var r Removed
		if json.Unmarshal(e.Body, &r) == nil {
			s.log(e, LogView{What: "notice", Body: "A message of this thread was deleted (" + r.Key + "). It is posted again while it can be answered; the journal has it in any case."})
		}
	case KindOfNotice, KindOfLost, KindOfRecovered:
		var n Notice
		if json.Unmarshal(e.Body, &n) == nil {
			s.log(e, LogView{What: "notice", By: n.By, Body: n.Text, Links: n.Cases})
		}
		if e.Kind == KindOfRecovered {
			s.forgotten(e)
		}
	case KindOfIntegrity:
		var i Integrity
		if json.Unmarshal(e.Body, &i) == nil {
			s.log(e, LogView{What: "notice", By: i.By, Body: i.Text()})
		}
	case agent.KindRecalled:
		var r agent.RecalledEntry
		if json.Unmarshal(e.Body, &r) == nil && len(r.Cases) > 0 {
			s.log(e, LogView{What: "notice", Body: Earlier(r)})
		}
	case "instruction":
		var i agent.Instruction
		if json.Unmarshal(e.Body, &i) == nil {
			s.log(e, LogView{What: "heard", By: i.By, Body: i.Text, Note: s.later()})
		}
	}
}

// later tells whoever writes while a command waits when their words are read.
func (s *Fold) later() string {
	for _, c := range s.cards {
		if c.State == "PENDING" {
			return "read once the command that waits is decided; it stays open"
		}
	}
	return ""
}

func (s *Fold) add(m Message) *Message {
	if old, ok := s.byKey[m.Key]; ok {
		return old
	}
	m.SessionID = s.sid
	p := &m
	s.byKey[m.Key] = p
	s.order = append(s.order, p)
	return p
}

// log adds one line with the case's head at that entry; such a line is never
// edited, so it shows later what the journal was then.
func (s *Fold) log(e agent.Entry, v LogView) {
	v.Head, v.N = e.Head, e.N
	s.lastHead = e.N
	s.add(Message{Key: fmt.Sprintf("log/%03d", e.N), Entry: e.N, Kind: KindLog, Text: logText(v), Log: &v})
}

func logText(v LogView) string {
	t := strings.TrimSpace(v.What + " " + v.Body)
	if v.Note != "" {
		t += " (" + v.Note + ")"
	}
	return fmt.Sprintf("%s (entry %d, head %s)", t, v.N, v.Head)
}

func (s *Fold) open(e agent.Entry) {
	if json.Unmarshal(e.Body, &s.opened) != nil {
		return
	}
	o := s.opened
	s.lastHead = e.N
	s.root = RootView{Symptom: o.Symptom, State: "investigating", Requester: o.Requester, Brain: o.Brain, Approvers: s.rules.Approvers, Started: e.Time, Sweep: o.Kind == agent.KindSweep, Triage: o.Kind == agent.KindTriage, Source: o.Place["source"]}
	s.root.Elsewhere = len(s.root.Approvers) == 0 && s.rules.Any
	s.progress.Sweep, s.progress.Triage = s.root.Sweep, s.root.Triage
	s.add(Message{Key: "root", Entry: e.N, Kind: KindRoot, Text: s.root.Title(), Root: &s.root})
	s.add(Message{Key: "progress", Entry: e.N, Kind: KindProgress, Text: s.progressText(), Progress: &s.progress})
}

func (s *Fold) turn(e agent.Entry) {
	var t agent.TurnEntry
	// Words of an answer that could not be used are not shown: nothing came of them,
	// and they may say that something is pending or was approved.
	if json.Unmarshal(e.Body, &t) != nil || strings.TrimSpace(t.Text) == "" || t.Problem != "" {
		return
	}
	s.lastHead = e.N
	s.add(Message{Key: fmt.Sprintf("say/%03d", e.N), Entry: e.N, Kind: KindSay, Text: t.Text, Head: e.Head})
}

func (s *Fold) question(e agent.Entry) {
	var q agent.Question
	if json.Unmarshal(e.Body, &q) != nil {
		return
	}
	v := &QuestionView{Question: q, SessionID: s.sid}
	for _, argv := range q.Commands {
		v.Commands = append(v.Commands, safeexec.Quote(argv))
	}
	s.questions[q.ID] = v
	s.add(Message{Key: "question/" + q.ID, Entry: e.N, Kind: KindQuestion, Text: q.Text, Question: v})
}

func (s *Fold) answer(e agent.Entry) {
	var a agent.AnswerEntry
	if json.Unmarshal(e.Body, &a) != nil {
		return
	}
	if q, ok := s.questions[a.ID]; ok {
		q.Answer = &a.Answer
	}
}

func (s *Fold) conclude(e agent.Entry) {
	var c agent.Conclusion
	if json.Unmarshal(e.Body, &c) != nil {
		return
	}
	s.root.State, s.root.Verdict = "finished", c.Verdict
	if c.EndedBy == "stopped" {
		s.root.State = "stopped"
		s.log(e, LogView{What: "stopped", By: c.By})
	}
	s.progress.Done = true
	for _, card := range s.cards {
		if card.State == "PENDING" { // it ended without an answer
			card.State, card.At, card.Reason = "CANCELLED", e.Time, "the case ended"
		}
	}
}

func (s *Fold) report(e agent.Entry) {
	var r Report
	if json.Unmarshal(e.Body, &r) != nil {
		return
	}
	s.add(Message{Key: "report", Entry: e.N, Kind: KindReport, Text: r.Title + ": " + r.Summary, Report: &r})
	s.add(Message{Key: "file", Entry: e.N, Kind: KindFile, Text: "Report of " + s.sid, Report: &r})
	for _, v := range s.plots {
		s.add(Message{Key: "plot/" + v.SHA256, Entry: e.N, Kind: KindFile, Text: v.Title, Plot: &v})
	}
	what := "ended"
	if s.root.Sweep {
		what = "swept"
	} else if s.root.Triage {
		what = "triaged"
	}
	s.log(e, LogView{What: what})
}

func (s *Fold) applyShell(e agent.Entry) {
	switch e.Kind {
	case "proposed":
		s.proposed(e)
	case "decided":
		s.decided(e)
	case "intent":
		s.intent(e)
	case "outcome":
		s.outcome(e)
	case kindOfAsked:
		s.asked(e)
	}
}

func (s *Fold) proposed(e agent.Entry) {
	var p safeexec.Proposal
	if json.Unmarshal(e.Body, &p) != nil {
		return
	}
	s.stepOf[e.ID] = len(s.steps)
	s.steps = append(s.steps, Step{AuditID: e.ID, Command: p.Display, State: "running"})
	s.drawing[e.ID] = draws(p)
	if p.Class != safeexec.Risky {
		return
	}
	id := e.Hash
	if len(id) > 32 {
		id = id[:32]
	}
	c := &CardView{
		SessionID: s.sid, ProposalID: id, Digest: p.Digest, AuditID: e.ID, State: "PENDING",
		Command: p.Display, Program: p.Program, Why: p.Reasoning, Hypothesis: p.Hypothesis,
		Risk: p.Risk, Rule: p.Rule, Tier: p.Tier, Target: p.Target, Effect: p.Effect, Means: p.Means, Timeout: p.Bound(),
		Expires: p.Expires, Approvers: s.rules.who(p.Class.String(), p.Rule), Needed: s.rules.Needed(p.Class.String(), p.Rule),
		Code: s.rules.Code != nil && s.rules.Code(p.Class.String(), p.Rule),
		Head: e.Head, Requester: p.Requester, SelfOK: s.rules.Self,
	}
	c.Elsewhere = len(c.Approvers) == 0 && s.rules.Any
	for _, h := range s.fold.Case().Hypotheses {
		if h.ID == p.Hypothesis && p.Hypothesis != "" {
			c.Separates = h.Description
		}
	}
	if p.Edited { // whoever decides must not take words about the one before for words about this
		for _, text := range []*string{&c.Why, &c.Means} {
			if *text != "" {
				*text = "of the command before it was edited: " + *text
			}
		}
	}
	if p.Patience > 0 {
		c.Withdraw = e.Time.Add(p.Patience)
	}
	s.own[e.ID] = p
	s.steps[len(s.steps)-1].State = "waiting"
	if p.Grant != "" { // a question showed it; it gets a card when that does not count
		s.held[e.ID] = Message{Key: fmt.Sprintf("card/%03d", e.N), Entry: e.N, Kind: KindCard, Card: c}
		return
	}
	s.cards[e.ID] = c
	s.add(Message{Key: fmt.Sprintf("card/%03d", e.N), Entry: e.N, Kind: KindCard, Text: cardText(c), Card: c})
}

// asked shows the card of a command whose question did not let it run.
func (s *Fold) asked(e agent.Entry) {
	var a struct {
		AuditID string `json:"audit_id"`
	}
	if json.Unmarshal(e.Body, &a) != nil {
		return
	}
	if m, ok := s.held[a.AuditID]; ok {
		delete(s.held, a.AuditID)
		s.cards[a.AuditID] = m.Card
		m.Text = cardText(m.Card)
		s.add(m)
	}
}

func cardText(c *CardView) string {
	if c.State == "PENDING" && len(c.Votes) > 0 {
		return fmt.Sprintf("Approved %d of %d: %s", len(c.Votes), c.Needed, c.Command)
	}
	if c.State == "PENDING" {
		return "Approval needed: " + c.Command
	}
	return c.State + ": " + c.Command
}

func (s *Fold) decided(e agent.Entry) {
	var d safeexec.Decided
	if json.Unmarshal(e.Body, &d) != nil {
		return
	}
	c, ok := s.cards[d.AuditID]
	if !ok {
		return
	}
	c.State, c.By, c.At, c.Reason, c.Modified, c.Votes = d.Decision, d.By, d.At, d.Reason, Visible(d.Modified), d.Votes
	s.setStep(d.AuditID, strings.ToLower(d.Decision), 0)
	body := c.Command
	if d.Reason != "" && d.Reason != "expired" && d.Reason != "stopped" && d.Reason != "superseded" {
		body += " (" + d.Reason + ")"
	}
	if d.Modified != "" {
		body += " → " + c.Modified
	}
	s.log(e, LogView{What: strings.ToLower(d.Decision), By: d.By, Body: body})
	s.unsure(d.AuditID)
}

func (s *Fold) intent(e agent.Entry) {
	var i struct {
		AuditID string `json:"audit_id"`
	}
	if json.Unmarshal(e.Body, &i) != nil {
		return
	}
	s.setStep(i.AuditID, "running", 0)
	if c, ok := s.cards[i.AuditID]; ok {
		c.State = "RUNNING"
	}
}

func (s *Fold) outcome(e agent.Entry) {
	var r safeexec.Result
	if json.Unmarshal(e.Body, &r) != nil {
		return
	}
	planned := s.own[r.AuditID].AsPlanned(r)
	state := stepState(r)
	if planned {
		state = "ended after " + s.own[r.AuditID].Own().String() + ", as planned"
	}
	s.setStep(r.AuditID, state, r.Duration)
	s.keepPlots(r)
	c, ok := s.cards[r.AuditID]
	if !ok {
		return
	}
	c.Planned = planned
	if unstarted(r) {
		c.State, c.At, c.Reason = "CANCELLED", e.Time, "not started, "+said(r)
		s.log(e, LogView{What: "cancelled", Body: c.Command + ": " + c.Reason})
		return
	}
	c.Exit, c.Seconds, c.Detail = r.ExitCode, r.Duration, r.Detail
	if why := r.DenialReason; c.State == "DENIED" && c.By != "" && c.Reason == "" && why != "" && why != "denied" {
		c.Reason = why // it followed the press
		s.log(e, LogView{What: "reason", By: c.By, Body: why})
	}
	whole := said(r)
	c.Output, c.File = firstLines(whole, 6)
	switch {
	case r.Error == "outcome_unknown":
		c.State = "UNKNOWN"
	case r.Status == "completed" && r.ExitCode != nil && *r.ExitCode == 0, planned:
		c.State = "DONE"
	case r.Status == "completed" || c.State == "RUNNING":
		c.State = "FAILED"
	}
	if c.State == "DONE" || c.State == "FAILED" || c.State == "UNKNOWN" {
		s.log(e, LogView{What: "ran", Body: c.Command + ": " + state})
	}
	if c.File {
		s.output(e, c, r, state)
	}
}

// forgotten shows of commands that were started in a history which the store lost that nobody knows what came of
// them: their cards say no more that they were only replaced.
func (s *Fold) forgotten(e agent.Entry) {
	var r struct {
		Entries []struct {
			Kind    string
			AuditID string `json:"audit_id"`
			What    string
		}
	}
	if json.Unmarshal(e.Body, &r) != nil {
		return
	}
	for _, f := range r.Entries {
		if argv := strings.Join(s.own[f.AuditID].Argv, " "); f.Kind == "intent" && f.What != "" && strings.HasPrefix(argv, strings.TrimSuffix(f.What, "…")) {
			s.forgot[f.AuditID] = true
			s.unsure(f.AuditID)
		}
	}
}

func (s *Fold) unsure(id string) {
	if c, ok := s.cards[id]; ok && s.forgot[id] && c.State == "SUPERSEDED" {
		c.State, c.Detail = "UNKNOWN", "It was started, and the store lost that: it may have taken effect."
		s.setStep(id, "outcome unknown", 0)
	}
}

// unstarted reports that a command which a person would have had to approve was found not to be
// installed: nobody was asked and nothing ran.
func unstarted(r safeexec.Result) bool { return r.Status == "completed" && r.Action == "blocked" }

// stepState is the outcome in one or two words.
func stepState(r safeexec.Result) string {
	switch {
	case unstarted(r):
		return "not started"
	case r.Error != "":
		return strings.ReplaceAll(r.Error, "_", " ")
	case r.Status == "denied":
		return "denied"
	case r.ExitCode != nil && *r.ExitCode == 0:
		return "ok"
	case r.ExitCode != nil:
		return fmt.Sprintf("exit %d", *r.ExitCode)
	case r.Signal != "":
		return r.Signal
	}
	return r.Status
}

func (s *Fold) setStep(auditID, state string, seconds float64) {
	if i, ok := s.stepOf[auditID]; ok {
		s.steps[i].State, s.steps[i].Seconds = state, seconds
	}
}

// refresh brings the messages that summarise the case up to date.
func (s *Fold) refresh(e agent.Entry) {
	c := s.fold.Case()
	s.progress.Hypotheses = c.Hypotheses
	s.progress.Turn, s.progress.Budget = c.TurnCount, budget(c)
	s.progress.Steps, s.progress.Hidden = s.steps, 0
	if n := len(s.steps) - stepsShown; n > 0 {
		s.progress.Steps, s.progress.Hidden = s.steps[n:], n
	}
	if m := s.byKey["progress"]; m != nil {
		m.Text = s.progressText()
	}
	for _, m := range s.order {
		if m.Kind == KindCard {
			m.Text = cardText(m.Card)
		}
	}
	if s.root.State == "finished" || s.root.State == "stopped" {
		return
	}
	s.root.State = "investigating"
	for _, card := range s.cards {
		if card.State == "PENDING" {
			s.root.State = "waiting for approval"
		}
	}
	for _, q := range s.questions {
		if q.Answer == nil {
			s.root.State = "waiting for an answer"
		}
	}
}

// budget is what a case has used of its turns and, with a model, of its tokens and
// its money.
func budget(c agent.Case) string {
	if c.MaxTurns == 0 {
		return ""
	}
	b := fmt.Sprintf("%d of %d turns", c.TurnCount, c.MaxTurns)
	if c.Usage.Calls > 0 {
		b += ", " + c.Usage.Of(c.Opened.MaxTokens, c.Opened.MaxCost)
	}
	return b
}

func (s *Fold) progressText() string {
	if s.progress.Done {
		return fmt.Sprintf("Finished after %d commands", len(s.steps))
	}
	if n := len(s.steps); n > 0 {
		return fmt.Sprintf("%d commands so far, now: %s", n, s.steps[n-1].Command)
	}
	return s.progress.First()
}
