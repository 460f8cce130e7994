package factor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ghostbot/store"
	"ghostbot/store/file"
)

// The SHA-1 rows of RFC 6238, appendix B, which have eight digits: a code of six is
// their end, because both are the same number modulo a power of ten.
func TestRFC6238(t *testing.T) {
	secret := []byte("12345678901234567890")
	for unix, want := range map[int64]string{
		59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924", 2000000000: "69279037", 20000000000: "65353130",
	} {
		if got := Code(secret, Counter(time.Unix(unix, 0))); got != want[2:] {
			t.Errorf("at %d: %s, want the end of %s", unix, got, want)
		}
	}
}

// RFC 4226, appendix D.
func TestRFC4226(t *testing.T) {
	want := []string{"755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"}
	for i, w := range want {
		if got := Code([]byte("12345678901234567890"), uint64(i)); got != w {
			t.Errorf("counter %d: %s, want %s", i, got, w)
		}
	}
}

var secret = []byte("12345678901234567890")

func TestTake(t *testing.T) {
	now := time.Date(2026, 3, 14, 10, 0, 10, 0, time.UTC)
	code := func(steps int) string { return Code(secret, Counter(now)+uint64(steps)) }
	for _, tt := range []struct {
		name    string
		s       state
		code    string
		why     string // "": counts
		changed bool
	}{
		{"the code of now", state{}, code(0), "", true},
		{"one step ago", state{}, code(-1), "", true},
		{"one step ahead", state{}, code(1), "", true},
		{"two steps ago", state{}, code(-2), "Wrong code (1 of 5", true},
		{"two steps ahead", state{}, code(2), "Wrong code (1 of 5", true},
		{"used", state{Last: Counter(now)}, code(0), "used already", false},
		{"older than the one that was used", state{Last: Counter(now) + 1}, code(0), "used already", false},
		{"the next after a used one", state{Last: Counter(now)}, code(1), "", true},
		{"the fifth wrong one", state{Wrong: []time.Time{now, now, now, now}}, code(9), "Too many", true},
		{"the fifth wrong one, slowly", state{Wrong: []time.Time{now.Add(1 - Window), now.Add(1 - Window), now.Add(1 - Window), now.Add(1 - Window)}}, code(9), "Too many", true},
		{"four wrong ones long ago", state{Wrong: []time.Time{now.Add(-Window), now.Add(-Window), now.Add(-Window), now.Add(-Window)}}, code(9), "(1 of 5", true},
		{"the right one while nobody is asked", state{Until: now.Add(1)}, code(0), "Too many", false},
		{"the right one after that", state{Until: now, Locks: 3}, code(0), "", true},
	} {
		s := tt.s
		why, changed := s.take(secret, tt.code, now)
		if (why == "") != (tt.why == "") || !strings.Contains(why, tt.why) || changed != tt.changed {
			t.Errorf("%s: %q, %v", tt.name, why, changed)
		}
		if why == "" && (s.Last == 0 || len(s.Wrong) > 0 || s.Locks > 0) {
			t.Errorf("%s: left %+v", tt.name, s)
		}
	}
}

