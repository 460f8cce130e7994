package commands

import (
	"path"
	"slices"
	"strings"
)

// Split divides a command text into its arguments the way a shell divides one simple
// command: blanks divide, quotes keep, a backslash takes the next character as it is.
// ok is false when a quote does not end. It is for comparing texts; what runs is what
// the gate parses.
func Split(text string) (argv []string, ok bool) {
	var cur strings.Builder
	in, quote := false, rune(0)
	escaped := false
	for _, r := range text {
		switch {
		case escaped:
			cur.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, in = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			cur.WriteRune(r)
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if in {
				argv = append(argv, cur.String())
			}
			cur.Reset()
			in = false
		default:
			cur.WriteRune(r)
			in = true
		}
	}
	if in {
		argv = append(argv, cur.String())
	}
	return argv, quote == 0 && !escaped
}

// wrappers start another program and say nothing about what it is for.
var wrappers = []string{"sudo", "doas", "env", "nice", "ionice", "nohup", "timeout", "stdbuf", "setsid", "command", "exec", "time"}

// Key is equal for two commands that ask for the same in other words: by another path to
// the program, behind a wrapper, with the arguments in another order, a value behind a
// blank or behind "=". Whatever differs in a value is another command.
func Key(argv []string) string {
	for len(argv) > 1 && slices.Contains(wrappers, path.Base(argv[0])) {
		argv = argv[1:]
		for len(argv) > 1 && (strings.HasPrefix(argv[0], "-") || strings.Contains(argv[0], "=") || isSpan(argv[0])) {
			argv = argv[1:]
		}
	}
	if len(argv) == 0 {
		return ""
	}
	var args []string
	for _, a := range argv[1:] {
		if k, v, ok := strings.Cut(a, "="); ok && strings.HasPrefix(k, "--") {
			args = append(args, k, v)
			continue
		}
		args = append(args, a)
	}
	slices.Sort(args)
	return path.Base(argv[0]) + "\x00" + strings.Join(args, "\x00")
}

// Same reports whether two commands ask for the same in other words: they have one key,
// or have one when the values of flags of one letter stand right behind them.
func Same(a, b []string) bool { return Key(a) == Key(b) || Key(glued(a)) == Key(glued(b)) }

// glued writes "-c 5" as "-c5".
func glued(argv []string) (out []string) {
	for i := 0; i < len(argv); i++ {
		a := argv[i]
		if i > 0 && len(a) == 2 && a[0] == '-' && a[1] != '-' && i+1 < len(argv) && !strings.HasPrefix(argv[i+1], "-") {
			i++
			a += argv[i]
		}
		out = append(out, a)
	}
	return out
}

// isSpan reports a number or a duration, as timeout and nice want one.
func isSpan(s string) bool {
	return strings.Trim(strings.TrimRight(s, "smhd"), "0123456789.") == "" && s != ""
}
