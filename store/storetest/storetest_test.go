package storetest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ghostbot/store"
)

// model is the smallest store that keeps every promise, in memory. It shows
// that the suite can be passed; with a defect, that the suite finds it.
type model struct {
	mu       sync.Mutex
	defect   string
	values   map[store.Key]store.Value
	versions int
	lines    map[string][]store.Line
	leases   map[string]store.Lease
	watchers map[string][]chan struct{}
}

func newModel(defect string) *model {
	return &model{
		defect: defect, values: map[store.Key]store.Value{}, lines: map[string][]store.Line{},
		leases: map[string]store.Lease{}, watchers: map[string][]chan struct{}{},
	}
}

func (m *model) has(defect string) bool { return m.defect == defect }

func (m *model) check(ctx context.Context, err error) error {
	if ctx.Err() != nil && !m.has("ignores context") {
		return store.NotDone(ctx.Err())
	}
	return err
}

func (m *model) Get(ctx context.Context, k store.Key) (store.Value, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(ctx, k.Check()); err != nil {
		return store.Value{}, err
	}
	v, ok := m.values[k]
	if !ok {
		return store.Value{}, store.ErrNotFound
	}
	return v, nil
}

func (m *model) Put(ctx context.Context, k store.Key, data []byte, want store.Version) (store.Version, error) {
	if err := errors.Join(k.Check(), store.CheckData(k, data)); err != nil {
		return "", err
	}
	c := store.Commit{Scope: k.Scope, Guards: []store.Guard{{Key: k, Version: want}}, Writes: []store.Write{{Key: k, Data: data}}}
	if m.has("put ignores the version") {
		c.Guards = nil
	}
	if err := m.Commit(ctx, c); err != nil {
		return "", err
	}
	v, err := m.Get(ctx, k)
	return v.Version, err
}

func (m *model) Once(ctx context.Context, k store.Key, data []byte) (store.Value, bool, error) {
	if m.has("once is two steps") {
		if v, err := m.Get(ctx, k); err == nil {
			return v, false, nil
		}
		time.Sleep(time.Millisecond)
		v, _ := m.Get(ctx, k)
		_, err := m.Put(ctx, k, data, v.Version)
		v, _ = m.Get(ctx, k)
		return v, true, err
	}
	_, err := m.Put(ctx, k, data, store.Absent)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return store.Value{}, false, err
	}
	v, errGet := m.Get(ctx, k)
	return v, err == nil, errGet
}

func (m *model) Commit(ctx context.Context, c store.Commit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(ctx, c.Check()); err != nil {
		if m.has("accepts anything") {
			return nil
		}
		return store.NotDone(err)
	}
	if err := m.fenced(c.Scope, c.Fence); err != nil {
		return err
	}
	for _, g := range c.Guards {
		if !g.Before.IsZero() && !time.Now().Before(g.Before) && !m.has("no deadline") {
			return &store.GuardError{Why: "too late"}
		}
	}
	fresh, followErr := m.fresh(c)
	if followErr == nil && len(c.Lines) > 0 && len(fresh) == 0 && m.applied(c.Writes) && !m.has("no repetition") {
		return nil
	}
	if m.has("half a commit") {
		m.write(c.Writes)
	}
	for _, g := range c.Guards {
		if g.Before.IsZero() {
			if have := m.values[g.Key].Version; have != g.Version {
				why := "changed"
				if g.Version == store.Absent {
					why = "exists"
				}
				return &store.GuardError{Key: g.Key, Why: why}
			}
		}
	}
	if m.has("values before lines") {
		m.write(c.Writes)
	}
	if followErr != nil {
		return followErr
	}
	m.write(c.Writes)
	m.lines[c.Scope] = append(m.lines[c.Scope], fresh...)
	if n := len(m.lines[c.Scope]); m.has("forgets lines") && n > 2 {
		m.lines[c.Scope] = m.lines[c.Scope][n-2:]
	}
	m.signal(c.Scope)
	return nil
}

