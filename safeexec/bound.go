package safeexec

import (
	"path"
	"strconv"
	"strings"
	"time"
)

// before are the programs that may stand in front of timeout(1) and run the rest
// of their arguments.
var before = map[string]bool{"sudo": true, "doas": true, "env": true, "nice": true, "ionice": true, "nohup": true, "setsid": true, "stdbuf": true}

// Own is after how long a command ends itself: what timeout(1) in it is given, 0
// for a command without one. It is for people to read; the gate's limit counts
// whatever the command says.
func (p Proposal) Own() time.Duration {
	value := true // the next word may be an option's value
	for i, a := range p.Argv {
		switch {
		case path.Base(a) == "timeout":
			return duration(p.Argv[i+1:])
		case before[path.Base(a)], strings.HasPrefix(a, "-"), strings.Contains(a, "="):
			value = true
		case !value || i == 0:
			return 0
		default:
			value = false
		}
	}
	return 0
}

// duration is timeout's first operand (GNU coreutils, timeout invocation).
func duration(args []string) time.Duration {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-k" || a == "-s" || a == "--kill-after" || a == "--signal":
			i++
			continue
		case strings.HasPrefix(a, "-") || a == "":
			continue
		}
		unit, is := units[a[len(a)-1]]
		if is {
			a = a[:len(a)-1]
		} else {
			unit = time.Second
		}
		n, err := strconv.ParseFloat(a, 64)
		if err != nil || n <= 0 || n > 1e6 {
			return 0
		}
		return time.Duration(n * float64(unit))
	}
	return 0
}

// Bound is after how long a command is over at the latest: the gate's limit, or the
// command's own where that is shorter.
func (p Proposal) Bound() time.Duration {
	if own := p.Own(); own > 0 && (own < p.Timeout || p.Timeout == 0) {
		return own
	}
	return p.Timeout
}

// timedOut is timeout's exit status when the time was up.
const timedOut = 124

// AsPlanned reports whether r is the end that the command itself set: its time was
// up. That is no failure.
func (p Proposal) AsPlanned(r Result) bool {
	return r.Status == "completed" && r.ExitCode != nil && *r.ExitCode == timedOut && p.Own() > 0
}
