package pace

import "testing"

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
