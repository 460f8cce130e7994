package hypothesis

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// charged lists the hypotheses that a result for hyp concerns: the one that the
// call names, if it is active, else every active one.
func (b *Board) charged(hyp string) []string {
	if slices.Contains(b.active, hyp) {
		return []string{hyp}
	}
	return slices.Clone(b.active)
}

// count adds n denials to both counts of id.
func (b *Board) count(id string, n int) {
	if b.denials == nil {
		b.denials, b.consecutive = map[string]int{}, map[string]int{}
	}
	b.denials[id] += n
	b.consecutive[id] += n
}

// Deny charges one denial of a command for hyp, at time at, and returns what the
// design tells a brain about it.
func (b *Board) Deny(hyp string, ev DenialEvent, at time.Time) map[string]any {
	ids := b.charged(hyp)
	if len(ids) == 0 {
		ids = []string{Nobody}
	}
	meta := map[string]any{}
	for _, id := range ids {
		b.count(id, 1)
		if h := b.find(id); h != nil {
			h.denied(b.denials[id], ev, at)
			if h.State == Unverifiable {
				b.deactivate(id)
			}
		}
		tell(meta, id, b.denials[id])
	}
	return meta
}

// Explain adds the words of whoever refused a command that was charged before they
// came.
func (b *Board) Explain(auditID, reason string) {
	for i := range b.all {
		for k := range b.all[i].DenialEvents {
			if ev := &b.all[i].DenialEvents[k]; ev.AuditID == auditID && ev.Reason == "" {
				ev.Reason = reason
			}
		}
	}
}

func (h *Hypothesis) denied(n int, ev DenialEvent, at time.Time) {
	h.DenialCount = n
	h.DenialEvents = append(h.DenialEvents, ev)
	switch {
	case n >= MaxDenials:
		h.State, h.ResolvedAt, h.ResolvingAuditID = Unverifiable, &at, ev.AuditID
	case h.State == Contradicted: // the conflict is still to be resolved
	case n == 2:
		h.State = DeniedTwice
	default:
		h.State = DeniedOnce
	}
}

// Success is a command for hyp that ran: consecutive counts begin anew and a
// denied hypothesis is simply active again. Cumulative counts stay.
func (b *Board) Success(hyp string) {
	for _, id := range b.charged(hyp) {
		b.consecutive[id] = 0
		if h := b.find(id); h != nil && (h.State == DeniedOnce || h.State == DeniedTwice) {
			h.State = Active
		}
	}
}

// tell adds to meta what the design says after the nth denial of id.
func tell(meta map[string]any, id string, n int) {
	if old, ok := meta["denial_count"].(int); !ok || n > old {
		meta["denial_count"] = n
	}
	name := "hypothesis " + id
	if id == Nobody {
		name = "no hypothesis"
	}
	switch {
	case n >= MaxDenials:
		meta["denial_threshold_reached"] = true
		sentence(meta, "instruction", fmt.Sprintf("%s is now UNVERIFIABLE. Move to next hypothesis or call complete_investigation if active_hypothesis_ids is empty.",
			strings.ToUpper(name[:1])+name[1:]))
	case n == 2:
		meta["approaching_threshold"] = true
		sentence(meta, "warning", fmt.Sprintf("Second denial for %s. One more denial marks it UNVERIFIABLE.", name))
	default:
		meta["pivot_instruction"] = "Command denied. Consider an alternative diagnostic approach."
	}
}

// sentence appends to a text of meta.
func sentence(meta map[string]any, key, text string) {
	if old, ok := meta[key].(string); ok {
		text = old + " " + text
	}
	meta[key] = text
}
