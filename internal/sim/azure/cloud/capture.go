package cloud

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// defaultQuota is how many sessions a region takes; finished ones count.
	defaultQuota = 10000
	// startup is from the request to the first packet, and until the session's
	// provisioning has ended.
	startup = 2 * time.Second
	// DefaultContainer is where captures go when no path was given.
	DefaultContainer = "network-watcher-logs"
)

// Script says how captures of one VM go. The zero value is an ordinary one.
type Script struct {
	// Status, when set, is what the service says whatever the time is: Error, Unknown...
	Status string
	// Mute lets the service say nothing about the capture.
	Mute bool
	// After ends the capture early, with Reason: a limit of bytes was reached.
	After  time.Duration
	Reason string
	// Errors are said when the capture has ended, as in StorageFailed.
	Errors []string
	// NoBlob: the agent never writes its file. Late: it does so that much later.
	NoBlob bool
	Late   time.Duration
	// Data is the file; nil leaves it to the agent. Empty makes it an empty one.
	Data  []byte
	Empty bool
	// Broken makes provisioning fail after it was accepted.
	Broken *Error
}

// capture is one session.
type capture struct {
	id, region, vm string
	limit          time.Duration
	properties     Object
	start          time.Time // of the session; packets follow startup later
	stopped        time.Time // by a person
	written        bool
	script         Script
	failures       []string // of the agent
	settled        bool     // its provisioning was seen to end
}

// Captured is one session as tests see it.
type Captured struct {
	ID, Region, VM, Status, StoragePath string
	Written                             bool // its file is in the storage account
}

// Upload is a file that the agent of a VM has to write.
type Upload struct {
	ID, VM string
	Path   *url.URL // of the blob
	Data   []byte   // nil: whatever the agent likes
	Demand bool     // the container is made if it is not there
}

// Direct says how captures of a VM go from now on.
func (c *Cloud) Direct(vm string, s Script) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scripts[key(vm)] = s
}

// Quota sets how many sessions a region takes.
func (c *Cloud) Quota(n int) { c.mu.Lock(); defer c.mu.Unlock(); c.quota = n }

// Captures lists the sessions that exist, by their ids.
func (c *Cloud) Captures() []Captured {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Captured
	now := c.Clock.Now()
	for _, x := range c.captures {
		status, _, _ := x.state(now)
		list = append(list, Captured{ID: x.id, Region: x.region, VM: x.vm, Status: status, StoragePath: x.path(), Written: x.written})
	}
	slices.SortFunc(list, func(a, b Captured) int { return strings.Compare(a.ID, b.ID) })
	return list
}

func (x *capture) path() string {
	l, _ := x.properties["storageLocation"].(Object)
	return text(l, "storagePath")
}

// StartCapture begins a session under the id of a watcher. What the service says
// when it refuses is not documented for most reasons; these texts are chosen so
// that their words tell, which is all that a caller may rely on.
func (c *Cloud) StartCapture(watcher, name string, p Object) (Object, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.objects[key(watcher)]
	if !ok {
		return nil, NotFound(watcher)
	}
	id, region := text(w, "id")+"/packetCaptures/"+name, text(w, "location")
	if _, taken := c.captures[key(id)]; taken {
		return nil, &Error{409, "PacketCaptureAlreadyExists", "A packet capture with the name " + name + " already exists in " + text(w, "name") + "."}
	}
	if n := c.sessions(region); n >= c.quota {
		return nil, &Error{400, "PacketCaptureCountLimitReached", fmt.Sprintf("The limit of %d packet captures in region %s is reached.", c.quota, region)}
	}
	x := &capture{id: id, region: region, start: c.Clock.Now().Truncate(time.Millisecond)}
	if err := c.target(x, text(p, "target")); err != nil {
		return nil, err
	}
	if err := c.store(x, p); err != nil {
		return nil, err
	}
	x.script = c.scripts[key(x.vm)]
	seconds, _ := p["timeLimitInSeconds"].(float64)
	if seconds == 0 {
		seconds = 18000
	}
	x.limit = time.Duration(seconds) * time.Second
	for name, value := range map[string]any{"targetType": "AzureVM", "scope": Object{"include": []any{}, "exclude": []any{}}, "bytesToCapturePerPacket": 0.0,
		"totalBytesPerSession": 1073741824.0, "timeLimitInSeconds": seconds, "filters": []any{}} {
		if x.properties[name] == nil {
			x.properties[name] = value
		}
	}
	c.captures[key(id)] = x
	c.note(created, id)
	return c.shown(x), nil
}

