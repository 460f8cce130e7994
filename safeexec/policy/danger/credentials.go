package danger

import (
	"path"
	"strings"

	"ghostbot/safeexec/policy/metadata"
)

// readers print, search, copy or send the content of files.
var readers = map[string]bool{"cat": true, "tac": true, "nl": true, "head": true, "tail": true, "less": true, "more": true, "most": true,
	"pg": true, "strings": true, "xxd": true, "od": true, "hexdump": true, "hd": true, "base64": true, "base32": true, "basenc": true,
	"rev": true, "cut": true, "sort": true, "uniq": true, "grep": true, "egrep": true, "fgrep": true, "rgrep": true, "zgrep": true, "rg": true,
	"ag": true, "ack": true, "awk": true, "gawk": true, "mawk": true, "nawk": true, "sed": true, "view": true, "vi": true, "vim": true,
	"nvim": true, "nano": true, "emacs": true, "ed": true, "ex": true, "pico": true, "joe": true, "bat": true, "batcat": true, "zcat": true,
	"bzcat": true, "xzcat": true, "zless": true, "zmore": true, "gzip": true, "bzip2": true, "xz": true, "zstd": true, "tar": true, "zip": true,
	"7z": true, "cpio": true, "pax": true, "ar": true, "cp": true, "mv": true, "ln": true, "install": true, "scp": true, "rsync": true,
	"sftp": true, "rclone": true, "dd": true, "tee": true, "split": true, "csplit": true, "fold": true, "fmt": true, "pr": true, "paste": true,
	"join": true, "comm": true, "diff": true, "cmp": true, "sdiff": true, "colordiff": true, "jq": true, "yq": true, "column": true, "expand": true,
	"unexpand": true, "iconv": true, "look": true, "shuf": true, "source": true, ".": true, "mapfile": true, "readarray": true,
	"curl": true, "wget": true, "http": true, "https": true, "xh": true, "aria2c": true, "lynx": true, "w3m": true, "links": true, "fetch": true,
	"mail": true, "mutt": true, "sendmail": true, "socat": true, "ncat": true, "uuencode": true, "openssl": true, "gpg": true, "pbcopy": true,
	"bzip": true, "lz4": true, "pigz": true, "dos2unix": true, "ul": true, "hexyl": true, "busybox-cat": true}

