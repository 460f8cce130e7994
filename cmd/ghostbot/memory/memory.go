// Package memory finds closed cases that look like another one and reads what
// they came to off their journals. It changes nothing.
//
// The deployment's value of each case is only the index: what is told of a closed
// case comes from its journals, and from no case whose journals do not verify.
package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ghostbot/agent"
	"ghostbot/agent/recall"
	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/bot/record"
	"ghostbot/bot/show"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/internal/input"
	"ghostbot/store"
)

// Limits of what is read.
const (
	maxJournals = 16 << 20 // bytes; a closed case with more is not recalled
	maxReport   = 4 << 20
	maxListed   = 50
	maxCause    = 400 // bytes
)

// Scopes of GHOST_RECALL: whose closed cases a new one is reminded of.
const (
	Channel    = "channel"    // those of its own channel
	Deployment = "deployment" // all of this state directory
	Off        = "off"
)

// Check says why a scope is not accepted.
func Check(scope string) error {
	switch scope {
	case Channel, Deployment, Off:
		return nil
	}
	return fmt.Errorf("GHOST_RECALL: %q is not accepted (accepted: channel deployment off)", scope)
}

// Options say where closed cases are.
type Options struct {
	DB    store.DB
	Ring  *keyring.Ring // the journals and their keys
	Scope string        // Channel, Deployment or Off
	Clean func(string) string
}

// Recall returns the closed cases that look like c, likeliest first, at most
// [agent.MaxRecalled]. An error beside cases names those that were left out.
func (o Options) Recall(ctx context.Context, c bot.CaseInfo) ([]agent.Recalled, error) {
	if o.Scope == Off {
		return nil, nil
	}
	of := recall.Of(c.Opening.Symptom, "")
	s := recall.NewSearch(of, agent.MaxRecalled)
	err := each(ctx, o.DB, func(past bot.CaseInfo) {
		at, here := past.Opening.Place, c.Opening.Place
		if past.Closed && past.Opening.Kind == "" && past.SessionID != c.SessionID && past.SessionID != c.Opening.From && (o.Scope == Deployment || at.Transport == here.Transport && at.Channel == here.Channel) {
			s.Add(recall.Past{ID: past.SessionID, Symptom: past.Opening.Symptom, Cause: past.Summary, At: past.ClosedAt})
		}
	})
	if err != nil {
		return nil, err
	}
	var out []agent.Recalled
	for _, f := range s.Best(2*agent.MaxRecalled, recall.Enough) {
		if len(out) == agent.MaxRecalled || ctx.Err() != nil {
			break
		}
		r, rerr := o.read(f.ID)
		if rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		m := of.Match(recall.Of(r.Symptom, strings.Join(r.Causes, " "))) // the index may say what the journals do not
		if m.Points < recall.Enough {
			continue
		}
		r.ClosedAt, r.Points, r.Why = f.At.UTC(), m.Points, m.String()
		out = append(out, o.cleaned(r))
	}
	return out, err
}

// cleaned redacts and cuts what is told of another case.
func (o Options) cleaned(r agent.Recalled) agent.Recalled {
	clean := func(s string, n int) string {
		if s = strings.Join(strings.Fields(s), " "); len(s) > n {
			s = strings.ToValidUTF8(s[:n], "") + "…"
		}
		if o.Clean != nil {
			s = o.Clean(s)
		}
		return s
	}
	r.Symptom, r.Summary, r.Why = clean(r.Symptom, maxCause), clean(r.Summary, maxCause), clean(r.Why, maxCause)
	for i, c := range r.Causes {
		r.Causes[i] = clean(c, maxCause)
	}
	return r
}

