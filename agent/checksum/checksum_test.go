package checksum

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// The rows of area session about the file itself. Those about what an operator
// is asked when it does not check belong to whoever opens cases.
func TestVectors(t *testing.T) {
	f, err := os.Open("../../../shared/vectors/agent.jsonl")
	if os.IsNotExist(err) {
		if os.Getenv("CI") == "true" {
			t.Fatal("the regression data is missing")
		}
		t.Skip("the regression data is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	rows := 0
	for lines.Scan() {
		var r struct {
			ID, Area, Canonical string
			Data                json.RawMessage
			SHA256              string `json:"expect_sha256"`
		}
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.Area != "session" || r.Canonical == "" {
			continue
		}
		rows++
		got, err := canonical(r.Data)
		if err != nil || got != r.Canonical {
			t.Errorf("%s: canonical form\n got %s\nwant %s (%v)", r.ID, got, r.Canonical, err)
		}
		if sum, err := Of(r.Data); err != nil || sum != r.SHA256 {
			t.Errorf("%s: checksum %s, want %s (%v)", r.ID, sum, r.SHA256, err)
		}
	}
	if rows == 0 {
		t.Error("no row has a canonical form")
	}
}

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		`{}`: `{}`,
		` { "b":[ ] , "a":{"_checksum":1}, "_checksum":"x" } `: `{"a": {"_checksum": 1}, "b": []}`,
		`{"k":"\u007f\u0000\b\f\n\r\t\"\\/<>&\u2028é😀"}`:       `{"k": "\u007f\u0000\b\f\n\r\t\"\\/<>&\u2028\u00e9\ud83d\ude00"}`,
		`{"é":1,"z":2,"😀":3,"\uffee":4}`:                       `{"z": 2, "\u00e9": 1, "\uffee": 4, "\ud83d\ude00": 3}`,
		`{"a":[true,false,null,1,-0,1.0,2.5e0]}`:               `{"a": [true, false, null, 1, 0, 1.0, 2.5]}`,
	} {
		if got, err := canonical([]byte(in)); err != nil || got != want {
			t.Errorf("%s\n got %s\nwant %s (%v)", in, got, want, err)
		}
	}
	for _, bad := range []string{"", "[]", "{", `{} {}`, `{"a":1}x`, "null x"} {
		if sum, err := Of([]byte(bad)); err == nil {
			t.Errorf("%q has the checksum %s", bad, sum)
		}
	}
}

func TestPythonNumbers(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "12345678901234567890": "12345678901234567890", "2.5": "2.5", "1.0": "1.0", "1e3": "1000.0",
		"1e16": "1e+16", "123456789012345680.0": "1.2345678901234568e+17", "0.0001": "0.0001", "0.00001": "1e-05",
		"-0.0": "-0.0", "1e400": "Infinity", "-1e400": "-Infinity",
	} {
		if got := pyNumber(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// The sum depends on what an object says, not on how it is written.
func FuzzOf(f *testing.F) {
	f.Add(`{"a":[1,2.5,"x"],"b":{"c":null}}`)
	f.Add(`{"k":"\ud83d\ude00 \u0000","n":1e400}`)
	f.Fuzz(func(t *testing.T, in string) {
		want, err := Of([]byte(in))
		if err != nil {
			return
		}
		text, err := canonical([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(text); i++ {
			if text[i] < ' ' || text[i] > '~' {
				t.Fatalf("%q is not printable ASCII", text)
			}
		}
		if !json.Valid([]byte(text)) { // Infinity, which Python writes too
			return
		}
		if again, err := Of([]byte(text)); err != nil || again != want {
			t.Fatalf("%s: %s, then %s (%v)", in, want, again, err)
		}
	})
}