// credentials are stores of keys, tokens and passwords: "~" is any home
// directory, a pattern of one path element never matches a slash, and a
// leading "**/" is any folder. A folder in the list covers what is in it.
var credentials = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/master.passwd", "/etc/security/opasswd", "/etc/shadow.bak",
	"/etc/ghostbot", "/etc/ghostbot/*", "/etc/shadow~", "/var/backups/shadow.bak", "/var/backups/gshadow.bak", "/etc/passwd.secret",
	"/etc/ssh/ssh_host_*_key", "**/.ssh/*", "**/.ssh", "**/id_rsa", "**/id_dsa", "**/id_ecdsa", "**/id_ed25519", "**/id_ecdsa_sk", "**/id_ed25519_sk",
	"**/.env", "**/.env.*", "**/*.env", "**/.netrc", "**/_netrc", "**/.pgpass", "**/.my.cnf", "**/.mylogin.cnf", "**/.git-credentials", "**/.config/git/credentials",
	"**/.docker/config.json", "**/.dockercfg", "/run/containers/*/auth.json", "**/.config/containers/auth.json",
	"**/.kube", "**/.kube/config", "**/kubeconfig", "/etc/kubernetes/*.conf", "/etc/kubernetes/pki/*", "/var/lib/kubelet/pki/*", "/etc/kubernetes/pki",
	"/var/lib/kubelet/kubeconfig", "/etc/rancher/k3s/k3s.yaml", "/var/lib/rancher/k3s/server/token", "/var/lib/rancher/k3s/server/node-token",
	"/var/run/secrets", "/run/secrets", "/run/secrets/*", "/var/run/secrets/*", "/run/secrets/*/*", "/var/run/secrets/*/*", "/run/secrets/*/*/*", "/var/run/secrets/*/*/*", "/run/credentials/*", "/run/credentials/*/*",
	"/var/run/secrets/kubernetes.io/serviceaccount/token", "/run/secrets/kubernetes.io/serviceaccount/token",
	"**/.aws", "**/.aws/credentials", "**/.aws/sso/cache/*", "**/.aws/cli/cache/*", "**/.boto", "**/.s3cfg",
	"**/.azure", "**/.azure/msal_token_cache*", "**/.azure/accessTokens.json", "**/.azure/service_principal_entries*", "**/.azure/*token*",
	"**/.azure/azureProfile.json", "/var/lib/waagent", "/var/lib/waagent/*",
	"**/.config/gcloud", "**/.config/gcloud/*", "**/application_default_credentials.json", "**/.oci/*", "**/.aliyun/config.json", "**/.tccli/*",
	"**/.config/doctl/config.yaml", "**/.config/hcloud/cli.toml",
	"**/.gnupg", "**/.gnupg/*", "**/.password-store", "**/.vault-token", "**/.npmrc", "**/.yarnrc", "**/.yarnrc.yml", "**/.pypirc", "**/.gem/credentials", "**/.cargo/credentials",
	"**/.cargo/credentials.toml", "**/.m2/settings.xml", "**/.nuget/NuGet.Config", "**/.config/gh/hosts.yml", "**/.config/hub",
	"**/.terraform.d/credentials.tfrc.json", "**/.terraformrc", "**/.htpasswd", "**/.rclone.conf", "**/.config/rclone/rclone.conf",
	"**/.config/op/config", "**/.authinfo", "**/.authinfo.gpg", "**/.fetchmailrc", "**/.msmtprc", "**/.smbcredentials", "**/.slack-token",
	"/proc/*/environ", "/proc/*/task/*/environ", "/proc/*/mem", "/proc/kcore", "/dev/mem", "/dev/kmem",
	"/etc/krb5.keytab", "**/*.keytab", "/tmp/krb5cc_*", "/var/lib/sss/secrets/*", "/var/lib/sss/db/*", "/etc/sssd/sssd.conf",
	"/etc/wireguard/*.conf", "/etc/wireguard/*key*", "/etc/wireguard", "/etc/ipsec.secrets", "/etc/ipsec.d/private/*", "/etc/swanctl/private/*", "/etc/swanctl/conf.d/*",
	"/etc/openvpn/*.key", "/etc/openvpn/*/*.key", "/etc/ppp/chap-secrets", "/etc/ppp/pap-secrets", "/etc/racoon/psk.txt",
	"/etc/NetworkManager/system-connections/*", "/etc/NetworkManager/system-connections", "/etc/wpa_supplicant/*.conf", "/etc/wpa_supplicant.conf",
	"/etc/ssl/private/*", "/etc/ssl/private", "/etc/pki/tls/private/*", "/etc/pki/*/private/*", "/etc/letsencrypt/live/*/privkey*.pem", "/etc/letsencrypt/archive/*/privkey*.pem",
	"/etc/letsencrypt/accounts", "/etc/cloudflared/*.json", "/etc/freeradius/*/clients.conf", "/etc/freeradius/*/*/clients.conf", "/etc/raddb/clients.conf",
	"/etc/ppp/*-secrets", "/etc/postfix/sasl_passwd", "/etc/exim4/passwd.client", "/etc/samba/smbpasswd", "/var/lib/samba/private/*", "/etc/libvirt/qemu/*.secret",
	"/root/.ssh", "/var/lib/docker/swarm/certificates/*", "/var/lib/jenkins/secrets/*", "/var/lib/jenkins/credentials.xml",
	"/var/lib/cloud/instance/user-data.txt", "/var/lib/cloud/instances/*/user-data.txt",
	"**/*.kdbx", "**/*.p12", "**/*.pfx", "**/*.jks", "**/*.keystore", "**/*.ppk", "**/privkey*.pem", "**/*.tfstate", "**/*.tfstate.backup", "**/terraform.tfvars",
	"**/secrets.yml", "**/secrets.yaml", "**/secrets.json", "**/credentials.json", "**/wp-config.php", "**/.vault_pass", "**/.vault_pass.txt", "**/.databrickscfg",
	"**/.bash_history", "**/.zsh_history", "**/.sh_history", "**/.history", "**/.mysql_history", "**/.psql_history", "**/.rediscli_history", "**/.python_history",
	"**/.local/share/keyrings/*", "**/logins.json", "**/key4.db", "**/.config/sops/age/keys.txt", "**/.snowsql/config", "**/.fly/config.yml", "**/.config/rclone",
	"/etc/mysql/debian.cnf", "/etc/grafana/grafana.ini", "/etc/openvpn/*.auth", "/etc/openvpn/auth.txt", "/var/lib/etcd/*", "/var/lib/etcd/member/*", "/etc/cni/net.d/*kubeconfig*",
	"/etc/bind/*.key", "/etc/rndc.key", "/etc/named/*.key", "/etc/chrony.keys", "/etc/chrony/chrony.keys", "/etc/ntp.keys", "/etc/ntp/keys",
	"/etc/snmp/snmpd.conf", "/var/lib/snmp/snmpd.conf", "/var/lib/net-snmp/snmpd.conf", "/etc/frr/*.conf", "/etc/quagga/*.conf", "/etc/bird/bird.conf", "/etc/bird.conf",
	"/etc/keepalived/keepalived.conf", "/etc/hostapd/*.conf", "/etc/hostapd.conf",
	"/etc/tailscale/*", "/var/lib/tailscale/*",
}

