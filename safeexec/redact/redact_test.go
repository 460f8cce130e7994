package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"ghostbot/safeexec/redact/argv"
	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/words"
	"ghostbot/safeexec/truncate"
)

// hiders are what may stand anywhere inside a text without being seen.
var hiders = []string{"\x1b[31m", "\x1b[0m", "\x1b[1;32;40m", "\x1b[K", "\u200b", "\u200d", "\u00ad", "\u2060", "\ufeff", "\u202e", "\x1b(B", "\x00", "\u0301", "\x1b]0;t\x07"}

// hide puts n hiders into text, between characters. NUL hides nothing in a
// text that it separates, like the environment of a process.
func hide(m maker, text string, n int) string {
	separated := strings.Contains(text, "\x00")
	at := make([]int, n)
	for k := range at {
		at[k] = m.IntN(len(text) + 1)
		for at[k] > 0 && at[k] < len(text) && !utf8.RuneStart(text[at[k]]) {
			at[k]--
		}
	}
	slices.Sort(at)
	for _, i := range slices.Backward(at) {
		h := hiders[m.IntN(len(hiders))]
		if h == "\x00" && separated {
			h = hiders[0]
		}
		text = text[:i] + h + text[i:]
	}
	return text
}

// unhide takes them out again.
func unhide(text string) string {
	for _, h := range hiders {
		text = strings.ReplaceAll(text, h, "")
	}
	return text
}

// TestHidden splits labels and values by what nobody sees.
func TestHidden(t *testing.T) {
	r := New(Options{})
	m := maker{rand.New(rand.NewPCG(3, 4))}
	for _, f := range templates {
		for _, tmpl := range f.texts {
			text, secrets := m.fill(strings.TrimPrefix(tmpl, "~"))
			for range 6 {
				hidden := hide(m, text, 1+m.IntN(6))
				got := r.Redact(hidden).Text
				for _, s := range secrets {
					if strings.Contains(unhide(got), s) {
						t.Fatalf("%s: left %q of %q\nin %q", f.family, s, hidden, got)
					}
				}
			}
		}
	}
}

// TestFolded writes labels with letters that look like theirs.
func TestFolded(t *testing.T) {
	r := New(Options{})
	for _, text := range []string{
		"ｐａｓｓｗｏｒｄ＝hunter2x9", "pаsswоrd: hunter2x9", "𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝=hunter2x9", "password： hunter2x9", "“password”: “hunter2x9”", "p\u0332a\u0332s\u0332s\u0332word=hunter2x9",
		"ѕecret=hunter2x9", "p\bpa\bas\bss\bsw\bwo\bor\brd\bd=h\bhunter2x9", "password\u00a0=\u00a0hunter2x9", "𝚝𝚘𝚔𝚎𝚗=hunter2x9abcd",
	} {
		if got := r.Redact(text); strings.Contains(got.Text, "unter2x9") || got.Count != 1 {
			t.Errorf("%q became %q, %d masks", text, got.Text, got.Count)
		}
	}
}

