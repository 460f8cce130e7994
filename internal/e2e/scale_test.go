package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"ghostbot/internal/sim/redis"
	slacksim "ghostbot/internal/sim/slack"
	"ghostbot/internal/sim/slack/workspace"
)

// BenchmarkScale measures what cases cost where replicas share a Redis, and prints each
// figure beside its bar. The variables make it shorter: GHOST_SCALE_TURNS turns of one
// case, GHOST_SCALE_SECONDS of load, GHOST_SCALE_SLOTS cases at once for each replica,
// GHOST_SCALE_BRAIN seconds of the model that scaling is measured with, GHOST_SCALE_WAITING waiting cases, GHOST_SCALE_KILLS take-overs, GHOST_SCALE_CLICKS
// presses; GHOST_SCALE_ONLY is a pattern of the parts to run.
func BenchmarkScale(b *testing.B) {
	var s scale
	for _, part := range []struct {
		name string
		run  func(*testing.B)
	}{{"turns", s.turns}, {"playbook", s.playbook}, {"throughput", s.throughput}, {"scaling", s.scaling}, {"waiting", s.waiting}, {"takeover", s.takeover}} {
		if only := os.Getenv("GHOST_SCALE_ONLY"); only == "" || regexp.MustCompile(only).MatchString(part.name) {
			b.Run(part.name, func(b *testing.B) {
				for range b.N {
					part.run(b)
				}
			})
		}
	}
	fmt.Println(s.table())
}

// figure is one measured value and what is wanted of it.
type figure struct {
	what  string
	value float64
	unit  string
	most  float64 // 0: no such bar
	least float64
	note  string
}

func (f figure) verdict() string {
	switch {
	case f.most == 0 && f.least == 0:
		return ""
	case f.most > 0 && f.value > f.most || f.least > 0 && f.value < f.least:
		return "missed"
	}
	return "held"
}

func (f figure) bar() string {
	switch {
	case f.most > 0:
		return fmt.Sprintf("%g or less", f.most)
	case f.least > 0:
		return fmt.Sprintf("%g or more", f.least)
	}
	return ""
}

type scale struct{ figures []figure }

func (s *scale) add(f figure) { s.figures = append(s.figures, f) }

func (s *scale) table() string {
	var b strings.Builder
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Fprintf(&b, "%d processors, load %s\n", runtime.NumCPU(), strings.Join(strings.Fields(string(load))[:min(3, len(strings.Fields(string(load))))], " "))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, f := range s.figures {
		fmt.Fprintf(w, "%s\t%.2f %s\t%s\t%s\t%s\n", f.what, f.value, f.unit, f.bar(), f.verdict(), f.note)
	}
	_ = w.Flush() // to memory
	return b.String()
}

func setting(b testing.TB, name string, n int) int {
	b.Helper()
	if v := os.Getenv(name); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil || n < 1 {
			b.Fatalf("%s=%q", name, v)
		}
	}
	return n
}

// quick is a model that answers everything after a while with one command, each time
// another one: SAFE ones for ever or a number of times, then the end; or one RISKY one.
type quick struct {
	asked atomic.Int64
	after time.Duration
	turns int // SAFE commands of a case; 0: no end
	risky string
	url   string
}

func (q *quick) start(b testing.TB) *quick {
	srv := httptest.NewServer(q)
	b.Cleanup(srv.Close)
	q.url = srv.URL
	return q
}

func (q *quick) env() []string {
	return []string{"GHOST_BRAIN=gemini", "GEMINI_API_KEY=sim-key", "GHOST_MODEL=gemini-flash-latest", "GHOST_GEMINI_URL=" + q.url,
		"GHOST_MAX_TURNS=1000", "GHOST_MODEL_TOKENS=1000000000", "GHOST_MODEL_USD=0", "GHOST_LEASE=12s", "GHOST_APPROVAL_TTL=24h", "GHOST_RECALL=off"}
}

