package redact

import "strings"

// A program's secret arguments: flags whose value is a secret, and how the
// value is written. needs is a word without which the flags mean something else.
//
//	v  the next word, or after "="
//	a  attached only: -psecret
//	b  attached or the next word
//	u  user:secret, user%secret or user,secret
//	c  name=value pairs, as cookies are
//	1  the first, 2 the second word that is no flag (with -: the last)
type program struct {
	name  string
	flags string // "flag:mode flag:mode"
	needs string
}

// programs is the table. Long flags with a telling name need no row: they are
// labels.
var programs = []program{
	{"curl", "-u:u --user:u -U:u --proxy-user:u -b:c --cookie:c -E:u --cert:u --oauth2-bearer:v --pass:v", ""}, {"wget", "--header:h", ""}, {"httpie", "-a:u --auth:u", ""}, {"http", "-a:u --auth:u", ""},
	{"mysql", "-p:a", ""}, {"mysqldump", "-p:a", ""}, {"mysqladmin", "-p:a", ""}, {"mysqlsh", "-p:a", ""}, {"mariadb", "-p:a", ""}, {"mysqlslap", "-p:a", ""}, {"mysqlimport", "-p:a", ""}, {"mycli", "-p:a", ""},
	{"sshpass", "-p:b", ""}, {"redis-cli", "-a:v --pass:v", ""}, {"mongo", "-p:b", ""}, {"mongosh", "-p:b", ""}, {"mongodump", "-p:b", ""}, {"cqlsh", "-p:v", ""}, {"clickhouse-client", "--password:v", ""},
	{"ldapsearch", "-w:b", ""}, {"ldapmodify", "-w:b", ""}, {"ldapadd", "-w:b", ""}, {"ldapdelete", "-w:b", ""}, {"ldapwhoami", "-w:b", ""}, {"ldappasswd", "-w:b -s:b -a:b", ""}, {"ldapcompare", "-w:b", ""},
	{"snmpwalk", "-c:b -A:b -X:b", ""}, {"snmpget", "-c:b -A:b -X:b", ""}, {"snmpset", "-c:b -A:b -X:b", ""}, {"snmpbulkwalk", "-c:b -A:b -X:b", ""}, {"snmptable", "-c:b -A:b -X:b", ""},
	{"snmpgetnext", "-c:b -A:b -X:b", ""}, {"snmpbulkget", "-c:b -A:b -X:b", ""}, {"snmptrap", "-c:b -A:b -X:b", ""}, {"snmpstatus", "-c:b -A:b -X:b", ""}, {"snmpdf", "-c:b -A:b -X:b", ""}, {"onesixtyone", "", ""}, {"snmpcheck", "-c:b", ""},
	{"docker", "-p:b", "login"}, {"podman", "-p:b", "login"}, {"helm", "-p:b", "login"}, {"skopeo", "-p:b", "login"}, {"nerdctl", "-p:b", "login"}, {"oras", "-p:b", "login"}, {"az", "-p:b", "login"}, {"oc", "-p:b", "login"}, {"cf", "-p:b", "login"},
	{"vault", "login:n", ""}, {"sqlcmd", "-P:b", ""}, {"bcp", "-P:b", ""}, {"tsql", "-P:b", ""}, {"isql", "3", ""}, {"impdp", "", ""}, {"sqlplus", "1/", ""}, {"expdp", "1/", ""}, {"rman", "target:/", ""},
	{"smbclient", "-U:u --user:u", ""}, {"rpcclient", "-U:u", ""}, {"smbmap", "-p:v", ""}, {"winexe", "-U:u", ""}, {"net", "user:3 use:p", ""}, {"rdesktop", "-p:v", ""}, {"xfreerdp", "", ""}, {"nxc", "-p:v", ""}, {"crackmapexec", "-p:v", ""},
	{"evil-winrm", "-p:v", ""}, {"ipmitool", "-P:b", ""}, {"ipmipower", "-p:v", ""}, {"openssl", "-k:v -K:v", "enc"}, {"ssh-keygen", "-N:v -P:v", ""}, {"zip", "-P:b", ""}, {"unzip", "-P:b", ""}, {"7z", "-p:a", ""}, {"7za", "-p:a", ""}, {"unrar", "-p:a", ""}, {"rar", "-p:a -hp:a", ""},
	{"htpasswd", "-b:L -nb:L -bc:L -cb:L -Bb:L -bB:L -bn:L -nbB:L -bnB:L", ""}, {"plink", "-pw:v", ""}, {"pscp", "-pw:v", ""}, {"psftp", "-pw:v", ""}, {"putty", "-pw:v", ""}, {"mosquitto_pub", "-P:v", ""}, {"mosquitto_sub", "-P:v", ""},
	{"radtest", "2", ""}, {"wpa_passphrase", "2", ""}, {"useradd", "-p:b", ""}, {"usermod", "-p:b", ""}, {"lftp", "-u:u", ""}, {"ncftp", "-p:v", ""}, {"ncftpget", "-p:v", ""}, {"hydra", "-p:v", ""}, {"medusa", "-p:v", ""},
	{"psexec", "-p:v", ""}, {"influx", "-password:v -p:v", ""}, {"rabbitmqctl", "add_user:2 change_password:2 authenticate_user:2", ""}, {"swaks", "-ap:v -p:n", ""}, {"sendemail", "-xp:v", ""}, {"iwconfig", "key:k", ""}, {"expect", "", ""},
	{"gpg", "--passphrase:v", ""}, {"keytool", "-storepass:v -keypass:v", ""}, {"jarsigner", "-storepass:v -keypass:v", ""}, {"etcdctl", "--user:u", ""}, {"tcpdump", "-E:e", ""}, {"aws", "aws_secret_access_key:v aws_session_token:v", ""},
	{"openconnect", "-p:v", ""}, {"vncviewer", "", ""}, {"x11vnc", "-passwd:v", ""}, {"nmcli", "802-11-wireless-security.psk:v wifi-sec.psk:v", ""}, {"ipa", "-w:v -p:n", ""}, {"kadmin", "-w:v -pw:v", ""}, {"kadmin.local", "-pw:v", ""}, {"dig", "-y:y", ""}, {"nsupdate", "-y:y", ""}, {"rndc", "-y:n", ""},
	{"samba-tool", "setpassword:n", ""}, {"pdbedit", "", ""}, {"msiexec", "", ""}, {"cmdkey", "", ""}, {"schtasks", "/rp:v", ""}, {"sc.exe", "password=:v", ""}, {"wmic", "", ""}, {"runas", "", ""}, {"tshark", "-o:o", ""}, {"ansible", "", ""}, {"kubeadm", "", ""}, {"radclient", "3", ""},
	{"echo", "1|", ""}, {"printf", "1|", ""},
}

