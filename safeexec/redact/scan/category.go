package scan

import (
	"slices"
	"strings"
)

// A Category is a kind of credential. The smaller one names a mark that covers
// several: the more exact a rule, the earlier it stands.
type Category uint8

// The categories, by rank.
const (
	Known         Category = iota // a secret of this process
	PrivateKey                    // a key block, or the private part of a key pair
	SAS                           // a signature in a URL
	Bearer                        // credentials of a header
	StorageKey                    // an account key without a label
	Subscription                  // the id in a subscriptionId field
	URL                           // user and password in a URL
	Cookie                        // the value of a cookie
	Hash                          // of a password
	Community                     // of SNMP
	TLS                           // a session's secret
	SharedKey                     // a key that two devices share
	APIKey                        // a labelled key
	Password                      // a labelled password
	JWT                           // a JSON web token
	Vendor                        // a token of a form that a vendor documents
	Token                         // a labelled token
	Secret                        // anything else that is labelled
	Encoded                       // base64 of a text with a credential in it
	Cut                           // a piece of a token beside a cut
	NumCategories                 // how many there are
)

// categories gives each category its name in a Result and the kind in its
// mark; no kind where the text beside the mark says enough.
var categories = [NumCategories]struct{ name, kind string }{
	Known:        {"known_secret", "KNOWN_SECRET"},
	PrivateKey:   {"private_key", "PRIVATE_KEY"},
	SAS:          {"sas_token", "SAS_TOKEN"},
	Bearer:       {"bearer_token", ""},
	StorageKey:   {"storage_key", ""},
	Subscription: {"azure_subscription_id", ""},
	URL:          {"url_password", ""},
	Cookie:       {"cookie", ""},
	Hash:         {"password_hash", "HASH"},
	Community:    {"snmp_community", ""},
	TLS:          {"session_secret", ""},
	SharedKey:    {"shared_key", ""},
	APIKey:       {"api_key", ""},
	Password:     {"password", ""},
	JWT:          {"jwt", "JWT"},
	Vendor:       {"access_token", "TOKEN"},
	Token:        {"token", ""},
	Secret:       {"secret", ""},
	Encoded:      {"encoded_secret", "ENCODED"},
	Cut:          {"cut_secret", "CUT"},
}

const markOpen = "[REDACTED"

// marks are all marks, by category.
var marks = markTable()

func markTable() (t [NumCategories]string) {
	for c := range t {
		t[c] = markOpen + "]"
		if k := categories[c].kind; k != "" {
			t[c] = markOpen + "_" + k + "]"
		}
	}
	return t
}

// Mark is what stands in the place of a credential.
func (c Category) Mark() string { return marks[c] }

// MarkAt is the length of the mark that text starts with, 0 when there is none.
func MarkAt(text string) int {
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

// FindMarks gives the places of all marks in text.
func FindMarks(text string) (found []Span) {
	for at := 0; ; {
		i := strings.Index(text[at:], markOpen)
		if i < 0 {
			return found
		}
		at += i
		n := MarkAt(text[at:])
		if n > 0 {
			found = append(found, Span{Start: at, End: at + n})
		}
		at += max(n, 1)
	}
}

// OnlyMarks says whether s is made of marks.
func OnlyMarks(s string) bool {
	for s != "" {
		n := MarkAt(s)
		if n == 0 {
			return false
		}
		s = s[n:]
	}
	return true
}

// Names gives the names of categories, sorted.
func Names(cats [NumCategories]bool) (out []string) {
	for c, on := range cats {
		if on {
			out = append(out, categories[c].name)
		}
	}
	slices.Sort(out)
	return out
}
