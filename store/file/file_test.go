package file

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"ghostbot/internal/beneath"
	"ghostbot/store"
)

// tree is what is in a directory: path -> mode and content, without the files
// whose content is random.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		all[rel] = fmt.Sprintf("%o", st.Mode().Perm())
		if d.Type().IsRegular() && !strings.Contains(rel, "@") && rel != installationName {
			all[rel] += " " + readFile(t, path)
		}
		return nil
	})
	must(t, err)
	return all
}

func TestLayout(t *testing.T) {
	dir := filepath.Join(tempDir(t), "state", "ghost")
	db := openDB(t, dir, Options{})
	pretty := "{\n  \"state\": \"open\"\n}\n"
	put(t, db, "ghost_session", pretty)
	put(t, db, "inbox/0001", `"stop"`)
	put(t, db, "odd.json/x.json", "1")
	_, err := db.Put(t.Context(), store.Key{Scope: store.Deployment, Name: "message/C1"}, []byte("2"), store.Absent)
	must(t, err)
	_, err = db.Acquire(t.Context(), sid, "one", time.Hour)
	must(t, err)
	c := "cases/" + sid
	want := map[string]string{
		".": "700", "@lock": "600", "installation.json": "600", "cases": "700", "deployment": "700", "deployment/message": "700",
		"deployment/message/C1.json": "600 2", "deployment/@lock": "600", "deployment/@wal": "600", "deployment/@origin": "600",
		c: "700", c + "/inbox": "700", c + "/odd.json~": "700", c + "/odd.json~/x.json.json": "600 1",
		c + "/ghost_session.json": "600 " + pretty, c + "/inbox/0001.json": `600 "stop"`,
		c + "/@lock": "600", c + "/@wal": "600", c + "/@lease": "600", c + "/@origin": "600",
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

// TestReplay: the values on disk are as a power cut may leave them, the
// write-ahead file is whole.
func TestReplay(t *testing.T) {
	dir := tempDir(t)
	db := openDB(t, dir, Options{})
	commit(t, db, []store.Write{write("a", "1"), write("b/c", "1"), write("gone", "1")}, line("case", 1, 0))
	commit(t, db, []store.Write{write("a", "2"), {Key: key("gone")}, write("d", "2")}, line("shell", 2, 0), line("case", 3, 1))
	want := "a=2 b/c=1 d=2"
	for name, spoil := range map[string]func(dir string){
		"nothing":       func(string) {},
		"old value":     func(dir string) { writeFile(t, at(dir, "a.json"), "1") },
		"empty files":   func(dir string) { writeFile(t, at(dir, "a.json"), ""); writeFile(t, at(dir, "b/c.json"), "") },
		"zeros":         func(dir string) { writeFile(t, at(dir, "d.json"), "\x00\x00") },
		"missing files": func(dir string) { must(t, os.Remove(at(dir, "d.json"))); must(t, os.RemoveAll(at(dir, "b"))) },
		"undead file":   func(dir string) { writeFile(t, at(dir, "gone.json"), "1") },
		"half written":  func(dir string) { writeFile(t, at(dir, tmpName), "{") },
		"no lease file": func(dir string) { os.Remove(at(dir, leaseName)) },
	} {
		dir := copyDir(t, dir)
		spoil(dir)
		again := openDB(t, dir, Options{})
		if got := names(t, again); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if got := kept(t, again); got != "case1 shell2 case3" {
			t.Errorf("%s: lines %s", name, got)
		}
		commit(t, again, nil, line("case", 4, 3))
	}
}

// TestAnotherProcessDied: this process knows the scope, another one appended a
// record and died before it applied it.
func TestAnotherProcessDied(t *testing.T) {
	dir := tempDir(t)
	one := openDB(t, dir, Options{})
	put(t, one, "a", "1")
	other := openDB(t, dir, Options{})
	commit(t, other, []store.Write{write("a", "2")}, line("case", 1, 0))
	writeFile(t, at(dir, "a.json"), "1")
	if got := get(t, one, "a"); got != "2" {
		t.Errorf("a is %s, want 2", got)
	}
	// And with a torn record behind it.
	b := readFile(t, at(dir, walName))
	writeFile(t, at(dir, walName), b+"rec 0000")
	if got := kept(t, one); got != "case1" {
		t.Errorf("lines %s", got)
	}
	if got := readFile(t, at(dir, walName)); got != b {
		t.Error("the torn record is still there")
	}
	put(t, other, "a", "3")
	if got := get(t, one, "a"); got != "3" {
		t.Errorf("a is %s, want 3", got)
	}
}

func TestCheckpoint(t *testing.T) {
	dir := tempDir(t)
	db := openDB(t, dir, Options{WAL: 4000})
	l, err := db.Acquire(t.Context(), sid, "one", time.Hour)
	must(t, err)
	commit(t, db, nil, line("shell", 1, 0))
	commit(t, db, nil, line("tasks", 2, 0), line("tasks", 3, 2))
	largest := int64(0)
	for i := range 60 {
		put(t, db, fmt.Sprintf("v/%d", i%7), fmt.Sprintf(`"%d %s"`, i, strings.Repeat("x", 200)))
		st, err := os.Stat(at(dir, walName))
		must(t, err)
		largest = max(largest, st.Size())
	}
	if largest > 6000 {
		t.Errorf("the write-ahead file grew to %d bytes", largest)
	}
	if got := kept(t, db); got != "shell1 tasks2 tasks3" {
		t.Errorf("lines %s", got)
	}
	commit(t, db, nil, line("case", 4, 0))
	must(t, db.Release(t.Context(), l))
	if got := kept(t, db); got != "shell1 tasks3 case4" {
		t.Errorf("lines after release: %s", got)
	}
	if wal := readFile(t, at(dir, walName)); strings.Count(wal, recMagic) != 1 || strings.Contains(wal, "xxx") {
		t.Errorf("@wal after release:\n%s", wal)
	}
	for range 2 { // what one checkpoint keeps, the next one keeps too
		again := openDB(t, dir, Options{WAL: 1})
		l, err := again.Acquire(t.Context(), sid, "two", time.Hour)
		if err != nil || l.Fence < 2 {
			t.Fatalf("acquire: %+v, %v", l, err)
		}
		if got := kept(t, again); got != "shell1 tasks3 case4" {
			t.Errorf("lines later: %s", got)
		}
		must(t, again.Close())
	}
	again := openDB(t, dir, Options{})
	err = again.Commit(t.Context(), store.Commit{Scope: sid, Lines: []store.Line{line("shell", 5, 0)}})
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("a checkpoint forgot the tail of shell: %v", err)
	}
	commit(t, again, nil, line("shell", 5, 1))
}

// TestEditByHand: at rest the files are the truth.
func TestEditByHand(t *testing.T) {
	dir := tempDir(t)
	db := openDB(t, dir, Options{})
	l, err := db.Acquire(t.Context(), sid, "one", time.Hour)
	must(t, err)
	v := put(t, db, "a", "1")
	must(t, db.Release(t.Context(), l))
	writeFile(t, at(dir, "a.json"), "{ \"edited\": true }\n")
	if got := get(t, db, "a"); got != "{ \"edited\": true }\n" {
		t.Errorf("a is %s", got)
	}
	if _, err := db.Put(t.Context(), key("a"), []byte("2"), v); !errors.Is(err, store.ErrConflict) {
		t.Errorf("put with the old version: %v", err)
	}
	writeFile(t, at(dir, "a.json"), "{ edited")
	if got := get(t, db, "a"); !strings.Contains(got, "not JSON") {
		t.Errorf("a is %s", got)
	}
	writeFile(t, at(dir, "notes.txt"), "mine")
	writeFile(t, at(dir, "not a key.json"), "mine")
	must(t, os.Mkdir(at(dir, "my notes"), 0o700))
	must(t, os.Remove(at(dir, "a.json")))
	if got := names(t, db); got != "" {
		t.Errorf("names: %s", got)
	}
	must(t, os.Remove(at(dir, walName)))
	must(t, os.WriteFile(at(dir, "a.json"), []byte("1"), 0o600))
	if got := get(t, db, "a"); !strings.Contains(got, "it is missing although there are values") {
		t.Errorf("without @wal: %s", got)
	}
	must(t, os.Remove(at(dir, lockName)))
	writeFile(t, at(dir, walName), "x")
	if got := get(t, db, "a"); !strings.Contains(got, "@lock is missing") {
		t.Errorf("without @lock: %s", got)
	}
	must(t, os.RemoveAll(at(dir, "")))
	if got := get(t, db, "a"); !strings.Contains(got, store.ErrNotFound.Error()) {
		t.Errorf("after rm -r: %s", got)
	}
	put(t, db, "a", "3")
	commit(t, db, nil, line("case", 1, 0))
}

// TestOddFiles puts links, pipes and the like in the place of each file of the
// store. Nothing is followed, nothing blocks, and the error says what it is.
func TestOddFiles(t *testing.T) {
	kinds := map[string]func(t *testing.T, path string){
		"symbolic link": func(t *testing.T, path string) {
			must(t, os.WriteFile(path+"~target", []byte("1"), 0o600))
			must(t, os.Symlink(filepath.Base(path)+"~target", path))
		},
		"pipe": func(t *testing.T, path string) { must(t, unix.Mkfifo(path, 0o600)) },
		"2 links": func(t *testing.T, path string) {
			must(t, os.WriteFile(path+"~other", []byte("1"), 0o600))
			must(t, os.Link(path+"~other", path))
		},
		"directory": func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) },
		"socket": func(t *testing.T, path string) {
			t.Chdir(filepath.Dir(path))                            // such a path has 107 bytes at most
			l, err := net.Listen("unix", "./"+filepath.Base(path)) // "@" alone means another kind of name
			must(t, err)
			t.Cleanup(func() { l.Close() })
		},
	}
	for _, file := range []string{walName, lockName, leaseName, "a.json", "inbox/1.json"} {
		for kind, make := range kinds {
			t.Run(file+" "+kind, func(t *testing.T) {
				dir := tempDir(t)
				db := openDB(t, dir, Options{})
				put(t, db, "a", "1")
				put(t, db, "inbox/1", "1")
				l, err := db.Acquire(t.Context(), sid, "one", time.Hour)
				must(t, err)
				must(t, db.Release(t.Context(), l)) // at rest, so that nothing is replayed over it
				must(t, os.Remove(at(dir, file)))
				make(t, at(dir, file))
				before := tree(t, at(dir, "inbox"))
				name := strings.TrimSuffix(file, suffix)
				if strings.HasPrefix(file, "@") {
					name = "a"
				}
				again := openDB(t, dir, Options{})
				_, errGet := again.Get(t.Context(), key(name))
				_, errAcquire := again.Acquire(t.Context(), sid, "two", time.Hour)
				errs := []error{errGet, errAcquire}
				if file == leaseName {
					errs = errs[1:]
				} else if !strings.HasPrefix(file, "@") {
					errs = errs[:1]
				}
				for _, err := range errs {
					if !errors.Is(err, beneath.ErrOdd) || !strings.Contains(err.Error(), kind) || !strings.Contains(err.Error(), file) || errors.Is(err, store.ErrBroken) {
						t.Errorf("%v, want a word about a %s called %s", err, kind, file)
					}
				}
				if diff := cmp.Diff(before, tree(t, at(dir, "inbox"))); diff != "" && file != "inbox/1.json" {
					t.Errorf("changed (-before +after):\n%s", diff)
				}
			})
		}
	}
}