// desk is a file of secrets and a store.
func desk(t *testing.T) (Codes, *file.DB) {
	t.Helper()
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	name := filepath.Join(t.TempDir(), "totp")
	if err := os.WriteFile(name, []byte("# approvers\nU0ONE "+encoding.EncodeToString(secret)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Codes{DB: db, File: name}, db
}

func (c Codes) try(t *testing.T, user, code string) string {
	t.Helper()
	why, err := c.Check(t.Context(), user, code)
	if err != nil {
		t.Fatal(err)
	}
	return why
}

func current() string { return Code(secret, Counter(time.Now())) }

func TestCheck(t *testing.T) {
	c, db := desk(t)
	for _, bad := range []string{"", " ", "12345", "1234567", "12a456", "١٢٣٤٥٦", "-12345"} {
		if why := c.try(t, "U0ONE", bad); !strings.Contains(why, "six digits") {
			t.Errorf("%q: %q", bad, why)
		}
	}
	if why := c.try(t, "U0TWO", "123456"); !strings.Contains(why, "none is enrolled") || !strings.Contains(why, "Whoever runs this bot") {
		t.Errorf("nobody enrolled: %q", why)
	}
	code := current()
	if why := c.try(t, "U0ONE", code[:3]+" "+code[3:]); why != "" {
		t.Errorf("the right code: %q", why)
	}
	if why := c.try(t, "U0ONE", code); !strings.Contains(why, "used already") {
		t.Errorf("again: %q", why)
	}
	v, err := db.Get(t.Context(), Key("U0ONE"))
	if err != nil || strings.Contains(string(v.Data), code) || strings.Contains(string(v.Data), encoding.EncodeToString(secret)) {
		t.Errorf("stored: %s, %v", v.Data, err)
	}
	os.Chmod(c.File, 0o640)
	if why := c.Enrolled("U0ONE"); !strings.Contains(why, "could not be read") || strings.Contains(why, c.File) {
		t.Errorf("a file that others may read: %q", why)
	}
}

// Whoever guesses gets five tries, however many are made at the same moment, and
// through however many processes: what counts is in the store.
func TestGuessing(t *testing.T) {
	c, _ := desk(t)
	wrong := Code(secret, Counter(time.Now())+1000)
	var mu sync.Mutex
	said := map[string]int{}
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			why, err := c.Check(context.Background(), "U0ONE", wrong)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				why = err.Error()
			}
			said[strings.Fields(why)[0]]++
		})
	}
	wg.Wait()
	if said["Wrong"] != Tries-1 || said["Too"] != 40-(Tries-1) || len(said) != 2 {
		t.Errorf("%v", said)
	}
	if why := c.try(t, "U0ONE", current()); !strings.Contains(why, "Too many") {
		t.Errorf("the right code afterwards: %q", why)
	}
}

// clocked is a store with a clock of the test's own.
type clocked struct {
	store.DB
	now *time.Time
}

func (c clocked) Now(context.Context) (time.Time, error) { return *c.now, nil }

// Each lock is longer than the one before, in whatever process and after a restart; it
// says how long it is. A right code starts over.
func TestLocksGetLonger(t *testing.T) {
	dir := t.TempDir()
	c, db := desk(t)
	db.Close()
	now := time.Date(2026, 3, 14, 10, 0, 10, 0, time.UTC)
	restart := func() (stop func() error) {
		again, err := file.Open(dir, file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c.DB = clocked{again, &now}
		return again.Close
	}
	right := func() string { return c.try(t, "U0ONE", Code(secret, Counter(now))) }
	lockOut := func(want time.Duration) {
		t.Helper()
		stop := restart()
		for range Tries - 1 {
			if why := c.try(t, "U0ONE", Code(secret, Counter(now)+1000)); !strings.HasPrefix(why, "Wrong code") {
				t.Fatalf("a wrong code: %q", why)
			}
		}
		why, until := c.try(t, "U0ONE", Code(secret, Counter(now)+1000)), now.Add(want)
		if said := fmt.Sprintf("for %d minutes, until %s", int(want.Minutes()), until.Format("15:04:05 UTC")); !strings.Contains(why, said) {
			t.Errorf("the fifth says %q, want %q", why, said)
		}
		stop()
		stop = restart()
		defer stop()
		now = until.Add(-1)
		if again := right(); again != why {
			t.Errorf("just before its end after a restart: %q, want %q", again, why)
		}
		now = until
	}
	for _, want := range []time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour, time.Hour} {
		lockOut(want)
	}
	stop := restart()
	if why := right(); why != "" {
		t.Fatalf("the right code after an hour: %q", why)
	}
	stop()
	lockOut(5 * time.Minute)
}

// Whoever runs the bot lifts a lock in the file, whatever the clock of that machine says: it counts once it is journaled, for
// what was before it and nothing later, and no used code counts again.
func TestUnlock(t *testing.T) {
	for _, off := range []time.Duration{0, -20 * time.Minute, 20 * time.Minute, 365 * 24 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) { unlockBy(t, off) })
	}
}

