package phrases

import (
	"strings"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
	"ghostbot/safeexec/redact/words"
)

// A Program is a command with secret arguments that no label gives away. Its
// flags are "flag:mode" each; where the flag is left out, the mode is about the
// program's own words. Those of some programs mean something else unless the
// command is about a login.
//
//	v    the next word, or after "="
//	a    attached only: -psecret
//	b    attached or the next word
//	u    user:secret, user%secret or user,secret
//	/    user/secret, with @host behind it or not
//	:    what follows the last colon
//	c    name=value pairs, as cookies are
//	L    the last word of the command, when this flag is there
//	1-9  that word that is no flag, after the flag or the program's name
type Program struct {
	Name  string
	flags string
	login bool
}

// Programs is the table. Long flags with a telling name need no row: they are
// labels.
var Programs = []Program{
	{"curl", "-u:u --user:u -U:u --proxy-user:u -b:c --cookie:c -E:u --cert:u --oauth2-bearer:v --pass:v", false},
	{"http", "-a:u --auth:u", false}, {"https", "-a:u --auth:u", false}, {"xh", "-a:u --auth:u", false},
	{"mysql", "-p:a", false}, {"mysqldump", "-p:a", false}, {"mysqladmin", "-p:a", false}, {"mysqlsh", "-p:a", false}, {"mysqlimport", "-p:a", false},
	{"mariadb", "-p:a", false}, {"mariadb-dump", "-p:a", false}, {"mycli", "-p:a", false}, {"mongo", "-p:b", false}, {"mongosh", "-p:b", false},
	{"mongodump", "-p:b", false}, {"redis-cli", "-a:v --pass:v", false}, {"cqlsh", "-p:v", false}, {"sqlcmd", "-P:b", false}, {"bcp", "-P:b", false},
	{"tsql", "-P:b", false}, {"isql", "3", false}, {"sqlplus", "/", false}, {"expdp", "/", false}, {"impdp", "/", false}, {"rman", "target:/", false},
	{"influx", "-password:v -p:v", false}, {"etcdctl", "--user:u", false}, {"rabbitmqctl", "add_user:2 change_password:2 authenticate_user:2", false},
	{"sshpass", "-p:b", false}, {"plink", "-pw:v", false}, {"pscp", "-pw:v", false}, {"psftp", "-pw:v", false}, {"putty", "-pw:v", false},
	{"ssh-keygen", "-N:v -P:v", false}, {"openssl", "-k:v -K:v", false}, {"gpg", "--passphrase:v", false}, {"keytool", "-storepass:v -keypass:v", false},
	{"zip", "-P:b", false}, {"unzip", "-P:b", false}, {"7z", "-p:a", false}, {"7za", "-p:a", false}, {"rar", "-p:a -hp:a", false}, {"unrar", "-p:a", false},
	{"htpasswd", "-b:L -nb:L -bn:L -bc:L -cb:L -bB:L -Bb:L -nbB:L -bnB:L -cbB:L", false}, {"useradd", "-p:b", false}, {"usermod", "-p:b", false},
	{"ldapsearch", "-w:b", false}, {"ldapmodify", "-w:b", false}, {"ldapadd", "-w:b", false}, {"ldapdelete", "-w:b", false}, {"ldapwhoami", "-w:b", false},
	{"ldappasswd", "-w:b -s:b -a:b", false}, {"ldapcompare", "-w:b", false}, {"kadmin", "-w:v -pw:v", false}, {"kadmin.local", "-pw:v", false},
	{"snmpwalk", snmpFlags, false}, {"snmpget", snmpFlags, false}, {"snmpset", snmpFlags, false}, {"snmpgetnext", snmpFlags, false}, {"snmpbulkwalk", snmpFlags, false},
	{"snmpbulkget", snmpFlags, false}, {"snmptable", snmpFlags, false}, {"snmptrap", snmpFlags, false}, {"snmpstatus", snmpFlags, false}, {"snmpdf", snmpFlags, false},
	{"snmpinform", snmpFlags, false}, {"trapsess", snmpFlags, false}, {"snmp-check", "-c:b", false}, {"braa", "1u", false}, {"check_snmp", "-C:b -A:b -X:b", false},
	{"docker", "-p:b", true}, {"podman", "-p:b", true}, {"nerdctl", "-p:b", true}, {"helm", "-p:b", true}, {"skopeo", "-p:b", true},
	{"oras", "-p:b", true}, {"az", "-p:b", true}, {"oc", "-p:b", true}, {"cf", "-p:b", true}, {"vault", "login:1", false},
	{"smbclient", "-U:u --user:u", false}, {"rpcclient", "-U:u", false}, {"winexe", "-U:u", false}, {"smbmap", "-p:v", false}, {"net", "user:2 -U:u", false}, {"kinit", "<<<:v", false}, {"mc", "set:4 add:4", false}, {"minio", "set:4", false},
	{"rdesktop", "-p:v", false}, {"nxc", "-p:v", false}, {"crackmapexec", "-p:v", false}, {"evil-winrm", "-p:v", false}, {"psexec", "-p:v", false}, {"schtasks", "/rp:v", false},
	{"ipmitool", "-P:b", false}, {"ipmipower", "-p:v", false}, {"lftp", "-u:u", false}, {"ncftp", "-p:v", false}, {"ncftpget", "-p:v", false}, {"ncftpput", "-p:v", false},
	{"mosquitto_pub", "-P:v", false}, {"mosquitto_sub", "-P:v", false}, {"swaks", "-ap:v", false}, {"sendemail", "-xp:v", false}, {"x11vnc", "-passwd:v", false},
	{"hydra", "-p:v", false}, {"medusa", "-p:v", false}, {"radtest", "2", false}, {"radclient", "3", false}, {"wpa_passphrase", "2", false}, {"iwconfig", "key:1", false},
	{"nmcli", "802-11-wireless-security.psk:v wifi-sec.psk:v", false}, {"aws", "aws_secret_access_key:1 aws_session_token:1", false}, {"tcpdump", "-E::", false},
	{"dig", "-y::", false}, {"nsupdate", "-y::", false}, {"samba-tool", "setpassword:2", false}, {"rconcli", "--password:v", false}, {"svn", "--password:v", false},
}