func TestOddDirectories(t *testing.T) {
	dir := tempDir(t)
	db := openDB(t, dir, Options{})
	put(t, db, "inbox/1", "1")
	elsewhere := tempDir(t)
	link := func(path string) {
		must(t, os.Rename(path, filepath.Join(elsewhere, "moved")))
		must(t, os.Symlink(filepath.Join(elsewhere, "moved"), path))
	}
	back := func(path string) {
		must(t, os.Remove(path))
		must(t, os.Rename(filepath.Join(elsewhere, "moved"), path))
	}
	link(at(dir, "inbox"))
	for name, err := range map[string]error{
		"get":  second(db.Get(t.Context(), key("inbox/1"))),
		"list": second(db.List(t.Context(), sid, "")),
	} {
		if !errors.Is(err, beneath.ErrOdd) {
			t.Errorf("%s through a linked directory: %v", name, err)
		}
	}
	back(at(dir, "inbox"))
	link(at(dir, ""))
	if _, err := db.Get(t.Context(), key("inbox/1")); !errors.Is(err, beneath.ErrOdd) {
		t.Errorf("get from a linked scope: %v", err)
	}
	if _, err := db.Scopes(t.Context()); !errors.Is(err, beneath.ErrOdd) {
		t.Errorf("scopes with a linked scope: %v", err)
	}
	back(at(dir, ""))
	link(filepath.Join(dir, "cases"))
	if _, err := Open(dir, Options{}); !errors.Is(err, beneath.ErrOdd) {
		t.Errorf("open with linked cases: %v", err)
	}
	back(filepath.Join(dir, "cases"))
	if got := get(t, openDB(t, dir, Options{}), "inbox/1"); got != "1" {
		t.Errorf("afterwards: %s", got)
	}
	writeFile(t, filepath.Join(dir, installationName), "{}")
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), installationName) {
		t.Errorf("open with a broken installation: %v", err)
	}
	if _, err := Open(filepath.Join(dir, installationName), Options{}); err == nil {
		t.Error("open of a file")
	}
}

