package e2e

import (
	"regexp"
	"strconv"
	"testing"

	"ghostbot/internal/sim/redis"
)

var scriptCalls = regexp.MustCompile(`(?m)^cmdstat_(evalsha|eval|smembers|sadd|set|get|exists):calls=(\d+)`)

// BenchmarkSharedStore runs cases of the playbook up to their first card and reports what
// they ask of Redis: commands for each SAFE command (all that the process sends, what it
// does while cases wait too), and bytes for each case, journal included.
func BenchmarkSharedStore(b *testing.B) {
	s := redis.Start(b)
	f := newFleet(b, 1, s.URL(), "GHOST_LEASE=12s")
	f.run()
	channels := f.someChannels(benchChannels)
	before, used := sent(b, s), memory(b, s)
	n, safe := 0, 0
	for b.Loop() {
		addr, _ := gateway(b)
		channel := channels[n%len(channels)]
		f.command(channel, f.users["oncall-checkout"].ID, "/ghost investigate checkout gets 502 from "+addr)
		f.find(caseLimit, channel, "checkout gets 502 from "+addr, "Approval needed: ")
		for range readCase(b, f.journal(f.sid(channel, "checkout gets 502 from "+addr))).intents {
			safe++
		}
		n++
	}
	b.ReportMetric(float64(sent(b, s)-before)/float64(safe), "commands/SAFE")
	b.ReportMetric(float64(memory(b, s)-used)/float64(n)/1024, "KiB/case")
}

func sent(b *testing.B, s *redis.Server) (n int) {
	b.Helper()
	for _, m := range scriptCalls.FindAllStringSubmatch(s.Do("INFO", "commandstats"), -1) {
		v, err := strconv.Atoi(m[2])
		if err != nil {
			b.Fatal(err)
		}
		if m[1] != "get" && m[1] != "exists" { // scripts call those
			n += v
		}
	}
	return n
}

func memory(b *testing.B, s *redis.Server) int {
	b.Helper()
	m := regexp.MustCompile(`used_memory_dataset:(\d+)`).FindStringSubmatch(s.Do("INFO", "memory"))
	v, err := strconv.Atoi(m[1])
	if err != nil {
		b.Fatal(err)
	}
	return v
}
