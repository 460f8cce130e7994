package place

import (
	"strings"
	"testing"
	"time"

	"ghostbot/agent/playbook/phrase"
	"ghostbot/agent/playbook/read"
	"ghostbot/agent/playbook/rules"
)

// TestEverySentence: every text of the tables can be said about every kind of
// place, also when nothing is known about it yet.
func TestEverySentence(t *testing.T) {
	places := []string{
		"127.0.0.1:80", "https://[::1]:443/a?b=c", "redis://cache.example.com", "203.0.113.1 ping",
		"a.shop.test does not resolve", "a.shop.test does not resolve at DNS 127.0.0.1:5353",
	}
	var texts []string
	for _, r := range rules.All {
		texts = append(texts, r.Says)
		for _, c := range r.Confirm {
			texts = append(append(texts, c.Cause), c.Do...)
		}
	}
	for _, text := range places {
		p := at(t, text)
		for _, s := range texts {
			got := p.Text(s)
			if strings.ContainsAny(got, "{}") || got == "" {
				t.Errorf("%s: %q", text, got)
			}
		}
		if p.Title() == "" || p.Text("{t}") != p.Title() {
			t.Errorf("%s has the title %q", text, p.Title())
		}
	}
}

func TestSentences(t *testing.T) {
	p := at(t, "checkout gets 502 from http://127.0.0.1:19080/ since 10:40")
	p.Read(rules.ProbeNamed("fetch"), read.Output{Stdout: "HTTP/1.1 502 x\r\nServer: gw <!channel>\r\n\r\n<h1>Sorry</h1> <@U1> no `luck`" + read.Marker + "502 ip=127.0.0.1 dns=0.001 connect=0.002 tls=0 first=1.5 total=3.25"}, "", Moment{ID: "g_001"})
	tests := map[string]string{
		"{t} {host} {port} {code}":  "127.0.0.1:19080 127.0.0.1 19080 502",
		"up{since}":                 "up around 10:40",
		"says{by}":                  "says, served by gw !channel",
		"says{body}":                `says: "Sorry no luck"`,
		"{dns} {connect} {first}":   "1 ms 1 ms 1.5 s",
		"{rest}":                    "1.8 s",
		"{check}":                   "`curl -sS -i http://127.0.0.1:19080/`",
		"{queue}":                   "no listener",
		"{child}{loop}{last}{zone}": "",
		"{nonsense}":                "",
		"open { brace":              "open ",
	}
	for in, want := range tests {
		if got := p.Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for text, want := range map[string]string{
		"redis://10.0.0.7":                                "`nc -z -v 10.0.0.7 6379`",
		"http://[::1]:80/":                                "`curl -sS -i 'http://[::1]/'`",
		"a.shop.test does not resolve":                    "`dig a.shop.test`",
		"203.0.113.1 ping":                                "`ping -c 4 203.0.113.1`",
		"https://shop.example.com/cart?x=1 is slow today": "`curl -sS -i 'https://shop.example.com/cart?x=1'`",
	} {
		if got := at(t, text).Text("{check}"); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if got := at(t, "127.0.0.1:80 since the deploy").Text("down{since}"); got != "down with the last change" {
		t.Error(got)
	}
}

func TestFigures(t *testing.T) {
	for f, want := range map[float64]string{0: "0 ms", -1: "0 ms", 0.0004: "0 ms", 0.25: "250 ms", 0.9999: "1.0 s", 12.34: "12.3 s"} {
		if got := phrase.Seconds(f); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
	if phrase.Millis(250) != "250 ms" || phrase.Percent(60) != "60 %" || phrase.Percent(33.3333) != "33.3333 %" {
		t.Error("figures")
	}
	if phrase.Day(time.Time{}) != "a past day" || phrase.Day(time.Date(2026, 3, 14, 10, 45, 0, 0, time.FixedZone("", 3600))) != "2026-03-14 09:45 UTC" {
		t.Error("days")
	}
	for in, want := range map[string]string{"Nothing": "nothing", "DNS answers": "DNS answers", "": "", "a": "a"} {
		if got := phrase.LowerFirst(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestPlain(t *testing.T) {
	tests := []struct {
		in   string
		n    int
		want string
	}{
		{"a  b\nc\td", 20, "a b c d"},
		{"<!channel> *x* `y` @here", 40, "!channel x y here"},
		{"\u202eevil\u0000 \x1b[31mred", 40, "evil [31mred"},
		{strings.Repeat("x", 50), 10, "xxxxxxxxxx..."},
		{"naïve café", 40, "nave caf"},
		{"", 5, ""},
	}
	for _, tt := range tests {
		if got := phrase.Plain(tt.in, tt.n); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

// TestCheckedAndUnseen: what a report says about a place that works, and about
// what was not looked at.
func TestCheckedAndUnseen(t *testing.T) {
	p := at(t, "127.0.0.1:19082 was down at 10:40")
	m := Moment{ID: "g_001", Now: recordedAt}
	p.Read(rules.ProbeNamed("listeners"), recorded(t, "ss/listen_two"), "", m)
	p.Read(rules.ProbeNamed("fetch"), recorded(t, "curl/ok"), "", m)
	if got, want := p.Checked(), "127.0.0.1:19082: answered 1 of 1 requests (the last with 200, the slowest in 1 ms), its accept queue is empty."; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	gaps := strings.Join(p.Unseen("no_fault"), " ")
	for _, part := range []string{"What happened at 10:40 cannot be seen now", "Only the root path of 127.0.0.1:19082"} {
		if !strings.Contains(gaps, part) {
			t.Errorf("gaps %q lack %q", gaps, part)
		}
	}
	if gaps := p.Unseen("root_cause"); len(gaps) != 0 {
		t.Errorf("gaps of a found cause: %q", gaps)
	}
	p = at(t, "203.0.113.10 is slow")
	p.Read(rules.ProbeNamed("ping"), recorded(t, "ping/remote"), "", m)
	if !p.Works() || !strings.Contains(p.Checked(), "it answers ping") || !strings.Contains(strings.Join(p.Unseen("no_fault"), " "), "No port of 203.0.113.10") {
		t.Errorf("%v %s %q", p.Works(), p.Checked(), p.Unseen("no_fault"))
	}
	p = at(t, "redis://127.0.0.1:19082 times out")
	p.Read(rules.ProbeNamed("connect"), recorded(t, "nc/openbsd_open"), "", m)
	if !strings.Contains(strings.Join(p.Unseen("no_fault"), " "), "speaks its own protocol correctly was not tested") {
		t.Errorf("%q", p.Unseen("no_fault"))
	}
}

// TestBehind: what the places behind a place mean for it.
func TestBehind(t *testing.T) {
	m := Moment{ID: "g_001"}
	gateway := func() (*Place, *Place) {
		p := at(t, "127.0.0.1:19080 gives 502")
		p.Read(rules.ProbeNamed("fetch"), recorded(t, "curl/gateway"), "", m)
		found, _ := p.Take()
		if len(found) != 1 || found[0].String() != "127.0.0.1:19081" {
			t.Fatalf("found %v", found)
		}
		if again, _ := p.Take(); again != nil {
			t.Error("the same endpoint twice")
		}
		c := New(found[0], p.About)
		c.Parent = p
		p.Behind = []*Place{c}
		return p, c
	}
	done := func(*Place) bool { return true }
	p, c := gateway()
	c.Read(rules.ProbeNamed("connect"), recorded(t, "nc/openbsd_refused"), "", m)
	c.Read(rules.ProbeNamed("listeners"), recorded(t, "ss/listen_none"), "", m)
	p.SettleBehind(done)
	if causes := p.Causes(); !p.Has("behind-failed") || len(causes) != 1 || !strings.Contains(p.Text(causes[0].Reading.Cause), "Nothing listens on 127.0.0.1:19081: connections are refused, so 127.0.0.1:19080 answers 502") {
		t.Errorf("refused: %+v", causes)
	}
	p, c = gateway()
	for range 2 {
		c.Read(rules.ProbeNamed("fetch"), recorded(t, "curl/ok"), "", m)
	}
	c.End.Scheme = "http"
	p.SettleBehind(done)
	if !p.Has("behind-done") || p.Has("behind-failed") {
		t.Error("a healthy one behind")
	}
	p, _ = gateway()
	p.SettleBehind(done)
	if !p.Has("behind-unclear") {
		t.Error("one behind about which nothing is known")
	}
	p.SettleBehind(func(*Place) bool { return false })
	if p.Has("behind-unclear") || p.Has("behind-done") {
		t.Error("judged before it was looked at")
	}
	if !p.Leads(p.Behind[0]) || p.Behind[0].Leads(p) {
		t.Error("who leads to whom")
	}
}
