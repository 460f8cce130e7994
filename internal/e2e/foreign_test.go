package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"ghostbot/internal/sim/redis"
)

// poison is what somebody writes to a key of Redis, and what the log has to say of it.
type poison struct {
	name string
	do   func(s *redis.Server, key string)
}

// field is the first field of a hash.
func field(s *redis.Server, key string) string {
	f, _, _ := strings.Cut(s.Do("HKEYS", key), "\n")
	return f
}

// poisons are for every key; those of one type do nothing to another.
var poisons = []poison{
	{"of another type", func(s *redis.Server, key string) {
		s.Do("DEL", key)
		if strings.HasSuffix(key, ":id") {
			s.Do("LPUSH", key, "x")
			return
		}
		s.Do("SET", key, "x")
	}},
	{"garbage", func(s *redis.Server, key string) { spoil(s, key, "garbage") }},
	{"cut in the middle", func(s *redis.Server, key string) {
		v := strings.TrimSuffix(s.Do("HGET", key, field(s, key)), "\n")
		spoil(s, key, v[:len(v)/2])
	}},
	{"huge", func(s *redis.Server, key string) {
		s.Do("EVAL", "return redis.call('HSET', KEYS[1], ARGV[1], string.rep('9', 70000000))", "1", key, field(s, key))
	}},
}

// spoil writes a value over the first one of a hash, or an entry behind a stream, or a member into a set.
func spoil(s *redis.Server, key, v string) {
	switch strings.TrimSpace(s.Do("TYPE", key)) {
	case "hash":
		s.Do("HSET", key, field(s, key), v)
	case "stream":
		s.Do("XADD", key, "*", "z", v)
	case "set":
		s.Do("SADD", key, v)
	default:
		s.Do("SET", key, v)
	}
}

// TestPoisonedKeys writes over each kind of key that a case or the deployment has, while bots serve. Nothing
// panics, what is refused is said in one line that names the key or the case, another case goes on, and so does this one
// when the key is what it was.
func TestPoisonedKeys(t *testing.T) {
	t.Parallel()
	s := redis.Start(t)
	f := newFleet(t, 1, s.URL())
	f.run()
	bad, good := f.trap("incidents"), f.trap("network")
	f.say("incidents", f.approver(0), bad.card.Thread, "look at the proxy too") // makes more kinds of keys
	f.find(20*time.Second, "incidents", "checkout", "Heard: look at the proxy too")
	var keys []string
	for _, k := range strings.Fields(s.Do("KEYS", "*")) {
		if !strings.Contains(k, good.sid) {
			keys = append(keys, k)
		}
	}
	t.Logf("%d kinds of keys: %q", len(keys), keys)
	n := number(t, "GHOST_POISONS", 1)
	heard := 0
	for i, key := range keys {
		typ := strings.TrimSpace(s.Do("TYPE", key))
		for j, p := range poisons {
			if typ != "hash" && j > 1 || n < len(poisons) && j != i%2 && j != 0 || n < len(poisons) && j == 0 && i%2 == 1 {
				continue
			}
			s.Do("COPY", key, "kept", "REPLACE")
			from := len(f.log())
			p.do(s, key)
			what := fmt.Sprintf("%s %s", key, p.name)
			heard++
			// The other case hears what people say, unless the key is one that all share.
			words := fmt.Sprintf("and the router %d", heard)
			f.say("network", f.approver(0), good.card.Thread, words)
			if strings.Contains(key, bad.sid) {
				f.until(20*time.Second, what+": the other case hears", func() bool {
					for _, m := range f.thread("network", "checkout") {
						if strings.Contains(m.Text, words) {
							return true
						}
					}
					return f.dead()
				})
			}
			if o := f.command("network", f.approver(0), "/ghost status"); strings.Contains(key, bad.sid) {
				f.until(20*time.Second, what+": /ghost status", func() bool {
					if strings.Contains(o.private(), good.sid) {
						return true
					}
					o = f.command("network", f.approver(0), "/ghost status")
					return false
				})
			}
			time.Sleep(1200 * time.Millisecond) // a renewal
			log := f.log()[from:]
			if f.dead() || strings.Contains(log, "panic") || strings.Contains(log, "goroutine ") {
				t.Fatalf("%s: the bot has ended: %.2000s", what, log)
			}
			for line := range strings.Lines(log) {
				if len(line) > 2000 {
					t.Errorf("%s: a line of %d bytes: %.300s", what, len(line), line)
				}
				if complains.MatchString(line) {
					t.Logf("%s: %.400s", what, line)
				}
			}
			if complains.MatchString(log) && !strings.Contains(log, bad.sid) && !strings.Contains(log, key) && !strings.Contains(log, "deployment") {
				t.Errorf("%s: the log names neither key nor case: %s", what, log)
			}
			s.Do("DEL", key)
			s.Do("RENAME", "kept", key)
		}
	}
	f.kill()
	for _, key := range keys { // one value among others keeps nobody from a start
		if strings.Contains(key, "{deployment}:v:") {
			s.Do("HSET", key, strings.TrimPrefix(key, "gb1:ghostbot:{deployment}:v:")+"/odd", "garbage")
			s.Do("HSET", key, strings.TrimPrefix(key, "gb1:ghostbot:{deployment}:v:")+"/forged", "9-9 {}")
		}
	}
	f.run()
	if f.dead() || strings.Count(f.log(), "stored value ignored") < 2 {
		t.Errorf("dead %v beside values that are not ours: %s", f.dead(), f.log())
	}
	if n := bad.starts() + good.starts(); n != 0 {
		t.Errorf("%d commands ran that nobody approved", n)
	}
	for _, tr := range []trap{bad, good} {
		f.until(60*time.Second, "the press is taken, or the case ended meanwhile without the command, which was optional", func() bool {
			tr.card = f.cardOf(tr)
			_, taken := tr.press(f.approver(0), "Approve")
			return taken || tr.starts() > 0 || f.isClosed(tr.sid)
		})
		if !f.isClosed(tr.sid) {
			f.until(60*time.Second, "the command runs", func() bool { return tr.starts() > 0 })
			tr.end()
		}
		if n := tr.starts(); n > 1 {
			t.Errorf("%s: the command ran %d times", tr.channel, n)
		}
		f.verified(tr.sid)
	}
}

