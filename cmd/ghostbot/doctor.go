package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ghostbot/bot/slack"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/safeexec"
	"ghostbot/safeexec/redact"
	"ghostbot/store/file"
)

// check is one line of doctor.
type check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	What string `json:"what"`
	Hint string `json:"hint,omitempty"`
}

// doctor checks what serve needs, a line each, without changing anything.
func doctor(ctx context.Context, c *cli, args []string) error {
	var asJSON bool
	rest, err := c.flags("doctor", args, func(fs *flag.FlagSet) { fs.BoolVar(&asJSON, "json", false, "") })
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError("doctor takes no argument, got %q", rest[0])
	}
	cfg, cfgErr := load()
	checks := []check{checkConfig(cfgErr), checkApprovers(cfg), checkSlack(ctx, cfg), checkBrain(ctx, cfg), checkState(c), checkKey(cfg), checkTools()}
	bad := false
	for _, k := range checks {
		bad = bad || !k.OK
	}
	if asJSON {
		if err := encode(c.out, checks); err != nil {
			return err
		}
	} else {
		for _, k := range checks {
			print1(c, k)
		}
	}
	if bad {
		return &exitError{code: exitNegative, err: fmt.Errorf("")}
	}
	return nil
}

func print1(c *cli, k check) {
	mark := "ok  "
	if !k.OK {
		mark = "BAD "
	}
	line := k.Name + ": " + k.What
	if k.Hint != "" {
		line += "  (" + k.Hint + ")"
	}
	fmt.Fprintln(c.out, mark+oneLine(line))
}

func checkConfig(err error) check {
	if err != nil {
		return check{Name: "configuration", What: err.Error(), Hint: "see docs/operating.md for every variable"}
	}
	return check{Name: "configuration", OK: true, What: "every GHOST_ variable is known and valid"}
}

func checkApprovers(cfg config) check {
	if len(cfg.Approvers) == 0 {
		return check{Name: "approvers", What: "nobody may approve", Hint: "set GHOST_APPROVERS to users (U...) or user groups (S...)"}
	}
	return check{Name: "approvers", OK: true, What: strings.Join(cfg.Approvers, ", ")}
}

// checkSlack checks the tokens' form and asks Slack who the bot is.
func checkSlack(ctx context.Context, cfg config) check {
	k := check{Name: "slack"}
	f, err := slack.New(slack.Options{AppToken: string(cfg.AppToken), BotToken: string(cfg.BotToken), APIURL: cfg.SlackURL})
	if err != nil {
		k.What, k.Hint = err.Error(), "create the app from deploy/slack-manifest.yaml"
		return k
	}
	ctx, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	if err := f.Connect(ctx); err != nil {
		r := redact.New(redact.Options{Known: []string{string(cfg.AppToken), string(cfg.BotToken), string(cfg.GeminiKey)}})
		k.What, k.Hint = r.Redact(err.Error()).Text, "check SLACK_BOT_TOKEN and the network"
		return k
	}
	k.OK, k.What = true, "connected as "+f.Me()
	return k
}

func checkState(c *cli) check {
	k := check{Name: "state directory", What: c.state()}
	there, err := hasStore(c.state())
	if err == nil && !there {
		err = mayMake(c.state())
		k.What += " (made at the first start)"
	}
	if err == nil && there {
		err = opens(c.state())
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

func checkKey(cfg config) check {
	k := check{Name: "journal key", OK: true, What: "none: journals are chained, not authenticated"}
	if cfg.JournalKeyFile == "" {
		return k
	}
	k.What = cfg.JournalKeyFile
	if _, err := keyring.Keys(cfg.JournalKeyFile); err != nil {
		k.OK, k.What, k.Hint = false, err.Error(), "GHOST_JOURNAL_KEY_FILE names a file with 32 random bytes or more"
	}
	return k
}

// toolNames are what the playbook likes to have; a missing one narrows what can
// be seen and is reported as such in a case.
var toolNames = []string{"ping", "dig", "ss", "ip", "curl", "nc", "openssl", "traceroute", "getent"}

func checkTools() check {
	var missing []string
	for _, t := range toolNames {
		if !onPath(t) {
			missing = append(missing, t)
		}
	}
	if len(missing) > 0 {
		return check{Name: "tools", What: "not installed: " + strings.Join(missing, " "), Hint: "apt-get install iputils-ping bind9-dnsutils iproute2 curl netcat-openbsd openssl traceroute"}
	}
	return check{Name: "tools", OK: true, What: strings.Join(toolNames, " ")}
}

func onPath(tool string) bool {
	for _, dir := range filepath.SplitList(safeexec.DefaultPath) {
		if fi, err := os.Stat(filepath.Join(dir, tool)); err == nil && fi.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}
