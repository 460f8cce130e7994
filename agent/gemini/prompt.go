package gemini

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// PromptVersion counts the revisions of the system prompt and the declared
// tools; their hash beside it in a brain's name shows what counting forgot.
const PromptVersion = 4

//go:embed prompt.md
var prompt string

// fingerprint is the hash of everything that a model is told about its part.
func fingerprint() (string, error) {
	tools, err := json.Marshal(declarations())
	if err != nil {
		return "", fmt.Errorf("encode tools: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s\n%s", PromptVersion, prompt, tools)
	return hex.EncodeToString(h.Sum(nil)[:6]), nil
}
