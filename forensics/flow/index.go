package flow

// Index maps hashes to numbers other than 0. Whoever needs to be sure compares what
// the number stands for. The zero value is empty. It is not safe for concurrent use.
type Index struct {
	slots []slot
	n     int
}

type slot struct {
	hash uint64
	val  uint32 // 0: free
}

// Len is how many hashes have a number.
func (x *Index) Len() int { return x.n }

// Get returns the number of a hash, or 0.
func (x *Index) Get(h uint64) uint32 {
	if len(x.slots) == 0 {
		return 0
	}
	mask := uint64(len(x.slots) - 1)
	for p := h & mask; ; p = (p + 1) & mask {
		if s := &x.slots[p]; s.hash == h || s.val == 0 {
			return s.val
		}
	}
}

// Put gives a hash a number.
func (x *Index) Put(h uint64, val uint32) {
	if 2*(x.n+1) > len(x.slots) {
		x.grow()
	}
	mask := uint64(len(x.slots) - 1)
	for p := h & mask; ; p = (p + 1) & mask {
		s := &x.slots[p]
		if s.val == 0 {
			x.n++
		} else if s.hash != h {
			continue
		}
		*s = slot{h, val}
		return
	}
}

func (x *Index) grow() {
	old := x.slots
	x.slots, x.n = make([]slot, max(64, 2*len(old))), 0
	clear(x.slots) // in one go: pages that are read first cost twice
	for _, s := range old {
		if s.val != 0 {
			x.Put(s.hash, s.val)
		}
	}
}

// Delete forgets a hash. What stands behind it, and could have stood in its place,
// moves up, so that every search still ends at a free slot.
func (x *Index) Delete(h uint64) {
	if x.Get(h) == 0 {
		return
	}
	mask := uint64(len(x.slots) - 1)
	hole := h & mask
	for x.slots[hole].hash != h {
		hole = (hole + 1) & mask
	}
	x.n--
	for p := (hole + 1) & mask; x.slots[p].val != 0; p = (p + 1) & mask {
		if home := x.slots[p].hash & mask; (p-home)&mask >= (p-hole)&mask {
			x.slots[hole] = x.slots[p]
			hole = p
		}
	}
	x.slots[hole] = slot{}
}

// Clear forgets all.
func (x *Index) Clear() {
	clear(x.slots)
	x.n = 0
}
