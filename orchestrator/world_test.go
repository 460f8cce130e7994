package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ghostbot/orchestrator/command"
	"ghostbot/safeexec"
)

const sid = "ghost_20260314_104512"

var errKilled = errors.New("killed")

// world is an orchestrator's surroundings as functions: a gate that answers from
// a table, and the journal in memory. room, when it is set, is how many entries
// the journal takes before it fails.
type world struct {
	replies  []*reply
	bodies   []json.RawMessage
	room     int
	requests []safeexec.Request
	results  []safeexec.Result
	onRun    func(safeexec.Request)
}

type reply struct {
	match     string
	responses []safeexec.Result
	used      int
}

// on makes commands that contain match answer with these, in order, and with the
// last one for ever. Replies that were added later win.
func (w *world) on(match string, responses ...safeexec.Result) *world {
	w.replies = append([]*reply{{match: match, responses: responses}}, w.replies...)
	return w
}

func exit(code int, out, stderr string) safeexec.Result {
	return safeexec.Result{Status: "completed", Action: "auto_approved", ExitCode: &code, Output: out, Stderr: stderr}
}

func done(out string) safeexec.Result { return exit(0, out, "") }

func no(reason string) safeexec.Result {
	return safeexec.Result{Status: "denied", Action: "user_denied", DecidedBy: "U1", DenialReason: reason}
}

func status(s string) safeexec.Result { return done(`{"packetCaptureStatus": "` + s + `"}`) }

const vmReply = `[{"type": "Microsoft.Compute/virtualMachines", "location": "westeurope", "id": "/subscriptions/s/resourceGroups/rg-01/providers/Microsoft.Compute/virtualMachines/vm-01"}]`

// azure answers like a subscription in which everything works.
func azure() *world {
	return new(world).on("az resource", done(vmReply)).on("container exists", done("True\n")).on("show-status", status("Stopped")).
		on(" pcap ", done(`{"capture_summary": {"total_packets": 7, "duration_seconds": 1.5, "protocols_present": ["eth", "ip"]}, "findings": [{"severity": "HIGH", "code": "packet-loss", "summary": "Lost.", "flow": "a -> b"}]}`))
}

func (w *world) Run(ctx context.Context, r safeexec.Request) (safeexec.Result, error) {
	if err := ctx.Err(); err != nil {
		return safeexec.Result{}, err
	}
	w.requests = append(w.requests, r)
	if w.onRun != nil {
		w.onRun(r)
	}
	res := w.answer(r.Argv)
	res.AuditID = fmt.Sprintf("%s_%03d", sid, len(w.requests))
	w.results = append(w.results, res)
	return res, nil
}

// records is what a shell journal would say.
func (w *world) records() []safeexec.Record {
	var list []safeexec.Record
	for i, r := range w.requests {
		list = append(list, safeexec.Record{Proposal: safeexec.Proposal{AuditID: w.results[i].AuditID, Argv: r.Argv, Target: r.Target}, Result: &w.results[i]})
	}
	return list
}

func (w *world) answer(argv []string) safeexec.Result {
	text := strings.Join(argv, " ")
	for _, x := range w.replies {
		if strings.Contains(text, x.match) {
			i := min(x.used, len(x.responses)-1)
			x.used++
			return x.responses[i]
		}
	}
	if strings.Contains(text, "packet-capture show ") {
		return done(`{"state": "Succeeded", "path": "https://sa01.blob.core.windows.net/captures/` + flag(argv, "--name") + `.cap"}`)
	}
	return done("")
}

func (w *world) Continue(_ context.Context, r safeexec.Record) (safeexec.Result, error) {
	if r.Result == nil {
		return safeexec.Result{}, errors.New("there is nothing to continue")
	}
	return *r.Result, nil
}

func (w *world) Append(ctx context.Context, kind string, body any) (uint64, string, error) {
	if w.room > 0 && len(w.bodies) >= w.room {
		return 0, "", errKilled
	}
	b, err := json.Marshal(body)
	if err != nil || kind != KindTask {
		return 0, "", fmt.Errorf("%s: %v", kind, err)
	}
	w.bodies = append(w.bodies, b)
	return uint64(len(w.bodies)), "", ctx.Err()
}

func (w *world) options() Options {
	return Options{
		SessionID: sid, Gate: w, Journal: w, Self: "/opt/ghostbot", Dir: "/var/lib/captures", Container: "captures",
		Past: func(context.Context) (Past, error) { return Past{Tasks: w.bodies}, nil },
	}
}

func (w *world) orchestrator(change ...func(*Options)) *Orchestrator {
	o := w.options()
	for _, c := range change {
		c(&o)
	}
	return New(o)
}

// states are those of one task, without repeats.
func (w *world) states(id string) []string {
	var list []string
	for _, b := range w.bodies {
		var t Task
		json.Unmarshal(b, &t)
		if s := string(t.State); t.TaskID == id && (len(list) == 0 || list[len(list)-1] != s) {
			list = append(list, s)
		}
	}
	return list
}

// kinds are the commands in short, as in "create" or "blob delete".
func (w *world) kinds() []string {
	var list []string
	for _, r := range w.requests {
		list = append(list, kind(r.Argv))
	}
	return list
}

func kind(argv []string) string {
	words := command.Verb(argv)
	switch {
	case words[0] == "rm":
		return "rm"
	case words[0] != "az":
		return "pcap"
	}
	return strings.Join(words[max(1, len(words)-2):], " ")
}

func flag(argv []string, name string) string {
	if i := slices.Index(argv, name); i >= 0 && i+1 < len(argv) {
		return argv[i+1]
	}
	return ""
}

func request() CaptureRequest {
	return CaptureRequest{Target: "vm-01", ResourceGroup: "rg-01", StorageAccount: "sa01", Context: "why", Origin: Origin{Turn: 3, Index: 1}}
}
