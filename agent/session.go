package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"ghostbot/agent/checksum"
)

// SessionFile is the content of ghost_session.json: the case, and a checksum
// over it. The file is an index; the journals are the truth. The checksum shows
// accidents and careless edits, not an attacker: whoever can write the file can
// compute it.
func SessionFile(c Case) ([]byte, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode session: %w", err)
	}
	sum, err := checksum.Of(raw)
	if err != nil {
		return nil, fmt.Errorf("encode session: %w", err)
	}
	var out bytes.Buffer
	raw = append(raw[:len(raw)-1], fmt.Sprintf(",%q:%q}", checksum.Key, sum)...)
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, fmt.Errorf("encode session: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// CheckSession reads a session file. ok is false when its checksum is wrong or
// missing: a checksum that somebody removed proves nothing. An error means that
// the file is not a session at all.
func CheckSession(b []byte) (c Case, ok bool, err error) {
	if err := json.Unmarshal(b, &c); err != nil {
		return Case{}, false, fmt.Errorf("read session: %w", err)
	}
	if c.SessionID == "" {
		return Case{}, false, errors.New("read session: no session id")
	}
	var have struct {
		Sum string `json:"_checksum"`
	}
	if err := json.Unmarshal(b, &have); err != nil {
		return c, false, nil
	}
	want, err := checksum.Of(b)
	if err != nil {
		return Case{}, false, fmt.Errorf("read session: %w", err)
	}
	return c, have.Sum == want, nil
}

// Spending is what a case has used of what it may use.
type Spending struct {
	Usage     *Usage `json:"usage,omitempty"` // of a model; nil when none was asked
	Turns     int    `json:"turns,omitempty"`
	MaxTurns  int    `json:"max_turns,omitempty"`
	MaxTokens int    `json:"max_tokens,omitempty"`
	MaxCost   int64  `json:"max_cost_micro_usd,omitempty"`
}

// ReadSpending reads it off a session file, which is an index: of one that cannot be
// read, nothing is said.
func ReadSpending(session []byte) (s Spending) {
	var c Case
	if json.Unmarshal(session, &c) != nil {
		return s
	}
	s.Turns, s.MaxTurns = c.TurnCount, c.MaxTurns
	if c.Usage.Calls > 0 {
		s.Usage, s.MaxTokens, s.MaxCost = &c.Usage, c.Opened.MaxTokens, c.Opened.MaxCost
	}
	return s
}
