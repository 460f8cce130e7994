// Package triage judges the processes of this machine and, where it is told to,
// ends, stops or slows down those that nobody needs. It keeps a session for each
// judgement, so that what is done is exactly what was judged.
//
// # Rooms
//
//	proc     reads /proc: parsers, socket tables, identities
//	scan     one window over all processes: records with the levels of features
//	model    priors, posterior, decision, control of false discoveries; pure
//	policy   what is protected, and how much may be done; pure
//	plan     a snapshot judged: candidates, recommendations, cards; pure
//	session  files, states, audit chain, locks, budget
//	pidfd    signals; nothing else sends one
//	act      apply and verify
//	view     documents into text: prose, reports, formats; pure
//
// # Promises
//
// Nothing signals a wrong process: a process is held by a descriptor before it
// is compared with the plan, and signalled through that descriptor. What is
// protected, this program itself and everything above it are never targets, and
// are looked for again before every action. What is unknown is refused.
package triage

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"ghostbot/internal/input"
	"ghostbot/triage/act"
	"ghostbot/triage/model"
	"ghostbot/triage/pidfd"
	"ghostbot/triage/plan"
	"ghostbot/triage/policy"
	"ghostbot/triage/proc"
	"ghostbot/triage/scan"
	"ghostbot/triage/session"
)

// Files that are read are at most so long.
const (
	maxConfig = 4 << 20
	maxReplay = 256 << 20
)

// ErrConfig is a configuration that cannot be used.
var ErrConfig = errors.New("configuration is not usable")

// ErrReplay is an action on what was recorded and is not here.
var ErrReplay = errors.New("a replayed plan is never applied")

// ErrNoPlan is a session without a plan.
var ErrNoPlan = errors.New("the session has no plan yet")

// Options are what an engine needs.
type Options struct {
	Dir     string              // where sessions and state live
	Here    string              // where sessions live instead; "": in Dir
	Config  string              // directory with policy.json, priors.json, signatures.json; "" or missing members: the defaults
	Redact  func(string) string // credentials out of command lines
	FS      proc.FS             // zero: /proc
	Window  time.Duration       // 0: one second
	Timeout time.Duration       // of a scan; 0: one minute
	Now     func() time.Time    // nil: time.Now
	Command func(ctx context.Context, x *session.Session, argv []string, by, why string) (string, int, error)
	Hold    func(pid int) (*pidfd.Handle, error) // nil: pidfd.Open
}

// Engine carries out the verbs.
type Engine struct {
	o      Options
	host   proc.Host
	Policy *policy.Policy
	Priors *model.Priors
	sigs   *scan.Signatures
	store  *session.Store
	rules  model.Wealth
}

// Open reads the configuration and opens the store.
func Open(o Options) (*Engine, error) {
	if o.FS.Root == "" {
		o.FS = proc.Default()
	}
	if o.Window == 0 {
		o.Window = time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Hold == nil {
		o.Hold = pidfd.Open
	}
	e := &Engine{o: o, rules: model.DefaultWealth()}
	if err := e.configure(); err != nil {
		return nil, fmt.Errorf("triage: %w: %w", ErrConfig, err)
	}
	var err error
	if e.host, err = o.FS.Machine(); err != nil {
		return nil, fmt.Errorf("triage: %w", err)
	}
	if o.Here == "" {
		o.Here = o.Dir
	}
	if e.store, err = session.OpenStoreWith(o.Dir, o.Here, o.Now); err != nil {
		return nil, fmt.Errorf("triage: %w", err)
	}
	return e, nil
}

// Close closes the store.
func (e *Engine) Close() error { return e.store.Close() }

// Host is the name of this machine.
func (e *Engine) Host() string { return e.host.Name }

func (e *Engine) configure() (err error) {
	pol, err := e.file("policy.json", "config.json")
	if err != nil {
		return err
	}
	if e.Policy, err = policy.Parse(pol); err != nil {
		return err
	}
	passwd, _ := os.ReadFile("/etc/passwd")
	if err := e.Policy.Resolve(string(passwd)); err != nil {
		return err
	}
	e.Priors, e.sigs = model.DefaultPriors(), scan.DefaultSignatures()
	if b, err := e.file("priors.json"); err != nil {
		return err
	} else if b != nil {
		if e.Priors, err = model.ParsePriors(b); err != nil {
			return err
		}
	}
	if b, err := e.file("signatures.json"); err != nil {
		return err
	} else if b != nil {
		if e.sigs, err = scan.ParseSignatures(b); err != nil {
			return err
		}
	}
	return nil
}

// file reads the first of some files of the configuration; nil is none.
func (e *Engine) file(names ...string) ([]byte, error) {
	if e.o.Config == "" {
		return nil, nil
	}
	info, err := os.Stat(e.o.Config)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if names[0] != "policy.json" {
			return nil, nil
		}
		return input.Text(e.o.Config, maxConfig)
	}
	for _, name := range names {
		b, err := input.Text(filepath.Join(e.o.Config, name), maxConfig)
		if !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
	}
	return nil, nil
}

