package e2e

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ghostbot/internal/sim/redis"
)

// wire passes connections on, and can be slow, cut, or lead somewhere else. It ends with
// the test.
type wire struct {
	addr   string
	l      net.Listener
	delay  atomic.Int64 // of everything that comes back, in nanoseconds
	mu     sync.Mutex
	target string // "": it is cut
	open   map[net.Conn]bool
}

// newWire makes one that leads nowhere yet.
func newWire(t testing.TB) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{addr: l.Addr().String(), l: l, open: map[net.Conn]bool{}}
	t.Cleanup(func() { l.Close(); w.cut() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.pass(c)
		}
	}()
	return w
}

func (w *wire) port() int { return w.l.Addr().(*net.TCPAddr).Port }

// to leads every connection from now on to a target; those that are open end.
func (w *wire) to(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = target
	for c := range w.open {
		c.Close()
	}
	w.open = map[net.Conn]bool{}
}

// cut ends every connection and takes no other one, until [wire.to].
func (w *wire) cut() { w.to("") }

func (w *wire) pass(c net.Conn) {
	defer c.Close()
	w.mu.Lock()
	target := w.target
	w.open[c] = true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.open, c)
	}()
	if target == "" {
		return
	}
	s, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer s.Close()
	go func() {
		defer c.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := s.Read(b)
			time.Sleep(time.Duration(w.delay.Load()))
			if _, werr := c.Write(b[:n]); err != nil || werr != nil {
				return
			}
		}
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := c.Read(b)
		if _, werr := s.Write(b[:n]); err != nil || werr != nil {
			return
		}
	}
}

// rests counts how often the thread says that its case rests, with a word of why.
func (l *lab) rests(channel, why string) (n int) {
	l.t.Helper()
	for _, m := range l.thread(channel, "checkout") {
		if strings.Contains(m.Text, "This case rests") && strings.Contains(m.Text, why) {
			n++
		}
	}
	return n
}

// pressed presses until it is taken, as somebody does who is told that it was not.
func (tr trap) pressed(who, label string) {
	tr.t.Helper()
	tr.until(60*time.Second, "the press is taken", func() bool {
		_, taken := tr.press(who, label)
		if taken || tr.starts() > 0 {
			return true
		}
		time.Sleep(300 * time.Millisecond)
		return false
	})
}

// honest checks that a press that was not counted was not taken without a word.
func (tr trap) honest(o outcome, taken bool) {
	tr.t.Helper()
	if words := o.private(); taken {
		tr.t.Errorf("a press that the store did not confirm is taken: %+v", o)
	} else if words == "" && o.OK {
		tr.t.Errorf("a press that is not taken is not answered: %+v", o)
	}
}

// TestSlowRedis makes every answer of the store late: a third of a second is only slow; beyond the
// lease nothing runs, people are told, what they press is not taken in silence, and it goes on by itself.
func TestSlowRedis(t *testing.T) {
	for delay, stops := range map[time.Duration]bool{300 * time.Millisecond: false, 2 * time.Second: true, 8 * time.Second: true} {
		t.Run(delay.String(), func(t *testing.T) {
			t.Parallel()
			w := newWire(t)
			w.to(redis.Start(t).Addr())
			f := newFleet(t, 1, "redis://"+w.addr)
			f.run()
			tr := f.trap("incidents")
			w.delay.Store(int64(delay))
			if stops {
				f.until(60*time.Second, "people are told", func() bool { return f.rests("incidents", "") > 0 })
				o, taken := tr.press(f.approver(0), "Approve")
				tr.honest(o, taken)
				time.Sleep(time.Second)
				if n := tr.starts(); n != 0 {
					t.Errorf("the command ran %d times", n)
				}
				w.delay.Store(0)
			}
			tr.pressed(f.approver(0), "Approve")
			f.until(30*time.Second, "the command runs", func() bool { return tr.starts() > 0 })
			w.delay.Store(0)
			tr.end()
			if n := tr.starts(); n != 1 {
				t.Errorf("the command ran %d times", n)
			}
			f.verified(tr.sid)
			if n := f.rests("incidents", ""); n > 1 {
				t.Errorf("people were told %d times that the case rests", n)
			}
		})
	}
}

// TestReplicaInsteadOfPrimary leads a bot to a replica, as an address does that was not moved: nothing is
// taken and nothing runs, people are told why, and it goes on when the primary is reached again.
func TestReplicaInsteadOfPrimary(t *testing.T) {
	t.Parallel()
	s := redis.Start(t)
	r := redis.Start(t, "--replicaof", "127.0.0.1 "+s.Addr()[len("127.0.0.1:"):])
	s.Follow(r)
	w := newWire(t)
	w.to(s.Addr())
	f := newFleet(t, 1, "redis://"+w.addr)
	f.run()
	tr := f.trap("incidents")
	w.to(r.Addr())
	f.until(20*time.Second, "people are told", func() bool { return f.rests("incidents", "this is a replica, which only reads") > 0 })
	o, taken := tr.press(f.approver(0), "Approve")
	tr.honest(o, taken)
	if o := f.command("network", f.approver(0), "/ghost investigate dns of the shop is slow"); o.private() == "" {
		t.Errorf("an opening that a replica refuses is not answered: %+v", o)
	}
	time.Sleep(2 * time.Second)
	if n := tr.starts(); n != 0 {
		t.Errorf("the command ran %d times", n)
	}
	w.to(s.Addr())
	tr.pressed(f.approver(0), "Approve")
	f.until(20*time.Second, "the command runs", func() bool { return tr.starts() > 0 })
	tr.end()
	if n := tr.starts(); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	f.verified(tr.sid)
	if n := f.rests("incidents", ""); n != 1 {
		t.Errorf("people were told %d times", n)
	}
}
