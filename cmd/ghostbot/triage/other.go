package triage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ghostbot/cmd/ghostbot/options"
	"ghostbot/triage/act"
	"ghostbot/triage/model"
	"ghostbot/triage/plan"
	"ghostbot/triage/proc"
	"ghostbot/triage/scan"
	"ghostbot/triage/session"
	"ghostbot/triage/view"
)

type otherOptions struct {
	target, include, base, compare, focus, out, profile, checkAction, stateOnly string
	whatIf, respawn, cleanup, accept                                            bool
	wait, older, ttl                                                            time.Duration
}

func diffFlags(c *call, f *flag.FlagSet) {
	for _, name := range []string{"base", "before", "session"} {
		f.StringVar(&c.base, name, "", "the session before: `ID`")
	}
	for _, name := range []string{"compare", "after", "vs"} {
		f.StringVar(&c.compare, name, "", "the session after, else the newest: `ID`")
	}
	f.StringVar(&c.focus, "focus", "all", "all, new, removed, changed or resources: `WHAT`")
}

func diff(_ context.Context, c *call) (int, error) {
	if !slices.Contains([]string{"all", "new", "removed", "changed", "resources"}, c.focus) {
		return 0, usage("--focus %q is not known (accepted: all new removed changed resources)", c.focus)
	}
	if c.base == "" {
		return 0, usage("agent diff wants --base ID")
	}
	c.session = c.base
	a, err := c.stored(c.base)
	if err != nil {
		return 0, err
	}
	if c.compare == "" {
		if c.compare, err = c.newest(c.base); err != nil {
			return 0, err
		}
	}
	c.session = c.compare
	b, err := c.stored(c.compare)
	if err != nil {
		return 0, err
	}
	d := view.Compare(a, b)
	d.Envelope = c.engine.Envelope(c.compare)
	none := []view.Change{}
	switch c.focus {
	case "new":
		d.Delta = view.Delta{New: d.Delta.New, Worsened: none, Improved: none, Resolved: none, Persistent: none}
	case "removed":
		d.Delta = view.Delta{New: none, Worsened: none, Improved: none, Resolved: d.Delta.Resolved, Persistent: none}
	case "changed":
		d.Delta.New, d.Delta.Resolved, d.Delta.Persistent = none, none, none
	}
	return exitClean, c.print(d, func() string {
		return fmt.Sprintf("%s to %s: %d new, %d worsened, %d improved, %d resolved, %d persistent\n", c.base, c.compare, d.Summary["new"], d.Summary["worsened"], d.Summary["improved"], d.Summary["resolved"], d.Summary["persistent"])
	})
}

func (c *call) stored(id string) (*plan.Plan, error) {
	x, _, p, err := c.engine.Stored(id)
	if err != nil {
		return nil, err
	}
	return p, x.Close()
}

// newest is the newest session with a plan beside another one.
func (c *call) newest(but string) (string, error) {
	all, err := c.engine.Store().List()
	if err != nil {
		return "", err
	}
	for _, m := range all {
		if m.SessionID != but && m.Checksums["plan.json"] != "" {
			return m.SessionID, nil
		}
	}
	return "", usage("agent diff: there is no other session with a plan")
}

// statusDoc is the document of the verb status.
type statusDoc struct {
	plan.Envelope
	State     session.State    `json:"state"`
	Phase     string           `json:"phase"`
	Progress  progress         `json:"progress"`
	Resumable bool             `json:"resumable"`
	Resume    *string          `json:"resume_command"`
	AuditOK   bool             `json:"audit_ok"`
	History   []session.Change `json:"state_history"`
	Expires   time.Time        `json:"expires_at"`
	Label     string           `json:"label,omitempty"`
	Warnings  []string         `json:"warnings"`
}

type progress struct {
	Total     int `json:"total_actions"`
	Completed int `json:"completed_actions"`
	Pending   int `json:"pending_actions"`
	Refused   int `json:"refused_actions,omitempty"` // ended, and not done: a gate refused or it failed
}

