package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// MaxLine is the longest line that is written or read, without its newline.
const MaxLine = 16 << 20

// timeForm has all nine digits, so that equal times are equal bytes.
const timeForm = "2006-01-02T15:04:05.000000000Z"

// zeros is the previous hash of a journal's first line.
const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// wire is a line as encoding/json reads it. Its members never change; a new one
// goes behind "mac" and is absent when empty, so that old lines stay valid.
type wire struct {
	SessionID string          `json:"session_id"`
	Journal   string          `json:"journal"`
	N         uint64          `json:"n"`
	Time      string          `json:"time"`
	Fence     uint64          `json:"fence"`
	Kind      string          `json:"kind"`
	Body      json.RawMessage `json:"body"`
	Prev      string          `json:"prev"`
	Hash      string          `json:"hash"`
	KeyID     string          `json:"kid"`
	MAC       string          `json:"mac"`
}

// Line is the entry's line in its journal, without the newline.
func (e Entry) Line() []byte {
	b := e.hashed()
	b = append(b, `,"hash":"`...)
	b = append(b, e.Hash...)
	b = append(b, '"')
	if e.KeyID != "" || e.MAC != "" {
		b = appendString(append(b, `,"kid":`...), e.KeyID)
		b = appendString(append(b, `,"mac":`...), e.MAC)
	}
	return append(b, '}')
}

// hashed is the part of the line that the hash covers.
func (e Entry) hashed() []byte {
	b := make([]byte, 0, len(e.Body)+512)
	b = appendString(append(b, `{"session_id":`...), e.SessionID)
	b = appendString(append(b, `,"journal":`...), e.Journal)
	b = strconv.AppendUint(append(b, `,"n":`...), e.N, 10)
	b = append(b, `,"time":"`...)
	b = e.Time.UTC().AppendFormat(b, timeForm)
	b = strconv.AppendUint(append(b, `","fence":`...), e.Fence, 10)
	b = appendString(append(b, `,"kind":`...), e.Kind)
	b = append(append(b, `,"body":`...), e.Body...)
	return appendString(append(b, `,"prev":`...), e.Prev)
}

// appendString appends s as JSON, leaving <, > and & readable.
func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, _ := marshal(s) // a string always encodes
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// marshal is json.Marshal without escaping for HTML. Invalid UTF-8, which
// encoding/json replaces in strings but not in raw messages, is replaced.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	b := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\ufffd"))
	}
	return b, nil
}

// seal fills in hash and, with a key, the MAC.
func (e *Entry) seal(keys []Key) {
	sum := sha256.Sum256(e.hashed())
	e.Hash = hex.EncodeToString(sum[:])
	if len(keys) > 0 {
		e.KeyID, e.MAC = keys[0].ID, mac(keys[0], e.Hash)
	}
}

func mac(k Key, hash string) string {
	m := hmac.New(sha256.New, k.Secret)
	m.Write([]byte(hash))
	return hex.EncodeToString(m.Sum(nil))
}

// parse reads a line without checking anything but its JSON.
func parse(line []byte) (Entry, error) {
	if !utf8.Valid(line) {
		return Entry{}, errors.New("not valid UTF-8")
	}
	var w wire
	if err := json.Unmarshal(line, &w); err != nil {
		return Entry{}, fmt.Errorf("not readable: %w", err)
	}
	t, err := time.Parse(timeForm, w.Time)
	if err != nil || w.N == 0 {
		return Entry{}, errors.New("not a journal line")
	}
	return Entry{
		SessionID: w.SessionID, Journal: w.Journal, N: w.N, Time: t, Fence: w.Fence,
		Kind: w.Kind, Body: w.Body, Prev: w.Prev, Hash: w.Hash, KeyID: w.KeyID, MAC: w.MAC,
	}, nil
}

// Parse reads a line (without its newline) and checks that it has the exact
// form of the format and that its hash matches its content. It cannot check
// what the line follows, nor its MAC.
func Parse(line []byte) (Entry, error) {
	e, err := parse(line)
	if err != nil {
		return Entry{}, err
	}
	return e, e.check(line)
}

// check compares the entry with the bytes it was read from. One entry has one
// line: everything else that JSON would accept (order, spaces, a member twice)
// is refused, so that two readers cannot disagree about a line.
func (e Entry) check(line []byte) error {
	var compact bytes.Buffer
	if json.Compact(&compact, e.Body) != nil || !bytes.Equal(compact.Bytes(), e.Body) || !bytes.Equal(e.Line(), line) {
		return errors.New("not in the exact form of a journal line")
	}
	if sum := sha256.Sum256(e.hashed()); hex.EncodeToString(sum[:]) != e.Hash {
		return errors.New("hash does not match its content")
	}
	return nil
}

// checkMAC is the last test of a line: with keys configured every line above
// unsignedTo carries a MAC that one of them made.
func (e Entry) checkMAC(keys []Key, unsignedTo uint64) error {
	if len(keys) == 0 {
		return nil
	}
	if e.KeyID == "" && e.MAC == "" {
		if e.N <= unsignedTo {
			return nil
		}
		return errors.New("carries no MAC")
	}
	for _, k := range keys {
		if k.ID == e.KeyID {
			if hmac.Equal([]byte(mac(k, e.Hash)), []byte(e.MAC)) {
				return nil
			}
			return fmt.Errorf("MAC was not made with key %q", k.ID)
		}
	}
	return fmt.Errorf("MAC names key %q, which is not configured", e.KeyID)
}

// checkKeys refuses keys that would authenticate nothing.
func checkKeys(keys []Key) error {
	seen := map[string]bool{}
	for _, k := range keys {
		switch {
		case k.ID == "" || !utf8.ValidString(k.ID):
			return errors.New("a journal key has no usable id")
		case seen[k.ID]:
			return fmt.Errorf("journal key %q is given twice", k.ID)
		case len(k.Secret) < 32:
			return fmt.Errorf("journal key %q has %d bytes, 32 or more are needed", k.ID, len(k.Secret))
		}
		seen[k.ID] = true
	}
	return nil
}
