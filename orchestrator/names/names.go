// Package names checks names and identifiers against Azure's rules before a
// command is built from them, and makes the names that captures get. Everything
// here is ASCII and narrower than Azure where Azure is generous: what is refused
// can be renamed, what is let through reaches a command line.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Prefix opens the name of everything that the product makes in the cloud.
const Prefix = "ghost_"

// Rules of Azure's naming documents. Network objects (captures) end at 80
// characters, VMs at 64.
var (
	vmRE        = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_])?$`)
	groupRE     = regexp.MustCompile(`^[A-Za-z0-9._()-]{0,89}[A-Za-z0-9_()-]$`)
	accountRE   = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
	containerRE = regexp.MustCompile(`^[a-z0-9](?:-?[a-z0-9]){2,62}$`)
	locationRE  = regexp.MustCompile(`^[a-z0-9]{2,40}$`)
	subRE       = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?$`)
	guidRE      = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	typeRE      = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9.]{0,63}$`)
	taskRE      = regexp.MustCompile(`^ghost_[A-Za-z0-9._-]{0,73}[A-Za-z0-9_]$`)
	fileRE      = regexp.MustCompile(`^ghost_[A-Za-z0-9._-]+$`)
	segmentRE   = regexp.MustCompile(`^[A-Za-z0-9_()][A-Za-z0-9._()-]{0,127}$`)
	domainRE    = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+$`)
)

// Group reports whether s is a resource group's name. A leading '-' would be
// taken for a flag.
func Group(s string) bool { return groupRE.MatchString(s) && s[0] != '-' }

// Account reports whether s is a storage account's name.
func Account(s string) bool { return accountRE.MatchString(s) }

// Container reports whether s is a blob container's name.
func Container(s string) bool { return len(s) <= 63 && containerRE.MatchString(s) }

// Subscription reports whether s is a subscription's id.
func Subscription(s string) bool { return guidRE.MatchString(s) }

// Location is s as az writes a region ("West Europe" is "westeurope"), "" when
// it is none.
func Location(s string) string {
	s = strings.ToLower(strings.ReplaceAll(s, " ", ""))
	if !locationRE.MatchString(s) {
		return ""
	}
	return s
}

// ValidFile reports whether s is a file name as captures and their reports get it:
// that of a comparison holds the ids of both ends.
func ValidFile(s string) bool { return len(s) <= 255 && fileRE.MatchString(s) }

// ValidTask reports whether s has the form of a task's id.
func ValidTask(s string) bool { return taskRE.MatchString(s) }

// Target is one end of a capture: a name in a group, or a resource id.
type Target struct {
	ID           string // as given; "" for a short name
	Subscription string // of the id
	Group        string
	Type         string // of the id, as in Microsoft.Compute/virtualMachines
	Name         string
}

// Same reports whether two targets are one resource.
func (t Target) Same(u Target) bool {
	return strings.EqualFold(t.Name, u.Name) && strings.EqualFold(t.Group, u.Group)
}

// Errors of Parse and ParseBlob.
var (
	ErrTarget       = errors.New("target must be a VM name, a resource id, or two of them joined by \" to \"")
	ErrSubscription = errors.New("target is in another subscription than the one that is configured")
	ErrStoragePath  = errors.New("the storage path is not a blob of the storage account that was asked for")
)

// Parse reads one end. group is the one of a short name; subscription, when it is
// set, the only one that an id may be in.
func Parse(s, group, subscription string) (Target, error) {
	if !strings.HasPrefix(s, "/") {
		if !vmRE.MatchString(s) {
			return Target{}, ErrTarget
		}
		return Target{Group: group, Name: s}, nil
	}
	t, ok := parseID(s)
	switch {
	case !ok || !vmRE.MatchString(t.Name):
		return Target{}, ErrTarget
	case subscription != "" && !strings.EqualFold(t.Subscription, subscription):
		return Target{}, ErrSubscription
	}
	return t, nil
}

// parseID reads /subscriptions/S/resourceGroups/G/providers/NS/TYPE/NAME and
// nothing below it.
func parseID(s string) (Target, bool) {
	p := strings.Split(s, "/")
	if len(p) != 9 || p[0] != "" || !strings.EqualFold(p[1], "subscriptions") || !strings.EqualFold(p[3], "resourceGroups") || !strings.EqualFold(p[5], "providers") {
		return Target{}, false
	}
	ok := subRE.MatchString(p[2]) && Group(p[4]) && typeRE.MatchString(p[6]) && typeRE.MatchString(p[7])
	return Target{ID: s, Subscription: p[2], Group: p[4], Type: p[6] + "/" + p[7], Name: p[8]}, ok
}

