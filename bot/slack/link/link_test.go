package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"

	"ghostbot/internal/sim/slack/socket"
)

// place is a Slack that only speaks Socket Mode, with a link connected to it.
type place struct {
	t    *testing.T
	hub  *socket.Hub
	link *Link
	open atomic.Pointer[string] // answer of apps.connections.open; nil: a connection
	err  chan error             // of Run
	stop context.CancelFunc
	mu   sync.Mutex
	got  []string
}

func newPlace(t *testing.T, handle func(p *place, ctx context.Context, e Envelope)) *place {
	t.Helper()
	p := &place{t: t, err: make(chan error, 1)}
	var serial atomic.Int64
	p.hub = socket.New(socket.Options{AppID: "A1", ID: func() string { return fmt.Sprintf("e%d", serial.Add(1)) },
		Ack: time.Second, Retries: []time.Duration{0, 100 * time.Millisecond, time.Second}, Warning: 100 * time.Millisecond})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/apps.connections.open" {
			p.hub.ServeHTTP(w, r)
			return
		}
		if a := p.open.Load(); a != nil {
			fmt.Fprint(w, *a)
			return
		}
		ticket, _ := p.hub.Ticket()
		fmt.Fprintf(w, `{"ok":true,"url":"ws://%s/link/?ticket=%s"}`, r.Host, ticket)
	}))
	t.Cleanup(srv.Close)
	api := slackgo.New("", slackgo.OptionAppLevelToken("xapp-1"), slackgo.OptionAPIURL(srv.URL+"/api/"))
	p.link = New(Options{Socket: socketmode.New(api), Case: func(cb slackgo.InteractionCallback) string { return cb.View.PrivateMetadata },
		Busy:   map[string]any{"text": "busy"},
		Handle: func(ctx context.Context, e Envelope) { handle(p, ctx, e) }})
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { p.err <- p.link.Run(ctx) })
	t.Cleanup(func() { p.stop(); wg.Wait(); p.hub.Close() })
	return p
}

func (p *place) until(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(15 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("%s: never; state %+v", what, p.link.State())
		}
	}
}

func (p *place) connected() {
	p.t.Helper()
	p.until("connected", func() bool { return p.link.State().Connected && p.hub.Count() == 1 })
}

func (p *place) note(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, s)
}

func (p *place) notes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.got...)
}

func obj(s string) map[string]any {
	var m map[string]any
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		panic(err)
	}
	return m
}

func message(id, thread, text string) map[string]any {
	return obj(fmt.Sprintf(`{"type":"event_callback","event_id":%q,"event":{"type":"message","channel":"C1","user":"U1","thread_ts":%q,"ts":%q,"text":%q}}`, id, thread, thread, text))
}

func text(e Envelope) string {
	switch d := e.Data.(type) {
	case slackgo.SlashCommand:
		return "command " + d.Text
	case slackgo.InteractionCallback:
		if len(d.ActionCallback.BlockActions) > 0 {
			return "click " + d.ActionCallback.BlockActions[0].Value
		}
		return string(d.Type) + " " + d.View.State.Values["b"]["a"].Value
	case slackevents.EventsAPIEvent:
		return d.InnerEvent.Data.(*slackevents.MessageEvent).Text
	}
	return "nothing"
}

// take notes what comes, and acknowledges it with its text.
func take(p *place, ctx context.Context, e Envelope) {
	p.note(text(e))
	p.link.Ack(ctx, e, map[string]any{"text": text(e)})
}

const click = `{"type":"block_actions","user":{"id":"U1"},"container":{"channel_id":"C1","message_ts":"1.1"},"actions":[{"type":"button","action_id":"a","block_id":"b","value":"v1","action_ts":"%s"}]}`

