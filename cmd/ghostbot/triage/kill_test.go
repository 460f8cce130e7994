package triage_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// killedAtEveryWrite is a case of the lab: the
// tool is killed at its n-th write, for every ninth n (all with TRIAGE_KILLS=all).
// However it ends, what is left can be resumed, no process gets TERM or KILL
// twice, and the log stays whole.
func killedAtEveryWrite(l *lab) {
	pid, _ := l.orphan("deleted term=ignore")
	sid := l.planned().sid()
	cmd := l.command("apply", "--session", sid, "--recommended", "--yes", "--grace", "100ms")
	count := filepath.Join(l.config, "count")
	cmd.Env = append(cmd.Env, "GHOST_FAULT_COUNT="+count)
	l.finish(cmd).exits(2)
	l.lives(pid, false)
	steps := strings.Count(l.read(count), "\n")
	if steps < 20 {
		l.Fatalf("only %d writes", steps)
	}
	by := 9
	if os.Getenv("TRIAGE_KILLS") == "all" {
		by = 1
	}
	for _, mode := range []string{"kill", "torn", "enospc"} {
		for k := 1; k <= steps; k += by {
			l.Run(fmt.Sprintf("%s@%d", mode, k), func(t *testing.T) { killedAt(newLab(t), fmt.Sprintf("%s@%d", mode, k)) })
			if l.Failed() {
				return
			}
		}
	}
}

func killedAt(l *lab, fault string) {
	pid, _ := l.orphan("deleted term=ignore")
	sid := l.planned().sid()
	cmd := l.command("apply", "--session", sid, "--recommended", "--yes", "--grace", "100ms")
	cmd.Env = append(cmd.Env, "GHOST_FAULT="+fault)
	first := l.finishQuiet(cmd)
	if first == 2 {
		l.lives(pid, false)
	}
	for range 3 {
		if a := l.apply(sid, "--resume"); a.code == 4 {
			l.apply(sid, "--recommended", "--grace", "100ms").exits(0, 2, 4)
		} else {
			a.exits(0, 2)
		}
		if !alive(pid) {
			break
		}
	}
	l.lives(pid, false)
	l.run("status", "--session", sid).exits(0).is("audit_ok", true)
	if b := l.read(l.session(sid, "outcomes.json")); !json.Valid([]byte(b)) {
		l.Errorf("outcomes: %s", b)
	}
	seen := map[string]int{}
	for _, s := range l.signals(sid, pid) {
		seen[s]++
	}
	if seen["TERM"] != 1 || seen["KILL"] > 1 {
		l.Errorf("signals %v", seen)
	}
}

// finishQuiet runs a command that may die.
func (l *lab) finishQuiet(cmd interface {
	Run() error
}) int {
	err := cmd.Run()
	if err == nil {
		return 0
	}
	var code int
	if _, scan := fmt.Sscanf(err.Error(), "exit status %d", &code); scan != nil {
		return -1
	}
	return code
}
