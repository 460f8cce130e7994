package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ghostbot/agent"
)

// proposed are the commands of a case, in order.
func proposed(t *testing.T, entries []entry) (out []string) {
	t.Helper()
	j := readCase(t, entries)
	for id := range j.proposed {
		out = append(out, id)
	}
	slices.Sort(out)
	for i, id := range out {
		out[i] = j.proposed[id]
	}
	return out
}

// TestEarlierCaseIsRecalled: when a case comes back, the thread and the report name
// the closed one, another channel hears nothing of it, and the playbook does what it
// did the first time.
func TestEarlierCaseIsRecalled(t *testing.T) {
	t.Parallel()
	addr, _ := gateway(t)
	l := newLab(t)
	l.run()
	play := func(channel, what string) (sid, md string, entries []entry) {
		l.command(channel, l.approver(0), "/ghost investigate "+what+" gets 502 from "+addr)
		l.denyRest(channel, what+" gets")
		sid = l.sid(channel, what+" gets")
		l.closed(sid)
		md, entries = l.checkCase(channel, what+" gets", sid)
		return sid, md, entries
	}
	first, md, before := play("incidents", "checkout")
	if strings.Contains(md, "Earlier Cases") {
		t.Errorf("the first case has earlier ones:\n%s", md)
	}
	second, md, after := play("incidents", "shop")
	if m := l.find(caseLimit, "incidents", "shop gets", "Note: Looked like this before: "); !strings.Contains(m.Text, first+" (") || !strings.Contains(m.Text, "Nothing listens on") {
		t.Errorf("the thread says: %s", m.Text)
	}
	_, section, _ := strings.Cut(md, "## Earlier Cases")
	section, _, _ = strings.Cut(section, "\n## ")
	cited := "no entry recalls a case"
	for _, e := range after {
		if e.Kind == agent.KindRecalled {
			cited = fmt.Sprintf("[%s_%03d]", second, e.N)
		}
	}
	if !strings.Contains(section, first) || !strings.Contains(section, "same target 127.0.0.1") || !strings.Contains(section, cited) {
		t.Errorf("the report says: %s", section)
	}
	if one, two := proposed(t, before), proposed(t, after); !slices.Equal(one, two) {
		t.Errorf("memory steers the playbook:\n%q\n%q", one, two)
	}
	if out, code := l.ghostbot("audit", "rca", second); code != 0 || out != md {
		t.Errorf("the report is built anew as another one (exit %d)", code)
	}
	if _, md, _ := play("general", "order"); strings.Contains(md, "Earlier Cases") {
		t.Errorf("another channel hears of it:\n%s", md)
	}
	if out, code := l.ghostbot("cases", "--like", first); code != 0 || !strings.Contains(out, second) || !strings.Contains(out, "same target") {
		t.Errorf("cases --like: %d, %s", code, out)
	}
}
