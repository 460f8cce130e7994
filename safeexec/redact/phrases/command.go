package phrases

import (
	"strings"
	"sync"

	"ghostbot/safeexec/redact/argv"
	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
	"ghostbot/safeexec/redact/words"
)

// A Program is a command with secret arguments that no label gives away. Its
// flags are "flag:mode" each; where the flag is left out, the mode is about the
// program's own words. Those of path count only where the command has that
// subcommand, as argv.Match has it. switches are the letters of the flags without
// a value, which may stand in one word before a secret's: -su.
//
//	v    the next word, or after "="
//	a    attached only: -psecret
//	b    attached or the next word
//	u    user:secret, user%secret or user,secret
//	/    user/secret, with @host behind it or not
//	:    what follows the last colon
//	=    what follows the first equals sign
//	c    name=value pairs, as cookies are
//	L    the last word of the command, when this flag is there
//	1-9  that word that is no flag, after the flag or the program's name
//
// The flag * stands for every word that is none.
type Program struct {
	Name     string
	flags    string
	switches string
}

// Programs is the table. Long flags with a telling name need no row: they are
// labels.
var Programs = []Program{
	{"curl", "-u:u --user:u -U:u --proxy-user:u -b:c --cookie:c -E:u --cert:u --oauth2-bearer:v --pass:v", "#:0123469aBfgGijkIlLMnNOpqRsSvVZJ"},
	{"http", "-a:u --auth:u", "vhbdFIjfS"}, {"https", "-a:u --auth:u", "vhbdFIjfS"}, {"xh", "-a:u --auth:u", "vhbdFIjfS"},
	{"mysql", "-p:a", mysqlSwitches}, {"mysqldump", "-p:a", mysqlSwitches}, {"mysqladmin", "-p:a", mysqlSwitches}, {"mysqlsh", "-p:a", ""}, {"mysqlimport", "-p:a", mysqlSwitches},
	{"mariadb", "-p:a", mysqlSwitches}, {"mariadb-dump", "-p:a", mysqlSwitches}, {"mysqlcheck", "-p:a", mysqlSwitches}, {"mysqlbinlog", "-p:a", mysqlSwitches}, {"mysqlshow", "-p:a", mysqlSwitches}, {"mysqlslap", "-p:a", mysqlSwitches},
	{"mysqlpump", "-p:a", mysqlSwitches}, {"mariadb-admin", "-p:a", mysqlSwitches}, {"mariadb-check", "-p:a", mysqlSwitches}, {"mariadb-backup", "-p:a", ""}, {"xtrabackup", "-p:a", ""}, {"mycli", "-p:a", ""}, {"mongo", "-p:b", "v"}, {"mongosh", "-p:b", "v"},
	{"mongodump", "-p:b", "v"}, {"mongorestore", "-p:b", "v"}, {"mongoexport", "-p:b", "v"}, {"mongoimport", "-p:b", "v"}, {"mongostat", "-p:b", "v"}, {"redis-cli", "-a:v --pass:v", ""}, {"valkey-cli", "-a:v --pass:v", ""}, {"keydb-cli", "-a:v --pass:v", ""}, {"redis-benchmark", "-a:v", "ql"}, {"cqlsh", "-p:v", ""}, {"sqlcmd", "-P:b", "CEbNeIjkmnrRuXx"}, {"bcp", "-P:b", ""},
	{"tsql", "-P:b", ""}, {"isql", "3", ""}, {"sqlplus", "/", ""}, {"expdp", "/", ""}, {"impdp", "/", ""}, {"rman", "target:/", ""},
	{"influx", "-password:v -p:v", ""}, {"etcdctl", "--user:u", ""}, {"rabbitmqctl", "add_user:2 change_password:2 authenticate_user:2", ""},
	{"sshpass", "-p:b", "ve"}, {"plink", "-pw:v", ""}, {"pscp", "-pw:v", ""}, {"psftp", "-pw:v", ""}, {"putty", "-pw:v", ""},
	{"ssh-keygen", "-N:v -P:v", ""}, {"openssl", "-k:v -K:v", ""}, {"gpg", "--passphrase:v", ""}, {"keytool", "-storepass:v -keypass:v", ""},
	{"zip", "-P:b", "rqj0123456789eumyxoFlndtv"}, {"unzip", "-P:b", "rqj0123456789eumyxoFlndtv"}, {"7z", "-p:a", ""}, {"7za", "-p:a", ""}, {"rar", "-p:a -hp:a", ""}, {"unrar", "-p:a", ""},
	{"htpasswd", "-b:L", "cnBmdsp25iDv"}, {"useradd", "-p:b", "mMNorlUDaL"}, {"usermod", "-p:b", "mMNorlUDaL"},
	{"ldapsearch", "-w:b", "xZLnvcCMNkQIutA"}, {"ldapmodify", "-w:b", "xZLnvcCMNkQIutA"}, {"ldapadd", "-w:b", "xZLnvcCMNkQIutA"}, {"ldapdelete", "-w:b", "xZLnvcCMNkQIutA"}, {"ldapwhoami", "-w:b", "xZLnvcCMNkQIutA"},
	{"ldappasswd", "-w:b -s:b -a:b", "xZLnvcCMNkQIutA"}, {"ldapcompare", "-w:b", "xZLnvcCMNkQIutA"}, {"kadmin", "-w:v -pw:v", ""}, {"kadmin.local", "-pw:v", ""},
	{"snmpwalk", snmpFlags, ""}, {"snmpget", snmpFlags, ""}, {"snmpset", snmpFlags, ""}, {"snmpgetnext", snmpFlags, ""}, {"snmpbulkwalk", snmpFlags, ""},
	{"snmpbulkget", snmpFlags, ""}, {"snmptable", snmpFlags, ""}, {"snmptrap", snmpFlags, ""}, {"snmpstatus", snmpFlags, ""}, {"snmpdf", snmpFlags, ""},
	{"snmpinform", snmpFlags, ""}, {"trapsess", snmpFlags, ""}, {"snmp-check", "-c:b", ""}, {"braa", "1u", ""}, {"check_snmp", "-C:b -A:b -X:b", ""},
	{"docker", "", ""}, {"podman", "", ""}, {"nerdctl", "", ""}, {"helm", "", ""}, {"skopeo", "", ""},
	{"oras", "", ""}, {"az", "", ""}, {"oc", "", ""}, {"cf", "", ""}, {"vault", "login:1", ""},
	{"smbclient", "-U:u --user:u", "NkPEgV"}, {"rpcclient", "-U:u", "NkPEgV"}, {"winexe", "-U:u", ""}, {"smbmap", "-p:v", ""}, {"net", "user:2 -U:u", "kPN"}, {"kinit", "<<<:v", ""}, {"mc", "set:4 add:4", ""}, {"minio", "set:4", ""},
	{"rdesktop", "-p:v", ""}, {"nxc", "-p:v", ""}, {"crackmapexec", "-p:v", ""}, {"evil-winrm", "-p:v", ""}, {"psexec", "-p:v", ""}, {"schtasks", "/rp:v", ""},
	{"ipmitool", "-P:b", "vac"}, {"ipmipower", "-p:v", ""}, {"lftp", "-u:u", ""}, {"ncftp", "-p:v", ""}, {"ncftpget", "-p:v", ""}, {"ncftpput", "-p:v", ""},
	{"mosquitto_pub", "-P:v", "dqlnNvR"}, {"mosquitto_sub", "-P:v", "dqlnNvR"}, {"swaks", "-ap:v", ""}, {"sendemail", "-xp:v", ""}, {"x11vnc", "-passwd:v", ""},
	{"hydra", "-p:v", ""}, {"medusa", "-p:v", ""}, {"radtest", "2", ""}, {"radclient", "3", ""}, {"wpa_passphrase", "2", ""}, {"onesixtyone", "2", ""}, {"wbinfo", "-a:u", ""}, {"racadm", "-p:v", ""}, {"ab", "-A:u -P:u", "kdSvlriq"}, {"hey", "-a:u", ""},
	{"openfortivpn", "-p:v", "v"}, {"check_mysql", "-p:v", ""}, {"check_http", "-a:u -b:u", "SNvL"}, {"check_ldap", "-P:v", ""}, {"rclone", "obscure:1", ""}, {"iwconfig", "key:1", ""},
	{"nmcli", "802-11-wireless-security.psk:v wifi-sec.psk:v", ""}, {"aws", "aws_secret_access_key:1 aws_session_token:1", ""}, {"tcpdump", "-E::", "AbdDefhHIJKlLnNOpqStuUvxX#"},
	{"dig", "-y::", ""}, {"nsupdate", "-y::", ""}, {"samba-tool", "setpassword:2", ""}, {"rconcli", "--password:v", ""}, {"svn", "--password:v", ""},
	{"gh", "", ""}, {"gcloud", "", ""}, {"consul", "", ""}, {"heroku", "", ""}, {"fly", "", ""}, {"flyctl", "", ""}, {"doppler", "", ""}, {"pulumi", "", ""}, {"iscsiadm", "", ""}, {"crane", "", ""},
}

