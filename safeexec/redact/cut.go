package redact

import "strings"

// minFragment is the length from which a piece of token beside a cut is taken
// for one.
const minFragment = 24

// cut handles the edges of a truncation: a piece of a token directly before or
// behind it is masked, as is the tail of a known value. The trigger is a word
// of the message; its line, or its brackets, are the message.
func (s *scanner) cut(a, b int) {
	t := s.t
	from, to := a, b
	if i := strings.LastIndexByte(t[max(0, a-48):a], '['); i >= 0 && t[a] != '[' {
		from = max(0, a-48) + i
	}
	if n := strings.IndexByte(t[b:min(len(t), b+80)], ']'); n >= 0 && t[b-1] != ']' {
		to = b + n + 1
	}
	s.fragmentBefore(from)
	s.fragmentAfter(to)
}

// fragmentBefore masks a piece of token that ends at i, apart from line ends
// and dots.
func (s *scanner) fragmentBefore(i int) {
	for n := 0; n < 8 && i > 0 && (blank(s.t[i-1]) || s.t[i-1] == '\n' || s.t[i-1] == '\r' || s.t[i-1] == '.' || s.t[i-1] == '"'); n++ {
		i--
	}
	start := s.runBack(i, &tokenByte, 8192)
	s.fragment(start, i)
}

// fragmentAfter masks a piece of token that begins at i.
func (s *scanner) fragmentAfter(i int) {
	for n := 0; n < 8 && i < len(s.t) && (blank(s.t[i]) || s.t[i] == '\n' || s.t[i] == '\r' || s.t[i] == '.'); n++ {
		i++
	}
	s.fragment(i, s.run(i, &tokenByte, 8192))
	if s.f.known != nil {
		s.knownTail(i)
	}
}

func (s *scanner) fragment(start, end int) {
	if v := s.t[start:end]; len(v) >= minFragment && mixed(v) && !uuid(v) && strings.Count(v, "/") < 3+len(v)/24 && strings.Count(v, "-") < 4 {
		s.mask(start, end, catCut)
	}
}

// knownTail masks the end of a known value that begins at i.
func (s *scanner) knownTail(i int) {
	for _, f := range s.f.known.forms {
		for n := len(f) - 1; n >= knownPrefix; n-- {
			if strings.HasPrefix(s.t[i:], f[len(f)-n:]) {
				s.mask(i, i+n, catKnown)
				break
			}
		}
	}
}

// A hint is what the command that printed a text says about it.
type hint struct{ secret bool }

// secretCommands print a secret by design.
var secretCommands = []string{"get-access-token", "keys list", "list-keys", "keys renew", "key list", "listkeys", "show-connection-string", "connection-string", "credential list",
	"credential reset", "generate-sas", "create-for-rbac", "get-credentials", "secret show", "secret download", "list-connection-strings", "show-keys", "shared-key show",
	"kubectl get secret", "kubectl create token", "wg showconf", "wg genkey", "wg genpsk", "vault read", "vault kv get", "gcloud auth print", "print-access-token", "print-identity-token",
	"get-secret-value", "get-session-token", "get-login-password", "get-password-data", "list-publishing", "admin-key", "query-key", "authorization show", "regenerate-key", "pass show",
	"terraform output", "helm get values", "docker inspect", "printenv", "list-service-sas", "list-account-sas", "shared-access-signature"}

func hintFor(command string) (h hint) {
	c := strings.Join(strings.Fields(strings.ToLower(command)), " ")
	for _, w := range secretCommands {
		if strings.Contains(c, w) {
			h.secret = true
		}
	}
	return h
}
