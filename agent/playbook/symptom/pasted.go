package symptom

import (
	"strings"

	"ghostbot/agent/playbook/pattern"
)

// notAHost are words that stand before a colon and a number without being
// hosts: "error: 502", "line:42".
var notAHost = map[string]bool{
	"error": true, "code": true, "status": true, "http": true, "https": true, "line": true, "since": true, "port": true,
	"at": true, "time": true, "pid": true, "exit": true, "errno": true, "in": true, "on": true, "id": true, "took": true,
	"tcp": true, "udp": true, "err": true, "rc": true, "ttl": true, "hop": true, "and": true, "or": true, "from": true, "to": true,
}

// filler are words between "host" or "server" and "port" that are no names.
var filler = map[string]bool{"is": true, "the": true, "with": true, "listens": true, "uses": true, "has": true, "port": true, "whose": true, "of": true, "has-port": true, "via": true, "local": true}

// fileEnding are last labels of files and code, not of names.
var fileEnding = pattern.New(`(?i)^(go|py|pyc|js|ts|tsx|java|class|jar|conf|cfg|cnf|ini|log|json|jsonl|ya?ml|toml|html?|php|rb|rs|c|cc|cpp|h|txt|md|sh|service|socket|timer|target|so|pem|crt|key|cer|csr|sql|xml|csv|pcap|cap|pid|sock|gz|tar|zip|exe|dll|py3|lua|conf|env|lock|tmp|bak|exceptions?|errors?|error|connectionpool|connection|adapters|client|request|response|timeout|somaxconn|py|s|ms|kt|scala|cs|swift|m)$`)

// shownNames are names that a certificate has, in the words of Go, Python, Node.js and
// people: what it is for instead of the name that was asked for. The "not" of such a
// sentence takes nothing back.
var shownNames = []struct {
	says *pattern.Pattern
	left string
}{
	{pattern.New(`(?i)\b(cert(?:ificate)?) (?:is|was) (?:only |just )?(?:valid |issued |made )?for (?:either of )?['"]?[\w*-]+(?:\.[\w-]+)+['"]?(?:,? (?:and |or )?['"]?[\w*-]+(?:\.[\w-]+)+['"]?){0,30},? (?:not|and not|but not|instead of) (?:for )?(['"]?[\w-]+(?:\.[\w-]+)+)`), "$1 is for another name than $2"},
	{pattern.New(`(?i)\b(hostname ['"]?[^\s'"]+['"]?) doesn'?t match (?:either of )?['"][^\n]{1,400}`), "$1 does not match the certificate"},
	{pattern.New(`(?i)\b(cert(?:ificate)?'?s? altnames): ?(?:DNS:|IP Address:)[^\n]{1,400}`), "$1"},
}

// withoutShown takes the names out that a certificate has: they are not what was asked.
func withoutShown(text string) string {
	for _, s := range shownNames {
		text = s.says.ReplaceAllString(text, s.left)
	}
	return text
}

// codePrefix are first labels of package paths.
var codePrefix = pattern.New(`^(java|javax|sun|jdk|kotlin|scala|org\.apache|org\.springframework|io\.netty|io\.grpc|urllib3|requests|httpx|aiohttp|socket|http\.client|asyncio|net\.core|net\.ipv4|net\.ipv6|net\.http|net/http|system\.net|node|python\d?|std|tokio|reqwest|hyper|errno|os|ssl|kernel|i|e|v?\d+)$`)

var camelCase = pattern.New(`[a-z][A-Z]`)

// notAName reports whether a word with dots is something else than a host name:
// a file, a version, a class, an abbreviation.
func notAName(s string) bool {
	s = strings.TrimRight(s, ".")
	labels := strings.Split(s, ".")
	last := labels[len(labels)-1]
	switch {
	case len(labels) < 2, len(last) < 2, fileEnding.MatchString(last), strings.ContainsAny(last, "0123456789_") && !strings.HasPrefix(strings.ToLower(last), "xn--"):
		return true
	case camelCase.MatchString(s):
		return true
	case strings.ToLower(last) != last && strings.ToUpper(s) != s: // a class: java.net.ConnectException
		return true
	}
	for n := 1; n < len(labels); n++ {
		if n == 1 && len(labels) > 2 && nameEnding.MatchString(last) {
			continue // v6.example.com, node.example.com
		}
		if codePrefix.MatchString(strings.Join(labels[:n], ".")) {
			return true
		}
	}
	return false
}

// nameEnding are last labels that names have and sentences with a forgotten
// blank ("down.since") have not.
var nameEnding = pattern.New(`(?i)^(com|net|org|io|dev|test|local|localdomain|internal|lan|lab|svc|cluster|example|corp|home|arpa|cloud|app|co|uk|de|fr|ch|at|eu|us|info|biz|intra|private|priv|demo|invalid|int|gov|edu|mil|sys|prod|staging|stage|stg|site|tech|ai|cn|jp|br|it|es|nl|se|no|dk|fi|pl|in|au|ca|nz|xn--[a-z0-9-]+)$`)

func likelyName(s string) bool {
	last := s[strings.LastIndexByte(s, '.')+1:]
	return nameEnding.MatchString(last) || strings.Count(s, ".") > 1 || strings.ContainsAny(s, "-0123456789")
}
