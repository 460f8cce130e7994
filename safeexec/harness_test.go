package safeexec

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ghostbot/safeexec/policy"
	"ghostbot/safeexec/redact"
)

// TestMain makes the test binary its own supervisor, and its own bot for the
// tests that kill one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervise":
			syscall.Exit(Supervise())
		case "bot":
			os.Exit(crashBot(os.Args[2], os.Args[3], os.Args[4]))
		}
	}
	os.Exit(m.Run())
}

const sid = "ghost_20260314_104512"

// memory is a journal whose entries are durable as soon as they are in it. It
// refuses the entry after the first `room` ones when room is set.
type memory struct {
	mu      sync.Mutex
	entries []Entry
	room    int
	file    *os.File // entries also go here, a line each
}

var errFull = errors.New("disk full")

func (m *memory) Append(ctx context.Context, kind string, body any) (uint64, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, "", err
	}
	if m.room > 0 && len(m.entries) >= m.room {
		return 0, "", errFull
	}
	b, err := json.Marshal(body)
	if err != nil {
		return 0, "", err
	}
	n := uint64(len(m.entries) + 1)
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", n, kind, b))
	e := Entry{N: n, ID: fmt.Sprintf("%s_%03d", sid, n), Kind: kind, Time: time.Now(), Hash: hex.EncodeToString(sum[:]), Body: b}
	m.entries = append(m.entries, e)
	if m.file != nil {
		line, _ := json.Marshal(e)
		m.file.Write(append(line, '\n'))
	}
	return n, e.Hash, nil
}

func (m *memory) all() []Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Entry(nil), m.entries...)
}

// kinds is the journal as words, outcomes and decisions with what they say.
func (m *memory) kinds() string { return kindsOf(m.all()) }

func kindsOf(entries []Entry) string {
	var out []string
	for _, e := range entries {
		var b struct{ Decision, Status, Error string }
		json.Unmarshal(e.Body, &b)
		switch e.Kind {
		case "decided":
			out = append(out, b.Decision)
		case "outcome":
			if b.Error != "" {
				b.Status = b.Error
			}
			out = append(out, "outcome:"+b.Status)
		default:
			out = append(out, e.Kind)
		}
	}
	return strings.Join(out, " ")
}

// people answers with a function and grants starts by the rules: once, approved,
// with the same digest, in time.
type people struct {
	j       *memory
	answer  func(context.Context, Proposal) (Decision, error)
	refuse  error
	invalid string // what Valid says
	mu      sync.Mutex
	asked   []Proposal
	stored  map[string]Decision
	digests map[string]string
	started map[string]bool
	done    map[string]Result
}

func (a *people) Ask(ctx context.Context, p Proposal) (Decision, error) {
	a.mu.Lock()
	a.asked = append(a.asked, p)
	d, ok := a.stored[p.ID]
	a.mu.Unlock()
	if ok {
		return d, nil
	}
	d, err := a.answer(ctx, p)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.stored[p.ID], a.digests[p.ID] = d, p.Digest
	}
	return d, err
}

func (a *people) Start(ctx context.Context, s Start) (uint64, string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := s.Proposal.ID
	if a.refuse != nil {
		return 0, "", a.refuse
	}
	if d := a.stored[id]; s.Risky && (d.Action != Approve || a.digests[id] != s.Proposal.Digest || !time.Now().Before(d.UseBy)) {
		return 0, "", errors.New("not approved")
	}
	if s.Risky && a.started[id] {
		return 0, "", errors.New("already started")
	}
	n, hash, err := a.j.Append(ctx, "intent", s.Entry)
	if err == nil {
		a.started[id] = true
	}
	return n, hash, err
}

func (a *people) Settle(_ context.Context, p Proposal) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.stored[p.ID]
	return ok, nil
}

func (a *people) Valid(context.Context, Proposal) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	why := a.invalid
	a.invalid = "" // the next proposal is made under the new rules
	return why, nil
}

func (a *people) Done(ctx context.Context, p Proposal, r Result) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done[p.ID] = r
	return ctx.Err()
}

