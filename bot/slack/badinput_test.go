package slack_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ghostbot/bot"
	slacksim "ghostbot/internal/sim/slack"
	"ghostbot/internal/sim/slack/workspace"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// told are the private messages of one person in a channel.
func (p *plant) told(channel, user string) (out []string) {
	for _, m := range p.sim.MessagesFor(channel, user) {
		if m.Ephemeral {
			out = append(out, m.Text)
		}
	}
	return out
}

// flaky is a store that can be away.
type flaky struct {
	store.DB
	away *atomic.Bool
}

func (f flaky) Commit(ctx context.Context, c store.Commit) error {
	if f.away.Load() {
		return store.ErrUnavailable
	}
	return f.DB.Commit(ctx, c)
}

func (f flaky) Get(ctx context.Context, k store.Key) (store.Value, error) {
	if f.away.Load() {
		return store.Value{}, store.ErrUnavailable
	}
	return f.DB.Get(ctx, k)
}

func (f flaky) Once(ctx context.Context, k store.Key, data []byte) (store.Value, bool, error) {
	if f.away.Load() {
		return store.Value{}, false, store.ErrUnavailable
	}
	return f.DB.Once(ctx, k, data)
}

func (f flaky) List(ctx context.Context, scope, prefix string) ([]store.Value, error) {
	if f.away.Load() {
		return nil, store.ErrUnavailable
	}
	return f.DB.List(ctx, scope, prefix)
}

// card is where the card that waits stands.
func (p *plant) card(channel string) (ts, thread string) {
	p.t.Helper()
	for _, m := range p.sim.Messages(channel) {
		if strings.HasPrefix(m.Text, "Approval needed: ") {
			return m.TS, m.ThreadTS
		}
	}
	p.t.Fatalf("no card: %+v", p.sim.Messages(channel))
	return "", ""
}

// A press while the store is away is in doubt: whoever pressed is told so, then that it does not
// count, and may press again. It runs once.
func TestDecisionInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, true, 1, slacksim.Options{})
		var away atomic.Bool
		p.wrap = func(db store.DB) store.DB { return flaky{db, &away} }
		p.makeDesk(slog.New(slog.DiscardHandler))
		p.work = asks(1)
		end := p.start()
		defer end()
		channel, who := channelID(0), personID(0)
		p.open(1, 0)
		time.Sleep(5 * time.Second)
		card, _ := p.card(channel)
		press := func() {
			if _, err := p.sim.Click(slacksim.Click{TS: card, Channel: channel, User: who, Label: "Approve", WaitMS: 100}); err != nil {
				t.Error(err)
			}
			time.Sleep(15 * time.Second)
		}
		away.Store(true)
		press()
		if got := p.told(channel, who); len(got) != 1 || !strings.Contains(got[0], "not known yet") || len(p.ran()) > 0 {
			t.Errorf("told %q, ran %v while the store is away", got, p.ran())
		}
		away.Store(false)
		time.Sleep(time.Minute)
		if got := p.told(channel, who); len(got) != 2 || !strings.Contains(got[1], "does not count") || len(p.ran()) > 0 {
			t.Errorf("told %q, ran %v when it is back", got, p.ran())
		}
		press()
		time.Sleep(time.Minute)
		ran := p.ran()
		if got := p.told(channel, who); len(got) != 2 || len(ran) != 1 {
			t.Errorf("told %q, ran %v after another press", got, ran)
		}
	})
}

// A reply that its writer edits while an approver presses: the press counts, the words are those
// that were heard, and the writer is told, once for each edit. What Slack adds to a message is no edit.
func TestEditedReplyRacesAClick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, true, 1, slacksim.Options{})
		p.work = asks(1)
		end := p.start()
		defer end()
		channel, writer := channelID(0), personID(crew-2)
		p.open(1, 0)
		time.Sleep(5 * time.Second)
		card, thread := p.card(channel)
		if _, err := p.sim.Message(channel, writer, "look at 192.0.2.11:9200", thread); err != nil {
			t.Fatal(err)
		}
		reply := ""
		for _, m := range p.sim.Messages(channel) {
			if m.Text == "look at 192.0.2.11:9200" {
				reply = m.TS
			}
		}
		change := func(text, edited string) {
			if _, err := p.sim.Workspace().Update(channel, reply, writer, "", func(m *workspace.Message) { m.Text, m.EditedTS = text, edited }); err != nil {
				t.Fatal(err)
			}
		}
		change("look at 192.0.2.11:9200", "") // a preview is added
		time.Sleep(2 * time.Second)
		if got := p.told(channel, writer); len(got) != 0 {
			t.Errorf("told %q of a preview", got)
		}
		change("look at 192.0.2.12:9200", p.sim.Workspace().Edited())
		out, err := p.sim.Click(slacksim.Click{TS: card, Channel: channel, User: personID(0), Label: "Approve", WaitMS: 100})
		if err != nil || !out.OK {
			t.Errorf("click: %+v, %v", out, err)
		}
		time.Sleep(20 * time.Second)
		if got := p.told(channel, writer); len(got) != 1 || !strings.Contains(got[0], "not read again") {
			t.Errorf("told %q", got)
		}
		heard := ""
		for _, m := range p.sim.Messages(channel) {
			heard += m.Text + "\n"
		}
		if !strings.Contains(heard, "Heard: look at 192.0.2.11:9200") || strings.Contains(heard, "Heard: look at 192.0.2.12:9200") || len(p.ran()) != 1 {
			t.Errorf("ran %v, thread:\n%s", p.ran(), heard)
		}
	})
}