func status(_ context.Context, c *call) (int, error) {
	x, err := c.opened()
	if err != nil {
		return 0, err
	}
	defer x.Close()
	m := x.Manifest
	d := statusDoc{Envelope: c.engine.Envelope(c.session), State: m.State, History: m.History, Expires: m.ExpiresAt, Label: m.Label, Warnings: []string{}}
	if err := c.progress(x, &d); err != nil {
		return 0, err
	}
	if d.State == session.Executing && !c.engine.Store().Held(m.InitiatedBy.UID) {
		d.State = session.Interrupted // whoever executed it has ended without saying so
	}
	d.Phase = phase(d.State)
	if d.State == session.Interrupted {
		r := resumeCommand(c.session)
		d.Resumable, d.Resume = true, &r
	}
	_, bad, torn, err := x.Audit()
	if err != nil {
		return 0, err
	}
	if d.AuditOK = bad == 0; !d.AuditOK {
		d.Warnings = append(d.Warnings, fmt.Sprintf("audit.jsonl: line %d does not follow from the one before, or is missing", bad))
	}
	if torn > 0 {
		d.Warnings = append(d.Warnings, "audit.jsonl: the last line was not written to its end")
	}
	return exitClean, c.print(d, func() string {
		return fmt.Sprintf("%s: %s, %d of %d actions done\n", c.session, d.State, d.Progress.Completed, d.Progress.Total)
	})
}

func (c *call) progress(x *session.Session, d *statusDoc) error {
	var out act.Outcomes
	found, err := x.Outcomes(&out)
	if err != nil {
		return err
	}
	if found {
		d.Progress.Total = len(out.Steps)
		for _, s := range out.Steps {
			switch completed, refused := s.Ended(); {
			case completed:
				d.Progress.Completed++
			case refused:
				d.Progress.Refused++
			}
		}
	} else if x.Has("plan.json") {
		var p plan.Plan
		if err := x.Get("plan.json", &p); err != nil {
			return err
		}
		d.Progress.Total = p.Recommended.Total
	}
	d.Progress.Pending = d.Progress.Total - d.Progress.Completed - d.Progress.Refused
	return nil
}

func phase(s session.State) string {
	switch s {
	case session.Created:
		return "snapshot"
	case session.Planned:
		return "plan"
	case session.Verified:
		return "verify"
	}
	return "apply"
}

func sessionsFlags(c *call, f *flag.FlagSet) {
	sessionFlag(c, f)
	c.limit = 10
	f.Var((*options.Whole)(&c.limit), "limit", "at most so many: `N`")
	f.StringVar(&c.stateOnly, "state", "", "only sessions in this `STATE`")
	f.BoolVar(&c.cleanup, "cleanup", false, "remove the sessions that --older-than means")
	f.Var(duration{&c.older}, "older-than", "sessions older than this `DURATION`")
	f.Bool("detail", false, "accepted for the contract, changes nothing")
	c.older = session.TTL
}

// sessionsDoc is the document of the verb sessions.
type sessionsDoc struct {
	SchemaVersion string             `json:"schema_version"`
	SessionID     *string            `json:"session_id"`
	GeneratedAt   time.Time          `json:"generated_at"`
	HostID        string             `json:"host_id"`
	Sessions      []session.Manifest `json:"sessions"`
	Total         int                `json:"total"`
	Removed       []string           `json:"removed,omitempty"`
}

func sessions(ctx context.Context, c *call) (int, error) {
	switch {
	case c.session != "":
		return status(ctx, c)
	case c.limit < 0:
		return 0, usage("--limit %d is below 0 (0: all)", c.limit)
	case c.stateOnly != "" && !slices.Contains(session.States, session.State(c.stateOnly)):
		return 0, usage("--state %q is not known (accepted: %s)", c.stateOnly, strings.Trim(fmt.Sprint(session.States), "[]"))
	}
	all, err := c.engine.Store().List()
	if err != nil {
		return 0, err
	}
	e := c.engine.Envelope("")
	d := sessionsDoc{SchemaVersion: e.SchemaVersion, GeneratedAt: e.GeneratedAt, HostID: e.HostID, Sessions: []session.Manifest{}}
	for _, m := range all {
		if c.cleanup && time.Since(m.CreatedAt) >= c.older && m.State != session.Executing && m.State != session.Interrupted {
			if err := c.engine.Store().Remove(m.SessionID); err != nil {
				return 0, err
			}
			d.Removed = append(d.Removed, m.SessionID)
			continue
		}
		if c.stateOnly != "" && string(m.State) != c.stateOnly {
			continue
		}
		if d.Total++; c.limit <= 0 || len(d.Sessions) < c.limit {
			d.Sessions = append(d.Sessions, m)
		}
	}
	return exitClean, c.print(d, func() string {
		var b strings.Builder
		for _, m := range d.Sessions {
			fmt.Fprintf(&b, "%s %s %s\n", m.SessionID, m.State, m.Label)
		}
		return b.String()
	})
}

