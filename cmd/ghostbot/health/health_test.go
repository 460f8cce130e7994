package health

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	for addr, ok := range map[string]bool{
		"": true, "127.0.0.1:9090": true, "[::1]:0": true, "localhost:80": true, "192.0.2.7:65535": true,
		":9090": false, "9090": false, "127.0.0.1": false, "127.0.0.1:": false, "127.0.0.1:x": false, "127.0.0.1:70000": false, "127.0.0.1:-1": false,
	} {
		if err := Check(addr); (err == nil) != ok || err != nil && !strings.HasPrefix(err.Error(), Variable+": ") {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

// start serves s until the test ends.
func start(t *testing.T, s *Server) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	for end := time.Now().Add(5 * time.Second); s.Addr() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing listens")
		}
	}
	return "http://" + s.Addr().String()
}

func ask(t *testing.T, method, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", res.StatusCode, strings.TrimSpace(string(b)))
}

func TestPages(t *testing.T) {
	s, err := New("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var deaf atomic.Bool
	s.Watch("slack", func() string {
		if deaf.Load() {
			return "not connected for 61 s"
		}
		return ""
	})
	s.Watch("store", func() string {
		if deaf.Load() {
			return "full"
		}
		return ""
	})
	s.Handle("/more", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "more") }))
	url := start(t, s)
	got := []string{ask(t, "GET", url+"/healthz"), ask(t, "GET", url+"/more"), ask(t, "POST", url+"/healthz"), ask(t, "GET", url+"/other")}
	deaf.Store(true)
	got = append(got, ask(t, "GET", url+"/healthz"))
	deaf.Store(false)
	got = append(got, ask(t, "GET", url+"/healthz"))
	want := []string{"200 ok", "200 more", "405 only GET and HEAD", "404 404 page not found",
		"503 slack: not connected for 61 s\nstore: full", "200 ok"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Without an address nothing listens, and a port that is taken ends nothing.
func TestNothingListens(t *testing.T) {
	off, err := New("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	off.Run(t.Context())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken, err := New(l.Addr().String(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	taken.Run(t.Context())
	if off.Addr() != nil || taken.Addr() != nil {
		t.Error("something listens")
	}
	if _, err := New(":80", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("an address without a host is taken")
	}
}
