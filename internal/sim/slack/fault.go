package slacksim

import (
	"fmt"
	"slices"
	"time"

	"ghostbot/internal/sim/slack/socket"
	"ghostbot/internal/sim/slack/webapi"
	"ghostbot/internal/sim/slack/workspace"
)

// Fault is something that goes wrong on purpose.
//
//	disconnect   reason warning, refresh_requested or link_disabled: sockets are asked to leave
//	enable       Socket Mode is switched on again after link_disabled
//	drop         sockets are cut without a close frame
//	stall        sockets stay open but deaf and dumb for ms
//	duplicate    the next times envelopes are delivered twice, as attempt 0
//	late         the next times envelopes are delivered ms late
//	lose         the next times envelopes never arrive
//	lose_acks    the next times acknowledgements get lost
//	status, error, ratelimit, slow, lose_reply, lose_late, cut   calls of method go wrong (see webapi.Fault)
//	scopes       the bot's token has scopes and no others; without scopes it has all
//	clear        everything of the above ends
type Fault struct {
	Kind       string   `json:"kind"`
	Reason     string   `json:"reason"`
	Method     string   `json:"method"`
	Status     int      `json:"status"`
	Error      string   `json:"error"`
	RetryAfter int      `json:"retry_after"`
	MS         int      `json:"ms"`
	Times      int      `json:"times"`
	Channel    string   `json:"channel"` // of calls: only those that name it
	Every      int      `json:"every"`   // of the calls of method only each n-th
	Scopes     []string `json:"scopes"`
}

// Inject puts a fault in force, or says what is wrong with it.
func (s *Server) Inject(f Fault) error {
	d := time.Duration(f.MS) * time.Millisecond
	switch f.Kind {
	case "disconnect":
		reasons := []string{"warning", "refresh_requested", "link_disabled"}
		if !slices.Contains(reasons, f.Reason) {
			return fmt.Errorf("disconnect reason %q: have %v", f.Reason, reasons)
		}
		s.hub.Disconnect(f.Reason)
	case "enable":
		s.hub.Enable()
	case "drop":
		s.hub.Drop()
	case "stall":
		s.hub.Stall(d)
	case "duplicate", "late", "lose", "lose_acks":
		h := s.hub.Faults()
		n := max(1, f.Times)
		switch f.Kind {
		case "duplicate":
			h.Duplicate = n
		case "late":
			h.Late, h.Delay = n, d
		case "lose":
			h.Lose = n
		default:
			h.LoseAcks = n
		}
		s.hub.SetFaults(h)
	case "scopes":
		s.api.Grant(f.Scopes)
	case "clear":
		s.ClearFaults()
	default:
		return s.api.Faults.Add(webapi.Fault{Kind: f.Kind, Method: f.Method, Status: f.Status, Error: f.Error,
			RetryAfter: f.RetryAfter, Delay: d, Times: f.Times, Channel: f.Channel, Every: f.Every})
	}
	s.ws.Announce(workspace.Event{Kind: "fault", Text: f.Kind})
	return nil
}

// ClearFaults ends every fault that lasts.
func (s *Server) ClearFaults() {
	s.hub.Enable()
	s.hub.SetFaults(socket.Faults{})
	s.api.Faults.Clear()
}

// EnforceLimits switches refusals by rate limit on or off.
func (s *Server) EnforceLimits(on bool) { s.api.Limits.Enforce(on) }