func reportFlags(c *call, f *flag.FlagSet) {
	sessionFlag(c, f)
	f.StringVar(&c.out, "out", "", "where to write: `FILE`")
	f.StringVar(&c.out, "o", "", "")
	f.StringVar(&c.prose, "prose-style", view.Styles[0], "conversational, terse, formal or technical: `STYLE`")
}

// written is the document of report and export.
type written struct {
	plan.Envelope
	Path     string            `json:"path"`
	Bytes    int               `json:"bytes"`
	SHA256   string            `json:"sha256"`
	Manifest map[string]string `json:"files,omitempty"`
}

func report(_ context.Context, c *call) (int, error) {
	if err := c.needSession(); err != nil {
		return 0, err
	}
	if !slices.Contains(view.Styles, c.prose) {
		return 0, usage("--prose-style %q is not known (accepted: %s)", c.prose, strings.Join(view.Styles, " "))
	}
	x, _, p, err := c.engine.Stored(c.session)
	if err != nil {
		return 0, err
	}
	defer x.Close()
	var out act.Outcomes
	found, err := x.Outcomes(&out)
	if err != nil {
		return 0, err
	}
	entries, bad, _, err := x.Audit()
	if err != nil {
		return 0, err
	}
	o := &out
	if !found {
		o = nil
	}
	r := view.NewReport(x.Manifest, p, o, entries, bad == 0, c.prose, time.Now())
	text := r.Markdown()
	if ext := strings.ToLower(filepath.Ext(c.out)); ext == ".html" || ext == ".htm" {
		if text, err = r.HTML(); err != nil {
			return 0, err
		}
	}
	if c.out == "" || c.out == "-" {
		_, err = io.WriteString(c.s.Out, text)
		return exitClean, err
	}
	return c.write([]byte(text), nil)
}

// write stores what report and export made, and says where.
func (c *call) write(b []byte, files map[string]string) (int, error) {
	f, err := os.OpenFile(c.out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NONBLOCK, 0o600) // a pipe that nobody reads is refused
	if err != nil {
		return 0, usage("--out: %v (accepted: a file, or a pipe that is read)", err)
	}
	if _, err := f.Write(b); err != nil {
		f.Close()
		return 0, err
	}
	if err := f.Close(); err != nil {
		return 0, err
	}
	sum := sha256.Sum256(b)
	d := written{Envelope: c.engine.Envelope(c.session), Path: c.out, Bytes: len(b), SHA256: hex.EncodeToString(sum[:]), Manifest: files}
	return exitClean, c.print(d, func() string { return c.out + "\n" })
}

func exportFlags(c *call, f *flag.FlagSet) {
	sessionFlag(c, f)
	f.StringVar(&c.out, "out", "", "where to write: `FILE`")
	f.StringVar(&c.out, "o", "", "")
	f.StringVar(&c.profile, "profile", "safe", "minimal, safe or forensic: `PROFILE`")
	f.Bool("include-telemetry", false, "accepted for the contract, changes nothing")
}

func export(_ context.Context, c *call) (int, error) {
	if err := c.needSession(); err != nil {
		return 0, err
	}
	if !slices.Contains([]string{"minimal", "safe", "forensic"}, c.profile) {
		return 0, usage("--profile %q is not known (accepted: minimal safe forensic)", c.profile)
	}
	x, err := c.engine.Store().Open(c.session)
	if err != nil {
		return 0, err
	}
	defer x.Close()
	names := []string{"manifest.json", "plan.json", "outcomes.json", "audit.jsonl", "audit.head.json"}
	if c.profile != "minimal" {
		names = append(names, "snapshot.json")
	}
	content, sums := map[string][]byte{}, map[string]string{}
	for _, name := range names {
		b, err := x.Raw(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		sum := sha256.Sum256(b)
		content["session/"+name], sums["session/"+name] = b, hex.EncodeToString(sum[:])
	}
	if c.out == "" {
		c.out = c.session + ".tar.gz"
	}
	b, err := bundle(c.engine.Envelope(c.session), content, sums)
	if err != nil {
		return 0, err
	}
	return c.write(b, sums)
}

// bundle packs files behind a manifest with their checksums.
func bundle(e plan.Envelope, content map[string][]byte, sums map[string]string) ([]byte, error) {
	manifest, err := view.Encode(struct {
		plan.Envelope
		Files map[string]string `json:"sha256"`
	}{e, sums}, true)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	add := func(name string, b []byte) error {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(b)), ModTime: e.GeneratedAt}); err != nil {
			return err
		}
		_, err := w.Write(b)
		return err
	}
	if err := add("manifest.json", manifest); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(content))
	for n := range content {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		if err := add(n, content[n]); err != nil {
			return nil, err
		}
	}
	err = errors.Join(w.Close(), zip.Close())
	return out.Bytes(), err
}

