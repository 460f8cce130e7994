package redact

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A secret in a template is ‹style›. The styles:
//
//	W  a password as people make them: harborRaven34
//	R  fourteen random letters and digits
//	L  forty of them
//	P  words with hyphens
//	Y  with signs
//	Hn hexadecimal, Xn upper case, Bn base64 of n bytes, Un for URLs, An letters and digits, Dn digits
//	G  a UUID
//	J  a JSON web token
//	K  the lines of a key
var style = regexp.MustCompile(`‹([A-Z])(\d*)›`)

// whole is what goes together with a secret: the prefix of a token.
var whole = regexp.MustCompile(`(?s)⟦.*?⟧`)

var syllables = []string{"harbor", "raven", "quartz", "delta", "umber", "violet", "zephyr", "lumen", "kestrel", "maple", "onyx", "saffron", "tundra", "willow"}

// A maker makes secrets.
type maker struct{ *rand.Rand }

func (m maker) from(set string, n int) string {
	b := make([]byte, n)
	for {
		for i := range b {
			b[i] = set[m.IntN(len(set))]
		}
		s := string(b)
		if n < 10 || len(set) < 30 || regexp.MustCompile(`[A-Z]`).MatchString(s) && regexp.MustCompile(`[a-z]`).MatchString(s) && regexp.MustCompile(`[0-9]`).MatchString(s) {
			return s
		}
	}
}

const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	hexes   = "0123456789abcdef"
)

func (m maker) word() string { return syllables[m.IntN(len(syllables))] }

// make makes a secret of a style.
func (m maker) make(kind string, n int) string {
	switch kind {
	case "W":
		w := m.word()
		if m.IntN(2) == 0 {
			return strings.ToUpper(w[:1]) + w[1:] + fmt.Sprint(1000+m.IntN(9000))
		}
		v := m.word()
		return w + strings.ToUpper(v[:1]) + v[1:] + fmt.Sprint(10+m.IntN(90))
	case "R":
		return m.from(letters, 14)
	case "L":
		return m.from(letters, 40)
	case "A":
		return m.from(letters, n)
	case "D":
		return m.from("123456789", n)
	case "P":
		return m.word() + "-" + m.word() + "-" + m.word() + "-" + m.word()
	case "Y":
		return m.from(letters, 5) + "!" + m.from(letters, 3) + "#" + m.from(letters, 4)
	case "H":
		return m.from(hexes, n)
	case "X":
		return strings.ToUpper(m.from(hexes, n))
	case "U":
		return m.from(letters+"-_", n)
	case "B":
		s := m.from(letters+"+/", (n*4+2)/3)
		return s + strings.Repeat("=", (4-len(s)%4)%4)
	case "G":
		h := m.from(hexes, 32)
		return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	case "J":
		return jwtHead + m.from(letters, 20) + "." + jwtBody + m.from(letters, 60) + "." + m.from(letters+"-_", 43)
	case "K":
		return m.from(letters+"+/", 64) + "\n" + m.from(letters+"+/", 64) + "\n" + m.from(letters+"+/", 22) + "=="
	}
	panic("no such style: " + kind)
}

// Parts of tokens, put together here so that the file holds none.
var (
	jwtHead = "ey" + "J0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiIsImtpZCI6I"
	jwtBody = "ey" + "JhdWQiOi"
	dashes  = "-----"
)

// fill fills a template; the secrets come back in order.
func (m maker) fill(template string) (text string, secrets []string) {
	template = strings.NewReplacer("‹BEGIN ", dashes+"BEGIN ", "‹END ", dashes+"END ", "KEY›", "KEY"+dashes, "BLOCK›", "BLOCK"+dashes, "V1›", "V1"+dashes, "¦", "").Replace(template)
	template = strings.NewReplacer("⟦", "", "⟧", "").Replace(template)
	text = style.ReplaceAllStringFunc(template, func(s string) string {
		p := style.FindStringSubmatch(s)
		n := 0
		fmt.Sscan(p[2], &n)
		v := m.make(p[1], n)
		secrets = append(secrets, v)
		return v
	})
	return text, secrets
}

// expected is the text with every secret replaced by a pattern for a mark.
func expected(template string) *regexp.Regexp {
	template = strings.NewReplacer("‹BEGIN ", dashes+"BEGIN ", "‹END ", dashes+"END ", "KEY›", "KEY"+dashes, "BLOCK›", "BLOCK"+dashes, "V1›", "V1"+dashes, "¦", "").Replace(template)
	template = whole.ReplaceAllString(template, "‹A1›")
	var b strings.Builder
	at := 0
	for _, p := range style.FindAllStringIndex(template, -1) {
		b.WriteString(regexp.QuoteMeta(template[at:p[0]]))
		b.WriteString(`\[REDACTED(?:_[A-Z_]+)?\]`)
		at = p[1]
	}
	b.WriteString(regexp.QuoteMeta(template[at:]))
	return regexp.MustCompile("^" + b.String() + "$")
}

// try redacts a template with fresh secrets and says what is wrong.
func try(r *Redactor, m maker, template string, loose bool) (problem string) {
	text, secrets := m.fill(template)
	got := r.Redact(text).Text
	for _, s := range secrets {
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); len(line) > 8 && strings.Contains(got, line) {
				return fmt.Sprintf("left %q\n in %q\nout %q", line, text, got)
			}
		}
		if strings.Contains(got, s) {
			return fmt.Sprintf("left %q\n in %q\nout %q", s, text, got)
		}
	}
	if !loose && !expected(template).MatchString(got) {
		return fmt.Sprintf("masked other things\n in %q\nout %q", text, got)
	}
	if again := r.Redact(got).Text; again != got {
		return fmt.Sprintf("twice is not once\n in %q\nout %q\n2nd %q", text, got, again)
	}
	return ""
}

// TestTemplates fills every template with many secrets: nothing of them may be
// left, and nothing else may be gone. A template that begins with ~ may lose
// more than its secrets.
func TestTemplates(t *testing.T) {
	r := New(Options{})
	m := maker{rand.New(rand.NewPCG(1, 2))}
	bad, all := 0, 0
	for _, f := range slices.Concat(templates, secondTemplates, dressedTemplates) {
		for _, tmpl := range f.texts {
			loose := strings.HasPrefix(tmpl, "~")
			tmpl = strings.TrimPrefix(tmpl, "~")
			all++
			for range 12 {
				if p := try(r, m, tmpl, loose); p != "" {
					t.Errorf("%s: %s", f.family, p)
					bad++
					break
				}
			}
		}
	}
	t.Logf("%d of %d templates fail", bad, all)
}

// TestBenign leaves ordinary output alone, byte for byte.
func TestBenign(t *testing.T) {
	r := New(Options{})
	for _, f := range slices.Concat(benign, secondBenign, dressedBenign) {
		for _, text := range f.texts {
			if got := r.Redact(text); got.Text != text {
				t.Errorf("%s: %q\nbecame %q", f.family, text, got.Text)
			}
		}
	}
}
