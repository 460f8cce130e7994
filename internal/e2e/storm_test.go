package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ghostbot/internal/sim/redis"
)

// running reports whether a process has exactly this argument list.
func running(t testing.TB, argv ...string) bool {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join(argv, "\x00") + "\x00"
	for _, f := range all {
		if b, err := os.ReadFile(f); err == nil && string(b) == want {
			return true
		}
	}
	return false
}

// TestCutOff pulls the cable of the replica that carries a case while an approved command
// runs there: packets vanish, nobody is told. The command ends, another replica goes on in
// the same thread, and when the link is back the first one does nothing with what it held.
func TestCutOff(t *testing.T) {
	t.Parallel()
	s := redis.Start(t)
	f := newFleet(t, 2, s.URL())
	f.bots[0].on = newIsland(t, hostOf(t, f.slack.URL), s.Addr())
	f.bots[0].run()
	addr, _ := gateway(t)
	f.bots[0].on.forward(addr)
	f.command("incidents", f.users["oncall-checkout"].ID, "/ghost investigate checkout gets 502 from "+addr)
	first := f.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	sid := f.sid("incidents", "checkout")
	long := []string{"sleep", fmt.Sprintf("3%d", os.Getpid())} // as no other test does
	o := f.click("incidents", f.approver(2), first.TS, "Modify")
	if s := f.submit(o.ViewID, f.approver(2), map[string]any{"command": strings.Join(long, " ")}); !s.OK {
		t.Fatalf("edit: %+v", s)
	}
	card := f.find(caseLimit, "incidents", "checkout", "Approval needed: sleep")
	f.click("incidents", f.approver(0), card.TS, "Approve")
	f.until(20*time.Second, "the command runs", func() bool { return running(t, long...) })
	f.bots[1].run()

	f.bots[0].on.cut(s.Addr())
	cut := time.Now()
	tookOver := func() bool {
		for _, e := range f.journal(sid) {
			if e.Kind == "takeover" {
				return true
			}
		}
		return false
	}
	f.until(time.Minute, "the other replica takes over", tookOver)
	t.Logf("taken over %s after the cut, with a lease of 3s", time.Since(cut).Round(100*time.Millisecond))
	if running(t, long...) {
		t.Error("the command of the replica that is cut off runs on while another carries the case")
	}
	if f.bots[0].dead() {
		t.Error("the replica that is cut off has ended")
	}
	f.bots[0].on.heal()
	var asked message
	f.until(time.Minute, "people are asked about the command whose end nobody knows", func() bool {
		for _, m := range f.thread("incidents", "checkout") {
			if strings.HasPrefix(m.Text, "It is not known what") && strings.Contains(m.all(), "ghost_answer_") {
				asked = m
				return true
			}
		}
		return false
	})
	f.until(20*time.Second, "the answer is taken", func() bool {
		o := f.click("incidents", f.approver(0), asked.TS, "Leave it")
		return o.OK && o.private() == ""
	})
	f.command("incidents", f.approver(0), "/ghost stop "+sid)
	f.closed(sid)
	f.verified(sid)
	if running(t, long...) {
		t.Error("the command was started again")
	}
	if j := readCase(t, f.journal(sid)); j.risky != 1 {
		t.Errorf("%d RISKY commands were started, want one", j.risky)
	}
	roots := 0
	for _, m := range f.messages("incidents") {
		if m.Thread == "" && strings.Contains(m.Text, "Investigating: checkout") {
			roots++
		}
	}
	if roots != 1 {
		t.Errorf("%d threads", roots)
	}
}

