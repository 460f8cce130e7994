// Package sealed is a store whose values carry a message authentication code, so
// that whoever can write the directory or the database, but has no key, can
// forge no answer of a person.
//
// A value is kept as
//
//	{"kid":KEY ID,"mac":"64 hex digits","v":VALUE AS GIVEN}
//
// The code is HMAC-SHA-256 (RFC 2104) over key id, scope, name and value, with a key
// derived from that of the journals: a value is bound to its place, and no code of a
// journal line is one of a value. A value that comes without a code, or with one of
// no known key, is never shown: reading it is an error that wraps [ErrUnsealed], a list
// leaves it out, as if its forger had deleted what was there.
//
// Three things it does not do. The session file (ghost_session) stays readable as it
// is: it is an index over the journals with a checksum of its own. Deletion and
// the return of an older value of the same key are not seen here: the journals, which
// say what was decided and started, show those. And without keys it checks nothing: it
// takes codes off, so that read-only verbs work, and writes values as given.
package sealed

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ghostbot/store"
)

// ErrSealing means that the sealing of a store from before it had a key was interrupted.
var ErrSealing = errors.New("not all values have got a code")

// ErrUnsealed means that a value carries no code of a known key.
var ErrUnsealed = errors.New("no key of this deployment vouches for the stored value")

// Key authenticates values. ID is written beside each code.
type Key struct {
	ID     string
	Secret []byte
}

// DB is a store with sealed values.
type DB struct {
	store.DB
	// Refused, if set, is told of every value that a list leaves out, once for each key.
	Refused func(error)
	keys    []Key // the first one signs
	told    sync.Map
}

// New seals what db keeps with the first key, and accepts codes of all.
func New(db store.DB, keys []Key) *DB {
	d := &DB{DB: db}
	for _, k := range keys {
		h := hmac.New(sha256.New, k.Secret)
		h.Write([]byte("ghostbot sealed values 1"))
		d.keys = append(d.keys, Key{ID: k.ID, Secret: h.Sum(nil)})
	}
	return d
}

// Tells is [store.Tells] of what is sealed.
func (d *DB) Tells() bool { return store.Tells(d.DB) }

// Clock is [store.Clock] of what is sealed.
func (d *DB) Clock() time.Time { return store.Clock(d.DB) }

// Again is [store.Again] of what is sealed.
func (d *DB) Again(ctx context.Context, scope, owner string, ttl time.Duration) (store.Lease, error) {
	return store.Again(ctx, d.DB, scope, owner, ttl)
}

// Regain is [store.Regain] of what is sealed.
func (d *DB) Regain(ctx context.Context, l store.Lease) (store.Lease, error) {
	return store.Regain(ctx, d.DB, l)
}

// Get is [store.DB.Get].
func (d *DB) Get(ctx context.Context, k store.Key) (store.Value, error) {
	v, err := d.DB.Get(ctx, k)
	if err != nil {
		return v, err
	}
	return d.open(v)
}

// Put is [store.DB.Put].
func (d *DB) Put(ctx context.Context, k store.Key, data []byte, want store.Version) (store.Version, error) {
	return d.DB.Put(ctx, k, d.seal(k, data), want)
}

// Once is [store.DB.Once].
func (d *DB) Once(ctx context.Context, k store.Key, data []byte) (store.Value, bool, error) {
	v, fresh, err := d.DB.Once(ctx, k, d.seal(k, data))
	if err != nil {
		return v, fresh, err
	}
	v, err = d.open(v)
	return v, fresh, err
}

// Commit is [store.DB.Commit].
func (d *DB) Commit(ctx context.Context, c store.Commit) error {
	writes := make([]store.Write, len(c.Writes))
	for i, w := range c.Writes {
		writes[i] = store.Write{Key: w.Key, Data: d.seal(w.Key, w.Data)}
	}
	c.Writes = writes
	return d.DB.Commit(ctx, c)
}

// List is [store.DB.List], without what no key vouches for.
func (d *DB) List(ctx context.Context, scope, prefix string) ([]store.Value, error) {
	vs, err := d.DB.List(ctx, scope, prefix)
	if err != nil {
		return nil, err
	}
	out := vs[:0]
	for _, v := range vs {
		opened, err := d.open(v)
		if err == nil {
			out = append(out, opened)
		} else if _, told := d.told.LoadOrStore(v.Key, true); d.Refused != nil && !told {
			d.Refused(err)
		}
	}
	return out, nil
}

// Check says that a scope must not be used with these keys: none of its values has a code, as before there
// was a key, or one has a code of another key, as when a key was taken away too early; or [DB.SealAll] was
// interrupted. What somebody else wrote
// among them is left to [DB.List]: it keeps nobody from the rest.
func (d *DB) Check(ctx context.Context, scope string) error {
	vs, err := d.DB.List(ctx, scope, "")
	if err != nil {
		return err
	}
	var bad error
	good := 0
	for _, v := range vs {
		_, err := d.open(v)
		id, _, _, coded := split(v.Data)
		if err != nil && coded && !d.has(id) {
			return err
		}
		if err == nil && coded && v.Key == sealing {
			return ErrSealing
		}
		if err == nil && coded { // the session file has none, and says nothing about the others
			good++
		} else if err != nil && bad == nil {
			bad = err
		}
	}
	if good > 0 {
		return nil
	}
	return bad
}