// TestPayload looks into the strings that only a terminal reads.
func TestPayload(t *testing.T) {
	r := New(Options{})
	for _, text := range []string{
		"\x1b]8;;https://u:hunter2x9@h.example.com/\x1b\\link\x1b]8;;\x1b\\", "\x1b]8;;https://h.example.com/?token=hunter2x9abcd\x07link", "\x1bPpassword=hunter2x9\x1b\\", "\x1b]0;password=hunter2x9",
	} {
		if got := r.Redact(text).Text; strings.Contains(got, "hunter2x9") {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// key assembles an armoured key.
func key(m maker, name, eol string) (text string, lines []string) {
	lines = strings.Split(m.make("K", 0), "\n")
	return dashes + "BEGIN " + name + dashes + eol + strings.Join(lines, eol) + eol + dashes + "END " + name + dashes, lines
}

func TestKeys(t *testing.T) {
	r := New(Options{})
	m := maker{rand.New(rand.NewPCG(5, 6))}
	quote := func(prefix string) func(string) string {
		return func(s string) string { return prefix + strings.ReplaceAll(s, "\n", "\n"+prefix) }
	}
	jsonText := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	forms := map[string]func(string) string{
		"as it is":     func(s string) string { return s },
		"indented":     quote("    "),
		"in a mail":    quote("> "),
		"in a comment": quote("# "),
		"in JSON":      jsonText,
		"JSON in JSON": func(s string) string { return jsonText(jsonText(s)) },
		"on one line":  func(s string) string { return strings.ReplaceAll(s, "\n", " ") },
		"glued":        func(s string) string { return strings.ReplaceAll(s, "\n", "") },
		"no end":       func(s string) string { return s[:strings.LastIndex(s, "\n")] },
		"cut in line":  func(s string) string { return s[:len(s)-60] },
		"no begin":     func(s string) string { return s[strings.Index(s, "\n")+1:] },
		"percent":      url.QueryEscape,
		"in base64":    func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"cut by us":    func(s string) string { return s[:strings.LastIndex(s, "\n")] + "\n[truncated: 20 lines omitted]" },
	}
	for _, name := range []string{"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "OPENSSH PRIVATE KEY", "DSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK", "OpenVPN Static key V1", "SSH2 ENCRYPTED PRIVATE KEY"} {
		for _, eol := range []string{"\n", "\r\n"} {
			for form, f := range forms {
				block, lines := key(m, name, eol)
				if eol != "\n" && (form == "on one line" || form == "glued") {
					continue
				}
				got := r.Redact("before\n" + f(block) + "\nafter it\n").Text
				for _, l := range lines {
					if strings.Contains(got, l[:min(len(l), 40)]) {
						t.Errorf("%s %s: left %q in %q", name, form, l, got)
					}
				}
				if !strings.Contains(got, "before\n") || !strings.Contains(got, "\nafter it\n") {
					t.Errorf("%s %s: lost what is around in %q", name, form, got)
				}
			}
		}
	}
}

func TestPutty(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(7, 8))}
	lines := m.make("K", 0)
	text := "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: u@h\nPublic-Lines: 1\nAAAAC3NzaC1lZDI1NTE5\nPrivate-Lines: 3\n" + lines + "\nPrivate-MAC: 0a1b\n"
	got := New(Options{}).Redact(text).Text
	want := strings.Replace(text, lines, "[REDACTED_PRIVATE_KEY]", 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKnown(t *testing.T) {
	const secret = "Zq7/plain+Value&42"
	r := New(Options{Known: []string{secret, "short", ""}})
	forms := map[string]string{
		"as it is": secret, "in a word": "x" + secret + "y", "base64": base64.StdEncoding.EncodeToString([]byte(secret)), "raw base64": base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"base64, shifted by 1": base64.StdEncoding.EncodeToString([]byte("u" + secret + "z")), "base64, shifted by 2": base64.StdEncoding.EncodeToString([]byte("us" + secret + "yz")),
		"hex": hex.EncodeToString([]byte(secret)), "percent": url.QueryEscape(secret), "path": url.PathEscape(secret), "percent twice": url.QueryEscape(url.QueryEscape(secret)),
		"JSON": `"Zq7\/plain+Value\u002642"`, "coloured": "Zq7/pl\x1b[31main+Val\x1b[0mue&42", "zero width": "Zq7/\u200bplain+Value&42", "wrapped": "Zq7/plain\\\n+Value&42",
		"cut": "Zq7/plain+Va[truncated: 12 characters omitted]", "the rest": "[truncated: 12 characters omitted]lain+Value&42", "cut at the end": "x Zq7/plain+V",
	}
	for name, text := range forms {
		got := r.Redact("a " + text)
		if strings.Contains(got.Text, "plain+V") || strings.Contains(got.Text, text) || len(got.Categories) == 0 || got.Categories[0] != "known_secret" {
			t.Errorf("%s: %q became %q %v", name, text, got.Text, got.Categories)
		}
	}
	if got := r.Redact("a short plain Value").Count; got != 0 {
		t.Errorf("%d masks in a text without the secret", got)
	}
	if got := New(Options{}).Redact("a " + secret).Count; got != 0 {
		t.Errorf("%d masks for somebody else's secret", got)
	}
}

func TestHint(t *testing.T) {
	r := New(Options{})
	const reply = `{"value": "harborlumen"}`
	for command, masked := range map[string]bool{
		"": false, "az vm show -n v": false, "az keyvault secret show --name x --vault-name y": true, "az  KEYVAULT secret   show": true, "kubectl get secret x -o json": true,
	} {
		res, err := r.RedactFor(reply, command)
		if err != nil || (res.Count == 1) != masked {
			t.Errorf("after %q: %q, %v; want masked %v", command, res.Text, err, masked)
		}
	}
}

func TestContains(t *testing.T) {
	r := New(Options{Known: []string{"process-own-secret"}})
	for text, want := range map[string]bool{
		"": false, "ping -c 4 10.0.0.1": false, "curl -u a:hunter2x https://h.example.com": true, "echo process-own-secret": true, "mysql -phunter2x": true, "password=[REDACTED]": false,
		`{"subscriptionId": "6f1c2a9e-1f53-4c0a-9c1b-1f6a2b3c4d5e"}`: false, "az account show --subscription 6f1c2a9e-1f53-4c0a-9c1b-1f6a2b3c4d5e": false,
	} {
		if got := r.Contains(text); got != want {
			t.Errorf("Contains(%q) = %v", text, got)
		}
	}
}

func TestCategories(t *testing.T) {
	got := New(Options{}).Redact("password=hunter2x token=hunter2xabcd password=hunter3x\nAuthorization: Bearer abcdefghij12345\n")
	want := Result{Text: "password=[REDACTED] token=[REDACTED] password=[REDACTED]\nAuthorization: Bearer [REDACTED]\n", Count: 4, Categories: []string{"bearer_token", "password", "token"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMarks quotes marks in places where values stand.
func TestMarks(t *testing.T) {
	r := New(Options{})
	for in, want := range map[string]string{
		"password=[REDACTED]hunter2":          "password=[REDACTED]",
		"password=[REDACTED_TOKEN]":           "password=[REDACTED_TOKEN]",
		"password=[REDACTED_HUNTER2]":         "password=[REDACTED]",
		"password=[redacted]":                 "password=[redacted]",
		"[REDACTED_SAS_TOKEN]: 12":            "[REDACTED_SAS_TOKEN]: 12",
		"[REDACTED][REDACTED]":                "[REDACTED][REDACTED]",
		"secret [REDACTED] token [REDACTED].": "secret [REDACTED] token [REDACTED].",
		"password: \"[REDACTED]\", x":         "password: \"[REDACTED]\", x",
	} {
		if got := r.Redact(in).Text; got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	for c := range scan.NumCategories {
		if m := c.Mark(); r.Redact("x "+m+" y "+m+m).Count != 0 || scan.MarkAt(m) != len(m) {
			t.Errorf("the mark %s is not left alone", m)
		}
	}
}

// TestManyKnown has more secrets than one automaton holds.
func TestManyKnown(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(11, 12))}
	var all []string
	for range 900 {
		all = append(all, m.make("R", 0))
	}
	r := New(Options{Known: all})
	for _, s := range all {
		if got := r.Redact("x " + s + " y").Text; got != "x [REDACTED_KNOWN_SECRET] y" {
			t.Fatalf("%q is left: %q", s, got)
		}
	}
}

// TestConcurrent uses one redactor from several goroutines.
func TestConcurrent(t *testing.T) {
	r := New(Options{Known: []string{"process-own-secret"}})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if got := r.Redact("password=hunter2x process-own-secret").Count; got != 2 {
					t.Errorf("%d masks", got)
				}
			}
		})
	}
	wg.Wait()
}

// TestClosed fails inside: there must be no text.
func TestClosed(t *testing.T) {
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a search that is out of time goes on")
			}
		}()
		New(Options{}).find("password=hunter2x", argv.Unknown, time.Now().Add(-time.Second))
	}()
	broken := &Redactor{known: &known{words: []*words.Automaton{nil}}} // panics
	res, err := broken.RedactFor("x", "")
	if !errors.Is(err, ErrInternal) || !cmp.Equal(res, Result{}) {
		t.Errorf("RedactFor = %+v, %v; want nothing and ErrInternal", res, err)
	}
	if got := broken.Redact("x").Text; got != Withheld {
		t.Errorf("Redact = %q, want %q", got, Withheld)
	}
	if !broken.Contains("x") {
		t.Error("a redactor that fails says that there is no credential")
	}
}

