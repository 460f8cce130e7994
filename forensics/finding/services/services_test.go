package services

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ghostbot/forensics/app"
	"ghostbot/forensics/control"
	"ghostbot/forensics/dns"
	"ghostbot/forensics/facts"
	"ghostbot/forensics/finding/statement"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/tcp"
)

func empty() *facts.Facts {
	return &facts.Facts{TCP: tcp.New(tcp.Options{}), DNS: dns.New(), Control: control.New(), App: app.New()}
}

func codes(list []statement.Finding) string {
	var out []string
	for _, f := range list {
		out = append(out, fmt.Sprintf("%s %s", f.Severity, f.Code))
	}
	return strings.Join(out, ", ")
}

func addr(last byte) flow.Addr { return flow.V4([]byte{192, 0, 2, last}) }

// message is a DHCP message; a server's has an identity, a router and an address to give.
type message struct {
	typ    byte
	xid    byte
	server byte
	net    byte
}

func (m message) view() *frame.View {
	b := make([]byte, 8+240)
	b[8+7] = m.xid
	copy(b[8+236:], []byte{0x63, 0x82, 0x53, 0x63})
	b = append(b, 53, 1, m.typ)
	if m.server > 0 {
		copy(b[8+16:], []byte{10, 0, m.net, 50})
		b = append(b, 54, 4, 192, 0, 2, m.server, 1, 4, 255, 255, 255, 0, 3, 4, 10, 0, m.net, 1)
	}
	return &frame.View{Src: addr(m.server), L4: append(b, 255)}
}

func TestLeases(t *testing.T) {
	for _, tt := range []struct {
		what string
		said []message
		want string
	}{
		{"nothing", nil, ""},
		{"a lease", []message{{typ: 1, xid: 1}, {typ: 2, xid: 1, server: 9}, {typ: 3, xid: 1}, {typ: 5, xid: 1, server: 9}}, ""},
		{"one request that nobody is seen to answer", []message{{typ: 1, xid: 1}}, "LOW dhcp-no-answer"},
		{"asked again", []message{{typ: 1, xid: 1}, {typ: 1, xid: 1}}, "HIGH dhcp-no-answer"},
		{"renewal asked again", []message{{typ: 3, xid: 1}, {typ: 3, xid: 1}}, "HIGH dhcp-no-answer"},
		{"others are served", []message{{typ: 3, xid: 2}, {typ: 5, xid: 2, server: 9}, {typ: 1, xid: 1}, {typ: 1, xid: 1}}, "HIGH dhcp-exhausted"},
		{"one that others are served beside", []message{{typ: 3, xid: 2}, {typ: 5, xid: 2, server: 9}, {typ: 1, xid: 1}}, ""},
		{"refused", []message{{typ: 3, xid: 1}, {typ: 6, xid: 1, server: 9}}, "MEDIUM dhcp-nak"},
		{"declined", []message{{typ: 3, xid: 1}, {typ: 5, xid: 1, server: 9}, {typ: 4, xid: 2}}, "MEDIUM dhcp-address-in-use"},
		{"two servers of one network", []message{{typ: 1, xid: 1}, {typ: 2, xid: 1, server: 8}, {typ: 2, xid: 1, server: 9}}, ""},
		{"two networks", []message{{typ: 1, xid: 1}, {typ: 2, xid: 1, server: 8}, {typ: 2, xid: 1, server: 9, net: 3}}, "HIGH dhcp-rogue-server"},
	} {
		f := empty()
		for i, m := range tt.said {
			f.Control.DHCP4(m.view(), uint32(i+1), int64(i)*1e9)
		}
		if got := codes(All(f)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, got, tt.want)
		}
	}
}

