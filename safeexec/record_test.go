package safeexec

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/safeexec/policy"
)

// resume cuts l's journal after n entries and carries on in a new life of the
// bot, as its caller does: every unfinished record, in order. The people keep
// what they have answered.
func (l *lab) resume(n int) []Result {
	l.t.Helper()
	l.j.entries = l.j.entries[:n]
	s := l.again()
	var out []Result
	for _, r := range Fold(l.j.all()) {
		if r.Result != nil {
			continue
		}
		res, err := s.Continue(context.Background(), r)
		if err != nil {
			l.t.Fatal(err)
		}
		out = append(out, res)
	}
	return out
}

// count is how often the test's program ran.
func (l *lab) count() int {
	b, _ := os.ReadFile(filepath.Join(l.dir, "count"))
	return strings.Count(string(b), "\n")
}

// TestResume cuts a real journal after every entry and resumes: the resume table
// of durability.md, row by row.
func TestResume(t *testing.T) {
	type row struct {
		cut     int
		journal string // after the cut
		status  string // of the last result, "" when nothing is left to do
		ran     int    // how often the command ran, both lives together
	}
	for _, c := range []struct {
		name    string
		answer  func(context.Context, Proposal) (Decision, error)
		command string
		journal string // uncut
		rows    []row
	}{
		{"safe", nobody, "uptime", "proposed intent started outcome:completed", []row{
			{1, "intent started outcome:completed", "completed", 2},
			{2, "proposed outcome:outcome_unknown intent started outcome:completed", "completed", 2},
			{3, "proposed outcome:outcome_unknown intent started outcome:completed", "completed", 2},
			{4, "", "", 1},
		}},
		{"risky", approve, "frob x", "proposed APPROVED intent started outcome:completed", []row{
			{1, "APPROVED outcome:denied", "denied", 1},          // the approver knows that it was started
			{2, "outcome:denied", "denied", 1},                   // likewise
			{3, "outcome:outcome_unknown", "outcome_unknown", 1}, // nobody repeats it
			{4, "outcome:outcome_unknown", "outcome_unknown", 1}, //
			{5, "", "", 1},
		}},
		{"denied", always(Decision{By: "U1", Reason: "no"}, nil), "frob x", "proposed DENIED outcome:denied", []row{
			{1, "DENIED outcome:denied", "denied", 0},
			{2, "outcome:denied", "denied", 0},
			{3, "", "", 0},
		}},
		{"edited", edit("uptime"), "frob x", "proposed MODIFIED proposed outcome:superseded intent started outcome:completed", []row{
			{1, "MODIFIED proposed outcome:superseded intent started outcome:completed", "completed", 2},
			{2, "proposed outcome:superseded intent started outcome:completed", "completed", 2},
			{3, "outcome:superseded intent started outcome:completed", "completed", 2},
			{4, "intent started outcome:completed", "completed", 2},
			{5, "proposed outcome:outcome_unknown intent started outcome:completed", "completed", 2},
			{6, "proposed outcome:outcome_unknown intent started outcome:completed", "completed", 2},
			{7, "", "", 1},
		}},
		{"forbidden", nobody, "rm -rf /", "proposed outcome:forbidden_command", []row{
			{1, "outcome:forbidden_command", "forbidden_command", 0},
			{2, "", "", 0},
		}},
		{"credential", nobody, "frob password=" + planted, "proposed outcome:credential_in_command", []row{
			{1, "outcome:credential_in_command", "credential_in_command", 0},
		}},
		{"credential typed", edit("frob password=" + planted), "frob x", "proposed MODIFIED proposed outcome:superseded outcome:credential_in_command", []row{
			{2, "proposed outcome:superseded outcome:credential_in_command", "credential_in_command", 0},
			{4, "outcome:credential_in_command", "credential_in_command", 0},
		}},
		{"pipe", nobody, "uptime | frob x", "proposed outcome:not_one_command", []row{
			{1, "outcome:not_one_command", "not_one_command", 0},
		}},
		{"not installed", nobody, "frobnicate", "proposed outcome:completed", []row{
			{1, "outcome:completed", "completed", 0},
		}},
	} {
		for _, r := range c.rows {
			t.Run(fmt.Sprintf("%s/%d", c.name, r.cut), func(t *testing.T) {
				l := newLab(t, c.answer)
				l.program("uptime", "echo x >>count")
				l.program("frob", "echo x >>count")
				l.run(c.command)
				if got := l.j.kinds(); got != c.journal {
					t.Fatalf("journal %s, want %s", got, c.journal)
				}
				results := l.resume(r.cut)
				if got := tail(l.j, r.cut); got != r.journal {
					t.Errorf("after the cut\n got %s\nwant %s", got, r.journal)
				}
				status := ""
				if n := len(results); n > 0 {
					if status = results[n-1].Error; status == "" {
						status = results[n-1].Status
					}
				}
				if status != r.status {
					t.Errorf("last result %q, want %q", status, r.status)
				}
				if got := l.count(); got != r.ran {
					t.Errorf("ran %d times, want %d", got, r.ran)
				}
				if again := l.resume(len(l.j.all())); len(again) != 0 {
					t.Errorf("a second resume still found work: %+v", again)
				}
			})
		}
	}
}

