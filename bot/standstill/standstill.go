// Package standstill is what people are told of a case that rests: why, and who carries it on; and for how long it rests.
// It is pure.
package standstill

import (
	"errors"
	"time"

	"ghostbot/bot/show"
	"ghostbot/store"
)

// ErrLeaseLost ends what a holder does for a case: its lease is gone, or could not be renewed in time.
var ErrLeaseLost = errors.New("the lease of the case was lost")

// forever is longer than any process lives.
const forever = 100 * 365 * 24 * time.Hour

// Longest is how long a case rests at most before it is tried again, with leases of so long.
func Longest(lease time.Duration) time.Duration { return lease << 5 }

// Pause is how long a case rests after its holder ended with err: longer each time, after fails troubles in a
// row. failed is false when this was no trouble of the case, and does not count.
func Pause(err error, lease time.Duration, fails int) (wait time.Duration, failed bool) {
	if errors.Is(err, store.ErrBroken) {
		return forever, false // a write failed half way: this process has no right to the case any more
	}
	if held := (*store.HeldError)(nil); errors.As(err, &held) {
		return held.Left + 20*time.Millisecond, false
	}
	if errors.Is(err, store.ErrHeld) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, ErrLeaseLost) {
		return lease / 4, false // it may be there any moment
	}
	return lease << min(fails, 5), true
}

// Message says that a case rests because of err, whose text why is, already redacted. many says that other
// processes can carry the case on: then this one's full disk does not keep it.
func Message(err error, why string, many bool) show.Message {
	text := "This case rests and nothing runs: " + why + ". It continues by itself when that is mended."
	switch {
	case errors.Is(err, store.ErrBroken) && many:
		text = "This case rests here and nothing runs: this replica could not write its journal or state (" + why + "). Another replica takes it over in a moment, if one runs; this one only when that is mended and it is started again."
	case errors.Is(err, store.ErrBroken):
		text = "This case rests and nothing runs: its journal or state could not be written (" + why + "). It continues when that is mended and the bot is started again."
	}
	return say(text)
}

// Forgotten says that the store has lost a case and that nobody carries it on.
func Forgotten() show.Message {
	return say("The store has lost what it had of this case: somebody deleted keys there (FLUSHALL, DEL), or it came up empty while nobody could hold the case. Nobody carries it on, and it does not continue by itself: " +
		"the cards and buttons above decide nothing any more. How far it came is in the journals of the machine that carried it ('ghostbot audit show ID'). Open it anew with /ghost investigate.")
}

func say(text string) show.Message {
	return show.Message{Key: "rest", Kind: show.KindLog, Text: text, Log: &show.LogView{What: "rests", Body: text}}
}
