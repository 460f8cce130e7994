package access

import (
	"context"
	"strings"
	"time"
)

// Whoever is refused is told who can help. Their look-ups are few and end soon: nobody
// waits longer for a refusal than for a decision.
const (
	helpMost   = 10
	helpWithin = 500 * time.Millisecond
	// helpRoom is how much time is left at least when a look-up begins: it may last that long,
	// and the refusal is to be journaled and told.
	helpRoom = time.Second
)

// Any reports whether somebody may decide about something somewhere.
func (a Rules) Any() bool { return len(a.Users())+len(a.Groups()) > 0 }

// help names who can decide: only those of whom it is known now. except is the
// requester, who cannot where nobody approves their own.
func (a Rules) help(ctx context.Context, f Directory, who []string, except string) string {
	if a.Self {
		except = ""
	}
	h := helpers{f: f, except: except, end: time.Now().Add(helpWithin)}
	if last, ok := ctx.Deadline(); ok && last.Add(-helpRoom).Before(h.end) {
		h.end = last.Add(-helpRoom)
	}
	var can []string
	for _, id := range who {
		if h.can(ctx, id) {
			can = append(can, id)
		}
	}
	switch {
	case len(can) > 0:
		return "Approvers: " + strings.Join(Mentions(can), ", ") + "."
	case h.unsure:
		return "Who else can was not looked up in time. Ask whoever runs this bot."
	}
	return "Nobody else can either: of those who are named as approvers none may decide. Whoever runs this bot can change that."
}

// helpers looks for those who can help.
type helpers struct {
	f      Directory
	except string
	end    time.Time
	n      int
	unsure bool // somebody was not looked up
}

func (h *helpers) can(ctx context.Context, id string) bool {
	if id == h.except {
		return false
	}
	if strings.HasPrefix(id, "S") {
		return h.group(ctx, id)
	}
	if !h.more() {
		return false
	}
	p, err := h.f.Person(ctx, id, "")
	h.unsure = h.unsure || err != nil
	return err == nil && p.Active && p.Human && p.Member
}

// group reports whether one of its members can.
func (h *helpers) group(ctx context.Context, id string) bool {
	if !h.more() {
		return false
	}
	members, err := h.f.Members(ctx, id)
	h.unsure = h.unsure || err != nil
	for _, m := range members {
		if !strings.HasPrefix(m, "S") && h.can(ctx, m) {
			return true
		}
	}
	return false
}

// more reports whether one more look-up is made.
func (h *helpers) more() bool {
	if h.n++; h.n <= helpMost && time.Now().Before(h.end) {
		return true
	}
	h.unsure = true
	return false
}
