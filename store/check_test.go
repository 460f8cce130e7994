package store

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func TestCheckScope(t *testing.T) {
	for scope, ok := range map[string]bool{
		"ghost_20260314_104512": true, "ghost_20260314_104512-2": true, "ghost_20260314_104512-123456789": true, Deployment: true,
		"": false, "..": false, "ghost_20260314_104512-": false, "ghost_20260314_104512-1234567890": false,
		"ghost_20260314_10451": false, "xghost_20260314_104512": false, "ghost_20260314_104512/x": false, "deployment2": false,
		"ghost_20260314_104512\n": false, "ghost_٢٠260314_104512": false,
	} {
		if err := CheckScope(scope); (err == nil) != ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v, want ok %v", scope, err, ok)
		}
	}
}

func TestCheckKey(t *testing.T) {
	segment := strings.Repeat("s", MaxSegment)
	for name, ok := range map[string]bool{
		"a": true, "a/b/c": true, ".a": true, "a..b": true, "...": true, "A-Z_0.9": true, segment: true,
		segment + "/" + segment + "/" + segment: true,
		"":                                      false, "/": false, "a/": false, "/a": false, "a//b": false, ".": false, "..": false, "a/../b": false,
		"a b": false, "a\x00": false, "a\n": false, "ä": false, "a@b": false, "a~": false, `a\b`: false, segment + "s": false,
		strings.Repeat("s/", MaxName/2) + "s": false,
	} {
		if err := (Key{Scope: Deployment, Name: name}).Check(); (err == nil) != ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v, want ok %v", name, err, ok)
		}
	}
	if err := (Key{Name: "a"}).Check(); !errors.Is(err, ErrInvalid) {
		t.Errorf("key without a scope: %v", err)
	}
}

func TestCheckCommit(t *testing.T) {
	k := Key{Scope: Deployment, Name: "a"}
	other := Key{Scope: "ghost_20260314_104512", Name: "a"}
	good := Line{Journal: "case", N: 1, Prev: strings.Repeat("0", 64), Hash: "ab", Data: []byte("{}")}
	with := func(change func(l *Line)) Commit {
		l := good
		change(&l)
		return Commit{Scope: Deployment, Lines: []Line{l}}
	}
	big := append(append([]byte(`"`), make([]byte, MaxCommit/2)...), '"')
	for i := range big[1 : len(big)-1] {
		big[i+1] = 'x'
	}
	for name, c := range map[string]struct {
		commit Commit
		ok     bool
	}{
		"empty":               {Commit{Scope: Deployment}, true},
		"all of it":           {Commit{Scope: Deployment, Fence: 1, Guards: []Guard{{Key: k}, {Before: time.Unix(1, 0)}}, Writes: []Write{{Key: k, Data: []byte("1")}}, Lines: []Line{good}}, true},
		"delete":              {Commit{Scope: Deployment, Writes: []Write{{Key: k}}}, true},
		"no previous hash":    {with(func(l *Line) { l.Prev = "" }), true},
		"no scope":            {Commit{}, false},
		"write elsewhere":     {Commit{Scope: Deployment, Writes: []Write{{Key: other}}}, false},
		"guard elsewhere":     {Commit{Scope: Deployment, Guards: []Guard{{Key: other}}}, false},
		"key twice":           {Commit{Scope: Deployment, Writes: []Write{{Key: k}, {Key: k, Data: []byte("1")}}}, false},
		"not JSON":            {Commit{Scope: Deployment, Writes: []Write{{Key: k, Data: []byte("x")}}}, false},
		"empty, not nil":      {Commit{Scope: Deployment, Writes: []Write{{Key: k, Data: []byte{}}}}, false},
		"journal in capitals": {with(func(l *Line) { l.Journal = "Case" }), false},
		"number 0":            {with(func(l *Line) { l.N = 0 }), false},
		"hash in words":       {with(func(l *Line) { l.Hash = "hash" }), false},
		"long hash":           {with(func(l *Line) { l.Hash = strings.Repeat("a", 129) }), false},
		"odd previous hash":   {with(func(l *Line) { l.Prev = "A" }), false},
		"two lines":           {with(func(l *Line) { l.Data = []byte("a\nb") }), false},
		"zero byte":           {with(func(l *Line) { l.Data = []byte("a\x00b") }), false},
		"nothing":             {with(func(l *Line) { l.Data = nil }), false},
		"too much": {Commit{Scope: Deployment, Writes: []Write{
			{Key: Key{Deployment, "a"}, Data: big}, {Key: Key{Deployment, "b"}, Data: big},
		}}, false},
	} {
		if err := c.commit.Check(); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ok %v", name, err, c.ok)
		}
	}
	if err := CheckData(k, make([]byte, MaxCommit+1)); !errors.Is(err, ErrInvalid) {
		t.Errorf("a value that is too long: %v", err)
	}
}

func TestFollows(t *testing.T) {
	for _, c := range []struct {
		prev, tail string
		want       bool
	}{
		{"", "", true}, {"0000", "", true}, {"ab", "", false}, {"ab", "ab", true}, {"ab", "cd", false}, {"", "ab", false}, {"0000", "ab", false},
	} {
		if got := (Line{Prev: c.prev}).Follows(c.tail); got != c.want {
			t.Errorf("%q after %q: %v", c.prev, c.tail, got)
		}
	}
}

func TestGuardErrors(t *testing.T) {
	for why, want := range map[string]error{"fence": ErrFenced, "changed": ErrConflict, "exists": ErrConflict, "too late": ErrConflict, "journal moved on": ErrConflict} {
		err := fmt.Errorf("wrapped: %w", &GuardError{Why: why})
		if !errors.Is(err, want) || errors.Is(err, ErrLate) != (why == "too late") || errors.Is(err, ErrFenced) && errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %v", why, err, want)
		}
	}
	if got := (&GuardError{Key: Key{"s", "n"}, Why: "changed"}).Error(); got != "commit refused: s:n changed" {
		t.Errorf("error text %q", got)
	}
	var r interface{ Refused() bool }
	for _, err := range []error{&GuardError{}, fmt.Errorf("wrapped: %w", NotDone(io.EOF))} {
		if !errors.As(err, &r) || !r.Refused() {
			t.Errorf("%v does not say that nothing happened", err)
		}
	}
	if err := NotDone(io.EOF); !errors.Is(err, io.EOF) || err.Error() != "EOF" {
		t.Errorf("not done: %v", err)
	}
	if NotDone(nil) != nil {
		t.Error("nil became an error")
	}
	if errors.As(io.EOF, &r) {
		t.Error("any error is a refusal")
	}
}

func TestCheckLease(t *testing.T) {
	for name, c := range map[string]struct {
		lease Lease
		ok    bool
	}{
		"good":       {Lease{Scope: Deployment, Owner: "a", TTL: 1}, true},
		"long owner": {Lease{Scope: Deployment, Owner: strings.Repeat("a", MaxOwner), TTL: 1}, true},
		"longer":     {Lease{Scope: Deployment, Owner: strings.Repeat("a", MaxOwner+1), TTL: 1}, false},
		"no owner":   {Lease{Scope: Deployment, TTL: 1}, false},
		"no time":    {Lease{Scope: Deployment, Owner: "a"}, false},
		"past":       {Lease{Scope: Deployment, Owner: "a", TTL: -1}, false},
		"no scope":   {Lease{Owner: "a", TTL: 1}, false},
	} {
		if err := CheckLease(c.lease); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ok %v", name, err, c.ok)
		}
	}
}