// ServeHTTP answers as the API does.
func (q *quick) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		io.WriteString(w, `{"name":"models/gemini-flash-latest","inputTokenLimit":1048576,"outputTokenLimit":65536}`)
		return
	}
	body, _ := io.ReadAll(r.Body)
	if strings.HasSuffix(r.URL.Path, ":countTokens") {
		io.WriteString(w, `{"totalTokens":1000}`)
		return
	}
	time.Sleep(q.after)
	n := q.asked.Add(1)
	done := strings.Count(string(body), `"functionResponse"`)
	call := map[string]any{"name": "run_shell_cmd", "args": map[string]any{"reasoning": "Shows the way there.", "command": safeCommand(n)}}
	switch {
	case q.risky != "" && done == 0:
		call["args"] = map[string]any{"reasoning": "Makes room for a trace.", "effect": "makes a directory", "command": fmt.Sprintf("mkdir -p %s/%d", q.risky, n)}
	case q.risky != "" || q.turns > 0 && done >= q.turns:
		call = map[string]any{"name": "complete_investigation", "args": map[string]any{"confidence": "low", "verdict": "unverified", "root_cause_summary": "Nothing was found.", "recommended_actions": []string{}}}
	}
	json.NewEncoder(w).Encode(map[string]any{
		"candidates": []any{map[string]any{"index": 0, "finishReason": "STOP", "content": map[string]any{"role": "model", "parts": []any{
			map[string]any{"text": fmt.Sprintf("Next look, number %d.", n)}, map[string]any{"functionCall": call}}}}},
		"modelVersion": "gemini-flash-latest", "usageMetadata": map[string]any{"promptTokenCount": len(body) / 4, "candidatesTokenCount": 40, "totalTokenCount": len(body)/4 + 40},
	})
}

// safeCommand is a SAFE command that costs little itself, another one for each n: the
// way to an address of the range for benchmarks (RFC 2544).
func safeCommand(n int64) string {
	return fmt.Sprintf("ip -4 route get 198.%d.%d.%d", 18+n>>16&1, n>>8&255, n&255)
}

// watched counts what clients send to a Redis, as MONITOR shows it: what scripts call
// themselves is counted apart.
type watched struct {
	mu          sync.Mutex
	sent, inner int
	turn, out   int // how many were sent before the first turn, and up to the last outcome
	by          map[string]int
	conn        net.Conn
}

var monitored = regexp.MustCompile(`^\+?\d+\.\d+ \[\d+ (\S+)\] "([^"]*)"`)

func watch(b testing.TB, s *redis.Server) *watched {
	b.Helper()
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		b.Fatal(err)
	}
	fmt.Fprint(c, "MONITOR\r\n")
	m := &watched{by: map[string]int{}, conn: c}
	b.Cleanup(func() { c.Close() })
	go func() {
		r := bufio.NewReaderSize(c, 1<<20)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			x := monitored.FindStringSubmatch(line)
			m.mu.Lock()
			switch {
			case x == nil:
			case x[1] == "lua":
				m.inner++
			default:
				if m.turn == 0 && strings.Contains(line, `\"kind\":\"turn\"`) {
					m.turn = m.sent
				}
				if m.sent++; strings.Contains(line, `\"kind\":\"outcome\"`) {
					m.out = m.sent
				}
				m.by[strings.ToLower(x[2])]++
			}
			m.mu.Unlock()
		}
	}()
	return m
}

