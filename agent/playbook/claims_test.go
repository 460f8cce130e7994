package playbook_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/agent/playbook"
	"ghostbot/safeexec"
)

// TestAllFaultsOfACertificate: one fault is the cause, and every other one that was
// seen is stated beside it.
func TestAllFaultsOfACertificate(t *testing.T) {
	tools(t, "curl", "ss", "openssl")
	for name, tc := range map[string]struct {
		c    cert
		want []string
	}{
		"expired":                        {cert{-9 * day, -day, []string{"127.0.0.1"}}, []string{" expired on ", "(besides, it is self-signed)"}},
		"expired and for another name":   {cert{-9 * day, -day, []string{"other.example.com"}}, []string{" expired on ", "(besides, it is for other.example.com, not for 127.0.0.1 and is self-signed)"}},
		"not yet valid, another name":    {cert{day, 9 * day, []string{"other.example.com"}}, []string{" is not valid before ", "(besides, it is for other.example.com, not for 127.0.0.1 and is self-signed)"}},
		"for another name":               {cert{-day, 9 * day, []string{"other.example.com"}}, []string{" is for other.example.com, not for 127.0.0.1", "(besides, it is self-signed)"}},
		"self-signed and nothing beside": {cert{-day, 9 * day, []string{"127.0.0.1"}}, []string{" is self-signed, so clients"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := investigate(t, "https://"+serveTLS(t, listen(t, "127.0.0.1"), tc.c, ok)+"/ shows a certificate warning")
			end := in.finish()
			for _, w := range tc.want {
				if len(end.Causes) != 1 || !strings.Contains(end.Causes[0].Statement, w) {
					t.Errorf("no %q in %+v", w, end.Causes)
				}
			}
		})
	}
}

// opt is an OPT record with an extended error (RFC 8914).
func opt(code byte) []byte {
	return []byte{0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 6, 0, 15, 0, 2, 0, code}
}

// TestServfail: a failing DNS server shows that it could not process the query. It
// refutes no record, and why it failed is said only when it says so itself.
func TestServfail(t *testing.T) {
	tools(t, "dig")
	for _, ede := range []bool{false, true} {
		addr := dnsWith(t, "udp", "127.0.0.1", func(q []byte, _ string, _ uint16) []byte {
			out := reply(q, 2)
			if ede {
				out[11] = 1
				out = append(out, opt(22)...)
			}
			return out
		})
		in := investigate(t, "api.shop.test does not resolve at DNS "+addr)
		end := in.finish()
		if len(end.Causes) != 1 || !strings.Contains(end.Causes[0].Statement, "answers SERVFAIL for api.shop.test") || strings.Contains(end.Causes[0].Statement, "load") ||
			ede != strings.Contains(end.Causes[0].Statement, "gives as its reason 22 (No Reachable Authority)") {
			t.Errorf("cause %+v", end.Causes)
		}
		for _, h := range in.view.Case.Hypotheses {
			if h.ID == "H1-no-record" && h.State != agent.Unverifiable {
				t.Errorf("%s is %s: %s", h.ID, h.State, h.Why)
			}
		}
	}
}

// TestUnseenCertificate: a server that refuses connections shows no certificate,
// good or bad.
func TestUnseenCertificate(t *testing.T) {
	tools(t, "curl", "ss", "nc")
	in := investigate(t, "https://"+closed(t, "127.0.0.1")+"/ has an expired certificate")
	want{"root_cause", []string{"Nothing listens on"}, "", ""}.check(t, in)
	for _, h := range in.view.Case.Hypotheses {
		if strings.HasSuffix(h.ID, "-expired") && h.State != agent.Unverifiable {
			t.Errorf("%s is %s: %s", h.ID, h.State, h.Why)
		}
	}
}

