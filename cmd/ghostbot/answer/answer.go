// Package answer finds in the journals of a case which answer of people stands behind
// the very command that asks. A verb that ends processes believes nothing else: what
// an environment or an argument says could have been put there by any program.
package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ghostbot/audit"
)

// ErrNone means that no answer stands behind a command.
var ErrNone = errors.New("no approval in the journals of this case stands behind this command")

// Answer is an approval that one run may use.
type Answer struct {
	By   []string // everybody who approved
	Rule string   // of the policy, as people saw it
}

// Find returns the answer to the proposal id (SID_NNN), if the journals of case sid in
// dir verify, people approved that proposal, its intent is the last thing that is
// journaled of it, and what was to start is exactly args behind its program. The gate writes the intent
// before it starts the command and the outcome after it, so that an approval counts
// for one run, and for no other command. Errors wrap [ErrNone].
func Find(dir, sid, id string, args []string) (Answer, error) {
	n, ok := strings.CutPrefix(id, sid+"_")
	if num, err := strconv.ParseUint(n, 10, 64); !ok || err != nil || num == 0 {
		return Answer{}, fmt.Errorf("%w: %q is no entry of case %s", ErrNone, id, sid)
	}
	if v := audit.Verify(dir, sid, audit.VerifyOptions{}); v.Err != nil || !v.OK {
		return Answer{}, fmt.Errorf("%w: the journals do not verify: %s", ErrNone, orError(v.Why, v.Err))
	}
	entries, err := audit.Read(dir, sid)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrNone, err)
	}
	var f found
	for _, e := range entries {
		if e.Journal != audit.Shell {
			continue
		}
		if err := f.add(e, id, n); err != nil {
			return Answer{}, fmt.Errorf("%w: entry %d: %w", ErrNone, e.N, err)
		}
	}
	return f.answer(args)
}

func orError(why string, err error) string {
	if err != nil {
		return err.Error()
	}
	return why
}

// body is what this package reads of entries of the gate.
type body struct {
	AuditID  string   `json:"audit_id"`
	Argv     []string `json:"argv"`
	Rule     string   `json:"rule"`
	Decision string   `json:"decision"`
	By       string   `json:"by"`
	Votes    []string `json:"votes"`
}

// found is what the journal says of one proposal, last entry last.
type found struct {
	rule string
	by   []string
	last string // kind of its last entry
	argv []string
}

func (f *found) add(e audit.Entry, id, n string) error {
	var b body
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return err
	}
	proposed := e.Kind == "proposed" && fmt.Sprintf("%03d", e.N) == n
	if b.AuditID != id && !proposed {
		return nil
	}
	f.last = e.Kind
	switch {
	case proposed:
		f.rule = b.Rule
	case e.Kind == "decided":
		if f.by = b.Votes; len(f.by) == 0 && b.By != "" {
			f.by = []string{b.By}
		}
		if b.Decision != "APPROVED" {
			f.by = nil
		}
	case e.Kind == "intent":
		f.argv = b.Argv
	}
	return nil
}

func (f *found) answer(args []string) (Answer, error) {
	switch {
	case f.rule == "":
		return Answer{}, fmt.Errorf("%w: nothing was proposed there", ErrNone)
	case len(f.by) == 0:
		return Answer{}, fmt.Errorf("%w: nobody approved it", ErrNone)
	case f.last != "intent" && f.last != "started":
		return Answer{}, fmt.Errorf("%w: it is not what runs now", ErrNone)
	case len(f.argv) == 0 || !slices.Equal(f.argv[1:], args):
		return Answer{}, fmt.Errorf("%w: another command was approved", ErrNone)
	}
	return Answer{By: f.by, Rule: f.rule}, nil
}
