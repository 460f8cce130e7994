package agent

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestDeviationsAreDocumented holds the page about recorded rows against the rows: each
// area has a test, each probe an opinion, and each row that a test here answers
// differently a reason.
func TestDeviationsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/deviations.md")
	if err != nil {
		t.Fatal(err)
	}
	says := func(what string) bool { return strings.Contains(string(page), "`"+what+"`") }
	for id := range denialDeviations {
		if !says(id) {
			t.Errorf("%s is answered differently and not on the page", id)
		}
	}
	for id := range loopDeviations {
		if !says(id) {
			t.Errorf("%s is answered differently and not on the page", id)
		}
	}
	rows := 0
	for _, area := range []string{"denial", "hypotheses", "loop", "rca", "session", "resume", "config", "orphan_buckets", "startup_cleanup"} {
		if !says(area) {
			t.Errorf("nothing about area %s", area)
		}
		for _, raw := range rawVectors(t, area) {
			rows++
			var r struct{ ID, Kind string }
			if err := json.Unmarshal(raw, &r); err != nil {
				t.Fatal(err)
			}
			if r.Kind == "probe" && !says(r.ID) {
				t.Errorf("no opinion about the probe %s", r.ID)
			}
		}
	}
	if all := len(rawVectors(t, "")); rows != all {
		t.Errorf("%d of %d rows are in an area that the page knows", rows, all)
	}
}
