package vault

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"ghostbot/safeexec"
)

// Spool is where the commands of a deployment leave files before they are encrypted: a
// directory in memory, which no disk has (but swap, unless that is off or encrypted).
type Spool struct {
	v    *Vault
	dir  string // in memory
	work string // where encrypted files go
}

// ErrMemory says that nothing that commands write would stay off disks.
var ErrMemory = errors.New("there is no directory in memory for what commands write (looked at: $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR, /dev/shm)")

// Memory is where the spool of the working directories in work is, "" when there is no
// place for one. The first that is a file system in memory is taken: what systemd made for
// the service, what it made for the user, /dev/shm.
func Memory(work string) string {
	sum := sha256.Sum256([]byte(work)) // deployments of one user do not meet
	name := "ghostbot-" + strconv.Itoa(os.Getuid()) + "-" + hex.EncodeToString(sum[:6])
	for _, parent := range []string{os.Getenv("RUNTIME_DIRECTORY"), os.Getenv("XDG_RUNTIME_DIR"), "/dev/shm"} {
		if filepath.IsAbs(parent) && inMemory(parent) && unix.Access(parent, unix.W_OK|unix.X_OK) == nil {
			return filepath.Join(parent, name)
		}
	}
	return ""
}

// Spool makes the spool of the working directories in work; nil without a key.
func (v *Vault) Spool(work string) (*Spool, error) {
	if !v.Set() {
		return nil, nil
	}
	dir := Memory(work)
	if dir == "" {
		return nil, ErrMemory
	}
	if err := own(dir); err != nil {
		return nil, err
	}
	return &Spool{v: v, dir: dir, work: work}, nil
}

// Ready is the vault of a key file and its spool; the error names the variable.
func Ready(file, work string) (*Vault, *Spool, error) {
	v, err := Load(file)
	var s *Spool
	if err == nil {
		s, err = v.Spool(work)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", Variable, err)
	}
	return v, s, nil
}

// inMemory reports whether a directory lies in no disk.
func inMemory(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && (st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC)
}

// own makes a directory that is nobody else's: others may write to its parent.
func own(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Getuid() || st.Mode&0o077 != 0 {
		return fmt.Errorf("%s is not a directory of this user alone: remove it", dir)
	}
	return nil
}

// Dir is where the commands of a case run, "" without a spool.
func (s *Spool) Dir(sid string) string {
	if s == nil {
		return ""
	}
	return filepath.Join(s.dir, sid)
}

// Recover encrypts what commands of a case left in memory when the bot was killed while they ran.
// Nobody knows whether such a file is whole: its name says so. Nothing of the case may run meanwhile.
func (s *Spool) Recover(sid string) error {
	if s == nil {
		return nil
	}
	if err := torn(filepath.Join(s.work, sid)); err != nil {
		return fmt.Errorf("remove what was being encrypted: %w", err)
	}
	if _, err := os.Lstat(s.Dir(sid)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := s.empty(s.Dir(sid), filepath.Join(s.work, sid), unfinished); err != nil {
		return fmt.Errorf("encrypt what was left in memory: %w", err)
	}
	return nil
}

// torn removes the pieces of files that were being written when the bot was killed: what they were
// made of is still in memory, or the command that made them is repeated.
func torn(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), temporary) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// unfinished is put behind the names of files of which nobody knows whether they are whole.
const unfinished = ".unfinished"

// Keep returns what the gate of a case does with what a command left: files in memory
// go encrypted into the directory of the case, all that there are; of files that the product's own analysis
// left there encrypted, the digest is that of what is in them. nil without a spool.
func (s *Spool) Keep(sid string) func(dir string, left []safeexec.Artefact) ([]safeexec.Artefact, error) {
	if s == nil {
		return nil
	}
	return func(dir string, left []safeexec.Artefact) ([]safeexec.Artefact, error) {
		if dir == s.Dir(sid) {
			return s.empty(dir, filepath.Join(s.work, sid), "")
		}
		return s.digests(left)
	}
}

// digests replaces what was said about encrypted files.
func (s *Spool) digests(left []safeexec.Artefact) ([]safeexec.Artefact, error) {
	out := slices.Clone(left)
	for i, a := range out {
		if !strings.HasSuffix(a.Path, Suffix) {
			continue
		}
		sum, size, _, err := s.v.Digest(a.Path)
		if err != nil {
			return left, err
		}
		out[i].SHA256, out[i].Size = sum, size
	}
	return out, nil
}

// empty brings the files of a directory in memory into another one, encrypted, and
// removes it; the gate makes it again. Directories and special files in it are removed: no
// command of ours makes them. What fails stays, and holds back nothing else.
func (s *Spool) empty(from, to, mark string) (list []safeexec.Artefact, err error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(from, e.Name())
		if !e.Type().IsRegular() {
			err = errors.Join(err, os.RemoveAll(path))
			continue
		}
		a, failed := s.seal(path, to, mark)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s stays in memory, not encrypted: %w", e.Name(), failed))
			continue
		}
		list = append(list, a)
	}
	if err != nil {
		return list, err
	}
	return list, os.Remove(from)
}

// seal encrypts one file of the memory into a directory and removes it when the
// encrypted one is durable. One that is encrypted already is encrypted again; one that says so
// and does not open, which anybody can write, is taken as it is.
func (s *Spool) seal(path, to, mark string) (a safeexec.Artefact, err error) {
	if err := os.Chmod(path, 0o600); err != nil { // a command may have forbidden it to us
		return a, err
	}
	f, err := s.v.Open(path)
	if err == nil {
		a, err = s.place(f, to, filepath.Base(path), mark)
	}
	if errors.Is(err, ErrKey) || errors.Is(err, ErrCut) {
		if f, err = whole(path); err == nil {
			a, err = s.place(f, to, filepath.Base(path), mark)
		}
	}
	if err != nil {
		return safeexec.Artefact{}, err
	}
	return a, os.Remove(path)
}

// whole opens a file as it is, whatever it says that it is.
func whole(path string) (*File, error) {
	h, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := h.Stat()
	if err != nil {
		h.Close()
		return nil, err
	}
	return &File{Reader: h, Size: st.Size(), closer: h}, nil
}

// place encrypts f into a directory, durably, and closes it.
func (s *Spool) place(f *File, to, base, mark string) (safeexec.Artefact, error) {
	defer f.Close()
	h := sha256.New()
	name, err := s.v.Place(to, strings.TrimSuffix(base, Suffix)+mark, io.TeeReader(f, h))
	if err == nil {
		err = synced(to)
	}
	return safeexec.Artefact{Path: filepath.Join(to, name), Size: f.Size, SHA256: hex.EncodeToString(h.Sum(nil))}, err
}

// synced makes names in a directory durable.
func synced(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
