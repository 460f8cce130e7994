package rca

import (
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestCheckout(t *testing.T) {
	j := checkout(t)
	r := j.build()
	golden(t, "checkout.md", r.Markdown)
	if r.Verdict != RootCause || r.Confidence != "medium" || r.Title != "Root cause found" || len(r.Causes) != 1 || len(r.Actions) != 2 || len(r.Unsupported) != 0 {
		t.Errorf("%+v", r)
	}
	checkReport(t, j, r)
}

// checkReport holds a report against the rules that every report obeys.
func checkReport(t *testing.T, j *journal, r Report) {
	t.Helper()
	exists := map[string]bool{}
	for _, e := range j.entries {
		exists[e.ID()] = true
	}
	for _, id := range r.Cited {
		if !exists[id] {
			t.Errorf("cited %s does not exist", id)
		}
	}
	if c, err := Check(r.Markdown, j.input()); err != nil || !c.OK() || !c.Rebuilt || c.Cited != len(r.Cited) {
		t.Errorf("check finds %+v, %v", c, err)
	}
	section := ""
	for _, line := range strings.Split(r.Markdown, "\n") {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			section = name
			continue
		}
		if section == "" || section == "Integrity Statement" || !states(line) {
			continue
		}
		if len(mentions(line, sid)) == 0 {
			t.Errorf("%s: no citation in %q", section, line)
		}
	}
	again := j.build()
	if again.Markdown != r.Markdown {
		t.Error("a second build differs")
	}
	for _, mark := range []string{"<!", "<@", "<#", "\u202e"} {
		if strings.Contains(r.Markdown, mark) {
			t.Errorf("the report contains %q", mark)
		}
	}
	if strings.Contains(r.Markdown, "\n\n\n") {
		t.Error("the report has empty paragraphs")
	}
}

// states reports whether a line of a section states something: a list item or a
// row of a table, its head not included.
func states(line string) bool {
	switch {
	case strings.HasPrefix(line, "|---"), strings.HasPrefix(line, "| Hypothesis ID"), strings.HasPrefix(line, "| Audit ID"), strings.HasPrefix(line, "| Task ID"):
		return false
	case strings.HasPrefix(line, "- "), strings.HasPrefix(line, "| "):
		return true
	}
	return len(line) > 2 && line[0] >= '1' && line[0] <= '9' && strings.Contains(line, ". ")
}

// What is appended after the end (the report's own entry) changes nothing.
func TestRebuildLater(t *testing.T) {
	j := checkout(t)
	want := j.build()
	j.tell("report", map[string]string{"path": "x"})
	j.tell("notice", "posted")
	if diff := cmp.Diff(want, j.build()); diff != "" {
		t.Errorf("later (-want +got):\n%s", diff)
	}
	slices.Reverse(j.entries)
	if got := j.build(); got.Markdown != want.Markdown {
		t.Error("the order of the input matters")
	}
}

func TestNothingToReport(t *testing.T) {
	if _, err := Build(Input{SessionID: sid}); !errors.Is(err, ErrEmpty) {
		t.Errorf("no entries: %v", err)
	}
	j := checkout(t)
	j.entries[3].SessionID = "ghost_20260101_000000"
	if _, err := Build(Input{SessionID: sid, Entries: j.entries}); err == nil {
		t.Error("entries of two cases are mixed")
	}
}

// An open case has a report too; it claims nothing.
func TestCaseThatIsOpen(t *testing.T) {
	full := checkout(t)
	for n := 1; n < len(full.entries); n++ {
		j := &journal{t: t, entries: full.entries[:n]}
		r := j.build()
		checkReport(t, j, r)
		if r.Confidence == "high" || !strings.Contains(r.Markdown, "not concluded") {
			t.Errorf("after entry %d: confidence %s", n, r.Confidence)
		}
	}
}

// small is a case with one hypothesis and one command, ready for a conclusion.
func small(t *testing.T, r safeexec.Result) (j *journal, id string) {
	j = &journal{t: t}
	j.tell(agent.KindOpened, agent.Opened{Symptom: "s", Requester: "U0", Brain: "b"})
	j.moves("", agent.ToolHypotheses, agent.ToolShell)
	j.state(0, agent.HypothesisEntry{Op: "add", ID: "H1", Description: "it is down"})
	id = j.run(cmd{text: "curl http://192.0.2.1/", hyp: "H1", class: safeexec.Safe, index: 1, result: r})
	return j, id
}

