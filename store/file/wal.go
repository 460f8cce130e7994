package file

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"ghostbot/store"
)

// generation names one write-ahead file. It is random, so that nothing a value
// contains can look like a record of the file it ends up in.
type generation [16]byte

const (
	walMagic  = "ghostwal "
	walHeader = len(walMagic) + 32 + 1
	recMagic  = "rec "
	recHeader = len(recMagic) + 8 + 1 + 16 + 1
)

func (g generation) header() []byte { return []byte(walMagic + hex.EncodeToString(g[:]) + "\n") }

func parseHeader(b []byte) (g generation, ok bool) {
	if len(b) < walHeader || !bytes.HasPrefix(b, []byte(walMagic)) || b[walHeader-1] != '\n' {
		return g, false
	}
	n, err := hex.Decode(g[:], b[len(walMagic):walHeader-1])
	return g, err == nil && n == len(g) && bytes.Equal(g.header(), b[:walHeader])
}

// record is one step that is applied as a whole.
type record struct {
	Base   *base
	Lease  *lease
	Writes []store.Write
	Lines  []store.Line
	At     []int64 // where the data of each line stands in the file
	size   int     // bytes in the file
}

// base opens every write-ahead file: what earlier ones have left behind.
// The record's lines are those that are still kept.
type base struct {
	Fence uint64            `json:"fence"`
	Owner string            `json:"owner"`
	Tails map[string]string `json:"tails"`
	Last  []uint64          `json:"last,omitempty"` // numbers of the lines of the last commit that had lines
}

// lease is the private twin of a lease as it is written to disk.
type lease struct {
	Owner   string `json:"owner"`
	Fence   uint64 `json:"fence"`
	Expires int64  `json:"expires"` // Unix nanoseconds of the store's clock; 0: released
}

// meta is the first line of a payload. Members are only ever added.
type meta struct {
	Base   *base       `json:"base,omitempty"`
	Lease  *lease      `json:"lease,omitempty"`
	Writes []writeMeta `json:"writes,omitempty"`
	Lines  []lineMeta  `json:"lines,omitempty"`
}

type writeMeta struct {
	Name string `json:"name"`
	Size int    `json:"size"` // -1: deleted
}

type lineMeta struct {
	Journal string `json:"journal"`
	N       uint64 `json:"n"`
	Prev    string `json:"prev"`
	Hash    string `json:"hash"`
	Size    int    `json:"size"`
}

// encode is the record as it stands in the file of generation g.
func (r record) encode(g generation) []byte {
	m := meta{Base: r.Base, Lease: r.Lease}
	size := 0
	for _, w := range r.Writes {
		n := len(w.Data)
		if w.Data == nil {
			n = -1
		}
		m.Writes = append(m.Writes, writeMeta{w.Key.Name, n})
		size += len(w.Data)
	}
	for _, l := range r.Lines {
		m.Lines = append(m.Lines, lineMeta{l.Journal, l.N, l.Prev, l.Hash, len(l.Data)})
		size += len(l.Data)
	}
	head, err := json.Marshal(m)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	b := make([]byte, recHeader, recHeader+len(head)+size+2)
	b = append(append(b, head...), '\n')
	for _, w := range r.Writes {
		b = append(b, w.Data...)
	}
	for _, l := range r.Lines {
		b = append(b, l.Data...)
	}
	payload := b[recHeader:]
	copy(b, fmt.Sprintf("%s%08x %s\n", recMagic, len(payload), checksum(g, payload)))
	return append(b, '\n')
}

func checksum(g generation, payload []byte) string {
	h := sha256.New()
	h.Write(g[:])
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(payload))))
	h.Write(payload)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// errDamaged says that a write-ahead file is wrong in front of its end.
var errDamaged = errors.New("write-ahead file is damaged")

// parseRecords reads the records in b, which stand at offset at of the file.
// used is where the last good one ends; what follows it was never
// acknowledged. Damage in front of a good record is an error.
func parseRecords(g generation, scope string, b []byte, at int64) (records []record, used int, err error) {
	for used < len(b) {
		r, n, ok := parseRecord(g, scope, b[used:], at+int64(used))
		if !ok {
			break
		}
		records = append(records, r)
		used += n
	}
	for i := used + 1; i < len(b); i++ {
		j := bytes.Index(b[i:], []byte(recMagic))
		if j < 0 {
			break
		}
		i += j
		if _, _, ok := parseRecord(g, scope, b[i:], 0); ok {
			return nil, 0, fmt.Errorf("%w: no record at offset %d, but one at %d", errDamaged, at+int64(used), at+int64(i))
		}
	}
	return records, used, nil
}

// parseRecord reads one record and says how long it is.
func parseRecord(g generation, scope string, b []byte, at int64) (r record, n int, ok bool) {
	if len(b) < recHeader || !bytes.HasPrefix(b, []byte(recMagic)) {
		return r, 0, false
	}
	length, err := strconv.ParseUint(string(b[len(recMagic):len(recMagic)+8]), 16, 32)
	n = recHeader + int(length) + 1
	if err != nil || n > len(b) || b[n-1] != '\n' || b[recHeader-1] != '\n' {
		return r, 0, false
	}
	payload := b[recHeader : n-1]
	if want := fmt.Sprintf("%s%08x %s\n", recMagic, length, checksum(g, payload)); want != string(b[:recHeader]) {
		return r, 0, false
	}
	r, ok = parsePayload(scope, payload, at+int64(recHeader))
	r.size = n
	return r, n, ok
}

func parsePayload(scope string, b []byte, at int64) (r record, ok bool) {
	head, rest, found := bytes.Cut(b, []byte("\n"))
	var m meta
	if !found || json.Unmarshal(head, &m) != nil {
		return r, false
	}
	r.Base, r.Lease = m.Base, m.Lease
	take := func(n int) (data []byte, from int64) {
		if ok = ok && n >= 0 && n <= len(rest); !ok {
			return nil, 0
		}
		from = at + int64(len(b)-len(rest))
		data, rest = rest[:n:n], rest[n:]
		return data, from
	}
	ok = true
	for _, w := range m.Writes {
		write := store.Write{Key: store.Key{Scope: scope, Name: w.Name}}
		if w.Size >= 0 {
			write.Data, _ = take(w.Size)
		}
		ok = ok && write.Key.Check() == nil
		r.Writes = append(r.Writes, write)
	}
	for _, l := range m.Lines {
		data, from := take(l.Size)
		r.Lines = append(r.Lines, store.Line{Journal: l.Journal, N: l.N, Prev: l.Prev, Hash: l.Hash, Data: data})
		r.At = append(r.At, from)
	}
	return r, ok && len(rest) == 0
}
