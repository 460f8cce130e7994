package pcapgen

const (
	transfers   = 8
	fullSegment = 1448
	spacing     = 12 // microseconds between segments: about 1 Gbit/s
	lossGap     = 12 // segments after a lost one before it is sent again
)

// transfer is one connection of bulk, as seen at the receiver: next is what the sender sends next,
// want what the receiver waits for, other the receiver's own sequence number.
type transfer struct {
	from, to          endpoint
	next, want, other uint32
	owed              int // segments in order since the last ACK
	after             int // segments since a loss; -1 without one
}

// bulk writes transfers that take turns in bursts.
func bulk(c *capture, size int64) {
	conns := make([]*transfer, transfers)
	for i := range conns {
		conns[i] = c.open(endpoint{0x0a010001 + uint32(i), uint16(40000 + i)}, endpoint{0x0a020001, 5201})
	}
	for !c.full(size) {
		t := conns[c.int(transfers)]
		for n := 2 + c.int(15); n > 0; n-- {
			c.step(t)
		}
	}
	for _, t := range conns {
		c.finish(t)
	}
}

// open writes a handshake of 200 microseconds.
func (c *capture) open(from, to endpoint) *transfer {
	t := &transfer{from: from, to: to, next: uint32(c.next()), other: uint32(c.next()), after: -1}
	c.stats.Connections++
	c.tcp(segment{from: from, to: to, seq: t.next, flags: syn})
	t.next++
	t.want = t.next
	c.now += 100
	c.tcp(segment{from: to, to: from, seq: t.other, ack: t.next, flags: syn | ack})
	t.other++
	c.now += 100
	c.tcp(segment{from: from, to: to, seq: t.next, ack: t.other, flags: ack})
	c.now += spacing
	return t
}

// step sends the next segment, or loses it, or lets the one after it overtake it.
func (c *capture) step(t *transfer) {
	lost, late := c.chance(0.001), c.chance(0.0005)
	switch {
	case t.after >= 0:
		c.data(t, t.next)
		t.next += fullSegment
		c.duplicate(t)
		if t.after++; t.after == lossGap {
			c.repair(t)
		}
	case lost:
		c.acknowledge(t) // so that each later segment brings a duplicate
		t.next += fullSegment
		t.after = 0
		c.stats.Lost++
	case late:
		c.acknowledge(t)
		c.data(t, t.next+fullSegment)
		t.next += 2 * fullSegment
		c.duplicate(t)
		c.stats.Late++
		c.repair(t)
	default:
		c.data(t, t.next)
		t.next += fullSegment
		t.want = t.next
		if t.owed++; t.owed == 2 {
			c.acknowledge(t)
		}
	}
}

func (c *capture) data(t *transfer, seq uint32) {
	c.tcp(segment{from: t.from, to: t.to, seq: seq, ack: t.other, flags: ack, n: fullSegment})
	c.now += spacing
}

// repair sends the missing segment; the ACK after it covers everything.
func (c *capture) repair(t *transfer) {
	c.data(t, t.want)
	t.want, t.after, t.owed = t.next, -1, 1
	c.acknowledge(t)
}

// acknowledge sends an ACK when one is owed.
func (c *capture) acknowledge(t *transfer) {
	if t.owed == 0 {
		return
	}
	t.owed = 0
	c.tcp(segment{from: t.to, to: t.from, seq: t.other, ack: t.want, flags: ack})
}

func (c *capture) duplicate(t *transfer) {
	c.stats.DuplicateACKs++
	c.tcp(segment{from: t.to, to: t.from, seq: t.other, ack: t.want, flags: ack, left: t.want + fullSegment, right: t.next})
}

// finish repairs what is missing and ends the connection from both sides.
func (c *capture) finish(t *transfer) {
	if t.after > 0 {
		c.repair(t)
	} else if t.after == 0 { // lost as the very last: nobody has noticed, so it was never sent
		t.next -= fullSegment
		c.stats.Lost--
	}
	c.acknowledge(t)
	c.now += spacing
	c.tcp(segment{from: t.from, to: t.to, seq: t.next, ack: t.other, flags: fin | ack})
	c.now += 100
	c.tcp(segment{from: t.to, to: t.from, seq: t.other, ack: t.next + 1, flags: fin | ack})
	c.now += 100
	c.tcp(segment{from: t.from, to: t.to, seq: t.next + 1, ack: t.other + 1, flags: ack})
	c.now += spacing
}
