package place

import (
	"fmt"
	"math"
	"slices"

	"ghostbot/agent/playbook/phrase"
	"ghostbot/agent/playbook/read"
)

// readSample reads several requests made by one command, of which only the figures
// are kept. What ends without an answer ends the sample.
func (p *Place) readSample(o read.Output, m Moment) string {
	list := read.Sample(o)
	if len(list) == 0 {
		p.note(m, "unsuitable")
		return ""
	}
	p.tried(m)
	bad := 0
	for _, w := range list {
		p.fetches++
		p.phases(w, m)
		if w.Answered() && w.Code < 500 && w.Code != 429 && !slices.Contains(p.About.Codes, w.Code) {
			p.goodIDs = append(p.goodIDs, Fact{"ok", m.ID, m.Obs})
			continue
		}
		bad++
		p.failures++
		p.codes = append(p.codes, w.Code)
		p.note(m, "failed")
	}
	return fmt.Sprintf("%d of %d more requests to %s failed.", bad, len(list), p.End.String())
}

// rare is how seldom a run of good requests has to be before it speaks against the
// share that is said to fail.
const rare = 0.05

// luck is how likely all requests of a place come off though the share of them that
// people name fails; 0 when nobody names one.
func (p *Place) luck() float64 {
	n := max(p.fetches, len(p.goodIDs))
	if p.About.Rate == 0 || p.Parent != nil || p.failures > 0 || n == 0 {
		return 0
	}
	return math.Pow(1-p.About.Rate, float64(n))
}

// Lucky reports whether what came off is too little to speak against the share that
// is said to fail.
func (p *Place) Lucky() bool { return p.luck() > rare }

// chance says what good requests are worth against the share that people name.
func (p *Place) chance() string {
	what := "connections"
	if p.End.HTTP() {
		what = "requests"
	}
	n, luck := max(p.fetches, len(p.goodIDs)), p.luck()
	s := fmt.Sprintf("It is said that %s of them fail; all %d %s to %s from here came off", phrase.Percent(math.Round(1000*p.About.Rate)/10), n, what, p.Title())
	if luck > rare {
		return s + fmt.Sprintf(", which with that share still happens in %.0f %% of such runs: too few to tell.", 100*luck)
	}
	return s + ", which is rare with that share: now, and from this machine, it is not so."
}