// Everything that comes twice is answered twice and handled once.
func TestOnce(t *testing.T) {
	p := newPlace(t, take)
	p.connected()
	view := `{"type":"view_submission","user":{"id":"U1"},"view":{"id":"V1","hash":"h","private_metadata":"s1","state":{"values":{"b":{"a":{"type":"plain_text_input","value":"%s"}}}}}}`
	for range 2 {
		for _, x := range []struct {
			kind    string
			payload map[string]any
		}{
			{"slash_commands", obj(`{"command":"/ghost","text":"help","trigger_id":"t1","channel_id":"C1","user_id":"U1"}`)},
			{"interactive", obj(fmt.Sprintf(click, "5.5"))},
			{"interactive", obj(fmt.Sprintf(click, "5.6"))},
			{"interactive", obj(fmt.Sprintf(view, "one"))},
			{"interactive", obj(fmt.Sprintf(view, "two"))}, // the same window, sent again with another text
			{"events_api", message("Ev1", "2.2", "words")},
			{"events_api", message("Ev2", "2.2", "words")},
		} {
			raw, err := p.hub.Send(x.kind, x.payload)
			if err != nil || !strings.Contains(string(raw), `"text":"`) {
				t.Errorf("%s: acknowledged with %s, %v", x.kind, raw, err)
			}
		}
	}
	want := []string{"command help", "click v1", "click v1", "view_submission one", "view_submission two", "words", "words"}
	if d := cmp.Diff(want, p.notes()); d != "" {
		t.Error(d)
	}
	if s := p.link.State(); s.Duplicates != 7 || s.Handled != 7 {
		t.Errorf("state %+v", s)
	}
}

// What came before the order to stop, or a moment after it, is handled to its end and acknowledged: a handler's context ends only
// when Slack does not wait any more.
func TestDrain(t *testing.T) {
	began := make(chan struct{}, 3)
	p := newPlace(t, func(p *place, ctx context.Context, e Envelope) {
		began <- struct{}{}
		select {
		case <-time.After(300 * time.Millisecond):
			p.note(text(e))
			p.link.Ack(ctx, e, map[string]any{"text": text(e)})
		case <-ctx.Done():
			p.note("cancelled")
		}
	})
	p.connected()
	answers := make(chan error, 3)
	send := func(ts string) {
		go func() {
			raw, err := p.hub.Send("interactive", obj(fmt.Sprintf(click, ts)))
			if err == nil && !strings.Contains(string(raw), "click v1") {
				err = fmt.Errorf("acknowledged with %q", raw)
			}
			answers <- err
		}()
	}
	send("5.5") // in a handler
	<-began
	send("5.6") // behind it
	time.Sleep(20 * time.Millisecond)
	p.stop()
	send("5.7") // on its way
	for range 3 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if err := <-p.err; err != nil {
		t.Errorf("Run: %v", err)
	}
	p.err <- nil // for the clean-up
	if d := cmp.Diff([]string{"click v1", "click v1", "click v1"}, p.notes()); d != "" {
		t.Error(d)
	}
}

// A handler that hangs does not keep the process.
func TestDrainEnds(t *testing.T) {
	p := newPlace(t, func(p *place, ctx context.Context, e Envelope) {
		p.note("began")
		<-ctx.Done()
	})
	p.connected()
	go p.hub.Send("interactive", obj(fmt.Sprintf(click, "5.5")))
	p.until("it is handled", func() bool { return len(p.notes()) == 1 })
	p.stop()
	select {
	case err := <-p.err:
		p.err <- err
	case <-time.After(drainWithin + 5*time.Second):
		t.Fatal("Run does not end")
	}
}

