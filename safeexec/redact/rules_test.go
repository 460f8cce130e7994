package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/safeexec/redact/scan"
)

var anyMark = regexp.MustCompile(`\[REDACTED(?:_[A-Z_]+)?\]`)

// exact redacts texts in which the secrets stand between ‹ and ›, and wants
// marks in the place of these and of nothing else.
func exact(t *testing.T, texts []string) {
	t.Helper()
	r := New(Options{})
	between := regexp.MustCompile(`(?s)‹.*?›`)
	for _, want := range texts {
		text := strings.NewReplacer("‹", "", "›", "").Replace(want)
		got := anyMark.ReplaceAllString(r.Redact(text).Text, "§")
		if diff := cmp.Diff(anyMark.ReplaceAllString(between.ReplaceAllString(want, "§"), "§"), got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

const (
	opaque = "kJ8sd7fH2kd93jsK2lsd83HdkE92"
	hex40  = "0123456789abcdef0123456789abcdef01234567"
)

func TestAuthorization(t *testing.T) {
	exact(t, []string{
		"Authorization: Bearer ‹" + opaque + "›\n",
		"Authorization: Bearer ‹" + opaque + "› host=10.0.0.5\n",
		"Authorization: Basic ‹dXNlcjpwYXNz›\n",
		"Authorization: token ‹" + opaque + "›\n",
		"Authorization: ‹" + opaque + "›\n",
		"Authorization: Digest ‹username=\"u\", realm=\"r\", response=\"" + hex40 + "\"›\nHost: h\n",
		"Authorization: AWS4-HMAC-SHA256 ‹Credential=x/y, SignedHeaders=host, Signature=" + hex40 + "›\n",
		"-H 'Authorization: Digest ‹username=\"u\", response=\"x1y2\"›' https://h\n",
		"\"Authorization\": \"Bearer ‹" + opaque + "›\", \"x\": 1",
		"\"Authorization\": [\"Bearer ‹" + opaque + "›\"]",
		"(\"Authorization\", \"Bearer ‹" + opaque + "›\")",
		"proxy_set_header Authorization \"Bearer ‹" + opaque + "›\";\n",
		"Proxy-Authorization: Basic ‹dXNlcjpwYXNz›\n",
		"x-ms-client-principal: ‹" + opaque + "›\n",
		"Authorization=Bearer%20‹" + opaque + "›&x=1\n",
		"Authorization: Bearer [REDACTED]\n",
		"Authorization: none\n",
		"Authorization: <token>\n",
		"Authorization: $TOKEN\n",
		"Authorization, Content-Type\n",
		"Access-Control-Allow-Headers: Authorization, X-Api-Key\n",
		"authorization failed\n",
		"authorization: denied\n",
		"authorization_endpoint: https://h/authorize\n",
	})
}

func TestBearer(t *testing.T) {
	exact(t, []string{
		"Bearer ‹" + opaque + "›",
		"bearer ‹" + opaque + "›, next",
		"Bearer: ‹" + opaque + "›",
		"Bearer%20‹" + opaque + "›",
		"Bearer ‹ab1›, Bearer ‹cd2›",
		"Bearer token expired",
		"Bearer realm=\"x\"",
		"Bearer error=\"invalid_token\"",
		"Bearer authorization_uri=\"https://h\"",
		"bearer of good news",
		"the bearer channel is up",
		"token_type=bearer&expires_in=3600",
		"forbearer " + opaque,
		"Bearer",
		"Bearer ",
		"Bearer [REDACTED]",
	})
}

func TestCookies(t *testing.T) {
	exact(t, []string{
		"Cookie: sid=‹abcd1234›; theme=‹dark-blue›\n",
		"Set-Cookie: sid=‹abcd1234›; Path=/; Secure\n",
		"set-cookie: sid=‹abcd1234›; expires=Wed, 15 Jan 2025 14:32:00 GMT\r\n",
		"-H 'Cookie: sid=‹abcd1234›' https://h\n",
		"{\"cookie\": [\"sid=‹abcd1234›\"]}",
		"--cookie \"sid=‹abcd1234›\" https://h\n",
		"document.cookie = \"sid=‹abcd1234›\"\n",
		"cookie=0x1234567890abcdef, duration=12s\n",
		"; COOKIE: 0123456789abcdef (good)\n",
		"cookie policy: strict\n",
		"Cookie: none\n",
		"Cookie: n=12\n",
		"SYN cookies: 12\n",
	})
}

func TestParams(t *testing.T) {
	exact(t, []string{
		"?sv=1&sig=‹abcdef›&sr=b",
		"https://h/x?sig=‹abc%2Fdef›\n",
		"sv=1&sr=c&sig=‹FK/H+3FM6SikobNWmxYDOdc=›\n",
		"?code=‹" + opaque + "›&state=x",
		"?code=200&x=1",
		"?sid=12",
		"?auth=‹" + opaque + "›",
		"&signature=none",
		"#access_token=‹" + opaque + "›&type=x",
		"X-Amz-Signature=x&X-Amz-Signature=‹" + hex40 + "›",
		"sig=11\n",
		"sig=$SIG\n",
		";jsessionid=‹0A1B2C3D4E5F6071›?x=1\n",
		"code_verifier=‹" + opaque + "›\n",
		"?sig=[REDACTED_SAS_TOKEN]&x=1",
	})
}

func TestURLs(t *testing.T) {
	exact(t, []string{
		"https://u:‹hunter2›@h/x\n",
		"https://u:‹hunter2›@h:8443/x@y\n",
		"redis://:‹hunter2›@h:6379\n",
		"mongodb://u:‹hunter2›@a:1,b:2/x\n",
		"postgres://u:‹p/ss#w?rd›@h/x\n",
		"https://‹" + opaque + "›@h/x\n",
		"https://user@h/x\n",
		"https://h:443/a@b\n",
		"https://h/a:b@c\n",
		"https://u:$PASS@h/x\n",
		"https://u:${PASS}@h/x\n",
		"https://u:***@h/x\n",
		"https://u:[REDACTED]@h/x\n",
		"://u:hunter2@h\n",
		"git@h:x/y.git\n",
		"jdbc:oracle:thin:u/‹hunter2›@//h:1521/x\n",
		"jdbc:oracle:thin:@h:1521:x\n",
		"u:‹hunter2›@tcp(h:3306)/x\n",
		"dsn=u:‹hunter2›@unix(/x)/y\n",
		"@tcp(h)\n",
		"new PDO('mysql:host=h', 'u', '‹hunter2›')\n",
		"new PDO($dsn, $u, $p)\n",
		"https://hooks.slack.com/services/‹T0/B0/" + opaque + "›\n",
		"https://hooks.slack.com/\n",
		"https://api.telegram.org/bot‹1234567890:AA" + opaque + "abc12›/getMe\n",
		"https://x.webhook.office.com/webhookb2/‹" + opaque + "/y›\n",
	})
}

func TestEncodedTexts(t *testing.T) {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	exact(t, []string{
		"data ‹" + b64("password=hunter2x and more") + "› end\n",
		"data ‹" + b64("user:Hunter2xyz") + "› end\n",
		"data ‹" + b64("\x00user\x00Hunter2xyz") + "› end\n",
		"data ‹" + b64(b64("password=hunter2x and more")) + "› end\n",
		"data " + b64("just a few plain words") + " end\n",
		"data " + b64("region:westeurope") + " end\n",
		"data " + b64("\x01\x02\x03binary\xff\xfe and so on") + " end\n",
		"{\"a\": \"x\\u0026password\\u003d‹hunter2x›\\u0026y\"}",
		"q=password%3D‹hunter2x›%26y\n",
		"q=password%253D‹hunter2x›%2526y\n",
		"&quot;password&quot;: &quot;‹hunter2x›&quot;\n",
		"--password \\\n  ‹hunter2x› \\\n  --next\n",
		"‹O" + "DkyMzQ1Njc4OTAxMjM0NTY3.G-vlJS." + opaque + "›\n",
	})
}

func TestCutTexts(t *testing.T) {
	exact(t, []string{
		"password=‹hunter2x›[truncated: 3 lines omitted]\n",
		"x ‹" + opaque + "›... [output truncated]\n",
		"[truncated: 3 lines omitted]\n‹" + opaque + "›\", x\n",
		"‹" + opaque + "›\n[...]\n‹" + opaque + "›\n",
		"da39a3ee5e6b4b0d3255bfef95601890afd80709\n[truncated: 3 lines omitted]\n",
		"virtualNetworkGatewayConnection\n[truncated: 3 lines omitted]\n",
		"[truncated: 3 lines omitted]\nwords follow\n",
		"truncated " + opaque + "\n",
	})
}

func TestShapesInText(t *testing.T) {
	exact(t, []string{
		"key ‹" + strings.Repeat("aB3/", 21) + "aB==› end",
		"IDENTIFIED BY PASSWORD '‹*0123456789ABCDEF0123456789ABCDEF01234567›'",
		"x *0123456789abcdef0123456789abcdef01234567 y",
		"bob:500:‹" + hex40[:32] + ":" + hex40[:32] + "›:::",
		"::: " + hex40,
		"x ‹AK" + "IA0123456789ABCDEF› y",
		"x ‹AK" + "IA0123456789ABCDEF›:‹" + strings.Repeat("aB3/", 10) + "› y",
		"x AK" + "IA y",
	})
}

func TestEcho(t *testing.T) {
	exact(t, []string{
		"$ az keyvault secret show --name x\n{\"value\": \"‹plain›\"}\n",
		"$ az vm show --name x\n{\"value\": \"plain\"}\n",
	})
}

func TestRandomWordsAfterASecretCommand(t *testing.T) {
	r := New(Options{})
	const text = "one\ttwo\nthree\t" + opaque + "\n/subscriptions/x\nplain-words-of-a-name\n"
	res, err := r.RedactFor(text, "az storage account keys list -o tsv")
	if err != nil || strings.Contains(res.Text, opaque) || !strings.Contains(res.Text, "/subscriptions/x\nplain-words-of-a-name\n") {
		t.Errorf("%q, %v", res.Text, err)
	}
	if res, _ := r.RedactFor(text, "az vm list -o tsv"); res.Text != text {
		t.Errorf("after a command that prints no secrets: %q", res.Text)
	}
}

func TestMerge(t *testing.T) {
	sp := func(a, b int, c scan.Category) scan.Span { return scan.Span{Start: a, End: b, Cat: c} }
	tests := []struct {
		name, text string
		in, want   []scan.Span
	}{
		{"nothing", "abc", nil, nil},
		{"in order", "abcdef", []scan.Span{sp(4, 5, 1), sp(0, 1, 2)}, []scan.Span{sp(0, 1, 2), sp(4, 5, 1)}},
		{"overlapping, the more exact one names it", "abcdef", []scan.Span{sp(0, 3, scan.Password), sp(2, 5, scan.Bearer)}, []scan.Span{sp(0, 5, scan.Bearer)}},
		{"touching", "abcdef", []scan.Span{sp(0, 3, 2), sp(3, 5, 2)}, []scan.Span{sp(0, 5, 2)}},
		{"inside", "abcdef", []scan.Span{sp(0, 5, 2), sp(1, 2, 3)}, []scan.Span{sp(0, 5, 2)}},
		{"half a character", "aébc", []scan.Span{sp(2, 4, 2)}, []scan.Span{sp(1, 4, 2)}},
		{"to half a character", "abéc", []scan.Span{sp(0, 3, 2)}, []scan.Span{sp(0, 4, 2)}},
		{"a mark only", "a [REDACTED] b", []scan.Span{sp(2, 12, 2)}, nil},
		{"a part of a mark", "a [REDACTED] b", []scan.Span{sp(5, 8, 2)}, nil},
		{"a mark and more", "a [REDACTED]x b", []scan.Span{sp(5, 13, 2)}, []scan.Span{sp(2, 13, 2)}},
		{"two marks", "[REDACTED][REDACTED]", []scan.Span{sp(0, 20, 2)}, nil},
	}
	for _, tt := range tests {
		got := merge(tt.text, append([]scan.Span{}, tt.in...))
		if len(got) == 0 && len(tt.want) == 0 {
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestCoarse(t *testing.T) {
	const text = "one\ntwo x three\nfour\n"
	at := []scan.Span{{Start: 8, End: 9, Cat: scan.Password}}
	for round, want := range map[int]string{0: "x", lineRound - 1: "x", lineRound: "two x three", restRound: "x three\nfour\n", restRound + 3: "x three\nfour\n"} {
		got := coarse(text, append([]scan.Span{}, at...), round)
		if len(got) != 1 || text[got[0].Start:got[0].End] != want {
			t.Errorf("round %d masks %+v, want %q", round, got, want)
		}
	}
	if got := coarse(text, nil, restRound); got != nil {
		t.Errorf("nothing became %+v", got)
	}
}

func TestBudget(t *testing.T) {
	if budget(0) < time.Second || budget(64<<20) < 60*time.Second {
		t.Errorf("budgets of %v and %v are too small for a slow machine", budget(0), budget(64<<20))
	}
}

func TestTriggers(t *testing.T) {
	sum := 0
	for _, tr := range triggers {
		if tr.word == "" || strings.ToLower(tr.word) != tr.word {
			t.Errorf("the trigger %q is empty or not in lower case", tr.word)
		}
		sum += len(tr.word)
	}
	if sum > 30_000 {
		t.Errorf("the triggers have %d bytes: too many for one automaton", sum)
	}
}

func TestPrintedAlone(t *testing.T) {
	r := New(Options{})
	for _, tt := range [][2]string{
		{"az network vpn-connection shared-key show -o tsv", "‹HarborLumen12›\n"},
		{"az network vpn-connection shared-key show --query value", "\"‹HarborLumen12›\"\n"},
		{"az network vpn-connection shared-key show -o table", "Value\n-------------\n‹HarborLumen12›\n"},
		{"az network vpn-connection shared-key show -o tsv", "ERROR: (ResourceNotFound) The Resource 'c' under resource group 'rg' was not found.\n"},
		{"az keyvault secret show -n x --query id -o tsv", "https://kv.example.com/secrets/x/0123\n"},
		{"az cognitiveservices account keys list -o tsv", "‹18b3c1f00a9e4d7c8f6a5b4c3d2e1f00›\t‹28b3c1f00a9e4d7c8f6a5b4c3d2e1f01›\n"},
		{"az storage account keys list -o json", "[{\"creationTime\": \"2024-11-02T09:14:03+00:00\", \"permissions\": \"FULL\"}]\n"},
		{"kubectl -n prod get secret db -o jsonpath={.data.pw}", "‹aGFyYm9y›"},
		{"kubectl -n prod get secret", "NAME   TYPE     DATA   AGE\ndb-x   Opaque   2      3d\n"},
		{"wg show wg0 preshared-keys", "99kefd69a9jO6cd4mjz71BFEszjlkIy08OpSJFcULGw=\t(none)\n"},
		{"redis-cli config get *", "1) \"maxmemory\"\n2) \"100mb\"\n3) \"requirepass\"\n4) \"‹harborlumen›\"\n"},
		{"nmcli -s -g 802-11-wireless-security.psk con show corp", "‹harborlumen›\n"},
		{"pass show db/prod", "‹harborlumen›\nuser: bob\n"},
		{"gcloud secrets versions access latest --secret=db", "‹amber harbor lumen quartz›\n"},
		{"kubeadm token list", "TOKEN                     TTL   EXPIRES\n‹abc123.9f8e7d6c5b4a3f2e›   23h   2025-01-16T14:32:00Z\n"},
		{"vault read -field=password secret/x", "[truncated: 3 lines omitted]\n"},
	} {
		text := strings.NewReplacer("‹", "", "›", "").Replace(tt[1])
		want := text
		for strings.Contains(tt[1], "‹") {
			before, rest, _ := strings.Cut(tt[1], "‹")
			_, after, _ := strings.Cut(rest, "›")
			tt[1] = before + "[REDACTED]" + after
			want = tt[1]
		}
		if res, err := r.RedactFor(text, tt[0]); err != nil || res.Text != want {
			t.Errorf("after %s: %q, %v; want %q", tt[0], res.Text, err, want)
		}
	}
}

// TestArgumentLists has flags and their values as the words of a list.
func TestArgumentLists(t *testing.T) {
	exact(t, []string{
		"args:\n- --password\n- ‹harbor›\n- --port=1\n",
		"args:\n  - \"--token\"\n  - \"‹harborlumen›\"\n",
		"args:\n- --password\n- --verbose\n",
		"a0=\"x\" a1=\"--password\" a2=\"‹harbor›\" a3=\"y\"\n",
		"[\"x\", \"--password\", \"‹harbor›\"]\n",
		"type=PROCTITLE msg=audit(1.1:9): proctitle=‹6D7973716C002D75726F6F74002D70486172626F723132006462›\n",
		"type=PROCTITLE msg=audit(1.1:9): proctitle=6C73002D6C61002F7661722F6C6F67\n",
		"mysql -p‹S4SLhpkTXTz1kPW› orders\n",
		"mysql -p‹HarborToken› orders\n",
	})
}