func tail(j *memory, n int) string { return kindsOf(j.all()[n:]) }

// TestResumeBeforeStart: the crash came before the approver granted the start,
// so exactly the approved argument list runs, once.
func TestResumeBeforeStart(t *testing.T) {
	for _, cut := range []int{1, 2} {
		l := newLab(t, approve)
		l.program("frob", "echo x >>count; echo $1")
		l.j.room = 2
		if _, err := l.Run(context.Background(), Request{Command: "frob 'a b'"}); err == nil {
			t.Fatal("the journal did not fail")
		}
		l.j.room = 0
		results := l.resume(cut)
		if len(results) != 1 || results[0].Output != "a b\n" || results[0].Action != "user_approved" || results[0].DecidedBy != "U1" || l.count() != 1 {
			t.Errorf("cut %d: got %+v, ran %d times", cut, results, l.count())
		}
		if len(l.ppl.asked) != map[int]int{1: 2, 2: 1}[cut] {
			t.Errorf("cut %d: asked %d times", cut, len(l.ppl.asked))
		}
	}
}

// TestResumeChanged: what is no longer what was approved is not started.
func TestResumeChanged(t *testing.T) {
	frob := func(t *testing.T, change func(*lab)) *lab {
		l := newLab(t, approve)
		l.program("frob", "echo x >>count")
		l.program("tcpdump", "echo x >>count")
		l.j.room = 2
		l.Run(context.Background(), Request{Command: "frob x"})
		l.j.room = 0
		change(l)
		return l
	}
	const again = "SUPERSEDED proposed outcome:superseded APPROVED intent started outcome:completed"
	for _, c := range []struct {
		name    string
		change  func(*lab)
		journal string
	}{
		{"nothing", func(*lab) {}, "intent started outcome:completed"},
		{"too late", func(l *lab) { l.opts.Now = func() time.Time { return time.Now().Add(time.Hour) } }, "EXPIRED outcome:denied"},
		{"policy", func(l *lab) { l.opts.Policy = policy.New(policy.Options{CaptureDirs: []string{"/captures"}}) }, again},
		{"folder", func(l *lab) { l.opts.Dir += "2" }, again},
		{"program", func(l *lab) {
			os.Rename(filepath.Join(l.bin, "frob"), filepath.Join(l.bin, "frob2"))
			os.Symlink("frob2", filepath.Join(l.bin, "frob"))
		}, again},
		{"program gone", func(l *lab) { os.Remove(filepath.Join(l.bin, "frob")) }, "SUPERSEDED proposed outcome:superseded outcome:completed"},
		{"read-only", func(l *lab) { l.opts.ReadOnly = true }, "outcome:denied"},
		{"digest", func(l *lab) { l.edit(0, "requester", "U9") }, again},
		{"argument list", func(l *lab) { l.edit(0, "argv", []string{"frob", "y"}) }, again},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := frob(t, c.change)
			l.resume(2)
			if got := tail(l.j, 2); got != c.journal {
				t.Errorf("journal\n got %s\nwant %s", got, c.journal)
			}
		})
	}
}

// edit changes one field of an entry, as somebody with write access could.
func (l *lab) edit(i int, field string, value any) {
	var body map[string]any
	json.Unmarshal(l.j.entries[i].Body, &body)
	body[field] = value
	l.j.entries[i].Body, _ = json.Marshal(body)
}

func TestIdentityChanged(t *testing.T) {
	account := "sub-1"
	l := newLab(t, nil, func(o *Options) { o.Identity = func() string { return account } })
	l.program("az", "echo x >>count")
	l.ppl.answer = func(ctx context.Context, p Proposal) (Decision, error) {
		account = "sub-2"
		return approve(ctx, p)
	}
	l.run("az group delete -n x")
	if got, want := l.j.kinds(), "proposed APPROVED SUPERSEDED proposed outcome:superseded APPROVED intent started outcome:completed"; got != want {
		t.Errorf("journal\n got %s\nwant %s", got, want)
	}
	if a, b := l.ppl.asked[0], l.ppl.asked[1]; a.Identity != "sub-1" || b.Identity != "sub-2" || b.Replaces != a.AuditID || b.Edited {
		t.Errorf("asked %+v then %+v", a, b)
	}
}

