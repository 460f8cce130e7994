package shape

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestSecret(t *testing.T) {
	yes := []string{
		"harborRaven34",
		"Quartz3689",
		"hunter2",
		"eCnK2kV3eQ",
		"0049C1D290208B05FA08",
		"s3cr3t!",
		"p4ss-w0rd",
		"7c9e6679f8a14b0c9d2e",
		"ABCDEFGHijklmnopQRST",
		"aB3#xY9!kL",
		"MD2tMFofafAdYA",
		"V5svyh6PEtpduO",
		"x9fQs0YRHvjA1f",
		"FooBar/bazQux",
		"dG9rZW4tdmFsdWU9",
	}
	no := []string{
		"",
		"a",
		"short",
		"12345678",
		"password",
		"environment",
		"lower-case-words",
		"sha256",
		"SHA-512",
		"aes-256-gcm",
		"hmac-sha256",
		"curve25519-sha256",
		"ed25519",
		"x509",
		"ipv4",
		"eth0",
		"eth0.100",
		"port8080",
		"http2",
		"base64",
		"utf8",
		"v1.2.3",
		"10.0.0.1",
		"10.20.30.40",
		"2024-01-02",
		"10ms",
		"100Mbit",
		"file1.txt",
		"6f1c2a9e-1f53-4c0a-9c1b-1f6a2b3c4d5e",
		"https://example.com/1",
		"grüße12",
		"IPv4-mapped",
		"scram-sha-256",
	}
	for _, v := range yes {
		if !Secret(v) {
			t.Errorf("Secret(%q) = false", v)
		}
	}
	for _, v := range no {
		if Secret(v) {
			t.Errorf("Secret(%q) = true", v)
		}
	}
}

func TestToken(t *testing.T) {
	for v, want := range map[string]bool{
		"3a3ea7cb57e2792bf6c083367ff724c3":             true,
		"Lhg3ycPOhsxRIVS5Tj6jgbaWwDK7p65H6CilYCt0YRiF": true,
		"short1A":                              false,
		"abcdefghijklmnopqrstuvwxyz":           false,
		"6f1c2a9e-1f53-4c0a-9c1b-1f6a2b3c4d5e": false,
		"logs/2025/01/15/file1.json.gz":        false,
		"with blanks 1A2b3C4d5E6f":             false,
	} {
		if got := Token(v); got != want {
			t.Errorf("Token(%q) = %v", v, got)
		}
	}
}

func TestForms(t *testing.T) {
	tests := []struct {
		name string
		f    func(string) bool
		yes  []string
		no   []string
	}{
		{"UUID", UUID, []string{"6f1c2a9e-1f53-4c0a-9c1b-1f6a2b3c4d5e", "6F1C2A9E-1F53-4C0A-9C1B-1F6A2B3C4D5E"},
			[]string{"", "6f1c2a9e1f534c0a9c1b1f6a2b3c4d5e", "6f1c2a9e-1f53-4c0a-9c1b-1f6a2b3c4d5g"}},
		{"Variable", Variable, []string{"DB_PASSWORD", "db_password", "x1"}, []string{"", "x", "1x", "dbPassword", "a-b"}},
		{"Path", Path, []string{"/etc/ssl/private", "/run/secrets/db", "./a/b", "~/.ssh/id", "/tmp", `C:\Users\x`}, []string{"/aB3xY9kL+Q==", "/", "abc"}},
		{"Repeats", Repeats, []string{"", "****", "xxxx", "XXXX", "....", "----"}, []string{"aaaa", "1111", "*-*"}},
		{"Ordinary", Ordinary, []string{"word", "Word", "WORD", "two-words"}, []string{"w0rd", "camelCase", "a_b", "wörd"}},
		{"Mixed", Mixed, []string{"aB1"}, []string{"ab1", "AB1", "aB"}},
		{"Digits", Digits, []string{"", "123"}, []string{"12a"}},
		{"WireGuard", WireGuard, []string{strings.Repeat("aB3/", 10) + "aB3="}, []string{"", strings.Repeat("a", 44), strings.Repeat("aB3/", 11) + "="}},
	}
	for _, tt := range tests {
		for _, v := range tt.yes {
			if !tt.f(v) {
				t.Errorf("%s(%q) = false", tt.name, v)
			}
		}
		for _, v := range tt.no {
			if tt.f(v) {
				t.Errorf("%s(%q) = true", tt.name, v)
			}
		}
	}
}