// unlockBy unlocks on a machine whose clock is off the store's.
func unlockBy(t *testing.T, off time.Duration) {
	c, db := desk(t)
	now := time.Date(2026, 3, 14, 10, 0, 10, 0, time.UTC)
	c.DB = clocked{db, &now}
	var journaled []Lifted
	var away error
	c.Lifted = func(_ context.Context, l Lifted) error {
		if away == nil {
			journaled = append(journaled, l)
		}
		return away
	}
	code := func(steps uint64) string { return Code(secret, Counter(now)+steps) }
	lockOut := func() (until time.Time) {
		t.Helper()
		for range Tries {
			c.try(t, "U0ONE", code(1000))
		}
		if why := c.try(t, "U0ONE", code(0)); !strings.HasPrefix(why, "Too many") {
			t.Fatalf("not locked: %q", why)
		}
		return now.Add(lock(1))
	}
	unlock := func(at time.Time) {
		t.Helper()
		if err := Unlock(c.File, "U0ONE", at); err != nil {
			t.Fatal(err)
		}
	}
	used := code(0)
	if why := c.try(t, "U0ONE", used); why != "" {
		t.Fatal(why)
	}
	until := lockOut()
	now = now.Add(time.Second)
	mark := now.Add(off)
	unlock(mark)
	away = errors.New("register is away")
	if why, err := c.Check(t.Context(), "U0ONE", code(1)); why != "" || !errors.Is(err, away) {
		t.Errorf("lifted, and not journaled: %q, %v", why, err)
	}
	away = nil
	if why := c.try(t, "U0ONE", used); !strings.Contains(why, "was used already") {
		t.Errorf("a used code after it: %q", why)
	}
	if why := c.try(t, "U0ONE", code(1)); why != "" {
		t.Errorf("the right code after it: %q", why)
	}
	if len(journaled) != 1 || journaled[0].User != "U0ONE" || !journaled[0].At.Equal(mark) || !journaled[0].Lock.Equal(until) {
		t.Errorf("journaled %+v", journaled)
	}
	now = now.Add(time.Minute)
	lockOut() // the next lock is not lifted by that
	if len(journaled) != 1 {
		t.Errorf("journaled %+v", journaled)
	}
	unlock(now.Add(-time.Hour)) // on another machine
	if why := c.try(t, "U0ONE", code(0)); why != "" || len(journaled) != 2 {
		t.Errorf("unlocked again, by an earlier time: %q, %+v", why, journaled)
	}
	lockOut()
	unlock(mark) // a process with an older copy of the file
	if why := c.try(t, "U0ONE", code(1)); !strings.HasPrefix(why, "Too many") || len(journaled) != 2 {
		t.Errorf("an earlier mark counts again: %q, %+v", why, journaled)
	}
	for i := range 2 * maxEarlier {
		unlock(now.Add(time.Duration(i) * time.Nanosecond))
		c.try(t, "U0ONE", code(1000))
	}
	if v, err := db.Get(t.Context(), Key("U0ONE")); err != nil || len(v.Data) > 2000 || len(journaled) != 2+2*maxEarlier {
		t.Errorf("%d bytes are kept (%v), %d journaled", len(v.Data), err, len(journaled))
	}
	if secrets, err := Read(c.File); err != nil || string(secrets["U0ONE"]) != string(secret) {
		t.Errorf("the file has %v, %v", secrets, err)
	}
	if err := Unlock(c.File, "U0NOBODY", now); !errors.Is(err, ErrUnknown) {
		t.Errorf("nobody: %v", err)
	}
}

// A lock that a version without counting left is the first one, and a damaged count is no panic.
func TestLocksOfOthers(t *testing.T) {
	for n, want := range map[int]time.Duration{-7: locks[0], 0: locks[0], 1: locks[0], 2: locks[1], 3: locks[2], 1 << 40: locks[2]} {
		if got := lock(n); got != want {
			t.Errorf("lock %d takes %s, want %s", n, got, want)
		}
	}
	now := time.Date(2026, 3, 14, 10, 0, 10, 0, time.UTC)
	s := state{Until: now.Add(time.Minute)}
	if why, _ := s.take(secret, "123456", now); !strings.Contains(why, "for 5 minutes, until 10:01:10 UTC") || !strings.Contains(why, "cost 15 minutes") {
		t.Errorf("%q", why)
	}
}

// The same code at the same moment counts once.
func TestCodeCountsOnce(t *testing.T) {
	c, _ := desk(t)
	code := current()
	counts := make(chan string, 20)
	var wg sync.WaitGroup
	for range cap(counts) {
		wg.Go(func() {
			why, err := c.Check(context.Background(), "U0ONE", code)
			counts <- why + fmt.Sprint(err)
		})
	}
	wg.Wait()
	close(counts)
	n := 0
	for got := range counts {
		if got == "<nil>" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("it counted %d times", n)
	}
}

