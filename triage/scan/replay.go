package scan

import (
	"strings"
	"time"

	"ghostbot/triage/model"
	"ghostbot/triage/proc"
)

// Recorded is one process of a recorded file.
type Recorded struct {
	Name     string         `json:"name"`
	PID      int            `json:"pid"`
	PPID     int            `json:"ppid"`
	UID      int            `json:"uid"`
	AgeS     float64        `json:"age_s"`
	Cmd      string         `json:"cmd"`
	Cgroup   []string       `json:"cgroup"`
	Evidence model.Evidence `json:"evidence"`
	CPUN     int            `json:"n"`
}

// Replay makes a snapshot of recorded processes. What was not recorded is
// missing; the supervisor is detected again from the cgroup lines.
func Replay(host string, at time.Time, list []Recorded) *Snapshot {
	s := &Snapshot{RecordedAt: at, HostID: host, BootID: "00000000-0000-0000-0000-000000000000", PIDNS: "pid:[0]", WindowS: 1, System: System{Processes: len(list)}}
	s.System.MemoryMB, s.System.PSI = map[string]int64{}, map[string]string{}
	h := proc.Host{BootID: s.BootID}
	for i, x := range list {
		if x.PID == 0 {
			x.PID = 1001 + i
		}
		if x.AgeS == 0 {
			x.AgeS = defaultLife
		}
		s.Records = append(s.Records, x.record(h, s.PIDNS))
	}
	return s
}

func (x Recorded) record(h proc.Host, ns string) Record {
	cmd := x.Cmd
	if cmd == "" {
		cmd = x.Name
	}
	r := Record{
		Identity: proc.Identity{PID: x.PID, StartID: h.StartID(0, x.PID), UID: x.UID, CmdHash: proc.Hash([]byte(cmd)), PIDNS: ns},
		PPID:     x.PPID, Comm: x.Name, Names: []string{x.Name}, CmdFull: clean(cmd), CmdShort: shorten(clean(cmd)), AgeS: x.AgeS, State: x.Evidence.State, Evidence: x.Evidence, Missing: map[string]string{},
	}
	if x.CPUN != 0 {
		r.Evidence.CPUN = x.CPUN
	}
	c := proc.ParseCgroups([]byte(strings.Join(x.Cgroup, "\n")))
	r.Cgroup = c.Paths()
	r.Supervisor = detect(supervision{cgroups: r.Cgroup})
	if r.Evidence.Lineage == "" && r.Supervisor.Detected {
		r.Evidence.Lineage = "supervised"
	}
	if k := r.Evidence.CPUK; k != nil {
		r.Demand = float64(*k) / 10
	} else {
		r.Missing[model.CPU] = "not recorded"
	}
	for _, f := range []string{"lineage", "io", "tty", "net", "queue", "state", "age", "backing", "sig"} {
		if *r.Evidence.Level(f) == "" {
			r.Missing[f] = "not recorded"
		}
	}
	return r
}

// AbilitiesOf says what could be done on this machine.
func AbilitiesOf(f proc.FS) Abilities { return readAbilities(f) }