// A window that is refused may be sent again as it is.
func TestRefusedWindowIsNotRemembered(t *testing.T) {
	p := newPlace(t, func(p *place, ctx context.Context, e Envelope) {
		p.note("asked")
		p.link.Ack(ctx, e, slackgo.NewErrorsViewSubmissionResponse(map[string]string{"b": "not stored"}))
	})
	p.connected()
	for range 2 {
		if _, err := p.hub.Send("interactive", obj(`{"type":"view_submission","user":{"id":"U1"},"view":{"id":"V1","hash":"h"}}`)); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.notes(); len(got) != 2 {
		t.Errorf("handled %d times, want 2", len(got))
	}
}

// What belongs to one thread keeps its order, and waits for nobody else's.
func TestOrder(t *testing.T) {
	gate := make(chan struct{})
	p := newPlace(t, func(p *place, ctx context.Context, e Envelope) {
		if text(e) == "wait" {
			<-gate
		}
		take(p, ctx, e)
	})
	p.connected()
	p.hub.Event(message("Ev0", "9.9", "wait"))
	p.hub.Event(message("Ev1", "9.9", "behind"))
	for i := range 100 {
		p.hub.Event(message(fmt.Sprintf("Ex%d", i), fmt.Sprintf("%d.1", 1+i%5), fmt.Sprintf("%d/%d", i%5, i/5)))
	}
	p.until("all but one thread", func() bool { return len(p.notes()) == 100 })
	close(gate)
	p.until("everything", func() bool { return len(p.notes()) == 102 })
	next := map[string]int{}
	got := p.notes()
	for _, g := range got[:100] {
		lane, n, _ := strings.Cut(g, "/")
		if n != fmt.Sprint(next[lane]) {
			t.Fatalf("thread %s: %s after %d", lane, n, next[lane]-1)
		}
		next[lane]++
	}
	if d := cmp.Diff([]string{"wait", "behind"}, got[100:]); d != "" {
		t.Error(d)
	}
}

// A window is handled after the click of the same case, which its payload does not tell.
func TestWindowFollowsItsClick(t *testing.T) {
	l := New(Options{Socket: &socketmode.Client{}, Case: func(cb slackgo.InteractionCallback) string {
		return cb.View.PrivateMetadata + cb.TriggerID
	}})
	press, window, stray := slackgo.InteractionCallback{TriggerID: "s1"}, slackgo.InteractionCallback{}, slackgo.InteractionCallback{}
	press.Container.ChannelID, press.Container.MessageTs = "C1", "5.5"
	press.Message.ThreadTimestamp = "1.1"
	window.View.PrivateMetadata, stray.View.PrivateMetadata = "s1", "s2"
	reply := slackevents.EventsAPIEvent{InnerEvent: slackevents.EventsAPIInnerEvent{Data: &slackevents.MessageEvent{Channel: "C1", ThreadTimeStamp: "1.1", TimeStamp: "7.7"}}}
	var got []string
	for _, d := range []any{press, window, stray, reply, slackgo.SlashCommand{ChannelID: "C1", UserID: "U1"}, nil} {
		got = append(got, l.lane(Envelope{ID: "e", Data: d}))
	}
	if d := cmp.Diff([]string{"thread C1 1.1", "thread C1 1.1", "case s2", "thread C1 1.1", "command C1 U1", "envelope e"}, got); d != "" {
		t.Error(d)
	}
}

// What the library cannot decode is acknowledged, and a click in it still counts.
func TestUndecodable(t *testing.T) {
	p := newPlace(t, func(p *place, ctx context.Context, e Envelope) {
		if e.Data == nil {
			p.note("nothing")
			p.link.Ack(ctx, e, nil)
			return
		}
		take(p, ctx, e)
	})
	p.connected()
	odd := obj(fmt.Sprintf(click, "6.6"))
	odd["message"] = map[string]any{"blocks": []any{map[string]any{"type": "actions", "elements": []any{map[string]any{"type": "never_heard_of"}}}}}
	for _, x := range []struct {
		kind    string
		payload map[string]any
	}{
		{"interactive", odd},
		{"tea_time", obj(`{"type":"tea"}`)},
		{"events_api", obj(`{"type":"event_callback","event_id":"Ev9","event":{"type":"message","channel":{"not":"a string"}}}`)},
		{"slash_commands", obj(`{"text":{"not":"a string"}}`)},
		{"interactive", obj(`{"type":"block_actions","actions":"none"}`)},
	} {
		if _, err := p.hub.Send(x.kind, x.payload); err != nil {
			t.Errorf("%s: %v", x.kind, err)
		}
	}
	want := []string{"click v1", "nothing", "nothing", "nothing", "nothing"}
	if d := cmp.Diff(want, p.notes()); d != "" || p.link.State().Undecoded != 5 {
		t.Errorf("%s\nstate %+v", d, p.link.State())
	}
}

// A handler that panics costs its own envelope only.
func TestPanic(t *testing.T) {
	p := newPlace(t, func(p *place, ctx context.Context, e Envelope) {
		if text(e) == "command bad" {
			panic("bad")
		}
		take(p, ctx, e)
	})
	p.connected()
	cmd := func(text string) error {
		_, err := p.hub.Send("slash_commands", map[string]any{"text": text, "trigger_id": text, "channel_id": "C1", "user_id": "U1"})
		return err
	}
	if err := cmd("bad"); !errors.Is(err, socket.ErrTimeout) {
		t.Errorf("bad: %v", err)
	}
	if err := cmd("good"); err != nil {
		t.Errorf("good: %v", err)
	}
}

// An acknowledgement that was overtaken by a new connection is not sent on it; the event comes again
// and is answered without being handled again.
func TestStaleAck(t *testing.T) {
	gate := make(chan struct{})
	p := newPlace(t, func(p *place, ctx context.Context, e Envelope) {
		p.note(text(e))
		<-gate
		p.link.Ack(ctx, e, nil)
	})
	p.connected()
	p.hub.Event(message("Ev1", "1.1", "words"))
	p.until("handled", func() bool { return len(p.notes()) == 1 })
	serial := p.link.State().Serial
	p.hub.Drop()
	p.until("another connection", func() bool { s := p.link.State(); return s.Connected && s.Serial > serial })
	close(gate)
	p.until("the repetition", func() bool { return p.link.State().Duplicates > 0 })
	if s := p.link.State(); s.Stale != 1 || len(p.notes()) != 1 {
		t.Errorf("state %+v, handled %v", s, p.notes())
	}
}

// A full queue answers commands and takes nothing more; it never holds the reader up.
func TestFullQueue(t *testing.T) {
	gate := make(chan struct{})
	p := newPlace(t, func(p *place, ctx context.Context, e Envelope) {
		<-gate
		p.link.Ack(ctx, e, nil)
	})
	defer close(gate)
	p.connected()
	for i := range queueLen + workers {
		p.hub.Event(message(fmt.Sprintf("Ev%d", i), fmt.Sprintf("%d.1", i), "words"))
	}
	raw, err := p.hub.Send("slash_commands", obj(`{"text":"help","trigger_id":"t9"}`))
	if err != nil || string(raw) != `{"text":"busy"}` {
		t.Errorf("answered %s, %v", raw, err)
	}
	if s := p.link.State(); s.Refused == 0 || !s.Connected {
		t.Errorf("state %+v", s)
	}
}

// Answers that nothing mends end the process, others do not.
func TestFatal(t *testing.T) {
	for code, fatal := range map[string]bool{
		"invalid_auth": true, "token_revoked": true, "not_allowed_token_type": true, "missing_scope": true, "account_inactive": true,
		"internal_error": false, "ratelimited": false, "request_timeout": false,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, take)
			p.connected()
			answer := fmt.Sprintf(`{"ok":false,"error":%q}`, code)
			p.open.Store(&answer)
			p.hub.Drop()
			if !fatal {
				time.Sleep(50 * time.Millisecond)
				p.open.Store(nil)
				p.until("another connection", func() bool { s := p.link.State(); return s.Serial > 1 && s.Connected })
				return
			}
			select {
			case err := <-p.err:
				if !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), "SLACK_APP_TOKEN holds: "+code) {
					t.Errorf("ended with %v", err)
				}
			case <-time.After(10 * time.Second):
				t.Error("goes on")
			}
		})
	}
}

