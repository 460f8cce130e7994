package health

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// probeSize is more than what any one entry of a quiet case takes.
const probeSize = 64 << 10

// Disk says why a directory takes nothing: it is gone, full or read-only; "" when it takes some. It writes a file without a name, so
// that nothing stays, whatever happens.
func Disk(dir string) string {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) { // a file system without such files
		return ""
	}
	if err != nil {
		return fmt.Sprintf("%s takes nothing: %v", dir, err)
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	if _, err = f.Write(make([]byte, probeSize)); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Sprintf("%s takes nothing: %v", dir, errors.Unwrap(err))
	}
	return ""
}
