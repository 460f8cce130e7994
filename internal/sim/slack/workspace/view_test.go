package workspace

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func modal(title string) map[string]any {
	return map[string]any{
		"type": "modal", "callback_id": "cb", "title": map[string]any{"type": "plain_text", "text": title},
		"blocks": []any{map[string]any{"type": "divider"}}}
}

func TestTriggers(t *testing.T) {
	w, c := newWorkspace()
	ttl := 3 * time.Second
	id := w.NewTrigger(oncall, "V1", ttl)
	if _, _, err := w.UseTrigger("made.up"); !errors.Is(err, ErrInvalid) {
		t.Errorf("unknown: %v", err)
	}
	c.at = c.at.Add(ttl)
	user, parent, err := w.UseTrigger(id)
	if user != oncall || parent != "V1" || err != nil {
		t.Errorf("in time: %s %s %v", user, parent, err)
	}
	if _, _, err := w.UseTrigger(id); !errors.Is(err, ErrExchanged) {
		t.Errorf("twice: %v", err)
	}
	late := w.NewTrigger(oncall, "", ttl)
	c.at = c.at.Add(ttl + 1)
	if _, _, err := w.UseTrigger(late); !errors.Is(err, ErrExpired) {
		t.Errorf("late: %v", err)
	}
	if late == id {
		t.Error("the same id twice")
	}
	c.at = c.at.Add(2 * time.Hour)
	w.NewTrigger(oncall, "", ttl)
	if len(w.triggers) != 1 {
		t.Errorf("%d triggers are kept", len(w.triggers))
	}
}

func TestHooks(t *testing.T) {
	w, c := newWorkspace()
	id := w.NewHook(Hook{Channel: incidents, User: oncall, TS: "1.000000"}, 5, 30*time.Minute)
	c.at = c.at.Add(30 * time.Minute)
	for i := range 5 {
		h, err := w.UseHook(id)
		if err != nil || h.Channel != incidents || h.User != oncall || h.TS != "1.000000" {
			t.Fatalf("use %d: %+v, %v", i+1, h, err)
		}
	}
	if _, err := w.UseHook(id); !errors.Is(err, ErrExchanged) {
		t.Errorf("sixth use: %v", err)
	}
	late := w.NewHook(Hook{}, 5, time.Minute)
	c.at = c.at.Add(time.Minute + 1)
	if _, err := w.UseHook(late); !errors.Is(err, ErrExpired) {
		t.Errorf("late: %v", err)
	}
	if _, err := w.UseHook("made up"); !errors.Is(err, ErrInvalid) {
		t.Errorf("unknown: %v", err)
	}
	c.at = c.at.Add(3 * time.Hour)
	w.NewTrigger(oncall, "", time.Second)
	if len(w.hooks) != 0 {
		t.Errorf("%d hooks are kept", len(w.hooks))
	}
}

func titles(list []View) []string {
	out := []string{}
	for _, v := range list {
		out = append(out, v.User+" "+v.Title)
	}
	return out
}

func TestViewStack(t *testing.T) {
	w, _ := newWorkspace()
	one := w.OpenView(oncall, modal("one"), "")
	other := w.OpenView(commander, modal("other"), "")
	if one.Root != one.ID || one.Previous != "" || one.Callback != "cb" || len(one.BlockList()) != 1 {
		t.Errorf("opened: %+v", one)
	}
	two, err := w.PushView(oncall, one.ID, modal("two"), "")
	if err != nil || two.Previous != one.ID || two.Root != one.ID || two.Depth != 1 {
		t.Fatalf("pushed: %+v, %v", two, err)
	}
	three, err := w.PushView(oncall, two.ID, modal("three"), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.PushView(oncall, three.ID, modal("four"), ""); !errors.Is(err, ErrStack) {
		t.Errorf("a fourth view: %v", err)
	}
	if _, err := w.PushView("U0SUPPORT1", one.ID, modal("x"), ""); !errors.Is(err, ErrNoView) {
		t.Errorf("pushing without a modal: %v", err)
	}
	if diff := cmp.Diff([]string{oncall + " one", commander + " other", oncall + " two", oncall + " three"}, titles(w.Views())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{oncall + " three", oncall + " two"}, titles(w.CloseView(two.ID, false, ""))); diff != "" {
		t.Error(diff)
	}
	if got := w.CloseView("V404", false, ""); got != nil {
		t.Errorf("closing nothing: %v", got)
	}
	if _, err := w.PushView(oncall, one.ID, modal("two again"), ""); err != nil {
		t.Fatal(err)
	}
	if got := w.CloseView(one.ID, true, ""); len(got) != 2 {
		t.Errorf("clearing: %v", titles(got))
	}
	if diff := cmp.Diff([]string{commander + " other"}, titles(w.Views())); diff != "" {
		t.Error(diff)
	}
	events, cancel := w.Subscribe(1024)
	defer cancel()
	w.OpenView(commander, modal("instead"), "trigger")
	if e := <-events; e.Kind != "view_closed" || e.View.ID != other.ID {
		t.Errorf("event: %+v", e)
	}
	if e := <-events; e.Kind != "view" || e.Cause != "trigger" || e.User != commander {
		t.Errorf("event: %+v", e)
	}
}

func TestUpdateView(t *testing.T) {
	w, c := newWorkspace()
	def := modal("one")
	def["external_id"] = "ext"
	v := w.OpenView(oncall, def, "")
	c.at = c.at.Add(time.Second)
	next := modal("two")
	next["external_id"] = "ext"
	got, err := w.UpdateView("ext", v.Hash, next, "")
	if err != nil || got.ID != v.ID || got.Title != "two" || got.Hash == v.Hash {
		t.Fatalf("by external id: %+v, %v", got, err)
	}
	if _, err := w.UpdateView(v.ID, v.Hash, modal("three"), ""); !errors.Is(err, ErrHash) {
		t.Errorf("with the old hash: %v", err)
	}
	if _, err := w.UpdateView(v.ID, "", modal("three"), ""); err != nil {
		t.Errorf("without hash: %v", err)
	}
	if _, err := w.UpdateView("V404", "", modal("x"), ""); !errors.Is(err, ErrNoView) {
		t.Errorf("unknown: %v", err)
	}
	if found, ok := w.FindView(v.ID); !ok || found.Title != "three" {
		t.Errorf("found: %+v", found)
	}
}

func TestHome(t *testing.T) {
	w, c := newWorkspace()
	one, err := w.PublishHome(oncall, "", modal("one"))
	if err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(time.Second)
	two, err := w.PublishHome(oncall, one.Hash, modal("two"))
	if err != nil || two.ID != one.ID {
		t.Fatalf("second: %+v, %v", two, err)
	}
	if _, err := w.PublishHome(oncall, one.Hash, modal("three")); !errors.Is(err, ErrHash) {
		t.Errorf("old hash: %v", err)
	}
	if _, err := w.UpdateView(two.ID, "", modal("changed"), ""); err != nil {
		t.Errorf("views.update on a home tab: %v", err)
	}
	if h, ok := w.Home(oncall); !ok || h.Title != "changed" {
		t.Errorf("home: %+v", h)
	}
	if _, ok := w.Home(commander); ok {
		t.Error("a home tab nobody published")
	}
}
