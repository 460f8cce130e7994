package playbook_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/agent/playbook"
	"ghostbot/agent/playbook/read"
	"ghostbot/safeexec"
)

// script answers commands by function: the first whose text the command has.
func script(t *testing.T, text string, answer func(command string) (stdout, stderr string, exit int)) *investigation {
	in := investigate(t, text)
	in.run = func(m agent.RunShell) safeexec.Result {
		out, errs, code := answer(m.Command)
		return safeexec.Result{Status: "completed", Classification: safeexec.Safe, Action: "auto_approved", Command: m.Command, Output: out, Stderr: errs, ExitCode: &code}
	}
	return in
}

// answered is what curl prints for an answer.
func answered(code int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d x\r\n\r\n%s %s%d ip=127.0.0.1 dns=0 connect=0.001 tls=0 first=0.002 total=0.002 bytes=%d", code, body, read.Marker, code, len(body))
}

const listening = "State Recv-Q Send-Q Local Address:Port Peer Address:Port\nLISTEN 0 128 127.0.0.1:%s 0.0.0.0:*\n"

// TestHops: a chain is followed three places far, and no further.
func TestHops(t *testing.T) {
	in := script(t, "502 from 127.0.0.1:20000", func(c string) (string, string, int) {
		for p := 20000; p < 20010; p++ {
			if strings.HasSuffix(c, fmt.Sprintf(":%d/", p)) {
				return answered(502, fmt.Sprintf(`{"upstream":"127.0.0.1:%d"}`, p+1)), "", 0
			}
			if strings.Contains(c, fmt.Sprintf("sport = :%d", p)) {
				return fmt.Sprintf(listening, fmt.Sprint(p)), "", 0
			}
		}
		return "", "not found", 127
	})
	in.finish()
	all := strings.Join(commands(in), "\n")
	if !strings.Contains(all, ":20003/") || strings.Contains(all, "20004") {
		t.Errorf("commands:\n%s", all)
	}
}

// TestCircle: two gateways that blame each other do not keep the brain busy.
func TestCircle(t *testing.T) {
	in := script(t, "502 from 127.0.0.1:20000", func(c string) (string, string, int) {
		switch {
		case strings.Contains(c, "sport"):
			_, port, _ := strings.Cut(c, "sport = :")
			return fmt.Sprintf(listening, port), "", 0
		case strings.HasSuffix(c, ":20000/"):
			return answered(502, "upstream 127.0.0.1:20001 failed"), "", 0
		}
		return answered(502, "upstream 127.0.0.1:20000 failed"), "", 0
	})
	if end := in.finish(); end.Verdict == "no_fault" || len(in.view.Observations) > 6 {
		t.Errorf("%d commands\n%s", len(in.view.Observations), in)
	}
}

// TestManyTargets: a page full of addresses stays within the limits.
func TestManyTargets(t *testing.T) {
	text := "everything fails: "
	for i := range 40 {
		text += fmt.Sprintf("127.0.0.1:%d ", 20000+i)
	}
	in := script(t, text, func(c string) (string, string, int) {
		if strings.HasPrefix(c, "curl") {
			return "", "curl: (7) Failed to connect to 127.0.0.1 port 1: Connection refused", 7
		}
		return "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n", "", 0
	})
	end := in.finish()
	if end.Verdict != "root_cause" || len(end.Causes) != 4 || !strings.HasPrefix(end.Summary, "4 independent faults.") {
		t.Errorf("%+v", end)
	}
	if gaps := strings.Join(end.Gaps, "\n"); !strings.Contains(gaps, "Named too, and not looked at") || !strings.Contains(gaps, "127.0.0.1:20004, 127.0.0.1:20005") {
		t.Errorf("gaps %s", gaps)
	}
	if len(end.Causes[0].Evidence) == 0 || !strings.Contains(end.Causes[0].Statement, ":20000") {
		t.Errorf("first cause %+v", end.Causes[0])
	}
}

