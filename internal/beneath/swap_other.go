//go:build !linux

package beneath

import "golang.org/x/sys/unix"

// exchange is not known here; the caller renames instead.
func exchange(*Dir, string, *Dir, string) error { return unix.ENOSYS }
