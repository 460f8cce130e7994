package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"ghostbot/bot"
	"ghostbot/store"
	"ghostbot/store/file"
)

// cases lists the cases of the state directory. It only reads.
func cases(ctx context.Context, c *cli, args []string) error {
	var asJSON bool
	var like string
	rest, err := c.flags("cases", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&asJSON, "json", false, "")
		fs.StringVar(&like, "like", "", "")
	})
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError("cases takes no argument, got %q", rest[0])
	}
	list, err := listCases(ctx, c.state())
	if err != nil {
		return err
	}
	if like != "" {
		list = alike(list, like)
	}
	if asJSON {
		return encode(c.out, list)
	}
	w := tabwriter.NewWriter(c.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "CASE\tSTATE\tAGE\tPENDING\tSYMPTOM")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", oneLine(s.SessionID), oneLine(state(s)), time.Since(s.CreatedAt).Round(time.Second), s.Pending, short(oneLine(s.Symptom), 80))
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

func listCases(ctx context.Context, dir string) ([]bot.CaseStatus, error) {
	out := []bot.CaseStatus{}
	there, err := hasStore(dir)
	if err != nil {
		return nil, fail(exitUnavailable, "state directory: %w", err)
	}
	if !there {
		return out, nil
	}
	db, err := file.Open(dir, file.Options{})
	if err != nil {
		return nil, fail(exitUnavailable, "state directory: %w", err)
	}
	defer db.Close()
	vs, err := db.List(ctx, store.Deployment, "case/")
	if err != nil {
		return nil, fail(exitUnavailable, "state directory: %w", err)
	}
	for _, v := range vs {
		var info bot.CaseInfo
		if err := json.Unmarshal(v.Data, &info); err != nil {
			return nil, fail(exitUnavailable, "%s: %w", v.Key.Name, err)
		}
		s, err := bot.Describe(ctx, db, info)
		if err != nil {
			return nil, fail(exitUnavailable, "case %s: %w", info.SessionID, err)
		}
		out = append(out, s)
	}
	return out, nil
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

// alike keeps the cases whose id is like, or whose symptom shares a word of five
// letters or more, or any address, with the case or text that like names.
func alike(list []bot.CaseStatus, like string) []bot.CaseStatus {
	text := like
	for _, s := range list {
		if s.SessionID == like {
			text = s.Symptom
		}
	}
	words := map[string]bool{}
	for _, w := range strings.Fields(strings.ToLower(text)) {
		w = strings.Trim(w, ".,;:!?\"'()")
		if len(w) >= 5 || strings.ContainsAny(w, ".:") {
			words[w] = true
		}
	}
	out := []bot.CaseStatus{}
	for _, s := range list {
		for w := range words {
			if s.SessionID == like || strings.Contains(strings.ToLower(s.Symptom), w) {
				out = append(out, s)
				break
			}
		}
	}
	return out
}