func (c *Cloud) sessions(region string) (n int) {
	for _, x := range c.captures {
		if strings.EqualFold(x.region, region) {
			n++
		}
	}
	return n
}

// target looks at the VM.
func (c *Cloud) target(x *capture, id string) *Error {
	vm, ok := c.objects[key(id)]
	if !ok || !strings.EqualFold(text(vm, "type"), "Microsoft.Compute/virtualMachines") {
		return &Error{400, "PacketCaptureTargetNotFound", "The target " + id + " of the packet capture was not found."}
	}
	x.vm = text(vm, "name")
	if !strings.EqualFold(text(vm, "location"), x.region) {
		return &Error{400, "PacketCaptureTargetInOtherRegion", "The target " + x.vm + " is not in region " + x.region + "."}
	}
	if power := text(vm, "power"); power != "running" {
		return &Error{400, "VMNotRunning", "The virtual machine " + x.vm + " is not running: its state is " + power + "."}
	}
	for id, o := range c.objects {
		if strings.HasPrefix(id, key(text(vm, "id"))+"/extensions/") && text(properties(o), "publisher") == "Microsoft.Azure.NetworkWatcher" {
			return nil
		}
	}
	return &Error{400, "NetworkWatcherAgentNotInstalled", "The Network Watcher agent extension is not installed on virtual machine " + x.vm + "."}
}

// store looks at the storage account and says where the file will be.
func (c *Cloud) store(x *capture, p Object) *Error {
	x.properties = clone(p)
	l, _ := x.properties["storageLocation"].(Object)
	id := text(l, "storageId")
	if id == "" {
		return nil // a file on the VM
	}
	account, ok := c.objects[key(id)]
	if !ok {
		return &Error{400, "StorageAccountNotFound", "The storage account " + id + " was not found."}
	}
	if !strings.EqualFold(text(account, "location"), x.region) {
		return &Error{400, "StorageAccountInOtherRegion", "The storage account " + text(account, "name") + " must be in the same region as the target: it is in " + text(account, "location") + ", not in " + x.region + "."}
	}
	path := text(l, "storagePath")
	if path == "" {
		vm := key(text(x.properties, "target"))
		path = "https://" + text(account, "name") + ".blob.core.windows.net/" + DefaultContainer + vm + x.start.Format("/2006/01/02/packetcapture_15_04_05_") +
			fmt.Sprintf("%03d.cap", x.start.Nanosecond()/1e6)
	}
	u, err := url.Parse(path)
	if err != nil || !strings.HasPrefix(u.Host, text(account, "name")+".") {
		return &Error{400, "InvalidStoragePath", "The storage path " + path + " is not in storage account " + text(account, "name") + "."}
	}
	// The account is not repeated in answers.
	answered := Object{"storagePath": path}
	if file := text(l, "filePath"); file != "" {
		answered["filePath"] = file
	}
	x.properties["storageLocation"] = answered
	return nil
}

// ends is when a capture stops by itself, and why.
func (x *capture) ends() (time.Time, string) {
	if x.script.After > 0 {
		return x.start.Add(startup + x.script.After), x.script.Reason
	}
	return x.start.Add(startup + x.limit), "TimeExceeded"
}

func (x *capture) state(now time.Time) (status, reason string, failures []string) {
	end, why := x.ends()
	if !x.stopped.IsZero() && x.stopped.Before(end) {
		end, why = x.stopped, "Manual"
	}
	switch {
	case x.script.Status != "":
		return x.script.Status, "", x.script.Errors
	case now.Before(x.start.Add(startup)) && x.stopped.IsZero():
		return "NotStarted", "", nil
	case now.Before(end):
		return "Running", "", nil
	}
	return "Stopped", why, append(slices.Clone(x.script.Errors), x.failures...)
}

