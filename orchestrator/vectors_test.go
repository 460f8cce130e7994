package orchestrator

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/orchestrator/command"
	"ghostbot/orchestrator/names"
	"ghostbot/safeexec"
)

// row is a line of the regression data.
type row struct {
	ID      string
	Kind    string
	Fn      string
	Session string `json:"session_id"`
	Config  struct {
		MaxPolls int    `json:"max_polls"`
		Location string `json:"location"`
		Prefix   string `json:"capture_name_prefix"`
	}
	Registry []struct {
		Records []Task
	}
	Files []struct {
		Name string
		Days float64 `json:"age_days"`
	} `json:"local_files"`
	Replies []struct {
		Match     string
		Responses []struct {
			Status string
			Exit   int `json:"exit_code"`
			Output string
			Stderr string
		}
	}
	Steps []struct {
		Request Request
		Expect  map[string]any
	}
	States   map[string][]string `json:"expect_states"`
	Final    map[string]map[string]any
	FinalIn  map[string]map[string]any `json:"expect_final"`
	Commands []string                  `json:"expect_commands"`
	Sleeps   []float64                 `json:"expect_sleeps"`
	Cases    [][]any
}

// deviations are the rows that do not hold as they stand, why, and what holds in
// their place. All other rows hold after these readings, which follow from how this
// product captures: the tasks of a FAILED, CANCELLED or TIMED_OUT capture are
// cleaned up at once (CLEANING_UP, DONE; every deletion asked for); nothing looks
// for orphans unless it is asked to; the region comes with the VM and not with its
// group; the storage path is asked for after create, which does not wait; a
// message may say more than the row's.
var deviations = map[string]struct {
	why    string
	change func(*row)
}{
	"duration-uncapped": {"a capture ends after 300 seconds at the latest", func(r *row) {
		r.Steps[0].Expect = map[string]any{"status": "error", "error": InvalidParameter, "has_task_id": false}
		r.States, r.FinalIn, r.Commands = nil, nil, nil
	}},
	"poll-denied": {"the text must not say that anything was cleaned up (probe timeout-text)", func(r *row) {
		r.Steps[0].Expect["message"] = "Capture timed out. What it made"
	}},
	"loc-eastus": {"a region that nobody told is not guessed: the capture would be looked for where it is not", func(r *row) {
		r.Steps[0].Expect = map[string]any{"status": "error", "error": DetectionFailed, "has_task_id": false}
		r.States, r.FinalIn, r.Commands = nil, nil, r.Commands[:3]
	}},
	"CL13": {"a second clean-up of what is clean asks for nothing and stays completed: a resumed case may repeat the call", func(r *row) {
		r.Steps[2].Expect["cleanup_status"] = "completed"
		s := r.States["vm-01"]
		r.States["vm-01"] = s[:len(s)-2]
		r.FinalIn["vm-01"]["cleanup_status"] = "completed"
	}},
	"cancel-waiting": {"one call polls for 45 s and never longer; the running capture is removed at once; a cancelled capture does not become a complete one by being cleaned up", func(r *row) {
		e := r.Steps[0].Expect
		e["poll_count"], e["burst_polls"], e["burst_duration_seconds"], e["message"] = 4.0, 4.0, 35.0, "Packet capture running on vm-01."
		for _, s := range r.Steps[1:] {
			s.Expect = nil
		}
		r.Steps[1].Expect = map[string]any{"status": "task_cancelled", "state": "DONE", "cleanup_status": "completed", "error_detail": "Task cancelled by user"}
		r.Steps[2].Expect, r.Steps[3].Expect = r.Steps[1].Expect, r.Steps[1].Expect
		r.FinalIn["vm-01"]["poll_count"] = 4.0
		r.Commands = slices.Delete(r.Commands, 9, 10)
		r.Sleeps = []float64{5, 10, 20}
	}},
	"cleanup-while-waiting": {"a capture that runs is cancelled first; cleaning up beneath it is refused", func(r *row) {
		e := r.Steps[0].Expect
		e["poll_count"], e["burst_polls"], e["burst_duration_seconds"], e["message"] = 4.0, 4.0, 35.0, "Packet capture running on vm-01."
		r.Steps[1].Expect = map[string]any{"status": "error", "error": TaskRunning, "state": "WAITING"}
		r.Steps = r.Steps[:2]
		r.States["vm-01"] = r.States["vm-01"][:4]
		r.FinalIn["vm-01"] = map[string]any{"state": "WAITING", "poll_count": 4.0, "cleanup_status": "pending"}
		r.Commands = r.Commands[:9]
		r.Sleeps = []float64{5, 10, 20}
	}},
	"DE12": {"what is left of the pair is analysed as soon as the other end has failed, not at the next check; one call polls both ends", func(r *row) {
		r.Steps[0].Expect["burst_polls"] = 2.0
	}},
	"CT-id": {"create takes the group of the VM, which the id names", func(r *row) {
		r.Commands[4] = strings.Replace(r.Commands[4], "--resource-group rg-01", "--resource-group rg", 1)
	}},
	"timeout-text": {"holds; what is pending there is cleaned up at once", func(r *row) {
		r.Steps[0].Expect["state"] = "TIMED_OUT"
	}},
	"OR-failed-partial": {"steps that are still to do are seen again", func(r *row) {
		r.Steps[0].Expect["orphans"] = []any{"partially_cleaned:old_1"}
	}},
	"OR-done-partial": {"steps that are still to do are seen again", func(r *row) {
		r.Steps[0].Expect["orphans"] = []any{"partially_cleaned:old_1"}
	}},
	"OR-completed-completed": {"contradicted by the probe OR-completed-done: what is clean is no orphan", func(r *row) {
		delete(r.Steps[0].Expect, "orphans")
	}},
	"OR-prefix": {"the prefix of names is not configurable: people look for one", func(r *row) {
		r.Commands[0] = strings.Replace(r.Commands[0], "'gb_'", "'ghost_'", 1)
	}},
	"OR-azure-truncated": {"holds, and the answer also says that the list is not whole", func(r *row) {
		r.Steps[0].Expect["orphans"] = append(r.Steps[0].Expect["orphans"].([]any), "incomplete_list:eastus")
	}},
}