// TestUnknownTwice: a SAFE command is repeated once; then it is a gap.
func TestUnknownTwice(t *testing.T) {
	l := newLab(t, nobody)
	l.program("uptime", "echo x >>count")
	l.run("uptime")
	l.resume(3) // 4 proposed (repeat), 5 outcome of 1, 6 intent, 7 started, 8 outcome
	second := Fold(l.j.all())[1]
	if !second.Proposal.Repeat || second.Proposal.Replaces != sid+"_001" || second.Proposal.Display != "uptime" {
		t.Errorf("the repeat does not say so: %+v", second.Proposal)
	}
	results := l.resume(6)
	if len(results) != 1 || results[0].Error != "outcome_unknown" || l.count() != 2 {
		t.Errorf("got %+v, ran %d times", results, l.count())
	}
	// Between the repeat's proposal and the outcome of the first: both are open.
	l.resume(4)
	if got, want := tail(l.j, 4), "outcome:outcome_unknown intent started outcome:completed"; got != want {
		t.Errorf("journal\n got %s\nwant %s", got, want)
	}
}

// TestLeftovers: what a killed bot left running is ended before its command is
// repeated, even when it hid from its parent and no supervisor watches it.
func TestLeftovers(t *testing.T) {
	for _, known := range []bool{true, false} {
		word := fmt.Sprintf("marker-%s-%v", t.Name(), known)
		l := newLab(t, nobody)
		l.program("uptime", "echo x >>count")
		l.run("uptime")
		l.program("loop", "while :; do sleep 0.05; done")
		left := exec.Command("setsid", filepath.Join(l.bin, "loop"), word)
		left.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		left.Env = []string{"INVOCATION_ID=" + Fold(l.j.all())[0].Proposal.ID}
		if known {
			left.Env = nil // only the started entry knows it
		}
		if err := left.Start(); err != nil {
			t.Fatal(err)
		}
		go left.Wait()
		pid := 0
		for pid == 0 { // not setsid itself, which makes another process of it and ends
			for _, p := range named(word) {
				if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p)); !bytes.HasPrefix(b, []byte("setsid\x00")) && len(b) > 0 {
					pid = p
				}
			}
			time.Sleep(time.Millisecond)
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // it has ended, unless the test failed
		if known {
			l.edit(2, "pid", pid)
			l.edit(2, "start_ticks", ticksOf(pid))
		} else {
			l.j.entries = l.j.entries[:2]
		}
		results := l.resume(min(3, len(l.j.entries)))
		if len(results) != 1 || results[0].Status != "completed" {
			t.Errorf("got %+v", results)
		}
		first := Fold(l.j.all())[0].Result
		if !strings.Contains(first.Detail, "still running and have been ended") {
			t.Errorf("detail %q", first.Detail)
		}
		vanish(t, "leftover", 100*time.Millisecond, word)
	}
}

// TestLeftoversOfOthers: a process id of another machine, another boot or another
// start is not ours.
func TestLeftoversOfOthers(t *testing.T) {
	l := newLab(t, nobody)
	other := exec.Command("sleep", "300")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	ticks := ticksOf(other.Process.Pid)
	for _, s := range []Started{
		{PID: other.Process.Pid, Ticks: ticks, BootID: l.boot, Host: "elsewhere"},
		{PID: other.Process.Pid, Ticks: ticks, BootID: "before", Host: l.host},
		{PID: other.Process.Pid, Ticks: ticks + 1, BootID: l.boot, Host: l.host},
	} {
		if note, ended := l.endLeftovers(Record{Started: &s}); !ended {
			t.Errorf("%+v: %s", s, note)
		}
		if other.Process.Signal(syscall.Signal(0)) != nil || statusOf(other.Process.Pid) == 'Z' {
			t.Fatalf("%+v: somebody else's process was killed", s)
		}
	}
}

func statusOf(pid int) byte {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return b[bytes.LastIndexByte(b, ')')+2]
}

