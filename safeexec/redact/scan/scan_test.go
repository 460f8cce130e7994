package scan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/safeexec/redact/words"
)

func TestValueAt(t *testing.T) {
	tests := []struct{ name, in, want, after string }{
		{"a word", "abc def", "abc", " def"},
		{"to the end", "abc", "abc", ""},
		{"to the line's end", "abc\ndef", "abc", "\ndef"},
		{"semicolon", "a;b;c", "a", ";b;c"},
		{"comma", "abc, def", "abc", ", def"},
		{"ampersand", "abc&x=1", "abc", "&x=1"},
		{"an end tag", "abc</x>", "abc", "</x>"},
		{"a bracket that was opened", "a(b)c d", "a(b)c", " d"},
		{"a bracket that was not", "abc) d", "abc", ") d"},
		{"a bracket inside", "ab)c d", "ab)c", " d"},
		{"an object's end", "abc}", "abc", "}"},
		{"the end of a sentence", "abcd. Next", "abcd", ". Next"},
		{"an escaped line end", `abc\nd`, "abc", `\nd`},
		{"a backslash of a name", `corp\q x`, `corp\q`, " x"},
		{"double quotes", `"a b" c`, "a b", " c"},
		{"single quotes", `'a "b"' c`, `a "b"`, " c"},
		{"back quotes", "`a b` c", "a b", " c"},
		{"an escaped quote", `"a\"b" c`, `a\"b`, " c"},
		{"an escaped backslash", `"a\\" c`, `a\\`, " c"},
		{"escaped quotes", `\"a b\" c`, "a b", " c"},
		{"quotes escaped twice", `\\\"a b\\\" c`, "a b", " c"},
		{"no closing quote", "\"a b\nc", "a b", "\nc"},
		{"bytes of Python", "b'abc' d", "abc", " d"},
		{"a cut", "abc[truncated: 3 lines omitted]", "abc", "[truncated: 3 lines omitted]"},
		{"a mark", "[REDACTED] x", "[REDACTED]", " x"},
		{"a mark and more", "[REDACTED]abc x", "[REDACTED]abc", " x"},
		{"a cipher between signs", "%^%#a,b;c\"%^%# x", "%^%#a,b;c\"%^%#", " x"},
		{"empty", " x", "", " x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Text{T: tt.in}
			v := s.ValueAt(0)
			if got := tt.in[v.Start:v.End]; got != tt.want {
				t.Errorf("value = %q, want %q", got, tt.want)
			}
			if got := tt.in[v.After:]; tt.want != "abcd" && got != tt.after {
				t.Errorf("the text goes on with %q, want %q", got, tt.after)
			}
		})
	}
}

func TestBraced(t *testing.T) {
	s := Text{T: "PWD={a;b c};x"}
	if v := s.ValueAt(4); s.T[v.Start:v.End] != "a;b c" || s.T[v.After:] != ";x" {
		t.Errorf("value = %q", s.T[v.Start:v.End])
	}
	for _, in := range []string{"x={{a}}", "x={a: b}", `x={"a"}`, "x={a\n}", "x={}"} {
		s := Text{T: in}
		if v := s.ValueAt(2); v.Quote == '{' {
			t.Errorf("%q holds no value in braces", in)
		}
	}
}

