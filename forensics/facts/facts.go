// Package facts makes the one pass over a capture: it decodes every packet, hands it
// to the rooms that follow its protocol, and keeps what they say. It judges nothing;
// that is done by package finding, from the [Facts] alone.
package facts

import (
	"ghostbot/forensics/app"
	"ghostbot/forensics/capture"
	"ghostbot/forensics/control"
	"ghostbot/forensics/dns"
	"ghostbot/forensics/filter"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/stat"
	"ghostbot/forensics/tcp"
	"ghostbot/forensics/wallclock"
)

// Facts are everything that one pass over a capture counted.
type Facts struct {
	Name       string // of the file, without its directory
	Capture    *capture.Info
	Packets    uint64           // that were analysed: all, or those the filter let through
	Wire       uint64           // their bytes on the wire
	Captured   uint64           // their captured bytes
	First      int64            // smallest time stamp, ns
	Last       int64            // largest
	Stamped    [2]int64         // First and Last as the packets have them, with the steps of the clock
	Steps      []wallclock.Step // of the clock
	Unstepped  bool             // the steps were taken out of all times but those of Stamped
	Backwards  uint64           // packets whose time stamp is before their predecessor's
	Kinds      [8]uint64
	Layers     [32]uint64 // by bit of frame.Layers
	CutFrames  uint64     // captured shorter than they were
	LargestIP  int        // on the wire
	Fragments  frame.Datagrams
	Undecoded  uint64 // packets of which not even the link layer is known
	TCP        *tcp.Tracker
	DNS        *dns.Log
	OtherNames uint64 // mDNS and LLMNR messages
	Control    *control.Log
	App        *app.Log
	Series     stat.Series[Bucket]
	Summable   uint64              // TCP segments and UDP datagrams
	Sums       map[flow.Addr]*Sums // by sender
}

// Bucket is one step of the series over time.
type Bucket struct {
	Packets, Retransmissions, Resets uint32
	Bytes                            uint64
	RTTMin, RTTMax, RTTSum           int64
	RTTs                             uint32
}

// Merge joins two neighbours.
func (b Bucket) Merge(o Bucket) Bucket {
	if b.RTTs == 0 || o.RTTs > 0 && o.RTTMin < b.RTTMin {
		b.RTTMin = o.RTTMin
	}
	b.RTTMax = max(b.RTTMax, o.RTTMax)
	b.Packets += o.Packets
	b.Retransmissions += o.Retransmissions
	b.Resets += o.Resets
	b.Bytes += o.Bytes
	b.RTTSum += o.RTTSum
	b.RTTs += o.RTTs
	return b
}

// Options say how the pass is made.
type Options struct {
	Frames   bool // list the frames of every TCP verdict
	Filter   *filter.Filter
	Progress func(read, size int64) // called now and then
	Each     func(*Packet)          // called for every analysed packet
	TCP      tcp.Options
	Steps    []wallclock.Step // of the clock, to take out of the times
}

// Packet is what Each sees of one packet; everything in it is good until the next
// one.
type Packet struct {
	Frame uint32
	Raw   *capture.Packet
	View  *frame.View
	TCP   *tcp.Event // nil unless it is a TCP segment
}
