// Package checkup looks at what the bot needs, one thing at a time, and says in a
// line what is wrong and what to do. Nothing is changed by looking.
package checkup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ghostbot/agent/brains"
	"ghostbot/bot/slack"
	"ghostbot/cmd/ghostbot/health"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/cmd/ghostbot/who"
	"ghostbot/safeexec"
	"ghostbot/safeexec/policy"
	"ghostbot/safeexec/redact"
	"ghostbot/store/file"
	"ghostbot/store/redis"
)

// Line is what one look found.
type Line struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	What string `json:"what"`
	Hint string `json:"hint,omitempty"` // what to do, when something is wrong
}

// Print writes a line; clean makes text safe to show on one.
func Print(w io.Writer, k Line, clean func(string) string) {
	mark := "ok  "
	if !k.OK {
		mark = "BAD "
	}
	line := k.Name + ": " + k.What
	if k.Hint != "" {
		line += "  (" + k.Hint + ")"
	}
	fmt.Fprintln(w, mark+clean(line))
}

// Bad reports whether any line is.
func Bad(ks []Line) bool {
	for _, k := range ks {
		if !k.OK {
			return true
		}
	}
	return false
}

// Config is about the variables; err is what reading them said.
func Config(err error) Line {
	if err != nil {
		return Line{Name: "configuration", What: err.Error(), Hint: "see docs/operating.md for every variable"}
	}
	return Line{Name: "configuration", OK: true, What: "every GHOST_ variable is known and valid"}
}

// Approvers is about who may decide. Slack is asked whether it knows those whom the
// file names.
func Approvers(ctx context.Context, settings who.Settings, o slack.Options) Line {
	rules, err := settings.Rules(policy.New(policy.Options{}).KnownRule)
	if err == nil && len(rules.Lines) > 0 {
		if f, ferr := slack.New(o); ferr == nil { // else the check of Slack says so
			err = f.Known(ctx, rules.Lines)
		}
	}
	if err != nil {
		return Line{Name: "approvers", What: err.Error(), Hint: "see docs/operating.md, Who may decide"}
	}
	ok, what, hint := settings.Told(rules)
	return Line{Name: "approvers", OK: ok, What: what, Hint: hint}
}

// Slack checks the tokens' form and asks Slack who the bot is.
func Slack(ctx context.Context, o slack.Options, r *redact.Redactor) Line {
	k := Line{Name: "slack"}
	f, err := slack.New(o)
	if err != nil {
		k.What, k.Hint = err.Error(), "create the app from deploy/slack/manifest.yaml"
		return k
	}
	ctx, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	if err := f.Connect(ctx); err != nil {
		k.What, k.Hint = r.Redact(err.Error()).Text, "check SLACK_BOT_TOKEN and the network"
		return k
	}
	k.OK, k.What = true, "connected as "+f.Me()
	return k
}

// Brain asks the model whether key and model are accepted.
func Brain(ctx context.Context, c brains.Options) Line {
	name, _, err := c.Probe(ctx)
	switch {
	case c.Name == brains.Gemini && c.Key == "":
		return Line{Name: "brain", What: "no GEMINI_API_KEY is set", Hint: "set it, or GHOST_BRAIN=playbook"}
	case err != nil:
		return Line{Name: "brain", What: err.Error(), Hint: "cases go on with the playbook under GHOST_BRAIN=auto"}
	case name != "":
		return Line{Name: "brain", OK: true, What: name + ": key and model are accepted"}
	case c.Name == brains.Auto:
		return Line{Name: "brain", OK: true, What: "the playbook: no GEMINI_API_KEY is set"}
	}
	return Line{Name: "brain", OK: true, What: "the playbook, which needs no key"}
}

// State looks at the state directory; there says whether a store was made in it.
func State(dir string, there bool, err error) Line {
	k := Line{Name: "state directory", What: dir}
	if err == nil && !there {
		err = mayMake(dir)
		k.What += " (made at the first start)"
	}
	if err == nil && there {
		err = opens(dir)
	}
	if err != nil {
		k.What, k.Hint = err.Error(), "choose another with --state-dir or GHOST_STATE_DIR"
		return k
	}
	k.OK = true
	return k
}

func opens(dir string) error {
	db, err := file.Open(dir, file.Options{})
	if err != nil {
		return err
	}
	return db.Close()
}

// mayMake says why a directory could not be made or written, without trying.
func mayMake(dir string) error {
	for {
		fi, err := os.Stat(dir)
		switch up := filepath.Dir(dir); {
		case errors.Is(err, fs.ErrNotExist) && up != dir:
			dir = up
			continue
		case err != nil:
			return err
		case !fi.IsDir():
			return fmt.Errorf("%s is not a directory", dir)
		}
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			return fmt.Errorf("write in %s: %w", dir, err)
		}
		return nil
	}
}

// Key is about the files with the journals' keys; "" when there are none.
func Key(files string) Line {
	k := Line{Name: "journal key", OK: true, What: "none: journals are chained, not authenticated"}
	if files == "" {
		return k
	}
	k.What = files
	if _, err := keyring.Keys(files); err != nil {
		k.OK, k.What, k.Hint = false, err.Error(), "GHOST_JOURNAL_KEY_FILE names a file with 32 random bytes or more"
	}
	return k
}

// Port says whether the operators' port could be opened; "" when none is wanted. One
// that is taken may be the bot's own.
func Port(addr string) Line {
	k := Line{Name: "health port", OK: true, What: "none: GHOST_HEALTH_ADDR is not set"}
	if addr == "" {
		return k
	}
	k.What = addr
	if err := health.Check(addr); err != nil {
		k.OK, k.What, k.Hint = false, err.Error(), "GHOST_HEALTH_ADDR is HOST:PORT"
		return k
	}
	l, err := net.Listen("tcp", addr)
	if err == nil {
		l.Close()
		return k
	}
	if errors.Is(err, unix.EADDRINUSE) {
		k.What += " is in use, by a bot that runs already or by another program"
		return k
	}
	k.OK, k.What, k.Hint = false, err.Error(), "GHOST_HEALTH_ADDR names an address of this machine and a free port"
	return k
}

// toolNames are what the playbook likes to have; a missing one narrows what can
// be seen and is reported as such in a case.
var toolNames = []string{"ping", "dig", "ss", "ip", "curl", "nc", "openssl", "traceroute", "getent"}

// Tools looks for the programs of investigations where the gate would.
func Tools() Line {
	var missing []string
	for _, t := range toolNames {
		if !onPath(t) {
			missing = append(missing, t)
		}
	}
	if len(missing) > 0 {
		return Line{Name: "tools", What: "not installed: " + strings.Join(missing, " "), Hint: "apt-get install iputils-ping bind9-dnsutils iproute2 curl netcat-openbsd openssl traceroute"}
	}
	return Line{Name: "tools", OK: true, What: strings.Join(toolNames, " ")}
}

func onPath(tool string) bool {
	for _, dir := range filepath.SplitList(safeexec.DefaultPath) {
		if fi, err := os.Stat(filepath.Join(dir, tool)); err == nil && fi.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}

// Redis looks at the store that replicas share. It makes nothing there.
func Redis(ctx context.Context, o redis.Options) Line {
	what, err := redis.Look(ctx, o)
	if err != nil {
		return Line{Name: "redis", What: err.Error(), Hint: "see docs/operating.md, Several replicas"}
	}
	return Line{Name: "redis", OK: true, What: what}
}
