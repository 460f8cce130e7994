package behind

import (
	"strings"
	"testing"

	"ghostbot/agent/playbook/read"
	"ghostbot/agent/playbook/symptom"

	"github.com/google/go-cmp/cmp"
)

// answer makes the reading of a request that was answered with code and body.
func answer(code string, body string, header ...string) read.Web {
	h := ""
	for _, x := range header {
		h += x + "\r\n"
	}
	return read.Curl(read.Output{Stdout: "HTTP/1.1 " + code + " x\r\n" + h + "\r\n" + body + " " + read.Marker + code + " ip=127.0.0.1"})
}

// bodies are error pages as gateways make them, with the endpoints that a
// person would look at next.
var bodies = []struct {
	name, code, body string
	header           []string
	gateway          bool
	want             []string
}{
	{"own JSON", "502", `{"error":"bad gateway","upstream":"127.0.0.1:18081","detail":"connect: connection refused"}`, nil, true, []string{"127.0.0.1:18081"}},
	{"JSON with other keys", "502", `{"problem":{"what":"no answer","whom":"10.0.0.7:9000"}}`, nil, true, []string{"10.0.0.7:9000"}},
	{"host and port apart", "503", `{"target_host":"10.0.0.7","target_port":9000}`, nil, false, []string{"10.0.0.7:9000"}},
	{"port as text", "502", `{"backend":{"host":"db.shop.test","port":"5432"}}`, nil, true, []string{"db.shop.test:5432"}},
	{"list of backends", "503", `{"backends":["10.0.0.1:80","10.0.0.2:80"],"error":"no healthy upstream"}`, nil, true, []string{"10.0.0.1:80", "10.0.0.2:80"}},
	{"more than are followed", "503", `["10.0.0.1:80"] 10.0.0.1:80 10.0.0.2:80 10.0.0.3:80 10.0.0.4:80 upstream`, nil, true, []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"}},
	{"URL in JSON", "502", `{"url":"http:\/\/10.0.0.7:9000\/pay"}`, nil, true, []string{"http://10.0.0.7:9000/"}},
	{"Go", "502", `dial tcp 10.0.0.7:9000: connect: connection refused`, nil, true, []string{"10.0.0.7:9000"}},
	{"Go, from and to", "502", `read tcp 10.0.0.1:51000->10.0.0.7:9000: i/o timeout`, nil, true, []string{"10.0.0.7:9000"}},
	{"Go, a name", "500", `dial tcp: lookup pay.shop.test on 10.0.0.53:53: no such host`, nil, false, []string{"pay.shop.test"}},
	{"Python", "500", `requests.exceptions.ConnectionError: HTTPConnectionPool(host='10.0.0.7', port=9000): Max retries exceeded`, nil, false, []string{"10.0.0.7:9000"}},
	{"Java", "500", `java.net.ConnectException: Connection refused: pay.shop.test/10.0.0.7:9000`, nil, false, []string{"10.0.0.7:9000"}},
	{"Node", "500", `Error: connect ECONNREFUSED 10.0.0.7:9000`, nil, false, []string{"10.0.0.7:9000"}},
	{"nginx log line", "502", `connect() failed (111: Connection refused) while connecting to upstream, client: 10.9.9.9, server: shop.example.com, upstream: "http://[2001:db8::7]:9000/pay", host: "shop.example.com"`, nil, true, []string{"http://[2001:db8::7]:9000/"}},
	{"nginx page", "502", "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx/1.22.1</center>\r\n</body>\r\n</html>", []string{"Server: nginx/1.22.1"}, true, nil},
	{"nginx page of a time-out", "504", "<html><head><title>504 Gateway Time-out</title></head></html>", []string{"Server: nginx"}, true, nil},
	{"HAProxy page", "503", "<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n</body></html>", nil, true, nil},
	{"Envoy, refused", "503", "upstream connect error or disconnect/reset before headers. reset reason: connection failure", []string{"server: envoy"}, true, nil},
	{"Envoy, no host", "503", "no healthy upstream", []string{"server: envoy"}, true, nil},
	{"Envoy, by header", "503", "", []string{"x-envoy-response-flags: UF"}, true, nil},
	{"Apache proxy", "503", `<p>The proxy server could not handle the request<p>Reason: <strong>Error reading from remote server</strong></p><address>Apache/2.4.57 (Debian) Server at 127.0.0.1 Port 18080</address>`, nil, true, nil},
	{"upstream in a header", "502", "Bad Gateway", []string{"X-Upstream-Addr: 10.0.0.7:9000"}, true, []string{"10.0.0.7:9000"}},
	{"quoted for HTML", "502", `<pre>Get &quot;http://10.0.0.7:9000/&quot;: connection refused</pre>`, nil, true, []string{"http://10.0.0.7:9000/"}},

	{"its own error", "500", "panic: runtime error: index out of range [3]\n\ngoroutine 7 [running]:\nmain.go:42 +0x1d", nil, false, nil},
	{"maintenance", "503", "We are back at 10:40. Questions? http://status.example.com/ or ops@example.com", []string{"Retry-After: 60"}, false, []string{"http://status.example.com/"}},
	{"links of an error page", "500", `<html><a href="http://docs.example.com:8000/help">help</a><link rel="stylesheet" href="http://cdn.example.com:8000/x.css"> Sorry</html>`, nil, false, nil},
	{"the one who asks", "502", `{"client":"10.9.9.9:51000","remote_addr":"10.9.9.9:51001","request":{"host":"127.0.0.1:18080"},"source":"10.9.9.8:1","error":"timeout"}`, nil, true, nil},
	{"the one who asks, in text", "502", "error: upstream timed out, client=10.9.9.9:51000 from 10.9.9.9:51000", nil, true, nil},
	{"itself", "502", `{"host":"127.0.0.1:18080","server":"localhost:18080","error":"refused"}`, nil, true, nil},
	{"metadata", "502", `upstream 169.254.169.254:80, http://metadata.google.internal/, 100.100.100.200:80, [fd00:ec2::254]:80 refused`, nil, true, nil},
	{"options and shells", "502", `upstream -oProxyCommand=x:22 $(reboot):80 ;reboot:80; "a b":80`, nil, true, []string{"x:22", "reboot:80"}},
	{"not a host", "502", `error:502 at line:42 version 1.2.3 upstream unknown`, nil, true, nil},
}

func TestBlamed(t *testing.T) {
	self := symptom.Endpoint{Scheme: "http", Host: "127.0.0.1", Port: 18080}
	for _, tt := range bodies {
		w := answer(tt.code, tt.body, tt.header...)
		var got []string
		for _, e := range Blamed(w, self) {
			if e.HTTP() && !e.Guessed {
				got = append(got, e.URL())
			} else {
				got = append(got, e.String())
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if g := Gateway(w); g != tt.gateway {
			t.Errorf("%s: gateway %v", tt.name, g)
		}
	}
}

func TestMoved(t *testing.T) {
	self := symptom.Endpoint{Scheme: "http", Host: "shop.example.com", Port: 80}
	tests := []struct{ location, want string }{
		{"https://shop.example.com/", "https://shop.example.com/"},
		{"https://login.example.com:8443/start?x=1", "https://login.example.com:8443/"},
		{"/login", ""}, {"", ""}, {"http://shop.example.com/cart", ""}, {"//", ""}, {"javascript:alert(1)", ""},
		{"http://169.254.169.254/", ""}, {"ftp://files.example.com/", ""}, {"http://[::1]:8080/", "http://[::1]:8080/"},
	}
	for _, tt := range tests {
		got := ""
		for _, e := range Moved(answer("302", "", "Location: "+tt.location), self) {
			got = e.URL()
		}
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.location, got, tt.want)
		}
	}
}

// FuzzBlamed: whatever an answer says, what is followed is a few valid endpoints
// without a path.
func FuzzBlamed(f *testing.F) {
	for _, b := range bodies {
		f.Add(b.body)
	}
	f.Add(strings.Repeat(`{"host":`, 2000))
	f.Fuzz(func(t *testing.T, body string) {
		self := symptom.Endpoint{Scheme: "http", Host: "127.0.0.1", Port: 18080}
		list := Blamed(read.Web{Code: 502, Body: body}, self)
		if len(list) > 3 {
			t.Errorf("%d endpoints", len(list))
		}
		for _, e := range list {
			if !e.Valid() || e.Path != "" || e.Same(self) {
				t.Errorf("endpoint %+v", e)
			}
		}
	})
}
