package access

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// staff is a directory of people who are what their ids say.
type staff struct {
	groups map[string][]string
	fail   string // the id whose look-up fails
}

func (s staff) Person(_ context.Context, id, team string) (Person, error) {
	if id == s.fail && id != "" {
		return Person{}, errors.New("ratelimited")
	}
	p := Person{ID: id, Active: true, Human: true, Member: true}
	switch id {
	case "UGUEST":
		p.Member, p.Explain = false, "guests of the workspace decide nothing"
	case "UBOT":
		p.Human, p.Explain = false, "bots decide nothing"
	case "UGONE":
		p.Active, p.Explain = false, "this account is deactivated"
	}
	if team == "TOTHER" {
		p.Member, p.Explain = false, "people of another workspace decide nothing"
	}
	return p, nil
}

func (s staff) Members(_ context.Context, g string) ([]string, error) {
	if g == s.fail {
		return nil, errors.New("no_such_subteam")
	}
	return s.groups[g], nil
}

// rules are a deployment in which the lines matter.
func rules(t *testing.T) Rules {
	t.Helper()
	lines, err := parse(strings.NewReader(`
# payments decides for itself
C0PAY   az-*       U0CFO, S0PAY
C0PAY   *          S0PAY
C0WAR   RISKY      nobody   # a war room with a vendor
*       az-mutate  U0COMMAND
`), nil, known)
	if err != nil {
		t.Fatal(err)
	}
	return Rules{Approvers: []string{"U0ANY", "S0NET", "UGUEST", "UBOT", "UGONE"}, Lines: lines, Self: true}
}

func known(rule string) bool {
	return strings.HasPrefix(rule, "az-") || rule == "unknown-program" || rule == "tcpdump-flag"
}

func TestMay(t *testing.T) {
	groups := map[string][]string{"S0NET": {"U0NET"}, "S0PAY": {"U0PAY", "UGUEST"}}
	pay, net, war := "C0PAY", "C0NET", "C0WAR"
	for _, tt := range []struct {
		user, channel, rule, want string // "": may
	}{
		{"U0ANY", net, "unknown-program", ""},
		{"U0NET", net, "unknown-program", ""},
		{"U0PAY", net, "unknown-program", "not an approver"},
		{"U0PAY", pay, "unknown-program", ""},
		{"U0ANY", pay, "unknown-program", "not an approver for commands of the rule unknown-program in this channel"},
		{"U0CFO", pay, "az-mutate", ""},
		{"U0PAY", pay, "az-mutate", ""},
		{"U0CFO", pay, "unknown-program", "not an approver"},
		{"U0COMMAND", pay, "az-mutate", "not an approver"},
		{"U0COMMAND", net, "az-mutate", ""},
		{"U0ANY", net, "az-mutate", "not an approver"},
		{"U0ANY", net, "az-secret", ""},
		{"U0ANY", war, "unknown-program", "names nobody"},
		{"U0COMMAND", war, "az-mutate", "names nobody"},
		{"U0ANY", "", "unknown-program", ""},
		{"UGUEST", net, "unknown-program", "guests"},
		{"UGUEST", pay, "unknown-program", "guests"},
		{"UBOT", net, "unknown-program", "bots"},
		{"UGONE", net, "unknown-program", "deactivated"},
		{"", net, "unknown-program", "not an approver"},
		{"U0PAY", pay, "", ""},
		{"U0CFO", pay, "", "not an approver in this channel"},
	} {
		why, ok := rules(t).May(t.Context(), staff{groups: groups}, tt.user, "T1", About{Channel: tt.channel, Class: "RISKY", Rule: tt.rule})
		if ok != (tt.want == "") || !strings.Contains(Plain(why), tt.want) {
			t.Errorf("%s in %s about %s: %v, %q, want %q", tt.user, tt.channel, tt.rule, ok, Plain(why), tt.want)
		}
		if !ok && !strings.Contains(why, "Approvers: ") && !strings.Contains(why, "Whoever runs this bot") {
			t.Errorf("%s is not told who can help: %q", tt.user, why)
		}
	}
}

func TestMayRefusesWhatItCannotSee(t *testing.T) {
	groups := map[string][]string{"S0NET": {"U0NET"}}
	for _, tt := range []struct {
		name, user, team, fail, want string
	}{
		{"the person", "U0ANY", "", "U0ANY", "could not be checked (ratelimited)"},
		{"the group", "U0NET", "", "S0NET", "group could not be read (group S0NET: no_such_subteam)"},
		{"a group that is not needed", "U0ANY", "", "S0NET", ""},
		{"a foreign click", "U0ANY", "TOTHER", "", "another workspace"},
	} {
		why, ok := rules(t).May(t.Context(), staff{groups, tt.fail}, tt.user, tt.team, About{Channel: "C0NET", Class: "RISKY", Rule: "unknown-program"})
		if ok != (tt.want == "") || !strings.Contains(why, tt.want) {
			t.Errorf("%s: %v, %q, want %q", tt.name, ok, why, tt.want)
		}
	}
}

