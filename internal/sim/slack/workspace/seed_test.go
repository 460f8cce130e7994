package workspace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seed.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A seed is plain JSON: the default one survives the trip through a file.
func TestReadSeed(t *testing.T) {
	raw, err := json.MarshalIndent(DefaultSeed(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadSeed(write(t, string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(DefaultSeed(), got); diff != "" {
		t.Error(diff)
	}
}

func TestReadSeedRefuses(t *testing.T) {
	const team = `"team":{"id":"T1","app_id":"A1","bot_id":"B1","bot_user_id":"U9"}`
	for _, tt := range []struct{ name, text, want string }{
		{"no JSON", "users:", "invalid character"},
		{"unknown member", `{"people":[]}`, `unknown field "people"`},
		{"no team", `{}`, "team: want id"},
		{"half a team", `{"team":{"id":"T1"}}`, "team: want id"},
		{"user without team", `{` + team + `,"users":[{"id":"U1","name":"x"}]}`, "want id, name and team_id"},
		{"user without name", `{` + team + `,"users":[{"id":"U1","team_id":"T1"}]}`, "want id, name and team_id"},
		{"channel without id", `{` + team + `,"channels":[{"name":"x"}]}`, "want id and name"},
	} {
		path := write(t, tt.text)
		_, err := ReadSeed(path)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := ReadSeed("/nonexistent"); err == nil {
		t.Error("a file that is not there was read")
	}
}

// A small seed of one's own makes a working place.
func TestOwnSeed(t *testing.T) {
	s, err := ReadSeed(write(t, `{"team":{"id":"T1","name":"Mine","app_id":"A1","bot_id":"B1","bot_user_id":"U9"},
		"users":[{"id":"U9","name":"app","team_id":"T1","is_bot":true},{"id":"U1","name":"me","team_id":"T1"}],
		"channels":[{"id":"C1","name":"here","members":["U1","U9"]}],"approvers":["me"]}`))
	if err != nil {
		t.Fatal(err)
	}
	w := New(s, time.Now)
	w.MarkApprovers(s.Approvers)
	if u, ok := w.User("me"); !ok || !u.Approver {
		t.Errorf("user: %+v", u)
	}
	m, err := w.Post(Message{Channel: "C1", User: "U9", Text: "<!channel>"}, "")
	if err != nil || !cmp.Equal(m.Paged, []string{"U1"}) {
		t.Errorf("posted: %+v, %v", m, err)
	}
}
