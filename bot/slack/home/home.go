// Package home is the Home tab of the app: the open cases of the channels that somebody
// is a member of, the commands that wait for them, and the last reports.
//
// # What is shown to whom
//
// Nothing of a channel that Slack does not name among the person's own
// (users.conversations). A look-up that fails shows nothing, and says so.
//
// # When it is published
//
// When somebody opens the tab, and again when something changed, for those who
// opened it within [keep]: not more than once in [every] for all of them together, at
// most [crowd] people at a time, and only when what they see differs. Nobody is queued:
// after an outage of Slack the newest state is published.
package home

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot"
	"ghostbot/bot/lobby"
	"ghostbot/bot/show"
	"ghostbot/bot/slack/entry"
	"ghostbot/bot/slack/kit"
)

const (
	// keep is how long a tab is kept up to date after it was opened.
	keep = 30 * time.Minute
	// every bounds how often tabs are published again, crowd how many at once:
	// together less than half of what Slack allows (views.publish: 100 a minute).
	every = 10 * time.Second
	crowd = 8
	// refusals is how often a tab that Slack refused is published again.
	refusals = 3
	// known bounds the people who are remembered.
	known = 500
	// shown is how many lines each part of the tab has.
	shown = 10
	// late bounds the publishing of one tab.
	late = 10 * time.Second
)

// API is the part of Slack's that publishes.
type API interface {
	PublishViewContext(ctx context.Context, req slackgo.PublishViewContextRequest) (*slackgo.ViewResponse, error)
}

// Options build a Home. All but Redact are required.
type Options struct {
	Lobby    *lobby.Lobby
	API      API
	Channels func(ctx context.Context, user string) (map[string]bool, error) // of which somebody is a member
	Base     func() string                                                   // address of the workspace
	Log      *slog.Logger
	Notice   func() string       // what everybody has to know, in one line, "" when nothing; nil: never anything
	Redact   func(string) string // masks credentials in what is published; nil: nothing is masked here
}

// Home publishes tabs. Opened and Touch never block.
type Home struct {
	o      Options
	wake   chan struct{}
	mu     sync.Mutex
	people map[string]*visitor
	dirty  bool
}

// visitor is somebody who opened the tab.
type visitor struct {
	opened time.Time
	due    bool   // opened, and not shown since
	last   string // what they see
	// refused counts what Slack refused since it was opened.
	refused int
}

// New returns a Home that publishes when Run runs.
func New(o Options) *Home {
	if o.Notice == nil {
		o.Notice = func() string { return "" }
	}
	return &Home{o: o, wake: make(chan struct{}, 1), people: map[string]*visitor{}}
}

// Opened notes that somebody opened the tab.
func (h *Home) Opened(user string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.people[user]
	if v == nil {
		if len(h.people) >= known {
			h.forget()
		}
		v = &visitor{}
		h.people[user] = v
	}
	v.opened, v.due, v.refused = time.Now(), true, 0
	h.signal()
}

// forget drops whoever opened the tab first. The caller holds h.mu.
func (h *Home) forget() {
	oldest := ""
	for u, v := range h.people {
		if oldest == "" || v.opened.Before(h.people[oldest].opened) {
			oldest = u
		}
	}
	delete(h.people, oldest)
}

// Touch notes that what tabs show may have changed.
func (h *Home) Touch() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.people) > 0 && !h.dirty {
		h.dirty = true
		h.signal()
	}
}

func (h *Home) signal() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Run publishes until ctx ends.
func (h *Home) Run(ctx context.Context) {
	var last time.Time
	for {
		wait := time.Hour
		if h.pending() {
			wait = max(0, every-time.Since(last))
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-h.wake:
			t.Stop()
			h.publish(ctx, h.due())
			continue
		case <-t.C:
		}
		last = time.Now()
		h.publish(ctx, h.all())
	}
}

func (h *Home) pending() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dirty
}

// due are those who opened the tab and do not see it yet.
func (h *Home) due() (out []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for u, v := range h.people {
		if v.due && len(out) < crowd {
			v.due = false
			out = append(out, u)
		}
	}
	if len(out) == crowd { // the others have their turn with the next change
		h.dirty = true
	}
	return out
}

