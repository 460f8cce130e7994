package forensics

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"ghostbot/forensics/finding"
)

// benign faults are worth knowing and need not be loud.
var benign = map[string]bool{"pmtud-working": true, "capture-duplicates": true, "port-reuse": true, "nagle-delayed-ack": true, "small-receive-window": true,
	"icmp-redirect": true, "duplication": true, "reordering": true, "asymmetric-path": true, "slow-sender": true, "slow-client": true}

// TestFindings holds the rules to the labels: the fault first, or at least named; and
// healthy captures left in peace.
func TestFindings(t *testing.T) {
	dir := corpus(t)
	faults, first, named := 0, 0, 0
	for _, e := range index(t, dir) {
		a, err := Analyze(context.Background(), filepath.Join(dir, e.File), Options{})
		if err != nil {
			t.Fatal(err)
		}
		code := strings.ReplaceAll(e.Label, "_", "-")
		var codes, loud []string
		for _, f := range a.Findings {
			codes = append(codes, f.Code)
			if f.Severity >= finding.Medium {
				loud = append(loud, f.Code)
			}
			if f.Summary == "" || f.Detail == "" || f.Protocol == "" || f.Confidence <= 0 || f.Confidence > 1 {
				t.Errorf("%s: %s lacks something: %+v", e.File, f.Code, f)
			}
		}
		if e.Label == "healthy" && len(loud) > 0 {
			t.Errorf("%s: healthy, but %v", e.File, loud)
		}
		if e.Label == "healthy" && (len(codes) == 0 || codes[0] != "healthy") && len(loud) == 0 {
			t.Logf("%s: %v", e.File, codes)
		}
		if e.Label == "healthy" || e.Label == "unlabelled" || e.Label == "degraded" || len(e.Expected) == 0 {
			continue
		}
		if !benign[code] {
			codes = loud
		}
		faults++
		switch i := indexOf(codes, code); {
		case i == 0:
			first++
			named++
		case i > 0:
			named++
			t.Logf("%s: %s is not the first of %v", e.File, code, codes)
		default:
			t.Logf("%s: %s is not among %v", e.File, code, codes)
		}
	}
	t.Logf("%d labelled faults: %d first, %d named", faults, first, named)
	if first*100 < 85*faults || named*100 < 95*faults {
		t.Errorf("%d labelled faults: %d first, %d named", faults, first, named)
	}
}

func indexOf(list []string, s string) int {
	for i, x := range list {
		if x == s {
			return i
		}
	}
	return -1
}