var complains = regexp.MustCompile(`level=(ERROR|WARN)`)

// cardOf is the newest card of a trap.
func (f fleet) cardOf(tr trap) (card message) {
	f.t.Helper()
	f.until(60*time.Second, "a card", func() bool {
		for _, m := range f.thread(tr.channel, "checkout") {
			if strings.HasPrefix(m.Text, "Approval needed: mktemp") {
				card = m
			}
		}
		return card.TS != "" || f.isClosed(tr.sid)
	})
	return card
}

// TestCaseOfANewerVersion: a case that a newer version has written to is left as it is, people and operators are
// told, and another one goes on.
func TestCaseOfANewerVersion(t *testing.T) {
	t.Parallel()
	s := redis.Start(t)
	f := newFleet(t, 1, s.URL())
	f.run()
	newer, other := f.trap("incidents"), f.trap("network")
	f.kill()
	prefix := "gb1:ghostbot:{" + newer.sid + "}:"
	s.Do("HSET", prefix+"lease", "format", "2")
	dump := func() (out []string) {
		for _, k := range []string{"lease", "tails", "lines", "segs", "v:proposal", "v:messages", "v:seen", "v:ghost_session"} {
			out = append(out, fmt.Sprintf("%q", s.Do("DUMP", prefix+k)))
		}
		return out
	}
	before := dump()
	f.run()
	other.pressed(f.approver(0), "Approve")
	f.until(30*time.Second, "the other case's command runs", func() bool { return other.starts() > 0 })
	o, taken := newer.press(f.approver(0), "Approve")
	newer.honest(o, taken)
	f.until(10*time.Second, "the log says so", func() bool {
		for line := range strings.Lines(f.log()) {
			if strings.Contains(line, newer.sid) && strings.Contains(line, "written by a newer version of ghostbot") && strings.Contains(line, "update this replica") {
				return true
			}
		}
		return false
	})
	for _, tr := range []trap{newer, other} {
		if o := f.command(tr.channel, f.approver(0), "/ghost list"); !strings.Contains(o.private(), tr.sid) {
			t.Errorf("/ghost list in %s says %q, not %s", tr.channel, o.private(), tr.sid)
		}
	}
	if out, code := f.ghostbot("audit", "verify", "--stream", newer.sid); code == 0 || !strings.Contains(out, "newer version") {
		t.Errorf("audit verify: %d, %s", code, out)
	}
	for i, k := range dump() {
		if k != before[i] {
			t.Errorf("key %d of the case was changed", i)
		}
	}
	s.Do("HSET", prefix+"lease", "format", "1") // the replica is updated
	newer.card = f.cardOf(newer)
	newer.pressed(f.approver(0), "Approve")
	f.until(60*time.Second, "the command runs", func() bool { return newer.starts() > 0 })
	for _, tr := range []trap{newer, other} {
		tr.end()
		if n := tr.starts(); n != 1 {
			t.Errorf("the command ran %d times", n)
		}
	}
}
