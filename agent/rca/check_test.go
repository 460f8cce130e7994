package rca

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

func checked(t *testing.T, j *journal, md string) Checked {
	t.Helper()
	c, err := Check(md, j.input())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c Checked) says(part string) bool {
	for _, f := range c.Findings {
		if strings.Contains(f.What, part) {
			return true
		}
	}
	return false
}

// TestCheckExplains: each kind of change is named, with its line.
func TestCheckExplains(t *testing.T) {
	j := checkout(t)
	md := j.build().Markdown
	for _, tc := range []struct {
		name, old, new, want string
	}{
		{"a figure", "completed, exit 7", "completed, exit 0", "has the figure 0 where the journals give 7"},
		{"a time", "10:45:46Z U2 denied", "10:45:47Z U2 denied", "has the figure 10:45:47 where the journals give 10:45:46"},
		{"an id", "is refused | [" + sid + "_007]", "is refused | [" + sid + "_016]", "cites " + sid + "_016 where the journals give " + sid + "_007"},
		{"an id that does not exist", "[" + sid + "_046]", "[" + sid + "_999]", "cites " + sid + "_999, which is no entry of this case"},
		{"an id of another case", "[" + sid + "_031]", "[ghost_20250101_000000_031]", "cites ghost_20250101_000000_031, which belongs to another case"},
		{"a hash", "5d3babbb", "6d3babbb", "has the hash 6d3babbb181f633c15469cc55d3fb90c where the journals give 5d3babbb"},
		{"a sentence", "because its upstream does not listen", "because of a bad cable", `says "- Finding: The gateway answers 502 because of a bad cable.`},
		{"a line more", "## Gaps\n\n", "## Gaps\n\n- The moon [" + sid + "_001]\n", `the journals give no such line: "- The moon`},
		{"a line less", "- Not installed: `mtr -r 127.0.0.1` [" + sid + "_027]\n", "", "it lacks the line \"- Not installed: `mtr -r 127.0.0.1`"},
		{"the order", "## Root Cause\n\n1.", "\n## Root Cause\n1.", "the lines stand in another order"},
		{"a byte at the end", "in the thread.\n", "in the thread.\n\n", "or blanks differ"},
		{"line ends", "\n", "\r\n", "says"},
		{"a confidence", "_Confidence: medium_", "_Confidence: low_", `says "_Confidence: low_`},
	} {
		if !strings.Contains(md, tc.old) {
			t.Fatalf("%s: the report has no %q", tc.name, tc.old)
		}
		c := checked(t, j, strings.ReplaceAll(md, tc.old, tc.new))
		if c.OK() || !c.says(tc.want) || len(c.Findings) > maxFindings+1 {
			t.Errorf("%s: want %q, got %+v", tc.name, tc.want, c.Findings)
		}
	}
	if c := checked(t, j, md); !c.OK() || !c.Rebuilt || c.Posted || len(c.Findings) != 0 {
		t.Errorf("the report itself: %+v", c)
	}
	for _, none := range []string{"", "all is well", "# Root Cause Analysis: " + sid, strings.Repeat("x\n", 100_000)} {
		if c := checked(t, j, none); c.OK() || !c.says("it cites no entry") {
			t.Errorf("%.40q is a report: %+v", none, c)
		}
	}
}

// TestCheckFindsEveryChange changes each byte of a report in turn.
func TestCheckFindsEveryChange(t *testing.T) {
	j, id := small(t, completed("auto_approved", 0, "x"))
	j.confirm(id)
	j.tell(agent.KindConcluded, conclusion("high", RootCause, "found", []agent.Cause{{Statement: "c", Evidence: []string{id}}}))
	md := j.build().Markdown
	for i := 0; i < len(md); i += 3 {
		b := []byte(md)
		b[i] ^= 1
		if c := checked(t, j, string(b)); c.OK() || len(c.Findings) == 0 {
			t.Fatalf("byte %d (%q) changed: %+v", i, md[max(0, i-20):i+1], c)
		}
	}
}

// TestPostedReport: what the journal says was posted is a report, in whatever words
// this version would say it; a file that somebody hashes himself is not.
func TestPostedReport(t *testing.T) {
	j := checkout(t)
	old := strings.ReplaceAll(j.build().Markdown, "Course:", "Process:")
	if c := checked(t, j, old); c.OK() {
		t.Error("nobody posted it")
	}
	sum := sha256.Sum256([]byte(old))
	j.add(audit.Shell, "report", map[string]string{"sha256": hex.EncodeToString(sum[:])})
	if c := checked(t, j, old); c.OK() || c.Posted {
		t.Error("the shell journal posts no reports")
	}
	j.tell("report", map[string]string{"sha256": hex.EncodeToString(sum[:])})
	c := checked(t, j, old)
	if !c.OK() || !c.Posted || c.Rebuilt || len(c.Notes) == 0 || !strings.Contains(c.Notes[0].What, "words it differently") {
		t.Errorf("%+v", c)
	}
	if c := checked(t, j, j.build().Markdown); !c.OK() || c.Posted || !c.Rebuilt {
		t.Errorf("the one that is built now: %+v", c)
	}
	if c := checked(t, j, strings.ReplaceAll(old, "_007", "_999")); c.OK() {
		t.Error("a changed id in a posted report")
	}
}

