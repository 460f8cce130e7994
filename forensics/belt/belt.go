// Package belt passes batches of work through stages that run at the same time, each
// in a goroutine of its own. Every stage sees every batch, one after the other, in
// the order in which they were filled: what a stage computes depends on nothing but
// the input, however many cores there are. The number of batches bounds how far the
// first stage runs ahead.
package belt

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Run fills batches, in the caller's goroutine, until fill says false, and passes each
// through the stages. A batch is used again when it has passed the last one. Run
// returns when all stages have ended; a panic of a stage becomes the caller's.
func Run[T any](batches []*T, fill func(*T) bool, stages ...func(*T)) {
	if len(batches) == 1 || len(stages) == 0 || runtime.GOMAXPROCS(0) == 1 {
		alone(batches[0], fill, stages)
		return
	}
	free := make(chan *T, len(batches))
	for _, b := range batches {
		free <- b
	}
	var crash atomic.Pointer[string]
	move(free, &crash, fill, stages)
	if text := crash.Load(); text != nil {
		panic(*text)
	}
}

// alone is Run without goroutines.
func alone[T any](b *T, fill func(*T) bool, stages []func(*T)) {
	for fill(b) {
		for _, stage := range stages {
			stage(b)
		}
	}
}

// move is Run with one goroutine for each stage. A send never blocks: every channel
// has a place for every batch.
func move[T any](free chan *T, crash *atomic.Pointer[string], fill func(*T) bool, stages []func(*T)) {
	var work sync.WaitGroup
	defer work.Wait()
	first := make(chan *T, cap(free))
	defer close(first)
	in := first
	for i, stage := range stages {
		out, last := free, i == len(stages)-1
		if !last {
			out = make(chan *T, cap(free))
		}
		from := in
		work.Go(func() {
			for b := range from {
				try(stage, b, crash)
				out <- b
			}
			if !last {
				close(out)
			}
		})
		in = out
	}
	for crash.Load() == nil {
		b := <-free
		if !fill(b) {
			return
		}
		first <- b
	}
}

// try runs a stage, until one of them has panicked.
func try[T any](stage func(*T), b *T, crash *atomic.Pointer[string]) {
	if crash.Load() != nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			text := fmt.Sprintf("%v\n\n%s", v, debug.Stack())
			crash.CompareAndSwap(nil, &text)
		}
	}()
	stage(b)
}
