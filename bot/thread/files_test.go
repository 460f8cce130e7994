package thread

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/agent"
	"ghostbot/bot/show"
	"ghostbot/safeexec"
	"ghostbot/store/file"
)

// late is a board on which files appear some time after they were handed over, if at all,
// and whose answers about them are lost.
type late struct {
	wall
	mu      sync.Mutex
	began   time.Time
	answers []error         // of the first attempts; nil from then on
	shows   []time.Duration // after its attempt each appears; negative: never
	asked   []time.Duration // when files were handed over
	there   []time.Time     // when each is there
}

// surely is an error after which nothing can appear.
type surely struct{ error }

func (surely) Unsent() bool { return true }

func (b *late) Post(ctx context.Context, p Place, m show.Message) (string, error) {
	if m.Kind != show.KindFile {
		return b.wall.Post(ctx, p, m)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.asked)
	b.asked = append(b.asked, time.Since(b.began).Round(time.Second))
	if n < len(b.shows) && b.shows[n] >= 0 {
		b.there = append(b.there, time.Now().Add(b.shows[n]))
	}
	if n < len(b.answers) {
		return "", b.answers[n]
	}
	b.there = append(b.there, time.Now())
	return "file", nil
}

func (b *late) Find(_ context.Context, _ Place, m show.Message) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, at := range b.there {
		if m.Kind == show.KindFile && !time.Now().Before(at) {
			return "file", nil
		}
	}
	return "", nil
}

// TestFilesAppearOnce: a file whose answer was lost, or whose process died or lost the
// case, is not added again while it may be on its way; what surely is not is tried again at once, less
// and less often.
func TestFilesAppearOnce(t *testing.T) {
	lost, down := errors.New("EOF"), surely{errors.New("no route")}
	for _, tt := range []struct {
		name    string
		dies    time.Duration // when another process takes the case; 0: never
		answers []error
		shows   []time.Duration
		want    []time.Duration // attempts
		there   int
	}{
		{name: "all is well", want: []time.Duration{0}, there: 1},
		{name: "the answer is lost", answers: []error{lost}, shows: []time.Duration{0}, want: []time.Duration{0}, there: 1},
		{name: "it appears late", answers: []error{lost}, shows: []time.Duration{8 * time.Second}, want: []time.Duration{0}, there: 1},
		{name: "it never appears", answers: []error{lost}, shows: []time.Duration{-1}, want: []time.Duration{0, 15 * time.Second}, there: 1},
		{name: "nothing was handed over", answers: []error{down, down, down, down, down, down, down},
			want:  []time.Duration{0, 5 * time.Second, 15 * time.Second, 35 * time.Second, 75 * time.Second, 135 * time.Second, 195 * time.Second, 255 * time.Second},
			shows: []time.Duration{-1, -1, -1, -1, -1, -1, -1}, there: 1},
		{name: "taken over", dies: time.Second, answers: []error{lost}, shows: []time.Duration{5 * time.Second}, want: []time.Duration{0}, there: 1},
		{name: "taken over, and nothing was on its way", dies: time.Second, answers: []error{lost}, shows: []time.Duration{-1},
			want: []time.Duration{0, 11 * time.Second}, there: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, err := file.Open(t.TempDir(), file.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				l, err := db.Acquire(t.Context(), testSID, "me", 365*24*time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				feed := &tape{changed: make(chan struct{})}
				feed.add(t, "opened", agent.Opened{Symptom: "x"})
				feed.addTo(t, "shell", "proposed", safeexec.Proposal{Class: safeexec.Risky, Display: "tcpdump -i lo", Digest: strings.Repeat("d", 64)})
				id, exit := testSID+"_002", 0
				feed.addTo(t, "shell", "decided", safeexec.Decided{AuditID: id, Decision: "APPROVED", By: "U1"})
				feed.addTo(t, "shell", "outcome", safeexec.Result{AuditID: id, Status: "completed", ExitCode: &exit, Output: strings.Repeat("line\n", 50)})
				b := &late{began: time.Now(), answers: tt.answers, shows: tt.shows}
				run := func(d time.Duration) {
					p, err := New(t.Context(), Options{DB: db, Board: b, Feed: feed, Log: slog.New(slog.DiscardHandler), SessionID: testSID,
						Fence: func() uint64 { return l.Fence }, Rules: show.Rules{Needed: func(string, string) int { return 1 }},
						Place: Place{Transport: "slack", Channel: "C1"}})
					if err != nil {
						t.Fatal(err)
					}
					ctx, stop := context.WithTimeout(t.Context(), d)
					defer stop()
					p.Run(ctx)
				}
				if tt.dies > 0 {
					run(tt.dies)
				}
				run(5 * time.Minute)
				if diff := cmp.Diff(tt.want, b.asked); diff != "" || len(b.there) != tt.there {
					t.Errorf("%d are there; handed over (-want +got): %s", len(b.there), diff)
				}
			})
		})
	}
}