func TestCleanThenRedact(t *testing.T) {
	raw := []byte("pass\x1b[31mword\x1b[0m=hunt\x00er2x\xff\r\nnext\r")
	if got, want := New(Options{}).Redact(Clean(raw)).Text, "password=[REDACTED]\nnext\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestKeyAcrossTheCut has a key that begins in what a truncation shows and ends
// in what it leaves out: in either order of the two nothing of it comes out.
func TestKeyAcrossTheCut(t *testing.T) {
	r := New(Options{})
	m := maker{rand.New(rand.NewPCG(13, 14))}
	var body []string
	for range 25 {
		body = append(body, m.from(letters+"+/", 64))
	}
	block := dashes + "BEGIN RSA PRIVATE KEY" + dashes + "\n" + strings.Join(body, "\n") + "\n" + dashes + "END RSA PRIVATE KEY" + dashes + "\n"
	log := strings.Repeat("a line of the log\n", 10) + block + strings.Repeat("more of the log\n", 300)
	first, _ := truncate.Output(r.Redact(log).Text)
	second, _ := truncate.Output(log)
	for name, out := range map[string]string{"redact, truncate, redact": r.Redact(first).Text, "truncate, redact": r.Redact(second).Text} {
		for _, l := range body {
			if strings.Contains(out, l) {
				t.Errorf("%s: left %q in\n%s", name, l, out)
				break
			}
		}
		if !strings.Contains(out, "lines omitted]") {
			t.Errorf("%s: the message is gone from\n%s", name, out)
		}
	}
}

// TestMessageSplit sends a redacted text in pieces, as a chat with a limit
// does: no piece shows more than the whole.
func TestMessageSplit(t *testing.T) {
	r := New(Options{Known: []string{"process-own-secret"}})
	m := maker{rand.New(rand.NewPCG(15, 16))}
	for _, f := range templates {
		for _, tmpl := range f.texts {
			text, secrets := m.fill(strings.TrimPrefix(tmpl, "~"))
			whole := r.Redact(text + " process-own-secret").Text
			k := m.IntN(len(whole))
			for _, part := range []string{whole[:k], whole[k:]} {
				got := r.Redact(part).Text
				for _, s := range append(secrets, "process-own-secret") {
					if strings.Contains(got, s) {
						t.Fatalf("%s: left %q in %q", f.family, s, got)
					}
				}
			}
		}
	}
}
