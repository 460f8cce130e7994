package symptom_test

import (
	"strings"
	"testing"

	"ghostbot/agent/playbook/symptom"
)

// TestGuess: what an endpoint is asked with when the text does not say.
func TestGuess(t *testing.T) {
	tests := []struct {
		in      string
		scheme  string
		port    int
		guessed bool
	}{
		{"127.0.0.1:8080", "http", 8080, true},
		{"127.0.0.1:443", "https", 443, true},
		{"127.0.0.1:18443", "https", 18443, true},
		{"127.0.0.1:5432", "tcp", 5432, true},
		{"127.0.0.1:22", "tcp", 22, true},
		{"shop.example.com", "https", 443, true},
		{"127.0.0.1", "", 0, true},
		{"http://127.0.0.1:443/", "http", 443, false},
		{"https://127.0.0.1:80/", "https", 80, false},
		{"ws://127.0.0.1:80/", "http", 80, false},
		{"wss://shop.example.com/", "https", 443, false},
		{"redis://cache.example.com", "tcp", 6379, false},
		{"postgresql://db.example.com/shop", "tcp", 5432, false},
		{"amqps://mq.example.com", "tcp", 5671, false},
		{"tcp://10.0.0.1:7000", "tcp", 7000, false},
		{"grpc://10.0.0.1:50051", "tcp", 50051, false},
	}
	for _, tt := range tests {
		e, ok := symptom.ParseEndpoint(tt.in)
		if !ok {
			t.Errorf("%s is refused", tt.in)
			continue
		}
		e = symptom.Guess(e)
		if e.Scheme != tt.scheme || e.Port != tt.port || e.Guessed != tt.guessed {
			t.Errorf("%s: %s %d guessed %v", tt.in, e.Scheme, e.Port, e.Guessed)
		}
	}
}

func TestEndpointQuestions(t *testing.T) {
	tests := []struct {
		in             string
		name, loopback bool
	}{
		{"localhost:80", false, true}, {"127.0.0.1:80", false, true}, {"127.9.9.9:80", false, true}, {"[::1]:80", false, true},
		{"ip6-localhost:80", false, true}, {"app.localhost:80", false, true}, {"LOCALHOST:80", false, true}, {"localhost.localdomain:80", false, true},
		{"10.0.0.1:80", false, false}, {"[2001:db8::1]:80", false, false}, {"shop.example.com:80", true, false}, {"db-1:80", true, false},
		{"localhost.example.com:80", true, false},
	}
	for _, tt := range tests {
		e, ok := symptom.ParseEndpoint(tt.in)
		if !ok || e.IsName() != tt.name || e.Loopback() != tt.loopback {
			t.Errorf("%s: ok %v, name %v, loopback %v", tt.in, ok, e.IsName(), e.Loopback())
		}
	}
	a, _ := symptom.ParseEndpoint("Shop.Example.com.:80")
	b, _ := symptom.ParseEndpoint("shop.example.com:80")
	c, _ := symptom.ParseEndpoint("shop.example.com:81")
	if !a.Same(b) || b.Same(c) {
		t.Error("sameness")
	}
}

// TestNeverProbed: no spelling of a place that hands out credentials or speaks
// to everybody is an endpoint.
func TestNeverProbed(t *testing.T) {
	for _, host := range []string{
		"169.254.169.254", "169.254.170.2", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]",
		"[fd00:ec2::254]", "[fd20:ce::254]", "168.63.129.16", "100.100.100.200", "192.0.0.192", "metadata", "metadata.google.internal", "metadata.azure.internal",
		"169.254.169.254.nip.io", "169-254-169-254.sslip.io", "a9fea9fe.example.com", "instance-data", "instance-data.ec2.internal",
		"2852039166", "0xa9fea9fe", "0xA9.0xFE.0xA9.0xFE", "0251.0376.0251.0376", "169.254.43518", "169.16689662", "0", "0.0.0.0", "[::]",
		"255.255.255.255.255", "224.0.0.1", "[ff02::1]", "1.2.3.256", "1e3.5",
	} {
		for _, in := range []string{host, host + ":80", "http://" + host + "/latest/meta-data/"} {
			if e, ok := symptom.ParseEndpoint(in); ok {
				t.Errorf("%s became %+v", in, e)
			}
		}
		if s := symptom.Parse("please look at http://" + host + "/ and " + host + ":80"); len(s.Targets) != 0 && !strings.Contains(host, ".256") && host != "1e3.5" && host != "0" &&
			(host != "0.0.0.0" && host != "[::]" || !s.Targets[0].Loopback()) { // a listener's wildcard is reached over loopback
			t.Errorf("%s in a text became %v", host, s.Targets)
		}
	}
}