// subcommands are flags that carry a secret behind a subcommand only. The programs
// are all in Programs.
var subcommands = parseSubcommands(`
	docker podman nerdctl oc cf crane | ** login | -p:b
	helm skopeo oras | ** login | -p:b
	az | login | -p:b
	az | acr login | -p:b
	az | sql|mysql|postgres|mariadb|synapse | -p:b
	az | vm user | -p:b
	az | keyvault secret set | --value:v
	az | ** shared-key update|set|reset|create | --value:v -v:v
	az | ** keys set|update | --key-value:v
	az | containerapp secret set | --secrets:= -s:=
	aws | secretsmanager create-secret|put-secret-value|update-secret | --secret-string:v
	aws | ssm put-parameter | --value:v
	gcloud | ** reset-password|set-password | --password:v
	vault | kv put|patch | *:=
	vault | write auth/* | *:=
	gh | secret set | -b:b --body:v
	heroku | config:set | *:=
	fly flyctl | secrets set | *:=
	doppler | secrets set | *:=
	consul | kv put *pass*|*secret*|*token*|*key | put:2
	pulumi | config set +--secret | set:2
	iscsiadm | +*.password* | -v:v --value:v
`)

// A subcommand is flags of a program, and what has to stand before them.
type subcommand struct {
	path  []string
	flags []flag
}

