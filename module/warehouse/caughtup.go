package warehouse

import (
	"context"
	"sync"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// caughtUp tracks which host of ClickHouse has everything written about people.
type caughtUp struct {
	replicas replicas
	on       sync.Map // project id → writtenOn
}

// replicas is a clickhouse.Client.
type replicas interface {
	First() string
	CatchUp(ctx context.Context, tables ...string) (host string, whole bool, err error)
}

// writtenOn is a host that has everything written about a project's people.
type writtenOn struct {
	host  string
	whole bool // including what is on replicas that were away
}

// await waits until the first host has everything that others, or this server on another host, wrote about a project's people. missed is true if rows
// appeared that were missing before, so what was read since then may be wrong. The caller holds the lock of the project's people.
func (c *caughtUp) await(ctx context.Context, project int64) (missed bool, err error) {
	before, known := c.on.Load(project)
	was, _ := before.(writtenOn)
	if was == (writtenOn{c.replicas.First(), true}) {
		return false, nil
	}
	host, whole, err := c.replicas.CatchUp(ctx, physical.WithoutLogs()...)
	if err != nil {
		return false, err
	}
	c.on.Store(project, writtenOn{host, whole})
	return known && whole && !was.whole, nil
}

// forget records that others have written about a project's people.
func (c *caughtUp) forget(project int64) { c.on.Delete(project) }
