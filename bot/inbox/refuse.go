package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ghostbot/bot/show"
	"ghostbot/store"
)

// Of what one person is refused in a case, of each kind the first RefusedEach within RefusedFor are
// journaled word for word; one entry at the end of that time says how many more there were.
const (
	RefusedFor  = 10 * time.Minute
	RefusedEach = 10
)

// tally is the value at refused/{person and kind}: what was refused since.
type tally struct {
	Since time.Time `json:"since"`
	Keys  []string  `json:"keys"`           // of those that are journaled word for word
	More  int       `json:"more,omitempty"` // that are counted only
}

// Refuse stores a refusal for the holder to journal. What key names again within the time is the same
// one; of the others none is lost in the count, and somebody who goes on fills neither the journal nor the store.
func Refuse(ctx context.Context, db store.DB, sid string, key []string, r show.Refusal) error {
	part := store.KeyPart(strings.Join(key, "\x00"))
	at := store.Key{Scope: sid, Name: "refused/" + store.KeyPart(r.By+"\x00"+r.What)}
	for {
		now, err := db.Now(ctx)
		if err != nil {
			return err
		}
		v, err := db.Get(ctx, at)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		var t tally
		if len(v.Data) > 0 && json.Unmarshal(v.Data, &t) != nil || now.Sub(t.Since) >= RefusedFor {
			t = tally{Since: now.UTC()} // of what was before, the inbox has the entry
		}
		if slices.Contains(t.Keys, part) {
			return nil
		}
		writes, err := t.add(sid, part, at, r, now)
		if err != nil {
			return err
		}
		err = db.Commit(ctx, store.Commit{Scope: sid, Guards: []store.Guard{{Key: at, Version: v.Version}}, Writes: writes})
		if !conflict(err) {
			return err
		}
	}
}

// add counts a refusal, and returns what stores it.
func (t *tally) add(sid, part string, at store.Key, r show.Refusal, now time.Time) ([]store.Write, error) {
	it, item := Item{Kind: show.KindOfRefusal, At: now.UTC(), Refusal: &r}, Key(sid, part)
	if len(t.Keys) < RefusedEach {
		t.Keys = append(t.Keys, part)
	} else {
		t.More++
		it.Due = t.Since.Add(RefusedFor)
		item.Name = fmt.Sprintf("inbox/%020d-%s", it.Due.UnixNano(), store.KeyPart(at.Name)) // the same for all of them
		it.Refusal = &show.Refusal{By: r.By, What: r.What, More: t.More,
			Why: fmt.Sprintf("%d more in the %d minutes from %s on; the first %d of them are journaled word for word", t.More, int(RefusedFor.Minutes()), t.Since.UTC().Format("15:04:05 UTC"), RefusedEach)}
	}
	body, err := json.Marshal(it)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(t)
	return []store.Write{{Key: at, Data: data}, {Key: item, Data: body}}, err
}

// Last journals at the end of a case the refusals that are in the inbox, those whose time is not over
// included. What people wrote for the brain stays there: nobody reads it any more.
func (p *People) Last(ctx context.Context) error {
	_, err := p.drain(ctx, func(it Item) bool { return it.Refusal != nil })
	return err
}