const snmpFlags = "-c:b -A:b -X:b"

// programIndex finds a program by name.
var programIndex = indexPrograms()

func indexPrograms() map[string]*Program {
	t := map[string]*Program{}
	for i := range Programs {
		t[Programs[i].Name] = &Programs[i]
	}
	return t
}

// maxCommand bounds how far the arguments of one command are looked at.
const maxCommand = 4096

// Command handles the command line that begins with a program's name, to the
// end of its line. Programs that it names further on take over there, so each
// line is read once.
func (s *Phrases) Command(a, b int) {
	t := s.T
	if a < s.commandDone || b >= len(t) || !shape.Blank(t[b]) || a > 0 && (scan.LabelSet[t[a-1]] || t[a-1] == '=') {
		return
	}
	c := commandLine{s: s, end: min(s.LineEnd(b), b+maxCommand)}
	c.login = strings.Contains(t[b:c.end], "login")
	s.commandDone = c.end
	c.start(programIndex[strings.ToLower(t[a:b])])
	for i := s.Blanks(b); i < c.end; i = s.Blanks(i) {
		n := c.word(i)
		if n == i { // more blanks than are skipped at once
			i++
			continue
		}
		c.argument(i, n)
		i = n
	}
	c.finish()
}

// A commandLine is a command whose arguments are being read.
type commandLine struct {
	s     *Phrases
	end   int
	login bool     // the line is about a login
	p     *Program // nil: nothing about the words to come is known
	plain int      // words so far that are no flags
	want  int      // the one of them that is a secret
	mode  byte     // how the secret stands in it
	next  byte     // the mode of the word to come, when a flag announced it
	last  bool     // the last word is a secret
	tail  [2]int   // the last word that is no flag
}

