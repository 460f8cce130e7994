package prefetch

import (
	"sync/atomic"
	"unsafe"
)

// page is the size of a page of memory, or less.
const page = 4096

// Supply has a large piece of memory ready for who will need one: a goroutine that has time makes it,
// and touches each of its pages, for which the system stops who touches it first. The zero value is ready
// for use.
type Supply[T any] struct {
	ready  atomic.Pointer[T]
	wanted atomic.Bool
}

// Take returns a new T, its memory all zero: the one that is ready, or one that it makes itself.
func (s *Supply[T]) Take() *T {
	x := s.ready.Swap(nil)
	if x == nil {
		x = touched[T]()
	}
	s.wanted.Store(true)
	return x
}

// Make makes one ready, when one was taken and none has been made since. It may be called while another
// goroutine takes.
func (s *Supply[T]) Make() {
	if s.wanted.Load() && s.ready.Load() == nil {
		s.wanted.Store(false)
		s.ready.Store(touched[T]())
	}
}

// touched is a new T each of whose pages was written to. To read one first, as a collector of garbage would,
// costs more: the system then stops all cores when it is written to.
func touched[T any]() *T {
	x := new(T)
	p := unsafe.Pointer(x)
	for at := uintptr(0); at < unsafe.Sizeof(*x); at += page {
		*(*byte)(unsafe.Add(p, at)) = 0
	}
	return x
}
