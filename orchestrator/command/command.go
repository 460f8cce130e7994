// Package command builds the commands of a capture as argument lists, and reads
// what az answers. It knows Azure's command line and nothing of tasks.
//
// Only create takes a resource group, the VM's; every other command of a capture
// takes the region. Blobs are named by account, container and name, taken from the
// storage path that Azure returned. Every command names the subscription, so that
// the account's default one cannot move it.
package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"ghostbot/orchestrator/names"
)

// Az builds commands for one subscription; "" leaves it to az.
type Az struct{ Subscription string }

func (a Az) with(argv ...string) []string {
	if a.Subscription != "" {
		argv = append(argv, "--subscription", a.Subscription)
	}
	return argv
}

// resource is the query whose answer [Resources] reads.
const resource = "{type:type,location:location,id:id}"

// Detect asks what a target is and where.
func (a Az) Detect(t names.Target) []string {
	if t.ID != "" { // the id names its subscription
		return []string{"az", "resource", "show", "--ids", t.ID, "--query", resource, "-o", "json"}
	}
	return a.with("az", "resource", "list", "--name", t.Name, "--resource-group", t.Group, "--query", "[]."+resource, "-o", "json")
}

// Container asks whether a container is there.
func (a Az) Container(account, container, auth string) []string {
	return a.with("az", "storage", "container", "exists", "--account-name", account, "--name", container, "--auth-mode", auth, "-o", "tsv")
}

// Capture is what is to be captured.
type Capture struct {
	Name, VM, Group string
	Account         string // name or resource id
	StoragePath     string // "" for Azure's own container and path
	Seconds         int
	PacketBytes     int
	TotalBytes      int64
	Filters         []Filter
}

// HeaderBytes is how much of each packet is captured when nobody asks for more: it
// holds Ethernet, IPv6 and the longest TCP header, and little else.
const HeaderBytes = 128

// Effect is what an approver reads about a capture.
func (c Capture) Effect() string {
	what := "headers only: the first " + strconv.Itoa(c.PacketBytes) + " bytes of each packet"
	if c.PacketBytes > HeaderBytes {
		what = "WITH PAYLOAD: the first " + strconv.Itoa(c.PacketBytes) + " bytes of each packet"
	}
	if len(c.Filters) > 0 {
		what += ", filtered"
	}
	account := c.Account[strings.LastIndexByte(c.Account, '/')+1:]
	return fmt.Sprintf("captures packets on %s for %d s, %s, at most %d MiB in all, into storage account %s; session and blob stay until they are deleted, and the capture agent writes with a key of the account",
		c.VM, c.Seconds, what, max(1, c.TotalBytes>>20), account)
}

// KeyEffect warns of an account key, where auth is "key".
func KeyEffect(auth, account, effect string) string {
	if auth != "key" {
		return effect
	}
	return strings.TrimPrefix(effect+"; fetches and uses the account key of "+account+", which opens everything in it", "; ")
}

// Create starts a capture and does not wait for it.
func (a Az) Create(c Capture) []string {
	argv := []string{"az", "network", "watcher", "packet-capture", "create", "--vm", c.VM, "--resource-group", c.Group, "--name", c.Name, "--storage-account", c.Account}
	if c.StoragePath != "" {
		argv = append(argv, "--storage-path", c.StoragePath)
	}
	argv = append(argv, "--time-limit", strconv.Itoa(c.Seconds), "--capture-size", strconv.Itoa(c.PacketBytes), "--capture-limit", strconv.FormatInt(c.TotalBytes, 10))
	if len(c.Filters) > 0 {
		b, _ := json.Marshal(c.Filters) // strings only: cannot be refused
		argv = append(argv, "--filters", string(b))
	}
	return a.with(append(argv, "--no-wait")...)
}

// Show asks for a capture's provisioning and storage path.
func (a Az) Show(location, name string) []string {
	return a.watcher("show", location, name, "--query", "{state:provisioningState,path:storageLocation.storagePath}", "-o", "json")
}

// Status asks how far a capture is. Only this tells: show says Succeeded as soon
// as the session exists.
func (a Az) Status(location, name string) []string {
	return a.watcher("show-status", location, name, "-o", "json")
}

