// Package totp is the verb totp without its command line: enrols people with an
// authenticator app. What it prints of a secret it prints once.
package totp

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"ghostbot/bot/factor"
	"ghostbot/cmd/ghostbot/who"
)

// ErrUsage marks what somebody typed wrong.
var ErrUsage = errors.New("usage")

// usage wraps a mistake of whoever typed.
func usage(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

type usageError struct{ text string }

func (e *usageError) Error() string        { return e.text }
func (e *usageError) Is(target error) bool { return target == ErrUsage }

// Options are where the verb finds things.
type Options struct {
	File    string   // of secrets
	Replace bool     // enrol somebody anew
	Apart   []string // directories in which the file must not lie
	Out     io.Writer
}

// Run does what args say: enrol USER, list, remove USER, or unlock USER.
func Run(o Options, args []string) error {
	if len(args) == 0 {
		return usage("totp: what to do is missing (accepted: enrol USER, list, remove USER, unlock USER)")
	}
	if o.File == "" {
		return usage("totp: the file of secrets is missing (accepted: GHOST_TOTP_FILE, or --file FILE)")
	}
	if err := who.Apart(o.File, o.Apart...); err != nil {
		return usage("totp: %v", err)
	}
	switch {
	case !slices.Contains([]string{"enrol", "list", "remove", "unlock"}, args[0]):
		return usage("totp: %q is not accepted (accepted: enrol USER, list, remove USER, unlock USER)", args[0])
	case args[0] == "list" && len(args) == 1:
		return list(o)
	case args[0] == "list":
		return usage("totp: list takes no argument, got %q", args[1])
	case len(args) != 2:
		return usage("totp: %q takes one user (accepted: enrol USER, list, remove USER, unlock USER)", args[0])
	}
	if err := factor.CheckUser(args[1]); err != nil {
		return usage("totp: %v", err)
	}
	switch args[0] {
	case "remove":
		if err := factor.Remove(o.File, args[1]); err != nil {
			return fmt.Errorf("totp: %w", err)
		}
		_, err := fmt.Fprintf(o.Out, "%s has no secret any more. Codes of the old one do not count from now on.\n", args[1])
		return err
	case "unlock":
		if err := factor.Unlock(o.File, args[1], time.Now()); err != nil {
			return fmt.Errorf("totp: %w", err)
		}
		_, err := fmt.Fprintf(o.Out, "%s can give codes again at once. Wrong ones from before do not count any more, used ones stay used; the bot writes it into its register at the next code.\n", args[1])
		return err
	}
	return enrol(o, args[1])
}

func list(o Options) error {
	secrets, err := factor.Read(o.File)
	if errors.Is(err, fs.ErrNotExist) { // nobody enrolled and a mistyped name look the same otherwise
		return usage("totp: %v (totp enrol makes it)", err)
	}
	if err != nil {
		return fmt.Errorf("totp: %w", err)
	}
	for _, user := range slices.Sorted(maps.Keys(secrets)) {
		if _, err := fmt.Fprintln(o.Out, user); err != nil {
			return err
		}
	}
	return nil
}

func enrol(o Options, user string) error {
	e, err := factor.Enrol(o.File, user, o.Replace)
	if errors.Is(err, factor.ErrEnrolled) {
		return fmt.Errorf("totp: %w; --replace makes a new secret, and codes of the old one do not count any more", err)
	}
	if err != nil {
		return fmt.Errorf("totp: %w", err)
	}
	_, err = fmt.Fprintf(o.Out, `%s is enrolled. Give this to that person, and to nobody else; it is shown once.

  secret   %s
  address  %s

Type the secret into an authenticator app (time-based, six digits, 30 seconds), or make the address a QR code, in a terminal
that nobody else sees: qrencode -t ansiutf8 'ADDRESS'
`, e.User, e.Secret, e.URI)
	return err
}

// Define declares the flags of the verb. file is the environment's.
func (o *Options) Define(file string) func(*flag.FlagSet) {
	return func(fs *flag.FlagSet) {
		fs.StringVar(&o.File, "file", file, "the file of secrets, in place of GHOST_TOTP_FILE: `FILE`")
		fs.BoolVar(&o.Replace, "replace", false, "enrol anew who has a secret already; the old one ends")
	}
}
