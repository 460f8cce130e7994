package tools

import (
	"net/url"
	"regexp"
	"strings"

	"ghostbot/safeexec/policy/metadata"
)

// plainURL accepts an http or https address of an ordinary host: no other
// scheme and no host name from which curl guesses one, no user information, no
// credential in the query, no list or range in brackets (curl would send many
// requests), no cloud metadata service, no path that is an action.
func plainURL(v string) bool {
	if !urlShape(v) || strings.ContainsAny(v, "{}\\ ") && !strings.Contains(v, "/") {
		return false
	}
	scheme, user, host, port, rest := metadata.SplitURL(v)
	if scheme != "http" && scheme != "https" && (scheme != "" || guessed(host)) {
		return false
	}
	if user != "" || strings.Contains(v, "@") && !strings.Contains(rest, "@") || strings.ContainsAny(host, "%*") && !strings.Contains(host, ":") {
		return false
	}
	if !hostName(strings.ReplaceAll(host, "%25", "%")) || metadata.Host(host) || strings.Trim(port, "0123456789") != "" {
		return false
	}
	return !strings.ContainsAny(rest, "{}[]\\") && !credentialQuery(rest) && !action(host, port, rest) && !metadata.CredentialPath(hostless(rest))
}

func urlShape(v string) bool {
	return printable(v) && v != "" && v[0] > ' ' && v[0] != '-' && v[len(v)-1] > ' '
}

// hostless keeps the metadata words away from ordinary paths; only those that
// exist on no ordinary server count there.
func hostless(rest string) string {
	l := strings.ToLower(rest)
	if strings.Contains(l, "/latest/") || strings.Contains(l, "/computemetadata/") || strings.Contains(l, "/metadata/") {
		return rest
	}
	return ""
}

// guessed reports names from which curl guesses another protocol when the
// address has none.
func guessed(host string) bool {
	label, _, _ := strings.Cut(strings.ToLower(host), ".")
	switch label {
	case "ftp", "dict", "ldap", "imap", "smtp", "pop3":
		return true
	}
	return false
}

// credentialQuery reports query parameters that carry a credential.
func credentialQuery(rest string) bool {
	_, query, ok := strings.Cut(rest, "?")
	if !ok {
		return false
	}
	if u, err := url.PathUnescape(query); err == nil {
		query = u
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if credentialName.MatchString(name) {
			return true
		}
	}
	return false
}

var credentialName = regexp.MustCompile(`(?i)(token|secret|passw|passwd|pwd|api_?-?key|apikey|access_?-?key|signature|credential|session|auth|jwt|^sig$|^key$|^code$|^sv$|^x-amz-)`)

// actions are words in paths and queries at which a plain GET is known to
// change a server: admin ports, appliances, build servers, chat webhooks.
var actions = wordSet(`quitquitquit shutdown restart reboot reload drain drain_listeners undrain reset reset_counters delete destroy kill terminate poweroff
 poweron wakeup logout signout flush purge drop truncate clear erase wipe format exec execute run script scripttext eval command cmd cmnd shell rpc
 stop start enable disable activate deactivate toggle trigger invoke build rebuild deploy rollback promote demote failover switchover
 sendmessage send post webhook webhooks hook hooks unsubscribe subscribe confirm approve reject create add remove update upgrade set write save
 install uninstall buildwithparameters publish import restore quit quitdown exit lock unlock ban block mute sync off on attach detach cancel pause resume retry`)

// actionNames are the parameters of a query whose value is such a word; verbNames
// are those whose value is always a verb, and verbs the harmless ones.
var (
	actionNames = wordSet(`run turn state power task method _method func function mode submit btn button event`)
	verbNames   = wordSet(`action do op operation cmd cmnd command exec act`)
	verbs       = wordSet(`list get show status view read info query search health check ping version describe stats metrics`)
)

