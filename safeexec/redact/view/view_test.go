package view

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestNormalise(t *testing.T) {
	tests := []struct{ name, in, want, payload string }{
		{"plain", "a b\tc\r\nd", "a b\tc\r\nd", ""},
		{"colours", "pass\x1b[31mword\x1b[0m", "password", ""},
		{"a colour with many numbers", "a\x1b[1;32;40;38;5;7mb", "ab", ""},
		{"erase and move", "a\x1b[2K\x1b[1Gb", "ab", ""},
		{"a private mode", "\x1b[?25lx\x1b[?25h", "x", ""},
		{"a character set", "a\x1b(Bb", "ab", ""},
		{"a single escape", "a\x1bcb", "ab", ""},
		{"C1", "a\u009b31mb", "ab", ""},
		{"an escape at the end", "a\x1b", "a", ""},
		{"half a sequence", "a\x1b[31", "a", ""},
		{"zero width", "pass\u200bword", "password", ""},
		{"soft hyphen", "pass\u00adword", "password", ""},
		{"directions", "\u202eabc\u202c", "abc", ""},
		{"a mark of byte order", "\ufeffabc", "abc", ""},
		{"accents put on", "p\u0301w", "pw", ""},
		{"letters with accents", "é日本", "é日本", ""},
		{"NUL", "pa\x00ss", "pass", ""},
		{"an environment", "A1=x\x00DB_PASSWORD=y\x00", "A1=x\nDB_PASSWORD=y", ""},
		{"bell and backspace", "a\x07b", "ab", ""},
		{"overstrike", "p\bpa\ba", "pa", ""},
		{"overstrike of a letter with an accent", "é\bx", "x", ""},
		{"wide forms", "ｐａｓｓ＝１", "pass=1", ""},
		{"look-alikes", "pаsswоrd", "password", ""},
		{"mathematical", "𝐩𝐚𝐬𝐬𝟏", "pass1", ""},
		{"quotes and dashes", "“x” ‘y’ — z", "\"x\" 'y' - z", ""},
		{"other blanks", "a\u00a0b\u3000c", "a b c", ""},
		{"other line ends", "a\u0085b\u2028c", "ab\nc", ""},
		{"broken UTF-8", "a\xffb", "a\xffb", ""},
		{"a link", "\x1b]8;;http://h/\x1b\\text\x1b]8;;\x1b\\", "text", "8;;http://h/\n8;;\n"},
		{"a title", "\x1b]0;title\x07x", "x", "0;title\n"},
		{"a string without an end", "\x1b]0;title\nx", "\nx", "0;title\n"},
		{"a device string", "\x1bPq#0\x1b\\x", "x", "q#0\n"},
		{"nothing but hidden", "\u200b\u200b", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base, payload := Normalise(tt.in)
			if got := text(base); got != tt.want {
				t.Errorf("base = %q, want %q", got, tt.want)
			}
			if got := text(payload); got != tt.payload {
				t.Errorf("payload = %q, want %q", got, tt.payload)
			}
		})
	}
}

func text(v *View) string {
	if v == nil {
		return ""
	}
	return v.Text
}

func TestTwins(t *testing.T) {
	if a, b := utf8.RuneCountInString(lookAlikes), len(asciiTwins); a != b {
		t.Fatalf("%d look-alikes for %d characters", a, b)
	}
	for r, c := range twins {
		if r < 0x80 || c >= 0x80 {
			t.Errorf("%q stands for %q", r, c)
		}
	}
}

// sources gives what each wanted part of a view stands for.
func sources(t *testing.T, v *View, in string, parts ...string) (out []string) {
	t.Helper()
	for _, p := range parts {
		i := strings.Index(v.Text, p)
		if i < 0 {
			t.Fatalf("%q is not in %q", p, v.Text)
		}
		a, b := v.Source(i, i+len(p))
		out = append(out, in[a:b])
	}
	return out
}

