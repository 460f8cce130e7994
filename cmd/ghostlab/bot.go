package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	slacksim "ghostbot/internal/sim/slack"
)

// findBot is the bot's binary: the given one, or the one beside this program.
func findBot(given string) (string, error) {
	path := given
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("finding ghostbot: %w", err)
		}
		path = filepath.Join(filepath.Dir(self), "ghostbot")
	}
	info, err := os.Stat(path)
	if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%w: ghostbot at %s (build it beside ghostlab, or use --ghostbot PATH)", errUnavailable, path)
	}
	return filepath.Abs(path)
}

// botEnv is the bot's environment: this one, with what connects it to the demo. A brain that
// somebody set stays.
func botEnv(s *slacksim.Server, dir string) []string {
	env := append(os.Environ(), s.Env()...)
	env = append(env, "GHOST_STATE_DIR="+filepath.Join(dir, "ghostbot"))
	if os.Getenv("GHOST_BRAIN") == "" {
		env = append(env, "GHOST_BRAIN=playbook")
	}
	return env
}

// Restarts are immediate for a bot that ran for a while, and slower and slower for one that does not
// stay up.
const (
	steady   = 5 * time.Second
	maxPause = 30 * time.Second
	grace    = 10 * time.Second // from SIGTERM to SIGKILL
)

// superviseBot runs the bot until ctx ends, and starts it again whenever it is killed.
func superviseBot(ctx context.Context, path string, env []string, log io.Writer) {
	out := &lines{to: log, prefix: "ghostbot | "}
	pause := time.Duration(0)
	for ctx.Err() == nil {
		began := time.Now()
		how := runBot(ctx, path, env, out)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > steady {
			pause = 0
		}
		fmt.Fprintf(log, "ghostbot ended (%s); starting it again%s\n", how, after(pause))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(maxPause, max(time.Second, 2*pause))
	}
	fmt.Fprintln(log, "demo ended")
}

func after(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf(" in %s", d)
}

// runBot runs the bot once and says how it ended. The bot is a process group of its own, so that
// Ctrl-C reaches it through the demo only, and it gets SIGTERM should the demo be killed; that is
// bound to the starting thread, which therefore stays.
func runBot(ctx context.Context, path string, env []string, out *lines) string {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, path, "serve")
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return err.Error()
	}
	out.say(fmt.Sprintf("started, pid %d\n", cmd.Process.Pid))
	_ = cmd.Wait() // the state says more than the error
	return cmd.ProcessState.String()
}

// lines writes what a process says line by line with a prefix.
type lines struct {
	to     io.Writer
	prefix string
	mu     sync.Mutex
	rest   []byte
}

func (l *lines) say(s string) { _, _ = l.Write([]byte(s)) }

// Write never fails: a closed terminal must not stop the bot.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		n, line, _ := bufio.ScanLines(l.rest, false)
		if n == 0 {
			return len(p), nil
		}
		fmt.Fprintf(l.to, "%s%s\n", l.prefix, line)
		l.rest = l.rest[n:]
	}
}