// read verifies the journals of a closed case and says what they came to.
func (o Options) read(sid string) (agent.Recalled, error) {
	r := agent.Recalled{SessionID: sid}
	size := int64(0)
	for _, j := range []string{audit.Shell, audit.Tasks, audit.Case} {
		if fi, err := os.Stat(filepath.Join(o.Ring.Dir(), audit.FileName(sid, j))); err == nil {
			size += fi.Size()
		}
	}
	if size > maxJournals {
		return r, fmt.Errorf("recall %s: its journals have %d bytes, %d are read", sid, size, maxJournals)
	}
	var rep show.Report
	v := o.Ring.Verify(sid, audit.VerifyOptions{Each: func(e audit.Entry) {
		if e.Journal != audit.Case {
			return
		}
		var opened agent.Opened
		switch {
		case e.Kind == agent.KindOpened && r.Symptom == "" && json.Unmarshal(e.Body, &opened) == nil:
			r.Symptom = opened.Symptom
		case e.Kind == show.KindOfReport:
			_ = json.Unmarshal(e.Body, &rep) // one that does not read tells nothing
		}
	}})
	if !v.OK {
		return r, fmt.Errorf("recall %s: its journals do not verify: %s", sid, v.Why)
	}
	if rep.Verdict == "" {
		return r, fmt.Errorf("recall %s: it has no report", sid)
	}
	r.Verdict, r.Confidence, r.Summary, r.Gaps, r.Head = rep.Verdict, rep.Confidence, rep.Summary, len(rep.Gaps), v.Head[:min(len(v.Head), 32)]
	for _, c := range rep.Causes[:min(len(rep.Causes), 3)] {
		r.Causes = append(r.Causes, c.Statement)
	}
	r.Note = reportNote(filepath.Join(o.Ring.Dir(), "ghost_rca_"+sid+".md"), rep.SHA256)
	return r, nil
}

// reportNote says what is wrong with a report file; "" when it is what its journal says.
func reportNote(path, want string) string {
	fi, err := os.Lstat(path)
	switch {
	case err != nil:
		return "its report file is missing"
	case !fi.Mode().IsRegular() || fi.Size() > maxReport:
		return "its report file is not what its journal says"
	}
	b, err := input.Read(path, maxReport)
	if sum := sha256.Sum256(b); err != nil || hex.EncodeToString(sum[:]) != want {
		return "its report file is not what its journal says"
	}
	return ""
}

// each calls f with every case, none of which it keeps where the store can do that.
func each(ctx context.Context, db store.DB, f func(bot.CaseInfo)) error {
	var bad error
	one := func(v store.Value) bool {
		var c bot.CaseInfo
		if err := json.Unmarshal(v.Data, &c); err != nil {
			bad = fmt.Errorf("%s: %w", v.Key.Name, err)
			return false
		}
		f(c)
		return ctx.Err() == nil
	}
	if walker, ok := db.(interface {
		Each(ctx context.Context, scope, prefix string, f func(store.Value) bool) error
	}); ok {
		err := walker.Each(ctx, store.Deployment, "case/", one)
		return errors.Join(bad, err, ctx.Err())
	}
	vs, err := db.List(ctx, store.Deployment, "case/")
	for _, v := range vs {
		if !one(v) {
			break
		}
	}
	return errors.Join(bad, err, ctx.Err())
}

// Listed is a case of a list, with its likeness.
type Listed struct {
	bot.CaseStatus
	Like *recall.Match `json:"like,omitempty"`
}

// Like lists cases that look like a case or a text, the likeliest first, at most
// [maxListed].
func Like(ctx context.Context, db store.DB, like string) ([]Listed, error) {
	of := recall.Of(like, "")
	if store.CheckScope(like) == nil {
		v, err := db.Get(ctx, store.Key{Scope: store.Deployment, Name: "case/" + like})
		var c bot.CaseInfo
		if err == nil && json.Unmarshal(v.Data, &c) == nil {
			of = recall.Of(c.Opening.Symptom, c.Summary)
		}
	}
	s := recall.NewSearch(of, maxListed)
	err := each(ctx, db, func(c bot.CaseInfo) {
		s.Add(recall.Past{ID: c.SessionID, Symptom: c.Opening.Symptom, Cause: c.Summary, At: c.CreatedAt})
	})
	out := []Listed{}
	if err != nil {
		return out, err
	}
	for _, f := range s.Best(maxListed, recall.Listed) {
		v, err := db.Get(ctx, store.Key{Scope: store.Deployment, Name: "case/" + f.ID})
		if err != nil {
			return out, err
		}
		var c bot.CaseInfo
		if err := json.Unmarshal(v.Data, &c); err != nil {
			return out, fmt.Errorf("%s: %w", v.Key.Name, err)
		}
		st, err := record.Describe(ctx, db, c)
		if err != nil {
			return out, fmt.Errorf("case %s: %w", f.ID, err)
		}
		m := f.Match
		out = append(out, Listed{st, &m})
	}
	return out, nil
}
