package main

import (
	"context"
	"sync"

	"ghostbot/cmd/ghostbot/metrics"
	"ghostbot/cmd/ghostbot/ops"
)

// ops is what operators chose.
func (c *config) ops() ops.Config {
	v := versionOf()
	return ops.Config{HealthAddr: c.HealthAddr, Build: metrics.Build{Version: v.Version, Commit: v.Commit, Go: v.Go}}
}

// answering serves the operators' pages while do runs: also while the program waits
// for Slack, and until it has drained.
func (p *program) answering(ctx context.Context, do func(context.Context) error) error {
	open, shut := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, p.ops.Drain)()
	var wg sync.WaitGroup
	wg.Go(func() { p.ops.Run(open, p.db) })
	err := do(ctx)
	shut()
	wg.Wait()
	return err
}
