package scan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/triage/proc"
)

const (
	longID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	pod    = "pod0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9"
)

func env(kv ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		out[kv[i]] = kv[i+1]
	}
	return out
}

func TestDetect(t *testing.T) {
	argv := func(s string) []string { return strings.Fields(s) }
	tests := []struct {
		name string
		in   supervision
		want Supervisor
	}{
		{"nothing", supervision{}, Supervisor{}},
		{"systemd", supervision{cgroups: []string{"/system.slice/my-app.service"}}, Supervisor{Detected: true, Type: "systemd", Unit: "my-app.service", Stop: argv("systemctl stop my-app.service"), Restart: argv("systemctl restart my-app.service")}},
		{"systemd, below the unit", supervision{cgroups: []string{"/system.slice/my-app.service/worker"}}, Supervisor{Detected: true, Type: "systemd", Unit: "my-app.service", Stop: argv("systemctl stop my-app.service"), Restart: argv("systemctl restart my-app.service")}},
		{"user unit", supervision{cgroups: []string{"/user.slice/user-1000.slice/user@1000.service/app.slice/x.service"}}, Supervisor{Detected: true, Type: "systemd", Unit: "x.service", Stop: argv("systemctl --user stop x.service"), Restart: argv("systemctl --user restart x.service")}},
		{"session scope", supervision{cgroups: []string{"/user.slice/user-1000.slice/session-4.scope"}}, Supervisor{}},
		{"scope of a user's manager", supervision{cgroups: []string{"/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope"}}, Supervisor{}},
		{"the manager itself", supervision{cgroups: []string{"/user.slice/user-1000.slice/user@1000.service/init.scope"}}, Supervisor{}},
		{"slice", supervision{cgroups: []string{"/system.slice"}}, Supervisor{}},
		{"our own unit", supervision{cgroups: []string{"/system.slice/ghostbot.service"}, shared: []string{"/system.slice/ghostbot.service"}}, Supervisor{}},
		{"docker, systemd driver", supervision{cgroups: []string{"/system.slice/docker-" + longID + ".scope"}}, Supervisor{Detected: true, Type: "docker", Unit: "0123456789ab", Stop: argv("docker stop 0123456789ab"), Restart: argv("docker restart 0123456789ab")}},
		{"docker, cgroupfs", supervision{cgroups: []string{"/docker/" + longID}}, Supervisor{Detected: true, Type: "docker", Unit: "0123456789ab", Stop: argv("docker stop 0123456789ab"), Restart: argv("docker restart 0123456789ab")}},
		{"our own container", supervision{cgroups: []string{"/docker/" + longID + "/x"}, shared: []string{"/docker/" + longID}}, Supervisor{}},
		{"docker with a strange id", supervision{cgroups: []string{"/docker/; reboot"}}, Supervisor{Detected: true, Type: "docker", Unit: "; reboot", Review: true}},
		{"podman", supervision{cgroups: []string{"/machine.slice/libpod-" + longID + ".scope"}}, Supervisor{Detected: true, Type: "podman", Unit: "0123456789ab", Stop: argv("podman stop 0123456789ab"), Restart: argv("podman restart 0123456789ab")}},
		{"containerd", supervision{cgroups: []string{"/system.slice/cri-containerd-" + longID + ".scope"}}, Supervisor{Detected: true, Type: "containerd", Unit: "0123456789ab", Review: true}},
		{"lxc", supervision{cgroups: []string{"/lxc.payload.web/init.scope"}}, Supervisor{Detected: true, Type: "lxc", Unit: "web", Review: true}},
		{"kubernetes", supervision{cgroups: []string{"/kubepods.slice/kubepods-burstable-" + pod + ".slice/cri-containerd-" + longID + ".scope"}}, Supervisor{Detected: true, Type: "kubernetes", Unit: "pod0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9", Review: true}},
		{"pm2", supervision{env: env("PM2_HOME", "/x", "pm_id", "3", "name", "web")}, Supervisor{Detected: true, Type: "pm2", Unit: "web", Stop: argv("pm2 stop web"), Restart: argv("pm2 restart web")}},
		{"pm2 without a name", supervision{env: env("PM2_HOME", "/x", "pm_id", "3")}, Supervisor{Detected: true, Type: "pm2", Unit: "3"}},
		{"pm2, hostile name", supervision{env: env("PM2_HOME", "/x", "pm_id", "1", "name", "web; rm -rf x")}, Supervisor{Detected: true, Type: "pm2", Unit: "web; rm -rf x", Stop: []string{"pm2", "stop", "web; rm -rf x"}, Restart: []string{"pm2", "restart", "web; rm -rf x"}}},
		{"pm2, a flag for a name", supervision{env: env("PM2_HOME", "/x", "pm_id", "1", "name", "--all")}, Supervisor{Detected: true, Type: "pm2", Unit: "--all"}},
		{"pm2, one variable alone", supervision{env: env("PM2_HOME", "/x")}, Supervisor{}},
		{"pm2, one variable and an ancestor", supervision{env: env("PM2_HOME", "/x"), ancestors: []string{"PM2 v5.3.0: God"}}, Supervisor{Detected: true, Type: "pm2"}},
		{"supervisord", supervision{env: env("SUPERVISOR_ENABLED", "1", "SUPERVISOR_PROCESS_NAME", "web", "SUPERVISOR_GROUP_NAME", "shop")}, Supervisor{Detected: true, Type: "supervisord", Unit: "shop:web", Stop: argv("supervisorctl stop shop:web"), Restart: argv("supervisorctl restart shop:web")}},
		{"supervisord without a group", supervision{env: env("SUPERVISOR_ENABLED", "1", "SUPERVISOR_PROCESS_NAME", "web")}, Supervisor{Detected: true, Type: "supervisord", Unit: "web", Stop: argv("supervisorctl stop web"), Restart: argv("supervisorctl restart web")}},
		{"forever", supervision{env: env("FOREVER_ROOT", "/x", "FOREVER_UID", "abc")}, Supervisor{Detected: true, Type: "forever", Unit: "abc", Stop: argv("forever stop abc"), Restart: argv("forever restart abc")}},
		{"nodemon", supervision{env: env("NODEMON_CONFIG", "{}"), ancestors: []string{"nodemon"}}, Supervisor{Detected: true, Type: "nodemon", Review: true}},
		{"nodemon's variable alone", supervision{env: env("NODEMON_CONFIG", "{}")}, Supervisor{}},
		{"runit", supervision{ancestors: []string{"runsv", "runsvdir"}}, Supervisor{Detected: true, Type: "runsv", Review: true}},
		{"not the parent", supervision{ancestors: []string{"bash", "runsv"}}, Supervisor{}},
		{"tini is none", supervision{ancestors: []string{"tini"}}, Supervisor{}},
		{"terminal", supervision{ancestors: []string{"bash", "tmux: server"}}, Supervisor{Detected: true, Type: "terminal", Review: true}},
		{"ci", supervision{ancestors: []string{"bash", "Runner.Worker"}}, Supervisor{Detected: true, Type: "ci", Review: true}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, detect(tt.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// Docker below kubepods is Kubernetes.
func TestStatement21DockerUnderKubepodsIsKubernetes(t *testing.T) {
	got := detect(supervision{cgroups: []string{"/kubepods/burstable/" + pod + "/docker/" + longID}})
	if got.Type != "kubernetes" || !got.Review || got.Stop != nil {
		t.Errorf("%+v", got)
	}
}

// A command for a supervisor never addresses all of its units, and a name is
// never a flag.
func TestStatement26CommandsNeverAddressAllUnits(t *testing.T) {
	for _, name := range []string{"all", "", "-a", "--all", "*", "web*", "web?", "/web/", "a\nb", "{a,b}"} {
		for _, e := range []map[string]string{env("PM2_HOME", "x", "PM2_ID", name, "name", name), env("SUPERVISOR_ENABLED", "1", "SUPERVISOR_PROCESS_NAME", name), env("SUPERVISOR_ENABLED", "1", "SUPERVISOR_PROCESS_NAME", "web", "SUPERVISOR_GROUP_NAME", name), env("FOREVER_ROOT", "1", "FOREVER_UID", name)} {
			if name == "" && e["SUPERVISOR_PROCESS_NAME"] == "web" {
				continue // no group is fine
			}
			if got := detect(supervision{env: e}); got.Stop != nil || got.Restart != nil {
				t.Errorf("%q: %v", e, got.Stop)
			}
		}
		if got := detect(supervision{cgroups: []string{"/system.slice/" + name + ".service"}}); name != "a\nb" && strings.ContainsAny(name, "*?{") && got.Stop != nil {
			t.Errorf("unit %q: %v", name, got.Stop)
		}
	}
}

func TestMatch(t *testing.T) {
	s := DefaultSignatures()
	tests := []struct {
		argv []string
		want string
	}{
		{[]string{"node", "/x/node_modules/.bin/jest", "--watch"}, "jest"},
		{[]string{"node /x/node_modules/.bin/jest --watch"}, "jest"},
		{[]string{"node", "jest", "--worker=1"}, "jest"},
		{[]string{"node", "/path/to/jest/bin/jest.js", "--worker=12345"}, "jest"},
		{[]string{"python3", "-m", "pytest", "-x"}, "pytest"},
		{[]string{"python3", "-m", "http.server", "8000"}, "http-server"},
		{[]string{"/usr/bin/python3", "manage.py", "runserver"}, "django"},
		{[]string{"cargo", "test", "--all"}, "cargo-test"},
		{[]string{"cargo", "build"}, "cargo-build"},
		{[]string{"cargo", "doc"}, ""},
		{[]string{"go", "test", "./..."}, "go-test"},
		{[]string{"vim", "invite.txt"}, ""},
		{[]string{"cat", "jest"}, ""},
		{[]string{"invite"}, ""},
		{[]string{"tool", "--log", "redis-notes.txt"}, ""},
		{[]string{"tool", "redis-server"}, ""},
		{[]string{"nc", "-lk", "8080"}, "netcat-listener"},
		{[]string{"nc", "192.0.2.1", "80"}, ""},
		{[]string{"ssh", "-N", "-L", "8080:x:80", "host"}, "ssh-tunnel"},
		{[]string{"tcpdump", "-i", "eth0"}, "capture"},
		{[]string{"postgres: writer process"}, "postgres"},
		{[]string{"-bash"}, ""},
		{[]string{"sleep", "600"}, ""},
		{[]string{""}, ""},
		{nil, ""},
	}
	for _, tt := range tests {
		got := ""
		if sig := s.Match(tt.argv); sig != nil {
			got = sig.Name
		}
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.argv, got, tt.want)
		}
	}
	for _, bad := range []string{"{", `[{"name":"x","program":"(","class":"none"}]`, `[{"name":"x","program":"x","class":"maybe"}]`, `[{"program":"x","class":"none"}]`, `[{"name":"x","program":"x","class":"none","args":["["]}]`} {
		if _, err := ParseSignatures([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestNames(t *testing.T) {
	for argv0, want := range map[string]string{"-bash": "bash", "/usr/sbin/nginx": "nginx", "nginx: worker process": "nginx", "sshd: user [priv]": "sshd", "tool --log redis-notes.txt": "tool", "": "", "   ": ""} {
		if got := argvName([]string{argv0}); got != want {
			t.Errorf("%q: %q, want %q", argv0, got, want)
		}
	}
	for in, want := range map[string]string{"/usr/bin/sleep (deleted)": "sleep", "": "", "/": "/", "a": "a"} {
		if got := base(in); got != want {
			t.Errorf("base %q: %q", in, got)
		}
	}
}

// Names and command lines of processes are hostile: nothing in them reaches a
// terminal or another line.
func TestCleanRemovesWhatIsNotText(t *testing.T) {
	for in, want := range map[string]string{
		"a\nb\tc\rd": "a b c d", "\x1b[31mred": "\uFFFD[31mred", "bytes \xff\xfe A": "bytes \uFFFD A", "a\u202eb": "a\uFFFDb", "zero\u200bwidth": "zero\uFFFDwidth", "naïve ✓": "naïve ✓", "\x00": "\uFFFD", "<!channel> <@U0123>": "<!channel> <@U0123>",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := cut(strings.Repeat("é", 50), 61); got != strings.Repeat("é", 30)+"…" {
		t.Errorf("%q", got)
	}
	if got := shorten("/usr/bin/python3 -u worker.py --queue a"); got != "python3 worker.py" {
		t.Errorf("%q", got)
	}
}

func TestAgeLevels(t *testing.T) {
	tests := []struct {
		age, life float64
		want      string
	}{{59, 3600, ""}, {60, 3600, "young"}, {359, 3600, "young"}, {360, 3600, "normal"}, {3600, 3600, "normal"}, {3601, 3600, "over"}, {36000, 3600, "over"}, {36001, 3600, "far"}, {3e6, -1, "normal"}, {59, -1, ""}}
	for _, tt := range tests {
		if got := ageLevel(tt.age, tt.life); got != tt.want {
			t.Errorf("%v of %v: %q, want %q", tt.age, tt.life, got, tt.want)
		}
	}
}

func TestAcceptLoad(t *testing.T) {
	tests := []struct {
		recv uint64
		send int64
		want float64
	}{{0, 0, 0}, {0, 128, 0}, {3, 2, 1}, {2, 2, 0.99}, {1, 2, 0.5}, {1, 128, 1.0 / 128}, {1, 0, 1}}
	for _, tt := range tests {
		if got := acceptLoad(Listener{RecvQ: tt.recv, SendQ: tt.send}); got != tt.want {
			t.Errorf("%d of %d: %v, want %v", tt.recv, tt.send, got, tt.want)
		}
	}
}

func TestDanger(t *testing.T) {
	tests := []struct {
		path       string
		hard, soft bool
	}{
		{"/home/a/repo/.git/index.lock", true, true}, {"/var/lib/dpkg/lock", true, false}, {"/var/lib/dpkg/lock-frontend", true, false}, {"/tmp/lock", false, false},
		{"/x/db.sqlite3-wal", true, false}, {"/x/db.sqlite3", false, true}, {"/x/a.db-journal", true, false}, {"/x/out.txt", false, false},
		{"/r/.git/rebase-merge/done", true, false}, {"/home/a/.cargo/.package-cache", true, false}, {"/x/a.lck", false, true},
	}
	for _, tt := range tests {
		if hard, soft := danger(tt.path); hard != tt.hard || soft != tt.soft {
			t.Errorf("%s: %v %v", tt.path, hard, soft)
		}
	}
}

func TestQuota(t *testing.T) {
	for in, want := range map[string]int{"max 100000\n": 8, "200000 100000\n": 2, "10000 100000": 1, "": 8, "x y": 8, "1 0": 8} {
		if got := quota(in, 8); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

// A process that only wants a processor counts as much as one that has it, and a
// counter that goes backwards is no evidence.
func TestStatement13CountersGoingBackwardsAreNoEvidence(t *testing.T) {
	a, b := raw{sched: proc.Sched{Run: 4e8, Wait: 6e8}, schedOK: true}, raw{sched: proc.Sched{Run: 8e8, Wait: 12e8}, schedOK: true}
	if got, ok := demand(a, b); !ok || got != 1 {
		t.Errorf("%v %v", got, ok)
	}
	if _, ok := demand(b, a); ok {
		t.Error("backwards is accepted")
	}
	if _, ok := demand(a, raw{}); ok {
		t.Error("unreadable is accepted")
	}
	if _, ok := delta(2, 1); ok {
		t.Error("backwards is accepted")
	}
}

func TestReplayDetectsAndMarks(t *testing.T) {
	s := Replay("edge-7", time.Date(2026, 3, 1, 9, 15, 0, 0, time.UTC), []Recorded{{Name: "x", Cgroup: []string{"0::/system.slice/my-app.service"}}, {Name: "a\nb"}})
	if r := s.Records[0]; r.Supervisor.Unit != "my-app.service" || r.Evidence.Lineage != "supervised" || r.Missing["io"] == "" || r.Missing["lineage"] != "" {
		t.Errorf("%+v", r)
	}
	if r := s.Records[1]; r.Supervisor.Detected || r.Missing["lineage"] == "" || strings.Contains(r.CmdFull, "\n") {
		t.Errorf("%+v", r)
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("node\x00jest")
	s := DefaultSignatures()
	f.Fuzz(func(t *testing.T, line string) {
		argv := proc.Split([]byte(line))
		s.Match(argv)
		if strings.ContainsAny(clean(line)+shorten(clean(line)), "\n\x1b\x00") {
			t.Errorf("%q is not clean", line)
		}
	})
}
