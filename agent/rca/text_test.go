package rca

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ghostbot/agent"
	"ghostbot/safeexec"
)

func someData(t *testing.T) *data {
	t.Helper()
	d, err := read(checkout(t).input())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestProse(t *testing.T) {
	d := someData(t)
	for in, want := range map[string]string{
		"plain":                                "plain",
		"a\n\n# b\tc":                          "a # b c",
		"# head":                               `\# head`,
		"- item":                               `\- item`,
		"<!channel> & <@U1>":                   "&lt;!channel&gt; &amp; &lt;@U1&gt;",
		"a|b `c` *d* [e](f) ~g~ \\":            "a\\|b \\`c\\` \\*d\\* \\[e\\](f) \\~g\\~ \\\\",
		"snake_case and _this_":                `snake_case and \_this\_`,
		"left\u202eright\u200bzero\x1b[1m":     `left(U+202E)right(U+200B)zero(U+001B)\[1m`,
		"bad\xff":                              "bad\uFFFD",
		"see " + sid + "_001":                  "see " + sid + "_001",
		"see " + sid + "_999":                  "see (no entry 999)",
		"see ghost_20250101_000000_001 of old": "see (no entry 001) of old",
		"  ":                                   "",
	} {
		if got := d.prose(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := d.prose(strings.Repeat("x", 5000)); utf8.RuneCountInString(got) != maxLine+1 {
		t.Errorf("%d characters", utf8.RuneCountInString(got))
	}
}

func TestCode(t *testing.T) {
	d := someData(t)
	for in, want := range map[string]string{
		"ss -ltn":            "`ss -ltn`",
		"":                   "(nothing)",
		"a `b` c":            "``a `b` c``",
		"`x":                 "`` `x ``",
		"echo <!channel> <b": "`echo &lt;!channel> <b`",
		"a | b":              "`a | b`",
		"cat " + sid + "_77": "`cat " + sid + "_77`",
		"ls " + sid + "_777": "`ls (no entry 777)`",
	} {
		if got := d.code(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	if got := d.codeCell("a | b"); got != "`a \\| b`" {
		t.Error(got)
	}
}

func TestCite(t *testing.T) {
	if got := cite("a", "b"); got != " [a] [b]" {
		t.Error(got)
	}
	if got := cite(strings.Split("a b c d e f g h i j", " ")...); got != " [a] [b] [c] [d] [e] [f] [g] [h] and 2 more" {
		t.Error(got)
	}
	if count(1, "entry") != "1 entry" || count(2, "entry") != "2 entries" || count(0, "turn") != "0 turns" {
		t.Error(count(1, "entry"), count(2, "entry"), count(0, "turn"))
	}
}

func TestLacking(t *testing.T) {
	by := func(decision string, r safeexec.Result) agent.Command {
		c := agent.Command{Record: safeexec.Record{Result: &r}}
		if decision != "" {
			c.Decided = &safeexec.Decided{Decision: decision}
		}
		return c
	}
	code := 127
	for want, c := range map[string]agent.Command{
		"Not run or not readable (start_failed)":                by("", safeexec.Result{Status: "error", Error: "start_failed"}),
		"Never run, because it is not exactly one command":      by("", safeexec.Result{Status: "error", Error: "not_one_command"}),
		"Never run, because its --query is no valid expression": by("", safeexec.Result{Status: "error", Error: "invalid_query"}),
		"Never run, because it contains a credential":           by("", safeexec.Result{Status: "error", Error: "credential_in_command"}),
		"No outcome":               {},
		"Approved, and no outcome": {Record: safeexec.Record{Decided: &safeexec.Decided{Decision: "APPROVED", By: "U1"}}},
		"Not answered by anybody until the case was stopped": {Record: safeexec.Record{Proposal: safeexec.Proposal{Class: safeexec.Risky}}},
		"Denied by a person":                           by("DENIED", safeexec.Result{Status: "denied", DecidedBy: "U1", DenialReason: "denied"}),
		"":                                             by("", safeexec.Result{Status: "completed"}),
		"Not installed":                                by("", safeexec.Result{Status: "completed", ExitCode: &code}),
		"Denied by a person (no)":                      by("DENIED", safeexec.Result{Status: "denied", DecidedBy: "U1", DenialReason: "no"}),
		"Not run (read-only mode)":                     by("", safeexec.Result{Status: "denied", DenialReason: "read-only mode"}),
		"Not started in time (late)":                   by("EXPIRED", safeexec.Result{Status: "denied", DenialReason: "late"}),
		"Nobody answered in time":                      by("EXPIRED", safeexec.Result{Status: "denied", DenialReason: "expired"}),
		"Optional, and nobody reacted":                 by("CANCELLED", safeexec.Result{Status: "denied", DenialReason: "withdrawn"}),
		"Timed out":                                    by("", safeexec.Result{Status: "error", Error: "timeout"}),
		"Ended because it wrote too much":              by("", safeexec.Result{Status: "error", Error: "output_limit"}),
		"Cancelled while it ran":                       by("", safeexec.Result{Status: "error", Error: "cancelled"}),
		"Forbidden, never run":                         by("", safeexec.Result{Status: "error", Error: "forbidden_command"}),
		"Failed":                                       by("", safeexec.Result{Status: "error"}),
		"Not run (no approver)":                        by("DENIED", safeexec.Result{Status: "denied", DenialReason: "no approver"}),
		"Ran, but its output could not be redacted":    by("", safeexec.Result{Status: "error", Error: "redaction_failure"}),
		"Ran, but what it left could not be encrypted": by("", safeexec.Result{Status: "error", Error: "not_kept"}),
		"Outcome unknown; it may have taken effect":    by("", safeexec.Result{Status: "error", Error: "outcome_unknown"}),
	} {
		if got := (&data{end: agent.Conclusion{EndedBy: "stopped"}}).lacking(c); got != want {
			t.Errorf("%+v: %q, want %q", c.Result, got, want)
		}
	}
	if got := (&data{}).lacking(agent.Command{Record: safeexec.Record{ReplacedBy: "x"}}); got != "" {
		t.Errorf("a replaced command lacks %q", got)
	}
}

func TestStateInTheTable(t *testing.T) {
	j, _ := small(t, completed("auto_approved", 0, ""))
	j.moves("", agent.ToolHypotheses)
	j.state(0, agent.HypothesisEntry{Op: "add", ID: "H2", Description: "open"})
	j.state(1, agent.HypothesisEntry{Op: "remove", ID: "H1"})
	j.tell(agent.KindConcluded, conclusion("low", Unverified, "x", nil))
	md := j.build().Markdown
	for _, want := range []string{"ACTIVE (dropped)", "ACTIVE (not decided)", "Not checked to the end: H2: open"} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in\n%s", want, md)
		}
	}
}

func TestPeopleAndEnds(t *testing.T) {
	j, _ := small(t, completed("auto_approved", 0, ""))
	j.tell(agent.KindQuestion, agent.Question{ID: "extend-50", Text: "The limit of 50 turns is reached."})
	j.tell(agent.KindAnswer, agent.AnswerEntry{ID: "extend-50", Answer: agent.Answer{Key: "extend", By: "U1", Text: "10 more turns"}})
	j.tell(agent.KindBudget, agent.BudgetEntry{Event: "extended", MaxTurns: 60, By: "U1"})
	j.tell(agent.KindTakeover, map[string]string{"owner": "b"})
	j.tell(agent.KindQuestion, agent.Question{ID: "continue-1", Text: "At rest."})
	j.tell(agent.KindAnswer, agent.AnswerEntry{ID: "continue-1", Answer: agent.Answer{Key: "expired"}})
	j.tell(agent.KindQuestion, agent.Question{ID: "continue-2", Text: "At rest again."})
	j.tell(agent.KindAnswer, agent.AnswerEntry{ID: "continue-2", Answer: agent.Answer{Key: "expired", Text: "the input ended"}})
	j.run(cmd{text: "halt", class: safeexec.Risky, index: 6, decided: &safeexec.Decided{Decision: "DENIED", Reason: "no approver"},
		result: safeexec.Result{Status: "denied", Action: "user_abandoned", DenialReason: "no approver"}})
	j.run(cmd{text: "reboot", class: safeexec.Risky, index: 7, decided: &safeexec.Decided{Decision: "CANCELLED", Reason: "stopped"},
		result: safeexec.Result{Status: "denied", Action: "user_abandoned", DenialReason: "stopped"}})
	j.tell(agent.KindConcluded, agent.Conclusion{EndedBy: "stopped", By: "U1", Complete: agent.Complete{Confidence: "low", Verdict: Unverified, Summary: "A person stopped it."}})
	md := j.build().Markdown
	for _, want := range []string{
		`U1 answered "10 more turns" to: The limit of 50 turns is reached.`, "U1 extended the limit to 60 turns", "another process continued the case",
		"nobody answered in time: At rest.", "nobody answered (the input ended): At rest again.",
		"nobody decided about `halt`, so it did not run: no approver", "Not run (no approver): `halt`",
		"nobody answered for `reboot` until the case was stopped", "stopped by a person (U1)", "Finding: A person stopped it.",
	} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in\n%s", want, md)
		}
	}
	for by, want := range map[string]string{"budget": "ended at the turn limit", "brain_error": "the brain gave up", "brain": "concluded by", "": "not concluded"} {
		d := someData(t)
		d.end.EndedBy = by
		if got := d.endedBy(); !strings.Contains(got, want) {
			t.Errorf("%s: %q", by, got)
		}
	}
}

// A case that ended by its budget says which one.
func TestWhichLimit(t *testing.T) {
	for want, u := range map[string]agent.Usage{"turn": {Prompt: 9, CostUUSD: 4}, "token": {Prompt: 8, Output: 2, CostUUSD: 4}, "cost": {Prompt: 9, CostUUSD: 5}} {
		d := someData(t)
		d.end.EndedBy = "budget"
		d.k.Opened.MaxTokens, d.k.Opened.MaxCost, d.k.Usage = 10, 5, u
		if got, title := d.endedBy(), d.title(Unverified); !strings.Contains(got, "ended at the "+want+" limit") || title != "Ended at the "+want+" limit; no root cause was shown" {
			t.Errorf("%s: %q, %q", want, got, title)
		}
	}
	d := someData(t)
	d.end.EndedBy = "budget" // no limits at all but the turns
	d.k.Usage = agent.Usage{Prompt: 9, CostUUSD: 4}
	if got := d.limit(); got != "turn" {
		t.Error(got)
	}
}

// A denial stands at the time of the press, with the words that followed; one without
// words repeats nothing.
func TestWhenAndWhyPeopleDenied(t *testing.T) {
	j, _ := small(t, completed("auto_approved", 0, "ok"))
	pressed := time.Date(2026, 3, 14, 10, 0, 1, 0, time.UTC)
	for i, why := range []string{"wrong host", "denied"} {
		j.run(cmd{text: "reboot " + why, class: safeexec.Risky, index: 3 + i, decided: &safeexec.Decided{Decision: "DENIED", By: "U2", At: pressed},
			result: safeexec.Result{Status: "denied", Action: "user_denied", DenialReason: why, DecidedBy: "U2"}})
	}
	j.tell(agent.KindConcluded, agent.Conclusion{EndedBy: "brain"})
	md := j.build().Markdown
	for _, want := range []string{
		"- 10:00:01Z U2 denied `reboot wrong host`: wrong host [", "- 10:00:01Z U2 denied `reboot denied` [",
		"- Denied by a person (wrong host): `reboot wrong host`", "- Denied by a person: `reboot denied`",
	} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in:\n%s", want, md)
		}
	}
}

