package danger

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kills reports a signal to every process (-1), to process 1, and to the group of
// whoever kills (0), which is the one that runs the commands of a case.
func kills(argv []string) string {
	signal, pids := signalled(argv)
	if signal == "0" {
		return "" // it only asks whether they are there
	}
	for _, p := range pids {
		n, err := strconv.ParseInt(strings.TrimSpace(p), 0, 64)
		if err != nil {
			n, err = strconv.ParseInt(strings.TrimLeft(strings.TrimSpace(p), "+0"), 10, 64)
		}
		switch {
		case strings.Trim(p, "+-0 \t") == "" && strings.Contains(p, "0"):
			return "the group of the program that runs the commands killed"
		case err == nil && n == -1:
			return "every process killed"
		case err == nil && n == 1 && signal != "HUP" && signal != "1":
			return "process 1 killed"
		}
	}
	return ""
}

// signalled reads a command line of kill: which signal, in capitals without SIG,
// and to whom. Without anybody, -1 stands for every process: not every kill takes
// it for a signal.
func signalled(argv []string) (signal string, pids []string) {
	signal = "TERM"
	args := argv[1:]
	given := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		name, value, glued := strings.Cut(a, "=")
		switch {
		case !given && (a == "-l" || a == "-L" || a == "--list" || a == "--table"):
			return "0", nil
		case glued && (name == "--signal" || name == "-s"):
			signal, given = value, true
		case (a == "-s" || a == "-n" || a == "--signal") && i+1 < len(args):
			signal, given = args[i+1], true
			i++
		case (a == "-q" || a == "--queue") && i+1 < len(args):
			i++
		case a == "--timeout" && i+2 < len(args):
			i += 2
		case a == "--":
			given = true
		case !given && len(a) > 1 && a[0] == '-' && a[1] != '-':
			signal, given = strings.TrimPrefix(strings.TrimPrefix(a, "-s"), "-"), true
			if signal == "1" && i == len(args)-1 {
				return "TERM", []string{"-1"}
			}
		case strings.HasPrefix(a, "--"):
		default:
			pids = append(pids, a)
		}
	}
	return strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(signal)), "SIG"), pids
}

// selector is how a program that signals by name reads its options: what each
// letter and each long name selects, and which of them take a value.
type selector struct {
	values  string            // letters with a value
	longs   map[string]string // long names with a value, to their letter ("" selects nothing)
	flags   map[string]string // long names without one
	inverse string            // the letter for everybody else
	exact   bool              // an operand is a whole name unless regexp says otherwise
}

var (
	// pkill reads options as pkill(1) of procps 4.
	pkill = selector{values: "dgGPstuUFOrq", inverse: "v",
		longs: map[string]string{"pgroup": "g", "group": "G", "parent": "P", "session": "s", "terminal": "t", "euid": "u", "uid": "U", "pidfile": "F",
			"older": "O", "runstates": "r", "signal": "signal", "ns": "F", "nslist": "", "cgroup": "F", "env": "F", "queue": "", "delimiter": ""},
		flags: map[string]string{"inverse": "v", "exact": "x", "ignore-case": "i", "full": "f"}}
	// killall reads options as killall(1) of psmisc 23.
	killall = selector{values: "osuynZ", exact: true,
		longs: map[string]string{"-s": "signal", "signal": "signal", "user": "u", "older-than": "F", "younger-than": "F", "ns": "F", "context": "F"},
		flags: map[string]string{"regexp": "r", "ignore-case": "I"}}
	// skill reads options as skill(1) of procps 4.
	skill = selector{values: "tupc", exact: true, longs: map[string]string{"user": "u", "tty": "t", "pid": "p", "command": "c", "signal": "signal"}}
)

// chosen is whom a command line selects.
type chosen struct {
	signal   string // in capitals, without SIG
	flags    string // letters given
	by       map[string][]string
	patterns []string
}

