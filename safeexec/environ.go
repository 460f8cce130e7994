package safeexec

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ghostbot/safeexec/policy"
)

// azPassed are the variables that az may take over from the bot: where its
// profile and its certificates are and how it gets out.
var azPassed = []string{"REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"}

// azFixed keeps az quiet, from loading code, from sending telemetry, from sending a
// command line that it does not understand to a service that recommends another one,
// and from fetching an account key when a login would do.
var azFixed = []string{
	"AZURE_CORE_COLLECT_TELEMETRY=0",
	"AZURE_CORE_NO_COLOR=1",
	"AZURE_CORE_DISABLE_PROGRESS_BAR=1",
	"AZURE_CORE_ERROR_RECOMMENDATION=off",
	"AZURE_CORE_ONLY_SHOW_ERRORS=1",
	"AZURE_EXTENSION_USE_DYNAMIC_INSTALL=no",
	"AZURE_STORAGE_AUTH_MODE=login",
}

// oursRE matches names that hold what belongs to the bot. They never reach a
// command, not even through [Options.Env].
var oursRE = regexp.MustCompile(`(?i)^(INVOCATION_ID$|GHOST|SLACK_|GEMINI|GOOGLE_API|LD_|BASH_ENV$|ENV$)|TOKEN|SECRET|PASSW|API_?KEY|CREDENTIAL`)

func ours(name string) bool { return oursRE.MatchString(name) }

// noHome is every command's HOME, a place in which nothing can ever exist. The
// working directory would be a way for what one command wrote, a .curlrc or a
// kubeconfig with a program in it, to change what a later one does that is
// classified by its arguments.
const noHome = "/dev/null"

// environ is the whole environment of p's process, beside its mark. Nothing else
// is inherited. Only HOME can be replaced by what the options add.
func (s *Shell) environ(p Proposal) []string {
	env := []string{
		"PATH=" + s.opt.Path, "LANG=C.UTF-8", "TERM=dumb",
		"TZ=" + orElse(getenv("TZ"), "UTC"),
	}
	if p.Env == "azure" {
		env = append(env, azEnviron()...)
	}
	if s.opt.Env != nil {
		for _, kv := range s.opt.Env(filepath.Base(p.Argv[0])) {
			if name, _, ok := strings.Cut(kv, "="); ok && !ours(name) && !names(env, name) {
				env = append(env, kv)
			}
		}
	}
	if !names(env, "HOME") {
		env = append(env, "HOME="+noHome)
	}
	return env
}

// stands tells the product's own verb that ends processes where the answer of people
// stands that is behind it: which entry, in which journals. No other command is told,
// and one that nobody approved is not. It believes the journals, not these variables.
func (s *Shell) stands(p Proposal, d Decided) []string {
	if p.Class != Risky || !policy.Ends(p.Rule) || d.Decision != approved || len(d.Votes) == 0 && d.By == "" || p.AuditID == "" {
		return nil
	}
	env := []string{"GHOST_APPROVAL=" + p.AuditID}
	if s.opt.Journals != "" {
		env = append(env, "GHOST_AUDIT_DIR="+s.opt.Journals)
	}
	return env
}

// opens tells the product's own analysis of captures where the key is that opens them. No
// other command is told.
func (s *Shell) opens(p Proposal) []string {
	if s.opt.CaptureKey == "" || len(p.Argv) < 2 || p.Argv[0] != s.opt.Self || p.Argv[1] != "pcap" {
		return nil
	}
	return []string{"GHOST_CAPTURE_KEY_FILE=" + s.opt.CaptureKey}
}

func names(env []string, name string) bool {
	return slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

func azEnviron() []string {
	env := append([]string{}, azFixed...)
	config := getenv("AZURE_CONFIG_DIR")
	if home, err := os.UserHomeDir(); config == "" && err == nil {
		config = filepath.Join(home, ".azure")
	}
	if config != "" {
		env = append(env, "AZURE_CONFIG_DIR="+config)
	}
	for _, name := range azPassed {
		// An empty bundle is an error to az, not "unset".
		if v := getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// getenv reads a variable that a line-based tool can print without confusion.
func getenv(name string) string {
	v := os.Getenv(name)
	if strings.ContainsAny(v, "\x00\n\r") {
		return ""
	}
	return v
}

func orElse(v, other string) string {
	if v == "" {
		return other
	}
	return v
}