// People are named where the journal says what they are called; what they call themselves
// is text like any other.
func TestPeopleAreNamed(t *testing.T) {
	j, _ := small(t, completed("auto_approved", 0, "ok"))
	j.tell(agent.KindPerson, agent.PersonEntry{ID: "U2", Name: "kim"})
	j.tell(agent.KindPerson, agent.PersonEntry{ID: "U3", Name: "*x* <!here>"})
	j.tell(agent.KindPerson, "damaged")
	j.run(cmd{text: "reboot", class: safeexec.Risky, index: 3, decided: &safeexec.Decided{Decision: "DENIED", By: "U2"},
		result: safeexec.Result{Status: "denied", Action: "user_denied", DenialReason: "denied", DecidedBy: "U2"}})
	j.tell(agent.KindInstruction, agent.Instruction{By: "U3", Text: "hello"})
	j.tell(agent.KindInstruction, agent.Instruction{By: "U4", Text: "hello"})
	j.tell(agent.KindConcluded, agent.Conclusion{EndedBy: "brain"})
	md := j.build().Markdown
	for _, want := range []string{"kim (U2) denied `reboot` [", "\\*x\\* &lt;!here&gt; (U3) wrote: hello", "Z U4 wrote: hello"} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in:\n%s", want, md)
		}
	}
}

