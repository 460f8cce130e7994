package stat

// Buckets is how many buckets a series has at most.
const Buckets = 512

// Series counts events over the time of a capture whose end is not known: when it
// is full, neighbours are merged and its buckets are twice as wide from then on.
type Series[T interface{ Merge(T) T }] struct {
	Start  int64 // time of the first event, ns
	Width  int64 // of one bucket, ns
	Values []T
}

// Begin sets the time of the first event, for a series that sees only some of the
// events and is joined with one that sees the others.
func (s *Series[T]) Begin(t int64) {
	if s.Values == nil {
		s.Start, s.Width, s.Values = t, 1e6, make([]T, 0, Buckets)
	}
}

// Join adds a series with the same beginning.
func (s *Series[T]) Join(o *Series[T]) {
	for s.Width < o.Width {
		s.halve()
	}
	for o.Values != nil && o.Width < s.Width {
		o.halve()
	}
	for i, v := range o.Values {
		if i == len(s.Values) {
			s.Values = append(s.Values, v)
			continue
		}
		s.Values[i] = s.Values[i].Merge(v)
	}
}

// At returns the bucket of a moment. Moments before the first one fall into the
// first bucket, for clocks step back.
func (s *Series[T]) At(t int64) *T {
	s.Begin(t)
	d := uint64(0)
	if t > s.Start {
		d = uint64(t) - uint64(s.Start)
	}
	i := d / uint64(s.Width)
	for i >= Buckets {
		s.halve()
		i = d / uint64(s.Width)
	}
	for uint64(len(s.Values)) <= i {
		var zero T
		s.Values = append(s.Values, zero)
	}
	return &s.Values[i]
}

func (s *Series[T]) halve() {
	n := (len(s.Values) + 1) / 2
	for i := range n {
		v := s.Values[2*i]
		if 2*i+1 < len(s.Values) {
			v = v.Merge(s.Values[2*i+1])
		}
		s.Values[i] = v
	}
	s.Values = s.Values[:n]
	s.Width *= 2
}
