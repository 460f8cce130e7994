package view_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"ghostbot/triage/model"
	"ghostbot/triage/plan"
	"ghostbot/triage/scan"
	"ghostbot/triage/view"
)

// caseOf is a plan and what it was made of.
func caseOf(focus plan.Focus, list ...plan.Evaluated) (*plan.Plan, *scan.Snapshot) {
	p := made(sid1, list...)
	p.Focus = focus
	p.Protected = []plan.Protected{{PID: 99, StartID: "boot:990:99", CmdShort: "nginx", Reason: "protected name nginx"}}
	p.Summary.Protected, p.Summary.Scanned = 1, len(list)
	s := &scan.Snapshot{WindowS: 1}
	for _, e := range list {
		r := scan.Record{AgeS: float64(e.PID) * 100, State: "S", Demand: float64(e.PID) / 100}
		r.PID, r.StartID = e.PID, e.StartID
		r.Net = scan.Network{Ports: []int{8000 + e.PID}, Listens: []scan.Listener{{Port: 8000 + e.PID, RecvQ: 3, SendQ: 2}}}
		r.Files = scan.Files{Open: 90, Limit: 100, Writes: []scan.WriteFile{{FD: 3, Path: "/x"}}}
		r.Evidence.Queue = "full"
		if e.Action == model.Spare {
			r.Files, r.Net.Listens, r.Evidence.Queue = scan.Files{Open: 9, Limit: 100}, nil, "ok"
		}
		s.Records = append(s.Records, r)
	}
	g := scan.Record{State: "S", CmdFull: "nginx: master"}
	g.PID, g.StartID, g.Net.Ports = 99, "boot:990:99", []int{443}
	s.Records = append(s.Records, g)
	return p, s
}

// What is in focus comes first whatever it was judged, then what is to be decided.
func TestCase(t *testing.T) {
	list := []plan.Evaluated{evaluated(1, model.Kill, 0.98, "a"), evaluated(2, model.Spare, 0.01, "b"), evaluated(3, model.Review, 0.7, "c")}
	for name, c := range map[string]struct {
		focus    plan.Focus
		limit    int
		skip     int
		youngest time.Duration
		want     string
	}{
		"no focus":          {plan.Focus{}, 0, 0, 0, "1 3 omitted 0 in focus 0"},
		"a useful one":      {plan.Focus{Port: 8002}, 0, 0, 0, "2 1 3 omitted 0 in focus 1"},
		"by number":         {plan.Focus{PIDs: []int{3}}, 0, 0, 0, "3 1 omitted 0 in focus 1"},
		"a protected one":   {plan.Focus{Port: 443}, 0, 0, 0, "99 1 3 omitted 0 in focus 1"},
		"nobody":            {plan.Focus{Port: 1}, 0, 0, 0, "1 3 omitted 0 in focus 0"},
		"one row":           {plan.Focus{}, 1, 0, 0, "1 omitted 1 in focus 0"},
		"the next row":      {plan.Focus{}, 1, 1, 0, "3 omitted 0 in focus 0"},
		"behind the end":    {plan.Focus{}, 1, 9, 0, "omitted 0 in focus 0"},
		"young ones":        {plan.Focus{}, 0, 0, 200 * time.Second, "1 omitted 0 in focus 0"},
		"young and focused": {plan.Focus{PIDs: []int{3}}, 0, 0, 200 * time.Second, "3 1 omitted 0 in focus 1"},
	} {
		p, s := caseOf(c.focus, list...)
		d := view.NewCase(p, s, c.limit, c.skip, c.youngest)
		var got []string
		for _, r := range d.Processes {
			got = append(got, fmt.Sprint(r.PID))
		}
		got = append(got, fmt.Sprintf("omitted %d in focus %d", d.Omitted, d.Holders))
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", name, s, c.want)
		}
	}
	p, s := caseOf(plan.Focus{Port: 443}, list...)
	d := view.NewCase(p, s, 0, 0, 0)
	if g := d.Processes[0]; g.Guarded != "protected name nginx" || g.CanEnd || g.Command != "nginx: master" {
		t.Errorf("a protected process is shown as %+v", g)
	}
	if r := d.Processes[1]; r.Queue != "full (port 8001: 3 of 2 wait)" || !r.CanEnd || r.FilesLimit != 100 || r.RiskBeside == "" {
		t.Errorf("row %+v", r)
	}
	s.Records[0].Missing = map[string]string{"net": "unreadable"}
	s.Records[1].Missing = map[string]string{"queue": "the length of the accept queue is not known"}
	s.Records[2].Missing, s.Records[2].State = map[string]string{"net": "unreadable"}, "Z"
	if d := view.NewCase(p, s, 0, 0, 0); d.Unreadable != 3 || d.Hidden != 1 {
		t.Errorf("%d unreadable in part, %d with their sockets; want 3 and 1", d.Unreadable, d.Hidden)
	}
	s.Unowned = []int{443, 9000}
	for port, want := range map[int]bool{0: false, 8001: false, 9000: true} {
		p.Focus.Port = port
		if d := view.NewCase(p, s, 0, 0, 0); d.Unseen != want {
			t.Errorf("port %d is held unseen: %v", port, d.Unseen)
		}
	}
	if d.TopFiles != 90 || d.TopDemand != 0.03 || d.Scanned != 4 || d.Protected != 1 {
		t.Errorf("document %+v", d)
	}
}

