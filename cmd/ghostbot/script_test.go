package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/rogpeppe/go-internal/testscript"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/safeexec"
	"ghostbot/safeexec/policy"
	"ghostbot/store"
	"ghostbot/store/file"
)

// TestMain lets the test binary be the program: the scripts, and the tests that
// need a process of their own, run it under the name ghostbot.
func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"ghostbot": main}) }

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/home") // never the state of who runs the tests
			e.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"mkcase":   mkcase,
			"mkstore":  mkstore,
			"flip":     flip,
			"edit":     edit,
			"repeat":   repeat,
			"token":    token,
			"jsonkeys": jsonkeys,
			"lines":    lines,
			"visible":  visible,
		},
	})
}

// must ends a script on an error.
func must(ts *testscript.TestScript, err error) {
	if err != nil {
		ts.Fatalf("%v", err)
	}
}

// exits CODE ghostbot ARG...: runs the program, compares its exit code, and holds
// standard error to the contract: nothing after success, otherwise one line, and
// the usage line when the code is 10. (doctor and verify answer on standard
// output, so that a 1 may be silent.)
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	must(ts, err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		must(ts, err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	if why := badStderr(got, ts.ReadFile("stderr")); why != "" {
		ts.Fatalf("standard error: %s", why)
	}
}

var logLine = regexp.MustCompile(`(?m)^time=.*\n`)

func badStderr(code int, text string) string {
	lines := strings.SplitAfter(logLine.ReplaceAllString(text, ""), "\n")
	if len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	want := map[int]int{exitOK: 0, exitInternal: 1, exitUnavailable: 1, exitUsage: 2}
	switch n, ok := want[code]; {
	case strings.Contains(text, "goroutine ") || strings.Contains(text, "panic:"):
		return "a stack trace"
	case ok && len(lines) != n, code == exitNegative && len(lines) > 1:
		return fmt.Sprintf("%d lines", len(lines))
	case len(lines) > 0 && !strings.HasPrefix(lines[0], "ghostbot: "):
		return "does not begin with the program's name"
	case code == exitUsage && !strings.HasPrefix(lines[1], "usage: ghostbot "):
		return "no usage line"
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == '\u202e' }):
		return "control characters"
	}
	return ""
}

// writeCase journals a small case with a confirmed cause, at fixed times, and
// returns the head after each entry.
func writeCase(dir, sid, symptom string, keys []audit.Key) ([]audit.Head, error) {
	now := time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	log, err := audit.Open(context.Background(), audit.Options{Dir: dir, SID: sid, Fence: 1, Keys: keys, Now: clock})
	if err != nil {
		return nil, err
	}
	defer log.Close()
	id := func(n uint64) string { return audit.ID(sid, n) }
	zero := 0
	type entry struct {
		journal, kind string
		body          any
	}
	all := []entry{
		{audit.Case, agent.KindOpened, agent.Opened{Symptom: symptom, Requester: "U1", Brain: "playbook"}},
		{audit.Case, agent.KindTurn, agent.TurnEntry{Turn: 1, Text: "Look at the listener.", Moves: []agent.MoveEntry{
			{Tool: agent.ToolHypotheses, Args: json.RawMessage(`{}`)}, {Tool: agent.ToolShell, Args: json.RawMessage(`{}`)}}}},
		{audit.Case, agent.KindHypothesis, agent.HypothesisEntry{Turn: 1, Op: "add", ID: "H1", Description: "nothing listens"}},
		{audit.Shell, "proposed", safeexec.Proposal{SessionID: sid, Argv: []string{"ss", "-ltn"}, Display: "ss -ltn", Class: policy.Safe,
			Env: "local", Hypothesis: "H1", Turn: 1, Index: 1, Requester: "U1"}},
		{audit.Shell, "outcome", safeexec.Result{AuditID: id(4), Status: "completed", Classification: policy.Safe, Action: "auto_approved",
			Command: "ss -ltn", Output: "no listener on 8080", ExitCode: &zero, Environment: "local"}},
		{audit.Case, agent.KindTurn, agent.TurnEntry{Turn: 2, Moves: []agent.MoveEntry{{Tool: agent.ToolHypotheses, Args: json.RawMessage(`{}`)}}}},
		{audit.Case, agent.KindHypothesis, agent.HypothesisEntry{Turn: 2, Op: "update", ID: "H1", State: agent.Confirmed, Evidence: []string{id(4)}, Why: "no listener"}},
		{audit.Case, agent.KindConcluded, agent.Conclusion{EndedBy: "brain", Complete: agent.Complete{Confidence: "high", Verdict: "root_cause",
			Summary: "Nothing listens on port 8080.", Causes: []agent.Cause{{Statement: "No process listens on 8080", Evidence: []string{id(4)}}}}}},
	}
	if sid == audit.Register {
		all = []entry{{audit.Register, "served", map[string]string{"version": "0"}}}
	}
	for _, e := range all {
		if _, _, err := log.Journal(e.journal).Append(context.Background(), e.kind, e.body); err != nil {
			return nil, err
		}
	}
	entries, err := audit.Read(dir, sid)
	var out []audit.Head
	var h audit.Heads
	for _, e := range entries {
		out = append(out, h.Add(e))
	}
	return out, err
}

// hostile is a symptom that attacks a terminal.
const hostile = "\x1b[2J\x1b]0;owned\x07 \u009b31m red \u202egnihtyna\u2066 zero\u200bwidth\ufeff \r\nFAKE LINE\u2028x\x7f"