func parseSubcommands(text string) map[string][]subcommand {
	t := map[string][]subcommand{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		f := strings.Split(strings.TrimSpace(line), " | ")
		for name := range strings.FieldsSeq(f[0]) {
			t[name] = append(t[name], subcommand{strings.Fields(f[1]), parseFlags(f[2])})
		}
	}
	return t
}

const mysqlSwitches = "AbBCEfGHiIjLnNqrsStTvVwWXod"

const snmpFlags = "-c:b -A:b -X:b"

// programs finds a program by name.
var programs = sync.OnceValue(func() map[string]*program {
	t := map[string]*program{}
	for i := range Programs {
		p := &program{Program: &Programs[i], own: parseFlags(Programs[i].flags)}
		if p.switches != "" {
			p.set = shape.NewSet(p.switches)
		}
		t[p.Name] = p
	}
	return t
})

// A program is a Program with its flags apart.
type program struct {
	*Program
	own []flag
	set *shape.Set // the switches; nil without
}

// A flag is what stands before a secret.
type flag struct{ name, mode string }

func parseFlags(text string) (flags []flag) {
	for f := range strings.FieldsSeq(text) {
		if k := strings.LastIndexByte(f[:len(f)-1], ':'); k > 0 {
			flags = append(flags, flag{f[:k], f[k+1:]})
		}
	}
	return flags
}

// maxCommand bounds how far the arguments of one command are looked at, maxPath and
// maxPathWords how far its subcommand, maxPaths how many programs of a line are
// asked for theirs, maxReadings how many programs are followed at once.
const (
	maxCommand   = 4096
	maxPath      = 256
	maxPathWords = 24
	maxPaths     = 8
	maxReadings  = 4
)