// A trigger that expired: each window that does not open is told to whoever pressed, with what became
// of the press, or seen at once on the card. What was pressed counts all the same.
func TestExpiredTriggers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, true, 1, slacksim.Options{})
		p.work = asks(1)
		end := p.start()
		defer end()
		channel, who := channelID(0), personID(0)
		sid := p.open(1, 0)
		time.Sleep(5 * time.Second)
		card, _ := p.card(channel)
		if err := p.sim.Inject(slacksim.Fault{Kind: "error", Method: "views.open", Error: "expired_trigger_id", Times: 1000}); err != nil {
			t.Fatal(err)
		}
		press := func(ts, label, want string) {
			t.Helper()
			before := len(p.told(channel, who))
			if out, err := p.sim.Click(slacksim.Click{TS: ts, Channel: channel, User: who, Label: label, WaitMS: 100}); err != nil || out.ViewID != "" {
				t.Errorf("%s: %+v, %v", label, out, err)
			}
			time.Sleep(5 * time.Second)
			if got := p.told(channel, who)[before:]; strings.Join(got, "\n") != want {
				t.Errorf("%s: told %q, want %q", label, got, want)
			}
		}
		at := func(prefix string) (ts string) {
			t.Helper()
			for _, m := range p.sim.Messages(channel) {
				if strings.HasPrefix(m.Text, prefix) {
					return m.TS
				}
			}
			t.Fatalf("nothing begins with %q: %+v", prefix, p.sim.Messages(channel))
			return ""
		}
		press(card, "Modify", "The edit window did not open in time. Press Modify again.")
		press(card, "Deny", "")
		if at("Denied: ") != card {
			t.Error("the denial is not seen on the card")
		}
		p.awaitClosed([]string{sid})
		press(at("Report"), "Useful", "What you pressed is stored. The window for your words did not open in time; press again to add some.")
	})
}

// Symptoms that are long, loud or turned around open a case each; what people see of them is short,
// says that it is not all, keeps its direction, and pages nobody.
func TestOddSymptoms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, true, 4, slacksim.Options{})
		p.work = func(ctx context.Context, _ bot.Parts, _ func(string) (safeexec.Result, error)) error {
			<-ctx.Done() // no card, which mentions those who may approve
			return ctx.Err()
		}
		end := p.start()
		defer end()
		for i, tt := range []struct{ name, symptom, shows, left string }{
			{"12,000 characters", strings.Repeat("checkout is slow ", 706)[:12_000], "checkout is slow", "…"},
			{"an emoji flood", strings.Repeat("🔥🚒👨‍👩‍👧", 1_000), "🔥", "…"},
			{"right to left", "\u202ecod.exe\u202c checkout \u2067fails", "cod.exe checkout fails", ""},
			{"everybody", "<!channel> <!here> <@U0P001> <!subteam^S0LOAD>", "channel", ""},
		} {
			channel := channelID(i)
			if out, err := p.sim.Command(channel, personID(1), "/ghost investigate "+tt.symptom); err != nil || !out.OK {
				t.Fatalf("%s: %+v, %v", tt.name, out, err)
			}
			time.Sleep(5 * time.Second)
			all := p.sim.Messages(channel)
			if len(all) == 0 {
				t.Fatalf("%s: nothing is shown", tt.name)
			}
			root := all[0].Text + string(all[0].Blocks)
			if !strings.HasPrefix(root, "Investigating: ") || !strings.Contains(root, tt.shows) || !strings.Contains(root, tt.left) || len(all[0].Text) > 4_000 {
				t.Errorf("%s: %d bytes: %.300s", tt.name, len(root), root)
			}
			for _, m := range all {
				if i := strings.IndexAny(m.Text+string(m.Blocks), "\u202a\u202b\u202d\u202e\u2066\u2067\u2068"); i >= 0 {
					t.Errorf("%s: %.200s", tt.name, m.Text)
				}
			}
		}
		for _, page := range p.sim.Pages().Entries {
			if len(page.Mentions.Broadcasts)+len(page.Mentions.Groups) > 0 {
				t.Errorf("somebody is paged: %+v", page)
			}
		}
	})
}
