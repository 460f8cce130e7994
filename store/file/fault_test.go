//go:build faultinject

package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ghostbot/store"
)

// faultChild commits steps until the case has faultTarget of them, noting each
// that was acknowledged. It is killed, or gets an error, at one chosen write.
const faultTarget = 5

func faultChild(dir string) int {
	ctx := context.Background()
	db, err := Open(filepath.Join(dir, "state"), Options{WAL: 700})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	acks, err := os.OpenFile(filepath.Join(dir, "acks"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	if err := faultSteps(ctx, db, acks); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if !errors.Is(err, store.ErrBroken) {
			return 4
		}
		// Nothing may be done on this scope any more, and the lease is gone.
		if _, err := db.Get(ctx, key("state")); !errors.Is(err, store.ErrBroken) {
			panic(fmt.Sprint("get after it: ", err))
		}
		if _, err := db.Acquire(ctx, sid, "child", time.Hour); !errors.Is(err, store.ErrBroken) {
			panic(fmt.Sprint("acquire after it: ", err))
		}
		other, err := Open(filepath.Join(dir, "state"), Options{})
		if err != nil {
			panic(err)
		}
		if _, err := other.Acquire(ctx, sid, "other", time.Hour); err != nil {
			panic(fmt.Sprint("the lease was not given up: ", err))
		}
		return 3
	}
	return 0
}

func faultSteps(ctx context.Context, db *DB, acks *os.File) error {
	l, err := db.Acquire(ctx, sid, "child", time.Hour)
	if err != nil {
		return err
	}
	fmt.Fprintln(acks, "fence", l.Fence)
	for {
		v, err := db.Get(ctx, key("state"))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		i, _ := strconv.ParseUint(string(v.Data), 10, 64)
		if i++; i > faultTarget {
			return db.Release(ctx, l)
		}
		c := store.Commit{
			Scope: sid, Fence: l.Fence,
			Guards: []store.Guard{{Key: v.Key, Version: v.Version}},
			Writes: []store.Write{
				write("state", fmt.Sprint(i)), write(fmt.Sprintf("inbox/%d", i), fmt.Sprint(i)),
				write(fmt.Sprintf("deep/a.json/%d", i%2), fmt.Sprint(i)),
				{Key: key(fmt.Sprintf("inbox/%d", int(i)-2))},
			},
			Lines: []store.Line{line("case", i, i-1)},
		}
		if i == 1 {
			c.Guards[0].Key = key("state")
			c.Writes = c.Writes[:3]
		}
		if err := db.Commit(ctx, c); err != nil {
			return err
		}
		fmt.Fprintln(acks, "step", i)
	}
}

// expected is what the store holds after step i.
func expected(i int) string {
	if i == 0 {
		return ""
	}
	deep := map[int]int{i % 2: i, (i + 1) % 2: i - 1}
	all := ""
	for j := range 2 {
		if deep[j] > 0 {
			all += fmt.Sprintf("deep/a.json/%d=%d ", j, deep[j])
		}
	}
	for j := max(1, i-1); j <= i; j++ {
		all += fmt.Sprintf("inbox/%d=%d ", j, j)
	}
	return all + fmt.Sprintf("state=%d", i)
}

// faultCheck is what must hold after any crash: every step that was
// acknowledged is there, at most one more for each life that ended early, each
// whole; the journal goes on where it ended; and a new fence is above all others.
func faultCheck(t *testing.T, dir, what string, lives int) {
	t.Helper()
	db, err := Open(filepath.Join(dir, "state"), Options{})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer db.Close()
	acked, fence := 0, 0
	acks, _ := os.ReadFile(filepath.Join(dir, "acks"))
	for _, l := range strings.Split(strings.TrimSpace(string(acks)), "\n") {
		fmt.Sscanf(l, "step %d", &acked)
		fmt.Sscanf(l, "fence %d", &fence)
	}
	got := names(t, db)
	i := acked
	for got != expected(i) && i < acked+lives {
		i++
	}
	if got != expected(i) {
		t.Fatalf("%s: acknowledged %d, found %q", what, acked, got)
	}
	if v := get(t, db, "state"); i > 0 && v != fmt.Sprint(i) {
		t.Fatalf("%s: state %s", what, v)
	}
	lines, err := db.Lines(t.Context(), sid, 0)
	if err != nil || i > 0 && (len(lines) == 0 || lines[len(lines)-1].N != uint64(i)) {
		t.Fatalf("%s: lines %v after step %d (%v)", what, lines, i, err)
	}
	scopes, err := db.Scopes(t.Context())
	if err != nil || (len(scopes) > 0) != (i > 0) {
		t.Fatalf("%s: scopes %v (%v)", what, scopes, err)
	}
	l, err := db.Acquire(t.Context(), sid, "check", time.Hour)
	if err != nil || l.Fence <= uint64(fence) {
		t.Fatalf("%s: fence %d after %d (%v)", what, l.Fence, fence, err)
	}
	n := uint64(i)
	wrong := store.Commit{Scope: sid, Fence: l.Fence, Lines: []store.Line{line("case", n+2, n+1)}}
	if err := db.Commit(t.Context(), wrong); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("%s: a line that follows nothing: %v", what, err)
	}
	right := store.Commit{Scope: sid, Fence: l.Fence, Lines: []store.Line{line("case", n+1, n)}}
	if err := db.Commit(t.Context(), right); err != nil {
		t.Fatalf("%s: the next line: %v", what, err)
	}
}

// faultRun runs a child and returns how many steps were counted, and whether it
// was killed.
func faultRun(t *testing.T, dir, fault string) (count int, killed bool) {
	t.Helper()
	counts := filepath.Join(dir, "counts")
	os.Remove(counts)
	out, err := command("fault", dir, "GHOST_FAULT="+fault, "GHOST_FAULT_COUNT="+counts).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		killed = exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
		if code := exit.ExitCode(); !killed && code != 3 {
			t.Fatalf("child with %q: %v\n%s", fault, err, out)
		}
	}
	b, _ := os.ReadFile(counts)
	return strings.Count(string(b), "\n"), killed
}

// TestFaultAtEveryWrite kills or fails a child at its k-th write, for every k,
// then its successor early on, during recovery, and lets a third one finish.
func TestFaultAtEveryWrite(t *testing.T) {
	for _, mode := range []string{"kill", "lose", "torn", "short", "enospc"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			k := 1
			for ; ; k++ {
				what := fmt.Sprintf("%s@%d", mode, k)
				dir := tempDir(t)
				count, killed := faultRun(t, dir, what)
				if count < k {
					break
				}
				if (mode == "kill" || mode == "lose" || mode == "torn") && !killed {
					t.Fatalf("%s: the child lives", what)
				}
				faultCheck(t, copyDir(t, dir), what, 1)
				second := fmt.Sprintf("%s@%d", mode, k%29+1)
				faultRun(t, dir, second)
				faultCheck(t, copyDir(t, dir), what+" then "+second, 2)
				if _, killed := faultRun(t, dir, ""); killed {
					t.Fatalf("%s: the last child was killed", what)
				}
				faultCheck(t, dir, what+" to the end", faultTarget)
				if got := get(t, openDB(t, filepath.Join(dir, "state"), Options{}), "state"); got != fmt.Sprint(faultTarget) {
					t.Fatalf("%s: the last child ended at step %s", what, got)
				}
				os.RemoveAll(dir)
			}
			if k < 50 {
				t.Errorf("only %d steps were tried", k-1)
			}
			t.Logf("%d steps", k-1)
		})
	}
}