func TestVectors(t *testing.T) {
	rows := readRows(t)
	left := map[string]bool{}
	for id, d := range deviations {
		left[id] = d.why != ""
	}
	held := 0
	for _, r := range rows {
		delete(left, r.ID)
		t.Run(r.ID, func(t *testing.T) {
			if d, ok := deviations[r.ID]; ok {
				d.change(&r)
			}
			switch {
			case strings.HasPrefix(r.Fn, "poll_interval"):
				for _, c := range r.Cases {
					if got := Interval(int(c[0].(float64)), 5*time.Second, 30*time.Second).Seconds(); got != c[1] {
						t.Errorf("poll %v: %v, want %v", c[0], got, c[1])
					}
				}
			case r.Fn != "":
				at := time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC)
				for _, c := range r.Cases {
					if got, want := names.Task(c[0].(string), at), strings.Replace(c[1].(string), "<ts>", "20260314T104512", 1); got != want {
						t.Errorf("%q: %s, want %s", c[0], got, want)
					}
				}
			default:
				synctest.Test(t, func(t *testing.T) { play(t, r) })
			}
		})
		held++
	}
	for id := range left {
		t.Errorf("there is no row %s", id)
	}
	t.Logf("%d rows, %d of them with a deviation", held, len(deviations))
}

func readRows(t *testing.T) []row {
	t.Helper()
	f, err := os.Open("../../shared/vectors/orchestrator.jsonl")
	if os.IsNotExist(err) {
		if os.Getenv("CI") == "true" {
			t.Fatal("the regression data is missing")
		}
		t.Skip("the regression data is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []row
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%.60s: %v", lines.Text(), err)
		}
		rows = append(rows, r)
	}
	if len(rows) < 50 {
		t.Fatalf("%d rows", len(rows))
	}
	return rows
}

// play builds the row's world, sends its requests and compares.
func play(t *testing.T, r row) {
	w, lists := rowWorld(r), false
	start := time.Now()
	o := w.orchestrator(func(o *Options) {
		o.SessionID, o.RemoveLocal, o.MaxPolls, o.Location = r.Session, true, r.Config.MaxPolls, r.Config.Location
		if len(r.Steps) == 1 && r.Steps[0].Request.Intent == "list_tasks" {
			o.Location, lists = "eastus", true
		}
		o.Others = func(context.Context) ([]Other, error) {
			var raw []json.RawMessage
			for _, f := range r.Registry {
				for _, rec := range f.Records {
					b, _ := json.Marshal(rec)
					raw = append(raw, b)
				}
			}
			var list []Other
			for _, x := range Fold(raw) {
				list = append(list, Other{Task: *x})
			}
			return list, nil
		}
		o.Files = func(context.Context) ([]LocalFile, error) {
			var list []LocalFile
			for _, f := range r.Files {
				list = append(list, LocalFile{Name: f.Name, Modified: start.Add(-time.Duration(f.Days * 24 * float64(time.Hour)))})
			}
			return list, nil
		}
	})
	var sleeps time.Duration
	ids := map[string]string{} // target -> task
	first := ""
	for i, s := range r.Steps {
		q := s.Request
		if q.TaskID == "$1" {
			q.TaskID = first
		} else if target, ok := strings.CutPrefix(q.TaskID, "$task:"); ok {
			q.TaskID = ids[target]
		}
		before := time.Now()
		got, err := o.Do(t.Context(), q)
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		sleeps += time.Since(before)
		if first == "" {
			first = got.TaskID
		}
		for _, x := range Fold(w.bodies) {
			ids[x.Target] = x.TaskID
		}
		compare(t, fmt.Sprintf("step %d", i), s.Expect, got, ids)
	}
	var want float64
	for _, s := range r.Sleeps {
		want += s
	}
	if r.Sleeps != nil && sleeps.Seconds() != want {
		t.Errorf("waited %v, want %v s", sleeps, want)
	}
	early := endStates(t, w, r, ids)
	if r.Commands != nil {
		commands(t, w, r, ids, lists, early)
	}
}

