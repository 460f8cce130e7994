package slack_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ghostbot/bot"
	slacksim "ghostbot/internal/sim/slack"
	"ghostbot/safeexec"
)

// talk is a plant whose cases only listen, and what one person says and is told in its channel.
func talk(t *testing.T) (p *plant, say func(text, thread string) string) {
	t.Helper()
	p = newPlant(t, true, 1, slacksim.Options{})
	p.work = func(ctx context.Context, _ bot.Parts, _ func(string) (safeexec.Result, error)) error {
		<-ctx.Done()
		return ctx.Err()
	}
	channel, who := channelID(0), personID(1)
	return p, func(text, thread string) string {
		t.Helper()
		before := len(p.told(channel, who))
		if _, err := p.sim.Message(channel, who, text, thread); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		return strings.Join(p.told(channel, who)[before:], "\n")
	}
}

// opened are the first messages of the cases of a channel.
func (p *plant) opened(channel string) (out []string) {
	for _, m := range p.sim.Messages(channel) {
		if symptom, ok := strings.CutPrefix(m.Text, "Investigating: "); ok && m.ThreadTS == m.TS || ok && m.ThreadTS == "" {
			symptom, _, _ = strings.Cut(symptom, "\n")
			out = append(out, symptom)
		}
	}
	return out
}

// A message that begins with the bot's name is for it, whatever clients and people put around name and
// verb; one that names it elsewhere starts nothing, and whoever wrote it is told how to ask, in chat
// about it once.
func TestHowTheBotIsAddressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, say := talk(t)
		end := p.start()
		defer end()
		channel := channelID(0)
		for i, text := range []string{
			"@ghost: investigate %", "@ghost, investigate %", "@ghost *investigate* %", "@ghost Investigate: %", "@ghost /ghost investigate %", "hey @ghost investigate %", "@ghost please investigate %",
			"@ghost “investigate %”",
		} {
			symptom := "checkout " + string(rune('a'+i)) + " is slow"
			if got := say(strings.ReplaceAll(text, "%", symptom), ""); got != "" {
				t.Errorf("%q is answered with %q", text, got)
			}
			if got := p.opened(channel); len(got) != i+1 || !strings.Contains(got[i], symptom) {
				t.Fatalf("%q: the cases are %q", text, got)
			}
		}
		cases := len(p.opened(channel))
		for _, tt := range []struct{ text, want string }{
			{"investigate checkout z is slow @ghost", "begins with my name"},
			{"as @ghost said, it is slow", ""}, // told a moment ago
			{"investigate checkout z is slow, cc @ghost", "begins with my name"},
			{"@ghost: dance", "`dance` is not a ghostbot command"},
			{"checkout is slow", ""},
			{"@ghost:", "/ghost investigate"},
		} {
			if got := say(tt.text, ""); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("%q is answered with %q, want %q", tt.text, got, tt.want)
			}
		}
		if got := p.opened(channel); len(got) != cases {
			t.Errorf("chat started a case: %q", got)
		}
	})
}

// Every way to say stop and nothing else ends a case from its thread; what says more does not.
func TestStopIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, say := talk(t)
		p.work = asks(1)
		end := p.start()
		defer end()
		channel := channelID(0)
		for i, text := range []string{"@ghost: stop", "*stop*", "stop please", "stop now", "stop :octagonal_sign:", "hey @ghost stop!"} {
			sid := p.open(i, 0)
			time.Sleep(5 * time.Second)
			thread := ""
			for _, m := range p.sim.Messages(channel) {
				if strings.HasPrefix(m.Text, "Investigating: ") {
					thread = m.TS
				}
			}
			for _, no := range []string{"“stop”", "@ghost `stop`", "stop the service", "@ghost: stop?", "I asked @ghost to stop"} {
				say(no, thread)
			}
			if c, err := p.desk.Case(t.Context(), sid); err != nil || c.Closed {
				t.Fatalf("before %q: %+v, %v", text, c, err)
			}
			say(text, thread)
			p.awaitClosed([]string{sid})
		}
	})
}

// A case is named with the signs that it is shown or pasted in; what names none is told so, and is no
// failure of the store.
func TestHowACaseIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := talk(t)
		p.work = asks(1)
		end := p.start()
		defer end()
		channel, who := channelID(0), personID(1)
		sid := p.open(0, 0)
		time.Sleep(5 * time.Second)
		ask := func(text string) string {
			t.Helper()
			out, err := p.sim.Command(channel, who, "/ghost "+text)
			if err != nil || !out.OK || len(out.Ephemerals) != 1 {
				t.Fatalf("%q: %+v, %v", text, out, err)
			}
			time.Sleep(time.Second)
			return out.Ephemerals[0].Text
		}
		for _, name := range []string{"`" + sid + "`", "*" + sid + "*", "“" + sid + "”", "<" + sid + ">", sid + " please", "\u200b" + sid, sid + ".", "case " + sid, strings.ToUpper(sid)} {
			for _, verb := range []string{"status", "rca", "resume"} {
				if got := ask(verb + " " + name); !strings.Contains(got, sid) || strings.Contains(got, "no case") {
					t.Errorf("%s %s = %q", verb, name, got)
				}
			}
		}
		for _, name := range []string{"#1", "1", "red", "../../etc", strings.Repeat("x", 500), "ghost_", "`" + sid + "` `" + sid + "`"} {
			for _, verb := range []string{"status", "rca", "resume", "stop"} {
				if got := ask(verb + " " + name); !strings.Contains(got, "There is no case `") || len(got) > 200 {
					t.Errorf("%s %s = %q", verb, name, got)
				}
			}
		}
		if got := ask("stop `" + sid + "`, please"); !strings.Contains(got, "Stopping `"+sid+"`") {
			t.Errorf("stop = %q", got)
		}
		p.awaitClosed([]string{sid})
	})
}