func TestExtend(t *testing.T) {
	long := strings.Repeat("aB3", 200)
	tests := []struct{ in, want string }{
		{long + " x", long},
		{`"` + long + `" x`, long},
		{`"` + long + "\nx", long},
		{long[:60] + "\n" + long[:60] + "\n" + long[:20] + "\nx", long[:60] + "\n" + long[:60] + "\n" + long[:20]},
		{long[:60] + "\n  " + long[:60] + "\nnext: line", long[:60] + "\n  " + long[:60]},
		{long[:60] + "\\\n" + long[:30] + "\n", long[:60] + "\\\n" + long[:30]},
		{long[:60] + "\nwords follow here\n", long[:60]},
		{long[:60] + "\nlower-case-words-only-here\n", long[:60]},
		{"short1A\n" + long[:60] + "\n", "short1A"},
	}
	for _, tt := range tests {
		s := Text{T: tt.in}
		v := s.ValueAt(0)
		if got := tt.in[v.Start:s.Extend(v)]; got != tt.want {
			t.Errorf("%.80q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestHarmless(t *testing.T) {
	yes := []string{
		"null", "None", "true", "FALSE", "yes", "enabled", "none", "hidden", "<hidden>x", "required", "ssm:/x", "****", "xxxxxxxx", "--------", "...",
		"${DB_PASSWORD}", "$(cat x)", "$DB_PASSWORD", "%DB_PASSWORD%", "{{ .Values.x }}", "{password}", "var.password", "os.environ[\"X\"]", "process.env.X", "getenv(X)", "@Microsoft.KeyVault(x)",
		"(sensitive value)", "vault:secret/x", "arn:aws:x", "!vault", "/etc/x/y", "./x/y", "~/x/y", "C:\\x\\y", "ssh-rsa AAAA", "https://h/x", "12", "123", "[REDACTED]", "[redacted]", "[masked]",
		"%s", "%v", "make([]byte, 3)", "crypto.Hash(x", "…",
	}
	no := []string{
		"hunter2", "password", "opensesame", "1234", "123456", "a", "[REDACTED]x", "[redacted]x", "$ecret!", "%percent", "/aB3xY9kL+Q==", "{x", "secret.value1", "nullable1", "trueish",
	}
	l := Label{Label: words.Label{Noun: words.Pass}}
	for _, v := range yes {
		s := Text{T: v + " "}
		if !s.Harmless(l, Value{End: len(v), After: len(v)}, v) {
			t.Errorf("%q is no secret", v)
		}
	}
	for _, v := range no {
		s := Text{T: v + " "}
		if s.Harmless(l, Value{End: len(v), After: len(v)}, v) {
			t.Errorf("%q could be a secret", v)
		}
	}
}

func TestHarmlessByLabel(t *testing.T) {
	tests := []struct {
		text  string
		start int
		noun  words.Class
		want  bool
	}{
		{"PWD=/", 4, words.Pass, true},
		{"PWD=/home/x", 4, words.Pass, true},
		{"pwd=hunter", 4, words.Pass, false},
		{"password: 16 bytes", 10, words.Pass, true},
		{"password: 1616", 10, words.Pass, false},
		{"token: 123456", 7, words.Token, true},
		{"community: 64512:100", 11, words.Community, true},
		{"community: (1,2)", 11, words.Community, true},
		{"community: no-export", 11, words.Community, true},
		{"community: s3cret", 11, words.Community, false},
		{"token => token.kind", 9, words.Token, true},
		{"x \"&token=\" + t", 10, words.Token, true},
	}
	for _, tt := range tests {
		s := Text{T: tt.text}
		l := Label{Label: words.Label{Noun: tt.noun}, Start: 0, End: strings.IndexAny(tt.text, "=: ")}
		v := s.ValueAt(tt.start)
		if v.Start == v.End {
			continue
		}
		if got := s.Harmless(l, v, s.Head(v)); got != tt.want {
			t.Errorf("%q: harmless %v, want %v", tt.text, got, tt.want)
		}
	}
}

func TestSeparators(t *testing.T) {
	for in, want := range map[string]int{"=x": 1, ": x": 1, ":= x": 2, "=> x": 2, "==x": 2, "-> x": 2, ":: x": 2, "::name": 0, "-x": 0, " = x": 0, "": 0, "x": 0, ":": 1, "!=": 0} {
		s := Text{T: in}
		if got := s.Separator(0); got != want {
			t.Errorf("Separator(%q) = %d, want %d", in, got, want)
		}
	}
	for in, want := range map[string]int{`": x`: 1, `\": x`: 2, `\\\": x`: 4, `"] = x`: 2, `**: x`: 2, "x": 0, `\x`: 0, "": 0, ")": 1} {
		s := Text{T: in}
		if got := s.Closers(0); got != want {
			t.Errorf("Closers(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	s := Text{T: "one\ntwo\n\nfour"}
	tests := []struct{ at, start, end int }{{0, 0, 3}, {3, 0, 3}, {4, 4, 7}, {6, 4, 7}, {8, 8, 8}, {9, 9, 13}, {13, 9, 13}, {0, 0, 3}}
	for _, tt := range tests {
		if a, b := s.LineStart(tt.at), s.LineEnd(tt.at); a != tt.start || b != tt.end {
			t.Errorf("the line of %d is [%d:%d], want [%d:%d]", tt.at, a, b, tt.start, tt.end)
		}
	}
	if !s.Newline(3) || s.Newline(2) || !s.Newline(13) || !s.Alone(3) || s.Alone(0) {
		t.Error("Newline or Alone is wrong")
	}
}

func TestWords(t *testing.T) {
	s := Text{T: "7 encrypted md5 secret here\n"}
	if i, typed := s.WrittenWords(0); s.T[i:] != "secret here\n" || !typed {
		t.Errorf("WrittenWords goes on with %q", s.T[i:])
	}
	s = Text{T: "secret\n"}
	if i, typed := s.WrittenWords(0); i != 0 || typed {
		t.Error("the only word is the secret")
	}
	s = Text{T: "md5\n"}
	if i, _ := s.WrittenWords(0); i != 0 {
		t.Error("a word that ends its line is the secret itself")
	}
	s = Text{T: strings.Repeat("x", 500)}
	if s.PlainWord(0) != 0 {
		t.Error("a run of 500 characters is no word")
	}
	s = Text{T: "ab cd"}
	if s.PlainWord(0) != 2 || s.PlainWord(3) != 5 || s.PlainWord(2) != 2 {
		t.Error("PlainWord is wrong")
	}
	if !s.Bounded(0, 2) || s.Bounded(0, 1) || !s.Bounded(3, 5) {
		t.Error("Bounded is wrong")
	}
	if s.Blanks(2) != 3 || s.BackBlanks(3) != 2 || s.Peek(3, 10) != "cd" || s.Peek(99, 1) != "" {
		t.Error("Blanks, BackBlanks or Peek is wrong")
	}
}

func TestAfterScheme(t *testing.T) {
	for in, want := range map[string]string{"Bearer abc": "abc", `"Bearer abc"`: "abc", "abc def": "abc", "Bearer": "Bearer", "basic  abc": "abc", "bearer-token x": "bearer-token"} {
		s := Text{T: in}
		if v := s.AfterScheme(s.ValueAt(0)); in[v.Start:v.End] != want {
			t.Errorf("%q: %q, want %q", in, in[v.Start:v.End], want)
		}
	}
}

func TestPairs(t *testing.T) {
	tests := []struct {
		in    string
		first bool
		want  []string
	}{
		{"a=value1; b=value2", false, []string{"value1", "value2"}},
		{"a=value1; Path=/x; HttpOnly", true, []string{"value1"}},
		{"Path=/abcd; a=value1", false, []string{"value1"}},
		{"a=1; b=value2", false, []string{"value2"}},
		{"a=[REDACTED]; b=value2", false, []string{"value2"}},
		{"no pairs", false, nil},
		{"a=value1\nb=value2", false, []string{"value1"}},
	}
	for _, tt := range tests {
		s := Text{T: tt.in}
		s.Pairs(0, len(tt.in), tt.first)
		var got []string
		for _, sp := range s.Spans {
			got = append(got, tt.in[sp.Start:sp.End])
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestMarks(t *testing.T) {
	seen := map[string]bool{}
	for c := range NumCategories {
		m := c.Mark()
		if !strings.HasPrefix(m, "[REDACTED") || !strings.HasSuffix(m, "]") || MarkAt(m+"x") != len(m) {
			t.Errorf("category %d has the mark %q", c, m)
		}
		var one [NumCategories]bool
		one[c] = true
		name := Names(one)
		if len(name) != 1 || name[0] == "" || seen[name[0]] {
			t.Errorf("category %d has the name %q", c, name)
		}
		seen[name[0]] = true
	}
	for _, s := range []string{"", "x", "[REDACTED", "[REDACTED_]", "[REDACTED_X]", "[redacted]"} {
		if MarkAt(s) != 0 {
			t.Errorf("%q begins with a mark", s)
		}
	}
	text := "a [REDACTED] b [REDACTED_TOKEN][REDACTED] [REDACTED_X]"
	var got []string
	for _, m := range FindMarks(text) {
		got = append(got, text[m.Start:m.End])
	}
	if diff := cmp.Diff([]string{"[REDACTED]", "[REDACTED_TOKEN]", "[REDACTED]"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !OnlyMarks("[REDACTED][REDACTED_TOKEN]") || OnlyMarks("[REDACTED] ") || !OnlyMarks("") {
		t.Error("OnlyMarks is wrong")
	}
}

func TestMask(t *testing.T) {
	var s Text
	s.Mask(3, 3, Password)
	s.Mask(4, 3, Password)
	s.Mask(1, 3, Password)
	if diff := cmp.Diff([]Span{{1, 3, Password}}, s.Spans); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