// stores are parts of paths under which servers keep what is not for everybody:
// settings with credentials, memory, keys, the objects of others.
var stores = wordSet(`env configprops heapdump threaddump dump heap pprof jolokia httptrace logfile secrets secret credentials credential passwords password passwd
 tokens token keys kv private shadow id_rsa wallet backup backups api-keys apikeys cookies vault keystore certs-private
 _search _source _all_docs _msearch _mget _snapshot exec attach portforward proxy runningpods configmaps configmap serviceaccounts
 phpinfo phpinfo.php web.config wp-config.php settings.php server-status server-info config.json credentials.json secrets.json terraform.tfstate
 definitions debug jmx-console phpmyadmin console manager wp-admin config_dump keys.json jwks.private getsecret getparameter id_ed25519 authorized_keys kubeconfig admin.conf`)

// adminPorts are those of services that answer everybody who reaches them with
// everything: containers, kubelets, key-value stores, caches.
var adminPorts = wordSet(`2375 2376 2379 2380 4243 10250 10255 6379 11211 27017 28017 5984 50070 8086 15672`)

// acting are the words that make an action of a longer name that begins with
// them: delete-user, restartService. Others begin harmless names: build-info.
var acting = wordSet(`delete destroy remove restart reboot shutdown stop kill drop purge flush reset disable enable trigger exec execute deploy create
 terminate wipe format poweroff rollback send unsubscribe`)

// leaks are the ends of files that nobody means to publish.
var leaks = wordSet(`sql bak old orig swp dump sqlite sqlite3 key p12 pfx jks kdbx hprof core`)

// openPaths may be asked on any port and whatever the words in them.
var openPaths = match(`^/?$|(?i)^/(-/)?(health|healthz|livez|readyz|ready|live|ping|version|metrics|status|up)([/?].*)?$|` +
	`^/\.well-known/[a-z0-9_./-]*$|^/v1/(sys/health|sys/seal-status|status/(leader|peers)|health/[a-z]+/.*|agent/self)$|^/_(cluster|cat)/[a-z_/?&=]*$`)

// action reports paths and queries at which a plain GET is known to change a
// server, and parts of paths that are opaque enough to carry something out.
func action(host, port, rest string) bool {
	if label, _, _ := strings.Cut(strings.ToLower(host), "."); actions[label] && strings.Contains(host, ".") && strings.Contains(label, "hook") {
		return true
	}
	p, query, _ := strings.Cut(strings.ToLower(unescaped(rest)), "?")
	if openPaths(p) && query == "" || openPaths(strings.TrimSuffix(strings.ToLower(rest), "/")) {
		return strings.Contains(p, "/healthcheck/")
	}
	if strings.Contains(p, "/healthcheck/fail") || strings.Contains(p, "/healthcheck/ok") || adminPorts[port] {
		return true
	}
	for seg := range strings.SplitSeq(p, "/") {
		base, _, _ := strings.Cut(seg, ".")
		first, _, compound := strings.Cut(strings.ReplaceAll(base, "_", "-"), "-")
		end := seg[strings.LastIndexByte(seg, '.')+1:]
		if actions[seg] || stores[seg] || actions[base] && base != seg || compound && acting[first] || end != seg && leaks[end] || len(seg) > 1 && seg[0] == '.' && seg != ".well-known" && seg != ".." {
			return true
		}
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		verb, _, _ := strings.Cut(strings.ReplaceAll(value, "+", " "), " ")
		if actionNames[name] && actions[verb] || verbNames[name] && !verbs[verb] {
			return true
		}
		if actions[name] && value == "" {
			return true
		}
	}
	return camel(rest) || opaque(rest)
}

// camel reports a part of a path that begins with a verb in front of a capital:
// /restartService, /deleteUser.
func camel(rest string) bool {
	p, _, _ := strings.Cut(rest, "?")
	for seg := range strings.SplitSeq(p, "/") {
		if i := strings.IndexFunc(seg, func(r rune) bool { return r >= 'A' && r <= 'Z' }); i > 2 && acting[seg[:i]] {
			return true
		}
	}
	return false
}

// unescaped undoes percent escapes, twice.
func unescaped(s string) string {
	for range 2 {
		u, err := url.PathUnescape(s)
		if err != nil || u == s {
			break
		}
		s = u
	}
	return s
}