// TestPlacesAreNamed: no first line leaves people to guess where "there" is.
func TestPlacesAreNamed(t *testing.T) {
	for _, text := range []string{gatewayText, "api.shop.test does not resolve at DNS 127.0.0.1:19053", "udp 127.0.0.1:8125 is dead", "https://127.0.0.1:19443/ has a bad certificate", "203.0.113.10:81 times out"} {
		in := replay(t, text)
		in.step()
		if first := in.turns[0].Text; strings.Contains(first, " there") {
			t.Errorf("%q: %s", text, first)
		}
		for _, m := range in.turns[0].Moves {
			if run, is := m.(agent.RunShell); is && strings.Contains(run.Reasoning, " there") {
				t.Errorf("%q: %s", text, run.Reasoning)
			}
		}
	}
}

// TestUnusablePath: what of an address was not asked for is said, and why.
func TestUnusablePath(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:19082/$(id)?..;x is slow": "was left out in part or whole, because it has characters that are never put on a command line; only its root was requested",
		"http://127.0.0.1:19082/pay?token=x fails":  "because its query looks as if it carried a secret; only /pay was requested",
		"http://127.0.0.1:19082/ fails":             "no other path was named",
	} {
		in := replay(t, text, fine...)
		if end := in.finish(); end.Verdict != "no_fault" || !strings.Contains(strings.Join(end.Gaps, "\n"), want) || (strings.Contains(want, "left out") && strings.Contains(strings.Join(end.Gaps, "\n"), "no other path was named")) {
			t.Errorf("%q: %s", text, in)
		}
	}
}

// TestTurnedAway: servers of other protocols than the web's that say in their own
// words why they turn everybody away, and some that only do not know the question.
func TestTurnedAway(t *testing.T) {
	tools(t, "curl", "ss", "nc")
	const limit, denied, state, auth = "a limit of connections or clients is reached", "it does not let this client in", "it does not serve just now", "clients without credentials"
	for _, tt := range []struct{ text, says, quote, kind string }{
		{"tcp://ADDR fails, clients get an error", "-ERR max number of clients reached\r\n", `"-ERR max number of clients reached"`, limit},
		{"mysql at ADDR: too many errors", "\x17\x00\x00\x00\xff\x10\x04Too many connections", `"Too many connections"`, limit},
		{"is mysql at ADDR fine?", "\x1d\x00\x00\x00\xff\x10\x04#08004Too many connections", `"Too many connections"`, limit},
		{"postgres ADDR does not work", "E\x00\x00\x00=SFATAL\x00VFATAL\x00C53300\x00Msorry, too many clients already\x00\x00", `"sorry, too many clients already"`, limit},
		{"ssh ADDR is dead", "Exceeded MaxStartups\r\n", `"Exceeded MaxStartups"`, limit},
		{"ADDR is down", "421 There are too many connected users, please try later.\r\n", `"421 There are too many connected users, please try later."`, limit},
		{"mysql ADDR does not let the app in", "G\x00\x00\x00\xffi\x04Host '10.0.0.9' is blocked because of many connection errors", `"Host '10.0.0.9' is blocked because of many connection errors"`, denied},
		{"redis ADDR refuses us", "-DENIED Redis is running in protected mode\r\n", `"-DENIED Redis is running in protected mode"`, denied},
		{"mail over smtp ADDR hangs", "421 4.3.2 Service shutting down\r\n", `"421 4.3.2 Service shutting down"`, state},
		{"tcp://ADDR fails", "-LOADING Redis is loading the dataset in memory\r\n", `"-LOADING Redis is loading the dataset in memory"`, state},
		{"redis ADDR errors", "-NOAUTH Authentication required.\r\n", `"-NOAUTH Authentication required."`, auth},
		{"is redis at ADDR there?", "-NOAUTH Authentication required.\r\n", "", ""}, // a password is no fault
		{"tcp://ADDR fails, clients get an error", "-ERR wrong number of arguments for 'get' command\r\n", "", ""},
		{"tcp://ADDR fails, clients get an error", "220 mail.example.com ESMTP\r\n502 5.5.2 command not recognized", "", ""},
		{"is ftp ADDR there?", "220 Too busy to be polite\r\n530 Please login with USER and PASS.\r\n", "", ""},
	} {
		t.Run(tt.says, func(t *testing.T) {
			t.Parallel()
			addr := raw(t, listen(t, "127.0.0.1"), func(c *net.TCPConn) { _, _ = io.WriteString(c, tt.says) })
			in := investigate(t, strings.ReplaceAll(tt.text, "ADDR", addr))
			end := in.finish()
			if (tt.kind != "") != (end.Verdict == "root_cause") || tt.kind != "" && (!strings.HasPrefix(end.Summary, addr+" ") || !strings.Contains(end.Summary, ": "+tt.quote+": "+tt.kind)) {
				t.Errorf("%q: %s", tt.says, in)
			}
		})
	}
}

