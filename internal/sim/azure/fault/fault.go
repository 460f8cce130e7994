// Package fault lets requests to a local Azure go wrong on purpose: how, which, and
// how often.
package fault

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Fault is something that goes wrong. Host, Method and Path say for which requests:
// a path is found when it contains Path, without case. Times is how often; 0 is for
// ever.
//
// Number refuses a request for a token with an AADSTS number. Drop ends the
// connection without an answer. Otherwise Status and Code are the answer; a Status
// of 0 with a Delay only makes it slow.
type Fault struct {
	Host    string            `json:"host"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Times   int               `json:"times"`
	Status  int               `json:"status"`
	Code    string            `json:"code"`
	Message string            `json:"message"`
	Header  map[string]string `json:"header"`
	Number  int               `json:"number"`
	Drop    bool              `json:"drop"`
	MS      int               `json:"ms"`
}

// Delay is how long the answer takes.
func (f Fault) Delay() time.Duration { return time.Duration(f.MS) * time.Millisecond }

// List holds the faults in force. The zero value has none; it is safe for
// concurrent use.
type List struct {
	mu     sync.Mutex
	faults []*Fault
}

// Add puts a fault in force, after those that are.
func (l *List) Add(f Fault) error {
	if f.Status == 0 && f.Number == 0 && !f.Drop && f.MS == 0 {
		return fmt.Errorf("fault: nothing would go wrong: have status, number, drop, ms")
	}
	if f.Status != 0 && (f.Status < 200 || f.Status > 599) {
		return fmt.Errorf("fault: %d is no status", f.Status)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, &f)
	return nil
}

// Clear ends all of them.
func (l *List) Clear() { l.mu.Lock(); defer l.mu.Unlock(); l.faults = nil }

// For returns the fault that a request meets, and counts it.
func (l *List) For(host, method, path string) (Fault, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, f := range l.faults {
		if f.Host != "" && !strings.EqualFold(f.Host, host) || f.Method != "" && !strings.EqualFold(f.Method, method) ||
			!strings.Contains(strings.ToLower(path), strings.ToLower(f.Path)) {
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				l.faults = append(l.faults[:i:i], l.faults[i+1:]...)
			}
		}
		return *f, true
	}
	return Fault{}, false
}

// Text is what the answer says: the message, or the meaning of the status.
func (f Fault) Text() string {
	if f.Message != "" {
		return f.Message
	}
	return http.StatusText(f.Status)
}
