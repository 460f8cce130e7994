package neighbours

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/inbox"
	"ghostbot/bot/show"
	"ghostbot/bot/thread"
	"ghostbot/store/file"
)

var when = time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC)

func opening(sid, symptom string, at time.Time) Case {
	return Case{SID: sid, Symptom: symptom, Requester: "U1", Place: thread.Place{Transport: "slack", Channel: "C1"}, Created: at}
}

// TestNear: the nearest older cases of the same channel that look at the same are found,
// and of two that were opened in one moment exactly one finds the other.
func TestNear(t *testing.T) {
	mine := opening("ghost_20260314_104520", "checkout is slow", when.Add(8*time.Second))
	mine.From = "ghost_20260314_104513"
	oldest := opening("ghost_20260314_104512", "checkout is slow", when)
	replaced := opening(mine.From, "checkout is slow", when.Add(time.Second))
	second := opening("ghost_20260314_104514-2", "checkout is slow", when.Add(2*time.Second))
	twelfth := opening("ghost_20260314_104514-12", "checkout is slow", when.Add(2*time.Second+time.Millisecond))
	other := opening("ghost_20260314_104515", "dns fails", when.Add(3*time.Second))
	third := opening("ghost_20260314_104516", "checkout is slow", when.Add(4*time.Second))
	newer := opening("ghost_20260314_104521", "checkout is slow", when.Add(9*time.Second))
	twin := opening("ghost_20260314_104520-2", "checkout is slow", mine.Created)
	elsewhere := opening("ghost_20260314_104517", "checkout is slow", when.Add(5*time.Second))
	elsewhere.Place.Transport = "terminal"
	for _, c := range []struct {
		name string
		mine Case
		open []Case
		want []string
	}{
		{"nobody else", mine, []Case{mine}, nil},
		{"newest first, no more than three", mine, []Case{oldest, second, third, twelfth, mine}, []string{third.SID, twelfth.SID, second.SID}},
		{"not what is replaced, newer, about something else, or elsewhere", mine, []Case{replaced, newer, other, elsewhere, mine, oldest}, []string{oldest.SID}},
		{"the first of two in one moment", mine, []Case{mine, twin}, nil},
		{"the second of two in one moment", twin, []Case{mine, twin}, []string{mine.SID}},
	} {
		f := Finder{Alike: func(a, b string) bool { return a == b }, Active: func(_ context.Context, channel string) ([]Case, error) {
			if channel != "C1" {
				t.Errorf("%s: asks for channel %q", c.name, channel)
			}
			return slices.Clone(c.open), nil
		}}
		if got, err := f.Near(t.Context(), c.mine); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

// TestPoint: an older case is told once of each of three newer ones, the last time that
// there are more, and of no further one.
func TestPoint(t *testing.T) {
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	f := Finder{DB: db, Log: slog.New(slog.DiscardHandler)}
	older := "ghost_20260314_104512"
	for i := range 5 {
		mine := opening(fmt.Sprintf("ghost_20260314_10452%d", i), "checkout is slow", when)
		for range 2 { // as after a restart between the two
			if err := f.Point(t.Context(), mine, older); err != nil {
				t.Fatal(err)
			}
		}
	}
	vs, err := db.List(t.Context(), older, "inbox/")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for i, v := range vs {
		var it inbox.Item
		if err := json.Unmarshal(v.Data, &it); err != nil || it.Kind != show.KindOfNotice || it.Notice == nil || it.Notice.By != "U1" {
			t.Fatalf("%s: %+v, %v", v.Key.Name, it, err)
		}
		told = append(told, it.Notice.Cases[0].Case)
		if more := strings.Contains(it.Notice.Text, "Further ones are not named"); more != (i == Max-1) {
			t.Errorf("line %d says %q", i, it.Notice.Text)
		}
	}
	if want := []string{"ghost_20260314_104520", "ghost_20260314_104521", "ghost_20260314_104522"}; !slices.Equal(told, want) {
		t.Errorf("told of %v, want %v", told, want)
	}
}

// TestNamed: what a notice named is read back, and what people or other cases were told is not.
func TestNamed(t *testing.T) {
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	f := Finder{DB: db, Log: slog.New(slog.DiscardHandler)}
	entry := func(kind string, body any) agent.Entry {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		return agent.Entry{Kind: kind, Body: b}
	}
	want := []string{"ghost_20260314_104513", "ghost_20260314_104512"}
	pointed := show.Notice{By: "U1", Text: "opened another case", Cases: []show.Other{{Case: "ghost_20260314_104599"}}}
	got := Named([]agent.Entry{entry("turn", map[string]int{"turn": 1}), entry(show.KindOfNotice, pointed), entry(show.KindOfNotice, f.Notice(t.Context(), want)), {Kind: show.KindOfNotice, Body: []byte("{")}})
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
