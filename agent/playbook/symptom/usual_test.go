package symptom_test

import (
	"testing"

	"ghostbot/agent/playbook/symptom"
)

// TestUsualPort: a service that is named instead of a port has one, unless the way there
// is what people speak of, or they name a port after all.
func TestUsualPort(t *testing.T) {
	for text, want := range map[string]string{
		"cannot ssh into 192.0.2.10":                                    "tcp 192.0.2.10:22 SSH",
		"ntp server 192.0.2.10 does not answer":                         "udp 192.0.2.10:123 NTP",
		"chrony can't sync with 192.0.2.10":                             "udp 192.0.2.10:123 NTP",
		"sftp to files.example.com hangs":                               "tcp files.example.com:22 SSH",
		"ssh: connect to host 192.0.2.10 port 2222: connection refused": "tcp 192.0.2.10:2222 ",
		"ssh to 192.0.2.10:2022 hangs":                                  "tcp 192.0.2.10:2022 ",
		"ssh to 192.0.2.10: packet loss, ping is bad":                   " 192.0.2.10 ",
		"ssh.example.com does not resolve":                              "tcp ssh.example.com ",
		"is 192.0.2.10 down?":                                           " 192.0.2.10 ",
	} {
		s := symptom.Parse(text)
		if len(s.Targets) != 1 {
			t.Errorf("%q: %v", text, s.Targets)
			continue
		}
		e := s.Targets[0]
		where := e.Host
		if e.Port != 0 {
			where = e.String()
		}
		if got := e.Scheme + " " + where + " " + e.Usual; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
