// Package prefetch asks for lines of memory before they are needed, so that the processor
// brings them into its cache while it does something else. It changes nothing but the time
// that the later access takes.
package prefetch

import "unsafe"

// List collects addresses that will be asked for together.
type List struct {
	n  int
	at [256]uintptr
}

// Add puts n lines in the list, from the one that holds the address on.
func (l *List) Add(p unsafe.Pointer) {
	l.at[l.n&255] = uintptr(p)
	l.n++
}

// Ask asks for all, and empties the list.
func (l *List) Ask() {
	lines(&l.at[0], min(l.n, 256))
	l.n = 0
}
