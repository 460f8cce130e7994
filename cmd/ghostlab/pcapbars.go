package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// Bars of the capture benchmark. Ratios hold on any machine; everything they compare ran in the
// same run on the same file. Neither tshark nor tcptrace computes a digest of the file: it is SHA-256
// on one core, and no analysis, however fast, ends before it. Times are therefore compared with the
// digest and without, and where the digest alone is over a bar, the table says that.
const (
	barTshark   = 80   // times tshark's single pass, at least
	barTcptrace = 0.7  // of tcptrace's time, at most
	barCat      = 0.25 // of cat's rate, at least, bulk only
	barMemory   = 150  // MB resident, at most
	barCrowd    = 600  // MB resident with a million connections, at most
)

// bar is one line of the table of bars. Of least and most one is 0: that is none.
type bar struct {
	profile, what      string
	value, least, most float64
	floor              float64 // what the digest alone comes to; 0: it plays no part
	missing            string  // why there is no value
}

func (b bar) holds(v float64) bool {
	return (b.least == 0 || v >= b.least) && (b.most == 0 || v <= b.most)
}

// verdict says whether a bar holds; lost is true where it could and does not.
func (b bar) verdict() (text string, lost bool) {
	switch {
	case b.missing != "":
		return "not measured: " + b.missing, false
	case b.holds(b.value):
		return "held", false
	case b.floor != 0 && !b.holds(b.floor):
		return fmt.Sprintf("missed, out of reach: the digest alone comes to %.2f", b.floor), false
	}
	return "missed", true
}

// bound is the bar in words.
func (b bar) bound() string {
	if b.least > 0 {
		return fmt.Sprintf("%g or more", b.least)
	}
	return fmt.Sprintf("%g or less", b.most)
}

// table prints all bars and says how many are missed that could be held.
func table(out io.Writer, bars []bar) (missed int) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, b := range bars {
		text, lost := b.verdict()
		value := fmt.Sprintf("%.2f", b.value)
		if b.missing != "" {
			value = "-"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", b.profile, b.what, value, b.bound(), text)
		if lost {
			missed++
		}
	}
	_ = w.Flush() // the exit code does not hang on a terminal
	return missed
}

// load is the load average of the last minute, or why it is not known.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if first, _, ok := strings.Cut(string(b), " "); ok && err == nil {
		return first
	}
	return "unknown"
}
