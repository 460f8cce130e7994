// Package facts makes the one pass over a capture: it decodes every packet, hands it
// to the rooms that follow its protocol, and keeps what they say. It judges nothing;
// that is done by package finding, from the [Facts] alone.
package facts

import (
	"context"
	"io"
	"math/bits"

	"ghostbot/forensics/app"
	"ghostbot/forensics/capture"
	"ghostbot/forensics/control"
	"ghostbot/forensics/dns"
	"ghostbot/forensics/filter"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/stat"
	"ghostbot/forensics/tcp"
)

// Facts are everything that one pass over a capture counted.
type Facts struct {
	Name       string // of the file, without its directory
	Capture    *capture.Info
	Packets    uint64 // that were analysed: all, or those the filter let through
	Wire       uint64 // their bytes on the wire
	Captured   uint64 // their captured bytes
	First      int64  // smallest time stamp, ns
	Last       int64  // largest
	Backwards  uint64 // packets whose time stamp is before their predecessor's
	Kinds      [8]uint64
	Layers     [32]uint64 // by bit of frame.Layers
	CutFrames  uint64     // captured shorter than they were
	LargestIP  int        // on the wire
	TCP        *tcp.Tracker
	DNS        *dns.Log
	OtherNames uint64 // mDNS and LLMNR messages
	Control    *control.Log
	App        *app.Log
	Series     stat.Series[Bucket]
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
}

// Packet is what Each sees of one packet; everything in it is good until the next
// one.
type Packet struct {
	Frame uint32
	Raw   *capture.Packet
	View  *frame.View
	TCP   *tcp.Event // nil unless it is a TCP segment
}

// every is how often the context and the progress are looked at.
const every = 1 << 14

type pass struct {
	f      *Facts
	o      Options
	d      frame.Decoder
	v      frame.View
	last   int64
	bucket *Bucket
	from   int64 // of bucket
	width  int64
	n      uint32
}

// Collect reads a capture to its end.
func Collect(ctx context.Context, file *capture.File, o Options) (*Facts, error) {
	o.TCP.Frames = o.Frames
	f := &Facts{TCP: tcp.New(o.TCP), DNS: dns.New(), Control: control.New(), App: app.New()}
	p := pass{f: f, o: o}
	var pkt capture.Packet
	for {
		err := file.Next(&pkt)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		p.n++
		if p.n%every == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if o.Progress != nil {
				o.Progress(file.Progress())
			}
		}
		p.packet(&pkt)
	}
	f.DNS.Finish()
	f.Control.Finish()
	f.Capture = file.Finish()
	return f, nil
}

func (p *pass) packet(pkt *capture.Packet) {
	v := &p.v
	p.d.Decode(pkt, v)
	if p.o.Filter != nil && !p.o.Filter.Match(v) {
		return
	}
	f := p.f
	p.clock(pkt.Time)
	f.Packets++
	f.Wire += uint64(pkt.Wire)
	f.Captured += uint64(len(pkt.Data))
	if uint32(len(pkt.Data)) < pkt.Wire {
		f.CutFrames++
	}
	f.Kinds[v.Kind]++
	for m := v.Layers; m != 0; m &= m - 1 {
		f.Layers[bit(m)]++
	}
	f.LargestIP = max(f.LargestIP, v.IPLen)
	p.bucket.Packets++
	p.bucket.Bytes += uint64(pkt.Wire)
	e := p.dispatch(v, pkt.Time)
	if p.o.Each != nil {
		p.o.Each(&Packet{p.n, pkt, v, e})
	}
}

// clock finds the bucket of a moment.
func (p *pass) clock(t int64) {
	f := p.f
	if f.Packets == 0 {
		f.First, f.Last = t, t
	} else if t < p.last {
		f.Backwards++
		f.First = min(f.First, t)
	}
	f.Last = max(f.Last, t)
	p.last = t
	if p.bucket == nil || t < p.from || t >= p.from+p.width {
		p.bucket = f.Series.At(t)
		p.width = f.Series.Width
		p.from = max(t, f.Series.Start)
		p.from -= (p.from - f.Series.Start) % p.width
	}
}

func (p *pass) dispatch(v *frame.View, now int64) *tcp.Event {
	f := p.f
	switch v.Kind {
	case frame.TCP:
		return p.tcp(v, now)
	case frame.UDP:
		p.udp(v, now)
	case frame.ICMP:
		if q := f.Control.ICMP(v, &p.d, p.n, now); q != nil && q.Kind == frame.TCP {
			f.TCP.Quoted(q, p.n, now, v.L4[0])
		}
	case frame.ICMPv6:
		if q := f.Control.ICMPv6(v, &p.d, p.n, now); q != nil && q.Kind == frame.TCP {
			f.TCP.Quoted(q, p.n, now, v.L4[0])
		}
	case frame.ARP:
		f.Control.ARP4(v, p.n, now)
	}
	return nil
}

func (p *pass) tcp(v *frame.View, now int64) *tcp.Event {
	e := p.f.TCP.Add(v, p.n, now)
	if !e.Analysed {
		return e
	}
	b := p.bucket
	if e.Verdict.Has(tcp.Retransmission) {
		b.Retransmissions++
	}
	if e.Verdict.Has(tcp.Reset) {
		b.Resets++
	}
	if e.RTT > 0 {
		if b.RTTs == 0 || e.RTT < b.RTTMin {
			b.RTTMin = e.RTT
		}
		b.RTTMax = max(b.RTTMax, e.RTT)
		b.RTTSum += e.RTT
		b.RTTs++
	}
	if len(e.Segment.Payload) == 0 {
		return e
	}
	if v.SPort == 53 || v.DPort == 53 {
		if !e.Verdict.Has(tcp.Retransmission) && !e.Verdict.Has(tcp.KeepAlive) && !e.Verdict.Has(tcp.OutOfOrder) {
			p.f.DNS.TCP(e.Key, e.Dir, e.Segment.Payload, p.n, now)
		}
		return e
	}
	p.f.App.TCP(e)
	return e
}

func (p *pass) udp(v *frame.View, now int64) {
	if v.Partial {
		return
	}
	f := p.f
	switch {
	case v.SPort == 53 || v.DPort == 53:
		f.DNS.UDP(v.Src, v.Dst, v.SPort, v.DPort, v.Payload(), p.n, now)
		return // counted by server, not by conversation: every query has its own port
	case v.DPort == 5353 || v.DPort == 5355 || v.SPort == 5353 || v.SPort == 5355:
		f.OtherNames++
	case v.SPort == 67 || v.SPort == 68 || v.DPort == 67 || v.DPort == 68:
		f.Control.DHCP4(v, p.n)
	}
	f.App.Datagram(v, p.n, now)
}

func bit(m frame.Layers) int { return bits.TrailingZeros32(uint32(m)) }
