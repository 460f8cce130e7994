// Package evidence reads the journals of a case for its report, and holds a report
// file, and the files that the case left behind, against them. It changes nothing.
package evidence

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"ghostbot/agent/rca"
	"ghostbot/audit"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/cmd/ghostbot/vault"
	"ghostbot/internal/input"
)

// Load verifies the journals of a case and returns what a report is built from. The
// entries are those that were verified, in the same pass; of journals that do not
// verify they are whatever can be read.
func Load(ring *keyring.Ring, sid string, o audit.VerifyOptions) (rca.Input, error) {
	in := rca.Input{SessionID: sid}
	o.Each = func(e audit.Entry) { in.Entries = append(in.Entries, e) }
	in.Verified = ring.Verify(sid, o)
	if in.Verified.Err != nil {
		return in, in.Verified.Err
	}
	if in.Verified.FirstBad != nil {
		entries, err := audit.Read(ring.Dir(), sid)
		if err != nil {
			return in, fmt.Errorf("read journals: %w", err)
		}
		in.Entries = entries
	}
	return in, nil
}

// File is one file that the case left behind, compared with its journals.
type File struct {
	Path    string `json:"path"`
	AuditID string `json:"audit_id"`
	State   string `json:"state"` // as_recorded, missing, changed, removed (by the clean-up), unknown (no hash was recorded), encrypted (for a key that is not here)
}

// Result is what holding a report against the journals came to.
type Result struct {
	rca.Checked
	Artefacts []File `json:"artefacts"`
}

// OK reports whether the report is one of these journals and no file was changed. A
// missing file is said and no fault: captures are cleaned up, and bundles are moved.
func (r Result) OK() bool {
	for _, f := range r.Artefacts {
		if f.State == "changed" {
			return false
		}
	}
	return r.Checked.OK()
}

// ErrNoReport marks a path that holds no report file.
var ErrNoReport = errors.New("not a report file")

// Report holds the file at path against the journals.
func Report(in rca.Input, path string, v *vault.Vault) (Result, error) {
	md, err := readReport(path)
	if err != nil {
		return Result{}, err
	}
	c, err := rca.Check(md, in)
	if err != nil {
		return Result{}, err
	}
	r := Result{Checked: c, Artefacts: []File{}}
	for _, a := range c.Artefacts {
		r.Artefacts = append(r.Artefacts, File{Path: a.Path, AuditID: a.AuditID, State: compare(a, v)})
	}
	return r, nil
}

// readReport reads a regular file of bounded length, whatever is put in its place
// meanwhile.
func readReport(path string) (string, error) {
	b, err := input.Text(path, rca.MaxFile)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoReport, err)
	}
	return string(b), nil
}

// compare says what became of a file. The journals may be somebody else's: nothing is
// opened but a regular file of the recorded length, and nothing of it is told.
func compare(a rca.Artefact, v *vault.Vault) string {
	fi, err := os.Lstat(a.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && a.Cleaned:
		return "removed"
	case err != nil:
		return "missing"
	case !fi.Mode().IsRegular() || fi.Size() < a.Size:
		return "changed"
	case a.SHA256 == "":
		return "unknown"
	}
	file, err := os.OpenFile(a.Path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return "missing"
	}
	defer file.Close()
	f, err := v.From(file)
	switch {
	case errors.Is(err, vault.ErrKey):
		return "encrypted"
	case err != nil || f.Size != a.Size:
		return "changed"
	}
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, a.Size+1)); err != nil || n != a.Size || hex.EncodeToString(h.Sum(nil)) != a.SHA256 {
		return "changed"
	}
	return "as_recorded"
}

// Answer is what audit verify says.
type Answer struct {
	audit.Report
	RCA *Result `json:"rca,omitempty"`
}

// Verify checks the journals of a case and, when they verify and path is not "", the
// report at path.
func Verify(ring *keyring.Ring, sid, path string, v *vault.Vault, o audit.VerifyOptions) (Answer, error) {
	if path == "" {
		return Answer{Report: ring.Verify(sid, o)}, nil
	}
	in, err := Load(ring, sid, o)
	a := Answer{Report: in.Verified}
	if err != nil || !a.OK {
		return a, nil // why is in it
	}
	r, err := Report(in, path, v)
	if err != nil {
		return a, err
	}
	a.RCA = &r
	if !r.OK() {
		a.OK, a.Why = false, "the report is not what the journals give"
		if len(r.Findings) == 0 {
			a.Why = "a file that the report names was changed"
		}
	}
	return a, nil
}

// Print says it for people: one line about the journals, and one about each thing
// that a report makes worth saying. clean makes one line of a text.
func (a Answer) Print(w io.Writer, clean func(string) string) {
	if a.OK {
		fmt.Fprintf(w, "ok  %s: %d entries, head %s\n", a.SessionID, a.Records, a.Head)
	} else {
		fmt.Fprintf(w, "BAD %s: %s\n", a.SessionID, clean(a.Why))
	}
	if a.RCA == nil {
		return
	}
	if a.OK {
		how := "it is what these journals give"
		if a.RCA.Posted {
			how = "it is the report that was posted"
		}
		fmt.Fprintf(w, "ok  report: %s; it cites %d entries\n", how, a.RCA.Cited)
	}
	for _, x := range []struct {
		mark string
		list []rca.Finding
	}{{"BAD", a.RCA.Findings}, {"note", a.RCA.Notes}} {
		for _, f := range x.list {
			at := ""
			if f.Line > 0 {
				at = fmt.Sprintf("line %d ", f.Line)
			}
			fmt.Fprintf(w, "%s report: %s%s\n", x.mark, at, clean(f.What))
		}
	}
	marks := map[string]string{"changed": "BAD", "as_recorded": "ok "}
	for _, f := range a.RCA.Artefacts {
		fmt.Fprintf(w, "%s file %s (%s): %s\n", cmp.Or(marks[f.State], "note"), clean(f.Path), f.AuditID, strings.ReplaceAll(f.State, "_", " "))
	}
}