// TestCommandLimit: a body that names ever new places ends at the limit, and the
// report says so.
func TestCommandLimit(t *testing.T) {
	n := 30000
	in := script(t, "502 from 127.0.0.1:20000 and 127.0.0.1:20001 and 127.0.0.1:20002", func(c string) (string, string, int) {
		if strings.HasPrefix(c, "curl") {
			n += 3
			return answered(502, fmt.Sprintf("upstream 127.0.0.1:%d 127.0.0.1:%d 127.0.0.1:%d", n, n+1, n+2)), "", 0
		}
		_, port, _ := strings.Cut(c, "sport = :")
		return fmt.Sprintf(listening, port), "", 0
	})
	end := in.finish()
	if len(in.view.Observations) > 15 || !strings.Contains(strings.Join(end.Gaps, " "), "limit") && len(in.view.Observations) == 15 {
		t.Errorf("%d commands, gaps %q", len(in.view.Observations), end.Gaps)
	}
}

// TestOneCommandTwoPlaces: the same listing serves both addresses of a port and
// is not asked for twice.
func TestOneCommandTwoPlaces(t *testing.T) {
	in := script(t, "127.0.0.1:20000 and [::1]:20000 are broken", func(c string) (string, string, int) {
		if strings.HasPrefix(c, "ss -ltn") {
			return fmt.Sprintf(listening, "20000"), "", 0
		}
		if strings.Contains(c, "[::1]") || strings.Contains(c, " ::1 ") {
			return "", "curl: (7) Failed to connect to ::1 port 20000: Connection refused", 7
		}
		return answered(200, "ok"), "", 0
	})
	end := in.finish()
	n := 0
	for _, c := range commands(in) {
		if c == "ss -ltn sport = :20000" {
			n++
		}
	}
	if n != 1 || end.Verdict != "root_cause" || !strings.Contains(end.Summary, "listens only on 127.0.0.1:20000, not on [::1]:20000") {
		t.Errorf("%d listings\n%s", n, in)
	}
}

// TestUnknownOutcomes: commands that the gate could not finish, and moves that
// the loop refused, are gaps; the case goes on and ends.
func TestUnknownOutcomes(t *testing.T) {
	for _, what := range []string{"outcome_unknown", "timeout", "redaction_failure", "forbidden_command", "cancelled", "credential_in_command"} {
		in := replay(t, gatewayText, gateway...)
		inner := in.run
		in.run = func(m agent.RunShell) safeexec.Result {
			if strings.HasPrefix(m.Command, "ss -ltn sport = :19081") {
				return safeexec.Result{Status: "error", Error: what, Command: m.Command}
			}
			return inner(m)
		}
		end := in.finish()
		if end.Verdict != "root_cause" || !strings.Contains(strings.Join(end.Gaps, " "), "gave nothing") {
			t.Errorf("%s: %s, gaps %q", what, end.Verdict, end.Gaps)
		}
	}
	in := replay(t, gatewayText, gateway...)
	for more := true; more; {
		more = in.step()
		for i, o := range in.view.Observations {
			if strings.HasPrefix(o.Move.(agent.RunShell).Command, "nc ") {
				in.view.Observations[i].Shell = nil
				in.view.Observations[i].Data = []byte(`{"status":"error","error":"repeated_call"}`)
			}
		}
	}
	if in.end == nil || in.end.Verdict != "root_cause" {
		t.Errorf("a refused move: %+v", in.end)
	}
}

// TestFaultThatGoesAway: one failure among good answers is still a finding.
func TestFaultThatGoesAway(t *testing.T) {
	n := 0
	in := script(t, "127.0.0.1:20000 sometimes fails", func(c string) (string, string, int) {
		if strings.HasPrefix(c, "curl") {
			if n++; n == 2 {
				return answered(500, "oops"), "", 0
			}
			return answered(200, "ok"), "", 0
		}
		return fmt.Sprintf(listening, "20000"), "", 0
	})
	end := in.finish()
	if end.Verdict != "root_cause" || end.Confidence != "medium" || !strings.Contains(end.Summary, "500 to 1 of 4 requests") {
		t.Error(in)
	}
}

