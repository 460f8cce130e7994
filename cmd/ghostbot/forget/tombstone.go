package forget

import (
	"cmp"
	"encoding/json"
	"fmt"

	"ghostbot/audit"
)

// Tombstone says what the register here tells of a case that was deleted: when, by whom, why, and what its
// journals were; "" when it tells nothing. [keyring.Ring.Verify] says whether the register is to be believed.
func Tombstone(auditDir, sid string) string {
	es, err := audit.Read(auditDir, audit.Register)
	if err != nil {
		return ""
	}
	last, at := Entry{}, audit.Entry{}
	for _, x := range es {
		var e Entry
		if (x.Kind == KindDeleting || x.Kind == KindDeleted) && json.Unmarshal(x.Body, &e) == nil && e.SessionID == sid {
			last, at = e, x
		}
	}
	what := "was deleted"
	switch at.Kind {
	case "":
		return ""
	case KindDeleting:
		what = "is being deleted, since"
	}
	return fmt.Sprintf("deleted case: %s %s %s by %.100q (%.200q); it had %d entries, its last head was %s (%s; audit verify register checks that entry)",
		sid, what, at.Time.UTC().Format("2006-01-02 15:04:05 UTC"), last.By, last.Reason, last.Entries, cmp.Or(last.Head, "none"), at.ID())
}
