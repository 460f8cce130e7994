package symptom_test

import (
	"math"
	"testing"

	"ghostbot/agent/playbook/symptom"
)

// TestFigures: the share and the time that a text names, and figures that are neither.
func TestFigures(t *testing.T) {
	for text, want := range map[string][2]float64{
		"every third request to http://a.example/ fails":         {1. / 3, 0},
		"about 10% of the calls to http://a.example/ return 500": {.1, 0},
		"a.example:80 fails, 2.5 % errors":                       {.025, 0},
		"one in ten requests to a.example:80 fails":              {.1, 0},
		"3 out of 4 users cannot connect to a.example:80":        {.75, 0},
		"every 5th request to a.example:80 gets 502":             {.2, 0},
		"half of the requests to a.example:80 hang":              {.5, 0},
		"jeder zehnte Aufruf von a.example:80 scheitert":         {.1, 0},
		"a.example:80: cpu is at 90 % and it is slow":            {0, 0},
		"30 % packet loss to a.example:80":                       {0, 0},
		"a.example:80 is at 99 % of its memory":                  {0, 0},
		"error rate of a.example:80 is at 5 %":                   {.05, 0},
		"a.example:80 fails in 5 percent of all cases":           {.05, 0},
		"a.example:80 is slow, 90% cpu":                          {0, 0},
		"100 % of requests to a.example:80 fail":                 {0, 0},
		"latency to a.example:80 is 200 ms more since 12:00":     {0, .2},
		"a.example:80 takes 3 s, it was 80ms before":             {0, .08},
		"a.example:80 is slow since 10:40":                       {0, 0},
		"a.example:80 is down for 20 s":                          {0, 0},
		"jitter of 80 milliseconds on the way to a.example":      {0, .08},
	} {
		s := symptom.Parse(text)
		if math.Abs(s.Rate-want[0]) > 1e-9 || math.Abs(s.Delay-want[1]) > 1e-9 || (s.Rate > 0) && !s.Intermittent {
			t.Errorf("%q: rate %v delay %v, want %v", text, s.Rate, s.Delay, want)
		}
	}
}
