package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ghostbot/internal/sim/slack/blockkit"
)

// Errors of views, triggers and response URLs.
var (
	ErrNoView    = errors.New("view not found")
	ErrHash      = errors.New("view was changed in the meantime")
	ErrStack     = errors.New("view stack is full")
	ErrInvalid   = errors.New("trigger is unknown")
	ErrExpired   = errors.New("it has expired")
	ErrExchanged = errors.New("it was used before")
)

// View is a modal that is open for a person, or a person's Home tab.
type View struct {
	ID         string          `json:"id"`
	User       string          `json:"user"`
	Type       string          `json:"type"`
	Hash       string          `json:"hash"`
	Title      string          `json:"title"`
	Callback   string          `json:"callback_id"`
	External   string          `json:"external_id,omitempty"`
	Root       string          `json:"root_view_id"`
	Previous   string          `json:"previous_view_id,omitempty"`
	Definition json.RawMessage `json:"view"` // as the app gave it, with ids filled in
	Depth      int             `json:"depth"`
}

// maxStack is how many modals lie on top of each other.
const maxStack = 3

type trigger struct {
	user, parent string
	until        time.Time
	used         bool
}

// Hook is a response URL: where it answers to, how often and how long.
type Hook struct {
	ID       string
	Channel  string
	User     string
	TS       string // the message clicked, if any
	ThreadTS string
	Command  bool
	Cause    string
	until    time.Time
	left     int
}

// NewTrigger makes a trigger id for a person; parent is the view the action came from, if any.
func (w *Workspace) NewTrigger(userID, parent string, ttl time.Duration) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweep()
	id := fmt.Sprintf("%d.%d.%s", w.now().UnixMilli(), len(w.triggers)+1, Random(16))
	w.triggers[id] = &trigger{user: userID, parent: parent, until: w.now().Add(ttl)}
	return id
}

// sweepEvery bounds how often what is over is looked for.
const sweepEvery = time.Minute

// sweep forgets triggers and response URLs whose time is over by an hour, so that a long demo does
// not grow for ever.
func (w *Workspace) sweep() {
	now := w.now()
	if d := now.Sub(w.swept); d >= 0 && d < sweepEvery {
		return
	}
	w.swept = now
	old := now.Add(-time.Hour)
	for id, t := range w.triggers {
		if t.until.Before(old) {
			delete(w.triggers, id)
		}
	}
	for id, h := range w.hooks {
		if h.until.Before(old) {
			delete(w.hooks, id)
		}
	}
}

// UseTrigger spends a trigger id: who it belongs to and the view it came from.
func (w *Workspace) UseTrigger(id string) (userID, parent string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.triggers[id]
	switch {
	case t == nil:
		return "", "", ErrInvalid
	case t.used:
		return "", "", ErrExchanged
	case w.now().After(t.until):
		return "", "", ErrExpired
	}
	t.used = true
	return t.user, t.parent, nil
}

// NewHook makes a response URL's id.
func (w *Workspace) NewHook(h Hook, uses int, ttl time.Duration) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	h.ID, h.left, h.until = Random(12), uses, w.now().Add(ttl)
	w.hooks[h.ID] = &h
	return h.ID
}

// UseHook spends one use of a response URL.
func (w *Workspace) UseHook(id string) (Hook, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.hooks[id]
	switch {
	case h == nil:
		return Hook{}, ErrInvalid
	case w.now().After(h.until):
		return Hook{}, ErrExpired
	case h.left == 0:
		return Hook{}, ErrExchanged
	}
	h.left--
	return *h, nil
}

// view builds a View from what an app sent.
func (w *Workspace) view(userID string, def map[string]any) *View {
	if l, ok := def["blocks"].([]any); ok {
		blockkit.AssignIDs(l, func() string { return Random(3)[:5] })
	}
	v := &View{ID: w.nextID("V"), User: userID}
	v.define(def, w.now())
	return v
}

func (v *View) define(def map[string]any, now time.Time) {
	get := func(k string) string { s, _ := def[k].(string); return s }
	v.Type, v.Callback, v.External = get("type"), get("callback_id"), get("external_id")
	if t, ok := def["title"].(map[string]any); ok {
		v.Title, _ = t["text"].(string)
	}
	v.Hash = fmt.Sprintf("%d.%s", now.Unix(), Random(4))
	v.Definition = marshal(def)
}

// BlockList decodes the view's blocks.
func (v View) BlockList() []any {
	l, _ := v.Def()["blocks"].([]any)
	return l
}