// FuzzBuild puts arbitrary words everywhere a stranger's words go. Oracle: the
// report obeys its rules, and its tables keep their columns.
func FuzzBuild(f *testing.F) {
	f.Add("<!channel> | ` \n# x", "high", "root_cause")
	f.Add(sid+"_999 "+sid+"_001", "low", "")
	f.Add("\u202e\xff```\\|", "", "no_fault")
	f.Fuzz(func(t *testing.T, words, confidence, verdict string) {
		j, id := small(t, completed("auto_approved", 0, words))
		j.tell(agent.KindInstruction, agent.Instruction{By: words, Text: words})
		j.run(cmd{text: words, class: safeexec.Risky, index: 3, decided: &safeexec.Decided{Decision: "DENIED", By: words, Reason: words},
			result: safeexec.Result{Status: "denied", Action: words, DenialReason: words, DecidedBy: words}})
		j.confirm(id, words)
		j.tell(agent.KindConcluded, agent.Conclusion{EndedBy: "brain", By: words, Complete: agent.Complete{
			Confidence: confidence, Verdict: verdict, Summary: words, Actions: []string{words}, Gaps: []string{words},
			Causes: []agent.Cause{{Statement: words, Evidence: []string{id, words}}, {Statement: words, Evidence: []string{words}}},
		}})
		body := map[string]any{}
		if json.Unmarshal(j.entries[0].Body, &body) != nil {
			t.Fatal("opening")
		}
		body["symptom"], body["requester"] = words, words
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		j.entries[0].Body = raw
		r := j.build()
		checkReport(t, j, r)
		for _, row := range tableRows(r.Markdown, "Command Evidence") {
			if len(row) != 7 {
				t.Errorf("%d columns: %q", len(row), row)
			}
		}
		for _, row := range tableRows(r.Markdown, "Hypotheses Log") {
			if len(row) != 6 {
				t.Errorf("%d columns: %q", len(row), row)
			}
		}
		if r.Confidence == "high" && confidence != "high" {
			t.Error("the confidence was raised")
		}
	})
}

