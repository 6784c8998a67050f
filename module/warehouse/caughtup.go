package warehouse

import (
	"context"
	"sync"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// caughtUp knows which host of ClickHouse has what was written of people.
type caughtUp struct {
	replicas replicas
	on       sync.Map // a writtenOn by the project
}

// replicas is a clickhouse.Client.
type replicas interface {
	First() string
	CatchUp(ctx context.Context, tables ...string) (host string, whole bool, err error)
}

// writtenOn is a host that has what was written of a project's people.
type writtenOn struct {
	host  string
	whole bool // also what replicas have that were away
}

// await waits until the host that is asked first has what others, or this server on another host, wrote of a project's people. missed is true
// if rows are there now that were missing before, so that what was read meanwhile may be wrong. The caller has the lock of the people.
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

// forget says that others have written of a project's people.
func (c *caughtUp) forget(project int64) { c.on.Delete(project) }