// TestContradiction: words that contradict each other and what is seen.
func TestContradiction(t *testing.T) {
	in := script(t, "127.0.0.1:20000 is fast and slow, refuses and times out, works fine and gives 502", func(c string) (string, string, int) {
		if strings.HasPrefix(c, "curl") {
			return answered(200, "ok"), "", 0
		}
		return fmt.Sprintf(listening, "20000"), "", 0
	})
	if end := in.finish(); end.Verdict != "no_fault" {
		t.Error(in)
	}
}

// TestWordsAreShort: people read every turn in a thread.
func TestWordsAreShort(t *testing.T) {
	in := replay(t, gatewayText, gateway...)
	in.decide = func(agent.RunShell) (bool, string) { return false, "" }
	in.finish()
	for i, turn := range in.turns {
		if len(turn.Text) == 0 || len(turn.Text) > 400 {
			t.Errorf("turn %d has %d characters: %s", i+1, len(turn.Text), turn.Text)
		}
	}
	first := in.turns[0]
	m, is := first.Moves[0].(agent.ManageHypotheses)
	if !is || len(m.Add) < 2 || len(m.Add) > 4 || !strings.HasPrefix(first.Text, "Looking at 127.0.0.1:19080.") {
		t.Errorf("first turn %+v", first)
	}
}

// TestStableIDs: hypotheses keep their ids and descriptions while the view grows,
// and one that the case already has is never added again.
func TestStableIDs(t *testing.T) {
	in := replay(t, gatewayText, gateway...)
	says := map[string]string{}
	for in.step() {
		for _, h := range in.view.Case.Hypotheses {
			if old, is := says[h.ID]; is && old != h.Description {
				t.Errorf("%s was %q and is %q", h.ID, old, h.Description)
			}
			says[h.ID] = h.Description
		}
	}
	want := []string{"H1-application", "H1-dependency", "H1-overload", "H1-refused", "H2-filtered", "H2-refused"}
	var got []string
	for id := range says {
		got = append(got, id)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("ids %v, want %v", got, want)
	}
}

// TestResumeInTheMiddle: a case whose hypotheses were not applied before a crash
// gets them again.
func TestResumeInTheMiddle(t *testing.T) {
	in := replay(t, gatewayText, gateway...)
	in.step()
	in.view.Case.Hypotheses = nil
	turn, err := in.brain.Next(context.Background(), in.view)
	if err != nil {
		t.Fatal(err)
	}
	m, is := turn.Moves[0].(agent.ManageHypotheses)
	if !is || !slices.ContainsFunc(m.Add, func(h agent.Hypothesis) bool { return h.ID == "H1-dependency" }) {
		t.Errorf("%+v", turn)
	}
}

// BenchmarkNext is a turn late in a case, with outputs as long as the gate lets
// through.
func BenchmarkNext(b *testing.B) {
	in := &investigation{t: &testing.T{}, brain: playbook.New(playbook.Options{})}
	long := strings.Repeat("padding padding padding padding\n", 400)
	zero := 0
	in.view = agent.View{Case: agent.Case{Symptom: gatewayText}, TurnsLeft: 40, Now: time.Now()}
	for i, c := range []string{"ss -ltn sport = :19080", "curl -sS -i -g --connect-timeout 4 --max-time 10 -w '" + read.WriteOut + "' http://127.0.0.1:19080/"} {
		in.view.Observations = append(in.view.Observations, agent.Observation{
			Turn: 1, Index: i, Move: agent.RunShell{Command: c}, AuditID: "g_001",
			Shell: &safeexec.Result{Status: "completed", ExitCode: &zero, Output: answered(502, long+`{"upstream":"127.0.0.1:19081"}`)},
		})
	}
	for b.Loop() {
		if _, err := in.brain.Next(context.Background(), in.view); err != nil {
			b.Fatal(err)
		}
	}
}
