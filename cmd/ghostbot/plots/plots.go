// Package plots reads the pictures that analyses left in the directory of a case, for
// its thread: those alone whose hash the journal has.
package plots

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"ghostbot/cmd/ghostbot/vault"
)

// overhead is more than encryption adds to the largest picture.
const overhead = 4 << 10

// Most is the largest picture that is shown, in bytes.
const Most = 4 << 20

// ErrChanged means that a file is not any more what the journal says.
var ErrChanged = errors.New("the file is not what was journaled")

// Read returns the picture with this name and hash in dir, and what it shows in words,
// which the report beside it says; both may be encrypted. Links are not followed out of dir.
func Read(v *vault.Vault, dir, name, sum string) (png []byte, alt string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("read plot %s: %w", name, err)
		}
	}()
	if name != filepath.Base(name) || !strings.HasSuffix(name, ".png") {
		return nil, "", fs.ErrInvalid
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", err
	}
	defer root.Close()
	if png, err = regular(v, root, name); errors.Is(err, fs.ErrNotExist) {
		png, err = regular(v, root, name+vault.Suffix)
	}
	if err != nil {
		return nil, "", err
	}
	got := sha256.Sum256(png)
	if sum == "" || hex.EncodeToString(got[:]) != sum {
		return nil, "", ErrChanged
	}
	return png, words(v, root, dir, name), nil
}

// regular reads a file that is one, and not too large.
func regular(v *vault.Vault, root *os.Root, name string) ([]byte, error) {
	if fi, err := root.Lstat(name); err != nil {
		return nil, err
	} else if !fi.Mode().IsRegular() || fi.Size() > Most+overhead {
		return nil, fs.ErrInvalid
	}
	h, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	f, err := v.From(h)
	if err != nil {
		h.Close()
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, Most+1))
	if err == nil && len(b) > Most {
		return nil, fs.ErrInvalid
	}
	return b, err
}

var image = regexp.MustCompile(`!\[([^\]\n]*)\]\(([^)\n]+)\)`)

// words finds what a picture shows in the reports beside it; a picture without words is
// named.
func words(v *vault.Vault, root *os.Root, dir, name string) string {
	list, err := os.ReadDir(dir)
	if err != nil {
		return name
	}
	for _, e := range list {
		if !strings.HasSuffix(strings.TrimSuffix(e.Name(), vault.Suffix), ".md") {
			continue
		}
		text, err := regular(v, root, e.Name())
		if err != nil {
			continue
		}
		for _, m := range image.FindAllSubmatch(text, -1) {
			if filepath.Base(string(m[2])) == name && len(m[1]) > 0 {
				return string(m[1])
			}
		}
	}
	return name
}
