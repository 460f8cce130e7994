package fields

import (
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
)

// A rule is a trigger word and the method that it calls.
type rule struct {
	word string
	call func(s *Fields, a, b int)
}

var rules = []rule{
	{"stringdata", (*Fields).Data},
	{"data", (*Fields).Data},
	{"kind", (*Fields).Kind},
	{"kubernetes.io/", (*Fields).Kind},
	{"value", (*Fields).ValueField},
	{"keyname", func(s *Fields, _, b int) { s.SecretObject(b) }},
	{".vault.azure.net/secrets/", func(s *Fields, _, b int) { s.SecretObject(b) }},
	{"subscriptionid", (*Fields).Subscription},
	{"=\t", func(s *Fields, a, _ int) { s.Columns(a) }},
	{"\ttrue\t", func(s *Fields, a, _ int) { s.Columns(a) }},
	{":5432:", func(s *Fields, a, _ int) { s.Pgpass(a) }},
	{":*:", func(s *Fields, a, _ int) { s.Pgpass(a) }},
	{`"kty"`, func(s *Fields, _, b int) { s.JWK(b) }},
	{"pass", (*Fields).Label},
	{"pwd", (*Fields).Label},
	{"pw", (*Fields).Label},
	{"secret", (*Fields).Label},
	{"credential", (*Fields).Label},
	{"token", (*Fields).Label},
	{"psk", (*Fields).Label},
	{"key", (*Fields).Label},
	{"community", (*Fields).Label},
	{"auth", (*Fields).Label},
}

// run calls the rules at every place of their words, in order.
func run(text string, printed bool) []scan.Span {
	type hit struct {
		a, b int
		call func(s *Fields, a, b int)
	}
	var hits []hit
	for i := range text {
		for _, r := range rules {
			if shape.HasFold(text[i:], r.word) {
				hits = append(hits, hit{i, i + len(r.word), r.call})
			}
		}
	}
	sort.SliceStable(hits, func(i, j int) bool { return hits[i].b < hits[j].b })
	s := &Fields{Text: &scan.Text{T: text}, Printed: printed}
	for _, h := range hits {
		h.call(s, h.a, h.b)
	}
	s.Secrets()
	return s.Spans
}

// masked is text with ‹ and › around what is masked.
func masked(text string, spans []scan.Span) string {
	sort.Slice(spans, func(i, j int) bool { return spans[i].Start < spans[j].Start })
	var b strings.Builder
	at := 0
	for _, s := range spans {
		if s.Start < at {
			continue
		}
		b.WriteString(text[at:s.Start] + "‹" + text[s.Start:s.End] + "›")
		at = s.End
	}
	return b.String() + text[at:]
}

