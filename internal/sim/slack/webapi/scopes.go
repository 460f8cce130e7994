package webapi

import (
	"slices"
	"strings"
	"sync"
)

// beside are the scopes that no method of the tables asks for by itself: those of events, of
// commands, and of private channels.
var beside = []string{"app_mentions:read", "commands", "groups:history", "groups:read", "im:history"}

// grants are the scopes of the bot's token, which an admin may change while it is in use.
type grants struct {
	mu  sync.Mutex
	has []string // nil: all
}

// AllScopes are the scopes that the methods and events here ask for.
func (a *API) AllScopes() []string {
	out := slices.Clone(beside)
	for _, m := range a.methods {
		if m.scope != "" && m.token == botToken && !slices.Contains(out, m.scope) {
			out = append(out, m.scope)
		}
	}
	slices.Sort(out)
	return out
}

// Grant gives the bot's token these scopes and no others, as when the app is installed again;
// nil: all.
func (a *API) Grant(scopes []string) {
	a.grants.mu.Lock()
	defer a.grants.mu.Unlock()
	a.grants.has = slices.Clone(scopes)
}

// Granted reports whether the bot's token has a scope.
func (a *API) Granted(scope string) bool { return slices.Contains(a.scopes(), scope) }

func (a *API) scopes() []string {
	a.grants.mu.Lock()
	has := a.grants.has
	a.grants.mu.Unlock()
	if has != nil {
		return has
	}
	return a.AllScopes()
}

// told is what an answer says of the scopes of the token that asked.
func (a *API) told(m method) string {
	if m.token == appToken {
		return m.scope
	}
	return strings.Join(a.scopes(), ",")
}

// needs is the scope that one call wants: reading a private channel takes another one than
// reading a public one.
func (a *API) needs(m method, args map[string]string) string {
	of, what, _ := strings.Cut(m.scope, ":")
	if of != "channels" || m.token != botToken {
		return m.scope
	}
	if ch, ok := a.ws.Channel(args["channel"]); ok && ch.Private || args["channel"] == "" && args["types"] == "private_channel" {
		return "groups:" + what
	}
	return m.scope
}