func TestRouters(t *testing.T) {
	prefix := func(n byte) []control.Prefix {
		return []control.Prefix{{Addr: flow.V6([]byte{0x20, 1, 0xd, 0xb8, n, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), Bits: 64}}
	}
	for _, tt := range []struct {
		what string
		a, b control.Router
		want string
	}{
		{"the same", control.Router{Lifetime: 1800, Prefixes: prefix(1)}, control.Router{Lifetime: 1800, Prefixes: prefix(1)}, ""},
		{"another network", control.Router{Lifetime: 1800, Prefixes: prefix(1)}, control.Router{Lifetime: 1800, Prefixes: prefix(2)}, "MEDIUM router-conflict"},
		{"no default router", control.Router{Lifetime: 1800, Prefixes: prefix(1)}, control.Router{Prefixes: prefix(2)}, ""},
		{"no network", control.Router{Lifetime: 1800, Prefixes: prefix(1)}, control.Router{Lifetime: 1800}, ""},
		{"other flags", control.Router{Lifetime: 1800, Prefixes: prefix(1), Flags: 0x80}, control.Router{Lifetime: 1800, Prefixes: prefix(1)}, "MEDIUM router-conflict"},
		{"another preference", control.Router{Lifetime: 1800, Prefixes: prefix(1), Flags: 0x08}, control.Router{Lifetime: 1800, Prefixes: prefix(1)}, ""},
		{"another MTU", control.Router{Lifetime: 1800, Prefixes: prefix(1), MTU: 1500}, control.Router{Lifetime: 1800, Prefixes: prefix(1), MTU: 1280}, "MEDIUM router-conflict"},
		{"an MTU and none", control.Router{Lifetime: 1800, Prefixes: prefix(1), MTU: 1500}, control.Router{Lifetime: 1800, Prefixes: prefix(1)}, ""},
	} {
		f := empty()
		tt.a.Addr, tt.b.Addr = addr(1), addr(2)
		f.Control.Routers.List = []*control.Router{&tt.a, &tt.b}
		if got := codes(All(f)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, got, tt.want)
		}
	}
}

func TestRefusedAddress(t *testing.T) {
	f := empty()
	f.Control.ND.Refused = []control.Refused{{Addr: addr(9), MACs: [2]control.MAC{{2, 1}, {2, 2}}, Frames: []uint32{3, 4}}}
	got := All(f)
	if codes(got) != "CRITICAL duplicate-ip" || !strings.Contains(got[0].Detail, "02:01:00:00:00:00") || fmt.Sprint(got[0].Frames) != "[3 4]" {
		t.Errorf("%+v", got)
	}
}

// udp adds a conversation from 192.0.2.1 to 192.0.2.2.
func udp(f *facts.Facts, port uint16, there, back uint32, seconds int64, quic bool, marks app.Marks) {
	k, reverse := flow.Make(addr(1), addr(2), 50000, port, 17)
	d := 0
	if reverse {
		d = 1
	}
	_, u := f.App.UDP.Add(&k)
	*u = app.Flow{First: 1e9, Last: 1e9 + seconds*1e9, FirstFrame: 5, Dir: uint8(d), QUIC: quic, Marks: marks}
	u.Packets[d], u.Packets[d^1] = there, back
}

func TestDatagrams(t *testing.T) {
	for _, tt := range []struct {
		what        string
		port        uint16
		there, back uint32
		seconds     int64
		quic        bool
		marks       app.Marks
		want        string
	}{
		{"QUIC that works", 443, 5, 5, 3, true, app.Shaken | app.Protected, ""},
		{"QUIC without an answer", 443, 4, 0, 3, true, 0, "MEDIUM quic-no-answer"},
		{"one Initial", 443, 1, 0, 0, true, 0, ""},
		{"another version", 443, 2, 2, 1, true, app.Negotiated, "LOW quic-version"},
		{"a Retry", 443, 2, 2, 1, true, app.Retried, ""},
		{"NTP without an answer", 123, 4, 0, 3, false, 0, "MEDIUM udp-no-answer"},
		{"NTP that works", 123, 4, 4, 3, false, 0, ""},
		{"NTP, too short", 123, 2, 0, 3, false, 0, ""},
		{"statistics that nobody answers", 8125, 400, 0, 3, false, 0, ""},
	} {
		f := empty()
		f.TCP.Total.Handshakes = 1
		udp(f, tt.port, tt.there, tt.back, tt.seconds, tt.quic, tt.marks)
		if got := codes(All(f)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, got, tt.want)
		}
	}
}

