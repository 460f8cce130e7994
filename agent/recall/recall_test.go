package recall

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestSame(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"checkout gets 502 from 127.0.0.1:18080 since 10:40", "http://127.0.0.1:18080/ is slow", true},
		{"checkout gets 502 from 127.0.0.1:18080", "checkout gets 502 from 127.0.0.1:18081", false},
		{"is 192.0.2.7 down?", "192.0.2.7:443 hangs", true},
		{"shop.example.com fails", "SHOP.example.com: certificate error", true},
		{"shop.example.com fails", "pay.example.com fails", false},
		{"everything is slow", "Everything is slow!", true},
		{"everything is slow", "everything is down", false},
		{"", "", false},
		{"https://[2001:db8::1]:8443/ refuses", "[2001:db8::1]:8443 times out", true},
	} {
		if got := Same(tt.a, tt.b); got != tt.want {
			t.Errorf("Same(%q, %q) = %v", tt.a, tt.b, got)
		}
		if got := Same(tt.b, tt.a); got != tt.want {
			t.Errorf("Same(%q, %q) = %v", tt.b, tt.a, got)
		}
	}
}

// TestMatch shows the points of each reason, and that they are the same both ways.
func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		name, a, cause, b string
		points            int
		reasons           string
	}{
		{"target and kind", "checkout gets 502 from 192.0.2.7:8080", "", "192.0.2.7:8080 answers 502", 50 + 5 + 15 + 5, "same target 192.0.2.7 port 8080, same kind error, same protocol http, same status 502"},
		{"port said by one", "is db.example.com down", "", "db.example.com:5432 refuses connections", 45, "same target db.example.com port 5432"},
		{"other port", "db.example.com:5433 is odd", "", "db.example.com:5432 is odd", 20 + 5 + 20, "same host db.example.com, shared words odd, same protocol tcp"},
		{"port of another host", "a.example.com:5432 broken", "", "b.example.com:5432 odd", 10 + 5, "same port 5432, same protocol tcp"},
		{"same words", "everything is slow", "", "Everything is slow!", 60 + 15, "same words, same kind slow"},
		{"cause", "checkout gets errors", "Nothing listens on 192.0.2.7:81: connections are refused.", "payments: connection refused", 10, "same kind of cause refused"},
		{"nothing", "checkout gets 502", "", "ping to 192.0.2.9 is slow", 0, ""},
		{"words only", "checkout fails badly", "", "checkout works badly", 10, "shared words badly checkout"},
	} {
		x, y := Of(tt.a, tt.cause), Of(tt.b, "")
		m := x.Match(y)
		if got := m.String(); m.Points != tt.points || got != tt.reasons {
			t.Errorf("%s: %d points, %q; want %d, %q", tt.name, m.Points, got, tt.points, tt.reasons)
		}
		if back := y.Match(x); back.Points != m.Points {
			t.Errorf("%s: %d points one way, %d the other", tt.name, m.Points, back.Points)
		}
	}
}

// TestSearch finds what was seeded among many, newest first of equals, and only what
// has enough points.
func TestSearch(t *testing.T) {
	s := NewSearch(Of("checkout gets 502 from 192.0.2.7:8080 since 10:40", ""), 3)
	at := time.Unix(1_700_000_000, 0)
	for i := range 2000 {
		s.Add(Past{ID: fmt.Sprintf("other-%d", i), Symptom: fmt.Sprintf("host%d.example.com:%d is slow", i, 1000+i), At: at.Add(time.Duration(i) * time.Hour)})
	}
	for i := range 5 {
		s.Add(Past{ID: fmt.Sprintf("mine-%d", i), Symptom: "192.0.2.7:8080 answers 502", Cause: "Nothing listens on 192.0.2.7:8081.", At: at.Add(time.Duration(i) * time.Hour)})
	}
	s.Add(Past{ID: "weak", Symptom: "checkout is blue"})
	var got []string
	for _, f := range s.Best(3, Enough) {
		got = append(got, f.ID)
	}
	if want := "mine-4 mine-3 mine-2"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if len(s.best) > finalists {
		t.Errorf("%d cases are kept", len(s.best))
	}
	if got := NewSearch(Of("", ""), 3).Best(3, 0); len(got) != 0 {
		t.Errorf("nothing is like nothing: %v", got)
	}
}

// TestLongTextsAreCut: a symptom of any length is read in bounded time and kept short.
func TestLongTextsAreCut(t *testing.T) {
	long := "192.0.2.7:8080 refuses " + strings.Repeat("ä", 1<<20)
	s := NewSearch(Of(long, long), 1)
	s.Add(Past{ID: "a", Symptom: long, Cause: long})
	f := s.Best(1, Enough)
	if len(f) != 1 || len(f[0].Symptom) > maxText+3 || len(f[0].Cause) > maxText+3 {
		t.Errorf("%d found", len(f))
	}
}

// FuzzMatch checks that a likeness has the same points both ways, that a text with a
// word in it is as much like itself as like anything, and that points are the sum of their reasons.
func FuzzMatch(f *testing.F) {
	f.Add("checkout gets 502 from 192.0.2.7:8080", "192.0.2.7 is slow", "refused")
	f.Add("", "\x00", "[2001:db8::1]:443")
	f.Fuzz(func(t *testing.T, a, b, cause string) {
		x, y := Of(a, cause), Of(b, "")
		m, back := x.Match(y), y.Match(x)
		if m.Points != back.Points || m.Same() != back.Same() {
			t.Errorf("%+v, %+v", m, back)
		}
		sum := 0
		for _, r := range m.Reasons {
			sum += r.Points
		}
		if sum != m.Points || m.Points > 60+50+5+maxKind+5+10 {
			t.Errorf("%+v", m)
		}
		if self := Of(a, "").Match(Of(a, "")); self.Points < Of(a, "").Match(y).Points-10 {
			t.Errorf("%q is less like itself: %+v, %+v", a, self, m)
		}
	})
}

// BenchmarkSearch is what a new case waits for behind 5,000 closed ones, without
// reading them off the disk.
func BenchmarkSearch(b *testing.B) {
	past := make([]Past, 5000)
	for i := range past {
		past[i] = Past{ID: fmt.Sprintf("ghost_20260314_%06d", i), At: time.Unix(int64(i), 0),
			Symptom: fmt.Sprintf("checkout %d gets 502 from host%d.example.com:%d since 10:40, users see errors", i%50, i%300, 8000+i%7),
			Cause:   fmt.Sprintf("Nothing listens on 192.0.2.%d:%d: connections are refused.", i%250, 9000+i%7)}
	}
	b.ReportAllocs()
	for b.Loop() {
		s := NewSearch(Of("checkout gets 502 from host17.example.com:8003", ""), 3)
		for _, p := range past {
			s.Add(p)
		}
		if len(s.Best(3, Enough)) != 3 {
			b.Fatal("not found")
		}
	}
}
