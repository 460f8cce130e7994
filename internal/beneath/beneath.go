// Package beneath opens files beneath one directory without following links.
//
// Rules, for every name:
//
//   - a name is one path segment; directories are entered one at a time with
//     [Dir.Sub], so that no component is ever resolved through a link
//   - what is opened is a regular file with exactly one link, or a directory:
//     links, hard links, pipes, sockets and devices are refused with
//     [ErrOdd], without blocking on them
//   - new files have mode 0600, new directories 0700
//
// The directory handed to [Open] is the caller's choice and may itself be
// reached through links.
//
// Whatever changes the disk passes package fault, so that a driver can fail or
// kill the process at each single step.
package beneath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"ghostbot/internal/fault"
)

// ErrOdd is a directory entry that is not what it must be: a link, a file with
// several links, a pipe, a socket, a device, a directory instead of a file.
var ErrOdd = errors.New("not a plain file")

// Dir is an open directory. Nothing else may be called while Close is. It is a
// bare descriptor: an os.File offers each directory to the poller and takes it
// back, which is five system calls more for each of the many that are opened.
type Dir struct {
	fd   int // -1: closed
	path string
}

// Open opens an existing directory.
func Open(path string) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	fd, err := again(func() (int, error) { return unix.Open(abs, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: abs, Err: err}
	}
	return &Dir{fd: fd, path: abs}, nil
}

// Create opens a directory after making it and its missing parents, durably.
func Create(path string) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := makeAll(abs); err != nil {
		return nil, err
	}
	return Open(abs)
}

func makeAll(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(path)
	if err := makeAll(parent); err != nil {
		return err
	}
	d, err := Open(parent)
	if err != nil {
		return err
	}
	defer d.Close()
	sub, err := d.MakeSub(filepath.Base(path))
	if err != nil {
		return err
	}
	return errors.Join(sub.Close(), d.Sync())
}

// Close closes the directory; a second time it does nothing.
func (d *Dir) Close() error {
	if d.fd < 0 {
		return nil
	}
	fd := d.fd
	d.fd = -1 // the number may be somebody else's from now on
	return os.NewSyscallError("close", unix.Close(fd))
}

// Path is the absolute path of name in d, for messages.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, name) }

// Sub opens the directory name.
func (d *Dir) Sub(name string) (*Dir, error) {
	if err := segment(name); err != nil {
		return nil, err
	}
	fd, err := d.openat(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, d.refuse("open directory", name, err)
	}
	path := d.Path(name)
	return &Dir{fd: fd, path: path}, nil
}

