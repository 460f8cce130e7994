package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"ghostbot/agent"
	"ghostbot/agent/rca"
	"ghostbot/audit"
	"ghostbot/cmd/ghostbot/evidence"
	"ghostbot/cmd/ghostbot/forget"
	"ghostbot/cmd/ghostbot/home"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/cmd/ghostbot/ledger"
	"ghostbot/cmd/ghostbot/vault"
	"ghostbot/store"
	"ghostbot/store/file"
)

// auditFlags are the flags of the audit verbs.
type auditFlags struct {
	json, stream  bool
	head, rcaFile string
	keyFile       string
	output        string
	by, reason    string
}

// auditVerb checks, prints, bundles or reports the journals of one case.
func auditVerb(ctx context.Context, c *cli, args []string) error {
	var f auditFlags
	rest, err := c.flags("audit", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&f.json, "json", false, "print JSON; with show the exact lines")
		fs.BoolVar(&f.stream, "stream", false, "read the journals in Redis, not the files here")
		fs.StringVar(&f.head, "head", "", "verify: the case must have had this head of 32 or 64 digits: `HEX`")
		fs.StringVar(&f.rcaFile, "rca", "", "verify: hold a report against the journals: `FILE`")
		fs.StringVar(&f.keyFile, "key-file", os.Getenv("GHOST_JOURNAL_KEY_FILE"), "keys of the journals, separated by commas, in place of GHOST_JOURNAL_KEY_FILE: `FILE`")
		fs.StringVar(&f.output, "o", "", "export: where to write the archive: `FILE`")
		fs.StringVar(&f.by, "by", "", "delete: who wants it: `NAME`")
		fs.StringVar(&f.reason, "reason", "", "delete: why: `TEXT`")
	})
	if err != nil {
		return err
	}
	if len(rest) != 2 {
		return usageError("audit wants a verb and a case, as in audit verify ghost_20260314_104512, got %d arguments", len(rest))
	}
	if err := f.check(rest[0], rest[1]); err != nil {
		return err
	}
	keys, err := keyring.Keys(f.keyFile)
	if err != nil {
		return fail(exitUsage, "--key-file: %w", err)
	}
	if f.stream {
		drop, err := pull(ctx, c, rest[1])
		if err != nil {
			return err
		}
		defer drop()
	}
	ring, err := keyring.New(c.audits(), keys)
	if err != nil {
		return fail(exitNegative, "%w", err)
	}
	switch rest[0] {
	case "verify":
		return auditVerify(c, rest[1], f, ring)
	case "show":
		return auditShow(c, rest[1], f)
	case "export":
		return auditExport(c, rest[1], f, ring)
	case "rca":
		return auditRCA(c, rest[1], f, ring)
	case "delete":
		return auditDelete(ctx, c, rest[1], f, ring)
	case "sign":
		return auditSign(ctx, c, rest[1], f, ring)
	}
	return nil
}

// pull makes the verbs read what Redis has of the journals instead of the files here.
func pull(ctx context.Context, c *cli, sid string) (drop func(), err error) {
	cfg, err := read()
	if err != nil {
		return nil, err
	}
	if cfg.RedisURL == "" {
		return nil, usageError("--stream: GHOST_REDIS_URL names no Redis")
	}
	if c.auditDir, err = os.MkdirTemp("", "ghostbot-stream-"); err != nil {
		return nil, err
	}
	drop = func() { os.RemoveAll(c.auditDir) }
	if err := home.Pull(ctx, home.Options{Redis: cfg.redis()}, sid, c.auditDir); err != nil {
		drop()
		return nil, fail(exitUnavailable, "%w", err)
	}
	return drop, nil
}

// signStore is what audit sign takes besides the register: a store from before its
// values had codes, whose journals have a key.
const signStore = "store"

// auditSign introduces a key into a state directory that nobody serves.
func auditSign(ctx context.Context, c *cli, sid string, f auditFlags, ring *keyring.Ring) error {
	if f.keyFile == "" {
		return usageError("audit sign: --key-file names no key (accepted: a file with 32 bytes or more)")
	}
	if there, err := hasStore(c.state()); err != nil || !there {
		return fail(exitUnavailable, "state directory: there is nothing in %s: set GHOST_JOURNAL_KEY_FILE before the first start", c.state())
	}
	db, err := file.Open(c.state(), file.Options{})
	if err != nil {
		return fail(exitUnavailable, "state directory: %w", err)
	}
	defer db.Close()
	l, err := db.Acquire(ctx, store.Deployment, "sign", time.Hour)
	if errors.Is(err, store.ErrHeld) {
		return fail(exitUnavailable, "another ghostbot serves this state directory: stop it first")
	}
	if err != nil {
		return fail(exitUnavailable, "state directory: %w", err)
	}
	defer db.Release(context.WithoutCancel(ctx), l)
	n, err := ring.Seal(db).SealAll(ctx) // first: the entry of the register ends it
	if err != nil {
		return fail(exitUnavailable, "state directory: %w", err)
	}
	if sid == signStore {
		fmt.Fprintf(c.out, "ok  %d stored values that had no code have one now\n", n)
		return nil
	}
	k, err := ring.Introduce(ctx, audit.Options{Fence: l.Fence, Stream: ledger.Stream{DB: db, Scope: store.Deployment, Fence: l.Fence}})
	if err != nil {
		return fail(exitNegative, "%w", err)
	}
	if f.json {
		return encode(c.out, k)
	}
	fmt.Fprintf(c.out, "ok  key %s authenticates every line from now on; the heads of %d cases from before are signed\n", oneLine(k.KeyID), len(k.Unsigned))
	return nil
}