func TestFail(t *testing.T) {
	p := newPlace(t, take)
	p.connected()
	p.link.Fail(fmt.Errorf("%w what SLACK_BOT_TOKEN holds: token_revoked", ErrToken))
	if err := <-p.err; err == nil || err.Error() != "slack refuses what SLACK_BOT_TOKEN holds: token_revoked" {
		t.Errorf("ended with %v", err)
	}
}

// Red after a minute without a connection, green with one.
func TestDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := 0
		l := New(Options{Socket: &socketmode.Client{}, Connected: func(b bool) {
			if b {
				again++
			}
		}})
		feed := func(kind socketmode.EventType) {
			l.event(t.Context(), socketmode.Event{Type: kind, Request: &socketmode.Request{NumConnections: 2}})
		}
		steps := []struct {
			kind socketmode.EventType
			wait time.Duration
			want string
		}{
			{"connecting", 59 * time.Second, ""},
			{"connecting", time.Second, "not connected for 1m0s"}, // a new attempt is no connection
			{"connected", 10 * time.Second, "not connected for 1m10s"},
			{"hello", 5 * time.Minute, ""},
			{"connecting", 59 * time.Second, ""},
			{"connecting", 11 * time.Second, "not connected for 1m10s"},
			{"connected", 0, "not connected for 1m10s"},
			{"hello", 0, ""},
		}
		for i, s := range steps {
			feed(s.kind)
			time.Sleep(s.wait)
			if got := l.Deaf(); got != s.want {
				t.Errorf("step %d: %q, want %q", i, got, s.want)
			}
		}
		if again != 1 {
			t.Errorf("told %d times that it connected again", again)
		}
	})
}

