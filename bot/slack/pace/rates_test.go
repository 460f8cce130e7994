package pace

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// tier is what Slack's pages say about the methods that the front calls: calls a minute.
var tier = map[string]int{
	"apps.connections.open": 50, "chat.delete": 50, "chat.update": 50, "chat.postEphemeral": 100,
	"conversations.history": 50, "conversations.info": 50, "conversations.replies": 50, "users.conversations": 50,
	"files.completeUploadExternal": 100, "files.getUploadURLExternal": 100, "usergroups.users.list": 20, "users.info": 100,
	"views.open": 100, "views.publish": 100,
}

// strict counts calls that came although the last minute had enough.
type strict struct {
	most  int
	calls []time.Time
	over  int
}

func (s *strict) RoundTrip(r *http.Request) (*http.Response, error) {
	now := time.Now()
	for len(s.calls) > 0 && now.Sub(s.calls[0]) >= time.Minute {
		s.calls = s.calls[1:]
	}
	if len(s.calls) >= s.most {
		s.over++
	}
	s.calls = append(s.calls, now)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"ok":true}`)), Request: r}, nil
}

// TestRates: whoever calls a method as fast as they can, and comes again when they are told
// to, never calls it more often than Slack takes, nor much less; no method holds up another.
func TestRates(t *testing.T) {
	for method, most := range tier {
		synctest.Test(t, func(t *testing.T) {
			base := &strict{most: most}
			tr := &Transport{Base: base}
			call := func(method string) *http.Response {
				r, err := http.NewRequest(http.MethodGet, "https://slack.example.com/api/"+method, nil)
				if err != nil {
					t.Fatal(err)
				}
				res, err := tr.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			made := 0
			for began := time.Now(); time.Since(began) < 5*time.Minute; {
				res := call(method)
				if res.StatusCode == http.StatusTooManyRequests {
					if other := call("auth.test"); other.StatusCode != 200 {
						t.Fatalf("%s holds up another method", method)
					}
					base.calls = base.calls[:len(base.calls)-1]
					time.Sleep(RetryAfter(res.Header.Get("Retry-After")))
					continue
				}
				made++
				time.Sleep(time.Millisecond)
			}
			if base.over > 0 || made < 5*most*9/10 {
				t.Errorf("%s: %d calls, %d too many", method, made, base.over)
			}
		})
	}
}

// TestNoRates: a workspace that says it has none is asked as often as it is wanted; one
// that is not believed, as Slack is.
func TestNoRates(t *testing.T) {
	for _, free := range []bool{true, false} {
		base := &strict{most: 50}
		tr := &Transport{Base: base}
		if free {
			tr.Free = Open()
		}
		held := 0
		for range 60 {
			r, err := http.NewRequest(http.MethodGet, "https://slack.example.com/api/conversations.replies", nil)
			if err != nil {
				t.Fatal(err)
			}
			if free {
				tr.Free.free.Store(true) // the answer of this base says nothing of rates
			}
			if res, err := tr.RoundTrip(r); err != nil || res.StatusCode != 200 {
				held++
			}
		}
		if free != (held == 0) || !free && base.over > 0 {
			t.Errorf("free %v: %d held, %d too many", free, held, base.over)
		}
	}
}
