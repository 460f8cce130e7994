package phrases

import (
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
)

// run calls the rules at every place of their words, in order.
func run(text string) []scan.Span {
	s := &Phrases{Text: &scan.Text{T: text}}
	type hit struct {
		b    int
		call func()
	}
	var hits []hit
	add := func(word string, f func(a, b int)) {
		for i := range text {
			if shape.HasFold(text[i:], word) {
				hits = append(hits, hit{i + len(word), func() { f(i, i+len(word)) }})
			}
		}
		if rest, ok := strings.CutPrefix(word, "\n"); ok && shape.HasFold(text, rest) {
			hits = append(hits, hit{len(rest), func() { f(0, len(rest)) }})
		}
	}
	for _, r := range Rules {
		add(r.Word, func(a, b int) { s.Device(r, a, b) })
	}
	for _, p := range Programs {
		add(p.Name, s.Command)
	}
	add("-----begin ", s.KeyBegin)
	add("-----begin+", s.KeyBegin)
	add("private key-----", s.KeyEnd)
	add("private key block-----", s.KeyEnd)
	add("putty-user-key-file-", func(a, _ int) { s.Putty(a) })
	sort.SliceStable(hits, func(i, j int) bool { return hits[i].b < hits[j].b })
	for _, h := range hits {
		h.call()
	}
	return s.Spans
}

// masked is text with ‹ and › around what is masked.
func masked(text string, spans []scan.Span) string {
	sort.Slice(spans, func(i, j int) bool { return spans[i].Start < spans[j].Start })
	var b strings.Builder
	at := 0
	for _, s := range spans {
		if s.Start < at {
			continue
		}
		b.WriteString(text[at:s.Start] + "‹" + text[s.Start:s.End] + "›")
		at = s.End
	}
	return b.String() + text[at:]
}