func second[T any](_ T, err error) error { return err }

// TestDescriptors: scopes at rest hold no file open, leases hold one each.
func TestDescriptors(t *testing.T) {
	count := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc: ", err)
		}
		return len(fds)
	}
	db := openDB(t, tempDir(t), Options{})
	before := count()
	var leases []store.Lease
	for i := range 50 {
		scope := fmt.Sprintf("ghost_20260314_%06d", i)
		_, err := db.Put(t.Context(), store.Key{Scope: scope, Name: "a"}, []byte("1"), store.Absent)
		must(t, err)
		l, err := db.Acquire(t.Context(), scope, "one", time.Hour)
		must(t, err)
		leases = append(leases, l)
	}
	if got := count() - before; got != 50 {
		t.Errorf("%d descriptors for 50 leases", got)
	}
	for _, l := range leases {
		must(t, db.Release(t.Context(), l))
	}
	if got := count() - before; got != 0 {
		t.Errorf("%d descriptors for 50 scopes at rest", got)
	}
}

func TestOrigin(t *testing.T) {
	native := func(db *DB, scope string) bool {
		t.Helper()
		ok, _, err := db.Native(t.Context(), scope)
		must(t, err)
		return ok
	}
	dir := tempDir(t)
	db := openDB(t, dir, Options{})
	if !native(db, sid) {
		t.Error("a scope that does not exist is foreign")
	}
	must(t, db.Adopt(t.Context(), sid))
	put(t, db, "a", "1")
	if !native(db, sid) || !native(openDB(t, dir, Options{}), sid) {
		t.Error("a scope is foreign where it was made")
	}
	_, made, err := db.Native(t.Context(), sid)
	if err != nil || made.Scope != sid || len(made.Installation) != 32 || len(made.Machine) != 32 || made.Place == 0 {
		t.Errorf("origin %+v (%v)", made, err)
	}
	id, err := os.ReadFile("/etc/machine-id")
	if err == nil && strings.Contains(readFile(t, at(dir, originName)), strings.TrimSpace(string(id))) {
		t.Error("the origin gives the machine's id away")
	}
	// The whole state directory, on the same machine.
	whole := copyDir(t, dir)
	if native(openDB(t, whole, Options{}), sid) {
		t.Error("a copied state directory is native")
	}
	// One case, into another state directory.
	other := tempDir(t)
	foreign := openDB(t, other, Options{})
	must(t, os.CopyFS(filepath.Join(other, "cases"), os.DirFS(filepath.Join(dir, "cases"))))
	if native(foreign, sid) {
		t.Error("a case from another state directory is native")
	}
	// One case, moved under another name.
	must(t, os.Rename(at(other, ""), filepath.Join(other, "cases", sid+"-2")))
	must(t, foreign.Adopt(t.Context(), sid+"-2"))
	must(t, os.Rename(filepath.Join(other, "cases", sid+"-2"), at(other, "")))
	if native(foreign, sid) {
		t.Error("a renamed case is native")
	}
	must(t, foreign.Adopt(t.Context(), sid))
	if !native(foreign, sid) || get(t, foreign, "a") != "1" {
		t.Error("an adopted case is foreign")
	}
	// A backup that was put back.
	backup := copyDir(t, at(dir, ""))
	must(t, os.RemoveAll(at(dir, "")))
	must(t, os.CopyFS(at(dir, ""), os.DirFS(backup)))
	if native(db, sid) {
		t.Error("a restored case is native")
	}
	for _, content := range []string{"", "{", `{"scope":"` + sid + `"}`} {
		writeFile(t, at(dir, originName), content)
		if native(db, sid) {
			t.Errorf("a case with the origin %q is native", content)
		}
	}
	must(t, os.Remove(at(dir, originName)))
	if native(db, sid) {
		t.Error("a case without an origin is native")
	}
	// Another machine.
	db.origin.Machine = strings.Repeat("0", 32)
	must(t, db.Adopt(t.Context(), sid))
	if native(openDB(t, dir, Options{}), sid) {
		t.Error("a case of another machine is native")
	}
}