// TestOutage takes the store away for a while (make chaos: one minute and five): people are told
// once, what they press is answered honestly, nothing starts, and everything goes on.
func TestOutage(t *testing.T) {
	t.Parallel()
	down := time.Duration(number(t, "GHOST_OUTAGE_SECONDS", 8)) * time.Second
	s := redis.Start(t)
	f := newFleet(t, 2, s.URL())
	for _, l := range f.bots {
		l.run()
	}
	tr := f.trap("incidents")
	s.Kill()
	began := time.Now()
	told := func() (n int) {
		for _, m := range f.thread("incidents", "checkout") {
			if strings.Contains(m.Text, "This case rests") {
				n++
			}
		}
		return n
	}
	f.until(30*time.Second, "people are told", func() bool { return told() > 0 })
	for presses := 0; time.Since(began) < down || presses == 0; presses++ {
		if o, taken := tr.press(f.approver(0), "Approve"); taken || o.private() == "" && o.OK {
			t.Errorf("a press while the store is down is taken without a word: %+v", o)
		} else if words := o.private(); words != "" && !strings.Contains(words, "stored") && !strings.Contains(words, "failed") {
			t.Errorf("a press while the store is down is answered with %q", words)
		}
		if o := f.command("network", f.approver(0), "/ghost investigate dns of the shop is slow"); o.OK && !strings.Contains(o.private(), "store does not answer") && !strings.Contains(o.private(), "whether a case was opened is not known") {
			t.Errorf("a case is opened without a store: %+v", o)
		}
		time.Sleep(time.Second)
	}
	if n := tr.starts(); n != 0 {
		t.Errorf("the command ran %d times without a store", n)
	}
	if n := told(); n != 1 {
		t.Errorf("people were told %d times that the case rests", n)
	}
	s.Up()
	tr.card = f.anotherCard("incidents", "Approval needed: mktemp", tr.card.TS)
	f.until(30*time.Second, "the press on the new card is taken", func() bool {
		_, taken := tr.press(f.approver(0), "Approve")
		return taken || tr.starts() > 0
	})
	f.until(30*time.Second, "the command runs", func() bool { return tr.starts() > 0 })
	lost := ""
	for _, e := range f.journal(tr.sid) {
		if e.Kind == "history_lost" {
			lost = string(e.Body)
		}
	}
	if !strings.Contains(lost, "Its history of this case ended with entry ") || !strings.Contains(lost, "mktemp") {
		t.Errorf("what may be lost, and what is asked again, is not listed: %s", lost)
	}
	tr.end()
	if n := tr.starts(); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	f.verified(tr.sid)
}

// TestUnfitLater sets the store wrongly while it is used: operators are told, cases go on.
func TestUnfitLater(t *testing.T) {
	s := redis.Start(t)
	f := newFleet(t, 1, s.URL())
	f.run()
	for _, c := range []struct{ name, value, back, want string }{
		{"maxmemory-policy", "allkeys-lru", "noeviction", "eviction policy is allkeys-lru"},
		{"appendonly", "no", "yes", "no append-only file"},
	} {
		s.Do("CONFIG", "SET", c.name, c.value)
		f.kill()
		f.run() // refused now
		if !f.dead() || !strings.Contains(f.log(), c.want) {
			t.Errorf("%s: dead %v, %s", c.name, f.dead(), f.log())
		}
		s.Do("CONFIG", "SET", c.name, c.back)
		f.run()
		s.Do("CONFIG", "SET", c.name, c.value)
		addr, _ := gateway(t)
		f.command("incidents", f.approver(0), "/ghost investigate checkout gets 502 from "+addr)
		f.until(30*time.Second, "the log says that "+c.want, func() bool {
			return strings.Contains(f.log(), "would be refused now") && strings.Contains(f.log(), c.want)
		})
		f.find(caseLimit, "incidents", "checkout gets 502 from "+addr, "Approval needed: ") // it goes on
		s.Do("CONFIG", "SET", c.name, c.back)
	}
}