func (j *journal) confirm(ids ...string) {
	j.moves("", agent.ToolHypotheses)
	j.state(0, agent.HypothesisEntry{Op: "update", ID: "H1", State: agent.Confirmed, Evidence: ids, Why: "refused"})
}

func TestClaimsAndEvidence(t *testing.T) {
	ok := completed("auto_approved", 7, "")
	denied := safeexec.Result{Status: "denied", Action: "user_denied", DecidedBy: "U2"}
	cause := func(ids ...string) []agent.Cause { return []agent.Cause{{Statement: "the cause", Evidence: ids}} }
	ghost := sid + "_999"
	for _, tc := range []struct {
		name    string
		result  safeexec.Result
		confirm bool
		end     func(id string) agent.Conclusion
		want    string // verdict confidence causes unsupported
	}{
		{"shown and tested", ok, true, func(id string) agent.Conclusion {
			return conclusion("high", RootCause, "found", cause(id))
		}, "root_cause high 1 0"},
		{"shown, no hypothesis confirmed", ok, false, func(id string) agent.Conclusion {
			return conclusion("high", RootCause, "found", cause(id))
		}, "unverified low 0 2"},
		{"medium is not raised", ok, true, func(id string) agent.Conclusion {
			return conclusion("medium", RootCause, "found", cause(id))
		}, "root_cause medium 1 0"},
		{"the confirmed hypothesis is the cause", ok, true, func(string) agent.Conclusion {
			return conclusion("high", "", "found", nil)
		}, "root_cause high 1 0"},
		{"no evidence", ok, true, func(string) agent.Conclusion {
			return conclusion("high", RootCause, "found", cause())
		}, "unverified low 0 2"},
		{"invented evidence", ok, true, func(string) agent.Conclusion {
			return conclusion("high", RootCause, "found", cause(ghost))
		}, "unverified low 0 2"},
		{"some of it invented", ok, true, func(id string) agent.Conclusion {
			return conclusion("high", RootCause, "found", cause(id, ghost))
		}, "root_cause medium 1 0"},
		{"a real entry that shows nothing", ok, true, func(string) agent.Conclusion {
			return conclusion("high", RootCause, "found", cause(sid+"_001"))
		}, "unverified low 0 2"},
		{"invented citation in the words", ok, true, func(id string) agent.Conclusion {
			return conclusion("high", RootCause, "found, see "+ghost, cause(id))
		}, "root_cause low 1 1"},
		{"invented citation in a cause", ok, true, func(id string) agent.Conclusion {
			return conclusion("high", RootCause, "found", []agent.Cause{{Statement: "see " + ghost, Evidence: []string{id}}})
		}, "unverified low 0 2"},
		{"a citation of another case", ok, true, func(id string) agent.Conclusion {
			return conclusion("high", RootCause, "as in ghost_20250101_000000_004", cause(id))
		}, "root_cause low 1 1"},
		{"a denied command as evidence", denied, false, func(id string) agent.Conclusion {
			return conclusion("high", RootCause, "found", cause(id))
		}, "unverified low 0 2"},
		{"one cause of two", ok, true, func(id string) agent.Conclusion {
			return conclusion("high", RootCause, "found", append(cause(id), agent.Cause{Statement: "and another"}))
		}, "root_cause low 1 1"},
		{"no fault, checked", ok, false, func(string) agent.Conclusion {
			return conclusion("medium", NoFault, "all well", nil)
		}, "no_fault medium 0 0"},
		{"no fault although a hypothesis is confirmed", ok, true, func(string) agent.Conclusion {
			return conclusion("high", NoFault, "all well", nil)
		}, "unverified low 0 1"},
		{"no fault, not checked", denied, false, func(string) agent.Conclusion {
			return conclusion("high", NoFault, "all well", nil)
		}, "unverified low 0 1"},
		{"no fault with a cause", ok, false, func(id string) agent.Conclusion {
			return conclusion("high", NoFault, "all well", cause(id))
		}, "no_fault low 0 1"},
		{"given up", denied, false, func(string) agent.Conclusion {
			return conclusion("low", Unverified, "incomplete", nil)
		}, "unverified low 0 1"}, // nothing at all supports even that
		{"certain", ok, true, func(id string) agent.Conclusion {
			return conclusion("certain", RootCause, "found", cause(id))
		}, "root_cause low 1 0"},
		{"stopped", ok, true, func(id string) agent.Conclusion {
			return agent.Conclusion{EndedBy: "stopped", By: "U1", Complete: agent.Complete{Confidence: "low", Verdict: Unverified, Summary: "A person stopped the investigation."}}
		}, "unverified low 0 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j, id := small(t, tc.result)
			if tc.confirm {
				j.confirm(id)
			}
			j.tell(agent.KindConcluded, tc.end(id))
			r := j.build()
			got := strings.Join([]string{r.Verdict, r.Confidence, itoa(len(r.Causes)), itoa(len(r.Unsupported))}, " ")
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			checkReport(t, j, r)
			for _, s := range r.Unsupported {
				if i := strings.Index(r.Markdown, "## Not Supported"); i < 0 || s == "" {
					t.Errorf("%q is not listed as unsupported", s)
				}
			}
		})
	}
}

