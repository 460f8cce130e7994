package beneath

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"ghostbot/internal/fault"
)

// File is an open regular file with one link.
type File struct {
	f     *os.File
	inode uint64
}

// Name is the absolute path the file was opened by.
func (f *File) Name() string { return f.f.Name() }

// Inode identifies the file on its file system: a copy has another one.
func (f *File) Inode() uint64 { return f.inode }

// Close closes the file and drops its kernel lock.
func (f *File) Close() error { return f.f.Close() }

// Read reads from the current position.
func (f *File) Read(p []byte) (int, error) { return f.f.Read(p) }

// ReadAt reads from offset off.
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.f.ReadAt(p, off) }

// Size is the length of the file in bytes.
func (f *File) Size() (int64, error) {
	st, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// WriteAt writes all of p at offset off; a short write is an error.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	return fault.Write(f.Name(), p, func(p []byte) (int, error) { return f.f.WriteAt(p, off) })
}

// Sync makes the content durable.
func (f *File) Sync() error {
	if err := fault.Do(fault.Sync, f.Name(), "", f.f.Sync); err != nil {
		return fmt.Errorf("fsync %s: %w", f.Name(), err)
	}
	return nil
}

// Truncate cuts the file to size bytes.
func (f *File) Truncate(size int64) error {
	return fault.Do(fault.Truncate, f.Name(), "", func() error { return f.f.Truncate(size) })
}

// ReadAll returns the content, or an error when it is longer than limit bytes.
func (f *File) ReadAll(limit int64) ([]byte, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("read %s: %d bytes, the limit is %d", f.Name(), size, limit)
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b[:n], nil
}

// How a lock may be asked for.
const (
	Shared    = unix.LOCK_SH
	Exclusive = unix.LOCK_EX
)

// TryLock takes the kernel lock of the file without waiting; false means that
// another open file holds it, in this process or another. The lock ends with
// Close or with the process, whichever comes first.
func (f *File) TryLock(how int) (bool, error) {
	for {
		switch err := unix.Flock(int(f.f.Fd()), how|unix.LOCK_NB); err {
		case nil:
			return true, nil
		case unix.EWOULDBLOCK:
			return false, nil
		case unix.EINTR:
		default:
			return false, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}
