package module

import (
	"context"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
)

// openDeleter takes a share of the deleter of people. keys identify what it uses that a config may change.
func (a *App) openDeleter(rt *runtime, keys string) (*deletions.Deleter, error) {
	return keep(a, "deletions "+keys+" "+a.DataDir, func() (*deletions.Deleter, func() error, error) {
		d := deletions.New(deletions.Config{
			Registry: rt.registry, Shards: rt.Shards, Logger: a.logger.Named("deletions"),
			Options: func(project int64) ingest.Options { return rt.intake.Options(rt.registry.Snapshot(), project) },
			Forget: func(project int64, before time.Time) {
				rt.Cache.Erase(project, before)
				rt.Runs.Erase(project, before)
			},
			Recount:       rt.intake.Recount,
			EraseCaptured: rt.capturing.erase,
			EraseImports:  rt.imports.service.EraseReasons,
		})
		return d, d.Close, nil
	})
}

// eraseProjects waits until the events captured so far for a shard are off the disk, and removes set-aside events of deleted projects.
func (c *capturing) eraseProjects(ctx context.Context, shard string, gone func(project int64) bool) error {
	return c.eraseLines(ctx, shard, func(project int64, _ []byte) bool { return gone(project) })
}

// deliveredPollInterval is how often to check whether captured events are delivered.
const deliveredPollInterval = 100 * time.Millisecond

// erase waits until the events captured so far for a shard are delivered and off the disk, and removes set-aside events for which gone returns true.
func (c *capturing) erase(ctx context.Context, shard string, gone func(project int64, distinctID string) bool) error {
	var parser record.Parser
	return c.eraseLines(ctx, shard, func(project int64, line []byte) bool {
		r, err := parser.Parse(line)
		return err == nil && gone(project, r.DistinctID)
	})
}

func (c *capturing) eraseLines(ctx context.Context, shard string, gone func(project int64, line []byte) bool) error {
	one := c.logs.Of(shard)
	if one == nil { // nothing was ever captured for it
		return nil
	}
	for upTo := one.Journal.Rotate(); !one.Journal.Gone(upTo); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(deliveredPollInterval):
		}
	}
	return one.Journal.EraseAside(ctx, gone)
}