func itoa(n int) string { return string(rune('0' + n)) }

func conclusion(confidence, verdict, summary string, causes []agent.Cause) agent.Conclusion {
	return agent.Conclusion{EndedBy: "brain", Complete: agent.Complete{Confidence: confidence, Verdict: verdict, Summary: summary, Causes: causes}}
}

// TestTitles: only a case that was concluded has found a root cause.
func TestTitles(t *testing.T) {
	for by, want := range map[string][2]string{
		"brain":       {"Root cause found", "No root cause could be shown"},
		"stopped":     {"Stopped; a cause was found before", "Stopped before a cause was shown"},
		"budget":      {"Ended at the turn limit; a fault was shown until then", "Ended at the turn limit; no root cause was shown"},
		"brain_error": {"Ended without a conclusion; a fault was shown until then", "Ended without a conclusion; no root cause was shown"},
		"":            {"Not concluded; a fault was shown until then", "Not concluded; no root cause was shown"},
	} {
		for i, verdict := range []string{RootCause, Unverified} {
			j, id := small(t, completed("auto_approved", 7, ""))
			j.confirm(id)
			c := agent.Conclusion{EndedBy: by, Complete: agent.Complete{Confidence: "low", Verdict: verdict, Summary: "It ended."}}
			if i == 0 {
				c.Causes = []agent.Cause{{Statement: "the cause", Evidence: []string{id}}}
			}
			j.tell(agent.KindConcluded, c)
			r := j.build()
			if r.Title != want[i] || !strings.Contains(r.Markdown, "_Verdict: "+want[i]+"_") {
				t.Errorf("%q, %s: title %q, want %q", by, verdict, r.Title, want[i])
			}
			if (by != "brain" && i == 0) != strings.Contains(r.Markdown, "The investigation was not concluded.") {
				t.Errorf("%q, %s:\n%s", by, verdict, r.Markdown)
			}
			checkReport(t, j, r)
		}
	}
}

// TestConfirmedBarsNoFault: whatever the brain concludes, the report names a
// hypothesis that evidence confirmed.
func TestConfirmedBarsNoFault(t *testing.T) {
	j, id := small(t, completed("auto_approved", 7, ""))
	j.confirm(id)
	j.tell(agent.KindConcluded, conclusion("high", NoFault, "all well", nil))
	r := j.build()
	if want := []string{"Confirmed by evidence, though the conclusion names no fault: H1: refused"}; !slices.Equal(r.Gaps, want) {
		t.Errorf("gaps %q", r.Gaps)
	}
	for _, want := range []string{"_Verdict: No root cause could be shown_", "lowered from high because a hypothesis was confirmed by evidence", "- all well"} {
		if !strings.Contains(r.Markdown, want) {
			t.Errorf("no %q in\n%s", want, r.Markdown)
		}
	}
	checkReport(t, j, r)
}

// TestOneGapForOneDenial: a denied command that the brain speaks of as well stands
// in the list once.
func TestOneGapForOneDenial(t *testing.T) {
	j, id := small(t, completed("auto_approved", 7, ""))
	j.confirm(id)
	no := j.run(cmd{text: "tcpdump -i lo", hyp: "H1", class: safeexec.Risky, index: 5, result: safeexec.Result{Status: "denied", Action: "user_denied", DecidedBy: "U2", DenialReason: "not here"}})
	c := conclusion("high", RootCause, "found", []agent.Cause{{Statement: "the cause", Evidence: []string{id}}})
	c.Gaps = []string{"`tcpdump -i lo` was denied (not here, " + no + "), so what it would show is not known.", "`tcpdump -i lo` was denied too.", "Other clients were not asked."}
	j.tell(agent.KindConcluded, c)
	r := j.build()
	if want := []string{"Denied by a person (not here): tcpdump -i lo", "Other clients were not asked."}; !slices.Equal(r.Gaps, want) {
		t.Errorf("gaps %q, want %q", r.Gaps, want)
	}
	checkReport(t, j, r)
}

