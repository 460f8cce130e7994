package factor

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ghostbot/internal/input"
)

// secretLen is RFC 4226's recommendation, and the size of what the hash gives.
const secretLen = 20

// minSecret is the shortest secret that is accepted (RFC 4226, R6).
const minSecret = 16

// maxFile bounds the file of secrets.
const maxFile = 1 << 20

// Errors that callers branch on.
var (
	// ErrEnrolled is a user who has a secret already.
	ErrEnrolled = errors.New("is enrolled already")
	// ErrUnknown is a user who has none.
	ErrUnknown = errors.New("is not enrolled")
)

var (
	userID   = regexp.MustCompile(`^[UW][A-Z0-9]{2,}$`)
	encoding = base32.StdEncoding.WithPadding(base32.NoPadding)
)

// CheckUser says what is wrong with a user's id.
func CheckUser(id string) error {
	if !userID.MatchString(id) {
		return fmt.Errorf("%q is not a Slack user (U...)", id)
	}
	return nil
}

// Read reads the secrets of a file. One that others than its owner may read is
// refused. No error tells a secret.
func Read(name string) (map[string][]byte, error) {
	all, err := read(name)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for user, l := range all {
		out[user] = l.secret
	}
	return out, nil
}

// line is what the file says of one user.
type line struct {
	secret   []byte
	unlocked time.Time // the mark of whoever runs the bot: locks and wrong codes that it meets do not count
}

// unlockedAt begins the third field of a line.
const unlockedAt = "unlocked="

func read(name string) (map[string]line, error) {
	f, info, err := input.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read or written by others than its owner (mode %04o): chmod 600 %s", name, info.Mode().Perm(), name)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err == nil {
		text, err = input.Plain(name, text)
	}
	if err != nil {
		return nil, err
	}
	out, err := parse(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

func parse(r io.Reader) (map[string]line, error) {
	out := map[string]line{}
	in := bufio.NewScanner(r)
	for n := 1; in.Scan(); n++ {
		text, _, _ := strings.Cut(in.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		l, ok := decode(fields)
		switch {
		case !userID.MatchString(fields[0]) || !ok:
			return nil, fmt.Errorf("line %d is not a Slack user and a secret in Base32 of %d bytes or more", n, minSecret)
		case out[fields[0]].secret != nil:
			return nil, fmt.Errorf("line %d: %s has a secret above", n, fields[0])
		}
		out[fields[0]] = l
	}
	return out, in.Err()
}

func decode(fields []string) (l line, ok bool) {
	if len(fields) == 3 {
		at, found := strings.CutPrefix(fields[2], unlockedAt)
		t, err := time.Parse(time.RFC3339, at)
		if !found || err != nil {
			return l, false
		}
		l.unlocked, fields = t, fields[:2]
	}
	if len(fields) != 2 {
		return l, false
	}
	var err error
	l.secret, err = encoding.DecodeString(strings.ToUpper(strings.TrimRight(fields[1], "=")))
	return l, err == nil && len(l.secret) >= minSecret
}

// Text is a secret as the file and authenticator apps have it.
func Text(secret []byte) string { return encoding.EncodeToString(secret) }

// Enrolment is a new secret, to be shown once.
type Enrolment struct {
	User   string
	Secret string // in Base32, as authenticator apps take it
	URI    string // the same as otpauth://, which can be made a QR code
}

// Enrol makes a secret for user and adds it to the file, which is made when it is not
// there. A user who has one keeps it unless replace is set.
func Enrol(name, user string, replace bool) (Enrolment, error) {
	if err := CheckUser(user); err != nil {
		return Enrolment{}, err
	}
	secret := make([]byte, secretLen)
	rand.Read(secret)
	e := Enrolment{User: user, Secret: Text(secret)}
	e.URI = "otpauth://totp/" + url.PathEscape("ghostbot:"+user) + "?secret=" + e.Secret + "&issuer=ghostbot&algorithm=SHA1&digits=6&period=30"
	err := change(name, func(lines []string) ([]string, error) {
		kept := without(lines, user)
		if len(kept) < len(lines) && !replace {
			return nil, ErrEnrolled
		}
		return append(kept, user+" "+e.Secret), nil
	})
	if err != nil {
		return Enrolment{}, fmt.Errorf("enrol %s: %w", user, err)
	}
	return e, nil
}

// Remove takes the secret of user away.
func Remove(name, user string) error {
	err := change(name, func(lines []string) ([]string, error) {
		kept := without(lines, user)
		if len(kept) == len(lines) {
			return nil, ErrUnknown
		}
		return kept, nil
	})
	if err != nil {
		return fmt.Errorf("remove %s: %w", user, err)
	}
	return nil
}

// Unlock marks user in the file, so that locks and wrong codes until the next code do not count. Codes that
// were used stay used. Whoever checks that code journals it before it counts ([Codes.Lifted]). The mark is
// this machine's time, for people; it only has to differ from other marks.
func Unlock(name, user string, now time.Time) error {
	err := change(name, func(lines []string) ([]string, error) {
		found := false
		for i, l := range lines {
			text, comment, _ := strings.Cut(l, "#")
			if f := strings.Fields(text); len(f) > 1 && f[0] == user {
				found = true
				lines[i] = f[0] + " " + f[1] + " " + unlockedAt + now.UTC().Format(time.RFC3339Nano)
				if comment != "" {
					lines[i] += " #" + comment
				}
			}
		}
		if !found {
			return nil, ErrUnknown
		}
		return lines, nil
	})
	if err != nil {
		return fmt.Errorf("unlock %s: %w", user, err)
	}
	return nil
}

func without(lines []string, user string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
		f := strings.Fields(l)
		return len(f) > 0 && f[0] == user
	})
}

// change rewrites the file: a new one takes its place when it is whole, so that a
// crash leaves the old or the new one. The directory is locked meanwhile.
func change(name string, edit func([]string) ([]string, error)) error {
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", dir.Name(), err)
	}
	if _, err := Read(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // what is wrong with it is not made worse
	}
	old, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var lines []string
	if text := strings.TrimRight(string(old), "\n"); text != "" {
		lines = strings.Split(text, "\n")
	}
	if lines, err = edit(lines); err != nil {
		return err
	}
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	return replaceFile(name, b.Bytes(), dir)
}

// sameOwner gives f the owner of the file that it will replace: the bot reads its secrets
// also after somebody else has enrolled a user.
func sameOwner(f *os.File, name string) error {
	var old, made unix.Stat_t
	switch err := unix.Stat(name, &old); {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return err
	}
	if err := unix.Fstat(int(f.Fd()), &made); err != nil {
		return err
	}
	if old.Uid == made.Uid && old.Gid == made.Gid {
		return nil
	}
	return f.Chown(int(old.Uid), int(old.Gid))
}

func replaceFile(name string, data []byte, dir *os.File) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".totp-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := sameOwner(f, name); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return dir.Sync()
}