func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := seen{m: map[string]memory{}}
		s.keep("", nil)
		s.keep("a", 1)
		time.Sleep(Remember / 2)
		s.keep("a", 2)
		s.keep("b", 3)
		if v, ok := s.find("a"); !ok || v != 1 {
			t.Errorf("a = %v, %v", v, ok)
		}
		time.Sleep(Remember/2 + time.Second)
		if _, ok := s.find("a"); ok {
			t.Error("a is remembered after ten minutes")
		}
		if _, ok := s.find("b"); !ok {
			t.Error("b is forgotten after five")
		}
		for i := range most + 100 {
			s.keep(fmt.Sprint(i), nil)
		}
		if len(s.m) > most+1 || len(s.order) != len(s.m) {
			t.Errorf("%d of %d remembered", len(s.m), len(s.order))
		}
	})
}

// Connections that break leave nothing behind.
func TestNothingStaysOfConnections(t *testing.T) {
	p := newPlace(t, take)
	p.connected()
	before := runtime.NumGoroutine()
	for i := range 30 {
		serial := p.link.State().Serial
		if i%3 == 0 {
			p.hub.Disconnect("warning")
		} else {
			p.hub.Drop()
		}
		p.until("another connection", func() bool { s := p.link.State(); return s.Connected && s.Serial > serial })
	}
	p.until("as few goroutines as before", func() bool { return runtime.NumGoroutine() <= before+3 })
}

// FuzzRaw: whatever a frame holds, the reader survives it and takes no click of nobody.
func FuzzRaw(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(click, "1.1")))
	f.Add([]byte(`{"type":"view_submission","view":{"id":"V","state":{"values":{"a":null}}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := New(Options{Socket: &socketmode.Client{}})
		cb, ok := RawInteraction(b)
		if ok && cb.Type == slackgo.InteractionTypeBlockActions && len(cb.ActionCallback.BlockActions) != 1 {
			t.Errorf("%q: a click without an action", b)
		}
		if ok {
			_ = l.lane(Envelope{Data: cb})
			_ = content(cb)
		}
		l.undecodable(t.Context(), &socketmode.ErrorBadMessage{Message: b})
	})
}