// check runs texts in which the secrets stand between ‹ and ›.
func check(t *testing.T, texts []string) {
	t.Helper()
	for _, want := range texts {
		text := strings.NewReplacer("‹", "", "›", "").Replace(want)
		if diff := cmp.Diff(want, masked(text, run(text))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

const hex32 = "0123456789abcdef0123456789abcdef"

func TestDevices(t *testing.T) {
	check(t, []string{
		"snmp-server community ‹harbor› RO\n",
		"snmp-server community \"‹harbor lights›\" RO\n",
		"snmp-server community\n",
		"snmp-server host 10.0.0.1 version 2c ‹harbor›\n",
		"snmp-server host 10.0.0.1 ‹harbor›\n",
		"snmp-server host 10.0.0.1 traps version 2c ‹harbor› udp-port 162\n",
		"no snmp-server community-map x\n",
		"rocommunity ‹harbor› 10.0.0.0/8\n",
		"com2sec local localhost ‹harbor›\n",
		"trap2sink 10.0.0.1 ‹harbor›\n",
		"tacacs-server host 10.0.0.1 port 49 key 7 ‹0123AB›\n",
		"radius-server host 10.0.0.1 timeout 5\n",
		"radius-server key ‹harbor›\n",
		"crypto isakmp key ‹harbor› address 203.0.113.9\n",
		"crypto isakmp policy 10\n",
		"standby 1 authentication md5 key-string 7 ‹harbor›\n",
		"standby 1 priority 110\n",
		"vrrp 1 authentication text ‹harbor›\n",
		" key 7 ‹070C285F4D06›\n",
		"function key 8 does nothing\n",
		"\tauth-trunc hmac(sha256) ‹0x" + hex32 + "› 128\n",
		"\tenc cbc(aes) ‹0x" + hex32 + "›\n",
		"\tproto esp spi 0xc2c3a9f1 reqid 1\n",
		"ip macsec add m0 tx sa 0 pn 1 on key 01 ‹" + hex32 + "›\n",
		": RSA host.pem \"‹harbor›\"\n",
		": RSA host.pem\n",
		"bob : EAP \"‹harbor›\"\n",
		"WIFI:T:WPA;S:corp;P:‹harbor›;;\n",
		"WIFI:T:nopass;S:corp;;\n",
		"CLIENT_RANDOM 0123 ‹" + hex32 + "›\n",
		"createUser u SHA \"‹harbor1›\" AES \"‹harbor2›\"\n",
		"createUser u SHA \"[REDACTED]\" AES \"‹harbor2›\"\n",
		"authCommunity log,execute,net ‹harbor›\n",
		"  Key Content            : ‹harbor›\n",
		"contraseña: ‹harbor›\n",
		"mot de passe : ‹harbor›\n",
		"\tE: aes-cbc  ‹01234567 89abcdef›\n",
		"\tE: aes-cbc  none\n",
		"encryption key 1 size 128bit 7 ‹0123456789ABCDEF› transmit-key\n",
		" pre-shared-key address 203.0.113.9 key ‹harbor›\n",
		"config snmp community create ‹harbor›\n",
	})
}

func TestProtocols(t *testing.T) {
	check(t, []string{
		"C: AUTH PLAIN ‹AG5ldG9wcwBKYXNwZXIxODY4›\n",
		"250-AUTH PLAIN LOGIN\n",
		"S: 334 UGFz" + "c3dvcmQ6\nC: ‹aGFyYm9y›\nS: 235\n",
		"    simple: ‹Harbor1633›\n",
		"    simple: yes\n",
		"a1 LOGIN bob ‹Harbor1633›\n",
		"Last login from 10.0.0.1\n",
		"AVP: t=User-Password(2) l=18 val=‹Harbor1633›\n",
		"1.161 > 2.162: C=\"‹harbor›\" GetRequest(28)\n",
		"1.161 > 2.162: { SNMPv2c C=\"‹harbor›\" { GetNextRequest\n",
		"const char *c=\"harbor\";\n",
		"Basic ‹dXNlcjpwYXNz›\n",
		"Basic information\n",
		"stats auth admin:‹harbor›\n",
		"CREATE USER x IDENTIFIED BY '‹harbor›'\n",
		"a bug identified by valgrind\n",
		"SET PASSWORD FOR x = '‹harbor›'\n",
		"ConvertTo-SecureString \"‹harbor›\" -AsPlainText\n",
		"NetworkCredential(\"u\", \"‹harbor›\")\n",
		"    TLS session ticket:\n    0000 - ‹5e 6b 01 02   ^k..›\n    0010 - ‹11 22›\n    Start Time: 1\n",
		"$ cat /etc/racoon/psk.txt\n10.0.0.1 ‹harbor›\n# comment\n10.0.0.2 ‹lights›\n\nafter that\n",
		"/etc/ppp/chap-secrets\n# client server secret\na * ‹harbor› *\n$ next\n",
		"wrote psk.txt and more\n10.0.0.1 harbor\n",
	})
}

func TestCommands(t *testing.T) {
	check(t, []string{
		"curl -u bob:‹harbor› https://h\n",
		"curl -ubob:‹harbor› https://h\n",
		"curl --user=bob:‹harbor› https://h\n",
		"curl -u 'bob:‹har bor›' https://h\n",
		"curl -u bob https://h\n",
		"curl -b sid=‹harbor›; x\n",
		"curl -sS https://h -o x\n",
		"the curl -u option\n",
		"mysql -u root -p‹harbor› db\n",
		"mysql -u root -p db\n",
		"mkdir -p harbor\n",
		"sshpass -p ‹harbor› ssh u@h\n",
		"sshpass -p‹harbor› ssh u@h\n",
		"sudo mysql -p‹harbor›\n",
		"time sshpass -p ‹harbor› curl -u bob:‹lights› https://h\n",
		"docker login -u u -p ‹harbor› r\n",
		"docker run -p 80:80 x\n",
		"az login -u u -p ‹harbor›\n",
		"az vm list -p x\n",
		"snmpwalk -v2c -c ‹harbor› 10.0.0.1\n",
		"snmpget -v3 -l authPriv -u u -a SHA -A ‹harbor1› -x AES -X ‹harbor2› h\n",
		"/usr/bin/snmpget -v2c -c ‹harbor› h\n",
		"htpasswd -b f u ‹harbor›\n",
		"htpasswd f u\n",
		"radtest bob ‹harbor› 10.0.0.1 0 x\n",
		"wpa_passphrase corp ‹harbor›\n",
		"vault login ‹harbor›\n",
		"vault status\n",
		"net user bob ‹harbor› /add\n",
		"import net (such as os) can use a type assertion to\n",
		"aws configure set aws_secret_access_key ‹harbor›\n",
		"aws configure set region eu\n",
		"rabbitmqctl add_user bob ‹harbor›\n",
		"sqlplus scott/‹harbor›@db\n",
		"sqlplus /nolog\n",
		"lftp -u bob,‹harbor› h\n",
		"smbclient //h/s -U bob%‹harbor›\n",
		"dig -y hmac-sha256:k:‹harbor› @h x\n",
		"tcpdump -E spi@ip:‹harbor› -r x\n",
		"echo x | mysql -p‹harbor›\n",
		"mysql -p$PASSWORD db\n",
		"curl -u bob:${PASSWORD} https://h\n",
		"x=curl -u bob:‹harbor›\n",
		"curl -b=\n",
		"curl\n",
		"iwconfig wlan0 key ‹s:harbor›\n",
		"redis-cli -a ‹harbor› ping\n",
		"ssh-keygen -t ed25519 -N '' -f k\n",
		"openssl rsa -passin pass:‹harbor›\n",
		"curl -su bob:‹harbor› https://h\n",
		"curl -sSu 'bob:‹harbor›' https://h\n",
		"curl -svb sid=‹harbor› https://h\n",
		"curl -Xu bob:harbor https://h\n",
		"mysql -vvp‹harbor› orders\n",
		"ldapsearch -LLLxw ‹harbor› -b dc=x\n",
		"http check failed: curl -u bob:‹harbor› https://h\n",
		"net core worker: exec mysql -uroot -p‹harbor›\n",
		"mysql 991 0.0 redis-cli -a ‹harbor›\n",
		"rabbitmqctl add_user mysql ‹harbor›\n",
		"rdesktop -u net -p ‹harbor› 10.0.0.1\n",
		"docker exec db sh -c \"mysql -uroot -p‹harbor› -e x\"\n",
		"cmd=\"mysql -p‹harbor› db\" next=curl -p x\n",
		"docker run --name mongo -p 27017:27017 mongo\n",
		"az keyvault secret set --vault-name kv -n x --value ‹harbor›\n",
		"az keyvault secret show --vault-name kv -n x --query value\n",
		"az network vpn-connection shared-key update -g rg --value ‹harbor›\n",
		"az functionapp keys set --key-name k --key-value ‹harbor› -g rg\n",
		"az sql server create -u u -p ‹harbor› -g rg\n",
		"az vm user update -u u -p ‹harbor› -g rg\n",
		"az mysql flexible-server create -u u -p ‹harbor› -g rg\n",
		"az webapp create -p plan -g rg\n",
		"vault kv put secret/x foo=‹harbor›\n",
		"pulumi config set --secret x ‹harbor›\n",
		"[\"curl\",\"-u\",\"bob:‹harbor›\"]\n",
		"['sshpass', '-p', '‹harbor›', 'ssh']\n",
		"execve(\"/usr/bin/curl\", [\"curl\", \"-u\", \"bob:‹harbor›\", \"https://h\"], 0x7ffc /* 20 vars */) = 0\n",
		"a0=\"redis-cli\" a1=\"-a\" a2=\"‹harbor›\" a3=\"ping\"\n",
		"command:\n- redis-cli\n- -a\n- ‹harbor›\n- ping\n",
		"command:\n- redis-cli\nargs:\n- -a\n- ‹harbor›\nports: []\n",
		"{\"Path\": \"redis-cli\",\n \"Args\": [\n  \"-a\",\n  \"‹harbor›\"]}\n",
		"C:\\tools\\sqlcmd.exe -U sa -P ‹harbor› -S db\n",
		"\"C:\\Program Files\\x\\sqlcmd.exe\" -U sa -P ‹harbor› -S db\n",
		"[\"curl\", \"wget\"], \"user\": \"bob:harbor\"\n",
		"- curl\n- wget\n",
	})
}

func TestArmour(t *testing.T) {
	const dash = "-----"
	begin, end := dash+"BEGIN RSA PRIVATE KEY"+dash, dash+"END RSA PRIVATE KEY"+dash
	line := strings.Repeat("aB3+", 16)
	check(t, []string{
		"x\n‹" + begin + "\n" + line + "\naB3=\n" + end + "›\ny\n",
		"‹" + begin + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0A\n\n" + line + "\n" + end + "›\n",
		"‹" + begin + " " + line + " " + end + "› y\n",
		"‹" + begin + "\n" + line + "›\nwords that follow\n",
		"‹" + begin + "\n" + line + "›\n[truncated: 3 lines omitted]\n",
		"‹" + begin + "\n" + line[:40] + "›",
		"‹" + begin + "\n    " + line + "\n    " + end + "›\n",
		"‹" + begin + "\n> " + line + "\n> " + end + "›\n",
		"[truncated: 3 lines omitted]\n‹" + line + "\naB3=\n" + end + "›\nx\n",
		"words\n" + end + "\n",
		dash + "BEGIN CERTIFICATE" + dash + "\n" + line + "\n" + dash + "END CERTIFICATE" + dash + "\n",
		dash + "BEGIN PUBLIC KEY" + dash + "\n" + line + "\n",
		"‹" + dash + "BEGIN PGP PRIVATE KEY BLOCK" + dash + "\nVersion: x\n\n" + line + "\n=aB3+\n" + dash + "END PGP PRIVATE KEY BLOCK" + dash + "›\n",
		"‹" + begin + "\n" + line + "\nfoo12\n" + end + "›\n",
		"PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 2\n‹" + line + "\naB3=›\nPrivate-MAC: 00\n",
	})
}

func TestRulesTable(t *testing.T) {
	if len(Rules) < 100 {
		t.Errorf("only %d rules were read", len(Rules))
	}
	for _, r := range Rules {
		if r.Word == "" || r.pattern == "" || strings.ToLower(r.Word) != r.Word || strings.ContainsAny(r.Word, "^") {
			t.Errorf("rule %q | %q", r.Word, r.pattern)
		}
	}
	seen := map[string]bool{}
	for _, p := range Programs {
		if seen[p.Name] || p.Name == "" || p.flags == "" && subcommands[p.Name] == nil {
			t.Errorf("program %q, flags %q", p.Name, p.flags)
		}
		seen[p.Name] = true
	}
}

// FuzzPhrases looks for places that no rule may reach.
func FuzzPhrases(f *testing.F) {
	for _, s := range []string{"curl -u a:b", "snmp-server host x version", "-----BEGIN PRIVATE KEY-----\nAAAA", "psk.txt\na b\n", "WIFI:P:x;", "htpasswd -b a b", "createUser a b c d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1000 {
			return
		}
		for _, s := range run(text) {
			if s.Start < 0 || s.End > len(text) || s.Start >= s.End {
				t.Errorf("[%d:%d] of %d bytes", s.Start, s.End, len(text))
			}
		}
	})
}