// capabilityBlock is what could be done on this machine.
type capabilityBlock struct {
	Pidfd   bool              `json:"pidfd"`
	Root    bool              `json:"root"`
	Diag    bool              `json:"socket_diagnosis"`
	Cgroup2 *string           `json:"cgroup2"`
	Actions map[string]bool   `json:"actions"`
	Why     map[string]string `json:"unavailable,omitempty"`
}

func capabilityOf(a scan.Abilities) capabilityBlock {
	b := capabilityBlock{Pidfd: a.Pidfd, Root: a.Root, Diag: a.Diag, Why: map[string]string{}}
	if a.Cgroup2 != "" {
		b.Cgroup2 = &a.Cgroup2
	}
	b.Actions = map[string]bool{"kill": a.Pidfd, "pause": a.Pidfd, "resume": a.Pidfd, "throttle": a.CanThrottle() == "", "restart": true}
	if !a.Pidfd {
		for _, n := range []string{"kill", "pause", "resume"} {
			b.Why[n] = "no process descriptors"
		}
	}
	if why := a.CanThrottle(); why != "" {
		b.Why["throttle"] = why
	}
	return b
}

func capabilityFlags(c *call, f *flag.FlagSet) {
	f.StringVar(&c.checkAction, "check-action", "", "can this be done here: `NAME`")
}

// capabilityDoc is the document of the verb capabilities.
type capabilityDoc struct {
	SchemaVersion string          `json:"schema_version"`
	SessionID     *string         `json:"session_id"`
	GeneratedAt   time.Time       `json:"generated_at"`
	HostID        string          `json:"host_id"`
	Capabilities  capabilityBlock `json:"capabilities"`
	Action        string          `json:"action,omitempty"`
	Available     *bool           `json:"available,omitempty"`
}

func capabilities(_ context.Context, c *call) (int, error) {
	e := c.engine.Envelope("")
	d := capabilityDoc{SchemaVersion: e.SchemaVersion, GeneratedAt: e.GeneratedAt, HostID: e.HostID, Capabilities: capabilityOf(scan.AbilitiesOf(proc.Default()))}
	exit := exitClean
	if c.checkAction != "" {
		ok, known := d.Capabilities.Actions[c.checkAction]
		if !known {
			return 0, usage("--check-action %q is not known (accepted: kill pause resume throttle restart)", c.checkAction)
		}
		if d.Action, d.Available = c.checkAction, &ok; !ok {
			exit = exitCapability
		}
	}
	return exit, c.print(d, func() string { return fmt.Sprintf("%+v\n", d.Capabilities.Actions) })
}

func tailFlags(c *call, f *flag.FlagSet) {
	sessionFlag(c, f)
	c.limit = 20
	f.Var((*options.Whole)(&c.limit), "limit", "print the last lines, 0 for all: `N`")
}

func tail(_ context.Context, c *call) (int, error) {
	if c.limit < 0 {
		return 0, usage("--limit %d is below 0 (0: all)", c.limit)
	}
	x, err := c.opened()
	if err != nil {
		return 0, err
	}
	defer x.Close()
	b, err := x.Lines()
	if err != nil {
		return 0, err
	}
	lines := slices.Collect(strings.Lines(string(b)))
	if c.limit > 0 && len(lines) > c.limit {
		lines = lines[len(lines)-c.limit:]
	}
	_, err = io.WriteString(c.s.Out, strings.Join(lines, ""))
	return exitClean, err
}

func approveFlags(c *call, f *flag.FlagSet) {
	sessionFlag(c, f)
	f.StringVar(&c.pids, "pid", "", "")
	f.StringVar(&c.pids, "pids", "", "process numbers, separated by commas: `LIST`")
	f.StringVar(&c.action, "action", "kill", "the action that is approved: `ACTION`")
	f.BoolVar(&c.accept, "accept-data-loss", false, "also where data is at risk")
	f.Var(duration{&c.ttl}, "ttl", "how long it counts: `DURATION`")
	c.ttl = 30 * time.Minute
}

// approved is the document of the verb approve.
type approved struct {
	plan.Envelope
	AuditID string       `json:"audit_id"`
	Target  plan.Target  `json:"target"`
	Action  model.Action `json:"action"`
	Expires time.Time    `json:"expires"`
}
