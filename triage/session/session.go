// Package session keeps what one triage did, in files that people can read:
//
//	{dir}/sessions/{id}/manifest.json   who, when, state, checksums
//	                    snapshot.json   what was seen
//	                    plan.json       what was judged
//	                    outcomes.json   what was done, written anew after each action
//	                    audit.jsonl     chained lines, each durable before its effect
//	                    audit.head.json how many of them there are at least
//	                    telemetry/
//	{dir}/alpha_wealth.json             the budget of false discoveries
//	{dir}/kills.json                    when processes were ended, for the rate limits
//	{dir}/memory.json                   processes seen before, and respawns
//	{dir}/apply.{uid}.lock              who applies now; flocked, never removed
//
// A file is written under another name, synced and renamed. Snapshot and plan
// are only read when they have the checksum in the manifest.
package session

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ghostbot/internal/beneath"
)

// Errors that callers branch on.
var (
	ErrMalformed  = errors.New("not a session id (sess-YYYYMMDD-HHMMSS-xxxxxx)")
	ErrNotFound   = errors.New("no such session")
	ErrExpired    = errors.New("the session is past its retention")
	ErrTampered   = errors.New("checksum does not match")
	ErrTransition = errors.New("this state does not follow")
	ErrLocked     = errors.New("another apply holds the lock")
	ErrVersion    = errors.New("this program knows version " + SchemaVersion)
)

// SchemaVersion is the version of every document and file.
const SchemaVersion = "1.0.0"

// CheckVersion refuses what another major version wrote: its members may mean
// something else. What is newer within the major one only adds.
func CheckVersion(v string) error {
	major, _, ok := strings.Cut(v, ".")
	if ours, _, _ := strings.Cut(SchemaVersion, "."); !ok || major != ours {
		return fmt.Errorf("schema version %q: %w", v, ErrVersion)
	}
	return nil
}

// TTL is how long a session is kept.
const TTL = 7 * 24 * time.Hour

// State is where a session is.
type State string

// The states of the contract, and failed.
const (
	Created     State = "created"
	Planned     State = "planned"
	Approved    State = "approved"
	Executing   State = "executing"
	Interrupted State = "interrupted"
	Completed   State = "completed"
	Verified    State = "verified"
	Failed      State = "failed"
)

// next are the states that may follow each state.
var next = map[State][]State{
	Created:     {Planned, Failed},
	Planned:     {Planned, Approved, Failed},
	Approved:    {Executing, Planned, Failed},
	Executing:   {Executing, Interrupted, Completed, Failed},
	Interrupted: {Executing, Failed},
	Completed:   {Verified},
	Verified:    {Verified},
}

// States are all states, in their order.
var States = []State{Created, Planned, Approved, Executing, Interrupted, Completed, Verified, Failed}

// Change is one step of a session.
type Change struct {
	State State     `json:"state"`
	TS    time.Time `json:"ts"`
}

// By is who started a session.
type By struct {
	Type      string `json:"type"`
	SlackUser string `json:"slack_user,omitempty"`
	UID       int    `json:"uid"`
}

// Manifest is manifest.json.
type Manifest struct {
	SchemaVersion string            `json:"schema_version"`
	SessionID     string            `json:"session_id"`
	HostID        string            `json:"host_id"`
	BootID        string            `json:"boot_id"`
	PIDNS         string            `json:"pid_ns"`
	CreatedAt     time.Time         `json:"created_at"`
	ExpiresAt     time.Time         `json:"expires_at"`
	State         State             `json:"state"`
	History       []Change          `json:"state_history"`
	Mode          string            `json:"mode"`
	Label         string            `json:"label,omitempty"`
	InitiatedBy   By                `json:"initiated_by"`
	IncidentID    string            `json:"incident_id,omitempty"`
	PolicyHash    string            `json:"policy_hash,omitempty"`
	PriorsID      string            `json:"priors_id,omitempty"`
	Replay        bool              `json:"replay,omitempty"`
	AuditHead     bool              `json:"audit_head,omitempty"` // audit.head.json says how long the log is
	Checksums     map[string]string `json:"checksums"`
}

// Store is the directory of all sessions.
type Store struct {
	dir *beneath.Dir
	all *beneath.Dir
	Now func() time.Time
}