func (m *model) fenced(scope string, fence uint64) error {
	l := m.leases[scope]
	expired := !time.Now().Before(l.Expires) && !m.has("fence without expiry")
	old := l.Fence != fence && !(m.has("any old fence") && fence < l.Fence)
	if fence != 0 && (old || expired) {
		return &store.GuardError{Why: "fence"}
	}
	if fence == 0 && m.has("fences people") && l.Fence != 0 {
		return &store.GuardError{Why: "fence"}
	}
	return nil
}

func (m *model) fresh(c store.Commit) (fresh []store.Line, err error) {
	tails := map[string]string{}
	for _, l := range m.lines[c.Scope] {
		tails[l.Journal] = l.Hash
	}
	for _, l := range c.Lines {
		there := false
		for _, have := range m.lines[c.Scope] {
			same := have.Journal == l.Journal && have.N == l.N && have.Hash == l.Hash
			there = there || same && (bytes.Equal(have.Data, l.Data) || m.has("same number is same line"))
		}
		switch {
		case there && !m.has("no same line"):
			continue
		case !l.Follows(tails[l.Journal]) && !m.has("any line"):
			return nil, &store.GuardError{Why: "journal moved on"}
		}
		tails[l.Journal] = l.Hash
		fresh = append(fresh, l)
	}
	return fresh, nil
}

func (m *model) applied(writes []store.Write) bool {
	for _, w := range writes {
		if v, ok := m.values[w.Key]; ok != (w.Data != nil) || !bytes.Equal(v.Data, w.Data) {
			return false
		}
	}
	return true
}

func (m *model) write(writes []store.Write) {
	for _, w := range writes {
		if w.Data == nil {
			if !m.has("keeps what is deleted") {
				delete(m.values, w.Key)
			}
			continue
		}
		m.versions++
		data := bytes.Clone(w.Data)
		if m.has("compacts values") {
			data = bytes.TrimSpace(data)
		}
		m.values[w.Key] = store.Value{Key: w.Key, Data: data, Version: store.Version(strconv.Itoa(m.versions))}
	}
}

func (m *model) signal(scope string) {
	if m.has("no signal") {
		return
	}
	for _, c := range m.watchers[scope] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (m *model) List(ctx context.Context, scope, prefix string) ([]store.Value, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(ctx, store.CheckScope(scope)); err != nil {
		return nil, err
	}
	var all []store.Value
	for k, v := range m.values {
		segment := strings.TrimSuffix(prefix, "/") == prefix && prefix != "" && m.has("prefix of segments")
		if k.Scope == scope && strings.HasPrefix(k.Name, prefix) && (!segment || strings.HasPrefix(k.Name, prefix+"/")) {
			all = append(all, v)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Key.Name < all[j].Key.Name })
	return all, nil
}

func (m *model) Scopes(ctx context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(ctx, nil); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for k := range m.values {
		seen[k.Scope] = true
	}
	for scope := range m.lines {
		seen[scope] = seen[scope] || len(m.lines[scope]) > 0
	}
	var all []string
	for scope, some := range seen {
		if some {
			all = append(all, scope)
		}
	}
	sort.Strings(all)
	return all, nil
}

func (m *model) Lines(ctx context.Context, scope string, after uint64) ([]store.Line, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(ctx, store.CheckScope(scope)); err != nil {
		return nil, err
	}
	var all []store.Line
	for _, l := range m.lines[scope] {
		if l.N > after || l.N == after && m.has("lines from, not after") {
			all = append(all, l)
		}
	}
	if !m.has("lines as written") {
		sort.SliceStable(all, func(i, j int) bool { return all[i].N < all[j].N })
	}
	return all, nil
}

func (m *model) Watch(ctx context.Context, scope string) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := make(chan struct{}, 1)
	m.watchers[scope] = append(m.watchers[scope], c)
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for i, have := range m.watchers[scope] {
			if have == c {
				m.watchers[scope] = append(m.watchers[scope][:i:i], m.watchers[scope][i+1:]...)
			}
		}
		if !m.has("watch never closes") {
			close(c)
		}
	})
	return c
}