// gone is a store that does not answer.
type gone struct{ store.DB }

func (gone) Now(context.Context) (time.Time, error) { return time.Time{}, errors.New("store is away") }

func TestStoreIsAway(t *testing.T) {
	c, db := desk(t)
	c.DB = gone{db}
	if why, err := c.Check(t.Context(), "U0ONE", "123456"); err == nil {
		t.Errorf("%q without a store", why)
	}
	c.DB = db
	if _, err := db.Put(t.Context(), Key("U0ONE"), []byte(`{"last":"x"}`), store.Absent); err != nil {
		t.Fatal(err)
	}
	if why, err := c.Check(t.Context(), "U0ONE", current()); err == nil {
		t.Errorf("%q with a damaged value", why)
	}
}

func TestEnrol(t *testing.T) {
	name := filepath.Join(t.TempDir(), "totp")
	a, err := Enrol(name, "U0ONE", false)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if !strings.Contains(a.URI, "otpauth://totp/ghostbot:U0ONE?secret="+a.Secret+"&issuer=ghostbot") || len(a.Secret) != 32 {
		t.Errorf("%+v", a)
	}
	if _, err := Enrol(name, "U0ONE", false); !errors.Is(err, ErrEnrolled) {
		t.Errorf("again: %v", err)
	}
	b, err := Enrol(name, "U0TWO", false)
	if err != nil || b.Secret == a.Secret {
		t.Fatalf("%+v, %v", b, err)
	}
	c, err := Enrol(name, "U0ONE", true)
	if err != nil || c.Secret == a.Secret {
		t.Fatalf("%+v, %v", c, err)
	}
	got, err := Read(name)
	if err != nil || len(got) != 2 || encoding.EncodeToString(got["U0ONE"]) != c.Secret {
		t.Errorf("%v, %v", len(got), err)
	}
	if err := Remove(name, "U0TWO"); err != nil {
		t.Error(err)
	}
	if err := Remove(name, "U0TWO"); !errors.Is(err, ErrUnknown) {
		t.Errorf("removed twice: %v", err)
	}
	if got, err := Read(name); err != nil || len(got) != 1 {
		t.Errorf("%d, %v", len(got), err)
	}
	if _, err := Enrol(name, "S0GROUP", false); err == nil {
		t.Error("a group is enrolled")
	}
	if left, _ := os.ReadDir(filepath.Dir(name)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// Two who enrol at the same time are both enrolled.
func TestEnrolAtOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "totp")
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			if _, err := Enrol(name, fmt.Sprintf("U0N%d", i), false); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := Read(name); err != nil || len(got) != 12 {
		t.Errorf("%d enrolled, %v", len(got), err)
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "totp")
	good := "U0ONE " + encoding.EncodeToString(secret)
	for text, want := range map[string]string{
		"U0ONE":                   "line 1 is not",
		"U0ONE notbase32!":        "line 1 is not",
		"\nU0ONE MFRGGZDF":        "line 2 is not", // too short
		"alex " + good[6:]:        "line 1 is not",
		good + "\n" + good:        "has a secret above",
		good + " and more of it ": "line 1 is not",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(name)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), good[6:]) {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := Enrol(name, "U0TWO", true); err == nil {
			t.Errorf("%q is written to", text)
		}
	}
	for text, want := range map[string]string{"\ufeff" + good: "", "\xff\xfeU\x00": "is text in UTF-16"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(name)
		if want == "" && (err != nil || len(got) != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %d, %v", text, len(got), err)
		}
	}
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Read(dir); err == nil {
		t.Error("a directory is read")
	}
}

func TestNothingIsStoredOfASecret(t *testing.T) {
	data, err := json.Marshal(state{Last: 7})
	if err != nil || string(data) != `{"last":7,"until":"0001-01-01T00:00:00Z"}` {
		t.Errorf("%s, %v", data, err)
	}
}

// Whoever enrols somebody leaves the file to its owner.
func TestEnrolKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can enrol in the file of another user")
	}
	name := filepath.Join(t.TempDir(), "totp")
	if _, err := Enrol(name, "U0ONE", false); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(name, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := Enrol(name, "U0TWO", false); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 65534 || st.Gid != 65534 || info.Mode().Perm() != 0o600 {
		t.Errorf("owner %d:%d, mode %04o", st.Uid, st.Gid, info.Mode().Perm())
	}
}
