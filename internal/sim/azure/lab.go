package azuresim

import (
	"encoding/json"
	"net/http"
	"time"

	"ghostbot/internal/sim/azure/cloud"
	"ghostbot/internal/sim/azure/fault"
)

// State is everything at one moment, for people and scripts.
type State struct {
	Now       time.Time        `json:"now"`
	Captures  []cloud.Captured `json:"captures"`
	Ledger    []cloud.Event    `json:"ledger"`
	Left      []string         `json:"left"` // created and not deleted
	Resources []cloud.Object   `json:"resources"`
	Problems  []string         `json:"problems"`
}

// State returns the present one.
func (s *Server) State() State {
	return State{Now: s.Cloud.Clock.Now(), Captures: s.Cloud.Captures(), Ledger: s.Cloud.Ledger(), Left: s.Cloud.Left(), Problems: s.Problems(),
		Resources: s.Cloud.Resources(func(cloud.Object) bool { return true })}
}

// lab answers what is asked of the proxy itself, without a tunnel:
//
//	GET  /lab/state            everything
//	GET  /lab/requests         the record
//	POST /lab/advance?by=30s   moves the clock
//	POST /lab/fault            puts a fault in force; its fields as JSON
//	POST /lab/clear            ends all faults
//
// A browser would carry a stranger's request here, so one with an Origin is refused.
func (s *Server) lab(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Origin") != "" || r.URL.Host != "" {
		http.Error(w, "only CONNECT, and /lab/ without an origin", http.StatusForbidden)
		return
	}
	var err error
	switch r.Method + " " + r.URL.Path {
	case "GET /lab/state":
		show(w, s.State())
		return
	case "GET /lab/requests":
		show(w, s.Requests())
		return
	case "POST /lab/advance":
		var d time.Duration
		if d, err = time.ParseDuration(r.URL.Query().Get("by")); err == nil {
			s.Advance(d)
		}
	case "POST /lab/fault":
		var f fault.Fault
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16))
		d.DisallowUnknownFields()
		if err = d.Decode(&f); err == nil {
			err = s.Faults.Add(f)
		}
	case "POST /lab/clear":
		s.Faults.Clear()
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func show(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.Encode(v)
}
