package dotenv

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// dotEnvDeviations are the recorded rows that are read differently here, with what
// holds and why.
var dotEnvDeviations = map[string]struct {
	want map[string]string // nil: the file is refused
	why  string
}{
	"config-comments":      {nil, "a line that assigns nothing is a typing mistake, and switching something off by one must show"},
	"config-hash-in-value": {map[string]string{"SECRET": "ab#cd"}, "quotes quote"},
	"config-export":        {map[string]string{"A": "1"}, "export is what shells want, and no part of a name"},
}

// TestDotEnvVectors reads the recorded configuration files.
func TestDotEnvVectors(t *testing.T) {
	f, err := os.Open("../../../../shared/vectors/agent.jsonl")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	defer f.Close()
	rows := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		var r struct {
			ID, Area, Text string
			Env            map[string]string
			Expect         json.RawMessage
		}
		if json.Unmarshal(s.Bytes(), &r) != nil || r.Area != "config" {
			continue
		}
		rows++
		var want map[string]string
		if err := json.Unmarshal(r.Expect, &want); err != nil {
			t.Fatal(err)
		}
		if d, ok := dotEnvDeviations[r.ID]; ok {
			want = d.want
		}
		t.Run(r.ID, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for k, v := range r.Env {
				t.Setenv(k, v)
			}
			for _, name := range []string{"A", "B", "K", "SECRET"} {
				t.Cleanup(func() { os.Unsetenv(name) })
			}
			if err := os.WriteFile(".env", []byte(r.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := Load()
			if (err == nil) != (want != nil) {
				t.Fatalf("%v, want %v", err, want)
			}
			for _, k := range slices.Sorted(maps.Keys(want)) {
				if got := os.Getenv(k); got != want[k] {
					t.Errorf("%s = %q, want %q", k, got, want[k])
				}
			}
			if err != nil && strings.Contains(err.Error(), "trailing") {
				t.Errorf("the file is quoted: %v", err)
			}
		})
	}
	if rows == 0 {
		t.Error("no rows")
	}
}