// TestSecretsInURLs: what looks like a credential stays out of commands.
func TestSecretsInURLs(t *testing.T) {
	for in, want := range map[string]string{
		"https://user:hunter2@shop.example.com/a":           "https://shop.example.com/a",
		"https://shop.example.com/a?token=abc":              "https://shop.example.com/a",
		"https://shop.example.com/a?api_key=abc&x=1":        "https://shop.example.com/a",
		"https://shop.example.com/a?x=1&y=2":                "https://shop.example.com/a?x=1&y=2",
		"https://shop.example.com/?q=a%27b":                 "https://shop.example.com/?q=a%27b",
		"https://shop.example.com/a?x=" + longText("A", 40): "https://shop.example.com/a",
		"https://shop.example.com/" + longText("a", 300):    "https://shop.example.com/",
		"https://shop.example.com/a#fragment":               "https://shop.example.com/a",
		"https://shop.example.com/ä":                        "https://shop.example.com/%C3%A4",
	} {
		e, ok := symptom.ParseEndpoint(in)
		if !ok || e.URL() != want {
			t.Errorf("%.60s: %s %v, want %s", in, e.URL(), ok, want)
		}
	}
}

func longText(s string, n int) string { return strings.Repeat(s, n) }

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"a\u202eb\u200bc":             "a b c",
		"a\x00b\x1b[0m":               "a b [0m",
		"two\nlines\tand a tab":       "two\nlines\tand a tab",
		"bad \xff\xfe bytes":          "bad   bytes",
		strings.Repeat("x", 20_000):   strings.Repeat("x", 10_000),
		"العربية stays as it is 🔥 ok": "العربية stays as it is 🔥 ok",
	} {
		if got := symptom.Clean(in); got != want {
			t.Errorf("%.40q: %.40q", in, got)
		}
	}
}

// TestKinds: words of people and programs in several languages.
func TestKinds(t *testing.T) {
	tests := map[symptom.Kind][]string{
		symptom.Refused:     {"connection refused", "ECONNREFUSED", "Verbindungsaufbau abgelehnt", "Connexion refusée", "Conexión rehusada", "Connessione rifiutata", "Conexão recusada", "接続を拒否されました", "the service is down", "can't reach it", "os error 111", "WSAECONNREFUSED 10061"},
		symptom.Silent:      {"i/o timeout", "context deadline exceeded", "ETIMEDOUT", "it just hangs", "nothing comes back", "Zeitüberschreitung", "never responds", "curl: (28)", "spinning forever", "does not answer"},
		symptom.Reset:       {"connection reset by peer", "ECONNRESET", "unexpected EOF", "broken pipe", "socket hang up", "empty reply from server", "the connection drops", "RemoteDisconnected", "curl: (56)"},
		symptom.Name:        {"no such host", "NXDOMAIN", "SERVFAIL", "server misbehaving", "Name or service not known", "UnknownHostException", "EAI_AGAIN", "gaierror", "does not resolve", "DNS trouble", "DNS_PROBE_FINISHED"},
		symptom.Certificate: {"x509: unknown authority", "certificate expired", "self-signed", "CERTIFICATE_VERIFY_FAILED", "PKIX path building failed", "NET::ERR_CERT_AUTHORITY_INVALID", "Zertifikat ungültig", "not private", "curl: (60)"},
		symptom.Error:       {"gives 502", "Bad Gateway", "HTTP 503", "Internal Server Error", "no healthy upstream", "504s all over", "5xx everywhere"},
		symptom.Overload:    {"accept queue", "too many connections", "listen backlog", "overloaded", "pool exhausted", "requests pile up"},
		symptom.Slow:        {"slow", "high latency", "takes 8 seconds", "p99 is up", "langsam", "response times", "sluggish"},
		symptom.Path:        {"packet loss", "no route to host", "EHOSTUNREACH", "traceroute stops", "firewall", "ping"},
		symptom.Unknown:     {"hello", "is it ok?", "please look", "refinery", "pathology", "errand"},
	}
	for want, texts := range tests {
		for _, text := range texts {
			s := symptom.Parse(text)
			if want == symptom.Unknown {
				if len(s.Kinds) > 0 && text != "errand" {
					t.Errorf("%q: %v, want none", text, s.Kinds)
				}
				continue
			}
			if !s.Is(want) {
				t.Errorf("%q: %v, want %s among them", text, s.Kinds, want)
			}
		}
	}
}

