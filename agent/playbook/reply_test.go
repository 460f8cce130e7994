package playbook_test

import (
	"slices"
	"strings"
	"testing"

	"ghostbot/agent"
	"ghostbot/agent/hypothesis"
)

// fine is a service beside the gateway of the recordings that answers.
var fine = append([][]string{{"http://127.0.0.1:19082/", "curl/ok"}, {"ss -ltn sport = :19082", "ss/listen_two"}}, gateway...)

// atTheCard replays the gateway's case up to its first card, where a person writes
// text and then denies.
func atTheCard(t *testing.T, text, reason string) *investigation {
	t.Helper()
	in := replay(t, gatewayText, fine...)
	said := false
	in.decide = func(agent.RunShell) (bool, string) {
		if !said && text != "" {
			in.view.Instructions = append(in.view.Instructions, agent.Instruction{By: "U2", Text: text, Turn: in.view.Case.TurnCount})
		}
		said = true
		return true, reason
	}
	return in
}

// TestReplyAtACard: what people write while a card waits is about what they
// write, and the "no" in it about the card. What was shown before stays shown.
func TestReplyAtACard(t *testing.T) {
	for _, text := range []string{
		"not now, look at 127.0.0.1:19082 as well", "not now, look at 127.0.0.1:19082", "no, port 19082", "no, 127.0.0.1:19082", "nein, Port 19082",
		"no capture, check 127.0.0.1:19082 please", "nope. and 127.0.0.1:19082?", "no, it is 127.0.0.1:19082 too", "also 127.0.0.1:19082",
	} {
		for _, reason := range []string{"", "not now"} {
			in := atTheCard(t, text, reason)
			end := in.finish()
			if end.Verdict != "root_cause" || len(end.Causes) != 1 || !strings.Contains(end.Causes[0].Statement, "Nothing listens on 127.0.0.1:19081") {
				t.Errorf("%q: %s", text, in)
			}
			if !strings.Contains(strings.Join(commands(in), "\n"), "http://127.0.0.1:19082/") {
				t.Errorf("%q: it was not looked at: %q", text, commands(in))
			}
		}
	}
	in := atTheCard(t, "", "not needed, look at 127.0.0.1:19082 as well")
	if end := in.finish(); end.Verdict != "root_cause" || !strings.Contains(strings.Join(commands(in), "\n"), "http://127.0.0.1:19082/") {
		t.Errorf("an addition in the reason: %s", in)
	}
}

// TestCorrectedAfterAFault: a correction sets aside what was looked at, and the
// report says so; a fault that was shown before is not denied.
func TestCorrectedAfterAFault(t *testing.T) {
	for _, text := range []string{"no, it is 127.0.0.1:19082", "wrong host, I meant 127.0.0.1:19082", "not 127.0.0.1:19080 but 127.0.0.1:19082", "nein, es ist 127.0.0.1:19082"} {
		in := atTheCard(t, text, "not now")
		end := in.finish()
		if end.Verdict != "unverified" || end.Confidence != "low" || !strings.Contains(end.Summary, "127.0.0.1:19082: answered") || !strings.Contains(end.Summary, "Nothing listens on 127.0.0.1:19081") {
			t.Errorf("%q: %s", text, in)
		}
		if gaps := strings.Join(end.Gaps, "\n"); !strings.Contains(gaps, "127.0.0.1:19080: not examined after U2's correction") {
			t.Errorf("%q: gaps %s", text, gaps)
		}
		i := slices.IndexFunc(in.view.Case.Hypotheses, func(h agent.Hypothesis) bool { return h.ID == "H2-refused" })
		if h := in.view.Case.Hypotheses[i]; h.State != agent.Confirmed || len(h.Evidence) == 0 {
			t.Errorf("%q: what was shown is lost: %+v", text, h)
		}
	}
}

// TestCorrectionOfOne: "not A but B" sets A aside and nothing else.
func TestCorrectionOfOne(t *testing.T) {
	in := replay(t, "127.0.0.1:19080 and 127.0.0.1:19083 give 502", fine...)
	in.step()
	in.view.Instructions = append(in.view.Instructions, agent.Instruction{By: "U2", Text: "not 127.0.0.1:19083, it's 127.0.0.1:19082", Turn: 1})
	end := in.finish()
	if end.Verdict != "root_cause" || !strings.Contains(end.Summary, "19081") || !strings.Contains(strings.Join(end.Gaps, "\n"), "127.0.0.1:19083: not examined after U2's correction") {
		t.Error(in)
	}
}

