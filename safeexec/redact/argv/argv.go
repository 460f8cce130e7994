// Package argv reads command lines: their words, the subcommand among the flags,
// and from a table what a command is known to print.
package argv

import "strings"

// maxWords bounds the words of a line that are looked at.
const maxWords = 128

// Split is the words of line as a shell without expansions sees them, those of
// each command of a pipeline or list apart.
//
// The gate reads commands with policy/shellwords, which refuses what is not exactly one.
// What is redacted is text: an open quote or a pipe must not keep its secrets, so nothing
// is refused here.
func Split(line string) (commands [][]string) {
	var words []string
	end := func() {
		if len(words) > 0 {
			commands = append(commands, words)
		}
		words = nil
	}
	for n := 0; n < maxWords; n++ {
		line = strings.TrimLeft(line, " \t\r\n")
		if line == "" {
			break
		}
		w, rest, plain := next(line)
		switch line = rest; {
		case plain && (strings.Trim(w, "|&") == "" || w == ";"):
			end()
		case plain && len(w) > 1 && w[len(w)-1] == ';':
			words = append(words, w[:len(w)-1])
			end()
		default:
			words = append(words, w)
		}
	}
	end()
	return commands
}

// next is the first word of line, without its quotes, and what follows. plain
// says that nothing of it was quoted.
func next(line string) (w, rest string, plain bool) {
	var b strings.Builder
	plain = true
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == quote:
			quote = 0
		case quote != 0:
			b.WriteByte(c)
		case c == '\'' || c == '"':
			quote, plain = c, false
		case c == '\\' && i+1 < len(line) && strings.IndexByte(" \t\"'\\|;&", line[i+1]) >= 0:
			i++
			plain = false
			b.WriteByte(line[i])
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			return b.String(), line[i:], plain
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", plain
}

// Name is the name of the program that w starts, "" for none: without its
// directory and what Windows puts behind it, in lower case.
func Name(w string) string {
	w = strings.ToLower(w[strings.LastIndexAny(w, `/\`)+1:])
	for _, end := range [...]string{".exe", ".cmd", ".bat"} {
		w = strings.TrimSuffix(w, end)
	}
	return w
}

// Match says whether the words behind a program's name begin with the
// subcommand path, flags left out. A word of path is one or more words with
// bars between them, each with a star at its start, its end, or alone for any
// letters. ** stands for any words, and +word wants a word anywhere on the line.
//
// Which flags take a value differs from program to program. A word behind a
// flag may therefore be one or not: it is skipped where it does not fit.
func Match(words, path []string) bool {
	rest := path[:0:0]
	for _, p := range path {
		if p[0] != '+' {
			rest = append(rest, p)
		} else if !has(words, p[1:]) {
			return false
		}
	}
	return match(words, rest)
}

func match(words, path []string) bool {
	if len(path) == 0 {
		return true
	}
	if path[0] == "**" {
		for i, w := range words {
			if fits(w, path[1]) && match(words[i:], path[1:]) {
				return true
			}
		}
		return false
	}
	for i, w := range words {
		if w == "" || w[0] == '-' {
			continue
		}
		if fits(w, path[0]) && match(words[i+1:], path[1:]) {
			return true
		}
		if i == 0 || words[i-1] == "" || words[i-1][0] != '-' || strings.IndexByte(words[i-1], '=') >= 0 {
			return false
		}
	}
	return false
}

// has says whether one of words fits p, alone or before an equals sign.
func has(words []string, p string) bool {
	for _, w := range words {
		name, _, _ := strings.Cut(w, "=")
		if fits(name, p) {
			return true
		}
	}
	return false
}

func fits(w, pattern string) bool {
	for p := range strings.SplitSeq(pattern, "|") {
		end, suffix := strings.CutPrefix(p, "*")
		start, prefix := strings.CutSuffix(end, "*")
		switch n := len(start); {
		case suffix && prefix:
			if strings.Contains(strings.ToLower(w), start) {
				return true
			}
		case len(w) < n:
		case suffix:
			if strings.EqualFold(w[len(w)-n:], start) {
				return true
			}
		case strings.EqualFold(w[:n], start) && (prefix || len(w) == n):
			return true
		}
	}
	return false
}
