//go:build faultinject

package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests of this file run the test binary again as a child that appends and
// is killed, or gets an error, at one chosen write. See package fault.
const childEnv = "GHOST_AUDIT_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(child(dir, os.Getenv("GHOST_AUDIT_STREAM") != ""))
	}
	os.Exit(m.Run())
}

const target = 9 // entries that a child appends, over all its lives

// child appends until the case has target entries of kind "step", noting each
// that was acknowledged.
func child(dir string, withStream bool) int {
	o := Options{Dir: filepath.Join(dir, "audit"), SID: sid}
	if withStream {
		o.Stream = diskStream(filepath.Join(dir, "stream"))
	}
	l, err := Open(context.Background(), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	entries, err := l.Entries()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	acks, err := os.OpenFile(filepath.Join(dir, "acks"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	for i := len(steps(entries)); i < target; i++ {
		j := l.Journal([]string{Case, Shell, Shell, Tasks}[i%4])
		var n uint64
		var hash string
		if withStream && i%3 == 0 {
			n, hash, err = j.AppendVia(context.Background(), "step", i, o.Stream.Append)
		} else {
			n, hash, err = j.Append(context.Background(), "step", i)
		}
		if err != nil {
			if _, _, again := j.Append(context.Background(), "step", i); !errors.Is(again, ErrClosed) {
				panic(fmt.Sprintf("after %v the log is open: %v", err, again))
			}
			fmt.Fprintln(os.Stderr, err)
			return 3
		}
		fmt.Fprintf(acks, "%d %s\n", n, hash)
	}
	return 0
}

// steps are the entries that a child wrote itself.
func steps(entries []Entry) (own []Entry) {
	for _, e := range entries {
		if e.Kind == "step" {
			own = append(own, e)
		}
	}
	return own
}

// diskStream is a stream that survives its process: a file for each line.
type diskStream string

func (d diskStream) Append(ctx context.Context, line Line) error {
	have, err := d.Lines(ctx, 0)
	if err != nil {
		return err
	}
	s := stream{lines: have}
	if err := s.Append(ctx, line); err != nil || len(s.lines) == len(have) {
		return err
	}
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	tmp := filepath.Join(string(d), "tmp")
	if err := errors.Join(os.MkdirAll(string(d), 0o700), os.WriteFile(tmp, b, 0o600)); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(string(d), fmt.Sprintf("%06d.json", line.N)))
}

func (d diskStream) Lines(_ context.Context, after uint64) ([]Line, error) {
	files, err := filepath.Glob(filepath.Join(string(d), "*.json"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	var all []Line
	for _, f := range files {
		b, err := os.ReadFile(f)
		var line Line
		if err = errors.Join(err, json.Unmarshal(b, &line)); err != nil {
			return nil, err
		}
		if line.N > after {
			all = append(all, line)
		}
	}
	return all, nil
}

// run runs a child. It returns how many steps it counted, and whether it ended
// by itself.
func run(t *testing.T, dir, fault string, withStream bool) (count int, exited bool) {
	t.Helper()
	counts := filepath.Join(dir, "counts")
	os.Remove(counts)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir, "GHOST_FAULT="+fault, "GHOST_FAULT_COUNT="+counts)
	if withStream {
		cmd.Env = append(cmd.Env, "GHOST_AUDIT_STREAM=1")
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		exited = false
	} else if exited = true; err != nil && exit.ExitCode() != 3 {
		t.Fatalf("child with %q: %v\n%s", fault, err, out)
	}
	b, _ := os.ReadFile(counts)
	return strings.Count(string(b), "\n"), exited
}

// check is what must hold after any crash: what was acknowledged is there, at
// most one entry more, nothing twice, and everything verifies.
func check(t *testing.T, dir, what string, withStream bool) {
	t.Helper()
	o := Options{Dir: filepath.Join(dir, "audit"), Now: time.Now}
	if withStream {
		o.Stream = diskStream(filepath.Join(dir, "stream"))
	}
	l, err := tryOpen(t, o)
	if err != nil {
		t.Fatalf("%s: open: %v", what, err)
	}
	entries, err := l.Entries()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if r := Verify(o.Dir, sid, VerifyOptions{Head: l.Head().Full}); len(entries) > 0 && (!r.OK || r.Records != len(entries)) {
		t.Fatalf("%s: verify: %+v", what, r)
	}
	own := steps(entries)
	for i, e := range own {
		if string(e.Body) != strconv.Itoa(i) {
			t.Fatalf("%s: step %d is %s", what, i, e.Body)
		}
	}
	acks, _ := os.ReadFile(filepath.Join(dir, "acks"))
	acked := strings.Fields(string(acks))
	for i := 0; i < len(acked); i += 2 {
		n, _ := strconv.Atoi(acked[i])
		if n > len(entries) || entries[n-1].Hash != acked[i+1] {
			t.Fatalf("%s: entry %d was acknowledged and is gone", what, n)
		}
	}
	if withStream {
		lines, err := o.Stream.Lines(t.Context(), 0)
		if err != nil || len(lines) != len(entries) {
			t.Fatalf("%s: %d lines in the stream, %d entries (%v)", what, len(lines), len(entries), err)
		}
	}
	for _, e := range entries {
		var r repair
		if e.Kind != kindRepair || json.Unmarshal(e.Body, &r) != nil {
			continue
		}
		if b := read(t, filepath.Join(o.Dir, r.MovedTo)); int64(len(b)) != r.Bytes {
			t.Fatalf("%s: %s has %d bytes, journaled are %d", what, r.MovedTo, len(b), r.Bytes)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(o.Dir, "*.torn")); len(left) > 0 {
		t.Fatalf("%s: not journaled: %v", what, left)
	}
}

// TestFaultAtEveryWrite kills or fails a child at its k-th write, for every k,
// then its successor early on, during the repair, and then lets a third finish.
func TestFaultAtEveryWrite(t *testing.T) {
	for _, withStream := range []bool{false, true} {
		for _, mode := range []string{"kill", "kill-after", "lose", "torn", "short", "enospc"} {
			t.Run(fmt.Sprintf("%s stream=%v", mode, withStream), func(t *testing.T) {
				t.Parallel()
				k := 1
				for ; ; k++ {
					what := fmt.Sprintf("%s@%d", mode, k)
					dir := tempDir(t)
					count, exited := run(t, dir, what, withStream)
					if count < k {
						if !exited {
							t.Fatalf("%s: killed after %d steps", what, count)
						}
						break
					}
					if mode != "short" && mode != "enospc" && exited {
						t.Fatalf("%s: the child lives after %d steps", what, count)
					}
					once := copyDir(t, dir)
					check(t, once, what, withStream)
					second := fmt.Sprintf("%s@%d", mode, k%9+1)
					run(t, dir, second, withStream)
					twice := copyDir(t, dir)
					check(t, twice, what+" then "+second, withStream)
					for _, d := range []string{dir, twice} {
						if _, exited := run(t, d, "", withStream); !exited {
							t.Fatalf("%s: the last child was killed", what)
						}
						check(t, d, what+" to the end", withStream)
						l := open(t, Options{Dir: filepath.Join(d, "audit")})
						if entries, err := l.Entries(); err != nil || len(steps(entries)) != target {
							t.Fatalf("%s: %d steps at the end (%v)", what, len(steps(entries)), err)
						}
					}
					os.RemoveAll(dir)
				}
				if k < 20 {
					t.Errorf("only %d steps were tried", k-1)
				}
				t.Logf("%d steps", k-1)
			})
		}
	}
}

// TestFaultDuringRepair does the same while a torn line is moved aside: its
// bytes must survive, and be journaled once.
func TestFaultDuringRepair(t *testing.T) {
	const torn = `{"session_id":"ghost_2026`
	for _, mode := range []string{"kill", "kill-after", "lose", "torn", "short", "enospc"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			k := 1
			for ; ; k++ {
				what := fmt.Sprintf("%s@%d", mode, k)
				dir := tempDir(t)
				l := open(t, Options{Dir: filepath.Join(dir, "audit")})
				add(t, l, Shell, "step", 0)
				add(t, l, Case, "step", 1)
				journal := path(filepath.Join(dir, "audit"), Shell)
				write(t, journal, read(t, journal)+torn)
				if count, _ := run(t, dir, what, false); count < k {
					break
				}
				check(t, dir, what, false)
				left, err := filepath.Glob(filepath.Join(dir, "audit", "*.torn*"))
				if err != nil || len(left) == 0 {
					t.Fatalf("%s: moved aside: %v (%v)", what, left, err)
				}
				kept := 0
				for _, name := range left {
					if read(t, name) == torn {
						kept++
					}
				}
				if kept != 1 {
					t.Fatalf("%s: the torn bytes are kept %d times in %v", what, kept, left)
				}
				entries, err := Read(filepath.Join(dir, "audit"), sid)
				if err != nil {
					t.Fatal(err)
				}
				journaled := 0
				for _, e := range entries {
					if e.Kind == "repair" && strings.Contains(string(e.Body), fmt.Sprintf(`"bytes":%d,`, len(torn))) {
						journaled++
					}
				}
				if journaled != 1 {
					t.Fatalf("%s: the repair was journaled %d times", what, journaled)
				}
			}
			t.Logf("%d steps", k-1)
		})
	}
}
