// Package vault keeps captures, and what was made of packets, encrypted on disk, when
// a key is named.
//
// Files are those of age (age-encryption.org/v1), so that the ordinary age tool opens
// them. The key file is one of identities, as age-keygen writes it: files are
// written for the first one and read with any, so that a key is changed by putting a
// new one in front. What a file is its first bytes tell, never its name: without a key
// and beside encrypted files, plain ones are read as before.
//
// A digest is always of what is encrypted, not of the encrypted file: it stays
// the same when a file is encrypted again for another key. The last part of a file is
// marked as such in age's format: a file that was cut off, wherever, is refused
// before anything of it is read.
package vault

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"filippo.io/age"

	"ghostbot/internal/input"
)

// Variable names the key file.
const Variable = "GHOST_CAPTURE_KEY_FILE"

// Suffix ends the names of encrypted files.
const Suffix = ".age"

// temporary begins the names of files that are being written.
const temporary = ".ghostbot-"

// magic begins every encrypted file.
const magic = "age-encryption.org/"

// maxKeys bounds the key file.
const maxKeys = 64 << 10

// Errors that callers tell apart.
var (
	// ErrKey is an encrypted file that no identity here opens.
	ErrKey = errors.New("it is encrypted")
	// ErrCut is an encrypted file that is damaged or not whole.
	ErrCut = errors.New("the encrypted file is damaged, or was cut off")
	// ErrFile is something else than a regular file.
	ErrFile = errors.New("not a regular file")
)

// Vault opens files, and encrypts them when it has keys. Nil and the zero value have
// none.
type Vault struct {
	path       string
	identities []age.Identity
	recipient  age.Recipient
}

// Load reads a file of identities; "" is a vault without keys. A file that others than
// its owner may read is refused. No error tells a key.
func Load(path string) (*Vault, error) {
	if path == "" {
		return &Vault{}, nil
	}
	f, info, err := input.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch {
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s can be read or written by others than its owner (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	case info.Size() > maxKeys:
		return nil, fmt.Errorf("%s has %d bytes, a file of age identities at most %d", path, info.Size(), maxKeys)
	}
	v := &Vault{path: path}
	if abs, err := filepath.Abs(path); err == nil {
		v.path = abs // commands run elsewhere
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeys))
	if err == nil {
		text, err = input.Plain(path, text)
	}
	if err != nil {
		return nil, err
	}
	if err := v.parse(bytes.NewReader(text)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

// Env is the vault of the environment; the error names the variable.
func Env() (*Vault, error) {
	v, err := Load(os.Getenv(Variable))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Variable, err)
	}
	return v, nil
}