func (d *DB) has(id string) bool {
	return slices.ContainsFunc(d.keys, func(k Key) bool { return k.ID == id })
}

// SealAll gives every value that has no code one of the first key, and returns how
// many. It vouches for what is there: nobody else may write meanwhile. Until it has
// come to its end, run again after an interruption if need be, [DB.Check] refuses the deployment: lists would
// leave out what has no code yet.
func (d *DB) SealAll(ctx context.Context) (n int, err error) {
	if len(d.keys) == 0 {
		return 0, errors.New("seal the store: there is no key")
	}
	mark, err := d.DB.Get(ctx, sealing)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, fmt.Errorf("seal the store: %w", err)
	}
	mark.Version, err = d.DB.Put(ctx, sealing, d.seal(sealing, []byte("true")), mark.Version)
	if err != nil {
		return 0, fmt.Errorf("seal the store: %w", err)
	}
	scopes, err := d.DB.Scopes(ctx)
	if err != nil {
		return 0, fmt.Errorf("seal the store: %w", err)
	}
	for _, scope := range scopes {
		vs, err := d.DB.List(ctx, scope, "")
		if err != nil {
			return n, fmt.Errorf("seal the store: %w", err)
		}
		for _, v := range vs {
			if _, _, _, ok := split(v.Data); ok || plain(v.Key) {
				continue
			}
			if _, err := d.DB.Put(ctx, v.Key, d.seal(v.Key, v.Data), v.Version); err != nil {
				return n, fmt.Errorf("seal %s: %w", v.Key, err)
			}
			n++
		}
	}
	end := store.Commit{Scope: sealing.Scope, Guards: []store.Guard{{Key: sealing, Version: mark.Version}}, Writes: []store.Write{{Key: sealing}}}
	if err := d.DB.Commit(ctx, end); err != nil {
		return n, fmt.Errorf("seal the store: %w", err)
	}
	return n, nil
}

// sealing is there while [DB.SealAll] has not come to its end.
var sealing = store.Key{Scope: store.Deployment, Name: "sealing"}

// plain reports whether a value is kept as given.
func plain(k store.Key) bool { return k.Name == "ghost_session" }

const macName, valueName = `,"mac":"`, `","v":`

func (d *DB) seal(k store.Key, data []byte) []byte {
	if data == nil || len(d.keys) == 0 || plain(k) {
		return data
	}
	id, _ := json.Marshal(d.keys[0].ID)
	var b bytes.Buffer
	b.Grow(len(data) + len(id) + 96)
	fmt.Fprintf(&b, `{"kid":%s%s%x%s`, id, macName, mac(d.keys[0], k, data), valueName)
	b.Write(data)
	b.WriteByte('}')
	return b.Bytes()
}

// split takes a kept value apart; ok is false for one that was never sealed.
func split(kept []byte) (id string, code, data []byte, ok bool) {
	rest, ok := bytes.CutPrefix(kept, []byte(`{"kid":`))
	if !ok {
		return "", nil, nil, false
	}
	quoted, rest, ok := bytes.Cut(rest, []byte(macName)) // no raw quote stands inside a JSON string
	if !ok || json.Unmarshal(quoted, &id) != nil {
		return "", nil, nil, false
	}
	digits, rest, ok := bytes.Cut(rest, []byte(valueName))
	if code, err := hex.DecodeString(string(digits)); ok && err == nil && len(code) == sha256.Size {
		data, ok = bytes.CutSuffix(rest, []byte("}"))
		return id, code, data, ok
	}
	return "", nil, nil, false
}

func (d *DB) open(v store.Value) (store.Value, error) {
	if plain(v.Key) {
		return v, nil
	}
	id, code, data, ok := split(v.Data)
	if len(d.keys) == 0 {
		if ok {
			v.Data = data
		}
		return v, nil
	}
	if !ok {
		return store.Value{}, fmt.Errorf("%s: %w: it carries no code", v.Key, ErrUnsealed)
	}
	for _, k := range d.keys {
		if k.ID == id && hmac.Equal(code, mac(k, v.Key, data)) {
			v.Data = data
			return v, nil
		}
	}
	return store.Value{}, fmt.Errorf("%s: %w: its code is not one of key %.64q", v.Key, ErrUnsealed, id)
}

func mac(k Key, at store.Key, data []byte) []byte {
	h := hmac.New(sha256.New, k.Secret)
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00", k.ID, at.Scope, at.Name)
	h.Write(data)
	return h.Sum(nil)
}
