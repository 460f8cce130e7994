package proposal

import (
	"context"
	"encoding/json"
	"time"

	"ghostbot/store"
)

// Stopped is the value at "stop".
type Stopped struct {
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	Delivery string    `json:"delivery,omitempty"` // of who stopped it
}

// ReadStop reads that value.
func ReadStop(data []byte) (s Stopped, ok bool) { return s, json.Unmarshal(data, &s) == nil }

// Stop stores that a person stopped a case; first is false when somebody did before, by another delivery.
func Stop(ctx context.Context, db store.DB, sid, by, delivery string) (first bool, err error) {
	data, err := json.Marshal(Stopped{By: by, At: time.Now().UTC(), Delivery: delivery})
	if err != nil {
		return false, err
	}
	v, first, err := db.Once(ctx, StopKey(sid), data)
	if err != nil || first {
		return first, err
	}
	s, ok := ReadStop(v.Data)
	return ok && delivery != "" && s.Delivery == delivery, nil
}