func TestSource(t *testing.T) {
	derive := func(in string, f func(*View) *View) *View {
		base, _ := Normalise(in)
		return f(base)
	}
	same := func(v *View) *View { return v }
	tests := []struct {
		name, in string
		f        func(*View) *View
		parts    []string
		want     []string
	}{
		{"plain", "abc def", same, []string{"def"}, []string{"def"}},
		{"hidden inside", "pa\x1b[1mss\u200bword=x", same, []string{"password", "x"}, []string{"pa\x1b[1mss\u200bword", "x"}},
		{"hidden at the edges stays out", "\x1b[1mabc\x1b[0m", same, []string{"abc"}, []string{"abc"}},
		{"folded", "ｐw＝x", same, []string{"pw", "="}, []string{"ｐw", "＝"}},
		{"escapes", `a\"b\u0041\n`, (*View).Unescaped, []string{`"`, "b", "A"}, []string{`\"`, "b", `\u0041`}},
		{"escapes twice", `x\\\"y`, func(v *View) *View { return v.Unescaped().Unescaped() }, []string{`"`, "y"}, []string{`\\\"`, "y"}},
		{"entities", "a&quot;b&amp;c", (*View).Unescaped, []string{`"b`, "&c"}, []string{"&quot;b", "&amp;c"}},
		{"percent", "a%3Db%26", (*View).Unpercented, []string{"=b", "&"}, []string{"%3Db", "%26"}},
		{"percent twice", "a%253Db", func(v *View) *View { return v.Unpercented().Unpercented() }, []string{"="}, []string{"%253D"}},
		{"joined", "ab\\\n  cd\nef", (*View).Joined, []string{"abcd"}, []string{"ab\\\n  cd"}},
		{"joined and hidden", "a\u200bb\\\ncd", (*View).Joined, []string{"abcd"}, []string{"a\u200bb\\\ncd"}},
		{"overstrike", "xp\bpy", same, []string{"xp", "y"}, []string{"xp\bp", "y"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, sources(t, derive(tt.in, tt.f), tt.in, tt.parts...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDerived(t *testing.T) {
	base := func(s string) *View { return &View{Text: s} }
	tests := []struct {
		name string
		got  *View
		want string
	}{
		{"no escapes", base("a b c").Unescaped(), ""},
		{"unknown escapes mean themselves", base(`a\qb`).Unescaped(), ""},
		{"controls", base(`a\nb\tc\rd`).Unescaped(), "a\nb c\nd"},
		{"hexadecimal", base(`\x41\u00e9`).Unescaped(), "Aé"},
		{"half a code", base(`\u00`).Unescaped(), ""},
		{"surrogates", base(`\ud83d\ude00`).Unescaped(), "  "},
		{"only the lines that have some", base("one\ntwo\nth\\\"ree\nfour\nfi\\\"ve").Unescaped(), "th\"ree\n\nfi\"ve"},
		{"neighbours stay neighbours", base("a\\\"\nb\\\"\n").Unescaped(), "a\"\nb\"\n"},
		{"no percent", base("100% 5%x").Unpercented(), ""},
		{"beyond ASCII stays", base("%C3%A9%41").Unpercented(), "%C3%A9A"},
		{"not continued", base("a\nb").Joined(), ""},
		{"three lines", base("a \\\nb \\\nc\nd").Joined(), "a b c\n"},
		{"PowerShell and cmd", base("a`\nb\nc^\nd").Joined(), "ab\ncd"},
		{"Windows line ends", base("a\\\r\nb").Joined(), "ab"},
		{"a sign on the last line", base("a\\").Joined(), ""},
		{"no ranges", base("abc").Decoded(nil), ""},
		{"ranges", base("abcdefgh").Decoded([]Range{{0, 4, "x"}, {4, 8, "yz"}}), "x\n\nyz\n\n"},
	}
	for _, tt := range tests {
		if got := text(tt.got); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestDerivedOfNothing(t *testing.T) {
	var v *View
	if v.Unescaped() != nil || v.Unpercented() != nil || v.Joined() != nil {
		t.Error("a view was made of none")
	}
}

func TestDecodedSource(t *testing.T) {
	raw := base64.StdEncoding.EncodeToString([]byte("password=hunter2x"))
	in := "a " + raw + " b"
	base, _ := Normalise(in)
	v := base.Decoded([]Range{{2, 2 + len(raw), "password=hunter2x"}})
	if got := sources(t, v, in, "hunter2x")[0]; got != raw {
		t.Errorf("a part of a decoded text stands for %q, want all of it", got)
	}
}

func TestClean(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "a b\tc\nd", "a b\tc\nd"},
		{"colours", "\x1b[31mred\x1b[0m", "red"},
		{"Windows line ends", "a\r\nb\r\n", "a\nb\n"},
		{"a progress bar", "10%\r20%\r", "10%\n20%\n"},
		{"controls", "a\x00b\x07c\x7fd\x1fe", "abcde"},
		{"C1", "a\u0085b\u009b1mc", "abc"},
		{"broken UTF-8", "a\xff\xfeb\xc3", "a\uFFFDb\uFFFD"},
		{"a link", "\x1b]8;;http://h/\x07text\x1b]8;;\x07", "text"},
		{"a string without an end", "a\x1b]0;rest of line\nnext", "a\nnext"},
		{"an escape at the end", "a\x1b", "a"},
		{"half a colour", "a\x1b[3", "a"},
		{"letters", "é日本✓", "é日本✓"},
		{"zero width stays: only the redactor looks through it", "a\u200bb", "a\u200bb"},
		{"a newline ends half a colour", "a\x1b[3\nb", "a\nb"},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		if got := Clean([]byte(tt.in)); got != tt.want {
			t.Errorf("%s: Clean(%q) = %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}

// FuzzClean: the result is text without controls, and clean already.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "a\x1b[31mb", "\x1b]8;;x\x07y", "\xff\xc2", "\x1b\x1b[", "\r\n\r", "\u009b\u0090x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := Clean(b)
		if !utf8.ValidString(got) {
			t.Errorf("%q is no UTF-8", got)
		}
		for _, r := range got {
			if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
				t.Errorf("%q has the control %q", got, r)
			}
		}
		if again := Clean([]byte(got)); again != got {
			t.Errorf("twice is not once: %q, %q", got, again)
		}
		if len(got) > 3*len(b) {
			t.Errorf("%d bytes became %d", len(b), len(got))
		}
	})
}

// FuzzSource: whatever part of a view is asked for stands for a part of the
// text, in order, and never for half a character.
func FuzzSource(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb\u200bc", `x\"y\u0041`, "a%3Db", "a\\\nb", "ｐｗ", "é\b\b\bx", "&quot;&amp;quot;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if len(in) > 2000 || !utf8.ValidString(in) {
			return
		}
		base, payload := Normalise(in)
		views := []*View{base, payload, base.Unescaped(), base.Unescaped().Unescaped(), base.Unpercented(), base.Unpercented().Unpercented(), base.Joined(), payload.Unescaped()}
		for _, v := range views {
			if v == nil {
				continue
			}
			last := -1
			for i := range v.Text {
				_, w := utf8.DecodeRuneInString(v.Text[i:])
				a, b := v.Source(i, i+w)
				if a < 0 || b > len(in) || a > b || a < last {
					t.Fatalf("view %q: %d stands for [%d:%d] of %q", v.Text, i, a, b, in)
				}
				if a < len(in) && !utf8.RuneStart(in[a]) || b < len(in) && !utf8.RuneStart(in[b]) {
					t.Fatalf("view %q: %d stands for half a character of %q", v.Text, i, in)
				}
				last = a
			}
			if a, b := v.Source(0, len(v.Text)); a > b || b > len(in) {
				t.Fatalf("all of view %q stands for [%d:%d] of %q", v.Text, a, b, in)
			}
		}
	})
}

func BenchmarkNormalise(b *testing.B) {
	for name, in := range map[string]string{
		"plain":    strings.Repeat("2025-01-15 gw-1 kernel: eth0 link up\n", 30_000),
		"coloured": strings.Repeat("\x1b[32m2025-01-15\x1b[0m gw-1 kernel: eth0 link up\n", 25_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				Normalise(in)
			}
		})
	}
}