func (m *watched) counts() (sent, inner int, by string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var parts []string
	for name, n := range m.by {
		parts = append(parts, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(parts)
	return m.sent, m.inner, strings.Join(parts, ", ")
}

// calm waits until nothing was sent for a while: what is left to be done of a case that was closed is
// none of the next one's.
func (m *watched) calm(l *lab) {
	l.t.Helper()
	last, since := -1, time.Now()
	l.until(20*time.Second, "nothing is sent any more", func() bool {
		if n, _, _ := m.counts(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 200*time.Millisecond
	})
}

// reset begins to count anew.
func (m *watched) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent, m.inner, m.turn, m.out, m.by = 0, 0, 0, 0, map[string]int{}
}

// steady is what was sent from the first turn to the last outcome: without opening and end.
func (m *watched) steady() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.out - m.turn
}

var called = regexp.MustCompile(`(?m)^cmdstat_(?:evalsha|eval|fcall|[a-z|_]+):calls=(\d+)`)

// allCalls is the sum of commandstats, in scripts too.
func allCalls(s *redis.Server) (n int) {
	for _, m := range called.FindAllStringSubmatch(s.Do("INFO", "commandstats"), -1) {
		v, _ := strconv.Atoi(m[1]) // digits
		n += v
	}
	return n
}

// turns is one case of SAFE commands from its opening to its end.
func (s *scale) turns(b *testing.B) {
	r := redis.Start(b)
	n := setting(b, "GHOST_SCALE_TURNS", 20)
	q := (&quick{after: 100 * time.Millisecond, turns: n}).start(b)
	f := newFleet(b, 1, r.URL(), q.env()...)
	f.run()
	what := "checkout.example.com is slow"
	f.command("dns", f.approver(0), "/ghost investigate warm.example.com is slow") // the scripts are known afterwards
	f.report("dns", "warm.example.com")
	m := watch(b, r)
	m.calm(f.lab)
	m.reset()
	calls := allCalls(r)
	f.command("incidents", f.approver(0), "/ghost investigate "+what)
	f.report("incidents", what)
	sid := f.sid("incidents", what)
	f.closed(sid)
	m.calm(f.lab)
	sent, _, by := m.counts()
	m.conn.Close()
	safe := len(readCase(b, f.journal(sid)).intents)
	if safe != n {
		b.Fatalf("%d SAFE commands, want %d", safe, n)
	}
	b.ReportMetric(float64(sent)/float64(safe), "sent/turn")
	s.add(figure{what: "Redis commands sent for each SAFE turn, the whole case", value: float64(sent) / float64(safe), most: 12, note: fmt.Sprintf("%d turns; %s", safe, by)})
	s.add(figure{what: "the same with what scripts call inside", value: float64(allCalls(r)-calls) / float64(safe), note: "commandstats; no bar"})
	s.size(b, r, sid, safe)
}

// size is what a case takes in Redis, by kind of key.
func (s *scale) size(b *testing.B, r *redis.Server, sid string, turns int) {
	b.Helper()
	journal, rest := 0, 0
	var parts []string
	for _, key := range strings.Fields(r.Do("--raw", "KEYS", "*{"+sid+"}*")) {
		n, err := strconv.Atoi(strings.TrimSpace(r.Do("--raw", "MEMORY", "USAGE", key, "SAMPLES", "0")))
		if err != nil {
			b.Fatal(err)
		}
		name := key[strings.Index(key, "}:")+2:]
		parts = append(parts, fmt.Sprintf("%s %d", name, n))
		if name == "lines" {
			journal += n
		} else {
			rest += n
		}
	}
	slices.Sort(parts)
	s.add(figure{what: "KiB in Redis for each case, without its journal", value: float64(rest) / 1024, unit: "KiB", most: 64, note: strings.Join(parts, ", ")})
	s.add(figure{what: "KiB of its journal in Redis", value: float64(journal) / 1024, unit: "KiB", note: fmt.Sprintf("%d turns; no bar", turns)})
}

// playbook is cases of the playbook up to their first card: five SAFE commands in four
// turns, with many changes of hypotheses.
func (s *scale) playbook(b *testing.B) {
	r := redis.Start(b)
	f := newFleet(b, 1, r.URL(), "GHOST_LEASE=12s")
	f.run()
	addr, _ := gateway(b)
	open := func(channel string) string {
		f.command(channel, f.users["oncall-checkout"].ID, "/ghost investigate checkout gets 502 from "+addr)
		f.find(caseLimit, channel, "checkout gets 502 from "+addr, "Approval needed: ")
		return f.sid(channel, "checkout gets 502 from "+addr)
	}
	open("dns")
	m := watch(b, r)
	sid := open("incidents")
	time.Sleep(2 * time.Second) // the thread is in step
	sent, _, by := m.counts()
	m.conn.Close()
	safe := len(readCase(b, f.journal(sid)).intents)
	if m.turn == 0 || m.steady() <= 0 {
		b.Fatalf("no turn and outcome among %d commands", sent)
	}
	s.add(figure{what: "Redis commands sent for each SAFE command of the playbook, first turn to last outcome", value: float64(m.steady()) / float64(safe), most: 12, note: fmt.Sprintf("%d commands, and many changes of hypotheses", safe)})
	s.add(figure{what: "the same with the opening and the card", value: float64(sent) / float64(safe), most: 12, note: fmt.Sprintf("another case waits beside; %s", by)})
	s.size(b, r, sid, safe)
}

// crowded is a workspace with n channels.
func crowded(b testing.TB, n int) *slacksim.Server {
	b.Helper()
	seed := workspace.DefaultSeed()
	like := seed.Channels[0]
	for i := range n {
		c := like
		c.ID, c.Name = fmt.Sprintf("C0SCALE%05d", i), fmt.Sprintf("scale-%05d", i)
		seed.Channels = append(seed.Channels, c)
	}
	srv, err := slacksim.New(slacksim.Options{Seed: &seed})
	if err != nil {
		b.Fatal(err)
	}
	if err := srv.Start("127.0.0.1:0"); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { srv.Close() })
	return srv
}

