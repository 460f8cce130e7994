package scan

import (
	"regexp"
	"slices"
	"strings"
)

// Supervisor is what looks after a process and would start it again.
type Supervisor struct {
	Detected bool     `json:"detected"`
	Type     string   `json:"type,omitempty"`
	Unit     string   `json:"unit,omitempty"`
	Stop     []string `json:"stop,omitempty"`    // nil: no command that addresses exactly this unit
	Restart  []string `json:"restart,omitempty"` // nil: none
	Review   bool     `json:"review,omitempty"`  // a person decides, whatever the evidence
}

// supervision is what the decision is made from.
type supervision struct {
	cgroups   []string
	shared    []string          // cgroups of PID 1 and of ourselves: that is where we all live
	env       map[string]string // the few variables in supervisorEnv
	ancestors []string          // names, the parent first
}

// supervisorEnv are the variables that supervisors set. Their values are
// matched and dropped, never kept.
var supervisorEnv = []string{
	"PM2_HOME", "pm_id", "PM2_ID", "name", "PM2_PROCESS_NAME",
	"SUPERVISOR_ENABLED", "SUPERVISOR_PROCESS_NAME", "SUPERVISOR_GROUP_NAME",
	"NODEMON_CONFIG", "FOREVER_ROOT", "FOREVER_UID", "SSH_CONNECTION",
}

// detect names the supervisor. Variables are inherited by whole trees, so one
// alone proves nothing: it takes a second one, or an ancestor.
func detect(in supervision) Supervisor {
	for _, try := range []func(supervision) Supervisor{byCgroup, byPM2, bySupervisord, byForever, byNodemon, byParent, byAncestor} {
		if s := try(in); s.Detected {
			return s
		}
	}
	return Supervisor{}
}