func TestFold(t *testing.T) {
	entry := func(n uint64, kind, body string) Entry {
		return Entry{N: n, ID: fmt.Sprintf("s_%03d", n), Kind: kind, Hash: strings.Repeat(fmt.Sprint(n%10), 64), Body: json.RawMessage(body)}
	}
	type row struct {
		ID, Class, Decided, Outcome, ReplacedBy string
		Intent, Started                         bool
	}
	for _, c := range []struct {
		name    string
		entries []Entry
		want    []row
	}{
		{"nothing", nil, nil},
		{"out of order, foreign kinds, unknown ids", []Entry{
			entry(3, "intent", `{"audit_id":"s_001"}`), entry(2, "posting", `{"audit_id":"s_001"}`), entry(1, "proposed", `{"classification":"SAFE"}`),
			entry(4, "outcome", `{"audit_id":"s_009","status":"completed"}`), entry(5, "outcome", `[]`),
		}, []row{{ID: "s_001", Class: "SAFE", Intent: true}}},
		{"unreadable bodies start nothing", []Entry{
			entry(1, "proposed", `"x"`), entry(2, "proposed", `{"classification":"RISKY"}`), entry(3, "decided", `{"audit_id":"s_002","at":7}`),
			entry(4, "outcome", `{"audit_id":"s_002","exit_code":"a"}`), entry(5, "proposed", `{"classification":"MAYBE"}`),
		}, []row{{ID: "s_001", Class: "FORBIDDEN"}, {ID: "s_002", Class: "RISKY", Decided: "DENIED", Outcome: "outcome_unknown"}, {ID: "s_005", Class: "FORBIDDEN"}}},
		{"a denial stays", []Entry{
			entry(1, "proposed", `{"classification":"RISKY"}`), entry(2, "decided", `{"audit_id":"s_001","decision":"DENIED"}`), entry(3, "decided", `{"audit_id":"s_001","decision":"APPROVED"}`),
		}, []row{{ID: "s_001", Class: "RISKY", Decided: "DENIED"}}},
		{"an approval can be overtaken", []Entry{
			entry(1, "proposed", `{"classification":"RISKY"}`), entry(2, "decided", `{"audit_id":"s_001","decision":"APPROVED"}`), entry(3, "decided", `{"audit_id":"s_001","decision":"EXPIRED"}`),
		}, []row{{ID: "s_001", Class: "RISKY", Decided: "EXPIRED"}}},
		{"a late report replaces unknown, nothing else", []Entry{
			entry(1, "proposed", `{"classification":"SAFE"}`), entry(2, "started", `{"audit_id":"s_001","pid":7}`), entry(3, "outcome", `{"audit_id":"s_001","status":"error","error":"outcome_unknown"}`),
			entry(4, "outcome", `{"audit_id":"s_001","status":"completed","error":"first"}`), entry(5, "outcome", `{"audit_id":"s_001","status":"completed","error":"second"}`),
			entry(6, "proposed", `{"classification":"SAFE","replaces":"s_001","repeat":true}`),
		}, []row{{ID: "s_001", Class: "SAFE", Intent: true, Started: true, Outcome: "first", ReplacedBy: "s_006"}, {ID: "s_006", Class: "SAFE"}}},
	} {
		var got []row
		for _, r := range Fold(c.entries) {
			w := row{ID: r.Proposal.AuditID, Class: r.Proposal.Class.String(), Intent: r.Intent, Started: r.Started != nil, ReplacedBy: r.ReplacedBy}
			if r.Decided != nil {
				w.Decided = r.Decided.Decision
			}
			if r.Result != nil {
				w.Outcome = r.Result.Error
			}
			got = append(got, w)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// FuzzFold: no journal content makes a record that runs without a person unless
// its proposal says SAFE.
func FuzzFold(f *testing.F) {
	f.Add("proposed", `{"classification":"RISKY"}`, "decided", `{"audit_id":"s_1","decision":"APPROVED"}`)
	f.Add("proposed", `{"classification":"SAFE","replaces":"s_1"}`, "outcome", `{"audit_id":"s_1"}`)
	f.Fuzz(func(t *testing.T, k1, b1, k2, b2 string) {
		if strings.Contains(b1+b2, `\`) {
			return // the oracle does not read escapes
		}
		records := Fold([]Entry{{N: 1, ID: "s_1", Kind: k1, Body: json.RawMessage(b1)}, {N: 2, ID: "s_2", Kind: k2, Body: json.RawMessage(b2)}})
		for _, r := range records {
			if r.Proposal.Class == Safe && !strings.Contains(b1+b2, "SAFE") {
				t.Errorf("SAFE out of nothing: %+v", r)
			}
			if r.Decided != nil && r.Decided.Decision == approved && !strings.Contains(strings.ToUpper(b1+b2), "DECISION") {
				t.Errorf("approved out of nothing: %+v", r)
			}
		}
	})
}
