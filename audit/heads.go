package audit

// Heads follows a case entry by entry and tells the head after each one. The
// zero value is ready.
type Heads struct{ tails []tail }

// Add takes the next entry, in the order of N, and returns the head after it.
func (h *Heads) Add(e Entry) Head {
	if h.tails == nil {
		for _, name := range journals(e.SessionID) {
			h.tails = append(h.tails, tail{journal: name})
		}
	}
	for i := range h.tails {
		if h.tails[i].journal == e.Journal {
			h.tails[i].n, h.tails[i].hash = e.N, e.Hash
		}
	}
	return headOf(h.tails)
}
