package redis

import (
	"context"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

// hints tell watchers of changes that other processes publish. One connection listens
// for all. A watcher gets a signal when its subscription begins, also after a
// connection was lost: what came in between is not missed.
type hints struct {
	mu    sync.Mutex
	sub   *goredis.PubSub
	wants map[string][]chan struct{} // channel -> watchers
	has   map[string]bool            // subscribed
	moved map[string]bool            // channels whose watchers came or went: there may be thousands of others
	poke  chan struct{}
	done  chan struct{}
	wg    sync.WaitGroup
}

// Tells reports that whoever holds a scope is told of each commit without a fence at its
// next renewal at the latest.
func (db *DB) Tells() bool { return true }

// Watch implements [store.DB].
func (db *DB) Watch(ctx context.Context, scope string) <-chan struct{} {
	h, name, c := &db.hints, db.key(scope, "w"), make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sub == nil && h.poke == nil {
		h.sub = db.client.Subscribe(context.Background())
		h.wants, h.has, h.moved = map[string][]chan struct{}{}, map[string]bool{}, map[string]bool{}
		h.poke, h.done = make(chan struct{}, 1), make(chan struct{})
		sub := h.sub // close takes the field away while they run
		h.wg.Go(func() { h.listen(sub) })
		h.wg.Go(func() { h.subscribe(sub) })
	}
	h.wants[name] = append(h.wants[name], c)
	h.wake(name)
	context.AfterFunc(ctx, func() { h.leave(name, c) })
	return c
}

// wake has [hints.subscribe] look at a channel. The caller holds h.mu.
func (h *hints) wake(name string) {
	h.moved[name] = true
	select {
	case h.poke <- struct{}{}:
	default:
	}
}

func (h *hints) leave(name string, c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := h.wants[name][:0]
	for _, have := range h.wants[name] {
		if have != c {
			kept = append(kept, have)
		}
	}
	h.wants[name] = kept
	if len(kept) == 0 {
		delete(h.wants, name)
	}
	close(c)
	h.wake(name)
}

// listen passes on what was published.
func (h *hints) listen(sub *goredis.PubSub) {
	for m := range sub.ChannelWithSubscriptions() {
		switch m := m.(type) {
		case *goredis.Message:
			h.signal(m.Channel)
		case *goredis.Subscription:
			if strings.HasSuffix(m.Kind, "subscribe") && !strings.HasPrefix(m.Kind, "un") {
				h.signal(m.Channel)
			}
		}
	}
}

func (h *hints) signal(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.wants[name] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// subscribe makes the subscriptions what watchers want. What fails is made up by the
// client when it connects again.
func (h *hints) subscribe(sub *goredis.PubSub) {
	for {
		select {
		case <-h.done:
			return
		case <-h.poke:
		}
		var add, drop []string
		h.mu.Lock()
		for name := range h.moved {
			switch wanted := h.wants[name] != nil; {
			case wanted && !h.has[name]:
				h.has[name] = true
				add = append(add, name)
			case !wanted && h.has[name]:
				delete(h.has, name)
				drop = append(drop, name)
			}
		}
		clear(h.moved)
		h.mu.Unlock()
		if len(add) > 0 {
			_ = sub.Subscribe(context.Background(), add...)
		}
		if len(drop) > 0 {
			_ = sub.Unsubscribe(context.Background(), drop...)
		}
	}
}

func (h *hints) close() {
	h.mu.Lock()
	sub, done := h.sub, h.done
	h.sub = nil
	h.mu.Unlock()
	if sub == nil {
		return
	}
	close(done)
	sub.Close()
	h.wg.Wait()
}