// maxCommand bounds how far the arguments of one command are looked at.
const maxCommand = 4096

// programIndex finds a program by name.
var programIndex = func() map[string]*program {
	t := map[string]*program{}
	for i := range programs {
		t[programs[i].name] = &programs[i]
	}
	return t
}()

// command handles the command line that begins with a program's name, to the
// end of its line. Programs that it names further on take over there, so each
// line is read once.
func (s *scanner) command(a, b int) {
	t := s.t
	if a < s.commandDone || b >= len(t) || !blank(t[b]) || a > 0 && (labelByte(t[a-1]) && t[a-1] != '.' || t[a-1] == '=') {
		return
	}
	end := min(s.lineEnd(b), b+maxCommand)
	s.commandDone = end
	c := commandLine{s: s, end: end}
	c.start(t[a:b], b)
	for i := s.blanks(b); i < end; i = s.blanks(i) {
		n := c.argument(i)
		if n <= i {
			break
		}
		i = n
	}
	c.finish()
}

// A commandLine is a command whose arguments are being read.
type commandLine struct {
	s         *scanner
	p         *program
	end       int
	ok        bool // the word that the program needs was there
	plain     int  // arguments so far that are no flags
	last      value
	wantLast  bool
	offset    int // of plain, at a subcommand with positions
	wantPlain int
}

func (c *commandLine) start(name string, at int) {
	p := programIndex[strings.ToLower(name)]
	if p == nil {
		return
	}
	*c = commandLine{s: c.s, p: p, end: c.end}
	c.ok = p.needs == "" || strings.Contains(c.s.t[at:c.end], p.needs)
	if n := len(p.flags); n > 0 && p.flags[0] >= '1' && p.flags[0] <= '9' {
		c.wantPlain = int(p.flags[0] - '0')
	}
}

// argument reads one word of the command and gives the index behind it.
func (c *commandLine) argument(i int) int {
	s, t := c.s, c.s.t
	end := i
	for end < c.end && !blank(t[end]) {
		if q := t[end]; q == '"' || q == '\'' {
			if n := strings.IndexByte(t[end+1:c.end], q); n >= 0 {
				end += n + 2
				continue
			}
		}
		end++
	}
	w := t[i:end]
	if name := w[strings.LastIndexByte(w, '/')+1:]; programIndex[name] != nil && c.plain == 0 {
		c.start(name, end)
		return end
	}
	if strings.HasPrefix(w, "|") || strings.HasPrefix(w, "&&") || w == ";" || w == "||" {
		c.finish()
		c.plain, c.p = 0, nil
		return end
	}
	if c.p == nil || !c.ok {
		return end
	}
	if n := c.flag(w, i, end); n > 0 {
		return n
	}
	if w[0] != '-' && w[0] != '+' {
		c.plain++
		c.last = value{start: i, end: end}
		if c.plain == c.wantPlain {
			c.secret(i, end, c.p.flags[len(c.p.flags)-1])
		}
	}
	_ = s
	return end
}

