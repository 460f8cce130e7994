// Package prefetch asks for lines of memory before they are needed, so that the processor
// brings them into its cache while it does something else. Reading them to the same end would
// hold up what comes after it. It changes nothing but the time that a later access takes: an
// address may belong to nobody any more, and where the processor has no such instruction, or it is
// not known here, nothing is done.
package prefetch

import "unsafe"

// Line is the size of a line of the cache, as nearly all processors have it.
const Line = 64

// List collects addresses that are asked for together. The zero value is empty.
type List struct {
	n  int
	at [256]uintptr
}

// Add puts lines into the list, from the one that holds the address on. What does not fit is
// left out.
func (l *List) Add(p unsafe.Pointer, lines int) {
	for at := uintptr(p); lines > 0 && l.n < len(l.at); lines-- {
		l.at[l.n] = at
		l.n++
		at += Line
	}
}

// Ask asks for all of the list, and empties it.
func (l *List) Ask() {
	ask(&l.at, l.n)
	l.n = 0
}

// Own asks for all of the list to be written to, and empties it: what another core has
// written or read there is fetched from it, and it has to give it up.
func (l *List) Own() {
	own(&l.at, l.n)
	l.n = 0
}
