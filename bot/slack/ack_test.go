package slack_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	slacksim "ghostbot/internal/sim/slack"
)

// button is a card that can be pressed.
type button struct{ channel, ts string }

// buttons waits until n cards can be pressed.
func (p *plant) buttons(n, channels int, within time.Duration) []button {
	p.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(time.Second) {
		var out []button
		for i := range channels {
			for _, m := range p.sim.Messages(channelID(i)) {
				if pressable(&m.Message) {
					out = append(out, button{channelID(i), m.TS})
				}
			}
		}
		if len(out) >= n {
			return out
		}
		if time.Now().After(end) {
			p.t.Fatalf("%d cards of %d can be pressed", len(out), n)
		}
	}
}

// acks presses each card once and asks for the list of cases, at once (while the command that
// was approved starts, and is journaled) and when that is over, and tells how long the
// acknowledgements took.
func (p *plant) acks(b testing.TB, cards []button) (clicks, busy, commands []time.Duration) {
	b.Helper()
	took := func(o slacksim.Outcome, err error) time.Duration {
		if err != nil || !o.OK {
			b.Errorf("not acknowledged: %+v, %v", o, err)
		}
		return time.Duration(o.AckMS * float64(time.Millisecond))
	}
	for i, c := range cards {
		clicks = append(clicks, took(p.sim.Click(slacksim.Click{TS: c.ts, Channel: c.channel, User: personID(i % 9), Label: "Approve", WaitMS: 1})))
		busy = append(busy, took(p.sim.Command(c.channel, personID(crew-2), "status")))
		time.Sleep(200 * time.Millisecond)
		commands = append(commands, took(p.sim.Command(c.channel, personID(crew-2), "status")))
	}
	return clicks, busy, commands
}

// bolt connects a minimal app of the official client.
func (p *plant) bolt(b testing.TB) (end func()) {
	b.Helper()
	dir := filepath.Join("..", "..", "internal", "sim", "slack", "conformance")
	node, err := exec.LookPath("node")
	if _, serr := os.Stat(filepath.Join(dir, "node_modules")); err != nil || serr != nil {
		if os.Getenv("CI") == "true" {
			b.Fatal("node or its packages are missing: run make deps-test")
		}
		b.Skip("node or its packages are missing: run make deps-test")
	}
	cmd := exec.Command(node, "ack.mjs")
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), p.sim.Env()...), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != "connected" {
		b.Fatalf("bolt says %q, %v", line, err)
	}
	return func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Errorf("bolt: %v", err)
		}
	}
}

// TestMeasuredOnDisk: an acknowledgement that waits for an fsync is not measured where one costs nothing.
func TestMeasuredOnDisk(t *testing.T) {
	p := newPlant(t, false, 1, slacksim.Options{NoEcho: true})
	defer p.sim.Close()
	defer p.db.Close()
	if p.dir == "" || strings.HasPrefix(p.dir, "/dev/shm/") {
		t.Errorf("the state lies in %q", p.dir)
	}
}

// BenchmarkAck measures how long the workspace waits for acknowledgements (of presses whose
// decision is made durable, and of commands that read the store) while GHOST_CASES cases are
// open in the process, and how long those of an app take, in the same workspace in the same run, that does nothing
// but acknowledge.
func BenchmarkAck(b *testing.B) {
	cases, samples, channels := 100, 50, 40
	if s := os.Getenv("GHOST_CASES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 100 {
			b.Fatalf("GHOST_CASES: %q", s)
		}
		cases, samples = n, min(300, n/3)
	}
	p := newPlant(b, false, channels, slacksim.Options{NoEcho: true})
	p.work = asks(1)
	end := p.start()
	defer end()
	for i := range cases {
		p.open(i, i%channels)
	}
	p.buttons(cases, channels, 15*time.Minute)
	time.Sleep(5 * time.Second)
	cards := p.buttons(cases, channels, time.Minute)
	stride := len(cards) / samples // from all channels
	var pressed []button
	for i := range samples {
		pressed = append(pressed, cards[i*stride])
	}
	clicks, busy, commands := p.acks(b, pressed)
	p.hangUp()
	for late := time.Now().Add(10 * time.Second); p.sim.Sockets() > 0 && time.Now().Before(late); {
		time.Sleep(10 * time.Millisecond)
	}
	stop := p.bolt(b)
	rest := p.buttons(samples, channels, time.Second)
	boltClicks, boltBusy, boltCommands := p.acks(b, rest[:samples])
	stop()
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for _, x := range []struct {
		name       string
		ours, bolt []time.Duration
	}{{"click", clicks, boltClicks}, {"busy-command", busy, boltBusy}, {"command", commands, boltCommands}} {
		for _, q := range []float64{0.5, 0.99} {
			name := x.name + "-p" + strconv.Itoa(int(100*q))
			b.ReportMetric(ms(quantile(x.ours, q)), name+"-ms")
			b.ReportMetric(ms(quantile(x.bolt, q)), name+"-bolt-ms")
			b.ReportMetric(ms(quantile(x.ours, q))/ms(quantile(x.bolt, q)), name+"-ratio")
		}
	}
	b.ReportMetric(float64(cases), "cases")
}
