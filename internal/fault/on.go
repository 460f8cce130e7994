//go:build faultinject

package fault

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Enabled says whether this build can inject faults.
const Enabled = true

// The count is process-wide by design: a driver numbers the steps of a program,
// not those of one object.
var (
	steps atomic.Int64
	plan  = sync.OnceValue(func() spec { return parsePlan(os.Getenv("GHOST_FAULT")) })
	lost  = newUnsynced()
)

// Write calls w with p, unless the plan says otherwise.
func Write(name string, p []byte, w func([]byte) (int, error)) (int, error) {
	hit, k := next("write", name)
	if plan().mode == lose {
		lost.touch(name)
	}
	switch {
	case hit && plan().mode == short:
		n, _ := w(p[:len(p)/2])
		return n, fmt.Errorf("step %d: %w", k, syscall.ENOSPC)
	case hit && plan().mode == torn:
		_, _ = w(p[:len(p)/2])
		die()
	case hit && plan().mode == enospc:
		return 0, fmt.Errorf("step %d: %w", k, syscall.ENOSPC)
	}
	n, err := w(p)
	after(hit)
	return n, err
}

// Do calls f, unless the plan says otherwise.
func Do(op Op, name, to string, f func() error) error {
	hit, k := next(string(op), name+to)
	if hit && (plan().mode == short || plan().mode == enospc) {
		return fmt.Errorf("step %d: %w", k, syscall.ENOSPC)
	}
	if plan().mode == lose {
		lost.before(op, name, to)
	}
	err := f()
	if plan().mode == lose && err == nil {
		lost.after(op, name, to)
	}
	after(hit)
	return err
}

// next numbers a step, dies if the plan wants that before it, and says whether
// the plan means this step.
func next(op, name string) (hit bool, k int64) {
	p := plan()
	if p.scope != "" && !strings.Contains(name, p.scope) {
		return false, 0
	}
	k = steps.Add(1)
	count(k, op, name)
	hit = p.at == k
	if hit && p.mode == lose {
		lost.drop()
		die()
	}
	if hit && (p.mode == kill || p.mode == torn && op != "write") {
		die()
	}
	return hit, k
}

func after(hit bool) {
	if hit && plan().mode == killAfter {
		die()
	}
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func count(k int64, op, name string) {
	path := os.Getenv("GHOST_FAULT_COUNT")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic("internal error: fault count: " + err.Error())
	}
	defer f.Close()
	fmt.Fprintf(f, "%d %s %s\n", k, op, name)
}

// spec is a parsed GHOST_FAULT.
type spec struct {
	mode  string
	at    int64
	scope string
}

const (
	kill      = "kill"
	killAfter = "kill-after"
	lose      = "lose"
	torn      = "torn"
	short     = "short"
	enospc    = "enospc"
)

// parsePlan reads "{mode}@{number}[:{part of a file name}]". A plan that it cannot
// read ends the program: a fault test that silently injects nothing passes.
func parsePlan(s string) spec {
	if s == "" {
		return spec{}
	}
	mode, rest, ok := strings.Cut(s, "@")
	num, scope, _ := strings.Cut(rest, ":")
	at, err := strconv.ParseInt(num, 10, 64)
	known := slices.Contains([]string{kill, killAfter, lose, torn, short, enospc}, mode)
	if !ok || err != nil || !known || at < 1 {
		panic("GHOST_FAULT=" + s + ": want kill|kill-after|lose|torn|short|enospc @ number [:part of a file name]")
	}
	return spec{mode: mode, at: at, scope: scope}
}
