package safeexec

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of what is recorded of the files that one command leaves behind.
const (
	maxArtefacts    = 16
	maxArtefactSize = 1 << 30 // bytes; a larger file is recorded without its hash
)

// snapshot is the content of a working directory before a command: only what is
// directly in it.
type snapshot struct {
	dir   string
	files map[string]state
}

type state struct {
	size  int64
	mtime time.Time
}

func look(dir string) snapshot {
	f := snapshot{dir: dir, files: map[string]state{}}
	f.each(func(name string, st state) { f.files[name] = st })
	return f
}

func (f snapshot) each(visit func(name string, st state)) {
	list, _ := os.ReadDir(f.dir) // unreadable: nothing is claimed about it
	for _, e := range list {
		if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() {
			visit(e.Name(), state{fi.Size(), fi.ModTime()})
		}
	}
}

// changed lists the regular files that are new or different, by name.
func (f snapshot) changed() (list []Artefact) {
	f.each(func(name string, st state) {
		if old, ok := f.files[name]; len(list) < maxArtefacts && (!ok || old.size != st.size || !old.mtime.Equal(st.mtime)) {
			path := filepath.Join(f.dir, name)
			list = append(list, Artefact{Path: path, Size: st.size, SHA256: sum(path, st.size)})
		}
	})
	slices.SortFunc(list, func(a, b Artefact) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// keep hands over what a command left, and returns what is recorded of it.
func (s *Shell) keep(p Proposal, left []Artefact) ([]Artefact, error) {
	if s.opt.Keep == nil {
		return left, nil
	}
	left, err := s.opt.Keep(p.Dir, left)
	return left[:min(len(left), maxArtefacts)], err
}

// sum hashes a regular file, "" when it is too large or something else by now.
func sum(path string, size int64) string {
	if size > maxArtefactSize {
		return ""
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, maxArtefactSize)); err != nil || n != size {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}
