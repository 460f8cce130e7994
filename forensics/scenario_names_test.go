package forensics

import (
	"strings"
	"testing"

	"github.com/google/gopacket/layers"

	"ghostbot/forensics/finding"
)

// TestErrorCodes: a server that answers most queries with an error is not healthy, whatever the
// error; a client that finds out how to ask is.
func TestErrorCodes(t *testing.T) {
	for _, code := range []layers.DNSResponseCode{1, 4, 6, 9, 10} {
		for failed, want := range map[int]string{6: "dns-error", 3: "healthy"} {
			f := analyse(t, func(w *world) {
				for i := range 6 {
					c := code
					if i >= failed {
						c = 0
					}
					w.dns(float64(i)*100, layers.UDPPort(4000+i), "www.example.com", 20, c, false)
				}
			}).Findings[0]
			if f.Code != want || want == "dns-error" && len(f.Frames) == 0 {
				t.Errorf("code %d, %d of 6: %s %s, frames %v", code, failed, f.Code, f.Summary, f.Frames)
			}
		}
	}
}

// TestNamesOneWay: where the capture has one direction only, names without an answer say nothing of
// their server.
func TestNamesOneWay(t *testing.T) {
	a := analyse(t, func(w *world) {
		for i := range 4 {
			at := float64(i) * 100
			w.dns(at, layers.UDPPort(4000+i), "www.example.com", -1, 0, false)
			s := seg{from: client, to: server, sp: layers.TCPPort(40000 + i), dp: 80, flags: "S", seq: 999}
			w.tcp(at+10, s)
			s.flags, s.seq, s.ack = "A", 1000, 5000
			w.tcp(at+30, s)
			s.size = 80
			w.tcp(at+31, s)
			s.seq, s.ack, s.size = 1080, 5500, 0
			w.tcp(at+60, s)
		}
	})
	if f := a.Findings[0]; f.Code != "asymmetric-path" || a.Findings[len(a.Findings)-1].Severity != finding.Info {
		t.Errorf("%+v", a.Findings)
	}
}

// TestAskerAlone: that a router asks is no fact where the asker sends nothing else.
func TestAskerAlone(t *testing.T) {
	f := analyse(t, func(w *world) {
		for i := range 4 {
			w.arp(float64(i)*1000, 1, mac(client), client, "192.0.2.254")
		}
	}).Findings[0]
	if f.Code != "host-down" || !strings.Contains(f.Detail, "and so does a host") {
		t.Errorf("%+v", f)
	}
	for _, tt := range []struct{ from, about, want string }{{"fe80::1", "2001:db8::77", "host-down"}, {"2001:db8::1", "2001:db8::77", "nd-failure"}, {"fe80::1", "fe80::77", "nd-failure"}} {
		f := analyse(t, func(w *world) {
			for i := range 4 {
				w.nd6(float64(i)*1000, mac(client), tt.from, "ff02::1:ff00:77", solicit(135, tt.about))
			}
		}).Findings[0]
		if f.Code != tt.want {
			t.Errorf("%s asks for %s: %s", tt.from, tt.about, f.Code)
		}
	}
}