// start begins the command p; nil is one that nothing is known about.
func (c *commandLine) start(p *Program) {
	*c = commandLine{s: c.s, end: c.end, login: c.login}
	if p == nil || p.login && !c.login {
		return
	}
	c.p = p
	if f := p.flags; len(f) <= 2 {
		c.position(f)
	}
}

// position notes which word that is no flag is a secret: a number, then how it
// stands there.
func (c *commandLine) position(mode string) {
	c.plain, c.want, c.mode = 0, 1, mode[len(mode)-1]
	if shape.Digit(mode[0]) {
		c.want = int(mode[0] - '0')
	}
	if shape.Digit(c.mode) {
		c.mode = 'v'
	}
}

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

// argument handles the word t[i:end].
func (c *commandLine) argument(i, end int) {
	w := c.s.T[i:end]
	if next := c.next; next != 0 {
		c.next = 0
		if w[0] != '-' || next == 'b' || next == 'v' && len(w) > 3 && w[1] != '-' {
			c.secret(i, end, next)
			return
		}
	}
	switch {
	case w[0] == '|' || w[0] == ';' || w == "&&" || w == "&":
		c.finish()
		c.start(nil)
	case c.p == nil || c.plain == 0 || w[0] == '/':
		if p := programIndex[w[strings.LastIndexByte(w, '/')+1:]]; p != nil {
			c.start(p)
			return
		}
	}
	if c.p == nil || c.flag(w, i, end) || w[0] == '-' || w[0] == '+' {
		return
	}
	c.plain++
	c.tail = [2]int{i, end}
	if c.plain == c.want {
		c.secret(i, end, c.mode)
	}
	if w[len(w)-1] == ';' {
		c.finish()
		c.start(nil)
	}
}

// flag handles w when it is one of the program's flags.
func (c *commandLine) flag(w string, i, end int) bool {
	for f := range strings.FieldsSeq(c.p.flags) {
		name, mode, ok := strings.Cut(f, ":")
		if !ok || !strings.HasPrefix(w, name) {
			continue
		}
		short := len(name) == 2 && name[0] == '-'
		switch m := mode[0]; {
		case m == 'L':
			c.last = c.last || w == name
		case name[0] != '-' && (shape.Digit(m) || m == '/'):
			if w != name || c.plain > 2 {
				continue
			}
			c.position(mode)
		case w == name:
			if m != 'a' {
				c.next = m
			}
		case w[len(name)] == '=' && !(short && m == 'a'):
			c.secret(i+len(name)+1, end, m)
		case m == 'a' || m == 'b' || short && m != 'v':
			c.secret(i+len(name), end, m)
		default:
			continue
		}
		return true
	}
	return false
}

// secret masks the part of t[i:end] that its mode means, without its quotes.
func (c *commandLine) secret(i, end int, mode byte) {
	s, t := c.s, c.s.T
	if i >= end {
		return
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
	case ':':
		k = strings.LastIndexByte(w, ':')
	case 'c':
		s.Pairs(i, end, false)
		return
	default:
		k = 0
		i--
	}
	i += k + 1
	if k < 0 || i >= end || t[i:end] == "*" || t[i:end] == "-" {
		return
	}
	head := t[i:min(end, i+scan.GuardLen)]
	if shape.Fold(head, scan.Nothing) && mode != 'v' && mode != 'u' || !s.Harmless(scan.Label{Label: words.Label{Noun: words.Pass}}, scan.Value{Start: i, End: end, After: end, Quote: '"'}, head) {
		s.Mask(i, end, scan.Password)
	}
}

// finish masks the last word where that is the secret.
func (c *commandLine) finish() {
	if c.last && c.plain >= 2 {
		c.secret(c.tail[0], c.tail[1], 'v')
	}
	c.last = false
}
