package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const sid = "ghost_20260314_104512"

// tempDir is a directory in memory where there is one: these tests write a lot
// and are not about the disk.
func tempDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "audit-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// clock is a time source whose every answer is a second later.
func clock() func() time.Time {
	now := time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC)
	return func() time.Time {
		now = now.Add(time.Second)
		return now
	}
}

func open(t testing.TB, o Options) *Log {
	t.Helper()
	l, err := tryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func tryOpen(t testing.TB, o Options) (*Log, error) {
	if o.SID == "" {
		o.SID = sid
	}
	if o.Now == nil {
		o.Now = clock()
	}
	return Open(t.Context(), o)
}

func add(t testing.TB, l *Log, journal, kind string, body any) (uint64, string) {
	t.Helper()
	n, hash, err := l.Journal(journal).Append(t.Context(), kind, body)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return n, hash
}

// fill appends n entries, spread over the three journals.
func fill(t testing.TB, l *Log, n int) {
	t.Helper()
	for i := range n {
		add(t, l, []string{Case, Shell, Shell, Tasks}[i%4], "step", map[string]any{"i": i, "text": "a < b && c > d"})
	}
}

// sample is a directory with a case of 7 entries.
func sample(t testing.TB) string {
	t.Helper()
	dir := tempDir(t)
	fill(t, open(t, Options{Dir: dir}), 7)
	return dir
}

func path(dir, journal string) string { return filepath.Join(dir, FileName(sid, journal)) }

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// verifies checks that a case verifies with n entries.
func verifies(t testing.TB, dir string, n int) Report {
	t.Helper()
	r := Verify(dir, sid, VerifyOptions{})
	if !r.OK || r.Records != n || r.Verified != n || r.FirstBad != nil || r.Why != "" || r.Err != nil {
		t.Errorf("verify: %+v, want ok with %d records", r, n)
	}
	return r
}

// broken checks that a case does not verify, from entry n on, for a reason.
func broken(t testing.TB, dir string, n uint64, why string) {
	t.Helper()
	r := verify(dir, sid, VerifyOptions{}, 0)
	if r.OK || r.FirstBad == nil || *r.FirstBad != n || !strings.Contains(r.Why, why) {
		got, _ := json.Marshal(r)
		t.Errorf("verify: %s, want first_bad %d and %q", got, n, why)
	}
}

// TestGolden is the format as the package comment has it, byte by byte.
func TestGolden(t *testing.T) {
	dir := filepath.Join(tempDir(t), "audit")
	l := open(t, Options{Dir: dir, Fence: 3})
	n1, h1 := add(t, l, Case, "brain", map[string]any{"text": "<a href=\"x\"> & ä \u2028"})
	n2, h2 := add(t, l, Shell, "proposed", json.RawMessage("{ \"argv\" : [\"ip\", \"addr\"] }"))
	n3, h3 := add(t, l, Case, "note", nil)
	want1 := `{"session_id":"ghost_20260314_104512","journal":"case","n":1,"time":"2026-03-14T10:45:13.000000000Z","fence":3,"kind":"brain","body":{"text":"<a href=\"x\"> & ä \u2028"},"prev":"0000000000000000000000000000000000000000000000000000000000000000"`
	want2 := `{"session_id":"ghost_20260314_104512","journal":"shell","n":2,"time":"2026-03-14T10:45:14.000000000Z","fence":3,"kind":"proposed","body":{"argv":["ip","addr"]},"prev":"0000000000000000000000000000000000000000000000000000000000000000"`
	want3 := `{"session_id":"ghost_20260314_104512","journal":"case","n":3,"time":"2026-03-14T10:45:15.000000000Z","fence":3,"kind":"note","body":null,"prev":"` + h1 + `"`
	sum := func(s string) string {
		h := sha256.Sum256([]byte(s))
		return hex.EncodeToString(h[:])
	}
	for i, c := range []struct {
		n          uint64
		hash, want string
	}{{n1, h1, want1}, {n2, h2, want2}, {n3, h3, want3}} {
		if c.n != uint64(i+1) || c.hash != sum(c.want) {
			t.Errorf("entry %d: number %d, hash %s, want %s", i+1, c.n, c.hash, sum(c.want))
		}
	}
	if diff := cmp.Diff(want1+`,"hash":"`+h1+"\"}\n"+want3+`,"hash":"`+h3+"\"}\n", read(t, path(dir, Case))); diff != "" {
		t.Errorf("case (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want2+`,"hash":"`+h2+"\"}\n", read(t, path(dir, Shell))); diff != "" {
		t.Errorf("shell (-want +got):\n%s", diff)
	}
	head := Head{N: 3, Full: sum("ghostbot-head-v1\ncase 3 " + h3 + "\nshell 2 " + h2 + "\n")}
	if got := l.Head(); got != head || got.Short() != head.Full[:32] {
		t.Errorf("head %v, want %v", got, head)
	}
	if r := verifies(t, dir, 3); r.Head != head.Full {
		t.Errorf("verified head %s, want %s", r.Head, head.Full)
	}
	for _, name := range []string{dir, path(dir, Case)} {
		if st, err := os.Stat(name); err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v (%v)", name, st.Mode(), err)
		}
	}
}

func TestGoldenMAC(t *testing.T) {
	dir := tempDir(t)
	key := Key{ID: "2026-a", Secret: []byte(strings.Repeat("k", 32))}
	_, hash := add(t, open(t, Options{Dir: dir, Keys: []Key{key}}), Shell, "intent", 1)
	line := strings.TrimSuffix(read(t, path(dir, Shell)), "\n")
	want := `,"hash":"` + hash + `","kid":"2026-a","mac":"` + mac(key, hash) + `"}`
	if !strings.HasSuffix(line, want) {
		t.Errorf("line %s\nwant the end %s", line, want)
	}
	e, err := Parse([]byte(line))
	if err != nil || e.KeyID != "2026-a" || e.MAC != mac(key, hash) {
		t.Errorf("parsed %+v (%v)", e, err)
	}
}

func TestEntries(t *testing.T) {
	dir := sample(t)
	l := open(t, Options{Dir: dir})
	all, err := l.Entries()
	if err != nil || len(all) != 7 {
		t.Fatalf("%d entries (%v), want 7", len(all), err)
	}
	for i, e := range all {
		if e.N != uint64(i+1) || e.SessionID != sid || e.ID() != fmt.Sprintf("%s_%03d", sid, i+1) {
			t.Errorf("entry %d: %+v", i+1, e)
		}
	}
	for after := range uint64(10) {
		got, err := l.Since(after)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all[min(after, 7):], got); diff != "" && len(got) > 0 {
			t.Errorf("since %d (-want +got):\n%s", after, diff)
		}
	}
	tolerant, err := Read(dir, sid)
	if diff := cmp.Diff(all, tolerant); err != nil || diff != "" {
		t.Errorf("read (%v) (-want +got):\n%s", err, diff)
	}
	sids, err := Sessions(dir)
	if diff := cmp.Diff([]string{sid}, sids); err != nil || diff != "" {
		t.Errorf("sessions (%v):\n%s", err, diff)
	}
}

// TestSinceFindsAnotherLine: a line that is correct in itself, but is not the one
// that was written, is not taken for it.
func TestSinceFindsAnotherLine(t *testing.T) {
	one, other := tempDir(t), tempDir(t)
	l := open(t, Options{Dir: one})
	add(t, l, Case, "note", "approved by U1")
	add(t, open(t, Options{Dir: other}), Case, "note", "approved by U2")
	if es, err := l.Since(0); err != nil || len(es) != 1 {
		t.Fatalf("before: %v, %v", es, err)
	}
	write(t, path(one, Case), read(t, path(other, Case)))
	es, err := l.Since(0)
	var b *BrokenError
	if !errors.As(err, &b) || b.N != 1 || len(es) != 0 {
		t.Errorf("another line of the same length: %v, %v", es, err)
	}
	if _, err := open(t, Options{Dir: one}).Since(0); err != nil {
		t.Errorf("a log opened over it: %v", err)
	}
}

func TestReopenContinues(t *testing.T) {
	dir := tempDir(t)
	for i := range 6 {
		l := open(t, Options{Dir: dir, Fence: uint64(i)})
		if got := l.Head().N; got != uint64(3*i) {
			t.Errorf("opened at entry %d, want %d", got, 3*i)
		}
		fill(t, l, 3)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	verifies(t, dir, 18)
}

func TestRegister(t *testing.T) {
	dir := tempDir(t)
	l := open(t, Options{Dir: dir, SID: Register})
	add(t, l, Register, "opened", map[string]string{"session_id": sid})
	for _, j := range []string{Case, Shell, Tasks, ""} {
		if _, _, err := l.Journal(j).Append(t.Context(), "x", 1); !errors.Is(err, ErrRefused) {
			t.Errorf("append to %q of the register: %v", j, err)
		}
	}
	if r := Verify(dir, Register, VerifyOptions{}); !r.OK || r.Records != 1 {
		t.Errorf("verify: %+v", r)
	}
	write(t, filepath.Join(dir, "register.jsonl"), read(t, filepath.Join(dir, "register.jsonl"))+`{"torn`)
	l = open(t, Options{Dir: dir, SID: Register})
	entries, err := l.Entries()
	if err != nil || len(entries) != 2 || entries[1].Kind != "repair" || entries[1].Journal != Register {
		t.Errorf("after a torn line: %v (%v)", entries, err)
	}
}

func TestConcurrentAppends(t *testing.T) {
	const writers, each = 8, 20
	dir := tempDir(t)
	l := open(t, Options{Dir: dir, Now: time.Now})
	var wg sync.WaitGroup
	seen := make([][]uint64, writers)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				n, _, err := l.Journal([]string{Case, Shell, Tasks}[w%3]).Append(t.Context(), "x", i)
				if err != nil {
					t.Errorf("append: %v", err)
				}
				seen[w] = append(seen[w], n)
				if w == 0 && i%5 == 0 {
					if r := Verify(dir, sid, VerifyOptions{}); !r.OK {
						t.Errorf("verify while others append: %+v", r)
					}
				}
			}
		})
	}
	wg.Wait()
	numbers := map[uint64]bool{}
	for _, s := range seen {
		for i, n := range s {
			if numbers[n] || i > 0 && s[i-1] >= n {
				t.Errorf("number %d twice or out of order", n)
			}
			numbers[n] = true
		}
	}
	verifies(t, dir, writers*each)
}

