//go:build amd64 || arm64

package prefetch

// ask is in assembly.
//
//go:noescape
func ask(at *[256]uintptr, n int)

// own is in assembly.
//
//go:noescape
func own(at *[256]uintptr, n int)