func (m *model) Acquire(ctx context.Context, scope, owner string, ttl time.Duration) (store.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := store.Lease{Scope: scope, Owner: owner, TTL: ttl}
	if err := m.check(ctx, store.CheckLease(l)); err != nil {
		return store.Lease{}, err
	}
	old := m.leases[scope]
	if time.Now().Before(old.Expires) && old.Owner != owner && !m.has("two holders") {
		return store.Lease{}, store.ErrHeld
	}
	l.Fence, l.Expires = old.Fence+1, time.Now().Add(ttl)
	if m.has("fence stands still") {
		l.Fence = 1
	}
	m.leases[scope] = l
	return l, nil
}

func (m *model) Renew(ctx context.Context, l store.Lease) (store.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, err := m.held(ctx, l)
	if err != nil {
		return store.Lease{}, err
	}
	have.Expires = time.Now().Add(have.TTL)
	m.leases[l.Scope] = have
	return have, nil
}

func (m *model) held(ctx context.Context, l store.Lease) (store.Lease, error) {
	if err := m.check(ctx, nil); err != nil {
		return l, err
	}
	have := m.leases[l.Scope]
	expired := !time.Now().Before(have.Expires) && !m.has("renews the dead")
	if have.Fence != l.Fence || have.Owner != l.Owner || expired {
		return l, store.ErrFenced
	}
	return have, nil
}

func (m *model) Release(ctx context.Context, l store.Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, err := m.held(ctx, l)
	if err != nil && !(m.has("anybody releases") && ctx.Err() == nil) {
		return err
	}
	have.Expires = time.Time{}
	if m.has("release forgets the fence") {
		have.Fence = 0
	}
	m.leases[l.Scope] = have
	return nil
}

func (m *model) Now(ctx context.Context) (time.Time, error) {
	if m.has("a clock that stands") {
		return time.Unix(1_800_000_000, 0), ctx.Err()
	}
	return time.Now(), m.check(ctx, nil)
}

func TestModel(t *testing.T) {
	defect := os.Getenv("GHOST_STORE_DEFECT")
	Run(t, func(t *testing.T, clients int) []store.DB {
		m := newModel(defect)
		dbs := make([]store.DB, clients)
		for i := range dbs {
			dbs[i] = m
		}
		return dbs
	}, Options{TTL: 120 * time.Millisecond})
}

// TestDefects runs the suite on models that break one promise each. The named
// test must notice.
func TestDefects(t *testing.T) {
	for defect, test := range map[string]string{
		"ignores context":           "context",
		"put ignores the version":   "get and put",
		"once is two steps":         "once race",
		"accepts anything":          "invalid commits",
		"no deadline":               "guard before",
		"no repetition":             "same commit again",
		"half a commit":             "commit is all or nothing",
		"values before lines":       "commit is all or nothing",
		"forgets lines":             "lines after",
		"fence without expiry":      "lease expires",
		"any old fence":             "lease of the same owner",
		"fences people":             "people are not fenced",
		"same number is same line":  "same line again",
		"no same line":              "same line again",
		"any line":                  "lines continue their journal",
		"keeps what is deleted":     "commit deletes",
		"compacts values":           "bytes are kept",
		"no signal":                 "watch",
		"prefix of segments":        "list",
		"lines from, not after":     "lines after",
		"lines as written":          "lines after",
		"watch never closes":        "watch",
		"two holders":               "lease race",
		"fence stands still":        "fence grows over release",
		"renews the dead":           "lease renewed",
		"anybody releases":          "lease",
		"release forgets the fence": "fence grows over release",
		"a clock that stands":       "now",
	} {
		t.Run(defect, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestModel$", "-test.v")
			cmd.Env = append(os.Environ(), "GHOST_STORE_DEFECT="+defect)
			out, err := cmd.CombinedOutput()
			name := "--- FAIL: TestModel/" + strings.ReplaceAll(test, " ", "_") + " "
			if err == nil || !strings.Contains(string(out), name) {
				t.Errorf("the suite did not fail in %q (%v):\n%s", test, err, out)
			}
		})
	}
}