func newPeople(j *memory, answer func(context.Context, Proposal) (Decision, error)) *people {
	return &people{j: j, answer: answer, stored: map[string]Decision{}, digests: map[string]string{}, started: map[string]bool{}, done: map[string]Result{}}
}

func nobody(context.Context, Proposal) (Decision, error) {
	return Decision{Reason: "no approver"}, nil
}

func approve(context.Context, Proposal) (Decision, error) {
	return Decision{Action: Approve, By: "U1", At: time.Now(), UseBy: time.Now().Add(5 * time.Minute)}, nil
}

func edit(text string) func(context.Context, Proposal) (Decision, error) {
	return func(ctx context.Context, p Proposal) (Decision, error) {
		if p.Edited {
			return approve(ctx, p)
		}
		return Decision{Action: Modify, By: "U2", Modified: text}, nil
	}
}

// lab is a shell with a folder of programs of its own: the policy knows their
// names, the tests know what they do.
type lab struct {
	*Shell
	t    testing.TB
	j    *memory
	ppl  *people
	bin  string // programs
	dir  string // where commands run
	opts Options
}

func newLab(t testing.TB, answer func(context.Context, Proposal) (Decision, error), change ...func(*Options)) *lab {
	t.Helper()
	tmp := t.TempDir()
	l := &lab{t: t, j: &memory{}, bin: filepath.Join(tmp, "bin"), dir: filepath.Join(tmp, "work")}
	if err := os.Mkdir(l.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	l.ppl = newPeople(l.j, answer)
	l.opts = labOptions(l.bin, l.dir, l.j, l.ppl)
	l.opts.Supervisors = NewSupervisors()
	t.Cleanup(l.opts.Supervisors.Close)
	for _, c := range change {
		c(&l.opts)
	}
	l.Shell = l.again()
	return l
}

func labOptions(bin, dir string, j Journal, a Approver) Options {
	return Options{
		SessionID: sid, Policy: policy.New(policy.Options{}), Journal: j, Approver: a, Redactor: redact.New(redact.Options{}),
		Dir: dir, Path: bin + ":/usr/bin:/bin", Requester: "U0", Timeout: 20 * time.Second,
	}
}

// again is the same shell in a new life of the bot.
func (l *lab) again() *Shell {
	l.t.Helper()
	s, err := New(l.opts)
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// program puts a shell script where the gate looks programs up.
func (l *lab) program(name, script string) { writeProgram(l.t, l.bin, name, script) }

func writeProgram(t testing.TB, bin, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (l *lab) run(command string) Result {
	l.t.Helper()
	return l.do(Request{Command: command, Reasoning: "to see"})
}

func (l *lab) do(r Request) Result {
	l.t.Helper()
	res, err := l.Run(context.Background(), r)
	if err != nil {
		l.t.Fatalf("Run(%q): %v", r.Command, err)
	}
	return res
}

// vanish waits until nothing is named word and fails after limit.
func vanish(t *testing.T, what string, limit time.Duration, word string) {
	t.Helper()
	start := time.Now()
	for len(named(word)) > 0 {
		if time.Since(start) > limit {
			t.Fatalf("%s: %d still running after %v", what, len(named(word)), limit)
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Logf("%s: gone after %v", what, time.Since(start).Round(time.Millisecond))
}

// named lists living processes that have word in their argument list.
func named(word string) (pids []int) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range list {
		b, _ := os.ReadFile(file)
		pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
		if strings.Contains(string(b), "\x00"+word+"\x00") && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ticksOf is when pid started, as the kernel counts.
func ticksOf(pid int) uint64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	n, _ := strconv.ParseUint(f[19], 10, 64)
	return n
}

// crashBot is a bot that runs one SAFE command, for tests that kill it.
func crashBot(bin, dir, lease string) int {
	f, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	j := &memory{file: f}
	o := labOptions(bin, filepath.Join(dir, "work"), j, newPeople(j, nobody))
	o.Lease, _ = time.ParseDuration(lease)
	o.Supervisors = NewSupervisors()
	s, err := New(o)
	if err != nil {
		return 1
	}
	if _, err := s.Run(context.Background(), Request{Command: "uptime"}); err != nil {
		return 1
	}
	return 0
}
