package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/cmd/ghostbot/ledger"
	"ghostbot/store"
	"ghostbot/store/file"
	"ghostbot/store/storetest"
)

const sid = "ghost_20260314_104512"

// recorder writes down what it is shown.
type recorder struct {
	mu     sync.Mutex
	lines  []string
	onDisk int
}

func (r *recorder) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) NeedsPast() bool   { return true }
func (r *recorder) Opened(sid string) { r.add("opened %s", sid) }
func (r *recorder) Closed(sid string) { r.add("closed %s", sid) }
func (r *recorder) Entry(e Entry) {
	b, ok := Body[map[string]string](e)
	r.add("%s %s %s past=%v %v %v", e.ID, e.Journal, e.Kind, e.Past, b, ok)
}

func (r *recorder) Writing(string) func() {
	return func() { r.mu.Lock(); defer r.mu.Unlock(); r.onDisk++ }
}

// caseLog opens the journals of a case on a real store.
func caseLog(t *testing.T, db store.DB, dir string) bot.Log {
	t.Helper()
	l, err := db.Acquire(t.Context(), sid, "test", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Release(context.Background(), l) })
	log, err := audit.Open(t.Context(), audit.Options{Dir: dir, SID: sid, Fence: l.Fence, Stream: ledger.Stream{DB: db, Scope: sid, Fence: l.Fence}})
	if err != nil {
		t.Fatal(err)
	}
	return ledger.NewCase(log)
}

