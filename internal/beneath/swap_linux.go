package beneath

import "golang.org/x/sys/unix"

// exchange swaps two names in one step.
func exchange(d *Dir, from string, at *Dir, to string) error {
	return unix.Renameat2(d.num(), from, at.num(), to, unix.RENAME_EXCHANGE)
}
