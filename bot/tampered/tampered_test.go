package tampered

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"ghostbot/agent"
	"ghostbot/bot/show"
)

// journal makes entries of kind, body, kind, body, ...
func journal(t *testing.T, parts ...any) (out []agent.Entry) {
	t.Helper()
	for i := 0; i < len(parts); i += 2 {
		body, err := json.Marshal(parts[i+1])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, agent.Entry{N: uint64(i/2 + 1), Kind: parts[i].(string), Body: body})
	}
	return out
}

func TestPast(t *testing.T) {
	q := Found{Why: []string{"gone"}, Session: "gone"}.Question(1, "approvers")
	next := Found{Why: []string{"changed"}, Session: "ab"}.Question(2, "approvers")
	tests := []struct {
		name    string
		entries []agent.Entry
		open    string
		choices int
		choice  string
		over    bool
	}{
		{"nothing", journal(t, agent.KindOpened, agent.Opened{}), "", 0, "", false},
		{"asked", journal(t, agent.KindQuestion, q), q.ID, 0, "", false},
		{"asked about something else", journal(t, agent.KindQuestion, agent.Question{ID: "continue-1", Kind: agent.AskContinue}), "", 0, "", false},
		{"chosen", journal(t, agent.KindQuestion, q, show.KindOfIntegrity, show.Integrity{Choice: Continue}), "", 1, Continue, false},
		{"asked again", journal(t, agent.KindQuestion, q, show.KindOfIntegrity, show.Integrity{Choice: Continue}, agent.KindQuestion, next), next.ID, 1, Continue, false},
		{"over", journal(t, agent.KindConcluded, agent.Conclusion{}), "", 0, "", true},
		{"not readable", []agent.Entry{{Kind: show.KindOfIntegrity, Body: []byte("1")}, {Kind: agent.KindQuestion, Body: []byte("[]")}}, "", 0, "", false},
	}
	for _, tt := range tests {
		p := PastOf(tt.entries)
		if p.Open.ID != tt.open || p.Choices != tt.choices || p.Last.Choice != tt.choice || p.Concluded != tt.over {
			t.Errorf("%s: %+v", tt.name, p)
		}
	}
}

// The id is the same while the files are, whatever is wrong with them, and another
// one for every other state.
func TestTheIDNamesTheFiles(t *testing.T) {
	base := Found{Why: []string{"it knows 7 entries"}, Session: "ab", Place: "p"}
	id := base.Question(1, "x").ID
	same := base
	same.Why = []string{"it knows 8 entries"}
	if got := same.Question(1, "x").ID; got != id {
		t.Errorf("other words make another question: %s, %s", got, id)
	}
	for _, other := range []Found{{Session: "abp"}, {Session: "ac", Place: "p"}, {Session: "ab", Place: "q"}, {Session: "gone", Place: "p"}} {
		if got := other.Question(1, "x").ID; got == id {
			t.Errorf("%+v has the id of %+v", other, base)
		}
	}
	if base.Question(2, "x").ID == id {
		t.Error("a second choice is the first one")
	}
	if q := base.Question(1, "x"); q.Kind != Kind || len(q.Options) != 3 || !q.Expires.IsZero() || !strings.Contains(q.Text, "it knows 7 entries") {
		t.Errorf("question %+v", q)
	}
}

func TestSettled(t *testing.T) {
	copied := Found{Why: []string{"copied"}, Session: "ab", Place: "here"}
	asked := Past{Open: Found{Why: []string{"cut off"}, Session: "ab"}.Question(1, "x")}
	tests := []struct {
		name   string
		found  Found
		past   Past
		copied bool
		want   string
	}{
		{"copied, chosen here", copied, Past{Last: show.Integrity{Choice: Continue, Place: "here"}}, true, ""},
		{"copied, chosen elsewhere", copied, Past{Last: show.Integrity{Choice: Continue, Place: "there"}}, true, "copied"},
		{"copied and changed", Found{Why: []string{"copied", "changed"}, Place: "here"}, Past{Last: show.Integrity{Choice: Continue, Place: "here"}}, true, "copied; changed"},
		{"a place nobody knows", Found{Why: []string{"copied"}}, Past{Last: show.Integrity{Choice: Continue}}, true, "copied"},
		{"asked, the same files", Found{Session: "ab"}, asked, false, "cut off"},
		{"asked, other files", Found{Session: "ac"}, asked, false, ""},
		{"nothing", Found{Session: "ab"}, Past{}, false, ""},
	}
	for _, tt := range tests {
		tt.found.Settled(tt.past, tt.copied)
		if got := strings.Join(tt.found.Why, "; "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestSession(t *testing.T) {
	file := func(c agent.Case) []byte {
		b, err := agent.SessionFile(c)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := file(agent.Case{SessionID: "s", Symptom: "502", LastN: 7})
	tests := []struct {
		name string
		data []byte
		n    uint64
		want string
	}{
		{"as left", good, 7, ""},
		{"behind", good, 9, ""},
		{"ahead", good, 6, "knows 7 entries and the journals hold 6"},
		{"changed", bytes.Replace(good, []byte("502"), []byte("503"), 1), 7, "does not match"},
		{"another case", file(agent.Case{SessionID: "t"}), 7, "belongs to another case"},
		{"no JSON", []byte("{"), 7, "damaged"},
		{"empty", nil, 7, "damaged"},
	}
	for _, tt := range tests {
		if got := Session(tt.data, "s", tt.n); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
