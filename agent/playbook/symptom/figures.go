package symptom

import (
	"strconv"
	"strings"

	"ghostbot/agent/playbook/pattern"
)

var (
	// share are the forms in which people say how much of something fails.
	share = pattern.New(`(?i)\b(\d{1,3}|one|two|three|half) (?:in|of|out of)(?: every| the)? (\d{1,4}|two|three|four|five|six|eight|ten|twenty|fifty|hundred)\b` +
		`|\b(?:every|each|jeder|jede|jedes) (second|other|third|fourth|fifth|sixth|eighth|tenth|twentieth|hundredth|\d{1,3}(?:nd|rd|th)|zweite|dritte|vierte|zehnte)\b` +
		`|\b(\d{1,3}(?:[.,]\d+)?) ?(?:%|percent|per cent|prozent)` +
		`|\b(half|a third|a quarter|a fifth|a tenth) (?:of )`)
	// failing stands beside a percentage of what fails; others are of a load, a time or a loss.
	failing       = pattern.New(`(?i)^ ?(?:of |der |aller )?(?:the |all |our |my )?(?:\w+ )?(?:errors?|error rate|fail\w*|requests?|calls?|users?|clients?|connections?|attempts?|queries|lookups?|look-ups?|customers?|cases|time|orders|logins|anfragen|aufrufe)\b`)
	failingBefore = pattern.New(`(?i)\b(?:errors?|error rate|fail\w*|failure rate|reject\w*|refus\w*|scheitern|5xx)\b[^;\n]{0,40}$`)
	ordinals      = map[string]float64{"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "ten": 10, "twenty": 20, "fifty": 50, "hundred": 100, "half": 0.5,
		"second": 2, "other": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10, "twentieth": 20, "hundredth": 100, "zweite": 2, "dritte": 3, "vierte": 4, "zehnte": 10,
		"a third": 1. / 3, "a quarter": .25, "a fifth": .2, "a tenth": .1}
)

// rate reads which share of the requests is said to fail.
func rate(text string) float64 {
	for _, m := range share.FindAllStringSubmatchIndex(text, 8) {
		g := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return strings.ToLower(text[m[2*i]:m[2*i+1]])
		}
		r := 0.0
		switch {
		case g(1) != "":
			r = figure(g(1)) / max(figure(g(2)), 1)
		case g(3) != "":
			r = 1 / max(figure(strings.TrimRight(g(3), "ndrth")), figure(g(3)), 1)
		case g(4) != "" && (failing.MatchString(text[m[1]:]) || failingBefore.MatchString(text[:m[0]])):
			r = figure(g(4)) / 100
		case g(5) != "":
			r = figure(g(5))
		}
		if r > 0 && r < 1 {
			return r
		}
	}
	return 0
}

func figure(s string) float64 {
	if n, is := ordinals[s]; is {
		return n
	}
	n, _ := strconv.ParseFloat(strings.ReplaceAll(s, ",", "."), 64) // what is no number is none
	return n
}

var jitterWords = pattern.New(`(?i)\bjitter|\bchoppy|\bstutter|\brobotic|\bfluctuat\w* (?:latenc|delay|time|rtt|ping)|(?:latenc\w+|delay|rtt|ping|times?) (?:varies|vary|jumps?|swings?|fluctuates?|schwank\w+)`)

// took is a time that something is said to take.
var took = pattern.New(`(?i)(?:^|[^\w.:])(\d{1,5}(?:[.,]\d{1,3})?) ?(ms|msec|msecs|milliseconds?|millis|s|sec|secs|seconds?)\b`)

// delay reads how long something is said to take, in seconds: the shortest of the
// times that are named.
func delay(text string) float64 {
	out := 0.0
	for _, m := range took.FindAllStringSubmatchIndex(text, 8) {
		d := figure(text[m[2]:m[3]])
		if unit := strings.ToLower(text[m[4]:m[5]]); strings.HasPrefix(unit, "m") {
			d /= 1000
		}
		if d > 0 && d < 600 && (out == 0 || d < out) {
			out = d
		}
	}
	return out
}