func (e *Engine) envelope(sid string) plan.Envelope {
	return plan.Envelope{SchemaVersion: session.SchemaVersion, SessionID: sid, GeneratedAt: e.o.Now().UTC().Truncate(time.Second), HostID: e.host.Name}
}

// look scans with a window.
func (e *Engine) look(ctx context.Context, window time.Duration) (*scan.Snapshot, error) {
	ctx, stop := context.WithTimeout(ctx, e.o.Timeout)
	defer stop()
	return scan.Scan(ctx, scan.Options{
		FS: e.o.FS, Host: e.host, Window: window, Self: os.Getpid(), Redact: e.o.Redact, Signatures: e.sigs, Now: e.o.Now, Sleep: scan.Sleep, Uptime: scan.Uptime(e.o.FS),
	})
}

// Snapshot makes a session of what is there now.
func (e *Engine) Snapshot(ctx context.Context, label, incident string) (*session.Session, *scan.Snapshot, error) {
	snap, err := e.look(ctx, e.o.Window)
	if err != nil {
		return nil, nil, fmt.Errorf("snapshot: %w", err)
	}
	if err := e.disown(snap); err != nil {
		return nil, nil, fmt.Errorf("snapshot: %w", err)
	}
	m := session.Manifest{
		HostID: e.host.Name, BootID: e.host.BootID, PIDNS: e.host.PIDNS, Mode: "local", Label: label, IncidentID: incident,
		InitiatedBy: session.By{Type: "cli", UID: os.Geteuid()}, PolicyHash: e.Policy.Hash(e.Priors), PriorsID: e.Priors.ID,
	}
	return e.keep(m, snap)
}

// disown takes away what is evidence only of what this program did: a process
// that it stopped has no demand and no I/O, and is not abandoned for that. What is
// seen stopped or slowed down stays remembered.
func (e *Engine) disown(snap *scan.Snapshot) error {
	return e.store.Remember(func(m *session.Memory) (write bool) {
		for i := range snap.Records {
			r := &snap.Records[i]
			ours, why := m.Paused, "stopped by this program"
			if _, ok := ours[r.StartID]; !ok || r.Evidence.State != "T" {
				ours, why = m.Throttled, "slowed down by this program"
			}
			if _, ok := ours[r.StartID]; !ok {
				continue
			}
			ours[r.StartID], write = e.o.Now().UTC(), true
			r.Disown(why)
		}
		return write
	})
}

func (e *Engine) keep(m session.Manifest, snap *scan.Snapshot) (*session.Session, *scan.Snapshot, error) {
	if err := e.store.Prune(); err != nil {
		return nil, nil, fmt.Errorf("snapshot: %w", err)
	}
	x, err := e.store.Create(m, session.TTL)
	if err != nil {
		return nil, nil, fmt.Errorf("snapshot: %w", err)
	}
	err = x.Put("snapshot.json", snap)
	if err == nil && !m.Replay {
		_, err = x.Append("snapshot", map[string]any{"processes": len(snap.Records), "window_s": snap.WindowS})
	}
	if err != nil {
		x.Close()
		return nil, nil, fmt.Errorf("snapshot: %w", err)
	}
	return x, snap, nil
}

// PlanOptions are what a plan is asked for.
type PlanOptions struct {
	Session string
	Replay  string
	Label   string
	Case    string // the case that asks
	Focus   plan.Focus
	MinAge  float64
}

// Plan judges what a session saw, or what is there now.
func (e *Engine) Plan(ctx context.Context, o PlanOptions) (*session.Session, *scan.Snapshot, *plan.Plan, error) {
	x, snap, err := e.evidence(ctx, o)
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := e.judge(x, snap, o)
	if err != nil {
		x.Close()
		return nil, nil, nil, fmt.Errorf("plan: %w", err)
	}
	return x, snap, p, nil
}

func (e *Engine) evidence(ctx context.Context, o PlanOptions) (*session.Session, *scan.Snapshot, error) {
	switch {
	case o.Replay != "":
		return e.replay(o.Replay)
	case o.Session == "":
		return e.Snapshot(ctx, o.Label, o.Case)
	}
	x, err := e.store.Open(o.Session)
	if err != nil {
		return nil, nil, err
	}
	var snap scan.Snapshot
	if err := x.Get("snapshot.json", &snap); err != nil {
		x.Close()
		return nil, nil, err
	}
	return x, &snap, nil
}