// What burns a processor, holds the descriptors or does not accept is shown, be it
// young, useful or protected, and whatever else there is to decide; what does not stand
// out is not.
func TestCaseShowsWhatStandsOut(t *testing.T) {
	young := evaluated(20, model.Spare, 0.9, "y")
	young.Blocked = []string{plan.TooYoung}
	useful := evaluated(21, model.Spare, 0.01, "u")
	var zombies []plan.Evaluated
	for pid := 1; pid <= 8; pid++ {
		z := evaluated(pid, model.Review, 0.99, "z")
		z.Evidence.State = "Z"
		zombies = append(zombies, z)
	}
	burns := func(r *scan.Record) { r.Demand = 0.94 }
	holds := func(r *scan.Record) { r.Files = scan.Files{Open: 92, Limit: 100} }
	waits := func(r *scan.Record) { r.Net.CloseWait = 100 }
	full := func(r *scan.Record) { r.Evidence.Queue = "full" }
	for name, c := range map[string]struct {
		does  func(*scan.Record)
		who   int
		shown bool
	}{
		"young and busy": {burns, 20, true}, "young with descriptors": {holds, 20, true}, "useful and busy": {burns, 21, true}, "useful with descriptors": {holds, 21, true},
		"useful and does not close": {waits, 21, true}, "useful and does not accept": {full, 21, true}, "protected and busy": {burns, 99, true}, "protected with descriptors": {holds, 99, true},
		"nothing": {func(*scan.Record) {}, 20, false}, "nearly busy": {func(r *scan.Record) { r.Demand = 0.79 }, 21, false}, "nearly full": {func(r *scan.Record) { r.Files = scan.Files{Open: 89, Limit: 100} }, 21, false},
		"in a state for a moment": {func(r *scan.Record) { r.State = "D" }, 21, false},
	} {
		p, s := caseOf(plan.Focus{}, append(zombies[:8:8], young, useful)...)
		for i := range s.Records {
			r := &s.Records[i]
			r.Demand, r.Files, r.Evidence.Queue, r.Net.Listens = 0.01, scan.Files{Open: 3, Limit: 100}, "ok", nil
			if r.PID <= 8 {
				r.State = "Z"
			}
			if r.PID == c.who {
				c.does(r)
			}
		}
		d := view.NewCase(p, s, 0, 0, 0)
		i := slices.IndexFunc(d.Processes, func(r view.CaseRow) bool { return r.PID == c.who })
		if (i >= 0) != c.shown || len(d.Processes) != 5 {
			t.Errorf("%s: %+v", name, d.Processes)
			continue
		}
		if i >= 0 && (i != 0 || d.Processes[i].CanEnd || d.Processes[i].Young != (c.who == 20) || d.Processes[1].State != "Z") {
			t.Errorf("%s: row %d is %+v", name, i, d.Processes[i])
		}
		if d.Omitted != 8-5+len(d.Processes[:i+1]) {
			t.Errorf("%s: %d left out", name, d.Omitted)
		}
	}
}

// A row in focus names the port that is asked for, however many it has.
func TestCaseNamesThePort(t *testing.T) {
	p, s := caseOf(plan.Focus{Port: 9999}, evaluated(1, model.Spare, 0.01, "a"))
	for port := range 20 {
		s.Records[0].Net.Ports = append(s.Records[0].Net.Ports, 9000+port)
	}
	s.Records[0].Net.Ports = append(s.Records[0].Net.Ports, 9999)
	if d := view.NewCase(p, s, 0, 0, 0); len(d.Processes) != 1 || !slices.Contains(d.Processes[0].Ports, 9999) || len(d.Processes[0].Ports) != 10 {
		t.Errorf("%+v", d.Processes)
	}
}

// A command line in the document is one line of visible characters.
func TestCaseHostileNames(t *testing.T) {
	for _, name := range []string{"a\nb", "\x1b[31m", "\u202egnp.exe", "`rm`", "\xff\xfe", strings.Repeat("x", 9000), "<!channel>"} {
		e := evaluated(1, model.Kill, 0.98, "x")
		e.CmdFull, e.Rationale = name, name
		p, s := caseOf(plan.Focus{}, e)
		d := view.NewCase(p, s, 0, 0, 0)
		got := d.Processes[0].Command
		for _, r := range got {
			if !unicode.IsPrint(r) || r == '`' {
				t.Errorf("%q is shown as %q", name, got)
				break
			}
		}
		if n := len([]rune(got)); n > 160 {
			t.Errorf("%d characters", n)
		}
		b, err := json.Marshal(d)
		if err != nil || len(b) > 4000 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
}
