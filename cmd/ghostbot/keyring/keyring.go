// Package keyring knows the keys that authenticate journals, and up to which entry
// each journal had none.
//
// The first key signs; the others verify what they signed, so that a key is changed by
// putting a new one in front of it. A key is introduced into a state directory that
// has journals by one entry of the register, signed with it:
//
//	keyed   {"kid": K, "unsigned": {SID: {"n": N, "head": H}, ...}}
//
// Up to entry N, where its head was H, a case may lack MACs; above it, and in cases that
// the entry does not name, every line has one. The register may lack them before
// that entry, which its own chain ties to it. Whoever has no key can neither
// move that border nor change what stands before it.
package keyring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"ghostbot/audit"
	"ghostbot/internal/input"
	"ghostbot/store"
	"ghostbot/store/sealed"
)

// KindKeyed is the entry of the register that introduces a key.
const KindKeyed = "keyed"

// ErrSigned means that the register has a key already.
var ErrSigned = errors.New("the journals have a key already: put the new one in front of it in GHOST_JOURNAL_KEY_FILE")

// ErrNoKey means that the register is authenticated, and that there is no key here.
var ErrNoKey = errors.New("names no key, and the journals here have one")

// Mark is where a key was introduced into one case.
type Mark struct {
	N    uint64 `json:"n"`    // the last entry without a MAC
	Head string `json:"head"` // of the case then
}

// Keyed is the body of a keyed entry.
type Keyed struct {
	KeyID    string          `json:"kid"`
	Unsigned map[string]Mark `json:"unsigned"`
}

// Ring is the keys of one audit directory.
type Ring struct {
	dir   string
	keys  []audit.Key
	marks map[string]Mark
}

// maxKey bounds a key file.
const maxKey = 64 << 10

// Keys reads key files, separated by commas: at least 32 bytes each, blanks at their
// ends apart. The name of a file is the id of its key.
func Keys(files string) ([]audit.Key, error) {
	var out []audit.Key
	for _, path := range strings.Split(files, ",") {
		if path = strings.TrimSpace(path); path == "" {
			continue
		}
		b, err := input.Secret(path, maxKey)
		if err != nil {
			return nil, fmt.Errorf("journal key: %w", err)
		}
		b = []byte(strings.TrimSpace(string(b)))
		if len(b) < 32 {
			return nil, fmt.Errorf("journal key %s: %d bytes are too few, at least 32 are needed", path, len(b))
		}
		for _, k := range out {
			if k.ID == filepath.Base(path) {
				return nil, fmt.Errorf("journal key %s: another key has the same file name, which is its id", path)
			}
		}
		out = append(out, audit.Key{ID: filepath.Base(path), Secret: b})
	}
	return out, nil
}

// New is the ring of an audit directory. With keys it reads off the register where
// they were introduced; a register that does not verify with them introduces nothing.
func New(dir string, keys []audit.Key) (*Ring, error) {
	r := &Ring{dir: dir, keys: keys, marks: map[string]Mark{}}
	if len(keys) == 0 {
		return r, nil
	}
	entries, err := audit.Read(dir, audit.Register)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read register: %w", err)
	}
	for _, e := range entries {
		if e.Kind != KindKeyed {
			continue
		}
		var k Keyed
		border := audit.VerifyOptions{Keys: keys, UnsignedTo: e.N - 1}
		if v := audit.Verify(dir, audit.Register, border); v.Verified < int(e.N) || json.Unmarshal(e.Body, &k) != nil || k.Unsigned == nil {
			break // forged, or of a key that is not here: nothing may lack a MAC
		}
		r.marks = k.Unsigned
		r.marks[audit.Register] = Mark{N: e.N - 1}
		break
	}
	return r, nil
}

// Writable refuses to go on without a key where the last entry of the register has one:
// a line without a MAC, once written, keeps out everybody who has the key, for good.
func (r *Ring) Writable() error {
	if len(r.keys) > 0 {
		return nil
	}
	entries, err := audit.Read(r.dir, audit.Register)
	if err != nil || len(entries) == 0 { // none yet, or damaged: whoever opens it says so
		return nil
	}
	if last := entries[len(entries)-1]; last.MAC != "" {
		return fmt.Errorf("%w (accepted: the file of key %q)", ErrNoKey, last.KeyID)
	}
	return nil
}

// Options are o with the keys of case o.SID.
func (r *Ring) Options(o audit.Options) audit.Options {
	o.Dir, o.Keys, o.UnsignedTo = r.dir, r.keys, r.marks[o.SID].N
	return o
}