func (e *Engine) judge(x *session.Session, snap *scan.Snapshot, o PlanOptions) (*plan.Plan, error) {
	if s := x.Manifest.State; s != session.Created && s != session.Planned {
		return nil, fmt.Errorf("session %s is %s: %w", x.Manifest.SessionID, s, session.ErrTransition)
	}
	in := plan.Input{Snapshot: snap, Policy: e.Policy, Priors: e.Priors, MinAge: o.MinAge, Focus: o.Focus, Respawns: map[string]int{}}
	if !x.Manifest.Replay {
		if err := e.recall(in.Respawns); err != nil {
			return nil, err
		}
	}
	p := plan.Make(in)
	p.Envelope, p.Replay = e.envelope(x.Manifest.SessionID), x.Manifest.Replay
	p.HostID = snap.HostID
	if err := x.Put("plan.json", p); err != nil {
		return nil, err
	}
	if err := x.Move(session.Planned); err != nil {
		return nil, err
	}
	if x.Manifest.Replay {
		return p, nil
	}
	if _, err := x.Append("plan", map[string]any{"plan_hash": x.Manifest.Checksums["plan.json"], "summary": p.Summary}); err != nil {
		return nil, err
	}
	return p, e.remember(p)
}

// recall counts what came back within the last hour, by command.
func (e *Engine) recall(into map[string]int) error {
	return e.store.Remember(func(m *session.Memory) bool {
		for hash, times := range m.Respawns {
			for _, t := range times {
				if e.o.Now().Sub(t) < time.Hour {
					into[hash]++
				}
			}
		}
		return false
	})
}

// remember notes when candidates were seen first, and makes the budget's file.
func (e *Engine) remember(p *plan.Plan) error {
	err := e.store.Remember(func(m *session.Memory) (write bool) {
		for i := range p.Evaluated {
			id := p.Evaluated[i].StartID
			if _, ok := m.FirstSeen[id]; !ok && p.Evaluated[i].Action != model.Spare {
				m.FirstSeen[id], write = e.o.Now().UTC(), true
			}
		}
		return write
	})
	return errors.Join(err, e.store.Wealth(e.rules.Initial, func(*session.Wealth) bool { return false }))
}

// Stored opens a session with its plan and snapshot.
func (e *Engine) Stored(id string) (*session.Session, *scan.Snapshot, *plan.Plan, error) {
	x, err := e.store.Open(id)
	if err != nil {
		return nil, nil, nil, err
	}
	var snap scan.Snapshot
	var p plan.Plan
	if !x.Has("plan.json") {
		err = fmt.Errorf("session %s: %w", id, ErrNoPlan)
	} else if err = x.Get("plan.json", &p); err == nil {
		err = x.Get("snapshot.json", &snap)
	}
	if err != nil {
		x.Close()
		return nil, nil, nil, err
	}
	return x, &snap, &p, nil
}

// Context gathers what the cards need.
func (e *Engine) Context(p *plan.Plan, snap *scan.Snapshot, startID string) (plan.Context, error) {
	c := plan.Context{Plan: p, Snapshot: snap, Priors: e.Priors, Losses: e.Policy.Losses, Rules: e.rules}
	c.Budget = plan.Budget{Wealth: e.rules.Initial, UpdatedAt: snap.RecordedAt}
	if p.Replay {
		return c, nil
	}
	err := e.store.Wealth(e.rules.Initial, func(w *session.Wealth) bool {
		c.Budget = plan.Budget{Wealth: w.Wealth, UpdatedAt: w.UpdatedAt, TestsRun: w.TestsRun, Rejections: w.Rejections}
		return false
	})
	return c, errors.Join(err, e.store.Remember(func(m *session.Memory) bool {
		c.FirstSeen = m.FirstSeen[startID]
		for _, v := range m.Verdicts {
			for i, name := range model.Classes {
				if v.Class == name {
					c.Scores[i] = append(c.Scores[i], v.Score)
				}
			}
		}
		return false
	}))
}

// runner prepares what acts on a session.
func (e *Engine) runner(x *session.Session, p *plan.Plan) *act.Runner {
	return &act.Runner{
		FS: e.o.FS, Host: e.host, UID: os.Geteuid(), Policy: e.Policy, Priors: e.Priors, Rules: e.rules, Store: e.store, Session: x, Plan: p,
		Can: scan.AbilitiesOf(e.o.FS), Redact: e.o.Redact, Look: e.now, Command: e.command(x), Hold: e.o.Hold, Uptime: scan.Uptime(e.o.FS),
	}
}

// now looks at all processes without a window.
func (e *Engine) now(ctx context.Context) (map[int]*scan.Record, error) {
	snap, err := e.look(context.WithoutCancel(ctx), 0)
	if err != nil {
		return nil, err
	}
	out := make(map[int]*scan.Record, len(snap.Records))
	for i := range snap.Records {
		out[snap.Records[i].PID] = &snap.Records[i]
	}
	return out, nil
}

