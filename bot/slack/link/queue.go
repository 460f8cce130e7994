package link

import (
	"context"
	"sync"
	"time"
)

// lanes are queues, one for each name, of which each is worked off by one worker at a
// time. A lane that is empty takes no room.
type lanes struct {
	mu    sync.Mutex
	m     map[string]*lane
	room  int         // envelopes that may still come
	ready chan string // names of lanes that have something to do and no worker
}

type lane struct{ waiting []Envelope }

func newLanes(room int) *lanes {
	return &lanes{m: map[string]*lane{}, room: room, ready: make(chan string, room+workers)}
}

// put adds e to a lane; false when there is no room.
func (q *lanes) put(name string, e Envelope) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.room == 0 {
		return false
	}
	q.room--
	l := q.m[name]
	if l == nil {
		l = &lane{}
		q.m[name] = l
		q.ready <- name // a name is in it once, and there are never more names than envelopes and workers
	}
	l.waiting = append(l.waiting, e)
	return true
}

// take is the next envelope of some lane, which is then the caller's until done.
func (q *lanes) take(ctx context.Context) (name string, e Envelope, ok bool) {
	select {
	case <-ctx.Done():
		return "", Envelope{}, false
	case name = <-q.ready:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.m[name]
	e = l.waiting[0]
	l.waiting[0] = Envelope{}
	l.waiting = l.waiting[1:]
	q.room++
	return name, e, true
}

// done gives a lane back.
func (q *lanes) done(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.m[name].waiting) == 0 {
		delete(q.m, name)
		return
	}
	q.ready <- name
}

// seen remembers deliveries by their content.
type seen struct {
	mu    sync.Mutex
	m     map[string]memory
	order []string // by age
}

type memory struct {
	payload any
	at      time.Time
}

// most bounds the deliveries that are remembered: 10 minutes of Slack's limit for
// events would be 5,000.
const most = 20000

// find is the answer that a delivery got before.
func (s *seen) find(key string) (payload any, ok bool) {
	if key == "" {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	m, ok := s.m[key]
	return m.payload, ok
}

func (s *seen) keep(key string, payload any) {
	if key == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	if _, ok := s.m[key]; !ok {
		s.order = append(s.order, key)
		s.m[key] = memory{payload, time.Now()}
	}
}

// forget drops what is too old, or too much. The caller holds s.mu.
func (s *seen) forget() {
	for len(s.order) > 0 && (len(s.order) > most || time.Since(s.m[s.order[0]].at) > Remember) {
		delete(s.m, s.order[0])
		s.order = s.order[1:]
	}
}

// busy reports whether something waits or is handled.
func (q *lanes) busy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.m) > 0
}
