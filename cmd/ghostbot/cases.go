package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/bot/record"
	"ghostbot/cmd/ghostbot/home"
	"ghostbot/cmd/ghostbot/memory"
	"ghostbot/store"
)

// cases lists the cases of the state directory. It only reads.
func cases(ctx context.Context, c *cli, args []string) error {
	var asJSON bool
	var like string
	rest, err := c.flags("cases", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&asJSON, "json", false, "print a list of objects")
		fs.StringVar(&like, "like", "", "only cases that look like a case or a text: `SID|TEXT`")
	})
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError("cases takes no argument, got %q", rest[0])
	}
	list, err := listCases(ctx, c.state(), like)
	if err != nil {
		return err
	}
	if asJSON {
		return encode(c.out, list)
	}
	w := tabwriter.NewWriter(c.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "CASE\tSTATE\tAGE\tPENDING\tSYMPTOM")
	for _, s := range list {
		why := ""
		if s.Like != nil {
			why = fmt.Sprintf("  [%d: %s]", s.Like.Points, short(oneLine(s.Like.String()), 100))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s%s\n", oneLine(s.SessionID), oneLine(state(s.CaseStatus)), since(s.CreatedAt), s.Pending, short(oneLine(s.Symptom), 80), why)
	}
	return w.Flush()
}

func state(s bot.CaseStatus) string {
	if s.Closed && s.Verdict != "" {
		return "finished: " + s.Verdict
	}
	return s.State
}

func short(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func listCases(ctx context.Context, dir, like string) ([]memory.Listed, error) {
	out := []memory.Listed{}
	o := home.Options{Dir: dir}
	unknown := fail(exitNegative, "--like: there is no case %s in %s", like, dir) // an id is no text: a mistyped one is like nothing
	if os.Getenv("GHOST_REDIS_URL") != "" {
		cfg, err := read()
		if err != nil {
			return nil, err
		}
		o.Redis = cfg.redis()
	} else if there, err := hasStore(dir); err != nil {
		return nil, fail(exitUnavailable, "state directory: %w", err)
	} else if !there && audit.FileName(like, audit.Case) != "" {
		return nil, unknown
	} else if !there {
		return out, nil
	}
	db, done, err := home.Reader(o) // the journals say what is true
	if err != nil {
		return nil, fail(exitUnavailable, "%w", err)
	}
	defer done()
	if _, err := db.Get(ctx, store.Key{Scope: store.Deployment, Name: "case/" + like}); audit.FileName(like, audit.Case) != "" && errors.Is(err, store.ErrNotFound) {
		return nil, unknown
	}
	if like != "" {
		if out, err = memory.Like(ctx, db, like); err != nil {
			return nil, fail(exitUnavailable, "%w", err)
		}
		return out, nil
	}
	vs, err := db.List(ctx, store.Deployment, "case/")
	if err != nil {
		return nil, fail(exitUnavailable, "state directory: %w", err)
	}
	for _, v := range vs {
		s, err := record.Read(ctx, db, v)
		if err != nil {
			return nil, fail(exitUnavailable, "%s: %w", v.Key.Name, err)
		}
		out = append(out, memory.Listed{CaseStatus: s})
	}
	return out, nil
}

// since is how long ago a case was opened; "-" of one of which that is not known.
func since(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return time.Since(at).Round(time.Second).String()
}

// hasStore says whether a store was ever opened in dir. Opening one would make
// it, in whatever directory a person named by mistake.
func hasStore(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, "installation.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