// all are those whose tab is kept up to date: whoever does not see it yet, then whoever
// opened it last. Those who opened it long ago are forgotten.
func (h *Home) all() (out []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dirty = false
	for u, v := range h.people {
		if time.Since(v.opened) > keep {
			delete(h.people, u)
			continue
		}
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b string) int {
		if x, y := h.people[a], h.people[b]; x.due != y.due {
			return map[bool]int{true: -1, false: 1}[x.due]
		}
		return h.people[b].opened.Compare(h.people[a].opened)
	})
	for i, u := range out {
		h.dirty = h.dirty || i >= crowd && h.people[u].due
		h.people[u].due = h.people[u].due && i >= crowd
	}
	return out[:min(len(out), crowd)]
}

func (h *Home) publish(ctx context.Context, users []string) {
	for _, u := range users {
		pctx, done := context.WithTimeout(ctx, late)
		err := h.show(pctx, u)
		done()
		if err == nil || ctx.Err() != nil {
			continue
		}
		h.o.Log.Warn("home tab is not published", "user", u, "err", err)
		var limited *slackgo.RateLimitedError
		if h.again(u, errors.As(err, &limited)); limited != nil {
			return
		}
	}
}

// again lets what was not published be published the next time: what Slack limits always, what it
// refuses a few times after the tab was opened, because that may stand.
func (h *Home) again(user string, limited bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.people[user]
	if v != nil && !limited {
		v.refused++
	}
	h.dirty = h.dirty || limited || v != nil && v.refused <= refusals
}

func (h *Home) show(ctx context.Context, user string) error {
	_, blocks := kit.Whole("", h.view(ctx, user), h.o.Redact)
	raw, err := json.Marshal(blocks)
	if err != nil {
		return err
	}
	h.mu.Lock()
	v := h.people[user]
	same := v == nil || v.last == string(raw)
	h.mu.Unlock()
	if same {
		return nil
	}
	_, err = h.o.API.PublishViewContext(ctx, slackgo.PublishViewContextRequest{UserID: user,
		View: slackgo.HomeTabViewRequest{Type: slackgo.VTHomeTab, CallbackID: "ghost_home", Blocks: slackgo.Blocks{BlockSet: blocks}}})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if v := h.people[user]; v != nil {
		v.last = string(raw)
	}
	return nil
}

// View is what a tab shows.
type View struct {
	Waiting []lobby.Waiting
	Open    []lobby.Case
	Closed  []lobby.Case
	More    int // open cases that are not listed
	Failed  string
	Notice  string // of what does not work at all
}

// view reads what somebody may see.
func (h *Home) view(ctx context.Context, user string) []slackgo.Block {
	in, err := h.o.Channels(ctx, user)
	if err != nil {
		h.o.Log.Warn("channels of a person are not known", "user", user, "err", err)
		return Render(View{Notice: h.o.Notice(), Failed: "Your channels could not be looked up, so nothing is shown. Open this tab again in a moment."}, h.o.Base())
	}
	mine := func(c bot.CaseInfo) bool { return c.Opening.Place.Transport == "slack" && in[c.Opening.Place.Channel] }
	v := View{Notice: h.o.Notice()}
	p, err := h.o.Lobby.List(ctx, func(c bot.CaseInfo) bool { return mine(c) && !c.Closed }, 1, shown)
	v.Open, v.More = p.Cases, p.Open-len(p.Cases)
	if err == nil {
		p, err = h.o.Lobby.List(ctx, func(c bot.CaseInfo) bool { return mine(c) && c.Closed }, 1, shown/2)
		v.Closed = p.Cases
	}
	if err == nil {
		v.Waiting, err = h.o.Lobby.Waiting(ctx, user, mine)
	}
	if err != nil {
		h.o.Log.Error("home tab is not read", "err", err)
		return Render(View{Notice: h.o.Notice(), Failed: "The cases could not be read. Open this tab again in a moment."}, h.o.Base())
	}
	return Render(v, h.o.Base())
}

