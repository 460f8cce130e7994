package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"ghostbot/internal/beneath"
)

// ErrBroken is a line of the audit log that does not follow from the one before.
var ErrBroken = errors.New("the audit log is broken")

// Entry is one line of audit.jsonl. Its hash covers the line up to the hash,
// which includes the hash of the line before.
type Entry struct {
	N       int             `json:"n"`
	Time    time.Time       `json:"time"`
	AuditID string          `json:"audit_id"`
	Kind    string          `json:"kind"`
	Body    json.RawMessage `json:"body"`
	Prev    string          `json:"prev"`
	Hash    string          `json:"hash,omitempty"`
}

// zeros is the hash before the first line.
var zeros = strings.Repeat("0", 64)

func (e Entry) seal() ([]byte, string, error) {
	e.Hash = ""
	b, err := encode(e)
	if err != nil {
		return nil, "", err
	}
	b = bytes.TrimSuffix(bytes.TrimRight(b, "\n"), []byte("}"))
	sum := sha256.Sum256(b)
	hash := hex.EncodeToString(sum[:])
	return append(append(b, `,"hash":"`+hash+`"}`...), '\n'), hash, nil
}

// head is audit.head.json: how long the log is at least, and the hash that its last
// line had then. It is written after each line, so that a log from which lines were
// cut, all of them or some at the end, is seen to be broken; after a crash the log
// may be ahead of it.
type head struct {
	N    int    `json:"n"`
	Hash string `json:"hash"`
}

const headFile = "audit.head.json"

// readHead reads the head. Only a session whose manifest promises none has none.
func (x *Session) readHead() (head, error) {
	b, err := x.read(headFile)
	if errors.Is(err, fs.ErrNotExist) {
		if x.Manifest.AuditHead {
			return head{}, fmt.Errorf("%s is missing: %w", headFile, ErrBroken)
		}
		return head{Hash: zeros}, nil
	}
	h := head{N: -1}
	if err == nil && json.Unmarshal(b, &h) != nil || h.N < 0 && err == nil {
		err = fmt.Errorf("%s: %w", headFile, ErrBroken)
	}
	return h, err
}

func (x *Session) writeHead(h head) error {
	b, err := encode(h)
	if err != nil {
		return err
	}
	return x.write(headFile, b)
}

// Audit reads the log. bad is the number of the first line that does not fit, 0
// when all do; the entries are those before it. torn is the length of the last
// line when it was not written to its end.
func (x *Session) Audit() (entries []Entry, bad int, torn int, err error) {
	h, err := x.readHead() // before the log, which somebody may be extending
	if errors.Is(err, ErrBroken) {
		return nil, 1, 0, nil
	}
	if err != nil {
		return nil, 0, 0, fmt.Errorf("read audit log: %w", err)
	}
	b, err := x.read("audit.jsonl")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, 0, fmt.Errorf("read audit log: %w", err)
	}
	entries, bad, torn = parse(b)
	switch {
	case bad != 0:
	case len(entries) < h.N:
		bad = len(entries) + 1
	case h.N > 0 && entries[h.N-1].Hash != h.Hash:
		bad = h.N
	}
	return entries, bad, torn, nil
}

// parse reads the lines of a log as far as each follows from the one before.
func parse(b []byte) (entries []Entry, bad, torn int) {
	prev := zeros
	for n := 1; len(b) > 0; n++ {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole {
			return entries, 0, len(line)
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return entries, n, 0
		}
		again, hash, err := e.seal()
		if err != nil || e.N != n || e.Prev != prev || e.Hash != hash || !bytes.Equal(append(line, '\n'), again) {
			return entries, n, 0
		}
		entries, prev, b = append(entries, e), hash, rest
	}
	return entries, 0, 0
}

// Append adds a line and returns its audit id when it is durable. A log that is
// broken takes no line; the torn end of a crash is cut off, because what it
// announced never happened.
func (x *Session) Append(kind string, body any) (string, error) {
	id, err := x.append(kind, body)
	if err != nil {
		return "", fmt.Errorf("append to audit log of %s: %w", x.Manifest.SessionID, err)
	}
	return id, nil
}

// append holds a lock, because an approval may be recorded while a run goes on.
func (x *Session) append(kind string, body any) (string, error) {
	f, created, err := x.dir.OpenOrCreate("audit.jsonl")
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := lock(f); err != nil {
		return "", err
	}
	entries, bad, torn, err := x.Audit()
	if err != nil {
		return "", err
	}
	if bad != 0 {
		return "", fmt.Errorf("line %d: %w", bad, ErrBroken)
	}
	raw, err := encode(body)
	if err != nil {
		return "", err
	}
	now := x.store.Now().UTC()
	e := Entry{N: len(entries) + 1, Time: now, Kind: kind, Body: bytes.TrimRight(raw, "\n"), Prev: zeros}
	e.AuditID = fmt.Sprintf("ghost_%s_%03d", now.Format("20060102_150405"), e.N)
	if len(entries) > 0 {
		e.Prev = entries[len(entries)-1].Hash
	}
	line, hash, err := e.seal()
	if err == nil {
		err = x.extend(f, created, line, torn)
	}
	if err == nil && x.Manifest.AuditHead {
		err = x.writeHead(head{e.N, hash})
	}
	return e.AuditID, err
}

func (x *Session) extend(f *beneath.File, created bool, line []byte, torn int) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	if torn > 0 {
		if err := f.Truncate(size - int64(torn)); err != nil {
			return err
		}
		size -= int64(torn)
	}
	if _, err := f.WriteAt(line, size); err != nil {
		return err
	}
	if created {
		err = x.dir.Sync()
	}
	return errors.Join(err, f.Sync())
}

// Find looks up the entry with an audit id. An audit log that is broken anywhere
// proves nothing.
func (x *Session) Find(auditID string) (Entry, error) {
	entries, bad, _, err := x.Audit()
	if err != nil {
		return Entry{}, err
	}
	if bad != 0 {
		return Entry{}, fmt.Errorf("line %d: %w", bad, ErrBroken)
	}
	for _, e := range entries {
		if e.AuditID == auditID {
			return e, nil
		}
	}
	return Entry{}, fmt.Errorf("audit id %q: %w", auditID, fs.ErrNotExist)
}

// Lines are the raw lines of the log.
func (x *Session) Lines() ([]byte, error) {
	b, err := x.read("audit.jsonl")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return b, err
}
