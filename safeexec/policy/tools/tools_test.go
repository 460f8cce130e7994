package tools

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func table(t *testing.T, src string) *Table {
	t.Helper()
	tb, err := load(src, Config{})
	if err != nil {
		t.Fatal(err)
	}
	return tb
}

func builtin(t *testing.T, c Config) *Table {
	t.Helper()
	tb, err := Load(c)
	if err != nil {
		t.Fatal(err)
	}
	return tb
}

// Patterns are compiled when they are first needed; here all of them are.
func TestPatternsCompile(t *testing.T) {
	src, err := Source()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, m := range regexp.MustCompile(`(?m)\sre\((\S+)\)[?*+~_=]?(\s|$)`).FindAllStringSubmatch(src, -1) {
		n++
		if _, err := regexp.Compile("^(?:" + m[1] + ")$"); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
	if n < 100 {
		t.Errorf("%d patterns found", n)
	}
}

// Every program says what of it is SAFE, every refusal says why.
func TestTables(t *testing.T) {
	for _, d := range builtin(t, Config{}).Describe() {
		if d.Safe == "" {
			t.Errorf("%s does not say what is SAFE", d.Name)
		}
		checkDoc(t, d.Name, d)
	}
}

func checkDoc(t *testing.T, name string, d Doc) {
	t.Helper()
	for _, f := range d.Never {
		if len(f.Why) < 5 || strings.HasSuffix(f.Why, ".") {
			t.Errorf("%s %v: the reason %q is no short sentence", name, f.Names, f.Why)
		}
	}
	for _, s := range d.Subs {
		checkDoc(t, name+" "+s.Name, s)
	}
}

// A flag or a word that is listed as never SAFE is not, wherever it stands.
func TestNever(t *testing.T) {
	tb := builtin(t, Config{})
	for _, d := range tb.Describe() {
		never(t, tb, []string{d.Name}, d)
	}
}

func never(t *testing.T, tb *Table, before []string, d Doc) {
	for _, f := range d.Never {
		for _, name := range f.Names {
			for _, after := range [][]string{nil, {"x"}, {"192.0.2.1"}, {"a.pcap"}, {"https://example.com"}} {
				argv := append(append(append([]string{}, before...), name), after...)
				if tb.Check(argv) == nil {
					t.Errorf("%q is SAFE", argv)
				}
				argv = append(append(append([]string{}, before...), after...), name)
				if name[0] == '-' && tb.Check(argv) == nil {
					t.Errorf("%q is SAFE", argv)
				}
			}
		}
	}
	for _, s := range d.Subs {
		never(t, tb, append(before[:len(before):len(before)], s.Name), s)
	}
}

// Programs that read, write, run or reach anything are on no list.
func TestUnknown(t *testing.T) {
	tb := builtin(t, Config{})
	for _, name := range strings.Fields(`ansible apt apt-get ar aria2c as ash at awk aws base32 base64 basenc bash bat batch bc bpftrace bundle busctl busybox byobu c89 cat cc chmod chown chroot cmp
		cobc column comm cowsay cp cpan cpio cpulimit crash crontab csh csplit cupsfilter cut dash dd debugfs dialog diff dmsetup dnf dosbox dpkg dvips easy_install eb echo ed efax emacs env eqn ex
		exiftool expand expect facter find finger fish flock fmt fold ftp gawk gcc gcloud gcore gdb gem genisoimage ghc ghci gimp git grep gtester gzip hd head hexdump highlight hping3 iconv iftop install ionice
		irb jjs joe join journalctl jq jrunscript jtag julia knife ksh ksshell ksu latex ld less lftp ln loginctl logsave look lp ltrace lua lwp-download lwp-request mail make man mawk minicom
		more mosquitto mount.nfs msfconsole msgattrib msgcat mtr-packet multitime mv mysql nano nasm nawk ncftp ngrep nice nl nm nmap node nohup npm nroff nsenter octave od openvpn opkg pandoc paste pdb pdflatex perf
		perl perlbug pexec pg php pic pico pip pkexec pkg posh pr printenv printf pry psftp psql ptx puppet python python3 rake readelf red redcarpet restic rev rlogin rlwrap rm rpm rpmquery rsync
		rtorrent ruby run-mailcap run-parts rview rvim sash scanmem scp screen script scrot sed service setarch setfacl sftp sg sh shuf slsh smbclient snap snmpget socat soelim sort split sqlite3
		ssh ssh-agent ssh-keygen ssh-keyscan sshpass start-stop-daemon stdbuf strace strings su sudo systemd-run tac tail tar task taskset tasksh tbl tclsh tcpkill tcpreplay tdbtool tee telnet tex tftp tic
		time timeout tmate tmux torify troff ul unexpand uniq unshare unzip update-alternatives uudecode uuencode vagrant valgrind vi view vigr vim vimdiff vipw volatility w3m wall watch wc wget wish
		xargs xdotool xelatex xetex xmodmap xmore xpad xxd xz yarn yash yelp yum zathura zcat zip zsh zsoelim zypper nping iperf iperf3 tcpliveplay editcap mergecap dumpcap text2pcap rawshark ab wrk hey siege masscan`) {
		if tb.Known(name) {
			t.Errorf("%s is on the list", name)
		}
	}
}

// A flag that is listed as SAFE is not also listed as never SAFE.
func TestNoContradictions(t *testing.T) {
	for _, n := range builtin(t, Config{}).order {
		contradictions(t, n)
	}
}

func contradictions(t *testing.T, n *node) {
	seen := map[string]bool{}
	for _, f := range n.listed {
		for _, name := range f.names {
			if was, ok := seen[name]; ok && was != (f.no != "") {
				t.Errorf("%s %s is listed both ways", n.names[0], name)
			}
			seen[name] = f.no != ""
		}
	}
	for _, e := range n.entries {
		if e.sub != nil {
			contradictions(t, e.sub)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	for src, want := range map[string]string{
		"tool":                             "a name is missing",
		"toll x":                           `"toll" is not known here`,
		"tool x\ntool x":                   "x is listed twice",
		"    x":                            "indented too far",
		"tool x\n    -a":                   "indented too far",
		"tool x\n  frob y":                 `"frob" is not known here`,
		"tool x\n  style odd":              "no such style",
		"tool x\n  check odd":              "no such check",
		"tool x\n  use odd":                "no such block",
		"tool x\n  -a odd":                 `"odd" is no type`,
		"tool x\n  -a odd(1)":              `"odd" is no type`,
		"tool x\n  -a int(1)":              `"1": two bounds are needed`,
		"tool x\n  -a int(a..b)":           "invalid syntax",
		"tool x\n  -a host port":           `"host" is not known here`,
		"tool x\n  args odd":               `"odd" is no type`,
		"tool x\n  no -a":                  "names, a colon and a text are needed",
		"tool x\n  need : x":               "names, a colon and a text are needed",
		"tool x\n  deny y :":               "names, a colon and a text are needed",
		"tool x\n  word host":              "a keyword is missing",
		"tool x\n  word a host b":          `"b" is no type`,
		"tool x\n  safe y\n  sub z\n  bad": `"bad" is not known here`,
	} {
		_, err := load(src, Config{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("load(%q) = %v, want %q", src, err, want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "tool tables line ") {
			t.Errorf("load(%q) does not name the line: %v", src, err)
		}
	}
}

const sample = `
# a comment
block common
  -q --quiet
tool probe prober
  safe    a sample
  use common
  -c --count   int(1..10)
  -o --output  enum(a|b)?
  -l           re([a-z]+)~
  -L           re([A-Z]+)_
  -m --mode    enum(x)=
  -4 -6
  no -f --flood : is a flood # and a comment
  need -c --count : needs a count
  with -4 -q : wants quiet
  args host port?
tool many
  args host+
tool none
tool go
  style pflag
  -n --ns      name
  -A --all
  -w --watch   enum(false)=
  sub get
    -o         enum(wide|name)
    args name*
  sub top
    bare
    sub nodes
  deny exec : runs a program
tool single
  style dash
  abbrev
  -family      enum(inet|inet6)
  -4
  no -batch : runs a file
  sub address
    bare
    deny add : changes
    sub show lst
      word dev iface
      word up
      args iface?
  deny monitor : never ends
tool plain
  style words
  -a
  -x           iface
  --zone       name=
  args name?
tool web
  style curl
  -s --silent
  -m --max-time int(1..9)
  args host
tool plus
  +short
  +time        int(1..9)=
  +c           int(1..9)
  args host*
`

func TestInterpreter(t *testing.T) {
	tb := table(t, sample)
	for _, c := range []struct{ cmd, want string }{
		// getopt: bundles, glued and separate values, "=", permutation, "--"
		{"probe -c 3 h", ""}, {"probe -c3 h", ""}, {"probe --count 3 h", ""}, {"probe --count=3 h", ""}, {"probe h -c 3", ""}, {"probe -qc3 h", ""}, {"probe -qc 3 h", ""},
		{"prober -c 3 h 80", ""}, {"probe -c 3 -- h", ""}, {"probe -c 3 -q --quiet h", ""}, {"probe -6q4 -c 1 h", ""},
		{"probe -c 11 h", "probe-value"}, {"probe -c 0 h", "probe-value"}, {"probe -c -1 h", "probe-value"}, {"probe -c +1 h", "probe-value"}, {"probe -c x h", "probe-value"}, {"probe -c", "probe-flag"},
		{"probe -c 3", "probe-args"}, {"probe -c 3 h 80 x", "probe-args"}, {"probe -c 3 -- -h", "probe-args"}, {"probe -c 3 'a", "probe-args"}, {"probe h", "probe-need"}, {"probe -4c3 h", "probe-need"},
		{"probe -f -c 3 h", "probe-flag"}, {"probe -qf -c 3 h", "probe-flag"}, {"probe -fq -c 3 h", "probe-flag"}, {"probe --flood -c 3 h", "probe-flag"}, {"probe --flo -c 3 h", "probe-flag"}, {"probe -z -c 3 h", "probe-flag"},
		{"probe -qz -c 3 h", "probe-flag"}, {"probe --zip -c 3 h", "probe-flag"}, {"probe --quiet=1 -c 3 h", "probe-flag"}, {"probe --count= h", "probe-value"},
		// optional values: glued, loose, apart, after "=" only
		{"probe -c 3 -o h", ""}, {"probe -c 3 -oa h", ""}, {"probe -c 3 --output=a h", ""}, {"probe -c 3 --output h", ""}, {"probe -c 3 -oc h", "probe-value"}, {"probe -c 3 -o a h", ""}, {"probe -c 3 -o a h 80", "probe-args"},
		{"probe -c 3 -l x h", ""}, {"probe -c 3 -lx h", ""}, {"probe -c 3 -l -q h", ""}, {"probe h -c 3 -l", ""}, {"probe -c 3 -l 1 h", "probe-value"},
		{"probe -c 3 -L X h", ""}, {"probe h -c 3 -L", ""}, {"probe h -c 3 -Lq", ""}, {"probe h -c 3 -Lf", "probe-flag"}, {"probe h -c 3 -L x", "probe-value"},
		{"probe -c 3 --mode=x h", ""}, {"probe -c 3 -mx h", ""}, {"probe -c 3 --mode x h", "probe-flag"}, {"probe -c 3 --mode h", "probe-flag"},
		// operands
		{"many a", ""}, {"many a b c", ""}, {"many", "many-args"}, {"many a b!", "many-args"}, {"none", ""}, {"none x", "none-args"}, {"none -x", "none-flag"},
		{"many " + strings.Repeat("a ", 65), "many-args"},
		// pflag
		{"go get", ""}, {"go -n x get a", ""}, {"go get -n x", ""}, {"go get -nx", ""}, {"go get -n=x", ""}, {"go get --ns=x -A", ""}, {"go get --all=true", ""}, {"go get --all=false", ""}, {"go get -o=wide", ""}, {"go get -owide", ""},
		{"go get --watch=false", ""}, {"go get -w=false", ""}, {"go get -w", "go-flag"}, {"go get --watch", "go-flag"}, {"go get --watch=true", "go-value"}, {"go get --all=1", "go-flag"}, {"go get -o yaml", "go-value"},
		{"go", "go-args"}, {"go top", ""}, {"go top nodes", ""}, {"go top pods", "go-args"}, {"go exec x", "go-args"}, {"go delete x", "go-args"}, {"go -o wide get", "go-flag"}, {"go g", "go-args"},
		// dash with shortened words
		{"single address", ""}, {"single a", ""}, {"single a s", ""}, {"single addr show dev e0", ""}, {"single a l up", ""}, {"single a s e0", ""}, {"single -4 a", ""}, {"single -family inet a", ""}, {"single -family=inet a", ""},
		{"single a a x", "single-args"}, {"single a s dev", "single-args"}, {"single a s dev -x", "single-value"}, {"single a s dev 'e", "single-value"}, {"single a s e0 e1", "single-args"}, {"single m", "single-args"}, {"single x", "single-args"},
		{"single -b x", "single-flag"}, {"single -batch x", "single-flag"}, {"single --batch x", "single-flag"}, {"single -family x a", "single-value"}, {"single", "single-args"}, {"single -fam inet a", "single-flag"},
		// words: exact flags
		{"plain", ""}, {"plain -a", ""}, {"plain -x e0", ""}, {"plain --zone=y", ""}, {"plain z", ""}, {"plain -ax", "plain-flag"}, {"plain --zone y", "plain-flag"}, {"plain -xe0", "plain-flag"}, {"plain -x=e0", "plain-flag"}, {"plain +a", "plain-args"},
		// curl: long options never take "="
		{"web -sm3 h", ""}, {"web --max-time 3 h", ""}, {"web --max-time=3 h", "web-flag"}, {"web -m3 h", ""}, {"web --sil h", "web-flag"}, {"web h h", "web-args"},
		// flags that begin with "+"
		{"plus +short h", ""}, {"plus +time=3 h", ""}, {"plus +time 3", "plus-flag"}, {"plus +time=0", "plus-value"}, {"plus +c3", ""}, {"plus +c 3", ""}, {"plus +shor", "plus-flag"}, {"plus +c", "plus-flag"},
		// programs
		{"other", "unknown-program"}, {"./probe -c 3 h", "path"}, {"/bin/probe -c 3 h", "path"}, {"Probe -c 3 h", "unknown-program"}, {"(self) version", "unknown-program"},
	} {
		got := ""
		if p := tb.Check(strings.Fields(c.cmd)); p != nil {
			got = p.Rule
			if p.Reason == "" || strings.Contains(p.Reason, "%!") {
				t.Errorf("%q: reason %q", c.cmd, p.Reason)
			}
		}
		if got != c.want {
			t.Errorf("%.60q = %q, want %q", c.cmd, got, c.want)
		}
	}
	if p := tb.Check(nil); p == nil || p.Rule != "empty" {
		t.Errorf("Check(nil) = %v", p)
	}
}

func TestKnown(t *testing.T) {
	tb := builtin(t, Config{})
	for name, want := range map[string]bool{"ping": true, "curl": true, "cat": false, "rm": false, "": false, "/bin/ping": false} {
		if tb.Known(name) != want {
			t.Errorf("Known(%q) = %v", name, !want)
		}
	}
}

func TestSelf(t *testing.T) {
	tb := builtin(t, Config{Self: "/opt/ghostbot/ghostbot"})
	for cmd, safe := range map[string]bool{
		"/opt/ghostbot/ghostbot pcap a.pcap --json": true, "/opt/ghostbot/ghostbot pcap --json a.pcap --compare b.pcap --mode endpoints": true, "/opt/ghostbot/ghostbot pcap a.pcap": false,
		"/opt/ghostbot/ghostbot classify rm": true, "/opt/ghostbot/ghostbot version --json": true,
		"/opt/ghostbot/ghostbot": false, "/opt/ghostbot/ghostbot serve": false, "/opt/ghostbot/ghostbot pcap": false, "/opt/ghostbot/ghostbot pcap /etc/shadow": false,
		"/opt/ghostbot/ghostbot pcap a.pcap --report-dir /tmp": false, "/opt/ghostbot/ghostbot pcap a.pcap --json --report-dir /tmp": false,
		"/opt/ghostbot/ghostbot pcap a.pcap --json --report-dir . --semantic-dir=. --plots .": true, "/opt/ghostbot/ghostbot pcap a.pcap --json --plots ..": false,
		"/opt/ghostbot/ghostbot pcap a.pcap --json --semantic-dir ./x": false, "/opt/ghostbot/ghostbot pcap a.pcap --json --report-dir=": false, "/opt/ghostbot/ghostbot agent apply": false, "/opt/ghostbot/ghostbot pcap a.pcap --ai": false,
		"/opt/ghostbot/ghostbot agent plan --here": true, "/opt/ghostbot/ghostbot agent plan --here --port 8080 --limit 5": true, "/opt/ghostbot/ghostbot agent plan --here --pid 12,13 --since 2h": true, "/opt/ghostbot/ghostbot agent plan": false,
		"/opt/ghostbot/ghostbot agent plan --here --config /tmp/x": false, "/opt/ghostbot/ghostbot agent plan --here --state-dir /tmp": false, "/opt/ghostbot/ghostbot agent plan --here --replay /etc/shadow": false, "/opt/ghostbot/ghostbot agent plan --here --pid -1": false,
		"/opt/ghostbot/ghostbot agent plan --here --port 0": false, "/opt/ghostbot/ghostbot agent --here plan": false, "/opt/ghostbot/ghostbot agent plan --here apply": false, "/opt/ghostbot/ghostbot agent explain --here --session sess-20260301-091500-k3m9qa --pid 7": true,
		"/opt/ghostbot/ghostbot agent explain --here --session ../../x --pid 7": false, "/opt/ghostbot/ghostbot agent verify --here --session sess-20260301-091500-k3m9qa": true, "/opt/ghostbot/ghostbot agent report --here --session sess-20260301-091500-k3m9qa": true,
		"/opt/ghostbot/ghostbot agent report --here --session sess-20260301-091500-k3m9qa --out x": false, "/opt/ghostbot/ghostbot agent apply --here --session sess-20260301-091500-k3m9qa --targets 7:x": false, "/opt/ghostbot/ghostbot agent approve --here": false,
		"/opt/ghostbot/ghostbot agent sessions --cleanup": false, "ghostbot agent plan --here": false,
		"/opt/ghostbot/../ghostbot/ghostbot version": false, "/opt/ghostbot//ghostbot version": false, "ghostbot version": false, "./ghostbot version": false, "/tmp/ghostbot version": false, "(self) version": false,
	} {
		if got := tb.Check(strings.Fields(cmd)) == nil; got != safe {
			t.Errorf("%q: SAFE is %v", cmd, got)
		}
	}
	if builtin(t, Config{}).Check([]string{"", "version"}) == nil {
		t.Error("an empty name is the product itself when none is configured")
	}
}

func TestCaptureFolders(t *testing.T) {
	tb := builtin(t, Config{CaptureDirs: []string{"/var/lib/ghost/captures", "relative", "/"}})
	for file, safe := range map[string]bool{
		"/var/lib/ghost/captures/a": true, "/var/lib/ghost/captures/x/y.bin": true, "/var/lib/ghost/captures/./a": true, "/var/lib/ghost/captures/../x": false,
		"/var/lib/ghost/captures": false, "/var/lib/ghost/capturesx/a": false, "relative/a": false, "/etc/shadow": false, "a.pcap": true, "a.pcapng": true, "/x/a.cap": true, "a.pcap.gz": true,
		"../a.pcap": false, "/proc/1/a.pcap": false, "/dev/a.pcap": false, "-a.pcap": false, "~/a.pcap": false, ".a.pcap": false, "/home/x/.hidden/a.pcap": false, "a.pcap.txt": false, "a": false, "-": false, "//a.pcap": false,
	} {
		if got := tb.Check([]string{"tcpdump", "-n", "-r", file}) == nil; got != safe {
			t.Errorf("tcpdump -r %s: SAFE is %v", file, got)
		}
	}
	for dir, safe := range map[string]bool{"/sys/class/net": true, "/sys/class/net/eth0": true, "/proc/net": true, "/var/lib/ghost/captures": true, "/etc": false, "/": false, "/sys/class/net/../../x": false, "relative": false, "/home": false} {
		if got := tb.Check([]string{"ls", "-l", dir}) == nil; got != safe {
			t.Errorf("ls %s: SAFE is %v", dir, got)
		}
	}
}

func TestDescribe(t *testing.T) {
	got := table(t, sample).Describe()
	want := Doc{
		Name: "probe", Other: []string{"prober"}, Safe: "a sample",
		Flags: []FlagDoc{
			{Names: []string{"-q"}}, {Names: []string{"--quiet"}}, {Names: []string{"-c", "--count"}, Value: "a number from 1 to 10"},
			{Names: []string{"-o", "--output"}, Value: "one of a, b"}, {Names: []string{"-l"}, Value: "text like `[a-z]+`"},
			{Names: []string{"-L"}, Value: "text like `[A-Z]+`"}, {Names: []string{"-m", "--mode"}, Value: "one of x"}, {Names: []string{"-4"}}, {Names: []string{"-6"}},
		},
		Never: []FlagDoc{{Names: []string{"-f", "--flood"}, Why: "is a flood"}},
		Needs: []string{"-c or --count: without it probe needs a count", "-q together with -4: without it probe wants quiet"},
		Args:  []string{"a host name or an address", "a port number or a service name, optional"},
	}
	if d := cmp.Diff(want, got[0]); d != "" {
		t.Errorf("Describe (-want +got):\n%s", d)
	}
	ip := got[4].Subs[0]
	if ip.Name != "address" || len(ip.Subs) != 1 || ip.Subs[0].Words[0].Value != "an interface name" || ip.Never[0].Why != "changes" {
		t.Errorf("sub commands are described as %+v", ip)
	}
}

func TestClip(t *testing.T) {
	for in, want := range map[string]string{"": "", "abc": "abc", "a\nb": "(an unusual name)", "\u202e": "(an unusual name)", strings.Repeat("x", 100): strings.Repeat("x", 60) + "..."} {
		if got := Clip(in); got != want {
			t.Errorf("Clip(%q) = %q", in, got)
		}
	}
}