// OpenStore opens the directory, after making it. Sessions lie in it.
func OpenStore(path string, now func() time.Time) (*Store, error) {
	return OpenStoreWith(path, path, now)
}

// OpenStoreWith opens a store whose sessions lie in a directory of their own: what
// is remembered across sessions, limits and locks above all, stays in the first.
func OpenStoreWith(path, sessions string, now func() time.Time) (*Store, error) {
	dir, err := beneath.Create(path)
	if err != nil {
		return nil, fmt.Errorf("open triage directory: %w", err)
	}
	at := dir
	if sessions != path {
		if at, err = beneath.Create(sessions); err != nil {
			dir.Close()
			return nil, fmt.Errorf("open directory of sessions: %w", err)
		}
		defer at.Close()
	}
	all, err := at.MakeSub("sessions")
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("open triage directory: %w", err)
	}
	return &Store{dir: dir, all: all, Now: now}, nil
}

// Close closes the store.
func (s *Store) Close() error { return errors.Join(s.all.Close(), s.dir.Close()) }

// Session is one open session.
type Session struct {
	Manifest Manifest
	dir      *beneath.Dir
	store    *Store
}

var idForm = regexp.MustCompile(`^sess-[0-9]{8}-[0-9]{6}-[a-z0-9]{6}$`)

// CheckID refuses what cannot be a session id.
func CheckID(id string) error {
	if !idForm.MatchString(id) {
		return fmt.Errorf("session %q: %w", id, ErrMalformed)
	}
	return nil
}

// NewID makes an id of a time.
func NewID(now time.Time) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	raw := make([]byte, 6)
	rand.Read(raw)
	for i := range raw {
		raw[i] = letters[int(raw[i])%len(letters)]
	}
	return "sess-" + now.UTC().Format("20060102-150405") + "-" + string(raw)
}

// Create makes a session; m needs host, boot id, namespace and mode. Nothing is
// written when the time to live is none. A replay may be made again: what it
// holds is the same.
func (s *Store) Create(m Manifest, ttl time.Duration) (*Session, error) {
	if ttl <= 0 {
		return nil, fmt.Errorf("create session: a time to live of %v is none", ttl)
	}
	now := s.Now().UTC()
	if m.SessionID == "" {
		m.SessionID = NewID(now)
	}
	if err := CheckID(m.SessionID); err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	there, err := s.all.Exists(m.SessionID)
	if err != nil || there && !m.Replay {
		return nil, errors.Join(fmt.Errorf("create session %s: it exists", m.SessionID), err)
	}
	dir, err := s.all.MakeSub(m.SessionID)
	if err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	tele, err := dir.MakeSub("telemetry")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create session: %w", err), dir.Close())
	}
	m.SchemaVersion, m.CreatedAt, m.ExpiresAt = SchemaVersion, now, now.Add(ttl)
	m.AuditHead = !m.Replay // a replay has no log
	m.State, m.History, m.Checksums = Created, []Change{{Created, now}}, map[string]string{}
	x := &Session{Manifest: m, dir: dir, store: s}
	if m.AuditHead {
		err = x.writeHead(head{Hash: zeros})
	}
	if err == nil {
		err = x.save()
	}
	if err = errors.Join(err, tele.Close(), s.all.Sync()); err != nil {
		if !there {
			s.discard(x)
		}
		x.Close()
		return nil, fmt.Errorf("create session: %w", err)
	}
	return x, nil
}

// discard takes away what is there of a session that could not be made. What
// cannot be taken away either is no session: it has no manifest.
func (s *Store) discard(x *Session) {
	for _, name := range files {
		_ = x.dir.Remove(name + ".new")
		_ = x.dir.Remove(name)
	}
	_ = errors.Join(os.Remove(x.dir.Path("telemetry")), os.Remove(x.dir.Path("")))
}

// Open opens a session that has not expired.
func (s *Store) Open(id string) (*Session, error) {
	x, err := s.open(id)
	if err == nil && !s.Now().Before(x.Manifest.ExpiresAt) {
		x.Close()
		return nil, fmt.Errorf("session %s: %w", id, ErrExpired)
	}
	return x, err
}

