package tcp

// queue holds the ends of segments that wait for their ACK: those in order in one
// list, those that came behind a later one in another. An ACK takes from the front
// of the first, and looks through the second only when it can reach something, so
// that a stuck ACK costs nothing however long the lists are.
type queue struct {
	head, tail uint32 // in order; index + 1 in the pool
	side, last uint32 // stragglers
	lowest     uint32 // smallest end of the stragglers
	n          uint16
}

type pending struct {
	time int64
	end  uint32
	next uint32
}

const (
	poolBits  = 12
	poolChunk = 1 << poolBits
	// poolLimit bounds the segments that wait in all connections together: 96 MB.
	poolLimit = 6 << 20
)

// pool is where segments wait.
type pool struct {
	chunks []*[poolChunk]pending
	free   uint32 // list through next
	made   uint32
}

func (p *pool) at(i uint32) *pending { i--; return &p.chunks[i>>poolBits][i&(poolChunk-1)] }

func (p *pool) take() uint32 {
	if i := p.free; i != 0 {
		p.free = p.at(i).next
		return i
	}
	if p.made >= poolLimit {
		return 0
	}
	if int(p.made>>poolBits) == len(p.chunks) {
		p.chunks = append(p.chunks, new([poolChunk]pending))
	}
	p.made++
	return p.made
}

func (p *pool) give(i uint32) {
	p.at(i).next = p.free
	p.free = i
}

// push stores a segment.
func (t *Tracker) push(q *queue, end uint32, now int64) {
	i := t.pool.take()
	if i == 0 {
		t.Total.Unlisted++
		return
	}
	p := t.pool.at(i)
	*p = pending{time: now, end: end}
	q.n++
	switch {
	case q.tail == 0:
		q.head, q.tail = i, i
	case !before(end, t.pool.at(q.tail).end):
		t.pool.at(q.tail).next = i
		q.tail = i
	case q.side == 0:
		q.side, q.last, q.lowest = i, i, end
	default:
		t.pool.at(q.last).next = i
		q.last = i
		if before(end, q.lowest) {
			q.lowest = end
		}
	}
}

// acknowledge takes out what an ACK covers and returns the time since the oldest
// segment that ends exactly there; 0 when there is none.
func (t *Tracker) acknowledge(q *Half, ack uint32, now int64) (rtt int64) {
	u := &q.unacked
	if u.n == 0 {
		return 0
	}
	found := false
	for u.head != 0 {
		i := u.head
		p := t.pool.at(i)
		if before(ack, p.end) {
			break
		}
		if p.end == ack && !found {
			rtt, found = now-p.time, true
		}
		u.head = p.next
		u.n--
		t.pool.give(i)
	}
	if u.head == 0 {
		u.tail = 0
	}
	if u.side != 0 && !before(ack, u.lowest) {
		if r, ok := t.stragglers(u, ack, now); ok && !found {
			rtt = r
		}
	}
	return rtt
}

// stragglers takes what an ACK covers out of the second list.
func (t *Tracker) stragglers(u *queue, ack uint32, now int64) (rtt int64, found bool) {
	var kept, last uint32
	for i := u.side; i != 0; {
		p := t.pool.at(i)
		next := p.next
		if before(ack, p.end) {
			p.next = 0
			if kept == 0 {
				kept, u.lowest = i, p.end
			} else {
				t.pool.at(last).next = i
				if before(p.end, u.lowest) {
					u.lowest = p.end
				}
			}
			last = i
		} else {
			if p.end == ack && !found {
				rtt, found = now-p.time, true
			}
			u.n--
			t.pool.give(i)
		}
		i = next
	}
	u.side, u.last = kept, last
	return rtt, found
}

// release gives the segments of a queue back.
func (t *Tracker) release(u *queue) {
	for _, list := range [2]uint32{u.head, u.side} {
		for i := list; i != 0; {
			next := t.pool.at(i).next
			t.pool.give(i)
			i = next
		}
	}
	*u = queue{}
}

// seen reports whether a segment with this end waits near the front: it was
// captured before. It looks at a bounded number, as hostile captures have long lists.
func (t *Tracker) seen(u *queue, end uint32) bool {
	for _, list := range [2]uint32{u.head, u.side} {
		i := list
		for n := 0; i != 0 && n < 64; n++ {
			p := t.pool.at(i)
			if p.end == end {
				return true
			}
			i = p.next
		}
	}
	return false
}