// mkcase [-hostile] DIR SID [KEYFILE]: writes a case; $HEAD1, $HEAD2... are its
// heads and $FULL is the last one in full.
func mkcase(ts *testscript.TestScript, _ bool, args []string) {
	symptom := "connection refused on 127.0.0.1:8080"
	if args[0] == "-hostile" {
		symptom, args = hostile, args[1:]
	}
	var keys []audit.Key
	if len(args) > 2 {
		k, err := keyring.Keys(ts.MkAbs(args[2]))
		must(ts, err)
		keys = k
	}
	heads, err := writeCase(ts.MkAbs(args[0]), args[1], symptom, keys)
	must(ts, err)
	for _, h := range heads {
		ts.Setenv(fmt.Sprintf("HEAD%d", h.N), h.Short())
		ts.Setenv("FULL", h.Full)
	}
}

// mkstore DIR [VALUE]: a store with five cases in every state, or with one whose
// value is VALUE.
func mkstore(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 1 {
		must(ts, writeStore(ts.MkAbs(args[0])))
		return
	}
	db, err := file.Open(ts.MkAbs(args[0]), file.Options{})
	must(ts, err)
	defer db.Close()
	_, err = db.Put(context.Background(), store.Key{Scope: store.Deployment, Name: "case/ghost_20260314_104511"}, []byte(args[1]), store.Absent)
	must(ts, err)
}

func writeStore(dir string) error {
	ctx := context.Background()
	db, err := file.Open(dir, file.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	put := func(scope, name string, v any) {
		data, _ := json.Marshal(v)
		_, perr := db.Put(ctx, store.Key{Scope: scope, Name: name}, data, store.Absent)
		err = errors.Join(err, perr)
	}
	at := time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC)
	for i, symptom := range []string{"timeout to db.example.com:5432", "checkout returns 502", hostile, "login is slow on 192.0.2.7", "database timeout again"} {
		sid := fmt.Sprintf("ghost_20260314_10451%d", i+1)
		info := bot.CaseInfo{SessionID: sid, Opening: bot.Opening{Symptom: symptom, Place: bot.Place{Transport: "slack", Channel: "C0INC"}}, CreatedAt: at}
		switch i {
		case 1:
			info.Closed, info.Verdict = true, "root_cause"
		case 3:
			put(sid, "proposal/004", map[string]any{"state": bot.StatePending})
		case 4:
			put(sid, "question/005", map[string]any{})
		}
		put(store.Deployment, "case/"+sid, info)
	}
	return err
}

// edit FILE NEW OLD TEXT: copies FILE to NEW with every OLD replaced by TEXT.
func edit(ts *testscript.TestScript, _ bool, args []string) {
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	must(ts, err)
	if !bytes.Contains(b, []byte(args[2])) {
		ts.Fatalf("%s does not contain %q", args[0], args[2])
	}
	must(ts, os.WriteFile(ts.MkAbs(args[1]), bytes.ReplaceAll(b, []byte(args[2]), []byte(args[3])), 0o600))
}

// flip FILE TEXT: changes one bit of the first byte of TEXT in FILE.
func flip(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	must(ts, err)
	i := bytes.Index(b, []byte(args[1]))
	if i < 0 {
		ts.Fatalf("%s is not in %s", args[1], args[0])
	}
	b[i] ^= 1
	must(ts, os.WriteFile(path, b, 0o600))
}

// repeat N TEXT FILE: writes TEXT N times; %d is the number, \n a line end, \xff
// a byte that is no UTF-8.
func repeat(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	must(ts, err)
	text := strings.NewReplacer(`\n`, "\n", `\xff`, "\xff").Replace(args[1])
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(text, "%d", strconv.Itoa(i)))
	}
	must(ts, os.WriteFile(ts.MkAbs(args[2]), []byte(b.String()), 0o600))
}

// token NAME PREFIX [FILE FORMAT]: sets a variable to a token that is made here,
// and may write it into a file in place of %s.
func token(ts *testscript.TestScript, _ bool, args []string) {
	tok := args[1] + "-" + strings.Repeat("1234567890-", 2) + strings.Repeat("aB3dE6gH", 3)
	ts.Setenv(args[0], tok)
	if len(args) > 2 {
		must(ts, os.WriteFile(ts.MkAbs(args[2]), []byte(strings.NewReplacer("%s", tok, `\n`, "\n").Replace(args[3])+"\n"), 0o600))
	}
}

// jsonkeys FILE KEY...: every line is a JSON object with exactly these members in
// this order.
func jsonkeys(ts *testscript.TestScript, _ bool, args []string) {
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		got, err := keysOf(line)
		must(ts, err)
		if want := strings.Join(args[1:], " "); got != want {
			ts.Fatalf("members are %q, want %q", got, want)
		}
	}
}

// keysOf names the members of a JSON object, or of the first one of a list.
func keysOf(text string) (string, error) {
	d := json.NewDecoder(strings.NewReader(text))
	t, err := d.Token()
	if t == json.Delim('[') {
		t, err = d.Token()
	}
	if t != json.Delim('{') {
		return "", fmt.Errorf("not an object: %v, %v", t, err)
	}
	var keys []string
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return "", err
		}
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return "", err
		}
		keys = append(keys, fmt.Sprint(k))
	}
	return strings.Join(keys, " "), nil
}

// lines FILE N: FILE has N lines.
func lines(ts *testscript.TestScript, _ bool, args []string) {
	if got := strings.Count(ts.ReadFile(args[0]), "\n"); strconv.Itoa(got) != args[1] {
		ts.Fatalf("%d lines, want %s", got, args[1])
	}
}

// visible FILE: there is nothing in it that a terminal would act on.
func visible(ts *testscript.TestScript, _ bool, args []string) {
	for i, r := range ts.ReadFile(args[0]) {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || unicode.Is(unicode.Cf, r) {
			ts.Fatalf("%U at byte %d", r, i)
		}
	}
}