// Command handles the command line that begins with a program's name, to the end
// of its line, of its quotes, or of the list that its arguments are. All programs
// that it names further on are followed there as well, so that each line is read
// once and a name that is only a word hides none of the others.
func (s *Phrases) Command(a, b int) {
	t := s.T
	if a < s.commandDone || a > 0 && scan.LabelSet[t[a-1]] {
		return
	}
	name := t[a:b]
	if shape.HasFold(t[b:min(len(t), b+4)], ".exe") {
		b += 4
	}
	if b >= len(t) {
		return
	}
	c := commandLine{s: s, end: min(len(t), b+maxCommand)}
	if !shape.Blank(t[b]) {
		if at := s.NextArgument(a, b); at > 0 {
			c.begin(name, b)
			c.list(at)
			return
		}
		if q := t[b]; q != '"' && q != '\'' || a == 0 || b+1 == len(t) || !shape.Blank(t[b+1]) || strings.IndexByte("/\\\"'", t[a-1]) < 0 {
			return
		}
		b++ // behind a path in quotes
		a = b
	}
	c.end = min(s.LineEnd(b), c.end)
	if q := s.quoteBefore(a); q != 0 {
		if n := strings.IndexByte(t[b:c.end], q); n >= 0 {
			c.end = b + n
		}
	}
	s.commandDone = c.end
	c.begin(name, b)
	c.words(b, true)
	c.finish()
}

// quoteBefore is the quote directly before the path of the program that starts at
// a, 0 for none.
func (s *Phrases) quoteBefore(a int) byte {
	a = pathSet.Start(s.T, a, a-scan.MaxLabel)
	if a > 0 && (s.T[a-1] == '"' || s.T[a-1] == '\'') {
		return s.T[a-1]
	}
	return 0
}

var pathSet = shape.NewSet(shape.Alphabet + "_-./\\:")

// A commandLine is a command whose arguments are being read.
type commandLine struct {
	s        *Phrases
	end      int
	readings [maxReadings]reading
	n        int
	paths    int // programs that were asked for their subcommand
}

// A reading is what one program means by the words.
type reading struct {
	p     *program
	more  [2][]flag // of its subcommands
	plain int       // words so far that are no flags
	want  int       // the one of them that is a secret
	mode  byte      // how the secret stands in it
	next  byte      // the mode of the word to come, when a flag announced it
	last  bool      // the last word is a secret
	tail  [2]int    // the last word that is no flag
}

// begin follows the program with this name, whose words begin at i. The others go
// on: the name may be a value of theirs.
func (c *commandLine) begin(name string, i int) {
	p := programNamed(name)
	if p == nil {
		return
	}
	r := reading{p: p}
	if subs := subcommands[p.Name]; len(subs) > 0 && c.paths < maxPaths {
		c.paths++
		words := c.path(i)
		n := 0
		for _, sub := range subs {
			if n < len(r.more) && argv.Match(words, sub.path) {
				r.more[n] = sub.flags
				n++
			}
		}
	}
	if f := p.flags; f != "" && len(f) <= 2 {
		r.position(f)
	}
	for k := range c.readings[:c.n] {
		if o := &c.readings[k]; o.p == p && o.want == 0 && o.next == 0 && !o.last { // named again
			*o = r
			return
		}
	}
	if c.n == maxReadings {
		copy(c.readings[:], c.readings[1:])
		c.n--
	}
	c.readings[c.n] = r
	c.n++
}

// programNamed finds a program by the word that starts it, in either case.
func programNamed(w string) *program {
	if len(w) < 2 || len(w) > 32 {
		return nil
	}
	if p := programs()[w]; p != nil {
		return p
	}
	if shape.Count(w).Upper == 0 {
		return nil
	}
	return programs()[strings.ToLower(w)]
}