// Delete ends and removes a capture's session; its blob stays.
func (a Az) Delete(location, name string) []string { return a.watcher("delete", location, name) }

func (a Az) watcher(verb, location, name string, more ...string) []string {
	return a.with(append([]string{"az", "network", "watcher", "packet-capture", verb, "--location", location, "--name", name}, more...)...)
}

// List asks for the names of all captures of ours in a region.
func (a Az) List(location, prefix string) []string {
	return a.with("az", "network", "watcher", "packet-capture", "list", "--location", location, "--query", "[?starts_with(name, '"+prefix+"')].name", "-o", "json")
}

// Watchers asks in which regions there is a Network Watcher.
func (a Az) Watchers() []string {
	return a.with("az", "network", "watcher", "list", "--query", "[].location", "-o", "json")
}

// Download fetches a blob into a file.
func (a Az) Download(b names.Blob, file, auth string) []string {
	return a.with("az", "storage", "blob", "download", "--account-name", b.Account, "--container-name", b.Container, "--name", b.Name,
		"--file", file, "--no-progress", "--auth-mode", auth, "-o", "none")
}

// DeleteBlob removes a blob.
func (a Az) DeleteBlob(b names.Blob, auth string) []string {
	return a.with("az", "storage", "blob", "delete", "--account-name", b.Account, "--container-name", b.Container, "--name", b.Name, "--auth-mode", auth)
}

// Remove deletes a local file.
func Remove(file string) []string { return []string{"rm", file} }

// Analyze is the product's own analysis. It leaves its reports in the directory in
// which the gate runs it, the case's own, and so needs no person.
func Analyze(self, file string) []string {
	return []string{self, "pcap", file, "--json", "--semantic-dir", ".", "--report-dir", ".", "--plots", "."}
}

// Compare is the comparison of two ends of the same traffic, source first.
func Compare(self, source, destination string) []string {
	return []string{self, "pcap", source, "--compare", destination, "--mode", "endpoints", "--json", "--report-dir", "."}
}

// Filter lets only some packets into a capture. Empty fields match everything.
type Filter struct {
	Protocol   string `json:"protocol,omitempty"` // TCP, UDP, Any
	LocalIP    string `json:"localIPAddress,omitempty"`
	RemoteIP   string `json:"remoteIPAddress,omitempty"`
	LocalPort  string `json:"localPort,omitempty"`
	RemotePort string `json:"remotePort,omitempty"`
}

// MaxFilters is how many filters one capture may have.
const MaxFilters = 16

// ErrFilter says that a filter is not one that Azure takes.
var ErrFilter = errors.New("filters take protocol (TCP, UDP, Any), addresses, prefixes or ranges a-b, and ports or ranges a-b")

// Valid returns ErrFilter for what Azure would refuse, or read as something else.
func (f Filter) Valid() error {
	switch f.Protocol {
	case "", "TCP", "UDP", "Any":
	default:
		return ErrFilter
	}
	if f == (Filter{}) || !addresses(f.LocalIP) || !addresses(f.RemoteIP) || !ports(f.LocalPort) || !ports(f.RemotePort) {
		return ErrFilter
	}
	return nil
}

// CheckFilters says why a capture may not have these filters.
func CheckFilters(list []Filter) error {
	if len(list) > MaxFilters {
		return fmt.Errorf("at most %d filters are accepted", MaxFilters)
	}
	for _, f := range list {
		if err := f.Valid(); err != nil {
			return err
		}
	}
	return nil
}

func addresses(s string) bool {
	if s == "" {
		return true
	}
	if _, err := netip.ParsePrefix(s); err == nil {
		return true
	}
	a, b, ok := strings.Cut(s, "-")
	first, err := netip.ParseAddr(a)
	if err != nil || first.Zone() != "" || !ok {
		return err == nil && first.Zone() == ""
	}
	last, err := netip.ParseAddr(b)
	return err == nil && last.Zone() == "" && last.BitLen() == first.BitLen() && !last.Less(first)
}

