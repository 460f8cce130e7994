package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"ghostbot/bot/access"
	"ghostbot/bot/show"
	"ghostbot/store"
)

// similarMax bounds how many open cases a new one names.
const similarMax = 3

// similar returns the open cases of o's channel that look at the same, oldest
// first. People open a second case on one incident without knowing of the first;
// both go on, and each says where the other is.
func (d *Desk) similar(ctx context.Context, o Opening) ([]string, error) {
	if d.o.Alike == nil {
		return nil, nil
	}
	vs, err := d.o.DB.List(ctx, store.Deployment, "active/")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, v := range vs {
		c, err := d.Case(ctx, strings.TrimPrefix(v.Key.Name, "active/"))
		if err != nil || c.Closed || c.SessionID == o.From || c.Opening.Delivery == o.Delivery {
			continue // a case that cannot be read is no reason to open none
		}
		at := c.Opening.Place
		if at.Transport == o.Place.Transport && at.Channel == o.Place.Channel && d.o.Alike(c.Opening.Symptom, o.Symptom) {
			out = append(out, c.SessionID)
		}
	}
	return out[:min(len(out), similarMax)], nil
}

// point leaves a line in the older cases that a new one looks at the same.
func (d *Desk) point(ctx context.Context, c CaseInfo) {
	for _, sid := range c.Similar {
		text := fmt.Sprintf("%s opened another case that looks at the same: %s. Both go on; say stop in the one that is not needed.", access.Mention(c.Opening.Requester), c.SessionID)
		body, err := json.Marshal(inboxItem{Kind: show.KindOfNotice, At: time.Now().UTC(), Notice: &show.Notice{Text: text}})
		if err == nil {
			err = d.deliver(ctx, sid, "similar "+c.SessionID, body)
		}
		if err != nil {
			d.o.Log.Warn("an older case does not know of a similar one", "session_id", sid, "similar", c.SessionID, "err", err)
		}
	}
}

// similarText is the line in a new case about the older ones.
func similarText(sids []string) string {
	return "Another open case of this channel looks at the same: " + strings.Join(sids, ", ") + ". Both go on; say stop in the one that is not needed."
}
