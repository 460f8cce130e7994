package ops

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"ghostbot/store"
	"ghostbot/store/file"
)

type front struct {
	deaf string
	up   bool
	mute string
}

func (f *front) Deaf() string    { return f.deaf }
func (f *front) Connected() bool { return f.up }
func (f *front) Mute() string    { return f.mute }

// slow is a store that may hang or have gone.
type slow struct {
	store.DB
	hang bool
	err  error
	full error // of what is written
}

func (s *slow) Now(ctx context.Context) (time.Time, error) {
	if s.hang {
		<-ctx.Done()
		return time.Time{}, ctx.Err()
	}
	return time.Time{}, s.err
}

func (s *slow) Commit(context.Context, store.Commit) error { return s.full }

func get(t *testing.T, addr, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + addr + path)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Status[:3] + " " + string(b)
}

func TestProbes(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	o, err := New(Config{HealthAddr: addr, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	f, db := &front{}, &slow{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() { o.Run(ctx, db, func() string { return "" }); close(ended) }()
	for end := time.Now().Add(5 * time.Second); strings.Contains(get(t, addr, "/healthz"), "refused") && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	for _, step := range []struct {
		do             func()
		healthz, ready string
	}{
		{func() {}, "200 ok\n", "503 slack: not connected\n"},
		{func() { o.Front(f) }, "200 ok\n", "503 slack: not connected\n"},
		{func() { f.up = true }, "200 ok\n", "200 ok\n"},
		{func() { f.up, f.deaf = false, "not connected for 1m1s" }, "503 slack: not connected for 1m1s\n", "503 slack: not connected\n"},
		{func() { f.up, f.deaf = true, ""; db.err = errors.New("no route") }, "200 ok\n", "503 store: does not answer: no route\n"},
		{func() { db.err, f.mute = nil, "the scope chat:write is missing" }, "200 ok\n", "503 slack scopes: the scope chat:write is missing\n"},
		{func() { db.hang, f.mute = true, "" }, "200 ok\n", "503 store: does not answer: context deadline exceeded\n"},
		{func() { db.hang, db.err = false, nil }, "200 ok\n", "200 ok\n"},
		{func() { o.Drain() }, "200 ok\n", "503 bot: told to stop, drains\n"},
	} {
		step.do()
		if h, r := get(t, addr, "/healthz"), get(t, addr, "/readyz"); h != step.healthz || r != step.ready {
			t.Errorf("got %q and %q, want %q and %q", h, r, step.healthz, step.ready)
		}
		gauge := map[bool]string{true: "\nghostbot_ready 1\n", false: "\nghostbot_ready 0\n"}[step.ready == "200 ok\n"]
		if text := get(t, addr, "/metrics"); !strings.Contains(text, gauge) {
			t.Errorf("%q and no %q in %s", step.ready, gauge, text)
		}
	}
	if text := get(t, addr, "/metrics"); !strings.Contains(text, "\nghostbot_slack_connected 1\n") {
		t.Errorf("metrics: %s", text)
	}
	stop()
	<-ended
}

// A store that answers and takes no write, and a disk that takes nothing, are not ready, until they take some again.
func TestTaking(t *testing.T) {
	db, dir := &slow{full: errors.New("OOM command not allowed")}, t.TempDir()
	wrong := taking(t.Context(), db, []string{dir})
	if why := wrong(); !strings.Contains(why, "the store takes nothing: OOM") {
		t.Errorf("full: %q", why)
	}
	db.full = nil
	if why := wrong(); why != "" {
		t.Errorf("mended: %q", why)
	}
	if why := taking(t.Context(), db, []string{dir, dir + "/gone"})(); !strings.Contains(why, "gone takes nothing") {
		t.Errorf("a directory that is gone: %q", why)
	}
}

// Without an address nothing is wrapped, and what is nil watches nothing.
func TestOff(t *testing.T) {
	off, err := New(Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, o := range []*Ops{nil, off} {
		o.Front(&front{})
		o.Drain()
		o.Run(t.Context(), db, func() string { return "" })
		if got := o.DB(db); got != store.DB(db) {
			t.Errorf("the store is wrapped: %T", got)
		}
		if got := o.Transport(); got != nil {
			t.Errorf("the transport is wrapped: %T", got)
		}
	}
	if _, err := New(Config{HealthAddr: "9090"}); err == nil {
		t.Error("an address that is none is taken")
	}
}
