package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/store"
	"ghostbot/store/file"
)

const sid = "ghost_20260314_104512"

// held is a case that this process holds in a store of files.
type held struct {
	db    *file.DB
	lease store.Lease
	dir   string
	log   *Case
}

func holdCase(t *testing.T) held {
	t.Helper()
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	l, err := db.Acquire(t.Context(), sid, "me", 10*365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	h := held{db: db, lease: l, dir: t.TempDir()}
	h.log = h.open(t)
	return h
}

func (h held) open(t *testing.T) *Case {
	t.Helper()
	log, err := audit.Open(t.Context(), audit.Options{Dir: h.dir, SID: sid, Fence: h.lease.Fence, Stream: Stream{h.db, sid, h.lease.Fence}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return NewCase(log)
}

func note(t *testing.T, l *Case, name, text string) {
	t.Helper()
	if _, _, err := l.Journal(name).Append(t.Context(), "notice", map[string]string{"text": text}); err != nil {
		t.Fatal(err)
	}
}

// numbers are the numbers of entries, as text.
func numbers(es []agent.Entry) string {
	var out []string
	for _, e := range es {
		out = append(out, fmt.Sprint(e.N))
	}
	return strings.Join(out, " ")
}

func TestSince(t *testing.T) {
	h := holdCase(t)
	for _, tc := range []struct {
		add   int
		after uint64
		want  string
	}{
		{0, 0, ""},
		{2, 0, "1 2"},
		{0, 1, "2"},
		{0, 2, ""},
		{0, 99, ""},
		{3, 1, "2 3 4 5"},
		{1, 5, "6"},
		{0, 0, "1 2 3 4 5 6"},
	} {
		for i := range tc.add {
			note(t, h.log, []string{audit.Case, audit.Shell, audit.Tasks}[i%3], "x")
		}
		got, err := h.log.Since(tc.after)
		if err != nil || numbers(got) != tc.want {
			t.Errorf("after %d: %q, %v, want %q", tc.after, numbers(got), err, tc.want)
		}
	}
}

// The head of every entry is the one that the journals have at that entry,
// however the entries were asked for.
func TestHeads(t *testing.T) {
	h := holdCase(t)
	for i := range 9 {
		note(t, h.log, []string{audit.Case, audit.Shell, audit.Tasks}[i*i%3], fmt.Sprint(i))
		if i%2 == 0 {
			if _, err := h.log.Since(uint64(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	bit, err := h.log.Since(0)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := h.open(t).Since(0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, bit); diff != "" {
		t.Errorf("bit by bit against at once (-at once +bit by bit):\n%s", diff)
	}
	for _, e := range bit {
		r := audit.Verify(h.dir, sid, audit.VerifyOptions{Head: e.Head})
		if !r.OK || r.NotedAt == nil || *r.NotedAt != e.N {
			t.Errorf("entry %d: its head %s is of %v, %s", e.N, e.Head, r.NotedAt, r.Why)
		}
	}
}

// A caller may append to what it got; the next caller does not see it.
func TestSinceIsNotShared(t *testing.T) {
	h := holdCase(t)
	note(t, h.log, audit.Case, "one")
	got, _ := h.log.Since(0)
	_ = append(got, agent.Entry{N: 99})
	note(t, h.log, audit.Case, "two")
	if again, err := h.log.Since(0); err != nil || numbers(again) != "1 2" {
		t.Errorf("got %q, %v", numbers(again), err)
	}
}

func TestEntryOfAgent(t *testing.T) {
	h := holdCase(t)
	note(t, h.log, audit.Shell, "x")
	got, err := h.log.Since(0)
	if err != nil {
		t.Fatal(err)
	}
	e := got[0]
	want := agent.Entry{N: 1, ID: sid + "_001", Journal: "shell", Kind: "notice", Fence: h.lease.Fence, Body: json.RawMessage(`{"text":"x"}`),
		Time: e.Time, Hash: e.Hash, Head: e.Head}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if e.Time.IsZero() || len(e.Hash) != 64 || len(e.Head) != 32 {
		t.Errorf("time %s, hash %q, head %q", e.Time, e.Hash, e.Head)
	}
}

func TestChanged(t *testing.T) {
	h := holdCase(t)
	c := h.log.Changed()
	select {
	case <-c:
		t.Fatal("changed before anything happened")
	default:
	}
	note(t, h.log, audit.Case, "x")
	select {
	case <-c:
	default:
		t.Error("an append does not show")
	}
}

// What has happened is recorded although the context of who tells it has ended.
func TestAppendOutlivesItsContext(t *testing.T) {
	h := holdCase(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, hash, err := h.log.Journal(audit.Case).Append(ctx, "notice", 1); err != nil || n != 1 || len(hash) != 64 {
		t.Errorf("append: %d %q %v", n, hash, err)
	}
	n, _, err := h.log.Journal(audit.Case).AppendVia(ctx, "notice", 2, func(ctx context.Context, l store.Line) error {
		return h.db.Commit(ctx, store.Commit{Scope: sid, Fence: h.lease.Fence, Lines: []store.Line{l}})
	})
	if err != nil || n != 2 {
		t.Errorf("append via: %d %v", n, err)
	}
}

// The store has every line that the file has, byte for byte.
func TestStreamIsTheFile(t *testing.T) {
	h := holdCase(t)
	note(t, h.log, audit.Case, "x")
	s := Stream{h.db, sid, h.lease.Fence}
	lines, err := s.Lines(t.Context(), 0)
	if err != nil || len(lines) != 1 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	text, err := os.ReadFile(filepath.Join(h.dir, audit.FileName(sid, audit.Case)))
	if err != nil {
		t.Fatal(err)
	}
	if got := lines[0]; string(got.Data)+"\n" != string(text) || got.N != 1 || got.Journal != audit.Case || got.Hash == "" || got.Prev != strings.Repeat("0", 64) {
		t.Errorf("got %+v, want %s", got, text)
	}
	if err := s.Append(t.Context(), lines[0]); err != nil {
		t.Errorf("the same line again: %v", err)
	}
}

// A guard that does not hold means that nothing happened: the log goes on. Any
// other error closes it.
func TestRefusedAndBroken(t *testing.T) {
	h := holdCase(t)
	j := h.log.Journal(audit.Case)
	via := func(err error) func(context.Context, store.Line) error {
		return func(context.Context, store.Line) error { return err }
	}
	guard := &store.GuardError{}
	_, _, err := j.AppendVia(t.Context(), "notice", 1, via(fmt.Errorf("commit: %w", guard)))
	var g *store.GuardError
	if !errors.Is(err, audit.ErrRefused) || !errors.As(err, &g) {
		t.Errorf("a guard that fails: %v", err)
	}
	note(t, h.log, audit.Case, "the log goes on")
	if got, err := h.log.Since(0); err != nil || numbers(got) != "1" {
		t.Errorf("entries %q, %v", numbers(got), err)
	}
	if _, _, err := j.AppendVia(t.Context(), "notice", 1, via(errors.New("the disk is gone"))); err == nil || errors.Is(err, audit.ErrRefused) {
		t.Errorf("an error that says nothing about what happened: %v", err)
	}
	if _, _, err := j.Append(t.Context(), "notice", 1); !errors.Is(err, audit.ErrClosed) {
		t.Errorf("after it: %v", err)
	}
}

func TestRefusedErrors(t *testing.T) {
	plain := errors.New("plain")
	for _, tc := range []struct {
		err     error
		refused bool
	}{
		{nil, false},
		{plain, false},
		{&store.GuardError{}, true},
		{fmt.Errorf("a: %w", fmt.Errorf("b: %w", &store.GuardError{})), true},
		{store.ErrBroken, false},
		{context.Canceled, false},
	} {
		got := refused(tc.err)
		if errors.Is(got, audit.ErrRefused) != tc.refused || !errors.Is(got, tc.err) {
			t.Errorf("%v: got %v", tc.err, got)
		}
	}
}

// Who lost the lease cannot append any more.
func TestFenced(t *testing.T) {
	h := holdCase(t)
	note(t, h.log, audit.Case, "mine")
	if err := h.db.Release(t.Context(), h.lease); err != nil {
		t.Fatal(err)
	}
	if _, err := h.db.Acquire(t.Context(), sid, "other", 10*365*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.log.Journal(audit.Case).Append(t.Context(), "notice", 1); err == nil {
		t.Error("an old fence appends")
	}
	if r := audit.Verify(h.dir, sid, audit.VerifyOptions{}); !r.OK || r.Records != 1 {
		t.Errorf("%d records, %s", r.Records, r.Why)
	}
	if err := h.log.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
