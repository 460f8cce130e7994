package triage_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// statements are things that comparable tools got wrong, each with a test named
// after it. Those that need no process are tests of the packages below: 04, 07,
// 09, 10, 12, 13, 17, 19, 20, 21, 26 and 39.
var statements = map[string]func(*lab){
	"statement-02 the first of the list is the likeliest, not the lowest number": func(l *lab) {
		low, _ := l.orphan("x", "sleeper", "idle")
		high, _ := l.orphan("deleted")
		if low > high {
			l.Skip("numbers went around")
		}
		l.plan("--limit", "1").is("candidates.0.pid", high)
	},
	"statement-03 a process in state Z is classified zombie": func(l *lab) {
		_, z := l.stage("attached", "zombie", "parent", "x")
		l.plan().must(z).is("classification", "zombie")
	},
	"statement-05 what is protected is filtered before inference and again at apply": func(l *lab) {
		pid, _ := l.orphan("deleted comm=nginx")
		a := l.all()
		if a.candidate(pid) != nil {
			l.Error("a protected process is judged")
		}
		l.plan("--verbose").says("protected", fmt.Sprint(pid))
		l.apply(l.planned().sid(), "--pids", fmt.Sprint(pid)).exits(4).result(pid).is("outcome", "blocked").is("error.code", "PROTECTED_PROCESS")
		l.lives(pid, true)
	},
	"statement-06 min-posterior is about abandoned and zombie": func(l *lab) {
		pid, _ := l.shell()
		if l.plan("--only", "all", "--min-posterior", "0.7").candidate(pid) != nil {
			l.Error("a useful process is above the bound")
		}
		o, _ := l.orphan("x", "sleeper", "idle")
		l.plan("--min-posterior", "0.7").must(o)
		if l.plan("--min-posterior", "0.9").candidate(o) != nil {
			l.Error("0.79 is above 0.9")
		}
	},
	"statement-08 the accumulated blast radius is fed with real sizes": func(l *lab) {
		for range 3 {
			l.orphan("deleted rss=30")
		}
		a := l.planned()
		a.between("candidates.0.blast_radius.memory_mb", 30, 45)
		l.apply(a.sid(), "--recommended", "--max-blast-radius", "50MB").exits(2).is("summary.successful", 1).is("summary.skipped", 2).says("results.1.reason", "max_blast_radius 50 MB")
		for _, bad := range []string{"x", "-1", "1TB", "9e99", "0", "NaN"} {
			l.apply(a.sid(), "--recommended", "--max-blast-radius", bad).exits(10)
		}
	},
	"statement-11 KILL goes to the process that was checked": func(l *lab) {
		if _, err := exec.LookPath("strace"); err != nil {
			l.Skip("no strace")
		}
		pid, _ := l.orphan("deleted term=ignore")
		sid := l.planned().sid()
		cmd := l.command("apply", "--session", sid, "--recommended", "--yes", "--grace", "200ms")
		log := filepath.Join(l.config, "strace")
		traced := exec.Command("strace", append([]string{"-f", "-o", log, "-e", "trace=pidfd_open,pidfd_send_signal"}, cmd.Args...)...)
		traced.Env = cmd.Env
		l.finish(traced).exits(2)
		text := l.read(log)
		sent := regexp.MustCompile(`pidfd_send_signal\((\d+), (SIG\w+),`).FindAllStringSubmatch(text, -1)
		if len(sent) != 2 || sent[0][2] != "SIGTERM" || sent[1][2] != "SIGKILL" || sent[0][1] != sent[1][1] {
			l.Fatalf("sent %v: %s", sent, text)
		}
		if held := fmt.Sprintf("pidfd_open(%d, 0) ", pid); !regexp.MustCompile(regexp.QuoteMeta(held) + `+= ` + sent[0][1] + `\n`).MatchString(text) {
			l.Errorf("descriptor %s is of another process: %s", sent[0][1], text)
		}
	},
	"statement-14 a scan starts no helper that could hang": func(l *lab) {
		if _, err := exec.LookPath("strace"); err != nil {
			l.Skip("no strace")
		}
		l.orphan("deleted")
		cmd := l.command("plan")
		log := filepath.Join(l.config, "strace")
		traced := exec.Command("strace", append([]string{"-f", "-o", log, "-e", "trace=execve,fork,vfork,kill,tkill,pidfd_send_signal"}, cmd.Args...)...)
		traced.Env = cmd.Env
		l.finish(traced).exits(1)
		if text := l.read(log); strings.Count(text, "execve(") != 1 || strings.Contains(text, "pidfd_send_signal") || regexp.MustCompile(` kill\(`).MatchString(text) {
			l.Error(text)
		}
	},
	"statement-15 a scan that takes too long is reported as such": func(l *lab) {
		l.plan("--window", "2s", "--timeout", "300ms").exits(22).says("error.message", "timed out")
	},
	"statement-16 the first process is not taken for a heading": func(l *lab) {
		sid := l.run("snapshot").sid()
		var snap struct {
			Records []struct{ PID int } `json:"records"`
		}
		if err := json.Unmarshal([]byte(l.read(l.session(sid, "snapshot.json"))), &snap); err != nil || len(snap.Records) == 0 || snap.Records[0].PID != 1 {
			l.Errorf("%v, %v", snap, err)
		}
	},
	"statement-18 what vanishes while it is read is left out": func(l *lab) {
		storm := exec.Command("sh", "-c", "while :; do true & true & wait; sleep 0.01; done")
		storm.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := storm.Start(); err != nil {
			l.Fatal(err)
		}
		l.attached = append(l.attached, storm)
		pid, _ := l.orphan("deleted")
		for range 3 {
			l.plan().exits(1).must(pid)
		}
	},
	"statement-22 sessions of different directories do not contend": func(l *lab) {
		l.orphan("deleted term=ignore")
		sid := l.planned().sid()
		cmd := l.command("apply", "--session", sid, "--recommended", "--yes", "--grace", "1s")
		if err := cmd.Start(); err != nil {
			l.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		m := &lab{T: l.T, dir: l.dir, config: l.config, state: l.state + "-other"}
		pid, _ := l.orphan("deleted")
		m.apply(m.planned().sid(), "--pids", fmt.Sprint(pid)).exits(2)
		cmd.Wait()
	},
	"statement-23 one plan is read by apply, verify, diff, explain, report and status": func(l *lab) {
		pid, _ := l.orphan("deleted")
		a := l.planned()
		sid := a.sid()
		l.run("explain", "--session", sid, "--pid", fmt.Sprint(pid)).exits(0).is("recommended_action", "kill").is("action_rationale", a.must(pid).at("action_rationale"))
		l.run("status", "--session", sid).exits(0).is("progress.total_actions", 1)
		l.run("diff", "--base", sid, "--compare", sid).exits(0).is("summary.persistent", 1)
		l.apply(sid, "--recommended").exits(2)
		l.run("verify", "--session", sid).exits(0)
		if text := l.run("report", "--session", sid).exits(0).out; !strings.Contains(text, "confirmed\\_dead") && !strings.Contains(text, "confirmed_dead") {
			l.Error(text)
		}
	},
	"statement-24 a plan of a session looks at its snapshot and not again": func(l *lab) {
		sid := l.run("snapshot").sid()
		pid, _ := l.orphan("deleted")
		if l.plan("--session", sid, "--only", "all").candidate(pid) != nil {
			l.Error("it knows a process that was not there")
		}
	},
	"statement-25 systemd is detected from a plan": func(l *lab) {
		l.plan("--replay", "systemd_unit", "--only", "all").is("candidates.0.supervisor.type", "systemd").is("candidates.0.supervisor.unit", "my-app.service")
	},
	"statement-27 a deleted working directory does not veto": func(l *lab) {
		pid, _ := l.orphan("deleted")
		l.apply(l.planned().sid(), "--recommended").exits(2).result(pid).is("outcome", "success")
	},
	"statement-28 only regular files count as open for writing": func(l *lab) {
		a, _ := l.orphan("deleted")
		b, _ := l.orphan("deleted write=" + filepath.Join(l.config, "out.db"))
		p := l.planned()
		p.must(a).is("reversibility.open_write_fds", "[]").is("reversibility.data_at_risk", false)
		p.must(b).is("reversibility.data_at_risk", true).says("reversibility.open_write_fds", "out.db").is("recommended_action", "review").is("blast_radius.risk_level", "high")
		l.apply(p.sid(), "--pids", fmt.Sprint(b)).exits(4).result(b).is("outcome", "blocked").says("reason", "data at risk")
		l.lives(b, true)
	},
	"statement-29 verify judges what was executed and knows its command": func(l *lab) {
		a, _ := l.orphan("deleted")
		b, _ := l.orphan("x", "sleeper", "idle")
		sid := l.planned().sid()
		l.apply(sid, "--pids", fmt.Sprintf("%d,%d", a, b)).exits(2)
		again, _ := l.orphan("deleted")
		v := l.run("verify", "--session", sid, "--check-respawn").exits(3)
		v.is("action_outcomes.0.target.pid", a).is("action_outcomes.0.outcome", "respawned").is("action_outcomes.0.respawn_detected.new_pid", again).is("action_outcomes.1", nil)
	},
	"statement-30 rounding of seconds makes nobody another process": func(l *lab) {
		pid, _ := l.orphan("deleted")
		sid := l.planned().sid()
		time.Sleep(1100 * time.Millisecond)
		l.apply(sid, "--pids", fmt.Sprint(pid), "--action", "pause").exits(2).result(pid).is("outcome", "success")
		l.run("verify", "--session", sid).exits(0).is("action_outcomes.0.outcome", "confirmed_stopped")
		l.lives(pid, true)
	},
	"statement-31 exit codes of usage, unknown sessions and time": func(l *lab) {
		for _, bad := range [][]string{{}, {"plan", "--limit", "x"}, {"plan", "--limit", "-1"}, {"plan", "extra"}, {"apply"}, {"apply", "--session", "sess-20260101-000000-zzzzzz"}, {"explain"}, {"diff"}, {"plan", "--format", "toon"}, {"plan", "--exit-code", "maybe"}, {"capabilities", "--check-action", "dance"}, {"plan", "--config", "/nowhere"}, {"plan", "--replay", "/nowhere"}, {"plan", "--only", "maim"}, {"verify", "--session", "x"}, {"plan", "--window", "1ms"}} {
			cmd := exec.Command(filepath.Join(l.dir, "ghostbot"), append([]string{"agent"}, bad...)...)
			cmd.Env = append(os.Environ(), "GHOSTBOT_DATA="+l.state)
			if a := l.finish(cmd).exits(10); a.err == "" {
				l.Errorf("%v says nothing", bad)
			}
		}
		for _, v := range []string{"plan", "verify", "status", "report", "export", "tail"} {
			l.run(v, "--session", "sess-20260101-000000-zzzzzz").exits(15).is("error.code", "SESSION_NOT_FOUND")
		}
		l.run("apply", "--session", "sess-20260101-000000-zzzzzz", "--recommended", "--yes").exits(15)
	},
	"statement-32 prose and Slack text depend on the session": func(l *lab) {
		prose, slack := l.plan("--format", "prose").out, l.plan("--format", "slack").out
		pid, _ := l.orphan("deleted", "node", "jest", "<!channel>", "<@U0000>")
		a, b := l.plan("--format", "prose").out, l.plan("--format", "slack").out
		if a == prose || b == slack || !strings.Contains(a, fmt.Sprint(pid)) || !strings.Contains(b, fmt.Sprint(pid)) {
			l.Errorf("%s\n%s", a, b)
		}
		if strings.Contains(b, "<!channel>") || strings.Contains(b, "<@") {
			l.Errorf("it mentions somebody: %s", b)
		}
	},
	"statement-33 a report contains the candidates": func(l *lab) {
		pid, _ := l.orphan("deleted", "node", "jest", "<script>alert(1)</script>")
		a := l.planned()
		out := filepath.Join(l.config, "r.html")
		l.run("report", "--session", a.sid(), "--out", out, "--prose-style", "formal").exits(0)
		text := l.read(out)
		if !strings.Contains(text, fmt.Sprint(pid)) || strings.Contains(text, "<script>") {
			l.Errorf("%.1000s", text)
		}
	},
	"statement-34 a field that is not known is an error": func(l *lab) {
		for _, bad := range []string{"bogus", "pid,", ",", "pid bogus"} {
			l.plan("--fields", bad).exits(10)
		}
		for _, good := range []string{"minimal", "standard", "full", "pid", " pid , uid ", "pid,pid"} {
			l.plan("--fields", good).exits(0, 1)
		}
	},
	"statement-35 targets honour the start id": func(l *lab) {
		pid, _ := l.orphan("deleted")
		a := l.planned()
		start := fmt.Sprint(a.must(pid).at("start_id"))
		l.apply(a.sid(), "--targets", fmt.Sprintf("%d:%sX", pid, start)).exits(4).result(pid).is("outcome", "blocked").is("error.code", "IDENTITY_MISMATCH")
		l.apply(a.sid(), "--targets", fmt.Sprintf("%d:1705312200.%d", pid, pid)).exits(4).result(pid).is("outcome", "blocked")
		l.lives(pid, true)
		for _, bad := range []string{"x:y", "1", fmt.Sprint(pid), ":" + start, "-1:" + start} {
			l.apply(a.sid(), "--targets", bad).exits(10)
		}
		up := strings.Fields(l.read("/proc/uptime"))[0]
		var seconds, began float64
		fmt.Sscan(up, &seconds)
		fmt.Sscan(ticks(l, pid), &began)
		unix := float64(time.Now().UnixNano())/1e9 - seconds + began/100
		l.apply(a.sid(), "--targets", fmt.Sprintf("%d:%d.%d", pid, int(unix), pid)).exits(2).result(pid).is("outcome", "success").is("target.start_id", start)
	},
	"statement-36 command lines are redacted before they reach the disk": func(l *lab) {
		secret := "s3cr3t" + "Value99"
		l.orphan("deleted comm=x", "tool", "--password="+secret)
		a := l.planned()
		l.apply(a.sid(), "--recommended")
		l.run("report", "--session", a.sid(), "--out", filepath.Join(l.state, "r.html")).exits(0)
		if out, err := exec.Command("grep", "-r", secret, l.state).CombinedOutput(); err == nil {
			l.Errorf("%s", out)
		}
	},
	"statement-37 diff compares by identity": func(l *lab) {
		a, _ := l.orphan("x", "sleeper", "same")
		b, _ := l.orphan("x", "sleeper", "same")
		one := l.plan().sid()
		syscall.Kill(a, syscall.SIGKILL)
		l.lives(a, false)
		two := l.plan().sid()
		l.run("diff", "--base", one, "--compare", two).exits(0).is("delta.resolved.0.pid", a).is("delta.persistent.0.pid", b).is("summary.new", 0)
	},
	"statement-38 what is useful for certain is no candidate": func(l *lab) {
		pid, _ := l.shell()
		a := l.plan().exits(0).is("summary.candidates_found", 0)
		if a.candidate(pid) != nil {
			l.Error(a.out)
		}
	},
	"statement-40 nothing but the document is on standard output": func(l *lab) {
		l.orphan("deleted")
		sid := ""
		for _, args := range [][]string{{"snapshot", "-v"}, {"plan", "-v"}, {"capabilities", "-v"}, {"sessions", "-v"}} {
			a := l.run(args...)
			if !json.Valid([]byte(a.out)) || strings.Count(a.out, "\n") != 1 {
				l.Errorf("%v: %q", args, a.out)
			}
			if args[0] == "plan" {
				sid = a.sid()
			}
		}
		if a := l.apply(sid, "--recommended", "-v"); !json.Valid([]byte(a.out)) {
			l.Errorf("%q", a.out)
		}
	},

	"bad-01 numbers that cannot be processes": func(l *lab) {
		l.orphan("deleted")
		sid := l.planned().sid()
		for _, bad := range []string{"0", "-1", "-4711", "2147483648", "99999999999999999999", "x", "1.5", "", "1,,2", "0x10"} {
			l.apply(sid, "--pids", bad).exits(10)
		}
		l.apply(sid, "--pids", "1").exits(4).result(1).is("outcome", "blocked").is("error.code", "PROTECTED_PROCESS")
		if a := l.apply(sid, "--pids", "2147483647").exits(4); !strings.Contains(a.out, "not in the plan") {
			l.Error(a.out)
		}
	},
	"bad-02 ourselves and what is above us": func(l *lab) {
		sid := l.planned().sid()
		for pid := os.Getpid(); pid > 1; pid = parent(l, pid) {
			l.apply(sid, "--pids", fmt.Sprint(pid)).exits(4).result(pid).is("outcome", "blocked").is("error.code", "PROTECTED_PROCESS")
		}
	},
	"bad-03 tampered and broken files": func(l *lab) {
		pid, _ := l.orphan("deleted")
		sid := l.planned().sid()
		for name, content := range map[string]string{"plan.json": "{", "snapshot.json": `{"records":[]}`, "outcomes.json": "[", "audit.jsonl": "x\n"} {
			path := l.session(sid, name)
			was, err := os.ReadFile(path)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				l.Fatal(err)
			}
			l.apply(sid, "--recommended").exits(20).is("error.code", "INTERNAL_ERROR")
			if err != nil {
				os.Remove(path)
			} else if err := os.WriteFile(path, was, 0o600); err != nil {
				l.Fatal(err)
			}
		}
		l.lives(pid, true)
		l.apply(sid, "--recommended").exits(2)
	},
	"bad-04 names that are hostile": func(l *lab) {
		pid, _ := l.orphan("deleted comm=a)\x1b[31mR", "node", "jest", "a\nb", "\x1b]0;title\x07", "<!here>", "`rm`", "\u202egnp.exe")
		a := l.plan()
		c := a.must(pid)
		for _, f := range []string{"json", "md", "summary", "slack", "prose", "metrics"} {
			if out := l.plan("--format", f).out; strings.ContainsAny(out, "\x1b\x07") || strings.Contains(out, "\u202e") {
				l.Errorf("%s: %q", f, out)
			}
		}
		if s := fmt.Sprint(c.at("cmd_full")); strings.ContainsAny(s, "\n\x1b") {
			l.Errorf("%q", s)
		}
	},
	"bad-05 no permission for the directory": func(l *lab) {
		if err := os.MkdirAll(l.state, 0o700); err != nil {
			l.Fatal(err)
		}
		l.uid = 65534
		l.plan().exits(12).is("error.code", "PERMISSION_DENIED")
	},
	"bad-06 a process that another user owns": func(l *lab) {
		l.policy(fmt.Sprintf(easy, `,"allow_cross_uid":true`, 0.1))
		pid, _ := l.orphan("deleted")
		l.uid = 65534
		r := l.apply(l.planned().sid(), "--pids", fmt.Sprint(pid)).exits(3, 4).result(pid)
		if o := r.at("outcome"); o != "failed" && o != "blocked" && o != "skipped" {
			l.Error(r.out)
		}
		l.lives(pid, true)
	},
	"bad-07 robot mode is off in the shipped policy": func(l *lab) {
		os.Remove(filepath.Join(l.config, "policy.json"))
		pid, _ := l.orphan("deleted")
		sid := l.planned().sid()
		l.apply(sid, "--pids", fmt.Sprint(pid)).exits(4).is("error.code", "GATE_FAILED").says("error.message", "robot mode")
		l.apply(sid, "--pids", fmt.Sprint(pid), "--approval", "ghost_20260301_091609_012").exits(4).says("error.message", "approval does not count")
		l.lives(pid, true)
	},
	"bad-08 an approval is about one process, one action and one plan": func(l *lab) {
		a, _ := l.orphan("deleted")
		b, _ := l.orphan("x", "sleeper", "idle")
		sid := l.planned().sid()
		aid := l.approve(sid, a)
		l.apply(sid, "--pids", fmt.Sprint(b), "--approval", aid).exits(4).result(b).is("outcome", "skipped")
		l.apply(sid, "--pids", fmt.Sprint(b), "--approval", aid, "--action", "pause").exits(4)
		l.plan("--session", sid)
		l.apply(sid, "--pids", fmt.Sprint(a), "--approval", aid).exits(2, 4)
		l.lives(b, true)
		old := l.approve(sid, b, "--ttl", "10ms")
		time.Sleep(50 * time.Millisecond)
		l.apply(sid, "--pids", fmt.Sprint(b), "--approval", old).exits(4)
		if x := l.run("approve", "--session", sid, "--pid", fmt.Sprint(b)).exits(4); !strings.Contains(x.err, "terminal") {
			l.Error(x.err)
		}
		l.lives(b, true)
	},
	"bad-09 a policy that cannot be read": func(l *lab) {
		for _, bad := range []string{"{", `{"guardrails":{"protected_pattern":["x"]}}`, `{"robot_mode":{"min_posterior":2}}`} {
			l.policy(bad)
			if a := l.plan().exits(10); !strings.Contains(a.err, "policy") {
				l.Error(a.err)
			}
		}
	},
	"bad-10 a replayed plan is never applied": func(l *lab) {
		a := l.plan("--replay", "daemon_30_days").exits(0).is("replay", true)
		l.apply(a.sid(), "--pids", "1001").exits(4).is("error.code", "GATE_FAILED").says("error.message", "replay")
	},
	"bad-11 the end of the tool by a signal is an interruption": func(l *lab) {
		pid, _ := l.orphan("deleted term=ignore")
		sid := l.planned().sid()
		cmd := l.command("apply", "--session", sid, "--recommended", "--yes", "--grace", "20s")
		if err := cmd.Start(); err != nil {
			l.Fatal(err)
		}
		for range 200 {
			if len(l.signals(sid, pid)) > 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		cmd.Process.Signal(syscall.SIGINT)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 6 {
			l.Errorf("exit %d", code)
		}
		l.run("status", "--session", sid).is("state", "interrupted")
		l.apply(sid, "--recommended").exits(4)
		l.lives(pid, true)
	},
	"bad-12 the process ended before apply": func(l *lab) {
		pid, _ := l.orphan("deleted")
		sid := l.planned().sid()
		syscall.Kill(pid, syscall.SIGKILL)
		l.lives(pid, false)
		l.apply(sid, "--recommended").exits(0).result(pid).is("outcome", "skipped").is("reason", "process_gone")
	},
	"bad-13 an accept queue, descriptors and connections that pile up": func(l *lab) {
		pid, _ := l.orphan("fds=64", "hog", "x")
		c := l.all().must(pid)
		if !slices.Contains([]any{"review", "kill", "spare"}, c.at("recommended_action")) || !strings.Contains(fmt.Sprint(c.at("uncertainty")), "queue=full") {
			l.Error(c.out)
		}
	},
	"bad-14 continuing what was stopped": func(l *lab) {
		pid, _ := l.orphan("deleted")
		sid := l.planned().sid()
		l.apply(sid, "--pids", fmt.Sprint(pid), "--action", "pause").exits(2)
		two := l.planned().sid()
		l.apply(two, "--pids", fmt.Sprint(pid), "--action", "resume").exits(2).result(pid).is("outcome", "success")
		l.run("verify", "--session", two).exits(0).is("action_outcomes.0.outcome", "still_running")
		l.apply(l.planned().sid(), "--pids", fmt.Sprint(pid), "--action", "restart").exits(3, 4)
	},
	"focus-01 a port puts its holder first": func(l *lab) {
		l.orphan("deleted")
		pid, port := l.orphan("listen=4", "squatter", "x")
		a := l.plan("--port", fmt.Sprint(port)).is("candidates.0.pid", pid)
		a.must(pid).is("blast_radius.listen_ports", fmt.Sprintf("[%d]", port))
		l.plan("--pid", fmt.Sprint(pid)).is("candidates.0.pid", pid)
		if x, y := a.must(pid).number("posterior.abandoned"), l.plan().must(pid).number("posterior.abandoned"); x != y {
			l.Errorf("focus changes the posterior: %v and %v", x, y)
		}
	},
	"replay-01 the same evidence gives the same bytes": func(l *lab) {
		stamp := regexp.MustCompile(`"generated_at":"[^"]*"`)
		for _, name := range []string{"daemon_30_days", "no_evidence_but_cpu", "containers"} {
			var out []string
			for range 2 {
				out = append(out, stamp.ReplaceAllString(l.plan("--replay", name, "--only", "all", "--galaxy-brain", "--include-ledger", "--include-prose", "--verbose").out, ""))
			}
			if out[0] != out[1] {
				l.Errorf("%s:\n%s\n%s", name, out[0], out[1])
			}
		}
		pid, _ := l.orphan("deleted")
		one := l.planned()
		file := filepath.Join(l.config, "evidence.json")
		if err := os.WriteFile(file, []byte(l.read(l.session(one.sid(), "snapshot.json"))), 0o600); err != nil {
			l.Fatal(err)
		}
		l.plan("--replay", file).must(pid).is("posterior.abandoned", one.must(pid).at("posterior.abandoned"))
		flat := filepath.Join(l.config, "flat.json")
		if err := os.WriteFile(flat, []byte(`{"cpu_k":0,"n":10,"lineage":"orphan","io":"none","tty":"no","net":"none","queue":"ok","state":"S","backing":"deleted","sig":"none"}`), 0o600); err != nil {
			l.Fatal(err)
		}
		l.plan("--replay", flat, "--only", "all").between("candidates.0.posterior.abandoned", 0.98435, 0.98437).is("candidates.0.recommended_action", "kill")
	},
	"sessions-01 listing and cleaning up": func(l *lab) {
		one := l.plan().sid()
		l.run("snapshot", "--label", "before the change").exits(0)
		l.run("sessions").exits(0).is("total", 2).is("sessions.0.label", "before the change")
		l.run("sessions", "--state", "planned").is("total", 1).is("sessions.0.session_id", one)
		l.run("sessions", "--session", one).is("state", "planned")
		l.run("sessions", "--cleanup", "--older-than", "0s").exits(0).is("total", 0)
		l.run("status", "--session", one).exits(15)
	},
	"net-01 sockets of another network namespace are its process's own": func(l *lab) {
		cmd := exec.Command("unshare", "-n", "sh", "-c", "ip link set lo up; exec "+filepath.Join(l.dir, "stage")+" attached listen=2 -- listener x")
		r, w, err := os.Pipe()
		if err != nil {
			l.Fatal(err)
		}
		cmd.Stdout, cmd.SysProcAttr = w, &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			l.Skip(err)
		}
		w.Close()
		l.attached = append(l.attached, cmd)
		b := make([]byte, 64)
		n, _ := r.Read(b)
		r.Close()
		pid, port := l.numbers(string(b[:n]))
		for range 3 {
			knock := exec.Command("nsenter", "-t", fmt.Sprint(pid), "-n", "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d; exec sleep 20", port))
			knock.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := knock.Start(); err != nil {
				l.Fatal(err)
			}
			l.attached = append(l.attached, knock)
		}
		time.Sleep(400 * time.Millisecond)
		l.plan().must(pid).is("blast_radius.listen_ports", fmt.Sprintf("[%d]", port)).is("accept_queues.0.recv_q", 3).is("accept_queues.0.send_q", 2).is("accept_queues.0.recv_q_gt_send_q", true)
	},
	"name-01 called pt it is the same program": func(l *lab) {
		pt := filepath.Join(l.config, "pt")
		if err := os.Symlink(filepath.Join(l.dir, "ghostbot"), pt); err != nil {
			l.Fatal(err)
		}
		cmd := l.command("capabilities")
		cmd.Path, cmd.Args[0] = pt, "pt"
		l.finish(cmd).exits(0).is("capabilities.pidfd", true)
	},
	"bad-15 an action is for what is named": func(l *lab) {
		pid, _ := l.orphan("deleted")
		a := l.planned()
		sid, start := a.sid(), fmt.Sprint(a.must(pid).at("start_id"))
		for _, args := range [][]string{{"--recommended", "--action", "pause"}, {"--recommended", "--action", "kill"}, {"--pids", fmt.Sprint(pid), "--action", ""}} {
			if a := l.apply(sid, args...).exits(10); !strings.Contains(a.err, "--action") {
				l.Error(a.err)
			}
		}
		for _, args := range [][]string{{"--targets", fmt.Sprintf("%d:bogus", pid), "--targets", fmt.Sprintf("%d:%s", pid, start)}, {"--targets", fmt.Sprintf("%d:bogus", pid), "--pids", fmt.Sprint(pid)}} {
			l.apply(sid, args...).exits(4).is("summary.total", 1).result(pid).is("outcome", "blocked").is("error.code", "IDENTITY_MISMATCH")
		}
		l.lives(pid, true)
		l.apply(sid, "--recommended", "--pids", fmt.Sprint(pid)).exits(2).is("summary.total", 1)
	},
	"bad-16 a manifest that cannot be acted on": func(l *lab) {
		pid, _ := l.orphan("deleted")
		sid := l.planned().sid()
		path := l.session(sid, "manifest.json")
		was := l.read(path)
		for _, c := range []struct {
			member, value string
			exit          int
		}{{"state", "nonsense", 20}, {"state", "created", 4}, {"schema_version", "2.0.0", 13}, {"host_id", "elsewhere", 4}, {"boot_id", "x", 4}, {"pid_ns", "x", 4}} {
			re := regexp.MustCompile(`"` + c.member + `":"[^"]*"`)
			if err := os.WriteFile(path, []byte(strings.Replace(was, re.FindString(was), `"`+c.member+`":"`+c.value+`"`, 1)), 0o600); err != nil {
				l.Fatal(err)
			}
			l.apply(sid, "--recommended").exits(c.exit)
			l.run("apply", "--session", sid, "--recommended", "--dry-run").exits(c.exit)
		}
		l.lives(pid, true)
		if err := os.WriteFile(path, []byte(was), 0o600); err != nil {
			l.Fatal(err)
		}
		l.apply(sid, "--recommended").exits(2)
	},
	"bad-17 what a limit refused is not completed": func(l *lab) {
		l.orphan("deleted")
		l.orphan("deleted")
		sid := l.planned().sid()
		l.apply(sid, "--recommended", "--max-kills", "1").exits(2).is("summary.successful", 1).is("summary.skipped", 1)
		l.run("status", "--session", sid).is("progress.completed_actions", 1).is("progress.refused_actions", 1).is("progress.pending_actions", 0)
		l.apply(sid, "--recommended").exits(4).is("results.0.reason", "already_completed").says("results.1.reason", "max_kills 1")
	},
	"bad-18 a log from which lines were cut": func(l *lab) {
		pid, _ := l.orphan("deleted")
		sid := l.planned().sid()
		path := l.session(sid, "audit.jsonl")
		was := l.read(path)
		lines := strings.SplitAfter(was, "\n")
		for _, cut := range []string{"", lines[0], was[:len(was)/2], was[:len(was)-5]} {
			if err := os.WriteFile(path, []byte(cut), 0o600); err != nil {
				l.Fatal(err)
			}
			l.run("status", "--session", sid).exits(0).is("audit_ok", false).says("warnings", "line")
			l.apply(sid, "--recommended").exits(20)
		}
		l.lives(pid, true)
		if err := os.WriteFile(path, []byte(was), 0o600); err != nil {
			l.Fatal(err)
		}
		l.apply(sid, "--recommended").exits(2)
		if err := os.WriteFile(path, []byte(was), 0o600); err != nil {
			l.Fatal(err)
		}
		l.run("status", "--session", sid).is("audit_ok", false)
		l.run("verify", "--session", sid).exits(20)
	},
	"bad-19 values that no verb accepts": func(l *lab) {
		l.orphan("deleted")
		sid := l.planned().sid()
		for _, args := range [][]string{
			{"apply", "--session", sid, "--recommended", "--yes", "--max-kills", "-1"}, {"apply", "--session", sid, "--recommended", "--yes", "--max-kills", "-7"}, {"tail", "--session", sid, "--limit", "-1"},
			{"sessions", "--limit", "-1"}, {"sessions", "--state", "nope"}, {"explain", "--session", sid, "--pid", "1", "--include", "nonsense"}, {"plan", "--session", ""}, {"status", "--session", ""},
		} {
			if a := l.run(args...).exits(10); !strings.Contains(a.err, args[len(args)-2]) {
				l.Errorf("%v: %q", args, a.err)
			}
		}
	},
	"bad-20 a pause of ours is no evidence": func(l *lab) {
		pid, _ := l.orphan("spin=60", "zzspin")
		a := l.planned()
		l.apply(a.sid(), "--pids", fmt.Sprint(pid), "--action", "pause").exits(2)
		b := l.all()
		if c := b.must(pid); c.at("recommended_action") == "kill" || b.preselected(pid) {
			l.Error(c.out)
		}
		l.apply(b.sid(), "--recommended").exits(0)
		l.lives(pid, true)
	},
	"kill-01 the tool is killed at every write": killedAtEveryWrite,
	"goal-01 a goal that cannot be reached": func(l *lab) {
		l.orphan("deleted rss=20")
		l.plan("--goal", "10MB").exits(1).is("goal.reachable", true)
		l.plan("--goal", "100GB").exits(5).is("goal.reachable", false)
		l.plan("--goal", "much").exits(10)
	},
}