// public files sit among credentials but hold none.
var public = []string{"**/*.pub", "**/.ssh/known_hosts*", "**/.ssh/config", "**/.ssh/authorized_keys*", "**/.env.example", "**/.env.sample",
	"**/.env.template", "**/.env.dist", "/etc/ssh/ssh_host_*_key.pub"}

// elem is one element of a pattern; a glob with a single star is compared by
// its two ends.
type elem struct {
	text           string
	glob, single   bool
	before, behind string
}

func newElem(s string) elem {
	e := elem{text: s, glob: isGlob(s)}
	if e.glob && strings.Count(s, "*") == 1 && !strings.ContainsAny(s, "?[") {
		e.single = true
		e.before, e.behind, _ = strings.Cut(s, "*")
	}
	return e
}

// fits compares the element with one of a path. A path may have wildcards of
// its own: then each may match the other.
func (e *elem) fits(have string, haveGlob bool) bool {
	switch {
	case e.text == have:
		return true
	case e.single:
		if len(have) >= len(e.before)+len(e.behind) && strings.HasPrefix(have, e.before) && strings.HasSuffix(have, e.behind) {
			return true
		}
	case e.glob:
		if ok, err := path.Match(e.text, have); err == nil && ok {
			return true
		}
	}
	if !haveGlob || have == "*" && e.text[0] == '.' {
		return false
	}
	ok, err := path.Match(have, strings.ReplaceAll(e.text, "*", "x"))
	return err == nil && ok
}

// pattern is a compiled entry of the lists above.
type pattern struct {
	anywhere bool
	elems    []elem
}

var credentialPatterns, publicPatterns = compile(credentials), compile(public)

func compile(list []string) []pattern {
	out := make([]pattern, len(list))
	for i, l := range list {
		out[i] = newPattern(l)
	}
	return out
}

func newPattern(line string) pattern {
	rest, anywhere := strings.CutPrefix(line, "**/")
	p := pattern{anywhere: anywhere}
	for e := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		p.elems = append(p.elems, newElem(e))
	}
	return p
}

// credentialFile reports a path that is a credential store, however spelled,
// or a pattern that takes one in.
func credentialFile(p string) bool {
	if p == "" || strings.HasPrefix(p, "http://") || strings.HasPrefix(p, "https://") {
		return false
	}
	c := clean(p)
	if to, n := climbed(c); n > 0 {
		c = to
	}
	rooted, glob := strings.HasPrefix(c, "/"), isGlob(c)
	have := strings.Split(strings.TrimPrefix(c, "/"), "/")
	for i := range credentialPatterns {
		if credentialPatterns[i].matches(have, rooted, glob) {
			return !publicFile(have, rooted)
		}
	}
	return false
}

func publicFile(have []string, rooted bool) bool {
	for i := range publicPatterns {
		if publicPatterns[i].matches(have, rooted, false) {
			return true
		}
	}
	return false
}

// matches compares the elements of a path with the pattern.
func (p *pattern) matches(have []string, rooted, glob bool) bool {
	n := len(p.elems)
	if len(have) < n || !p.anywhere && (!rooted || len(have) != n) {
		return false
	}
	have = have[len(have)-n:]
	if p.anywhere && n == 1 && have[0] == "*" {
		return false // takes in everything, and hidden files not at all
	}
	for i := range p.elems {
		if !p.elems[i].fits(have[i], glob && isGlob(have[i])) {
			return false
		}
	}
	return true
}

