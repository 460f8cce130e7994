package playbook_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// tools skips where a tool is not installed; where CI runs, everything is.
func tools(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
}

// want is what a case must come to. Shows is text that the output of a cited
// command of the first cause must contain.
type want struct {
	verdict string
	causes  []string // a part of each cause, in order; the first must be first
	shows   string
	sure    string
}

func (w want) check(t *testing.T, in *investigation) {
	t.Helper()
	end := in.finish()
	bad := end.Verdict != w.verdict || w.sure != "" && end.Confidence != w.sure || len(end.Causes) < len(w.causes) || len(w.causes) == 0 && len(end.Causes) > 0 && w.verdict == "no_fault"
	for i, c := range w.causes {
		bad = bad || i < len(end.Causes) && !strings.Contains(end.Causes[i].Statement, c)
	}
	if w.shows != "" && !bad {
		shown := false
		for _, o := range in.view.Observations {
			for _, id := range end.Causes[0].Evidence {
				shown = shown || id == o.AuditID && strings.Contains(o.Shell.Output+o.Shell.Stderr, w.shows)
			}
		}
		bad = !shown
	}
	if bad {
		t.Errorf("want %+v\n%s", w, in)
	}
}

// five are the incidents of the demo, each in five wordings; HOST:PORT, PORT
// and NAME stand for what the services got.
var five = []struct {
	name     string
	start    func(t *testing.T) (addr, other string)
	wordings []string
	want     func(addr, other string) want
}{
	{"refusing dependency", func(t *testing.T) (string, string) {
		up := closed(t, "127.0.0.1")
		return serveHTTP(t, listen(t, "127.0.0.1"), 502, `{"error":"bad gateway","upstream":"`+up+`","detail":"connect: connection refused"}`, "Server: checkout-gateway"), up
	}, []string{
		"checkout gets 502 from HOST:PORT since 10:40",
		"Since the deploy http://HOST:PORT/ answers Bad Gateway, please have a look",
		"customers cannot pay: 'HTTP/1.1 502 Bad Gateway' on HOST port PORT",
		`{"level":"error","msg":"payment failed","url":"http://HOST:PORT/","status":502}`,
		"HOST:PORT is broken!!! <!channel> everything is on fire",
	}, func(a, o string) want {
		return want{"root_cause", []string{"Nothing listens on " + o + ": connections are refused, so " + a + " answers 502"}, "502", "high"}
	}},
	{"accept queue full", func(t *testing.T) (string, string) { return fullQueue(t), "" }, []string{
		"payments at HOST:PORT hangs, clients time out while connecting since 10:40",
		`Get "http://HOST:PORT/": dial tcp HOST:PORT: i/o timeout`,
		"the service on port PORT of HOST looks overloaded",
		"curl: (28) Failed to connect to HOST port PORT after 5001 ms: Timeout was reached",
		"nothing comes back from http://HOST:PORT/, the port is open though",
	}, func(a, _ string) want {
		return want{"root_cause", []string{"The accept queue of " + a + " is full"}, "LISTEN", "high"}
	}},
	{"name fails on a local DNS server", func(t *testing.T) (string, string) { return serveDNS(t, rcodeSF), "" }, []string{
		"inventory.shop.example.com does not resolve any more on our resolver HOST port PORT",
		"dial tcp: lookup inventory.shop.example.com on HOST:PORT: server misbehaving",
		"dig @HOST -p PORT inventory.shop.example.com gives SERVFAIL since the deploy",
		"our DNS at HOST:PORT fails for inventory.shop.example.com",
		"getaddrinfo EAI_AGAIN inventory.shop.example.com, name server is HOST:PORT",
	}, func(a, _ string) want {
		return want{"root_cause", []string{"The DNS server " + a + " answers SERVFAIL for inventory.shop.example.com"}, "SERVFAIL", "high"}
	}},
	{"expired certificate", func(t *testing.T) (string, string) {
		return serveTLS(t, listen(t, "127.0.0.1"), expired, ok), ""
	}, []string{
		"https://HOST:PORT/ of the shop fails with a certificate error since 10:40",
		`Post "https://HOST:PORT/v1/pay": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time is after`,
		"browsers show a security warning on HOST:PORT",
		"requests.exceptions.SSLError: HTTPSConnectionPool(host='HOST', port=PORT): Max retries exceeded with url: / (Caused by SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1129)')))",
		"https://HOST:PORT is not reachable for our mobile app any more",
	}, func(a, _ string) want {
		return want{"root_cause", []string{"The certificate of " + a + " expired on"}, "notAfter", "high"}
	}},
	{"nothing wrong", func(t *testing.T) (string, string) {
		return serveHTTP(t, listen(t, "127.0.0.1"), 200, `{"status":"ok"}`), ""
	}, []string{
		"support says the catalogue at http://HOST:PORT/ does not load, is it down?",
		"HOST:PORT gives 502 since 10:40",
		"is HOST port PORT ok?",
		"people say HOST:PORT is slow",
		"java.net.ConnectException: Connection refused: HOST/HOST:PORT",
	}, func(a, _ string) want {
		return want{"no_fault", nil, "", "high"}
	}},
}