func (s selector) read(argv []string) chosen {
	c := chosen{signal: "TERM", by: map[string][]string{}}
	args := argv[1:]
	for i := 0; i < len(args); i++ {
		a := args[i]
		take := func(letter, glued string, has bool) {
			if !has && i+1 < len(args) {
				i++
				glued = args[i]
			}
			if letter == "signal" {
				c.signal = signalName(glued)
			} else {
				c.by[letter] = append(c.by[letter], strings.Split(glued, ",")...)
			}
		}
		switch {
		case a == "--":
			c.patterns = append(c.patterns, args[i+1:]...)
			return c
		case strings.HasPrefix(a, "--"):
			name, value, has := strings.Cut(a[2:], "=")
			if letter, ok := s.longs[full(s.longs, name)]; ok {
				take(letter, value, has)
			} else {
				c.flags += s.flags[full(s.flags, name)]
			}
		case len(a) > 1 && a[0] == '-' && isSignal(a[1:]):
			c.signal = signalName(a[1:])
		case len(a) > 1 && a[0] == '-':
			for k, r := range a[1:] {
				if !strings.ContainsRune(s.values, r) {
					c.flags += string(r)
					continue
				}
				take(cmp.Or(s.longs["-"+string(r)], string(r)), a[k+2:], a[k+2:] != "")
				break
			}
		default:
			c.patterns = append(c.patterns, a)
		}
	}
	return c
}

// full is the only key that begins with name, or name.
func full(m map[string]string, name string) string {
	if _, ok := m[name]; ok {
		return name
	}
	found := ""
	for k := range m {
		if len(name) > 1 && strings.HasPrefix(k, name) {
			if found != "" {
				return name
			}
			found = k
		}
	}
	return found
}

func signalName(s string) string { return strings.TrimPrefix(strings.ToUpper(s), "SIG") }

// isSignal tells -9 and -KILL from bundled options.
func isSignal(s string) bool {
	if _, err := strconv.Atoi(s); err == nil {
		return true
	}
	return slices.Contains([]string{"HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM", "STKFLT",
		"CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "POLL", "PWR", "SYS"}, signalName(s))
}

// killsAll reports selections that every process, process 1, the way in to the
// machine or everything of root is among.
func killsAll(s selector) check {
	return func(argv []string) string {
		c := s.read(argv)
		switch c.signal {
		case "0", "HUP", "1", "CONT", "18", "WINCH", "28", "CHLD", "17", "URG", "23":
			return "" // it asks, has a daemon read its files again, or changes nothing
		}
		if s.inverse != "" && strings.Contains(c.flags, s.inverse) {
			return "every other process killed"
		}
		narrow := false
		for by, values := range c.by {
			why := broad(by, values)
			if why != "" && len(c.patterns) == 0 {
				return why
			}
			narrow = narrow || (by != "" && why == "" && by != "c" && by != "r")
		}
		if narrow {
			return ""
		}
		why := ""
		for _, p := range append(c.patterns, c.by["c"]...) {
			why = cmp.Or(why, s.fits(c, p))
		}
		return why
	}
}

// broad reports values of a selection without a name that nothing survives.
func broad(by string, values []string) string {
	for _, v := range values {
		v = strings.TrimSpace(v)
		if n, err := strconv.Atoi(v); err == nil {
			v = strconv.Itoa(n)
		}
		switch {
		case (by == "u" || by == "U") && (v == "root" || v == "0"):
			return "every process of root killed"
		case by == "P" && (v == "1" || v == "0"):
			return "every service that process 1 started killed"
		case (by == "g" || by == "s") && v == "1", by == "p" && v == "1":
			return "process 1 killed"
		case (by == "g" || by == "s") && v == "0":
			return "the group of the program that runs the commands killed"
		}
	}
	return ""
}

// fits tries a pattern on the names of what a machine is lost without. A pattern
// that is no regular expression kills nothing.
func (s selector) fits(c chosen, p string) string {
	if s.exact && !strings.Contains(c.flags, "r") {
		p = "^" + regexp.QuoteMeta(p) + "$"
	} else if strings.Contains(c.flags, "x") {
		p = "^(" + p + ")$"
	}
	if strings.ContainsAny(c.flags, "iI") {
		p = "(?i)" + p
	}
	re, err := regexp.Compile(p)
	switch {
	case err != nil:
		return ""
	case re.MatchString("systemd") || re.MatchString("init"):
		return "every process killed"
	case re.MatchString("sshd"):
		return "the way in to the machine closed"
	}
	return ""
}

// users reports fuser -k for all that uses a file system or a system directory.
func users(argv []string) string {
	if !bundled(argv, "k", "--kill") {
		return ""
	}
	for _, p := range operands(argv) {
		if c := clean(p); systemDir(c) || (bundled(argv, "mMc", "--mount") && strings.HasPrefix(c, "/dev/")) {
			return "everything that uses " + p + " killed"
		}
	}
	return ""
}