// A case of 250 commands, six entries each.
func BenchmarkBuild(b *testing.B) {
	t := &testing.T{}
	j, id := small(t, completed("auto_approved", 7, "out"))
	for i := range 250 {
		j.run(cmd{text: fmt.Sprintf("curl http://192.0.2.%d/", i), class: safeexec.Risky, index: i + 2,
			decided: &safeexec.Decided{Decision: "APPROVED", By: "U1"}, result: completed("user_approved", 0, strings.Repeat("x", 2000))})
	}
	j.confirm(id)
	j.tell(agent.KindConcluded, conclusion("high", RootCause, "found", []agent.Cause{{Statement: "c", Evidence: []string{id}}}))
	in := j.input()
	b.ReportMetric(float64(len(in.Entries)), "entries")
	for b.Loop() {
		if _, err := Build(in); err != nil {
			b.Fatal(err)
		}
	}
}

// TestLongArguments: what repeats in every command is written out once, and no
// reader of the rest of the report has to look past it.
func TestLongArguments(t *testing.T) {
	format := "' timing: code=%{http_code} ip=%{remote_ip} dns=%{time_namelookup} connect=%{time_connect}'"
	j, id := small(t, completed("auto_approved", 7, ""))
	for i := range 3 {
		j.run(cmd{text: fmt.Sprintf("curl -sS -w %s http://192.0.2.%d/", format, i), index: 2 + i, result: completed("auto_approved", 0, "")})
	}
	j.run(cmd{text: "curl -w " + format + " http://192.0.2.9/", class: safeexec.Risky, index: 8, result: safeexec.Result{Status: "denied", DecidedBy: "U1", DenialReason: "no"}})
	j.confirm(id)
	j.tell(agent.KindConcluded, conclusion("high", RootCause, "found", []agent.Cause{{Statement: "c", Evidence: []string{id}}}))
	r := j.build()
	if n := strings.Count(r.Markdown, "time_namelookup"); n != 1 {
		t.Errorf("the format stands %d times in\n%s", n, r.Markdown)
	}
	for _, want := range []string{"`curl -sS -w ‹1› http://192.0.2.2/`", "- ‹1› stands for `" + format + "` [", "Denied by a person (no): `curl -w ‹1› http://192.0.2.9/`"} {
		if !strings.Contains(r.Markdown, want) {
			t.Errorf("no %q in\n%s", want, r.Markdown)
		}
	}
	if want := "Denied by a person (no): curl -w ' timing: code=…' http://192.0.2.9/"; !slices.Contains(r.Gaps, want) {
		t.Errorf("gaps %q", r.Gaps)
	}
	checkReport(t, j, r)
}

