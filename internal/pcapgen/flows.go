package pcapgen

const (
	sessionEvery = 400 // microseconds between new sessions
	backends     = 800
	requestLen   = 517
	rto          = 220_000
	synRetry     = 1_000_000
	maxRounds    = 6
)

// What a session comes to.
const (
	served = iota
	unresolved
	noSuchName
	unanswered
	refused
)

// round is a request with its response.
type round struct {
	tail  int   // bytes of the response's third segment
	again bool  // the request is sent twice
	pause int64 // before the next one
}

// session is everything that will happen between a client and a server, drawn when it begins, so
// that its size is known then. step is the next thing to do.
type session struct {
	client, server endpoint
	resolve        uint16 // the client's port for DNS
	name           int
	rtt            int64
	outcome        int
	rounds         [maxRounds]round
	n              int
	seq, other     uint32
	step, round    int
	again          bool // the request of this round was sent again
}

// flows opens sessions until those that are open will fill the file, then lets them end.
func flows(c *capture, size int64) {
	var h heap
	planned := int64(fileHeader)
	for i, at := uint32(0), int64(0); planned < size && c.err == nil; i, at = i+1, at+sessionEvery {
		for len(h) > 0 && h[0].at <= at {
			c.advance(&h)
		}
		s := c.plan(i)
		planned += s.bytes()
		h.push(event{at, uint64(i), s})
	}
	for len(h) > 0 && c.err == nil {
		c.advance(&h)
	}
}

// advance does the next thing of the session whose time has come.
func (c *capture) advance(h *heap) {
	e := (*h)[0]
	c.now = e.at
	if wait := c.play(e.s); wait >= 0 {
		h.wait(wait)
		return
	}
	h.pop()
}

// plan draws session number i. Addresses and ports repeat only after a thousand million sessions.
func (c *capture) plan(i uint32) *session {
	s := &session{
		client:  endpoint{0x0a200001 + i&0xffff, uint16(20000 + i>>16)},
		server:  endpoint{0x0a140001 + uint32(c.int(backends)), 8443},
		resolve: uint16(40000 + c.int(20000)),
		name:    c.int(nameCount),
		rtt:     int64(1000 + c.int(40_000)),
		seq:     uint32(c.next()),
		other:   uint32(c.next()),
		n:       1 + c.int(maxRounds),
	}
	switch luck := c.int(2000); {
	case luck < 10:
		s.outcome = unresolved
	case luck < 40:
		s.outcome = noSuchName
	case luck < 60:
		s.outcome = unanswered
	case luck < 80:
		s.outcome = refused
	}
	for k := range s.n {
		s.rounds[k] = round{300 + c.int(900), c.chance(0.01), int64(200_000 + c.int(2_000_000))}
	}
	return s
}

// bytes is how much of the file the session will take.
func (s *session) bytes() int64 {
	const (
		small = recordHeader + etherLen + ipLen
		tcp   = small + 32
		begun = small + 40
		dns   = 2*(small+udpLen) + queryLen + answerLen
	)
	switch s.outcome {
	case unresolved:
		return small + udpLen + queryLen
	case noSuchName:
		return dns - (answerLen - queryLen)
	case unanswered:
		return dns + 2*begun
	case refused:
		return dns + begun + tcp
	}
	n := int64(dns + 2*begun + tcp + 3*tcp)
	for _, r := range s.rounds[:s.n] {
		n += 5*tcp + requestLen + 2*fullSegment + int64(r.tail)
		if r.again {
			n += tcp + requestLen
		}
	}
	return n
}

// The steps of a session, one frame each.
const (
	stepQuery = iota
	stepAnswer
	stepSYN
	stepSYNACK
	stepACK
	stepRequest
	stepFirst
	stepSecond
	stepThird
	stepConfirm
	stepFIN
	stepFINACK
	stepLast
)

// play writes the session's next frame and returns the time to the one after it, or -1 at the end.
// The capture point is the client's.
func (c *capture) play(s *session) int64 {
	step := s.step
	s.step++
	switch {
	case step < stepSYN:
		return c.playDNS(s, step)
	case step < stepRequest:
		return c.playOpen(s, step)
	case step < stepFIN:
		return c.playRound(s, step)
	}
	return c.playClose(s, step)
}

