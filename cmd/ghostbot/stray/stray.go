// Package stray finds journals of open cases that the shared store does not know: somebody deleted keys there while
// nobody held the cases. It changes nothing: what other machines have of such a case is not known here.
package stray

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"ghostbot/audit"
	"ghostbot/store"
)

// Cases lists them: those with journals in dir that do not say that the case ended, that neither the register there
// says to be closed or deleted, nor the store knows.
func Cases(ctx context.Context, db store.DB, dir string) ([]string, error) {
	sids, err := audit.Sessions(dir)
	if err != nil || len(sids) == 0 {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	vs, err := db.List(ctx, store.Deployment, "case/")
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, v := range vs {
		known[strings.TrimPrefix(v.Key.Name, "case/")] = true
	}
	register, err := audit.Read(dir, audit.Register)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range register {
		var of struct {
			SessionID string `json:"session_id"`
		}
		if (e.Kind == "closed" || e.Kind == "deleting" || e.Kind == "deleted") && json.Unmarshal(e.Body, &of) == nil {
			known[of.SessionID] = true
		}
	}
	var out []string
	for _, sid := range sids {
		if known[sid] {
			continue
		}
		over, err := ended(dir, sid)
		if err != nil {
			return out, fmt.Errorf("journals of %s: %w", sid, err)
		}
		if !over {
			out = append(out, sid)
		}
	}
	return out, nil
}

// ended reports whether the journals of a case say that it has a report: what is left is nothing that somebody waits for.
func ended(dir, sid string) (bool, error) {
	entries, err := audit.Read(dir, sid)
	for _, e := range entries {
		if e.Journal == audit.Case && e.Kind == "report" {
			return true, err
		}
	}
	return false, err
}

// Words bounds how many cases [Told] names.
const Words = 10

// Told says of such cases what happened, and what to do.
func Told(sids []string) (what, hint string) {
	more := ""
	if len(sids) > Words {
		more = fmt.Sprintf(" and %d more", len(sids)-Words)
	}
	return fmt.Sprintf("the store does not know %d open cases whose journals are on this machine, because somebody deleted keys there (FLUSHALL, DEL) or it came up empty: %s%s", len(sids), strings.Join(sids[:min(Words, len(sids))], ", "), more),
		"a process that still holds one puts it back within seconds; else nobody carries it on: 'ghostbot audit show ID' says how far it came and what ran, 'ghostbot audit export ID' keeps it; open it anew in its channel"
}