// check refuses what the verb cannot take before anything is read.
func (f auditFlags) check(verb, sid string) error {
	if !slices.Contains([]string{"verify", "show", "export", "rca", "sign", "delete"}, verb) {
		return usageError("audit: %q is not a verb (accepted: verify show export rca sign delete)", verb)
	}
	if verb == "sign" && sid == signStore {
		return nil
	}
	if sid != audit.Register && audit.FileName(sid, audit.Case) == "" {
		return usageError("audit %s: %q is not a case (accepted: ghost_YYYYMMDD_HHMMSS, perhaps with -2; register with verify and show)", verb, sid)
	}
	if sid == audit.Register && (verb == "export" || verb == "rca" || verb == "delete") {
		return usageError("audit %s: register is not a case (accepted: ghost_YYYYMMDD_HHMMSS, perhaps with -2)", verb)
	}
	if verb == "sign" && sid != audit.Register {
		return usageError("audit sign: %q is not the register, which a key is introduced into (accepted: register, or store)", sid)
	}
	for _, x := range []struct{ name, value, verb string }{{"--head", f.head, "verify"}, {"--rca", f.rcaFile, "verify"}, {"-o", f.output, "export"}, {"--by", f.by, "delete"}, {"--reason", f.reason, "delete"}} {
		if x.value != "" && x.verb != verb {
			return usageError("audit %s: %s is a flag of audit %s", verb, x.name, x.verb)
		}
	}
	if f.head != "" {
		if err := audit.CheckHead(f.head); err != nil {
			return usageError("--head: %v", err)
		}
	}
	return nil
}

func auditVerify(c *cli, sid string, f auditFlags, ring *keyring.Ring) error {
	keys, err := vault.Env()
	if err != nil {
		return usageError("%w", err)
	}
	r, err := evidence.Verify(ring, sid, f.rcaFile, keys, audit.VerifyOptions{Head: f.head})
	switch {
	case errors.Is(err, evidence.ErrNoReport):
		return usageError("--rca: %v", err)
	case err != nil:
		return err
	}
	if !r.OK && r.Records == 0 && !f.json {
		if _, err := audit.Read(c.audits(), sid); errors.Is(err, fs.ErrNotExist) {
			return unknownCase(c, sid)
		}
	}
	if f.json {
		if err := encode(c.out, r); err != nil {
			return err
		}
	} else {
		r.Print(c.out, oneLine)
	}
	if !r.OK {
		return &exitError{code: exitNegative, err: errors.New("")}
	}
	return nil
}

func unknownCase(c *cli, sid string) error {
	if why := forget.Tombstone(c.audits(), sid); why != "" {
		return fail(exitNegative, "%s", why)
	}
	return fail(exitNegative, "unknown case: there are no journals of %s in %s", sid, c.audits())
}

func entriesOf(c *cli, sid string) ([]audit.Entry, error) {
	entries, err := audit.Read(c.audits(), sid)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, unknownCase(c, sid)
	case err != nil:
		return nil, fail(exitNegative, "%w", err)
	}
	return entries, nil
}

// auditShow prints the entries, one line each, oldest first.
func auditShow(c *cli, sid string, f auditFlags) error {
	entries, err := entriesOf(c, sid)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(c.out)
	for _, e := range entries {
		if f.json {
			w.Write(append(e.Line(), '\n'))
			continue
		}
		fmt.Fprintf(w, "%s  %s  %-5s %-11s %s\n", e.ID(), e.Time.Format("15:04:05.000"), oneLine(e.Journal), oneLine(e.Kind), short(oneLine(string(e.Body)), 400))
	}
	return w.Flush()
}

func auditRCA(c *cli, sid string, f auditFlags, ring *keyring.Ring) error {
	if _, err := entriesOf(c, sid); err != nil {
		return err
	}
	r, err := buildReport(ring, sid)
	if err != nil {
		return err
	}
	if f.json {
		return encode(c.out, partsOf(sid, r))
	}
	_, err = io.WriteString(c.out, r.Markdown)
	return err
}

// reportParts is the JSON form of a report; its lists are never null.
type reportParts struct {
	SessionID   string        `json:"session_id"`
	Title       string        `json:"title"`
	Verdict     string        `json:"verdict"`
	Confidence  string        `json:"confidence"`
	Summary     string        `json:"summary"`
	Causes      []agent.Cause `json:"causes"`
	Actions     []string      `json:"actions"`
	Gaps        []string      `json:"gaps"`
	Unsupported []string      `json:"unsupported"`
	Cited       []string      `json:"cited"`
	Markdown    string        `json:"markdown"`
}

func partsOf(sid string, r rca.Report) reportParts {
	return reportParts{sid, r.Title, r.Verdict, r.Confidence, r.Summary, list(r.Causes), list(r.Actions), list(r.Gaps),
		list(r.Unsupported), list(r.Cited), r.Markdown}
}

func list[T any](in []T) []T { return append([]T{}, in...) }

// auditExport writes a gzipped tar of the journals and the report, with a
// manifest of their hashes.
func auditExport(c *cli, sid string, f auditFlags, ring *keyring.Ring) error {
	if _, err := entriesOf(c, sid); err != nil {
		return err
	}
	if f.output == "" {
		f.output = sid + ".tar.gz"
	}
	m, data, err := evidence.Bundle(ring, sid, filepath.Base(reportPath("", sid)))
	if err != nil {
		return err
	}
	if err := writeFile(f.output, data); err != nil {
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EIO) {
			return err
		}
		return usageError("-o: %v (accepted: a file in a directory that can be written)", err)
	}
	if f.json {
		return encode(c.out, m)
	}
	fmt.Fprintf(c.out, "%s: %d files, head %s\n", f.output, len(m.Files), m.Verified.Head)
	return nil
}
