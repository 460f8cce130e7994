package failure

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for _, tc := range []struct {
		stderr string
		exit   int
		code   string
		marks  string // g gone, e early, l lasting
	}{
		{"ERROR: Please run 'az login' to setup account.", 1, "not_signed_in", "el"},
		{"ERROR: AADSTS7000222: The provided client secret keys are expired. Trace ID: x\nInteractive authentication is needed. Please run:\naz login", 1, "not_signed_in", "el"},
		{"ERROR: (ExpiredAuthenticationToken) The access token expiry UTC time '1/1/2026' is earlier", 1, "not_signed_in", "el"},
		{"WARNING: Subscription 'x' not recognized.\nERROR: Subscription 'x' not found. Check the spelling and casing and try again.", 1, "wrong_subscription", "el"},
		{"ERROR: (AuthorizationFailed) The client 'c' with object id 'o' does not have authorization to perform action 'A/read' over scope 'S' or the scope is invalid.\nCode: AuthorizationFailed", 1, "not_authorized", "el"},
		{"ERROR: network watcher is not enabled for region westus.", 1, "no_network_watcher", "el"},
		{"ERROR: (SubscriptionRequestsThrottled) Number of requests exceeded", 1, "throttled", "e"},
		{"\nYou do not have the required permissions needed to perform this operation.\nDepending on your operation, you may need ...", 1, "storage_no_role", "l"},
		{"The request may be blocked by network rules of storage account. Please check network rule set", 1, "storage_firewall", "l"},
		{"Authentication failure. This may be caused by either invalid account key, connection string or sas token value provided for your storage account.", 1, "storage_sign_in", "l"},
		{"ERROR: Key based authentication is not permitted on this storage account.\nErrorCode:KeyBasedAuthenticationNotPermitted", 1, "storage_key_off", "l"},
		{"ERROR: The specified container does not exist.\nRequestId:1\nErrorCode:ContainerNotFound", 3, "container_missing", "gl"},
		{"ERROR: The specified blob does not exist.\nRequestId:1\nTime:x\nErrorCode:BlobNotFound", 3, "blob_missing", "g"},
		{"ERROR: The server is busy\nErrorCode:ServerBusy", 1, "unreachable", ""},
		{"ERROR: Failed to resolve 'sa01.blob.core.windows.net' ([Errno -2] Name or service not known)", 1, "unreachable", ""},
		{"ERROR: ('Unable to connect to proxy', OSError('x'))", 1, "unreachable", ""},
		{"ERROR: argument --query: invalid jmespath_type value: '[?name==web'", 2, "invalid_query", "el"},
		{"ERROR: (ResourceGroupNotFound) Resource group 'x' could not be found.", 3, "group_missing", "gel"},
		{"ERROR: (ResourceNotFound) The Resource 'Microsoft.Compute/virtualMachines/x' under resource group 'prod-rg' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix", 3, "resource_missing", "gel"},
		{"ERROR: (PacketCaptureLimit) The maximum number of packet captures for this VM is reached.", 1, "capture_quota", "el"},
		{"ERROR: (BadRequest) The VM does not have the Network Watcher agent extension installed.", 1, "no_agent", "el"},
		{"ERROR: (Conflict) A packet capture of this name already exists.", 1, "name_taken", "l"},
		{"ERROR: (OperationNotAllowed) The VM vm-01 is not running.", 1, "vm_not_running", "el"},
		{"ERROR: (BadRequest) The storage account must be in the same region as the VM.", 1, "storage_region", "el"},
		{"ERROR: the following arguments are required: --location/-l\n\nExamples from AI knowledge base:", 2, "usage", "el"},
		{"ERROR: InvalidArgumentValue: --time-limit: Invalid format: '18001' is greater than 18000", 1, "usage", "el"},
		{"ERROR: 'nsgs' is misspelled or not recognized by the system.", 2, "usage", "el"},
		{"ERROR: The command failed with an unexpected error. Here is the traceback:\nNo module named x", 1, "az_broken", "l"},
		{"it does not exist", 1, "resource_missing", "l"},
		{"it does not exist", 3, "resource_missing", "gl"},
		{"rm: cannot remove '/var/x.cap': No such file or directory\n", 1, "file_missing", "gl"},
		{"ERROR: [Errno 2] No such file or directory: '/x'", 1, "az_failed", ""},
		{"/usr/bin/az: 2: exec: /opt/az/bin/python3: not found", 127, "not_installed", "el"}, // nothing was deleted
		{"/usr/bin/az: line 2: /opt/az/bin/python3: Permission denied", 126, "not_installed", "el"},
		// Names are no words: what exists must not be taken for what was never made.
		{"ERROR: (Conflict) Packet capture 'ghost_build-agent-01_20260314T104512' on build-agent-01 already exists.", 1, "name_taken", "l"},
		{"ERROR: (PacketCaptureAlreadyExists) /subscriptions/S/virtualMachines/limit-exceeded already exists", 1, "name_taken", "l"},
		{"ERROR: (BadRequest) The storage account must be in the same region as virtual machine agent-01.", 1, "storage_region", "el"},
		{"ERROR: (InternalServerError) oops on 'agent'", 1, "az_failed", ""},
		{"ERROR: (OperationNotAllowed) The VM quota-agent-1 is not running.", 1, "vm_not_running", "el"},
		{"", 3, "resource_missing", "g"},
		{"what", 2, "usage", "el"},
		{"az: not installed", 127, "not_installed", "el"},
		{"command failed", 1, "az_failed", ""},
		{"ERROR: (InternalServerError) oops", 1, "az_failed", ""},
		{"", -1, "az_failed", ""},
	} {
		f := Of(tc.stderr, tc.exit)
		marks := ""
		for _, m := range []struct {
			on bool
			c  string
		}{{f.Gone, "g"}, {f.Early, "e"}, {f.Lasting, "l"}} {
			if m.on {
				marks += m.c
			}
		}
		if f.Code != tc.code || marks != tc.marks {
			t.Errorf("%.60q: %s %q, want %s %q", tc.stderr, f.Code, marks, tc.code, tc.marks)
		}
		if f.Advice == "" || strings.Contains(f.Text, "\n") || strings.HasPrefix(f.Text, "ERROR") {
			t.Errorf("%.60q: advice %q, text %q", tc.stderr, f.Advice, f.Text)
		}
	}
}

// Every row is reached by a text of its own: an earlier row must not hide it.
func TestAdvice(t *testing.T) {
	for _, r := range table {
		if !strings.HasSuffix(r.advice, ".") || r.code == "" || strings.ToLower(r.code) != r.code {
			t.Errorf("%s: %q", r.code, r.advice)
		}
	}
}

func TestFirst(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"\n\n":                               "",
		"WARNING: x\nERROR: (A) b\nCode: A":  "(A) b",
		"\nYou do not have\nmore":            "You do not have",
		"ERROR: " + strings.Repeat("é", 200): strings.Repeat("é", 150) + "...",
		"plain":                              "plain",
	} {
		if got := First(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