// TestEach: the same values as List, in order, as far as they are wanted; one that is
// deleted on the way is left out, and others may use the scope meanwhile.
func TestEach(t *testing.T) {
	db := openDB(t, tempDir(t), Options{})
	var writes []store.Write
	for i := range 3*eachStep + 1 {
		writes = append(writes, write(fmt.Sprintf("a/%04d", i), fmt.Sprint(i)))
	}
	commit(t, db, append(writes, write("b/1", "1")))
	n := 0
	last := ""
	must(t, db.Each(t.Context(), sid, "a/", func(v store.Value) bool {
		if v.Key.Name <= last || string(v.Data) != fmt.Sprint(n) {
			t.Errorf("%s after %s: %s, want %d", v.Key.Name, last, v.Data, n)
		}
		last = v.Key.Name
		n++
		if n == 1 {
			commit(t, db, []store.Write{{Key: store.Key{Scope: sid, Name: fmt.Sprintf("a/%04d", 3*eachStep)}}}) // a deletion while it runs
		}
		return true
	}))
	if n != 3*eachStep {
		t.Errorf("%d values", n)
	}
	n = 0
	must(t, db.Each(t.Context(), sid, "a/", func(store.Value) bool { n++; return n < 5 }))
	must(t, db.Each(t.Context(), sid, "none/", func(store.Value) bool { t.Error("nothing is there"); return true }))
	if n != 5 {
		t.Errorf("%d values although it was told to end", n)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := db.Each(ctx, sid, "a/", func(store.Value) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}

// TestManyNames: one directory with many values lists in order.
func TestManyNames(t *testing.T) {
	db := openDB(t, tempDir(t), Options{})
	var writes []store.Write
	var want []string
	for i := range 300 {
		name := fmt.Sprintf("%c/%d", 'a'+i%3, i)
		writes = append(writes, write(name, "1"))
		want = append(want, name)
	}
	commit(t, db, writes)
	sort.Strings(want)
	values, err := db.List(t.Context(), sid, "")
	must(t, err)
	var got []string
	for _, v := range values {
		got = append(got, v.Key.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