// TestOutcomeWords has what came of commands that did not simply run.
func TestOutcomeWords(t *testing.T) {
	n := 124
	bounded := func(r safeexec.Result) agent.Command {
		return agent.Command{Record: safeexec.Record{Proposal: safeexec.Proposal{Argv: strings.Fields("timeout 10 tcpdump -i lo")}, Result: &r}}
	}
	for want, c := range map[string]agent.Command{
		"no outcome": {}, "completed: ended after 10s, as planned (exit 124)": bounded(safeexec.Result{Status: "completed", ExitCode: &n}),
		"denied": bounded(safeexec.Result{Status: "denied", DenialReason: "denied"}), "denied: not here": bounded(safeexec.Result{Status: "denied", DenialReason: "not here"}),
		"not run: the case was stopped": bounded(safeexec.Result{Status: "denied", DenialReason: "stopped"}), "error: timeout": bounded(safeexec.Result{Status: "error", Error: "timeout"}),
	} {
		if got := outcome(c); got != want {
			t.Errorf("%+v: %q, want %q", c.Result, got, want)
		}
	}
}

// TestAccountsAreExplained: ids of a chat's accounts are said to be that, once.
func TestAccountsAreExplained(t *testing.T) {
	account := "U0" + strings.Repeat("A1", 4)
	j, _ := small(t, completed("auto_approved", 0, ""))
	j.tell(agent.KindInstruction, agent.Instruction{By: account, Text: "x"})
	j.run(cmd{text: "reboot", class: safeexec.Risky, index: 7, decided: &safeexec.Decided{Decision: "DENIED", By: account}, result: safeexec.Result{Status: "denied", DecidedBy: account}})
	j.tell(agent.KindConcluded, conclusion("low", Unverified, "x", nil))
	r := j.build()
	if want := "a profile there shows whose they are: " + account + " ["; strings.Count(r.Markdown, want) != 1 {
		t.Errorf("no %q in\n%s", want, r.Markdown)
	}
	checkReport(t, j, r)
	if md := checkout(t).build().Markdown; strings.Contains(md, "a profile there") {
		t.Error("short names are explained")
	}
}

// A command whose outcome is unknown and that was run once more says so, and where.
func TestRunAgainIsSaid(t *testing.T) {
	for r, want := range map[string]string{"": "error: outcome_unknown", "ghost_x_010": "error: outcome_unknown, run again as ghost_x_010"} {
		c := agent.Command{Record: safeexec.Record{ReplacedBy: r, Result: &safeexec.Result{Status: "error", Error: "outcome_unknown"}}}
		if got := outcome(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
