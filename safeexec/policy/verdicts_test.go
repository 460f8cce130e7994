package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// notSafe stands, in the tables, for RISKY or FORBIDDEN.
const notSafe Class = 99

type verdict struct {
	want Class
	text string
}

func TestVerdicts(t *testing.T) {
	p := New(Options{})
	for name, table := range map[string][]verdict{
		"probes": probesVerdicts, "http": httpVerdicts, "shapes": shapesVerdicts, "az": azVerdicts, "everyday": everydayVerdicts, "reads": readsVerdicts, "never": neverVerdicts,
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range table {
				got := p.Classify(c.text)
				if got.Class != c.want && !(c.want == notSafe && got.Class != Safe) {
					want := c.want.String()
					if c.want == notSafe {
						want = "not SAFE"
					}
					t.Errorf("%q is %s (%s), want %s", c.text, got.Class, got.Reason, want)
				}
				wellFormed(t, c.text, got)
			}
		})
	}
}

// wellFormed checks what holds for every verdict.
func wellFormed(t *testing.T, text string, v Verdict) {
	t.Helper()
	if v.Rule == "" || v.Reason == "" || strings.ContainsAny(v.Reason, "\n\x00") || len(v.Reason) > 300 {
		t.Errorf("%.80q: rule %q, reason %q", text, v.Rule, v.Reason)
	}
	if v.Rule == "internal" {
		t.Errorf("%.80q breaks the parser or the policy", text)
	}
	if (v.Class == Safe) != (v.Tier == nil) {
		t.Errorf("%.80q is %s with tier %v", text, v.Class, v.Tier)
	}
	if v.Class == Safe && len(v.Argv) == 0 {
		t.Errorf("%.80q is SAFE without a list of arguments", text)
	}
	if (v.Tier != nil && *v.Tier == 0) != (v.Class == Forbidden) {
		t.Errorf("%.80q is %s of tier %v", text, v.Class, v.Tier)
	}
	if v.Environment != "local" && v.Environment != "azure" {
		t.Errorf("%.80q: environment %q", text, v.Environment)
	}
}

// Everything in the tables keeps its class when it is given as a list.
func TestClassifyArgv(t *testing.T) {
	p := New(Options{})
	for _, table := range [][]verdict{probesVerdicts, httpVerdicts, shapesVerdicts, azVerdicts, everydayVerdicts, readsVerdicts, neverVerdicts} {
		for _, c := range table {
			v := p.Classify(c.text)
			if v.Argv == nil || v.Class == Forbidden {
				continue
			}
			again := p.ClassifyArgv(v.Argv)
			if v.Class == Safe && again.Class != Safe {
				t.Errorf("%q is SAFE as a text, %s (%s) as a list", c.text, again.Class, again.Reason)
			}
			if d := cmp.Diff(v.Argv, again.Argv); d != "" {
				t.Errorf("%q (-text +list):\n%s", c.text, d)
			}
			if text := p.Classify(Quote(v.Argv)); cmp.Diff(text, again) != "" {
				t.Errorf("%q: the list and its quoted form differ:\n%s", c.text, cmp.Diff(text, again))
			}
		}
	}
	for _, argv := range [][]string{nil, {}, {""}, {"ping", "-c", "1", "a\nb"}, {"ping", "\xff"}, {"a", "\x00"}, {"\u202eping"}} {
		if v := p.ClassifyArgv(argv); v.Class != Risky {
			t.Errorf("ClassifyArgv(%q) is %s", argv, v.Class)
		} else {
			wellFormed(t, Quote(argv), v)
		}
	}
	for _, argv := range [][]string{{"rm", "-rf", "/"}, {"sh", "-c", "dig x\nreboot"}, {"sudo", "reb\x00oot"[:3] + "oot"}} {
		if v := p.ClassifyArgv(argv); v.Class != Forbidden {
			t.Errorf("ClassifyArgv(%q) is %s (%s)", argv, v.Class, v.Reason)
		}
	}
}

// Reasons are read by people in the night: the hint must be in them.
func TestReasons(t *testing.T) {
	p := New(Options{})
	for text, want := range map[string]string{
		"ping 10.0.0.1":               "ping never ends without a count; add -c 4",
		"ping -c 1000000 10.0.0.1":    "ping -c 1000000: give a number from 1 to 100",
		"ping -f -c 3 10.0.0.1":       "ping -f: flood mode is a load test, not a probe",
		"ping -Z -c 3 10.0.0.1":       "ping -Z is not on the list of flags that run without a person",
		"curl --data x http://x.test": "curl --data: sends data; only GET and HEAD run without a person",
		"curl -L http://x.test":       "curl follows up to 50 redirects; add --max-redirs 3",
		"mtr 10.0.0.1":                "mtr is an interactive screen; add --report",
		"nstat":                       "nstat writes its history file; add -s",
		"kubectl logs web":            "kubectl has no bound; add --tail=100",
		"kubectl get secrets":         "kubectl get secrets: secrets are read only after a person agreed",
		"frobnicate --now":            "frobnicate is not on the list of programs that run without a person",
		"/usr/bin/ping -c 1 x":        "a program given by its path runs only after a person agreed; use the plain name",
		"timeout 10 tcpdump -i lo":    "tcpdump -i: captures live traffic; started by timeout",
		"sudo -u root nice -n 5 env A=b timeout -k 2 10 tcpdump -i lo": "tcpdump -i: captures live traffic; started by sudo and nice and env and timeout",
		"nohup frobnicate":           "frobnicate is not on the list of programs that run without a person; started by nohup",
		"sudo ss -t":                 "sudo starts another program; that needs a person",
		"ss -t | wc -l":              "pipes are not run here; the gate takes one command only",
		"ss -t > /tmp/x":             "redirections are not run here; the output comes back by itself",
		"ping -c 1 $HOST":            "there is no shell to expand variables; write the value",
		"ping 'x":                    "the text is no command line: a quote is never closed",
		"":                           "there is no command in it",
		"az vm delete -n x":          "az vm delete changes resources",
		"az vm list --query '[?a'":   `the --query expression is wrong: "]" is missing at the end`,
		"az vm list -n @/etc/passwd": "az reads a local file into an argument that begins with @",
		"rm -rf /":                   "never run: a system or home directory deleted: /",
		"sudo systemctl reboot":      "never run: the machine taken out of service (systemctl reboot)",
		"cat /etc/shadow":            "never run: a credential store read: /etc/shadow",
		"vmstat 1":                   `vmstat 1 repeats for ever; add a count, as in "1 5"`,
		"tcpdump -i eth0":            "tcpdump -i: captures live traffic",
		"ip link set eth0 down":      "ip link set: changes links",
	} {
		if got := p.Classify(text).Reason; got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}
