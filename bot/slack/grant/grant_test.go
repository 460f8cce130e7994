package grant

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// all is the header of an app that has everything, but for some.
func all(but ...string) string {
	var names []string
	for _, s := range Scopes {
		if !slices.Contains(but, s.Name) {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, ",")
}

// TestHeard: what is missing follows the answers, and each change is one line.
func TestHeard(t *testing.T) {
	for _, tt := range []struct {
		name     string
		answers  [][2]string
		missing  string
		log      []string // in this order
		mute     bool
		loggings int
	}{
		{name: "nothing heard"},
		{name: "everything", answers: [][2]string{{all(), ""}}},
		{name: "more than wanted, with blanks", answers: [][2]string{{strings.ReplaceAll(all(), ",", " , ") + ", team:read", ""}}},
		{name: "one is missing", answers: [][2]string{{all("files:write"), ""}}, missing: "files:write", loggings: 1,
			log: []string{"lacks a scope", "scope=files:write", "reports, pictures", "install the app again"}},
		{name: "told once", answers: [][2]string{{all(Write), ""}, {all(Write), Write}, {all(Write), ""}}, missing: Write, mute: true, loggings: 1,
			log: []string{"scope=chat:write", "nothing can be posted"}},
		{name: "comes back", answers: [][2]string{{all(Write), ""}, {all(), ""}}, loggings: 2, log: []string{"lacks a scope", "has a scope again"}},
		{name: "no header, a refusal", answers: [][2]string{{"", Write}}, missing: Write, mute: true, loggings: 1},
		{name: "no header, two refusals", answers: [][2]string{{"", "users:read"}, {"", Write}}, missing: Write + " users:read", mute: true, loggings: 2},
		{name: "a header says more than a refusal", answers: [][2]string{{all(), Write}}},
		{name: "a refusal for what is not wanted", answers: [][2]string{{"", "admin"}}},
		{name: "nothing changes", answers: [][2]string{{all(Write), ""}, {"", ""}}, missing: Write, mute: true, loggings: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			w := New(slog.New(slog.NewTextHandler(&out, nil)))
			for _, a := range tt.answers {
				w.Heard(a[0], a[1])
			}
			var got []string
			for _, s := range w.missing {
				got = append(got, s.Name)
			}
			if diff := cmp.Diff(tt.missing, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			if n := strings.Count(out.String(), "\n"); n != tt.loggings {
				t.Errorf("%d lines: %s", n, &out)
			}
			rest := out.String()
			for _, want := range tt.log {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Errorf("%q is not in its place: %s", want, &out)
				}
				rest = after
			}
			why := w.Mute()
			if tt.mute != (why != "") || tt.mute && (!strings.Contains(why, Write) || !strings.Contains(why, "reinstall") || strings.Contains(why, "\n")) {
				t.Errorf("mute: %q", why)
			}
		})
	}
}

// TestRun: while a scope is missing the token is asked about often, else seldom; each
// change is passed on.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		var asked []time.Duration
		began, changes := time.Now(), 0
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(ctx, func(context.Context) error {
				asked = append(asked, time.Since(began))
				switch len(asked) {
				case 1:
					w.Heard(all(Write), "")
				case 2:
					return errors.New("no answer")
				case 3:
					w.Heard(all(), "")
				}
				return nil
			}, func() { changes++ })
		}()
		time.Sleep(2*Seldom + 2*Soon + time.Second)
		stop()
		<-ended
		want := []time.Duration{Seldom, Seldom + Soon, Seldom + 2*Soon, 2*Seldom + 2*Soon}
		if diff := cmp.Diff(want, asked); diff != "" || changes != 2 {
			t.Errorf("%d changes; asked: %s", changes, diff)
		}
		if lacks, fresh := w.Lacks(Write); lacks || fresh {
			t.Errorf("lacks %v, fresh %v", lacks, fresh)
		}
		w.Heard(all(Write), "")
		if lacks, fresh := w.Lacks(Write); !lacks || !fresh {
			t.Errorf("lacks %v, fresh %v", lacks, fresh)
		}
	})
}