// path is the words behind a program among which its subcommand is, of whatever
// form.
func (c *commandLine) path(i int) []string {
	words := strings.FieldsFunc(c.s.Peek(i, min(maxPath, c.end-i)), func(r rune) bool { return strings.ContainsRune(" \t\r\n,\"'[]", r) })
	return words[:min(len(words), maxPathWords)]
}

// position notes which word that is no flag is a secret: a number, then how it
// stands there.
func (c *reading) position(mode string) {
	c.plain, c.want, c.mode = 0, 1, mode[len(mode)-1]
	if shape.Digit(mode[0]) {
		c.want = int(mode[0] - '0')
	}
	if shape.Digit(c.mode) {
		c.mode = 'v'
	}
}

// words reads the words from i on. Those in quotes that hold several words may be
// a command of their own, where deep is set.
func (c *commandLine) words(i int, deep bool) {
	for i = c.s.Blanks(i); i < c.end; i = c.s.Blanks(i) {
		n := c.word(i)
		if n == i { // more blanks than are skipped at once
			i++
			continue
		}
		if w := c.s.T[i:n]; !c.argument(i, n) && deep && (w[0] == '"' || w[0] == '\'') && strings.IndexByte(w, ' ') > 0 {
			inner := commandLine{s: c.s, end: n - 1}
			inner.words(i+1, false)
			inner.finish()
		}
		i = n
	}
}

// list reads the arguments of a list, of which the first one starts at i.
func (c *commandLine) list(i int) {
	s := c.s
	for n := 0; i > 0 && i < c.end && n < maxArguments; n++ {
		end := s.ArgumentEnd(i, c.end)
		if end > i {
			c.argument(i, end)
		}
		s.commandDone = end
		i = s.NextArgument(i, end)
	}
	c.finish()
}

// maxArguments bounds the arguments of a list.
const maxArguments = 256

// word is the end of the word at i, with its quoted parts.
func (c *commandLine) word(i int) int {
	t := c.s.T
	for i < c.end && !shape.Blank(t[i]) {
		if q := t[i]; q == '"' || q == '\'' {
			n := strings.IndexByte(t[i+1:c.end], q)
			if n < 0 {
				return c.end
			}
			i += n + 1
		}
		i++
	}
	return min(i, c.end)
}

// argument handles the word t[i:end], and says whether something of it was masked.
func (c *commandLine) argument(i, end int) bool {
	w := c.s.T[i:end]
	if w[0] == '|' || w[0] == ';' || w == "&&" || w == "&" {
		c.finish()
		return false
	}
	masked := false
	for k := range c.readings[:c.n] {
		masked = c.read(&c.readings[k], w, i, end) || masked
	}
	if !masked && w[0] != '-' {
		name := strings.Trim(w, "\"'`($")
		name = name[strings.LastIndexAny(name, `/\=`)+1:]
		if n := len(name) - len(".exe"); n > 0 && name[n] == '.' && strings.EqualFold(name[n:], ".exe") {
			name = name[:n]
		}
		c.begin(name, end)
	}
	if w[len(w)-1] == ';' {
		c.finish()
	}
	return masked
}

// read handles a word as r's program means it.
func (c *commandLine) read(r *reading, w string, i, end int) bool {
	if next := r.next; next != 0 {
		r.next = 0
		if w[0] != '-' || next == 'b' || next == 'v' && len(w) > 3 && w[1] != '-' {
			return c.secret(i, end, next)
		}
	}
	if known, masked := c.flag(r, w, i, end); known || w[0] == '-' || w[0] == '+' {
		return masked
	}
	r.plain++
	r.tail = [2]int{i, end}
	return r.plain == r.want && c.secret(i, end, r.mode)
}

// flag handles w when it is one of the program's flags.
func (c *commandLine) flag(r *reading, w string, i, end int) (known, masked bool) {
	at := 1
	if r.p.set != nil && w[0] == '-' { // behind flags without a value
		at = r.p.set.End(w, 1, len(w))
	}
	for _, f := range r.p.own {
		if known, masked = c.oneFlag(r, f, w, at, i, end); known {
			return true, masked
		}
	}
	for _, flags := range r.more {
		for _, f := range flags {
			if known, masked = c.oneFlag(r, f, w, at, i, end); known {
				return true, masked
			}
		}
	}
	return false, false
}

