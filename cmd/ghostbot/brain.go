package main

import (
	"context"

	"ghostbot/agent/brains"
)

// choice is who proposes.
func (c config) choice() brains.Options {
	return brains.Options{Name: c.Brain, Key: string(c.GeminiKey), Model: c.Model, URL: c.GeminiURL, Tokens: int(c.ModelTokens), USD: float64(c.ModelUSD)}
}

// checkModel asks the model once at the start. A key or a model that is not
// accepted ends the start when there is no other brain; everything else may be
// over when the first case comes, and is only logged.
func (p *program) checkModel(ctx context.Context) error {
	_, fatal, err := p.cfg.choice().Probe(ctx)
	if err != nil && fatal {
		return fail(exitUnavailable, "%w", err)
	}
	if err != nil {
		p.log.Warn("the model cannot be asked just now", "why", err)
	}
	return nil
}
