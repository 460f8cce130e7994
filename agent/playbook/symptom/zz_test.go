package symptom_test

import (
	"ghostbot/agent/playbook/symptom"
	"os"
	"strings"
	"testing"
)

func TestZZ(t *testing.T) {
	b, err := os.ReadFile("/tmp/pb/wordings.txt")
	if err != nil {
		t.Skip()
	}
	for _, l := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		s := symptom.Parse(l)
		x := short(s)
		t.Logf("%-60s | %s | dns=%s | %v %v since=%s int=%v cor=%v", x.Targets, "", x.Resolver, s.Kinds, s.Codes, s.Since, s.Intermittent, s.Correction)
		t.Log("      ", l)
	}
}