func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	missed := 0
	for range 1000 {
		b := make([]byte, 40)
		for i := range b {
			b[i] = Alphabet[r.IntN(len(Alphabet))]
		}
		if !Random(string(b)) {
			missed++
		}
	}
	if missed > 3 {
		t.Errorf("%d of 1000 random strings do not look random", missed)
	}
	for _, v := range []string{"", "virtualNetworkGatewayConnection", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "UPPER-CASE-NAME-12", "plain words here"} {
		if Random(v) {
			t.Errorf("Random(%q) = true", v)
		}
	}
}

func TestPrintable(t *testing.T) {
	for s, want := range map[string]bool{"": true, "text\n\ttab": true, "a\x00b": true, "\x01": false, "\x7f": false, "é": true} {
		if got := Printable([]byte(s)); got != want {
			t.Errorf("Printable(%q) = %v", s, got)
		}
	}
}

func TestUserPass(t *testing.T) {
	for s, want := range map[string]bool{"user:pass": true, "user:p\xff\x00x": true, "a.b@c:pw": true, "": false, ":pass": false, "user:": false, "two words:pass": false, "\x01:pass": false, "nothing": false} {
		if got := UserPass([]byte(s)); got != want {
			t.Errorf("UserPass(%q) = %v", s, got)
		}
	}
}

func TestSets(t *testing.T) {
	s := NewSet("abc")
	if !s.Only("aabbcc") || s.Only("abcd") || !s.Only("") {
		t.Error("Only is wrong")
	}
	if got := s.End("abcxabc", 0, 100); got != 3 {
		t.Errorf("End = %d, want 3", got)
	}
	if got := s.End("abcabc", 0, 2); got != 2 {
		t.Errorf("End with a limit = %d, want 2", got)
	}
	if got := s.Start("xabc", 4, 0); got != 1 {
		t.Errorf("Start = %d, want 1", got)
	}
	if got := s.Start("abc", 3, -5); got != 0 {
		t.Errorf("Start with a limit below the text = %d, want 0", got)
	}
	if w := Words("a  b\tc"); len(w) != 3 || !Fold("B", w) || Fold("d", w) || Fold(strings.Repeat("a", 99), w) {
		t.Error("Words and Fold are wrong")
	}
	if !HasFold("ABCd", "abc") || HasFold("ab", "abc") {
		t.Error("HasFold is wrong")
	}
}

// body is n characters of a set.
func body(r *rand.Rand, set *Set, n int) string {
	var chars []byte
	for c := range len(set) {
		if set[c] && c < 0x7f && Alnum(byte(c)) {
			chars = append(chars, byte(c))
		}
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = chars[r.IntN(len(chars))]
	}
	if n > 1 && set != setDigit { // every token has a digit, and two cases where there are
		b[0] = '7'
		if set[int('g')] {
			b[n-1] = 'g'
		}
	}
	return string(b)
}

