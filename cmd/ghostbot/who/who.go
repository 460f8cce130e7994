// Package who makes of the environment who may decide: the default approvers, the
// file that narrows them, and which commands need two people or a code.
package who

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"ghostbot/bot"
	"ghostbot/bot/access"
	"ghostbot/bot/factor"
	"ghostbot/store"
)

// Settings are what the environment says.
type Settings struct {
	Approvers []string
	Channels  []string
	Self      bool
	TwoPerson []string
	Instruct  string   // GHOST_INSTRUCT
	Factor    []string // GHOST_SECOND_FACTOR
	File      string   // GHOST_APPROVERS_FILE
	Secrets   string   // GHOST_TOTP_FILE
	Log       *slog.Logger
}

// changed says that the approvers' file was read again.
func (s Settings) changed(lines int, err error) {
	switch {
	case s.Log == nil:
	case err != nil:
		s.Log.Error("the approvers' file cannot be read, nobody may decide until it can", "file", s.File, "err", err)
	default:
		s.Log.Info("the approvers' file was read again", "file", s.File, "lines", lines)
	}
}

// Rules checks the settings and reads the file. known reports whether the policy has
// a rule. An error names the variable.
func (s Settings) Rules(known func(rule string) bool) (access.Rules, error) {
	r := access.Rules{Approvers: s.Approvers, Channels: s.Channels, Self: s.Self, TwoPerson: s.TwoPerson, Instruct: s.Instruct, Factor: s.Factor}
	if err := access.CheckInstruct(s.Instruct); err != nil {
		return r, fmt.Errorf("GHOST_INSTRUCT: %w", err)
	}
	for _, id := range s.Approvers {
		if err := access.CheckID(id); err != nil {
			return r, fmt.Errorf("GHOST_APPROVERS: %w", err)
		}
	}
	for name, list := range map[string][]string{"GHOST_TWO_PERSON": s.TwoPerson, "GHOST_SECOND_FACTOR": s.Factor} {
		for _, what := range list {
			if err := access.CheckWhat(what, known); err != nil {
				return r, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if s.File != "" {
		f, err := access.Follow(s.File, s.Channels, known, r.With, s.changed)
		if err != nil {
			return r, fmt.Errorf("GHOST_APPROVERS_FILE: %w", err)
		}
		r.File = f
	}
	if err := r.Check(); err != nil {
		return r, fmt.Errorf("GHOST_APPROVERS, GHOST_APPROVERS_FILE: %w", err)
	}
	return r, s.checkSecrets()
}

func (s Settings) checkSecrets() error {
	switch {
	case s.Secrets == "" && len(s.Factor) > 0:
		return errors.New("GHOST_SECOND_FACTOR: GHOST_TOTP_FILE is not set, so that nobody could give a code")
	case s.Secrets == "":
		return nil
	}
	if _, err := factor.Read(s.Secrets); err != nil {
		return fmt.Errorf("GHOST_TOTP_FILE: %w (ghostbot totp enrol makes it)", err)
	}
	return nil
}

// InForce are the rules and the second factors of a service. codes is nil without a
// file of secrets, which must not lie in one of dirs: those are copied and backed up.
func (s Settings) InForce(known func(rule string) bool, db store.DB, dirs ...string) (r access.Rules, codes bot.Codes, err error) {
	if r, err = s.Rules(known); err != nil || s.Secrets == "" {
		return r, nil, err
	}
	if err := Apart(s.Secrets, dirs...); err != nil {
		return r, nil, fmt.Errorf("GHOST_TOTP_FILE: %w", err)
	}
	return r, factor.Codes{DB: db, File: s.Secrets}, nil
}

// Journaled makes codes write into the register whose lock was lifted.
func Journaled(codes bot.Codes, register bot.Journal) bot.Codes {
	c, ok := codes.(factor.Codes)
	if !ok || register == nil {
		return codes
	}
	c.Lifted = func(ctx context.Context, l factor.Lifted) error {
		_, _, err := register.Append(ctx, factor.KindOfLifted, l)
		return err
	}
	return c
}

// Known are the secrets in the file, as they are written in it, to be masked wherever
// they turn up. Whoever is enrolled later is not among them.
func (s Settings) Known() []string {
	secrets, err := factor.Read(s.Secrets)
	if err != nil {
		return nil // told where it counts
	}
	var out []string
	for _, secret := range secrets {
		out = append(out, factor.Text(secret))
	}
	return out
}

// Apart says that a file of secrets lies in one of dirs.
func Apart(name string, dirs ...string) error {
	for _, dir := range dirs {
		rel, err := filepath.Rel(real(dir), filepath.Join(real(filepath.Dir(name)), filepath.Base(name)))
		if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return fmt.Errorf("%s lies in %s, which is backed up and copied; keep secrets apart from it", name, dir)
		}
	}
	return nil
}

// real is a directory's path without links, as far as it exists.
func real(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		return resolved
	}
	return dir
}

// Unenrolled are the users who may decide, by name and not through a group, and have
// no secret although some commands need a code.
func (s Settings) Unenrolled(r access.Rules) []string {
	if len(s.Factor) == 0 {
		return nil
	}
	secrets, err := factor.Read(s.Secrets)
	if err != nil {
		return nil
	}
	var out []string
	for _, id := range r.Users() {
		if secrets[id] == nil {
			out = append(out, id)
		}
	}
	return out
}

// Told says in one line who may decide, and whether that can work.
func (s Settings) Told(r access.Rules) (ok bool, what, hint string) {
	if len(r.Users())+len(r.Groups()) == 0 {
		return false, "nobody may approve", "set GHOST_APPROVERS to users (U...) or user groups (S...)"
	}
	what = strings.Join(s.Approvers, ", ")
	if what == "" {
		what = "nobody by default"
	}
	if n := len(r.Narrowings()); n > 0 {
		what += fmt.Sprintf("; %d lines of %s", n, s.File)
	}
	if len(s.TwoPerson) > 0 {
		what += "; two people for " + strings.Join(s.TwoPerson, ", ")
	}
	if len(s.Factor) > 0 {
		what += "; a code for " + strings.Join(s.Factor, ", ")
	}
	if left := s.Unenrolled(r); len(left) > 0 {
		return false, what + "; not enrolled for codes: " + strings.Join(left, ", "), "ghostbot totp enrol USER"
	}
	return true, what, ""
}