// TestRetryAfter: what a server of the web declares in a header is told, and is not
// taken for a crash.
func TestRetryAfter(t *testing.T) {
	tools(t, "curl", "ss")
	addr := gw(t, http.StatusServiceUnavailable, "connection limit reached", "Retry-After: 120")
	want{"root_cause", []string{`turns requests away with 503 by itself: "connection limit reached", and asks to come back later (Retry-After: 120)`}, "Retry-After", "medium"}.check(t, investigate(t, "http://"+addr+"/ gives 503"))
}

// TestOwnName: a name of this machine that it does not know itself.
func TestOwnName(t *testing.T) {
	in := script(t, "http://ip6-localhost:20000/ is down", func(c string) (string, string, int) {
		switch {
		case strings.HasPrefix(c, "curl"):
			return "", "curl: (6) Could not resolve host: ip6-localhost", 6
		case strings.HasPrefix(c, "getent"):
			return "", "", 2
		}
		return fmt.Sprintf(listening, "20000"), "", 0
	})
	want{"root_cause", []string{"This machine has no address for ip6-localhost"}, "", ""}.check(t, in)
}

// TestHandshakeAfterTheCertificate: a certificate that came is read though the
// handshake fails after it, and the failure is the cause.
func TestHandshakeAfterTheCertificate(t *testing.T) {
	in := replay(t, "https://127.0.0.1:19444/ fails", []string{"ss -ltn", "netstat/listen"}, []string{"curl -k", "=curl: (35) x"}, []string{"curl", "curl/self_signed"}, []string{"openssl", "openssl/expired"})
	inner := in.run
	in.run = func(m agent.RunShell) safeexec.Result {
		r := inner(m)
		if code := 35; strings.HasPrefix(m.Command, "curl -k") {
			r.Stderr, r.Output, r.ExitCode = "curl: (35) OpenSSL/3.0: error:0A00042E:SSL routines::tlsv1 alert protocol version", "", &code
		}
		return r
	}
	want{"root_cause", []string{"127.0.0.1:19444 refuses the TLS handshake"}, "", ""}.check(t, in)
}

// TestPathThatActs: a path about which the gate would ask people is left out, so
// that no case waits for it, and the report says so.
func TestPathThatActs(t *testing.T) {
	in := replay(t, "http://127.0.0.1:19082/webhook gives 500", fine...)
	in.brain = playbook.New(playbook.Options{Safe: func(c string) bool { return !risky(c) }})
	end := in.finish()
	if end.Verdict != "no_fault" || end.Confidence != "medium" || !strings.Contains(strings.Join(end.Gaps, "\n"), "because a request to it may act") || strings.Contains(strings.Join(commands(in), "\n"), "webhook") {
		t.Error(in)
	}
	if playbook.New(playbook.Options{}).Name() != in.brain.Name() {
		t.Error("the name depends on more than the rules")
	}
}

