package policy

import (
	"strings"
	"testing"
)

// ordinary is what a case asks for all day.
var ordinary = []string{
	"ping -c 4 10.0.0.5",
	"dig +short A www.example.com",
	"ss -tulpn",
	"curl -sS -o /dev/null -w '%{http_code} %{time_total}' --max-time 10 https://www.example.com/health",
	"ip route get 10.20.30.40",
	"az network nsg rule list -g prod-rg --nsg-name web-nsg --query \"[?access=='Deny'].{name:name,prio:priority}\" -o table",
	"kubectl get pods -n payments -o wide",
	"tshark -r /var/captures/a.pcap -Y 'tcp.flags.reset == 1' -T fields -e frame.number -e ip.src",
	"traceroute -n -w 2 -q 1 -m 20 example.com",
	"openssl s_client -connect api.example.com:443 -servername api.example.com",
	"systemctl restart nginx",
	"ss -tan state established | wc -l",
}

// Baseline, one core of an AMD EPYC shared with other work: 6.7 us a command
// (150,000 a second), 31 allocations; the bar is 20 us.
func BenchmarkClassifyOrdinary(b *testing.B) {
	p := New(Options{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.Classify(ordinary[i%len(ordinary)])
	}
}

// Baseline: 2 to 33 ms for a megabyte of any of these; the bar is 50 ms.
func BenchmarkClassifyMegabyte(b *testing.B) {
	p := New(Options{})
	for name, unit := range map[string]string{
		"one-word": "a", "words": "ping ", "quotes": "'", "parens": "(", "pipes": "a|", "dollars": "$(", "sudo": "sudo ",
		"lines": "reboo\n", "ssh": "ssh h ", "find": "find -exec ", "watch": "watch watch ", "redirects": ">x ", "docker": "docker run x ",
		"utf8": "\u00e9", "invalid": "\xff", "rm": "rm -r ", "curl": "curl ", "mounts": "docker run -v /:/h a ", "embeds": "tar -I x ", "git": "git -c a=!",
	} {
		text := strings.Repeat(unit, 1<<20/len(unit))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				p.Classify(text)
			}
		})
	}
}

// The longest texts that are still parsed. Baseline: 0.3 to 21 ms.
func BenchmarkClassifyLongest(b *testing.B) {
	p := New(Options{})
	for name, unit := range map[string]string{
		"words": "ping ", "quotes": "''", "pipes": "a|", "sudo": "sudo -a -b ", "lines": "reboo\n", "ssh": "ssh h ", "find": "find -exec ",
		"bash": "bash -c ", "watch": "watch ", "if": "if ", "subst": "`", "redirects": ">x ", "long-options": "sudo --a --b sudo ", "curl": "curl a=@/a/b/c:d,e ",
		"cat": "cat /a/b/c ", "env": "env A=b ", "braces": "a{b,c} ",
	} {
		text := "x " + strings.Repeat(unit, (16<<10)/len(unit)-2)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p.Classify(text[2:])
			}
		})
	}
}

// Baseline: 5 ms; a program makes one policy at its start.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(Options{})
	}
}