// oneFlag handles w when it is the flag f. A flag of one letter stands at its place
// letter.
func (c *commandLine) oneFlag(r *reading, f flag, w string, letter, i, end int) (known, masked bool) {
	name, mode := f.name, f.mode
	short := len(name) == 2 && name[0] == '-'
	m := mode[0]
	at := len(name) // where the value starts that is attached
	switch {
	case name == "*":
		known = w[0] != '-' && strings.IndexByte(w, '=') > 0
		return known, known && c.secret(i, end, m)
	case short:
		if w[0] != '-' || letter >= len(w) || w[letter] != name[1] {
			return false, false
		}
		at = letter + 1
	case w[0] != name[0] || !strings.HasPrefix(w, name):
		return false, false
	}
	switch {
	case m == 'L':
		r.last = r.last || at == len(w) || short && r.p.set != nil
	case name[0] != '-' && (shape.Digit(m) || m == '/') && name[0] != '/':
		if w != name || r.plain > 3 {
			return false, false
		}
		r.position(mode)
	case at == len(w):
		if m != 'a' {
			r.next = m
		}
	case w[at] == '=' && !(short && m == 'a'):
		return true, c.secret(i+at+1, end, m)
	case m == 'a' || m == 'b' || short && m != 'v':
		return true, c.secret(i+at, end, m)
	default:
		return false, false
	}
	return true, false
}

// secret masks the part of t[i:end] that its mode means, without its quotes.
func (c *commandLine) secret(i, end int, mode byte) bool {
	s, t := c.s, c.s.T
	if i >= end {
		return false
	}
	if q := t[i]; end > i+1 && (q == '"' || q == '\'') {
		i++
		if t[end-1] == q {
			end--
		}
	}
	for end > i && strings.IndexByte(")`;'\"", t[end-1]) >= 0 {
		end--
	}
	k := -1
	switch w := t[i:end]; mode {
	case 'u':
		k = strings.IndexAny(w, ":%,")
	case '/':
		if k = strings.IndexByte(w, '/'); k == 0 {
			k = -1
		}
		if n := strings.LastIndexByte(w, '@'); n > k {
			end = i + n
		}
	case '=':
		k = strings.IndexByte(w, '=')
	case ':':
		k = strings.LastIndexByte(w, ':')
	case 'c':
		s.Pairs(i, end, false)
		return true
	default:
		k = 0
		i--
	}
	i += k + 1
	if k < 0 || i >= end || t[i:end] == "*" || t[i:end] == "-" || ports.Only(t[i:end]) && strings.IndexByte(t[i:end], ':') > 0 {
		return false
	}
	head := t[i:min(end, i+scan.GuardLen)]
	if shape.Fold(head, scan.Nothing) && mode != 'v' && mode != 'u' || !s.Harmless(scan.Label{Label: words.Label{Noun: words.Pass}}, scan.Value{Start: i, End: end, After: end, Quote: '"'}, head) {
		s.Mask(i, end, scan.Password)
		s.arguments = append(s.arguments, scan.Span{Start: i, End: end})
		return true
	}
	return false
}

// ports are what a mapping of ports is made of, with a colon.
var ports = shape.NewSet("0123456789:.")

// Argument says whether i is in an argument that is masked already: its parts are
// no labels. It is asked in the order of the text.
func (s *Phrases) Argument(i int) bool {
	for s.argumentAt < len(s.arguments) && s.arguments[s.argumentAt].End <= i {
		s.argumentAt++
	}
	return s.argumentAt < len(s.arguments) && s.arguments[s.argumentAt].Start <= i
}

// finish ends the commands that were followed: it masks the last word where that
// is the secret.
func (c *commandLine) finish() {
	for k := range c.readings[:c.n] {
		if r := &c.readings[k]; r.last && r.plain >= 2 {
			c.secret(r.tail[0], r.tail[1], 'v')
		}
	}
	c.n = 0
}
