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
	Keys  []string  `json:"keys"` // of those that are journaled word for word
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
		c := store.Commit{Scope: sid, Guards: []store.Guard{{Key: at, Version: v.Version}}}
		if len(t.Keys) < RefusedEach {
			err = t.word(db, &c, at, part, r, now)
		} else {
			err = t.count(ctx, db, &c, at, r, now)
		}
		if err == nil {
			err = db.Commit(ctx, c)
		}
		if !conflict(err) {
			return err
		}
	}
}

// word stores a refusal to be journaled word for word.
func (t *tally) word(db store.DB, c *store.Commit, at store.Key, part string, r show.Refusal, now time.Time) error {
	t.Keys = append(t.Keys, part)
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	body, err := json.Marshal(Item{Kind: show.KindOfRefusal, At: now.UTC(), Refusal: &r})
	c.Writes = []store.Write{{Key: at, Data: data}, {Key: Key(db, c.Scope, part), Data: body}}
	return err
}

// count adds a refusal to the item that counts them. One that was journaled early, at the end of a case, is
// followed by another that begins anew.
func (t *tally) count(ctx context.Context, db store.DB, c *store.Commit, at store.Key, r show.Refusal, now time.Time) error {
	due := t.Since.Add(RefusedFor)
	item := place(c.Scope, due, store.KeyPart(at.Name))
	v, err := db.Get(ctx, item)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	n, before := 1, Item{}
	if json.Unmarshal(v.Data, &before) == nil && before.Refusal != nil {
		n += before.Refusal.More
	}
	body, err := json.Marshal(Item{Kind: show.KindOfRefusal, At: now.UTC(), Due: due, Refusal: &show.Refusal{By: r.By, What: r.What, More: n,
		Why: fmt.Sprintf("%d more in the %d minutes from %s on; the first %d of them are journaled word for word", n, int(RefusedFor.Minutes()), t.Since.UTC().Format("15:04:05 UTC"), RefusedEach)}})
	c.Guards = append(c.Guards, store.Guard{Key: item, Version: v.Version})
	c.Writes = []store.Write{{Key: item, Data: body}}
	return err
}

// Last journals at the end of a case the refusals that are in the inbox, those whose time is not over
// included. What people wrote for the brain stays there: nobody reads it any more.
func (p *People) Last(ctx context.Context) error {
	_, err := p.drain(ctx, func(it Item) bool { return it.Refusal != nil })
	return err
}