// opaque reports a part of a path or query that looks like encoded data: long,
// in one piece, with both cases and digits. It would carry out something, or it
// is a secret that opens a hook.
func opaque(rest string) bool {
	for part := range strings.FieldsFuncSeq(rest, func(r rune) bool { return strings.ContainsRune("/?&=.-_~:,;", r) }) {
		if len(part) < 24 {
			continue
		}
		var upper, lower, digit int
		for _, c := range []byte(part) {
			switch {
			case c >= 'A' && c <= 'Z':
				upper++
			case c >= 'a' && c <= 'z':
				lower++
			case c >= '0' && c <= '9':
				digit++
			}
		}
		if upper > 2 && lower > 2 && digit > 0 || upper == len(part) || len(part) > 120 {
			return true
		}
	}
	return false
}

// headers that carry no credential and change no method.
var headers = map[string]bool{"accept": true, "accept-encoding": true, "accept-language": true, "accept-charset": true, "cache-control": true,
	"connection": true, "content-type": true, "date": true, "dnt": true, "expect": true, "host": true, "if-match": true,
	"if-modified-since": true, "if-none-match": true, "if-unmodified-since": true, "origin": true, "pragma": true, "range": true,
	"referer": true, "te": true, "traceparent": true, "tracestate": true, "upgrade-insecure-requests": true, "user-agent": true, "via": true,
	"x-forwarded-for": true, "x-forwarded-proto": true, "x-forwarded-host": true, "x-forwarded-port": true, "x-real-ip": true,
	"x-request-id": true, "x-correlation-id": true, "x-b3-traceid": true, "x-b3-spanid": true, "x-b3-sampled": true, "x-debug": true,
	"x-envoy-force-trace": true, "fastly-debug": true, "x-cloud-trace-context": true, "x-client-trace-id": true, "accept-datetime": true,
	"sec-fetch-mode": true, "sec-fetch-site": true, "sec-fetch-dest": true, "x-requested-with": true, "prefer": true}

func header(v string) bool {
	name, val, ok := strings.Cut(v, ":")
	if !ok || !printable(v) || !headers[strings.ToLower(name)] {
		return strings.HasSuffix(v, ";") && headers[strings.ToLower(strings.TrimSuffix(v, ";"))]
	}
	val = strings.TrimSpace(val)
	return !strings.EqualFold(name, "host") || !metadata.Host(val) && hostPort(val)
}

// curlVariable is a variable of --write-out. %output{...} writes a file and
// @FILE reads one; everything else only prints facts about the transfer.
var curlVariable = regexp.MustCompile(`%(output|header)?\{([A-Za-z0-9_.>/-]*)\}?`)

func curlFormat(v string) bool {
	if !printable(v) || strings.HasPrefix(v, "@") {
		return false
	}
	for _, m := range curlVariable.FindAllStringSubmatch(v, -1) {
		name := strings.ToLower(m[2])
		switch {
		case m[1] == "output":
			return false
		case m[1] == "header" && (strings.Contains(name, "cookie") || credentialName.MatchString(name)):
			return false
		}
	}
	return !strings.Contains(strings.ToLower(v), "%output")
}

// resolve is curl's HOST:PORT:ADDRESS[,ADDRESS], with an optional + or -.
func resolve(v string) bool {
	parts := strings.SplitN(strings.TrimPrefix(v, "+"), ":", 3)
	if len(parts) != 3 || !(hostName(parts[0]) || parts[0] == "*") || metadata.Host(parts[0]) || strings.Trim(parts[1], "0123456789") != "" {
		return false
	}
	for addr := range strings.SplitSeq(parts[2], ",") {
		a := strings.Trim(addr, "[]")
		if !hostName(a) || metadata.Host(a) {
			return false
		}
	}
	return true
}

// connectTo is curl's HOST1:PORT1:HOST2:PORT2; parts may be empty and IPv6
// addresses stand in brackets.
func connectTo(v string) bool {
	m := connectShape.FindStringSubmatch(v)
	return m != nil && !metadata.Host(m[1]) && !metadata.Host(m[2]) && (m[2] == "" || hostName(strings.Trim(m[2], "[]")))
}

var connectShape = regexp.MustCompile(`^([A-Za-z0-9_.-]*|\[[0-9a-fA-F:.]+\]):[0-9]*:([A-Za-z0-9_.-]*|\[[0-9a-fA-F:.]+\]):[0-9]*$`)