func open(t *testing.T) *file.DB {
	t.Helper()
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// A watcher is shown what is durable: what was there, then what comes, in order, and
// not what was refused.
func TestLog(t *testing.T) {
	db, dir := open(t), t.TempDir()
	inner := caseLog(t, db, dir)
	if _, _, err := inner.Journal(audit.Case).Append(t.Context(), "opened", map[string]string{"symptom": "s"}); err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	l, err := Log(sid, inner, r)
	if err != nil {
		t.Fatal(err)
	}
	shell := l.Journal(audit.Shell)
	if _, _, err := shell.Append(t.Context(), "proposed", map[string]string{"command": "c"}); err != nil {
		t.Fatal(err)
	}
	refused := &store.GuardError{Why: "changed"}
	if _, _, err := shell.AppendVia(t.Context(), "intent", map[string]string{}, func(context.Context, store.Line) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("a refusal: %v", err)
	}
	if _, _, err := l.Journal(audit.Case).Append(t.Context(), "odd", 7); err != nil {
		t.Fatal(err)
	}
	l.Close()
	l.Close()
	want := []string{
		"opened " + sid,
		sid + "_001 case opened past=true map[symptom:s] true",
		sid + "_002 shell proposed past=false map[command:c] true",
		sid + "_003 case odd past=false map[] false",
		"closed " + sid,
	}
	if diff := cmp.Diff(want, r.lines); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if r.onDisk != 3 {
		t.Errorf("%d writes ended, want 3: the refused one too", r.onDisk)
	}
}

func TestLogWithoutWatchers(t *testing.T) {
	inner := caseLog(t, open(t), t.TempDir())
	defer inner.Close()
	if l, err := Log(sid, inner); err != nil || l != inner {
		t.Errorf("got %v, %v", l, err)
	}
}

func TestBody(t *testing.T) {
	type body struct {
		A string `json:"a"`
	}
	for name, in := range map[string]any{
		"value": body{"x"}, "pointer": &body{"x"}, "json": json.RawMessage(`{"a":"x"}`), "look-alike": struct {
			A string `json:"a"`
		}{"x"}, "map": map[string]any{"a": "x"},
	} {
		if got, ok := Body[body](NewEntry(Entry{}, in)); !ok || got.A != "x" {
			t.Errorf("%s: got %+v, %v", name, got, ok)
		}
	}
	for name, in := range map[string]any{"broken": json.RawMessage(`{`), "none": nil, "number": 7, "not JSON": make(chan int)} {
		if got, ok := Body[body](NewEntry(Entry{}, in)); got.A != "" || ok && name != "none" {
			t.Errorf("%s: got %+v, %v", name, got, ok)
		}
	}
}

// A store that is timed is the same store: it passes the suite of all stores.
func TestDBIsTheSameStore(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	told := func(operation string, took time.Duration, _ error) {
		mu.Lock()
		defer mu.Unlock()
		seen[operation]++
	}
	lines := map[string]uint64{}
	stored := func(scope string, n uint64) {
		mu.Lock()
		defer mu.Unlock()
		lines[scope] = max(lines[scope], n)
	}
	storetest.Run(t, func(t *testing.T, clients int) []store.DB {
		dir := t.TempDir()
		var dbs []store.DB
		for range clients {
			db, err := file.Open(dir, file.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			dbs = append(dbs, DB(db, told, stored))
		}
		return dbs
	}, storetest.Options{HolderWins: true, Resign: func(t *testing.T, db store.DB) { db.(*timed).DB.(*file.DB).Close() }})
	for _, op := range []string{"get", "put", "once", "commit", "list", "scopes", "lines", "acquire", "renew", "release", "now"} {
		if seen[op] == 0 {
			t.Errorf("%s was not told", op)
		}
	}
	if len(lines) == 0 {
		t.Error("no line was told")
	}
}

type answers struct{ err error }

func (answers) Name() string { return "a" }
func (a answers) Next(context.Context, agent.View) (agent.Turn, error) {
	return agent.Turn{Text: "t"}, a.err
}

func TestBrain(t *testing.T) {
	for _, want := range []error{nil, errors.New("no answer")} {
		var told error
		n := 0
		b := Brain(answers{want}, func(t agent.Turn, _ time.Duration, err error) { n, told = n+len(t.Text), err })
		turn, err := b.Next(t.Context(), agent.View{})
		if err != want || told != want || turn.Text != "t" || n != 1 || b.Name() != "a" {
			t.Errorf("got %v %v %+v %d %s", err, told, turn, n, b.Name())
		}
	}
}

func TestTransport(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/users.info":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/api/chat.update":
			io.WriteString(w, "{ \"ok\" : false, \"error\":\"x\"}"+strings.Repeat(" ", 1000))
		default:
			io.WriteString(w, `{"ok":true}`)
		}
	}))
	url := srv.URL
	var got []Call
	client := &http.Client{Transport: Transport(nil, func(c Call) { c.Took = 0; got = append(got, c) })}
	for _, path := range []string{"/api/auth.test", "/api/users.info", "/api/chat.update?token=secret"} {
		resp, err := client.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		resp.Body.Close()
	}
	srv.Close()
	if _, err := client.Get(url + "/api/auth.test"); err == nil {
		t.Error("nobody listens, and it answers")
	}
	want := []Call{{Method: "auth.test", Status: 200}, {Method: "users.info", Status: 429}, {Method: "chat.update", Status: 200, Refused: true}, {Method: "auth.test"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// sleeper is a recorder that tells pauses apart.
type sleeper struct{ recorder }

func (s *sleeper) Paused(sid string) { s.add("paused %s", sid) }
func (s *sleeper) Lapsed(sid string) { s.add("lapsed %s", sid) }

// TestPause: a log that is closed after a pause is not given up, for who tells them apart.
func TestPause(t *testing.T) {
	db := open(t)
	tells, plain := &sleeper{}, &recorder{}
	l, err := Log(sid, caseLog(t, db, t.TempDir()), tells, plain)
	if err != nil {
		t.Fatal(err)
	}
	l.(bot.Pausing).Pause()
	l.Close()
	if got, want := strings.Join(tells.lines, ", "), "opened "+sid+", paused "+sid; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := strings.Join(plain.lines, ", "), "opened "+sid+", closed "+sid; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
