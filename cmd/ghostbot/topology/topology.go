// Package topology keeps the secret from which the names of hidden addresses are made.
package topology

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ghostbot/internal/input"
)

// Secret reads the installation's secret for names of addresses, and
// makes it first when there is none. It is linked into its place only when it is
// whole, so that a crash leaves either none or all of it.
func Secret(dir string) ([]byte, error) {
	const size = 32
	name := filepath.Join(dir, "anonymize.key")
	if b, err := input.Read(name, 1<<10); err == nil || !errors.Is(err, fs.ErrNotExist) {
		if err == nil && len(b) < size {
			err = fmt.Errorf("%s: %d bytes, %d are needed", name, len(b), size)
		}
		return b, err
	}
	f, err := os.CreateTemp(dir, ".anonymize-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	b := make([]byte, size)
	rand.Read(b)
	if _, err := f.Write(b); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	if err := os.Link(f.Name(), name); errors.Is(err, fs.ErrExist) { // another process was first
		return input.Read(name, 1<<10)
	} else if err != nil {
		return nil, err
	}
	return b, nil
}
