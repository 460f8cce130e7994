// Package bar shows the progress of long work on a terminal, and nothing elsewhere.
package bar

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bar is a progress bar, or nothing when it is not on a terminal.
type Bar struct {
	w     io.Writer
	name  string
	start time.Time
	last  time.Time
	shown bool
}

// New makes a bar for a name that is safe to print.
func New(w io.Writer, name string) *Bar {
	f, ok := w.(*os.File)
	if !ok {
		return &Bar{}
	}
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
		return &Bar{}
	}
	return &Bar{w: f, name: name, start: time.Now()}
}

const (
	barDelay = 300 * time.Millisecond // small files are done before
	barStep  = 100 * time.Millisecond
	barWidth = 30
)

// Show draws the bar, at most every tenth of a second.
func (b *Bar) Show(read, size int64) {
	now := time.Now()
	if b.w == nil || size <= 0 || now.Sub(b.start) < barDelay || now.Sub(b.last) < barStep {
		return
	}
	b.last, b.shown = now, true
	part := min(float64(read)/float64(size), 1)
	n := int(part * barWidth)
	rate := float64(read) / 1e6 / now.Sub(b.start).Seconds()
	fmt.Fprintf(b.w, "\r%s [%s%s] %3.0f %%  %.0f MB/s ", b.name, strings.Repeat("#", n), strings.Repeat(".", barWidth-n), 100*part, rate)
}

// Clear takes the bar off the line.
func (b *Bar) Clear() {
	if b.shown {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}