// Programs whose operands are not all read: the last one of a copy is written,
// the first one of a search is what is searched for.
var (
	lastWritten  = map[string]bool{"cp": true, "mv": true, "ln": true, "install": true}
	patternFirst = map[string]bool{"grep": true, "egrep": true, "fgrep": true, "rgrep": true, "zgrep": true, "rg": true, "ag": true,
		"ack": true, "awk": true, "gawk": true, "mawk": true, "nawk": true, "sed": true, "jq": true, "yq": true}
	usesKeys = map[string]bool{"curl": true, "openssl": true, "wget": true, "rsync": true, "scp": true, "sftp": true, "socat": true, "ncat": true}
)

// readsCredentials looks for credential stores among the arguments of a
// program that prints, copies or sends files, and for metadata services asked
// for a credential.
func readsCredentials(name string, argv []string) string {
	args := argv[1:]
	switch {
	case name == "tee":
		return ""
	case lastWritten[name] && len(args) > 1:
		args = args[:len(args)-1]
	}
	searched := !patternFirst[name]
	for i, a := range args {
		if why := asksMetadata(a, args); why != "" {
			return why
		}
		if !searched && !strings.HasPrefix(a, "-") {
			searched = true
			continue
		}
		for _, c := range fileParts(a) {
			if credentialFile(c) && !(usesKeys[name] && keyOption(args, i)) {
				return "a credential store read: " + c
			}
		}
	}
	return ""
}

// keyOptions name a key, a configuration or an output that a program uses
// without printing it, as in "scp -i KEY" and "curl --key KEY".
var keyOptions = map[string]bool{"-i": true, "-E": true, "-e": true, "--cert": true, "--key": true, "--cacert": true, "--netrc-file": true,
	"-CAfile": true, "-cert": true, "-key": true, "--certificate": true, "--private-key": true, "-o": true, "--output": true, "-O": true,
	"-D": true, "--dump-header": true, "-c": true, "--cookie-jar": true, "-out": true, "--trace": true, "--trace-ascii": true}

func keyOption(args []string, i int) bool {
	a := args[i]
	if strings.HasPrefix(a, "@") || strings.Contains(a, "=@") || strings.HasPrefix(strings.ToLower(a), "file:") {
		return false
	}
	return i > 0 && keyOptions[args[i-1]]
}

// fileParts lists the parts of an argument that may be a file: the whole, what
// follows "=", "@", "<", ":" or ",", and the value glued to a short option.
func fileParts(a string) []string {
	if len(a) < 2 || strings.HasPrefix(a, "http://") || strings.HasPrefix(a, "https://") || !maybeFile(a) {
		return nil
	}
	out := []string{a}
	for i := 0; i < len(a) && len(out) < 8; i++ {
		if strings.IndexByte("=@<:,", a[i]) >= 0 && i+1 < len(a) {
			out = append(out, a[i+1:])
		}
	}
	if len(a) > 3 && a[0] == '-' && a[1] != '-' {
		out = append(out, a[2:], a[3:])
		if i := strings.IndexAny(a, "/.~"); i > 3 {
			out = append(out, a[i:])
		}
	}
	return out
}

// maybeFile is a cheap test: every store in the list has one of these in its
// name.
func maybeFile(a string) bool {
	for i := 0; i < len(a); i++ {
		switch a[i] {
		case '/', '.', '~', '*', '?', '[':
			return true
		}
	}
	return strings.Contains(a, "id_") || strings.Contains(a, "kubeconfig")
}

// asksMetadata reports a URL, among a client's arguments, that asks a cloud's
// metadata service for a credential. A name that --resolve or --connect-to
// sends to such a service counts as one.
func asksMetadata(a string, args []string) string {
	if len(a) < 4 || strings.IndexByte(a, '/') < 0 {
		return ""
	}
	a = strings.TrimPrefix(a, "--url=")
	_, _, host, _, rest := metadata.SplitURL(a)
	if host == "" || !metadata.CredentialPath(rest) {
		return ""
	}
	if metadata.Host(host) || redirected(args) {
		return "a cloud metadata service asked for a credential"
	}
	return ""
}

func redirected(args []string) bool {
	for _, a := range args {
		parts := strings.SplitN(a, ":", 3)
		if len(parts) < 3 {
			continue
		}
		target := strings.TrimSuffix(parts[2], ":")
		for _, t := range strings.Split(target, ",") {
			if metadata.Host(t) {
				return true
			}
		}
		if i := strings.LastIndexByte(target, ':'); i > 0 && metadata.Host(target[:i]) {
			return true
		}
	}
	return false
}
