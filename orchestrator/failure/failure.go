// Package failure understands what az says when it fails: a code for the brain
// and a sentence for people that says what to do.
//
// az writes an error of the Resource Manager as "ERROR: (Code) Message", one of
// storage as a text with "ErrorCode:Code" in it, or as a text without any code,
// and everything else in words. Its exit code is 3 for what was not found, 2 for a
// command line that it does not understand and 1 for the rest. Codes of the
// service for a quota, a missing agent and a name that is taken are not
// documented, so these are told by their words, and the text is kept.
package failure

import (
	"regexp"
	"strings"
)

// Failure is what one failed command means. The zero value is no failure.
type Failure struct {
	Code   string // stable, for a brain
	Advice string // one sentence: what to do
	Text   string // the first line of what az wrote, without its prefix
	// Gone: the object is not there. Early: az refused before anything was made.
	// Lasting: trying again gives the same.
	Gone, Early, Lasting bool
}

// row is one kind of failure. words: re is looked for outside of names, since a VM may
// be called build-agent-01.
type row struct {
	re                          *regexp.Regexp
	code, advice                string
	gone, early, lasting, words bool
}

// table is in the order in which rows are tried: specific texts before the codes
// and words that they contain. (?s) lets a pattern reach over the lines.
var table = []row{
	{re: regexp.MustCompile(`az login|AADSTS\d+|ExpiredAuthenticationToken|InvalidAuthenticationToken|Interactive authentication is needed`),
		code: "not_signed_in", early: true, lasting: true,
		advice: "az is not signed in, or its sign-in has expired: run az login for the account of the bot on its host, then ask again."},
	{re: regexp.MustCompile(`(?i)Subscription '[^']*' not (found|recognized)|SubscriptionNotFound|InvalidSubscriptionId`),
		code: "wrong_subscription", early: true, lasting: true,
		advice: "The account cannot see the subscription: check GHOST_AZ_SUBSCRIPTION and the account's access to it."},
	{re: regexp.MustCompile(`\(AuthorizationFailed\)|LinkedAuthorizationFailed`),
		code: "not_authorized", early: true, lasting: true,
		advice: "The bot's account lacks a role: give it Network Contributor on the watcher and the VM's group, and wait some minutes for it to count."},
	{re: regexp.MustCompile(`(?i)network watcher is not enabled`),
		code: "no_network_watcher", early: true, lasting: true,
		advice: "Network Watcher is not enabled in the VM's region: enable it with az network watcher configure --enabled true, or in the portal."},
	{re: regexp.MustCompile(`SubscriptionRequestsThrottled|TooManyRequests|\(429\)|OperationNotAllowedThrottled`),
		code: "throttled", early: true,
		advice: "Azure is throttling the subscription: wait some minutes and ask again."},
	{re: regexp.MustCompile(`You do not have the required permissions needed|AuthorizationPermissionMismatch`),
		code: "storage_no_role", lasting: true,
		advice: "The bot's account may not read or write blobs: give it Storage Blob Data Contributor on the storage account."},
	{re: regexp.MustCompile(`blocked by network rules|AuthorizationFailure`),
		code: "storage_firewall", lasting: true,
		advice: "The storage account's network rules refuse the bot's host: allow its address, or use another account."},
	{re: regexp.MustCompile(`KeyBasedAuthenticationNotPermitted`),
		code: "storage_key_off", lasting: true,
		advice: "The storage account refuses account keys: use storage_auth_mode login. The capture agent itself needs key access to write."},
	{re: regexp.MustCompile(`Authentication failure|AuthenticationFailed`),
		code: "storage_sign_in", lasting: true,
		advice: "The storage account refused the credential: check the sign-in of the bot's account."},
	{re: regexp.MustCompile(`ContainerNotFound|specified container does not exist`),
		code: "container_missing", gone: true, lasting: true,
		advice: "The container does not exist: create it, or unset GHOST_AZ_CONTAINER to use Azure's own."},
	{re: regexp.MustCompile(`BlobNotFound|specified blob does not exist`),
		code: "blob_missing", gone: true,
		advice: "The blob is not there: the capture agent has not written it yet, or could not."},
	{re: regexp.MustCompile(`ServerBusy|Failed to resolve|Unable to connect to proxy|Connection (refused|aborted|reset)|Max retries exceeded|Name or service not known`),
		code:   "unreachable",
		advice: "Azure cannot be reached from the bot's host: check its network, proxy and the name of the storage account."},
	{re: regexp.MustCompile(`invalid jmespath_type value`),
		code: "invalid_query", early: true, lasting: true,
		advice: "az does not understand the --query of this command; this is a fault of the product."},
	{re: regexp.MustCompile(`ResourceGroupNotFound`),
		code: "group_missing", gone: true, early: true, lasting: true,
		advice: "The resource group does not exist in this subscription: check its name."},
	{re: regexp.MustCompile(`ResourceNotFound|\(NotFound\)|was not found`),
		code: "resource_missing", gone: true, early: true, lasting: true,
		advice: "The resource does not exist in this group and subscription: check the names."},
	{re: regexp.MustCompile(`(?i)ERROR: \(\w+\).*(quota|limit.*(reached|exceeded)|maximum number|exceed)`),
		code: "capture_quota", words: true, early: true, lasting: true,
		advice: "No more captures are allowed for this VM or region: delete finished capture sessions, they count until they are deleted."},
	{re: regexp.MustCompile(`(?i)ERROR: \(\w+\).*(extension|agent).*`),
		code: "no_agent", words: true, early: true, lasting: true,
		advice: "The VM lacks the Network Watcher agent extension, or it does not answer: install AzureNetworkWatcherExtension and see that the VM runs."},
	{re: regexp.MustCompile(`(?i)ERROR: \(\w+\).*(not running|deallocated|powered off|stopped state)`),
		code: "vm_not_running", words: true, early: true, lasting: true,
		advice: "The VM does not run, so that nothing can be captured on it: start it, or choose another one."},
	{re: regexp.MustCompile(`(?i)ERROR: \(\w*(AlreadyExists|Conflict|InUse)\w*\)|ERROR: \(\w+\).*already exist`),
		code: "name_taken", words: true, lasting: true,
		advice: "A capture of this name exists already: it may be one that an earlier attempt made; look at it before asking again."},
	{re: regexp.MustCompile(`(?i)ERROR: \(\w+\).*storage.*(region|location)`),
		code: "storage_region", words: true, early: true, lasting: true,
		advice: "The storage account must be in the VM's region and of a standard kind: name another one."},
	{re: regexp.MustCompile(`arguments are required|unrecognized arguments|misspelled or not recognized|InvalidArgumentValue|usage error|Failed to parse|is not a valid value`),
		code: "usage", early: true, lasting: true,
		advice: "az does not understand the command: its version may be too old (2.61 or newer is needed)."},
	{re: regexp.MustCompile(`ModuleNotFoundError|unexpected error. Here is the traceback`),
		code: "az_broken", lasting: true,
		advice: "az itself is broken: install a current release (the one of Debian 12 cannot make captures)."},
	{re: regexp.MustCompile(`(?i)not found|does not exist`),
		code: "resource_missing", lasting: true,
		advice: "It does not exist: check the names."},
	{re: regexp.MustCompile(`^rm: .*: No such file or directory`),
		code: "file_missing", gone: true, lasting: true,
		advice: "The file is not there any more."},
}

