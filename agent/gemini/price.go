package gemini

import (
	"strings"

	"ghostbot/agent"
)

// price is the list price of a model in dollars for a million tokens, that is in
// millionths of a dollar for one. long is for prompts of more than 200,000.
type price struct {
	model        string // prefix of the names that it is for; the longest counts
	in, out      float64
	longIn, long float64
}

// prices are the provider's list of October 2026; where a price is announced to
// rise, the higher one. A model that is not listed costs as much as the dearest.
var prices = []price{
	{"", 4, 18, 4, 18},
	{"gemini-2.5-flash-lite", 0.10, 0.40, 0.10, 0.40},
	{"gemini-2.5-flash", 0.30, 2.50, 0.30, 2.50},
	{"gemini-2.5-pro", 1.25, 10, 2.50, 15},
	{"gemini-3-flash", 0.50, 3, 0.50, 3},
	{"gemini-3-pro", 2, 12, 4, 18},
	{"gemini-3.1-flash-lite", 0.25, 1.50, 0.25, 1.50},
	{"gemini-3.1-pro", 2, 12, 4, 18},
	{"gemini-3.5-flash-lite", 0.30, 2.50, 0.30, 2.50},
	{"gemini-3.5-flash", 1.50, 9, 1.50, 9},
	{"gemini-3.8-flash", 1.50, 7.50, 1.50, 7.50},
	{"gemini-flash-latest", 1.50, 9, 1.50, 9},
}

// longPrompt is the length from which the higher price counts.
const longPrompt = 200_000

// cost is an estimate in millionths of a dollar; cached tokens count a quarter.
func cost(model string, u agent.Usage) int64 {
	best := prices[0]
	for _, p := range prices {
		if strings.HasPrefix(model, p.model) && len(p.model) > len(best.model) {
			best = p
		}
	}
	in, out := best.in, best.out
	if u.Prompt > longPrompt {
		in, out = best.longIn, best.long
	}
	cached := min(u.Cached, u.Prompt)
	return int64(float64(u.Prompt-cached)*in + float64(cached)*in/4 + float64(u.Output)*out)
}