// TestNoFaultIsTested: confidence in "no fault" needs a hypothesis that a command
// refuted, and the summary does not repeat the title.
func TestNoFaultIsTested(t *testing.T) {
	for _, refuted := range []bool{true, false} {
		j, id := small(t, completed("auto_approved", 0, ""))
		if refuted {
			j.moves("", agent.ToolHypotheses)
			j.state(0, agent.HypothesisEntry{Op: "update", ID: "H1", State: agent.Refuted, Evidence: []string{id}, Why: "it answers"})
		}
		j.tell(agent.KindConcluded, conclusion("high", NoFault, "No fault found. It answered 3 of 3 requests.", nil))
		r := j.build()
		if want := map[bool]string{true: "high", false: "medium"}[refuted]; r.Confidence != want || r.Summary != "It answered 3 of 3 requests." {
			t.Errorf("refuted %v: %s, %q", refuted, r.Confidence, r.Summary)
		}
		checkReport(t, j, r)
	}
}

// A command that was run for another hypothesis could not have refuted this one.
func TestHighNeedsATest(t *testing.T) {
	j, _ := small(t, completed("auto_approved", 0, ""))
	other := j.run(cmd{text: "ss -ltn", hyp: "H2", class: safeexec.Safe, index: 5, result: completed("auto_approved", 0, "")})
	j.confirm(other)
	j.tell(agent.KindConcluded, conclusion("high", RootCause, "found", []agent.Cause{{Statement: "c", Evidence: []string{other}}}))
	if r := j.build(); r.Confidence != "medium" || !strings.Contains(r.Markdown, "lowered from high") {
		t.Errorf("confidence %s", r.Confidence)
	}
}

// A conflict that nobody resolved keeps the confidence down.
func TestUndecidedHypotheses(t *testing.T) {
	j, id := small(t, completed("auto_approved", 7, ""))
	j.confirm(id)
	j.state(1, agent.HypothesisEntry{Op: "add", ID: "H2", Description: "loss"})
	j.state(2, agent.HypothesisEntry{Op: "update", ID: "H2", State: agent.Contradicted, Evidence: []string{id, id}})
	j.tell(agent.KindConcluded, conclusion("high", RootCause, "found", []agent.Cause{{Statement: "c", Evidence: []string{id}}}))
	r := j.build()
	if r.Confidence != "medium" || !strings.Contains(r.Markdown, "not decided: H2") || !strings.Contains(r.Markdown, "Two results contradict each other: H2: loss") {
		t.Errorf("confidence %s\n%s", r.Confidence, r.Markdown)
	}
}

func TestJournalsThatDoNotVerify(t *testing.T) {
	j := checkout(t)
	in := j.input()
	in.Verified = audit.Report{SessionID: sid, OK: false, Why: "entry 9: hash differs"}
	r, err := Build(in)
	if err != nil || r.Confidence != "low" || !strings.Contains(r.Markdown, "do not verify: entry 9: hash differs") {
		t.Errorf("%v, confidence %s", err, r.Confidence)
	}
	in.Verified = audit.Report{}
	if r, err = Build(in); err != nil || !strings.Contains(r.Markdown, "were not verified") || r.Confidence != "medium" {
		t.Errorf("%v, confidence %s", err, r.Confidence)
	}
}

// What the journal shows as refused is not listed again in the brain's words.
func TestGapIsListedOnce(t *testing.T) {
	d := &data{f: agent.NewFold("s"), ids: idForm, cmds: []agent.Command{{Record: safeexec.Record{Proposal: safeexec.Proposal{Display: "tcpdump -i lo"}, Result: &safeexec.Result{Status: "denied", DecidedBy: "U1"}}}},
		end: agent.Conclusion{Complete: agent.Complete{Gaps: []string{"`tcpdump -i lo` was denied, so what it would show is not known.", "The zone above was not asked."}}}}
	var got []string
	for _, g := range d.gaps(judgement{}) {
		got = append(got, g.words())
	}
	if diff := cmp.Diff([]string{"Denied by a person: tcpdump -i lo", "The zone above was not asked."}, got); diff != "" {
		t.Error(diff)
	}
}

