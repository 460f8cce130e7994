package cloud

import (
	"sync"
	"time"
)

// Clock is the time of a simulation. It stands still, runs as the real one does, or
// faster, and can be moved. The zero value is the real time.
type Clock struct {
	mu     sync.Mutex
	base   time.Time // simulated time at the moment real
	real   time.Time
	speed  float64
	manual bool
}

// NewClock returns a clock that starts at a moment and runs speed times as fast as
// the real one; 0 stands still until it is moved.
func NewClock(start time.Time, speed float64) *Clock {
	return &Clock{base: start, real: time.Now(), speed: speed, manual: true}
}

// Now returns the simulated time, in UTC.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time {
	if !c.manual {
		return time.Now().UTC()
	}
	return c.base.Add(time.Duration(float64(time.Since(c.real)) * c.speed)).UTC()
}

// Advance moves the clock. What was to happen in between has happened afterwards,
// at its own time.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	speed := c.speed
	if !c.manual {
		speed = 1
	}
	c.base, c.real, c.speed, c.manual = c.now().Add(d), time.Now(), speed, true
}