var (
	headRE = regexp.MustCompile(`ERROR: \(\w+\)`)
	nameRE = regexp.MustCompile(`'[^'\s]*'|"[^"\s]*"|\S*[-_/\d]\S*`)
)

// nameless is stderr without what can be the name of something.
func nameless(stderr string) string {
	head := headRE.FindStringIndex(stderr)
	if head == nil {
		return stderr
	}
	return stderr[:head[1]] + nameRE.ReplaceAllString(stderr[head[1]:], "")
}

// Of says what a failed command's stderr means. exit is its exit code, -1 when it
// had none.
func Of(stderr string, exit int) Failure {
	f := Failure{Code: "az_failed", Advice: "See what az wrote.", Text: First(stderr)}
	if exit == 126 || exit == 127 { // a shell did not start it: its words are no answer of Azure
		f.Code, f.Early, f.Lasting = "not_installed", true, true
		f.Advice = "The program is not installed on the bot's host, or cannot be started there."
		return f
	}
	words := nameless(stderr)
	for _, r := range table {
		text := stderr
		if r.words {
			text = words
		}
		if r.re.MatchString(text) {
			f.Code, f.Advice, f.Gone, f.Early, f.Lasting = r.code, r.advice, r.gone || exit == 3 && r.code == "resource_missing", r.early, r.lasting
			return f
		}
	}
	switch exit {
	case 3:
		f.Code, f.Gone = "resource_missing", true
		f.Advice = "It does not exist: check the names."
	case 2:
		f.Code, f.Early, f.Lasting = "usage", true, true
		f.Advice = "az does not understand the command."
	}
	return f
}

// maxText bounds the line that is kept.
const maxText = 300

// First is the first line of stderr that says something, without "ERROR: ".
func First(stderr string) string {
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if line == "" || line == "ERROR:" || strings.HasPrefix(line, "WARNING:") { // storage's texts begin on the line after
			continue
		}
		line = strings.TrimPrefix(line, "ERROR: ")
		if len(line) > maxText {
			line = strings.ToValidUTF8(line[:maxText], "") + "..."
		}
		return line
	}
	return ""
}

// Silence says of a read that failed why it is not known what is there. It has no
// full stop.
func (f Failure) Silence() string {
	return strings.TrimSuffix("Azure did not say what is there ("+f.Code+": "+f.Text+"). "+f.Advice, ".")
}

// NoKey is the failure of a download that was to be encrypted and has no key any more, with the
// line that says so.
func NoKey() (f Failure, detail string) {
	return Failure{Code: "no_capture_key", Advice: "Start the bot with the GHOST_CAPTURE_KEY_FILE that it had when the capture was made."},
		"The capture was to be kept encrypted, and there is no key; nothing was downloaded"
}

// OfDownload is the line about a download that failed.
func OfDownload(again bool) string {
	if again {
		return "Blob download failed after retry"
	}
	return "Blob download failed"
}

// OfAnalysis is f as that of an analysis, which had its say when it ran.
func (f Failure) OfAnalysis(ran bool) Failure {
	f.Code = "analysis_failed"
	if f.Advice == "" || ran {
		f.Advice = "The file may be empty or no capture: " + f.Text
	}
	return f
}
