package triage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ghostbot/cmd/ghostbot/options"
	"ghostbot/triage/act"
	"ghostbot/triage/model"
	"ghostbot/triage/plan"
	"ghostbot/triage/session"
)

type applyOptions struct {
	recommended, yes, resume, dryRun, known bool
	targets, action, approval, maxBlast     string
	maxKills                                int
	grace                                   time.Duration
}

func applyFlags(c *call, f *flag.FlagSet) {
	sessionFlag(c, f)
	f.BoolVar(&c.recommended, "recommended", false, "do what the plan recommends")
	f.BoolVar(&c.yes, "yes", false, "start, with robot_mode in the policy")
	f.BoolVar(&c.resume, "resume", false, "go on with an interrupted run")
	f.BoolVar(&c.dryRun, "dry-run", false, "say what would be done")
	f.BoolVar(&c.known, "require-known-signature", false, "only what a signature knows")
	f.Var(words{&c.pids}, "pids", "process numbers, separated by commas: `LIST`")
	f.Var(words{&c.pids}, "pid", "")
	f.Var(words{&c.targets}, "targets", "processes with their start, separated by commas: `PID:START_ID`")
	f.StringVar(&c.action, "action", "", "what to do to those that are named, kill, pause, resume, throttle or restart: `ACTION`")
	f.StringVar(&c.approval, "approval", "", "the approval that 'agent approve' printed: `AUDIT_ID`")
	f.Var((*options.Number)(&c.minPosterior), "min-posterior", "only judgements at least as sure, 0 to 1: `P`")
	f.StringVar(&c.maxBlast, "max-blast-radius", "", "refuse what holds more memory, such as 2GB: `SIZE`")
	c.maxKills = -1
	f.Var((*options.Whole)(&c.maxKills), "max-kills", "end at most so many: `N`")
	f.Var(duration{&c.grace}, "grace", "time between TERM and KILL: `DURATION`")
	c.grace = 5 * time.Second
	attendFlags(c, f)
}

var sizeForm = regexp.MustCompile(`^(?i)(?:memory=|free )?([0-9]+(?:\.[0-9]+)?) ?(mb|mib|gb|gib|kb|kib)?$`)

// megabytes reads a size; a plain number is megabytes.
func megabytes(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	m := sizeForm.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is no size (accepted: 500MB, 2GB, 2GiB, a plain number of MB)", s)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil || math.IsInf(n, 0) || n <= 0 {
		return 0, fmt.Errorf("%q is no size above 0", s)
	}
	switch strings.ToLower(m[2]) {
	case "gb", "gib":
		n *= 1024
	case "kb", "kib":
		n /= 1024
	}
	return n, nil
}

// doable are the actions that apply accepts.
var doable = []string{"", "kill", "pause", "resume", "throttle", "restart"}

func (c *call) applyChecks() (o act.Options, err error) {
	if err := c.needSession(); err != nil {
		return o, err
	}
	if o.PIDs, err = pidList(c.pids); err != nil {
		return o, err
	}
	if o.MaxBlastMB, err = megabytes(c.maxBlast); err != nil {
		return o, usage("--max-blast-radius: %v", err)
	}
	switch {
	case !slices.Contains(doable, c.action) || c.action == "" && slices.Contains(c.given, "action"):
		return o, usage("--action %q is not known (accepted: kill pause resume throttle restart)", c.action)
	case c.recommended && c.action != "" && !c.resume:
		return o, usage("--action %q is for processes that are named with --pids or --targets: --recommended does what the plan recommends", c.action)
	case !c.recommended && !c.resume && len(o.PIDs) == 0 && c.targets == "":
		return o, usage("agent apply wants --recommended, --pids, --targets or --resume")
	case !(c.minPosterior >= 0 && c.minPosterior <= 1):
		return o, usage("--min-posterior %v is no probability", c.minPosterior)
	case c.maxKills < 0 && slices.Contains(c.given, "max-kills"):
		return o, usage("--max-kills %d is below 0", c.maxKills)
	case c.grace > 10*time.Minute:
		return o, usage("--grace %v is longer than 10m", c.grace)
	}
	o.Recommended, o.Action, o.Approval, o.MinPosterior = c.recommended, model.Action(c.action), c.approval, c.minPosterior
	o.Given = c.given
	o.MaxKills, o.KnownSignature, o.Grace, o.DryRun, o.Resume, o.StopAfter = c.maxKills, c.known, c.grace, c.dryRun, c.resume, stopAfter()
	o.Targets, err = c.targetList()
	return o, err
}

// targetList parses PID:START_ID pairs.
func (c *call) targetList() ([]plan.Target, error) {
	var out []plan.Target
	for _, w := range list(c.targets) {
		number, start, ok := strings.Cut(w, ":")
		pids, err := pidList(number)
		if err != nil || !ok || start == "" || len(pids) != 1 {
			return nil, usage("--targets %q is no PID:START_ID", w)
		}
		out = append(out, plan.Target{PID: pids[0], StartID: start})
	}
	return out, nil
}

var dotted = regexp.MustCompile(`^([0-9]{1,12})\.([0-9]{1,10})$`)

// resolve turns the short form of a start id (UNIXTIME.PID) into the one of the
// plan; what does not fit stays as it is, and then fits nothing.
func (c *call) resolve(o *act.Options) error {
	if !slices.ContainsFunc(o.Targets, func(t plan.Target) bool { return dotted.MatchString(t.StartID) }) {
		return nil
	}
	x, snap, p, err := c.engine.Stored(c.session)
	if err != nil {
		return err
	}
	defer x.Close()
	for i, t := range o.Targets {
		m := dotted.FindStringSubmatch(t.StartID)
		e := p.Find(t.PID)
		if m == nil || e == nil || m[2] != strconv.Itoa(t.PID) {
			continue
		}
		unix, _ := strconv.ParseFloat(m[1], 64)
		began := float64(snap.RecordedAt.Unix()) - e.AgeS
		if math.Abs(began-unix) <= 2 {
			o.Targets[i].StartID = e.StartID
		}
	}
	return nil
}