// Def decodes the definition.
func (v View) Def() map[string]any {
	m := map[string]any{}
	_ = json.Unmarshal(v.Definition, &m)
	return m
}

// OpenView shows a modal on top of an empty stack: whatever modal the person had open is gone.
func (w *Workspace) OpenView(userID string, def map[string]any, cause string) View {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, old := range w.views {
		if old.User == userID {
			w.publish(Event{Kind: "view_closed", User: userID, View: old.copy(), Cause: cause})
		}
	}
	w.views = slices.DeleteFunc(w.views, func(v *View) bool { return v.User == userID })
	v := w.view(userID, def)
	v.Root = v.ID
	w.views = append(w.views, v)
	w.changed(Event{Kind: "view", User: userID, View: v.copy(), Cause: cause})
	return *v.copy()
}

// PushView puts a modal on top of the person's stack.
func (w *Workspace) PushView(userID, parent string, def map[string]any, cause string) (View, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	top := w.top(userID)
	if top == nil || w.find(parent) == nil {
		return View{}, ErrNoView
	}
	if top.Depth+1 >= maxStack {
		return View{}, ErrStack
	}
	v := w.view(userID, def)
	v.Root, v.Previous, v.Depth = top.Root, top.ID, top.Depth+1
	w.views = append(w.views, v)
	w.changed(Event{Kind: "view", User: userID, View: v.copy(), Cause: cause})
	return *v.copy(), nil
}

func (w *Workspace) top(userID string) *View {
	var top *View
	for _, v := range w.views {
		if v.User == userID && (top == nil || v.Depth > top.Depth) {
			top = v
		}
	}
	return top
}

func (w *Workspace) find(id string) *View {
	for _, v := range w.views {
		if v.ID == id || (v.External != "" && v.External == id) {
			return v
		}
	}
	for _, v := range w.homes {
		if v.ID == id || (v.External != "" && v.External == id) {
			return v
		}
	}
	return nil
}

func (v *View) copy() *View {
	out := *v
	return &out
}

// UpdateView replaces an open view, found by id or external id. A non-empty hash must be the
// present one.
func (w *Workspace) UpdateView(id, hash string, def map[string]any, cause string) (View, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.find(id)
	if v == nil {
		return View{}, ErrNoView
	}
	if hash != "" && hash != v.Hash {
		return View{}, ErrHash
	}
	if l, ok := def["blocks"].([]any); ok {
		blockkit.AssignIDs(l, func() string { return Random(3)[:5] })
	}
	v.define(def, w.now())
	w.changed(Event{Kind: "view_changed", User: v.User, View: v.copy(), Cause: cause})
	return *v.copy(), nil
}

// PublishHome sets a person's Home tab.
func (w *Workspace) PublishHome(userID, hash string, def map[string]any) (View, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.homes[userID]; old != nil && hash != "" && hash != old.Hash {
		return View{}, ErrHash
	}
	v := w.view(userID, def)
	if old := w.homes[userID]; old != nil {
		v.ID = old.ID
	}
	v.Root = v.ID
	w.homes[userID] = v
	w.changed(Event{Kind: "home", User: userID, View: v.copy()})
	return *v.copy(), nil
}

// Home is a person's Home tab.
func (w *Workspace) Home(userID string) (View, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v := w.homes[userID]; v != nil {
		return *v.copy(), true
	}
	return View{}, false
}

// Views lists the open modals, oldest first.
func (w *Workspace) Views() []View {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []View{}
	for _, v := range w.views {
		out = append(out, *v.copy())
	}
	return out
}

// FindView finds an open modal or Home tab by id.
func (w *Workspace) FindView(id string) (View, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v := w.find(id); v != nil {
		return *v.copy(), true
	}
	return View{}, false
}

// CloseView closes a modal and what lies on top of it; all closes the whole stack. It returns the
// closed views, top first.
func (w *Workspace) CloseView(id string, all bool, cause string) []View {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.find(id)
	if v == nil {
		return nil
	}
	var gone []View
	w.views = slices.DeleteFunc(w.views, func(o *View) bool {
		out := o.User == v.User && (all || o.Depth >= v.Depth)
		if out {
			gone = append(gone, *o.copy())
		}
		return out
	})
	slices.Reverse(gone)
	for _, o := range gone {
		w.changed(Event{Kind: "view_closed", User: o.User, View: o.copy(), Cause: cause})
	}
	return gone
}