// certificates makes an authority and a certificate for 127.0.0.1 in dir.
func certificates(t *testing.T, dir string) (ca, cert, key string) {
	t.Helper()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var signer *ecdsa.PrivateKey
	var authority *x509.Certificate
	for i, name := range []string{"ca", "server"} {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{SerialNumber: big.NewInt(int64(i) + 1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IsCA: i == 0, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
		if i == 0 {
			signer, authority = k, c
		}
		der, err := x509.CreateCertificate(rand.Reader, c, authority, &k.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		path := write(name+".crt", "CERTIFICATE", der)
		raw, err := x509.MarshalECPrivateKey(k)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			ca = path
		} else {
			cert, key = path, write(name+".key", "EC PRIVATE KEY", raw)
		}
	}
	return ca, cert, key
}

// TestServeOnEveryRedis carries a case on each form of Redis, with what doctor says of it.
func TestServeOnEveryRedis(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, cert, key := certificates(t, dir)
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	wrongCA, _, _ := certificates(t, other)
	pass, wrong := filepath.Join(dir, "pass"), filepath.Join(dir, "wrong")
	for name, text := range map[string]string{pass: "generated-for-this-test", wrong: "another-word"} {
		if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, sentinels := redis.Replicated(t, 1, 3)
	nodes := redis.Cluster(t, 3)
	plain := redis.Start(t)
	plain.Do("ACL", "SETUSER", "ghost", "on", ">generated-for-this-test", "~gb1:*", "&gb1:*", "+@all", "-@admin", "-@dangerous", "+info", "+wait")
	plain.Do("ACL", "SETUSER", "weak", "on", ">generated-for-this-test", "~gb1:*", "+@read", "+info")
	tlsPort := redis.FreePort(t)
	redis.Start(t, "--tls-port", fmt.Sprint(tlsPort), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca, "--tls-auth-clients", "no")
	overTLS := fmt.Sprintf("rediss://127.0.0.1:%d", tlsPort)
	for _, c := range []struct {
		name, url string
		env       []string
		want      string // of a refusal
	}{
		{"sentinel", redis.SentinelURL(sentinels), []string{"GHOST_REDIS_REPLICAS=1"}, ""},
		{"cluster", "redis+cluster://" + nodes[0].Addr() + "," + nodes[2].Addr(), nil, ""},
		{"a user", "redis://ghost@" + plain.Addr(), []string{"GHOST_REDIS_PASSWORD_FILE=" + pass}, ""},
		{"TLS", overTLS, []string{"GHOST_REDIS_CA_FILE=" + ca}, ""},
		{"wrong password", "redis://ghost@" + plain.Addr(), []string{"GHOST_REDIS_PASSWORD_FILE=" + wrong}, "the password is wrong"},
		{"a user who may not write", "redis://weak@" + plain.Addr(), []string{"GHOST_REDIS_PASSWORD_FILE=" + pass}, "may not do what ghostbot needs"},
		{"wrong authority", overTLS, []string{"GHOST_REDIS_CA_FILE=" + wrongCA}, "certificate"},
		{"unknown authority", overTLS, nil, "certificate"},
		{"no TLS there", "rediss://" + plain.Addr(), []string{"GHOST_REDIS_CA_FILE=" + ca}, "store is unavailable"},
		{"another primary", "redis+sentinel://" + sentinels[0] + "/other", nil, "store is unavailable"},
		{"too few replicas", "redis://ghost@" + plain.Addr(), []string{"GHOST_REDIS_PASSWORD_FILE=" + pass, "GHOST_REDIS_REPLICAS=2"}, "0 of 2 replicas are connected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t, 1, c.url, c.env...)
			f.run()
			said := c.want
			if said == "" {
				said = "deployment ghostbot on"
			}
			doctor := exec.Command(filepath.Join(binDir, "ghostbot"), "doctor")
			doctor.Env = f.environ()
			if out, _ := doctor.CombinedOutput(); !strings.Contains(string(out), said) || strings.Contains(string(out), "another-word") { // its exit code is about other lines too
				t.Errorf("doctor: want %q in %s", said, out)
			}
			if c.want != "" {
				if !f.dead() || !strings.Contains(f.log(), c.want) || strings.Contains(f.log(), "another-word") || strings.Count(strings.TrimSpace(f.log()), "\n") > 2 {
					t.Errorf("dead %v, want %q, the log says %s", f.dead(), c.want, f.log())
				}
				return
			}
			addr, _ := gateway(t)
			f.command("incidents", f.approver(0), "/ghost investigate checkout gets 502 from "+addr)
			f.denyRest("incidents", "checkout")
			sid := f.sid("incidents", "checkout")
			f.closed(sid)
			f.verified(sid)
		})
	}
}