func TestChanged(t *testing.T) {
	l := open(t, Options{Dir: tempDir(t)})
	c := l.Changed()
	select {
	case <-c:
		t.Fatal("closed before an append")
	default:
	}
	add(t, l, Case, "x", 1)
	<-c
	if l.Changed() == c {
		t.Error("the channel was not renewed")
	}
}

func TestRefusedBeforeAnythingHappens(t *testing.T) {
	dir := tempDir(t)
	l := open(t, Options{Dir: dir})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, appendIt := range map[string]func() error{
		"context ended":   func() error { _, _, err := l.Journal(Case).Append(gone, "x", 1); return err },
		"not JSON":        func() error { _, _, err := l.Journal(Case).Append(t.Context(), "x", func() {}); return err },
		"broken raw":      func() error { _, _, err := l.Journal(Case).Append(t.Context(), "x", json.RawMessage("{")); return err },
		"no kind":         func() error { _, _, err := l.Journal(Case).Append(t.Context(), "", 1); return err },
		"unknown journal": func() error { _, _, err := l.Journal("other").Append(t.Context(), "x", 1); return err },
		"path as journal": func() error { _, _, err := l.Journal("../case").Append(t.Context(), "x", 1); return err },
		"too long": func() error {
			_, _, err := l.Journal(Case).Append(t.Context(), "x", strings.Repeat("x", MaxLine))
			return err
		},
		"refusing via": func() error {
			_, _, err := l.Journal(Case).AppendVia(t.Context(), "x", 1, func(context.Context, Line) error { return refusing{} })
			return err
		},
	} {
		if err := appendIt(); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	if _, err := os.Stat(path(dir, Case)); err == nil {
		t.Error("a refused append made the file")
	}
	if n, _ := add(t, l, Case, "x", 1); n != 1 {
		t.Errorf("the first entry after refusals has number %d", n)
	}
	verifies(t, dir, 1)
}

type refusing struct{}

func (refusing) Error() string { return "guard" }
func (refusing) Refused() bool { return true }

func TestLongestLine(t *testing.T) {
	if raceDetector {
		t.Skip("too slow with the race detector")
	}
	dir := tempDir(t)
	l := open(t, Options{Dir: dir})
	add(t, l, Case, "x", "")
	overhead := len(read(t, path(dir, Case))) - 1
	longest := strings.Repeat("x", MaxLine-overhead)
	add(t, l, Case, "x", longest)
	if _, _, err := l.Journal(Case).Append(t.Context(), "x", longest+"x"); !errors.Is(err, ErrRefused) {
		t.Errorf("one byte more: %v", err)
	}
	verifies(t, dir, 2)
	entries, err := open(t, Options{Dir: dir}).Since(1)
	if err != nil || len(entries) != 1 || len(entries[0].Body) != len(longest)+2 {
		t.Errorf("read back %d entries (%v)", len(entries), err)
	}
	f, err := os.OpenFile(path(dir, Case), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(f, "%s\n", strings.Repeat("y", MaxLine+1))
	f.Close()
	broken(t, dir, 3, "longer than")
	if _, err := tryOpen(t, Options{Dir: dir}); !errors.Is(err, ErrBroken) {
		t.Errorf("open with an oversize line: %v", err)
	}
	if entries, err := Read(dir, sid); err != nil || len(entries) != 2 {
		t.Errorf("read past an oversize line: %d (%v)", len(entries), err)
	}
}

func TestInvalidUTF8InBody(t *testing.T) {
	dir := tempDir(t)
	l := open(t, Options{Dir: dir})
	add(t, l, Case, "x", json.RawMessage("\"a\xffb\""))
	add(t, l, Case, "x", "a\xffb")
	if _, _, err := l.Journal(Case).Append(t.Context(), "x\xff", 1); !errors.Is(err, ErrRefused) {
		t.Errorf("a kind that is not UTF-8: %v", err)
	}
	verifies(t, dir, 2)
	entries, err := l.Entries()
	if err != nil || len(entries) != 2 || string(entries[0].Body) != "\"a\ufffdb\"" {
		t.Errorf("body %s (%v)", entries[0].Body, err)
	}
}

func TestSessionIDs(t *testing.T) {
	for _, bad := range []string{"", ".", "..", "../x", "ghost_2026_1", "ghost_20260314_104512/..", "ghost_20260314_104512-", "ghost_20260314_104512\n", "GHOST_20260314_104512", "ghost_20260314_104512-2-3", "register.jsonl"} {
		dir := tempDir(t)
		if _, err := Open(t.Context(), Options{Dir: dir, SID: bad}); err == nil {
			t.Errorf("open %q: no error", bad)
		}
		if _, err := Read(dir, bad); err == nil || errors.Is(err, os.ErrNotExist) {
			t.Errorf("read %q: %v", bad, err)
		}
		if r := Verify(dir, bad, VerifyOptions{}); r.OK || r.Err == nil || errors.Is(r.Err, os.ErrNotExist) {
			t.Errorf("verify %q: %+v", bad, r)
		}
		if files, _ := os.ReadDir(dir); len(files) != 0 {
			t.Errorf("%q left %v", bad, files)
		}
	}
	for _, good := range []string{"ghost_20260314_104512-2", Register} {
		if _, err := Open(t.Context(), Options{Dir: tempDir(t), SID: good}); err != nil {
			t.Errorf("open %q: %v", good, err)
		}
	}
}

func TestMissingCase(t *testing.T) {
	for _, dir := range []string{tempDir(t), filepath.Join(tempDir(t), "missing")} {
		r := Verify(dir, sid, VerifyOptions{})
		if r.OK || !errors.Is(r.Err, os.ErrNotExist) || !strings.Contains(r.Why, sid) {
			t.Errorf("verify: %+v", r)
		}
		if _, err := Read(dir, sid); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), sid) {
			t.Errorf("read: %v", err)
		}
		if sids, err := Sessions(dir); err != nil || len(sids) != 0 {
			t.Errorf("sessions: %v, %v", sids, err)
		}
	}
}

func TestReportJSON(t *testing.T) {
	dir := sample(t)
	r := Verify(dir, sid, VerifyOptions{})
	got, err := json.Marshal(r)
	want := `{"session_id":"` + sid + `","records":7,"ok":true,"first_bad":null,"why":"","head":"` + r.Head + `","verified":7,"noted_at":null,"macs":false}`
	if err != nil || string(got) != want {
		t.Errorf("report %s (%v)\nwant %s", got, err, want)
	}
}