// MakeSub opens the directory name after making it, if it is missing. Its entry
// is durable after [Dir.Sync].
func (d *Dir) MakeSub(name string) (*Dir, error) {
	sub, err := d.Sub(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return sub, err
	}
	err = fault.Do(fault.Mkdir, d.Path(name), "", func() error { return unix.Mkdirat(d.num(), name, 0o700) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, d.fail("make directory", name, err)
	}
	return d.Sub(name)
}

// Open opens an existing file; flag is os.O_RDONLY, os.O_WRONLY or os.O_RDWR,
// possibly with os.O_APPEND.
func (d *Dir) Open(name string, flag int) (*File, error) {
	if err := segment(name); err != nil {
		return nil, err
	}
	fd, err := d.openat(name, flag|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, d.refuse("open", name, err)
	}
	return d.file(fd, name)
}

// Create makes the file name and opens it for reading and writing; it must not
// exist. The entry is durable after [Dir.Sync].
func (d *Dir) Create(name string) (*File, error) {
	if err := segment(name); err != nil {
		return nil, err
	}
	var fd int
	err := fault.Do(fault.Create, d.Path(name), "", func() (err error) {
		fd, err = d.openat(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
		return err
	})
	if err != nil {
		return nil, d.fail("create", name, err)
	}
	return d.file(fd, name)
}

// OpenOrCreate opens the file name for reading and writing, after making it if
// it is missing; created says so.
func (d *Dir) OpenOrCreate(name string) (f *File, created bool, err error) {
	f, err = d.Open(name, os.O_RDWR)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, false, err
	}
	f, err = d.Create(name)
	if errors.Is(err, fs.ErrExist) { // somebody was faster
		f, err = d.Open(name, os.O_RDWR)
		return f, false, err
	}
	return f, err == nil, err
}

// Replace renames from to to, over what was there. It is durable after
// [Dir.Sync] of both directories.
func (d *Dir) Replace(from string, at *Dir, to string) error {
	if err := errors.Join(segment(from), segment(to)); err != nil {
		return err
	}
	err := fault.Do(fault.Rename, d.Path(from), at.Path(to), func() error {
		return unix.Renameat(d.num(), from, at.num(), to)
	})
	if err != nil {
		return d.fail("rename", from, err)
	}
	return nil
}

// Swap is Replace for content that need not be durable, because it can be
// written again from elsewhere: a rename over a file makes some file systems
// write the new one out first, which costs as much as an fsync. Where it can,
// Swap exchanges the two names, and then removes the old file. Anything but a
// plain file in the place of to is for the rename to refuse or replace.
func (d *Dir) Swap(from string, at *Dir, to string) error {
	if err := errors.Join(segment(from), segment(to)); err != nil {
		return err
	}
	swapped := false
	err := fault.Do(fault.Rename, d.Path(from), at.Path(to), func() error {
		var st unix.Stat_t
		plain := unix.Fstatat(at.num(), to, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
		if swapped = plain && exchange(d, from, at, to) == nil; swapped {
			return nil
		}
		return unix.Renameat(d.num(), from, at.num(), to)
	})
	if err != nil {
		return d.fail("rename", from, err)
	}
	if swapped {
		return d.Remove(from)
	}
	return nil
}

// Remove removes the file name; a missing file is success.
func (d *Dir) Remove(name string) error {
	if err := segment(name); err != nil {
		return err
	}
	err := fault.Do(fault.Remove, d.Path(name), "", func() error { return unix.Unlinkat(d.num(), name, 0) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.fail("remove", name, err)
	}
	return nil
}

// Exists says whether there is anything called name, odd or not.
func (d *Dir) Exists(name string) (bool, error) {
	if err := segment(name); err != nil {
		return false, err
	}
	var st unix.Stat_t
	err := unix.Fstatat(d.num(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, d.fail("look up", name, err)
	}
	return true, nil
}

// Entries lists the directory in no particular order.
func (d *Dir) Entries() ([]fs.DirEntry, error) {
	own, err := d.Sub(".") // a description of its own: reading moves the position
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(own.fd), d.path)
	defer f.Close()
	return f.ReadDir(-1)
}

// Sync makes the directory's entries durable.
func (d *Dir) Sync() error {
	if err := fault.Do(fault.SyncDir, d.path, "", d.sync); err != nil {
		return fmt.Errorf("fsync %s: %w", d.path, err)
	}
	return nil
}

func (d *Dir) sync() error {
	_, err := again(func() (int, error) { return 0, unix.Fsync(d.fd) })
	return err
}

func (d *Dir) num() int { return d.fd }

// again calls f until no signal came between.
func again(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); err != unix.EINTR {
			return n, err
		}
	}
}

// openat opens without following a link. Callers that do not ask for a
// directory add O_NONBLOCK, so that a pipe does not hold them up.
func (d *Dir) openat(name string, flag int, perm uint32) (int, error) {
	return again(func() (int, error) { return unix.Openat(d.num(), name, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm) })
}

// file checks what was opened, not what the name pointed at a moment before.
func (d *Dir) file(fd int, name string) (*File, error) {
	f := os.NewFile(uintptr(fd), d.Path(name))
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	if err == nil && (st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1) {
		err = fmt.Errorf("%w: %s", ErrOdd, kind(uint32(st.Mode), uint64(st.Nlink)))
	}
	if err != nil {
		f.Close()
		return nil, d.fail("open", name, err)
	}
	return &File{f: f, inode: st.Ino}, nil
}

// refuse explains why an open failed on something that is not a plain file.
func (d *Dir) refuse(op, name string, err error) error {
	var st unix.Stat_t
	if err == unix.ENOENT || unix.Fstatat(d.num(), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return d.fail(op, name, err)
	}
	mode := uint32(st.Mode)
	if t := mode & unix.S_IFMT; t != unix.S_IFREG && t != unix.S_IFDIR || err == unix.ENOTDIR || err == unix.EISDIR {
		err = fmt.Errorf("%w: %s", ErrOdd, kind(mode, 1))
	}
	return d.fail(op, name, err)
}

func (d *Dir) fail(op, name string, err error) error {
	return fmt.Errorf("%s %s: %w", op, d.Path(name), err)
}

func kind(mode uint32, links uint64) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return "it is a symbolic link"
	case unix.S_IFDIR:
		return "it is a directory"
	case unix.S_IFIFO:
		return "it is a pipe"
	case unix.S_IFSOCK:
		return "it is a socket"
	case unix.S_IFREG:
		if links != 1 {
			return fmt.Sprintf("it has %d links", links)
		}
		return "it is a file"
	default:
		return "it is a device"
	}
}

func segment(name string) error {
	if name == "" || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("file name %q: %w", name, fs.ErrInvalid)
	}
	return nil
}