// TestSaidToBeInOrder: what people say is in order is no suspect and a gap; it is
// looked at all the same when an answer blames it, and never when it is to be
// left alone.
func TestSaidToBeInOrder(t *testing.T) {
	for text, want := range map[string]struct {
		verdict, asked, gap string
	}{
		"127.0.0.1:19080 gives 502. I checked 127.0.0.1:19083, that one is fine": {"root_cause", "19081", "127.0.0.1:19083: left out, because U1 says that it is in order"},
		"127.0.0.1:19080 gives 502, 127.0.0.1:19083 works":                       {"root_cause", "19081", "127.0.0.1:19083: left out"},
		"127.0.0.1:19080 gives 502, ignore 127.0.0.1:19083":                      {"root_cause", "19081", "127.0.0.1:19083: left alone, because U1 asked for that"},
		"127.0.0.1:19080 gives 502. I checked 127.0.0.1:19081, that one is fine": {"root_cause", "19081", ""},
		"127.0.0.1:19080 gives 502, don't touch 127.0.0.1:19081":                 {"root_cause", "", "127.0.0.1:19081: left alone, because U1 asked for that"},
	} {
		in := replay(t, text, fine...)
		in.view.Case.Requester = "U1"
		end := in.finish()
		all := strings.Join(commands(in), "\n")
		if end.Verdict != want.verdict || strings.Contains(all, "19083") || !strings.Contains(all, want.asked) || want.asked == "" && strings.Contains(all, "19081") {
			t.Errorf("%q: %s", text, in)
		}
		if gaps := strings.Join(end.Gaps, "\n"); !strings.Contains(gaps, want.gap) {
			t.Errorf("%q: gaps %s", text, gaps)
		}
	}
	in := replay(t, "127.0.0.1:19080 gives 502", fine...)
	in.step()
	in.view.Instructions = append(in.view.Instructions, agent.Instruction{By: "U2", Text: "don't touch 127.0.0.1:19080", Turn: 1})
	if n := len(in.view.Observations); in.step() || !strings.Contains(in.turns[1].Text, "Which one is it instead?") || len(in.view.Observations) != n {
		t.Errorf("nothing is left to look at: %s", in)
	}
}

// TestRetracted: a hypothesis that was confirmed by what later turns out to be
// something else does not stay confirmed.
func TestRetracted(t *testing.T) {
	in := script(t, "127.0.0.1:20000 is broken", func(c string) (string, string, int) {
		if strings.HasPrefix(c, "curl") {
			return answered(200, "ok"), "", 0
		}
		return "State Recv-Q Send-Q Local Address:Port Peer Address:Port\nLISTEN 0 128 127.0.0.1:20000 0.0.0.0:*\n", "", 0
	})
	in.step()
	first := in.view.Case.Hypotheses[0].ID
	in.board.Apply(hypothesis.Change{Turn: 99, Op: "update", ID: first, State: agent.Confirmed, Evidence: []string{in.view.Observations[0].AuditID}}, in.view.Now, in)
	in.view.Case.Hypotheses = in.board.Lists().Hypotheses
	if !slices.ContainsFunc(in.view.Case.Hypotheses, func(h agent.Hypothesis) bool { return h.State == agent.Confirmed }) {
		t.Fatalf("nothing is confirmed: %s", in)
	}
	in.finish()
	for _, h := range in.view.Case.Hypotheses {
		if h.State == agent.Confirmed {
			t.Errorf("%s is still confirmed", h.ID)
		}
	}
}

// TestAccounts: an id that only a chat knows is no name; the entry that has it is
// cited.
func TestAccounts(t *testing.T) {
	account := "U0" + strings.Repeat("A1", 4)
	in := replay(t, "127.0.0.1:19080 gives 502. I checked 127.0.0.1:19083, that one is fine", fine...)
	in.view.Case.Requester = account
	in.step()
	in.view.Instructions = append(in.view.Instructions, agent.Instruction{By: account, ID: "ghost_20260314_104512_077", Text: "no, it is 127.0.0.1:19082", Turn: 1})
	gaps := strings.Join(in.finish().Gaps, "\n")
	for _, want := range []string{"127.0.0.1:19083: left out, because a person says", "127.0.0.1:19080: not examined after a person's correction of the target (ghost_20260314_104512_077)"} {
		if !strings.Contains(gaps, want) || strings.Contains(gaps, account) {
			t.Errorf("no %q in %s", want, gaps)
		}
	}
}