// parse reads one identity a line, blank lines and comments apart.
func (v *Vault) parse(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		id, err := age.ParseX25519Identity(text)
		if err != nil { // which may quote the line
			return fmt.Errorf("line %d is not an age identity (accepted: AGE-SECRET-KEY-1..., as age-keygen writes it)", n)
		}
		if v.identities = append(v.identities, id); v.recipient == nil {
			v.recipient = id.Recipient()
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if v.recipient == nil {
		return errors.New("no age identity is in it: make one with age-keygen -o FILE")
	}
	return nil
}

// Set reports whether files are encrypted.
func (v *Vault) Set() bool { return v != nil && v.recipient != nil }

// Path is the absolute path of the key file, "" without one.
func (v *Vault) Path() string {
	if v == nil {
		return ""
	}
	return v.path
}

// Recipient is who opens what is written, in public: age -r takes it.
func (v *Vault) Recipient() string {
	if !v.Set() {
		return ""
	}
	return fmt.Sprint(v.recipient)
}

// File is an open file; what is read is plain.
type File struct {
	io.Reader
	Size   int64 // of what is read
	Sealed bool  // it is encrypted on disk
	closer io.Closer
	check  *checked
}

// Broken is why reading ended before the end of an encrypted file that was changed, nil
// when it did not: for readers that take an end for the end.
func (f *File) Broken() error {
	if f.check == nil {
		return nil
	}
	f.check.mu.Lock()
	defer f.check.mu.Unlock()
	return f.check.err
}

// Close implements [io.Closer].
func (f *File) Close() error { return f.closer.Close() }

// Open opens a regular file, encrypted or not. Of a file that is not there the encrypted one
// is opened: whoever made it knows it by its own name.
func (v *Vault) Open(path string) (*File, error) {
	h, _, err := input.Open(path)
	if errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(path, Suffix) {
		if other, _, err2 := input.Open(path + Suffix); err2 == nil {
			h, err = other, nil
		}
	}
	if errors.Is(err, input.ErrKind) {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if err != nil {
		return nil, plain(err)
	}
	f, err := v.From(h)
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// plain leaves the operation out of an error of the file system.
func plain(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}

// From is [Vault.Open] for a file that was opened already, which is closed with the
// result.
func (v *Vault) From(h *os.File) (*File, error) {
	st, err := h.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%w but %s (accepted: a file)", ErrFile, input.Kind(st.Mode()))
	}
	head := make([]byte, len(magic))
	n, err := h.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if !bytes.Equal(head[:n], []byte(magic)) {
		return &File{Reader: h, Size: st.Size(), closer: h}, nil
	}
	return v.sealed(h, st.Size())
}

// sealed opens an encrypted file. The size is looked at first, which reads and checks
// the last part of the file: a file that is not whole yields nothing at all.
func (v *Vault) sealed(h *os.File, size int64) (*File, error) {
	if !v.Set() {
		return nil, fmt.Errorf("%w: name the file with its age identity in %s", ErrKey, Variable)
	}
	_, whole, err := age.DecryptReaderAt(h, size, v.identities...)
	var none *age.NoIdentityMatchError
	switch {
	case errors.As(err, &none):
		return nil, fmt.Errorf("%w, and no identity in %s opens it: put the one that does behind the others", ErrKey, Variable)
	case err != nil:
		return nil, ErrCut
	}
	r, err := age.Decrypt(bufio.NewReaderSize(io.NewSectionReader(h, 0, size), 256<<10), v.identities...)
	if err != nil {
		return nil, ErrCut
	}
	c := &checked{r: r}
	return &File{Reader: c, Size: whole, Sealed: true, closer: h, check: c}, nil
}

// checked says of parts that were changed what they are, and remembers it. Who reads may
// be another goroutine than who asks.
type checked struct {
	r   io.Reader
	mu  sync.Mutex
	err error
}

// Read implements [io.Reader].
func (c *checked) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil && err != io.EOF {
		c.mu.Lock()
		c.err = ErrCut
		c.mu.Unlock()
		err = ErrCut
	}
	return n, err
}

// Digest is the SHA-256 and the length of what is in a file, encrypted or not, and
// whether it is.
func (v *Vault) Digest(path string) (sum string, size int64, sealed bool, err error) {
	f, err := v.Open(path)
	if err != nil {
		return "", 0, errors.Is(err, ErrKey), err
	}
	defer f.Close()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, f.Sealed, fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), size, f.Sealed, nil
}

// Place writes a file into a directory, whole or not at all, encrypted when there is a
// key, and returns its name there. A link of that name is replaced, never followed.
func (v *Vault) Place(dir, name string, content io.Reader) (string, error) {
	if v.Set() && !strings.HasSuffix(name, Suffix) {
		name += Suffix
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, temporary+"*")
	if err != nil {
		return "", err
	}
	err = errors.Join(v.write(f, content), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error says more
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return name, nil
}

// write writes content; with a key what reaches the file is encrypted, and durable:
// whoever is told so may remove the plain one.
func (v *Vault) write(f *os.File, content io.Reader) error {
	if !v.Set() {
		_, err := io.Copy(f, content)
		return err
	}
	out := bufio.NewWriterSize(f, 256<<10)
	w, err := age.Encrypt(out, v.recipient)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, content); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return f.Sync()
}
