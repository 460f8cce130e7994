package proposal

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ghostbot/bot/access"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// interrupted is a shell journal before whose commit something else happens.
type interrupted struct {
	stored
	meanwhile func()
}

func (i *interrupted) AppendVia(ctx context.Context, kind string, body any, via func(context.Context, store.Line) error) (uint64, string, error) {
	i.meanwhile()
	return i.stored.AppendVia(ctx, kind, body, via)
}

// TestStartIsOneStep: what becomes of an approval after it was read, and before the intent is written, counts: nothing starts twice,
// after its end, after a stop, or too late.
func TestStartIsOneStep(t *testing.T) {
	becomes := func(state string) func(*Approvals, Stored) store.Write {
		return func(a *Approvals, p Stored) store.Write {
			p.State = state
			data, _ := json.Marshal(p) // it was read from JSON
			return store.Write{Key: Key(a.SessionID, p.Proposal.ID), Data: data}
		}
	}
	for _, c := range []struct {
		name   string
		write  func(*Approvals, Stored) store.Write // meanwhile; nil: nothing
		after  time.Duration
		starts bool
	}{
		{"nothing happens", nil, 0, true},
		{"another holder started it", becomes(StateStarted), 0, false},
		{"it was superseded", becomes(StateSuperseded), 0, false},
		{"it was deleted", func(a *Approvals, p Stored) store.Write { return store.Write{Key: Key(a.SessionID, p.Proposal.ID)} }, 0, false},
		{"the case was stopped", func(a *Approvals, _ Stored) store.Write {
			return store.Write{Key: StopKey(a.SessionID), Data: []byte(`{"by":"U2"}`)}
		}, 0, false},
		{"time passed", nil, UseBy, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, db store.DB) {
				j := &interrupted{}
				a := &Approvals{DB: db, SessionID: sid, Fence: func() uint64 { return 0 }, Shell: j, People: staff{}, Access: access.Rules{Approvers: []string{"U1"}}}
				p := safeexec.Proposal{ID: strings.Repeat("c", 32), AuditID: sid + "_001", Class: safeexec.Risky, Digest: "d", Argv: []string{"true"}, Expires: time.Now().Add(time.Hour)}
				a.stores(t, p)
				s, err := Load(t.Context(), db, sid, p.ID)
				if err != nil {
					t.Fatal(err)
				}
				s.Approve(Vote{By: "U1", At: time.Now()}, 1)
				if err := s.Put(t.Context(), db, sid, nil, nil); err != nil {
					t.Fatal(err)
				}
				j.meanwhile = func() {
					time.Sleep(c.after)
					if c.write == nil {
						return
					}
					if err := db.Commit(t.Context(), store.Commit{Scope: sid, Writes: []store.Write{c.write(a, s)}}); err != nil {
						t.Error(err)
					}
				}
				_, _, err = a.Start(t.Context(), safeexec.Start{Proposal: p, Risky: true, Entry: struct{}{}})
				if started := len(j.kinds) == 1; started != c.starts || started != (err == nil) {
					t.Errorf("started %v, %v", started, err)
				}
			})
		})
	}
}
