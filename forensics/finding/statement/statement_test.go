package statement

import (
	"encoding/json"
	"testing"
)

func TestSeverity(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Severity
		ok   bool
	}{
		{"info", Info, true}, {"LOW", Low, true}, {"Medium", Medium, true}, {"high", High, true}, {"CRITICAL", Critical, true}, {"", 0, false}, {"loud", 0, false}, {"highh", 0, false},
	} {
		got, ok := ParseSeverity(tt.text)
		if got != tt.want || ok != tt.ok {
			t.Errorf("%q: %v, %v", tt.text, got, ok)
		}
	}
	if !(Info < Low && Low < Medium && Medium < High && High < Critical) {
		t.Error("severities are not ordered")
	}
}

func TestJSON(t *testing.T) {
	b, err := json.Marshal(Finding{Severity: High, Protocol: "tcp", Code: "x", Summary: "s", Detail: "d", Frames: []uint32{}, Confidence: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"severity":"HIGH","protocol":"tcp","code":"x","summary":"s","detail":"d","frames":[],"confidence":0.5}`; string(b) != want {
		t.Errorf("%s", b)
	}
}

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		ns   int64
		want string
	}{
		{0, "0s"}, {1, "less than 10µs"}, {9_999, "less than 10µs"}, {10_000, "10µs"}, {2_345_678, "2.35ms"}, {12_345_678, "12ms"}, {1_234_567_890, "1.23s"}, {61_234_567_890, "1m1.2s"},
	} {
		if got := Duration(tt.ns); got != tt.want {
			t.Errorf("%d: %s, want %s", tt.ns, got, tt.want)
		}
	}
	if Plural(1, "one", "many") != "1 one" || Plural(0, "one", "many") != "0 many" || Plural(7, "one", "many") != "7 many" {
		t.Error("plural")
	}
	if When(true, "a", "b") != "a" || When(false, "a", "b") != "b" {
		t.Error("when")
	}
}