// rowWorld turns the replies of a row into what this product's commands get.
func rowWorld(r row) *world {
	w := azure()
	location := `, "location": "westeurope"`
	for _, p := range r.Replies {
		if p.Match == "az group show" && p.Responses[0].Exit != 0 {
			location = ""
		}
	}
	for i := len(r.Replies) - 1; i >= 0; i-- { // the first that matches wins
		p := r.Replies[i]
		var list []safeexec.Result
		for _, x := range p.Responses {
			out := x.Output
			switch {
			case p.Match == "az resource" && x.Exit == 0:
				out = `[{"type": "` + out + `"` + location + `}]`
			case strings.HasPrefix(p.Match, "show-status") && x.Exit == 0:
				out = `{"packetCaptureStatus": "` + out + `"}`
			}
			if x.Status == "denied" {
				list = append(list, no(""))
			} else {
				list = append(list, exit(x.Exit, out, x.Stderr))
			}
		}
		match := strings.NewReplacer("pcap_forensics.py", " pcap ", `rm "`, "rm /").Replace(p.Match)
		w.on(match, list...)
	}
	return w
}

// atOnce reports an end after which the clean-up is proposed at once.
func atOnce(state any, cleanup any) bool {
	return slices.Contains([]any{"FAILED", "CANCELLED", "TIMED_OUT"}, state) && cleanup == "pending"
}

func compare(t *testing.T, where string, want map[string]any, got Response, ids map[string]string) {
	t.Helper()
	if atOnce(want["state"], want["cleanup_status"]) {
		want["state"], want["cleanup_status"] = "DONE", "completed"
	}
	b, _ := json.Marshal(got)
	var have map[string]any
	json.Unmarshal(b, &have)
	for k, v := range want {
		g := have[k]
		switch k {
		case "has_task_id":
			g = got.TaskID != ""
		case "message":
			if s := v.(string); strings.HasPrefix(s, "<any text that does not say cleaned up>") {
				g = v
				if strings.Contains(got.Message, "cleaned up") {
					g = got.Message
				}
			} else if strings.HasPrefix(got.Message, s) {
				g = v
			}
		case "burst_duration_seconds":
			g = got.BurstDuration
		case "paired_state":
			if g = nil; got.Paired != nil {
				g = string(got.Paired.State)
			}
			if v == "FAILED" && g == "DONE" { // its clean-up was done at once
				v = "DONE"
			}
		case "task_count":
			g = float64(len(got.Tasks))
		case "orphans":
			list := []any{}
			for _, o := range got.Orphans {
				list = append(list, o.Kind+":"+o.Name)
			}
			g = list
		case "result":
			v, g = result(v, ids), paths(g)
		}
		if diff := cmp.Diff(v, g); diff != "" {
			t.Errorf("%s: %s: (-want +got)\n%s", where, k, diff)
		}
	}
	if _, ok := want["orphans"]; !ok && len(got.Orphans) > 0 {
		t.Errorf("%s: orphans %v, want none", where, got.Orphans)
	}
}

// result puts ids and folders in the place of the row's marks.
func result(v any, ids map[string]string) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for k, x := range m {
		out[k] = fill(x.(string), ids)
	}
	return out
}

func paths(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for k := range m {
		if !strings.HasSuffix(k, "_path") && k != "mode" {
			delete(m, k)
		}
	}
	return m
}

func fill(s string, ids map[string]string) string {
	s = strings.ReplaceAll(s, "<capture_dir>", "/var/lib/captures")
	for target, id := range ids {
		s = strings.ReplaceAll(s, "<task:"+target+">", id)
	}
	return s
}

