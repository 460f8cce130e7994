package stat

import (
	"cmp"
	"math"
	"slices"
)

// Ledger lists what a sender put on a path that loses: when, how much, and what of it was lost.
type Ledger struct {
	entries []entry
}

type entry struct {
	at   int64
	seq  uint32
	size int32 // negative: lost
}

// ledgerRoom bounds the entries of one ledger: 64 KB.
const ledgerRoom = 4096

// Sent notes a segment.
func (l *Ledger) Sent(at int64, seq uint32, size int) {
	if size > 0 && len(l.entries) < ledgerRoom {
		l.entries = append(l.entries, entry{at, seq, int32(min(size, math.MaxInt32))})
	}
}

// Gone notes that a segment of about this size did not come here.
func (l *Ledger) Gone(at int64, size int) {
	if l.Sent(at, 0, size); len(l.entries) > 0 {
		l.lose(len(l.entries) - 1)
	}
}

// Again notes that the segment that covers a sequence number was lost: it is sent again.
func (l *Ledger) Again(seq uint32) {
	for i := len(l.entries) - 1; i >= 0; i-- {
		if e := &l.entries[i]; e.size > 0 && seq-e.seq < uint32(e.size) {
			l.lose(i)
			return
		}
	}
}

func (l *Ledger) lose(i int) { l.entries[i].size = -max(l.entries[i].size, -l.entries[i].size) }

// Overflow reports that losses happened where a queue or a bucket of tokens overflowed, far
// beyond chance: four standard deviations of a mean of so many, and never less than a sender
// that answers loss by sending less makes of loss at random.
func Overflow(ledgers []*Ledger) bool {
	share, n := Full(ledgers)
	return n >= 8 && share-0.5 > max(0.2, 4*deviation/math.Sqrt(float64(n)))
}

// deviation is that of a share that has no preference.
const deviation = 0.29

// Full tells whether what was lost was lost where a queue or a bucket of tokens would have been
// full: the share of the segments that arrived at a lower level than those that were lost met,
// and how many losses that is of. At random it is a half. The rate of the limit is not known:
// that of the transfer, and some on both sides of it, are tried. Ledgers are of one path.
func Full(ledgers []*Ledger) (share float64, losses int) {
	var all []entry
	for _, l := range ledgers {
		all = append(all, l.entries...)
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	if len(all) == 0 || all[len(all)-1].at == all[0].at {
		return 0, 0
	}
	var sum float64
	for _, e := range all {
		sum += float64(max(e.size, 0))
	}
	rate := sum / float64(all[len(all)-1].at-all[0].at)
	for _, f := range [...]float64{0.7, 0.85, 1, 1.1, 1.25, 1.45, 1.7, 2, 2.5, 3.2, 4} {
		s, n := full(all, rate*f)
		share, losses = max(share, s), n
	}
	return share, losses
}

// full is Full for one rate, bytes per ns. A ledger begins with a loss, when the level was as
// high as it gets: how high that is, a first look from the ground tells.
func full(all []entry, rate float64) (share float64, losses int) {
	passed, _ := levels(all, rate, 0)
	if len(passed) == 0 {
		return 0, 0
	}
	passed, met := levels(all, rate, slices.Max(passed))
	slices.Sort(passed)
	for _, v := range met {
		low, _ := slices.BinarySearch(passed, v)
		high, _ := slices.BinarySearch(passed, math.Nextafter(v, math.Inf(1)))
		share += float64(low+high) / 2
	}
	return share / float64(max(len(met), 1)) / float64(len(passed)), len(met)
}

const apart = 3

// levels are those after each segment that passed, and those that the lost ones would have
// made. Those with less than apart segments between them count as one: loss that comes in bursts
// lets some through.
func levels(all []entry, rate, level float64) (passed, met []float64) {
	last, since := all[0].at, apart
	for _, e := range all {
		level, last = max(0, level-rate*float64(e.at-last)), e.at
		switch {
		case e.size >= 0:
			level += float64(e.size)
			passed = append(passed, level)
			since++
			continue
		case since >= apart:
			met = append(met, level-float64(e.size))
		}
		since = 0
	}
	return passed, met
}