var portRE = regexp.MustCompile(`^[0-9]{1,5}$`)

func ports(s string) bool {
	if s == "" {
		return true
	}
	a, b, ok := strings.Cut(s, "-")
	if !ok {
		b = a
	}
	if !portRE.MatchString(a) || !portRE.MatchString(b) {
		return false
	}
	first, _ := strconv.Atoi(a)
	last, _ := strconv.Atoi(b)
	return first <= last && last <= 65535
}

// Resource is what a target turned out to be.
type Resource struct{ Type, Location, ID string }

// ErrReply says that az answered something else than was asked for.
var ErrReply = errors.New("unexpected answer")

// Resources reads the answer to Detect: one object, or a list of them.
func Resources(out string) ([]Resource, error) {
	out = strings.TrimSpace(out)
	if out == "" {
		return nil, nil
	}
	var list []Resource
	if strings.HasPrefix(out, "{") {
		out = "[" + out + "]"
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("resource: %w", ErrReply)
	}
	return list, nil
}

// Shown is the answer to Show. Provisioning is Creating, Updating, Succeeded,
// Deleting, Failed or Canceled.
type Shown struct {
	Provisioning string `json:"state"`
	Path         string `json:"path"`
}

// ReadShown reads the answer to Show.
func ReadShown(out string) (Shown, error) {
	var s Shown
	if json.Unmarshal([]byte(out), &s) != nil {
		return Shown{}, fmt.Errorf("capture: %w", ErrReply)
	}
	return s, nil
}

// Progress is the answer to Status. Status is NotStarted, Running, Stopped, Error
// or Unknown; an empty answer is Unknown.
type Progress struct {
	Status  string    `json:"packetCaptureStatus"`
	Reason  string    `json:"stopReason"`
	Errors  []string  `json:"packetCaptureError"`
	Started time.Time `json:"captureStartTime"`
}

// Short says of a capture that had stopped at last why it may hold less than its
// time limit allowed; "" when nothing speaks for that. Azure does not always give a
// reason.
func (p Progress) Short(last time.Time, limit time.Duration) string {
	// Clocks of two machines: what differs by less than the margin says nothing.
	ran := last.Sub(p.Started)
	early := !p.Started.IsZero() && ran > 0 && ran < limit-5*time.Second
	switch {
	case p.Reason != "" && (early || p.Reason != "TimeExceeded"):
		return fmt.Sprintf("the capture stopped with reason %q: its time limit may not have been reached", p.Reason)
	case early:
		return "the capture ended before its time limit: it hit its size limit, or somebody stopped it"
	}
	return ""
}

// Listed is the errors of a capture as the end of a sentence.
func (p Progress) Listed() string {
	if len(p.Errors) == 0 {
		return ""
	}
	return ": " + strings.Join(p.Errors, ", ")
}

// Verb is the words of a command before its first flag; of other programs than az
// the name is enough.
func Verb(argv []string) []string {
	for i, w := range argv {
		if w == "" || w[0] == '-' || w[0] == '/' && i > 0 {
			return argv[:i]
		}
	}
	return argv
}

// Unknown is the status that nothing follows from.
const Unknown = "Unknown"

// ReadProgress reads the answer to Status.
func ReadProgress(out string) Progress {
	var p Progress
	if json.Unmarshal([]byte(out), &p) != nil || p.Status == "" {
		return Progress{Status: Unknown}
	}
	return p
}

// Names reads the answer to List. whole is false when the list was shortened on
// its way here, or is no list.
func Names(out, prefix string) (list []string, whole bool) {
	var items []json.RawMessage
	if json.Unmarshal([]byte(out), &items) != nil {
		return nil, strings.TrimSpace(out) == ""
	}
	whole = true
	for _, item := range items {
		var name string
		if json.Unmarshal(item, &name) != nil {
			var o struct{ Name string }
			if json.Unmarshal(item, &o) != nil {
				whole = false
				continue
			}
			name = o.Name
		}
		if !strings.HasPrefix(name, prefix) {
			whole = false // the gate's own note that it left something out
			continue
		}
		list = append(list, name)
	}
	return list, whole
}