func (c *capture) playDNS(s *session, step int) int64 {
	from, id := endpoint{s.client.addr, s.resolve}, uint16(s.seq)
	if step == stepQuery {
		c.query(from, id, s.name)
		if s.outcome == unresolved {
			c.stats.QueriesUnanswered++
			return -1
		}
		return s.rtt / 2
	}
	if s.outcome == noSuchName {
		c.stats.NXDomain++
		c.answer(from, id, s.name, nxDomain)
		return -1
	}
	c.answer(from, id, s.name, noError)
	return 50
}

func (c *capture) playOpen(s *session, step int) int64 {
	switch step {
	case stepSYN:
		c.stats.Connections++
		c.up(s, syn, 0)
		if s.outcome == unanswered {
			return synRetry
		}
		s.seq++
		return s.rtt
	case stepSYNACK:
		switch s.outcome {
		case unanswered: // no answer: the client tries again, and gives up
			c.up(s, syn, 0)
			c.stats.SYNUnanswered++
			c.stats.Resent++
			return -1
		case refused:
			c.stats.Refused++
			s.other = 0
			c.down(s, rst|ack, 0)
			return -1
		}
		c.down(s, syn|ack, 0)
		s.other++
		return 20
	}
	c.up(s, ack, 0)
	return 100
}

// playRound writes the frames of a request and its response; the last one starts the next round.
func (c *capture) playRound(s *session, step int) int64 {
	r := &s.rounds[s.round]
	switch step {
	case stepRequest:
		c.up(s, psh|ack, requestLen)
		if r.again && !s.again {
			s.again, s.step = true, stepRequest
			return rto
		}
		if s.again {
			c.stats.Resent++
		}
		s.again = false
		s.seq += requestLen
		return s.rtt
	case stepFirst, stepSecond:
		c.down(s, ack, fullSegment)
		s.other += fullSegment
		return spacing
	case stepThird:
		c.down(s, psh|ack, r.tail)
		s.other += uint32(r.tail)
		return 20
	}
	c.up(s, ack, 0)
	if s.round++; s.round < s.n {
		s.step = stepRequest
	}
	return r.pause
}

func (c *capture) playClose(s *session, step int) int64 {
	switch step {
	case stepFIN:
		c.up(s, fin|ack, 0)
		s.seq++
		return s.rtt
	case stepFINACK:
		c.down(s, fin|ack, 0)
		s.other++
		return 20
	}
	c.up(s, ack, 0)
	return -1
}

// up writes a segment from client to server, down one from server to client.
func (c *capture) up(s *session, flags uint8, n int) {
	seg := segment{from: s.client, to: s.server, seq: s.seq, flags: flags, n: n}
	if flags&ack != 0 {
		seg.ack = s.other
	}
	c.tcp(seg)
}

func (c *capture) down(s *session, flags uint8, n int) {
	c.tcp(segment{from: s.server, to: s.client, seq: s.other, ack: s.seq, flags: flags, n: n})
}

// event is when a session goes on; seq orders sessions of the same time.
type event struct {
	at  int64
	seq uint64
	s   *session
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// heap holds events, the earliest first.
type heap []event

func (h *heap) push(e event) {
	*h = append(*h, e)
	q := *h
	for i := len(q) - 1; i > 0; {
		up := (i - 1) / 2
		if !q[i].before(q[up]) {
			return
		}
		q[i], q[up] = q[up], q[i]
		i = up
	}
}

func (h *heap) pop() {
	q := *h
	last := len(q) - 1
	q[0], q[last] = q[last], event{}
	*h = q[:last]
	h.down()
}

// wait moves the first event to a later time.
func (h *heap) wait(d int64) {
	(*h)[0].at += d
	h.down()
}

func (h *heap) down() {
	q := *h
	for i := 0; ; {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(q); k++ {
			if q[k].before(q[least]) {
				least = k
			}
		}
		if least == i {
			return
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}
