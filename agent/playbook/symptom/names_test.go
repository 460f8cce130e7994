package symptom_test

import (
	"testing"

	"ghostbot/agent/playbook/symptom"
)

// TestNamesLikeCode: a first label that is a word of programs does not make a name a
// class or a version.
func TestNamesLikeCode(t *testing.T) {
	for text, want := range map[string]string{
		"v6.example.com:8080 is slow":            "v6.example.com:8080",
		"node.example.com:3000 refuses":          "node.example.com:3000",
		"java.shop.example.com does not resolve": "java.shop.example.com",
		"python3.lab.test:80 hangs":              "python3.lab.test:80",
		"x509: certificate is valid for parked.example.net, www.parked.example.net, not shop.example.com":                                  "shop.example.com:443",
		"the certificate is for parked.example.net instead of shop.example.com":                                                            "shop.example.com:443",
		"hostname 'shop.example.com' doesn't match either of 'parked.example.net', 'www.parked.example.net'":                               "shop.example.com",
		"Hostname/IP does not match certificate's altnames: Host: shop.example.com. is not in the cert's altnames: DNS:parked.example.net": "shop.example.com:443",
		"certificate is valid for 1 more day on shop.example.com":                                                                          "shop.example.com:443",
		"the certificate is for shop.example.com and does not work":                                                                        "shop.example.com:443",
		"the certificate is for shop.example.com, not trusted":                                                                             "shop.example.com:443",
		"caught java.net.ConnectException: refused":                                                                                        "",
		"since we run v1.22.3 nothing answers":                                                                                             "",
		"net.ipv4.ip_forward is off":                                                                                                       "",
		"org.apache.http.conn.HttpHostConnectException":                                                                                    "",
		"urllib3.exceptions.MaxRetryError while calling the catalogue":                                                                     "",
	} {
		got := ""
		if s := symptom.Parse(text); len(s.Targets) > 1 {
			t.Errorf("%q: %v", text, s.Targets)
		} else if len(s.Targets) > 0 {
			got = s.Targets[0].String()
			if s.Targets[0].Port == 0 {
				got = s.Targets[0].Host
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestIdle(t *testing.T) {
	for text, want := range map[string]bool{
		"redis at 192.0.2.10:6379 drops idle connections":                  true,
		"connections to 192.0.2.10:5432 die after 5 minutes of inactivity": true,
		"keepalive does not help, 192.0.2.10:5432 disconnects":             true,
		"192.0.2.10:5432 drops connections after 300 s without traffic":    true,
		"192.0.2.10:5432 hangs after 5 minutes":                            false,
		"http://192.0.2.10/ is down":                                       false,
	} {
		if got := symptom.Parse(text).Idle; got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestSelfIP(t *testing.T) {
	for ip, want := range map[string][2]bool{
		"127.0.0.1": {true, true}, "::1": {true, true}, "0.0.0.0": {false, true}, "::": {false, true}, "192.0.2.1": {false, false}, "": {false, false}, "x": {false, false},
	} {
		if got := [2]bool{symptom.LoopbackIP(ip), symptom.SelfIP(ip)}; got != want {
			t.Errorf("%q: %v, want %v", ip, got, want)
		}
	}
}
