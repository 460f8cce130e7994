package bot

import (
	"context"
	"errors"
	"testing"

	"ghostbot/safeexec"
)

// A button whose value no store takes as a name is refused at once: it is no failure of the store, and nobody is told to press again.
func TestMalformedButtons(t *testing.T) {
	of := newOffice(t, nil)
	sid := of.open("d1")
	ctx := context.Background()
	for _, c := range []struct{ sid, id string }{{"a", "b"}, {sid, "*"}, {sid, "a/../b"}, {"*", "0123"}, {"", ""}, {"deployment", "x"}} {
		r, err := of.desk.Resolve(ctx, Click{Delivery: "d", SessionID: c.sid, ProposalID: c.id, Digest: "0123456789abcdef", By: "U1", Action: safeexec.Approve})
		if err != nil || r.OK || r.Text == "" {
			t.Errorf("Resolve %q: %+v, %v", c, r, err)
		}
		if r, err = of.desk.Answer(ctx, c.sid, c.id, "yes", "U1", ""); err != nil || r.OK || r.Text == "" {
			t.Errorf("Answer %q: %+v, %v", c, r, err)
		}
	}
	for _, sid := range []string{"a", "*", "", "../x"} {
		if err := of.desk.Stop(ctx, sid, "U1"); !errors.Is(err, ErrNoCase) {
			t.Errorf("Stop %q: %v, want ErrNoCase", sid, err)
		}
	}
}