// flag handles w when it is one of the program's flags.
func (c *commandLine) flag(w string, i, end int) int {
	for f := range strings.FieldsSeq(c.p.flags) {
		name, mode, ok := strings.Cut(f, ":")
		if !ok || !strings.HasPrefix(w, name) {
			continue
		}
		m := mode[0]
		switch {
		case m == 'L':
			if w == name {
				c.wantLast = true
				return end
			}
		case m >= '1' && m <= '9' || m == '/' || m == 'n' && !strings.HasPrefix(name, "-"):
			if w == name {
				if m == '/' || m == 'n' {
					m = '1'
				}
				c.wantPlain = int(m - '0')
				if name == "user" || name == "use" {
					c.wantPlain--
				}
				c.plain = 0
				return end
			}
		case w == name && m != 'a':
			next := c.s.blanks(end)
			return c.masked(next, m)
		case len(w) > len(name) && w[len(name)] == '=' && strings.HasPrefix(name, "-"):
			c.secret(i+len(name)+1, end, m)
			return end
		case len(w) > len(name) && len(name) <= 3 && (m == 'a' || m == 'b' || m == 'u' && len(name) == 2):
			c.secret(i+len(name), end, m)
			return end
		}
	}
	return 0
}

// masked masks the word at i.
func (c *commandLine) masked(i int, mode byte) int {
	end := i
	t := c.s.t
	for end < c.end && !blank(t[end]) {
		if q := t[end]; q == '"' || q == '\'' {
			if n := strings.IndexByte(t[end+1:c.end], q); n >= 0 {
				end += n + 2
				continue
			}
		}
		end++
	}
	c.secret(i, end, mode)
	return max(end, i+1)
}

// secret masks t[i:end] as its mode says, without its quotes.
func (c *commandLine) secret(i, end int, mode byte) {
	s, t := c.s, c.s.t
	if i < end && (t[i] == '"' || t[i] == '\'') {
		q := t[i]
		i++
		if end > i && t[end-1] == q {
			end--
		}
	}
	if i >= end || end > len(t) {
		return
	}
	switch mode {
	case 'u':
		k := strings.IndexAny(t[i:end], ":%,")
		if k < 0 {
			return
		}
		i += k + 1
	case '/':
		k := strings.IndexByte(t[i:end], '/')
		if k < 1 {
			return
		}
		i += k + 1
		if n := strings.LastIndexByte(t[i:end], '@'); n >= 0 {
			end = i + n
		}
	case 'y', 'e':
		k := strings.LastIndexByte(t[i:end], ':')
		if k < 0 {
			return
		}
		i += k + 1
	case 'c':
		s.pairs(i, end)
		return
	case 'h', 'o', 'k', 'p', '|':
		return
	case 'n':
		return
	}
	for end > i && strings.IndexByte(")`;'\"", t[end-1]) >= 0 {
		end--
	}
	v := t[i:min(end, i+guardLen)]
	l := label{noun: wPass}
	if v == "" || v[0] == '-' && mode == 'v' || v == "*" || len(v) < guardLen && shortHarmless(v) && mode != 'b' && mode != 'a' || s.harmless(l, value{start: i, end: end, after: end, quote: '"'}, v) && !harmless[v] {
		return
	}
	s.mask(i, end, catPassword)
}

// finish masks the last word where that is the secret.
func (c *commandLine) finish() {
	if c.wantLast && c.plain >= 2 {
		c.secret(c.last.start, c.last.end, 'v')
	}
	c.wantLast = false
}

// pairs masks the values of name=value pairs.
func (s *scanner) pairs(i, end int) {
	for i < end {
		name := s.run(i, &cookieName, 256)
		if name >= end || s.t[name] != '=' {
			return
		}
		stop := min(end, s.run(name+1, &cookieValue, 8192))
		if v := s.t[name+1 : stop]; !shortHarmless(v) && markAt(v) == 0 {
			s.mask(name+1, stop, catCookie)
		}
		if stop >= end || s.t[stop] != ';' {
			return
		}
		i = s.blanks(stop + 1)
	}
}
