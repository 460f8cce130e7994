package flow

import (
	"hash/maphash"

	"ghostbot/forensics/prefetch"
)

const (
	chunkBits = 9
	chunkSize = 1 << chunkBits
)

// Table maps keys to records of one type. The zero value is ready for use. It is
// not safe for concurrent use.
type Table[T any] struct {
	seed   uint64
	supply prefetch.Supply[[chunkSize]record[T]]
	_      [104]byte // who hashes or supplies, on another core, shares no line of a cache with what every look-up changes
	slots  []uint64  // upper half of the hash << 32 | index + 1
	chunks []*[chunkSize]record[T]
	free   []uint32
	n      int // records in use
	made   uint32
	last   uint32 // index + 1 of the record found last
}

type record[T any] struct {
	key  Key
	val  T
	used bool
	old  bool // a newer record has the same key
}

// Len is the number of records.
func (t *Table[T]) Len() int { return t.n }

func (t *Table[T]) at(i uint32) *record[T] { return &t.chunks[i>>chunkBits][i&(chunkSize-1)] }

// At returns the record with this index and its key.
func (t *Table[T]) At(i uint32) (*Key, *T) {
	r := t.at(i)
	return &r.key, &r.val
}

// Seed prepares the table for hashes. It must have been called before [Table.Hash] is,
// by other goroutines too.
func (t *Table[T]) Seed() {
	if t.seed == 0 {
		t.seed = maphash.Bytes(maphash.MakeSeed(), nil) | 1
	}
}

// Hash is the hash of a key in this table.
func (t *Table[T]) Hash(k *Key) uint64 { return k.Hash(t.seed) }

// Find returns the newest record of a key, with its index.
func (t *Table[T]) Find(k *Key) (uint32, *T) { return t.FindHash(k, k.Hash(t.seed)) }

// Slot is where the search for a hash begins; nil when there is nothing to search.
func (t *Table[T]) Slot(h uint64) *uint64 {
	if len(t.slots) == 0 {
		return nil
	}
	return &t.slots[h&uint64(len(t.slots)-1)]
}

// Guess is the index + 1 of a record that may have a key with this hash, or 0. It looks
// at nothing but the slots.
func (t *Table[T]) Guess(h uint64) uint32 {
	if len(t.slots) == 0 {
		return 0
	}
	mask := uint64(len(t.slots) - 1)
	for p := h & mask; ; p = (p + 1) & mask {
		if s := t.slots[p]; s == 0 || uint32(s>>32) == uint32(h>>32) {
			return uint32(s)
		}
	}
}

// FindGuess is FindHash of a key that a guess was made for.
func (t *Table[T]) FindGuess(k *Key, h uint64, guess uint32) (uint32, *T) {
	if guess != 0 {
		if r := t.at(guess - 1); r.used && !r.old && r.key.same(k) {
			return guess - 1, &r.val
		}
	}
	return t.FindHash(k, h)
}

// FindHash is Find of a key whose hash is known.
func (t *Table[T]) FindHash(k *Key, h uint64) (uint32, *T) {
	if t.last != 0 {
		if r := t.at(t.last - 1); r.key.same(k) {
			return t.last - 1, &r.val
		}
	}
	if len(t.slots) == 0 {
		return 0, nil
	}
	mask := uint64(len(t.slots) - 1)
	for p := h & mask; ; p = (p + 1) & mask {
		s := t.slots[p]
		if s == 0 {
			return 0, nil
		}
		if uint32(s>>32) != uint32(h>>32) {
			continue
		}
		if r := t.at(uint32(s) - 1); r.key.same(k) {
			t.last = uint32(s)
			return uint32(s) - 1, &r.val
		}
	}
}

// Supply has room ready for records that [Table.Add] will make. Another goroutine may do it meanwhile.
func (t *Table[T]) Supply() { t.supply.Make() }

// Add makes a record. An earlier record of the same key stays, and is found by its
// index only.
func (t *Table[T]) Add(k *Key) (uint32, *T) {
	if 4*(t.n+1) > 3*len(t.slots) {
		t.grow()
	}
	i := t.made
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else {
		if int(i>>chunkBits) == len(t.chunks) {
			t.chunks = append(t.chunks, t.supply.Take())
		}
		t.made++
	}
	r := t.at(i)
	*r = record[T]{}
	r.key, r.used = *k, true
	t.n++
	t.last = i + 1
	t.point(k, i)
	return i, &r.val
}

// point lets the key's slot name record i.
func (t *Table[T]) point(k *Key, i uint32) {
	h := k.Hash(t.seed)
	mask := uint64(len(t.slots) - 1)
	p := h & mask
	for ; t.slots[p] != 0; p = (p + 1) & mask {
		if uint32(t.slots[p]>>32) == uint32(h>>32) && t.at(uint32(t.slots[p])-1).key.same(k) {
			t.at(uint32(t.slots[p]) - 1).old = true
			break
		}
	}
	t.slots[p] = h>>32<<32 | uint64(i+1)
}

func (t *Table[T]) grow() { t.rebuild(max(1024, 2*len(t.slots))) }

func (t *Table[T]) rebuild(size int) {
	t.Seed()
	t.slots = make([]uint64, size)
	clear(t.slots) // in one go: pages that are read first cost twice
	for i := range t.made {
		if r := t.at(i); r.used && !r.old {
			t.point(&r.key, i)
		}
	}
}

// All calls f for every record in the order of their indices until it says false.
func (t *Table[T]) All(f func(i uint32, k *Key, v *T) bool) {
	for i := range t.made {
		if r := t.at(i); r.used && !f(i, &r.key, &r.val) {
			return
		}
	}
}

// Retire gives up the records for which drop says so; their indices are used again.
func (t *Table[T]) Retire(drop func(k *Key, v *T) bool) (dropped int) {
	for i := range t.made {
		r := t.at(i)
		if r.used && drop(&r.key, &r.val) {
			*r = record[T]{}
			t.free = append(t.free, i)
			dropped++
		}
	}
	t.n -= dropped
	t.last = 0
	if dropped > 0 {
		t.rebuild(len(t.slots))
	}
	return dropped
}
