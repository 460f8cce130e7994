package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/bot/record"
	"ghostbot/bot/show"
)

// deaf is a front on which everything appears and nobody answers.
type deaf struct{ n atomic.Int64 }

func (d *deaf) Post(context.Context, bot.Place, show.Message) (string, error) {
	return fmt.Sprintf("%d.1", d.n.Add(1)), nil
}
func (d *deaf) Update(context.Context, bot.Place, string, show.Message) error { return nil }
func (d *deaf) Find(context.Context, bot.Place, show.Message) (string, error) { return "", nil }
func (d *deaf) Person(context.Context, string, string) (bot.Person, error) {
	return bot.Person{}, nil
}
func (d *deaf) Members(context.Context, string) ([]string, error) { return nil, nil }

// talker is a brain that says and asks for a lot before it asks for something
// that only people can grant.
type talker struct{ turns int }

func (talker) Name() string { return "talker/1" }

func (b talker) Next(_ context.Context, v agent.View) (agent.Turn, error) {
	n := v.Case.TurnCount
	if n >= b.turns {
		return agent.Turn{Moves: []agent.Move{agent.RunShell{Command: "mkdir -p /tmp", Reasoning: "people decide"}}}, nil
	}
	said := strings.Repeat(fmt.Sprintf("turn %d says this again and again. ", n), 100)
	return agent.Turn{Text: said, Moves: []agent.Move{
		agent.ManageHypotheses{Add: []agent.Hypothesis{{ID: fmt.Sprintf("H%d", n+1), Description: said[:500]}}},
		agent.RunShell{Command: fmt.Sprintf("mkfs.ext4 /dev/sda%d", n), Reasoning: said}, // refused by the policy, and journaled
	}}, nil
}

// holdings is what a process holds.
type holdings struct{ heap, goroutines, files int }

func holding(t *testing.T) holdings {
	t.Helper()
	runtime.GC()
	runtime.GC() // what the first one finalised
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("open files are not counted here: %v", err)
	}
	return holdings{int(m.HeapAlloc), runtime.NumGoroutine(), len(fds)}
}

// pending counts the cases that wait for an approval and that the thread is in
// step with.
func (p *program) pending(ctx context.Context, t *testing.T) (n int) {
	t.Helper()
	cases, err := p.desk.Active(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		s, err := record.Describe(ctx, p.desk.Options().DB, c)
		if err != nil {
			t.Fatal(err)
		}
		n += s.Pending
	}
	return n
}

// TestWaitingCasesAreSmall: what a case that waits for people costs the process
// does not grow with what its journals hold.
func TestWaitingCasesAreSmall(t *testing.T) {
	environment(t)
	cfg, err := load()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p, err := build(t.Context(), &cli{stateDir: dir}, cfg, &deaf{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	p.brain = talker{turns: 15}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.desk.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("desk: %v", err)
		}
	}()
	opened := 0
	open := func(n int) {
		for range n {
			opened++
			o := bot.Opening{Delivery: fmt.Sprint(opened), Symptom: "checkout gives 502", Requester: "U0", Place: bot.Place{Transport: "slack", Channel: "C1"}}
			if _, err := p.desk.Open(ctx, o); err != nil {
				t.Fatal(err)
			}
		}
		for end := time.Now().Add(2 * time.Minute); p.pending(ctx, t) < opened; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d of %d cases wait", p.pending(ctx, t), opened)
			}
		}
	}
	open(5)
	time.Sleep(3 * time.Second) // the first ones rest
	before := holding(t)
	const more = 20
	open(more)
	const bytes, goroutines, files = 64 << 10, 4, 1 // of one case: its agent, its lease, what people write, its thread
	within := func(h holdings) bool {
		return h.heap-before.heap < more*bytes && h.goroutines-before.goroutines <= more*goroutines && h.files-before.files <= more*files
	}
	after := holding(t)
	for end := time.Now().Add(time.Minute); !within(after) && time.Now().Before(end); after = holding(t) {
		time.Sleep(200 * time.Millisecond)
	}
	journals, err := filepath.Glob(filepath.Join(dir, "audit", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var written int64
	for _, f := range journals {
		if fi, err := os.Stat(f); err == nil {
			written += fi.Size()
		}
	}
	t.Logf("one waiting case of %d bytes of journals holds %d bytes of heap", written/int64(opened), (after.heap-before.heap)/more)
	if !within(after) {
		t.Errorf("%d more cases hold %+v, before %+v; want at most %d bytes, %d goroutines, %d files each", more, after, before, bytes, goroutines, files)
	}
	if written/int64(opened) < 2*bytes {
		t.Errorf("journals have %d bytes a case: too few to show anything", written/int64(opened))
	}
}