// TestFiguresOfCauses: a figure that no cited entry shows is said, and is no fault.
func TestFiguresOfCauses(t *testing.T) {
	build := func(statement, output string) Checked {
		j, id := small(t, completed("auto_approved", 0, output))
		j.confirm(id)
		j.tell(agent.KindConcluded, conclusion("high", RootCause, "found", []agent.Cause{{Statement: statement, Evidence: []string{id}}}))
		return checked(t, j, j.build().Markdown)
	}
	if c := build("It loses 37 % of 120 packets on 192.0.2.1", "120 packets transmitted, 37% packet loss"); !c.OK() || len(c.Notes) != 0 {
		t.Errorf("%+v", c)
	}
	if c := build("It loses 73 % of 120 packets", "120 packets transmitted, 37% packet loss"); !c.OK() || len(c.Notes) != 1 || !strings.Contains(c.Notes[0].What, "figure 73") {
		t.Errorf("%+v", c)
	}
}

// TestArtefacts: files that commands and captures left are in the report with their
// hashes, each once, as it was last; summaries of captures stand in the report.
func TestArtefacts(t *testing.T) {
	hash := func(c string) string { return strings.Repeat(c, 64) }
	r := completed("user_approved", 0, "")
	r.Artefacts = []safeexec.Artefact{{Path: "/w/a.pcap", Size: 5, SHA256: hash("a")}, {Path: "/w/`big`|.pcap", Size: 1 << 40}}
	j, _ := small(t, r)
	second := completed("user_approved", 0, "")
	second.Artefacts = []safeexec.Artefact{{Path: "/w/a.pcap", Size: 6, SHA256: hash("b")}}
	last := j.run(cmd{text: "tcpdump -w a.pcap", class: safeexec.Risky, index: 2, result: second})
	task := j.add(audit.Tasks, orchestrator.KindTask, orchestrator.Task{TaskID: "ghost_front", SessionID: sid, Target: "front", State: orchestrator.Complete, PcapPath: "/w/front.pcap",
		Summary: "2 findings\n\n<!channel> HIGH retransmissions", Artefacts: []safeexec.Artefact{{Path: "/w/front.pcap", Size: 9, SHA256: hash("c")}, {Path: "/w/a.pcap", Size: 6, SHA256: hash("b")}},
		CleanupPlan: []orchestrator.CleanupStep{{What: orchestrator.StepLocal, Executed: true}}})
	j.tell(agent.KindConcluded, conclusion("low", Unverified, "", nil))
	rep := j.build()
	checkReport(t, j, rep)
	for _, want := range []string{
		"- Summary of ghost_front: 2 findings [" + task + "]\n- Summary of ghost_front: &lt;!channel&gt; HIGH retransmissions [" + task + "]\n",
		"- File `/w/a.pcap`, 6 bytes, SHA-256 `" + hash("b") + "` [" + last + "]\n",
		", 1099511627776 bytes, too long for a hash [",
		"- File `/w/front.pcap`, 9 bytes, SHA-256 `" + hash("c") + "`, removed by the clean-up [" + task + "]\n",
	} {
		if !strings.Contains(rep.Markdown, want) {
			t.Errorf("no %q in\n%s", want, rep.Markdown)
		}
	}
	list := checked(t, j, rep.Markdown).Artefacts
	if len(list) != 3 || list[0].SHA256 != hash("b") || !list[2].Cleaned || list[0].Cleaned {
		t.Errorf("%+v", list)
	}
	c := checked(t, j, strings.Replace(rep.Markdown, hash("c"), hash("d"), 1))
	if c.OK() || !c.says("has the hash "+hash("d")+" where the journals give "+hash("c")) {
		t.Errorf("%+v", c)
	}
}

// FuzzCheck: whatever a file holds, it is a report of these journals only when it is
// what they give, and every finding names a line that is there.
func FuzzCheck(f *testing.F) {
	j := checkout(&testing.T{})
	md := j.build().Markdown
	f.Add(md)
	f.Add(strings.ReplaceAll(md, "502", "503"))
	f.Add(md[:len(md)/2])
	f.Add("\xff[" + sid + "_001]\n\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Check(text, j.input())
		if err != nil {
			t.Fatal(err)
		}
		if c.OK() != (text == md) || c.Rebuilt != (text == md) || !c.OK() && len(c.Findings) == 0 {
			t.Errorf("%+v", c)
		}
		for _, x := range c.Findings {
			if x.Line < 0 || x.Line > strings.Count(text, "\n")+1 || len(x.What) > 2000 {
				t.Errorf("%+v", x)
			}
		}
	})
}