func (s *Store) open(id string) (*Session, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	dir, err := s.all.Sub(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("session %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	x := &Session{dir: dir, store: s}
	b, err := x.read("manifest.json")
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound // its making did not come to an end
	}
	if err == nil {
		err = json.Unmarshal(b, &x.Manifest)
	}
	if err == nil {
		err = x.Manifest.check(id)
	}
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	return x, nil
}

// check refuses a manifest that cannot be acted on, before anything is.
func (m *Manifest) check(id string) error {
	if m.SessionID != id || m.ExpiresAt.IsZero() {
		return fmt.Errorf("manifest.json speaks of %q: %w", m.SessionID, ErrTampered)
	}
	if err := CheckVersion(m.SchemaVersion); err != nil {
		return fmt.Errorf("manifest.json: %w", err)
	}
	if !slices.Contains(States, m.State) {
		return fmt.Errorf("manifest.json: state %q is none: %w", m.State, ErrTampered)
	}
	return nil
}

// List lists the sessions, newest first. Those that cannot be read are left
// out.
func (s *Store) List() ([]Manifest, error) {
	entries, err := s.all.Entries()
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var out []Manifest
	for _, e := range entries {
		if x, err := s.open(e.Name()); err == nil {
			out = append(out, x.Manifest)
			x.Close()
		}
	}
	slices.SortFunc(out, func(a, b Manifest) int {
		return errorsOrder(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.SessionID, a.SessionID))
	})
	return out, nil
}

func errorsOrder(a, b int) int {
	if a != 0 {
		return a
	}
	return b
}

// maxPruned bounds how many sessions one call removes.
const maxPruned = 50

// Prune removes sessions that expired long ago, a few at a time, so that loops
// that look every minute do not fill the disk. One that was interrupted stays.
func (s *Store) Prune() error {
	entries, err := s.all.Entries()
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	before, removed := s.Now().Add(-TTL), 0
	for _, e := range entries {
		made, err := time.Parse("sess-20060102-150405", e.Name()[:min(len(e.Name()), len("sess-20060102-150405"))])
		if err != nil || made.After(before) || removed >= maxPruned {
			continue
		}
		x, err := s.open(e.Name())
		if err != nil {
			continue
		}
		m := x.Manifest
		x.Close()
		if m.ExpiresAt.Before(before) && m.State != Executing && m.State != Interrupted {
			if err := s.Remove(m.SessionID); err != nil {
				return err
			}
			removed++
		}
	}
	return nil
}

// files are what a session's directory may hold.
var files = []string{"manifest.json", "snapshot.json", "plan.json", "outcomes.json", "audit.jsonl", headFile}

// Remove deletes a session.
func (s *Store) Remove(id string) error {
	x, err := s.open(id)
	if err != nil {
		return err
	}
	defer x.Close()
	for _, name := range files {
		if err := x.dir.Remove(name); err != nil {
			return fmt.Errorf("remove session %s: %w", id, err)
		}
	}
	err = errors.Join(os.Remove(x.dir.Path("telemetry")), os.Remove(s.all.Path(id)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove session %s: %w", id, err)
	}
	return s.all.Sync()
}

// Close closes the session.
func (x *Session) Close() error { return x.dir.Close() }

// Path is where the session lives.
func (x *Session) Path() string { return x.dir.Path("") }

// maxFile bounds what is read of one file.
const maxFile = 256 << 20

func (x *Session) read(name string) ([]byte, error) {
	f, err := x.dir.Open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadAll(maxFile)
}

func (x *Session) write(name string, b []byte) error { return replace(x.dir, name, b) }

func replace(dir *beneath.Dir, name string, b []byte) error {
	return replaceWith(dir, name, func(w io.Writer) error { _, err := w.Write(b); return err })
}

// replaceWith puts what write writes in the place of a file, whole or not at all. A
// plan of hundreds of processes is not held in memory twice for it.
func replaceWith(dir *beneath.Dir, name string, write func(io.Writer) error) error {
	tmp := name + ".new"
	if err := dir.Remove(tmp); err != nil {
		return err
	}
	f, err := dir.Create(tmp)
	if err != nil {
		return err
	}
	err = write(&appender{f: f})
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(dir.Replace(tmp, dir, name), dir.Sync())
}

// appender writes a new file from its beginning on.
type appender struct {
	f  *beneath.File
	at int64
}

// Write implements [io.Writer].
func (a *appender) Write(p []byte) (int, error) {
	n, err := a.f.WriteAt(p, a.at)
	a.at += int64(n)
	return n, err
}

func (x *Session) save() error {
	b, err := encode(x.Manifest)
	if err != nil {
		return err
	}
	return x.write("manifest.json", b)
}

func encode(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return []byte(b.String()), err
}

// Put stores a document under its checksum. Only snapshot.json and plan.json
// have one.
func (x *Session) Put(name string, v any) error {
	sum := sha256.New()
	err := replaceWith(x.dir, name, func(w io.Writer) error {
		e := json.NewEncoder(io.MultiWriter(w, sum))
		e.SetEscapeHTML(false)
		return e.Encode(v)
	})
	if err == nil {
		x.Manifest.Checksums[name] = hex.EncodeToString(sum.Sum(nil))
		err = x.save()
	}
	if err != nil {
		return fmt.Errorf("write %s of %s: %w", name, x.Manifest.SessionID, err)
	}
	return nil
}

// Get reads a document and checks it.
func (x *Session) Get(name string, v any) error {
	b, err := x.Raw(name)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("read %s of %s: %w", name, x.Manifest.SessionID, err)
	}
	return nil
}