// applied is the document of the verb apply.
type applied struct {
	plan.Envelope
	State       session.State `json:"session_state"`
	Interrupted bool          `json:"interrupted,omitempty"`
	Results     []act.Result  `json:"results"`
	Summary     applySummary  `json:"summary"`
	Resume      string        `json:"resume_command,omitempty"`
}

type applySummary struct {
	Total      int     `json:"total"`
	Successful int     `json:"successful"`
	Skipped    int     `json:"skipped"`
	Failed     int     `json:"failed"`
	Blocked    int     `json:"blocked"`
	FreedMB    float64 `json:"memory_freed_mb"`
}

func apply(ctx context.Context, c *call) (int, error) {
	o, err := c.applyChecks()
	if err != nil {
		return 0, err
	}
	if err := c.attend(&o); err != nil {
		return 0, err
	}
	if !c.yes && !c.dryRun && !c.resume && o.Attend == nil { // what is resumed was confirmed when it began
		return 0, blocked("apply does nothing without --yes")
	}
	if err := c.resolve(&o); err != nil {
		return 0, err
	}
	if c.timeout > 0 {
		var stop func()
		ctx, stop = context.WithTimeout(ctx, c.timeout)
		defer stop()
	}
	x, results, err := c.engine.Apply(ctx, c.session, o)
	if x != nil {
		defer x.Close()
	}
	if errors.Is(err, act.ErrChanged) {
		return 0, usage("%v", err)
	}
	stopped := errors.Is(err, act.ErrInterrupted)
	if err != nil && !stopped {
		return 0, err
	}
	doc := applied{Envelope: c.engine.Envelope(c.session), State: x.Manifest.State, Interrupted: stopped, Results: results}
	freed, err := c.freed(results)
	if err != nil {
		return 0, err
	}
	doc.Summary = sum(results)
	doc.Summary.FreedMB = freed
	if stopped {
		doc.Resume = resumeCommand(c.session)
	}
	return applyExit(results, stopped), c.print(doc, func() string {
		s := doc.Summary
		return fmt.Sprintf("%s: %d done, %d skipped, %d failed, %d blocked\n", c.session, s.Successful, s.Skipped, s.Failed, s.Blocked)
	})
}

func (c *call) freed(results []act.Result) (mb float64, err error) {
	x, _, p, err := c.engine.Stored(c.session)
	if err != nil {
		return 0, err
	}
	defer x.Close()
	for _, r := range results {
		if e := p.Find(r.Target.PID); e != nil && r.Outcome == "success" && r.Action == model.Kill {
			mb += e.Blast.MemoryMB
		}
	}
	return math.Round(mb*1000) / 1000, nil
}

func resumeCommand(sid string) string {
	return "ghostbot agent apply --session " + sid + " --resume"
}

func sum(results []act.Result) (s applySummary) {
	s.Total = len(results)
	for _, r := range results {
		switch r.Outcome {
		case "success":
			s.Successful++
		case "skipped":
			s.Skipped++
		case "failed":
			s.Failed++
		case "blocked":
			s.Blocked++
		}
	}
	return s
}

// harmless are reasons of a skip that is not the doing of a gate.
var harmless = []string{"process_gone", "already_completed", "dry_run"}

func applyExit(results []act.Result, stopped bool) int {
	s := sum(results)
	gated := s.Blocked
	for _, r := range results {
		if r.Outcome == "skipped" && !slices.Contains(harmless, r.Reason) {
			gated++
		}
	}
	switch {
	case stopped:
		return exitInterrupted
	case s.Failed > 0:
		return exitPartial
	case s.Successful > 0:
		return exitApplied
	case gated > 0:
		return exitBlocked
	}
	return exitClean
}

func verifyFlags(c *call, f *flag.FlagSet) {
	sessionFlag(c, f)
	f.Var(duration{&c.wait}, "wait", "look again after this `DURATION`")
	f.BoolVar(&c.respawn, "check-respawn", false, "look for what came back under another number")
	c.wait = -1
}

// verified is the document of the verb verify.
type verified struct {
	plan.Envelope
	Verification act.Verification `json:"verification"`
	Outcomes     []act.Outcome    `json:"action_outcomes"`
	Resources    act.Resources    `json:"resource_summary"`
}

func verify(ctx context.Context, c *call) (int, error) {
	if err := c.needSession(); err != nil {
		return 0, err
	}
	if c.respawn && c.wait < 0 {
		c.wait = 3 * time.Second
	}
	v, outcomes, res, err := c.engine.Verify(ctx, c.session, c.wait)
	if err != nil {
		return 0, err
	}
	doc := verified{Envelope: c.engine.Envelope(c.session), Verification: *v, Outcomes: outcomes, Resources: res}
	doc.Verification.Outcomes = nil
	exit := exitClean
	if v.Status != "success" {
		exit = exitPartial
	}
	return exit, c.print(doc, func() string {
		var b strings.Builder
		fmt.Fprintf(&b, "%s: %s\n", c.session, v.Status)
		for _, o := range outcomes {
			fmt.Fprintf(&b, "%d %s %s\n", o.Target.PID, o.Outcome, o.Note)
		}
		return b.String()
	})
}
