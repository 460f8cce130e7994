package prefetch

//go:noescape
func lines(at *uintptr, n int)
