package webapi

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Kinds of faults of API calls.
const (
	FaultStatus    = "status"     // answer with an HTTP status
	FaultError     = "error"      // answer ok:false with an error
	FaultRateLimit = "ratelimit"  // answer 429 with Retry-After
	FaultSlow      = "slow"       // answer late
	FaultLoseReply = "lose_reply" // do the work, then cut the connection instead of answering
	FaultLoseLate  = "lose_late"  // cut the connection at once, and do the work later, as a queue behind the API does
	FaultCut       = "cut"        // cut the connection without doing the work
)

// Fault makes calls of a method go wrong.
type Fault struct {
	Kind       string        `json:"kind"`
	Method     string        `json:"method"` // "*" or empty for every method
	Status     int           `json:"status,omitempty"`
	Error      string        `json:"error,omitempty"`
	RetryAfter int           `json:"retry_after,omitempty"` // seconds
	Delay      time.Duration `json:"-"`
	Times      int           `json:"times,omitempty"`   // 0: until cleared
	Channel    string        `json:"channel,omitempty"` // only calls that name it; "": all
	Every      int           `json:"every,omitempty"`   // of the calls that match only each n-th; 0: each
	calls      int
}

// FaultList is the set of faults in force; the first that matches a call applies.
type FaultList struct {
	mu   sync.Mutex
	list []Fault
}

// Add puts a fault in force, or says what is wrong with it.
func (l *FaultList) Add(f Fault) error {
	kinds := []string{FaultStatus, FaultError, FaultRateLimit, FaultSlow, FaultLoseReply, FaultLoseLate, FaultCut}
	switch {
	case !slices.Contains(kinds, f.Kind):
		return fmt.Errorf("fault kind %q: have %v", f.Kind, kinds)
	case f.Kind == FaultStatus && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("fault status %d: want 400 to 599", f.Status)
	case f.Kind == FaultError && f.Error == "":
		return fmt.Errorf("fault error: want an error string")
	}
	if f.Method == "" {
		f.Method = "*"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, f)
	return nil
}

// Clear ends all faults.
func (l *FaultList) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = nil
}

// List shows the faults in force.
func (l *FaultList) List() []Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Fault{}, l.list...)
}

func (l *FaultList) take(method, channel string) (Fault, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.list {
		f := l.list[i]
		if f.Method != "*" && f.Method != method || f.Channel != "" && f.Channel != channel {
			continue
		}
		if l.list[i].calls++; f.Every > 1 && l.list[i].calls%f.Every != 0 {
			continue
		}
		if f.Times == 1 {
			l.list = slices.Delete(l.list, i, i+1)
		} else if f.Times > 1 {
			l.list[i].Times--
		}
		return f, true
	}
	return Fault{}, false
}

// before applies what happens ahead of the method; true when the call is finished with.
func (f Fault) before(w http.ResponseWriter, r *http.Request, rec *Call) bool {
	switch f.Kind {
	case FaultStatus:
		rec.Status = f.Status
		http.Error(w, http.StatusText(f.Status), f.Status)
	case FaultError:
		rec.Status, rec.Error = http.StatusOK, f.Error
		WriteJSON(w, http.StatusOK, reply{"ok": false, "error": f.Error})
	case FaultRateLimit:
		tooMany(w, time.Duration(f.RetryAfter)*time.Second, rec)
	case FaultCut:
		cut(w)
	case FaultSlow:
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			return true
		}
		return false
	default:
		return false
	}
	return true
}

// after applies what happens once the work is done.
func (f Fault) after(w http.ResponseWriter) bool {
	if f.Kind != FaultLoseReply {
		return false
	}
	cut(w)
	return true
}

// cut closes the connection without an answer.
func cut(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if c, _, err := h.Hijack(); err == nil {
			c.Close()
			return
		}
	}
	panic(http.ErrAbortHandler)
}