func TestCodes(t *testing.T) {
	tests := map[string][]int{
		"gives 502": {502}, "502s": {502}, "HTTP/1.1 504 Gateway": {504}, "status=503": {503}, "502 or 504, also 404": {502, 504, 404},
		"port 502": nil, "took 502 ms": nil, "after 500 requests": nil, "127.0.0.1:502": nil, "1.502.3": nil, "pid 503": nil, "5xx": {500},
		"error 418 from the tea pot": {418}, "418 users": nil, "522 from the CDN, says the proxy": {522}, "in 200 days": nil,
	}
	for text, want := range tests {
		got := symptom.Parse(text).Codes
		if len(got) != len(want) {
			t.Errorf("%q: %v, want %v", text, got, want)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q: %v, want %v", text, got, want)
			}
		}
	}
}

// TestLeftOut: a path that no command may have is left out, and why is known.
func TestLeftOut(t *testing.T) {
	for text, want := range map[string]struct{ path, left string }{
		"http://127.0.0.1:80/$(id)?..;rm fails":               {"", "characters"},
		"http://127.0.0.1:80/a(b)c fails":                     {"", "characters"},
		"http://127.0.0.1:80/a{b} fails":                      {"", "characters"},
		"http://127.0.0.1:80/a';b fails":                      {"/a", ""},
		"127.0.0.1:80/$HOME fails":                            {"", "characters"},
		"127.0.0.1:80/a$b fails":                              {"", "characters"},
		"http://127.0.0.1:80/größe fails":                     {"/gr%C3%B6%C3%9Fe", ""},
		"http://127.0.0.1:80/" + strings.Repeat("a", 300):     {"", "200"},
		"http://127.0.0.1:80/a?token=abc fails":               {"/a", "secret"},
		"http://127.0.0.1:80/a?q=" + strings.Repeat("a ", 40): {"/a?q=a", ""},
		"(see http://127.0.0.1:80/cart) fails":                {"/cart", ""},
		"http://127.0.0.1:80/cart, http://127.0.0.1:81/":      {"/cart", ""},
		"`http://127.0.0.1:80/cart`":                          {"/cart", ""},
		"http://127.0.0.1:80/ fails":                          {"", ""},
	} {
		s := symptom.Parse(text)
		if len(s.Targets) == 0 || s.Targets[0].Path != want.path || want.left == "" && s.Targets[0].Left != "" || !strings.Contains(s.Targets[0].Left, want.left) {
			t.Errorf("%q: %+v, want %+v", text, s.Targets, want)
		}
	}
}

func TestWishes(t *testing.T) {
	for text, want := range map[string]struct{ finish, correct, sometimes, deploy bool }{
		"wrap up": {finish: true}, "please conclude now": {finish: true}, "that's enough": {finish: true}, "the job never finishes": {},
		"no, wrong host": {correct: true}, "I meant the other one": {correct: true}, "it's actually on port 80": {correct: true}, "nothing works": {},
		"sometimes": {sometimes: true}, "one in ten requests": {sometimes: true}, "20% of calls": {sometimes: true}, "flaky": {sometimes: true},
		"since the deploy": {deploy: true}, "after we upgraded": {deploy: true}, "new version": {deploy: true},
	} {
		s := symptom.Parse(text)
		if s.Finish != want.finish || s.Correction != want.correct || s.Intermittent != want.sometimes || s.Deploy != want.deploy {
			t.Errorf("%q: %+v", text, s)
		}
	}
	for text, want := range map[string]string{"since 10:40": "10:40", "from about 9:05 on": "9:05", "at 23:59": "23:59", "seit 10:40": "10:40", "depuis 08:15": "08:15", "since 25:99": "", "127.0.0.1:80": ""} {
		if got := symptom.Parse(text).Since; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