// TestModelCost checks that the report says what a model cost and who made which
// turns, and nothing of it where no model was asked.
func TestModelCost(t *testing.T) {
	turn := func(n int, brain string, u *agent.Usage) agent.TurnEntry {
		return agent.TurnEntry{Turn: n, Brain: brain, Moves: []agent.MoveEntry{}, Usage: u, Text: "."}
	}
	build := func(turns ...agent.TurnEntry) string {
		j := &journal{t: t}
		j.tell(agent.KindOpened, agent.Opened{Symptom: "s", Brain: "gemini/x"})
		for _, e := range turns {
			j.add(audit.Case, agent.KindTurn, e)
		}
		r, err := Build(Input{SessionID: sid, Entries: j.entries})
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(r.Markdown, `\`, "")
	}
	md := build(turn(1, "", &agent.Usage{Model: "gemini-x", Calls: 1, Prompt: 900, Output: 100, CostUUSD: 12_300}), turn(2, "playbook/1", nil), turn(3, "playbook/1", nil))
	for _, want := range []string{"- Model: gemini-x: 1 call, 1000 tokens, about $0.0123", "- By playbook/1 instead of", ": 2 turns, from turn 2 on"} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in\n%s", want, md)
		}
	}
	if md := build(turn(1, "", nil)); strings.Contains(md, "- Model:") || strings.Contains(md, "instead of") {
		t.Errorf("%s", md)
	}
}

// TestEarlierCases: closed cases are listed with the citation of the entry that
// names them, their citations are not taken for ones of this case, and a case
// without any has no such section.
func TestEarlierCases(t *testing.T) {
	j := &journal{t: t}
	j.tell(agent.KindOpened, agent.Opened{Symptom: "s", Requester: "U0", Brain: "b"})
	at := j.tell(agent.KindRecalled, agent.RecalledEntry{Cases: []agent.Recalled{
		{SessionID: "ghost_20260101_000001", ClosedAt: time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC), Verdict: RootCause, Confidence: "high", Causes: []string{"Nothing listened, see ghost_20260101_000001_007 <!channel>."}, Why: "same target a.example.com", Head: "00ff", Note: "its report file is missing"},
		{SessionID: "x|y\n## Root Cause", Verdict: "<@U1>", Summary: "a summary"},
	}})
	j.tell(agent.KindConcluded, conclusion("low", Unverified, "", nil))
	r := j.build()
	checkReport(t, j, r)
	_, section, _ := strings.Cut(r.Markdown, "## Earlier Cases\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, want := range []string{
		"- ghost_20260101_000001, closed 2026-01-01, root cause found (confidence high); in common: same target a.example.com; found then: Nothing listened, see (no entry 007) &lt;!channel&gt;.; head 00ff (its report file is missing) [" + at + "]",
		"found then: a summary", "They are no evidence here.",
	} {
		if !strings.Contains(section, want) {
			t.Errorf("no %q in\n%s", want, section)
		}
	}
	if strings.Count(r.Markdown, "\n## Root Cause\n") != 1 || r.Verdict != Unverified || len(r.Causes) > 0 {
		t.Errorf("%+v\n%s", r.Causes, r.Markdown)
	}
	if md := checkout(t).build().Markdown; strings.Contains(md, "Earlier Cases") {
		t.Error("a case without earlier ones lists some")
	}
}

// What the analysis of a capture said, and the files that it left, stand in the
// report, each with the entry that says so.
func TestCaptureSummary(t *testing.T) {
	j := &journal{t: t}
	j.tell(agent.KindOpened, agent.Opened{Symptom: "slow", Requester: "U1"})
	id := j.add(audit.Tasks, orchestrator.KindTask, orchestrator.Task{
		TaskID: "ghost_vm", Target: "vm", State: orchestrator.Complete, Summary: "# Executive Summary\n\n**HIGH** packet-loss | <@U1>\n" + strings.Repeat("more\n", 40),
		Artefacts: []safeexec.Artefact{{Path: "/w/ghost_vm_forensic_report.md", Size: 7, SHA256: strings.Repeat("ab", 32)}},
	})
	r, err := Build(Input{SessionID: sid, Entries: j.entries})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"The analysis of ghost_vm said: [" + id + "]", "- Executive Summary [" + id + "]", "packet-loss", "(more in the executive summary)", "`ghost_vm_forensic_report.md`, 7 bytes, SHA-256 " + strings.Repeat("ab", 32)} {
		if !strings.Contains(r.Markdown, want) {
			t.Errorf("without %q:\n%s", want, r.Markdown)
		}
	}
	if strings.Contains(r.Markdown, "<@U1>") || strings.Contains(r.Markdown, "**HIGH**") {
		t.Errorf("untrusted markup:\n%s", r.Markdown)
	}
	if c, err := Check(r.Markdown, Input{SessionID: sid, Entries: j.entries}); err != nil || !c.OK() {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestClockThatWasSetBack: a report never says that a case took less than nothing, and
// is built the same again.
func TestClockThatWasSetBack(t *testing.T) {
	j := checkout(t)
	for i := range j.entries[len(j.entries)/2:] {
		e := &j.entries[len(j.entries)/2+i]
		e.Time = e.Time.Add(-400 * 24 * time.Hour)
	}
	r := j.build()
	checkReport(t, j, r)
	if !strings.Contains(r.Markdown, "9 commands, a time that is not known, because the clock was set back meanwhile") {
		t.Errorf("%s", r.Markdown[:700])
	}
}

// Every denial caps the confidence, whoever denied; an optional command that nobody
// answered is none.
func TestDenialsCapConfidence(t *testing.T) {
	for name, tc := range map[string]struct {
		patience time.Duration
		result   safeexec.Result
		want     string
	}{
		"denied by a person":                {0, safeexec.Result{Status: "denied", Action: "user_denied", DecidedBy: "U2", DenialReason: "no"}, "medium"},
		"optional, denied by a person":      {time.Second, safeexec.Result{Status: "denied", Action: "user_denied", DecidedBy: "U2", DenialReason: "no"}, "medium"},
		"no approver":                       {0, safeexec.Result{Status: "denied", Action: "user_abandoned", DenialReason: "no approver"}, "medium"},
		"expired":                           {0, safeexec.Result{Status: "denied", Action: "user_abandoned", DenialReason: "expired"}, "medium"},
		"optional, and nobody reacted":      {time.Second, safeexec.Result{Status: "denied", Action: "user_abandoned", DenialReason: "withdrawn"}, "high"},
		"forbidden, which no person denied": {0, safeexec.Result{Status: "error", Action: "blocked", Error: "forbidden_command"}, "high"},
	} {
		t.Run(name, func(t *testing.T) {
			j, id := small(t, completed("auto_approved", 7, ""))
			j.moves("", agent.ToolShell)
			other := j.add(audit.Shell, "proposed", safeexec.Proposal{
				SessionID: sid, Argv: []string{"tcpdump"}, Display: "tcpdump", Class: safeexec.Risky, Env: "local", Hypothesis: "H1", Turn: j.turn, Patience: tc.patience,
			})
			j.finish(other, cmd{text: "tcpdump", class: safeexec.Risky, result: tc.result})
			j.confirm(id)
			j.tell(agent.KindConcluded, conclusion("high", RootCause, "found", []agent.Cause{{Statement: "the cause", Evidence: []string{id}}}))
			if r := j.build(); r.Verdict != RootCause || r.Confidence != tc.want {
				t.Errorf("%s, confidence %s, want %s", r.Verdict, r.Confidence, tc.want)
			}
		})
	}
}

// A cause that rests on another command than the one that confirmed a hypothesis, and a
// case in which nothing was looked at.
func TestCauseBesideTheConfirmedHypothesis(t *testing.T) {
	j, id := small(t, completed("auto_approved", 7, ""))
	j.moves("", agent.ToolShell)
	other := j.run(cmd{text: "ss -ltn", hyp: "H1", class: safeexec.Safe, result: completed("auto_approved", 0, "")})
	j.confirm(id)
	j.tell(agent.KindConcluded, conclusion("high", RootCause, "found", []agent.Cause{{Statement: "the disk is full", Evidence: []string{other}}}))
	if r := j.build(); r.Verdict != RootCause || r.Confidence != "medium" {
		t.Errorf("%s, confidence %s", r.Verdict, r.Confidence)
	}
	j = &journal{t: t}
	j.tell(agent.KindOpened, agent.Opened{Symptom: "s", Requester: "U0", Brain: "b"})
	j.moves("", agent.ToolComplete)
	j.tell(agent.KindConcluded, conclusion("high", RootCause, "It is DNS.", nil))
	if r := j.build(); r.Verdict != Unverified || !strings.Contains(r.Markdown, "- Nothing was looked at.") || strings.Contains(r.Markdown, "Everything that was wanted") {
		t.Errorf("%s: %s", r.Verdict, r.Markdown)
	}
}