func TestSelf(t *testing.T) {
	r := Rules{Approvers: []string{"U0ANY"}}
	about := About{Class: "RISKY", Requester: "U0ANY"}
	if why, ok := r.May(t.Context(), staff{}, "U0ANY", "", about); ok || !strings.Contains(why, "somebody else") {
		t.Errorf("self-approval: %v, %q", ok, why)
	}
	about.Requester = ""
	if why, ok := r.May(t.Context(), staff{}, "U0ANY", "", about); !ok {
		t.Errorf("denying one's own: %q", why)
	}
	if why, ok := (Rules{}).May(t.Context(), staff{}, "U0ANY", "", About{}); ok || !strings.Contains(why, "no approvers are configured") {
		t.Errorf("the zero rules: %v, %q", ok, why)
	}
}

// TestRefusalNamesWhoCan: whoever would be refused, too, is no help.
func TestRefusalNamesWhoCan(t *testing.T) {
	about := About{Class: "RISKY", Requester: "U0ANY"}
	for name, c := range map[string]struct {
		who  []string
		user string
		want string
	}{
		"a deactivated one, a guest, a bot": {[]string{"UGONE", "U0ANY", "UGUEST", "UBOT", "S0NET"}, "U0OTHER", "Approvers: S0NET."},
		"only such":                         {[]string{"UGONE", "UBOT"}, "U0OTHER", "of those who are named as approvers none may decide"},
		"the one who asked":                 {[]string{"U0ANY", "U0CFO"}, "U0ANY", "Approvers: U0CFO."},
		"nobody but the one who asked":      {[]string{"U0ANY"}, "U0ANY", "Nobody else can either"},
	} {
		why, ok := (Rules{Approvers: c.who}).May(t.Context(), staff{groups: map[string][]string{"S0NET": {"U0NET"}}}, c.user, "", about)
		if ok || !strings.Contains(Plain(why), c.want) {
			t.Errorf("%s: %v, %q, want %q", name, ok, Plain(why), c.want)
		}
	}
	why, ok := (Rules{Lines: []Line{{Channel: "C0PAY", What: Every, Who: []string{"U0PAY"}}}}).May(t.Context(), staff{}, "U0ANY", "", About{Channel: "C0NET", Class: "RISKY", Rule: "az-mutate"})
	if ok || !strings.Contains(why, "no line of the approvers' file is for commands of the rule az-mutate in this channel") {
		t.Errorf("a file with lines for others: %v, %q", ok, why)
	}
}

func TestFits(t *testing.T) {
	for _, tt := range []struct {
		what, rule string
		want       bool
	}{
		{"RISKY", "az-mutate", true}, {"az-mutate", "az-mutate", true}, {"az-*", "az-mutate", true}, {"*", "az-mutate", true},
		{"az-*", "azure", false}, {"az-mutate", "az-mutate-x", false}, {"", "", false}, {"", "az-mutate", false}, {"SAFE", "az-mutate", false},
	} {
		if got := Fits(tt.what, "RISKY", tt.rule); got != tt.want {
			t.Errorf("Fits(%q, RISKY, %q) = %v", tt.what, tt.rule, got)
		}
	}
	r := Rules{TwoPerson: []string{"az-*"}, Factor: []string{"az-mutate"}}
	if r.Needed("RISKY", "az-secret") != 2 || r.Needed("RISKY", "tcpdump-flag") != 1 || (Rules{}).Needed("RISKY", "") != 1 {
		t.Error("two people")
	}
	if !r.NeedsCode("RISKY", "az-mutate") || r.NeedsCode("RISKY", "az-secret") || (Rules{}).NeedsCode("RISKY", "") {
		t.Error("codes")
	}
}

func TestIn(t *testing.T) {
	r := rules(t)
	for channel, want := range map[string][]string{
		"C0PAY": {"U0CFO", "S0PAY"}, "C0WAR": nil, "C0NET": {"U0COMMAND", "U0ANY", "S0NET", "UGUEST", "UBOT", "UGONE"},
	} {
		if diff := cmp.Diff(want, r.In(channel)); diff != "" {
			t.Errorf("%s: %s", channel, diff)
		}
	}
	if got := (Rules{Lines: []Line{{Channel: Every, What: "az-mutate", Who: []string{"U1"}}}}).In("C1"); len(got) != 1 {
		t.Errorf("somebody who decides about one rule only: %v", got)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"C0PAY az-mutate", "line 1: \"C0PAY az-mutate\" is not a channel, a class or rule, and approvers"},
		{"#c\n\npayments * U0ANY", "line 3: \"payments\" is not a Slack channel id"},
		{"C0OTHER * U0ANY", "not in GHOST_CHANNELS"},
		{"C0PAY az_mutate U0ANY", "\"az_mutate\" is not accepted"},
		{"C0PAY mutate U0ANY", "\"mutate\" is not accepted"},
		{"C0PAY x-* U0ANY", "\"x-*\" is not accepted"},
		{"C0PAY SAFE U0ANY", "only RISKY"},
		{"C0PAY FORBIDDEN U0ANY", "only RISKY"},
		{"C0PAY * alex", "\"alex\" is not a Slack user"},
		{"C0PAY * U0ANY, nobody", "\"nobody\" is not a Slack user"},
		{"C0PAY * U0ANY\nC0PAY az-mutate U0CFO", "line 2 never counts: line 1 fits first"},
		{"* * U0ANY\nC0PAY az-mutate U0CFO", "never counts"},
		{"* az-* U0ANY\nC0PAY az-mutate U0CFO", "never counts"},
		{"C0PAY RISKY U0ANY\nC0PAY * U0CFO", "never counts"},
		{"C0PAY az-m* U0ANY\nC0PAY az-m* U0CFO", "never counts"},
	} {
		if _, err := parse(strings.NewReader(tt.text), []string{"C0PAY"}, known); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", tt.text, err, tt.want)
		}
	}
	if lines, err := parse(strings.NewReader("C0PAY az-mutate U0A\n* az-* U0B\n* RISKY U0C\r\n"), nil, known); err != nil || len(lines) != 3 || lines[2].Who[0] != "U0C" {
		t.Errorf("narrower lines above: %v, %v", lines, err)
	}
}

