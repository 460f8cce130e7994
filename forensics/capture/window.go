package capture

import (
	"context"
	"crypto/sha256"
	"io"
	"sync"
	"sync/atomic"
)

const (
	blockSize = 256 << 10 // large enough to hide the system call, small enough to stay in a core's cache until it is used
	headroom  = 256 << 10 // in front of a block, for the record that began in the one before
	inFlight  = 18        // blocks
)

// block is a piece of the stream. It goes back to its pump when everybody who got
// it has released it.
type block struct {
	buf  []byte // headroom and data
	data []byte
	err  error // why this is the last one
	refs atomic.Int32
	home *store
}

func (b *block) release() {
	if b.refs.Add(-1) == 0 {
		b.home.put(b)
	}
}

// store keeps free blocks. The one that was put there last is taken first: most of it is still in a
// core's cache.
type store struct {
	mu   sync.Mutex
	free []*block
	some chan struct{} // there may be one
}

func (s *store) put(b *block) {
	s.mu.Lock()
	s.free = append(s.free, b)
	s.mu.Unlock()
	select {
	case s.some <- struct{}{}:
	default:
	}
}

// take waits for a block; nothing when the context has ended. Only one goroutine takes.
func (s *store) take(done <-chan struct{}) *block {
	for {
		s.mu.Lock()
		if n := len(s.free); n > 0 {
			b := s.free[n-1]
			s.free = s.free[:n-1]
			s.mu.Unlock()
			return b
		}
		s.mu.Unlock()
		select {
		case <-s.some:
		case <-done:
			return nil
		}
	}
}

// pump cuts a stream into blocks. Its reader reads them itself, and so finds them in
// its core's cache, unless they are read ahead.
type pump struct {
	ctx   context.Context
	r     io.Reader
	free  store
	ahead chan *block // what was read ahead; nil: nothing is
	sum   chan *block // for the digest; nil: there is none
	read  *atomic.Int64
	room  int // before the data of a block
	size  int // of the data of a block
	ended bool
}

// newPump makes a pump for a stream of about size bytes (0: unknown).
func newPump(ctx context.Context, r io.Reader, size int64, read *atomic.Int64) *pump {
	p := &pump{ctx: ctx, r: r, free: store{some: make(chan struct{}, 1)}, read: read, room: headroom, size: blockSize}
	if size > 0 && size < blockSize {
		p.room, p.size = 0, int(size)+1 // one block holds all, and sees the end
	}
	for range inFlight {
		p.free.put(&block{home: &p.free})
	}
	return p
}

// digest adds a goroutine that hashes what is read; the function waits for it.
func (p *pump) digest(work *sync.WaitGroup) func() string {
	p.sum = make(chan *block, inFlight)
	in, done, sum := p.sum, p.ctx.Done(), make(chan string, 1)
	work.Add(1)
	go func() {
		defer work.Done()
		defer close(sum)
		h := sha256.New()
		for {
			select {
			case <-done:
				return
			case b, more := <-in:
				if !more {
					sum <- hexSum([sha256.Size]byte(h.Sum(nil)))
					return
				}
				h.Write(b.data)
				b.release()
			}
		}
	}()
	return func() string { return <-sum }
}

// run lets a goroutine read ahead: what it does is more than copying.
func (p *pump) run(work *sync.WaitGroup) {
	p.ahead = make(chan *block, inFlight)
	out := p.ahead
	work.Add(1)
	go func() {
		defer work.Done()
		defer close(out)
		for {
			b := p.fill()
			if b == nil {
				return
			}
			out <- b // never blocks: there are as many places as blocks
		}
	}()
}

// next returns the next block, or nothing.
func (p *pump) next() *block {
	if p.ahead != nil {
		return <-p.ahead
	}
	return p.fill()
}

// fill reads a block; nothing after the last one, and when the context has ended.
func (p *pump) fill() *block {
	if p.ended {
		return nil
	}
	b := p.free.take(p.ctx.Done())
	if b == nil || p.ctx.Err() != nil {
		return nil
	}
	if b.buf == nil {
		b.buf = make([]byte, p.room+p.size)
	}
	n, err := fill(p.r, b.buf[p.room:])
	p.read.Add(int64(n))
	b.data, b.err = b.buf[p.room:p.room+n], err
	p.ended = err != nil
	if p.sum == nil {
		b.refs.Store(1)
		return b
	}
	b.refs.Store(2)
	p.sum <- b // never blocks: there are as many places as blocks
	if p.ended {
		close(p.sum)
	}
	return b
}

// fill reads until the buffer is full. Unlike [io.ReadFull] it keeps the reader's
// error, as an archive that is cut is no file that ends.
func fill(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var k int
		k, err = r.Read(b[n:])
		n += k
	}
	return n, err
}

// window is the unread part of a stream. What it returns is good until the next
// call that reads further.
type window struct {
	src  *pump
	cur  *block
	data []byte // unread
	big  []byte // holds data when a record is longer than headroom allows
	off  int64  // of data in the stream
	err  error
}

func (w *window) pos() int64   { return w.off }
func (w *window) rest() []byte { return w.data }

// peek returns the next n bytes, or fewer and the reason.
func (w *window) peek(n int) ([]byte, error) {
	for len(w.data) < n {
		if !w.fill(n) {
			return w.data, w.err
		}
	}
	return w.data[:n], nil
}

// fill appends the next block to what is unread.
func (w *window) fill(n int) bool {
	if w.err != nil {
		return false
	}
	b := w.src.next()
	if b == nil {
		if w.err = w.src.ctx.Err(); w.err == nil {
			w.err = io.EOF
		}
		return false
	}
	w.err = b.err // now: a block that is released is filled again
	left := len(w.data)
	if room := w.src.room; left <= room {
		start := room - left
		copy(b.buf[start:], w.data)
		w.data = b.buf[start : room+len(b.data)]
		if w.cur != nil {
			w.cur.release()
		}
		w.cur, w.big = b, nil
	} else {
		w.gather(n, b.data)
		if w.cur != nil {
			w.cur.release()
			w.cur = nil
		}
		b.release()
	}
	return true
}

// gather appends to what is unread when it is more than headroom has place for. What
// is unread is the tail of big, which mostly has room for the rest of the record.
func (w *window) gather(n int, more []byte) {
	if w.big == nil || len(w.data)+len(more) > cap(w.data) {
		w.big = append(make([]byte, 0, max(min(n, maxRecord), len(w.data))+blockSize), w.data...)
		w.data = w.big
	}
	w.data = append(w.data, more...)
}

// lend shares the memory of what was returned since the last call that read further
// with a batch: it is good until the batch, too, has released it.
func (w *window) lend(b *Batch) {
	if w.cur != nil {
		w.cur.refs.Add(1)
		b.block = w.cur
		return
	}
	w.big = nil // not to be written again
}

// skip leaves out n bytes that were peeked.
func (w *window) skip(n int) {
	w.data = w.data[n:]
	w.off += int64(n)
}

// discard leaves out n bytes, read or not, and says how many there were.
func (w *window) discard(n int64) (int64, error) {
	var done int64
	for done < n {
		if len(w.data) == 0 && !w.fill(1) {
			return done, w.err
		}
		k := int(min(n-done, int64(len(w.data))))
		w.skip(k)
		done += int64(k)
	}
	return done, nil
}

// drain reads to the end.
func (w *window) drain() {
	for {
		w.off += int64(len(w.data))
		w.data = nil
		if !w.fill(1) {
			return
		}
	}
}