// Open opens the journals of a case, unless what it had before its key is not what it
// was then.
func (r *Ring) Open(ctx context.Context, o audit.Options) (*audit.Log, error) {
	if m := r.marks[o.SID]; m.Head != "" {
		var heads audit.Heads
		at := ""
		v := audit.Verify(r.dir, o.SID, audit.VerifyOptions{Keys: r.keys, UnsignedTo: m.N, Each: follow(&heads, m, &at)})
		if v.Verified >= int(m.N) && at != m.Head {
			return nil, &audit.BrokenError{SID: o.SID, N: m.N, Why: whyMark}
		}
	}
	log, err := audit.Open(ctx, r.Options(o))
	if err != nil || r.marks[o.SID].Head == "" {
		return log, err
	}
	if v := r.Verify(o.SID, audit.VerifyOptions{}); !v.OK { // shorter than the mark, also with what the store still had
		log.Close()
		return nil, &audit.BrokenError{SID: o.SID, N: r.marks[o.SID].N, Why: v.Why}
	}
	return log, nil
}

const whyMark = "the entries from before the key was introduced are not those that it was introduced over"

// follow computes the head at a mark.
func follow(heads *audit.Heads, m Mark, at *string) func(audit.Entry) {
	return func(e audit.Entry) {
		if e.N <= m.N {
			if h := heads.Add(e); e.N == m.N {
				*at = h.Full
			}
		}
	}
}

// Verify checks the journals of a case with the keys of the ring.
func (r *Ring) Verify(sid string, o audit.VerifyOptions) audit.Report {
	m := r.marks[sid]
	o.Keys, o.UnsignedTo = r.keys, m.N
	if m.Head == "" {
		return audit.Verify(r.dir, sid, o)
	}
	var heads audit.Heads
	at, each := "", o.Each
	look := follow(&heads, m, &at)
	o.Each = func(e audit.Entry) {
		look(e)
		if each != nil {
			each(e)
		}
	}
	v := audit.Verify(r.dir, sid, o)
	if v.OK && at != m.Head {
		n := m.N
		v.OK, v.FirstBad, v.Why = false, &n, whyMark
	}
	return v
}

// Seal is db with values that the keys of the ring authenticate.
func (r *Ring) Seal(db store.DB) *sealed.DB {
	keys := make([]sealed.Key, len(r.keys))
	for i, k := range r.keys {
		keys[i] = sealed.Key{ID: k.ID, Secret: k.Secret}
	}
	return sealed.New(db, keys)
}

// At is the ring for the same journals in another directory.
func (r *Ring) At(dir string) *Ring { return &Ring{dir: dir, keys: r.keys, marks: r.marks} }

// Dir is where the journals are.
func (r *Ring) Dir() string { return r.dir }

// Introduce makes the first key authenticate every line from now on, and records what
// there is before. The caller holds the register's lease; o has its fence and stream.
func (r *Ring) Introduce(ctx context.Context, o audit.Options) (Keyed, error) {
	if len(r.keys) == 0 {
		return Keyed{}, errors.New("introduce a key: there is none")
	}
	k := Keyed{KeyID: r.keys[0].ID, Unsigned: map[string]Mark{}}
	signed := false
	v := audit.Verify(r.dir, audit.Register, audit.VerifyOptions{Each: func(e audit.Entry) { signed = signed || e.MAC != "" }})
	switch {
	case v.Err != nil:
		return k, fmt.Errorf("introduce a key: %w", v.Err)
	case !v.OK:
		return k, fmt.Errorf("introduce a key: register: %s", v.Why)
	case signed:
		return k, ErrSigned
	}
	sids, err := audit.Sessions(r.dir)
	if err != nil {
		return k, fmt.Errorf("introduce a key: %w", err)
	}
	for _, sid := range sids {
		c := audit.Verify(r.dir, sid, audit.VerifyOptions{})
		if !c.OK {
			return k, fmt.Errorf("introduce a key: %s: %s", sid, c.Why)
		}
		k.Unsigned[sid] = Mark{N: uint64(c.Verified), Head: c.Head}
	}
	o.Dir, o.SID, o.Keys, o.UnsignedTo = r.dir, audit.Register, r.keys, uint64(v.Verified)
	log, err := audit.Open(ctx, o)
	if err != nil {
		return k, fmt.Errorf("introduce a key: %w", err)
	}
	defer log.Close()
	if _, _, err := log.Journal(audit.Register).Append(ctx, KindKeyed, k); err != nil {
		return k, fmt.Errorf("introduce a key: %w", err)
	}
	return k, nil
}