// shown is a session as the service shows it.
func (c *Cloud) shown(x *capture) Object {
	p := clone(x.properties)
	switch {
	case !x.settled && c.Clock.Now().Before(x.start.Add(startup)):
		p["provisioningState"] = "Updating"
	case x.script.Broken != nil:
		p["provisioningState"] = "Failed"
	default:
		p["provisioningState"] = "Succeeded"
	}
	name := x.id[strings.LastIndexByte(x.id, '/')+1:]
	return Object{"id": x.id, "name": name, "type": "Microsoft.Network/networkWatchers/packetCaptures", "etag": `W/"00000000-0000-0000-0000-000000000000"`, "properties": p}
}

// Capture shows one session.
func (c *Cloud) Capture(id string) (Object, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, ok := c.captures[key(id)]
	if !ok {
		return nil, NotFound(id)
	}
	return c.shown(x), nil
}

// Provisioned says that somebody has waited for the end of a session's
// provisioning, and returns how it failed.
func (c *Cloud) Provisioned(id string) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x, ok := c.captures[key(id)]; ok {
		x.settled = true
		return x.script.Broken
	}
	return nil
}

// CapturesOf lists the sessions of a watcher.
func (c *Cloud) CapturesOf(watcher string) ([]Object, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.objects[key(watcher)]; !ok {
		return nil, NotFound(watcher)
	}
	list := []Object{}
	for _, x := range c.captures {
		if strings.HasPrefix(key(x.id), key(watcher)+"/") {
			list = append(list, c.shown(x))
		}
	}
	slices.SortFunc(list, func(a, b Object) int { return strings.Compare(text(a, "name"), text(b, "name")) })
	return list, nil
}

// Status says how far a session is; nil is the silence of the service.
func (c *Cloud) Status(id string) (Object, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, ok := c.captures[key(id)]
	if !ok {
		return nil, NotFound(id)
	}
	if x.script.Mute {
		return nil, nil
	}
	status, reason, failures := x.state(c.Clock.Now())
	o := Object{"id": x.id, "name": x.id[strings.LastIndexByte(x.id, '/')+1:], "packetCaptureStatus": status, "packetCaptureError": append([]string{}, failures...)}
	if status != "NotStarted" {
		o["captureStartTime"] = x.start.Add(startup).Format("2006-01-02T15:04:05.0000000Z")
	}
	if status == "Stopped" && reason != "" {
		o["stopReason"] = reason
	}
	return o, nil
}

// StopCapture ends a session, as a person does.
func (c *Cloud) StopCapture(id string) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, ok := c.captures[key(id)]
	if !ok {
		return NotFound(id)
	}
	if x.stopped.IsZero() {
		x.stopped = c.Clock.Now()
	}
	return nil
}

// DeleteCapture removes a session. Its file stays; when it was still running, the
// agent writes what it has. It reports whether the session was there.
func (c *Cloud) DeleteCapture(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, ok := c.captures[key(id)]
	if !ok {
		return false
	}
	if status, _, _ := x.state(c.Clock.Now()); status == "Running" {
		x.stopped = c.Clock.Now()
		c.ending = append(c.ending, x)
	}
	delete(c.captures, key(id))
	c.note(deleted, x.id)
	return true
}

// Due returns the files that agents have to write by now; each is returned once.
func (c *Cloud) Due() []Upload {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Upload
	sessions := c.ending
	c.ending = nil
	for _, id := range sortedKeys(c.captures) {
		sessions = append(sessions, c.captures[id])
	}
	for _, x := range sessions {
		if u, due := x.upload(c.Clock.Now()); due {
			x.written = true
			list = append(list, u)
		}
	}
	return list
}

func (x *capture) upload(now time.Time) (Upload, bool) {
	end, _ := x.ends()
	if !x.stopped.IsZero() && x.stopped.Before(end) {
		end = x.stopped
	}
	if x.written || x.script.NoBlob || x.script.Broken != nil || now.Before(end.Add(x.script.Late)) || x.path() == "" {
		return Upload{}, false
	}
	u, err := url.Parse(x.path())
	if err != nil {
		return Upload{}, false
	}
	data := x.script.Data
	if x.script.Empty {
		data = []byte{}
	}
	return Upload{ID: x.id, VM: x.vm, Path: u, Data: data, Demand: strings.HasPrefix(u.Path, "/"+DefaultContainer+"/")}, true
}

// Failed says that the agent could not write a file.
func (c *Cloud) Failed(id, code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x, ok := c.captures[key(id)]; ok {
		x.written, x.failures = true, append(x.failures, code)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
