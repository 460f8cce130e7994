package redact

import (
	"slices"
	"strings"
)

// A category is a kind of credential. The smaller one names a mark that covers
// several: the more exact a rule, the earlier it stands.
type category uint8

const (
	catKnown category = iota
	catPrivateKey
	catSAS
	catBearer
	catStorageKey
	catSubscription
	catURL
	catCookie
	catHash
	catCommunity
	catTLS
	catSharedKey
	catAPIKey
	catPassword
	catJWT
	catVendor
	catToken
	catSecret
	catEncoded
	catCut
	numCategories
)

// categories gives each category its name in a Result and the kind in its
// mark; no kind where the text beside the mark says enough.
var categories = [numCategories]struct{ name, kind string }{
	catKnown:        {"known_secret", "KNOWN_SECRET"},
	catPrivateKey:   {"private_key", "PRIVATE_KEY"},
	catSAS:          {"sas_token", "SAS_TOKEN"},
	catBearer:       {"bearer_token", ""},
	catStorageKey:   {"storage_key", ""},
	catSubscription: {"azure_subscription_id", ""},
	catURL:          {"url_password", ""},
	catCookie:       {"cookie", ""},
	catHash:         {"password_hash", "HASH"},
	catCommunity:    {"snmp_community", ""},
	catTLS:          {"session_secret", ""},
	catSharedKey:    {"shared_key", ""},
	catAPIKey:       {"api_key", ""},
	catPassword:     {"password", ""},
	catJWT:          {"jwt", "JWT"},
	catVendor:       {"access_token", "TOKEN"},
	catToken:        {"token", ""},
	catSecret:       {"secret", ""},
	catEncoded:      {"encoded_secret", "ENCODED"},
	catCut:          {"cut_secret", "CUT"},
}

const markOpen = "[REDACTED"

// marks are all marks, by category.
var marks = markTable()

func markTable() (t [numCategories]string) {
	for c := range t {
		t[c] = markOpen + "]"
		if k := categories[c].kind; k != "" {
			t[c] = markOpen + "_" + k + "]"
		}
	}
	return t
}

func (c category) mark() string { return marks[c] }

// markAt is the length of the mark that text starts with, 0 when there is none.
func markAt(text string) int {
	if !strings.HasPrefix(text, markOpen) {
		return 0
	}
	for _, m := range marks {
		if strings.HasPrefix(text, m) {
			return len(m)
		}
	}
	return 0
}

// findMarks gives the places of all marks in text.
func findMarks(text string) (found []span) {
	for at := 0; ; {
		i := strings.Index(text[at:], markOpen)
		if i < 0 {
			return found
		}
		at += i
		n := markAt(text[at:])
		if n > 0 {
			found = append(found, span{start: at, end: at + n})
		}
		at += max(n, 1)
	}
}

func onlyMarks(s string) bool {
	for s != "" {
		n := markAt(s)
		if n == 0 {
			return false
		}
		s = s[n:]
	}
	return true
}

func names(cats [numCategories]bool) (out []string) {
	for c, on := range cats {
		if on {
			out = append(out, categories[c].name)
		}
	}
	slices.Sort(out)
	return out
}