// Render lays a tab out. It is pure, and has no time in it that goes on: a tab stands
// for hours.
func Render(v View, base string) []slackgo.Block {
	blocks := []slackgo.Block{slackgo.NewHeaderBlock(kit.PlainText("Investigations", 150))}
	if v.Notice != "" {
		blocks = append(blocks, kit.Section(kit.Escape(v.Notice)))
	}
	if v.Failed != "" {
		return append(blocks, kit.Section(kit.Escape(v.Failed)))
	}
	blocks = append(blocks, kit.Section("*Waiting for you*"))
	if len(v.Waiting) == 0 {
		blocks = append(blocks, kit.ContextLine("No command waits for your decision."))
	}
	for _, w := range v.Waiting[:min(len(v.Waiting), shown)] {
		blocks = append(blocks, waiting(w, base)...)
	}
	if n := len(v.Waiting) - shown; n > 0 {
		blocks = append(blocks, kit.ContextLine(fmt.Sprintf("%d more wait in their threads.", n)))
	}
	blocks = append(blocks, slackgo.NewDividerBlock(), kit.Section("*Open cases*"))
	if len(v.Open) == 0 {
		blocks = append(blocks, kit.ContextLine("No case is open in your channels."))
	}
	for _, c := range v.Open {
		blocks = append(blocks, one(c, base)...)
	}
	if v.More > 0 {
		blocks = append(blocks, kit.ContextLine(fmt.Sprintf("%d more: `/ghost list` in their channels.", v.More)))
	}
	blocks = append(blocks, slackgo.NewDividerBlock(), kit.Section("*Last reports*"))
	if len(v.Closed) == 0 {
		blocks = append(blocks, kit.ContextLine("No case has ended yet."))
	}
	for _, c := range v.Closed {
		blocks = append(blocks, one(c, base)...)
	}
	return append(blocks, slackgo.NewDividerBlock(),
		kit.ContextLine("`/ghost investigate &lt;symptom&gt;` in a channel opens a case. Only cases of channels that you are a member of are shown here."))
}

func waiting(w lobby.Waiting, base string) []slackgo.Block {
	url := kit.Permalink(base, w.Place.Channel, w.Place.Thread, w.Card)
	return []slackgo.Block{
		slackgo.NewRichTextBlock("waiting-"+kit.Cut(w.SessionID+w.Card, 200), slackgo.NewRichTextSection(kit.Code(kit.Cut(w.Command, 300)))),
		kit.ContextLine(kit.Link(url, "Open the card") + "  ·  <#" + w.Place.Channel + ">  ·  case `" + kit.Escape(w.SessionID) + "`  ·  expires " + kit.When(w.Expires)),
	}
}

func one(c lobby.Case, base string) []slackgo.Block {
	url, label, state, when := kit.Permalink(base, c.Place.Channel, "", c.Place.Thread), "Open the thread", c.State, "opened "+date(c.CreatedAt)
	said := c.Symptom
	if c.Closed {
		state, when = entry.Verdict(c.Verdict), "ended "+date(c.ClosedAt)
		if c.Report != "" {
			url, label = kit.Permalink(base, c.Place.Channel, c.Place.Thread, c.Report), "Open the report"
		}
		if c.Summary != "" {
			said = c.Summary
		}
	}
	facts := kit.Link(url, label) + "  ·  <#" + c.Place.Channel + ">  ·  case `" + kit.Escape(c.SessionID) + "`  ·  " + when
	if c.Pending > 0 {
		facts += fmt.Sprintf("  ·  %d waiting for approval", c.Pending)
	}
	return []slackgo.Block{
		slackgo.NewRichTextBlock("case-"+kit.Cut(c.SessionID, 200), slackgo.NewRichTextSection(kit.Bold(show.OneLine(state)), kit.Word("  "+kit.Isolate(kit.Cut(show.OneLine(said), 300))))),
		kit.ContextLine(facts),
	}
}

// date is a day and a time in the reader's own zone.
func date(t time.Time) string {
	return fmt.Sprintf("<!date^%d^{date_short_pretty} {time}|%s>", t.Unix(), t.UTC().Format("2006-01-02 15:04 UTC"))
}