// TestQuestionSaysWhy: what looks like a target and is none is named in the
// question, and so is a text whose end was not kept.
func TestQuestionSaysWhy(t *testing.T) {
	for symptom, want := range map[string]string{
		"127.0.0.1:99999 is down":                    "There is no port 99999",
		"nothing answers on port 70000":              "There is no port 70000",
		strings.Repeat("x ", 1990) + "… [shortened]": "only its beginning was kept",
		"everything is on fire, 1234567 users":       "I could not find a host",
	} {
		turn, err := investigate(t, symptom).brain.Next(t.Context(), agent.View{Case: agent.Case{SessionID: "ghost_20260314_104512", Symptom: symptom}, TurnsLeft: 50})
		if err != nil || len(turn.Moves) > 0 || !strings.Contains(turn.Text, want) {
			t.Errorf("%.40s: %q, %d moves, %v", symptom, turn.Text, len(turn.Moves), err)
		}
	}
}

// TestStatedRate: of what is said to fail now and then there are as many requests as
// it takes, and a run that comes off is no proof where it easily does.
func TestStatedRate(t *testing.T) {
	tools(t, "curl", "ss", "nc")
	nth := func(n int32) http.HandlerFunc { // fails every n-th request; never for 0
		var count atomic.Int32
		return func(w http.ResponseWriter, _ *http.Request) {
			if c := count.Add(1); n > 0 && c%n == 0 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}
	}
	for _, tt := range []struct {
		name, text string
		fails      int32
		verdict    string
		says, gap  string
	}{
		{"every third", "every third request to http://ADDR/ fails", 3, "root_cause", "answers 500 to 1 of ", ""},
		{"one in ten", "10 % of the calls to http://ADDR/ return an error", 10, "root_cause", "requests from here failed: 1 with 500)", ""},
		{"one in ten, but none", "one in ten requests to http://ADDR/ fails", 0, "unverified", "answered 25 of 25 requests", "too few to tell"},
		{"every second, but none", "every second request to http://ADDR/ fails", 0, "no_fault", "answered ", "which is rare with that share"},
		{"one in ten connections, but none", "one in ten connections to tcp://ADDR is refused", 0, "unverified", "accepted every connection", "all 6 connections"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			addr := handle(t, l4(t), nth(tt.fails))
			in := investigate(t, strings.ReplaceAll(tt.text, "ADDR", addr))
			end := in.finish()
			if end.Verdict != tt.verdict || !strings.Contains(end.Summary, tt.says) || !strings.Contains(strings.Join(end.Gaps, " "), tt.gap) {
				t.Errorf("want %+v\n%s", tt, in)
			}
		})
	}
}

// TestDropsOfUDP: what a socket lost is told, also when it is read again.
func TestDropsOfUDP(t *testing.T) {
	tools(t, "ss")
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	_ = pc.(*net.UDPConn).SetReadBuffer(4096) // as small as the kernel lets it
	c, err := net.Dial("udp", pc.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 500 {
		_, _ = c.Write(make([]byte, 500)) // what is lost is meant to be
	}
	text := "syslog udp " + pc.LocalAddr().String() + ": messages are lost"
	want{"root_cause", []string{"bytes waiting), and "}, "skmem", "medium"}.check(t, investigate(t, text))
	_ = pc.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	for buf := make([]byte, 600); err == nil; {
		_, _, err = pc.ReadFrom(buf)
	}
	want{"unverified", []string{"were dropped since its socket was opened"}, "skmem", "low"}.check(t, investigate(t, text))
}

// TestExpiresSoon: a certificate that is valid for a few days more is a remark and no cause.
func TestExpiresSoon(t *testing.T) {
	tools(t, "curl", "ss", "openssl")
	for until, remark := range map[time.Duration]string{3*day + time.Hour: ", 3 days from now", 300 * day: ""} {
		addr := serveTLS(t, l4(t), cert{-80 * day, until, []string{"127.0.0.1"}}, ok)
		in := investigate(t, "https://"+addr+"/ certificate?")
		end := in.finish()
		gaps := strings.Join(end.Gaps, " ")
		if strings.Contains(end.Summary, "expire") || (remark != "") != strings.Contains(gaps, "Not a fault yet: the certificate of "+addr) || !strings.Contains(gaps, remark) {
			t.Errorf("%s: %s", until, in)
		}
	}
}