func TestFiveIncidents(t *testing.T) {
	tools(t, "curl", "ss", "nc", "dig", "openssl", "nstat")
	for _, f := range five {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			addr, other := f.start(t)
			host, port, _ := net.SplitHostPort(addr)
			for _, text := range f.wordings {
				text = strings.NewReplacer("HOST", host, "PORT", port).Replace(text)
				t.Run(text[:min(len(text), 30)], func(t *testing.T) {
					t.Parallel()
					start := time.Now()
					f.want(addr, other).check(t, investigate(t, text))
					if d := time.Since(start); d > time.Minute {
						t.Errorf("took %s", d)
					}
				})
			}
		})
	}
}

// TestVariations has the same and other faults on other addresses, names and
// protocols, and two at once. ADDR is the service, UP what is behind it.
func TestVariations(t *testing.T) {
	tools(t, "curl", "ss", "nc", "dig", "openssl", "nstat")
	tests := []struct {
		name, text string
		start      func(t *testing.T) (addr, up string)
		want       want
	}{
		{"refused on IPv6", "can't reach ADDR", func(t *testing.T) (string, string) { return closed(t, "::1"), "" },
			want{"root_cause", []string{"Nothing listens on ADDR: connections are refused"}, "refused", "high"}},
		{"gateway on IPv6 names an IPv6 upstream in nginx words", "http://ADDR/ gives 502", func(t *testing.T) (string, string) {
			up := closed(t, "::1")
			return serveHTTP(t, listen(t, "::1"), 502, `connect() failed (111: Connection refused) while connecting to upstream, client: 10.0.0.9, server: shop.example.com, upstream: "http://`+up+`/pay", host: "shop.example.com"`), up
		}, want{"root_cause", []string{"Nothing listens on UP: connections are refused, so ADDR answers 502"}, "refused", "high"}},
		{"host and port apart in JSON", "502 from ADDR", func(t *testing.T) (string, string) {
			up := closed(t, "127.0.0.1")
			_, port, _ := net.SplitHostPort(up)
			return serveHTTP(t, listen(t, "127.0.0.1"), 502, `{"fault":{"backend_host":"127.0.0.1","backend_port":`+port+`}}`), up
		}, want{"root_cause", []string{"Nothing listens on UP"}, "502", "high"}},
		{"500 with a Go dial error", "ADDR answers 500", func(t *testing.T) (string, string) {
			up := closed(t, "127.0.0.1")
			return serveHTTP(t, listen(t, "127.0.0.1"), 500, "dial tcp "+up+": connect: connection refused"), up
		}, want{"root_cause", []string{"Nothing listens on UP: connections are refused, so ADDR answers 500"}, "500", "high"}},
		{"chain of three", "ADDR is failing with 502", func(t *testing.T) (string, string) {
			up := closed(t, "127.0.0.1")
			mid := serveHTTP(t, listen(t, "127.0.0.1"), 502, `{"upstream":"`+up+`"}`)
			return serveHTTP(t, listen(t, "127.0.0.1"), 502, `{"upstream":"`+mid+`"}`), up
		}, want{"root_cause", []string{"Nothing listens on UP: connections are refused, so 127.0.0.1:"}, "502", "high"}},
		{"gateway does not say which", "502 on ADDR", func(t *testing.T) (string, string) {
			return serveHTTP(t, listen(t, "127.0.0.1"), 502, "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center><hr><center>nginx/1.22.1</center></body></html>", "Server: nginx/1.22.1"), ""
		}, want{"root_cause", []string{"ADDR passes on a failure of a server behind it (it answers 502, served by nginx/1.22.1) and does not say which one"}, "502", "medium"}},
		{"application error", "ADDR gives errors", func(t *testing.T) (string, string) {
			return serveHTTP(t, listen(t, "127.0.0.1"), 500, "panic: nil map"), ""
		}, want{"root_cause", []string{`ADDR is reachable and answers 500 by itself: "panic: nil map"`}, "500", "medium"}},
		{"not found as reported", "GET http://ADDR/cart returns 404", func(t *testing.T) (string, string) {
			return serveHTTP(t, listen(t, "127.0.0.1"), 404, "no such page"), ""
		}, want{"root_cause", []string{"ADDR is reachable and answers 404 to this request"}, "404", "medium"}},
		{"upstream's queue is full", "504 Gateway Timeout from ADDR", func(t *testing.T) (string, string) {
			up := fullQueue(t)
			return serveHTTP(t, listen(t, "127.0.0.1"), 504, "upstream connect error or disconnect/reset before headers. reset reason: connection timeout, upstream "+up), up
		}, want{"root_cause", []string{"The accept queue of UP is full"}, "504", "high"}},
		{"upstream answers from here", "502 from ADDR", func(t *testing.T) (string, string) {
			up := serveHTTP(t, listen(t, "127.0.0.1"), 200, "ok")
			return serveHTTP(t, listen(t, "127.0.0.1"), 502, `{"upstream":"`+up+`"}`), up
		}, want{"root_cause", []string{"ADDR answers 502 and blames UP, which accepts and answers from here"}, "502", "medium"}},
		{"upstream's name is unknown", "502 from ADDR", func(t *testing.T) (string, string) {
			return serveHTTP(t, listen(t, "127.0.0.1"), 502, `{"error":"dial tcp: lookup pay.shop.invalid: no such host"}`), ""
		}, want{"root_cause", []string{"pay.shop.invalid"}, "502", ""}},
		{"upstream's certificate expired", "502 from ADDR", func(t *testing.T) (string, string) {
			up := serveTLS(t, listen(t, "127.0.0.1"), expired, ok)
			return serveHTTP(t, listen(t, "127.0.0.1"), 502, `Get "https://`+up+`/": x509: certificate has expired`), up
		}, want{"root_cause", []string{"The certificate of UP expired on"}, "502", "high"}},
		{"redirect to a dead place", "http://ADDR/ is down", func(t *testing.T) (string, string) {
			up := closed(t, "127.0.0.1")
			return serveHTTP(t, listen(t, "127.0.0.1"), 302, "", "Location: http://"+up+"/login"), up
		}, want{"root_cause", []string{"Nothing listens on UP"}, "302", "high"}},
		{"listens elsewhere", "http://localhost:PORT/ on 127.0.0.2:PORT refuses", func(t *testing.T) (string, string) {
			return serveHTTP(t, listen(t, "127.0.0.1"), 200, "ok"), ""
		}, want{"root_cause", []string{"listens only on ADDR"}, "", "high"}},
		{"reset", "ADDR: connection reset by peer", func(t *testing.T) (string, string) {
			return raw(t, listen(t, "127.0.0.1"), func(c *net.TCPConn) { _ = c.SetLinger(0) }), ""
		}, want{"root_cause", []string{"ADDR accepts the connection and then resets it"}, "reset", "high"}},
		{"empty reply", "EOF from http://ADDR/", func(t *testing.T) (string, string) {
			return raw(t, listen(t, "127.0.0.1"), func(*net.TCPConn) {}), ""
		}, want{"root_cause", []string{"ADDR accepts the connection and closes it without an answer"}, "Empty reply", "high"}},
		{"cut answer", "downloads from ADDR break off", func(t *testing.T) (string, string) {
			return raw(t, listen(t, "127.0.0.1"), func(c *net.TCPConn) {
				_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"))
			}), ""
		}, want{"root_cause", []string{"ADDR breaks off in the middle of its answer"}, "200 OK", "high"}},
		{"hangs after accepting", "ADDR does not respond", func(t *testing.T) (string, string) {
			return raw(t, listen(t, "127.0.0.1"), func(*net.TCPConn) { time.Sleep(15 * time.Second) }), ""
		}, want{"root_cause", []string{"ADDR accepts connections, but no byte of an answer comes within 10 s"}, "0 bytes received", "high"}},
		{"slow first byte", "ADDR is slow", func(t *testing.T) (string, string) {
			return handle(t, listen(t, "127.0.0.1"), func(w http.ResponseWriter, r *http.Request) { time.Sleep(1300 * time.Millisecond); ok(w, r) }), ""
		}, want{"root_cause", []string{"ADDR is reached quickly, but its program needs 1."}, "200 OK", "high"}},
		{"half of the requests fail", "ADDR sometimes gives 500", func(t *testing.T) (string, string) {
			n := 0
			return handle(t, listen(t, "127.0.0.1"), func(w http.ResponseWriter, r *http.Request) {
				if n++; n%2 == 0 {
					w.WriteHeader(500)
				}
			}), ""
		}, want{"root_cause", []string{"ADDR"}, "500", "medium"}},
		{"plain HTTP behind https://", "https://ADDR/ does not work", func(t *testing.T) (string, string) {
			return serveHTTP(t, listen(t, "127.0.0.1"), 200, "ok"), ""
		}, want{"root_cause", []string{"Clients speak TLS to ADDR, but it does not"}, "wrong version number", "high"}},
		{"TLS behind http://", "http://ADDR/ does not work", func(t *testing.T) (string, string) {
			return serveTLS(t, listen(t, "127.0.0.1"), cert{-day, day, []string{"127.0.0.1"}}, ok), ""
		}, want{"root_cause", []string{"ADDR speaks TLS, but it is asked in plain HTTP"}, "", "high"}},
		{"wrong name", "certificate of https://ADDR/ is not accepted", func(t *testing.T) (string, string) {
			return serveTLS(t, listen(t, "127.0.0.1"), cert{-day, day, []string{"other.example.com"}}, ok), ""
		}, want{"root_cause", []string{"The certificate of ADDR is for other.example.com, not for 127.0.0.1"}, "CERTIFICATE", "high"}},
		{"not yet valid", "https://ADDR/ fails", func(t *testing.T) (string, string) {
			return serveTLS(t, listen(t, "127.0.0.1"), cert{day, 2 * day, []string{"127.0.0.1"}}, ok), ""
		}, want{"root_cause", []string{"The certificate of ADDR is not valid before"}, "CERTIFICATE", "high"}},
		{"self-signed", "x509: certificate signed by unknown authority at https://ADDR/", func(t *testing.T) (string, string) {
			return serveTLS(t, listen(t, "127.0.0.1"), cert{-day, day, []string{"127.0.0.1"}}, ok), ""
		}, want{"root_cause", []string{"The certificate of ADDR is self-signed"}, "CERTIFICATE", "medium"}},
		{"expired on IPv6", "https://ADDR/ certificate trouble", func(t *testing.T) (string, string) {
			return serveTLS(t, listen(t, "::1"), expired, ok), ""
		}, want{"root_cause", []string{"The certificate of ADDR expired on"}, "notAfter", "high"}},
		{"expired, and broken behind it", "https://ADDR/ certificate error", func(t *testing.T) (string, string) {
			up := closed(t, "127.0.0.1")
			return serveTLS(t, listen(t, "127.0.0.1"), expired, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(502)
				_, _ = w.Write([]byte(`{"upstream":"` + up + `"}`))
			}), up
		}, want{"root_cause", []string{"The certificate of ADDR expired on", "Nothing listens on UP"}, "notAfter", "high"}},
		{"two targets, two faults", "both ADDR and UP are broken", func(t *testing.T) (string, string) {
			return closed(t, "127.0.0.1"), serveHTTP(t, listen(t, "127.0.0.1"), 500, "oops")
		}, want{"root_cause", []string{"Nothing listens on ADDR", "UP is reachable and answers 500 by itself"}, "refused", "medium"}},
		{"two upstreams, both gone", "503 from ADDR", func(t *testing.T) (string, string) {
			up := closed(t, "127.0.0.1")
			return serveHTTP(t, listen(t, "127.0.0.1"), 503, "no healthy upstream: tried "+up+" and "+closed(t, "127.0.0.1")), up
		}, want{"root_cause", []string{"Nothing listens on UP", "Nothing listens on 127.0.0.1:"}, "503", "high"}},
		{"the client in the answer is not the upstream", "502 from ADDR", func(t *testing.T) (string, string) {
			up := closed(t, "127.0.0.1")
			return serveHTTP(t, listen(t, "127.0.0.1"), 502, `{"client":"127.0.0.1:9","remote_addr":"127.0.0.1:11","request":{"url":"http://127.0.0.1:13/"},"upstream":{"addr":"`+up+`"}}`), up
		}, want{"root_cause", []string{"Nothing listens on UP: connections are refused, so ADDR answers 502."}, "502", "high"}},
		{"upstream's name fails at the DNS server that the answer names", "502 from ADDR", func(t *testing.T) (string, string) {
			up := serveDNS(t, rcodeSF)
			return serveHTTP(t, listen(t, "127.0.0.1"), 502, `{"error":"dial tcp: lookup pay.shop.test on `+up+`: server misbehaving"}`), up
		}, want{"root_cause", []string{"The DNS server UP answers SERVFAIL for pay.shop.test and for the zone above it: it was unable to process the query, so ADDR answers 502"}, "SERVFAIL", "high"}},
		{"upstream that only the gateway knows", "502 from ADDR", func(t *testing.T) (string, string) {
			return serveHTTP(t, listen(t, "127.0.0.1"), 502, `{"upstream":"payments-backend:8081"}`), ""
		}, want{"root_cause", []string{"ADDR answers 502 and blames payments-backend:8081, which could not be judged from this machine"}, "502", "medium"}},
		{"never accepts", "ADDR does not answer", func(t *testing.T) (string, string) { return listen(t, "127.0.0.1").Addr().String(), "" },
			want{"root_cause", []string{"The program behind ADDR does not take its connections"}, "0 bytes received", "high"}},
		{"hangs on its own upstream", "ADDR hangs", func(t *testing.T) (string, string) {
			up := fullQueue(t)
			return handle(t, listen(t, "127.0.0.1"), func(w http.ResponseWriter, r *http.Request) {
				if c, err := net.DialTimeout("tcp", up, time.Minute); err == nil {
					c.Close()
				}
			}), up
		}, want{"root_cause", []string{"ADDR accepts connections, but no byte of an answer comes within 10 s"}, "0 bytes", "high"}},
		{"TLS on a port that does not look like it, expired", "ADDR fails", func(t *testing.T) (string, string) {
			return serveTLS(t, listen(t, "127.0.0.1"), expired, ok), ""
		}, want{"root_cause", []string{"The certificate of ADDR expired on"}, "notAfter", "high"}},
		{"a stream that does not end", "is http://ADDR/ ok?", func(t *testing.T) (string, string) {
			return handle(t, listen(t, "127.0.0.1"), func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for r.Context().Err() == nil {
					_, _ = w.Write([]byte("data: 1\n\n"))
					w.(http.Flusher).Flush()
					time.Sleep(time.Second)
				}
			}), ""
		}, want{"no_fault", nil, "", ""}},
		{"a service that does not speak HTTP", "is ADDR ok?", func(t *testing.T) (string, string) {
			return raw(t, listen(t, "127.0.0.1"), func(c *net.TCPConn) { _, _ = c.Write([]byte("-ERR unknown command\r\n")) }), ""
		}, want{"no_fault", nil, "", "medium"}},
		{"two kinds of trouble in one text", "checkout ADDR gives 502 and inventory.shop.example.com does not resolve at DNS UP", func(t *testing.T) (string, string) {
			return serveHTTP(t, listen(t, "127.0.0.1"), 502, `{"upstream":"`+closed(t, "127.0.0.1")+`"}`), serveDNS(t, rcodeNX)
		}, want{"root_cause", []string{"so ADDR answers 502", "The DNS server UP says that inventory.shop.example.com does not exist"}, "502", "high"}},
		{"a service at a name that one DNS server knows", "api.shop.test:PORT refuses, our DNS server is UP", func(t *testing.T) (string, string) {
			return closed(t, "127.0.0.1"), serveDNS(t, rcodeOK)
		}, want{"root_cause", []string{"Nothing listens on api.shop.test:PORT"}, "refused", "high"}},
		{"500 with Python's pair of host and port", "ADDR answers 500", func(t *testing.T) (string, string) {
			up := closed(t, "127.0.0.1")
			_, port, _ := net.SplitHostPort(up)
			return serveHTTP(t, listen(t, "127.0.0.1"), 500, "<html><h1>Internal Server Error</h1><pre>ConnectionRefusedError: [Errno 111] Connect call failed ('127.0.0.1', "+port+")</pre></html>"), up
		}, want{"root_cause", []string{"Nothing listens on UP: connections are refused, so ADDR answers 500"}, "500", "high"}},
		{"a DNS server as such, failing", "the DNS server on ADDR is broken", func(t *testing.T) (string, string) { return serveDNS(t, rcodeSF), "" },
			want{"root_cause", []string{"The DNS server ADDR answers SERVFAIL even for the root"}, "SERVFAIL", "high"}},
		{"a DNS server as such, gone", "our nameserver ADDR is down", func(t *testing.T) (string, string) { return closed(t, "127.0.0.1"), "" },
			want{"root_cause", []string{"No DNS server answers on ADDR: queries are refused"}, "refused", "high"}},
		{"a DNS server as such, working", "is the nameserver ADDR ok?", func(t *testing.T) (string, string) { return serveDNS(t, rcodeNo), "" },
			want{"no_fault", nil, "", "medium"}},
		{"upstream is slow", "504 from ADDR", func(t *testing.T) (string, string) {
			up := handle(t, listen(t, "127.0.0.1"), func(w http.ResponseWriter, r *http.Request) { time.Sleep(1300 * time.Millisecond); ok(w, r) })
			return serveHTTP(t, listen(t, "127.0.0.1"), 504, `{"error":"upstream timed out","upstream":"http://`+up+`/"}`), up
		}, want{"root_cause", []string{"UP is reached quickly, but its program needs 1."}, "504", "high"}},
		{"upstream resets", "502 from ADDR", func(t *testing.T) (string, string) {
			up := raw(t, listen(t, "127.0.0.1"), func(c *net.TCPConn) { _ = c.SetLinger(0) })
			return serveHTTP(t, listen(t, "127.0.0.1"), 502, `{"reason":"read tcp 127.0.0.1:40000->`+up+`: read: connection reset by peer"}`), up
		}, want{"root_cause", []string{"UP accepts the connection and then resets it instead of answering, so ADDR answers 502"}, "502", "high"}},
		{"NXDOMAIN", "pay.shop.test not found at DNS ADDR", func(t *testing.T) (string, string) { return serveDNS(t, rcodeNX), "" },
			want{"root_cause", []string{"The DNS server ADDR says that pay.shop.test does not exist (NXDOMAIN"}, "NXDOMAIN", "high"}},
		{"no data", "pay.shop.test does not resolve at DNS ADDR", func(t *testing.T) (string, string) { return serveDNS(t, noData), "" },
			want{"root_cause", []string{"The DNS server ADDR knows pay.shop.test but has no address for it"}, "NOERROR", "high"}},
		{"REFUSED", "pay.shop.test does not resolve at DNS ADDR", func(t *testing.T) (string, string) { return serveDNS(t, rcodeNo), "" },
			want{"root_cause", []string{"The DNS server ADDR refuses to answer for pay.shop.test"}, "REFUSED", "high"}},
		{"silent DNS", "lookups of pay.shop.test against ADDR time out, DNS problem", func(t *testing.T) (string, string) { return serveDNS(t, noReply), "" },
			want{"root_cause", []string{"The DNS server on ADDR has a socket but does not answer"}, "timed out", "high"}},
		{"no DNS server", "lookup pay.shop.test on ADDR: read: connection refused", func(t *testing.T) (string, string) { return closed(t, "127.0.0.1"), "" },
			want{"root_cause", []string{"No DNS server answers on ADDR"}, "refused", "high"}},
		{"a slow DNS server", "lookups of pay.shop.test at DNS ADDR are slow", func(t *testing.T) (string, string) { return serveDNS(t, late), "" },
			want{"root_cause", []string{"The DNS server ADDR takes 1."}, "Query time", "high"}},
		{"a fickle DNS server", "pay.shop.test sometimes does not resolve at DNS ADDR", func(t *testing.T) (string, string) { return serveDNS(t, fickle), "" },
			want{"root_cause", []string{"The DNS server ADDR answers SERVFAIL for pay.shop.test"}, "SERVFAIL", "high"}},
		{"accepts, but no TLS handshake follows", "https://ADDR/ does not respond", func(t *testing.T) (string, string) {
			return raw(t, listen(t, "127.0.0.1"), func(*net.TCPConn) { time.Sleep(15 * time.Second) }), ""
		}, want{"root_cause", []string{"ADDR accepts connections, but no byte of an answer comes"}, "SSL connection timeout", "high"}},
		{"redirect to a port with an expired certificate", "http://ADDR/ is broken", func(t *testing.T) (string, string) {
			up := serveTLS(t, listen(t, "127.0.0.1"), expired, ok)
			return serveHTTP(t, listen(t, "127.0.0.1"), 301, "", "Location: https://"+up+"/"), up
		}, want{"root_cause", []string{"The certificate of UP expired on"}, "301", "high"}},
		{"upstream by the name localhost", "502 from ADDR", func(t *testing.T) (string, string) {
			_, port, _ := net.SplitHostPort(closed(t, "127.0.0.1"))
			return serveHTTP(t, listen(t, "127.0.0.1"), 502, "Error: connect ECONNREFUSED localhost:"+port), "localhost:" + port
		}, want{"root_cause", []string{"Nothing listens on UP: connections are refused, so ADDR answers 502"}, "502", "high"}},
		{"DNS works", "does pay.shop.test resolve at DNS ADDR?", func(t *testing.T) (string, string) { return serveDNS(t, rcodeOK), "" },
			want{"no_fault", nil, "", ""}},
		{"a TCP service is fine", "redis at tcp://ADDR times out", func(t *testing.T) (string, string) {
			return raw(t, listen(t, "127.0.0.1"), func(*net.TCPConn) { time.Sleep(time.Second) }), ""
		}, want{"no_fault", nil, "", "medium"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			addr, up := tt.start(t)
			_, port, _ := net.SplitHostPort(addr)
			rep := strings.NewReplacer("ADDR", addr, "UP", up, "PORT", port)
			w := tt.want
			for i := range w.causes {
				w.causes[i] = rep.Replace(w.causes[i])
			}
			w.check(t, investigate(t, rep.Replace(tt.text)))
		})
	}
}
