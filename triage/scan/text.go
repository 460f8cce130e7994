package scan

import (
	"math"
	"os"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clockTicks is USER_HZ, which is 100 in the interface of every architecture
// that Go runs on under Linux.
const clockTicks = 100.0

var pageSize = int64(os.Getpagesize())

func euid() int { return os.Geteuid() }

func megabytes(bytes int64) float64 { return round(float64(max(bytes, 0)) / (1 << 20)) }

// round keeps three digits, so that documents stay readable and equal.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// clean makes text that can be printed anywhere: broken UTF-8, control
// characters, escapes, line ends and invisible characters become one mark.
func clean(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsGraphic(r) && !unicode.Is(unicode.Cf, r):
			return r
		}
		return '\uFFFD'
	}, s)
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// shorten is the program and its first argument that is no flag.
func shorten(full string) string {
	words := strings.Fields(full)
	if len(words) == 0 {
		return cut(full, 60)
	}
	out := base(words[0])
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") {
			out += " " + base(w)
			break
		}
	}
	return cut(out, 60)
}

func base(p string) string {
	p = strings.TrimSuffix(p, " (deleted)")
	if p == "" || strings.HasSuffix(p, "/") {
		return p
	}
	return path.Base(p)
}

// argvName is the name in argv[0]. Programs write titles there ("nginx: worker
// process") and shells a dash, so that it is the first word that counts.
func argvName(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	f := strings.Fields(argv[0])
	if len(f) == 0 {
		return ""
	}
	return base(strings.TrimSuffix(strings.TrimPrefix(f[0], "-"), ":"))
}
