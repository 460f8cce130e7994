package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ghostbot/agent"
	"ghostbot/agent/rca"
	"ghostbot/audit"
)

// auditFlags are the flags of the audit verbs.
type auditFlags struct {
	json          bool
	head, rcaFile string
	keyFile       string
	output        string
}

// auditVerb checks, prints, bundles or reports the journals of one case.
func auditVerb(_ context.Context, c *cli, args []string) error {
	var f auditFlags
	rest, err := c.flags("audit", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&f.json, "json", false, "")
		fs.StringVar(&f.head, "head", "", "")
		fs.StringVar(&f.rcaFile, "rca", "", "")
		fs.StringVar(&f.keyFile, "key-file", os.Getenv("GHOST_JOURNAL_KEY_FILE"), "")
		fs.StringVar(&f.output, "o", "", "")
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
	var keys []audit.Key
	if f.keyFile != "" {
		k, err := journalKey(f.keyFile)
		if err != nil {
			return fail(exitUsage, "--key-file: %w", err)
		}
		keys = []audit.Key{{ID: filepath.Base(f.keyFile), Secret: k}}
	}
	switch rest[0] {
	case "verify":
		return auditVerify(c, rest[1], f, keys)
	case "show":
		return auditShow(c, rest[1], f)
	case "export":
		return auditExport(c, rest[1], f, keys)
	case "rca":
		return auditRCA(c, rest[1], f, keys)
	}
	return nil
}

// check refuses what the verb cannot take before anything is read.
func (f auditFlags) check(verb, sid string) error {
	if !slices.Contains([]string{"verify", "show", "export", "rca"}, verb) {
		return usageError("audit: %q is not a verb (accepted: verify show export rca)", verb)
	}
	if sid != audit.Register && audit.FileName(sid, audit.Case) == "" {
		return usageError("audit %s: %q is not a case (accepted: ghost_YYYYMMDD_HHMMSS, perhaps with -2; register with verify and show)", verb, sid)
	}
	if sid == audit.Register && (verb == "export" || verb == "rca") {
		return usageError("audit %s: register is not a case (accepted: ghost_YYYYMMDD_HHMMSS, perhaps with -2)", verb)
	}
	for _, x := range []struct{ name, value, verb string }{{"--head", f.head, "verify"}, {"--rca", f.rcaFile, "verify"}, {"-o", f.output, "export"}} {
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

func auditVerify(c *cli, sid string, f auditFlags, keys []audit.Key) error {
	r := audit.Verify(c.audits(), sid, audit.VerifyOptions{Head: f.head, Keys: keys})
	why := r.Why
	if r.OK && f.rcaFile != "" {
		missing, err := missingCitations(c.audits(), sid, f.rcaFile)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			r.OK, why = false, "the report cites entries that do not exist: "+strings.Join(missing, " ")
		}
	}
	r.Why = why
	if f.json {
		if err := encode(c.out, r); err != nil {
			return err
		}
	} else if r.OK {
		fmt.Fprintf(c.out, "ok  %s: %d entries, head %s\n", sid, r.Records, r.Head)
	} else {
		fmt.Fprintf(c.out, "BAD %s: %s\n", sid, oneLine(why))
	}
	if !r.OK {
		return &exitError{code: exitNegative, err: errors.New("")}
	}
	return nil
}

func missingCitations(dir, sid, path string) ([]string, error) {
	md, err := os.ReadFile(path)
	if err != nil {
		return nil, usageError("--rca: %v", err)
	}
	entries, err := audit.Read(dir, sid)
	if err != nil {
		return nil, err
	}
	return rca.Verify(string(md), entries), nil
}

func entriesOf(c *cli, sid string) ([]audit.Entry, error) {
	entries, err := audit.Read(c.audits(), sid)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail(exitNegative, "there are no journals of %s in %s", sid, c.audits())
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

func auditRCA(c *cli, sid string, f auditFlags, keys []audit.Key) error {
	if _, err := entriesOf(c, sid); err != nil {
		return err
	}
	r, err := buildReport(c.audits(), sid, keys)
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

// manifestFile is one file of an export bundle.
type manifestFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// manifest describes an export bundle; it is the bundle's first member.
type manifest struct {
	SessionID string         `json:"session_id"`
	Made      time.Time      `json:"made"`
	Verified  audit.Report   `json:"verified"`
	Files     []manifestFile `json:"files"`
}

// auditExport writes a gzipped tar of the journals and the report, with a
// manifest of their hashes.
func auditExport(c *cli, sid string, f auditFlags, keys []audit.Key) error {
	if _, err := entriesOf(c, sid); err != nil {
		return err
	}
	if f.output == "" {
		f.output = sid + ".tar.gz"
	}
	m := manifest{SessionID: sid, Made: time.Now().UTC(), Verified: audit.Verify(c.audits(), sid, audit.VerifyOptions{Keys: keys})}
	bodies := map[string][]byte{}
	for _, name := range []string{audit.FileName(sid, audit.Case), audit.FileName(sid, audit.Shell), audit.FileName(sid, audit.Tasks), filepath.Base(reportPath("", sid))} {
		b, err := os.ReadFile(filepath.Join(c.audits(), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		bodies[name] = b
		m.Files = append(m.Files, manifestFile{Name: name, Size: int64(len(b)), SHA256: hex.EncodeToString(sum[:])})
	}
	data, err := bundle(m, bodies)
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

func bundle(m manifest, bodies map[string][]byte) ([]byte, error) {
	var buf strings.Builder
	gz := gzip.NewWriter(&buf)
	tw := tar.NewWriter(gz)
	head, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	add := func(name string, b []byte) error {
		if err := tw.WriteHeader(&tar.Header{Name: m.SessionID + "/" + name, Mode: 0o600, Size: int64(len(b)), ModTime: m.Made}); err != nil {
			return err
		}
		_, err := tw.Write(b)
		return err
	}
	if err := add("manifest.json", append(head, '\n')); err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		if err := add(f.Name, bodies[f.Name]); err != nil {
			return nil, err
		}
	}
	if err := tw.Close(); err != nil {
		return nil, err
	}
	if err := gz.Close(); err != nil {
		return nil, err
	}
	return []byte(buf.String()), nil
}
