package record

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"ghostbot/store"
)

// Listed are open cases, and what [MovedKey] was before they were read.
type Listed struct {
	SIDs  []string
	Moved store.Version // "": it is not there, or cannot be read
	At    time.Time
}

// Load reads a case.
func Load(ctx context.Context, db store.DB, sid string) (c Case, err error) {
	v, err := db.Get(ctx, Key(sid))
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(v.Data, &c)
}

// Open returns the open cases that can be read of a channel, or of all when it is "".
func Open(ctx context.Context, db store.DB, channel string) (out []Case, err error) {
	prefix := ActivePrefix
	if channel != "" {
		prefix = InChannel(channel)
	}
	vs, err := db.List(ctx, store.Deployment, prefix)
	for _, v := range vs {
		if c, err := Load(ctx, db, strings.TrimPrefix(v.Key.Name, prefix)); err == nil && !c.Closed && (channel == "" || c.Opening.Place.Channel == channel) {
			out = append(out, c) // one that cannot be read hides no other
		}
	}
	return out, err
}

// ListAgain bounds how long a list is believed because nothing seems to have moved: a replica of
// another version may open and close cases without a word.
const ListAgain = 30 * time.Second

// Again lists the open cases but the foreign ones; with an error the last ones. Thousands of open cases
// are read again only when one was opened or closed, or when foreign did not know of one.
func (last Listed) Again(ctx context.Context, db store.DB, foreign func(ctx context.Context, sid string) (bool, error)) (Listed, error) {
	now := Listed{At: time.Now()}
	if moved, err := db.Get(ctx, MovedKey); err == nil { // a value that cannot be read hides nothing
		now.Moved = moved.Version
	}
	if now.Moved != "" && now.Moved == last.Moved && time.Since(last.At) < ListAgain {
		return last, nil
	}
	vs, err := db.List(ctx, store.Deployment, ActivePrefix)
	if err != nil {
		return last, err
	}
	for _, v := range vs {
		sid := strings.TrimPrefix(v.Key.Name, ActivePrefix)
		other, err := foreign(ctx, sid)
		if err != nil {
			now.Moved = "" // asked again soon
		}
		if !other {
			now.SIDs = append(now.SIDs, sid)
		}
	}
	return now, nil
}
