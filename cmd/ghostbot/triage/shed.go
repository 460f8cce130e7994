package triage

import (
	"bytes"
	"os"
	"reflect"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// shed gives back the pages of the program that its start has touched: code and
// constants, which are read again from the file when they are needed. Most of what
// the whole program needs at its start is of no use to a look at processes, and a
// loop that looks every minute should be small. What fails changes nothing.
//
// Only the two mappings that hold code and constants are given back. They are never
// written to, so that nothing is lost.
func shed() {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	code := reflect.ValueOf(shed).Pointer()
	constants := uintptr(unsafe.Pointer(unsafe.StringData(Usage)))
	for line := range bytes.Lines(maps) {
		f := bytes.Fields(line)
		if len(f) < 6 || len(f[1]) != 4 || f[1][0] != 'r' || f[1][1] != '-' {
			continue
		}
		from, to, _ := bytes.Cut(f[0], []byte("-"))
		low, err1 := strconv.ParseUint(string(from), 16, 64)
		high, err2 := strconv.ParseUint(string(to), 16, 64)
		if err1 != nil || err2 != nil || low >= high {
			continue
		}
		holds := func(at uintptr) bool { return uint64(at) >= low && uint64(at) < high }
		if holds(code) || holds(constants) {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(low), uintptr(high-low), unix.MADV_DONTNEED)
		}
	}
}