func TestVendors(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	no := func(int) bool { return false }
	for _, v := range Vendors {
		before := ""
		if v.Back > 0 {
			before = body(r, SetHex, v.Back)
			if v.before() == setDigit {
				before = body(r, setDigit, v.Back)
			}
		}
		token := before + v.Prefix + body(r, v.Set, max(v.Min, 1)+4)
		if v.Min == 1 { // mailchimp: the number of a data centre
			token = before + v.Prefix + "12"
		}
		text := "x " + token + " y"
		a := 2 + len(before)
		start, end, ok := v.Match(text, a, a+len(v.Prefix), no)
		if !ok || text[start:end] != token {
			t.Errorf("%q: %v, %q of %q", v.Prefix, ok, text[start:max(start, end)], token)
		}
		if v.Back == 0 {
			if _, _, ok := v.Match("x"+token, 1, 1+len(v.Prefix), no); ok {
				t.Errorf("%q is found inside a word", v.Prefix)
			}
			short := v.Prefix + "ab"
			if _, _, ok := v.Match(short, 0, len(v.Prefix), no); ok && v.Min > 2 {
				t.Errorf("%q is taken for a token", short)
			}
			if low := strings.ToLower(v.Prefix); low != v.Prefix {
				if _, _, ok := v.Match(low+token[len(low):], 0, len(low), no); ok {
					t.Errorf("%q is found in the wrong case", v.Prefix)
				}
			}
		}
	}
}

func TestVendorCut(t *testing.T) {
	v := &Vendor{"zz_", SetAlnum, 30, 0}
	text := "zz_A1b2C3d4E5"
	for cut, want := range map[bool]bool{true: true, false: false} {
		if _, _, ok := v.Match(text, 0, 3, func(int) bool { return cut }); ok != want {
			t.Errorf("a piece of a token beside a cut %v: found %v", cut, ok)
		}
	}
}

func TestJWT(t *testing.T) {
	const head = "ey" + "J0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiJ9"
	tests := []struct {
		text string
		ok   bool
		end  int
	}{
		{head + "." + "ey" + "JhdWQiOiIxIn0.c2ln rest", true, len(head) + 21},
		{head + ".", true, len(head)},
		{head[:24], true, 24},
		{"ey" + "JyZWdpb24iOiJ3ZXUifQ", false, 22}, // JSON without what a header has
		{"ey" + "JhYg", false, 6},
		{"ey" + "JyZWdpb24iOiJ3ZXUifQ." + "ey" + "JhIjoxfQ.sig", true, 37},
	}
	for _, tt := range tests {
		end, ok := JWT(tt.text, 0)
		if ok != tt.ok || ok && end != tt.end {
			t.Errorf("JWT(%q) = %d, %v; want %d, %v", tt.text, end, ok, tt.end, tt.ok)
		}
	}
}

func TestHash(t *testing.T) {
	tests := []struct {
		prefix, rest, after string
		ok                  bool
	}{
		{"$6$", "saltSALT1$" + strings.Repeat("aB3.", 20), ":19700:", true},
		{"$2b$", "12$" + strings.Repeat("aB3/", 13), " x", true},
		{"{SSHA", "}" + strings.Repeat("aB3+", 8) + "==", "\n", true},
		{"$6$", "", " is a prefix", false},
		{"$y$", "lowercase", ",", false},
		{"{SHA", "1WithRSA, \"SHA1-RSA\"", "", false},
		{"SCRAM-SHA-256$", "4096:c2FsdA==$c3RvcmVk:c2VydmVy", "\n", true},
	}
	for _, tt := range tests {
		text := tt.prefix + tt.rest + tt.after
		end, ok := Hash(text, 0, len(tt.prefix))
		if ok != tt.ok || ok && end != len(tt.prefix+tt.rest) {
			t.Errorf("Hash(%q) = %d, %v; want %d, %v", text, end, ok, len(tt.prefix+tt.rest), tt.ok)
		}
	}
}

func TestStorageKey(t *testing.T) {
	key := strings.Repeat("aB3/", 21) + "aB=="
	text := "k " + key
	if start, ok := StorageKey(text, len(text)); !ok || start != 2 {
		t.Errorf("StorageKey = %d, %v; want 2, true", start, ok)
	}
	for _, s := range []string{"==", "aB3==", "x" + key, strings.Repeat("a", 86) + "=="} {
		if _, ok := StorageKey(s, len(s)); ok {
			t.Errorf("%q is taken for a storage key", s)
		}
	}
}
