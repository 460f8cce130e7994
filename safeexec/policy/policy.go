// Package policy decides, without running anything, what class a command is of.
//
// # Tiers
//
// Tier 0: catastrophes, FORBIDDEN whoever approves, found by walking the parsed
// text through wrappers. Tier 1: the tool's own policy (allow-listed flags,
// positional grammar). Tier 2: the azure-cli command tree. Tier 3: shape of the
// text (more than one simple command, substitutions, wrappers). A command is
// SAFE only when exactly one allow-listed program with allow-listed arguments is
// left; everything that is not understood is RISKY. The zero Class is Forbidden.
//
// Classification never depends on what is installed.
package policy

import "encoding/json"

// Class says what may happen with a command. The zero value forbids.
type Class uint8

const (
	Forbidden Class = iota // never run, whoever approves
	Risky                  // run after a person approved
	Safe                   // run without asking
)

func (c Class) String() string {
	switch c {
	case Safe:
		return "SAFE"
	case Risky:
		return "RISKY"
	}
	return "FORBIDDEN"
}

// MarshalText writes the class as SAFE, RISKY or FORBIDDEN.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads SAFE and RISKY; everything else is FORBIDDEN.
func (c *Class) UnmarshalText(b []byte) error {
	switch string(b) {
	case "SAFE":
		*c = Safe
	case "RISKY":
		*c = Risky
	default:
		*c = Forbidden
	}
	return nil
}

// Verdict is the answer about one command text.
type Verdict struct {
	Class       Class    `json:"class"`
	Tier        *int     `json:"tier"`        // 0 to 3; nil when SAFE
	Rule        string   `json:"rule"`        // short stable name, as in "curl-flag"
	Reason      string   `json:"reason"`      // for people
	Environment string   `json:"environment"` // "azure" when the program is az, else "local"
	Argv        []string `json:"argv"`        // the argument list that would run; nil when there is no single one
}

// Options are what a deployment may add to the built-in policy.
type Options struct {
	// Self is the absolute path of the product's own binary; its read-only
	// verbs (pcap, classify, version) are SAFE by exactly this path.
	Self string
	// CaptureDirs are absolute folders whose files tcpdump -r, tshark -r and
	// the product's pcap verb may read.
	CaptureDirs []string
}

// Policy classifies commands. It is immutable and safe for concurrent use.
type Policy struct{ opt Options }

// New returns the built-in policy with o added.
func New(o Options) *Policy { return &Policy{opt: o} }

// Version identifies the policy's content; it is part of what an approval
// binds, so that an approval given under one policy does not start a command
// under another.
func (p *Policy) Version() string { b, _ := json.Marshal(p.opt); return "0-" + string(b) }
