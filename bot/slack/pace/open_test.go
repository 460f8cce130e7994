package pace

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// At an open gate nobody waits, and nobody is told the same twice all the same.
func TestOpen(t *testing.T) {
	g := Open()
	for i := range 500 {
		if d := g.Post("C1", "a", Normal); d != 0 {
			t.Fatalf("post %d waits %v", i, d)
		}
		if d := g.Edit("a", Idle); d != 0 {
			t.Fatalf("edit %d waits %v", i, d)
		}
	}
	for i, want := range []bool{false, true} {
		if wait, again := g.Whisper("U1"); wait != 0 || again != want {
			t.Errorf("whisper %d: %v, %v", i, wait, again)
		}
	}
}

func TestLocal(t *testing.T) {
	for api, want := range map[string]bool{
		"": false, "https://slack.com/api/": false, "http://127.0.0.1:8480/api/": true, "http://localhost:1/": true, "http://[::1]:1/": true,
		"https://localhost.example.com/": false, "http://127.0.0.1.example.com/": false, "http://192.0.2.1/": false, "://": false,
	} {
		if got := Local(api); got != want {
			t.Errorf("%q: %v", api, got)
		}
	}
}

// A gate is open while the workspace says that it has no rates, if that is to be believed.
func TestWorkspaceWithoutRates(t *testing.T) {
	rates := "none"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if rates != "" {
			w.Header().Set(RatesHeader, rates)
		}
		io.WriteString(w, `{"ok":true}`)
	}))
	defer srv.Close()
	call := func(tr *Transport) {
		t.Helper()
		res, err := (&http.Client{Transport: tr}).Post(srv.URL+"/api/auth.test", "application/x-www-form-urlencoded", nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	waits := func(g *Gate) bool {
		for range 2 * postBurst {
			if g.Post("C1", "a", Urgent) > 0 {
				return true
			}
		}
		return false
	}
	g := NewGate()
	call(&Transport{})
	if !waits(g) {
		t.Error("nobody waits, and nobody was heard")
	}
	tr := &Transport{Free: g}
	for _, tt := range []struct {
		rates string
		wait  bool
	}{{"none", false}, {"", true}, {"none", false}, {"some", true}} {
		rates = tt.rates
		call(tr)
		if got := waits(g); got != tt.wait {
			t.Errorf("rates %q: somebody waits: %v", tt.rates, got)
		}
	}
}