// check runs a text in which the secrets stand between ‹ and ›.
func check(t *testing.T, want string) {
	t.Helper()
	text := strings.NewReplacer("‹", "", "›", "").Replace(want)
	if diff := cmp.Diff(want, masked(text, run(text, false))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAssigned(t *testing.T) {
	for _, want := range []string{
		"password=‹hunter2›",
		"password=‹hunter2› next",
		"password: ‹hunter2›, x",
		"password := ‹hunter2›",
		"password => ‹hunter2›",
		`"password": "‹hunter two›", "x": 1`,
		`\"password\": \"‹hunter two›\", \"x\": 1`,
		"'password': '‹hunter2›'",
		"[password]=‹hunter2›",
		"password(\"‹hunter2›\")",
		"('password', '‹hunter2x›')",
		"user=a&password=‹hunter2›&x=1",
		"password=‹hunter2›;x=1",
		"password:\n  \"‹hunter2›\"\n",
		"password:\n  ‹hunter2xyz›\n",
		"password: |\n  ‹hunter2\n  and more›\nnext: x\n",
		"passwords:\n  - ‹hunter2x›\n  - ‹hunter3x›\nnext: x\n",
		"tokens: [\"‹hunter2x›\", \"‹hunter3x›\"]",
		"token: Bearer ‹hunter2xyz›",
		"--password ‹hunter2› --next",
		"--password=‹hunter2› --next",
		"--token-file /x",
		"  ~ password = \"‹hunter2›\" -> \"‹hunter3›\"",
		"| password | ‹hunter2› |\n",
		"private key: ‹hunter2›",
		"primary key: hunter2",
		"primary_key: ‹3a3ea7cb57e2792bf6c083367ff724c3›",
		"password policy: hunter2",
		"password: authentication token updated",
		"pass: hunter",
		"password=\nnext=1",
		"password: ${X}",
		"//password:hunter2@h",
		"\"password\"",
		"password",
	} {
		check(t, want)
	}
}

func TestSpaced(t *testing.T) {
	for _, want := range []string{
		"requirepass ‹hunter›\n",
		"password 7 ‹0049C1D2›\n",
		"enable secret 5 ‹hunter2›\n",
		"username bob password 0 ‹harbor› x\n",
		"neighbor 10.0.0.1 password ‹h4rbor›\n",
		"password \"‹hunter›\";\n",
		"PASS ‹hunter›\n",
		"the password is ‹hunter2xyz› now\n",
		"the password is wrong\n",
		"password for bob is ‹hunter2xyz›\n",
		"credentials bob:‹hunter2xyz›\n",
		"password expired yesterday\n",
		"pass hunter2xyz\n",
		"token bucket filter\n",
		"key exchange: x\n",
		"man5/passwd.5 man5/proc1.5\n",
		"masterSecret []byte\n",
		"psk x = 1\n",
		"secret\n",
	} {
		check(t, want)
	}
}

func TestNamed(t *testing.T) {
	for _, want := range []string{
		`{"name": "DB_PASSWORD", "value": "‹hunter›"}`,
		`{"value": "‹hunter›", "name": "DB_PASSWORD"}`,
		`{"name": "DB_PASSWORD", "slot": false, "value": "‹hunter›"}, {"name": "X", "value": "hunter"}`,
		`{"name": "X", "value": "hunter"}`,
		`{"name": "DB_PASSWORD"}, {"value": "hunter"}`,
		`{"db_password": {"type": "string", "value": "‹hunter›"}}`,
		"- name: DB_PASSWORD\n  value: ‹hunter›\n- name: X\n  value: y\n",
		"- name: DB_PASSWORD\n- value: y\n",
		`{"keyName": "k", "value": "‹hunter›"}`,
		`{"id": "https://k.vault.azure.net/secrets/x/1", "value": "‹hunter›"}`,
		`<add key="ApiKey" value="‹hunter›"/>`,
		`<add key="ApiKey"/><add value="hunter"/>`,
		`<param name="password">‹hunter›</param>`,
		"<setting name=\"apiKey\"><value>‹hunter›</value></setting>",
		`{"functionKeys": {"default": "‹3a3ea7cb57e2792bf6c083367ff724c3›", "short": "x"}}`,
		`{"subscriptionId": "‹6f1c2a9e-1f53-4c0a-9c1b-1f6a2b3c4d5e›"}`,
		`{"subscriptionId": "none"}`,
		`/subscriptions/6f1c2a9e-1f53-4c0a-9c1b-1f6a2b3c4d5e/x`,
	} {
		check(t, want)
	}
}

func TestPrinted(t *testing.T) {
	const text = `{"value": "hunter"}`
	for printed, want := range map[bool]int{true: 1, false: 0} {
		if got := run(text, printed); len(got) != want {
			t.Errorf("printed %v: %d masks, want %d", printed, len(got), want)
		}
	}
}

func TestElements(t *testing.T) {
	for _, want := range []string{
		"<password>‹hunter›</password>",
		"<a:Password Type=\"x\">‹hunter›</a:Password>",
		"<password>\n‹  hunter\n›</password>",
		"<password></password>",
		"<password/>",
		"<password><![CDATA[‹hun<ter›]]></password>",
		"<pre-shared-key><key>‹hunter›</key></pre-shared-key>",
		"<key>password</key>\n<string>‹hunter›</string>",
		"mysql -p <password> -h <host>",
		"https://<user>:<password>@h",
		"<PasswordPolicy>hunter2</PasswordPolicy>",
		"<password>‹hunter2xyz›",
	} {
		check(t, strings.Replace(want, "\n‹  ", "‹\n  ", 1))
	}
}

func TestKubernetes(t *testing.T) {
	for _, want := range []string{
		"kind: Secret\ndata:\n  a: ‹eA==›\n  b: ‹eQ==›\nmetadata:\n  name: x\n",
		"data:\n  a: ‹eA==›\nkind: Secret\n",
		"kind: ConfigMap\ndata:\n  a: plain\n",
		"kind: Secret\n---\nkind: ConfigMap\ndata:\n  a: plain\n",
		"data:\n  a: |\n    ‹one\n    two›\n  b: \"\"\nkind: Secret\n",
		`{"kind": "Secret", "data": {"a": "‹eA==›", "b": "‹eQ==›"}, "x": "y"}`,
		`{"data": {"a": "‹eA==›"}, "kind": "Secret"}`,
		"stringData:\n  a: ‹plain›\ntype: kubernetes.io/tls\n",
		"type: kubernetes.io/ingress\ndata:\n  a: plain\n",
	} {
		check(t, want)
	}
}

func TestTables(t *testing.T) {
	for _, want := range []string{
		"NAME  PASSWORD  ROLE\nbob   ‹hunter2›   admin\nann   ‹hunter3›   user\n\nbob  free  text\n",
		"Name  Value\n----  -----\nDB_PASSWORD  ‹hunter›\nX  plain\n",
		"KeyName  Value\nk1  ‹hunter›\n",
		"user,password\nbob,‹hunter›\n",
		"a,b\nuser,password\nbob,hunter\n", // one more row
		"user\tpassword\tshell\nbob\t‹hunter›\t/bin/sh\n",
		"| user | password |\n|------|------|\n| bob | ‹hunter› |\n",
		" user | password \n------+------\n bob | ‹hunter›\n",
		"+---+---+\n| a | password |\n+---+---+\n| b | ‹hunter› |\n+---+---+\n",
		"Token\n-----\n‹hunter›\n",
		"Token\nhunter\n",
		"\tpassword\tstring\n\tuser\tstring\n",
		"in a sentence, with a password, and more words\nnext, line, here\n",
		"NAME  TOKENS\nbob   4096\n",
		"NAME  PASSWORD\nbob   <none>\n",
		"PASSWORD  NAME\n",
	} {
		check(t, want)
	}
}

func TestFiles(t *testing.T) {
	key := strings.Repeat("aB3/", 10) + "aB3="
	for _, want := range []string{
		"wg0\t‹" + key + "›\t" + key + "\t51820\toff\n",
		"wg0\t" + key + "\t‹" + key + "›\t203.0.113.9:1\t10.0.0.1/32\t1\t2\t3\toff\n",
		"wg0\t" + key + "\t1736950000\n",
		"‹" + key + "›\t" + key + "\t51820\toff\n",
		".h\tTRUE\t/\tFALSE\t0\tsid\t‹hunter2xyz›\n",
		"a\tTRUE\tb\n",
		"h:5432:d:u:‹hunter›\n",
		"*:*:*:u:‹hunter›\n",
		"h:5432:d:u\n",
		"time 10:*:20 and:more:words:x\n",
		`{"kty":"RSA","n":"abcdefghijklmnop1234","d":"‹abcdefghijklmnop1234›"}`,
		`{"kty":"RSA","n":"abcdefghijklmnop1234"},{"d":"abcdefghijklmnop1234"}`,
	} {
		check(t, want)
	}
}

func TestSkipTo(t *testing.T) {
	text := "password=hunter2"
	s := &Fields{Text: &scan.Text{T: text}}
	s.SkipTo(8)
	s.Label(0, 4)
	if len(s.Spans) != 0 {
		t.Error("a label that was skipped is looked at")
	}
}

// FuzzFields looks for places that no rule may reach.
func FuzzFields(f *testing.F) {
	for _, s := range []string{"password", "\"name\":\"key1\",\"value\":", "kind: Secret\ndata:", "NAME  PASSWORD\n", "<password>", "password: |\n", "\"kty\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		for _, s := range run(text, len(text)%2 == 0) {
			if s.Start < 0 || s.End > len(text) || s.Start >= s.End {
				t.Errorf("[%d:%d] of %d bytes", s.Start, s.End, len(text))
			}
		}
	})
}