// endStates compares the states that each task went through, and returns the tasks
// whose clean-up was done at once.
func endStates(t *testing.T, w *world, r row, ids map[string]string) (early int) {
	t.Helper()
	for target, want := range r.States {
		if last := want[len(want)-1]; (last == "FAILED" || last == "CANCELLED" || last == "TIMED_OUT") && r.FinalIn[target]["cleanup_status"] == "pending" {
			want = append(slices.Clone(want), "CLEANING_UP", "DONE")
			early++
		}
		if diff := cmp.Diff(want, w.states(ids[target])); diff != "" {
			t.Errorf("states of %s: (-want +got)\n%s", target, diff)
		}
	}
	tasks := map[string]*Task{}
	for _, x := range Fold(w.bodies) {
		tasks[x.TaskID] = x
	}
	for target, want := range r.FinalIn {
		got := tasks[ids[target]]
		if got == nil {
			t.Errorf("no task for %s", target)
			continue
		}
		finalState(t, target, want, got)
	}
	return early
}

func finalState(t *testing.T, target string, want map[string]any, got *Task) {
	t.Helper()
	executed := []any{}
	for _, s := range got.CleanupPlan {
		executed = append(executed, s.Executed)
	}
	var status any
	if got.CleanupStatus != nil {
		status = string(*got.CleanupStatus)
	}
	have := map[string]any{"state": string(got.State), "cleanup_status": status, "cleanup_executed": executed, "poll_count": float64(got.PollCount)}
	if atOnce(want["state"], want["cleanup_status"]) {
		want["state"], want["cleanup_status"] = "DONE", "completed"
		if list, ok := want["cleanup_executed"].([]any); ok {
			for i := range list {
				list[i] = true
			}
		}
	}
	if want["state"] == "CANCELLED" && got.Outcome == Stopped {
		have["state"] = "CANCELLED"
	}
	for k, v := range want {
		if diff := cmp.Diff(v, have[k]); diff != "" {
			t.Errorf("%s: final %s: (-want +got)\n%s", target, k, diff)
		}
	}
}

// commands compares the commands, and of each the values that the row names.
func commands(t *testing.T, w *world, r row, ids map[string]string, lists bool, early int) {
	t.Helper()
	var want, got []string
	byKind := map[string][][]string{}
	for _, text := range r.Commands {
		argv := split(fill(text, ids))
		if k := kind(argv); k != "group show" && (k != "packet-capture list" || lists) {
			want = append(want, k)
			byKind[k] = append(byKind[k], argv)
		}
	}
	for range early {
		if !slices.Contains(want, "packet-capture delete") { // else the row cleans up by itself
			want = append(want, "packet-capture delete", "blob delete", "rm")
		}
	}
	for _, q := range w.requests {
		k := kind(q.Argv)
		if k == "packet-capture show" {
			continue
		}
		got = append(got, k)
		if list := byKind[k]; len(list) > 0 {
			values(t, list[0], q.Argv)
			byKind[k] = list[1:]
		}
	}
	if len(r.States) > 1 { // of a pair the order differs: both ends are looked at first
		slices.Sort(want)
		slices.Sort(got)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands: (-want +got)\n%s", diff)
	}
}

func values(t *testing.T, want, got []string) {
	t.Helper()
	for i, w := range want {
		if strings.HasPrefix(w, "--") && w != "--query" && i+1 < len(want) && !strings.HasPrefix(want[i+1], "--") {
			g := flag(got, w)
			if strings.HasSuffix(w, "-dir") && g == "." { // the gate runs it where captures are downloaded to
				g = "/var/lib/captures"
			}
			if g != want[i+1] {
				t.Errorf("%s %s: %q, want %q", kind(got), w, g, want[i+1])
			}
		}
	}
	if k := kind(got); k == "pcap" || k == "rm" {
		if file := want[len(command.Verb(want)):]; len(file) > 0 && !slices.ContainsFunc(got, func(a string) bool { return slices.Contains(want, a) && filepath.IsAbs(a) }) {
			t.Errorf("%v names another file than %v", got, want)
		}
	}
}

// split cuts a recorded command line at blanks outside of double quotes.
func split(s string) []string {
	var out []string
	quoted, word := false, ""
	for _, c := range s + " " {
		switch {
		case c == '"':
			quoted = !quoted
		case c == ' ' && !quoted:
			if word != "" {
				out = append(out, word)
			}
			word = ""
		default:
			word += string(c)
		}
	}
	return out
}
