package fault

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAddRefuses(t *testing.T) {
	var l List
	for _, f := range []Fault{{}, {Path: "/x", Times: 3}, {Status: 99}, {Status: 600}, {Status: -1}} {
		if l.Add(f) == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
	if _, hit := l.For("h", "GET", "/x"); hit {
		t.Error("a fault that was refused is in force")
	}
}

func TestFor(t *testing.T) {
	var l List
	for _, f := range []Fault{
		{Host: "a.example.com", Method: "get", Path: "/Once", Times: 1, Status: 500},
		{Path: "/once", Times: 2, Status: 501},
		{Method: "DELETE", Status: 502},
		{Path: "/slow", MS: 20},
	} {
		if err := l.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	var got []int
	for _, r := range [][3]string{
		{"b.example.com", "GET", "/x/once"}, // not the first
		{"A.example.com", "GET", "/x/ONCE"}, // the first, used up
		{"a.example.com", "GET", "/x/once"}, // the second, used up
		{"a.example.com", "GET", "/x/once"},
		{"a.example.com", "DELETE", "/any"},
		{"a.example.com", "DELETE", "/any"},
	} {
		f, _ := l.For(r[0], r[1], r[2])
		got = append(got, f.Status)
	}
	if diff := cmp.Diff([]int{501, 500, 501, 0, 502, 502}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f, hit := l.For("c", "GET", "/slow"); !hit || f.Delay() != 20*time.Millisecond {
		t.Errorf("%+v", f)
	}
	l.Clear()
	if _, hit := l.For("c", "DELETE", "/any"); hit {
		t.Error("a fault outlives Clear")
	}
}

func TestTimesHoldsForManyAtOnce(t *testing.T) {
	var l List
	if err := l.Add(Fault{Times: 50, Drop: true}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	hits := 0
	for range 100 {
		wg.Go(func() {
			if _, hit := l.For("h", "GET", "/"); hit {
				mu.Lock()
				hits++
				mu.Unlock()
			}
		})
	}
	if wg.Wait(); hits != 50 {
		t.Errorf("%d of 100 went wrong, want 50", hits)
	}
}

func TestText(t *testing.T) {
	for want, f := range map[string]Fault{"Too Many Requests": {Status: 429}, "Not now.": {Status: 429, Message: "Not now."}} {
		if got := f.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