// crowdedFleet is a fleet in a workspace with n channels more.
func crowdedFleet(b testing.TB, bots, n int, url string, env ...string) fleet {
	b.Helper()
	f := newFleet(b, bots, url, env...)
	srv := crowded(b, n)
	for _, l := range f.bots {
		l.slack, l.chans = srv, map[string]string{}
	}
	f.people()
	for _, l := range f.bots {
		l.users, l.chans = f.users, f.chans
	}
	return f
}

// open opens n cases, a few at a time, each in a channel of its own. A command that
// reached nobody, or seems so, is typed again.
func (f fleet) open(b testing.TB, feed *feed, n int) {
	b.Helper()
	next := make(chan int)
	var wg sync.WaitGroup
	var failed atomic.Int64
	for range 16 {
		wg.Go(func() {
			for i := range next {
				channel, what := f.chans[fmt.Sprintf("scale-%05d", i)], fmt.Sprintf("host-%d.example.com", i)
				for tries := 0; !feed.opened(what); tries++ {
					if tries%20 == 0 {
						f.insist(map[string]any{"channel": channel, "user": f.approver(i % 3), "wait_ms": 300, "text": "/ghost investigate " + what + " is slow"})
						failed.Add(int64(min(tries, 1)))
					}
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	if k := failed.Load(); k > 0 {
		b.Logf("%d commands were typed again", k)
	}
}

// carried is what a fleet did under load, and what it cost: processor time in
// milliseconds for each turn, and which part of the machine was idle.
type carried struct {
	rate                       float64 // turns a second
	own, all, redis, ourselves float64 // replicas; with commands and supervisors; Redis; workspace and model
	idle                       float64
}

func (c carried) limit() string {
	if c.idle < 0.1 {
		return fmt.Sprintf("limit: processors, %.0f %% idle; CPU-ms for each turn: %.1f Redis, %.1f workspace and model of the test", 100*c.idle, c.redis, c.ourselves)
	}
	return fmt.Sprintf("%.0f %% of the processors idle", 100*c.idle)
}

// load has cases at once under way on a fleet, slots for each replica, whose model
// answers after a while.
func load(b *testing.B, replicas, slots int, after time.Duration) (c carried) {
	b.Helper()
	r := redis.Start(b)
	q := (&quick{after: after}).start(b)
	f := crowdedFleet(b, replicas, replicas*slots, r.URL(), q.env()...)
	for _, l := range f.bots {
		l.run()
	}
	f.open(b, f.feed(), replicas*slots)
	f.until(5*time.Minute, "all cases are under way", func() bool { return q.asked.Load() > int64(3*replicas*slots) })
	cost := func() (own, all, ours time.Duration) {
		for _, l := range f.bots {
			a, b := l.spent()
			own, all = own+a, all+b
		}
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return own, all, time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	redis1 := spentOf(b, r)
	o1, a1, s1 := cost()
	n1, i1, began := q.asked.Load(), idleTime(), time.Now()
	time.Sleep(time.Duration(setting(b, "GHOST_SCALE_SECONDS", 20)) * time.Second)
	o2, a2, s2 := cost()
	n, took := float64(q.asked.Load()-n1), time.Since(began).Seconds()
	redis2 := spentOf(b, r)
	c.idle = (idleTime() - i1) / took / float64(runtime.NumCPU())
	for _, l := range f.bots {
		if l.dead() {
			b.Fatal("a replica ended")
		}
		l.kill()
	}
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / n }
	c.rate, c.own, c.all, c.ourselves, c.redis = n/took, each(o2-o1), each(a2-a1), each(s2-s1), 1000*(redis2-redis1)/n
	return c
}

var usedCPU = regexp.MustCompile(`(?m)^used_cpu_(?:sys|user):([0-9.]+)`)

// spentOf is the processor time of a Redis, in seconds.
func spentOf(b *testing.B, s *redis.Server) (sum float64) {
	b.Helper()
	n := 0
	for _, m := range usedCPU.FindAllStringSubmatch(s.Do("INFO", "cpu"), -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		sum, n = sum+v, n+1
	}
	if n != 2 {
		b.Fatalf("INFO cpu tells %d of 2 figures", n)
	}
	return sum
}

// idleTime is how long processors were idle since the machine started, in seconds.
func idleTime() float64 {
	text, _ := os.ReadFile("/proc/uptime")
	var up, idle float64
	fmt.Sscan(string(text), &up, &idle)
	return idle
}

// spent is the processor time of the bot's process, and with the commands that it ran.
// Supervisors that wait for the next command count, though they have not ended.
func (l *lab) spent() (own, all time.Duration) {
	l.t.Helper()
	pid := l.cmd.Process.Pid
	own, ended, err := spentBy(pid)
	if err != nil {
		l.t.Fatal(err)
	}
	all = own + ended
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // a thread may have ended
		for _, child := range strings.Fields(string(text)) {
			n, _ := strconv.Atoi(child)
			a, b, _ := spentBy(n) // and so may a child: then the bot has its time, or gets it soon
			all += a + b
		}
	}
	return own, all
}

// spentBy is the processor time of a process, and of its children that have ended.
func spentBy(pid int) (own, ended time.Duration, err error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, 0, err
	}
	fs := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks [4]int // fields 14 to 17 of proc(5), in hundredths of a second
	for i := range ticks {
		ticks[i], _ = strconv.Atoi(fs[11+i]) // the kernel writes digits
	}
	return time.Duration(ticks[0]+ticks[1]) * 10 * time.Millisecond, time.Duration(ticks[2]+ticks[3]) * 10 * time.Millisecond, nil
}

// alone is what the command of a turn costs without any bot, in CPU-ms.
func alone(b *testing.B) float64 {
	b.Helper()
	const n = 50
	var spent time.Duration
	for i := range n {
		words := strings.Fields(safeCommand(int64(i)))
		c := exec.Command(words[0], words[1:]...)
		_ = c.Run() // there may be no route
		if c.ProcessState == nil {
			b.Fatalf("%s does not start", words[0])
		}
		spent += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	return float64(spent.Microseconds()) / 1000 / n
}

func (s *scale) throughput(b *testing.B) {
	slots := setting(b, "GHOST_SCALE_SLOTS", 50)
	one := load(b, 1, slots, 100*time.Millisecond)
	s.add(figure{what: "turns a second of one replica", value: one.rate, least: 200, note: fmt.Sprintf("%d cases; %s", slots, one.limit())})
	s.add(figure{what: "CPU-ms of the replica for each turn", value: one.own, unit: "ms", note: "no bar"})
	s.add(figure{what: "the same with the commands and their supervisors", value: one.all, unit: "ms",
		note: fmt.Sprintf("no bar; %.1f for the command alone; %.0f turns a second would fill these processors", alone(b), float64(runtime.NumCPU())*1000/one.all)})
	three := load(b, 3, slots, 100*time.Millisecond)
	s.add(figure{what: "turns a second of three replicas", value: three.rate, note: fmt.Sprintf("%d cases; %s; %.1f and %.1f CPU-ms for each turn", 3*slots, three.limit(), three.own, three.all)})
	s.add(figure{what: "three replicas carry, times one", value: three.rate / one.rate, least: 2.5})
}

// scaling is the same where cases wait for their model most of the time, as they do for a
// real one: the slots are the limit and not the processors, which all replicas share here.
func (s *scale) scaling(b *testing.B) {
	slots, after := setting(b, "GHOST_SCALE_SLOTS", 50), time.Duration(setting(b, "GHOST_SCALE_BRAIN", 4))*time.Second
	one, three := load(b, 1, slots, after), load(b, 3, slots, after)
	for i, c := range []carried{one, three} {
		n := 1 + 2*i
		s.add(figure{what: fmt.Sprintf("turns a second of %d, the model answers after %s", n, after), value: c.rate, note: fmt.Sprintf("%d cases; %s; %.1f and %.1f CPU-ms for each turn", n*slots, c.limit(), c.own, c.all)})
	}
	s.add(figure{what: "three replicas carry then, times one", value: three.rate / one.rate, least: 2.5})
}

// waiting is many cases that wait for an approval on one replica.
func (s *scale) waiting(b *testing.B) {
	n, clicks := setting(b, "GHOST_SCALE_WAITING", 10000), setting(b, "GHOST_SCALE_CLICKS", 200)
	r := redis.Start(b)
	q := (&quick{after: time.Millisecond, risky: b.TempDir()}).start(b)
	f := crowdedFleet(b, 1, n, r.URL(), q.env()...)
	f.run()
	base, began := f.usage(), time.Now()
	feed := f.feed()
	f.open(b, feed, n)
	f.until(30*time.Minute, "all cases wait", func() bool { return feed.count("Approval needed: ") >= n })
	b.Logf("%d cases wait after %s", n, time.Since(began).Round(time.Second))
	time.Sleep(20 * time.Second) // what is let go has been let go
	before, _ := f.spent()
	time.Sleep(20 * time.Second)
	after, _ := f.spent()
	u := f.usage()
	each := float64(u.rss-base.rss) / float64(n)
	s.add(figure{what: fmt.Sprintf("MB resident of one replica with %d waiting cases", n), value: float64(u.rss) / 1e6, unit: "MB", note: fmt.Sprintf("%.1f MB before, %.1f KB for each case; %d files", float64(base.rss)/1e6, each/1e3, u.files)})
	s.add(figure{what: "MB resident with 10,000 of them", value: (float64(base.rss) + each*many) / 1e6, unit: "MB", most: 300, note: told(n)})
	s.add(figure{what: "processor of it while they wait", value: 100 * (after - before).Seconds() / 20, unit: "% of a core", note: "no bar"})
	s.add(figure{what: "connections to Redis", value: float64(strings.Count(r.Do("CLIENT", "LIST"), "\nid=")), note: "no bar"})
	var ds []time.Duration
	paths := map[time.Duration]string{}
	for i := range min(clicks, n) {
		d, path := f.pressOnce(b, feed, i*n/min(clicks, n))
		ds = append(ds, d)
		paths[d] = path
	}
	var slow strings.Builder
	for _, d := range slices.Backward(slices.Sorted(maps.Keys(paths))) {
		fmt.Fprintf(&slow, "\n%4d ms: %s", d.Milliseconds(), paths[d])
	}
	b.Log("ms after each press: " + slow.String()) // -test.v shows more than ten lines
	s.add(figure{what: "click to command start, p99", value: float64(quantile(ds, 0.99).Microseconds()) / 1000, unit: "ms", most: 200, note: fmt.Sprintf("p50 %.1f ms of %d clicks", float64(quantile(ds, 0.5).Microseconds())/1000, len(ds))})
	b.Logf("%d goroutines", f.goroutines())
}

// many is how many waiting cases the bar is about.
const many = 10000

// told says how a figure about many cases was made.
func told(n int) string {
	if n == many {
		return "measured"
	}
	return fmt.Sprintf("not measured: by what each of %d takes", n)
}

// count tells how many threads have a message that begins with prefix.
func (f *feed) count(prefix string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, all := range f.threads {
		if slices.ContainsFunc(all, func(p posted) bool { return strings.HasPrefix(p.Text, prefix) }) {
			n++
		}
	}
	return n
}

// pressOnce has somebody approve the command of case i, and tells how long its start took, and when
// after the press each entry was written.
func (f fleet) pressOnce(b *testing.B, feed *feed, i int) (took time.Duration, path string) {
	b.Helper()
	what := fmt.Sprintf("host-%d.example.com", i)
	card := feed.find(caseLimit, what, 0, "Approval needed: ")
	sid := sidOf(feed.find(caseLimit, what, 0, "Investigating: ").all())
	pressed := time.Now()
	if o := f.post("/lab/click", map[string]any{"channel": f.chans[fmt.Sprintf("scale-%05d", i)], "user": f.approver((i + 1) % 3), "ts": card.TS, "label": "Approve", "wait_ms": 1}); !o.OK {
		b.Fatalf("case %d: %+v", i, o)
	}
	var at time.Time
	f.until(time.Minute, "the start is journaled", func() bool {
		at = f.startedAt(sid)
		return !at.IsZero()
	})
	for _, name := range []string{"case_", "shell_audit_"} {
		text, err := os.ReadFile(filepath.Join(f.state, "audit", name+sid+".jsonl"))
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var e entry
			var answer struct{ At time.Time } // when a process looked at the press, before it stored the answer
			if json.Unmarshal([]byte(line), &e) != nil || !e.Time.After(pressed) {
				continue
			}
			path += fmt.Sprintf(" %s %d", e.Kind, e.Time.Sub(pressed).Milliseconds())
			if e.Kind == "decided" && json.Unmarshal(e.Body, &answer) == nil {
				path += fmt.Sprintf(" (looked at %d)", answer.At.Sub(pressed).Milliseconds())
			}
		}
	}
	return at.Sub(pressed), pressed.Format("05.000") + path
}

// takeover kills the replica that holds cases, again and again, and measures how long
// each of them is without a holder.
func (s *scale) takeover(b *testing.B) {
	n, kills := setting(b, "GHOST_SCALE_HELD", 20), setting(b, "GHOST_SCALE_KILLS", 10)
	r := redis.Start(b)
	q := (&quick{after: time.Millisecond, risky: b.TempDir()}).start(b)
	f := crowdedFleet(b, 2, n, r.URL(), q.env()...)
	f.bots[0].run()
	feed := f.feed()
	f.open(b, feed, n)
	f.until(3*time.Minute, "all cases wait", func() bool { return feed.count("Approval needed: ") >= n })
	var sids []string
	for i := range n {
		sids = append(sids, sidOf(feed.find(caseLimit, fmt.Sprintf("host-%d.example.com", i), 0, "Investigating: ").all()))
	}
	var ds []time.Duration
	for k := range kills {
		dies, takes := f.bots[k%2], f.bots[(k+1)%2]
		takes.run()
		time.Sleep(3 * time.Second)
		var held []string // the other one may have some that rested
		for _, sid := range sids {
			if !takes.takenAt(sid).After(dies.takenAt(sid)) {
				held = append(held, sid)
			}
		}
		dies.kill()
		died := time.Now()
		for _, sid := range held {
			var at time.Time
			f.until(time.Minute, sid+" is taken over", func() bool {
				at = takes.takenAt(sid)
				return at.After(died)
			})
			ds = append(ds, at.Sub(died))
		}
	}
	s.add(figure{what: "take-over after kill -9, p99", value: quantile(ds, 0.99).Seconds(), unit: "s", most: 15, note: fmt.Sprintf("p50 %.1f s, longest %.1f s, of %d take-overs in %d kills", quantile(ds, 0.5).Seconds(), quantile(ds, 1).Seconds(), len(ds), kills)})
}

// takenAt is the time of the newest take-over of a case by this bot.
func (l *lab) takenAt(sid string) (at time.Time) {
	text, err := os.ReadFile(filepath.Join(l.state, "audit", "case_"+sid+".jsonl"))
	if err != nil {
		return at
	}
	for line := range strings.Lines(string(text)) {
		var e entry
		if json.Unmarshal([]byte(line), &e) == nil && e.Kind == "takeover" {
			at = e.Time
		}
	}
	return at
}

// TestScaleTable: a bar is held or missed, and says so.
func TestScaleTable(t *testing.T) {
	for _, c := range []struct {
		f    figure
		want string
	}{
		{figure{value: 12, most: 12}, "held"}, {figure{value: 12.01, most: 12}, "missed"},
		{figure{value: 200, least: 200}, "held"}, {figure{value: 199, least: 200}, "missed"}, {figure{value: 5}, ""},
	} {
		if got := c.f.verdict(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.f, got, c.want)
		}
	}
}
