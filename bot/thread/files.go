package thread

import (
	"errors"
	"slices"
	"time"

	"ghostbot/bot/show"
)

// fileRetry is how long a file that could not be added waits for its next turn, at first;
// each turn in vain doubles it up to fileSlowest. fileWithin is how long it is tried before something
// is said in its place: a case ends also where files go nowhere.
const (
	fileRetry   = 5 * time.Second
	fileSlowest = time.Minute
	fileWithin  = 10 * time.Minute
)

// fileSettles is how long a file may take to appear in its thread after it was handed over.
// Whoever does not know whether it was (an answer was lost, another process died meanwhile)
// looks again after so long before they add it anew.
const fileSettles = 10 * time.Second

// Unsent marks an error of a front that says that nothing of a message can be there, now
// or later.
type Unsent interface{ Unsent() bool }

// files is what is known of files that are not there yet, by key.
type files map[string]*pending

type pending struct {
	since  time.Time     // of the first turn in vain; zero: there was none
	pause  time.Duration // before the next turn
	absent time.Time     // since when it was looked for and not found, with nothing on its way
	unsent bool          // nothing of it can be there
}

func (fs files) of(key string) *pending {
	f := fs[key]
	if f == nil {
		f = &pending{}
		fs[key] = f
	}
	return f
}

// begin notes that a message is handed over, and tells whether it was tried long enough.
func (fs files) begin(m show.Message) (long bool) {
	if m.Kind != show.KindFile {
		return false
	}
	f := fs.of(m.Key)
	f.absent, f.unsent = time.Time{}, false
	return !f.since.IsZero() && time.Since(f.since) > fileWithin
}

// end notes what came of it.
func (fs files) end(m show.Message, err error) {
	if u := Unsent(nil); m.Kind == show.KindFile && errors.As(err, &u) {
		fs.of(m.Key).unsent = u.Unsent()
	}
}

// doubt is how long to wait before a file that was looked for, and is at addr, may be
// added anew; 0 when nothing of it can appear any more.
func (fs files) doubt(m show.Message, addr string, now time.Time) time.Duration {
	if addr != "" || m.Kind != show.KindFile {
		return 0
	}
	f := fs.of(m.Key)
	if f.unsent {
		return 0
	}
	if f.absent.IsZero() {
		f.absent = now
	}
	return max(0, f.absent.Add(fileSettles).Sub(now))
}

// unsettled is a file that may yet appear.
type unsettled struct{ after time.Duration }

func (u *unsettled) Error() string { return "the file may be on its way, it is looked for again" }

// RetryAfter implements [Delayed].
func (u *unsettled) RetryAfter() time.Duration { return u.after }

// putOff gives the others their turn before a file is tried again.
func (p *Projector) putOff(key string, err error, took time.Duration) time.Duration {
	f := p.files.of(key)
	f.pause = min(max(fileRetry, 2*f.pause), fileSlowest)
	d := max(f.pause, 10*took)
	p.slog.Warn("a file is not added to its thread yet", "session_id", p.sid, "key", key, "retry_in", d, "err", err)
	p.late[key] = time.Now().Add(d)
	if f.since.IsZero() {
		f.since = time.Now()
	}
	return d
}

// filesLast lets everything else go first while some file is not taken: an attempt may
// last, and people wait for cards.
func (p *Projector) filesLast(ms []show.Message) {
	if len(p.files) == 0 {
		return
	}
	last := func(m show.Message) int {
		if m.Kind == show.KindFile {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(ms, func(a, b show.Message) int { return last(a) - last(b) })
}