// Apply does what a plan recommends or what is named. Only one apply of a user
// runs at a time.
func (e *Engine) Apply(ctx context.Context, id string, o act.Options) (*session.Session, []act.Result, error) {
	x, err := e.store.Open(id)
	if err != nil {
		return nil, nil, err
	}
	if x.Manifest.Replay {
		return x, nil, fmt.Errorf("session %s: %w", id, ErrReplay)
	}
	lock, err := e.store.Apply(os.Geteuid(), fmt.Sprintf("%d %s", os.Getpid(), id))
	if err != nil {
		return x, nil, err
	}
	defer lock.Unlock()
	x.Close()
	x, _, p, err := e.Stored(id) // again, now that nobody changes it
	if err != nil {
		return nil, nil, err
	}
	results, err := e.runner(x, p).Run(ctx, o)
	return x, results, err
}

// Verify looks what became of what was applied.
func (e *Engine) Verify(ctx context.Context, id string, wait time.Duration) (*act.Verification, []act.Outcome, act.Resources, error) {
	x, _, p, err := e.Stored(id)
	if err != nil {
		return nil, nil, act.Resources{}, err
	}
	defer x.Close()
	return e.runner(x, p).Verify(ctx, wait)
}

// Approve records that people approved one action on one process.
func (e *Engine) Approve(id string, pid int, a act.Approval) (string, error) {
	x, _, p, err := e.Stored(id)
	if err != nil {
		return "", err
	}
	defer x.Close()
	v := p.Find(pid)
	if v == nil {
		return "", fmt.Errorf("approve: process %d is not in the plan", pid)
	}
	a.Target = plan.Target{PID: v.PID, StartID: v.StartID}
	return act.Approve(x, a)
}

// Store is where sessions are kept.
func (e *Engine) Store() *session.Store { return e.store }

// Envelope is the head of a document about a session.
func (e *Engine) Envelope(sid string) plan.Envelope { return e.envelope(sid) }

//go:embed replay/*.json
var recorded embed.FS

// replayed is a recorded file: processes with the features that were seen.
type replayed struct {
	RecordedAt time.Time       `json:"recorded_at"`
	HostID     string          `json:"host_id"`
	Processes  []scan.Recorded `json:"processes"`
	Records    json.RawMessage `json:"records"`
}

// replay makes a session of recorded evidence: a file, or one of those that are
// shipped. The same evidence gives the same session.
func (e *Engine) replay(name string) (*session.Session, *scan.Snapshot, error) {
	b, err := recorded.ReadFile("replay/" + name + ".json")
	if err != nil {
		b, err = input.Text(name, maxReplay)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("replay: %w: %w", ErrConfig, err)
	}
	snap, err := parseReplay(b)
	if err != nil {
		return nil, nil, fmt.Errorf("replay %s: %w: %w", name, ErrConfig, err)
	}
	id := "sess-" + snap.RecordedAt.Format("20060102-150405") + "-" + fmt.Sprintf("%x", sha256.Sum256(b))[:6]
	return e.keep(session.Manifest{
		SessionID: id, HostID: snap.HostID, BootID: snap.BootID, PIDNS: snap.PIDNS, Mode: "replay", Replay: true,
		InitiatedBy: session.By{Type: "cli", UID: os.Geteuid()}, PolicyHash: e.Policy.Hash(e.Priors), PriorsID: e.Priors.ID,
	}, snap)
}

func parseReplay(b []byte) (*scan.Snapshot, error) {
	var r replayed
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, err
	}
	if r.Records != nil { // a snapshot.json
		var snap scan.Snapshot
		if err := json.Unmarshal(b, &snap); err != nil {
			return nil, err
		}
		return &snap, nil
	}
	if r.Processes == nil { // the features of one process
		one := scan.Recorded{Name: "process"}
		if err := errors.Join(json.Unmarshal(b, &one), json.Unmarshal(b, &one.Evidence)); err != nil {
			return nil, err
		}
		if reflect.DeepEqual(one, scan.Recorded{Name: "process"}) {
			return nil, errors.New("no member of it says anything about a process")
		}
		r.Processes = []scan.Recorded{one}
	}
	if r.HostID == "" {
		r.HostID = "replay"
	}
	if r.RecordedAt.IsZero() {
		r.RecordedAt = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return scan.Replay(r.HostID, r.RecordedAt.UTC(), r.Processes), nil
}

// Shipped names the recorded files that are shipped.
func Shipped() []string {
	entries, _ := recorded.ReadDir("replay")
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".json"))
	}
	return out
}

// command binds supervisor commands to the session that they belong to.
func (e *Engine) command(x *session.Session) func(context.Context, []string, string, string) (string, int, error) {
	if e.o.Command == nil {
		return nil
	}
	return func(ctx context.Context, argv []string, by, why string) (string, int, error) {
		return e.o.Command(ctx, x, argv, by, why)
	}
}
