package home

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"ghostbot/audit"
	"ghostbot/store"
)

// Pull writes the journals of a case, and the register, as the store has them into a
// directory, for verbs that read journals.
func Pull(ctx context.Context, o Options, sid, dir string) error {
	db, done, err := Reader(o)
	if err != nil {
		return err
	}
	defer done()
	for _, sid := range slices.Compact([]string{audit.Register, sid}) {
		scope := sid
		if sid == audit.Register {
			scope = store.Deployment
		}
		lines, err := db.Lines(ctx, scope, 0)
		if err == nil {
			err = write(dir, sid, lines)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func write(dir, sid string, lines []store.Line) error {
	files := map[string][]byte{}
	for _, l := range lines {
		name := audit.FileName(sid, l.Journal)
		if name == "" {
			return fmt.Errorf("the store has a journal %q of %s, which no case has", l.Journal, sid)
		}
		files[name] = append(append(files[name], l.Data...), '\n')
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
