// Package belt passes batches of work through stages that run at the same time, each
// in a goroutine of its own. Every stage sees every batch, one after the other, in
// the order in which they were filled: what a stage computes depends on nothing but
// the input, however many cores there are. The number of batches bounds how far the
// first stage runs ahead.
//
// Waking a goroutine on another core costs who wakes it some microseconds. Batches are
// handed on at once, as the next stage may have nothing else to do; but when the last stage
// is the slow one, it gives them back for the first one some at a time.
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
			if last {
				give(from, out, func(b *T) { try(stage, b, crash) })
				return
			}
			for b := range from {
				try(stage, b, crash)
				out <- b
			}
			close(out)
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

// give is the last stage. What it is done with goes back when there is nothing else to do, or
// when it is half of all.
func give[T any](from, free chan *T, stage func(*T)) {
	var done []*T
	for b := range from {
		stage(b)
		if done = append(done, b); len(from) > 0 && 2*len(done) < cap(free) {
			continue
		}
		for _, b := range done {
			free <- b
		}
		done = done[:0]
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
