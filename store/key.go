package store

import (
	"crypto/sha256"
	"encoding/hex"
)

// KeyPart makes any text, of any length, a valid segment of a key's name; equal
// texts give equal segments.
func KeyPart(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}