var (
	podUID  = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f_-]{20,30}|[0-9a-f]{32})`)
	hexID   = regexp.MustCompile(`^[0-9a-f]{12,64}$`)
	engines = []struct{ mark, engine string }{
		{"/docker/", "docker"}, {"/docker-", "docker"}, {"libpod-", "podman"}, {"cri-containerd-", "containerd"}, {"crio-", "cri-o"}, {"/lxc.payload.", "lxc"}, {"/lxc/", "lxc"},
	}
)

func byCgroup(in supervision) Supervisor {
	for _, p := range in.cgroups {
		if slices.Contains(in.shared, p) {
			continue
		}
		if s := byContainer(p, in.shared); s.Detected {
			return s
		}
		if s := bySystemd(p); s.Detected {
			return s
		}
	}
	return Supervisor{}
}

// byContainer knows container engines. What runs under Kubernetes is its pod's,
// whatever engine is below; only a person decides about it.
func byContainer(p string, shared []string) Supervisor {
	if strings.Contains(p, "kubepods") {
		unit := ""
		if m := podUID.FindStringSubmatch(p); m != nil {
			unit = "pod" + strings.ReplaceAll(m[1], "_", "-")
		}
		if unit != "" && slices.ContainsFunc(shared, func(s string) bool { return strings.Contains(s, podUID.FindString(p)) }) {
			return Supervisor{}
		}
		return Supervisor{Detected: true, Type: "kubernetes", Unit: unit, Review: true}
	}
	for _, e := range engines {
		i := strings.Index(p, e.mark)
		if i < 0 {
			continue
		}
		id, _, _ := strings.Cut(p[i+len(e.mark):], "/")
		id = strings.TrimSuffix(id, ".scope")
		if id == "" || slices.ContainsFunc(shared, func(s string) bool { return strings.Contains(s, id) }) {
			return Supervisor{}
		}
		return engine(e.engine, id)
	}
	return Supervisor{}
}

func engine(kind, id string) Supervisor {
	s := Supervisor{Detected: true, Type: kind, Unit: id}
	switch {
	case kind == "lxc" || kind == "containerd" || kind == "cri-o":
		if hexID.MatchString(id) {
			s.Unit = id[:12]
		}
		s.Review = true
	case !hexID.MatchString(id):
		s.Review = true
	default:
		s.Unit = id[:12]
		s.Stop, s.Restart = []string{kind, "stop", s.Unit}, []string{kind, "restart", s.Unit}
	}
	return s
}

// bySystemd: the last component that is a service. Scopes of login sessions and
// slices are not supervision, and neither is the manager of a user itself.
func bySystemd(p string) Supervisor {
	parts := strings.Split(strings.Trim(p, "/"), "/")
	user := false
	for i := len(parts) - 1; i >= 0; i-- {
		switch {
		case strings.HasSuffix(parts[i], ".scope"):
			return Supervisor{}
		case !strings.HasSuffix(parts[i], ".service"):
			continue
		case strings.HasPrefix(parts[i], "user@"):
			return Supervisor{}
		}
		for _, above := range parts[:i] {
			user = user || strings.HasPrefix(above, "user@") && strings.HasSuffix(above, ".service")
		}
		argv := []string{"systemctl"}
		if user {
			argv = append(argv, "--user")
		}
		s := Supervisor{Detected: true, Type: "systemd", Unit: parts[i]}
		if addressable(parts[i]) {
			s.Stop, s.Restart = with(argv, "stop", parts[i]), with(argv, "restart", parts[i])
		}
		return s
	}
	return Supervisor{}
}

func with(argv []string, more ...string) []string { return append(slices.Clone(argv), more...) }

// addressable says whether a name addresses one unit and is no flag, no pattern
// and no word for all of them.
func addressable(name string) bool {
	return name != "" && name != "all" && !strings.HasPrefix(name, "-") && !strings.HasPrefix(name, "/") && !strings.ContainsAny(name, "*?[]{}\x00\n\r")
}

func first(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

func (in supervision) under(names ...string) bool {
	return slices.ContainsFunc(in.ancestors, func(a string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(a, n) || strings.HasPrefix(a, n+" ") })
	})
}

func byPM2(in supervision) Supervisor {
	home, id := in.env["PM2_HOME"], first(in.env["pm_id"], in.env["PM2_ID"])
	if !(home != "" && id != "" || in.under("pm2", "PM2") && (home != "" || id != "")) {
		return Supervisor{}
	}
	name := first(in.env["name"], in.env["PM2_PROCESS_NAME"])
	s := Supervisor{Detected: true, Type: "pm2", Unit: first(name, id)}
	if addressable(name) { // a number is given to another program when the list changes
		s.Stop, s.Restart = []string{"pm2", "stop", s.Unit}, []string{"pm2", "restart", s.Unit}
	}
	return s
}

func bySupervisord(in supervision) Supervisor {
	on, name, group := in.env["SUPERVISOR_ENABLED"], in.env["SUPERVISOR_PROCESS_NAME"], in.env["SUPERVISOR_GROUP_NAME"]
	if !(on != "" && (name != "" || group != "") || in.under("supervisord") && on+name+group != "") {
		return Supervisor{}
	}
	s := Supervisor{Detected: true, Type: "supervisord", Unit: name}
	ok := addressable(name)
	if group != "" && name != "" {
		s.Unit, ok = group+":"+name, ok && addressable(group)
	}
	if ok {
		s.Stop, s.Restart = []string{"supervisorctl", "stop", s.Unit}, []string{"supervisorctl", "restart", s.Unit}
	}
	return s
}

func byForever(in supervision) Supervisor {
	root, uid := in.env["FOREVER_ROOT"], in.env["FOREVER_UID"]
	if !(root != "" && uid != "" || in.under("forever") && root+uid != "") {
		return Supervisor{}
	}
	s := Supervisor{Detected: true, Type: "forever", Unit: uid}
	if addressable(uid) {
		s.Stop, s.Restart = []string{"forever", "stop", uid}, []string{"forever", "restart", uid}
	}
	return s
}

func byNodemon(in supervision) Supervisor {
	if in.under("nodemon") {
		return Supervisor{Detected: true, Type: "nodemon", Review: true}
	}
	return Supervisor{}
}

// parents are small supervisors that are the parent of what they run.
var parents = []string{"runsv", "s6-supervise", "supervise", "monit", "circusd"}

func byParent(in supervision) Supervisor {
	if len(in.ancestors) > 0 && slices.Contains(parents, in.ancestors[0]) {
		return Supervisor{Detected: true, Type: in.ancestors[0], Review: true}
	}
	return Supervisor{}
}

// minders are programs that a person works in; what runs below one is that
// person's, and never touched without them.
var minders = []struct {
	kind  string
	names []string
}{
	{"terminal", []string{"tmux: server", "tmux", "screen", "SCREEN"}},
	{"ci", []string{"Runner.Worker", "Runner.Listener", "gitlab-runner", "jenkins", "circleci", "travis"}},
	{"ide", []string{"code", "code-server", "nvim", "idea", "goland", "pycharm"}},
	{"agent", []string{"claude", "codex", "aider", "cursor", "copilot", "codeium", "tabnine"}},
}

func byAncestor(in supervision) Supervisor {
	for _, m := range minders {
		if in.under(m.names...) {
			return Supervisor{Detected: true, Type: m.kind, Review: true}
		}
	}
	return Supervisor{}
}