// Raw reads the bytes of a file of the session, checked when they have a
// checksum.
func (x *Session) Raw(name string) ([]byte, error) {
	b, err := x.read(name)
	if err != nil {
		return nil, err
	}
	if want, ok := x.Manifest.Checksums[name]; ok || name == "plan.json" || name == "snapshot.json" {
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != want {
			return nil, fmt.Errorf("%s: %w", name, ErrTampered)
		}
	}
	return b, nil
}

// Has says whether a document was stored.
func (x *Session) Has(name string) bool {
	_, ok := x.Manifest.Checksums[name]
	return ok
}

// Outcomes reads outcomes.json; a missing one is none.
func (x *Session) Outcomes(v any) (bool, error) {
	b, err := x.read("outcomes.json")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return false, fmt.Errorf("read outcomes of %s: %w", x.Manifest.SessionID, err)
	}
	return true, nil
}

// Checkpoint writes outcomes.json anew.
func (x *Session) Checkpoint(v any) error {
	b, err := encode(v)
	if err == nil {
		err = x.write("outcomes.json", b)
	}
	if err != nil {
		return fmt.Errorf("checkpoint of %s: %w", x.Manifest.SessionID, err)
	}
	return nil
}

// Move changes the state, if the new one may follow.
func (x *Session) Move(to State) error {
	if !slices.Contains(next[x.Manifest.State], to) {
		return fmt.Errorf("session %s is %s, not to be %s: %w", x.Manifest.SessionID, x.Manifest.State, to, ErrTransition)
	}
	x.Manifest.State = to
	x.Manifest.History = append(x.Manifest.History, Change{to, x.store.Now().UTC()})
	return x.save()
}

// Note stores what else the manifest says.
func (x *Session) Note(change func(*Manifest)) error {
	change(&x.Manifest)
	return x.save()
}

// Lock is a lock that ends with the process that holds it.
type Lock struct{ f *beneath.File }

// Unlock lets go.
func (l *Lock) Unlock() error { return l.f.Close() }

// Apply takes the lock of everything that this user applies. holder is written
// into the file, for people.
func (s *Store) Apply(uid int, holder string) (*Lock, error) {
	name := fmt.Sprintf("apply.%d.lock", uid)
	f, _, err := s.dir.OpenOrCreate(name)
	if err != nil {
		return nil, fmt.Errorf("take lock: %w", err)
	}
	ok, err := f.TryLock(unix.LOCK_EX)
	if err != nil || !ok {
		b, _ := f.ReadAll(256)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("take lock: %w", err)
		}
		return nil, fmt.Errorf("take lock %s held by %q: %w", name, strings.TrimSpace(string(b)), ErrLocked)
	}
	if err := errors.Join(f.Truncate(0), writeAll(f, holder+"\n")); err != nil {
		f.Close()
		return nil, fmt.Errorf("take lock: %w", err)
	}
	return &Lock{f}, nil
}

func writeAll(f *beneath.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

// Held says whether somebody applies now.
func (s *Store) Held(uid int) bool {
	l, err := s.Apply(uid, "")
	if err == nil {
		l.Unlock()
	}
	return errors.Is(err, ErrLocked)
}