// TestOneWayCapture: where nothing goes both ways, a missing answer is no finding to act on.
func TestOneWayCapture(t *testing.T) {
	f := empty()
	udp(f, 123, 4, 0, 3, false, 0)
	if got := All(f); codes(got) != "LOW udp-no-answer" || got[0].Limits == "" {
		t.Errorf("%+v", got)
	}
	f.Control.Errors = []*control.Errors{{About: addr(2), Port: 123}}
	if got := All(f); codes(got) != "" {
		t.Errorf("with an ICMP error: %+v", got)
	}
}

func TestRetries(t *testing.T) {
	f := empty()
	for i := range 3 {
		k, _ := flow.Make(addr(1), addr(2), uint16(50000+i), 443, 17)
		_, u := f.App.UDP.Add(&k)
		*u = app.Flow{QUIC: true, Packets: [2]uint32{2, 2}, Marks: app.Retried}
	}
	if got := codes(All(f)); got != "INFO quic-retry" {
		t.Error(got)
	}
}

func TestSessions(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	key, _ := flow.Make(addr(1), addr(2), 40000, 443, 6)
	for _, tt := range []struct {
		what string
		s    app.Session
		want string
	}{
		{"a year left", app.Session{TLS: app.Handshake{CertFrame: 3, NotBefore: now.Add(-day), NotAfter: now.Add(365 * day)}}, ""},
		{"five days left", app.Session{TLS: app.Handshake{CertFrame: 3, NotBefore: now.Add(-day), NotAfter: now.Add(5 * day)}}, "LOW certificate-expires"},
		{"ended", app.Session{TLS: app.Handshake{CertFrame: 3, NotBefore: now.Add(-9 * day), NotAfter: now.Add(-day)}}, ""},
		{"not begun", app.Session{TLS: app.Handshake{CertFrame: 3, NotBefore: now.Add(day), NotAfter: now.Add(5 * day)}}, ""},
		{"TLS 1.0", app.Session{TLS: app.Handshake{ServerHello: 4, Version: 0x0301}}, "LOW tls-old-version"},
		{"TLS 1.2", app.Session{TLS: app.Handshake{ServerHello: 4, Version: 0x0303}}, ""},
		{"an unknown version", app.Session{TLS: app.Handshake{ServerHello: 4, Version: 0x7f17}}, ""},
		{"not found", app.Session{HTTP: app.Exchange{Responses: 4, Errors4xx: 3, Refused: []uint32{7}}}, "LOW http-client-errors"},
		{"rarely not found", app.Session{HTTP: app.Exchange{Responses: 40, Errors4xx: 3}}, ""},
		{"too few", app.Session{HTTP: app.Exchange{Responses: 2, Errors4xx: 2}}, ""},
	} {
		f := empty()
		f.First = now.UnixNano()
		tt.s.Key = key
		f.App.Sessions = []*app.Session{&tt.s}
		got := All(f)
		if codes(got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, codes(got), tt.want)
		}
		for _, x := range got {
			if x.Flow != "192.0.2.1:40000 -> 192.0.2.2:443" || x.Confirm == "" {
				t.Errorf("%s: %+v", tt.what, x)
			}
		}
	}
}

func TestAnnouncements(t *testing.T) {
	for _, tt := range []struct {
		gratuitous, requests uint64
		want                 string
	}{{10, 10, ""}, {11, 20, "LOW arp-announcements"}, {11, 500, ""}, {0, 0, ""}} {
		f := empty()
		f.Control.ARP.Gratuitous, f.Control.ARP.Requests = tt.gratuitous, tt.requests
		if got := codes(All(f)); got != tt.want {
			t.Errorf("%d of %d: %s", tt.gratuitous, tt.requests, got)
		}
	}
}
