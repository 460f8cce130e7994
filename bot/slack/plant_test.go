package slack_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack/socketmode"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/bot/show"
	"ghostbot/bot/slack"
	"ghostbot/cmd/ghostbot/ledger"
	slacksim "ghostbot/internal/sim/slack"
	"ghostbot/internal/sim/slack/workspace"
	"ghostbot/safeexec"
	"ghostbot/safeexec/policy"
	"ghostbot/safeexec/redact"
	"ghostbot/store"
	"ghostbot/store/file"
)

// TestMain makes the test binary the supervisor of the commands that the tests run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		syscall.Exit(safeexec.Supervise())
	}
	os.Exit(m.Run())
}

// pipes is a network in memory, so that a test can run on a simulated clock.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
	case <-ctx.Done():
	}
	here.Close()
	there.Close()
	return nil, errors.New("connection refused")
}

// crew is how many people there are, of whom the first third may decide.
const crew = 50

func may(i int) bool { return i < crew/3 }

func personID(i int) string { return fmt.Sprintf("U0P%03d", i) }

// seed is a workspace of a crew in so many channels.
func seed(channels int) *workspace.Seed {
	s := workspace.DefaultSeed()
	members := []string{s.Team.BotUID}
	var approvers []string
	for i := range crew {
		u := workspace.User{ID: personID(i), TeamID: s.Team.ID, Name: "person-" + strconv.Itoa(i), RealName: "Person " + strconv.Itoa(i)}
		u.Restricted = i%10 == 9
		s.Users = append(s.Users, u)
		members = append(members, u.ID)
		if may(i) && !u.Restricted {
			approvers = append(approvers, u.ID)
		}
	}
	s.Groups = []workspace.Group{{ID: "S0LOAD", Handle: "load", Name: "Load", Users: approvers}}
	s.Approvers = []string{"S0LOAD"}
	s.Channels = nil
	for i := range channels {
		s.Channels = append(s.Channels, workspace.Channel{ID: channelID(i), Name: "load-" + strconv.Itoa(i), Created: 1700000000, Members: members})
	}
	return &s
}

func channelID(i int) string { return fmt.Sprintf("C0LOAD%03d", i) }

// plant is the bot in one process, with the real gate, store and journals, and a
// workspace that it is connected to.
type plant struct {
	t      testing.TB
	dir    string // state and journals
	work0  string // working directories
	bin    string
	marks  string // each command that ran left its argument here
	lines  *pipes
	sim    *slacksim.Server
	db     *file.DB
	wrap   func(store.DB) store.DB // what stands between desk and store; nil: nothing
	edit   func(*bot.Options)      // nil: nothing is changed
	front  *slack.Front
	desk   *bot.Desk
	work   func(ctx context.Context, p bot.Parts, run func(arg string) (safeexec.Result, error)) error
	client *http.Transport
	hangUp func() // ends the bot, and leaves the workspace
}

