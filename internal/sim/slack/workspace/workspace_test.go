package workspace

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/internal/sim/slack/blockkit"
)

// clock is a time that tests move by hand.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newWorkspace() (*Workspace, *clock) {
	c := &clock{time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)}
	return New(DefaultSeed(), c.now), c
}

const (
	incidents = "C0LAB00001"
	bot       = "U0GHOSTBOT"
	oncall    = "U0ONCALL01"
	commander = "U0COMMAND1"
)

func post(t *testing.T, w *Workspace, m Message) Message {
	t.Helper()
	if m.Channel == "" {
		m.Channel = incidents
	}
	if m.User == "" {
		m.User = bot
	}
	out, err := w.Post(m, "")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func texts(list []Message) []string {
	out := []string{}
	for _, m := range list {
		out = append(out, m.Text)
	}
	return out
}

// The seed promises what approval tests rely on.
func TestSeed(t *testing.T) {
	w, _ := newWorkspace()
	w.MarkApprovers(DefaultSeed().Approvers)
	var approve, not, restricted, foreign, gone, bots int
	ids := map[string]bool{}
	for _, u := range w.Users() {
		ids[u.ID] = true
		switch {
		case u.Bot:
			bots++
		case u.Deleted:
			gone++
		case u.Approver:
			approve++
		default:
			not++
		}
		if u.Restricted && !u.Approver {
			restricted++
		}
		if u.Stranger && u.TeamID != w.Team().ID {
			foreign++
		}
	}
	if approve < 2 || not < 2 || restricted != 1 || foreign != 1 || gone != 1 || bots != 2 {
		t.Errorf("approve %d, not %d, restricted %d, foreign %d, gone %d, bots %d", approve, not, restricted, foreign, gone, bots)
	}
	usable := 0
	for _, c := range w.Channels() {
		if !c.Archived && c.Member(bot) {
			usable++
		}
		for _, m := range c.Members {
			if !ids[m] {
				t.Errorf("#%s has the unknown member %s", c.Name, m)
			}
		}
	}
	if usable < 22 {
		t.Errorf("%d channels to spread load over, want 22", usable)
	}
	for _, name := range []string{"incidents", "#network"} {
		if _, ok := w.Channel(name); !ok {
			t.Errorf("no channel %s", name)
		}
	}
	if g := w.Groups(); len(g) != 1 || g[0].Handle != "netops-oncall" {
		t.Errorf("groups: %+v", g)
	}
}

func TestApprovers(t *testing.T) {
	for _, tt := range []struct {
		refs []string
		want []string
	}{
		{nil, nil}, {[]string{""}, nil}, {[]string{oncall}, []string{"oncall-netops"}},
		{[]string{"@commander"}, []string{"commander"}}, {[]string{"netops-oncall"}, []string{"oncall-netops", "oncall-netops-2"}},
		{[]string{"S0NETOPS01", commander}, []string{"oncall-netops", "oncall-netops-2", "commander"}}, {[]string{"nobody"}, nil},
	} {
		w, _ := newWorkspace()
		w.MarkApprovers(tt.refs)
		var got []string
		for _, u := range w.Users() {
			if u.Approver {
				got = append(got, u.Name)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v: %s", tt.refs, diff)
		}
	}
}

func TestTimestampsGrow(t *testing.T) {
	w, c := newWorkspace()
	last := ""
	for i := range 50 {
		if i == 25 {
			c.at = c.at.Add(-time.Hour) // clocks are set back now and then
		}
		m := post(t, w, Message{Text: "x"})
		if m.TS <= last {
			t.Fatalf("%s after %s", m.TS, last)
		}
		last = m.TS
	}
}

func TestThreads(t *testing.T) {
	w, _ := newWorkspace()
	root := post(t, w, Message{Text: "root", Broadcast: true})
	if root.Broadcast {
		t.Error("a message that is no reply cannot be a broadcast")
	}
	reply := post(t, w, Message{Text: "reply", ThreadTS: root.TS, User: oncall, Broadcast: true})
	if reply.ThreadTS != root.TS || !reply.Broadcast {
		t.Errorf("reply: %+v", reply)
	}
	if _, err := w.Post(Message{Channel: incidents, User: bot, ThreadTS: reply.TS}, ""); !errors.Is(err, ErrReplyParent) {
		t.Errorf("reply to a reply: %v", err)
	}
	if m := post(t, w, Message{Text: "lost", ThreadTS: "1.000001"}); m.ThreadTS != "" {
		t.Errorf("reply to nothing: %+v", m)
	}
	eph := post(t, w, Message{Text: "only you", ThreadTS: root.TS, Ephemeral: true, To: oncall})
	if m := post(t, w, Message{Text: "below", ThreadTS: eph.TS}); m.ThreadTS != "" {
		t.Errorf("reply to an ephemeral: %+v", m)
	}
	n, last, people := w.Replies(incidents, root.TS)
	if n != 1 || last != reply.TS || !cmp.Equal(people, []string{oncall}) {
		t.Errorf("replies: %d %s %v", n, last, people)
	}
	if err := w.Delete(incidents, root.TS, bot, ""); err != nil {
		t.Fatal(err)
	}
	if m, _ := w.Message(incidents, root.TS); m.Subtype != "tombstone" || strings.Contains(m.Text, "root") {
		t.Errorf("deleted parent: %+v", m)
	}
	if _, err := w.Update(incidents, root.TS, bot, "", func(*Message) {}); !errors.Is(err, ErrNoMessage) {
		t.Errorf("updating a deleted message: %v", err)
	}
	if err := w.Delete(incidents, root.TS, bot, ""); !errors.Is(err, ErrNoMessage) {
		t.Errorf("deleting twice: %v", err)
	}
}

func TestVisibility(t *testing.T) {
	w, _ := newWorkspace()
	post(t, w, Message{Text: "all"})
	post(t, w, Message{Text: "one", Ephemeral: true, To: oncall})
	post(t, w, Message{Text: "two", Ephemeral: true, To: commander})
	for viewer, want := range map[string][]string{
		"": {"all"}, oncall: {"all", "one"}, commander: {"all", "two"}, "*": {"all", "one", "two"}, "U0SUPPORT1": {"all"},
	} {
		if diff := cmp.Diff(want, texts(w.Messages(incidents, viewer))); diff != "" {
			t.Errorf("viewer %q: %s", viewer, diff)
		}
	}
	if got := w.Messages("C404", ""); len(got) != 0 {
		t.Errorf("unknown channel: %v", got)
	}
}

func TestUpdateAndDeleteRights(t *testing.T) {
	w, _ := newWorkspace()
	mine := post(t, w, Message{Text: "mine"})
	theirs := post(t, w, Message{Text: "theirs", User: oncall})
	eph := post(t, w, Message{Text: "e", Ephemeral: true, To: oncall})
	set := func(m *Message) { m.Text = "new" }
	for _, tt := range []struct {
		name, channel, ts, by string
		want                  error
	}{
		{"own", incidents, mine.TS, bot, nil}, {"foreign", incidents, theirs.TS, bot, ErrNotOwn},
		{"unknown", incidents, "1.000000", bot, ErrNoMessage}, {"other channel", "C0LAB00002", mine.TS, bot, ErrNoMessage},
		{"no channel", "C404", mine.TS, bot, ErrNoChannel}, {"ephemeral by ts", incidents, eph.TS, bot, ErrNoMessage},
		{"ephemeral by response URL", incidents, eph.TS, "", nil},
	} {
		_, err := w.Update(tt.channel, tt.ts, tt.by, "", set)
		if !errors.Is(err, tt.want) {
			t.Errorf("update %s: %v, want %v", tt.name, err, tt.want)
		}
		if tt.name == "ephemeral by ts" {
			continue // deleting is refused a layer above
		}
		if err := w.Delete(tt.channel, tt.ts, tt.by, ""); !errors.Is(err, tt.want) {
			t.Errorf("delete %s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if diff := cmp.Diff([]string{"theirs"}, texts(w.Messages(incidents, "*"))); diff != "" {
		t.Error(diff)
	}
}

func TestPages(t *testing.T) {
	w, _ := newWorkspace()
	lounge, _ := w.Channel("lounge")
	for _, tt := range []struct {
		name string
		m    Message
		want []string
	}{
		{"nobody", Message{Text: "hello"}, nil},
		{"one", Message{Text: "<@" + oncall + ">"}, []string{oncall}},
		{"oneself", Message{Text: "<@" + oncall + ">", User: oncall}, nil},
		{"group", Message{Text: "<!subteam^S0NETOPS01>"}, []string{oncall, "U0ONCALL02"}},
		{"one twice", Message{Text: "<@" + oncall + "> <!subteam^S0NETOPS01>"}, []string{oncall, "U0ONCALL02"}},
		{"everybody", Message{Text: "<!channel>"}, []string{oncall, "U0ONCALL02", commander, "U0WEBDEV01", "U0SUPPORT1", "U0GUESTVND", "U0PARTNER1"}},
		{"not in the channel", Message{Text: "<@U0PARTNER1>", Channel: lounge.ID}, nil},
		{"bots and former people", Message{Text: "<@U0ALERTS01> <@U0FORMER01>"}, nil},
		{"to oneself only", Message{Text: "<!channel>", Ephemeral: true, To: oncall}, nil},
	} {
		m := post(t, w, tt.m)
		if diff := cmp.Diff(tt.want, m.Paged); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	before := len(w.Pages())
	m := post(t, w, Message{Text: "quiet <@" + oncall + ">"})
	got, err := w.Update(incidents, m.TS, bot, "", func(m *Message) { m.Text = "<@" + oncall + "> <!here>" })
	if err != nil || len(got.Paged) != 1 {
		t.Fatalf("an edit notifies nobody new: %+v, %v", got, err)
	}
	pages := w.Pages()[before:]
	if len(pages) != 2 || pages[0].Silent || !pages[1].Silent || !cmp.Equal(pages[1].Mentions, blockkit.Mentions{Users: []string{}, Groups: nil, Broadcasts: []string{"here"}}, cmp.Transformer("nil", func(s []string) []string { return append([]string{}, s...) })) {
		t.Errorf("pages: %+v", pages)
	}
}

func TestReactions(t *testing.T) {
	w, _ := newWorkspace()
	m := post(t, w, Message{Text: "x"})
	step := func(name string, f func(c, ts, emoji, user string) (bool, error), emoji, user string, want bool) {
		t.Helper()
		got, err := f(incidents, m.TS, emoji, user)
		if err != nil || got != want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	step("first", w.React, "eyes", bot, true)
	step("again", w.React, "eyes", bot, false)
	step("second person", w.React, "eyes", oncall, true)
	step("other", w.React, "+1", oncall, true)
	step("take back", w.Unreact, "eyes", bot, true)
	step("take back twice", w.Unreact, "eyes", bot, false)
	step("last of its kind", w.Unreact, "+1", oncall, true)
	got, _ := w.Message(incidents, m.TS)
	if diff := cmp.Diff([]Reaction{{Name: "eyes", Users: []string{oncall}}}, got.Reactions); diff != "" {
		t.Error(diff)
	}
	if _, err := w.React(incidents, "1.000000", "x", bot); !errors.Is(err, ErrNoMessage) {
		t.Errorf("unknown message: %v", err)
	}
	if _, err := w.Unreact("C404", m.TS, "x", bot); !errors.Is(err, ErrNoChannel) {
		t.Errorf("unknown channel: %v", err)
	}
}

func TestStatus(t *testing.T) {
	w, c := newWorkspace()
	root := post(t, w, Message{Text: "root"})
	show := func(text string) { w.SetStatus(Status{Channel: incidents, ThreadTS: root.TS, Text: text}) }
	count := func(what string, want int) {
		t.Helper()
		if got := len(w.Statuses()); got != want {
			t.Errorf("%s: %d statuses, want %d", what, got, want)
		}
	}
	show("thinks")
	count("set", 1)
	show("")
	count("cleared", 0)
	show("thinks")
	post(t, w, Message{Text: "e", ThreadTS: root.TS, Ephemeral: true, To: oncall})
	count("after an ephemeral", 1)
	post(t, w, Message{Text: "reply", ThreadTS: root.TS})
	count("after a message", 0)
	show("thinks")
	c.at = c.at.Add(2 * time.Minute)
	count("after two minutes", 0)
}

func TestDirectAndJoin(t *testing.T) {
	w, _ := newWorkspace()
	d, ok := w.Direct(oncall)
	if !ok || !d.IM || !d.Member(oncall) || !d.Member(bot) {
		t.Fatalf("direct: %+v", d)
	}
	if again, _ := w.Direct(oncall); again.ID != d.ID {
		t.Errorf("a second conversation: %s, %s", d.ID, again.ID)
	}
	if _, ok := w.Direct("U0FORMER01"); ok {
		t.Error("deactivated people have no conversation")
	}
	if _, ok := w.Channel("oncall-netops"); ok {
		t.Error("a direct conversation has no channel name")
	}
	for _, c := range w.Channels() {
		if c.IM {
			t.Error("direct conversations are not listed")
		}
	}
	lounge, _ := w.Channel("lounge")
	w.Join(lounge.ID, bot)
	w.Join(lounge.ID, bot)
	if c, _ := w.Channel("lounge"); len(c.Members) != len(lounge.Members)+1 {
		t.Errorf("members: %v", c.Members)
	}
}

func TestPins(t *testing.T) {
	w, _ := newWorkspace()
	m := post(t, w, Message{Text: "x"})
	if w.Pin(incidents, "1.000000") || !w.Pin(incidents, m.TS) || !w.Pin(incidents, m.TS) {
		t.Error("pin")
	}
	if c, _ := w.Channel(incidents); !cmp.Equal(c.Pinned, []string{m.TS}) {
		t.Errorf("pinned: %v", c.Pinned)
	}
	w.Unpin(incidents)
	if c, _ := w.Channel(incidents); len(c.Pinned) != 0 {
		t.Errorf("pinned: %v", c.Pinned)
	}
}

// Copies: what a caller gets does not change under its hands.
func TestCopies(t *testing.T) {
	w, _ := newWorkspace()
	c, _ := w.Channel(incidents)
	c.Members[0] = "changed"
	if again, _ := w.Channel(incidents); again.Members[0] == "changed" {
		t.Error("members are shared")
	}
	m := post(t, w, Message{Text: "x"})
	if _, err := w.React(incidents, m.TS, "eyes", bot); err != nil {
		t.Fatal(err)
	}
	one, _ := w.Message(incidents, m.TS)
	if _, err := w.React(incidents, m.TS, "eyes", oncall); err != nil {
		t.Fatal(err)
	}
	if len(one.Reactions[0].Users) != 1 {
		t.Error("reactions are shared")
	}
}

func TestSubscribe(t *testing.T) {
	w, _ := newWorkspace()
	events, cancel := w.Subscribe(1024)
	m := post(t, w, Message{Text: "a"})
	post(t, w, Message{Text: "b", Ephemeral: true, To: oncall})
	w.Announce(Event{Kind: "sockets", Text: "1"})
	if err := w.Delete(incidents, m.TS, bot, "why"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 4 {
		e := <-events
		got = append(got, strings.TrimSpace(e.Kind+" "+e.User+" "+e.Cause))
	}
	if diff := cmp.Diff([]string{"message", "ephemeral " + oncall, "sockets", "message_deleted  why"}, got); diff != "" {
		t.Error(diff)
	}
	cancel()
	cancel()
	if _, open := <-events; open {
		t.Error("still open")
	}
	slow, cancel := w.Subscribe(1024)
	defer cancel()
	for range 1030 {
		w.Announce(Event{Kind: "x"})
	}
	n := 0
	for range slow {
		n++
	}
	if n != 1024 {
		t.Errorf("a subscriber that fell behind got %d events before it was cut off", n)
	}
}

func TestFiles(t *testing.T) {
	w, _ := newWorkspace()
	f := w.Reserve(bot, "report.md", "", 5)
	if _, ok := w.File(f.ID); ok {
		t.Error("a reserved file is not there yet")
	}
	if err := w.Upload("wrong", []byte("hello")); !errors.Is(err, ErrNoFile) {
		t.Errorf("wrong address: %v", err)
	}
	if err := w.Upload(f.Secret, []byte("hell")); !errors.Is(err, ErrSize) {
		t.Errorf("wrong size: %v", err)
	}
	if _, err := w.Finish(f.ID, "", nil); !errors.Is(err, ErrNoFile) {
		t.Errorf("finishing before uploading: %v", err)
	}
	if err := w.Upload(f.Secret, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	got, err := w.Finish(f.ID, "Title", []string{incidents, incidents})
	if err != nil || got.Title != "Title" || len(got.Channels) != 1 || got.Kind != "markdown" || string(got.Content) != "hello" {
		t.Errorf("finished: %+v, %v", got, err)
	}
	if !w.RemoveFile(f.ID) || w.RemoveFile(f.ID) {
		t.Error("remove")
	}
}

func TestFileTypes(t *testing.T) {
	for name, want := range map[string][2]string{
		"a.md": {"text/markdown", "markdown"}, "b.LOG": {"text/plain", "text"}, "noext": {"text/plain", "text"},
		"c.json": {"application/json", "json"}, "d.pcap": {"application/vnd.tcpdump.pcap", "binary"},
		"e.png": {"image/png", "png"}, "f.zzz": {"application/octet-stream", "zzz"},
	} {
		mime, kind := classify(name)
		if mime != want[0] || kind != want[1] {
			t.Errorf("%s: %s, %s", name, mime, kind)
		}
	}
}

func TestSaveAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "state.json")
	w, c := newWorkspace()
	secret := w.Secret("token")
	root := post(t, w, Message{Text: "root <@" + oncall + ">", Metadata: json.RawMessage(`{"event_type":"t","event_payload":{}}`)})
	post(t, w, Message{Text: "reply", ThreadTS: root.TS})
	w.Pin(incidents, root.TS)
	d, _ := w.Direct(oncall)
	post(t, w, Message{Text: "hello", Channel: d.ID})
	f := w.Reserve(bot, "a.txt", "", 1)
	if err := errors.Join(w.Upload(f.Secret, []byte("x")), second(w.Finish(f.ID, "", nil))); err != nil {
		t.Fatal(err)
	}
	v := w.OpenView(oncall, modal("Open"), "")
	if _, err := w.PublishHome(oncall, "", modal("Home")); err != nil {
		t.Fatal(err)
	}
	if err := w.Save(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file mode: %v, %v", info.Mode(), err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := w.Save(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("saved although nothing changed")
	}
	w.Pin(incidents, root.TS)
	w.Unpin("C404")
	post(t, w, Message{Text: "later"})
	if err := w.Save(path); err != nil {
		t.Fatal(err)
	}

	again := New(DefaultSeed(), c.now)
	if err := again.Load(path); err != nil {
		t.Fatal(err)
	}
	if again.Secret("token") != secret {
		t.Error("the secret changed")
	}
	if diff := cmp.Diff(w.Messages(incidents, "*"), again.Messages(incidents, "*")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(w.Pages(), again.Pages()); diff != "" {
		t.Error(diff)
	}
	if got := again.Messages(d.ID, ""); len(got) != 1 {
		t.Errorf("direct messages: %v", got)
	}
	if ch, _ := again.Channel(incidents); !cmp.Equal(ch.Pinned, []string{root.TS}) {
		t.Errorf("pinned: %v", ch.Pinned)
	}
	if file, ok := again.File(f.ID); !ok || string(file.Content) != "x" {
		t.Errorf("file: %+v", file)
	}
	if got := again.Views(); len(got) != 1 || got[0].ID != v.ID {
		t.Errorf("views: %+v", got)
	}
	if h, ok := again.Home(oncall); !ok || h.Title != "Home" {
		t.Errorf("home: %+v", h)
	}
	if m := post(t, again, Message{Text: "new"}); m.TS <= root.TS {
		t.Errorf("ts went back: %s", m.TS)
	}
}

func second[T any](_ T, err error) error { return err }

func TestLoadFailures(t *testing.T) {
	w, _ := newWorkspace()
	if err := w.Load(filepath.Join(t.TempDir(), "absent")); err != nil {
		t.Errorf("absent file: %v", err)
	}
	if err := w.Load(t.TempDir()); err == nil {
		t.Error("a directory was loaded")
	}
	torn := filepath.Join(t.TempDir(), "torn")
	if err := os.WriteFile(torn, []byte(`{"version":1,"mess`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.Load(torn); err == nil || !strings.Contains(err.Error(), torn) {
		t.Errorf("torn file: %v", err)
	}
	blocked := filepath.Join(torn, "below a file")
	post(t, w, Message{Text: "x"})
	if err := w.Save(blocked); err == nil {
		t.Error("saved below a file")
	}
	if err := w.Save(filepath.Join(t.TempDir(), "s")); err != nil {
		t.Errorf("a failed save is not the last word: %v", err)
	}
}
