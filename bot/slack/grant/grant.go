// Package grant knows what the app may do at Slack, and says what does not work while it
// may not.
//
// # Where it is told
//
// Every answer of the Web API to the bot's token names the scopes of that token, so that
// a scope that is taken away, or comes back, is known with the next call. While one is missing the
// token is asked about every [Soon], else every [Seldom]: a bot that nobody calls notices as well.
// An answer that names no scopes changes nothing, but for one that refuses a call for a scope.
//
// # Without chat:write
//
// Nothing can be posted and nobody can be answered in a thread. What still works is the
// answer to a command, the window of a shortcut and the Home tab: those say so.
package grant

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// How often the token is asked about while a scope is missing, and while none is; Fresh
// is how long an answer is believed while one is missing and somebody waits.
const (
	Soon   = 20 * time.Second
	Seldom = 5 * time.Minute
	Fresh  = 2 * time.Second
)

// Write is the scope without which the bot cannot work at all.
const Write = "chat:write"

// Scope is one that the manifest asks for, and what does not work without it.
type Scope struct{ Name, Without string }

// Scopes are those of deploy/slack/manifest.yaml.
var Scopes = []Scope{
	{"app_mentions:read", "requests in a mention are not heard"},
	{"channels:history", "replies in threads of public channels are not heard, and a message of a process that died is not found again there"},
	{"channels:read", "whether the bot or a person is in a public channel is not known: Home tabs show nothing"},
	{Write, "nothing can be posted or edited: no case can be opened, and open ones show nothing"},
	{"commands", "/ghost and the message shortcut do not exist"},
	{"files:write", "reports, pictures and long outputs are not added as files"},
	{"groups:history", "replies in threads of private channels are not heard, and a message of a process that died is not found again there"},
	{"groups:read", "whether the bot or a person is in a private channel is not known: Home tabs show nothing"},
	{"usergroups:read", "members of approver groups are not known, so they may decide nothing"},
	{"users:read", "nobody's account can be checked, so every decision is refused"},
}

// Mend is what an admin has to do, for logs and for doctor.
const Mend = "add it under OAuth & Permissions, as deploy/slack/manifest.yaml has it, and install the app again"

// Parse reads the header that names scopes.
func Parse(header string) (names []string) {
	for name := range strings.SplitSeq(header, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Missing are the wanted scopes that are not among have.
func Missing(have []string) (out []Scope) {
	for _, s := range Scopes {
		if !slices.Contains(have, s.Name) {
			out = append(out, s)
		}
	}
	return out
}

// Watch follows the scopes of one token. Its methods are safe for concurrent use.
type Watch struct {
	log     *slog.Logger
	changed chan struct{}
	mu      sync.Mutex
	missing []Scope
	heard   time.Time
}

// New returns a watch that believes that nothing is missing.
func New(log *slog.Logger) *Watch { return &Watch{log: log, changed: make(chan struct{}, 1)} }

// Heard takes note of an answer: the header with the scopes, "" when it had none, and
// the scope for want of which a call was refused, or "".
func (w *Watch) Heard(header, refused string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	missing := w.missing
	switch have := Parse(header); {
	case len(have) > 0:
		missing = Missing(have)
	case refused != "":
		missing = with(missing, Parse(refused))
	default:
		return
	}
	w.heard = time.Now()
	if slices.Equal(missing, w.missing) {
		return
	}
	w.tell(missing)
	w.missing = missing
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// with is missing and the scopes of these names.
func with(missing []Scope, names []string) (out []Scope) {
	for _, s := range Scopes {
		if slices.Contains(missing, s) || slices.Contains(names, s.Name) {
			out = append(out, s)
		}
	}
	return out
}

// tell logs what changes. The caller holds w.mu.
func (w *Watch) tell(now []Scope) {
	for _, s := range now {
		if !slices.Contains(w.missing, s) {
			w.log.Error("the slack app lacks a scope", "scope", s.Name, "without_it", s.Without, "do", Mend)
		}
	}
	for _, s := range w.missing {
		if !slices.Contains(now, s) {
			w.log.Info("the slack app has a scope again", "scope", s.Name)
		}
	}
}

// Lacks reports whether a scope is missing, and whether that was heard a moment ago.
func (w *Watch) Lacks(name string) (lacks, fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.missing, func(s Scope) bool { return s.Name == name }), time.Since(w.heard) < Fresh
}

// Mute says in one line, for people, that the bot can post nothing and what has to be
// done; "" when it can.
func (w *Watch) Mute() string {
	if lacks, _ := w.Lacks(Write); !lacks {
		return ""
	}
	return "ghostbot may not write here: its Slack app lacks the scope " + Write + ". An admin of the app has to add it under OAuth & Permissions and reinstall the app; everything goes on by itself then."
}

// Run asks about the token, by ask, until ctx ends, and calls changed when a scope went
// or came. What ask hears reaches [Watch.Heard] by itself.
func (w *Watch) Run(ctx context.Context, ask func(ctx context.Context) error, changed func()) {
	for {
		d := Seldom
		if w.any() {
			d = Soon
		}
		t := time.NewTimer(d)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-w.changed:
			t.Stop()
			changed()
		case <-t.C:
			if err := ask(ctx); err != nil && ctx.Err() == nil {
				w.log.Info("the scopes of the slack app are not known now", "err", err)
			}
		}
	}
}

func (w *Watch) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.missing) > 0
}