// TestReadMarked: what an editor puts in front of text is no part of it.
func TestReadMarked(t *testing.T) {
	name := filepath.Join(t.TempDir(), "approvers")
	for text, want := range map[string]string{"\ufeffC0PAY az-mutate U0A\n": "", "\xff\xfeC\x000\x00": "is text in UTF-16 (accepted: UTF-8)"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		lines, err := Read(name, nil, known)
		if want == "" && (err != nil || len(lines) != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, %v", text, lines, err)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "approvers")
	put := func(mode os.FileMode) {
		os.Remove(name)
		if err := os.WriteFile(name, []byte("* * U0ANY\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	for mode, want := range map[os.FileMode]string{0o600: "", 0o644: "", 0o664: "written by others", 0o602: "written by others"} {
		put(mode)
		if _, err := Read(name, nil, known); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%04o: %v", mode, err)
		}
	}
	for _, bad := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := Read(bad, nil, known); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
	if err := os.WriteFile(name, []byte(strings.Repeat("#", maxFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Chmod(name, 0o600)
	if _, err := Read(name, nil, known); err == nil {
		t.Error("a huge file is read")
	}
}

func TestCheck(t *testing.T) {
	var many []string
	for i := range MaxGroups + 1 {
		many = append(many, "S0"+strings.Repeat("X", i+1))
	}
	if err := (Rules{Approvers: many}).Check(); err == nil {
		t.Error("more groups than can be looked up")
	}
	if err := (Rules{Approvers: many[1:], Lines: []Line{{Who: many[2:4]}}}).Check(); err != nil {
		t.Error(err)
	}
	r := Rules{Approvers: []string{"U1", "S1"}, Lines: []Line{{Who: []string{"S2", "U2", "U1"}}}}
	if diff := cmp.Diff([][]string{{"S1", "S2"}, {"U1", "U2"}}, [][]string{r.Groups(), r.Users()}); diff != "" {
		t.Error(diff)
	}
}

// FuzzRead: what is accepted lets nobody in whom no line names, and no two lines of
// which the second can never count.
func FuzzRead(f *testing.F) {
	f.Add("C0PAY az-* U0CFO, S0PAY\n* RISKY nobody\n", "C0PAY", "az-mutate")
	f.Add("* az-mutate U1\n", "C0X", "unknown-program")
	f.Fuzz(func(t *testing.T, text, channel, rule string) {
		lines, err := parse(strings.NewReader(text), nil, known)
		if err != nil {
			return
		}
		r := Rules{Lines: lines}
		who, narrowed := r.Who(About{Channel: channel, Class: "RISKY", Rule: rule})
		if narrowed != (len(who) > 0) && !strings.Contains(text, Nobody) {
			t.Fatalf("%q: %v, %v", text, who, narrowed)
		}
		for _, id := range who {
			if !strings.Contains(text, id) || CheckID(id) != nil {
				t.Fatalf("%q lets %q decide", text, id)
			}
		}
		for i, l := range lines {
			if got, _ := r.Who(About{Channel: l.Channel, Class: "RISKY", Rule: strings.TrimSuffix(l.What, "*") + "zz"}); l.What != Every && strings.HasSuffix(l.What, "*") && i == 0 && !cmp.Equal(got, l.Who) {
				t.Fatalf("the first line does not count: %q", text)
			}
		}
	})
}

// Ending a process that others depend on takes two people, whatever is configured.
func TestHighRiskTakesTwo(t *testing.T) {
	for rule, want := range map[string]int{"agent-apply": 1, "agent-apply-data-loss": 1, "agent-apply-high": 2, "signal": 1} {
		if got := (Rules{}).Needed("RISKY", rule); got != want {
			t.Errorf("%s needs %d, want %d", rule, got, want)
		}
		if got := (Rules{TwoPerson: []string{"agent-apply*"}}).Needed("RISKY", rule); rule != "signal" && got != 2 {
			t.Errorf("%s needs %d where the rules want two", rule, got)
		}
	}
}