// ParseAccount reads a storage account: its name, or its resource id in the
// subscription that is configured.
func ParseAccount(s, subscription string) (name string, ok bool) {
	if !strings.HasPrefix(s, "/") {
		return s, Account(s)
	}
	t, ok := parseID(s)
	ok = ok && strings.EqualFold(t.Type, "Microsoft.Storage/storageAccounts") && Account(t.Name) &&
		(subscription == "" || strings.EqualFold(t.Subscription, subscription))
	return t.Name, ok
}

// AccountID is the resource id of a storage account.
func AccountID(subscription, group, name string) string {
	return "/subscriptions/" + subscription + "/resourceGroups/" + group + "/providers/Microsoft.Storage/storageAccounts/" + name
}

// Blob is where a capture lies.
type Blob struct{ Account, Container, Name string }

// ParseBlob reads the storage path that Azure returned. It must be plain https,
// in the account that was asked for, and made of harmless characters: parts of it
// become arguments of the next commands.
func ParseBlob(path, account string) (Blob, error) {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Port() != "" {
		return Blob{}, ErrStoragePath
	}
	host, domain, ok := strings.Cut(u.Host, ".blob.")
	if !ok || host != account || !domainRE.MatchString(domain) {
		return Blob{}, ErrStoragePath
	}
	container, name, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if !Container(container) || name == "" || len(name) > 1024 {
		return Blob{}, ErrStoragePath
	}
	for _, part := range strings.Split(name, "/") {
		if !segmentRE.MatchString(part) {
			return Blob{}, ErrStoragePath
		}
	}
	return Blob{Account: account, Container: container, Name: name}, nil
}

// maxName leaves room, within the 80 characters of a network object, for the
// prefix, the second and the mark.
const maxName = 40

// Keep is how long what was made in the cloud may be needed; its name says so.
const Keep = 24 * time.Hour

// Task is the stem of a task's id: prefix, target with '-' for what names may not
// hold, and the second at which the capture was asked for. Of a resource id that
// is too long the end, which is the VM's name, is what stays.
func Task(target string, at time.Time) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, target)
	if len(clean) > maxName && strings.HasPrefix(target, "/") {
		clean = clean[len(clean)-maxName:]
	}
	clean = clean[:min(len(clean), maxName)]
	return Prefix + clean + "_" + at.UTC().Format("20060102T150405")
}

// Mark is the end of an id. It makes ids differ that one second and one name would
// make equal, and tells whoever finds the object whose it is and when it may go.
type Mark struct {
	Owner string // the deployment
	Case  string
	Place string // in the case: which request, which end
}

// String is m as the end of a name: digests of owner, case and place, and the hours
// of [Keep].
func (m Mark) String() string {
	return "_" + digest(m.Owner)[:4] + digest(m.Case)[:6] + digest(m.Place)[:4] + "e" + strconv.Itoa(int(Keep/time.Hour))
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

var markRE = regexp.MustCompile(`_([0-9]{8}T[0-9]{6})(?:_([0-9a-f]{4})[0-9a-f]{10}e([0-9]{1,3}))?$`)

// Made is what the name of an object says.
type Made struct {
	Owner   string // digest of the deployment; "" in a name without a mark
	At      time.Time
	Expires time.Time // never before At
}

// By reports whether it was made by this deployment.
func (m Made) By(owner string) bool { return m.Owner != "" && m.Owner == digest(owner)[:4] }

// Read reads the name of an object of ours; ok is false when it does not say when
// it was made.
func Read(name string) (m Made, ok bool) {
	f := markRE.FindStringSubmatch(name)
	if f == nil || !strings.HasPrefix(name, Prefix) {
		return m, false
	}
	at, err := time.Parse("20060102T150405", f[1])
	if err != nil {
		return m, false
	}
	m = Made{Owner: f[2], At: at, Expires: at.Add(Keep)}
	if hours, err := strconv.Atoi(f[3]); err == nil {
		m.Expires = at.Add(time.Duration(hours) * time.Hour)
	}
	return m, true
}

// Plain drops what a terminal or a log could take for an order.
func Plain(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return -1
		}
		return c
	}, s)
}