// quick is a directory of the test's in memory where there is one: the simulated clock
// stands still while something is written, the test does not.
func quick(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "ghostbot-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// newPlant builds everything; memory puts the connections and the state into memory.
func newPlant(t testing.TB, memory bool, channels int, o slacksim.Options) *plant {
	t.Helper()
	dir := t.TempDir()
	state := dir // what is measured by the real clock has the disk under it
	if memory {
		state = quick(t)
	}
	p := &plant{t: t, dir: state, marks: filepath.Join(dir, "marks"), work0: filepath.Join(dir, "work"), bin: filepath.Join(dir, "bin"), lines: newPipes()}
	script := "#!/bin/sh\necho \"$1\" >> '" + p.marks + "'\n"
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "mark"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	o.Seed = seed(channels)
	var err error
	if p.sim, err = slacksim.New(o); err != nil {
		t.Fatal(err)
	}
	so := slack.Options{AppToken: p.sim.AppToken, BotToken: p.sim.BotToken, Log: slog.New(slog.DiscardHandler)}
	if os.Getenv("GHOST_TEST_LOG") != "" {
		so.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if memory {
		p.sim.StartOn(p.lines)
		p.client = &http.Transport{DialContext: p.lines.dial, MaxIdleConnsPerHost: 64}
		so.Transport = p.client
		so.Socket = []socketmode.Option{socketmode.OptionDialer(&websocket.Dialer{NetDialContext: p.lines.dial, WriteBufferSize: 32 << 10})}
	} else if err := p.sim.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	so.APIURL = p.sim.APIURL
	if p.front, err = slack.New(so); err != nil {
		t.Fatal(err)
	}
	if p.db, err = file.Open(filepath.Join(p.dir, "state"), file.Options{}); err != nil {
		t.Fatal(err)
	}
	p.makeDesk(so.Log)
	return p
}

func (p *plant) makeDesk(log *slog.Logger) {
	red, pol := redact.New(redact.Options{}), policy.New(policy.Options{})
	var db store.DB = p.db
	if p.wrap != nil {
		db = p.wrap(db)
	}
	var err error
	o := bot.Options{
		DB: db, Front: p.front, Transport: "slack", Owner: "load", Lease: 10 * time.Minute, Brain: "load", Policy: pol.Version(), MaxTurns: 1000,
		Access: bot.Access{Approvers: []string{"S0LOAD"}, Self: true},
		OpenLog: func(ctx context.Context, sid string, fence uint64) (bot.Log, error) {
			l, err := audit.Open(ctx, audit.Options{Dir: filepath.Join(p.dir, "audit"), SID: sid, Fence: fence, Stream: ledger.Stream{DB: p.db, Scope: sid, Fence: fence}})
			if err != nil {
				return nil, err
			}
			return ledger.NewCase(l), nil
		},
		Build: func(parts bot.Parts) (bot.Investigator, error) {
			gate, err := safeexec.New(safeexec.Options{SessionID: parts.SessionID, Policy: pol, Journal: parts.Shell, Approver: parts.Approver, Redactor: red,
				Dir: filepath.Join(p.work0, parts.SessionID), Path: p.bin + ":/usr/bin:/bin", ApprovalTTL: 24 * time.Hour, Requester: parts.Opened.Requester})
			return investigator{p, parts, gate}, err
		},
		Report: func(context.Context, string) (show.Report, error) {
			return show.Report{Title: "Report", Summary: "done", Verdict: "no_fault"}, nil
		},
		Body:  func(string) ([]byte, error) { return []byte("# report"), nil },
		Check: func(string) string { return "" }, Redact: func(s string) string { return red.Redact(s).Text }, Session: agent.SessionFile, Log: log,
	}
	if p.edit != nil {
		p.edit(&o)
	}
	p.desk, err = bot.New(o)
	if err != nil {
		p.t.Fatal(err)
	}
}

// investigator asks for commands one after the other.
type investigator struct {
	p     *plant
	parts bot.Parts
	gate  *safeexec.Shell
}

func (i investigator) Investigate(ctx context.Context) (agent.Conclusion, error) {
	n := 0
	run := func(arg string) (safeexec.Result, error) {
		n++
		return i.gate.Run(ctx, safeexec.Request{Argv: []string{"mark", arg}, Reasoning: "it is part of the load", Turn: n})
	}
	if err := i.p.work(ctx, i.parts, run); err != nil {
		return agent.Conclusion{}, err
	}
	c := agent.Conclusion{EndedBy: "brain", At: time.Now()}
	_, _, err := i.parts.Log.Journal("case").Append(context.WithoutCancel(ctx), "concluded", c)
	return c, err
}

// start connects the bot; end stops everything and waits.
func (p *plant) start() (end func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	if err := p.front.Connect(ctx); err != nil {
		p.t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.desk.Run(ctx) })
	wg.Go(func() {
		if err := p.front.Serve(ctx, p.desk); err != nil {
			p.t.Errorf("serve: %v", err)
		}
	})
	wait, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	if err := p.sim.WaitSockets(wait, 1); err != nil {
		p.t.Fatal(err)
	}
	p.hangUp = func() {
		cancel()
		wg.Wait()
	}
	return func() {
		p.hangUp()
		p.sim.Close()
		p.lines.Close()
		if p.client != nil {
			p.client.CloseIdleConnections()
		}
		p.db.Close()
	}
}

func (p *plant) open(i, channel int) string {
	p.t.Helper()
	sid, err := p.desk.Open(context.Background(), bot.Opening{Delivery: fmt.Sprint("load ", i), Symptom: fmt.Sprint("load ", i), Requester: personID(crew - 2),
		Place: bot.Place{Transport: "slack", Team: p.sim.Workspace().Team().ID, Channel: channelID(channel)}})
	if err != nil {
		p.t.Fatal(err)
	}
	return sid
}

// ran are the arguments of the commands that ran, and how often.
func (p *plant) ran() map[string]int {
	out := map[string]int{}
	raw, err := os.ReadFile(p.marks)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	for _, l := range strings.Fields(string(raw)) {
		out[l]++
	}
	return out
}
