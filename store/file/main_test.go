package file

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ghostbot/store"
)

const sid = "ghost_20260314_104512"

// The tests run their own binary again as other processes.
const childEnv = "GHOST_STORE_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		os.Exit(children(name, os.Getenv("GHOST_STORE_DIR")))
	}
	os.Exit(m.Run())
}

// children are the programs that a child can be.
func children(name, dir string) int {
	switch name {
	case "count":
		return countChild(dir)
	case "take turns":
		return turnsChild(dir)
	case "hold":
		return holdChild(dir)
	case "fault":
		return faultChild(dir)
	}
	panic("internal error: no child " + name)
}

func command(name, dir string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+name, "GHOST_STORE_DIR="+dir)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// together runs n children to their end.
func together(t *testing.T, name, dir string, n int) {
	t.Helper()
	var cmds []*exec.Cmd
	for range n {
		cmd := command(name, dir)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// tempDir is a directory in memory where there is one: most tests write a lot
// and are not about the disk.
func tempDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "store-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func key(name string) store.Key { return store.Key{Scope: sid, Name: name} }

func put(t testing.TB, db *DB, name, data string) store.Version {
	t.Helper()
	var want store.Version
	if v, err := db.Get(t.Context(), key(name)); err == nil {
		want = v.Version
	}
	v, err := db.Put(t.Context(), key(name), []byte(data), want)
	if err != nil {
		t.Fatalf("put %s: %v", name, err)
	}
	return v
}

func get(t testing.TB, db *DB, name string) string {
	t.Helper()
	v, err := db.Get(t.Context(), key(name))
	if err != nil {
		return err.Error()
	}
	return string(v.Data)
}

// hash is the made-up hash of line n.
func hash(n uint64) string { return fmt.Sprintf("%064x", n) }

// line is line n of a journal whose last line is number prev.
func line(journal string, n, prev uint64) store.Line {
	return store.Line{Journal: journal, N: n, Prev: hash(prev), Hash: hash(n), Data: fmt.Appendf(nil, `{"line":%d}`, n)}
}

func commit(t testing.TB, db *DB, writes []store.Write, lines ...store.Line) {
	t.Helper()
	if err := db.Commit(t.Context(), store.Commit{Scope: sid, Writes: writes, Lines: lines}); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

func write(name, data string) store.Write { return store.Write{Key: key(name), Data: []byte(data)} }

func kept(t testing.TB, db *DB) string {
	t.Helper()
	lines, err := db.Lines(t.Context(), sid, 0)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, l := range lines {
		if string(l.Data) != fmt.Sprintf(`{"line":%d}`, l.N) {
			t.Errorf("line %d is %s", l.N, l.Data)
		}
		all = append(all, fmt.Sprint(l.Journal, l.N))
	}
	return strings.Join(all, " ")
}

func names(t testing.TB, db *DB) string {
	t.Helper()
	values, err := db.List(t.Context(), sid, "")
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, v := range values {
		all = append(all, v.Key.Name+"="+string(v.Data))
	}
	return strings.Join(all, " ")
}

func at(dir, name string) string { return filepath.Join(dir, "cases", sid, name) }

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

func copyDir(t testing.TB, from string) string {
	t.Helper()
	to := tempDir(t)
	must(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

// countChild adds 25 to the counter, one by one.
func countChild(dir string) int {
	ctx := context.Background()
	db, err := Open(dir, Options{WAL: 2000})
	if err != nil {
		panic(err)
	}
	for done := 0; done < 25; {
		v, err := db.Get(ctx, key("counter"))
		if err != nil {
			panic(err)
		}
		n, _ := strconv.Atoi(string(v.Data))
		_, err = db.Put(ctx, v.Key, []byte(strconv.Itoa(n+1)), v.Version)
		if err != nil && !errors.Is(err, store.ErrConflict) {
			panic(err)
		}
		if err == nil {
			done++
		}
	}
	return 0
}

func TestProcessesCount(t *testing.T) {
	dir := tempDir(t)
	db := openDB(t, dir, Options{})
	put(t, db, "counter", "0")
	together(t, "count", dir, 4)
	if got := get(t, db, "counter"); got != "100" {
		t.Errorf("counter %s, want 100", got)
	}
}

// turnsChild takes the lease ten times, and under it appends a line and its
// fence.
func turnsChild(dir string) int {
	ctx := context.Background()
	db, err := Open(dir, Options{})
	if err != nil {
		panic(err)
	}
	owner := fmt.Sprint("process ", os.Getpid())
	for done := 0; done < 10; {
		l, err := db.Acquire(ctx, sid, owner, time.Minute)
		if errors.Is(err, store.ErrHeld) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			panic(err)
		}
		lines, err := db.Lines(ctx, sid, 0)
		if err != nil {
			panic(err)
		}
		n := uint64(0)
		if len(lines) > 0 {
			n = lines[len(lines)-1].N
		}
		err = errors.Join(db.Commit(ctx, store.Commit{
			Scope: sid, Fence: l.Fence,
			Writes: []store.Write{{Key: key(fmt.Sprintf("fence/%03d", n+1)), Data: []byte(strconv.FormatUint(l.Fence, 10))}},
			Lines:  []store.Line{line("case", n+1, n)},
		}), db.Release(ctx, l))
		if err != nil {
			panic(err)
		}
		done++
	}
	return 0
}

func TestProcessesTakeTurns(t *testing.T) {
	dir := tempDir(t)
	together(t, "take turns", dir, 3)
	values, err := openDB(t, dir, Options{}).List(t.Context(), sid, "fence/")
	if err != nil || len(values) != 30 {
		t.Fatalf("%d commits (%v), want 30", len(values), err)
	}
	last := 0
	for _, v := range values {
		fence, err := strconv.Atoi(string(v.Data))
		if err != nil || fence <= last {
			t.Errorf("%s: fence %s after %d", v.Key, v.Data, last)
		}
		last = fence
	}
}

// holdChild acquires for a second, says so, and then for each line on stdin
// tries a fenced commit and says what came of it.
func holdChild(dir string) int {
	ctx := context.Background()
	db, err := Open(dir, Options{})
	if err != nil {
		panic(err)
	}
	ttl, err := time.ParseDuration(os.Getenv("GHOST_STORE_TTL"))
	if err != nil {
		panic(err)
	}
	l, err := db.Acquire(ctx, sid, "child", ttl)
	if err != nil {
		panic(err)
	}
	fmt.Println("held", l.Fence)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(db.Commit(ctx, store.Commit{Scope: sid, Fence: l.Fence, Writes: []store.Write{write("by", `"child"`)}}))
	}
	return 0
}

// holder is a child that holds the lease.
type holder struct {
	*exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func hold(t *testing.T, dir string, ttl time.Duration) holder {
	t.Helper()
	h := holder{Cmd: command("hold", dir, "GHOST_STORE_TTL="+ttl.String())}
	h.Stderr = os.Stderr
	in, err := h.StdinPipe()
	must(t, err)
	out, err := h.StdoutPipe()
	must(t, err)
	h.in, h.out = in, bufio.NewScanner(out)
	must(t, h.Start())
	t.Cleanup(func() {
		h.Process.Kill()
		h.Wait()
	})
	if got := h.say(); !strings.HasPrefix(got, "held ") {
		t.Fatalf("the child says %q", got)
	}
	return h
}

func (h holder) say() string {
	h.out.Scan()
	return h.out.Text()
}

func (h holder) commit() string {
	fmt.Fprintln(h.in)
	return h.say()
}
