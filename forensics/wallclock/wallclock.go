// Package wallclock notices that the clock of a capture was set while it ran, by NTP or by
// hand. Time stamps then jump though no time went by, and what was under way seems to have
// taken as long, or less than nothing.
//
// A silence and a clock that is set forward look the same, but for the TCP time stamps of the
// hosts, which count on regardless: after a silence they have counted as far as the clock of
// the capture. Both ends of a conversation must say so, and go on to say so. A path that holds
// packets delivers old time stamps too, but of one side only, and catches up. A clock that is
// set back needs no such witness: when there are none, packets that stay behind what came
// before them will do.
package wallclock

import (
	"cmp"
	"slices"
)

const (
	// Least is the smallest step that is told, ns: NTP slews a clock up to 128 ms.
	Least   = 100e6
	faces   = 8
	hosts   = 256
	follow  = 200 // segments after a jump whose time stamps are looked at
	stay    = 8   // packets that stay behind the clock before
	short   = 3   // the same, when the step is a long one
	long    = 1e9
	history = 50e6 // ns after which the rate of a host's time stamps is known
	ticks   = 20   // of the same
	maxStep = 100
	all     = 1 << 14 // frames of which every time stamp is noted
	some    = 7       // and after them, every so many
)

// Step is a jump of the clock.
type Step struct {
	Frame uint32 // the first packet with the new time
	Face  uint16 // the interface
	By    int64  // ns; negative: back
}

// stamp is what is known of the time stamps of one direction of a conversation.
type stamp struct {
	id        uint32
	ts, begin uint32
	at, since int64
	side      uint8
	set       bool
}

// Watch looks at the times of packets. The zero Watch is ready.
type Watch struct {
	last   [faces]int64
	now    []stamp // by id; nil until the first
	before []stamp // as it was before the jump
	open   bool    // a jump is looked at
	jump   jump
	steps  []Step
}

// jump is one that may be a step.
type jump struct {
	Step
	last    int64 // time of the packet before it
	packets int   // since, of its interface
	back    bool  // later packets went on from before it
	shifts  []int64
	sides   uint8
}

// Packet notes the time of a packet.
func (w *Watch) Packet(t int64, face uint16, no uint32) {
	l := &w.last[face%faces]
	if d := t - *l; w.open || uint64(d+Least) > 2*Least {
		w.look(t, d, face, no)
	}
	*l = t
}

// look handles a packet while a jump is looked at, or one that jumps itself.
func (w *Watch) look(t, d int64, face uint16, no uint32) {
	j, jumps := &w.jump, uint64(d+Least) > 2*Least
	if w.open && j.Face == face {
		j.packets++
		j.back = j.back || j.By < 0 && t >= j.last && j.packets < stay
	}
	if !jumps || w.last[face%faces] == 0 || face >= faces {
		return
	}
	if w.open && !w.settled() {
		return
	}
	w.Close()
	if w.now == nil && d > 0 { // nobody to ask
		return
	}
	w.open, *j = true, jump{Step: Step{no, face, d}, last: w.last[face], shifts: j.shifts[:0]}
	w.before = append(w.before[:0], w.now...)
}

// settled reports that enough is known of the jump that is looked at.
func (w *Watch) settled() bool {
	j := &w.jump
	switch {
	case j.back || j.packets >= follow:
		return true
	case len(j.shifts) == 0:
		return j.By > 0
	}
	return j.sides == 3 || len(j.shifts) >= stay
}

// Wants reports whether the time stamp of this frame is of use: of a large capture some will do, until
// the clock jumps. Both sides of a conversation take their turn, when they speak in turns.
func (w *Watch) Wants(no uint32) bool { return w.open || no < all || no%some == 0 }

// Stamp notes the time stamp of a segment. id names the conversation, side the direction.
func (w *Watch) Stamp(id uint32, side uint8, ts uint32, t int64) {
	if w.now == nil {
		w.now = make([]stamp, hosts)
	}
	id = id<<1 | uint32(side&1)
	s := &w.now[id%hosts]
	if w.open {
		w.compare(id, ts, t)
	}
	if s.id != id || !s.set {
		*s = stamp{id: id, begin: ts, since: t, side: side & 1, set: true}
	}
	s.ts, s.at = ts, t
}

// rates are those with which time stamps count, Hz; the usual one first.
var rates = [...]int64{1000, 250, 100, 10, 2}

// passing reports that n ticks at one of the rates are about this time.
func passing(n, passed int64) bool {
	for _, r := range rates {
		if off := n*1e9/r - passed; max(off, -off) < max(passed, -passed)/10+20e6+1e9/r {
			return true
		}
	}
	return false
}

// compare says how far the capture's clock went farther than that of a host.
func (w *Watch) compare(id, ts uint32, t int64) {
	j := &w.jump
	if len(w.before) == 0 || len(j.shifts) >= follow {
		return
	}
	s := &w.before[id%hosts]
	n := int64(int32(ts - s.ts))
	if !s.set || s.id != id {
		return
	}
	took, passed := n*1e9/rates[0], t-s.at
	if counted, span := int64(int32(s.ts-s.begin)), s.at-s.since; counted >= ticks && span >= history {
		took = int64(float64(n) / float64(counted) * float64(span))
	} else if passing(n, passed) {
		took = passed
	}
	j.shifts = append(j.shifts, passed-took)
	j.sides |= 1 << s.side
}

// Close ends what is looked at.
func (w *Watch) Close() {
	if !w.open {
		return
	}
	w.open = false
	j := &w.jump
	by, ok := j.judge()
	if !ok || len(w.steps) >= maxStep {
		return
	}
	j.By = by
	w.steps = append(w.steps, j.Step)
	clear(w.now) // they are older than the step, or as good as new
}

// judge says how far the clock was set.
func (j *jump) judge() (int64, bool) {
	if len(j.shifts) == 0 {
		return j.By, j.By < 0 && !j.back && (j.packets >= stay || j.By < -long && j.packets >= short)
	}
	low, high := slices.Min(j.shifts), slices.Max(j.shifts)
	slices.Sort(j.shifts)
	by := j.shifts[len(j.shifts)/2]
	if j.By < 0 {
		low, high = -high, -low
	}
	if low < Least || high-low > max(20e6, low/5) || j.By > 0 && j.sides != 3 {
		return 0, false
	}
	if j.By > 0 {
		by = min(by, j.By)
	}
	return by, true
}

// Steps are what was found, by frames.
func (w *Watch) Steps() []Step {
	w.Close()
	slices.SortStableFunc(w.steps, func(a, b Step) int { return cmp.Compare(a.Frame, b.Frame) })
	return w.steps
}

// Course takes steps out of the times of packets.
type Course struct {
	steps []Step
	by    [faces]int64
}

// NewCourse makes a course of steps in the order of their frames.
func NewCourse(steps []Step) *Course { return &Course{steps: steps} }

// Time is the time of a packet as if the clock had not been set. Frames must not go back.
func (c *Course) Time(t int64, face uint16, no uint32) int64 {
	for len(c.steps) > 0 && c.steps[0].Frame <= no {
		c.by[c.steps[0].Face%faces] += c.steps[0].By
		c.steps = c.steps[1:]
	}
	return t - c.by[face%faces]
}
